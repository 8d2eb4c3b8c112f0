/** The public entry of the SDK: one participant's view of a room. The call behind it is in `call.ts`. */

import type { NetworkTier } from "../worker/network-choice.js";
import { type Assets, type Files, filesOf } from "./assets.js";
import { Backoff } from "./backoff.js";
import { Call, type CallRequest } from "./call.js";
import { Connection } from "./connection.js";
import { Emitter } from "./emitter.js";
import { noCodec, notConnected, notGranted } from "./errors.js";
import type { RoomEvents } from "./events.js";
import { Moderation } from "./moderation.js";
import { NetworkLimit } from "./network-limit.js";
import type { NetworkBackend, OutputKind } from "./output.js";
import type { Grant, ParticipantInfo, Rung, WaitingInfo } from "./protocol.js";
import { type DetailChoice, type Layers, Publication } from "./publication.js";
import { vp9Preferences } from "./receiver.js";
import { Relay } from "./relay.js";
import { Servers } from "./servers.js";
import { Session, type SessionRequest, type Transports } from "./session.js";
import { followShowing } from "./showing.js";
import type { EnhancedTrack, RemoteTrack } from "./tracks.js";
import { warmUpDecoder } from "./warm-up.js";

/** Max size in {@link TrackView}, device pixels: what the server takes. */
const MAX_VIEW_PIXELS = 65_535;

/** Options of {@link Room.join}. */
export interface JoinOptions {
  /** URL of the server's WebSocket, such as `wss://calls.example/ws`. */
  url: string;
  /** Name of the room. */
  room: string;
  /** The name that the others see. */
  name: string;
  /** Joins a private loopback room: this participant receives its own tracks as others would. Default: false. */
  loopback?: boolean;
  /** The access token, where the server needs one. A function is called at every attempt to connect. */
  token?: string | (() => string | Promise<string>);
  /** URLs of the SDK's files, where a page keeps them elsewhere. */
  assets?: Assets;
  /**
   * The largest network that may run on every frame: `xs`, `xxs` or `none`. The machine's speed and battery decide which
   * one does, and whether in the decoder or on the GPU; none does in a hidden page. Default: `xs`.
   */
  maxNetwork?: NetworkTier;
  /** What runs it. Default: `auto`. For tests. */
  networkBackend?: NetworkBackend;
  /** How pictures leave the worker. Default: `auto`. For tests. */
  output?: OutputKind;
  /**
   * Called when this participant is put into the lobby. `join` then resolves on admission, or rejects with `refused`.
   */
  waiting?: () => void;
  /** Aborts the attempt to join, the wait in the lobby included; `join` rejects with `left`. */
  signal?: AbortSignal;
  /** Max attempts to reconnect. Default: 12, somewhat more than a minute. */
  attempts?: number;
}

/** Options of {@link Room.publish}. */
export interface PublishOptions {
  /** The simulcast layers of video. Default: `qhf`. Up to 150 kbit/s for `q`, 500 for `h`, 1500 for `f`. */
  layers?: Layers;
  /**
   * `ask`: full-size stills of a camera, whole or in tiles, are sent when the server asks for them. Set it only with the
   * person's consent. Default: `off`.
   */
  detail?: DetailChoice;
  /**
   * Audio only: each packet repeats the one before (RED), so that single losses are not heard, at twice the bitrate.
   * For uplinks with losses and spare bandwidth. Default: false.
   */
  redundancy?: boolean;
  /** The name of the track that the others see. Default: `camera` or `microphone`. */
  name?: string;
}

/** How a remote track is shown. */
export interface TrackView {
  /** Width on the screen, device pixels; 0: not visible, so the server does not send it. */
  width: number;
  /** Height on the screen, device pixels; 0: not visible, so the server does not send it. */
  height: number;
  /** Whether the track has priority over the others. Default: false. */
  pinned?: boolean;
}

