/**
 * One track's enhancement: encoded frames and anchor messages in, rebuilt pictures out, in time.
 *
 * Pictures are rebuilt on every rung, as large as they are shown: before any anchor has come, when anchors stay away, and where the
 * server gives none. Where the plain picture fills its place, nothing is decoded. Frames pass on to the native decoder before anything here touches their copies, so
 * whatever goes wrong on this side (trap, bad frame, gap, slowness) only means that the tile shows the native picture.
 * Time comes from `clock`, milliseconds since the epoch; work is done in `pump` and `show`, driven by the worker.
 */
import { ArrivalLog, parseAnchorHeader } from "./anchors.js";
import { LoadGuard } from "./load.js";
import type { AnchorSource, FromWorker, NativeReason, PictureState, WorkerStats } from "./messages.js";
import { PlayoutClock, PlayoutQueue, RtpTimeline } from "./playout.js";
import { type EncodedFrame, ReorderBuffer } from "./reorder.js";
import { type Size, scaleFor } from "./scale.js";
import { parseVp9Header, type Vp9Header } from "./vp9.js";
import {
  type AnchorOutcome,
  type Decay,
  DecodeFailure,
  type Effort,
  type FrameOutcome,
  HybridDecoder,
  type PictureView,
  SCALES,
} from "./wasm.js";
import { RateWindow, SampleWindow } from "./windows.js";

/** What the pipeline needs from its surroundings. */
export interface TrackHost {
  /** Milliseconds since the epoch. */
  clock(): number;
  /** Takes a picture to show; owns it from then on. */
  show(picture: VideoFrame): void;
  /** Tells the window. */
  tell(message: FromWorker): void;
  /** Asks the sender for a key frame. */
  requestKeyFrame(): void;
}

/** The decoder of one track: {@link HybridDecoder}, but for tests. */
export interface TrackDecoder {
  rescale(scale: number): void;
  setEffort(effort: Effort): void;
  pushFrame(rtpTimestamp: number, data: Uint8Array): FrameOutcome;
  pushMessage(data: Uint8Array): AnchorOutcome;
  refresh(): boolean;
  decay(): Decay;
  hr(): PictureView | null;
  reset(): void;
}

/** An encoded frame as the transform sees it. */
export interface IncomingFrame {
  rtpTimestamp: number;
  frameId: number | undefined;
  data: Uint8Array;
}

/** Anchors remembered that came before their frame; the module keeps fewer. */
const MAX_EARLY = 8;
/** Key frames are asked for at most this often. */
const KEY_REQUEST_MS = 1000;
/** Anchors that rest on no other are asked for at most this often. */
const WHOLE_REQUEST_MS = 1000;
/** An anchor is seen with the next frame; where none comes for so long, the last picture is made anew. */
const REFRESH_MS = 50;

interface Waiting {
  picture: VideoFrame;
  detail: boolean;
}

/** See the module's head. */
export class TrackPipeline {
  private module: WebAssembly.Module | null = null;
  private decoder: TrackDecoder | null = null;
  private enabled = true;
  /** Size of the pictures that anchors are made for, over that of the low ones; null: the server gives a plain rung. */
  private anchorScale: number | null = null;
  /** Where it is shown, in pixels of the device; null: the page does not say. */
  private place: Size | null = null;
  /** What the decoder makes; null: nothing, as the plain picture fills its place. */
  private scale: number | null;
  private tooLarge = false;
  private colour: VideoColorSpaceInit = {};
  /** What the native player makes of the colours; goes before what the bit stream says. */
  private seenColour: VideoColorSpaceInit | null = null;

  private readonly reorder = new ReorderBuffer();
  private readonly guard = new LoadGuard();
  private readonly arrivals = new ArrivalLog();
  private readonly timeline = new RtpTimeline();
  private readonly playout = new PlayoutClock();
  private readonly queue = new PlayoutQueue<Waiting>(this.playout, (w) => w.picture.close());

