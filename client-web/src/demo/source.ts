/** The source of the own picture and sound: camera and microphone, or a video file that plays in a loop. */

import { deviceError, insecurePage, type WindlassError } from "../sdk/index.js";

/** A failure to open a source, with a message and a hint for the person. */
export class SourceError extends Error {
  constructor(
    readonly code: WindlassError["code"] | "file",
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

/** A running source. */
export interface Source {
  readonly stream: MediaStream;
  stop(): void;
}

/** Opens the camera and the microphone; the camera alone where there is no microphone. */
export async function openCamera(): Promise<Source> {
  const devices: MediaDevices | undefined = navigator.mediaDevices;
  if (devices === undefined) throw readable(insecurePage(["camera"]));
  const video = { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 30 } };
  const audio = { echoCancellation: true, noiseSuppression: true };
  try {
    return owned(await devices.getUserMedia({ video, audio }));
  } catch (first) {
    if (nameOf(first) !== "NotFoundError") throw readable(first);
  }
  try {
    return owned(await devices.getUserMedia({ video }));
  } catch (second) {
    throw readable(second);
  }
}

/** Plays a file in a loop instead of the camera. */
export async function openFile(file: File): Promise<Source> {
  const video = document.createElement("video");
  const url = URL.createObjectURL(file);
  Object.assign(video, { src: url, loop: true, muted: true, playsInline: true });
  const refused = () =>
    new SourceError("file", `“${file.name}” cannot be played.`, "Choose another video, such as an MP4 or a WebM file.");
  try {
    await video.play();
  } catch {
    URL.revokeObjectURL(url);
    throw refused();
  }
  const stream = video.captureStream?.();
  if (stream === undefined || stream.getVideoTracks().length === 0) throw refused();
  return {
    stream: new MediaStream(stream.getTracks()),
    stop: () => {
      for (const track of stream.getTracks()) track.stop();
      video.pause();
      video.removeAttribute("src");
      URL.revokeObjectURL(url);
    },
  };
}

function owned(stream: MediaStream): Source {
  return {
    stream,
    stop: () => {
      for (const track of stream.getTracks()) track.stop();
    },
  };
}

const nameOf = (error: unknown): string => (Object(error) as { name?: string }).name ?? "";

/** The SDK's words for a failure. A question to the person is about both devices; else it is the camera that fails. */
function readable(error: unknown): SourceError {
  const asked = nameOf(error) === "NotAllowedError" || nameOf(error) === "SecurityError";
  const { code, message, hint } = deviceError(error, asked ? ["camera", "microphone"] : ["camera"]);
  return new SourceError(code, message, `${hint} Or use a video file.`);
}
