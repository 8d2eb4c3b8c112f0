/** Published tracks, and the senders of their layers. */

import type { Files } from "./assets.js";
import { VIDEO_CODECS, type VideoCodec } from "./codec.js";
import { oneOf } from "./option-checks.js";
import { opusPreferences } from "./opus.js";
import type { Knobs, Layer, LayerRequest, PublishEntry, RegionRequest, UplinkReport } from "./protocol.js";
import { canMakeStills } from "./regions.js";
import type { Passage, Relay } from "./relay.js";
import { Stills, type StillsState } from "./stills.js";
import { capLayers } from "./uplink/cap.js";
import { type Content, LAYER_CHOICES, LAYERS, type LayerSetting, type Layers, layerSettings } from "./uplink/layers.js";
import { LeadingLayer } from "./uplink/lead.js";
import { NarrowUplink } from "./uplink/narrow.js";
import { pathSample } from "./uplink/sample.js";
import { ScreenLayers } from "./uplink/screen-layers.js";
import { videoPreferences } from "./video-codecs.js";

export type { VideoCodec } from "./codec.js";
export type { Content, Layers } from "./uplink/layers.js";

/**
 * Whether full-size stills of a camera are sent beside it: never (`off`), or when the server asks for them (`ask`). The
 * page must get the person's consent for the latter.
 */
export type DetailChoice = "off" | "ask";

const DETAIL_CHOICES: readonly DetailChoice[] = ["off", "ask"];

/** Max time for which a change of the sender waits for the one before, milliseconds. */
const MAX_CHANGE_MS = 2000;

/** The connection that a publication is attached to. @internal */
export interface Uplink {
  pc: RTCPeerConnection;
  relay: Relay;
  files: Files;
  scale: number;
  /** Offers again: what is said of a publication has changed. */
  offer: () => void;
}

/**
 * The encodings of a video. All three layers are always declared, so that `q` stays a quarter of it and layers can be
 * switched on later; the others are inactive.
 */
export function videoEncodings(settings: readonly LayerSetting[], content: Content): RTCRtpEncodingParameters[] {
  return settings.map((setting, i) => ({ ...LAYERS[content][i], ...setting, scalabilityMode: "L1T1" }));
}

/** The sender in one connection. */
interface Link {
  transceiver: RTCRtpTransceiver;
  stills: Stills | null;
  /** Where frames are encrypted end to end: their way through the relay; null: they are not. */
  encryption: { passage: Passage | null } | null;
  /** The server's id of the track. */
  id: string | null;
  /** See {@link Uplink.offer}. */
  readonly offer: () => void;
}

/** How a track is sent. @internal */
export interface PublicationOptions {
  detail?: DetailChoice | undefined;
  redundancy?: boolean | undefined;
  content?: Content | undefined;
  codec?: VideoCodec | null | undefined;
  /** Whether a backup may be sent: the same in another codec, for those who cannot decode this one. Default: true. */
  backupCodec?: boolean | undefined;
  /** The publication of which this one is the backup. */
  backupOf?: Publication | undefined;
}

/** A track that this participant sends. Made by `Room.publish`. */
export class Publication {
  /** The kind of the track. */
  readonly kind: "audio" | "video";
  /** By connection: two during a migration, of which the later one counts. */
  private readonly links = new Map<RTCPeerConnection, Link>();
  private readonly requests = new Map<string, LayerRequest>();
  private narrowUplink = new NarrowUplink();
  private leadingLayer = new LeadingLayer();
  private readonly screenLayers = new ScreenLayers();
  /** Backup publications: one in each connection in which somebody needs it. */
  private readonly backups = new Set<Publication>();
  private changing: Promise<void> = Promise.resolve();
  private isMuted = false;
  /** The page's cap on what this track sends, kbit/s; null: none. */
  private maxKbps: number | null = null;
  /** Whether the browser estimates the uplink: it then keeps the cap by itself. */
  private estimated = false;

  /** Whether stills may be sent. Video only. */
  readonly detail: DetailChoice;
  /** Whether packets are sent twice (RED). Audio only. */
  readonly redundancy: boolean;
  /** What is sent: it decides on bitrates and frame rates. Video only. */
  readonly content: Content;
  /** The codec; null: the best that the browser has. Video only. */
  readonly codec: VideoCodec | null;
  private readonly hasBackup: boolean;
  /** The publication of which this one is the backup. @internal */
  readonly backupOf: Publication | null;

