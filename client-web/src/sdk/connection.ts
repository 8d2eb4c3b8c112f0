/**
 * One peer connection to the server: what is sent, what is received, and the anchors' data channel.
 *
 * The client always offers. Changes only mark the connection as due; one negotiation runs at a time and takes in
 * everything that has changed since, as complete lists of what is published and subscribed.
 */
import { parseAnchorHeader } from "../worker/anchors.js";
import type { Assets } from "./assets.js";
import { Backoff } from "./backoff.js";
import { WindlassError } from "./errors.js";
import { IceAccess } from "./ice-access.js";
import { asWished } from "./opus.js";
import type { OutputKind } from "./output.js";
import { Pace } from "./pace.js";
import type { IceServers, Rung, SubscribeEntry, TrackInfo } from "./protocol.js";
import type { Publication } from "./publication.js";
import { VideoReceiver } from "./receiver.js";
import type { Relay } from "./relay.js";
import type { SignalSocket } from "./socket.js";
import { LOOKS_A_SECOND } from "./stills.js";
import { EnhancedTrack, type RemoteTrack } from "./tracks.js";

const ANCHORS_LABEL = "windlass-anchors";
/**
 * The media path may be away for so long before the connection counts as lost. The server waits for 20 s after the last
 * offer.
 */
const AWAY_MS = 14_000;
/** Meanwhile ICE is restarted, at once and again after a pause, doubled each time up to the longer one. */
const RESTART_MS = [2500, 5000] as const;
/** And it must come about within this time. */
const CONNECT_MS = 15_000;
/** Where nothing is to be sent or received so long, an offer is made all the same: the server lets nobody stay without a connection. */
const ANYWAY_MS = 5000;
/** An offer that the server refuses is tried again at most so often, as its tracks may have gone meanwhile. */
const MAX_REFUSALS = 3;

/** An m-line that carries, or can carry, someone's track. */
interface Slot {
  kind: "audio" | "video";
  transceiver: RTCRtpTransceiver;
  receiver: VideoReceiver | null;
  track: RemoteTrack | null;
}

/** See the module's head. */
export class Connection {
  /** Called once when the media path is lost for good, or negotiation failed. */
  onLost: ((error: WindlassError) => void) | null = null;
  /** Called when the media path is up. */
  onUp: (() => void) | null = null;
  private readonly pc: RTCPeerConnection;
  private readonly slots: Slot[] = [];
  private readonly publications = new Set<Publication>();
  private due = false;
  private negotiating: Promise<void> | null = null;
  private refusals = 0;
  private closed = false;
  private frozen = false;
  private readonly ice: IceAccess;
  /** Whether the media path was up once: a restart finds another one, but none where there never was one. */
  private wasUp = false;
  private readonly pace = new Pace();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private restart: ReturnType<typeof setTimeout> | undefined;
  private readonly looks: ReturnType<typeof setInterval>;
  private readonly anyway: ReturnType<typeof setTimeout>;

  constructor(
    private readonly socket: SignalSocket,
    private readonly assets: Assets,
    private readonly relay: Relay,
    private readonly output: OutputKind,
    private readonly pictures: { readonly scale: number; readonly lr_pixels: number },
    private readonly maxRungs: ReadonlyMap<string, Rung>,
    ice: IceServers,
  ) {
    this.ice = new IceAccess(ice);
    relay.onLost.add(this.relayLost);
    this.pc = new RTCPeerConnection({ bundlePolicy: "max-bundle", iceServers: ice.servers });
    this.pc.createDataChannel("ctl"); // so that the offer has an m-line for the server's channel
    this.pc.ondatachannel = ({ channel }) => {
      if (channel.label !== ANCHORS_LABEL) return;
      channel.binaryType = "arraybuffer";
      channel.onmessage = ({ data }) => this.route(data);
    };
    this.pc.onconnectionstatechange = () => this.watch();
    this.anyway = setTimeout(() => {
      if (this.pc.signalingState === "stable" && this.pc.remoteDescription === null) this.renegotiate();
    }, ANYWAY_MS);
    this.looks = setInterval(() => {
      for (const publication of this.publications) void publication.look(this.pc).catch(() => undefined);
    }, 1000 / LOOKS_A_SECOND);
  }

  /** Begins to send a track. */
  publish(publication: Publication): Promise<void> {
    this.publications.add(publication);
    publication.attach({ pc: this.pc, relay: this.relay, assets: this.assets, scale: this.pictures.scale });
    return this.negotiate();
  }

  /** Ends sending a track. */
  unpublish(publication: Publication): Promise<void> {
    this.publications.delete(publication);
    publication.detach(this.pc);
    return this.negotiate();
  }

