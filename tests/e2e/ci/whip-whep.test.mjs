// Encoders and players that are not ours: public WHIP and WHEP clients on a page of another origin.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { nativeFrames, remote, sleep, subscribe, until } from "../support/call.mjs";
import { makeScene, smallFrames } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { startWhipWhepPage } from "../support/whip-whep-page.mjs";

/** Loudness that a page hears of the first remote audio track, and frames that it decodes of video. */
const received = (peer) =>
  peer.getStats().then((stats) => {
    const of = (kind) => [...stats.values()].find((s) => s.type === "inbound-rtp" && s.kind === kind);
    return {
      frames: of("video")?.framesDecoded ?? 0,
      width: of("video")?.frameWidth,
      loudness: of("audio")?.totalAudioEnergy ?? 0,
      codecs: ["video", "audio"].map((kind) => stats.get(of(kind)?.codecId)?.mimeType),
    };
  });

describe("a WHIP encoder and a WHEP player", () => {
  let server;
  let clients;
  let encoder;
  let player;
  let viewer;

  before(async () => {
    [server, clients] = await Promise.all([startServer({ args: ["--no-congestion-control"] }), startWhipWhepPage()]);
    viewer = await subscribe(server);
  });

  after(async () => {
    await Promise.all([encoder?.close(), player?.close(), viewer?.close()]);
    clients?.close();
    await server?.stop();
  });

  test("a participant sees and hears what the encoder sends, enhanced", async () => {
    encoder = await clients.open({ camera: makeScene(smallFrames).file });
    await encoder.page.evaluate(async (endpoint) => {
      // A size that the slowest of our CPUs enlarges in time: which machine runs the test is not what it asks.
      const camera = { width: 320, height: 180 };
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true, video: camera });
      window.client = new WHIPClient({ endpoint, opts: {} });
      await window.client.ingest(stream);
    }, `${server.url}/whip/call`);
    await until(async () => (await nativeFrames(viewer.page)) > 30, "the viewer sees the encoder's picture", 30_000);
    const seen = await until(
      async () => {
        const track = await remote(viewer.page);
        return track?.state === "enhanced" && track;
      },
      "the picture is enhanced",
      30_000,
    );
    assert.ok(seen.rung.endsWith("+"), seen.rung);
    const heard = () =>
      viewer.page.evaluate(async () => {
        for (const s of (await window.windlass.room.connectionStats()).values()) {
          if (s.type === "inbound-rtp" && s.kind === "audio") return s.totalAudioEnergy;
        }
        return 0;
      });
    await until(async () => (await heard()) > 0, "the viewer hears the encoder");
    const name = await viewer.page.evaluate(() => window.windlass.room.participants[0]?.name);
    console.log(`the encoder is ${name}, given as ${seen.rung}`);
  });

  test("the player shows and plays what the encoder sends", async () => {
    player = await clients.open();
    await player.page.evaluate(async (channel) => {
      const video = document.querySelector("video");
      window.player = new WebRTCPlayer({ video, type: "whep" });
      await window.player.load(new URL(channel));
    }, `${server.url}/whep/call`);
    const peer = await player.page.evaluateHandle(() => window.player.peer);
    const got = await until(async () => {
      const now = await player.page.evaluate(received, peer);
      return now.frames > 60 && now.loudness > 0 && now;
    }, "the player shows and plays", 30_000);
    assert.deepEqual(got.codecs, ["video/VP9", "audio/opus"]);
    const shown = await player.page.evaluate(() => {
      const video = document.querySelector("video");
      return { width: video.videoWidth, frames: video.getVideoPlaybackQuality().totalVideoFrames };
    });
    console.log(`the player decoded ${got.frames} frames, shows ${shown.frames}, ${shown.width} wide`);
    assert.ok(shown.width > 0 && shown.frames > 0);
  });

  test("an encoder that restarts ICE goes on", async () => {
    const restarted = await encoder.page.evaluate(async (server) => {
      const { client } = window;
      const { peer } = client;
      const pair = async () => {
        for (const s of (await peer.getStats()).values()) if (s.type === "transport") return s.selectedCandidatePairId;
      };
      const before = await pair();
      peer.restartIce();
      await peer.setLocalDescription(await peer.createOffer());
      const lines = (sdp, prefix) => sdp.split("\r\n").filter((line) => line.startsWith(prefix));
      const own = peer.localDescription.sdp;
      const fragment = ["a=ice-ufrag:", "a=ice-pwd:"].map((prefix) => `${lines(own, prefix)[0]}\r\n`).join("");
      const location = await client.getResourceUrl();
      const answer = await fetch(new URL(location, server), {
        method: "PATCH",
        headers: { "content-type": "application/trickle-ice-sdpfrag", "if-match": "*" },
        body: fragment,
      });
      const text = await answer.text();
      let sdp = peer.remoteDescription.sdp;
      for (const prefix of ["a=ice-ufrag:", "a=ice-pwd:"]) {
        sdp = sdp.replaceAll(new RegExp(`^${prefix}.*$`, "gm"), lines(text, prefix)[0]);
      }
      await peer.setRemoteDescription({ type: "answer", sdp });
      const end = Date.now() + 10_000;
      while ((await pair()) === before && Date.now() < end) await new Promise((r) => setTimeout(r, 100));
      return { status: answer.status, tag: answer.headers.get("etag"), before, after: await pair(), state: peer.connectionState };
    }, server.url);
    assert.equal(restarted.status, 200);
    assert.equal(restarted.tag, '"2"');
    assert.notEqual(restarted.after, restarted.before, "another pair of candidates");
    const frames = await nativeFrames(viewer.page);
    await until(async () => (await nativeFrames(viewer.page)) > frames + 60, "the viewer sees more of it", 20_000);
    assert.equal(restarted.state, "connected");
  });

  test("an encoder without a codec that is forwarded is told why, on its own page", async () => {
    const refused = await encoder.page.evaluate(async (endpoint) => {
      const peer = new RTCPeerConnection();
      const video = peer.addTransceiver("video", { direction: "sendonly" });
      const codecs = RTCRtpSender.getCapabilities("video").codecs;
      const other = ({ mimeType, sdpFmtpLine }) => /h264/i.test(mimeType) && /packetization-mode=0/.test(sdpFmtpLine);
      video.setCodecPreferences(codecs.filter(other));
      const { sdp } = await peer.createOffer();
      const answer = await fetch(endpoint, { method: "POST", headers: { "content-type": "application/sdp" }, body: sdp });
      return { status: answer.status, ...(await answer.json()) };
    }, `${server.url}/whip/call`);
    assert.equal(refused.status, 422);
    assert.equal(refused.code, "no_codec");
    assert.match(refused.hint, /VP9/);
  });

  test("sessions end when their clients say so", async () => {
    await player.page.evaluate(() => window.player.unload());
    await encoder.page.evaluate(() => window.client.destroy());
    await until(async () => (await server.metrics()).windlass_sfu_participants === 1, "the viewer is alone", 10_000);
    await sleep(500);
    assert.deepEqual(encoder.errors.filter((e) => !e.includes("422")), []);
    assert.deepEqual(player.errors, []);
  });
});
