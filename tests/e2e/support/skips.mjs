// Tests that cannot run say so, and count as skipped at the end of `cargo xtask test`: `tests/skips` is the same for Rust.
import { appendFileSync } from "node:fs";

/** What `skip` of a test or a suite takes: `why` it cannot run, which is noted under its name, or false. */
export function skipped(name, why) {
  if (!why) return false;
  const line = `${name}: ${why}`.replace(/\s+/g, " ").trim();
  console.log(`skipped: ${line}`);
  const file = process.env.WINDLASS_SKIPPED;
  // In one piece, as other tests add lines at the same time.
  if (file) appendFileSync(file, `${line}\n`);
  return why;
}
