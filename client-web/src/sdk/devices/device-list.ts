/** The devices of this machine, and the loudspeaker on which the call is played. */
import { Emitter } from "../emitter.js";
import type { WindlassError } from "../errors.js";
import { insecurePage, noSpeakerChoice, speakerError } from "./errors.js";

/** What a device is for. */
export type DeviceKind = "camera" | "microphone" | "speaker";

/** A device of this machine. */
export interface Device {
  /** The device's id at this origin; empty before the person has allowed a device. */
  id: string;
  /** The device's name, for display; empty before the person has allowed a device of its kind. */
  label: string;
  /** What it is for. */
  kind: DeviceKind;
}

/**
 * The devices of this machine. **Before the person has allowed the camera or the microphone, labels and ids are
 * empty**, and a browser may name one device of a kind though there are several; loudspeakers may be missing. So show a
 * choice after {@link LocalInput.start}. Chromium also lists the system's choice, by the id `default`.
 */
export interface Devices {
  /** Where pictures come from. */
  cameras: Device[];
  /** Where sound comes from. */
  microphones: Device[];
  /** Empty where the browser cannot choose a loudspeaker. */
  speakers: Device[];
}

/** Events of {@link DeviceList}. */
export interface DeviceListEvents {
  /** Devices came or went, or their labels are known now. */
  change: Devices;
  /** Sound is played on another loudspeaker; empty: the system's choice. */
  speaker: { id: string };
}

/** What {@link DeviceList} needs of `navigator.mediaDevices`. */
export type MediaDeviceSource = Pick<MediaDevices, "enumerateDevices" | "addEventListener" | "removeEventListener">;

/** What playing on a chosen loudspeaker needs of an element. */
export interface SoundElement {
  /** Where it plays; empty: on the system's choice. Missing in older browsers. */
  readonly sinkId?: string;
  /** Plays it elsewhere. Missing in older browsers. */
  setSinkId?(id: string): Promise<void>;
}

const KINDS: Readonly<Record<MediaDeviceKind, DeviceKind>> = {
  videoinput: "camera",
  audioinput: "microphone",
  audiooutput: "speaker",
};

/** Browsers report one headset by several events; the list is read when none has come for this time, milliseconds. */
const SETTLE_MS = 300;

/** The devices of one kind. */
export function ofKind(devices: Devices, kind: DeviceKind): Device[] {
  if (kind === "camera") return devices.cameras;
  return kind === "microphone" ? devices.microphones : devices.speakers;
}

/**
 * Plays an element on a loudspeaker; empty: on the system's choice. Rejects with a `WindlassError`: `unsupported` where
 * the browser cannot, `device_missing`, or `permission_blocked`.
 */
export async function playOn(element: SoundElement, id: string): Promise<void> {
  if (element.setSinkId === undefined) {
    if (id === "") return;
    throw noSpeakerChoice();
  }
  try {
    await element.setSinkId(id);
  } catch (error) {
    throw speakerError(error);
  }
}

/**
 * The devices of this machine, and the loudspeaker on which the call is played. Close it when it is no longer needed.
 */
export class DeviceList extends Emitter<DeviceListEvents> {
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** The devices of which listeners know, as JSON. */
  private known: string | null = null;
  /** The person's choice. It holds while that loudspeaker is away, and after it is back. */
  private chosen = "";
  private current = "";
  private readonly elements = new Set<SoundElement>();

  /** `media`: `navigator.mediaDevices`, or what stands in for it. */
  constructor(private readonly media: MediaDeviceSource | undefined = globalThis.navigator?.mediaDevices) {
    super(["change", "speaker"]);
    media?.addEventListener("devicechange", this.onDeviceChange);
  }

  /** The devices of now. Rejects with `insecure_page` where the browser gives none to the page. */
  async list(): Promise<Devices> {
    if (this.media === undefined) throw insecurePage(["camera", "microphone"]);
    const devices: Devices = { cameras: [], microphones: [], speakers: [] };
    for (const { kind, deviceId, label } of await this.media.enumerateDevices()) {
      const known = KINDS[kind];
      if (known !== undefined) ofKind(devices, known).push({ id: deviceId, label, kind: known });
    }
    this.known ??= JSON.stringify(devices);
    return devices;
  }

  /**
   * Reads the list again, and emits `change` if it differs. Call it after the person has allowed a device by other
   * means than the SDK: labels are known then, of which browsers send no event.
   */
  async refresh(): Promise<void> {
    await this.read(false);
  }

  /** The loudspeaker on which the call is played; empty: the system's choice. Not the chosen one while that is away. */
  get speaker(): string {
    return this.current;
  }

  /**
   * Plays the call on another loudspeaker from now on; empty: on the system's choice. Resolves when the elements that
   * follow play there. Rejects with a `WindlassError`, and all stays as it was: `unsupported` where the browser cannot,
   * `device_missing`, or `permission_blocked`. While that loudspeaker is away, the system's choice is used.
   */
  async setSpeaker(id: string): Promise<void> {
    const former = this.current;
    try {
      await Promise.all([...this.elements].map((element) => playOn(element, id)));
    } catch (error) {
      await this.move(former);
      throw error;
    }
    this.chosen = id;
    this.use(id);
  }

  /**
   * Has an element play on {@link speaker}, now and after each change; the returned function ends that. `failed` gets
   * why it cannot.
   */
  followSpeaker(element: SoundElement, failed: (error: WindlassError) => void = () => undefined): () => void {
    this.elements.add(element);
    // One that was left out for a while may still play where it did.
    if (this.current !== (element.sinkId ?? "")) playOn(element, this.current).catch(failed);
    return () => this.elements.delete(element);
  }

  /** Ends the events. */
  close(): void {
    clearTimeout(this.timer);
    this.media?.removeEventListener("devicechange", this.onDeviceChange);
    this.elements.clear();
  }

  private readonly onDeviceChange = (): void => {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.read(true).catch(() => undefined), SETTLE_MS);
  };

  /** Reads the list, and emits it: always after the browser's event, as a device may have been away in between. */
  private async read(always: boolean): Promise<void> {
    const before = this.known;
    const devices = await this.list();
    this.known = JSON.stringify(devices);
    if (!always && this.known === before) return;
    this.emit("change", devices);
    await this.checkSpeaker(devices);
  }

  /** Uses the chosen loudspeaker, or the system's choice while that is away. */
  private async checkSpeaker({ speakers }: Devices): Promise<void> {
    const named = speakers.filter(({ id }) => id !== "");
    if (this.chosen === "" || named.length === 0) return;
    const id = named.some((speaker) => speaker.id === this.chosen) ? this.chosen : "";
    if (id === this.current) return;
    await this.move(id);
    this.use(id);
  }

  /** Plays the elements there; one that cannot stays where it is. */
  private async move(id: string): Promise<void> {
    await Promise.allSettled([...this.elements].map((element) => playOn(element, id)));
  }

  private use(id: string): void {
    if (id === this.current) return;
    this.current = id;
    this.emit("speaker", { id });
  }
}
