// GStreamer, a WebRTC stack that no browser has, as a WHIP encoder and as a WHEP player. Its certificates are by RSA, and its
// keepalives are no checks.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { enhanced, nativeFrames, receivedVideo, refused, remote, sleep, subscribe, until } from "../support/call.mjs";
import { ownAddress } from "../support/firefox.mjs";
import { hasElement, SYSTEM_PYTHON } from "../support/gstreamer.mjs";
import { gotBy } from "../support/players.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

const missing =
  (!(hasElement("whipclientsink") && hasElement("whepsrc")) && "no GStreamer with its Rust plugins (`cargo xtask soak` makes them)") ||
  (!ownAddress && "no address but localhost");

/** Sends to (`whip`) or plays (`whep`) the server's room `call` with this token and codec; what it says is given to `say`. */
function start(way, server, say, ...more) {
  const script = fileURLToPath(new URL("../support/gstreamer_client.py", import.meta.url));
  const client = spawn(SYSTEM_PYTHON, [script, way, `${server.url}/${way}/call`, ...more], { stdio: ["ignore", "pipe", "inherit"] });
  client.stdout.on("data", say);
  return client;
}

describe("GStreamer", { only: true, skip: skipped("GStreamer", missing) }, () => {
  let server;
  let viewer;
  let encoder;
  let player;
  let said = "";

  before(async () => {
    // It pairs no loopback address, as Firefox.
    server = await startServer({ udpHost: ownAddress, args: ["--no-congestion-control"] });
    viewer = await subscribe(server);
    encoder = start("whip", server, (text) => (said += text));
  });

  after(async () => {
    encoder?.kill("SIGKILL");
    player?.kill("SIGKILL");
    await viewer?.close();
    await server?.stop();
  });

  test("a participant sees and hears what it sends, enhanced", { only: true }, async () => {
    await until(async () => (await nativeFrames(viewer.page)) > 60, `the viewer sees its picture (${said})`, 30_000);
    const seen = await enhanced(viewer.page, 40_000);
    const { lr, hr } = (await remote(viewer.page)).stats;
    const heard = await until(
      () =>
        viewer.page.evaluate(async () => {
          for (const s of (await window.windlass.room.connectionStats()).values()) {
            if (s.type === "inbound-rtp" && s.kind === "audio") return s.totalAudioEnergy;
          }
        }),
      "the viewer hears it",
    );
    console.log(`GStreamer is given as ${seen.rung}, ${lr.width} to ${hr.width} wide, loudness ${heard.toFixed(2)}`);
  });

  /** Fails unless another GStreamer plays picture and sound in `codec`, and ends its session when it says so. */
  async function isPlayed(codec) {
    let told = "";
    player = start("whep", server, (text) => (told += text), "", codec);
    const got = () => gotBy(told);
    await until(() => got()[0] > 60 && got()[1] > 60, "it is played", 30_000, async () => told);
    console.log(`GStreamer plays ${codec}, ${got()[2]} wide`);
    assert.equal(got()[2], 320);
    player.kill("SIGINT");
    await once(player, "exit");
    await until(async () => (await server.metrics()).windlass_sfu_participants === 2, "the player is gone", 5000);
  }

  test("another GStreamer plays it", () => isPlayed("vp9"));

  test("it is there when its keepalives alone would have been", async () => {
    // The stack gives up a client of whom it has heard no check for 15 s.
    await sleep(16_000);
    const from = await nativeFrames(viewer.page);
    await until(async () => (await nativeFrames(viewer.page)) > from + 30, "the viewer sees its picture", 10_000);
    assert.equal(said, "");
  });

  test("its session ends when it says so", async () => {
    encoder.kill("SIGINT");
    await once(encoder, "exit");
    await until(async () => (await server.metrics()).windlass_sfu_participants === 1, "the viewer is alone", 5000);
    assert.deepEqual(viewer.errors, []);
  });

  test("what it sends in H.264 is seen as it is", async () => {
    encoder = start("whip", server, (text) => (said += text), "", "h264");
    await until(async () => (await receivedVideo(viewer.page))?.codec === "video/h264", `H.264 comes (${said})`, 30_000);
    const from = await nativeFrames(viewer.page);
    await until(async () => (await nativeFrames(viewer.page)) > from + 60, "the viewer sees its picture", 30_000);
    await until(async () => (await refused(viewer.page)) === "codec", "it is told why there are no anchors", 10_000);
    assert.deepEqual(viewer.errors, []);
  });

  test("another GStreamer plays H.264 too", () => isPlayed("h264"));
});
