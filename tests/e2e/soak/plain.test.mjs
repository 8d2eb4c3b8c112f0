// Whatever becomes of what enhances pictures in the browser, the plain picture goes on, with the reason.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { publish, sleep, until } from "../support/call.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

/** A document that a test answers for counts as one from elsewhere, which Chromium lets reach no server of this machine. */
const ANY_ADDRESS = "--disable-features=LocalNetworkAccessChecks";
/** The native picture must move within this time. */
const SOON_MS = 1000;

/** In the page, before its scripts: its workers, by name, do what they are told to by `plant`. */
const plantable = () => {
  const listen = () =>
    addEventListener("message", ({ data: { plant } }) => {
      if (plant === "hangs") for (;;);
      if (plant === "throws") throw new Error("planted");
    });
  const Plain = window.Worker;
  const workers = [];
  window.Worker = class extends Plain {
    constructor(address, options) {
      const source = `import ${JSON.stringify(address)};\n(${listen})();`;
      super(URL.createObjectURL(new Blob([source], { type: "text/javascript" })), options);
      workers.push({ name: options.name, worker: this });
    }
  };
  window.plant = (name, what) => {
    const { worker } = workers.findLast((w) => w.name === name);
    if (what === "is terminated") worker.terminate();
    else worker.postMessage({ plant: what });
    return performance.now();
  };
};

/**
 * In the page, before its scripts: notes when media can come, when the first tile with a picture is there, each native picture that is
 * shown, and when the first track was last said to be native: by the page's clock, as what asks from outside comes a tenth of a second later.
 */
const watch = () => {
  window.seen = { media: null, tile: null, frames: [], native: null };
  const { seen } = window;
  window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(...args) {
      super(...args);
      this.addEventListener("connectionstatechange", () => {
        if (this.connectionState === "connected") seen.media ??= performance.now();
      });
    }
  };
  let watched = null;
  let state = null;
  setInterval(() => {
    const now = window.windlass?.remoteVideos()[0]?.state;
    if (now === "native" && state !== now) seen.native = performance.now();
    state = now;
    const video = document.querySelector('.tile[data-video="on"] windlass-video')?.shadowRoot.querySelector("video.plain") ?? document.querySelector("video.own");
    if (video === null || video === watched) return;
    watched = video;
    seen.tile ??= performance.now();
    const shown = (now) => {
      if (video !== watched) return;
      seen.frames.push(now);
      video.requestVideoFrameCallback(shown);
    };
    video.requestVideoFrameCallback(shown);
  }, 10);
};

/** State, reason and words of the first tile. */
const told = (page) =>
  page.evaluate(() => {
    const [track] = window.windlass.remoteVideos();
    return { state: track?.state, reason: track?.reason, notice: document.querySelector(".tile .notice")?.textContent };
  });

const framesSince = (page, from) => page.evaluate((from) => window.seen.frames.filter((at) => at >= from).length, from);

/** Waits until the native picture moves, and gives the time to its first picture, from when its tile is there and media can come. */
async function begins(page) {
  await until(async () => (await framesSince(page, 0)) >= 10, "the native picture moves", 10_000);
  return page.evaluate(() => Math.round(window.seen.frames[0] - Math.max(window.seen.tile, window.seen.media)));
}

/** The longest time without a native picture from `from` until `ms` later. */
async function gap(page, from, ms) {
  await until(() => page.evaluate((end) => performance.now() > end, from + ms), "some time has passed");
  return page.evaluate(
    ([from, end]) => {
      const frames = window.seen.frames.filter((at) => at >= from && at <= end);
      const all = [from, ...frames, end];
      return Math.round(Math.max(...all.slice(1).map((at, i) => at - all[i])));
    },
    [from, from + ms],
  );
}

const ours = (page) =>
  until(async () => ["rebuilt", "enhanced"].includes((await told(page)).state), "the picture is rebuilt", 20_000, () => told(page));

/** What can happen to a worker under way. */
const FAULTS = ["hangs", "throws", "is terminated"];
/** How long one looks at what follows. Chromium kills a worker that hangs and is terminated after two seconds. */
const WATCHED_MS = { hangs: 3500, throws: 1500, "is terminated": 1500 };
/** Does it to the page's latest worker of that name, and gives the page's time. */
const plant = (page, name, fault) => page.evaluate(([name, fault]) => window.plant(name, fault), [name, fault]);