  /** Sections of the next offer in which one sends. */
  get sections(): number {
    return this.publications.size;
  }

  /** Begins to receive a track. */
  subscribe(info: TrackInfo): RemoteTrack {
    const slot = this.freeSlot(info.kind);
    slot.track =
      slot.receiver === null
        ? {
            kind: "audio",
            id: info.id,
            participant: info.participant,
            name: info.name,
            muted: info.muted,
            track: slot.transceiver.receiver.track,
            replaces: null,
          }
        : new EnhancedTrack(info, slot.receiver);
    slot.transceiver.direction = "recvonly";
    this.renegotiate();
    return slot.track;
  }

  /** Ends receiving a track. */
  unsubscribe(id: string): void {
    for (const slot of this.slots) {
      if (slot.track?.id !== id) continue;
      slot.track = null;
      slot.receiver?.carry(null);
      slot.transceiver.direction = "inactive";
    }
    this.renegotiate();
  }

  /** The tracks that are received. */
  tracks(): RemoteTrack[] {
    return this.slots.flatMap((slot) => (slot.track === null ? [] : [slot.track]));
  }

  /** The browser's statistics. */
  stats(): Promise<RTCStatsReport> {
    return this.pc.getStats();
  }

  /** Negotiates nothing any more: what is sent and received stays as it is. */
  freeze(): void {
    this.frozen = true;
    clearTimeout(this.restart);
    this.restart = undefined;
  }

  /** Changes count again. */
  thaw(): void {
    this.frozen = false;
    this.renegotiate();
  }

  /** The server's id of what is sent by this connection. */
  idOf(publication: Publication): string | null {
    return publication.idAt(this.pc);
  }

  /** Ends everything. */
  close(): void {
    this.closed = true;
    this.onLost = null;
    this.relay.onLost.delete(this.relayLost);
    clearTimeout(this.timer);
    clearTimeout(this.restart);
    clearInterval(this.looks);
    clearTimeout(this.anyway);
    for (const slot of this.slots) slot.receiver?.close();
    for (const publication of this.publications) publication.detach(this.pc);
    this.pc.close();
  }

  /** Resolves when the server knows of every change made so far. */
  async settled(): Promise<void> {
    while (this.negotiating !== null) await this.negotiating.catch(() => undefined);
  }

  private freeSlot(kind: "audio" | "video"): Slot {
    // One whose frames do not pass through the relay would keep its track plain.
    const fits = ({ receiver }: Slot) => receiver === null || receiver.passes || !this.relay.works;
    const free = this.slots.find((slot) => slot.kind === kind && slot.track === null && fits(slot));
    if (free !== undefined) return free;
    const { scale, lr_pixels } = this.pictures;
    const receiver =
      kind === "video" ? new VideoReceiver(this.pc, this.assets, this.relay, this.output, scale, lr_pixels) : null;
    const transceiver = receiver?.transceiver ?? this.pc.addTransceiver("audio", { direction: "recvonly" });
    const slot: Slot = { kind, transceiver, receiver, track: null };
    this.slots.push(slot);
    return slot;
  }

  /** Marks the connection as due; resolves when the server has answered an offer that holds the change. */
  private negotiate(): Promise<void> {
    this.due = true;
    this.negotiating ??= this.run().finally(() => {
      this.negotiating = null;
    });
    return this.negotiating;
  }

  /** Negotiates for nobody who waits: `onLost` tells of a failure. */
  private renegotiate(): void {
    this.negotiate().catch(() => undefined);
  }

  private async run(): Promise<void> {
    await Promise.resolve(); // takes in what else changes in this turn
    while (this.due && !this.closed && !this.frozen) {
      const wait = this.pace.wait(performance.now());
      if (wait > 0) {
        await new Promise((resolve) => setTimeout(resolve, wait));
        continue;
      }
      this.due = false;
      try {
        await this.offer();
        this.refusals = 0;
      } catch (error) {
        if (this.closed || this.frozen) return;
        if (error instanceof WindlassError && error.code === "rate_limited") {
          this.pace.slow(performance.now());
          this.due = true;
          continue;
        }
        if (error instanceof WindlassError && error.code === "unknown_track" && this.refusals < MAX_REFUSALS) {
          // The track went away while we asked for it; its removal is on the way.
          this.refusals++;
          this.due = true;
          await new Promise((resolve) => setTimeout(resolve, 100));
          continue;
        }
        const cause =
          error instanceof WindlassError ? error : new WindlassError("media_failed", String(error), "Reload the page.");
        this.lose(cause);
        throw cause;
      }
    }
  }

