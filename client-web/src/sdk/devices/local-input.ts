/**
 * This participant's camera or microphone: opened, sent, muted, exchanged and, when it is unplugged, replaced.
 *
 * Muting and stopping take effect at once. What has to open a device waits its turn, and is given up where it is no
 * longer wanted by then; so whatever is called, and however often, the last call holds.
 */
import { Emitter } from "../emitter.js";
import { ended, WindlassError } from "../errors.js";
import type { Publication } from "../publication.js";
import type { PublishOptions } from "../room.js";
import { type Device, type DeviceList, ofKind } from "./device-list.js";
import { aborted, cannotFlip, deviceError, type InputKind, mutedByModerator, noOtherCamera } from "./errors.js";
import { analyserMeter, LevelWatch, type Meter } from "./level.js";
import { type Facing, openDevice, type Source } from "./open.js";
import { causeOfEnd, type EndCause, type Opener, openInstead, permissionOf } from "./replacement.js";

/** What an input needs of its room and of the browser. */
export interface InputHost {
  readonly kind: InputKind;
  /** The devices of this machine. */
  readonly devices: Pick<DeviceList, "list" | "refresh" | "on">;
  /** Whether there is no call any more to send to. Default: there is. */
  isOver?(): boolean;
  publish(track: MediaStreamTrack, options: PublishOptions): Promise<Publication>;
  unpublish(publication: Publication): Promise<void>;
  mute(publication: Publication, muted: boolean): void;
  /** Whether this participant may unmute, or a moderator keeps it muted. Default: it may. */
  mayUnmute?(publication: Publication): boolean;
  /** Opens a device, and rejects with a `WindlassError`. Default: by `getUserMedia`. */
  open?(source: Source, onlyFacing: boolean): Promise<MediaStreamTrack>;
  /** What the person has decided; null where the browser does not tell. Default: by `navigator.permissions`. */
  permission?(): Promise<PermissionState | null>;
  /** Measures the level. Default: by an `AudioContext`. */
  meter?(track: MediaStreamTrack): Meter;
}

/** Options of {@link LocalInput.start}. */
export interface StartOptions extends Source {
  /**
   * Starts muted: a microphone is opened and published without sound; a camera is opened and published when it is first
   * unmuted. Default: false.
   */
  muted?: boolean;
  /**
   * A track that is open already, as by a preview. It is sent instead of opening a device, and belongs to the input
   * from then on.
   */
  track?: MediaStreamTrack;
  /** How the track is published. */
  publish?: PublishOptions;
}

/** Events of {@link LocalInput}. */
export interface LocalInputEvents {
  /** Something about the input has changed: whether it is active or muted, its device, or its track. */
  change: undefined;
  /** The level of the microphone, 0 to 1, about ten times a second. It is measured only while somebody listens. */
  level: number;
  /**
   * The device ended by itself. `replacedBy` is sent instead. Null: nothing is sent, the input is muted; after
   * `unplugged` it goes on by itself when a device is connected, unless it was muted before.
   */
  ended: { cause: EndCause; replacedBy: InputDevice | null };
}

/** The device of an input. */
export interface InputDevice {
  /** The device's id at this origin. */
  id: string;
  /** The device's name, for display. */
  label: string;
}

const nothing = (): void => undefined;
const isAbsent = ({ code }: WindlassError) => code === "device_missing" || code === "device_unfit";
const opposite = (facing: string): Facing => (facing === "user" ? "environment" : "user");

/**
 * This participant's camera or microphone: opened, sent, muted, exchanged and, when it is unplugged, replaced. Whatever
 * is called, and however often, the last call holds.
 */
export class LocalInput extends Emitter<LocalInputEvents> {
  /** Whether it is a camera or a microphone. */
  readonly kind: InputKind;
  private readonly host: InputHost;
  private readonly watch: LevelWatch;
  /** The latest start; null: it is stopped. */
  private begun: Promise<void> | null = null;
  private isActive = false;
  /** Counts starts and stops: what began before a stop is no longer wanted. */
  private epoch = 0;
  /** Counts choices of a device, of which only the last one is wanted. */
  private choices = 0;
  /** Counts calls to unmute; a failure is theirs that came before it. */
  private unmutes = 0;
  private failure = { error: undefined as unknown, upTo: 0 };
  private wantsMuted = false;
  private isMuted = false;
  private source: Source = {};
  private publishOptions: PublishOptions = {};
  /** A track that was given to it and is not sent yet. */
  private given: MediaStreamTrack | null = null;
  private current: InputDevice | null = null;
  private live: MediaStreamTrack | null = null;
  private published: Publication | null = null;
  private unlisten: () => void = nothing;
  /** Ends the wait for a device; null: none is waited for. */
  private endWait: (() => void) | null = null;
  /** Steps that open devices run one after the other. */
  private steps: Promise<unknown> = Promise.resolve();

