/** Devices in memory: cameras, microphones and loudspeakers that are connected and unplugged, and tracks of them. */
import { deviceError, type InputKind } from "../devices/errors.js";
import type { Source } from "../devices/open.js";
import type { Publication } from "../publication.js";

/** A track of a device. */
export class FakeTrack extends EventTarget {
  readyState: MediaStreamTrackState = "live";
  enabled = true;

  constructor(
    readonly kind: "audio" | "video",
    readonly label: string,
    private readonly settings: MediaTrackSettings,
  ) {
    super();
  }

  getSettings(): MediaTrackSettings {
    return this.settings;
  }

  stop(): void {
    this.readyState = "ended";
  }

  /** The device ends it. */
  die(): void {
    if (this.readyState === "ended") return;
    this.readyState = "ended";
    this.dispatchEvent(new Event("ended"));
  }
}

/** A device of the machine. */
export interface FakeDevice {
  kind: MediaDeviceKind;
  id: string;
  facing?: string;
  /** The name of the error with which it does not start. */
  fails?: string;
}

export const camera = (id: string, facing?: string): FakeDevice => ({
  kind: "videoinput",
  id,
  ...(facing === undefined ? {} : { facing }),
});
export const microphone = (id: string): FakeDevice => ({ kind: "audioinput", id });
export const speaker = (id: string): FakeDevice => ({ kind: "audiooutput", id });

/** Stands in for `navigator.mediaDevices`. */
export class FakeMachine extends EventTarget {
  devices: FakeDevice[];
  /** Whether the page sees labels and ids. */
  named = true;
  permission: PermissionState = "granted";
  /** All tracks that were opened. */
  readonly tracks: FakeTrack[] = [];
  /** What was asked for. */
  readonly asked: (Source & { onlyFacing?: boolean })[] = [];
  /** While set, devices start when `go` is called. */
  private gate: Promise<void> | null = null;
  go: () => void = () => undefined;

  constructor(...devices: FakeDevice[]) {
    super();
    this.devices = devices;
  }

  /** Lets nothing start until `go`. */
  hold(): void {
    this.gate = new Promise((resolve) => {
      this.go = () => {
        this.gate = null;
        resolve();
      };
    });
  }

  enumerateDevices(): Promise<MediaDeviceInfo[]> {
    const infos = this.devices.map(({ kind, id }) => ({
      kind,
      deviceId: this.named ? id : "",
      label: this.named ? `The ${id}` : "",
    }));
    return Promise.resolve(infos as MediaDeviceInfo[]);
  }

  /** Opens a device, as `openDevice` does. */
  async open(kind: InputKind, source: Source, onlyFacing = false): Promise<MediaStreamTrack> {
    this.asked.push(onlyFacing ? { ...source, onlyFacing } : source);
    await this.gate;
    if (this.permission === "denied")
      throw deviceError(new DOMException("Permission denied", "NotAllowedError"), [kind]);
    const ofKind = this.devices.filter((device) => device.kind === (kind === "camera" ? "videoinput" : "audioinput"));
    const { device, facing } = source;
    const fits = ofKind.filter(({ id }) => device === undefined || id === device);
    const facingIt = fits.filter((found) => facing === undefined || found.facing === facing);
    const found = facingIt[0] ?? (onlyFacing ? undefined : fits[0]);
    if (found === undefined) {
      const name = ofKind.length === 0 ? "NotFoundError" : "OverconstrainedError";
      throw deviceError({ name, constraint: device === undefined ? "facingMode" : "deviceId" }, [kind]);
    }
    if (found.fails !== undefined) throw deviceError(new DOMException("", found.fails), [kind]);
    const settings = { deviceId: found.id, ...(found.facing === undefined ? {} : { facingMode: found.facing }) };
    const track = new FakeTrack(kind === "camera" ? "video" : "audio", `The ${found.id}`, settings);
    this.tracks.push(track);
    return track as unknown as MediaStreamTrack;
  }

  /** Connects a device. */
  plug(device: FakeDevice): void {
    this.devices.push(device);
    this.dispatchEvent(new Event("devicechange"));
  }

  /** Takes a device away, and ends what it sends. */
  unplug(id: string): void {
    this.devices = this.devices.filter((device) => device.id !== id);
    for (const track of this.tracks) if (track.getSettings().deviceId === id) track.die();
    this.dispatchEvent(new Event("devicechange"));
  }

  /** The devices whose light is on. */
  get lit(): (string | undefined)[] {
    return this.tracks.filter(({ readyState }) => readyState === "live").map((track) => track.getSettings().deviceId);
  }
}

/** A publication without a connection. */
export class FakePublication {
  muted = false;
  /** Rejects the next `replaceTrack`. */
  refuses = false;
  /** What happened to it, in order. */
  readonly log: string[] = [];

  constructor(public track: FakeTrack) {}

  setMuted(muted: boolean): void {
    this.muted = muted;
    this.track.enabled = !muted;
    this.log.push(muted ? "muted" : "unmuted");
  }

  async replaceTrack(track: MediaStreamTrack): Promise<void> {
    await Promise.resolve();
    if (this.refuses) {
      this.refuses = false;
      throw new DOMException("", "InvalidModificationError");
    }
    this.track = track as unknown as FakeTrack;
    track.enabled = !this.muted;
    this.log.push(`replaced by ${track.getSettings().deviceId}`);
  }

  /** What the others get: the device, or nothing. */
  get sends(): string | null {
    const { track, muted } = this;
    return muted || !track.enabled || track.readyState === "ended" ? null : (track.getSettings().deviceId ?? "");
  }

  get asPublication(): Publication {
    return this as unknown as Publication;
  }
}
