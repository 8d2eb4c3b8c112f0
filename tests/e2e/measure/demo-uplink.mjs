// What the page /demo sends at positions of its slider, and how close its halves are to the clip:
// WINDLASS_BIN=… node measure/demo-uplink.mjs [kbit/s …]
import { openPage } from "../support/browser.mjs";
import { sleep, until } from "../support/call.mjs";
import { startServer } from "../support/server.mjs";
import { setUplink } from "../support/show.mjs";

/** Seconds after a change of the slider before it is measured, and of the measurement. */
const [SETTLE_S, MEASURE_S] = [12, 20];
const positions = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [60, 150, 450];

const server = await startServer({ udpHost: "0.0.0.0" });
const { page, close } = await openPage({ cameraAllowed: false, viewport: { width: 1280, height: 900 } });

/** Bytes that have left the page, and the figures that it shows. */
const sent = () =>
  page.evaluate(async () => {
    const stats = [...((await window.windlassShow.room.connectionStats())?.values() ?? [])];
    const bytes = stats.reduce((sum, entry) => sum + (entry.type === "transport" ? entry.bytesSent : 0), 0);
    return { at: performance.now(), bytes, figures: window.windlassShow.figures };
  });

try {
  await page.goto(`${server.url}/demo`);
  for (const scene of ["person", "text"]) {
    await page.locator(`input[value="${scene}"]`).evaluate((input) => input.click());
    await until(async () => (await page.evaluate(() => window.windlassShow.figures?.sentKbps)) > 0, "the page sends");
    for (const kbps of positions) {
      await setUplink(page, kbps);
      await sleep(SETTLE_S * 1000);
      let last = await sent();
      const [from, rates] = [last, []];
      for (let second = 0; second < MEASURE_S; second++) {
        await sleep(1000);
        const now = await sent();
        rates.push(((now.bytes - last.bytes) * 8) / (now.at - last.at));
        last = now;
      }
      const mean = ((last.bytes - from.bytes) * 8) / (last.at - from.at);
      const { plain, rebuilt } = last.figures ?? {};
      const db = (value) => (value == null ? "–" : value.toFixed(1));
      console.log(`${scene} ${kbps}: mean ${mean.toFixed(0)} kbit/s, most in a second ${Math.max(...rates).toFixed(0)}; ${db(plain)} dB plain, ${db(rebuilt)} dB rebuilt`);
    }
  }
} finally {
  await close();
  await server.stop();
}
