/**
 * The full-size pixels of one camera that leave the page, once the person has agreed: the stills that the server asks
 * for. It joins the server's requests, the uplink's state and the camera's.
 */
import type { Assets } from "./assets.js";
import type { RegionRequest, UplinkReport } from "./protocol.js";
import { type RegionCounts, RegionSender } from "./regions.js";
import type { Relay } from "./relay.js";
import type { LayerSetting } from "./uplink/layers.js";
import { availableKbps, capKbps, UplinkSampler } from "./uplink/sample.js";
import { SpareUplink } from "./uplink/spare.js";

/** How often {@link Stills.look} is to be called. */
export const LOOKS_A_SECOND = 4;

/** What has left the page. */
export interface StillsState {
  /** What became of the server's requests, since the start. */
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
  private readonly spare = new SpareUplink();
  private readonly sampler = new UplinkSampler();
  private readonly regions: RegionSender;
  private available: number | null = null;
  private looks = 0;

  /**
   * `low`: the camera's sender, just made: its encoded transform must be set before anything else is done with it.
   * `welcomed`: the scale of requests that name none.
   */
  constructor(
    pc: RTCPeerConnection,
    low: RTCRtpSender,
    relay: Relay,
    assets: Assets,
    private readonly welcomed: number,
    private readonly host: StillsHost,
  ) {
    this.regions = new RegionSender(pc, low, relay, assets, (width) => host.giveKeyFrame(width));
  }

  /** What has left the page. */
  get state(): StillsState {
    return { regions: this.regions.counts };
  }

  /** Answers, or refuses, a request for regions. */
  request(request: RegionRequest): void {
    const scale = request.scale ?? this.welcomed;
    this.regions.request({ ...request, scale }, this.host.camera(), this.spare.kbps);
  }

  /** Looks at the uplink by the camera's statistics: called each quarter of a second, it looks at all once a second. */
  look(report: readonly object[]): void {
    const settings = this.host.settings();
    if (this.looks++ % LOOKS_A_SECOND !== 0) {
      this.spare.glance(availableKbps(report), capKbps(settings));
      return;
    }
    const sample = this.sampler.sample(report, settings);
    this.available = sample.availableKbps;
    this.spare.look(performance.now(), sample, screen(this.host.camera()) ? "smallest" : "all");
    this.refresh();
  }

  /** What the uplink carries, for the server; null while that is not known, or there is no camera. */
  report(): UplinkReport | null {
    const { width, height, frameRate } = this.host.camera()?.getSettings() ?? {};
    if (this.available === null || width === undefined || height === undefined) return null;
    return { kbps: this.available, width, height, fps: frameRate ?? 30 };
  }

  /** Follows a camera that has ended or is muted at once. */
  refresh(): void {
    if (this.host.camera() === null) this.regions.stop();
  }

  /** Ends all of it. */
  close(): void {
    this.regions.close();
  }
}

/** Whether it is a screen, a window or a tab, or what the page says is like one. */
const screen = (track: MediaStreamTrack | null): boolean =>
  track !== null &&
  (track.getSettings().displaySurface !== undefined || track.contentHint === "detail" || track.contentHint === "text");
