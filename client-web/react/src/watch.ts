/** State of the SDK, whose objects change and say so, as React wants it: values that never change. */
import { useMemo, useSyncExternalStore } from "react";

/** Calls `changed` at each change of a target. The returned function ends that. */
export type Listen<Target> = (target: Target, changed: () => void) => () => void;

/** Reads a value of a target again at each of its changes; `read` gets the value before. For one listener. */
export class Watch<Target, Value> {
  private value: Value;

  constructor(
    private readonly target: Target,
    private readonly read: (target: Target, former?: Value) => Value,
    private readonly listen: Listen<Target>,
  ) {
    this.value = read(target);
  }

  /** The value since the latest change. */
  readonly get = (): Value => this.value;

  readonly subscribe = (notify: () => void): (() => void) => {
    const end = this.listen(this.target, () => {
      this.value = this.read(this.target, this.value);
      notify();
    });
    // It may have changed since it was first read, when nobody listened.
    this.value = this.read(this.target, this.value);
    return end;
  };
}

/** What `read` gives of `target`, at each render and each change. Both functions must be the same at each render. */
export function useWatch<Target, Value>(
  target: Target,
  read: (target: Target, former?: Value) => Value,
  listen: Listen<Target>,
): Value {
  const watch = useMemo(() => new Watch(target, read, listen), [target, read, listen]);
  return useSyncExternalStore(watch.subscribe, watch.get, watch.get);
}
