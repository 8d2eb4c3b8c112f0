/** Virtual time for tests: timers and `performance.now` move only by `pass`. */
import { mock } from "node:test";

/** Step of the virtual time, milliseconds. */
const STEP_MS = 50;

let now = 0;

export function startClock(): void {
  now = 0;
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  mock.method(performance, "now", () => now);
}

export function stopClock(): void {
  mock.timers.reset();
  mock.restoreAll();
}

/** Lets everything run that waits for no timer. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Lets `ms` milliseconds pass, a multiple of the step. */
export async function pass(ms: number): Promise<void> {
  await settle();
  for (let passed = 0; passed < ms; passed += STEP_MS) {
    now += STEP_MS;
    mock.timers.tick(STEP_MS);
    await settle();
  }
}
