/**
 * The relay: the worker of a room through which all encoded frames pass, received and sent.
 *
 * It passes each frame on, and sends a copy to the worker of the track. It parses no frame, so no content can stop it:
 * native pictures go on whatever happens to the other workers.
 *
 * In a call with end-to-end encryption it encrypts what is sent, and decrypts what is received, before the copies. What
 * cannot be encrypted or decrypted is dropped.
 */

import { isVideoCodec } from "../sdk/codec.js";
import { BaseKeys } from "./base-keys.js";
import type { FrameCopy, OtherFrame, SentFrame, ToRelayByPort, TransformOptions } from "./messages.js";
import { Decryptor } from "./sframe.js";

/** Max copies that a worker has not taken yet: two seconds of frames. Further ones are skipped. */
const MAX_UNTAKEN = 60;

/**
 * Time between two requests for a key frame: a request can be lost, and Chromium's encoder ignores one right after a
 * key frame.
 */
const KEY_FRAME_EVERY_MS = 400;
/** Max such requests: four seconds. After that the browser's own decoder, which waits for one too, asks alone. */
const MAX_KEY_FRAME_REQUESTS = 10;

/** The part of `MessagePort` that is used. */
export interface CopyPort {
  postMessage(message: FrameCopy | SentFrame, transfer: Transferable[]): void;
  close(): void;
  onmessage: ((event: MessageEvent<ToRelayByPort>) => void) | null;
}

/** The part of `RTCRtpScriptTransformer` that is used. */
export interface Transformer {
  readonly readable: ReadableStream;
  readonly writable: WritableStream;
  sendKeyFrameRequest(): Promise<unknown>;
}

/** The copies of one receiver's or sender's frames. */
class Copies {
  requestKeyFrame: () => void = () => undefined;
  /** SSRC of the sent layer whose frames are copied with their data. */
  followed: number | null = null;
  private port: CopyPort | null = null;
  private untaken = 0;
  private skipped = false;

  connect(port: CopyPort): void {
    this.close();
    this.port = port;
    port.onmessage = ({ data }) => {
      if (this.port !== port) return;
      if (data === "taken") this.untaken--;
      else if (data === "keyFrame") this.requestKeyFrame();
      else this.followed = data.follow;
    };
  }

  /** Sends the copy that `make` returns, unless the worker has too many already. */
  send(make: (afterGap: boolean) => [FrameCopy | SentFrame, Transferable[]]): void {
    if (this.port === null) return;
    if (this.untaken >= MAX_UNTAKEN) {
      this.skipped = true;
      return;
    }
    const [message, transfer] = make(this.skipped);
    this.skipped = false;
    this.untaken++;
    this.port.postMessage(message, transfer);
  }

  close(): void {
    this.port?.close();
    this.port = null;
    this.untaken = 0;
    this.skipped = false;
    this.followed = null;
  }
}

/** Passes the encoded frames of a room on, and sends a copy of each to the worker of its track. */
export class Relay {
  private readonly copies = new Map<number, Copies>();

  /** `keys`: those of encrypted frames. */
  constructor(private readonly keys = new BaseKeys()) {}

  /** Sends the copies of the frames of transform `id` to a port. */
  connect(id: number, port: CopyPort): void {
    this.of(id).connect(port);
  }

  /**
   * Passes the frames of a receiver or sender on, until it ends. `keyFrame`: a key frame is requested until one comes.
   */
  async pass(transformer: Transformer, { role, id, keyFrame, encrypted }: TransformOptions): Promise<void> {
    const decryptor = encrypted !== null && role === "received" ? new Decryptor(() => this.keys.all) : null;
    const copies = this.of(id);
    copies.requestKeyFrame = () => void transformer.sendKeyFrameRequest().catch(() => undefined);
    const reader = transformer.readable.getReader() as ReadableStreamDefaultReader<RTCEncodedVideoFrame>;
    const writer = transformer.writable.getWriter();
    let requestedAt = keyFrame ? performance.now() : null;
    let requests = 1;
    let isIncomplete = false;
    let lastRequest = Number.NEGATIVE_INFINITY;
    if (keyFrame) copies.requestKeyFrame();
    for (;;) {
      const { value: frame, done } = await reader.read();
      if (done) break;
      if (decryptor !== null && encrypted !== null) {
        const plain = await decryptor.decrypt(frame.data, encrypted);
        if (plain === null) {
          isIncomplete = true;
          continue;
        }
        frame.data = plain;
        // What this frame refers to was left out, as for want of a key that has come meanwhile.
        const now = performance.now();
        if (isIncomplete && frame.type === "delta" && requestedAt === null && now - lastRequest >= KEY_FRAME_EVERY_MS) {
          [requestedAt, requests, lastRequest] = [now, 1, now];
          copies.requestKeyFrame();
        }
        isIncomplete = false;
      }
      if (requestedAt !== null) {
        const now = performance.now();
        if (frame.type !== "delta" || requests >= MAX_KEY_FRAME_REQUESTS) requestedAt = null;
        else if (now - requestedAt >= KEY_FRAME_EVERY_MS) {
          requestedAt = now;
          requests++;
          copies.requestKeyFrame();
        }
      }
      try {
        // Writing detaches the data, so the copy is made first.
        copies.send((afterGap) =>
          role === "received" ? received(frame, afterGap) : sent(frame, afterGap, copies.followed),
        );
      } catch {
        // The frame itself is passed on all the same.
      }
      if (encrypted !== null && role === "sent") {
        const hidden = await this.keys.encrypt(frame.data, encrypted);
        if (hidden === null) continue;
        frame.data = hidden;
      }
      writer.write(frame).catch(() => undefined);
    }
    copies.close();
    this.copies.delete(id);
  }

  private of(id: number): Copies {
    const copies = this.copies.get(id) ?? new Copies();
    this.copies.set(id, copies);
    return copies;
  }
}

function received(frame: RTCEncodedVideoFrame, afterGap: boolean): [FrameCopy, Transferable[]] {
  const data = frame.data.slice(0);
  const metadata = frame.getMetadata();
  const { rtpTimestamp = frame.timestamp, frameId } = metadata;
  const copy = { rtpTimestamp, frameId, data, other: otherOf(frame, metadata), afterGap };
  return [copy, [data]];
}

/** What is known of a frame that is not of VP9. A browser that does not say the codec has that one. */
function otherOf({ type }: RTCEncodedVideoFrame, metadata: RTCEncodedVideoFrameMetadata): OtherFrame | null {
  const { mimeType, width = 0, height = 0 } = metadata;
  const codec = mimeType?.replace(/^video\//, "").toLowerCase() ?? "";
  return isVideoCodec(codec) && codec !== "vp9" ? { codec, key: type === "key", width, height } : null;
}

function sent(frame: RTCEncodedVideoFrame, afterGap: boolean, followed: number | null): [SentFrame, Transferable[]] {
  const metadata = frame.getMetadata();
  const { rtpTimestamp, synchronizationSource, width = 0, height = 0 } = metadata;
  const data = followed !== null && synchronizationSource === followed ? frame.data.slice(0) : null;
  const other = otherOf(frame, metadata);
  const message = { ssrc: synchronizationSource, rtpTimestamp, width, height, data, other, afterGap };
  return [message, data === null ? [] : [data]];
}
