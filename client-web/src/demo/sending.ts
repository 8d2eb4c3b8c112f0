/** What this participant sends: its camera and microphone, or a video file in their place. */
import type { InputKind } from "../sdk/devices/errors.js";
import type { Layers, LocalInput, Publication, PublishOptions, Room } from "../sdk/index.js";
import type { Choice } from "./start.js";

/** Is notified of changes in what is sent. */
export interface SendingHost {
  /** Something is on or off now, or comes from another device. */
  changed(): void;
  /** Something cannot be done. */
  failed(error: unknown): void;
}

const MEDIA = { camera: "video", microphone: "audio" } as const;

/** Starts, changes and stops what this participant sends. */
export class Sending {
  private readonly ends: (() => void)[];
  /** The tracks of a video file. */
  private publications: Publication[] = [];
  private hasBegun = false;
  private layers: Layers;

  constructor(
    private readonly room: Room,
    private readonly choice: Choice,
    private readonly host: SendingHost,
  ) {
    this.layers = choice.layers;
    const changed = () => host.changed();
    this.ends = [
      room.camera.on("change", changed),
      room.microphone.on("change", changed),
      room.on("publicationMuted", changed),
    ];
  }

  /** Whether something was chosen that can be sent. */
  get wanted(): boolean {
    return this.choice.ready.origin !== "none";
  }

  /** Whether it is being sent, muted or not. */
  get begun(): boolean {
    return this.hasBegun;
  }

  /** Whether there can be a picture, or sound. A call with oneself has no listeners. */
  has(kind: InputKind): boolean {
    const { loopback, ready } = this.choice;
    if ((kind === "microphone" && loopback) || !this.room.may("publish")) return false;
    if (ready.origin === "file") return this.file(kind) !== undefined;
    return ready.origin === "devices";
  }

  /** Whether it is sent and not muted. */
  on(kind: InputKind): boolean {
    if (this.choice.ready.origin !== "file") return this.room[kind].active && !this.room[kind].muted;
    return this.publications.some((publication) => publication.kind === MEDIA[kind] && !publication.muted);
  }

  /** The own picture; null while there is none. */
  get picture(): MediaStreamTrack | null {
    if (this.choice.ready.origin !== "file") return this.room.camera.track;
    return this.on("camera") ? (this.file("camera") ?? null) : null;
  }

  /** Whether the picture is that of a camera that looks at the person, who knows herself from a mirror. */
  get mirrored(): boolean {
    return this.choice.ready.origin === "devices" && this.picture?.getSettings().facingMode !== "environment";
  }

  /** Sends what was chosen. Failures are reported; the call goes on. */
  async begin(): Promise<void> {
    const { room, choice } = this;
    const { ready } = choice;
    if (!this.wanted || !room.may("publish")) return;
    this.hasBegun = true;
    if (ready.origin === "file") {
      const { stream } = ready.file ?? { stream: new MediaStream() };
      const tracks = stream.getTracks().filter(({ kind }) => kind === "video" || !choice.loopback);
      this.publications = await room.publish(tracks, this.how("camera")).catch((error: unknown) => {
        this.host.failed(error);
        return [];
      });
    } else {
      await Promise.all([this.start("camera"), this.has("microphone") ? this.start("microphone") : null]);
    }
    this.host.changed();
  }

  /** A moderator has ended all of it. */
  ended(): void {
    this.hasBegun = false;
    this.publications = [];
    this.host.changed();
  }

  /** Switches the camera or the microphone on or off. */
  async set(kind: InputKind, on: boolean): Promise<void> {
    this.choice.ready.wants[kind] = on;
    const file = this.publications.find((publication) => publication.kind === MEDIA[kind]);
    if (file !== undefined) {
      this.room.mute(file, !on);
      this.host.changed();
      return;
    }
    const input = this.room[kind];
    try {
      if (input.active) await input.setMuted(!on);
      else if (on) await this.open(input);
    } catch (error) {
      this.choice.ready.wants[kind] = false;
      this.host.failed(error);
    }
    this.host.changed();
  }

  /** Which layers are sent. */
  get sent(): Layers {
    return this.layers;
  }

  /** Sends other layers. */
  setLayers(layers: Layers): void {
    this.layers = layers;
    const video = this.room.camera.publication ?? this.publications.find(({ kind }) => kind === "video");
    video?.setLayers(layers).catch((error: unknown) => this.host.failed(error));
  }

  /** Stops listening, and what the room does not stop itself. */
  close(): void {
    for (const end of this.ends) end();
    this.choice.ready.close();
  }

  private file(kind: InputKind): MediaStreamTrack | undefined {
    return this.choice.ready.file?.stream.getTracks().find((track) => track.kind === MEDIA[kind]);
  }

  private how(kind: InputKind): PublishOptions {
    const { stills } = this.choice;
    return kind === "camera" ? { layers: this.layers, detail: stills ? "ask" : "off" } : {};
  }

  /** Goes on with the preview's device, on or off as it was. What is off and was never opened stays closed. */
  private async start(kind: InputKind): Promise<void> {
    const { wants, preview } = this.choice.ready;
    const from = preview.handOver(kind);
    try {
      if (wants[kind]) await this.open(this.room[kind], { ...from, muted: false });
      else if ((from !== false && from.track !== undefined) || kind === "camera")
        await this.open(this.room[kind], { ...from, muted: true });
    } catch (error) {
      wants[kind] = false;
      this.host.failed(error);
    }
  }

  private open(input: LocalInput, from = {}): Promise<void> {
    return input.start({ ...from, publish: this.how(input.kind) });
  }
}
