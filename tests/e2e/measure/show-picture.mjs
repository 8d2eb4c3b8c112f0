// The picture of the page /demo at the head of README.md (docs/pictures/demo.png).
//   cargo xtask page && cargo build --release -p windlass && cd tests/e2e
//   WINDLASS_BIN=../../target/release/windlass node measure/show-picture.mjs
// The page is taken as it is, 20 s after the slider was at 150 kbit/s; nobody chooses the frame.
import { spawnSync } from "node:child_process";
import { openPage } from "../support/browser.mjs";
import { sleep } from "../support/call.mjs";
import { startServer } from "../support/server.mjs";

const scene = process.argv[2] ?? "text";
const server = await startServer();
const tab = await openPage({ viewport: { width: 1080, height: 1300 }, colorScheme: "light" });
try {
  await tab.page.goto(`${server.url}/demo`);
  if (scene === "text") await tab.page.getByText("Small text", { exact: true }).click();
  await sleep(20_000);
  console.log(await tab.page.locator(".said").innerText());
  const clip = await tab.page.locator(".show").evaluate((main) => {
    const parts = [".scene", ".below"].map((part) => main.querySelector(part).getBoundingClientRect());
    const [x, y] = [Math.min(...parts.map((p) => p.left)) - 8, parts[0].top + scrollY - 8];
    return { x, y, width: Math.max(...parts.map((p) => p.right)) + 8 - x, height: parts[1].bottom + scrollY + 8 - y };
  });
  await tab.page.screenshot({ path: "output/demo.png", clip, fullPage: true });
  // 256 colours are enough for it, and a third of the bytes.
  const palette = "split[a][b];[a]palettegen[p];[b][p]paletteuse=dither=none";
  const run = spawnSync("ffmpeg", ["-v", "error", "-y", "-i", "output/demo.png", "-filter_complex", palette, "../../docs/pictures/demo.png"]);
  if (run.status !== 0) throw new Error(`ffmpeg: ${run.stderr}`);
} finally {
  await tab.close();
  await server.stop();
}
