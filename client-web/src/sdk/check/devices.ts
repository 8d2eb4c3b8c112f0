/** Whether camera and microphone are there, allowed, and send something. They are closed again at once. */
import { deviceError, deviceMissing, type InputKind, insecurePage } from "../devices/errors.js";
import { openDevice } from "../devices/open.js";
import { bounded } from "./bounded.js";
import { type Finding, TEXTS } from "./texts.js";

/** Max time for the person's answer and for the device to start, milliseconds. */
const DEVICE_MS = 30_000;
/** Time in which a device that was opened must send something, milliseconds. */
const SILENT_MS = 1500;
/** Interval of looks whether it does, milliseconds. */
const LOOK_MS = 100;

const LIST: Record<InputKind, MediaDeviceKind> = { camera: "videoinput", microphone: "audioinput" };

/** What the probe needs of `navigator.mediaDevices`. */
export type Machine = Pick<MediaDevices, "getUserMedia" | "enumerateDevices">;

/** Tries a device. */
export function probeDevice(kind: InputKind, machine: Machine | undefined): Promise<Finding> {
  let over = false;
  const probe = async (): Promise<Finding> => {
    if (machine === undefined) throw insecurePage([kind]);
    const known = await machine.enumerateDevices().catch(() => null);
    if (known !== null && !known.some((device) => device.kind === LIST[kind])) return missing(kind);
    let track: MediaStreamTrack;
    try {
      track = await openDevice(kind, {}, false, machine);
    } catch (error) {
      const reason = deviceError(error, [kind]);
      return reason.code === "device_missing" ? missing(kind) : TEXTS.refuses(reason.message, reason.hint);
    }
    if (over) track.stop();
    for (let waited = 0; track.muted && waited < SILENT_MS; waited += LOOK_MS) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    const { width, height } = track.getSettings();
    const silent = track.muted || track.readyState === "ended";
    track.stop();
    if (silent) return TEXTS.deviceSilent(kind);
    return TEXTS.device(track.label, width === undefined || kind === "microphone" ? "" : `${width}×${height}`);
  };
  return bounded(probe, DEVICE_MS, () => TEXTS.unanswered(kind)).finally(() => {
    over = true;
  });
}

function missing(kind: InputKind): Finding {
  const { message, hint } = deviceMissing([kind]);
  return TEXTS.deviceMissing(message, hint, kind);
}
