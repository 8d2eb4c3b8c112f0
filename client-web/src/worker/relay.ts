/**
 * The one worker of a page that all encoded frames pass through, received and sent.
 *
 * It passes each frame on before anything else, and hands a copy to the worker that makes something of it. It looks into
 * no frame, so nothing that a frame holds can stop it: whatever becomes of the workers that do, native pictures go on.
 */
import type { FrameCopy, SentFrame, ToRelayByPort, TransformRole } from "./messages.js";

/** Copies that a worker may leave unanswered: two seconds of frames. It gets none beyond. */
const MOST_UNTAKEN = 60;

/** A key frame is asked for again after this time: a request can be lost, and Chromium's encoder ignores one right after a key frame. */
const KEY_FRAME_EVERY_MS = 400;

/** What is used of a `MessagePort`. */
export interface CopyPort {
  postMessage(message: FrameCopy | SentFrame, transfer: Transferable[]): void;
  close(): void;
  onmessage: ((event: MessageEvent<ToRelayByPort>) => void) | null;
}

/** What is used of a transformer. */
export interface Transformer {
  readonly readable: ReadableStream;
  readonly writable: WritableStream;
  sendKeyFrameRequest(): Promise<unknown>;
}

/** Where the copies of one receiver's or sender's frames go. */
class Copies {
  askKeyFrame: () => void = () => undefined;
  /** The sent layer whose frames are copied whole. */
  followed: number | null = null;
  private port: CopyPort | null = null;
  private untaken = 0;
  private missed = false;

  connect(port: CopyPort): void {
    this.close();
    this.port = port;
    port.onmessage = ({ data }) => {
      if (this.port !== port) return;
      if (data === "taken") this.untaken--;
      else if (data === "keyFrame") this.askKeyFrame();
      else this.followed = data.follow;
    };
  }

  /** Hands on what `make` gives, unless nobody takes it. */
  hand(make: (afterGap: boolean) => [FrameCopy | SentFrame, Transferable[]]): void {
    if (this.port === null) return;
    if (this.untaken >= MOST_UNTAKEN) {
      this.missed = true;
      return;
    }
    const [message, transfer] = make(this.missed);
    this.missed = false;
    this.untaken++;
    this.port.postMessage(message, transfer);
  }

  close(): void {
    this.port?.close();
    this.port = null;
    this.untaken = 0;
    this.missed = false;
    this.followed = null;
  }
}

/** See the module's head. */
export class Relay {
  private readonly copies = new Map<number, Copies>();

  /** Hands copies of the frames of `id` to that port from now on. */
  connect(id: number, port: CopyPort): void {
    this.of(id).connect(port);
  }

  /** Passes the frames of a receiver or sender on until it ends. `keyFrame`: frames before were lost, so a key frame is asked for until one comes. */
  async pass(transformer: Transformer, role: TransformRole, id: number, keyFrame = false): Promise<void> {
    const copies = this.of(id);
    copies.askKeyFrame = () => void transformer.sendKeyFrameRequest().catch(() => undefined);
    const reader = transformer.readable.getReader() as ReadableStreamDefaultReader<RTCEncodedVideoFrame>;
    const writer = transformer.writable.getWriter();
    let asked = keyFrame ? performance.now() : null;
    if (keyFrame) copies.askKeyFrame();
    for (;;) {
      const { value: frame, done } = await reader.read();
      if (done) break;
      if (asked !== null) {
        const now = performance.now();
        if (frame.type !== "delta") asked = null;
        else if (now - asked >= KEY_FRAME_EVERY_MS) {
          asked = now;
          copies.askKeyFrame();
        }
      }
      try {
        // What is written is gone, so the copy is made first.
        copies.hand((afterGap) =>
          role === "received" ? received(frame, afterGap) : sent(frame, afterGap, copies.followed),
        );
      } catch {
        // The frame itself goes on.
      }
      writer.write(frame).catch(() => undefined);
    }
    copies.close();
    this.copies.delete(id);
  }

  private of(id: number): Copies {
    const known = this.copies.get(id) ?? new Copies();
    this.copies.set(id, known);
    return known;
  }
}

function received(frame: RTCEncodedVideoFrame, afterGap: boolean): [FrameCopy, Transferable[]] {
  const data = frame.data.slice(0);
  const { rtpTimestamp, frameId } = frame.getMetadata();
  return [{ rtpTimestamp: rtpTimestamp ?? frame.timestamp, frameId, data, afterGap }, [data]];
}

function sent(frame: RTCEncodedVideoFrame, afterGap: boolean, followed: number | null): [SentFrame, Transferable[]] {
  const { rtpTimestamp, synchronizationSource, width, height } = frame.getMetadata();
  const data = followed !== null && synchronizationSource === followed ? frame.data.slice(0) : null;
  const told = { ssrc: synchronizationSource, rtpTimestamp, width: width ?? 0, height: height ?? 0, data, afterGap };
  return [told, data === null ? [] : [data]];
}
