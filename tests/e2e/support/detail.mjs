// A call whose publisher sends detail, and what its viewer gets: anchors that meet their frames, and frames of the low layer.
import { nativeFrames, publish, sleep, subscribe, until } from "./call.mjs";
import { takeCaptured, watchCaptured } from "./captured.mjs";
import { startServer } from "./server.mjs";

/** Runs `change` in the publisher's page with its video publication. */
export const withVideo = (page, change, argument) =>
  page.evaluate(`(${change})(window.windlass.room.published.find((p) => p.kind === "video"), ${JSON.stringify(argument)})`);

/** What leaves the publisher's page as stills. */
export const stills = (page) => withVideo(page, (video) => video?.stills);

/** Waits until detail is sent: on a busy machine Chromium may say for a while that it has no processor time. */
export const sending = (page) => until(async () => (await stills(page))?.detail, "the detail stream is sent", 60_000);

/** Waits until detail is paused because of `restraint`. */
export const paused = (page, restraint) =>
  until(async () => {
    const state = await stills(page);
    return state?.detail === null && state.restraint === restraint && state;
  }, `the detail stream is paused: ${restraint}`, 30_000);

/** Starts a call with a detail stream; `serverArgs` as of the server, the rest as of `publish`. */
export async function detailCall(scene, { serverArgs = ["--no-congestion-control"], query = "&detail=1", ...options } = {}) {
  const call = { scene, server: await startServer({ args: ["--detail-as", "stream", ...serverArgs], path: {} }) };
  call.errors = () => [...call.publisher.errors, ...call.viewer.errors];
  call.close = async () => {
    await call.viewer?.close();
    await call.publisher?.close();
    await call.server.stop();
  };
  try {
    call.publisher = await publish(call.server, scene, { query, ...options });
    call.viewer = await subscribe(call.server, { init: watchCaptured });
    await until(() => nativeFrames(call.viewer.page), "the picture is received", 30_000);
    await call.viewer.page.evaluate(() => window.watchNative());
    return call;
  } catch (error) {
    await call.close();
    throw error;
  }
}

/**
 * Takes what is seen in the viewer's page from now on until `enough` of it: `met` anchors show the frame whose timestamp they bear,
 * `missed` show another one, `last` is the width of the last.
 */
export async function look({ publisher, viewer, scene }, enough, what, timeoutMs = 60_000) {
  const sum = { met: 0, missed: [], unseen: 0, undecodable: 0, messages: 0, widths: new Set(), last: null };
  sum.missed.push(...(await takeCaptured(viewer.page, scene)).missed);
  const seen = async () => {
    const { widths, ...seen } = await takeCaptured(viewer.page, scene);
    for (const name of ["met", "unseen"]) sum[name] += seen[name];
    for (const name of ["undecodable", "messages"]) sum[name] = seen[name];
    sum.missed.push(...seen.missed);
    for (const width of widths) sum.widths.add(width);
    if (widths.length > 0) sum.last = widths.at(-1);
    await sleep(300);
    return await enough(sum);
  };
  await until(seen, what, timeoutMs).catch(async (error) => {
    throw new Error(`${error.message}; ${JSON.stringify({ ...sum, widths: [...sum.widths], stills: await stills(publisher.page) })}`);
  });
  console.log(`detail, ${what}: met ${sum.met}, missed ${sum.missed.length}, unseen ${sum.unseen}, widths ${[...sum.widths]}, messages ${sum.messages}, undecodable ${sum.undecodable}`);
  return sum;
}

/** So far: frames that the publisher's camera gave, and frames, bytes and freezes of the picture that the viewer decodes. */
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