  /** When the picture is to be made anew if no frame comes. */
  private refreshAt: number | null = null;
  private current: { rtpTimestamp: number; mediaMs: number } | null = null;
  /** Anchors that wait for their frame: its timestamp, and whether they give all of the picture. */
  private readonly early = new Map<number, boolean>();
  private lastKeyRequest = Number.NEGATIVE_INFINITY;
  /** Whether the decoder has had an anchor of the whole picture that those of tiles can be added to. */
  private hasWhole = false;
  private lastWholeRequest = Number.NEGATIVE_INFINITY;
  private starvedSince: number | null = null;
  private state: Exclude<PictureState, "native"> | NativeReason = "starting";

  private readonly rates = {
    received: new RateWindow(),
    videoBits: new RateWindow(),
    anchorBits: new RateWindow(),
    anchors: new RateWindow(2000),
    output: new RateWindow(),
    enhanced: new RateWindow(),
  };
  private readonly times = {
    frame: new SampleWindow(90, 5000),
    applying: new SampleWindow(50, 10_000),
    anchor: new SampleWindow(200, 10_000),
  };
  /** What pictures lose with each frame after an anchor, as the decoder finds now and then, and its sums then. */
  private readonly decays = new SampleWindow(50, 10_000);
  private readonly decayFrames = new SampleWindow(50, 10_000);
  private decaySeen: Decay = { lost: 0, frames: 0 };
  private anchorWorkMs = 0;
  private faults = 0;
  private anchorsUsed = 0;
  private detailFrom: AnchorSource | null = null;
  private anchorsLate = 0;
  private anchorsLost = 0;
  private anchorsDuplicate = 0;
  private anchorsFormerEpoch = 0;
  private lr: Size | null = null;
  private hr: Size | null = null;

  constructor(
    private readonly host: TrackHost,
    private readonly maxPixels: number,
    /** By how much pictures are enlarged where the page does not say how they are shown. */
    private readonly usualScale: number,
    private readonly make: (module: WebAssembly.Module, scale: number) => TrackDecoder = (module, scale) =>
      new HybridDecoder(module, scale),
  ) {
    this.scale = usualScale;
  }

  /** The compiled decoder has come. */
  start(module: WebAssembly.Module): void {
    this.module = module;
  }

  /** Another track, or none, comes through the receiver from now on. */
  restart(enabled: boolean): void {
    this.enabled = enabled;
    this.anchorScale = null;
    this.place = null;
    this.lose();
    this.playout.reset();
    this.seenColour = null;
    this.lr = null;
    this.hr = null;
    this.fit();
    this.setState("starting");
  }

  /** The server now gives a rung with enhancement, or a plain one; `scale`: of the pictures that anchors are made for. */
  rung(enhanced: boolean, scale: number): void {
    if (!enhanced) this.anchorScale = null;
    else if (SCALES.includes(scale)) this.anchorScale = scale;
    this.fit();
  }

  /** The picture is shown in a place of another size, in pixels of the device. */
  shownIn(place: Size): void {
    // What nobody sees keeps its size until it is seen again.
    if (place.width === 0 || place.height === 0) return;
    this.place = place;
    this.fit();
  }

  /** Takes a copy of an encoded frame, in order of arrival. */
  frame(incoming: IncomingFrame): void {
    const now = this.host.clock();
    this.rates.received.add(now);
    this.rates.videoBits.add(now, incoming.data.length * 8);
    this.arrivals.note(incoming.rtpTimestamp, now);
    const header = parseVp9Header(incoming.data);
    if (!this.enabled || header === null) return;
    if (header.size !== undefined) {
      this.tooLarge = header.size.width * header.size.height > this.maxPixels;
      this.lr = header.size;
      this.fit();
    }
    if (this.tooLarge) {
      this.lose();
      this.setState("too-large");
      return;
    }
    if (this.scale === null || this.guard.paused(now)) return;
    this.reorder.push({ ...incoming, key: header.key, arrival: now });
  }

  /** Frames before the next one were left out. */
  missed(): void {
    this.lose();
    if (this.showsOurs()) this.setState("gap");
    this.needKeyFrame(this.host.clock());
  }

