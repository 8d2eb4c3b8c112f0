/** One participant's view of a room. The call behind it is in `call.ts`. */

import { tokenOf } from "./access-token.js";
import { type Files, filesOf } from "./assets.js";
import { Backoff } from "./backoff.js";
import { Call, type CallRequest } from "./call.js";
import { type CheckOptions, type CheckResult, check } from "./check.js";
import type { VideoCodec } from "./codec.js";
import { Connection } from "./connection.js";
import { DeviceList } from "./devices/device-list.js";
import { deviceError, type InputKind } from "./devices/errors.js";
import { LocalInput, type StartOptions } from "./devices/local-input.js";
import { openBoth, openDevice } from "./devices/open.js";
import { SoundGate } from "./devices/playback.js";
import { Emitter, guarded } from "./emitter.js";
import { Encryption, type EncryptionKey } from "./encryption.js";
import {
  badOption,
  ended,
  left,
  mediaFailed,
  noCodec,
  notConnected,
  notGranted,
  type WindlassError,
} from "./errors.js";
import { type HostEvents, ROOM_EVENTS, type RoomEvents } from "./events.js";
import type { JoinOptions } from "./join.js";
import type { MessageData, ReceivedMessage, SendOptions } from "./message.js";
import { Moderation } from "./moderation.js";
import { NetworkLimit } from "./network-limit.js";
import { finite } from "./option-checks.js";
import type { Participant } from "./participant.js";
import { People } from "./people.js";
import { type Attributes, Profile } from "./profile.js";
import type { ConnectionQuality, Grant, ParticipantInfo, WaitingInfo } from "./protocol.js";
import { type Content, type DetailChoice, type Layers, Publication } from "./publication.js";
import { Relay } from "./relay.js";
import { type ScreenOptions, ScreenShare } from "./screen.js";
import { contentOf } from "./screen-content.js";
import { Servers } from "./servers.js";
import { Session, type SessionRequest, type Transports } from "./session.js";
import { Speakers } from "./speakers.js";
import type { RemoteTrack } from "./tracks.js";
import { videoPreferences } from "./video-codecs.js";
import { warmUpDecoder } from "./warm-up.js";

/** Options of {@link Room.publish}. */
export interface PublishOptions {
  /**
   * The simulcast layers of video. Default: `qhf`, of a screen `qf`. Up to 150 kbit/s for `q`, 500 for `h`, 1500 for
   * `f` and 2500 for that of a screen.
   */
  layers?: Layers;
  /**
   * `ask`: full-size stills of a camera, whole or in tiles, are sent when the server asks for them. Set it only with
   * the person's consent. Default: `off`.
   */
  detail?: DetailChoice;
  /**
   * Audio only: each packet repeats the one before (RED), so that single losses are not heard, at twice the bitrate.
   * For uplinks with losses and spare bandwidth. Default: false.
   */
  redundancy?: boolean;
  /** The name of the track that the others see. Default: `camera`, `microphone`, `screen`. */
  name?: string;
  /**
   * What the video shows: a `screen` has fewer frames and more bits for each. Default: what the browser or the track's
   * `contentHint` tells, else `camera`.
   */
  content?: Content;
  /**
   * The codec of video. Default: VP9, where the browser has it, since the server reads VP9 alone; else VP8, H.264 or
   * AV1.
   */
  codec?: VideoCodec;
  /**
   * Whether the video is sent in a second codec too, while there are viewers who cannot decode the first one. It takes
   * CPU time and uplink bandwidth of its own. Without it they get no picture. Default: true, but for encrypted calls.
   */
  backupCodec?: boolean;
}

/** The tracks of what a page gives. They may be of another document, such as that of a frame. */
function tracksOf(source: unknown): readonly MediaStreamTrack[] {
  const isTrack = (item: unknown): item is MediaStreamTrack =>
    typeof item === "object" && item !== null && "kind" in item;
  const tracks = source instanceof MediaStream ? source.getTracks() : isTrack(source) ? [source] : source;
  if (Array.isArray(tracks) && tracks.every(isTrack)) return tracks;
  throw badOption("There is no track to send.", "Give a MediaStream, a MediaStreamTrack or a list of tracks.");
}

