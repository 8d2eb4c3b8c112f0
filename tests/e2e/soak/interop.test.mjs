// Stacks that no browser has, as WHIP encoders and WHEP players: aiortc (Python), libdatachannel (C++; OBS has it), Pion
// (Go) and FFmpeg's WHIP muxer.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { nativeFrames, receivedVideo, refused, remote, sleep, subscribe, until } from "../support/call.mjs";
import { ownAddress } from "../support/firefox.mjs";
import { hasGStreamer, SYSTEM_PYTHON } from "../support/gstreamer.mjs";
import { endAfterTests } from "../support/leftovers.mjs";
import { gotBy } from "../support/players.mjs";
import { freePort } from "../support/ports.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

const python = process.env.WINDLASS_AIORTC;
const noAiortc = !python && "no aiortc; name a Python that has it in WINDLASS_AIORTC (`cargo xtask soak` does)";
const support = (name) => fileURLToPath(new URL(`../support/${name}`, import.meta.url));

function noLibdatachannel() {
  try {
    createRequire(import.meta.url).resolve("node-datachannel");
  } catch {
    return "no node-datachannel (`npm ci`)";
  }
  return spawnSync("ffmpeg", ["-version"]).status !== 0 && "no ffmpeg, which encodes for it";
}

const noRtspServer = () => !hasGStreamer("GstRtspServer") && "no RTSP server of GStreamer for Python (`cargo xtask soak` installs it)";

/** A program that reads from `input`, and what it has said. */
function run(command, args, input = "ignore") {
  const program = spawn(command, args, { stdio: [input, "pipe", "inherit"] });
  const ended = endAfterTests(() => program.kill("SIGKILL"));
  let said = "";
  program.stdout.on("data", (text) => (said += text));
  return {
    said: () => said,
    async end() {
      const exited = program.exitCode === null && program.signalCode === null && once(program, "exit");
      program.kill("SIGINT");
      await exited;
      ended();
    },
  };
}

const aiortc = (way, url, codec) => run(python, [support("aiortc_client.py"), way, url, codec]);
/** Frames of video and audio that an aiortc player has decoded, and the picture's width. */
const got = (player) => gotBy(player.said());

/** Debian's packages of Go, which need no modules. */
const GO = { ...process.env, GO111MODULE: "off", GOPATH: "/usr/share/gocode" };
const noPion =
  (spawnSync("go", ["list", "github.com/pion/webrtc"], { env: GO }).status !== 0 && "no Pion for Go (`cargo xtask soak` installs it)") ||
  (spawnSync("ffmpeg", ["-version"]).status !== 0 && "no ffmpeg, which encodes for it");

/** How ffmpeg encodes for Pion's encoder. */
const ENCODED = {
  vp9: "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -f ivf",
  vp8: "-c:v libvpx -deadline realtime -cpu-used 8 -f ivf",
  h264: "-c:v libx264 -profile:v baseline -tune zerolatency -preset ultrafast -x264-params sliced-threads=0 -f h264",
};

