// Malformed input at every door, while a call goes on: typed errors, counters, the call untouched.
import assert from "node:assert/strict";
import dgram from "node:dgram";
import { after, before, describe, test } from "node:test";
import { enhanced, nativeFrames, publish, remote, sleep, subscribe, until } from "../support/call.mjs";
import { makeScene, smallFrames } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

/** Seeded bytes. */
function garbage(length, seed) {
  let x = seed | 1;
  return Buffer.from(
    Array.from({ length }, () => {
      x ^= x << 13;
      x ^= x >>> 17;
      x ^= x << 5;
      return x & 255;
    }),
  );
}

/**
 * In a page: somebody in its room who has eight tracks to publish and connects to nothing. `onMessage` hears what the server says;
 * `offer` publishes all of them, or none.
 */
async function stranger(name, onMessage) {
  const url = new URL("/ws", location.href);
  url.protocol = "ws:";
  const pc = new RTCPeerConnection();
  for (let track = 0; track < 8; track++) pc.addTransceiver("audio", { direction: "sendonly" });
  await pc.setLocalDescription();
  const { sdp } = pc.localDescription;
  const all = pc.getTransceivers().map(({ mid }, track) => ({ mid, kind: "audio", name: `track ${track}` }));
  const socket = new WebSocket(url);
  await new Promise((resolve) => {
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === "welcome") resolve();
      onMessage(message);
    };
    socket.onopen = () => socket.send(JSON.stringify({ type: "join", version: 1, room: "call", name }));
  });
  const offer = (id, publishes) =>
    socket.send(JSON.stringify({ type: "offer", id, sdp, publish: publishes ? all : [], subscribe: [] }));
  const leave = () => {
    pc.close();
    socket.close();
  };
  return { offer, leave };
}

