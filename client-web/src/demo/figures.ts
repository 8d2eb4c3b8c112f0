/** The figures of a tile's picture, for engineers. */
import type { AnchorSource, TrackStats, WayInfo } from "../sdk/index.js";
import { make } from "./dom.js";
import { type MessageKey, say, type Words, words } from "./language.js";

/** What the better picture is made with, by where its detail comes from. */
const DETAIL: Record<AnchorSource, MessageKey> = { captured: "made.captured", enhanced: "made.enhanced" };

/** The name of the better picture. */
export function madeOf({ state, detailFrom }: TrackStats): Words {
  return words(state === "enhanced" && detailFrom !== null ? DETAIL[detailFrom] : "made.rebuilt");
}

/** The rows of figures, each with its name. */
export function figureRows(stats: TrackStats): HTMLElement[] {
  const rebuilt = stats.state !== "native";
  const rows: [MessageKey, string][] = [
    ["figures.rung", stats.rung ?? "–"],
    ["figures.way", stats.way === null ? "–" : way(stats.way)],
    ["figures.size", rebuilt ? `${size(stats.lr)} → ${size(stats.hr)}` : size(stats.lr)],
    ["figures.fps", `${stats.shownFps.toFixed(0)} / ${stats.enhancedFps.toFixed(0)} fps`],
    ["figures.rates", `${stats.videoKbps.toFixed(0)} + ${stats.anchorKbps.toFixed(0)} kbit/s`],
    [
      "figures.anchors",
      stats.refused === null ? `${stats.anchorsPerSecond.toFixed(1)} /s` : say(`refused.${stats.refused}`),
    ],
    ["figures.latency", `${ms(stats.anchorP50Ms)} / ${ms(stats.anchorP95Ms)} ms`],
    ["figures.times", `${ms(stats.decodeMs)} / ${ms(stats.anchorApplyMs)} ms`],
    ["figures.network", rebuilt ? network(stats) : "–"],
    [
      "figures.lost",
      say("figures.lost.counts", { frames: stats.framesLost, anchors: stats.anchorsLate + stats.anchorsLost }),
    ],
  ];
  return rows.flatMap(([name, value]) => [make("dt", {}, words(name)), make("dd", {}, value)]);
}

/** How the picture is made, and why. */
function way({ way, reason }: WayInfo): string {
  return say("figures.way.why", { way: say(`way.${way}`), why: say(`why.${reason}`) });
}

/** A size, as people write it. */
export function size(of: { width: number; height: number } | null): string {
  return of === null ? "–" : `${of.width}×${of.height}`;
}

function ms(value: number | null): string {
  return value === null ? "–" : value.toFixed(value < 10 ? 1 : 0);
}

/** The network that runs on every frame, and where. */
function network({ network, networkBackend, networkMs }: TrackStats): string {
  if (networkBackend === null || networkBackend === "wasm") return network;
  const where = networkBackend === "webgpu" ? "WebGPU" : "workers";
  return networkMs === null ? `${network}, ${where}` : `${network}, ${where}: ${networkMs.toFixed(1)} ms`;
}
