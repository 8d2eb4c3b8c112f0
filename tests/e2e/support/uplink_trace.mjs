// What a publisher's sender and a viewer's receiver did, second by second: printed where a call over a narrow uplink fails.

/** Counters of the publisher's smallest layer and its path. */
const sent = (page) =>
  page.evaluate(async () => {
    const video = window.windlass.room.published.find((p) => p.kind === "video");
    const out = {};
    for (const s of (await video.sender.getStats()).values()) {
      if (s.type === "outbound-rtp" && s.rid === "q") {
        Object.assign(out, { kbps: s.targetBitrate / 1000, frames: s.framesEncoded, keys: s.keyFramesEncoded, plis: s.pliCount });
        Object.assign(out, { nacks: s.nackCount, bytes: s.bytesSent, repairs: s.retransmittedBytesSent });
      }
      if (s.type === "candidate-pair" && s.nominated) out.estimate = s.availableOutgoingBitrate / 1000;
    }
    return out;
  });

/** Counters of the viewer's native picture. */
const seen = (page) =>
  page.evaluate(async () => {
    const [track] = window.windlass.remoteVideos();
    for (const s of (await window.windlass.room.connectionStats()).values()) {
      if (s.type !== "inbound-rtp" || s.kind !== "video" || s.trackIdentifier !== track.plain.id) continue;
      return { decoded: s.framesDecoded, dropped: s.framesDropped, lost: s.packetsLost, asked: s.pliCount, nacked: s.nackCount, freezes: s.freezeCount };
    }
    return {};
  });

const LEVELS = new Set(["kbps", "estimate", "lost"]);

/** Begins to look once a second; the function that it gives ends that, and says what was seen, a line a second. */
export function traceUplink(publisher, viewer, proxy) {
  const looks = [];
  const timer = setInterval(async () => {
    const { overflowed } = proxy.counts;
    const [from, to] = await Promise.all([sent(publisher), seen(viewer)]).catch(() => [{}, {}]);
    looks.push({ overflowed, ...from, ...to });
  }, 1000);
  return () => {
    clearInterval(timer);
    const step = (now, before) =>
      Object.entries(now).map(([name, value]) => `${name} ${Math.round(LEVELS.has(name) ? value : value - (before[name] ?? 0))}`);
    return looks.slice(1).map((now, at) => `${at + 1} s: ${step(now, looks[at]).join(", ")}`).join("\n");
  };
}
