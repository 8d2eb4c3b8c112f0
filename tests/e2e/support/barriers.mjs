// What keeps people out of a page: barriers that axe knows, what must be scrolled sideways, what no key reaches.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds that keeps people out, by its rules. */
export async function barriers(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, any }) => `${html.slice(0, 160)} (${any[0]?.message ?? ""})`).join("; ")}`);
}

/** What axe finds that keeps people out, in light and in dark. */
export async function barriersOfBoth(page) {
  const found = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    found.push(...(await barriers(page)).map((barrier) => `${colorScheme}: ${barrier}`));
  }
  return found;
}

/** What sticks out of a window to its right, so that it would have to be scrolled. */
export const sticksOut = (page) =>
  page.evaluate(() => {
    const wide = [...document.querySelectorAll("body *")].filter((element) => {
      const { right, width } = element.getBoundingClientRect();
      return width > 1 && right > innerWidth + 1;
    });
    return { scrolls: document.documentElement.scrollWidth > innerWidth, wide: wide.map(({ className }) => String(className)) };
  });

/** Moves the focus by the Tab key until it is on what `wanted` is true of, in the page. */
export async function tabTo(page, wanted, what) {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(wanted)) return;
  }
  throw new Error(`no Tab leads to ${what}`);
}
