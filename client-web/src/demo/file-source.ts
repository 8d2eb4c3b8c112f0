/** A video file that plays in a loop in place of camera and microphone. */
import { say } from "./language.js";

/** A file that cannot be played, with a message and a hint for the person. */
export class FileError extends Error {
  readonly hint = say("file.hint");

  constructor(name: string) {
    super(say("file.refused", { name }));
  }
}

/** A running file. */
export interface FileSource {
  readonly stream: MediaStream;
  stop(): void;
}

/** Plays a file. Rejects with a {@link FileError}. */
export async function openFile(file: File): Promise<FileSource> {
  const video = document.createElement("video");
  const url = URL.createObjectURL(file);
  Object.assign(video, { src: url, loop: true, muted: true, playsInline: true });
  try {
    await video.play();
  } catch {
    URL.revokeObjectURL(url);
    throw new FileError(file.name);
  }
  const stream = video.captureStream?.();
  if (stream === undefined || stream.getVideoTracks().length === 0) throw new FileError(file.name);
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
