/** The camera and the microphone before a call: shown, measured and chosen on this page, and sent to nobody. */
import { Publication } from "../publication.js";
import { DeviceList } from "./device-list.js";
import type { InputKind } from "./errors.js";
import { LocalInput, type StartOptions } from "./local-input.js";
import { openBoth } from "./open.js";

/**
 * What a page shows before it joins: the same devices and inputs as those of a room, without a room. At the join, give
 * its tracks to the call, so that no device is opened twice and the person is not asked again:
 *
 * ```ts
 * const preview = new Preview();
 * await preview.camera.start();
 * const call = await join(url, { room, name, camera: preview.handOver("camera") });
 * ```
 */
export class Preview {
  private closed = false;
  /** The cameras, microphones and loudspeakers of this machine. */
  readonly devices = new DeviceList();
  /** The camera. `start()` opens it. */
  readonly camera = this.input("camera");
  /** The microphone. */
  readonly microphone = this.input("microphone");

  /**
   * Opens both at once, so that the person is asked once. Resolves with what each rejects with as `LocalInput.start`
   * does; null: it is open.
   */
  async startBoth(
    camera: StartOptions = {},
    microphone: StartOptions = {},
  ): Promise<{ camera: unknown; microphone: unknown }> {
    const both = await openBoth(camera, microphone);
    const start = (input: LocalInput, options: StartOptions, track: MediaStreamTrack | undefined) =>
      input.start(track === undefined ? options : { ...options, track }).then(
        () => null,
        (error: unknown) => error,
      );
    return {
      camera: await start(this.camera, camera, both?.getVideoTracks()[0]),
      microphone: await start(this.microphone, microphone, both?.getAudioTracks()[0]),
    };
  }

  /**
   * Ends the preview of an input: options for the call's own to go on with it as it is, the same device, muted or not;
   * false where it is off, so that the call opens nothing.
   */
  handOver(kind: InputKind): StartOptions | false {
    const input = this[kind];
    const { muted, device } = input;
    if (!input.active && !input.starting) return false;
    const track = input.handOver();
    return {
      muted,
      ...(device === null || device.id === "" ? {} : { device: device.id }),
      ...(track === null ? {} : { track }),
    };
  }

  /** Closes the devices that are still the preview's. */
  close(): void {
    this.closed = true;
    for (const input of [this.camera, this.microphone]) input.stop().catch(() => undefined);
    this.devices.close();
  }

  private input(kind: InputKind): LocalInput {
    return new LocalInput({
      kind,
      devices: this.devices,
      // What is opened later, as the person has just allowed it, is closed at once.
      isOver: () => this.closed,
      // Without a connection a publication sends nothing.
      publish: async (track) => new Publication(track, kind, "q"),
      unpublish: async () => undefined,
      mute: (publication, muted) => publication.setMuted(muted),
    });
  }
}
