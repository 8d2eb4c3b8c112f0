/**
 * Answers requests for stills: matches a camera frame with the frame of the low layer that was made of it, and encodes
 * the detail that the low layer lacks. Runs in a worker that gets the sent frames of all layers.
 */
import type { OtherFrame } from "../messages.js";
import { MAX_OVERHEAD } from "../sframe.js";
import { FrameClock } from "./frame-clock.js";
import { LowLayer, MAX_PICTURES, type Maker } from "./low-layer.js";
import { fixedFieldsOf, metadataOf, type StillHead, stillMessages } from "./message.js";
import { pictureOf } from "./picture.js";
import { parseTileMap, type TileMap } from "./tiles.js";

/** A request for a still. */
export interface RegionTask {
  id: number;
  /** Size of the low layer. */
  width: number;
  height: number;
  /** HR over LR size of the still. */
  scale: number;
  /** The tile map. */
  bits: Uint8Array;
  /** Max bytes of the payload. */
  bytes: number;
  /** The still is encrypted end to end, or not sent. */
  encrypted: boolean;
}

/** The outcome of a request. */
export type RegionOutcome =
  | "sent"
  /** Another request followed. */
  | "superseded"
  /** Camera frames could not be matched with sent frames in time. */
  | "no-clock"
  /** No camera frame came in time. */
  | "no-frame"
  /** The picture of the low layer was not decoded in time. */
  | "no-base"
  /** It could not be encrypted. */
  | "no-key"
  /** Too few bytes for any detail. */
  | "budget"
  /** The camera is too small or too large. */
  | "camera"
  /** The request is malformed, or the pixel format of the camera is not supported. */
  | "format"
  /** The decoder is not loaded, or has failed too often. */
  | "no-decoder";

/** What the cutter needs of its worker. */
export interface CutterHost {
  now(): number;
  /** Encrypts a payload end to end; null: it cannot be. */
  encrypt(payload: ArrayBuffer, metadata: string): Promise<ArrayBuffer | null>;
  /** Called once per request; there are messages with `sent` only. */
  answer(id: number, outcome: RegionOutcome, messages: ArrayBuffer[]): void;
  /** Asks for the data of the frames of this layer; null: of none. */
  follow(ssrc: number | null): void;
  /** Requests a key frame of the layer of this width. */
  requestKeyFrame(width: number): void;
}

/** A sent frame of a layer. */
export interface SentLayerFrame {
  ssrc: number;
  rtp: number;
  width: number;
  height: number;
  data: ArrayBuffer | null;
  other: OtherFrame | null;
  afterGap: boolean;
}

/** The request that waits for its frame. */
interface Waiting {
  task: RegionTask;
  map: TileMap;
  since: number;
}

/** Max camera frames kept for a request until the low layer has encoded them. */
const MAX_HELD = 6;
/** Max wait of a request for its frame, milliseconds. */
const FRAME_TIMEOUT_MS = 700;
/** Max wait of a request where the clock or a key frame must come first, milliseconds. */
const CLOCK_TIMEOUT_MS = 3000;
/** Max streams with a clock: more than a camera has layers. */
const MAX_STREAMS = 4;

/** Finds the camera frame of a requested still, and encodes the detail that the low layer lacks. */
export class RegionCutter {
  private readonly clocks = new Map<number, { clock: FrameClock; width: number; height: number }>();
  private readonly low: LowLayer;
  private held: { frame: VideoFrame; at: number }[] = [];
  private waiting: Waiting | null = null;
  private busy = false;
  private generation = 0;
  /** The last frames of the low layer, the latest last, one for each picture: what an encrypted still is of. */
  private readonly recent: { rtp: number; data: ArrayBuffer }[] = [];

  constructor(private readonly host: CutterHost) {
    this.low = new LowLayer({
      follow: (ssrc) => host.follow(ssrc),
      requestKeyFrame: () => {
        if (this.waiting !== null) host.requestKeyFrame(this.waiting.task.width);
      },
      decoded: () => this.match(),
    });
  }

  /** Takes the decoder. */
  start(create: () => Maker): void {
    this.low.start(create);
  }

  /** Notes that sent frames come by another port now. */
  portChanged(): void {
    this.low.portChanged(this.host.now());
  }

  /** Takes a sent frame of a layer. */
  sent({ ssrc, rtp, width, height, data, other, afterGap }: SentLayerFrame): void {
    const now = this.host.now();
    if (afterGap) this.low.framesMissing(now);
    this.low.sent(now, ssrc, rtp, data, other);
    if (data !== null) this.recent.push({ rtp, data });
    if (this.recent.length > MAX_PICTURES) this.recent.shift();
    let stream = this.clocks.get(ssrc);
    if (stream === undefined) {
      if (this.clocks.size >= MAX_STREAMS) this.clocks.clear();
      stream = { clock: new FrameClock(), width, height };
      this.clocks.set(ssrc, stream);
    }
    if (width > 0 && height > 0) Object.assign(stream, { width, height });
    stream.clock.addSent(rtp, now);
    this.match();
  }

