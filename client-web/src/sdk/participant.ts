/**
 * A participant as a page shows it: its name, its tracks and its element, the same object for as long as the person is
 * in the call.
 */

import type { DeviceList } from "./devices/device-list.js";
import type { SoundGate } from "./devices/playback.js";
import { WindlassVideo } from "./element/windlass-video.js";
import { Emitter } from "./emitter.js";
import { type Attributes, saysSame } from "./profile.js";
import type { ConnectionQuality, ParticipantInfo } from "./protocol.js";
import type { RemoteAudioTrack, RemoteTrack, RemoteVideoTrack } from "./tracks.js";

/** Where the elements of a room's participants play. @internal */
export interface Outlet {
  readonly sound: SoundGate;
  readonly devices: DeviceList;
}

/** The events of {@link Participant}. */
export interface ParticipantEvents {
  /**
   * A track came, went, was muted or unmuted; or the participant speaks, no longer speaks, is away or back, has another
   * name, other attributes or another quality of its connection.
   */
  change: undefined;
  /** The participant has left the call. Nothing follows. */
  left: undefined;
}

/**
 * Another participant of the room, or in a loopback room this one as others receive it.
 *
 * It stays the same object while this page reconnects ({@link away} meanwhile) and when the room migrates to another
 * server; its {@link id} and its tracks are others then.
 */
export class Participant extends Emitter<ParticipantEvents> {
  private info: ParticipantInfo;
  private readonly received: RemoteTrack[] = [];
  private isAway = false;
  private hasLeft = false;
  private isSpeaking = false;
  private toldQuality: ConnectionQuality | null = null;
  private shown: WindlassVideo | null = null;

  /** @internal */
  constructor(
    info: ParticipantInfo,
    /** Whether it is this participant, in a loopback room. */
    readonly isSelf: boolean,
    /** @internal */
    readonly outlet: Outlet,
  ) {
    super(["change", "left"]);
    this.info = info;
  }

  /** The server's id of the participant. It changes when one of the two reconnects or migrates. */
  get id(): string {
    return this.info.id;
  }

  /** The participant's name. It may change; `change` follows. */
  get name(): string {
    return this.info.name;
  }

  /** The participant's identity, from its access token; undefined where the server needs none. */
  get identity(): string | undefined {
    return this.info.identity;
  }

  /** What it says of itself by `Room.setAttributes`, such as a raised hand. `change` follows a change. */
  get attributes(): Attributes {
    return this.info.attributes ?? {};
  }

  /** The participant's tracks, in the order in which they came. */
  get tracks(): readonly RemoteTrack[] {
    return this.received;
  }

  /** The first video track that is no `screen`; null: none. */
  get camera(): RemoteVideoTrack | null {
    return this.videos.find((track) => track.name !== "screen") ?? null;
  }

  /** The first audio track that is no `screen_audio`; null: none. */
  get microphone(): RemoteAudioTrack | null {
    return this.sounds[0] ?? null;
  }

  /** All its audio tracks but `screen_audio`: the microphone, and what the page may send besides. */
  get sounds(): readonly RemoteAudioTrack[] {
    return this.audio.filter((track) => track.name !== "screen_audio");
  }

  /** The screen, window or tab that it shares; null: none. */
  get screen(): RemoteVideoTrack | null {
    return this.videos.find((track) => track.name === "screen") ?? null;
  }

  /** The sound of what it shares; null: none. */
  get screenAudio(): RemoteAudioTrack | null {
    return this.audio.find((track) => track.name === "screen_audio") ?? null;
  }

  private get videos(): RemoteVideoTrack[] {
    return this.received.filter((track) => track.kind === "video");
  }

  private get audio(): RemoteAudioTrack[] {
    return this.received.filter((track) => track.kind === "audio");
  }

  /**
   * How loud it is at this moment, the loudest of its {@link sounds}: 0 for silence, 1 for full scale; linear in
   * decibels. Browsers know it of sounds that are played. Read it as often as it is shown, such as at each animation
   * frame.
   */
  get level(): number {
    return Math.max(0, ...this.sounds.map((track) => (track.muted ? 0 : track.level)));
  }

  /** Whether it speaks, or was the last to speak. */
  get speaking(): boolean {
    return this.isSpeaking;
  }

  /**
   * How well its connection to the server works, both ways: `good`, `fair` (something is missing), `poor` (speech or
   * pictures suffer) or `lost` (nothing has come from it for seconds). The server assesses it, and tells a change after
   * a few seconds, so that it does not flicker. `change` follows. null: not known yet, or the server does not tell.
   */
  get quality(): ConnectionQuality | null {
    return this.toldQuality;
  }

  /** Whether it is not known now if it is still there, as this page has lost its connection. */
  get away(): boolean {
    return this.isAway;
  }

  /** Whether it has left the call. */
  get left(): boolean {
    return this.hasLeft;
  }

  /**
   * A `<windlass-video>` that shows its camera and plays its sounds; in a loopback room without the sound, which would
   * be an echo. Made when it is first read, then always the same. Put it into the page; it removes itself when the
   * participant leaves. For a shared screen make another one, with `source="screen"` and this participant.
   */
  get element(): WindlassVideo {
    if (this.shown === null) {
      this.shown = new WindlassVideo();
      this.shown.participant = this;
    }
    return this.shown;
  }

  /** Whether name or attributes are others now. @internal */
  become(info: ParticipantInfo): boolean {
    const differs = !saysSame(this.info, info);
    this.info = info;
    if (differs) this.changed();
    return differs;
  }

  /** @internal */
  addTrack(track: RemoteTrack): void {
    const former = track.replaces === null ? -1 : this.received.indexOf(track.replaces);
    if (former >= 0) this.received.splice(former, 1, track);
    else this.received.push(track);
    this.changed();
  }

  /** `connected`: false where the connection is lost, so that more is about to change. @internal */
  removeTrack(track: RemoteTrack, connected: boolean): void {
    const at = this.received.indexOf(track);
    if (at < 0) return;
    this.received.splice(at, 1);
    if (connected) this.changed();
  }

  /** @internal */
  setSpeaking(speaking: boolean): void {
    if (this.isSpeaking === speaking) return;
    this.isSpeaking = speaking;
    this.changed();
  }

  /** @internal */
  setQuality(quality: ConnectionQuality): void {
    if (this.toldQuality === quality) return;
    this.toldQuality = quality;
    this.changed();
  }

  /** @internal */
  setAway(away: boolean): void {
    if (this.isAway === away) return;
    this.isAway = away;
    this.changed();
  }

  /** @internal */
  changed(): void {
    this.emit("change", undefined);
  }

  /** @internal */
  leave(): void {
    this.hasLeft = true;
    this.isAway = false;
    this.received.length = 0;
    this.emit("change", undefined);
    this.emit("left", undefined);
    this.shown?.remove();
  }
}
