/**
 * The stills of one camera, at full size, that the server asks for and the person has agreed to. Joins the server's
 * requests with the state of the uplink and of the camera.
 */
import type { Files } from "./assets.js";
import type { Encryption } from "./encryption.js";
import type { RegionRequest, UplinkReport } from "./protocol.js";
import { type RegionCounts, RegionSender } from "./regions.js";
import type { Passage } from "./relay.js";
import { contentOf } from "./screen-content.js";
import type { LayerSetting } from "./uplink/layers.js";
import { availableKbps, capsOf, UplinkSampler } from "./uplink/sample.js";
import { SpareUplink } from "./uplink/spare.js";

/** Interval at which {@link Stills.sampleUplink} is called, milliseconds. */
export const UPLINK_SAMPLE_MS = 250;
/** Samples per full sample, which is thus taken once a second. */
const FULL_SAMPLE_EVERY = 4;

/** The full-size pixels that have left the page. */
export interface StillsState {
  /** Counts since the start. */
  regions: RegionCounts;
}

/** What stills need of their publication. */
export interface StillsHost {
  /** The camera; null while it is muted or has ended. */
  camera(): MediaStreamTrack | null;
  settings(): readonly LayerSetting[];
  /** Makes the layer of that width encode a key frame. */
  requestKeyFrame(width: number): void;
}

/** Answers the server's requests for stills of one camera while the uplink has bandwidth to spare. */
export class Stills {
  private readonly spare = new SpareUplink();
  private readonly sampler = new UplinkSampler();
  private readonly regions: RegionSender;
  private available: number | null = null;
  private samples = 0;

  /**
   * `passage`, `encryption`: as of {@link RegionSender}. `defaultScale`: the scale of requests without one, from the
   * welcome.
   */
  constructor(
    pc: RTCPeerConnection,
    passage: Passage | null,
    encryption: Encryption | null,
    files: Files,
    private readonly defaultScale: number,
    private readonly host: StillsHost,
  ) {
    this.regions = new RegionSender(pc, passage, encryption, files, (width) => host.requestKeyFrame(width));
  }

  get state(): StillsState {
    return { regions: this.regions.counts };
  }

  /** Answers a request for stills, or counts why not. */
  request(request: RegionRequest): void {
    const scale = request.scale ?? this.defaultScale;
    this.regions.request({ ...request, scale }, this.host.camera(), this.spare.kbps);
  }

  /** Takes the statistics of the camera's sender, every {@link UPLINK_SAMPLE_MS}. */
  sampleUplink(report: readonly object[]): void {
    const settings = this.host.settings();
    if (this.samples++ % FULL_SAMPLE_EVERY !== 0) {
      this.spare.onEstimate(availableKbps(report), capsOf(settings).firstKbps);
      return;
    }
    const sample = this.sampler.sample(report, settings);
    this.available = sample.availableKbps;
    this.spare.onSample(performance.now(), sample, contentOf(this.host.camera()) === "screen" ? "smallest" : "all");
    this.refresh();
  }

  /** The report of the uplink to the server; null without an estimate or a camera. */
  report(): UplinkReport | null {
    const { width, height, frameRate } = this.host.camera()?.getSettings() ?? {};
    if (this.available === null || width === undefined || height === undefined) return null;
    return { kbps: this.available, width, height, fps: frameRate ?? 30 };
  }

  /** Stops reading a camera that has ended or is muted. */
  refresh(): void {
    if (this.host.camera() === null) this.regions.stop();
  }

  /** Ends sending stills. */
  close(): void {
    this.regions.close();
  }
}