  private async offer(): Promise<void> {
    // What changes while the browser writes the offer is not in it, and must not be in the lists either.
    const wanted = this.slots.map(({ transceiver, track }) => ({ transceiver, track }));
    await this.pc.setLocalDescription();
    if (this.frozen) return;
    const sdp = this.pc.localDescription?.sdp ?? "";
    const publish = [...this.publications].flatMap((publication) => publication.entry(this.pc) ?? []);
    const subscribe = wanted.flatMap(({ transceiver: { mid }, track }): SubscribeEntry[] => {
      if (track === null || mid === null) return [];
      const max = this.maxRungs.get(track.id);
      return [{ mid, track: track.id, ...(max === undefined ? {} : { max }) }];
    });
    this.pace.spend(performance.now(), sdp.length);
    try {
      const answer = await this.socket.request({ type: "offer", sdp, publish, subscribe });
      if (this.closed) return;
      await this.pc.setRemoteDescription({ type: "answer", sdp: asWished(answer.sdp, this.redundant()) });
      if (this.frozen) return;
      for (const publication of this.publications) {
        const id = answer.tracks.find((t) => t.mid === publication.mid(this.pc))?.track;
        if (id !== undefined) publication.setId(this.pc, id);
      }
    } catch (error) {
      if (!this.closed && this.pc.signalingState === "have-local-offer") {
        await this.pc.setLocalDescription({ type: "rollback" });
      }
      throw error;
    }
    if (this.pc.connectionState !== "connected" && this.timer === undefined) this.expect(CONNECT_MS);
  }

  /** The sections of publications that repeat their packets. */
  private redundant(): Set<string> {
    const mids = [...this.publications].map((publication) =>
      publication.redundancy ? publication.mid(this.pc) : null,
    );
    return new Set(mids.filter((mid) => mid !== null));
  }

  /** The ids of own tracks become known by their announcement where the answer does not name them. */
  learnOwn(info: TrackInfo): void {
    for (const publication of this.publications) {
      const { kind, name } = publication;
      if (publication.idAt(this.pc) === null && kind === info.kind && name === info.name) {
        publication.setId(this.pc, info.id);
        return;
      }
    }
  }

  private route(data: unknown): void {
    if (!(data instanceof ArrayBuffer)) return;
    const header = parseAnchorHeader(data);
    if (header === null) return;
    for (const { track } of this.slots) {
      if (track?.kind === "video" && track.stream === header.stream) {
        track.anchor(data);
        return;
      }
    }
  }

  private watch(): void {
    switch (this.pc.connectionState) {
      case "connected":
        clearTimeout(this.timer);
        clearTimeout(this.restart);
        [this.timer, this.restart] = [undefined, undefined];
        this.wasUp = true;
        this.onUp?.();
        break;
      case "disconnected":
      case "failed":
        if (this.frozen) this.lose(mediaFailed());
        else if (this.wasUp && this.restart === undefined) this.recover();
        else if (!this.wasUp && this.pc.connectionState === "failed") this.lose(mediaFailed());
        break;
    }
  }

  /**
   * The path has gone: another is looked for while the old one may come back, and with it everything else goes on. A
   * restart that fails is tried again, until the connection counts as lost.
   */
  private recover(): void {
    this.expect(AWAY_MS);
    const backoff = new Backoff(...RESTART_MS);
    const isOver = () => this.closed || this.pc.connectionState === "connected";
    const again = async () => {
      if (isOver()) return;
      this.restart = setTimeout(again, backoff.next());
      if (this.ice.endsSoon()) await this.ice.renewed(() => this.socket.send({ type: "ice_servers" }));
      if (isOver()) return;
      this.pc.restartIce();
      this.renegotiate();
    };
    void again();
  }

  /** From the next restart on, these servers help. */
  setIceServers(ice: IceServers): void {
    if (this.closed) return;
    this.pc.setConfiguration({ ...this.pc.getConfiguration(), iceServers: ice.servers });
    this.ice.renew(ice);
  }

  /** The connection must be there within `ms`, or it counts as lost. */
  private expect(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (this.pc.connectionState !== "connected") this.lose(mediaFailed());
    }, ms);
  }

  private readonly relayLost = (): void => this.lose(mediaFailed());

  private lose(error: WindlassError): void {
    const { onLost } = this;
    this.onLost = null;
    onLost?.(error);
  }
}

function mediaFailed(): WindlassError {
  return new WindlassError(
    "media_failed",
    "Sound and picture cannot reach the server.",
    "Check your connection, or try another network.",
  );
}
