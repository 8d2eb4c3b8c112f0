/** Sharing a screen, a window or a tab, with its sound where the browser gives it. */
import { Emitter } from "./emitter.js";
import { WindlassError } from "./errors.js";
import type { DetailChoice, Publication } from "./publication.js";
import type { PublishOptions } from "./room.js";

/** Options of `Room.shareScreen`. */
export interface ScreenOptions {
  /** Whether its sound is shared too, where the browser and the person allow it. Default: true. */
  audio?: boolean;
  /**
   * `ask`: full-size stills are sent when the server asks for them. A screen has had none so far: it goes at full size,
   * and at about one frame a second there are too few frames to find a still's by. Set it only with the person's
   * consent. Default: `off`.
   */
  detail?: DetailChoice;
}

/** The events of {@link ScreenShare}. */
export interface ScreenShareEvents {
  /** Sharing has ended: by `stop()`, by the browser's own button, or as the window was closed. */
  ended: undefined;
}

/** What a shared screen needs of its room and of the browser. @internal */
export interface ScreenHost {
  publish(track: MediaStreamTrack, options: PublishOptions): Promise<Publication>;
  unpublish(publication: Publication): Promise<void>;
  /** Default: by `getDisplayMedia`. */
  open?(options: DisplayMediaStreamOptions): Promise<MediaStream>;
}

/** A screen, window or tab that this participant shares: the tracks `screen` and, with sound, `screen_audio`. */
export class ScreenShare extends Emitter<ScreenShareEvents> {
  private hasEnded = false;

  private constructor(
    private readonly host: ScreenHost,
    /** What is sent, the picture first. */
    readonly publications: readonly Publication[],
  ) {
    super(["ended"]);
    this.track.addEventListener("ended", () => void this.stop());
    // It may have ended while it was being published, when nobody listened.
    if (this.track.readyState === "ended") setTimeout(() => void this.stop(), 0);
  }

  /**
   * Lets the person choose what to share, and sends it. Must be called in a gesture of the person, such as a click.
   * @internal
   */
  static async start(host: ScreenHost, { audio = true, detail = "off" }: ScreenOptions): Promise<ScreenShare> {
    const open = host.open ?? ((options) => navigator.mediaDevices.getDisplayMedia(options));
    let stream: MediaStream;
    try {
      // More frames than that would be made for nothing: text needs pixels.
      stream = await open({ video: { frameRate: 15 }, audio });
    } catch (error) {
      throw screenError(error);
    }
    const publications: Publication[] = [];
    try {
      for (const track of [...stream.getVideoTracks(), ...stream.getAudioTracks()]) {
        if (track.kind === "video" && track.contentHint === "") track.contentHint = "detail";
        const options: PublishOptions =
          track.kind === "video"
            ? { name: "screen", layers: "qf", content: "screen", detail }
            : { name: "screen_audio" };
        publications.push(await host.publish(track, options));
      }
    } catch (error) {
      for (const track of stream.getTracks()) track.stop();
      await Promise.allSettled(publications.map((publication) => host.unpublish(publication)));
      throw error;
    }
    return new ScreenShare(host, publications);
  }

  /** The picture that is sent. */
  get track(): MediaStreamTrack {
    return (this.publications[0] as Publication).track;
  }

  /** Whether sharing has ended. */
  get ended(): boolean {
    return this.hasEnded;
  }

  /** Stops sharing. A second call does nothing. */
  async stop(): Promise<void> {
    if (this.hasEnded) return;
    this.hasEnded = true;
    for (const { track } of this.publications) track.stop();
    this.emit("ended", undefined);
    // A connection that is lost meanwhile takes them along.
    await Promise.allSettled(this.publications.map((publication) => this.host.unpublish(publication)));
  }
}

/** Names the cause of a failure of `getDisplayMedia`. */
function screenError(error: unknown): WindlassError {
  if (error instanceof WindlassError) return error;
  const { name = "" } = Object(error) as Partial<DOMException>;
  if (typeof navigator !== "undefined" && navigator.mediaDevices?.getDisplayMedia === undefined) {
    return new WindlassError(
      "unsupported",
      "This browser cannot share a screen here.",
      "Open the page by https in a browser of a computer, not of a phone.",
    );
  }
  if (name === "NotAllowedError") {
    return new WindlassError(
      "permission_denied",
      "The screen is not shared.",
      "Choose a screen, window or tab when the browser asks. The operating system may have to allow the browser that, too.",
    );
  }
  if (name === "InvalidStateError") {
    return new WindlassError(
      "bad_option",
      "Sharing must begin with a click.",
      "Call shareScreen() when a button is pressed.",
    );
  }
  return new WindlassError(
    "device_busy",
    "The screen cannot be shared now.",
    "Choose another window or tab, or try again.",
  );
}
