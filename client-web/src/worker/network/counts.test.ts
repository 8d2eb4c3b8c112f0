import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { countsOf } from "./testing/counts.js";

/** Chains as they may be trained: channels and convolutions. */
function chain(scale: number, channels: number, convolutions: number): { inputs: number; outputs: number }[] {
  const widths = [1 + scale ** 2, ...Array<number>(convolutions - 1).fill(channels), scale ** 2];
  return widths.slice(1).map((outputs, i) => ({ inputs: widths[i] as number, outputs }));
}

/** A row of the note's table: dispatches, GMAC, and the rest in MB. */
function row(scale: number, channels: number, convolutions: number, width: number, height: number): string {
  const [single, half] = (["f32", "f16"] as const).map((precision) =>
    countsOf(scale, chain(scale, channels, convolutions), width, height, precision),
  );
  if (single === undefined || half === undefined) throw new Error("there are two");
  const mb = (bytes: number): string => (bytes / 1e6).toFixed(2);
  const macs = [single.macs, single.issued].map((n) => (n / 1e9).toFixed(3));
  const bytes = [single.up, single.down, single.least, half.least, single.asked, half.asked, single.memory];
  return [single.dispatches, ...macs, ...bytes.map(mb)].join(" | ");
}

test("the note has the counts of the shaders as they are", () => {
  const note = readFileSync(new URL("../../../../lab/notes/frame-networks.md", import.meta.url), "utf8");
  for (const [scale, channels, convolutions, width, height] of [
    [2, 8, 4, 320, 180],
    [2, 16, 5, 320, 180],
    [4, 16, 5, 320, 180],
    [2, 16, 5, 640, 360],
    [2, 32, 5, 480, 270],
    [2, 32, 5, 640, 360],
  ] as const) {
    const names = [`${channels}(?: channels)?`, `${convolutions}(?: convolutions)?`, `${width}×${height}`].join(", ");
    const found = new RegExp(`^\\| ×${scale}, ${names} \\| (.*) \\|$`, "m").exec(note);
    assert.equal(found?.[1], row(scale, channels, convolutions, width, height));
  }
});
