/** One's own tracks on their way to the server. */

import type { Assets } from "./assets.js";
import { opusPreferences } from "./opus.js";
import type { Knobs, LayerWish, PublishEntry, RegionRequest, UplinkReport } from "./protocol.js";
import { vp9Preferences } from "./receiver.js";
import type { Relay } from "./relay.js";
import { Stills, type StillsState } from "./stills.js";
import { LAYERS, type LayerSetting, type Layers, layerSettings } from "./uplink/layers.js";
import { LeadingLayer } from "./uplink/lead.js";
import { NarrowUplink } from "./uplink/narrow.js";
import { pathLook } from "./uplink/sample.js";

export type { Layers } from "./uplink/layers.js";

/**
 * Whether full-size stills of a camera are sent beside it: never, or as the server asks. The latter needs the
 * person's consent, which is the page's to get.
 */
export type DetailChoice = "off" | "ask";

/** How long a change of the sender waits for the one before. */
const SETTLE_MS = 2000;

/** What a publication needs of the connection that it is attached to. @internal */
export interface Uplink {
  pc: RTCPeerConnection;
  relay: Relay;
  assets: Assets;
  scale: number;
}

/**
 * The encodings of a camera. All three are always declared, so that `q` stays a quarter of the camera and layers can
 * be switched on later; those not asked for are inactive.
 */
export function videoEncodings(layers: Layers): RTCRtpEncodingParameters[] {
  const settings = layerSettings(layers, new Map());
  return settings.map((setting, i) => ({ ...LAYERS[i], ...setting, scalabilityMode: "L1T1" }));
}

/** What sends it by one connection. */
interface Link {
  transceiver: RTCRtpTransceiver;
  full: Stills | null;
  /** The server's id of it. */
  id: string | null;
}

/** A track that this participant publishes. */
export class Publication {
  readonly kind: "audio" | "video";
  /** By each connection that it is sent by; it is two while a room moves, of which the later counts. */
  private readonly links = new Map<RTCPeerConnection, Link>();
  private readonly wishes = new Map<string, LayerWish>();
  private narrow = new NarrowUplink();
  private lead = new LeadingLayer();
  private settling: Promise<void> = Promise.resolve();
  private isMuted = false;

  /** @internal */
  constructor(
    private source: MediaStreamTrack,
    readonly name: string,
    private layers: Layers,
    readonly detail: DetailChoice = "off",
    readonly redundancy = false,
  ) {
    this.kind = source.kind === "audio" ? "audio" : "video";
  }

  /** The server's id of it; null until the server has told. */
  get id(): string | null {
    return this.link?.id ?? null;
  }

  /** @internal */
  setId(pc: RTCPeerConnection, id: string): void {
    const link = this.links.get(pc);
    if (link !== undefined) link.id = id;
  }

  /** @internal */
  idAt(pc: RTCPeerConnection): string | null {
    return this.links.get(pc)?.id ?? null;
  }

  /** What is sent. */
  get track(): MediaStreamTrack {
    return this.source;
  }

  /** Whether nothing but silence or black is sent. */
  get muted(): boolean {
    return this.isMuted;
  }

  /** The sender, for figures; null while there is no connection. */
  get sender(): RTCRtpSender | null {
    return this.transceiver?.sender ?? null;
  }

  /** The full-size pixels that leave the page; null where that was not agreed to, or without a connection. */
  get stills(): StillsState | null {
    return this.full?.state ?? null;
  }

  /** @internal */
  attach({ pc, relay, assets, scale }: Uplink): void {
    this.begin();
    if (this.kind === "audio") {
      const transceiver = pc.addTransceiver(this.source, { direction: "sendonly" });
      this.links.set(pc, { transceiver, full: null, id: null });
      const codecs = RTCRtpSender.getCapabilities("audio")?.codecs ?? [];
      transceiver.setCodecPreferences(opusPreferences(codecs));
      return;
    }
    const sendEncodings = videoEncodings(this.layers);
    const transceiver = pc.addTransceiver(this.source, { direction: "sendonly", sendEncodings });
    const host = {
      camera: () => this.camera(),
      settings: () => this.settings(),
      giveKeyFrame: (width: number) => void this.giveKeyFrame(width).catch(() => undefined),
    };
    const full = this.detail === "ask" ? new Stills(pc, transceiver.sender, relay, assets, scale, host) : null;
    this.links.set(pc, { transceiver, full, id: null });
    transceiver.setCodecPreferences(vp9Preferences(RTCRtpSender.getCapabilities("video")?.codecs ?? []));
  }

  /** @internal */
  detach(pc: RTCPeerConnection): void {
    const link = this.links.get(pc);
    if (link === undefined) return;
    if (link === this.link) this.begin();
    this.links.delete(pc);
    link.full?.close();
    link.transceiver.direction = "inactive";
    void link.transceiver.sender.replaceTrack(null);
  }

  /** Of what one server has said, nothing holds at another. */
  private begin(): void {
    this.wishes.clear();
    this.narrow = new NarrowUplink();
    this.lead = new LeadingLayer();
  }

  private get link(): Link | null {
    return [...this.links.values()].at(-1) ?? null;
  }

  private get transceiver(): RTCRtpTransceiver | null {
    return this.link?.transceiver ?? null;
  }

  private get full(): Stills | null {
    return this.link?.full ?? null;
  }

  /** Its section in a connection's description; null before it has one. @internal */
  mid(pc: RTCPeerConnection): string | null {
    return this.links.get(pc)?.transceiver.mid ?? null;
  }

