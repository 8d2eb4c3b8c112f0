// A call: a publisher that shows a scene, and subscribers of it, through one server.
import { openPage } from "./browser.mjs";
import { sleep, until } from "./until.mjs";

export { sleep, until };

/**
 * Unless a test is about the size of tiles, it should not matter; nor should networks take the CPUs, which here are those of
 * servers, publishers and other viewers too.
 */
const fixed = (query) => {
  const unset = ["adaptive=0", "maxNetwork=none"].filter((option) => !query.includes(option.replace(/=.*/, "=")));
  return [query, ...unset].join("&");
};

/**
 * Keeps a page's pictures as large as the scene. A browser that thinks its CPU busy makes them smaller, which takes the full layer
 * from everybody; here it shares its CPUs with servers, viewers and whatever else a test measures.
 */
const keepSize = () => {
  const set = RTCPeerConnection.prototype.setRemoteDescription;
  RTCPeerConnection.prototype.setRemoteDescription = async function (...args) {
    await set.apply(this, args);
    for (const sender of this.getSenders()) {
      const parameters = sender.getParameters();
      if (sender.track?.kind !== "video" || parameters.degradationPreference) continue;
      parameters.degradationPreference = "maintain-framerate-and-resolution";
      await sender.setParameters(parameters);
    }
  };
};

/**
 * A browser that publishes `scene` with the given layers; `browser`: what else it is opened with. Or a page of the browser `beside`,
 * whose camera it has.
 */
export async function publish(server, scene, { room = "call", layers = "qh", query = "", hash = "", init, browser = {}, beside } = {}) {
  const tab = beside ? await beside.newPage({ init: [keepSize, init] }) : await openPage({ camera: scene.file, init: [keepSize, init], ...browser });
  await tab.page.goto(`${server.url}/?room=${room}&name=Publisher&auto=1&layers=${layers}${fixed(query)}${hash}`);
  await until(() => tab.page.evaluate(() => window.windlass?.phase === "call"), "the publisher joins", 20_000);
  return tab;
}

/** A browser (with the switches `args`; or a page of `browser`) that subscribes without a camera. */
export async function subscribe(server, { room = "call", name = "Viewer", query = "", hash = "", browser, init, args } = {}) {
  const tab = browser ? await browser.newPage({ init }) : await openPage({ init, args });
  await tab.page.goto(`${server.url}/?room=${room}&name=${name}&auto=1&source=none&view=enhanced${fixed(query)}${hash}`);
  await until(() => tab.page.evaluate(() => window.windlass?.phase === "call"), `${name} joins`, 20_000);
  return tab;
}

/** State of the first remote video: rung, state, and the page's own figures. */
export function remote(page) {
  return page.evaluate(() => {
    const track = window.windlass.remoteVideos()[0];
    return track && { id: track.id, rung: track.rung?.rung, state: track.state, reason: track.reason, stats: track.stats };
  });
}

/** Has the first remote video shown at that size, whatever the page's tile is. */
export async function showLarge(page, { width, height } = { width: 1280, height: 720 }) {
  await until(async () => (await remote(page)) !== undefined, "there is a video");
  await page.evaluate((size) => window.windlass.remoteVideos()[0].setView(size), { width, height });
}

/** Has a page count as `visible` or `hidden`: a headless browser has no windows that cover it. */
export const setVisibility = (page, state) =>
  page.evaluate((state) => {
    Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);

/** Waits until the first remote video shows enhanced pictures. */
export function enhanced(page, timeoutMs = 25_000) {
  return until(async () => (await remote(page))?.state === "enhanced" && (await remote(page)), "the picture is enhanced", timeoutMs, () => remote(page));
}

/** Waits until the enhanced picture is `width` wide: a call starts low and climbs with the bandwidth estimates. */
export function enhancedAt(page, width, timeoutMs = 40_000) {
  const wide = async () => {
    const seen = await remote(page);
    return seen?.state === "enhanced" && seen.stats?.hr?.width === width && seen;
  };
  return until(wide, `the enhanced picture is ${width} pixels wide`, timeoutMs);
}

/** Frames that the page's native decoder has decoded of the first remote video. */
export function nativeFrames(page) {
  return page.evaluate(async () => {
    const [track] = window.windlass.remoteVideos();
    // None while it connects again.
    const stats = await window.windlass.room.connectionStats();
    for (const s of stats?.values() ?? []) {
      if (s.type === "inbound-rtp" && s.kind === "video" && s.trackIdentifier === track?.plain.id) return s.framesDecoded;
    }
    return 0;
  });
}

/** What the page's native decoder has received and shown of the first video that has frames; null before. */
export function receivedVideo(page) {
  return page.evaluate(async () => {
    // None while it connects again.
    const stats = await window.windlass.room.connectionStats();
    for (const s of stats?.values() ?? []) {
      if (s.type !== "inbound-rtp" || s.kind !== "video" || !s.framesDecoded) continue;
      const { framesDecoded, frameWidth, freezeCount, totalFreezesDuration, pliCount, packetsLost, bytesReceived } = s;
      const codec = stats.get(s.codecId)?.mimeType.toLowerCase();
      return { codec, frameWidth, framesDecoded, freezeCount, totalFreezesDuration, pliCount, packetsLost, bytesReceived };
    }
    return null;
  });
}

/** Begins to count how a viewer's picture freezes; the function that it returns says what came since, by the receiver's figures. */
export async function countFreezes(page) {
  const from = await receivedVideo(page);
  const began = Date.now();
  return async () => {
    const to = await receivedVideo(page);
    const seconds = (Date.now() - began) / 1000;
    const frozenSeconds = to.totalFreezesDuration - from.totalFreezesDuration;
    return {
      seconds,
      fps: (to.framesDecoded - from.framesDecoded) / seconds,
      freezes: to.freezeCount - from.freezeCount,
      frozenSeconds,
      frozen: frozenSeconds / seconds,
      keyFramesAsked: to.pliCount - from.pliCount,
    };
  };
}

/** Why the server does not enhance the page's first remote video, as the page was told. */
export const refused = (page) => page.evaluate(() => window.windlass.remoteVideos()[0]?.stats?.refused);
