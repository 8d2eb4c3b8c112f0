// A call over some way, and which way it went.
import { countFreezes, enhanced, publish, sleep, subscribe, until } from "./call.mjs";
import { selectedPair } from "./paths.mjs";
import { makeScene, smallFrames } from "./scene.mjs";
import { startServer } from "./server.mjs";

/** A call of twelve frames a second with these options of the server: the pairs of publisher and viewer, what was seen in `ms`, and metrics. */
export async function callOver(options, ms = 3000) {
  const scene = makeScene(smallFrames);
  const server = await startServer(options);
  const tabs = [];
  try {
    tabs.push(await publish(server, scene));
    tabs.push(await subscribe(server));
    const [publisher, viewer] = tabs.map((tab) => tab.page);
    await enhanced(viewer, 40_000);
    const freezes = await countFreezes(viewer);
    await sleep(ms);
    const seen = await freezes();
    const pairs = await Promise.all([publisher, viewer].map(selectedPair));
    const metrics = await server.metrics();
    const errors = tabs.flatMap((tab) => tab.errors);
    for (const tab of tabs.splice(0)) await tab.close();
    await until(async () => (await server.metrics()).windlass_sfu_tcp_connections_open === 0, "all TCP connections are closed", 40_000);
    return { pairs, seen, metrics, errors };
  } finally {
    for (const tab of tabs) await tab.close();
    await server.stop();
  }
}
