/** Samples of one camera's uplink, from the browser's statistics. Pure. */
import type { LayerSetting } from "./layers.js";
import { QUARTER_KBPS } from "./lead.js";
import type { PathSample } from "./narrow.js";
import type { UplinkSample } from "./spare.js";

/** The fields of statistics that are used; the DOM types lack some. */
interface Entry {
  id: string;
  type: string;
  timestamp: number;
  rid?: string;
  active?: boolean;
  framesPerSecond?: number;
  framesEncoded?: number;
  totalEncodeTime?: number;
  targetBitrate?: number;
  bytesSent?: number;
  retransmittedBytesSent?: number;
  qualityLimitationReason?: string;
  selectedCandidatePairId?: string;
  availableOutgoingBitrate?: number;
}

/** A layer has enough bits from this share of its cap on. */
const SERVED_SHARE = 0.7;
/** Share of the bandwidth estimate that may be planned with. */
export const USABLE_SHARE = 0.85;
/** Values of `qualityLimitationReason`. */
const REASONS = ["none", "cpu", "bandwidth", "other"] as const;

/** Makes samples of consecutive statistics. */
export class UplinkSampler {
  private last: { at: number; frames: Map<string, number>; encodeS: number } | null = null;

  /** `report`: the sender's statistics; `settings`: those of the layers. */
  sample(report: Iterable<object>, settings: readonly LayerSetting[]): UplinkSample {
    const setting = smallestLayer(settings);
    const all = [...report] as Entry[];
    const layers = all.filter((e) => e.type === "outbound-rtp");
    const smallest = layers.find((e) => e.rid === setting?.rid);
    const source = all.find((e) => e.type === "media-source");
    const encodeS = layers.reduce((sum, e) => sum + (e.totalEncodeTime ?? 0), 0);
    const at = smallest?.timestamp ?? 0;
    const frames = new Map(layers.map((e) => [e.rid ?? "", e.framesEncoded ?? 0]));
    const { last } = this;
    const since = (rid: string) => Math.max(0, (frames.get(rid) ?? 0) - (last?.frames.get(rid) ?? 0));
    this.last = { at, frames, encodeS };
    const seconds = last === null ? 0 : (at - last.at) / 1000;
    // Chromium gives small pictures less than their cap even on a wide uplink: then the uplink has bits left.
    const assigned = layers.reduce((sum, e) => sum + (e.targetBitrate ?? 0), 0);
    const unassigned = (availableKbps(all) ?? 0) * 1000 * USABLE_SHARE - assigned;
    const cameraFps = source?.framesPerSecond ?? null;
    return {
      availableKbps: availableKbps(all),
      ...capsOf(settings),
      lowTargetKbps: smallest?.targetBitrate === undefined ? null : smallest.targetBitrate / 1000,
      wantedFps: cameraFps === null ? null : Math.min(cameraFps, setting?.maxFramerate ?? cameraFps),
      lowFps: last === null || seconds < 0.5 ? null : since(setting?.rid ?? "") / seconds,
      served: layers.every((e) => {
        const cap = settings.find((layer) => layer.rid === e.rid && layer.active)?.maxBitrate;
        if (cap === undefined || e.targetBitrate === undefined || since(e.rid ?? "") === 0) return true;
        return SERVED_SHARE * cap - e.targetBitrate <= Math.max(0, unassigned);
      }),
      limited: REASONS.find((reason) => reason === smallest?.qualityLimitationReason) ?? "none",
      encodeShare: last === null || seconds < 0.5 ? 0 : Math.max(0, encodeS - last.encodeS) / seconds,
    };
  }
}

const smallestLayer = (settings: readonly LayerSetting[]) => settings.find((layer) => layer.active) ?? settings[0];

/** What the smallest active layer, and those that come before stills, may take, kbit/s. */
export function capsOf(settings: readonly LayerSetting[]): Pick<UplinkSample, "lowCapKbps" | "firstKbps"> {
  const smallest = smallestLayer(settings);
  const kbps = (smallest?.maxBitrate ?? 0) / 1000;
  const next = settings.find((layer) => layer.active && layer !== smallest);
  // A half layer that leads has the lower cap, and leaves the quarter layer a small rest.
  const leads = smallest?.active === true && next !== undefined && next.maxBitrate < smallest.maxBitrate;
  return leads
    ? { lowCapKbps: QUARTER_KBPS, firstKbps: next.maxBitrate / 1000 + QUARTER_KBPS }
    : { lowCapKbps: kbps, firstKbps: kbps };
}

/** The bandwidth estimate of the candidate pair in use, kbit/s; null while there is none. Other pairs may be stale. */
export function availableKbps(report: Iterable<object>): number | null {
  const entries = [...report] as Entry[];
  const selected = entries.find((e) => e.type === "transport")?.selectedCandidatePairId;
  const pair = entries.find((e) => e.type === "candidate-pair" && e.id === selected);
  return pair?.availableOutgoingBitrate === undefined ? null : pair.availableOutgoingBitrate / 1000;
}

/** The sample of a sender's path. */
export function pathSample(report: Iterable<object>): PathSample {
  const entries = [...report] as Entry[];
  const layers = entries.filter((e) => e.type === "outbound-rtp");
  const sum = (read: (e: Entry) => number | undefined) => layers.reduce((all, e) => all + (read(e) ?? 0), 0);
  return {
    availableKbps: availableKbps(entries),
    sentBytes: sum((e) => e.bytesSent),
    retransmittedBytes: sum((e) => e.retransmittedBytesSent),
  };
}
