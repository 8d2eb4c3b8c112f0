/** The own camera: shown, with a notice when it is unplugged, on the device of the last time, and muted. */
import type { Room, WindlassVideo } from "windlass-client";

/** Starts the camera, unless `join` has, and mutes it. */
export async function film(call: Room, preview: WindlassVideo, say: (text: string) => void): Promise<void> {
  const device = localStorage.getItem("camera") ?? "";
  call.camera.on("change", () => {
    preview.track = call.camera.track;
  });
  call.camera.on("ended", ({ replacedBy }) => {
    say(replacedBy === null ? "Your camera is gone." : `Now on ${replacedBy.label}.`);
  });
  await call.camera.start({ ...(device === "" ? {} : { device }), publish: { layers: "qhf" } });
  await call.camera.setMuted(true);
}
