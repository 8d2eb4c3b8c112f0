/**
 * One peer connection to the server: tracks in both directions, and the data channel of anchors.
 *
 * The client always offers. A change marks the connection as due; one negotiation runs at a time. Each offer carries
 * the complete lists of publications and subscriptions.
 */
import { parseAnchorHeader } from "../worker/anchors.js";
import type { Files } from "./assets.js";
import { Backoff } from "./backoff.js";
import { levelOfAmplitude } from "./devices/level.js";
import { mediaFailed, WindlassError } from "./errors.js";
import { IceAccess } from "./ice-access.js";
import { preferAudio } from "./opus.js";
import type { PictureSettings } from "./output.js";
import { OfferPace } from "./pace.js";
import { type PathSign, PathWatch } from "./path-watch.js";
import type { IceServers, Rung, SubscribeEntry, TrackInfo } from "./protocol.js";
import type { Publication } from "./publication.js";
import { VideoReceiver } from "./receiver.js";
import type { Passage, Relay } from "./relay.js";
import { nextSessionState, type SessionState, type SessionStateEvent } from "./session-state.js";
import type { SignalSocket } from "./socket.js";
import { UPLINK_SAMPLE_MS } from "./stills.js";
import { type RemoteTrack, RemoteVideoTrack } from "./tracks.js";
import { capUplink } from "./uplink/cap.js";

const ANCHORS_LABEL = "windlass-anchors";
/**
 * Max outage of the media path before the connection counts as lost, milliseconds. The server waits for 20 s after the
 * last offer.
 */
const MAX_OUTAGE_MS = 14_000;
/** First and longest pause between two ICE restarts during an outage, milliseconds; doubled each time. */
const RESTART_MS = [2500, 5000] as const;
/**
 * Max pause before the first restart where the browser says nothing of an outage, milliseconds: a server that has stood
 * still gets the offers of its clients one after the other.
 */
const MAX_JITTER_MS = 500;
/** Max time from the first answer until the media path is up, milliseconds. */
const CONNECT_TIMEOUT_MS = 15_000;
/**
 * Delay until an offer is made although nothing is sent or received, milliseconds: the server closes sessions without a
 * connection.
 */
const IDLE_OFFER_MS = 5000;
/** Max repetitions of an offer that the server rejected because a track of it had just ended. */
const MAX_REJECTED = 3;
/** Pause before such a repetition, milliseconds. */
const REJECTED_PAUSE_MS = 100;
/** Codes of a refused offer for which the tracks may be the reason that are new in it. */
const REFUSES_TRACKS: ReadonlySet<string> = new Set(["room_full", "too_large", "forbidden", "malformed", "no_codec"]);

/**
 * States of the media path.
 * - `connecting`: it has never been up.
 * - `established`: it is up, or an outage has just begun.
 * - `restarting`: an outage; ICE is restarted again and again.
 */
type PathState = "connecting" | "established" | "restarting";

/** An m-line that carries a remote track, or is free for one. */
interface Slot {
  kind: "audio" | "video";
  transceiver: RTCRtpTransceiver;
  receiver: VideoReceiver | null;
  /** The way of a sound through the relay, where it is encrypted. */
  passage: Passage | null;
  track: RemoteTrack | null;
}

/** A peer connection to the server, and its negotiation. */
export class Connection {
  /** Called once when the media path is lost or negotiation has failed. */
  onLost: ((error: WindlassError) => void) | null = null;
  /** Called when the media path is up. */
  onUp: (() => void) | null = null;
  private readonly pc: RTCPeerConnection;
  private readonly slots: Slot[] = [];
  private readonly publications = new Set<Publication>();
  /** The publications of the latest offer that the server does not know yet. */
  private offered: Publication[] = [];
  /** Why the server has refused a publication. */
  private readonly refusals = new WeakMap<Publication, WindlassError>();
  private due = false;
  private negotiating: Promise<void> | null = null;
  private rejected = 0;
  /** The page's cap on what is sent, kbit/s; null: none. */
  private maxUplinkKbps: number | null = null;
  private state: SessionState = "live";
  private path: PathState = "connecting";
  private readonly ice: IceAccess;
  private readonly pace = new OfferPace();
  private deadline: ReturnType<typeof setTimeout> | undefined;
  private restart: ReturnType<typeof setTimeout> | undefined;
  private readonly watch: PathWatch;
  private readonly uplinkTimer: ReturnType<typeof setInterval>;
  private readonly idleTimer: ReturnType<typeof setTimeout>;