describe("a call while others send rubbish", { only: true }, () => {
  let server;
  let publisher;
  let viewer;

  /** Fails unless the call is alive, enhanced and advancing. */
  async function callIsFine() {
    assert.ok(server.alive(), server.log());
    const from = await nativeFrames(viewer.page);
    await until(async () => (await nativeFrames(viewer.page)) >= from + 16, "pictures go on", 10_000);
    // A page that finds its machine too busy pauses for a while of its own accord.
    await until(async () => (await remote(viewer.page)).state === "enhanced", "the picture is enhanced", 40_000, () => remote(viewer.page));
    assert.doesNotMatch(server.log(), /panicked/);
  }

  before(async () => {
    // A second publisher rightly takes its share of the bandwidth; what is tested here is what rubbish does.
    server = await startServer({ args: ["--no-congestion-control"] });
    publisher = await publish(server, makeScene(smallFrames));
    viewer = await subscribe(server);
    await viewer.page.evaluate(`window.stranger = ${stranger}`);
    await enhanced(viewer.page);
  });

  after(async () => {
    await viewer?.close();
    await publisher?.close();
    await server?.stop();
  });

  test("malformed signalling is answered by typed errors", async () => {
    // The page's own origin, so that the socket is a browser's.
    const answers = await viewer.page.evaluate(async () => {
      const url = new URL("/ws", location.href);
      url.protocol = "ws:";
      const codes = [];
      const messages = [
        "not json",
        "[]",
        '{"type":"no-such-thing"}',
        '{"type":"offer","id":1,"sdp":"v=0","publish":[],"subscribe":[]}',
        '{"type":"join","version":99,"room":"x","name":"y"}',
        '{"type":"join","version":1,"room":5}',
        '{"type":"join","version":1,"room":"elsewhere","name":"Mallory"}',
        '{"type":"offer","id":2,"sdp":"rubbish","publish":[],"subscribe":[]}',
        '{"type":"offer","id":3,"sdp":"v=0\\r\\no=- 1 1 IN IP4 0.0.0.0\\r\\ns=-\\r\\nt=0 0\\r\\nm=video 9 UDP/TLS/RTP/SAVPF 96\\r\\n","publish":[{"mid":"0","kind":"video","name":"c"}],"subscribe":[{"mid":"1","track":"t999999"}]}',
        '{"type":"set_rung","track":"t999999","max":"f"}',
        '{"type":"mute","track":"what","muted":true}',
      ];
      const socket = new WebSocket(url);
      socket.onmessage = (m) => {
        const message = JSON.parse(m.data);
        if (message.type === "error") codes.push(message.code);
      };
      await new Promise((resolve, reject) => {
        socket.onopen = resolve;
        socket.onerror = reject;
      });
      for (const message of messages) {
        if (socket.readyState !== WebSocket.OPEN) break;
        socket.send(message);
        await new Promise((r) => setTimeout(r, 150));
      }
      socket.close();
      return codes;
    });
    assert.ok((await server.metrics()).windlass_signaling_errors_total >= 8);
    for (const code of ["malformed", "unknown_type", "not_joined", "unsupported_version", "bad_sdp", "unknown_track"]) {
      assert.ok(answers.includes(code), `no ${code} among ${answers}`);
    }
    await callIsFine();
  });

  test("rubbish on the media port is counted and dropped", async () => {
    const socket = dgram.createSocket("udp4");
    const send = (data) => new Promise((r) => socket.send(data, server.ports.udp, "127.0.0.1", r));
    for (let i = 0; i < 2000; i++) {
      const data = garbage(1 + ((i * 37) % 1200), i + 1);
      // STUN, DTLS, RTP and RTCP by their first byte, and anything.
      if (i % 5 < 4) data[0] = [0, 22, 128, 129][i % 5];
      await send(data);
    }
    socket.close();
    await callIsFine();
    const m = await server.metrics();
    assert.ok(m.windlass_sfu_datagrams_malformed_total + m.windlass_sfu_datagrams_unknown_total >= 1500, JSON.stringify(m));
  });

  test("malformed anchor messages are dropped and counted in the browser", async () => {
    const { anchorsUsed: used, anchorsLost: lost } = (await remote(viewer.page)).stats;
    await viewer.page.evaluate(() => {
      const track = window.windlass.remoteVideos()[0];
      for (let i = 0; i < 500; i++) {
        const data = crypto.getRandomValues(new Uint8Array(1 + ((i * 53) % 2000)));
        if (i % 2) {
          data[0] = 1;
          data[1] = 1;
        }
        if (i % 4 === 3 && data.length > 24) {
          // A complete single-chunk anchor for a plausible frame, with a payload that is no picture.
          new DataView(data.buffer).setUint16(10, 0);
          new DataView(data.buffer).setUint16(12, 1);
        }
        track.anchor(data.buffer);
      }
    });
    await callIsFine();
    await until(async () => (await remote(viewer.page)).stats.anchorsUsed > used + 5, "anchors are used again");
    assert.ok((await remote(viewer.page)).stats.anchorsLost >= lost + 250, "the malformed messages are not counted");
  });

  test("a publisher that sends broken VP9 leaves the others' call untouched", { only: true }, async () => {
    const mallory = await publisher.newPage();
    await mallory.page.addInitScript(() => {
      // Every encoded frame that this page sends is damaged behind its uncompressed header.
      const code = `onrtctransform = ({ transformer }) => {
        transformer.readable.pipeThrough(new TransformStream({ transform(frame, out) {
          const data = new Uint8Array(frame.data);
          for (let i = 14; i < data.length; i += 7) data[i] ^= 0x5a;
          frame.data = data.buffer;
          out.enqueue(frame);
        } })).pipeTo(transformer.writable);
      };`;
      const worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
      const add = RTCPeerConnection.prototype.addTransceiver;
      RTCPeerConnection.prototype.addTransceiver = function (track, init) {
        const transceiver = add.call(this, track, init);
        if (track?.kind === "video") transceiver.sender.transform = new RTCRtpScriptTransform(worker, {});
        return transceiver;
      };
    });
    await mallory.page.goto(`${server.url}/?room=call&name=Mallory&auto=1&layers=qh`);
    await until(async () => (await viewer.page.evaluate(() => window.windlass.remoteVideos().length)) === 2, "the second publisher is seen");
    await until(async () => (await server.metrics()).windlass_enhancer_decode_errors_total > 0, "the damage is counted");
    await callIsFine();
    await mallory.page.close();
    await until(async () => (await viewer.page.evaluate(() => window.windlass.remoteVideos().length)) === 1, "the second publisher is gone", 40_000);
    await callIsFine();
  });

  test("those who begin and end tracks all the time end nobody's call", async () => {
    const told = await viewer.page.evaluate(async () => {
      const told = { answers: 0, refused: 0 };
      const hear = (message) => {
        if (message.type === "answer") told.answers++;
        if (message.code === "rate_limited") told.refused++;
      };
      const flap = async (n) => {
        const { offer, leave } = await window.stranger(`Flapper ${n}`, hear);
        for (let id = 1; id <= 75; id++) {
          offer(id, id % 2 === 1);
          await new Promise((resolve) => setTimeout(resolve, 200));
        }
        leave();
      };
      await Promise.all([flap(1), flap(2), flap(3)]);
      return told;
    });
    assert.ok(told.answers > 90 && told.refused > 60, JSON.stringify(told));
    await callIsFine();
    await until(async () => (await viewer.page.evaluate(() => window.windlass.room.tracks.length)) <= 2, "their tracks are gone", 40_000);
  });

  test("a room with more tracks than an offer may have sections is still a call", async () => {
    // Twelve who publish all that they may and connect to nothing.
    await viewer.page.evaluate(async () => {
      const crowd = [];
      window.disperse = () => crowd.splice(0).forEach(({ leave }) => leave());
      for (let n = 0; n < 12; n++) {
        await new Promise((resolve, reject) => {
          const hear = (message) => {
            if (message.type === "answer") resolve();
            if (message.type === "error") reject(new Error(JSON.stringify(message)));
          };
          window.stranger(`Crowd ${n}`, hear).then((one) => {
            crowd.push(one);
            one.offer(1, true);
          }, reject);
        });
      }
    });
    const received = (page) => page.evaluate(() => window.windlass.room.tracks.map(({ kind }) => kind));
    await until(async () => (await received(viewer.page)).length === 64, "as many tracks as fit are received");
    assert.ok((await received(viewer.page)).includes("video"));
    await callIsFine();
    const late = await subscribe(server, { name: "Late", browser: viewer });
    await enhanced(late.page);
    await late.page.close();
    await viewer.page.evaluate(() => window.disperse());
    await until(async () => (await received(viewer.page)).length <= 2, "the crowd is gone", 40_000);
    await callIsFine();
  });
});