  constructor(host: InputHost) {
    super(["change", "level", "ended"]);
    this.host = host;
    this.kind = host.kind;
    this.watch = new LevelWatch(host.meter ?? analyserMeter, (level) => this.emit("level", level));
  }

  /** Whether it has been started, muted or not. */
  get active(): boolean {
    return this.isActive;
  }

  /** Whether it is being started: it can be muted already. */
  get starting(): boolean {
    return this.begun !== null && !this.isActive;
  }

  /** Whether it is muted: by the person, by a moderator, or for want of a device. */
  get muted(): boolean {
    return this.isMuted;
  }

  /** The device that is sent, or would be if it were not muted; null where that is not known yet. */
  get device(): InputDevice | null {
    return this.current;
  }

  /** The track of the device, such as for a preview; null while a camera is muted. Read it again at `change`. */
  get track(): MediaStreamTrack | null {
    return this.live;
  }

  /** The publication; null before the start, and before a camera that was started muted is unmuted. */
  get publication(): Publication | null {
    return this.published;
  }

  /** The latest level of the microphone; 0 while it is muted, or nobody listens to `level`. */
  get level(): number {
    return this.watch.level;
  }

  override on<Name extends keyof LocalInputEvents>(
    name: Name,
    listener: (value: LocalInputEvents[Name]) => void,
  ): () => void {
    const remove = super.on(name, listener);
    this.watchLevel();
    return () => {
      remove();
      this.watchLevel();
    };
  }

  /**
   * Opens the device and publishes it; where it is started already, this does nothing. Rejects with a `WindlassError`:
   * `permission_denied`, `permission_blocked`, `device_missing`, `device_busy`, `device_unfit`, `insecure_page`,
   * `forbidden` (without the grant `publish`), `ended`, or `aborted` (by {@link stop}).
   */
  start(options: StartOptions = {}): Promise<void> {
    const isOver = this.host.isOver?.() === true;
    if (isOver || this.begun !== null) {
      options.track?.stop();
      return isOver ? Promise.reject(ended()) : (this.begun as Promise<void>);
    }
    const begun = this.begin(options);
    this.begun = begun;
    this.changed();
    return begun;
  }

  /** Ends the publication and the track; the device's light goes off at once. */
  async stop(): Promise<void> {
    const publication = this.published;
    this.end();
    if (publication === null) return;
    const unpublished = this.host.unpublish(publication);
    this.steps = Promise.all([this.steps, unpublished.catch(nothing)]);
    await unpublished;
  }

  /** Stops, and gives its track away open, as to the input of a call; null where none is open. @internal */
  handOver(): MediaStreamTrack | null {
    const { live } = this;
    this.unlisten();
    this.unlisten = nothing;
    this.live = null;
    this.stop().catch(nothing);
    return live;
  }

  /**
   * Mutes or unmutes, once it is started. A muted camera is closed, and its light goes off; unmuting opens it again,
   * or another one where it is gone. A microphone stays open, so that its first word is not lost. Where it cannot be
   * opened, it stays muted and this rejects as {@link start} does; with `forbidden` where a moderator has muted it.
   */
  async setMuted(muted: boolean): Promise<void> {
    if (this.begun === null) return;
    this.wantsMuted = muted;
    if (muted) {
      this.mute();
      return;
    }
    const { live, published, epoch } = this;
    if (this.kind === "microphone" && live?.readyState === "live" && published !== null) {
      this.unmute(published);
      return;
    }
    const call = ++this.unmutes;
    await this.inOrder(() => this.openAgain(call, epoch));
  }

  /**
   * Changes to another device; the publication stays, and the others see no other track. Of several calls only the last
   * one counts. Before the start, it chooses the device of {@link start}. Rejects as {@link start} does; the former
   * device then goes on.
   */
  async switchTo(device: string): Promise<void> {
    const choice = ++this.choices;
    if (this.begun === null) {
      this.source = { ...this.size, device };
      return;
    }
    const { epoch } = this;
    await this.inOrder(async () => {
      if (epoch !== this.epoch || choice !== this.choices) return;
      await this.change({ ...this.size, device }, false, choice);
    });
  }