  constructor(
    private readonly socket: SignalSocket,
    private readonly files: Files,
    private readonly relay: Relay,
    private readonly settings: PictureSettings,
    private readonly pictures: { readonly scale: number; readonly lr_pixels: number },
    private readonly maxRungs: ReadonlyMap<string, Rung>,
    ice: IceServers,
  ) {
    this.ice = new IceAccess(ice);
    this.pc = new RTCPeerConnection({ bundlePolicy: "max-bundle", iceServers: ice.servers });
    relay.onLost.add(this.relayLost);
    // Also so that the offer has an m-line for the server's channel.
    const probe = this.pc.createDataChannel("ctl");
    this.watch = new PathWatch(this.pc, probe, (sign) => this.sensed(sign));
    this.pc.ondatachannel = ({ channel }) => {
      if (channel.label !== ANCHORS_LABEL) return;
      channel.binaryType = "arraybuffer";
      channel.onmessage = ({ data }) => this.route(data);
    };
    this.pc.onconnectionstatechange = () => this.pathChanged();
    this.idleTimer = setTimeout(() => {
      if (this.pc.signalingState === "stable" && this.pc.remoteDescription === null) this.renegotiate();
    }, IDLE_OFFER_MS);
    this.uplinkTimer = setInterval(() => {
      this.shareUplink();
      for (const publication of this.publications) void publication.sampleUplink(this.pc).catch(() => undefined);
    }, UPLINK_SAMPLE_MS);
  }

  /** Sends a track. Resolves when that is negotiated; rejects where the server refuses it, and the rest goes on. */
  async publish(publication: Publication): Promise<void> {
    this.refusals.delete(publication);
    this.publications.add(publication);
    this.shareUplink();
    const { pc, relay, files, pictures } = this;
    publication.attach({ pc, relay, files, scale: pictures.scale, offer: () => this.renegotiate() });
    await this.negotiate();
    const refusal = this.refusals.get(publication);
    if (refusal !== undefined) throw refusal;
  }

  /** Stops sending a track. Resolves when that is negotiated. */
  async unpublish(publication: Publication): Promise<void> {
    if (this.remove(publication)) await this.negotiate();
  }

  /** False where it is removed already, as the server has refused it. */
  private remove(publication: Publication): boolean {
    if (!this.publications.delete(publication)) return false;
    publication.detach(this.pc);
    this.shareUplink();
    return true;
  }

  /** Caps what is sent, kbit/s; null: no cap. */
  setMaxUplink(kbps: number | null): void {
    if (kbps === this.maxUplinkKbps) return;
    this.maxUplinkKbps = kbps;
    this.shareUplink();
    if (this.publications.size > 0) this.renegotiate();
  }

  /** Gives each video its share of the cap. */
  private shareUplink(): void {
    const videos = [...this.publications].filter(({ kind, idle }) => kind === "video" && !idle);
    const share = this.maxUplinkKbps === null ? null : this.maxUplinkKbps / videos.length;
    for (const publication of videos) publication.setMaxKbps(share);
  }

  /** The number of sections that publications take in an offer. */
  get sections(): number {
    return this.publications.size;
  }