  /** Takes one anchor message. */
  message(data: ArrayBuffer): void {
    const now = this.host.clock();
    const header = parseAnchorHeader(data);
    this.rates.anchorBits.add(now, data.byteLength * 8);
    if (header === null) this.anchorsLost++;
    if (header === null || this.decoder === null || !this.working(now)) return;
    const outcome = this.guarded((decoder) => decoder.pushMessage(new Uint8Array(data)));
    const done = this.host.clock();
    this.anchorWorkMs += done - now;
    if (outcome === "applied" || outcome === "applied-late" || outcome === "early") this.detailFrom = header.source;
    switch (outcome) {
      case "applied":
      case "applied-late":
        if (outcome === "applied-late") this.anchorsLate++;
        if (this.current !== null) this.refreshAt = done + REFRESH_MS;
        this.usable(header.rtpTimestamp, !header.tiled, done);
        this.times.applying.add(done, done - now);
        break;
      case "early":
        this.early.set(header.rtpTimestamp, !header.tiled);
        if (this.early.size > MAX_EARLY) this.early.delete(this.early.keys().next().value as number);
        break;
      case "duplicate":
        this.anchorsDuplicate++;
        break;
      case "former-epoch":
        this.anchorsFormerEpoch++;
        break;
      case "lost":
        this.anchorsLost++;
        break;
    }
  }

  /** The native player showed a frame. */
  nativeShown(rtpTimestamp: number, at: number): void {
    this.playout.nativeShown(this.timeline.toMs(rtpTimestamp), at);
  }

  /** The native player's pictures have these colours. */
  nativeColour(colour: VideoColorSpaceInit): void {
    this.seenColour = colour;
  }

  /** Decodes at most one frame; true when more can be done at once. */
  pump(): boolean {
    const now = this.host.clock();
    if (!this.working(now)) return false;
    const frame = this.reorder.pop(now);
    if (frame === null) {
      if (this.refreshAt !== null && now >= this.refreshAt) this.betterPicture();
      this.starve(now);
      return false;
    }
    this.starvedSince = null;
    this.decode(frame);
    return true;
  }

  /** Hands out the picture that is due, if one is. */
  show(): void {
    const now = this.host.clock();
    const due = this.queue.take(now);
    if (due === null) return;
    this.rates.output.add(now);
    if (due.detail) this.rates.enhanced.add(now);
    this.setState(due.detail ? "enhanced" : "rebuilt");
    this.host.show(due.picture);
  }

  /** Milliseconds until `show` or `pump` must run again; null when only a new frame can bring work. */
  waitMs(): number | null {
    const now = this.host.clock();
    const gap = this.working(now) ? this.reorder.deadline() : null;
    const refresh = this.working(now) ? this.refreshAt : null;
    const until = (at: number | null): number | null => (at === null ? null : Math.max(0, at - now));
    const waits = [this.queue.waitMs(now), until(gap), until(refresh)].filter((w) => w !== null);
    return waits.length === 0 ? null : Math.min(...waits);
  }

  /** The figures of the last second. */
  stats(): WorkerStats {
    const now = this.host.clock();
    const { lost, late, skipped } = this.reorder.counters;
    return {
      outputFps: this.rates.output.perSecond(now),
      enhancedFps: this.rates.enhanced.perSecond(now),
      receivedFps: this.rates.received.perSecond(now),
      videoKbps: this.rates.videoBits.perSecond(now) / 1000,
      anchorsPerSecond: this.rates.anchors.perSecond(now),
      anchorKbps: this.rates.anchorBits.perSecond(now) / 1000,
      detailFrom: this.detailFrom,
      anchorsUsed: this.anchorsUsed,
      anchorsLate: this.anchorsLate,
      anchorsLost: this.anchorsLost,
      anchorsDuplicate: this.anchorsDuplicate,
      anchorsFormerEpoch: this.anchorsFormerEpoch,
      anchorP50Ms: this.times.anchor.percentile(now, 0.5),
      anchorP95Ms: this.times.anchor.percentile(now, 0.95),
      decodeMs: this.times.frame.mean(now),
      reconstructMs: null,
      anchorApplyMs: this.times.applying.mean(now),
      decay: this.decays.mean(now),
      decayFrames: this.decayFrames.mean(now),
      playoutDelayMs: this.playout.delayMs,
      lagMs: this.playout.lagMs,
      framesLost: lost + late + skipped,
      picturesDropped: this.queue.dropped,
      pauses: this.guard.pauses,
      faults: this.faults,
      lr: this.lr,
      hr: this.hr,
    };
  }

