/** Typed events. Listeners are called in the order in which they were added. */
import { unknownEvent } from "./errors.js";

/** Calls a function of the page. What it throws is reported, and what follows happens all the same. */
export function guarded(call: () => void): void {
  try {
    call();
  } catch (error) {
    reportError(error);
  }
}

/** A class whose events are named and typed by `Events`. */
export class Emitter<Events extends object> {
  private readonly listeners = new Map<keyof Events, Set<(value: never) => void>>();

  /** `names`: all events, where somebody without types may listen for another one. */
  constructor(private readonly names?: readonly (keyof Events & string)[]) {}

  /**
   * Calls `listener` at every event `name`. The returned function removes it. Throws a `WindlassError` of the code
   * `unknown_event` where there is no such event.
   */
  on<Name extends keyof Events>(name: Name, listener: (value: Events[Name]) => void): () => void {
    if (this.names !== undefined && !this.names.some((known) => known === name)) throw unknownEvent(name, this.names);
    const found = this.listeners.get(name) ?? new Set();
    this.listeners.set(name, found);
    found.add(listener);
    return () => found.delete(listener);
  }

  /** Whether anybody listens to `name`. */
  protected isHeard(name: keyof Events): boolean {
    return (this.listeners.get(name)?.size ?? 0) > 0;
  }

  /** Calls the listeners. What one throws is reported, and the others are called all the same. */
  protected emit<Name extends keyof Events>(name: Name, value: Events[Name]): void {
    for (const listener of [...(this.listeners.get(name) ?? [])]) {
      guarded(() => (listener as (value: Events[Name]) => void)(value));
    }
  }
}
