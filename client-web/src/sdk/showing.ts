/** How large, and whether, an element is seen: told when it changes, so that the server sends what fills it and no more. */

export interface Shown {
  /** In pixels of the device; 0: nobody sees it. */
  width: number;
  /** See {@link width}. */
  height: number;
}

/** Sizes change many times while a window is dragged: they are told when they have been the same for this long. */
const SETTLE_MS = 250;
/** What goes out of sight is told later: scrolling past, or a look at another tab, should not stop a picture. */
const HIDE_MS = 3000;
/** Smaller changes are not worth telling. */
const SLIGHT = 0.1;

/** Whether two sizes call for the same picture. */
export function alike(a: Shown, b: Shown): boolean {
  const near = (x: number, y: number) => Math.abs(x - y) <= SLIGHT * Math.max(x, y);
  const hidden = (s: Shown) => s.width === 0 || s.height === 0;
  return hidden(a) || hidden(b) ? hidden(a) === hidden(b) : near(a.width, b.width) && near(a.height, b.height);
}

/** Calls `tell` with how `element` is shown, now and whenever that changes; the result ends it. */
export function followShowing(element: Element, tell: (shown: Shown) => void): () => void {
  let told: Shown | null = null;
  let inSight = true;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const look = (): Shown => {
    const floating = document.pictureInPictureElement;
    const lifted = floating !== null && element.contains(floating);
    if (!lifted && (!inSight || document.visibilityState === "hidden")) return { width: 0, height: 0 };
    const { width, height } = element.getBoundingClientRect();
    const ratio = globalThis.devicePixelRatio || 1;
    return { width: Math.round(width * ratio), height: Math.round(height * ratio) };
  };
  const settle = () => {
    timer = undefined;
    const shown = look();
    if (told !== null && alike(told, shown)) return;
    told = shown;
    tell(shown);
  };
  const changed = () => {
    clearTimeout(timer);
    const hides = look().width === 0 && told !== null && told.width > 0;
    const appears = told !== null && told.width === 0;
    timer = setTimeout(settle, hides ? HIDE_MS : appears ? 0 : SETTLE_MS);
  };

  const sizes = new ResizeObserver(changed);
  sizes.observe(element);
  const sight = new IntersectionObserver((entries) => {
    inSight = entries[entries.length - 1]?.isIntersecting ?? true;
    changed();
  });
  sight.observe(element);
  const events = ["enterpictureinpicture", "leavepictureinpicture"] as const;
  document.addEventListener("visibilitychange", changed);
  for (const event of events) element.addEventListener(event, changed, true);
  changed();
  return () => {
    clearTimeout(timer);
    sizes.disconnect();
    sight.disconnect();
    document.removeEventListener("visibilitychange", changed);
    for (const event of events) element.removeEventListener(event, changed, true);
  };
}
