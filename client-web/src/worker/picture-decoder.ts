/**
 * Decodes frames of H.264, VP8 and AV1 by the browser's own decoder (WebCodecs), into packed I420. Decoders of these
 * codecs make the same picture of a frame, bit for bit, so that a publisher and its viewers have the same.
 */
import type { VideoCodec } from "../sdk/codec.js";
import { pack, packedBytes, pictureOf } from "./regions/picture.js";
import type { Size } from "./scale.js";

/** A codec of frames that the decoder of this SDK does not read. */
export type OtherCodec = Exclude<VideoCodec, "vp9">;

/** A decoded picture: the rows of luma, U and V, one after the other without gaps. */
export interface DecodedPicture {
  width: number;
  height: number;
  data: Uint8Array;
  colour: VideoColorSpaceInit | null;
}

/** An encoded frame. */
export interface CodedFrame {
  rtpTimestamp: number;
  key: boolean;
  data: Uint8Array;
}

/** What the decoder needs of its owner. */
export interface PictureHost {
  /** Takes the picture of a frame; in the order of the frames. */
  decoded(rtpTimestamp: number, picture: DecodedPicture): void;
  /** A picture has more pixels than are taken. */
  tooLarge(size: Size): void;
  /** Nothing is decoded until a key frame; `unsupported`: the browser has no decoder of that codec. */
  failed(unsupported: boolean): void;
}

/** Max frames in the decoder: it begins to decode in that time, and keeps up. */
export const MAX_PENDING = 4;
/** Failures in a row after which a codec counts as one that the browser does not decode. */
const MAX_FAILURES = 3;

/** Decodes the H.264, VP8 and AV1 frames of one track to packed I420, by WebCodecs. */
export class PictureDecoder {
  private decoder: VideoDecoder | null = null;
  private codec: OtherCodec | null = null;
  /** The RTP timestamps of frames in the decoder, by the timestamps that it was given. */
  private readonly inside = new Map<number, number>();
  private count = 0;
  /** Copies of pictures, one after the other. */
  private copying: Promise<void> = Promise.resolve();
  private generation = 0;
  /** Failures since the last picture. */
  private failures = 0;
  /** Pictures of a GPU would have to be read back. Where there is no other decoder, they are. */
  private preference: HardwareAcceleration = "prefer-software";

  /** `maxPixels`: larger pictures are not copied. */
  constructor(
    private readonly host: PictureHost,
    private readonly maxPixels: number,
  ) {}

  /** Frames whose pictures have not come. At {@link MAX_PENDING} the next one waits. */
  get pending(): number {
    return this.inside.size;
  }

  /** Takes a frame, in decoding order. Begins at a key frame. */
  decode(codec: OtherCodec, { rtpTimestamp, key, data }: CodedFrame): void {
    if (codec !== this.codec) this.reset();
    if (this.decoder === null && !key) return;
    try {
      this.decoder ??= this.start(codec, data);
      const timestamp = ++this.count;
      this.inside.set(timestamp, rtpTimestamp);
      this.decoder.decode(new EncodedVideoChunk({ type: key ? "key" : "delta", timestamp, data }));
    } catch (error) {
      this.fail(isUnsupported(error));
    }
  }

  /** Forgets all frames. Decoding continues at a key frame. */
  reset(): void {
    this.generation++;
    this.inside.clear();
    this.codec = null;
    const { decoder } = this;
    this.decoder = null;
    if (decoder !== null && decoder.state !== "closed") decoder.close();
  }

  private start(codec: OtherCodec, data: Uint8Array): VideoDecoder {
    if (typeof VideoDecoder === "undefined") throw new DOMException("no WebCodecs", "NotSupportedError");
    const { generation } = this;
    const decoder = new VideoDecoder({
      output: (frame) => {
        this.copying = this.copying.then(() => this.copy(generation, frame)).catch((error) => reportError(error));
      },
      error: (error) => {
        if (this.generation === generation) this.fail(isUnsupported(error));
      },
    });
    decoder.configure({
      codec: codecString(codec, data),
      optimizeForLatency: true,
      hardwareAcceleration: this.preference,
    });
    this.codec = codec;
    return decoder;
  }

  private async copy(generation: number, frame: VideoFrame): Promise<void> {
    const { timestamp, colorSpace, visibleRect } = frame;
    const rtpTimestamp = this.inside.get(timestamp);
    const size = { width: visibleRect?.width ?? 0, height: visibleRect?.height ?? 0 };
    const fits = size.width * size.height <= this.maxPixels;
    const picture = generation === this.generation && fits ? await pictureOf(frame).catch(() => null) : null;
    frame.close();
    if (generation !== this.generation || rtpTimestamp === undefined) return;
    // Frames before it that gave no picture give none any more.
    for (const inside of [...this.inside.keys()]) if (inside <= timestamp) this.inside.delete(inside);
    if (!fits) return this.host.tooLarge(size);
    if (picture === null) return this.fail(false);
    this.failures = 0;
    const { width, height } = picture;
    const data = new Uint8Array(packedBytes(width, height));
    pack(picture, data);
    this.host.decoded(rtpTimestamp, { width, height, data, colour: colorSpace.toJSON() });
  }

  private fail(unsupported: boolean): void {
    this.reset();
    this.failures++;
    const again = unsupported && this.preference === "prefer-software";
    if (again) this.preference = "no-preference";
    this.host.failed((unsupported && !again) || this.failures >= MAX_FAILURES);
  }
}

/** Chromium says that there is no decoder by an `OperationError`, some time after `configure`. */
const isUnsupported = (error: unknown): boolean =>
  ["NotSupportedError", "OperationError"].includes(String((error as { name?: unknown }).name));

/** What WebCodecs calls the codec of a key frame. */
export function codecString(codec: OtherCodec, data: Uint8Array): string {
  if (codec === "vp8") return "vp8";
  // Main profile, 8 bits; the level bounds what decoders take.
  if (codec === "av1") return "av01.0.08M.08";
  // Profile and level are in the sequence parameter set, behind a start code.
  for (let at = 0; at + 6 < data.length; at++) {
    const starts = data[at] === 0 && data[at + 1] === 0 && data[at + 2] === 1;
    // The last two bits of the constraints are reserved.
    if (starts && ((data[at + 3] as number) & 31) === 7 && ((data[at + 5] as number) & 3) === 0)
      return `avc1.${[...data.subarray(at + 4, at + 7)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  }
  return "avc1.42e01f";
}