  /** Subscribes to a track. */
  subscribe(info: TrackInfo): RemoteTrack {
    const slot = this.freeSlot(info.kind);
    const { receiver } = slot.transceiver;
    slot.track =
      slot.receiver === null
        ? {
            kind: "audio",
            id: info.id,
            participant: info.participant,
            name: info.name,
            muted: info.muted,
            track: receiver.track,
            get level() {
              return levelOfAmplitude(receiver.getSynchronizationSources()[0]?.audioLevel ?? 0);
            },
            replaces: null,
          }
        : new RemoteVideoTrack(info, slot.receiver);
    // What cannot be decrypted is not received: for want of a key, or of a relay, whose connection is given up at once.
    const { encrypts } = this.relay;
    const passes = slot.passage !== null || slot.receiver?.passes === true;
    const isReadable = encrypts ? info.encrypted === true && passes : info.encrypted !== true;
    slot.transceiver.direction = isReadable ? "recvonly" : "inactive";
    this.renegotiate();
    return slot.track;
  }

  /** Ends the subscription to a track. */
  unsubscribe(id: string): void {
    for (const slot of this.slots) {
      if (slot.track?.id !== id) continue;
      slot.track = null;
      slot.receiver?.carry(null);
      slot.transceiver.direction = "inactive";
    }
    this.renegotiate();
  }

  /** The received tracks. */
  tracks(): RemoteTrack[] {
    return this.slots.flatMap((slot) => (slot.track === null ? [] : [slot.track]));
  }

  /** The browser's statistics. */
  stats(): Promise<RTCStatsReport> {
    return this.pc.getStats();
  }

  /** Stops negotiating: what is sent and received stays as it is. An outage of the media path is a loss then. */
  freeze(): void {
    this.apply("freeze");
    clearTimeout(this.restart);
    if (this.path === "restarting") this.path = "established";
  }

  /** Ends {@link freeze}, and negotiates what has changed meanwhile. */
  thaw(): void {
    this.apply("thaw");
    this.renegotiate();
    const { connectionState } = this.pc;
    const isDown = connectionState === "disconnected" || connectionState === "failed";
    if (isDown && this.path === "established") this.recover();
  }

  /** The server's id of a publication; null while it is not known. */
  idOf(publication: Publication): string | null {
    return publication.idAt(this.pc);
  }

  /** Stops sending and receiving. */
  close(): void {
    this.apply("close");
    this.onLost = null;
    this.relay.onLost.delete(this.relayLost);
    clearTimeout(this.deadline);
    clearTimeout(this.restart);
    this.watch.close();
    clearInterval(this.uplinkTimer);
    clearTimeout(this.idleTimer);
    for (const slot of this.slots) {
      slot.receiver?.close();
      slot.passage?.close();
    }
    for (const publication of this.publications) publication.detach(this.pc);
    this.pc.close();
  }

  /** Resolves when every change so far is negotiated. */
  async settled(): Promise<void> {
    while (this.negotiating !== null) await this.negotiating.catch(() => undefined);
  }

  private apply(event: SessionStateEvent): void {
    this.state = nextSessionState(this.state, event);
  }

  private freeSlot(kind: "audio" | "video"): Slot {
    // A receiver whose frames bypass the relay could not enhance its track.
    const fits = ({ receiver }: Slot) => receiver === null || receiver.passes || !this.relay.works;
    const free = this.slots.find((slot) => slot.kind === kind && slot.track === null && fits(slot));
    if (free !== undefined) return free;
    const { scale, lr_pixels } = this.pictures;
    const receiver =
      kind === "video" ? new VideoReceiver(this.pc, this.files, this.relay, this.settings, scale, lr_pixels) : null;
    const transceiver = receiver?.transceiver ?? this.pc.addTransceiver("audio", { direction: "recvonly" });
    const passage = this.relay.encrypts && receiver === null ? this.relay.pass(transceiver.receiver) : null;
    const slot: Slot = { kind, transceiver, receiver, passage, track: null };
    this.slots.push(slot);
    return slot;
  }

