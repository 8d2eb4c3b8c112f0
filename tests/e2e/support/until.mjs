// Waiting, on a machine that may be busy with other tests.
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** The share of the CPUs' time that this machine has for one more thread: 1 where a CPU is idle. */
function cpuShare() {
  if (!existsSync("/proc/loadavg")) return 1;
  const running = Number(readFileSync("/proc/loadavg", "utf8").split(" ")[3].split("/")[0]);
  return Math.min(1, availableParallelism() / Math.max(1, running));
}

/**
 * Waits until `check` gives something true; an error says what was waited for, and with `state` how things stood then.
 * The limit is for a machine with nothing else to do: on a busy one time counts by the share of it that is left.
 */
export async function until(check, what, timeoutMs = 15_000, state) {
  let [left, before] = [timeoutMs, Date.now()];
  let last;
  for (;;) {
    try {
      last = await check();
      if (last) return last;
    } catch (error) {
      last = error;
    }
    const now = Date.now();
    left -= (now - before) * cpuShare();
    before = now;
    if (left < 0) {
      const stood = state ? `; ${JSON.stringify(await state().catch(String))}` : "";
      throw new Error(`waited ${timeoutMs / 1000} s until ${what}; last seen: ${last}${stood}`);
    }
    await sleep(100);
  }
}

export const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
