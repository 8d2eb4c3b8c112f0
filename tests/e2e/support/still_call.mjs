// A call whose publisher agreed to stills, and what its viewer gets: stills of their frames, and frames of the low layer.
import { nativeFrames, publish, remote, sleep, subscribe, until } from "./call.mjs";
import { startServer } from "./server.mjs";
import { StillReader, takeStills, watchStills } from "./stills.mjs";

/** Runs `change` in the publisher's page with its video publication. */
export const withVideo = (page, change, argument) =>
  page.evaluate(`(${change})(window.windlass.room.published.find((p) => p.kind === "video"), ${JSON.stringify(argument)})`);

/** What became of the requests for stills, as the publisher's page counts them. */
export const regions = (page) => withVideo(page, (video) => video?.stills?.regions);

/** Waits until the publisher sends stills: on a busy machine Chromium may say for a while that its layers lack bits. */
export async function sending({ publisher }, timeoutMs = 60_000) {
  const before = (await regions(publisher.page))?.sent ?? 0;
  await until(async () => (await regions(publisher.page)).sent > before, "stills are sent", timeoutMs);
}

/** Waits until the publisher has sent no still for four seconds, in which it was asked for some. */
export async function pausing({ publisher }, timeoutMs = 40_000) {
  let from = { ...(await regions(publisher.page)), at: performance.now() };
  const still = async () => {
    const now = await regions(publisher.page);
    if (now.sent !== from.sent) from = { ...now, at: performance.now() };
    return performance.now() - from.at >= 4000 && now.requested > from.requested;
  };
  await until(still, "no stills are sent", timeoutMs, () => regions(publisher.page));
}

/** Starts a call with stills, and no networks beside them; `serverArgs` as of the server, the rest as of `publish`. */
export async function stillCall(scene, { serverArgs = ["--no-congestion-control"], query = "&detail=1", ...options } = {}) {
  const call = { scene, reader: new StillReader("../../client-web/dist/windlass.wasm") };
  call.server = await startServer({ args: ["--compute-cap", "0", ...serverArgs], path: {} });
  call.errors = () => [...call.publisher.errors, ...call.viewer.errors];
  call.close = async () => {
    await call.viewer?.close();
    await call.publisher?.close();
    await call.server.stop();
  };
  try {
    call.publisher = await publish(call.server, scene, { query, ...options });
    call.viewer = await subscribe(call.server, { init: watchStills });
    await until(async () => (await nativeFrames(call.viewer.page)) > 30, "the picture is received", 30_000);
    return call;
  } catch (error) {
    await call.close();
    throw error;
  }
}

/**
 * Takes the stills that come from now on until `enough` of what was seen: `met` are of the frame that they bear the timestamp of,
 * `missed` of another one, `last` is the width of the last. None may be broken.
 */
export async function look({ publisher, viewer, reader, scene }, enough, what, timeoutMs = 60_000) {
  const sum = { met: 0, missed: [], broken: 0, tiled: 0, bytes: [], last: null };
  const take = async () => {
    const { stats } = await remote(viewer.page);
    const { met, missed, broken, tiled, bytes, widths } = await takeStills(viewer.page, reader, scene, stats.hr.width / stats.lr.width);
    sum.missed.push(...missed);
    sum.broken += broken;
    return { met, tiled, bytes, widths };
  };
  // What came before counts only where it is wrong.
  await until(take, "the viewer's picture has a size");
  const seen = async () => {
    const { met, tiled, bytes, widths } = await take();
    sum.met += met;
    sum.tiled += tiled;
    sum.bytes.push(...bytes);
    sum.last = widths.at(-1) ?? sum.last;
    await sleep(300);
    return await enough(sum);
  };
  await until(seen, what, timeoutMs, async () => ({ ...sum, regions: await regions(publisher.page) }));
  console.log(`stills, ${what}: ${JSON.stringify(sum)}`);
  if (sum.broken > 0) throw new Error(`${sum.broken} stills are broken: ${what}`);
  return sum;
}

/** Counts since the start: frames that the publisher's camera gave, and frames, bytes and freezes of the picture that the viewer decodes. */
export async function flow({ publisher, viewer }) {
  const source = await withVideo(publisher.page, async (video) => {
    // After another track has taken its place, the former one's count may still be in the report.
    const own = (s) => s.type === "media-source" && s.trackIdentifier === video.sender.track?.id;
    return [...(await video.sender.getStats()).values()].find(own)?.frames ?? null;
  });
  const got = await viewer.page.evaluate(async () => {
    const [track] = window.windlass.remoteVideos();
    for (const s of (await window.windlass.room.connectionStats()).values()) {
      if (s.type !== "inbound-rtp" || s.kind !== "video" || s.trackIdentifier !== track.plain.id) continue;
      return { decoded: s.framesDecoded, bytes: s.bytesReceived, freezes: s.freezeCount, frozen: s.totalFreezesDuration };
    }
  });
  return { source, ...got };
}