  /** Marks the connection as due. Resolves when the server has answered an offer with the change. */
  private negotiate(): Promise<void> {
    this.due = true;
    this.negotiating ??= this.run().finally(() => {
      this.negotiating = null;
    });
    return this.negotiating;
  }

  /** Negotiates without a result: a failure calls `onLost`. */
  private renegotiate(): void {
    this.negotiate().catch(() => undefined);
  }

  private async run(): Promise<void> {
    await Promise.resolve(); // so that further changes of this task are in the same offer
    while (this.due && this.state === "live") {
      const wait = this.pace.wait(performance.now());
      if (wait > 0) {
        await new Promise((resolve) => setTimeout(resolve, wait));
        continue;
      }
      this.due = false;
      try {
        await this.offer();
        this.rejected = 0;
      } catch (error) {
        if (!this.isLive) return;
        if (error instanceof WindlassError && error.code === "rate_limited") {
          this.pace.slow(performance.now());
          this.due = true;
          continue;
        }
        if (error instanceof WindlassError && error.code === "unknown_track" && this.rejected < MAX_REJECTED) {
          // A track of the offer has just ended; `track_removed` follows.
          this.rejected++;
          this.due = true;
          await new Promise((resolve) => setTimeout(resolve, REJECTED_PAUSE_MS));
          continue;
        }
        if (error instanceof WindlassError && REFUSES_TRACKS.has(error.code) && this.withdraw(error)) continue;
        const cause = error instanceof WindlassError ? error : negotiationFailed(error);
        this.lose(cause);
        throw cause;
      }
    }
  }

  /**
   * Gives up what was new in a refused offer, first of all backups; what the server knows goes on. False: there is
   * nothing else to offer than before.
   */
  private withdraw(refusal: WindlassError): boolean {
    const offered = this.offered.splice(0);
    const backups = offered.filter(({ backupOf }) => backupOf !== null);
    for (const publication of backups.length > 0 ? backups : offered) {
      this.refusals.set(publication, refusal);
      if (this.remove(publication)) this.due = true;
    }
    return this.due;
  }

  private async offer(): Promise<void> {
    // Changes during `setLocalDescription` are not in the offer, so they must not be in its lists.
    const wanted = this.slots.map(({ transceiver, track }) => ({ transceiver, track }));
    await this.pc.setLocalDescription();
    if (!this.isLive) return;
    const sdp = this.pc.localDescription?.sdp ?? "";
    const publish = [...this.publications].flatMap((publication) => publication.entry(this.pc) ?? []);
    this.offered = [...this.publications].filter((p) => p.mid(this.pc) !== null && p.idAt(this.pc) === null);
    const subscribe = wanted.flatMap(({ transceiver: { mid, direction }, track }): SubscribeEntry[] => {
      if (track === null || mid === null || direction === "inactive") return [];
      const max = this.maxRungs.get(track.id);
      return [{ mid, track: track.id, ...(max === undefined ? {} : { max }) }];
    });
    this.pace.spend(performance.now(), sdp.length);
    try {
      const answer = await this.socket.request({ type: "offer", sdp, publish, subscribe });
      if (this.isClosed) return;
      const capped = capUplink(preferAudio(answer.sdp, this.redundantMids()), this.maxUplinkKbps);
      await this.pc.setRemoteDescription({ type: "answer", sdp: capped });
      if (!this.isLive) return;
      for (const publication of this.publications) {
        const id = answer.tracks.find((t) => t.mid === publication.mid(this.pc))?.track;
        if (id !== undefined) publication.setId(this.pc, id);
      }
    } catch (error) {
      if (!this.isClosed && this.pc.signalingState === "have-local-offer") {
        await this.pc.setLocalDescription({ type: "rollback" });
      }
      throw error;
    }
    if (this.pc.connectionState !== "connected" && this.deadline === undefined) this.expectUp(CONNECT_TIMEOUT_MS);
  }

