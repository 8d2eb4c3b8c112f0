/** What a video track shows, as far as the browser or the page tells. */
import type { Content } from "./uplink/layers.js";

/** Whether it is a screen, window or tab, or has the content hint of one; else it counts as a camera. */
export function contentOf(track: MediaStreamTrack | null): Content {
  const screen =
    track !== null &&
    (track.getSettings?.().displaySurface !== undefined ||
      track.contentHint === "detail" ||
      track.contentHint === "text");
  return screen ? "screen" : "camera";
}
