// Real browsers: one process each, so that a subscriber never shares a thread with the publisher.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import { endAfterTests } from "./leftovers.mjs";

const CANDIDATES = [process.env.WINDLASS_CHROMIUM, "/usr/bin/chromium", "/usr/bin/google-chrome"];

/**
 * Opens a page of its own browser; `camera` is a Y4M or MJPEG file, `cameraAllowed` the person's answer when the
 * page asks for it, `args` further switches, `init` a function, or several, that run in the page before its scripts. Console errors
 * are kept in `errors`. With `sound`, the browser's microphone and loudspeaker are those of the sound server in that environment.
 * Further pages of the same browser come from `newPage`, each with an `init` of its own.
 */
export async function openPage({ camera, cameraAllowed = true, viewport, colorScheme, init, args: more = [], sound } = {}) {
  const executablePath = CANDIDATES.find((p) => p && existsSync(p));
  if (!executablePath) throw new Error("no Chromium found; set WINDLASS_CHROMIUM to its path");
  const args = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    // Before further switches, which may say how many devices there are. Pages of several such cameras would take all CPUs at 20 frames a second.
    ...(sound ? [] : ["--use-fake-device-for-media-stream=fps=10"]),
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--autoplay-policy=no-user-gesture-required",
    // Headless pages count as hidden; their timers must run as a visible page's do.
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    ...more,
  ];
  if (cameraAllowed) args.push("--use-fake-ui-for-media-stream");
  if (camera) args.push(`--use-file-for-fake-video-capture=${camera}`);
  const heard = sound && { env: { ...process.env, ...sound }, ignoreDefaultArgs: ["--mute-audio"] };
  const launched = chromium.launch({ executablePath, headless: true, args, ...heard });
  const ended = endAfterTests(async () => (await launched).close());
  const browser = await launched;
  const newPage = async ({ init } = {}) => {
    const context = await browser.newContext({
      viewport: viewport ?? { width: 1280, height: 800 },
      colorScheme,
      // Development certificates are their servers' own.
      ignoreHTTPSErrors: true,
    });
    const page = await context.newPage();
    // A limit for what hangs: the CPUs may have other things to do.
    page.setDefaultTimeout(90_000);
    for (const script of [init].flat()) if (script) await page.addInitScript(script);
    const errors = [];
    page.on("console", (m) => {
      if (m.type() === "error") errors.push(m.text());
    });
    page.on("pageerror", (e) => errors.push(`uncaught: ${e.stack || e.message}`));
    return { page, errors, newPage, closePage: () => context.close(), close: () => browser.close().finally(ended) };
  };
  return newPage({ init });
}
