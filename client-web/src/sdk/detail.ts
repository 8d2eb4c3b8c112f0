/**
 * The detail stream's sender: a clone of the camera at full size, one or two frames a second
 * (the recipe and its traps: `docs/detail-stream.md`).
 *
 * While it is paused it has no track, and the clone is stopped: nothing of the camera is read for it.
 */
import type { DetailWish } from "./protocol.js";
import { vp9Preferences } from "./receiver.js";

/** Changes in a row before the next call. */
const MOST_ROUNDS = 8;

/** What to send of which camera; null: nothing. */
export type DetailTask = { camera: MediaStreamTrack; detail: DetailWish; down: number } | null;

/** See the module's head. */
export class DetailSender {
  readonly transceiver: RTCRtpTransceiver;
  private wanted: DetailTask = null;
  private done: DetailTask = null;
  private running = false;
  private clone: { of: string; track: MediaStreamTrack } | null = null;

  constructor(pc: RTCPeerConnection) {
    const encoding = { active: false, maxBitrate: 30_000, maxFramerate: 1, scalabilityMode: "L1T1" };
    this.transceiver = pc.addTransceiver("video", { direction: "sendonly", sendEncodings: [encoding] });
    this.transceiver.setCodecPreferences(vp9Preferences(RTCRtpSender.getCapabilities("video")?.codecs ?? []));
  }

  /** What is sent now. */
  get task(): DetailTask {
    return this.done;
  }

  /** Sends this from now on. Of calls in a row the last one counts. */
  apply(task: DetailTask): void {
    this.wanted = task;
    if (this.running) return;
    this.running = true;
    void this.run().finally(() => {
      this.running = false;
    });
  }

  /** Ends it. */
  close(): void {
    this.transceiver.direction = "inactive";
    this.apply(null);
  }

  private async run(): Promise<void> {
    // A few rounds, as a camera that ends while it is cloned gives clones that have ended too.
    for (let round = 0; round < MOST_ROUNDS && (!same(this.wanted, this.done) || this.outdated()); round++) {
      const task = this.wanted;
      try {
        if (task === null) await this.pause();
        else await this.send(task);
        this.done = task;
      } catch {
        // The camera or the connection went away under it; what comes next is told by a later call.
        this.drop();
        this.done = null;
        return;
      }
    }
  }

  /** Whether the camera has another size than the clone was made for, or the browser ended the clone. */
  private outdated(): boolean {
    const { wanted, clone } = this;
    if (wanted === null || clone === null) return false;
    return clone.of !== shape(wanted.camera) || this.lost(clone.track);
  }

  private lost(track: MediaStreamTrack): boolean {
    return track.readyState === "ended" || this.transceiver.sender.track !== track;
  }

  private async pause(): Promise<void> {
    const { sender } = this.transceiver;
    const parameters = sender.getParameters();
    // Inactive, it does not answer for packets that were lost on a path that is too narrow now.
    for (const encoding of parameters.encodings) encoding.active = false;
    await sender.setParameters(parameters);
    await sender.replaceTrack(null);
    this.drop();
  }

  private async send({ camera, detail, down }: NonNullable<DetailTask>): Promise<void> {
    const { sender } = this.transceiver;
    const of = shape(camera);
    const old = this.clone;
    const track = old?.of === of && old.track.readyState !== "ended" ? old.track : camera.clone();
    // A lower rate at the source: with the encoder's cap alone Chromium sends two key frames at each start.
    const slowed = await track.applyConstraints(constraints(camera, detail.fps)).then(
      () => true,
      () => false,
    );
    const parameters = sender.getParameters();
    parameters.degradationPreference = "maintain-resolution";
    for (const encoding of parameters.encodings) {
      encoding.active = true;
      encoding.maxBitrate = detail.kbps * 1000;
      // Chromium slows the capture of a shared tab to the cap of any of its encoders, and with it the low layers.
      if (slowed && shared(camera)) delete encoding.maxFramerate;
      else encoding.maxFramerate = detail.fps;
      encoding.scaleResolutionDownBy = down;
    }
    await sender.setParameters(parameters);
    this.clone = { of, track };
    if (sender.track !== track) await sender.replaceTrack(track);
    if (old?.track !== track) old?.track.stop();
  }

  private drop(): void {
    this.clone?.track.stop();
    this.clone = null;
  }
}

/** What a clone must be made anew for. */
function shape(camera: MediaStreamTrack): string {
  const { width, height } = camera.getSettings();
  return `${camera.id} ${width}x${height}`;
}

/** Whether it is a screen, a window or a tab. */
export const shared = (track: MediaStreamTrack): boolean => track.getSettings().displaySurface !== undefined;

/** A camera's own constraints with another frame rate; a shared surface keeps whatever size it has. */
function constraints(camera: MediaStreamTrack, fps: number): MediaTrackConstraints {
  const { width, height } = camera.getSettings();
  if (shared(camera) || width === undefined || height === undefined) return { frameRate: fps };
  return { ...camera.getConstraints(), width, height, frameRate: fps };
}

function same(a: DetailTask, b: DetailTask): boolean {
  if (a === null || b === null) return a === b;
  return a.camera === b.camera && a.down === b.down && a.detail.kbps === b.detail.kbps && a.detail.fps === b.detail.fps;
}