/**
 * A room that this participant is in.
 *
 * It reconnects by itself when the socket or the media path is lost: remote tracks are removed and announced again,
 * publications are sent again. When the room migrates to another server, the client joins the new server before it
 * leaves the old one: each remote track is succeeded by a new one, see {@link RemoteTrack.replaces}.
 */
export class Room extends Emitter<RoomEvents> {
  /**
   * What a moderator may do to others. Needs the grant `moderate`; rejects with `connection_lost` without a connection.
   */
  readonly moderate = new Moderation(
    (request) => this.call.session?.moderate(request) ?? Promise.reject(notConnected()),
  );
  private readonly servers: Servers;
  private readonly files: Files;
  private readonly relay: Relay;
  private readonly networks: NetworkLimit;
  private readonly call: Call;

  /**
   * Joins a room. Tracks that exist already are announced after the caller's current task, so that listeners that are
   * set right after `await Room.join(…)` receive them.
   *
   * Rejects with a {@link WindlassError}. Frequent codes: `unreachable` (no server answers within 8 s), `no_codec` (no
   * VP9), `unauthorized` (token), `room_full`, `refused` (by a moderator), `left` (aborted by `signal`).
   */
  static async join(options: JoinOptions): Promise<Room> {
    if (
      typeof RTCPeerConnection === "undefined" ||
      vp9Preferences(RTCRtpReceiver.getCapabilities("video")?.codecs ?? []).length === 0
    ) {
      throw noCodec();
    }
    const room = new Room(options);
    void warmUpDecoder(room.files, room.relay);
    await room.call.start();
    return room;
  }

  private constructor(private readonly options: JoinOptions) {
    super();
    this.servers = new Servers(options.url);
    this.files = filesOf(options.assets ?? {}, options.url, document.baseURI);
    this.networks = new NetworkLimit(options.maxNetwork ?? "xs");
    this.relay = new Relay(this.files.worker);
    this.call = new Call({
      servers: this.servers,
      backoff: new Backoff(),
      maxAttempts: options.attempts,
      join: async (servers, request) => Session.join(servers, await this.request(request), this.transports),
      emit: (name, value) => this.emit(name, value),
      release: () => {
        this.relay.close();
        this.networks.close();
      },
    });
  }

  /** The participant that speaks, or spoke last; null before the first, and where it is this participant. */
  get speaker(): ParticipantInfo | null {
    return this.call.session?.speaker ?? null;
  }

  /** This participant's id. It changes when the call reconnects or migrates. */
  get participant(): string {
    return this.call.participant;
  }

  /** Whether this participant receives its own tracks. */
  get loopback(): boolean {
    return this.options.loopback ?? false;
  }

  /** The operator's latency budget for anchors, milliseconds; 0 without a connection. */
  get budgetMs(): number {
    return this.call.session?.welcome.budget_ms ?? 0;
  }

  /** The other participants; empty without a connection. */
  get participants(): ParticipantInfo[] {
    return this.call.session?.participants ?? [];
  }

  /** This participant's identity, from its access token; empty where the server needs none. */
  get identity(): string {
    return this.call.session?.welcome.identity ?? "";
  }

  /** Whether the access token allows it. Without a token all is allowed but `admin` and `moderate`. */
  may(grant: Grant): boolean {
    return this.call.session?.may(grant) ?? (grant !== "admin" && grant !== "moderate");
  }

  /** Whether the room is locked for newcomers, and whether newcomers wait in a lobby. */
  get door(): { locked: boolean; lobby: boolean } {
    return this.call.session?.door ?? { locked: false, lobby: false };
  }

  /** The participants in the lobby. Empty unless this participant is a moderator. */
  get waiting(): readonly WaitingInfo[] {
    return this.call.session?.waiting ?? [];
  }

  /** The remote tracks; empty without a connection. */
  get tracks(): RemoteTrack[] {
    return this.call.session?.tracks ?? [];
  }

  /** The tracks that this participant sends. */
  get published(): Publication[] {
    return [...this.call.publications];
  }