  /** Takes a camera frame, read at `at`, and closes it. */
  camera(frame: VideoFrame, at: number): void {
    for (const { clock } of this.clocks.values()) clock.addCamera(frame.timestamp, at);
    const clock = this.waiting === null ? undefined : this.layerOf(this.waiting.task)?.clock;
    if (!clock?.settled || !this.low.ready || this.busy) {
      frame.close();
      this.expire();
      return;
    }
    this.held.push({ frame, at });
    while (this.held.length > MAX_HELD) this.held.shift()?.frame.close();
    this.match();
  }

  /** Takes a request; it supersedes one that waits. */
  request(task: RegionTask): void {
    const map = parseTileMap(task.width, task.height, task.bits);
    if (map === null) {
      this.host.answer(task.id, "format", []);
      return;
    }
    if (!this.low.available) {
      this.host.answer(task.id, "no-decoder", []);
      return;
    }
    this.giveUp("superseded");
    this.waiting = { task, map, since: this.host.now() };
    this.match();
  }

  /** Begins another camera, or none. */
  reset(): void {
    this.generation++;
    for (const { clock } of this.clocks.values()) clock.reset();
    this.giveUp("no-frame");
  }

  private layerOf({ width, height }: RegionTask): { ssrc: number; clock: FrameClock } | undefined {
    const found = [...this.clocks].find(([, s]) => s.width === width && s.height === height);
    return found === undefined ? undefined : { ssrc: found[0], clock: found[1].clock };
  }

  private match(): void {
    this.expire();
    const { waiting } = this;
    const layer = waiting === null ? undefined : this.layerOf(waiting.task);
    if (waiting === null || layer === undefined || this.busy) return;
    this.low.want(this.host.now(), layer.ssrc);
    if (!this.low.ready) return;
    const { clock } = layer;
    const found = this.held.findIndex(({ frame }) => {
      const rtp = clock.rtpOf(frame.timestamp);
      return rtp !== null && this.low.has(rtp);
    });
    const entry = this.held[found];
    const rtp = entry === undefined ? null : clock.rtpOf(entry.frame.timestamp);
    if (entry === undefined || rtp === null) return;
    this.held.splice(found, 1);
    this.waiting = null;
    this.closeHeld();
    this.busy = true;
    void this.cut(waiting, entry.frame, rtp, entry.at).finally(() => {
      this.busy = false;
    });
  }

  private async cut({ task, map }: Waiting, frame: VideoFrame, rtp: number, at: number): Promise<void> {
    const { generation, host } = this;
    const { id, scale, encrypted } = task;
    const bytes = encrypted ? task.bytes - MAX_OVERHEAD : task.bytes;
    const picture = await pictureOf(frame).catch(() => null);
    frame.close();
    if (picture === null) return host.answer(id, "format", []);
    // Muted, or another camera, since.
    if (generation !== this.generation) return host.answer(id, "no-frame", []);
    const plain = this.low.make(host.now(), picture, { rtp, scale, bits: map.bits, bytes });
    if (typeof plain === "string") return host.answer(id, plain, []);
    const tiled = map.tiles.length < map.columns * map.rows;
    const size = { width: task.width * scale, height: task.height * scale };
    const still = { id, rtpTimestamp: rtp, ...size, tiled, ageMs: host.now() - at };
    const payload = encrypted ? await this.encrypted(still, plain) : plain;
    if (payload === null) return host.answer(id, "no-key", []);
    if (generation !== this.generation) return host.answer(id, "no-frame", []);
    const messages = stillMessages({ ...still, payload: new Uint8Array(payload) });
    host.answer(id, messages.length === 0 ? "format" : "sent", messages);
  }

  /** The payload of a still for those who have the call's key, and the frame that it is of. */
  private async encrypted(still: StillHead, payload: Uint8Array): Promise<ArrayBuffer | null> {
    const frame = this.recent.findLast(({ rtp }) => rtp === still.rtpTimestamp);
    if (frame === undefined) return null;
    return this.host.encrypt(payload.slice().buffer, await metadataOf(fixedFieldsOf(still), frame.data));
  }

  private expire(): void {
    const { waiting } = this;
    if (waiting === null) return;
    const settled = this.layerOf(waiting.task)?.clock.settled ?? false;
    const { ready } = this.low;
    if (
      this.host.now() - waiting.since >
      (settled && ready && this.held.length > 0 ? FRAME_TIMEOUT_MS : CLOCK_TIMEOUT_MS)
    ) {
      this.giveUp(!settled ? "no-clock" : ready ? "no-frame" : "no-base");
    }
  }

  private giveUp(outcome: RegionOutcome): void {
    if (this.waiting !== null) this.host.answer(this.waiting.task.id, outcome, []);
    this.waiting = null;
    this.closeHeld();
  }

  private closeHeld(): void {
    for (const { frame } of this.held.splice(0)) frame.close();
  }
}
