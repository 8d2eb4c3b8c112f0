/**
 * The full-size pixels of one camera that leave the page, once the person has agreed: the detail stream, or the
 * stills that the server asks for. It joins the server's wishes, the uplink's state and the camera's.
 */

import { SCALES } from "../worker/wasm.js";
import type { Assets } from "./assets.js";
import { DetailSender, shared } from "./detail.js";
import type { DetailWish, RegionRequest, UplinkReport } from "./protocol.js";
import { type RegionCounts, RegionSender } from "./regions.js";
import type { Relay } from "./relay.js";
import { DetailGovernor, type Restraint } from "./uplink/governor.js";
import { detailDown, type LayerSetting } from "./uplink/layers.js";
import { availableKbps, capKbps, UplinkSampler } from "./uplink/sample.js";

/** How often {@link Stills.look} is to be called. */
export const LOOKS_A_SECOND = 4;

/** What leaves the page at the moment. */
export interface StillsState {
  /** Whether the detail stream is sent, and how; null: it is not. */
  detail: { kbps: number; fps: number } | null;
  /** Why it is not sent as the server wishes; null: it is, or nothing is wished. */
  restraint: Restraint | null;
  /** Regions since the start. */
  regions: RegionCounts;
}

/** What it must know of its publication at any time. */
export interface StillsHost {
  /** The camera; null while there is nothing to send: muted, or ended. */
  camera(): MediaStreamTrack | null;
  settings(): readonly LayerSetting[];
  /** Has the layer whose pictures are so wide give a key frame. */
  giveKeyFrame(width: number): void;
}

/** See the module's head. */
export class Stills {
  readonly detail: DetailSender;
  private readonly governor = new DetailGovernor();
  private readonly sampler = new UplinkSampler();
  private readonly regions: RegionSender;
  /** Size of detail pictures over that of the low layer's. */
  private scale: number;
  private flowing: readonly string[] = [];
  private seen = "";
  private available: number | null = null;
  private looks = 0;
  private verdict: { detail: DetailWish | null; restraint: Restraint | null } = { detail: null, restraint: null };

  /** `low`: the camera's sender, just made: its encoded transform must be set before anything else is done with it. */
  constructor(
    pc: RTCPeerConnection,
    low: RTCRtpSender,
    relay: Relay,
    assets: Assets,
    private readonly welcomed: number,
    private readonly host: StillsHost,
  ) {
    this.scale = welcomed;
    this.regions = new RegionSender(pc, low, relay, assets, (width) => host.giveKeyFrame(width));
    this.detail = new DetailSender(pc);
  }

  /** What leaves the page. */
  get state(): StillsState {
    const task = this.detail.task;
    return {
      detail: task === null ? null : { kbps: task.detail.kbps, fps: task.detail.fps },
      restraint: this.verdict.restraint,
      regions: this.regions.counts,
    };
  }

  /** Takes the server's wish for the detail stream, whose pictures are to be `scale` times as large as the low layer's. */
  wish(detail: DetailWish | null, scale: number | undefined): void {
    if (scale !== undefined && SCALES.includes(scale)) this.scale = scale;
    this.governor.setWish(detail);
    if (detail === null) this.verdict = { detail: null, restraint: null };
    this.refresh();
  }

  /** Answers, or refuses, a request for regions. */
  request(request: RegionRequest): void {
    const scale = request.scale ?? this.welcomed;
    this.regions.request({ ...request, scale }, this.host.camera(), this.governor.spareKbps);
  }

  /** Looks at the uplink by the camera's statistics: called each quarter of a second, it looks at all once a second. */
  async look(low: readonly object[]): Promise<void> {
    if (this.looks++ % LOOKS_A_SECOND !== 0) {
      this.glance(low);
      return;
    }
    const detail = await this.detail.transceiver.sender.getStats();
    const sample = this.sampler.sample(low, detail.values(), this.host.settings());
    // Twice the same, as a layer that comes and goes would change the picture's size each time.
    this.available = sample.availableKbps;
    const seen = sample.flowing.join();
    if (seen === this.seen) this.flowing = sample.flowing;
    this.seen = seen;
    this.verdict = this.governor.look(performance.now(), sample, screen(this.host.camera()) ? "smallest" : "all");
    this.refresh();
  }

  /** Looks at the estimate alone. */
  private glance(low: readonly object[]): void {
    const verdict = this.governor.glance(performance.now(), availableKbps(low), capKbps(this.host.settings()));
    if (verdict === null) return;
    this.verdict = verdict;
    this.refresh();
  }

  /** What the uplink carries, for the server; null while that is not known, or there is no camera. */
  report(): UplinkReport | null {
    const { width, height, frameRate } = this.host.camera()?.getSettings() ?? {};
    if (this.available === null || width === undefined || height === undefined) return null;
    return { kbps: this.available, width, height, fps: frameRate ?? 30 };
  }

  /** Follows a change of the camera or the layers at once. */
  refresh(): void {
    const camera = this.host.camera();
    const { detail } = this.verdict;
    if (camera === null) this.regions.stop();
    const down = detailDown(this.host.settings(), this.flowing, this.scale);
    this.detail.apply(camera === null || detail === null ? null : { camera, detail, down: Math.max(1, down) });
  }

  /** Ends all of it. */
  close(): void {
    this.detail.close();
    this.regions.close();
  }
}

/** Whether it is a screen, or what the page says is like one. */
const screen = (track: MediaStreamTrack | null): boolean =>
  track !== null && (shared(track) || track.contentHint === "detail" || track.contentHint === "text");
