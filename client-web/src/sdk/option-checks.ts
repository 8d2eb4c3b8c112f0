/** Checks of what a page gives, which may be written without types. Each throws a `WindlassError`: `bad_option`. */
import { badOption } from "./errors.js";

/** `value`, if it is one of `choices`. */
export function oneOf<T extends string>(name: string, value: T, choices: readonly T[]): T {
  if (choices.includes(value)) return value;
  throw badOption(`"${String(value)}" is no ${name}.`, `Choose one of ${choices.join(", ")}.`);
}

/** `value`, if it is a number of at least `min`. */
export function finite(name: string, value: number, min = Number.NEGATIVE_INFINITY): number {
  if (Number.isFinite(value) && value >= min) return value;
  const bound = min === Number.NEGATIVE_INFINITY ? "a number" : `a number of at least ${min}`;
  throw badOption(`"${String(value)}" is no ${name}.`, `Give ${bound}.`);
}
