/** The choice of camera, microphone and loudspeaker. */
import type { Device, DeviceKind, DeviceList, Devices, LocalInput } from "../sdk/index.js";
import { icon, make } from "./dom.js";
import { words, write } from "./language.js";
import { prefer, preferences } from "./preferences.js";

/** What devices are chosen for: a preview, or a call. */
export interface Inputs {
  readonly devices: DeviceList;
  readonly camera: LocalInput;
  readonly microphone: LocalInput;
}

const KINDS = ["camera", "microphone", "speaker"] as const;
const ICONS = { camera: "camera", microphone: "mic", speaker: "sound" } as const;

const ofKind = (devices: Devices, kind: DeviceKind): Device[] =>
  devices[kind === "camera" ? "cameras" : kind === "microphone" ? "microphones" : "speakers"];

/** Lists of cameras, microphones and loudspeakers to choose from, kept up to date. */
export class DevicePickers {
  readonly element = make("div", { class: "devices", role: "group", "aria-label": words("devices") });
  private readonly selects = new Map<DeviceKind, HTMLSelectElement>();
  private readonly ends: (() => void)[];

  /** `failed` gets the reason where a device cannot be used; the former one goes on. */
  constructor(
    private readonly inputs: Inputs,
    private readonly failed: (error: unknown) => void,
  ) {
    for (const kind of KINDS) {
      const select = make("select", { name: kind, "aria-label": words(`choose.${kind}`) });
      select.onchange = () => void this.choose(kind, select.value);
      this.selects.set(kind, select);
      this.element.append(make("label", { class: "device" }, icon(ICONS[kind]), select));
    }
    const { devices, camera, microphone } = inputs;
    const fill = () => void this.fill();
    this.ends = [devices.on("change", fill), devices.on("speaker", fill), camera.on("change", fill)];
    this.ends.push(microphone.on("change", fill));
    fill();
  }

  /** Ends what it listens to. */
  close(): void {
    for (const end of this.ends) end();
  }

  private async fill(): Promise<void> {
    // Where the page gets no devices, there is nothing to choose.
    const devices = await this.inputs.devices.list().catch(() => null);
    for (const [kind, select] of this.selects) {
      const found = devices === null ? [] : ofKind(devices, kind).filter(({ id }) => id !== "");
      const options = found.map(({ id, label }, at) => {
        const option = make("option", { value: id }, label);
        if (label === "") write(option, words("devices.unnamed", { n: at + 1 }));
        return option;
      });
      // Chromium names the system's choice itself.
      if (kind === "speaker" && found.length > 0 && !found.some(({ id }) => id === "default")) {
        options.unshift(make("option", { value: "" }, words("devices.usual")));
      }
      select.disabled = options.length === 0;
      if (options.length === 0) options.push(make("option", { value: "" }, words(`none.${kind}`)));
      // A list that is open would close.
      const same = options.map((option) => option.value + option.text).join("\n");
      if (select.dataset["list"] !== same) select.replaceChildren(...options);
      select.dataset["list"] = same;
      select.value = this.current(kind);
      if (select.selectedIndex < 0) select.selectedIndex = 0;
    }
    this.element.hidden = [...this.selects.values()].every(({ disabled }) => disabled);
  }

  private current(kind: DeviceKind): string {
    if (kind !== "speaker") return this.inputs[kind].device?.id ?? preferences[kind];
    return this.inputs.devices.speaker || "default";
  }

  private async choose(kind: DeviceKind, id: string): Promise<void> {
    try {
      if (kind === "speaker") await this.inputs.devices.setSpeaker(id);
      else await this.inputs[kind].switchTo(id);
      prefer({ [kind]: id });
    } catch (error) {
      this.failed(error);
      await this.fill();
    }
  }
}
