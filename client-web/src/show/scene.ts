/** What the page sends: a canvas that shows the clip, or small text, and gives a track of it. */
import { say } from "../demo/language.js";
import { i420Of } from "./i420.js";
import { drawText, TEXT_SIZE } from "./text.js";

/** Which one is shown. */
export type SceneName = "person" | "text";

/** Frames per second of the clip, and of the text. */
const FPS: Record<SceneName, number> = { person: 30, text: 10 };
/** The clip's size, pixels. */
const CLIP_SIZE = { width: 640, height: 360 };

/** A canvas that draws the clip or the text, and the video track of it. */
export class Scene {
  readonly canvas = document.createElement("canvas");
  readonly track: MediaStreamTrack;
  /** Called with the pixels of each frame that was drawn. */
  onFrame: ((rgba: Uint8ClampedArray) => void) | null = null;
  private readonly context: CanvasRenderingContext2D;
  /** Where frames are written to the track; null: the track follows the canvas by itself. */
  private readonly writer: WritableStreamDefaultWriter<VideoFrame> | null = null;
  private video: HTMLVideoElement | null = null;
  private timer: ReturnType<typeof setInterval> | undefined;
  private url = "";

  private constructor(readonly name: SceneName) {
    Object.assign(this.canvas, name === "text" ? TEXT_SIZE : CLIP_SIZE);
    const context = this.canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    if (context === null) throw new Error(say("show.no_canvas"));
    this.context = context;
    // Frames of a captured canvas reach Chromium's encoder in another range of brightness than stills of them.
    if (typeof MediaStreamTrackGenerator !== "undefined") {
      const generator = new MediaStreamTrackGenerator({ kind: "video" });
      this.writer = generator.writable.getWriter();
      this.track = generator;
      return;
    }
    const [track] = this.canvas.captureStream(FPS[name]).getVideoTracks();
    if (track === undefined) throw new Error(say("show.no_capture"));
    this.track = track;
  }

  /** Opens it: it moves from then on. Rejects where the clip cannot be played. */
  static async open(name: SceneName): Promise<Scene> {
    const scene = new Scene(name);
    if (name === "text") scene.playText();
    else await scene.playClip();
    return scene;
  }

  /** Ends it. */
  close(): void {
    clearInterval(this.timer);
    this.video?.pause();
    this.video = null;
    void this.writer?.close().catch(() => undefined);
    this.track.stop();
    URL.revokeObjectURL(this.url);
  }

  /** Hands on the frame that was drawn. */
  private drawn(): void {
    const { width, height } = this.canvas;
    const { data } = this.context.getImageData(0, 0, width, height);
    this.onFrame?.(data);
    // A frame that would wait is one too many.
    if (this.writer === null || (this.writer.desiredSize ?? 0) <= 0) return;
    const frame = new VideoFrame(i420Of(data, width, height), {
      format: "I420",
      codedWidth: width,
      codedHeight: height,
      timestamp: performance.now() * 1000,
      colorSpace: { matrix: "bt709", primaries: "bt709", transfer: "bt709", fullRange: false },
    });
    this.writer.write(frame).catch(() => frame.close());
  }

  private playText(): void {
    const from = performance.now();
    const draw = () => {
      drawText(this.context, (performance.now() - from) / 1000);
      this.drawn();
    };
    draw();
    this.timer = setInterval(draw, 1000 / FPS.text);
  }

  private async playClip(): Promise<void> {
    const response = await fetch("signing.webm");
    if (!response.ok) throw new Error(say("show.clip.missing", { status: response.status }));
    // A whole file in memory loops without a pause.
    this.url = URL.createObjectURL(await response.blob());
    const video = document.createElement("video");
    Object.assign(video, { muted: true, playsInline: true, loop: true, src: this.url });
    this.video = video;
    await video.play();
    let shown = -1;
    const draw = () => {
      if (this.video === null || video.currentTime === shown) return;
      shown = video.currentTime;
      this.context.drawImage(video, 0, 0, this.canvas.width, this.canvas.height);
      this.drawn();
    };
    if (video.requestVideoFrameCallback === undefined) {
      this.timer = setInterval(draw, 1000 / FPS.person);
      return;
    }
    const next = () => {
      draw();
      if (this.video !== null) video.requestVideoFrameCallback(next);
    };
    video.requestVideoFrameCallback(next);
  }
}