  /** @internal */
  constructor(
    private source: MediaStreamTrack,
    /** The name that the others see. */
    readonly name: string,
    private layers: Layers,
    options: PublicationOptions = {},
  ) {
    const { detail = "off", content = "camera", codec = null } = options;
    oneOf("set of layers", layers, LAYER_CHOICES);
    oneOf("choice of detail", detail, DETAIL_CHOICES);
    oneOf("content", content, ["camera", "screen"]);
    if (codec !== null) oneOf("codec", codec, VIDEO_CODECS);
    this.kind = source.kind === "audio" ? "audio" : "video";
    this.detail = detail;
    this.redundancy = options.redundancy ?? false;
    this.content = content;
    this.codec = codec;
    this.hasBackup = options.backupCodec ?? true;
    this.backupOf = options.backupOf ?? null;
  }

  /** The server's id of the track; null until the server has accepted it. */
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

  /**
   * The backup for viewers who decode these codecs: of the first one that this browser encodes. Null where there may be
   * none, or none is possible. @internal
   */
  backUp(codecs: readonly VideoCodec[]): Publication | null {
    const known = RTCRtpSender.getCapabilities("video")?.codecs ?? [];
    const codec = codecs.find((name) => videoPreferences(known, name).length > 0);
    if (!this.hasBackup || codec === undefined) return null;
    const backup = new Publication(this.source, this.name, this.layers, {
      content: this.content,
      codec,
      backupCodec: false,
      backupOf: this,
    });
    backup.isMuted = this.isMuted;
    return backup;
  }

  /** The track that is sent. */
  get track(): MediaStreamTrack {
    return this.source;
  }

  /** Whether silence or black frames are sent. */
  get muted(): boolean {
    return this.isMuted;
  }

  /** The sender, for its statistics; null without a connection. */
  get sender(): RTCRtpSender | null {
    return this.transceiver?.sender ?? null;
  }

  /** Counts of the stills sent; null where {@link detail} is `off`, or without a connection. */
  get stills(): StillsState | null {
    return this.stillSender?.state ?? null;
  }

  /** @internal */
  attach({ pc, relay, files, scale, offer }: Uplink): void {
    this.forgetRequests();
    this.backupOf?.backups.add(this);
    if (this.kind === "audio") {
      const transceiver = pc.addTransceiver(this.source, { direction: "sendonly" });
      this.links.set(pc, { transceiver, stills: null, encryption: encrypt(transceiver, relay), id: null, offer });
      const codecs = RTCRtpSender.getCapabilities("audio")?.codecs ?? [];
      transceiver.setCodecPreferences(opusPreferences(codecs));
      return;
    }
    const sendEncodings = videoEncodings(this.settings(), this.content);
    const transceiver = pc.addTransceiver(this.source, { direction: "sendonly", sendEncodings });
    const host = {
      camera: () => this.camera(),
      settings: () => this.settings(),
      requestKeyFrame: (width: number) => void this.requestKeyFrame(width).catch(() => undefined),
    };
    const encryption = encrypt(transceiver, relay);
    const asks = this.detail === "ask";
    // A transform that is set later is ignored.
    const own = encryption === null && asks && canMakeStills() ? relay.pass(transceiver.sender) : null;
    const passage = encryption?.passage ?? own;
    const stills = asks ? new Stills(pc, passage, relay.encryption, files, scale, host) : null;
    this.links.set(pc, { transceiver, stills, encryption, id: null, offer });
    const codecs = RTCRtpSender.getCapabilities("video")?.codecs ?? [];
    // What other codecs' packets say of a frame is in the frame itself.
    transceiver.setCodecPreferences(videoPreferences(codecs, encryption === null ? this.codec : "vp9"));
  }

  /** @internal */
  detach(pc: RTCPeerConnection): void {
    const link = this.links.get(pc);
    if (link === undefined) return;
    if (link === this.link) this.forgetRequests();
    this.links.delete(pc);
    link.stills?.close();
    link.encryption?.passage?.close();
    void link.transceiver.sender.replaceTrack(null).catch(() => undefined);
    // Its section of the descriptions is free for another one: else each screen that is shared made offers longer. The
    // first section stays, as Chromium begins its bundle's transport anew without it, with new data channels.
    if (pc.getTransceivers()[0] === link.transceiver) link.transceiver.direction = "inactive";
    else link.transceiver.stop();
    if (this.links.size === 0) this.backupOf?.backups.delete(this);
  }

  /** Forgets the requests of a server: they do not hold for another one. */
  private forgetRequests(): void {
    this.requests.clear();
    this.narrowUplink = new NarrowUplink();
    this.leadingLayer = new LeadingLayer();
  }

