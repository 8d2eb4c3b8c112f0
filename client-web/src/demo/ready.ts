/**
 * What the person will send, before the call: the camera's picture, the microphone's level, the devices; or a video
 * file.
 */
import type { InputKind } from "../sdk/devices/errors.js";
import { Preview, WindlassError, WindlassVideo } from "../sdk/index.js";
import { DevicePickers } from "./device-pickers.js";
import { icon, make } from "./dom.js";
import { type FileSource, openFile } from "./file-source.js";
import { InputButton } from "./input-button.js";
import { type Words, words } from "./language.js";
import { Meter } from "./meter.js";
import { preferences } from "./preferences.js";
import { soundButton } from "./test-sound.js";

/** Where picture and sound come from: the devices, a video file, or nowhere. */
export type Origin = "devices" | "file" | "none";

const KINDS = ["camera", "microphone"] as const;

/** The preview of the start screen: the camera's picture and the microphone's level, or a video file. */
export class Ready {
  readonly element: HTMLElement;
  readonly preview = new Preview();
  /** Whether the person wants to send each. */
  readonly wants = { camera: true, microphone: true };
  file: FileSource | null = null;
  private readonly input = make("input", {
    type: "file",
    accept: "video/*",
    hidden: true,
  });
  private readonly picture = new WindlassVideo();
  private readonly note = make("div", { class: "preview-note" });
  private readonly meter = new Meter();
  private readonly buttons = {
    camera: new InputButton("camera", () => this.toggle("camera")),
    microphone: new InputButton("microphone", () => this.toggle("microphone")),
  };
  private readonly pickers: DevicePickers;
  private opening: Promise<boolean> = Promise.resolve(true);
  private measures = false;

  /** `failed` gets what cannot be opened; `opened` is called when all that is wanted is open. */
  constructor(
    public origin: Origin,
    private readonly failed: (error: unknown, more?: Words) => void,
    private readonly opened: () => void,
  ) {
    this.input.onchange = () => {
      this.dropFile();
      void this.open();
    };
    this.pickers = new DevicePickers(this.preview, failed);
    this.picture.className = "picture";
    this.pickers.element.append(soundButton(this.preview.devices, failed));
    this.element = make(
      "div",
      { class: "ready" },
      make(
        "div",
        { class: "preview" },
        this.picture,
        this.note,
        make(
          "div",
          { class: "preview-bar" },
          this.buttons.microphone.element,
          this.meter.element,
          this.buttons.camera.element,
        ),
      ),
      this.input,
      this.pickers.element,
    );
    for (const kind of KINDS) this.preview[kind].on("change", () => this.dress());
    if (preferences.speaker !== "") this.preview.devices.setSpeaker(preferences.speaker).catch(() => undefined);
    this.dress();
  }

  /** Goes on as in a former call: who was muted there does not begin to send. */
  remember(wants: { camera: boolean; microphone: boolean }): void {
    Object.assign(this.wants, wants);
    this.dress();
  }

  /** Opens the devices at once where the person has allowed both before: no question is asked then. */
  async openIfAllowed(): Promise<void> {
    const allowed = async (name: string) => {
      const { state } = await navigator.permissions.query({ name: name as PermissionName });
      return state === "granted";
    };
    const both = await Promise.all(KINDS.map(allowed)).catch(() => [false]);
    if (this.origin === "devices" && !both.includes(false)) await this.open();
  }

  /** Changes where picture and sound come from. */
  async choose(origin: Origin): Promise<void> {
    this.origin = origin;
    this.dropFile();
    if (origin === "devices") Object.assign(this.wants, { camera: true, microphone: true });
    if (origin !== "devices") for (const kind of KINDS) await this.preview[kind].stop();
    this.dress();
    if (origin === "file") this.input.click();
    else if (origin === "devices") await this.open();
  }

  /** Lets the person choose another file. */
  chooseFile(): void {
    this.input.click();
  }

  /**
   * Opens what is wanted and not open yet. False where something cannot be opened, which is reported; what failed is
   * then switched off, so that the person can go on without. `alone`: the microphone is not needed.
   */
  open(alone = false): Promise<boolean> {
    // One after the other: what one has opened the next one needs not.
    this.opening = this.opening.then(() => this.openWanted(alone));
    return this.opening;
  }

