/**
 * Sends stills of the camera, whole or in tiles, at the server's request. Requests are checked against the client's own
 * caps; a worker encodes the detail that the low layer lacks; a data channel carries it. The camera is read only while
 * requests come.
 */
import type { FromPublisher, TakeCopies, ToPublisher } from "../worker/messages.js";
import type { RegionOutcome } from "../worker/regions/cutter.js";
import { bitsOf, parseTileMap } from "../worker/regions/tiles.js";
import { SCALES } from "../worker/wasm.js";
import type { Files } from "./assets.js";
import { compileDecoder } from "./decoder.js";
import { type Encryption, giveKeys } from "./encryption.js";
import type { RegionRequest } from "./protocol.js";
import type { Passage } from "./relay.js";
import { RegionCaps } from "./uplink/region-caps.js";
import { WatchedWorker } from "./watched-worker.js";

const LABEL = "windlass-regions";
/** Max time for which a message is retransmitted, milliseconds. */
const LIFETIME_MS = 500;
/** Max bytes buffered in the channel: a still beyond is dropped. */
const MAX_BUFFERED = 32 * 1024;
/** Time without requests after which the camera is no longer read, milliseconds. */
const IDLE_MS = 10_000;
/** Max camera frames in the worker: a camera whose frames are not closed stops. */
const MAX_LENT = 3;
/** Nothing waits for this worker. */
const PING_RATE = { intervalMs: 1000, maxUnanswered: 5 };

/** Counts of the server's requests for stills, and of their outcomes, since the start. */
export interface RegionCounts {
  /** Requests received. */
  requested: number;
  /** Stills sent. */
  sent: number;
  /** Bytes of these stills. */
  bytes: number;
  /** Dropped: beyond the client's own caps on requests, area or bytes. */
  capped: number;
  /** Dropped: malformed, not supported by the browser, or the camera is off or too small. */
  refused: number;
  /** Dropped: no camera frame could be matched with a frame of the low layer in time, or the channel was full. */
  missed: number;
  /** Dropped: the picture of the low layer was not decoded in time; that begins with a key frame. */
  baseless: number;
  /** Dropped: the byte budget was too small for any detail. */
  tight: number;
}

/** The count of each outcome. */
const COUNT_OF = {
  superseded: "missed",
  "no-clock": "missed",
  "no-frame": "missed",
  "no-base": "baseless",
  budget: "tight",
  camera: "refused",
  format: "refused",
  "no-decoder": "refused",
  "no-key": "refused",
} as const satisfies Record<Exclude<RegionOutcome, "sent">, keyof RegionCounts>;

/** Whether this browser can make stills. */
export function canMakeStills(): boolean {
  return typeof RTCRtpScriptTransform !== "undefined" && typeof MediaStreamTrackProcessor !== "undefined";
}