describe("clients of other stacks", { only: true, skip: skipped("clients of other stacks", !ownAddress && "no address but localhost") }, () => {
  let server;
  let viewer;

  before(async () => {
    // They pair no loopback address, as Firefox.
    server = await startServer({ udpHost: ownAddress, args: ["--no-congestion-control"] });
    viewer = await subscribe(server, { room: "first" });
  });

  after(async () => {
    await viewer?.close();
    await server?.stop();
  });

  /** Fails unless a browser in the room sees a moving picture in `codec`, and is told why there are no anchors. */
  async function isSeen(t, room, codec, why = "codec") {
    const page = await subscribe(server, { room, browser: viewer });
    t.after(() => page.closePage());
    await until(async () => (await nativeFrames(page.page)) > 60, "a browser sees its picture", 30_000);
    assert.equal((await receivedVideo(page.page)).codec, `video/${codec}`);
    await until(async () => (await refused(page.page)) === why, "it is told why", 10_000, () => refused(page.page));
    assert.deepEqual(page.errors, []);
    return page;
  }

  const ended = (page) => until(async () => (await remote(page.page)) === undefined, "its track ends with its session", 5000);

  /** Fails unless what `encoder` sends in `codec` is seen by a browser and played by aiortc, and ends with its session. */
  async function isPlayed(t, room, codec, encoder, { sound = true } = {}) {
    const page = await isSeen(t, room, codec);
    const player = aiortc("whep", `${server.url}/whep/${room}`, codec);
    const enough = () => got(player)[0] > 60 && (!sound || got(player)[1] > 60);
    await until(enough, "it is played", 30_000, () => player.said());
    assert.equal(got(player)[2], 640);
    await Promise.all([player.end(), encoder.end()]);
    await ended(page);
  }

  for (const codec of ["h264", "vp8"]) {
    const name = `aiortc sends ${codec} to a browser and to another aiortc`;
    test(name, { skip: skipped(name, noAiortc) }, (t) =>
      isPlayed(t, `a-${codec}`, codec, aiortc("whip", `${server.url}/whip/a-${codec}`, codec)));
  }

  {
    const name = "FFmpeg's WHIP muxer sends H.264 and Opus to a browser and to aiortc";
    test(name, { skip: skipped(name, noAiortc) }, (t) =>
      isPlayed(t, "muxer", "h264", run(python, [support("ffmpeg_whip.py"), `${server.url}/whip/muxer`])));
  }

  describe("Pion", { skip: skipped("Pion", noPion) }, () => {
    const folder = mkdtempSync(path.join(tmpdir(), "pion-"));
    const pion = path.join(folder, "pion");
    before(() => assert.equal(spawnSync("go", ["build", "-o", pion, support("pion/main.go")], { env: GO, stdio: "inherit" }).status, 0));
    after(() => rmSync(folder, { recursive: true, force: true }));

    for (const codec of ["vp9", "vp8", "h264"]) {
      test(`sends ${codec} to a browser and to another Pion`, async (t) => {
        const room = `pion-${codec}`;
        const drawn = "-v error -re -f lavfi -i testsrc2=size=640x360:rate=30 -pix_fmt yuv420p -b:v 500k -g 60";
        const ffmpeg = spawn("ffmpeg", [...drawn.split(" "), ...ENCODED[codec].split(" "), "-"], { stdio: ["ignore", "pipe", "ignore"] });
        t.after(() => ffmpeg.kill("SIGKILL"));
        const encoder = run(pion, ["whip", `${server.url}/whip/${room}`, codec], ffmpeg.stdout);
        // Its payloader calls every frame of VP9 a key frame, so that the enhancer cannot tell which one is.
        const page = await isSeen(t, room, codec, codec === "vp9" ? null : "codec");
        const player = run(pion, ["whep", `${server.url}/whep/${room}`, codec]);
        await until(() => got(player)[0] > 60, "it is played", 30_000, () => player.said());
        await Promise.all([player.end(), encoder.end()]);
        await ended(page);
      });
    }
  });

  const whip = (room, input = []) => run(process.execPath, [support("libdatachannel_whip.mjs"), `${server.url}/whip/${room}`, ...input]);

  {
    const name = "libdatachannel sends H.264 to a browser and to aiortc";
    test(name, { skip: skipped(name, noLibdatachannel() || noAiortc) }, (t) =>
      isPlayed(t, "obs", "h264", whip("obs"), { sound: false }));
  }

  {
    const name = "libdatachannel sends H.264 to another libdatachannel";
    test(name, { skip: skipped(name, noLibdatachannel()) }, async () => {
      const encoder = whip("both");
      // Where nobody publishes, a player is refused.
      await until(async () => encoder.said().includes("connected"), "it is connected", 10_000, async () => encoder.said());
      const player = run(process.execPath, [support("libdatachannel_whep.mjs"), `${server.url}/whep/both`]);
      await until(() => got(player)[0] > 60, "it is played", 30_000, async () => player.said());
      assert.equal(got(player)[2], 640);
      await Promise.all([player.end(), encoder.end()]);
    });
  }

  {
    const name = "a camera's H.264 by RTSP, for which it is asked, is seen as it is";
    test(name, { skip: skipped(name, noLibdatachannel() || noRtspServer()) }, async (t) => {
      const port = await freePort();
      const camera = run(SYSTEM_PYTHON, [support("rtsp_camera.py"), `${port}`]);
      await until(() => camera.said().includes("listening"), "the camera listens");
      const gateway = whip("camera-asked", ["--", "-rtsp_transport", "tcp", "-i", `rtsp://127.0.0.1:${port}/stream`]);
      const page = await isSeen(t, "camera-asked", "h264");
      assert.match(camera.said(), /asked/);
      await gateway.end();
      await camera.end();
      await ended(page);
    });
  }

  for (const protocol of ["rtsp", "rtp"]) {
    const name = `a camera's H.264 by ${protocol.toUpperCase()} is seen as it is`;
    test(name, { only: protocol === "rtp", skip: skipped(name, noLibdatachannel()) }, async (t) => {
      const port = await freePort();
      const at = `${protocol}://127.0.0.1:${port}`;
      const folder = mkdtempSync(path.join(tmpdir(), "camera-"));
      t.after(() => rmSync(folder, { recursive: true, force: true }));
      const description = path.join(folder, "camera.sdp");
      // Who listens must be there first: this camera of RTSP pushes.
      const asked = { rtsp: ["-rtsp_flags", "listen", "-i", at], rtp: ["-protocol_whitelist", "file,udp,rtp", "-i", description] };
      const rtp = [`-sdp_file`, description, "-f", "rtp", at];
      const sent = { rtsp: ["-f", "rtsp", "-rtsp_transport", "tcp", at], rtp };
      const draw = "-v error -re -f lavfi -i testsrc2=size=640x360:rate=30 -pix_fmt yuv420p -c:v libx264 -profile:v main -tune zerolatency -g 60".split(" ");
      const begin = () => run("ffmpeg", [...draw, ...sent[protocol]]);
      const open = () => whip(`camera-${protocol}`, ["--", ...asked[protocol]]);
      let [camera, gateway] = [null, null];
      if (protocol === "rtp") {
        camera = begin();
        await until(() => existsSync(description) && statSync(description).size > 0, "the stream is described");
        gateway = open();
      } else {
        gateway = open();
        await until(() => gateway.said().includes("connected"), "the gateway is connected");
        await sleep(1000);
        camera = begin();
      }
      const page = await isSeen(t, `camera-${protocol}`, "h264");
      await gateway.end();
      await camera.end();
      await ended(page);
    });
  }
});
