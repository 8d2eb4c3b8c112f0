/** Observes the size and visibility of an element, so that the server sends what fills it and no more. */

/** How an element is shown. */
export interface Shown {
  /** Device pixels; 0: it is not visible. */
  width: number;
  /** See {@link width}. */
  height: number;
}

/** A new size counts when it has not changed for this time, milliseconds: a window may be being resized. */
const SETTLE_MS = 250;
/**
 * Delay until an element counts as hidden, milliseconds: scrolling past, or a short visit to another tab, should not
 * stop a picture.
 */
const HIDE_MS = 3000;
/** Relative change of a size that is ignored. */
const MAX_IGNORED_CHANGE = 0.1;

/** Whether two sizes need the same picture. */
export function alike(a: Shown, b: Shown): boolean {
  const near = (x: number, y: number) => Math.abs(x - y) <= MAX_IGNORED_CHANGE * Math.max(x, y);
  const hidden = (s: Shown) => s.width === 0 || s.height === 0;
  return hidden(a) || hidden(b) ? hidden(a) === hidden(b) : near(a.width, b.width) && near(a.height, b.height);
}

/** Calls `onChange` with how `element` is shown, now and whenever that changes. The returned function ends that. */
export function followShowing(element: Element, onChange: (shown: Shown) => void): () => void {
  let reported: Shown | null = null;
  let inViewport = true;
  let timer: ReturnType<typeof setTimeout> | undefined;
  // A floating window has a document, and a viewport, of its own.
  const { ownerDocument } = element;
  const view = ownerDocument.defaultView ?? globalThis;

  const measure = (): Shown => {
    // Of what lies in the shadow of an element the document knows the element alone.
    const root = element.getRootNode() as Document | ShadowRoot;
    const floating = root.pictureInPictureElement ?? ownerDocument.pictureInPictureElement;
    const floats = floating !== null && element.contains(floating);
    if (!floats && (!inViewport || ownerDocument.visibilityState === "hidden")) return { width: 0, height: 0 };
    const { width, height } = element.getBoundingClientRect();
    const ratio = view.devicePixelRatio || 1;
    return { width: Math.round(width * ratio), height: Math.round(height * ratio) };
  };
  const settle = () => {
    timer = undefined;
    const shown = measure();
    if (reported !== null && alike(reported, shown)) return;
    reported = shown;
    onChange(shown);
  };
  const changed = () => {
    clearTimeout(timer);
    const hides = measure().width === 0 && reported !== null && reported.width > 0;
    const appears = reported !== null && reported.width === 0;
    timer = setTimeout(settle, hides ? HIDE_MS : appears ? 0 : SETTLE_MS);
  };

  const sizes = new view.ResizeObserver(changed);
  sizes.observe(element);
  const visibility = new view.IntersectionObserver((entries) => {
    inViewport = entries[entries.length - 1]?.isIntersecting ?? true;
    changed();
  });
  visibility.observe(element);
  const events = ["enterpictureinpicture", "leavepictureinpicture"] as const;
  ownerDocument.addEventListener("visibilitychange", changed);
  for (const event of events) element.addEventListener(event, changed, true);
  changed();
  return () => {
    clearTimeout(timer);
    sizes.disconnect();
    visibility.disconnect();
    ownerDocument.removeEventListener("visibilitychange", changed);
    for (const event of events) element.removeEventListener(event, changed, true);
  };
}
