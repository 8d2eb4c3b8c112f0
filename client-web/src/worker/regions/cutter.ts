/**
 * Answers requests for stills: takes the next camera frame that the low layer was sent of, and codes of its tiles what the
 * low layer's picture does not tell. Lives in a worker that is told of the low layers' encoded frames.
 */
import { FrameClock } from "./frame-clock.js";
import { LowLayer, type Maker } from "./low-layer.js";
import { stillMessages } from "./message.js";
import { pictureOf } from "./picture.js";
import { parseTileMap, type TileMap } from "./tiles.js";

/** A request, as the window hands it on. */
export interface RegionTask {
  id: number;
  /** Size of the low layer. */
  width: number;
  height: number;
  scale: number;
  bits: Uint8Array;
  bytes: number;
}

/**
 * What became of a request: sent; another took its place; the clocks of camera and low layer were not told apart, no frame
 * came, the low layer's picture was not known, each in time; too few bytes; and what will not change soon: the camera is too small, its
 * frames or the request have a form that is not known, or there is no decoder.
 */
export type RegionOutcome =
  | "sent"
  | "superseded"
  | "no-clock"
  | "no-frame"
  | "no-base"
  | "budget"
  | "camera"
  | "format"
  | "no-decoder";

/** What the cutter needs of its worker. */
export interface CutterHost {
  now(): number;
  /** Called once for each request; messages only with `sent`. */
  answer(id: number, outcome: RegionOutcome, messages: ArrayBuffer[]): void;
  /** The frames of this layer are to come with their data from now on; null: of none. */
  follow(ssrc: number | null): void;
  /** The layer of this width needs a key frame. */
  wantKeyFrame(width: number): void;
}

/** A frame of a layer that is on its way. */
export interface SentLayerFrame {
  ssrc: number;
  rtp: number;
  width: number;
  height: number;
  data: ArrayBuffer | null;
  afterGap: boolean;
}

interface Waiting {
  task: RegionTask;
  map: TileMap;
  since: number;
}

/** Camera frames that are kept for a request until the low layer's encoder is done with them. */
const HELD = 6;
/** A request waits so long for its frame, and so long where the clock or a key frame must come first. */
const FRAME_MS = 700;
const CLOCK_MS = 3000;
/** Encodings of the camera that are followed: its layers. */
const STREAMS = 4;

/** See the module's head. */
export class RegionCutter {
  private readonly clocks = new Map<number, { clock: FrameClock; width: number; height: number }>();
  private readonly low: LowLayer;
  private held: { frame: VideoFrame; at: number }[] = [];
  private waiting: Waiting | null = null;
  private busy = false;
  private generation = 0;

  constructor(private readonly host: CutterHost) {
    this.low = new LowLayer({
      follow: (ssrc) => host.follow(ssrc),
      wantKeyFrame: () => {
        if (this.waiting !== null) host.wantKeyFrame(this.waiting.task.width);
      },
    });
  }

  /** The decoder is there. */
  start(create: () => Maker): void {
    this.low.start(create);
  }

  /** The layers' frames are told of another way from now on. */
  relayed(): void {
    this.low.relayed(this.host.now());
  }

  /** An encoded frame of one layer is on its way. */
  sent({ ssrc, rtp, width, height, data, afterGap }: SentLayerFrame): void {
    const now = this.host.now();
    if (afterGap) this.low.missed(now);
    this.low.sent(now, ssrc, rtp, data);
    let stream = this.clocks.get(ssrc);
    if (stream === undefined) {
      if (this.clocks.size >= STREAMS) this.clocks.clear();
      stream = { clock: new FrameClock(), width, height };
      this.clocks.set(ssrc, stream);
    }
    if (width > 0 && height > 0) Object.assign(stream, { width, height });
    stream.clock.seeSent(rtp, now);
    this.match();
  }

  /** A frame of the camera, read at `at`; the cutter closes it. */
  camera(frame: VideoFrame, at: number): void {
    for (const { clock } of this.clocks.values()) clock.seeCamera(frame.timestamp, at);
    const clock = this.waiting === null ? undefined : this.layerOf(this.waiting.task)?.clock;
    if (!clock?.settled || !this.low.ready || this.busy) {
      frame.close();
      this.expire();
      return;
    }
    this.held.push({ frame, at });
    while (this.held.length > HELD) this.held.shift()?.frame.close();
    this.match();
  }

  /** A request; one that waits already is given up for it. */
  request(task: RegionTask): void {
    const map = parseTileMap(task.width, task.height, task.bits);
    if (map === null) {
      this.host.answer(task.id, "format", []);
      return;
    }
    if (!this.low.able) {
      this.host.answer(task.id, "no-decoder", []);
      return;
    }
    this.giveUp("superseded");
    this.waiting = { task, map, since: this.host.now() };
    this.match();
  }

  /** The camera is another one from now on, or none. */
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
    const found = this.held.findIndex(({ frame }) => clock.rtpOf(frame.timestamp) !== null);
    const entry = this.held[found];
    const rtp = entry === undefined ? null : clock.rtpOf(entry.frame.timestamp);
    if (entry === undefined || rtp === null) return;
    this.held.splice(found, 1);
    this.waiting = null;
    this.letGo();
    this.busy = true;
    void this.cut(waiting, entry.frame, rtp, entry.at).finally(() => {
      this.busy = false;
    });
  }

  private async cut({ task, map }: Waiting, frame: VideoFrame, rtp: number, at: number): Promise<void> {
    const { generation, host } = this;
    const { id, scale, bytes } = task;
    const picture = await pictureOf(frame).catch(() => null);
    frame.close();
    if (picture === null) return host.answer(id, "format", []);
    // Muted, or another camera, meanwhile.
    if (generation !== this.generation) return host.answer(id, "no-frame", []);
    const payload = this.low.make(host.now(), picture, { rtp, scale, bits: map.bits, bytes });
    if (typeof payload === "string") return host.answer(id, payload, []);
    const tiled = map.tiles.length < map.columns * map.rows;
    const size = { width: task.width * scale, height: task.height * scale };
    const messages = stillMessages({ id, rtpTimestamp: rtp, ...size, tiled, payload, ageMs: host.now() - at });
    host.answer(id, messages.length === 0 ? "format" : "sent", messages);
  }

  private expire(): void {
    const { waiting } = this;
    if (waiting === null) return;
    const settled = this.layerOf(waiting.task)?.clock.settled ?? false;
    const { ready } = this.low;
    if (this.host.now() - waiting.since > (settled && ready && this.held.length > 0 ? FRAME_MS : CLOCK_MS)) {
      this.giveUp(!settled ? "no-clock" : ready ? "no-frame" : "no-base");
    }
  }

  private giveUp(outcome: RegionOutcome): void {
    if (this.waiting !== null) this.host.answer(this.waiting.task.id, outcome, []);
    this.waiting = null;
    this.letGo();
  }

  private letGo(): void {
    for (const { frame } of this.held.splice(0)) frame.close();
  }
}