  // Getters, as the state changes during an `await`.
  private get isLive(): boolean {
    return this.state === "live";
  }

  private get isClosed(): boolean {
    return this.state === "closed";
  }

  /** The `mid`s of publications with redundancy (RED). */
  private redundantMids(): Set<string> {
    const mids = [...this.publications].map((publication) =>
      publication.redundancy ? publication.mid(this.pc) : null,
    );
    return new Set(mids.filter((mid) => mid !== null));
  }

  /** Takes the id of a publication from its announcement, where the answer did not give it. */
  learnOwn(info: TrackInfo): void {
    for (const publication of this.publications) {
      const { kind, name, backupOf } = publication;
      if (backupOf === null && publication.idAt(this.pc) === null && kind === info.kind && name === info.name) {
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

  private pathChanged(): void {
    switch (this.pc.connectionState) {
      case "connected":
        // After an outage the browser says so before media comes: the path is up with the first packet.
        if (this.path !== "restarting") this.up();
        break;
      case "disconnected":
      case "failed":
        if (this.state === "frozen") this.lose(mediaFailed());
        else if (this.path === "established") this.recover();
        else if (this.path === "connecting" && this.pc.connectionState === "failed") this.lose(mediaFailed());
        break;
    }
  }

  private up(): void {
    clearTimeout(this.deadline);
    clearTimeout(this.restart);
    this.deadline = undefined;
    this.path = "established";
    this.onUp?.();
  }

  /** Takes what the path's packets show while the browser still says, or says again, that it is connected. */
  private sensed(sign: PathSign): void {
    if (this.state !== "live" || this.pc.connectionState !== "connected") return;
    if (sign === "silent" && this.path === "established") this.recover(MAX_JITTER_MS * Math.random());
    else if (sign === "heard" && this.path === "restarting") this.up();
  }

  /**
   * Restarts ICE until the path is up, or the outage has lasted too long; for the first time in `ms`. The old path may
   * come back meanwhile.
   */
  private recover(ms = 0): void {
    this.path = "restarting";
    this.expectUp(MAX_OUTAGE_MS);
    const backoff = new Backoff(...RESTART_MS);
    const isOver = () => this.isClosed || this.path !== "restarting";
    const again = async () => {
      if (isOver()) return;
      this.restart = setTimeout(again, backoff.next());
      // While the server has not answered the former offer, another one could only add to its work.
      if (backoff.attempts > 1 && this.negotiating !== null) return;
      if (this.ice.expireSoon()) await this.ice.renewed(() => this.socket.send({ type: "ice_servers" }));
      if (isOver()) return;
      this.pc.restartIce();
      this.renegotiate();
    };
    if (ms > 0) this.restart = setTimeout(again, ms);
    else void again();
  }

  /** Sets the ICE servers of the next restart. Those that the browser does not take change nothing. */
  setIceServers(ice: IceServers): void {
    if (this.isClosed) return;
    try {
      this.pc.setConfiguration({ ...this.pc.getConfiguration(), iceServers: ice.servers });
    } catch (error) {
      console.warn(`Windlass: the server's new ICE servers cannot be used. ${error}`);
    }
    this.ice.renew(ice);
  }

  /** Counts the connection as lost unless the path is up within `ms`. */
  private expectUp(ms: number): void {
    clearTimeout(this.deadline);
    this.deadline = setTimeout(() => {
      if (this.path !== "established" || this.pc.connectionState !== "connected") this.lose(mediaFailed());
    }, ms);
  }

  private readonly relayLost = (): void => this.lose(mediaFailed());

  private lose(error: WindlassError): void {
    const { onLost } = this;
    this.onLost = null;
    onLost?.(error);
  }
}

function negotiationFailed(error: unknown): WindlassError {
  return new WindlassError("media_failed", `Negotiating the media connection failed: ${error}`, "Reload the page.");
}