/**
 * A room that this participant is in.
 *
 * It reconnects by itself when the socket or the media path is lost: remote tracks are removed and announced again,
 * publications are sent again. When the room migrates to another server, the client joins the new server before it
 * leaves the old one: each remote track is succeeded by a new one, see {@link RemoteVideoTrack.replaces}.
 */
export class Room extends Emitter<RoomEvents> {
  /**
   * What a moderator may do to others. Needs the grant `moderate`; rejects with `connection_lost` without a connection,
   * and with `ended` after the call.
   */
  readonly moderate = new Moderation(
    (request) => this.call.session?.moderate(request) ?? Promise.reject(this.over ? ended() : notConnected()),
  );
  /** The cameras, microphones and loudspeakers of this machine. */
  readonly devices = new DeviceList();
  /** This participant's camera. `start()` opens and sends it; `setMuted`, `switchTo` and `flip` change it. */
  readonly camera = this.input("camera");
  /** This participant's microphone. */
  readonly microphone = this.input("microphone");
  /** The sound of the others' elements, which browsers block until the person has clicked on the page. */
  readonly sound = new SoundGate();
  /** What this participant shares. */
  private share: ScreenShare | null = null;
  /** Whether the call is over. */
  private over = false;
  /** The media connection of the latest session. */
  private connection: Connection | null = null;
  private maxUplinkKbps: number | null = null;
  private ownQuality: ConnectionQuality | null = null;
  /** Camera and microphone, where they were opened at once. */
  private both: Promise<MediaStream | null> = Promise.resolve(null);
  private readonly servers: Servers;
  private readonly files: Files;
  private readonly relay: Relay;
  private readonly networks: NetworkLimit;
  private readonly call: Call;
  private readonly people: People;
  private readonly profile: Profile;
  private readonly heard: Speakers;

  /** See `join`. @internal */
  static async enter(url: string, options: JoinOptions): Promise<Room> {
    if (
      typeof RTCPeerConnection === "undefined" ||
      videoPreferences(RTCRtpReceiver.getCapabilities("video")?.codecs ?? []).length === 0
    ) {
      throw noCodec();
    }
    const encryption = options.encryption === undefined ? null : new Encryption();
    if (options.encryption !== undefined) await encryption?.add(options.encryption);
    const room = new Room(url, options, encryption);
    void warmUpDecoder(room.files, room.relay);
    await room.call.start(options.signal);
    // It may have been aborted while the socket was being opened, when nobody listened.
    if (options.signal?.aborted === true) {
      room.leave();
      throw left();
    }
    room.startInputs();
    return room;
  }

  /** Starts the inputs that the options ask for. The event `refused` reports a failure: the call goes on without. */
  private startInputs(): void {
    const { camera = false, microphone = false } = this.options;
    const of = (choice: boolean | StartOptions): StartOptions => (typeof choice === "boolean" ? {} : choice);
    // Listeners are set in the task that called `join`.
    const refused = (failure: WindlassError) => setTimeout(() => this.emit("refused", failure), 0);
    if (!this.may("publish")) {
      // Nobody is asked for what could not be sent.
      if (camera !== false || microphone !== false) refused(notGranted());
      return;
    }
    const given = of(camera).track !== undefined || of(microphone).track !== undefined;
    if (camera !== false && microphone !== false && of(camera).muted !== true && !given) {
      this.both = openBoth(of(camera), of(microphone));
    }
    const start = async (input: LocalInput, choice: boolean | StartOptions) => {
      if (choice === false) return;
      try {
        await input.start(of(choice));
      } catch (error) {
        const failure = deviceError(error, [input.kind]);
        if (failure.code !== "aborted" && !this.over) refused(failure);
      }
    };
    const started = Promise.all([start(this.camera, camera), start(this.microphone, microphone)]);
    // What was opened and not taken, as its input was stopped meanwhile, must not stay open.
    void started.then(async () => {
      for (const track of (await this.both)?.getTracks() ?? []) track.stop();
      this.both = Promise.resolve(null);
    });
  }