  /**
   * Camera: changes to the other side of a phone; on other machines, to the next camera. Rejects with `device_missing`
   * where there is no other one.
   */
  async flip(): Promise<void> {
    if (this.kind !== "camera") throw cannotFlip();
    const choice = ++this.choices;
    const { epoch } = this;
    await this.inOrder(async () => {
      if (epoch !== this.epoch || choice !== this.choices) return;
      const facing = this.live?.getSettings().facingMode ?? this.source.facing;
      if (facing === "user" || facing === "environment") {
        try {
          await this.change({ ...this.size, facing: opposite(facing) }, true, choice);
          return;
        } catch (error) {
          if (!(error instanceof WindlassError) || !isAbsent(error)) throw error;
        }
      }
      await this.change({ ...this.size, device: await this.nextCamera() }, false, choice);
    });
  }

  /**
   * A moderator has muted the publication, or allowed it again. In the latter case it stays muted, until the person
   * unmutes it: nobody else opens a camera or a microphone. @internal
   */
  moderated(publication: Publication, muted: boolean): void {
    if (publication !== this.published) return;
    if (!muted && !this.isMuted) return;
    this.wantsMuted = true;
    // The server keeps the participant's own setting beside the moderator's.
    this.host.mute(publication, true);
    this.mute();
  }

  /** The publication has ended by itself: this participant may no longer publish. @internal */
  dropped(publication: Publication): void {
    if (publication === this.published) this.end();
  }

  private begin({ muted = false, publish = {}, track, ...source }: StartOptions): Promise<void> {
    const { epoch } = this;
    this.given = track ?? null;
    const chosen = source.facing === undefined ? this.source : this.size;
    this.source = { ...chosen, ...source };
    this.publishOptions = publish;
    this.wantsMuted = muted;
    this.isMuted = muted;
    const starting = this.inOrder(() => this.open(epoch));
    starting.catch(() => {
      if (this.begun === starting) this.end();
    });
    return starting;
  }

  /** The step of {@link start}. */
  private async open(epoch: number): Promise<void> {
    if (epoch !== this.epoch) throw aborted(this.kind);
    const { given } = this;
    this.given = null;
    if (this.wantsMuted && this.kind === "camera") {
      given?.stop();
      this.isActive = true;
      this.changed();
      return;
    }
    const open = given?.readyState === "live" ? given : await this.openDevice(this.source);
    await this.publish(open, epoch);
  }

  /** Publishes a track that was just opened. */
  private async publish(track: MediaStreamTrack, epoch: number): Promise<void> {
    if (epoch !== this.epoch) {
      track.stop();
      throw aborted(this.kind);
    }
    if (this.wantsMuted && this.kind === "camera") {
      // Muted while it was being opened.
      this.describe(track);
      track.stop();
      this.isActive = true;
      this.changed();
      return;
    }
    this.hold(track);
    track.enabled = !this.wantsMuted;
    let publication: Publication;
    try {
      publication = await this.host.publish(track, this.publishOptions);
    } catch (error) {
      if (this.live === track) this.release();
      throw error;
    }
    if (epoch !== this.epoch) {
      await this.host.unpublish(publication).catch(nothing);
      throw aborted(this.kind);
    }
    this.published = publication;
    this.isActive = true;
    // It may have been muted, or unmuted, while it was being published.
    this.isMuted = this.wantsMuted || this.live !== track;
    if (this.isMuted) this.host.mute(publication, true);
    else track.enabled = true;
    this.changed();
  }

  /** The step of unmuting. */
  private async openAgain(call: number, epoch: number): Promise<void> {
    if (epoch !== this.epoch) return;
    if (call <= this.failure.upTo) throw this.failure.error;
    if (this.wantsMuted || !this.isMuted) return;
    if (this.live?.readyState === "live" && this.published !== null) {
      this.unmute(this.published);
      return;
    }
    try {
      this.checkAllowed();
      const track = await this.openFormer();
      if (epoch !== this.epoch || this.wantsMuted) track.stop();
      else if (this.published === null) await this.publish(track, epoch);
      else await this.send(track, this.published);
    } catch (error) {
      if (epoch === this.epoch) this.wantsMuted = true;
      if (this.kind === "camera" && this.isMuted) this.release();
      this.failure = { error, upTo: this.unmutes };
      throw error;
    }
  }

