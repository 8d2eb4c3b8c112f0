/** The picture of a tile in a window of its own, above all others (picture-in-picture). */
import type { WindlassVideo } from "../sdk/index.js";

/** Whether the browser can. */
export const canFloat = (): boolean =>
  document.pictureInPictureEnabled === true && "requestPictureInPicture" in HTMLVideoElement.prototype;

/** The video of an element that shows the better picture now. */
function shownIn(element: WindlassVideo): HTMLVideoElement | null {
  const plain = element.view === "plain" || element.getAttribute("state") === "native";
  return element.shadowRoot?.querySelector<HTMLVideoElement>(plain ? "video.plain" : "video.enhanced") ?? null;
}

/** Whether a picture of the element floats. */
const floats = (element: WindlassVideo): boolean => (element.shadowRoot?.pictureInPictureElement ?? null) !== null;

/** Lets the picture float, or ends that. Call it in a gesture. */
export async function toggleFloating(element: WindlassVideo): Promise<void> {
  if (floats(element)) await document.exitPictureInPicture();
  else await shownIn(element)?.requestPictureInPicture();
}

/** Has the floating window go on with the better picture when another one is that; call it at each event `state`. */
export async function followFloating(element: WindlassVideo): Promise<void> {
  const shown = shownIn(element);
  // No gesture is needed while one floats.
  if (floats(element) && shown !== element.shadowRoot?.pictureInPictureElement) await shown?.requestPictureInPicture();
}