  private input(kind: InputKind): LocalInput {
    return new LocalInput({
      kind,
      devices: this.devices,
      isOver: () => this.over,
      open: async (source, onlyFacing) => (await this.opened(kind)) ?? openDevice(kind, source, onlyFacing),
      publish: (track, options) => this.publishOne(track, options),
      unpublish: (publication) => this.unpublish(publication),
      mute: (publication, muted) => this.mute(publication, muted),
      mayUnmute: (publication) => this.call.sender?.isMutedByModerator(publication) !== true,
    });
  }

  /** The track that was opened with that of the other input, once. */
  private async opened(kind: InputKind): Promise<MediaStreamTrack | null> {
    const stream = await this.both;
    const [track] = (kind === "camera" ? stream?.getVideoTracks() : stream?.getAudioTracks()) ?? [];
    if (track === undefined) return null;
    stream?.removeTrack(track);
    return track;
  }

  private constructor(
    url: string,
    private readonly options: JoinOptions,
    private readonly encryption: Encryption | null,
  ) {
    super(ROOM_EVENTS);
    this.servers = new Servers(url);
    this.files = filesOf(options.assets ?? {}, url, document.baseURI);
    this.networks = new NetworkLimit(options.maxNetwork ?? "xs");
    this.relay = new Relay(this.files.worker, encryption);
    this.profile = new Profile(options.name, options.attributes ?? {}, () => this.people.change(this.self));
    this.people = new People({
      self: () => this.self,
      connected: () => this.call.session !== null,
      came: (participant) => this.emit("participant", participant),
      changed: (participant) => this.emit("participantChanged", participant),
      left: (participant) => this.emit("participantLeft", participant),
      outlet: this,
    });
    const { people, microphone } = this;
    this.heard = new Speakers({
      get participants() {
        return people.all;
      },
      microphone,
      changed: () => this.emit("speakers", this.heard.others),
    });
    this.call = new Call({
      servers: this.servers,
      backoff: new Backoff(),
      maxAttempts: options.attempts,
      profile: this.profile,
      join: async (servers, request) => Session.join(servers, await this.request(request), this.transports),
      emit: (name, value) => this.pass(name, value),
      release: () => {
        this.over = true;
        this.heard.read(false);
        this.relay.close();
        this.networks.close();
        this.devices.close();
        this.sound.close();
      },
    });
  }

  /**
   * How well this participant's own connection works, as the server sees it and the others do too: see
   * {@link Participant.quality}. The event `quality` follows a change. null: not known yet, or not now, as there is no
   * connection.
   */
  get quality(): ConnectionQuality | null {
    return this.ownQuality;
  }

  /** The participant that speaks, or spoke last; null before the first, and where it is this participant. */
  get speaker(): Participant | null {
    return this.people.get(this.call.session?.speaker?.id ?? "") ?? null;
  }

  /**
   * The others who are heard now, several at once, the loudest first; in a loopback room also this one. Event
   * `speakers`. Empty while nobody listens to that event: only then levels are read, ten times a second.
   *
   * It rests on {@link Participant.level}, by which the browser tells what it receives and plays: averaged over some
   * tenths of a second, heard from 45 dB below full scale on, until below 50 dB. So it counts any sound, not speech
   * alone, and each page hears for itself; {@link speaker} is the server's word, the same for all.
   */
  get speakers(): readonly Participant[] {
    return this.heard.others;
  }

  /** Whether this participant is heard now, by its {@link microphone}, as {@link speakers} has it of the others. */
  get speaking(): boolean {
    return this.heard.self;
  }

  override on<Name extends keyof RoomEvents>(name: Name, listener: (value: RoomEvents[Name]) => void): () => void {
    const remove = super.on(name, listener);
    const read = () => this.heard.read(!this.over && this.isHeard("speakers"));
    read();
    return () => {
      remove();
      read();
    };
  }

  /** This participant's id. It changes when the call reconnects or migrates. */
  get participant(): string {
    return this.call.participant;
  }