const script = (body) => (route) => route.fulfill({ contentType: "text/javascript", body });
/** The page with another policy. */
const policy = (from, to) => async (route) => {
  const response = await route.fetch();
  const headers = response.headers();
  const changed = headers["content-security-policy"].replace(from, to);
  assert.notEqual(changed, headers["content-security-policy"]);
  await route.fulfill({ response, headers: { ...headers, "content-security-policy": changed } });
};
const missing = (route) => route.fulfill({ status: 404, body: "there is no such file" });
/** Workers start from the file `worker.js`: the page's policy forbids the SDK's own copy of their script, a `blob:` URL. */
const fromFile = policy(/worker-src [^;]*/, "worker-src 'self'");
/** In the page, before its scripts: what the SDK makes its workers' script of becomes `body`, with the script behind it or not. */
const ownCopy = (body, script = false) => `{
  const make = URL.createObjectURL.bind(URL);
  const changed = (blob) => new Blob([${JSON.stringify(`${body}\n`)}${script ? ", blob" : ""}], { type: blob.type });
  URL.createObjectURL = (blob) => make(blob.type === "text/javascript" ? changed(blob) : blob);
}`;
/** The workers' script is something else: the SDK's own copy, and the file. */
const workerIs = (body) => ({ init: ownCopy(body), routes: { "/worker.js": script(body) } });