  /**
   * Sends tracks, with the same options for each. Resolves when the server has accepted them; without a connection at
   * once, and the tracks are sent when it is back. Rejects with a {@link WindlassError}: `forbidden` without the grant
   * `publish`.
   */
  async publish(
    source: MediaStream | MediaStreamTrack | readonly MediaStreamTrack[],
    options: PublishOptions = {},
  ): Promise<Publication[]> {
    if (!this.may("publish")) throw notGranted();
    const tracks =
      source instanceof MediaStream ? source.getTracks() : source instanceof MediaStreamTrack ? [source] : source;
    const publications = tracks.map((track) => {
      const name = options.name ?? (track.kind === "audio" ? "microphone" : "camera");
      return new Publication(track, name, options.layers ?? "qhf", options.detail ?? "off", options.redundancy);
    });
    await this.call.publish(publications);
    return publications;
  }

  /** Stops sending a track. It does not stop the `MediaStreamTrack`, which is the caller's. */
  async unpublish(publication: Publication): Promise<void> {
    await this.call.unpublish(publication);
  }

  /**
   * Sends silence or black frames instead of a track, and notifies the others; false ends that. A track that a
   * moderator muted stays muted.
   */
  mute(publication: Publication, muted: boolean): void {
    const { sender } = this.call;
    if (!muted && sender?.isMutedByModerator(publication)) return;
    publication.setMuted(muted);
    sender?.sendMuted(publication);
  }

  /** Caps the rung of a remote track. Holds over reconnects while the track keeps its id. */
  setMaxRung(track: EnhancedTrack | string, rung: Rung): void {
    const id = typeof track === "string" ? track : track.id;
    this.call.maxRungs.set(id, rung);
    // A later subscription carries its cap in its offer; the server may know of this one already.
    this.call.session?.sendMaxRung(id, rung);
  }

  /** Sets how a remote track is shown. The server chooses its layer, and its share of the bandwidth, by that. */
  setView(track: EnhancedTrack | string, view: TrackView): void {
    const id = typeof track === "string" ? track : track.id;
    const pixels = (size: number) => Math.min(MAX_VIEW_PIXELS, Math.max(0, Math.round(size)));
    const { width, height, pinned = false } = view;
    this.call.session?.sendView(id, pixels(width), pixels(height), pinned);
  }

  /**
   * Calls {@link setView} with the size of `element`, now and whenever that changes: 0 while it is scrolled out of
   * sight or the page is hidden. Small pictures then take a small layer, hidden ones nothing. The returned function
   * ends that; the last view stays.
   */
  follow(track: EnhancedTrack | string, element: Element): () => void {
    return followShowing(element, (shown) => this.setView(track, shown));
  }

  /** The browser's statistics of the media connection; null without a connection. */
  async connectionStats(): Promise<RTCStatsReport | null> {
    return (await this.call.session?.stats()) ?? null;
  }

  /** Leaves the room. `disconnected` with the code `left` follows at once; a second call does nothing. */
  leave(): void {
    this.call.leave();
  }

  /** Completes a request of the call by the options. */
  private async request(request: CallRequest): Promise<SessionRequest> {
    const { token, room, name, signal, waiting } = this.options;
    return {
      ...request,
      room,
      name,
      loopback: this.loopback,
      token: typeof token === "function" ? await token() : token,
      signal,
      waiting: () => {
        waiting?.();
        this.emit("waiting", undefined);
      },
    };
  }

  private readonly transports: Transports = {
    // Whether frames can pass through the relay must be known before anything is received.
    ready: () => this.relay.ready(),
    connect: (socket, welcome, maxRungs) => {
      const { files, relay, options } = this;
      const settings = {
        output: options.output ?? "auto",
        networks: this.networks,
        networkBackend: options.networkBackend ?? "auto",
      };
      return new Connection(socket, files, relay, settings, welcome, maxRungs, welcome.ice);
    },
  };
}