  private working(now: number): boolean {
    return this.module !== null && this.enabled && this.scale !== null && !this.guard.paused(now);
  }

  /** Makes pictures as large as they are shown, as anchors are made for, and as this machine can; none where there is no need. */
  private fit(): void {
    const { lr, place, anchorScale } = this;
    const needed = lr === null || place === null ? (anchorScale ?? this.usualScale) : scaleFor(lr, place, SCALES);
    const scale = needed === null ? null : Math.min(needed, anchorScale ?? needed, this.guard.maxScale);
    if (scale === this.scale) return;
    const before = this.scale;
    this.scale = scale;
    if (scale === null) {
      this.lose();
      this.setState("fills");
      return;
    }
    this.hasWhole = false;
    // What anchors had bettered is gone.
    this.refreshAt = null;
    this.guarded((decoder) => decoder.rescale(scale));
    if (before === null) {
      // Nothing was decoded meanwhile.
      this.setState("starting");
      this.needKeyFrame(this.host.clock());
    }
  }

  private decode(frame: EncodedFrame): void {
    if (frame.key) {
      // A key frame is also where a decoder that failed, or has not been there, begins.
      const header = parseVp9Header(frame.data);
      if (header?.colour !== undefined) this.colour = colourSpace(header.colour);
      if (this.decoder === null && this.module !== null) this.decoder = this.create(this.module);
    }
    this.refreshAt = null;
    const before = this.host.clock();
    const outcome = this.guarded((decoder) => decoder.pushFrame(frame.rtpTimestamp, frame.data));
    if (outcome === undefined) return;
    const now = this.host.clock();
    this.times.frame.add(now, now - before);
    const early = this.early.get(frame.rtpTimestamp);
    if (early !== undefined) {
      this.early.delete(frame.rtpTimestamp);
      this.usable(frame.rtpTimestamp, early, now);
    }
    const mediaMs = this.timeline.toMs(frame.rtpTimestamp);
    const interval = this.current === null ? 0 : Math.min(1000, Math.max(0, mediaMs - this.current.mediaMs));
    this.current = { rtpTimestamp: frame.rtpTimestamp, mediaMs };
    if (outcome.shown) {
      const picture = this.picture();
      if (picture !== null) {
        this.playout.ready(mediaMs, this.host.clock());
        this.queue.push(mediaMs, { picture, detail: outcome.detail });
      }
    }
    const busyMs = now - before + this.anchorWorkMs;
    this.anchorWorkMs = 0;
    if (this.guard.frame(now, busyMs, interval, this.reorder.length, this.scale ?? this.usualScale)) {
      this.reorder.clear(); // after the pause these frames are seconds old
      this.lose();
      this.setState("too-slow");
    }
    const { effort } = this.guard;
    this.guarded((decoder) => decoder.setEffort(effort));
    this.fit();
  }

  /** The decoder's current picture as a frame for the page, so many microseconds after its time. */
  private picture(after = 0): VideoFrame | null {
    const view = this.guarded((decoder) => decoder.hr());
    if (view === undefined || view === null || this.current === null) return null;
    this.hr = { width: view.width, height: view.height };
    return new VideoFrame(view.bytes, {
      format: "I420",
      codedWidth: view.width,
      codedHeight: view.height,
      timestamp: Math.round(this.current.mediaMs * 1000) + after,
      layout: view.layout,
      colorSpace: this.seenColour ?? this.colour,
    });
  }