  private get link(): Link | null {
    return [...this.links.values()].at(-1) ?? null;
  }

  private get transceiver(): RTCRtpTransceiver | null {
    return this.link?.transceiver ?? null;
  }

  private get stillSender(): Stills | null {
    return this.link?.stills ?? null;
  }

  /** The `mid` of its section in a connection; null before it has one. @internal */
  mid(pc: RTCPeerConnection): string | null {
    return this.links.get(pc)?.transceiver.mid ?? null;
  }

  /** The publication's entry in an offer; null before it has a section. @internal */
  entry(pc: RTCPeerConnection): PublishEntry | null {
    const { kind, name } = this;
    const mid = this.mid(pc);
    if (mid === null) return null;
    const encrypted = this.links.get(pc)?.encryption == null ? {} : { encrypted: true };
    if (kind === "audio") return { mid, kind, name, ...encrypted };
    const entry = { mid, kind, name, max: largestOf(this.layers), ...encrypted };
    if (this.backupOf === null) return entry;
    const of = this.backupOf.mid(pc);
    return of === null ? null : { ...entry, backup_of: of };
  }

  /**
   * Sends another track of the same kind instead, such as another camera; without negotiation. Stills follow. Rejects
   * with the browser's error where the sender does not take the track.
   */
  async replaceTrack(track: MediaStreamTrack): Promise<void> {
    this.source = track;
    track.enabled = !this.isMuted;
    const senders = [...this.links.values()].map(({ transceiver }) => transceiver.sender);
    const replaced = senders.map((sender) => sender.replaceTrack(track));
    await Promise.all([...replaced, ...[...this.backups].map((backup) => backup.replaceTrack(track))]);
    this.refreshStills();
  }

  /** @internal */
  setMuted(muted: boolean): void {
    this.isMuted = muted;
    this.source.enabled = !muted;
    for (const backup of this.backups) backup.isMuted = muted;
    this.refreshStills();
  }

  /** Applies a mute or another camera to the stills of every connection. */
  private refreshStills(): void {
    for (const { stills } of this.links.values()) stills?.refresh();
  }

  /**
   * Sends other layers from now on. Video only. Rejects with the browser's error where the sender does not take them.
   */
  async setLayers(layers: Layers): Promise<void> {
    const before = largestOf(this.layers);
    this.layers = oneOf("set of layers", layers, LAYER_CHOICES);
    // The server must not take a layer that is not sent any more for one that the uplink does not carry.
    if (before !== largestOf(layers)) for (const { offer } of this.links.values()) offer();
    await Promise.all([this.applySettings(), ...[...this.backups].map((backup) => backup.setLayers(layers))]);
  }

  /** Whether it is a backup that nobody needs now. @internal */
  get idle(): boolean {
    return this.backupOf !== null && !this.settings().some(({ active }) => active);
  }

  /** Caps what this track sends, kbit/s; null: no cap. @internal */
  setMaxKbps(kbps: number | null): void {
    if (kbps === this.maxKbps) return;
    this.maxKbps = kbps;
    if (this.kind === "video") void this.applySettings().catch(() => undefined);
  }

  /** Applies the server's requests, within what the page allows. @internal */
  turn(knobs: Knobs): void {
    if (this.kind !== "video") return;
    for (const [rid, request] of Object.entries(knobs.layers)) {
      if (!LAYERS[this.content].some((layer) => layer.rid === rid)) continue;
      const before = this.requests.get(rid);
      const { kbps = before?.kbps, fps = before?.fps, active = before?.active, needed = before?.needed } = request;
      this.requests.set(rid, { kbps, fps, active, needed });
    }
    if (Object.keys(knobs.layers).length > 0) void this.applySettings().catch(() => undefined);
  }

  /** Answers the server's request for a still, if the person agreed. @internal */
  request(request: RegionRequest): void {
    this.stillSender?.request(request);
  }

  /** The report of the uplink; null without stills, or without an estimate. @internal */
  uplink(): UplinkReport | null {
    return this.stillSender?.report() ?? null;
  }