const NO_WORKER = { reason: "worker", notice: /^Plain picture: the page's worker for enhancement does not run$/ };
const NO_WASM = { reason: "wasm", notice: /^Plain picture: the decoder for enhancement did not load$/ };

describe("the plain picture goes on", { only: true }, () => {
  let server;
  let publisher;
  let viewer;

  before(async () => {
    const scene = makeScene({ clip: "d13", frames: 120 });
    server = await startServer({ args: ["--no-congestion-control"] });
    [publisher, viewer] = await Promise.all([publish(server, scene, { layers: "q", query: "&detail=1", init: plantable }), openPage({ args: [ANY_ADDRESS] })]);
    const { page, closePage } = await join("unharmed");
    console.log(`plain: where nothing is wrong, first picture ${await begins(page)} ms after it could come`);
    await closePage();
  });

  after(async () => {
    await Promise.all([publisher?.close(), viewer?.close()]);
    await server?.stop();
  });

  /** A page that watches, whose requests may go wrong. */
  async function join(name, routes = {}, init = []) {
    const tab = await viewer.newPage({ init: [watch, init].flat() });
    for (const [path, answer] of Object.entries(routes)) await tab.page.route((url) => url.pathname === path, answer);
    await tab.page.goto(`${server.url}/?room=call&name=${encodeURIComponent(name)}&auto=1&source=none&view=enhanced&adaptive=0`);
    return tab;
  }

  // One page at a time: what is measured is what a fault costs, not what other pages do on two cores.
  describe("from the beginning", () => {
    for (const [what, { routes, init }, expected] of [
      ["the worker's script is missing", { routes: { "/": fromFile, "/worker.js": missing } }, NO_WORKER],
      ["the page's policy allows no workers", { routes: { "/": policy(/worker-src [^;]*/, "worker-src 'none'") } }, NO_WORKER],
      ["the worker's script is something else", workerIs("<!doctype html>"), NO_WORKER],
      ["the worker throws at once", workerIs('throw new Error("planted")'), NO_WORKER],
      ["the worker never says anything", workerIs(""), NO_WORKER],
      ["the worker hangs at once", workerIs("for (;;);"), NO_WORKER],
      ["the worker's script never comes", { routes: { "/": fromFile, "/worker.js": () => undefined } }, NO_WORKER],
      ["the decoder is missing", { routes: { "/windlass.wasm": missing } }, NO_WASM],
      ["the decoder is rubbish", { routes: { "/windlass.wasm": (route) => route.fulfill({ contentType: "application/wasm", body: "rubbish" }) } }, NO_WASM],
      ["the page's policy allows no WebAssembly", { routes: { "/": policy("'wasm-unsafe-eval'", "") } }, NO_WASM],
      ["the decoder gets no memory", { init: ownCopy('WebAssembly.Instance = function () { throw new RangeError("planted"); };', true) }, { reason: "fault", notice: /^Plain picture/ }],
    ]) {
      test(what, async () => {
        const { page, closePage } = await join(what, routes, init);
        const ms = await begins(page);
        const { state, notice } = await until(async () => {
          const now = await told(page);
          return now.reason === expected.reason && now;
        }, `the reason is ${expected.reason}`, 5000, () => told(page));
        assert.equal(state, "native");
        assert.match(notice, expected.notice);
        console.log(`plain: ${what}: first picture ${ms} ms after it could come`);
        assert.ok(ms <= SOON_MS, `first picture after ${ms} ms`);
        await closePage();
      });
    }
  });

  test("where the page's policy forbids the SDK's own copy of the worker's script, the file takes its place", async () => {
    const { page, closePage } = await join("from a file", { "/": fromFile });
    await ours(page);
    await closePage();
  });

  test("with the worker's script at another origin", async () => {
    const tab = await viewer.newPage({ init: watch });
    await tab.page.route((url) => url.pathname === "/", fromFile);
    await tab.page.goto(`${server.url}/?source=none`);
    // A page of one's own: the demo page takes no other addresses.
    await tab.page.evaluate(async (worker) => {
      const { join } = await import("/windlass-client.js");
      const room = await join(location.href, { room: "call", name: "Elsewhere", assets: { worker } });
      window.windlass = { room, remoteVideos: () => room.tracks.filter((track) => track.kind === "video") };
      room.on("trackAdded", (track) => {
        if (track.kind === "audio") return;
        document.body.innerHTML = '<video class="own"></video>';
        track.attach(document.querySelector("video"));
      });
    }, server.url.replace("localhost", "127.0.0.1") + "/worker.js");
    const ms = await begins(tab.page);
    const { state, reason } = await told(tab.page);
    console.log(`plain: the worker's script is at another origin: first picture ${ms} ms after it could come`);
    assert.deepEqual([state, reason], ["native", "worker"]);
    assert.ok(ms <= SOON_MS, `first picture after ${ms} ms`);
    await tab.closePage();
  });

  describe("under way", { only: true }, () => {
    for (const fault of FAULTS) {
      test(`a track's worker ${fault}: its tile turns to the native picture, which never stood still`, { only: fault === "hangs" }, async () => {
        const { page, closePage } = await join(`decoder ${fault}`, {}, plantable);
        await ours(page);
        const at = await plant(page, "windlass decoder", fault);
        const now = await until(async () => (await told(page)).state === "native" && told(page), "the native picture is shown");
        const ms = (await page.evaluate(() => window.seen.native)) - at;
        const stood = await gap(page, at, 1500);
        console.log(`plain: a track's worker ${fault}: native after ${Math.round(ms)} ms, the native picture stood for ${stood} ms`);
        assert.equal(now.reason, fault === "throws" ? "worker" : "stalled");
        assert.match(now.notice, /^Plain picture: /);
        assert.ok(ms <= SOON_MS, `native after ${ms} ms`);
        assert.ok(stood <= SOON_MS, `no native picture for ${stood} ms`);
        if (fault === "hangs") await ours(page); // begun anew
        await closePage();
      });

      test(`the page's relay ${fault}: another takes its place`, async () => {
        const { page, closePage } = await join(`relay ${fault}`, {}, plantable);
        await ours(page);
        const at = await plant(page, "windlass relay", fault);
        const stood = await gap(page, at, WATCHED_MS[fault]);
        console.log(`plain: the page's relay ${fault}: the native picture stood for ${stood} ms`);
        assert.ok(stood <= SOON_MS, `no native picture for ${stood} ms`);
        await ours(page);
        await closePage();
      });
    }

    test("where no other relay can be started either, the call begins anew without", async () => {
      const { page, closePage } = await join("none left", {}, plantable);
      await ours(page);
      await page.evaluate(() => {
        window.Worker = class {
          constructor() {
            throw new Error("planted");
          }
        };
      });
      await plant(page, "windlass relay", "is terminated");
      await until(async () => (await told(page)).reason === "worker", "the picture is plain", 10_000, () => told(page));
      const from = await page.evaluate(() => performance.now());
      await until(async () => (await framesSince(page, from)) > 10, "the native picture moves", 5000);
      await closePage();
    });
  });

  test("a worker that hangs takes no other tile's picture, and no sound", async () => {
    const { page, closePage } = await join("two tiles", {}, plantable);
    const camera = await publisher.page.evaluate(async () => {
      const { room } = window.windlass;
      const clone = room.published.find((p) => p.kind === "video").track.clone();
      const [made] = await room.publish(clone, { name: "second", layers: "q" });
      return made.id;
    });
    const states = () => page.evaluate(() => window.windlass.remoteVideos().map(({ id, state, reason }) => ({ id, state, reason })));
    const heard = () =>
      page.evaluate(async () => {
        const stats = [...(await window.windlass.room.connectionStats()).values()];
        return stats.find((s) => s.type === "inbound-rtp" && s.kind === "audio").packetsReceived;
      });
    await until(async () => (await states()).length === 2 && (await states()).every((t) => t.state !== "native"), "both are rebuilt", 20_000, states);
    const before = await heard();
    const at = await plant(page, "windlass decoder", "hangs");
    await until(async () => (await states()).some((t) => t.reason === "stalled"), "one has stopped");
    assert.equal((await states()).filter((t) => t.state !== "native").length, 1, JSON.stringify(await states()));
    assert.ok((await gap(page, at, 1500)) <= SOON_MS);
    assert.ok((await heard()) - before > 30, "the sound went on");
    await publisher.page.evaluate((id) => {
      const { room } = window.windlass;
      return room.unpublish(room.published.find((p) => p.id === id));
    }, camera);
    await closePage();
  });

  describe("of a publisher who agreed to full-size stills", () => {
    for (const [name, fault] of [["windlass regions", "hangs"], ["windlass relay", "is terminated"], ["windlass relay", "hangs"]]) {
      test(`${name} ${fault}: the camera goes on`, async () => {
        const { page, closePage } = await join(`${name} ${fault}`);
        await begins(page);
        const from = await page.evaluate(() => performance.now());
        await plant(publisher.page, name, fault);
        const stood = await gap(page, from, WATCHED_MS[fault]);
        console.log(`plain: the publisher's ${name} ${fault}: a viewer's picture stood for ${stood} ms`);
        assert.ok(stood <= SOON_MS, `no picture for ${stood} ms`);
        await closePage();
      });
    }
  });
});
