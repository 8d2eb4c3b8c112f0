/**
 * The largest network that may run on every frame: what the application allows, less on battery, and none in a page
 * that nobody sees, unless a video of it floats (picture-in-picture; a document that floats does not count). On battery
 * the cheap one may run, and none while little charge is left. Browsers that do not tell (Firefox, Safari) count as
 * powered.
 */
import { NETWORKS, type NetworkTier } from "../worker/network-choice.js";

/** The part of `BatteryManager` that is used. */
export interface Battery {
  readonly charging: boolean;
  /** 0 to 1. */
  readonly level: number;
  addEventListener(type: "chargingchange" | "levelchange", listener: () => void): void;
  removeEventListener(type: "chargingchange" | "levelchange", listener: () => void): void;
}

/** The part of `Document` that is used. */
export interface Page {
  readonly visibilityState: DocumentVisibilityState;
  /** A video that floats over other windows: it is seen while its page is not. Not in all browsers (Firefox). */
  readonly pictureInPictureElement?: unknown;
  addEventListener(type: (typeof PAGE_EVENTS)[number], listener: () => void): void;
  removeEventListener(type: (typeof PAGE_EVENTS)[number], listener: () => void): void;
}

/** Charge below which no network runs on battery. */
const LOW_LEVEL = 0.2;
const EVENTS = ["chargingchange", "levelchange"] as const;
const PAGE_EVENTS = ["visibilitychange", "enterpictureinpicture", "leavepictureinpicture"] as const;

/** The largest network that may run on every frame, by the battery and by whether the page is visible. */
export class NetworkLimit {
  /** Called when {@link max} has changed. */
  readonly onChange = new Set<() => void>();
  private current: NetworkTier;
  private battery: Battery | null = null;
  private closed = false;

  /** `allowed`: the application's bound. `ask`: how to find the machine's battery. `page`: null where there is none. */
  constructor(
    private readonly allowed: NetworkTier,
    ask: () => Promise<Battery | null> = askBattery,
    private readonly page: Page | null = globalThis.document ?? null,
  ) {
    this.current = this.limit();
    for (const event of PAGE_EVENTS) page?.addEventListener(event, this.update);
    ask().then(
      (battery) => this.watch(battery),
      () => undefined, // a page that may not know counts as powered
    );
  }

  /** The largest network of now. */
  get max(): NetworkTier {
    return this.current;
  }

  /** Stops listening. */
  close(): void {
    this.closed = true;
    for (const event of EVENTS) this.battery?.removeEventListener(event, this.update);
    for (const event of PAGE_EVENTS) this.page?.removeEventListener(event, this.update);
    this.onChange.clear();
  }

  private watch(battery: Battery | null): void {
    if (battery === null || this.closed) return;
    this.battery = battery;
    for (const event of EVENTS) battery.addEventListener(event, this.update);
    this.update();
  }

  private readonly update = (): void => {
    const max = this.limit();
    if (max === this.current) return;
    this.current = max;
    for (const changed of this.onChange) changed();
  };

  private limit(): NetworkTier {
    const { page } = this;
    const unseen = page !== null && page.visibilityState === "hidden" && page.pictureInPictureElement == null;
    return unseen ? "none" : smaller(this.allowed, onBattery(this.battery));
  }
}

/** The largest network that a battery allows. */
function onBattery(battery: Battery | null): NetworkTier {
  if (battery === null || battery.charging) return "xs";
  return battery.level < LOW_LEVEL ? "none" : "xxs";
}

function smaller(a: NetworkTier, b: NetworkTier): NetworkTier {
  return NETWORKS.indexOf(a) < NETWORKS.indexOf(b) ? a : b;
}

function askBattery(): Promise<Battery | null> {
  const { getBattery } = navigator as { getBattery?: () => Promise<Battery> };
  return getBattery === undefined ? Promise.resolve(null) : getBattery.call(navigator);
}