  /** Samples the uplink, every `UPLINK_SAMPLE_MS`, and adapts layers and stills to it. @internal */
  async sampleUplink(pc: RTCPeerConnection): Promise<void> {
    const { sender } = this;
    if (this.links.get(pc) !== this.link) return;
    if (this.kind !== "video" || sender === null) return;
    const stats = [...(await sender.getStats()).values()];
    this.stillSender?.sampleUplink(stats);
    const [now, path] = [performance.now(), pathSample(stats)];
    this.estimated = path.availableKbps !== null;
    if (this.content === "screen") {
      const changed = this.screenLayers.onEstimate(now, path.availableKbps);
      if (changed || this.differs()) await this.applySettings();
      return;
    }
    const capped = this.narrowUplink.onSample(now, path);
    const wanted = (rid: string) => this.layers.includes(rid) && this.requests.get(rid)?.active !== false;
    const { width = 1280, height = 720 } = this.camera()?.getSettings() ?? {};
    const ledChanged = this.leadingLayer.onEstimate(now, path.availableKbps, {
      q: wanted("q"),
      needsQ: wanted("q") && this.requests.get("q")?.needed === true,
      h: wanted("h"),
      pixels: (width * height) / 4,
    });
    if (capped || ledChanged || this.differs()) await this.applySettings();
  }

  /** Whether the sender differs from its settings: the browser may drop a change, or never answer. */
  private differs(): boolean {
    const settings = this.settings();
    return (this.sender?.getParameters().encodings ?? []).some((encoding) => applySetting({ ...encoding }, settings));
  }

  private settings(): LayerSetting[] {
    const { caps, needsQuarter } = this.leadingLayer;
    const needsQ = this.requests.get("q")?.needed === true;
    const layers = this.content === "screen" ? this.screenLayers.of(this.layers, needsQ) : this.layers;
    const given = { content: this.content, backup: this.backupOf !== null, uplink: this.narrowUplink.caps };
    const settings = layerSettings(layers, this.requests, { ...given, caps, needsQuarter });
    return this.estimated ? settings : capLayers(settings, this.maxKbps);
  }

  /** The camera, unless it is muted or has ended. The page may have replaced the track on the sender itself. */
  private camera(): MediaStreamTrack | null {
    const track = this.transceiver?.sender.track ?? null;
    return track === null || this.isMuted || !track.enabled || track.readyState === "ended" ? null : track;
  }

  /** Makes the layer of that width, and no other, encode a key frame. */
  private requestKeyFrame(width: number): Promise<void> {
    return this.change(async () => {
      const sender = this.transceiver?.sender;
      const cameraWidth = this.camera()?.getSettings().width;
      if (sender === undefined || cameraWidth === undefined) return;
      const parameters = sender.getParameters();
      const differences = parameters.encodings.map(({ scaleResolutionDownBy: down = 1 }) =>
        Math.abs(cameraWidth / down - width),
      );
      const nearest = differences.indexOf(Math.min(...differences));
      const encodingOptions = differences.map((_, i) => ({ keyFrame: i === nearest }));
      await sender.setParameters(parameters, { encodingOptions });
    });
  }

  /** Sets the encodings to what page and server want. */
  private applySettings(): Promise<void> {
    return this.change(async () => {
      const sender = this.transceiver?.sender;
      if (this.kind !== "video" || sender === undefined) return;
      const settings = this.settings();
      const parameters = sender.getParameters();
      for (const encoding of parameters.encodings) applySetting(encoding, settings);
      await sender.setParameters(parameters);
    });
  }

  /** Changes the sender, one change at a time. */
  private change(change: () => Promise<void>): Promise<void> {
    const waited = new Promise((resolve) => setTimeout(resolve, MAX_CHANGE_MS));
    this.changing = Promise.race([this.changing.catch(() => undefined), waited]).then(change);
    return this.changing;
  }
}

/** The largest of some layers. */
function largestOf(layers: Layers): Layer {
  return layers.includes("f") ? "f" : layers.includes("h") ? "h" : "q";
}

/** Sets an encoding; returns whether that changed it. */
function applySetting(encoding: RTCRtpEncodingParameters, settings: readonly LayerSetting[]): boolean {
  const setting = settings.find((layer) => layer.rid === encoding.rid);
  if (setting === undefined) return false;
  const { active, maxBitrate } = encoding;
  encoding.active = setting.active;
  encoding.maxBitrate = Math.round(setting.maxBitrate);
  encoding.maxFramerate = setting.maxFramerate;
  // Not every browser returns the frame rate.
  return active !== encoding.active || maxBitrate !== encoding.maxBitrate;
}

/** Leads what a transceiver sends through the relay, where frames are encrypted. Without a way it sends nothing. */
function encrypt(transceiver: RTCRtpTransceiver, relay: Relay): Link["encryption"] {
  if (!relay.encrypts) return null;
  const passage = relay.pass(transceiver.sender);
  if (passage === null) {
    transceiver.direction = "inactive";
    void transceiver.sender.replaceTrack(null);
  }
  return { passage };
}
