// Runs the `twin` example of `hybrid/`, which makes the cases for checks and measurements of the WebAssembly module.
// It is `WINDLASS_TWIN`, or the one that `cargo build -p windlass-hybrid --example twin` put beside the server's binary.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";

/** The cases that `twin` prints for its arguments. */
export function twin(args) {
  const { WINDLASS_TWIN, WINDLASS_BIN, CARGO_TARGET_DIR } = process.env;
  const target = CARGO_TARGET_DIR ?? path.join(import.meta.dirname ?? ".", "../../target");
  const folders = [WINDLASS_BIN && path.dirname(WINDLASS_BIN), path.join(target, "release"), path.join(target, "debug")];
  const places = [WINDLASS_TWIN, ...folders.map((folder) => folder && path.join(folder, "examples/twin"))];
  const program = places.find((place) => place && existsSync(place));
  if (!program) throw new Error("the program `twin` is not there: cargo build -p windlass-hybrid --example twin");
  return JSON.parse(execFileSync(program, args, { maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] }));
}
