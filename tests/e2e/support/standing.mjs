// How a call stands: printed where a test waits for something that does not come.
import { remote } from "./call.mjs";

/** What a publisher sends of each layer, and what it thinks its uplink carries. */
const layers = (page) =>
  page.evaluate(async () => {
    const out = {};
    for (const s of (await window.windlass.room.connectionStats()).values()) {
      if (s.type === "candidate-pair" && s.nominated) out.estimateKbps = s.availableOutgoingBitrate / 1000;
      if (s.type !== "outbound-rtp" || s.kind !== "video" || !s.rid) continue;
      out[s.rid] = { active: s.active, width: s.frameWidth, frames: s.framesEncoded, keys: s.keyFramesEncoded, plis: s.pliCount };
      Object.assign(out[s.rid], { targetKbps: s.targetBitrate / 1000, fps: s.framesPerSecond, limitedBy: s.qualityLimitationReason });
    }
    return out;
  });

/** Counters of the server that have counted anything. */
async function counters(server) {
  const all = Object.entries(await server.metrics());
  return Object.fromEntries(all.filter(([name, value]) => name.endsWith("_total") && value > 0));
}

/** The publisher's layers, the viewer's first video and the server's counters. */
export async function standing(server, publisher, viewer) {
  const [sends, sees, counted] = await Promise.all([layers(publisher.page), remote(viewer.page), counters(server)]);
  return { sends, sees, counted };
}
