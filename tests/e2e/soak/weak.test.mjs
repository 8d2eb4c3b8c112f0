// Calls over what weak networks do: a satellite's delay, one packet in five lost. Roaming is in restart.test.mjs, TCP in tcp.test.mjs.
//
// Runs beside light files.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { heard, span, speak } from "../support/audio.mjs";
import { countFreezes, nativeFrames, publish, sleep, subscribe, until } from "../support/call.mjs";
import { makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";

/** Seconds that are measured; more in the soak. */
const SECONDS = Math.min(30, Number(process.env.WINDLASS_CALL_SECONDS ?? 12));
/** One way over a geostationary satellite, ms: 600 there and back. */
const SATELLITE_MS = 300;

/**
 * A call of {@link SECONDS} over a path that both ends have, after ten to settle, with a tone that is sent once and one that is
 * sent twice; what came of it.
 */
async function call(t, path, hold = () => 0) {
  const server = await startServer({ path: { seed: 3, ...path } });
  t.after(() => server.stop());
  server.proxy.hold = hold;
  const publisher = await publish(server, makeScene({ clip: "d13" }), { layers: "qh" });
  t.after(() => publisher.close());
  const viewer = await subscribe(server);
  t.after(() => viewer.close());
  await speak(publisher.page);
  await speak(publisher.page, { name: "twice", redundancy: true });
  await until(async () => (await nativeFrames(viewer.page)) > 0, "a picture comes", 60_000);
  for (const name of ["tone", "twice"]) {
    await until(async () => (await heard(viewer.page, name))?.packetsReceived > 0, `"${name}" is heard`, 30_000);
  }
  await sleep(10_000);
  const freezes = await countFreezes(viewer.page);
  const [once, twice] = await Promise.all(["tone", "twice"].map((name) => span(viewer.page, name, SECONDS)));
  const concealed = ({ concealedSamples, totalSamplesReceived }) => concealedSamples / totalSamplesReceived;
  const seen = { ...(await freezes()), once: concealed(once), twice: concealed(twice) };
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  console.log(
    `${t.name}: ${seen.fps.toFixed(1)} frames a second, ${seen.freezes} freezes, ${percent(seen.frozen)} of the time frozen, ` +
      `${seen.keyFramesAsked} key frames asked for; of the tone ${percent(seen.once)} concealed, sent twice ${percent(seen.twice)}`,
  );
  assert.deepEqual([...viewer.errors, ...publisher.errors], []);
  assert.doesNotMatch(server.log(), /panicked/);
  return seen;
}

describe("a call over a weak network", { only: true }, () => {
  test("600 ms of delay, there and back", { only: true }, async (t) => {
    const seen = await call(t, {}, () => SATELLITE_MS);
    assert.ok(seen.fps >= 10, JSON.stringify(seen));
    assert.ok(seen.frozen < 0.2, JSON.stringify(seen));
    assert.ok(seen.once < 0.05, JSON.stringify(seen));
  });

  test("20 % of packets lost, each way, at both ends", async (t) => {
    const seen = await call(t, { loss: 0.2 });
    assert.ok(seen.fps >= 5, JSON.stringify(seen));
    // Measured: 41 %. About a third of all packets is lost from end to end.
    assert.ok(seen.frozen < 0.7, JSON.stringify(seen));
    assert.ok(seen.twice < seen.once, JSON.stringify(seen));
  });
});
