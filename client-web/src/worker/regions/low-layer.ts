/**
 * Decodes the sent frames of the low layer while stills are requested: stills refine its pictures. Times are
 * milliseconds and arguments.
 *
 * Decoding begins at a key frame. One comes when a participant joins; otherwise it is requested.
 */
import type { OtherFrame } from "../messages.js";
import { PictureDecoder, type PictureHost } from "../picture-decoder.js";
import type { Picture } from "./picture.js";
import type { StillFault, StillMaker, StillTask } from "./still-maker.js";

/** Time without requests after which decoding ends: a new start costs a key frame. */
const IDLE_MS = 60_000;
/** Wait for a key frame before one is requested. */
const KEY_WAIT_MS = 500;
/** Min time between two requests. */
const KEY_REQUEST_MS = 3000;
/** Pictures that the module remembers. */
export const MAX_PICTURES = 8;
/** Max pixels of a low picture: no server asks for stills of a larger one. */
const MAX_PIXELS = 1920 * 1080;
/** Traps of the module after which it is no longer used. */
const MAX_TRAPS = 3;

/** The part of {@link StillMaker} that is used. */
export type Maker = Pick<StillMaker, "follow" | "followPicture" | "reset" | "make">;

/** The part of {@link PictureDecoder} that is used. */
type Pictures = Pick<PictureDecoder, "decode" | "reset">;

/** What the low layer needs of its worker. */
export interface LowHost {
  /** Asks for the data of the frames of this layer; null: of none. */
  follow(ssrc: number | null): void;
  requestKeyFrame(): void;
  /** A picture has been decoded, after its frame was taken. */
  decoded(): void;
}

/** Decodes the low layer while stills are requested, from a key frame on. */
export class LowLayer {
  private create: (() => Maker) | null = null;
  private maker: Maker | null = null;
  private traps = 0;
  private ssrc: number | null = null;
  private wantedAt = 0;
  /** Since when a key frame is waited for; null: pictures are decoded. */
  private keySince: number | null = null;
  private requestedAt = Number.NEGATIVE_INFINITY;

  /** The decoder of frames that are not of VP9. */
  private readonly pictures: Pictures;
  private now = 0;
  /** The frames whose pictures the maker has. */
  private pictured: number[] = [];

  constructor(
    private readonly host: LowHost,
    makePictures: (host: PictureHost) => Pictures = (host) => new PictureDecoder(host, MAX_PIXELS),
  ) {
    this.pictures = makePictures({
      decoded: (rtp, picture) => {
        this.followed(
          rtp,
          this.guard((maker) => maker.followPicture(rtp, picture)),
        );
        this.host.decoded();
      },
      tooLarge: () => this.followed(0, false),
      failed: (unsupported) => {
        if (unsupported) this.traps = MAX_TRAPS;
        this.followed(0, false);
      },
    });
  }

  /** Takes the decoder. */
  start(create: () => Maker): void {
    this.create = create;
  }

  /** Whether pictures are decoded. */
  get ready(): boolean {
    return this.maker !== null && this.ssrc !== null && this.keySince === null;
  }

  /** Whether there is a decoder. */
  get available(): boolean {
    return this.create !== null && this.traps < MAX_TRAPS;
  }

  /** Notes that stills of this layer are requested. */
  want(now: number, ssrc: number): void {
    this.wantedAt = now;
    if (!this.available) return;
    if (this.ssrc !== ssrc) {
      this.ssrc = ssrc;
      this.awaitKeyFrame(now);
      this.host.follow(ssrc);
    }
    const { keySince } = this;
    if (keySince === null || now - keySince < KEY_WAIT_MS || now - this.requestedAt < KEY_REQUEST_MS) return;
    this.requestedAt = now;
    this.host.requestKeyFrame();
  }

  /** Notes that frames come by another port now: some may be missing. */
  portChanged(now: number): void {
    if (this.ssrc === null) return;
    this.awaitKeyFrame(now);
    this.host.follow(this.ssrc);
  }

  /** Notes that frames are missing. */
  framesMissing(now: number): void {
    if (this.ssrc !== null) this.awaitKeyFrame(now);
  }

  /** Takes a sent frame of a layer. */
  sent(now: number, ssrc: number, rtp: number, data: ArrayBuffer | null, other: OtherFrame | null): void {
    this.now = now;
    if (this.ssrc === null) return;
    if (now - this.wantedAt > IDLE_MS) {
      this.ssrc = null;
      this.maker = null;
      this.pictures.reset();
      this.host.follow(null);
      return;
    }
    if (ssrc !== this.ssrc || data === null) return;
    const bytes = new Uint8Array(data);
    if (other === null)
      this.followed(
        rtp,
        this.guard((maker) => maker.follow(rtp, bytes)),
      );
    else this.pictures.decode(other.codec, { rtpTimestamp: rtp, key: other.key, data: bytes });
  }

  /** Whether the picture of a frame is there. */
  has(rtp: number): boolean {
    return this.pictured.includes(rtp);
  }

  /** Notes whether a frame was decoded. */
  private followed(rtp: number, decoded: boolean | null): void {
    if (decoded !== true) {
      this.keySince ??= this.now;
      return;
    }
    this.keySince = null;
    this.pictured.push(rtp);
    if (this.pictured.length > MAX_PICTURES) this.pictured.shift();
  }

  /** Makes the payload of a still. */
  make(now: number, camera: Picture, task: StillTask): Uint8Array | StillFault {
    const made = this.guard((maker) => maker.make(camera, task));
    if (made === null) this.keySince ??= now;
    return made ?? "no-base";
  }

  private awaitKeyFrame(now: number): void {
    this.keySince = now;
    this.pictured = [];
    this.pictures.reset();
    this.guard((maker) => maker.reset());
  }

  /** Calls the decoder; null: it trapped, and a new one begins at the next key frame. */
  private guard<T>(call: (maker: Maker) => T): T | null {
    try {
      if (!this.available) return null;
      this.maker ??= this.create?.() ?? null;
      return this.maker === null ? null : call(this.maker);
    } catch {
      this.traps++;
      this.maker = null;
      return null;
    }
  }
}
