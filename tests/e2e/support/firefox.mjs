// A real Firefox, driven over WebDriver BiDi.
import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import puppeteer from "puppeteer-core";
import { endAfterTests } from "./leftovers.mjs";

const CANDIDATES = [process.env.WINDLASS_FIREFOX, "/usr/bin/firefox-esr", "/usr/bin/firefox"];

/** Where it is, if it is installed. */
const firefoxPath = CANDIDATES.find((p) => p && existsSync(p));

/** An address of this machine that is not its loopback's, if it has one: Firefox's media goes to no other. */
export const ownAddress = Object.values(networkInterfaces())
  .flat()
  .find((a) => a.family === "IPv4" && !a.internal)?.address;

/** What a test in Firefox lacks here; false: nothing. */
export const firefoxMissing = (!firefoxPath && "no Firefox found; set WINDLASS_FIREFOX to its path") || (!ownAddress && "no address but localhost");

/** Opens a browser with a drawn camera and a tone; `newPage` opens pages, each with an `init` that runs before its scripts. */
export async function openFirefox() {
  const launched = puppeteer.launch({
    browser: "firefox",
    executablePath: firefoxPath,
    headless: true,
    extraPrefsFirefox: {
      "media.navigator.streams.fake": true,
      "media.navigator.permission.disabled": true,
      "media.autoplay.default": 0,
    },
  });
  const ended = endAfterTests(async () => (await launched).close());
  const browser = await launched;
  return {
    version: () => browser.version(),
    async newPage({ init } = {}) {
      const page = await browser.newPage();
      await page.setViewport({ width: 1280, height: 800 });
      const errors = [];
      page.on("console", (m) => {
        if (m.type() === "error") errors.push(m.text());
      });
      page.on("pageerror", (e) => errors.push(`uncaught: ${e.stack || e.message}`));
      if (init) await page.evaluateOnNewDocument(init);
      return { page, errors };
    },
    close: () => browser.close().finally(ended),
  };
}

/**
 * Frames that each `<windlass-video>` of a page has shown since this was first asked, plain and enhanced. Firefox counts none in
 * `getVideoPlaybackQuality()` where a stream is played.
 */
export const framesShown = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("windlass-video")].map((element) =>
      ["plain", "enhanced"].map((part) => {
        const video = element.shadowRoot.querySelector(`video.${part}`);
        if (video.framesSeen === undefined) {
          video.framesSeen = 0;
          const seen = () => {
            video.framesSeen++;
            video.requestVideoFrameCallback(seen);
          };
          video.requestVideoFrameCallback(seen);
        }
        return video.framesSeen;
      }),
    ),
  );
