/**
 * What the page measures while it sends: the bitrate of everything, and how close both halves are to what was drawn.
 */
import type { Room, WindlassVideo } from "../sdk/index.js";
import { lumaOf, Recent, Sent } from "./likeness.js";
import type { Scene } from "./scene.js";

/** Interval, milliseconds. */
const EVERY_MS = 500;
/** Frames of the clip that a picture is looked for in: more than any delay. */
const FRAMES = 45;
/** Measurements that are averaged. */
const MEAN_OF = 8;

/** The last measurements. Null: not known yet. */
export interface Figures {
  /** Everything that leaves this page for the server, kbit/s. */
  sentKbps: number | null;
  /** PSNR of the plain half, dB. */
  plain: number | null;
  /** PSNR of the rebuilt half, dB; null also while nothing is rebuilt. */
  rebuilt: number | null;
}

/** Measures the bitrate that is sent, and the PSNR of the plain and the rebuilt picture. */
export class Meter {
  private readonly sent = new Sent(FRAMES);
  private readonly psnr = { plain: new Recent(MEAN_OF), rebuilt: new Recent(MEAN_OF) };
  private readonly kbps = new Recent(2);
  private last: { at: number; bytes: number } | null = null;
  private readonly timer: ReturnType<typeof setInterval>;
  private readonly context: CanvasRenderingContext2D | null;

  constructor(
    private readonly room: Room,
    private readonly scene: Scene,
    private readonly video: WindlassVideo,
    private readonly changed: (figures: Figures) => void,
  ) {
    const { width, height } = scene.canvas;
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    this.context = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    scene.onFrame = (rgba) => this.sent.add(lumaOf(rgba));
    this.timer = setInterval(() => void this.measure().catch(() => undefined), EVERY_MS);
  }

  /** The place of a picture of the element. */
  static picture(video: WindlassVideo, part: "plain" | "enhanced"): HTMLVideoElement | null {
    return video.shadowRoot?.querySelector<HTMLVideoElement>(`video.${part}`) ?? null;
  }

  /** Forgets what was measured: something has changed. */
  restart(): void {
    this.psnr.plain.clear();
    this.psnr.rebuilt.clear();
  }

  close(): void {
    clearInterval(this.timer);
    this.scene.onFrame = null;
  }

  private async measure(): Promise<void> {
    const stats = [...((await this.room.connectionStats())?.values() ?? [])];
    const now = performance.now();
    // Firefox counts the bytes of candidate pairs alone.
    const of = (type: string) => stats.reduce((sum, e) => sum + (e.type === type ? (e.bytesSent ?? 0) : 0), 0);
    const bytes = of("transport") || of("candidate-pair");
    // A new connection counts from zero.
    if (this.last !== null && bytes >= this.last.bytes) {
      this.kbps.add(((bytes - this.last.bytes) * 8) / (now - this.last.at));
    }
    this.last = { at: now, bytes };
    this.look("plain", this.psnr.plain);
    if (this.video.getAttribute("state") === "native") this.psnr.rebuilt.clear();
    else this.look("enhanced", this.psnr.rebuilt);
    this.changed({ sentKbps: this.kbps.mean, plain: this.psnr.plain.mean, rebuilt: this.psnr.rebuilt.mean });
  }

  private look(part: "plain" | "enhanced", into: Recent): void {
    const { context } = this;
    const picture = Meter.picture(this.video, part);
    if (context === null || picture === null || picture.videoWidth === 0) return;
    const { width, height } = context.canvas;
    // As a browser enlarges it.
    context.imageSmoothingQuality = "high";
    context.drawImage(picture, 0, 0, width, height);
    const found = this.sent.psnr(lumaOf(context.getImageData(0, 0, width, height).data));
    if (found !== null) into.add(found);
  }
}
