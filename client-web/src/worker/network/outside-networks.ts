/**
 * The backends outside of the decoder that a track may use, the preferred one first: one after it is tried where those
 * before it have said why they are not used, and ends where one of them runs.
 */
import type { NetworkTier } from "../network-choice.js";
import type { FailureReason, OutsideBackend } from "./backend.js";
import type { OutsideNetwork, RebuiltPicture } from "./outside-network.js";

/** A backend by its name. */
export interface NamedBackend {
  readonly name: OutsideBackend;
  readonly network: OutsideNetwork;
}

/** Runs the network of a track on the first of several backends that can. */
export class OutsideNetworks {
  /** `backends`: the preferred one first. */
  constructor(private readonly backends: readonly NamedBackend[]) {}

  /** The network that runs now. */
  get network(): NetworkTier {
    return this.running?.network.network ?? "none";
  }

  /** Where it runs; null while none does. */
  get backend(): OutsideBackend | null {
    return this.running?.name ?? null;
  }

  /** Why the preferred backend is not used, or was not at the last try; null before, and while it is. */
  get failure(): FailureReason | null {
    return this.backends[0]?.network.failure ?? null;
  }

  /** Pictures that were shown without the network because a backend had no time for them. */
  get skipped(): number {
    return this.backends.reduce((sum, { network }) => sum + network.skipped, 0);
  }

  /** Mean time of a picture, over the last seconds; null without one. */
  get pictureMs(): number | null {
    return this.running?.network.pictureMs ?? null;
  }

  /** Whether the next picture is wanted, by {@link run}. */
  get wantsPictures(): boolean {
    return this.backends.some(({ network }) => network.wantsPictures);
  }

  private get running(): NamedBackend | undefined {
    return this.backends.find(({ network }) => network.network !== "none");
  }

  /** Sets the largest network that may run. */
  limit(max: NetworkTier): void {
    for (const { network } of this.backends) network.limit(max);
  }

  /** Before each frame: the size of the low picture, as text, and the scale. */
  begin(size: string, scale: number): void {
    for (const { network } of this.backends) network.begin(size, scale);
  }

  /**
   * Takes a frame: the time of all work on it in the worker, the media time since the frame before, and the network
   * that the decoder ran on it. True: a backend's network has ended because the worker has no time.
   */
  frame(workMs: number, intervalMs: number, own: NetworkTier): boolean {
    let busy = false;
    for (const [i, { network }] of this.backends.entries()) {
      busy = network.frame(workMs, intervalMs, own) || busy;
      if (network.network !== "none") {
        for (const { network: other } of this.backends.slice(i + 1)) other.stop();
        break;
      }
      if (network.failure === null) break;
    }
    return busy;
  }

  /** Makes a picture better, as {@link OutsideNetwork.run} does. */
  run(picture: RebuiltPicture, show: (bytes: Uint8Array<ArrayBuffer>) => void): boolean {
    // A preferred one that is being tried takes the picture's time, and shows nothing.
    return this.backends.some(({ network }) => network.run(picture, show));
  }

  /** Shows those that wait as they are: the next is shown at once. */
  pass(): void {
    for (const { network } of this.backends) network.pass();
  }

  /** Pictures that wait are not to be shown. */
  forget(): void {
    for (const { network } of this.backends) network.forget();
  }

  /** The machine has no time for networks. */
  rest(): void {
    for (const { network } of this.backends) network.rest();
  }

  /** Frees the backends: there is nothing to run. */
  stop(): void {
    for (const { network } of this.backends) network.stop();
  }
}