  /** Whether this participant receives its own tracks. */
  get loopback(): boolean {
    return this.options.loopback ?? false;
  }

  /**
   * The other participants, in the order in which they came; in a loopback room also this one, once it sends something.
   * While this page reconnects they are `away`.
   */
  get participants(): Participant[] {
    return this.people.all;
  }

  /** This participant's identity, from its access token; empty where the server needs none. */
  get identity(): string {
    return this.call.session?.welcome.identity ?? "";
  }

  /** The name that this participant says it has; where the access token has one, the others see that. */
  get name(): string {
    return this.profile.wanted.name;
  }

  /** What this participant says of itself, by `join` and {@link setAttributes}. */
  get attributes(): Attributes {
    return this.profile.wanted.attributes;
  }

  private get self(): ParticipantInfo {
    return { id: this.call.participant, name: this.name, attributes: { ...this.attributes } };
  }

  /** Whether the access token allows it. Without a token all is allowed but `admin` and `moderate`. */
  may(grant: Grant): boolean {
    return this.call.session?.may(grant) ?? (grant !== "admin" && grant !== "moderate");
  }

  /** Whether this participant encrypts what it sends end to end, and receives nothing else. */
  get encrypted(): boolean {
    return this.encryption !== null;
  }

  /** Whether the room is recorded now, on the server. The event `recording` tells when that changes. */
  get recording(): boolean {
    return this.call.session?.recording ?? false;
  }

