// A player that is not ours asks for the enhanced picture, which it cannot rebuild: the server does it.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { capture, quality } from "../support/capture.mjs";
import { publish, until } from "../support/call.mjs";
import { fewFrames, makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { startWhipWhepPage } from "../support/whip-whep-page.mjs";

describe("a WHEP player and the enhanced picture", () => {
  let server;
  let clients;
  let camera;
  let player;
  let scene;

  before(async () => {
    [server, clients] = await Promise.all([startServer({ args: ["--device=cpu"] }), startWhipWhepPage()]);
    // Few frames a second, so that the encoder has time beside two browsers and the server's own enhancement.
    scene = makeScene(fewFrames);
    // The publisher's stills: what the server's own networks make of the picture depends on how much time it has.
    camera = await publish(server, scene, { query: "&detail=1" });
    await until(async () => ((await server.metrics()).windlass_sfu_rtp_in_total) > 200, "the camera sends", 30_000);
  });

  after(async () => {
    await Promise.all([camera?.close(), player?.close()]);
    clients?.close();
    await server?.stop();
  });

  /** Loads a player for this address as `window[name]`. */
  const load = (name, address) =>
    player.page.evaluate(
      async ([name, address]) => {
        const video = document.createElement("video");
        Object.assign(video, { autoplay: true, muted: true });
        document.body.append(video);
        window[name] = new WebRTCPlayer({ video, type: "whep" });
        window[`${name}Video`] = video;
        await window[name].load(new URL(address));
      },
      [name, address],
    );

  /** What a player receives. */
  const received = (name) =>
    player.page.evaluate(async (name) => {
      const stats = await window[name].peer.getStats();
      const of = (kind) => [...stats.values()].find((s) => s.type === "inbound-rtp" && s.kind === kind);
      const [video, audio] = [of("video"), of("audio")];
      return {
        codec: stats.get(video?.codecId)?.mimeType,
        width: video?.frameWidth,
        frames: video?.framesDecoded ?? 0,
        bytes: video?.bytesReceived,
        sound: audio?.packetsReceived ?? 0,
      };
    }, name);

  /** What the server says of its renderer. */
  const rendered = async () => {
    const metrics = Object.entries(await server.metrics());
    return Object.fromEntries(metrics.filter(([name]) => /rendition|render/.test(name)));
  };

  test("it comes larger than the layer, in AV1, with the sound", async () => {
    player = await clients.open();
    await load("enhanced", `${server.url}/whep/call?enhanced=true`);
    const seen = await until(
      async () => {
        const now = await received("enhanced");
        return now.frames > 30 && now.sound > 0 && now;
      },
      "the player shows and plays",
      60_000,
      async () => ({ ...(await received("enhanced")), ...(await rendered()) }),
    );
    console.log(JSON.stringify(seen));
    assert.deepEqual([seen.codec, seen.width], ["video/AV1", 640]);
    assert.equal((await server.metrics()).windlass_renditions, 1);
  });

  test("it is nearer to the camera's picture than the layer that is enlarged", async () => {
    await load("plain", `${server.url}/whep/call`);
    await until(async () => (await received("plain")).frames > 30, "the plain player shows", 30_000);
    await player.page.evaluate(() => {
      const trackOf = (name) => window[`${name}Video`].srcObject.getVideoTracks()[0];
      const both = { enhanced: trackOf("enhanced"), plain: trackOf("plain") };
      window.windlass = { remoteVideos: () => [both] };
    });
    // A busy machine makes few pictures: each is held against its own original.
    const some = async () => {
      const figures = quality(await capture(player.page, 6), scene, 1);
      return figures.pairs > 4 && figures;
    };
    const figures = await until(some, "pictures of both players are of the same frames", 120_000, rendered);
    console.log(JSON.stringify({ ...figures, ...(await rendered()) }));
    assert.ok(figures.enhanced > figures.lanczos, JSON.stringify(figures));
  });

  test("the work ends with the last player", async () => {
    await player.close();
    player = undefined;
    await until(async () => ((await server.metrics()).windlass_renditions) === 0, "it has ended", 40_000);
  });
});
