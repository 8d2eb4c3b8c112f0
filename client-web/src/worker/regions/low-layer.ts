/**
 * Decodes the low layer that stills are made for, as it is sent, while stills are asked for: they are coded over its
 * pictures. Times are milliseconds and arguments.
 *
 * It can begin at a key frame alone. One comes by itself where somebody joins; where none does, one is asked for.
 */
import type { Picture } from "./picture.js";
import type { StillFault, StillMaker, StillTask } from "./still-maker.js";

/** Without requests for so long nothing is decoded any more: a new beginning costs a key frame. */
const IDLE_MS = 60_000;
/** A key frame is waited for so long before one is asked for, and as long again before the next. */
const KEY_MS = 500;
const ASK_MS = 3000;
/** Traps of the module after which it is left alone. */
const MOST_TRAPS = 3;

/** What is used of a {@link StillMaker}. */
export type Maker = Pick<StillMaker, "follow" | "reset" | "make">;

/** What it asks for. */
export interface LowHost {
  /** The frames of this layer are to come with their data from now on; null: of none. */
  follow(ssrc: number | null): void;
  wantKeyFrame(): void;
}

/** See the module's head. */
export class LowLayer {
  private create: (() => Maker) | null = null;
  private maker: Maker | null = null;
  private traps = 0;
  private ssrc: number | null = null;
  private wantedAt = 0;
  /** Since when a key frame is waited for; null: pictures are known. */
  private keySince: number | null = null;
  private askedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly host: LowHost) {}

  /** The decoder is there. */
  start(create: () => Maker): void {
    this.create = create;
  }

  /** Whether its pictures are known. */
  get ready(): boolean {
    return this.maker !== null && this.ssrc !== null && this.keySince === null;
  }

  /** Whether there is a decoder at all. */
  get able(): boolean {
    return this.create !== null && this.traps < MOST_TRAPS;
  }

  /** Stills over this layer are wanted. */
  want(now: number, ssrc: number): void {
    this.wantedAt = now;
    if (!this.able) return;
    if (this.ssrc !== ssrc) {
      this.ssrc = ssrc;
      this.begin(now);
      this.host.follow(ssrc);
    }
    const { keySince } = this;
    if (keySince === null || now - keySince < KEY_MS || now - this.askedAt < ASK_MS) return;
    this.askedAt = now;
    this.host.wantKeyFrame();
  }

  /** The frames come another way from now on: some may be missing. */
  relayed(now: number): void {
    if (this.ssrc === null) return;
    this.begin(now);
    this.host.follow(this.ssrc);
  }

  /** Some frames are missing. */
  missed(now: number): void {
    if (this.ssrc !== null) this.begin(now);
  }

  /** A frame of a layer was sent. */
  sent(now: number, ssrc: number, rtp: number, data: ArrayBuffer | null): void {
    if (this.ssrc === null) return;
    if (now - this.wantedAt > IDLE_MS) {
      this.ssrc = null;
      this.maker = null;
      this.host.follow(null);
      return;
    }
    if (ssrc !== this.ssrc || data === null) return;
    const known = this.guard((maker) => maker.follow(rtp, new Uint8Array(data)));
    if (known === true) this.keySince = null;
    else this.keySince ??= now;
  }

  /** Makes a still. */
  make(now: number, camera: Picture, task: StillTask): Uint8Array | StillFault {
    const made = this.guard((maker) => maker.make(camera, task));
    if (made === null) this.keySince ??= now;
    return made ?? "no-base";
  }

  private begin(now: number): void {
    this.keySince = now;
    this.guard((maker) => maker.reset());
  }

  /** Calls the decoder; null: it trapped, and the next one waits for a key frame. */
  private guard<T>(call: (maker: Maker) => T): T | null {
    try {
      if (!this.able) return null;
      this.maker ??= this.create?.() ?? null;
      return this.maker === null ? null : call(this.maker);
    } catch {
      this.traps++;
      this.maker = null;
      return null;
    }
  }
}