  /** Whether the room is locked for newcomers, and whether newcomers wait in a lobby. */
  get entry(): { locked: boolean; lobby: boolean } {
    return this.call.session?.entry ?? { locked: false, lobby: false };
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
   * `publish`; `room_full`, `too_large` or `malformed` where the server refuses them, and what is sent already goes on;
   * `bad_option`; `ended`.
   */
  async publish(
    source: MediaStream | MediaStreamTrack | readonly MediaStreamTrack[],
    options: PublishOptions = {},
  ): Promise<Publication[]> {
    if (this.over) throw ended();
    if (!this.may("publish")) throw notGranted();
    const wanted: unknown = options;
    if (typeof wanted !== "object" || wanted === null || !["string", "undefined"].includes(typeof options.name)) {
      throw badOption("These are no options.", `Call publish(track, { name: "camera" }), or without options.`);
    }
    const publications = tracksOf(source).map((track) => {
      const content = options.content ?? contentOf(track);
      const name = options.name ?? (track.kind === "audio" ? "microphone" : content);
      const { layers = content === "screen" ? "qf" : "qhf", detail, redundancy, codec, backupCodec } = options;
      if (this.encryption !== null && codec !== undefined && codec !== "vp9")
        throw badOption(`"${codec}" cannot be encrypted end to end.`, 'Leave "codec" out: it is VP9 then.');
      // The server takes packets of RED apart for those who do not want it.
      if (this.encryption !== null && redundancy === true)
        throw badOption("Audio that is sent twice cannot be encrypted end to end.", 'Leave "redundancy" out.');
      return new Publication(track, name, layers, { detail, redundancy, content, codec, backupCodec });
    });
    try {
      await this.call.publish(publications);
    } catch (error) {
      // Else the next connection would send them.
      await Promise.allSettled(publications.map((publication) => this.call.unpublish(publication)));
      throw error;
    }
    return publications;
  }

  /**
   * Shares a screen, a window or a tab, which the person chooses: the tracks `screen` and `screen_audio`, beside the
   * camera. Call it when a button is pressed. Rejects with a {@link WindlassError}: `permission_denied` where nothing
   * was chosen, `forbidden` without the grant `publish`, `unsupported`, `ended`.
   */
  async shareScreen(options: ScreenOptions = {}): Promise<ScreenShare> {
    if (this.over) throw ended();
    if (!this.may("publish")) throw notGranted();
    const publish = (track: MediaStreamTrack, how: PublishOptions) => this.publishOne(track, how);
    const host = { publish, unpublish: (publication: Publication) => this.unpublish(publication) };
    const share = await ScreenShare.start(host, options);
    // The call may have ended while the person chose, or while the offer was on its way.
    if (this.over) {
      await share.stop();
      throw ended();
    }
    // One screen at a time; the former goes on while the person chooses.
    const former = this.share;
    this.share = share;
    await former?.stop();
    return share;
  }

  private async publishOne(track: MediaStreamTrack, options: PublishOptions): Promise<Publication> {
    const [publication] = await this.publish(track, options);
    return publication as Publication;
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

  /**
   * Encrypts by another key from now on: whenever somebody leaves, for one. The key before it still decrypts, as not
   * all participants get the new one at once. The room must have been joined with `encryption`.
   */
  async setEncryptionKey(key: EncryptionKey): Promise<void> {
    if (this.encryption === null)
      throw badOption("This call is not encrypted end to end.", "Join it with the option `encryption`.");
    await this.encryption.add(key);
  }

  /**
   * Caps the bitrate of all that this participant sends, as a narrower link would: layers and stills adapt to it at
   * once. For people who pay for what they send. Kilobits per second; null: no cap, as at the start.
   */
  setMaxUplink(kbps: number | null): void {
    this.maxUplinkKbps = kbps === null ? null : finite("bitrate", kbps, 0);
    this.connection?.setMaxUplink(kbps);
  }

  /**
   * Sends a message to all others in the call, or to those of `to`: a text, or bytes. They get the event `message`.
   * `topic` is the page's own word for what it is about, such as `chat`.
   *
   * Each receiver gets the messages of a sender in the order of the calls, each once, also where a connection is lost
   * or the room moves to another server. Resolves when the server has taken it and sends it to those who are in the
   * call then; nobody gets it later. Without a connection a message waits for it, unless it is not `reliable`.
   *
   * Bounds: 16 KiB; 20 messages or 64 KiB a second, 30 of them at once: more wait, up to 256 or 1 MiB.
   *
   * Rejects with a {@link WindlassError}: `too_large`; `unknown_participant`, if nobody of `to` is in the call;
   * `forbidden` without the grant `data`; `rate_limited`, if too many wait or all in the room send too much;
   * `connection_lost`; the reason of the call's end, after it `ended`; `bad_option`.
   */
  send(topic: string, data: MessageData, options: SendOptions = {}): Promise<void> {
    return this.call.send(topic, data, options);
  }

  /**
   * Says something of this participant to all others, now and later, such as `{ hand: "up" }`; null takes an attribute
   * back, others stay. They read it in {@link Participant.attributes}. It lasts as long as this participant is in the
   * call, also over reconnects and moves to other servers.
   *
   * At most 16 attributes with values of at most 256 bytes, and 4 KiB in all. If they change more often than once a
   * second, the others may see only the latest state.
   *
   * Resolves when the server has notified the others. Rejects with a {@link WindlassError} (`forbidden` without the
   * grant `data`, `too_large`, `bad_option`, `ended`); the attributes are then as before.
   */
  setAttributes(changes: Readonly<Record<string, string | null>>): Promise<void> {
    return this.call.describe(changes);
  }

  /**
   * Changes this participant's name, as {@link setAttributes} does. `forbidden` where the access token has the name.
   */
  setName(name: string): Promise<void> {
    return this.call.describe({}, name);
  }

  /** The browser's statistics of the media connection; null without a connection. */
  async connectionStats(): Promise<RTCStatsReport | null> {
    return (await this.call.session?.stats()) ?? null;
  }

  /**
   * Checks what a call needs, beside this one, with its server and token. See {@link check}. Its camera and microphone
   * are not opened a second time unless `devices` is set.
   */
  async *check(options: Pick<CheckOptions, "devices"> = {}): AsyncGenerator<CheckResult, void, void> {
    const { token, room, assets = {} } = this.options;
    const access = await tokenOf(token).catch(() => undefined);
    yield* check(this.servers.first(1)[0] ?? "", { devices: false, ...options, token: access, room, assets });
  }

  /** Leaves the room. `disconnected` with the code `left` follows at once; a second call does nothing. */
  leave(): void {
    this.call.leave();
  }

  private get inputs(): readonly LocalInput[] {
    return [this.camera, this.microphone];
  }

  /** Passes on an event of the call: participants as lasting objects. */
  private pass<Name extends keyof HostEvents>(name: Name, value: HostEvents[Name]): void {
    const { people } = this;
    switch (name) {
      case "participantJoined":
        people.join(value as HostEvents["participantJoined"]);
        return;
      case "participantChanged":
        people.change(value as HostEvents["participantChanged"]);
        return;
      case "message":
        this.receive(value as HostEvents["message"]);
        return;
      case "participantLeft":
        people.leave((value as HostEvents["participantLeft"]).id);
        return;
      case "speaker": {
        const speaker = people.speaks((value as HostEvents["speaker"]).id);
        if (speaker !== undefined) this.emit("speaker", speaker);
        return;
      }
      case "quality": {
        const { participant: id, quality } = value as HostEvents["quality"];
        const participant = people.quality(id, quality) ?? null;
        if (id === this.self.id) {
          this.ownQuality = quality;
          this.emit("quality", { participant: null, quality });
        }
        if (participant !== null) this.emit("quality", { participant, quality });
        return;
      }
      case "reconnecting":
        this.ownQuality = null;
        break;
      case "trackAdded":
        people.addTrack(value as HostEvents["trackAdded"]);
        break;
      case "trackRemoved":
        people.removeTrack(value as HostEvents["trackRemoved"]);
        break;
      case "trackMuted":
        people.trackMuted((value as HostEvents["trackMuted"]).track);
        break;
      case "reconnected":
        // Who is there is announced in a task of its own, which is due before this one.
        setTimeout(() => people.announced(), 0);
        break;
      case "publicationMuted": {
        const { publication, muted } = value as HostEvents["publicationMuted"];
        for (const input of this.inputs) input.moderated(publication, muted);
        break;
      }
      case "refused":
        this.dropRefused();
        break;
      case "grants":
        if (!this.may("publish")) {
          for (const input of this.inputs) if (input.publication !== null) input.dropped(input.publication);
          void this.share?.stop();
        }
        break;
      case "disconnected":
        people.end();
        for (const input of this.inputs) input.stop().catch(() => undefined);
        void this.share?.stop();
        break;
    }
    this.emit(name as keyof RoomEvents, value as RoomEvents[keyof RoomEvents]);
  }

  /** A server to which the call has come may have refused a track of an input, or of the screen. */
  private dropRefused(): void {
    const { publications } = this.call;
    for (const input of this.inputs) {
      if (input.publication !== null && !publications.has(input.publication)) input.dropped(input.publication);
    }
    if (this.share?.publications.some((publication) => !publications.has(publication))) void this.share.stop();
  }

  private receive({ from, was, topic, ...message }: ReceivedMessage): void {
    const sender = this.people.sender(from, was);
    if (sender === undefined) return; // it has just left
    const content = message.text === undefined ? { bytes: message.bytes } : { text: message.text };
    this.emit("message", { topic, from: sender, ...content });
  }

  /** Completes a request of the call by the options. */
  private async request(request: CallRequest): Promise<SessionRequest> {
    const { token, room, waiting } = this.options;
    return {
      ...request,
      room,
      ...this.profile.wanted,
      loopback: this.loopback,
      token: await tokenOf(token),
      waiting: () => {
        guarded(() => waiting?.());
        this.emit("waiting", undefined);
      },
    };
  }

  private readonly transports: Transports = {
    // Whether frames can pass through the relay must be known before anything is received.
    ready: async () => {
      if (!(await this.relay.ready()) && this.relay.encrypts) throw mediaFailed();
    },
    connect: (socket, welcome, maxRungs) => {
      const { files, relay, options } = this;
      const settings = {
        output: options.output ?? "auto",
        networks: this.networks,
        networkBackend: options.networkBackend ?? "auto",
      };
      this.connection = new Connection(socket, files, relay, settings, welcome, maxRungs, welcome.ice);
      this.connection.setMaxUplink(this.maxUplinkKbps);
      return this.connection;
    },
  };
}
