/** Plays sound where browsers block it: until the person has clicked, tapped or pressed a key. */
import { Emitter } from "../emitter.js";
import { soundBlocked } from "./errors.js";

/** What is played: a media element. */
export interface Playable {
  /** Begins to play, as `HTMLMediaElement.play` does. */
  play(): Promise<void>;
}

/** Sound that plays, or waits for a gesture. */
export interface Playback {
  /** Tries again. Call it in a gesture. Rejects with `sound_blocked` while the browser still refuses. */
  start(): Promise<void>;
  /** Ends the wait for a gesture. The element goes on as it is. */
  end(): void;
}

/**
 * What browsers take for a gesture: a finger counts when it is lifted, a mouse when it is pressed. Screen readers and
 * voice control click without either.
 */
const GESTURES = ["pointerdown", "pointerup", "keydown", "click"] as const;

/** Where gestures are heard. */
export type GestureTarget = Pick<EventTarget, "addEventListener" | "removeEventListener">;

/**
 * Plays an element. Where the browser refuses for want of a gesture, `onBlocked(true)` is called, and it is tried again
 * at each click, tap or key until it plays: `onBlocked(false)`. Whatever else `play` rejects with, as after a change of
 * the element's source, is the element's own matter.
 */
export function playSound(
  element: Playable,
  onBlocked: (blocked: boolean) => void,
  page: GestureTarget = globalThis.document,
): Playback {
  let blocked = false;
  let ended = false;
  const retry = () => void attempt();
  const setBlocked = (now: boolean) => {
    if (now === blocked || ended) return;
    blocked = now;
    for (const gesture of GESTURES) {
      if (now) page.addEventListener(gesture, retry, { capture: true });
      else page.removeEventListener(gesture, retry, { capture: true });
    }
    onBlocked(now);
  };
  const attempt = async () => {
    try {
      await element.play();
      setBlocked(false);
    } catch (error) {
      if ((Object(error) as { name?: unknown }).name === "NotAllowedError") setBlocked(true);
    }
  };
  retry();
  return {
    start: async () => {
      await attempt();
      if (blocked) throw soundBlocked();
    },
    end: () => {
      ended = true;
      for (const gesture of GESTURES) page.removeEventListener(gesture, retry, { capture: true });
    },
  };
}

/** Events of {@link SoundGate}. */
export interface SoundGateEvents {
  /** Whether the browser blocks the sound of the room. */
  change: { blocked: boolean };
}

/**
 * The elements that play the sound of a room. While {@link blocked}, show a button that calls {@link start}; any other
 * click on the page helps too.
 */
export class SoundGate extends Emitter<SoundGateEvents> {
  private readonly playing = new Map<Playable, Playback>();
  private readonly waiting = new Set<Playable>();

  /** `page`: where gestures are heard. */
  constructor(private readonly page: GestureTarget = globalThis.document) {
    super(["change"]);
  }

  /** Whether the browser blocks an element for want of a gesture. */
  get blocked(): boolean {
    return this.waiting.size > 0;
  }

  /** Plays an element, now or after the next gesture, and tells `onBlocked` which. The returned function forgets it. */
  play(element: Playable, onBlocked: (blocked: boolean) => void = () => undefined): () => void {
    this.forget(element);
    const note = (blocked: boolean) => {
      this.note(element, blocked);
      onBlocked(blocked);
    };
    this.playing.set(element, playSound(element, note, this.page));
    return () => this.forget(element);
  }

  /**
   * Plays what is blocked. Call it in a gesture, as in a listener of `click`. Rejects with `sound_blocked` if the
   * browser still refuses.
   */
  async start(): Promise<void> {
    // All at once: a gesture counts for the calls that are made in it.
    await Promise.all([...this.waiting].map((element) => this.playing.get(element)?.start()));
  }

  /** Forgets all elements. */
  close(): void {
    for (const element of [...this.playing.keys()]) this.forget(element);
  }

  private forget(element: Playable): void {
    this.playing.get(element)?.end();
    this.playing.delete(element);
    this.note(element, false);
  }

  private note(element: Playable, blocked: boolean): void {
    const before = this.blocked;
    if (blocked) this.waiting.add(element);
    else this.waiting.delete(element);
    if (this.blocked !== before) this.emit("change", { blocked: this.blocked });
  }
}