/** Sends stills of one camera at the server's request, within the client's own caps. */
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
  private worker: WatchedWorker<ToPublisher | TakeCopies, FromPublisher> | null = null;
  private loading: Promise<void> | null = null;
  private lent = 0;
  private readonly channel: RTCDataChannel | null = null;
  /** Gives the worker no more keys. */
  private stopKeys = (): void => undefined;
  private reading: { camera: MediaStreamTrack; clone: MediaStreamTrack } | null = null;
  private idle: ReturnType<typeof setTimeout> | undefined;

  /**
   * `passage`: the way of the camera's frames through the relay; null: they have none, so that there are no stills.
   * `encryption`: null where stills are not encrypted end to end. `requestKeyFrame`: asks for a key frame of the layer
   * of that width.
   */
  constructor(
    pc: RTCPeerConnection,
    private readonly passage: Passage | null,
    private readonly encryption: Encryption | null,
    private readonly files: Files,
    private readonly requestKeyFrame: (width: number) => void,
  ) {
    if (passage === null || !canMakeStills()) return;
    this.worker = new WatchedWorker(
      files.worker.address,
      "windlass regions",
      PING_RATE,
      (message) => this.handle(message),
      () => this.end(),
    );
    this.stopKeys = giveKeys(encryption, this.worker);
    passage.copyTo(this.worker);
    this.channel = pc.createDataChannel(LABEL, { ordered: false, maxPacketLifeTime: LIFETIME_MS });
  }

  /**
   * Answers a request with the next frame of `camera`, or counts why not. `spareKbps`: what the uplink can spare for
   * stills.
   */
  request(request: RegionRequest & { scale: number }, camera: MediaStreamTrack | null, spareKbps: number): void {
    this.counts.requested++;
    const { id, width, height, scale } = request;
    const bits = bitsOf(request.tiles);
    const map = bits === null ? null : parseTileMap(width, height, bits);
    if (camera === null || map === null || this.worker === null || !SCALES.includes(scale)) {
      this.counts.refused++;
      return;
    }
    const total = map.columns * map.rows;
    const encrypted = this.encryption !== null;
    // The lengths of single tiles' stills would tell a server what is where.
    if (encrypted && map.tiles.length < total) {
      this.counts.refused++;
      return;
    }
    const bytes = this.caps.admit(performance.now(), map.tiles.length, total, request.bytes, spareKbps * 125);
    if (typeof bytes === "string") {
      this.counts.capped++;
      return;
    }
    this.read(camera);
    this.load().then(
      () => this.post({ type: "regions", task: { id, width, height, scale, bits: map.bits, bytes, encrypted } }),
      () => this.counts.refused++,
    );
  }

  /** Stops reading the camera until the next request. */
  stop(): void {
    clearTimeout(this.idle);
    if (this.reading === null) return;
    this.reading.clone.stop();
    this.reading = null;
    this.post({ type: "camera" });
  }

  /** Ends sending stills. */
  close(): void {
    this.end();
    this.passage?.close();
  }

  /**
   * Makes no more stills; the camera is sent as before. The worker ends later, as it must close its camera frames
   * first.
   */
  private end(): void {
    this.stop();
    this.stopKeys();
    this.passage?.copyTo(null);
    // The server learns that no more come.
    this.channel?.close();
    this.worker?.endLater();
    this.worker = null;
  }

  /** Gives the decoder to the worker, once. */
  private load(): Promise<void> {
    this.loading ??= compileDecoder(this.files.decoder).then((module) => this.post({ type: "module", module }));
    // The next request tries again.
    this.loading.catch(() => {
      this.loading = null;
    });
    return this.loading;
  }

  private read(camera: MediaStreamTrack): void {
    clearTimeout(this.idle);
    this.idle = setTimeout(() => this.stop(), IDLE_MS);
    if (this.reading?.camera === camera) return;
    this.reading?.clone.stop();
    const clone = camera.clone();
    this.reading = { camera, clone };
    this.post({ type: "camera" });
    void this.follow(clone).catch(() => undefined);
  }

  /**
   * Hands the frames of a clone to the worker until the clone is stopped. (A transferred stream would leave frames
   * unclosed.)
   */
  private async follow(clone: MediaStreamTrack): Promise<void> {
    const reader = new MediaStreamTrackProcessor({ track: clone }).readable.getReader();
    for (;;) {
      const { value: frame, done } = await reader.read();
      if (done) return;
      const at = performance.timeOrigin + performance.now();
      if (this.reading?.clone !== clone || this.lent >= MAX_LENT) {
        frame.close();
        continue;
      }
      this.lent++;
      this.post({ type: "frame", frame, at }, [frame]);
    }
  }

  private handle(message: FromPublisher): void {
    if (message.type === "taken") {
      this.lent--;
      return;
    }
    if (message.type === "keyFrame") {
      this.requestKeyFrame(message.width);
      return;
    }
    const { outcome, messages } = message;
    if (outcome !== "sent") {
      this.counts[COUNT_OF[outcome]]++;
      return;
    }
    const { channel } = this;
    if (channel === null || channel.readyState !== "open" || channel.bufferedAmount > MAX_BUFFERED) {
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