  /** Sends a track that was just opened, and unmutes. */
  private async send(track: MediaStreamTrack, publication: Publication): Promise<void> {
    await this.replace(track, publication);
    if (this.live === track) this.unmute(publication);
  }

  /** Opens the same device again; the browser's choice where it is gone. */
  private async openFormer(): Promise<MediaStreamTrack> {
    const { current, size } = this;
    const source = current === null || current.id === "" ? this.source : { ...size, device: current.id };
    try {
      return await this.openDevice(source);
    } catch (error) {
      const chosen = source.device !== undefined || source.facing !== undefined;
      if (!chosen || !(error instanceof WindlassError) || !isAbsent(error)) throw error;
      return this.openDevice(size);
    }
  }

  private checkAllowed(): void {
    const { published, host } = this;
    if (published !== null && host.mayUnmute?.(published) === false) {
      this.wantsMuted = true;
      throw mutedByModerator(this.kind);
    }
  }

  private mute(): void {
    const { published, live, isMuted } = this;
    this.isMuted = true;
    this.stopWaiting();
    // The others are notified first: what they see last is what was sent last.
    if (published !== null && !published.muted) this.host.mute(published, true);
    if (live !== null) live.enabled = false;
    if (this.kind === "camera") this.release();
    if (!isMuted || this.live !== live) this.changed();
  }

  /** Unmutes what is open. */
  private unmute(publication: Publication): void {
    this.checkAllowed();
    this.stopWaiting();
    const { isMuted } = this;
    this.isMuted = false;
    if (publication.muted) this.host.mute(publication, false);
    if (this.live !== null) this.live.enabled = true;
    if (isMuted) this.changed();
  }

  /** The step of choosing another device. */
  private async change(source: Source, onlyFacing: boolean, choice: number): Promise<void> {
    const { live, epoch } = this;
    if (live === null) {
      await this.note(source);
      return;
    }
    if (source.device !== undefined && source.device === this.current?.id && live.readyState === "live") return;
    const track = await this.openBeside(live, source, onlyFacing);
    const wanted = epoch === this.epoch && choice === this.choices;
    if (!wanted || this.live === null) track.stop();
    if (!wanted) return;
    this.source = source;
    // Muted or lost while it was being opened: it is the one to open later.
    if (this.live === null) this.describe(track);
    else if (this.published !== null) await this.replace(track, this.published);
    this.changed();
  }

  /** Notes the device to open later, or opens it where one is waited for. */
  private async note(source: Source): Promise<void> {
    this.source = source;
    const { device } = source;
    const listed = await this.listed();
    const label = listed.find(({ id }) => id === device)?.label ?? "";
    this.current = device === undefined ? null : { id: device, label };
    this.changed();
    await this.revive();
  }

  /** Opens a device while `live` goes on; where the machine has but one camera at a time, after that. */
  private async openBeside(live: MediaStreamTrack, source: Source, onlyFacing: boolean): Promise<MediaStreamTrack> {
    try {
      return await this.openDevice(source, onlyFacing);
    } catch (error) {
      const busy = error instanceof WindlassError && error.code === "device_busy" && this.kind === "camera";
      if (!busy || this.live !== live) throw error;
      live.stop();
      try {
        return await this.openDevice(source, onlyFacing);
      } catch (second) {
        if (this.live === live) await this.replaceEnded(live, "unplugged");
        throw second;
      }
    }
  }

  /** The id of the camera after this one. */
  private async nextCamera(): Promise<string> {
    const ids = (await this.host.devices.list()).cameras.map(({ id }) => id).filter((id) => id !== "");
    const next = ids[(ids.indexOf(this.current?.id ?? "") + 1) % ids.length];
    if (next === undefined || next === this.current?.id) throw noOtherCamera();
    return next;
  }

  /** Sends another track instead. Where the connection does not take it, the former one goes on. */
  private async replace(track: MediaStreamTrack, publication: Publication): Promise<void> {
    const former = this.live;
    this.hold(track);
    track.enabled = !this.isMuted;
    try {
      await publication.replaceTrack(track);
    } catch (error) {
      track.stop();
      if (this.live === track && former !== null) {
        this.hold(former);
        await publication.replaceTrack(former).catch(nothing);
      } else if (this.live === track) {
        this.release();
      } else {
        former?.stop();
      }
      throw deviceError(error, [this.kind]);
    }
    former?.stop();
  }