  /** Its line in an offer; null before it has an m-line. @internal */
  entry(pc: RTCPeerConnection): PublishEntry | null {
    const { kind, name } = this;
    const mid = this.mid(pc);
    return mid === null ? null : { mid, kind, name };
  }

  /** Sends another track of the same kind, such as another camera; stills follow. */
  async replaceTrack(track: MediaStreamTrack): Promise<void> {
    this.source = track;
    track.enabled = !this.isMuted;
    await Promise.all([...this.links.values()].map(({ transceiver }) => transceiver.sender.replaceTrack(track)));
    this.refresh();
  }

  /** @internal */
  setMuted(muted: boolean): void {
    this.isMuted = muted;
    this.source.enabled = !muted;
    this.refresh();
  }

  /** Stills follow, to whichever server they go. */
  private refresh(): void {
    for (const { full } of this.links.values()) full?.refresh();
  }

  /** Sends other layers from now on. Video only. */
  async setLayers(layers: Layers): Promise<void> {
    this.layers = layers;
    await this.settle();
  }

  /** Takes the server's wishes, within what the page allows. @internal */
  turn(knobs: Knobs): void {
    if (this.kind !== "video") return;
    for (const [rid, wish] of Object.entries(knobs.layers)) {
      if (!LAYERS.some((layer) => layer.rid === rid)) continue;
      const known = this.wishes.get(rid);
      const { kbps = known?.kbps, fps = known?.fps, active = known?.active, needed = known?.needed } = wish;
      this.wishes.set(rid, { kbps, fps, active, needed });
    }
    if (Object.keys(knobs.layers).length > 0) void this.settle().catch(() => undefined);
  }

  /** Answers the server's request for regions, if the person agreed. @internal */
  request(request: RegionRequest): void {
    this.full?.request(request);
  }

  /** What the uplink carries; null where the server need not know, or it is not known. @internal */
  uplink(): UplinkReport | null {
    return this.full?.report() ?? null;
  }

  /** Looks at the uplink, and after the layers and the stills; `LOOKS_A_SECOND`. @internal */
  async look(pc: RTCPeerConnection): Promise<void> {
    const { sender } = this;
    if (this.links.get(pc) !== this.link) return;
    if (this.kind !== "video" || sender === null) return;
    const stats = [...(await sender.getStats()).values()];
    this.full?.look(stats);
    const [now, path] = [performance.now(), pathLook(stats)];
    const held = this.narrow.look(now, path);
    const wanted = (rid: string) => this.layers.includes(rid) && this.wishes.get(rid)?.active !== false;
    const { width = 1280, height = 720 } = this.camera()?.getSettings() ?? {};
    const led = this.lead.look(now, path.availableKbps, {
      q: wanted("q"),
      needsQ: wanted("q") && this.wishes.get("q")?.needed === true,
      h: wanted("h"),
      pixels: (width * height) / 4,
    });
    if (held || led || this.unsettled()) await this.settle();
  }

  /** Whether the sender does not do what it should: the browser may drop a change, or answer none. */
  private unsettled(): boolean {
    const settings = this.settings();
    return (this.sender?.getParameters().encodings ?? []).some((encoding) => apply({ ...encoding }, settings));
  }

  private settings(): LayerSetting[] {
    const { caps, needsQuarter } = this.lead;
    return layerSettings(this.layers, this.wishes, this.narrow.hold, caps, needsQuarter);
  }

  /** The camera while it has pictures to give. A page may have given the sender another one itself. */
  private camera(): MediaStreamTrack | null {
    const track = this.transceiver?.sender.track ?? null;
    return track === null || this.isMuted || !track.enabled || track.readyState === "ended" ? null : track;
  }

  /** Has the layer whose pictures are so wide begin anew with a key frame, and no other. */
  private giveKeyFrame(width: number): Promise<void> {
    return this.change(async () => {
      const sender = this.transceiver?.sender;
      const whole = this.camera()?.getSettings().width;
      if (sender === undefined || whole === undefined) return;
      const parameters = sender.getParameters();
      const off = parameters.encodings.map(({ scaleResolutionDownBy: down = 1 }) => Math.abs(whole / down - width));
      const nearest = off.indexOf(Math.min(...off));
      const encodingOptions = off.map((_, i) => ({ keyFrame: i === nearest }));
      await sender.setParameters(parameters, { encodingOptions });
    });
  }

  /** Sets the sender to what page and server want. */
  private settle(): Promise<void> {
    return this.change(async () => {
      const sender = this.transceiver?.sender;
      if (this.kind !== "video" || sender === undefined) return;
      const settings = this.settings();
      const parameters = sender.getParameters();
      for (const encoding of parameters.encodings) apply(encoding, settings);
      await sender.setParameters(parameters);
    });
  }

  /** Changes the sender; one change at a time. */
  private change(change: () => Promise<void>): Promise<void> {
    const waited = new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    this.settling = Promise.race([this.settling.catch(() => undefined), waited]).then(change);
    return this.settling;
  }
}

/** Sets an encoding as it should be; whether it was otherwise. */
function apply(encoding: RTCRtpEncodingParameters, settings: readonly LayerSetting[]): boolean {
  const setting = settings.find((layer) => layer.rid === encoding.rid);
  if (setting === undefined) return false;
  const { active, maxBitrate } = encoding;
  encoding.active = setting.active;
  encoding.maxBitrate = Math.round(setting.maxBitrate);
  encoding.maxFramerate = setting.maxFramerate;
  // Not all browsers give a frame rate back.
  return active !== encoding.active || maxBitrate !== encoding.maxBitrate;
}