  /** Anchors have bettered the current picture, and no frame has come since: shows it again, in place of the former or after it. */
  private betterPicture(): void {
    this.refreshAt = null;
    const before = this.host.clock();
    const better = this.guarded((decoder) => decoder.refresh());
    const picture = better === true && this.current !== null ? this.picture(1) : null;
    this.anchorWorkMs += this.host.clock() - before;
    if (picture === null || this.current === null) return;
    const waiting = { picture, detail: true };
    if (!this.queue.replace(this.current.mediaMs, waiting)) this.queue.push(this.current.mediaMs, waiting);
  }

  /** An anchor has been applied. Tiles are added to what anchors have given before, so something must have been given. */
  private usable(rtpTimestamp: number, whole: boolean, now: number): void {
    this.anchorsUsed++;
    this.hasWhole ||= whole;
    if (!this.hasWhole) this.needWholeAnchor(now);
    this.noteDecay(now);
    this.rates.anchors.add(now);
    this.times.anchor.add(now, this.arrivals.since(rtpTimestamp, now) ?? 0);
  }

  private noteDecay(now: number): void {
    const decay = this.guarded((decoder) => decoder.decay());
    if (decay === undefined) return;
    // A decoder made anew begins at zero.
    const before = decay.frames < this.decaySeen.frames ? { lost: 0, frames: 0 } : this.decaySeen;
    const frames = decay.frames - before.frames;
    this.decaySeen = decay;
    if (frames === 0) return;
    this.decays.add(now, (decay.lost - before.lost) / frames);
    this.decayFrames.add(now, frames);
  }

  /** Calls into the module; what it throws costs the decoder's state, never more. */
  private guarded<T>(call: (decoder: TrackDecoder) => T): T | undefined {
    if (this.decoder === null) return undefined;
    try {
      return call(this.decoder);
    } catch (error) {
      this.faults++;
      if (!(error instanceof DecodeFailure)) this.decoder = null; // a trap: its memory is not to be trusted
      this.lose();
      this.setState("fault");
      this.needKeyFrame(this.host.clock());
      return undefined;
    }
  }

  private create(module: WebAssembly.Module): TrackDecoder | null {
    try {
      return this.make(module, this.scale ?? this.usualScale);
    } catch {
      this.faults++;
      this.guard.pause(this.host.clock());
      this.lose();
      this.setState("fault");
      return null;
    }
  }

  /** Nothing can be decoded although frames may be coming: after a while go native and ask for a key frame. */
  private starve(now: number): void {
    if (!this.reorder.waitingForKey || this.rates.received.perSecond(now) === 0) return;
    this.starvedSince ??= now;
    if (now - this.starvedSince < 300) return;
    if (this.showsOurs()) this.setState("gap");
    this.needKeyFrame(now);
  }

  private needKeyFrame(now: number): void {
    if (now - this.lastKeyRequest < KEY_REQUEST_MS) return;
    this.lastKeyRequest = now;
    this.host.requestKeyFrame();
  }

  private needWholeAnchor(now: number): void {
    if (now - this.lastWholeRequest < WHOLE_REQUEST_MS) return;
    this.lastWholeRequest = now;
    this.host.tell({ type: "wholeAnchor" });
  }

  /** The decoder's pictures are worthless from here to the next key frame. */
  private lose(): void {
    this.reorder.requireKey();
    this.queue.clear();
    this.early.clear();
    this.hasWhole = false;
    this.current = null;
    this.refreshAt = null;
    this.starvedSince = null;
    try {
      this.decoder?.reset();
    } catch {
      this.decoder = null;
    }
  }

  /** Whether the pictures shown are our decoder's. */
  private showsOurs(): boolean {
    return this.state === "enhanced" || this.state === "rebuilt";
  }

  private setState(state: Exclude<PictureState, "native"> | NativeReason): void {
    if (state === this.state) return;
    this.state = state;
    const ours = state === "enhanced" || state === "rebuilt";
    this.host.tell(ours ? { type: "state", state } : { type: "state", state: "native", reason: state });
  }
}

function colourSpace({ matrix, fullRange }: NonNullable<Vp9Header["colour"]>): VideoColorSpaceInit {
  return { matrix, primaries: matrix, transfer: matrix, fullRange };
}
