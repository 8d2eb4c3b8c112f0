/**
 * The networks of one track: which one runs on the next frame, in the decoder or outside of it, and what is reported of
 * it. Times are milliseconds and arguments.
 */
import type { WorkerStats } from "./messages.js";
import type { OutsideNetworks } from "./network/outside-networks.js";
import { type NetworkAbsence, NetworkChoice, type NetworkTier } from "./network-choice.js";

/** What the statistics of a track say of networks. */
export type NetworkStats = Pick<
  WorkerStats,
  "network" | "networkAbsence" | "networkBackend" | "networkFailure" | "networkMs" | "networkSkipped"
>;

/** The part of {@link OutsideNetworks} that is used. */
export type Outside = Pick<
  OutsideNetworks,
  "network" | "backend" | "failure" | "pictureMs" | "skipped" | "limit" | "begin" | "rest" | "frame"
>;

/** Joins the decoder's choice of a network with that of backends outside of it, which come first. */
export class TrackNetworks {
  /** Whether a network ran at the last call of {@link changed}. */
  private ran = false;

  /** `max`: the largest network that may run. */
  constructor(
    max: NetworkTier,
    private readonly outside: Outside,
    private readonly choice = new NetworkChoice(max),
  ) {}

  /** Whether no network runs. */
  get none(): boolean {
    return !this.isOutside && this.choice.network === "none";
  }

  /** The network that the decoder runs: none while another backend does. */
  get own(): NetworkTier {
    return this.isOutside ? "none" : this.choice.network;
  }

  private get isOutside(): boolean {
    return this.outside.network !== "none";
  }

  /** Sets the largest network that may run. */
  limit(max: NetworkTier): void {
    this.choice.limit(max);
    this.outside.limit(max);
  }

  /** Before each frame: the size of the low picture, as text, and the scale. */
  begin(size: string, scale: number): void {
    this.choice.begin(size, scale);
    this.outside.begin(size, scale);
  }

  /** Runs no network: the machine has no time for any. */
  rest(): void {
    this.choice.rest();
    this.outside.rest();
  }

  /**
   * Takes a frame, on which the decoder ran `own`: the time of all work on it, the media time since the frame before,
   * and the queue length.
   */
  frame(now: number, workMs: number, intervalMs: number, queued: number, own: NetworkTier): void {
    // What the decoder's own network takes is not known while it does not run.
    if (!this.isOutside) this.choice.frame(now, workMs, intervalMs, queued);
    if (this.outside.frame(workMs, intervalMs, own)) this.choice.rest();
  }

  /** Whether a network has begun or ended since the last call. `shown`: rebuilt pictures are shown. */
  changed(shown: boolean): boolean {
    const runs = shown && !this.none;
    const changed = runs !== this.ran;
    this.ran = runs;
    return changed;
  }

  /** Statistics. `shown`: rebuilt pictures are shown. `hindrance`: why none are made; null: they are. */
  stats(now: number, shown: boolean, hindrance: () => "size" | "slow" | null): NetworkStats {
    const { outside, choice } = this;
    const network = shown ? (this.isOutside ? outside.network : choice.network) : "none";
    return {
      network,
      networkAbsence: network === "none" ? this.absence(now, hindrance) : null,
      networkBackend: network === "none" ? null : (outside.backend ?? "wasm"),
      networkFailure: outside.failure,
      networkMs: outside.pictureMs,
      networkSkipped: outside.skipped,
    };
  }

  private absence(now: number, hindrance: () => "size" | "slow" | null): NetworkAbsence {
    const absence = this.choice.absence(now) ?? "trying";
    return absence === "off" ? absence : (hindrance() ?? absence);
  }
}
