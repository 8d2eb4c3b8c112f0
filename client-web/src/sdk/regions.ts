/**
 * Stills of the camera's pictures, whole or in tiles, that the server asks for: checked against the client's own caps, coded in a
 * worker as what the low layer does not tell, sent on a data channel. The camera is only read while requests come.
 */
import type { FromPublisher, TakeCopies, ToPublisher } from "../worker/messages.js";
import type { RegionOutcome } from "../worker/regions/cutter.js";
import { bitsOf, parseTileMap } from "../worker/regions/tiles.js";
import { SCALES } from "../worker/wasm.js";
import { type Assets, compileDecoder, workerAddress } from "./assets.js";
import type { RegionRequest } from "./protocol.js";
import type { Passage, Relay } from "./relay.js";
import { RegionCaps } from "./uplink/region-caps.js";
import { WatchedWorker } from "./watched-worker.js";

const LABEL = "windlass-regions";
const LIFETIME_MS = 500;
/** No more than this waits in the channel. */
const MOST_BUFFERED = 32 * 1024;
/** Without requests for so long the camera is no longer read. */
const IDLE_MS = 10_000;
/** So many pictures of the camera are in the worker's hands at most: a camera that gets none back stands still. */
const MOST_LENT = 3;
/** Nothing waits for it. */
const PACE = { everyMs: 1000, most: 5 };

/** What became of requests since the start. */
export interface RegionCounts {
  requested: number;
  sent: number;
  bytes: number;
  /** Beyond the client's own caps on requests, area or bytes. */
  capped: number;
  /** Not well formed, the browser cannot, or the camera is too small. */
  refused: number;
  /** No frame of the low layer could be told to be the camera's, in time. */
  missed: number;
  /** The low layer's own picture was not known, in time: it is decoded from a key frame on. */
  baseless: number;
  /** Nothing could be coded in so few bytes. */
  tight: number;
}

/** Which count an outcome goes to. */
const COUNTED = {
  superseded: "missed",
  "no-clock": "missed",
  "no-frame": "missed",
  "no-base": "baseless",
  budget: "tight",
  camera: "refused",
  format: "refused",
  "no-decoder": "refused",
} as const satisfies Record<Exclude<RegionOutcome, "sent">, keyof RegionCounts>;

/** See the module's head. */
export class RegionSender {
  readonly counts: RegionCounts = {
    requested: 0,
    sent: 0,
    bytes: 0,
    capped: 0,
    refused: 0,
    missed: 0,
    baseless: 0,
    tight: 0,
  };
  private readonly caps = new RegionCaps();
  private readonly passage: Passage | null = null;
  private worker: WatchedWorker<ToPublisher | TakeCopies, FromPublisher> | null = null;
  private loading: Promise<void> | null = null;
  private lent = 0;
  private readonly channel: RTCDataChannel | null = null;
  private reading: { of: MediaStreamTrack; clone: MediaStreamTrack } | null = null;
  private idle: ReturnType<typeof setTimeout> | undefined;

  /**
   * `low`: the camera's sender, just made; a transform that is set later is passed by silently. `wantKeyFrame`: its layer of that
   * width is to give one.
   */
  constructor(
    pc: RTCPeerConnection,
    low: RTCRtpSender,
    relay: Relay,
    private readonly assets: Assets,
    private readonly wantKeyFrame: (width: number) => void,
  ) {
    const able = typeof RTCRtpScriptTransform !== "undefined" && typeof MediaStreamTrackProcessor !== "undefined";
    this.passage = able ? relay.pass(low) : null;
    if (this.passage === null) return;
    this.worker = new WatchedWorker(
      workerAddress(assets.worker),
      "windlass regions",
      PACE,
      (message) => this.hear(message),
      () => this.end(),
    );
    this.passage.copyTo(this.worker);
    this.channel = pc.createDataChannel(LABEL, { ordered: false, maxPacketLifeTime: LIFETIME_MS });
  }

  /** Answers a request of what `camera` gives, or counts why not. `spareKbps`: what the uplink has to spare. */
  request(request: RegionRequest & { scale: number }, camera: MediaStreamTrack | null, spareKbps: number): void {
    this.counts.requested++;
    const { id, width, height, scale } = request;
    const bits = bitsOf(request.tiles);
    const map = bits === null ? null : parseTileMap(width, height, bits);
    if (camera === null || map === null || this.worker === null || !SCALES.includes(scale)) {
      this.counts.refused++;
      return;
    }
    const of = map.columns * map.rows;
    const bytes = this.caps.admit(performance.now(), map.tiles.length, of, request.bytes, spareKbps * 125);
    if (typeof bytes === "string") {
      this.counts.capped++;
      return;
    }
    this.read(camera);
    this.load().then(
      () => this.post({ type: "regions", task: { id, width, height, scale, bits: map.bits, bytes } }),
      () => this.counts.refused++,
    );
  }

  /** Reads no camera any more, until the next request. */
  stop(): void {
    clearTimeout(this.idle);
    if (this.reading === null) return;
    this.reading.clone.stop();
    this.reading = null;
    this.post({ type: "camera" });
  }

  /** Ends it. */
  close(): void {
    this.end();
    this.channel?.close();
    this.passage?.close();
  }

  /** No regions are cut any more; the camera is sent as before. A worker that ends with frames in hand keeps them from the camera. */
  private end(): void {
    this.stop();
    this.passage?.copyTo(null);
    this.worker?.endLater();
    this.worker = null;
  }

  /** Gives the worker its decoder, once. */
  private load(): Promise<void> {
    this.loading ??= compileDecoder(this.assets.wasm).then((module) => this.post({ type: "module", module }));
    // The next request tries again.
    this.loading.catch(() => {
      this.loading = null;
    });
    return this.loading;
  }

  private read(camera: MediaStreamTrack): void {
    clearTimeout(this.idle);
    this.idle = setTimeout(() => this.stop(), IDLE_MS);
    if (this.reading?.of === camera) return;
    this.reading?.clone.stop();
    const clone = camera.clone();
    this.reading = { of: camera, clone };
    this.post({ type: "camera" });
    void this.follow(clone).catch(() => undefined);
  }

  /** Hands the frames of a clone to the worker until it is stopped. A stream handed over instead leaves frames unclosed. */
  private async follow(clone: MediaStreamTrack): Promise<void> {
    const reader = new MediaStreamTrackProcessor({ track: clone }).readable.getReader();
    for (;;) {
      const { value: frame, done } = await reader.read();
      if (done) return;
      const at = performance.timeOrigin + performance.now();
      if (this.reading?.clone !== clone || this.lent >= MOST_LENT) {
        frame.close();
        continue;
      }
      this.lent++;
      this.post({ type: "frame", frame, at }, [frame]);
    }
  }

  private hear(message: FromPublisher): void {
    if (message.type === "taken") {
      this.lent--;
      return;
    }
    if (message.type === "keyFrame") {
      this.wantKeyFrame(message.width);
      return;
    }
    const { outcome, messages } = message;
    if (outcome !== "sent") {
      this.counts[COUNTED[outcome]]++;
      return;
    }
    const { channel } = this;
    if (channel === null || channel.readyState !== "open" || channel.bufferedAmount > MOST_BUFFERED) {
      this.counts.missed++;
      return;
    }
    this.counts.sent++;
    for (const message of messages) {
      channel.send(message);
      this.counts.bytes += message.byteLength;
    }
  }

  private post(message: ToPublisher, transfer: Transferable[] = []): void {
    this.worker?.post(message, transfer);
  }
}