  /** The device has ended by itself. */
  private onEnded(track: MediaStreamTrack): void {
    const step = this.inOrder(async () => {
      if (this.live !== track) return;
      const cause = await causeOfEnd(this.current?.label ?? "", this.opener);
      if (this.live === track) await this.replaceEnded(track, cause);
    });
    step.catch((error: unknown) => reportError(error));
  }

  /** Goes on with another device instead of one that has ended; mutes where there is none. */
  private async replaceEnded(ended: MediaStreamTrack, cause: EndCause): Promise<void> {
    const found = cause === "revoked" ? cause : await openInstead(this.former, this.size, this.opener);
    const { published } = this;
    if (this.live !== ended || published === null) {
      if (typeof found !== "string") found.stop();
      return;
    }
    if (typeof found === "string") {
      this.lose(found);
      return;
    }
    try {
      await this.replace(found, published);
    } catch {
      this.lose("unplugged");
      return;
    }
    if (this.live !== found) return;
    this.emit("ended", { cause, replacedBy: this.current });
    this.changed();
  }

  /** There is no device: mutes, and waits for one. */
  private lose(cause: EndCause): void {
    const { published, host } = this;
    this.release();
    this.isMuted = true;
    if (published !== null && !published.muted) host.mute(published, true);
    this.stopWaiting();
    if (cause === "unplugged" && !this.wantsMuted) {
      // What fails stays muted, and waits for the next device.
      this.endWait = host.devices.on("change", () => void this.inOrder(() => this.revive()).catch(nothing));
    }
    this.emit("ended", { cause, replacedBy: null });
    this.changed();
  }

  /** Opens a device and unmutes, where one is waited for. */
  private async revive(): Promise<void> {
    const { published } = this;
    if (this.endWait === null || published === null) return;
    const found = await openInstead(this.former, this.size, this.opener);
    if (typeof found === "string") {
      // The person would be asked again at every device.
      if (found === "revoked") this.stopWaiting();
    } else if (this.endWait === null) {
      found.stop();
    } else {
      await this.send(found, published);
    }
  }

  private stopWaiting(): void {
    this.endWait?.();
    this.endWait = null;
  }

  private end(): void {
    this.epoch++;
    this.begun = null;
    this.given?.stop();
    this.given = null;
    this.isActive = false;
    this.published = null;
    this.isMuted = false;
    this.wantsMuted = false;
    this.stopWaiting();
    this.release();
    this.changed();
  }

  /** Takes a track as its own, and notices when it ends. */
  private hold(track: MediaStreamTrack): void {
    this.unlisten();
    const ended = () => this.onEnded(track);
    track.addEventListener("ended", ended);
    this.unlisten = () => track.removeEventListener("ended", ended);
    this.live = track;
    this.describe(track);
  }

  /** Closes the device. */
  private release(): void {
    this.unlisten();
    this.unlisten = nothing;
    this.live?.stop();
    this.live = null;
  }

  private describe(track: MediaStreamTrack): void {
    this.current = { id: track.getSettings().deviceId ?? "", label: track.label };
    // Labels are known from now on.
    void this.host.devices.refresh().catch(nothing);
  }

  private get former(): string {
    return this.current?.id ?? "";
  }

  private get size(): Source {
    const { width, height } = this.source;
    return { ...(width === undefined ? {} : { width }), ...(height === undefined ? {} : { height }) };
  }

  private openDevice(source: Source, onlyFacing = false): Promise<MediaStreamTrack> {
    const { host, kind } = this;
    return host.open?.(source, onlyFacing) ?? openDevice(kind, source, onlyFacing);
  }

  /** The devices of this kind; none where the browser does not tell. */
  private async listed(): Promise<Device[]> {
    try {
      return ofKind(await this.host.devices.list(), this.kind);
    } catch {
      return [];
    }
  }

  private readonly opener: Opener = {
    open: (source) => this.openDevice(source),
    listed: () => this.listed(),
    permission: () => this.host.permission?.() ?? permissionOf(this.kind),
  };

  /** Runs a step after those before it. */
  private inOrder<T>(step: () => Promise<T>): Promise<T> {
    const done = this.steps.then(step);
    this.steps = done.catch(nothing);
    return done;
  }

  private changed(): void {
    this.watchLevel();
    this.emit("change", undefined);
  }

  private watchLevel(): void {
    const measured = this.kind === "microphone" && !this.isMuted && this.isHeard("level");
    this.watch.watch(measured ? this.live : null);
  }
}