  private async openWanted(alone: boolean): Promise<boolean> {
    if (this.origin === "none") return true;
    if (this.origin === "file") return this.openFile();
    const needed = alone ? (["camera"] as const) : KINDS;
    const wanted = needed.filter((kind) => this.wants[kind] && !this.preview[kind].active);
    const failures = await this.startAll(wanted);
    let good = true;
    for (const kind of wanted) {
      let failure = failures[kind];
      // The chosen device is not there: another one will do.
      if (isMissing(failure) && preferences[kind] !== "") failure = await this.start(kind, {});
      if (failure === null) continue;
      this.wants[kind] = false;
      // Most people have one of both on their machine.
      if (kind === "microphone" && isMissing(failure) && good) continue;
      if (good) this.failed(failure, words(`ready.without.${kind}`));
      good = false;
    }
    this.dress();
    if (good) this.opened();
    return good;
  }

  /** Shows the inputs that the call has not taken, as after a join that failed. */
  dress(): void {
    const { preview, origin, wants, picture, buttons } = this;
    const devices = origin === "devices";
    for (const kind of KINDS) {
      buttons[kind].element.hidden = !devices;
      buttons[kind].show(wants[kind]);
    }
    const { microphone } = preview;
    this.measure(devices && microphone.active && !microphone.muted);
    const track = devices ? preview.camera.track : (this.file?.stream.getVideoTracks()[0] ?? null);
    picture.track = track;
    picture.hidden = track === null;
    const facing = track?.getSettings().facingMode;
    picture.toggleAttribute("mirror", devices && facing !== "environment");
    this.describe(track !== null);
  }

  /** Closes what the call has not taken. */
  close(): void {
    this.measure(false);
    this.pickers.close();
    this.preview.close();
    this.file?.stop();
    this.picture.track = null;
  }

  private measure(measures: boolean): void {
    if (measures === this.measures) return;
    this.measures = measures;
    if (measures) this.meter.watch(this.preview.microphone);
    else this.meter.close();
  }

  /** Opens inputs; with what each was refused, null: it is open. */
  private async startAll(kinds: readonly InputKind[]): Promise<Record<InputKind, unknown>> {
    if (kinds.length === 2) return this.preview.startBoth(source("camera"), source("microphone"));
    const failures: Record<InputKind, unknown> = { camera: null, microphone: null };
    for (const kind of kinds) failures[kind] = await this.start(kind);
    return failures;
  }

  private async toggle(kind: InputKind): Promise<void> {
    const { wants, preview } = this;
    wants[kind] = !wants[kind];
    this.dress();
    const input = preview[kind];
    const refused = (error: unknown) => {
      wants[kind] = false;
      this.failed(error);
    };
    if (input.active) await input.setMuted(!wants[kind]).catch(refused);
    else if (wants[kind]) await this.open();
    this.dress();
  }

  private start(kind: InputKind, from = source(kind)): Promise<unknown> {
    return this.preview[kind].start(from).then(
      () => null,
      (error: unknown) => error,
    );
  }

  private dropFile(): void {
    this.file?.stop();
    this.file = null;
  }

  private async openFile(): Promise<boolean> {
    const file = this.input.files?.[0];
    if (file === undefined) {
      this.failed(null, words("file.none"));
      return false;
    }
    if (this.file !== null) return true;
    try {
      this.file = await openFile(file);
    } catch (error) {
      this.failed(error);
      return false;
    }
    this.dress();
    this.opened();
    return true;
  }

  /** Says what there will be to see where there is nothing yet. */
  private describe(shown: boolean): void {
    const { note, origin, preview, wants } = this;
    note.hidden = shown;
    if (shown) return;
    const off = origin === "devices" && (preview.camera.active || !wants.camera);
    const look = origin === "file" ? "file" : origin === "none" ? "people" : off ? "camera-off" : "camera";
    note.replaceChildren(icon(look), make("p", {}, words(off ? "ready.off" : `ready.${origin}`)));
    if (origin === "none" || off) return;
    const label = words(origin === "file" ? "ready.choose" : "ready.open");
    const button = make("button", { type: "button", class: "quiet" }, label);
    button.onclick = () => (origin === "file" ? this.input.click() : void this.open());
    note.append(button);
  }
}

/** The device that the person chose the last time. */
function source(kind: InputKind): { device?: string } {
  return preferences[kind] === "" ? {} : { device: preferences[kind] };
}

const isMissing = (error: unknown) => error instanceof WindlassError && error.code === "device_missing";
