/** Opens a camera or a microphone. */
import { deviceError, type InputKind, insecurePage } from "./errors.js";

/** Which side of a phone a camera looks to: to the person, or away. */
export type Facing = "user" | "environment";

/** Which device is opened, and how. */
export interface Source {
  /** The id of a device: that device and no other is opened. */
  device?: string;
  /** Camera: the side, where `device` is not set. Default: the browser's choice. */
  facing?: Facing;
  /** Camera: the width to aim at, pixels. Default: 1280. */
  width?: number;
  /** Camera: the height to aim at, pixels. Default: 720. */
  height?: number;
}

/** What {@link openDevice} needs of `navigator.mediaDevices`. */
export type MediaSource = Pick<MediaDevices, "getUserMedia">;

/**
 * The constraints of a source. Echo cancellation, noise suppression and automatic gain control are on. `onlyFacing`: a
 * camera of the other side is no substitute.
 */
export function constraintsOf(kind: InputKind, source: Source, onlyFacing = false): MediaStreamConstraints {
  const { device, facing, width = 1280, height = 720 } = source;
  const deviceId = device === undefined ? {} : { deviceId: { exact: device } };
  if (kind === "microphone") {
    const audio = { ...deviceId, echoCancellation: true, noiseSuppression: true, autoGainControl: true };
    return { audio };
  }
  const side = onlyFacing ? { exact: facing } : { ideal: facing };
  const facingMode = facing === undefined || device !== undefined ? {} : { facingMode: side };
  const size = { width: { ideal: width }, height: { ideal: height }, frameRate: { ideal: 30 } };
  return { video: { ...deviceId, ...facingMode, ...size } as MediaTrackConstraints };
}

/** Opens a device. Rejects with a `WindlassError` that names the cause. */
export async function openDevice(
  kind: InputKind,
  source: Source,
  onlyFacing = false,
  media: MediaSource | undefined = globalThis.navigator?.mediaDevices,
): Promise<MediaStreamTrack> {
  if (media === undefined) throw insecurePage([kind]);
  try {
    const stream = await media.getUserMedia(constraintsOf(kind, source, onlyFacing));
    const track = stream.getTracks()[0];
    if (track !== undefined) return track;
  } catch (error) {
    throw deviceError(error, [kind]);
  }
  throw deviceError(undefined, [kind]);
}

/**
 * Opens the usual camera and microphone at once, so that the person is asked once. Null where that fails: each is then
 * opened by itself, which tells what is missing.
 */
export async function openBoth(
  camera: Source,
  microphone: Source,
  media: MediaSource | undefined = globalThis.navigator?.mediaDevices,
): Promise<MediaStream | null> {
  const constraints = { ...constraintsOf("camera", camera), ...constraintsOf("microphone", microphone) };
  return (await media?.getUserMedia(constraints).catch(() => null)) ?? null;
}
