/**
 * Camera and microphone before a call: opened to look at oneself and to choose, and closed before the call opens them.
 */
import {
  DeviceList,
  type Devices,
  deviceError,
  type InputKind,
  openBoth,
  openDevice,
  type Source,
  type StartOptions,
  type WindlassError,
} from "windlass-client";

/** A camera or a microphone in the preview. */
export interface PreviewInput {
  /** Whether the person wants it in the call. */
  readonly on: boolean;
  /** Null: off, being opened, or failed. */
  readonly track: MediaStreamTrack | null;
  /** The id of the device that the person chose; empty: the browser's choice. */
  readonly device: string;
  /** Why it cannot be opened; null: it can, or is off. */
  readonly error: WindlassError | null;
}

/** The preview as it is now. */
export interface PreviewState {
  readonly camera: PreviewInput;
  readonly microphone: PreviewInput;
  readonly devices: Devices;
}

/** A camera or a microphone as the person wants it. False: off. `muted`: off, with a device for later. */
export type InputChoice = false | Pick<StartOptions, "device" | "muted">;

/** What a preview needs of the SDK. */
export interface PreviewHost {
  openBoth: typeof openBoth;
  openDevice: typeof openDevice;
  devices(): Pick<DeviceList, "list" | "refresh" | "on" | "close">;
}

const SDK: PreviewHost = { openBoth, openDevice, devices: () => new DeviceList() };
const KINDS: readonly InputKind[] = ["camera", "microphone"];

const inputOf = (choice: InputChoice = {}): PreviewInput => ({
  on: choice !== false && choice.muted !== true,
  track: null,
  device: (choice !== false && choice.device) || "",
  error: null,
});
const sourceOf = (device: string): Source => (device === "" ? {} : { device });

/** What is wanted of an input. What fails in the preview would fail in the call, and be reported a second time. */
export function choiceOf({ on, error, device }: PreviewInput): InputChoice {
  if (error !== null) return false;
  if (on) return sourceOf(device);
  return device === "" ? false : { device, muted: true };
}

/** Opens the camera and the microphone before a call, and keeps the person's choice of devices. */
export class Preview {
  private state: PreviewState;
  private readonly listeners = new Set<() => void>();
  private devices: ReturnType<PreviewHost["devices"]> | null = null;
  /** Counts what was asked of each input: what is opened for an earlier request is closed again. */
  private readonly asked = { camera: 0, microphone: 0 };

  /** `chosen`: what the person chose before. Default: both are on. */
  constructor(
    chosen: { camera?: InputChoice | undefined; microphone?: InputChoice | undefined },
    private readonly host: PreviewHost = SDK,
  ) {
    const devices = { cameras: [], microphones: [], speakers: [] };
    this.state = { camera: inputOf(chosen.camera), microphone: inputOf(chosen.microphone), devices };
  }

  readonly get = (): PreviewState => this.state;

  readonly subscribe = (notify: () => void): (() => void) => {
    this.listeners.add(notify);
    return () => this.listeners.delete(notify);
  };

  /**
   * Opens what is on, in a task of its own: React mounts twice in its strict mode. The returned function
   * closes them.
   */
  readonly start = (): (() => void) => {
    const timer = setTimeout(() => void this.begin(), 0);
    return () => {
      clearTimeout(timer);
      this.stop();
    };
  };

  private stop(): void {
    for (const kind of KINDS) this.close(kind);
    this.devices?.close();
    this.devices = null;
  }

  /** Opens an input, or closes it. */
  setOn(kind: InputKind, on: boolean): void {
    if (on) void this.open(kind, this.state[kind].device);
    else {
      this.close(kind);
      this.change(kind, { on: false, error: null });
    }
  }

  /** Opens another device; of an input that is off, when it is switched on. */
  choose(kind: InputKind, device: string): void {
    if (this.state[kind].on) void this.open(kind, device);
    else this.change(kind, { device });
  }

  private async begin(): Promise<void> {
    const devices = this.host.devices();
    this.devices = devices;
    const list = (found: Devices) => {
      if (this.devices === devices) this.set({ ...this.state, devices: found });
    };
    devices.on("change", list);
    devices.list().then(list, () => undefined);
    const order = { camera: ++this.asked.camera, microphone: ++this.asked.microphone };
    const { camera, microphone } = this.state;
    const wanted = KINDS.filter((kind) => this.state[kind].on);
    // At once, so that the person is asked once.
    const both = wanted.length === 2;
    const stream = both ? await this.host.openBoth(sourceOf(camera.device), sourceOf(microphone.device)) : null;
    for (const kind of wanted) {
      const [track] = (kind === "camera" ? stream?.getVideoTracks() : stream?.getAudioTracks()) ?? [];
      if (order[kind] !== this.asked[kind]) track?.stop();
      else if (track === undefined) void this.open(kind, this.state[kind].device);
      else this.show(kind, track);
    }
  }

  private async open(kind: InputKind, device: string): Promise<void> {
    this.close(kind);
    const order = this.asked[kind];
    this.change(kind, { on: true, device, error: null });
    try {
      const track = await this.host.openDevice(kind, sourceOf(device));
      if (order !== this.asked[kind]) track.stop();
      else this.show(kind, track);
    } catch (error) {
      if (order === this.asked[kind]) this.change(kind, { error: deviceError(error, [kind]) });
    }
  }

  private show(kind: InputKind, track: MediaStreamTrack): void {
    const order = this.asked[kind];
    track.addEventListener("ended", () => {
      // Unplugged: another one, or the error that says that there is none.
      if (order === this.asked[kind]) void this.open(kind, "");
    });
    this.change(kind, { track, error: null });
    // Labels are known from now on.
    void this.devices?.refresh().catch(() => undefined);
  }

  private close(kind: InputKind): void {
    this.asked[kind]++;
    this.state[kind].track?.stop();
    this.change(kind, { track: null });
  }

  private change(kind: InputKind, change: Partial<PreviewInput>): void {
    this.set({ ...this.state, [kind]: { ...this.state[kind], ...change } });
  }

  private set(state: PreviewState): void {
    this.state = state;
    for (const notify of [...this.listeners]) notify();
  }
}
