/** Camera and microphone before a call: opened to look at oneself and to choose, and closed before the call opens them. */
import {
  DeviceList,
  type Devices,
  deviceError,
  type InputKind,
  openBoth,
  openDevice,
  type WindlassError,
} from "windlass-client";

/** A camera or a microphone in the preview. */
export interface PreviewInput {
  /** Whether the person wants it in the call. */
  readonly on: boolean;
  /** Null: off, being opened, or failed. */
  readonly track: MediaStreamTrack | null;
  /** The id of its device; empty: the browser's choice. */
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

/** What a preview needs of the SDK. */
export interface PreviewHost {
  openBoth: typeof openBoth;
  openDevice: typeof openDevice;
  devices(): Pick<DeviceList, "list" | "refresh" | "on" | "close">;
}

const SDK: PreviewHost = { openBoth, openDevice, devices: () => new DeviceList() };
const WANTED: PreviewInput = { on: true, track: null, device: "", error: null };
const KINDS: readonly InputKind[] = ["camera", "microphone"];

/** See the module's head. */
export class Preview {
  private state: PreviewState = {
    camera: WANTED,
    microphone: WANTED,
    devices: { cameras: [], microphones: [], speakers: [] },
  };
  private readonly listeners = new Set<() => void>();
  private devices: ReturnType<PreviewHost["devices"]> | null = null;
  /** Counts what was asked of each input: what is opened for an earlier wish is closed again. */
  private readonly wishes = { camera: 0, microphone: 0 };

  constructor(private readonly host: PreviewHost = SDK) {}

  readonly get = (): PreviewState => this.state;

  readonly subscribe = (notify: () => void): (() => void) => {
    this.listeners.add(notify);
    return () => this.listeners.delete(notify);
  };

  /**
   * Opens camera and microphone, in a task of its own: React mounts twice in its strict mode. The returned function
   * closes them.
   */
  readonly start = (): (() => void) => {
    const timer = setTimeout(() => void this.begin(), 0);
    return () => {
      clearTimeout(timer);
      this.stop();
    };
  };

  /** Closes what is open. */
  stop(): void {
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

  /** Opens another device. */
  choose(kind: InputKind, device: string): void {
    void this.open(kind, device);
  }

  private async begin(): Promise<void> {
    const devices = this.host.devices();
    this.devices = devices;
    const list = (found: Devices) => {
      if (this.devices === devices) this.set({ ...this.state, devices: found });
    };
    devices.on("change", list);
    devices.list().then(list, () => undefined);
    const wish = { camera: ++this.wishes.camera, microphone: ++this.wishes.microphone };
    // At once, so that the person is asked once.
    const stream = await this.host.openBoth({}, {});
    for (const kind of KINDS) {
      const [track] = (kind === "camera" ? stream?.getVideoTracks() : stream?.getAudioTracks()) ?? [];
      if (wish[kind] !== this.wishes[kind]) track?.stop();
      else if (track === undefined) void this.open(kind, "");
      else this.show(kind, track);
    }
  }

  private async open(kind: InputKind, device: string): Promise<void> {
    this.close(kind);
    const wish = this.wishes[kind];
    this.change(kind, { on: true, device, error: null });
    try {
      const track = await this.host.openDevice(kind, device === "" ? {} : { device });
      if (wish !== this.wishes[kind]) track.stop();
      else this.show(kind, track);
    } catch (error) {
      if (wish === this.wishes[kind]) this.change(kind, { error: deviceError(error, [kind]) });
    }
  }

  private show(kind: InputKind, track: MediaStreamTrack): void {
    const wish = this.wishes[kind];
    track.addEventListener("ended", () => {
      // Unplugged: another one, or the error that says that there is none.
      if (wish === this.wishes[kind]) void this.open(kind, "");
    });
    this.change(kind, { on: true, track, device: track.getSettings().deviceId ?? "", error: null });
    // Labels are known from now on.
    void this.devices?.refresh().catch(() => undefined);
  }

  private close(kind: InputKind): void {
    this.wishes[kind]++;
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
