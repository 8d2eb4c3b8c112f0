/**
 * Answers requests for regions: takes the next camera frame that the low layer was sent of, packs its tiles and
 * encodes them. Lives in a worker through which the low layers' encoded frames pass, so that it knows their timestamps.
 */
import { MosaicEncoder } from "./encoder.js";
import { FrameClock } from "./frame-clock.js";
import { overhead, regionMessages } from "./message.js";
import { type Luma, packMosaic } from "./mosaic.js";
import { lumaOfRgb } from "./rgb.js";
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

/** What became of a request. */
export type RegionOutcome = "sent" | "superseded" | "no-clock" | "no-frame" | "format" | "encoder";

/** Called once for each request; messages only with `sent`. */
export type Answer = (id: number, outcome: RegionOutcome, messages: ArrayBuffer[]) => void;

interface Waiting {
  task: RegionTask;
  map: TileMap;
  since: number;
}

/** Camera frames that are kept for a request until the low layer's encoder is done with them. */
const HELD = 6;
/** A request waits so long for its frame, and so long where the clock must be found first. */
const FRAME_MS = 700;
const CLOCK_MS = 3000;
/** Encodings of the camera that are followed: its layers. */
const STREAMS = 4;

/** See the module's head. */
export class RegionCutter {
  private readonly clocks = new Map<number, { clock: FrameClock; width: number; height: number }>();
  private readonly encoder = new MosaicEncoder();
  private held: { frame: VideoFrame; at: number }[] = [];
  private waiting: Waiting | null = null;
  private busy = false;
  private generation = 0;

  constructor(
    private readonly now: () => number,
    private readonly answer: Answer,
  ) {}

  /** An encoded frame of one layer is on its way. */
  sent(ssrc: number, rtp: number, width: number, height: number): void {
    let stream = this.clocks.get(ssrc);
    if (stream === undefined) {
      if (this.clocks.size >= STREAMS) this.clocks.clear();
      stream = { clock: new FrameClock(), width, height };
      this.clocks.set(ssrc, stream);
    }
    if (width > 0 && height > 0) Object.assign(stream, { width, height });
    stream.clock.seeSent(rtp, this.now());
    this.match();
  }

  /** A frame of the camera, read at `at`; the cutter closes it. */
  camera(frame: VideoFrame, at: number): void {
    for (const { clock } of this.clocks.values()) clock.seeCamera(frame.timestamp, at);
    const clock = this.waiting === null ? undefined : this.clockOf(this.waiting.task);
    if (!clock?.settled || this.busy) {
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
      this.answer(task.id, "format", []);
      return;
    }
    this.giveUp("superseded");
    this.waiting = { task, map, since: this.now() };
  }

  /** The camera is another one from now on, or none. */
  reset(): void {
    this.generation++;
    for (const { clock } of this.clocks.values()) clock.reset();
    this.giveUp("no-frame");
  }

  private clockOf({ width, height }: RegionTask): FrameClock | undefined {
    return [...this.clocks.values()].find((s) => s.width === width && s.height === height)?.clock;
  }

  private match(): void {
    this.expire();
    const { waiting } = this;
    const clock = waiting === null ? undefined : this.clockOf(waiting.task);
    if (waiting === null || clock === undefined || this.busy) return;
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
    const { generation } = this;
    const luma = await lumaOf(frame).catch(() => null);
    frame.close();
    if (luma === null) {
      this.answer(task.id, "format", []);
      return;
    }
    const mosaic = packMosaic(map, task, task.scale, luma);
    const coded = await this.encoder.encode(mosaic, task.bytes - overhead(map.bits));
    if (generation !== this.generation) {
      this.answer(task.id, "no-frame", []); // muted, or another camera, meanwhile
      return;
    }
    const size = { width: task.width * task.scale, height: task.height * task.scale };
    const head = { id: task.id, rtpTimestamp: rtp, bits: map.bits, ageMs: this.now() - at };
    const messages = coded === null ? [] : regionMessages({ ...head, ...size, frame: coded });
    this.answer(task.id, messages.length === 0 ? "encoder" : "sent", messages);
  }

  private expire(): void {
    const { waiting } = this;
    if (waiting === null) return;
    const settled = this.clockOf(waiting.task)?.settled ?? false;
    if (this.now() - waiting.since > (settled && this.held.length > 0 ? FRAME_MS : CLOCK_MS)) {
      this.giveUp(settled ? "no-frame" : "no-clock");
    }
  }

  private giveUp(outcome: RegionOutcome): void {
    if (this.waiting !== null) this.answer(this.waiting.task.id, outcome, []);
    this.waiting = null;
    this.letGo();
  }

  private letGo(): void {
    for (const { frame } of this.held.splice(0)) frame.close();
  }
}

/** Where red, green and blue are in four bytes. */
const ORDERS: Partial<Record<VideoPixelFormat, readonly [number, number, number]>> = {
  RGBA: [0, 1, 2],
  RGBX: [0, 1, 2],
  BGRA: [2, 1, 0],
  BGRX: [2, 1, 0],
};

/** The luma of a camera frame; null where it has no 8-bit form that is known. */
async function lumaOf(frame: VideoFrame): Promise<Luma | null> {
  const { format, visibleRect } = frame;
  const order = format === null ? undefined : ORDERS[format];
  if ((format !== "I420" && format !== "NV12" && order === undefined) || visibleRect === null) return null;
  const { width, height } = visibleRect;
  const data = new Uint8Array(frame.allocationSize());
  const [first] = await frame.copyTo(data);
  if (first === undefined) return null;
  const plane = { data, ...first, width, height };
  return order === undefined ? plane : lumaOfRgb({ ...plane, order });
}
