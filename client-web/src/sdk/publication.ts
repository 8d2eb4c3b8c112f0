/** One's own tracks on their way to the server. */
import type { PublishEntry } from "./protocol.js";
import { vp9Preferences } from "./receiver.js";

/** Which layers a camera sends: all, those for a weak uplink, or the smallest alone. */
export type Layers = "q" | "qh" | "qhf";

interface LayerSettings {
  rid: string;
  scaleResolutionDownBy: number;
  maxBitrate: number;
}

const LAYERS: readonly LayerSettings[] = [
  { rid: "q", scaleResolutionDownBy: 4, maxBitrate: 150_000 },
  { rid: "h", scaleResolutionDownBy: 2, maxBitrate: 500_000 },
  { rid: "f", scaleResolutionDownBy: 1, maxBitrate: 1_500_000 },
];

/**
 * The encodings of a camera. All three are always declared, so that `q` stays a quarter of the camera and layers can
 * be switched on later; those not asked for are inactive.
 */
export function videoEncodings(layers: Layers): RTCRtpEncodingParameters[] {
  return LAYERS.map((layer) => ({ ...layer, scalabilityMode: "L1T1", active: layers.includes(layer.rid) }));
}

/** A track that this participant publishes. */
export class Publication {
  readonly kind: "audio" | "video";
  /** The server's id of it; null until the server has told. */
  id: string | null = null;
  private transceiver: RTCRtpTransceiver | null = null;
  private isMuted = false;

  /** @internal */
  constructor(
    readonly track: MediaStreamTrack,
    readonly name: string,
    private layers: Layers,
  ) {
    this.kind = track.kind === "audio" ? "audio" : "video";
  }

  /** Whether nothing but silence or black is sent. */
  get muted(): boolean {
    return this.isMuted;
  }

  /** The sender, for figures; null while there is no connection. */
  get sender(): RTCRtpSender | null {
    return this.transceiver?.sender ?? null;
  }

  /** @internal */
  attach(pc: RTCPeerConnection): void {
    if (this.kind === "audio") {
      this.transceiver = pc.addTransceiver(this.track, { direction: "sendonly" });
      return;
    }
    this.transceiver = pc.addTransceiver(this.track, {
      direction: "sendonly",
      sendEncodings: videoEncodings(this.layers),
    });
    this.transceiver.setCodecPreferences(vp9Preferences(RTCRtpSender.getCapabilities("video")?.codecs ?? []));
  }

  /** @internal */
  detach(): void {
    if (this.transceiver !== null) {
      this.transceiver.direction = "inactive";
      void this.transceiver.sender.replaceTrack(null);
    }
    this.transceiver = null;
    this.id = null;
  }

  /** Its line in an offer; null before it has an m-line. @internal */
  entry(): PublishEntry | null {
    const mid = this.transceiver?.mid ?? null;
    return mid === null ? null : { mid, kind: this.kind, name: this.name };
  }

  /** @internal */
  setMuted(muted: boolean): void {
    this.isMuted = muted;
    this.track.enabled = !muted;
  }

  /** Sends other layers from now on. Video only. */
  async setLayers(layers: Layers): Promise<void> {
    this.layers = layers;
    const sender = this.transceiver?.sender;
    if (this.kind !== "video" || sender === undefined) return;
    const parameters = sender.getParameters();
    for (const encoding of parameters.encodings) encoding.active = layers.includes(encoding.rid ?? "");
    await sender.setParameters(parameters);
  }
}
