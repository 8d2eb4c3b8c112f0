// The page of `windlass-lab compare`: answers by keys and buttons belong to the sets that were on those sides.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { serveFiles } from "../support/files.mjs";

const PAGE = path.join(import.meta.dirname, "../../../lab/src/compare/page.html");
/** A picture of one sample. */
const PICTURE = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");
const FILES = ["x", "y", "z", "v", "w"];
/** What is answered, by turns: how, and what the file says then. */
const WAYS = [
  [(page) => page.keyboard.press("ArrowLeft"), "left"],
  [(page) => page.keyboard.press("ArrowRight"), "right"],
  [(page) => page.keyboard.press(" "), "equal"],
  [(page) => page.getByRole("button", { name: "Right" }).click(), "right"],
  [(page) => page.getByRole("button", { name: "Equal" }).click(), "equal"],
];

let served;
let browser;

before(async () => {
  const pairs = FILES.map((file) => ({
    file,
    sides: ["a", "b"].map((set) => ({ set, source: `${set}-${file}.gif` })),
  }));
  const page = readFileSync(PAGE, "utf8").replace("PAIRS", JSON.stringify(pairs));
  const files = { "/page.html": Buffer.from(page), "/favicon.ico": PICTURE };
  for (const { source } of pairs.flatMap((pair) => pair.sides)) files[`/${source}`] = PICTURE;
  served = await serveFiles(files);
  browser = await openPage();
});

after(async () => {
  await browser?.close();
  served?.close();
});

test("each answer is saved with the sets that were shown on either side", async () => {
  const { page, errors } = browser;
  await page.goto(`${served.url}page.html`);
  const saved = page.waitForEvent("download");
  const seen = [];
  for (const [index, [answer, chose]] of WAYS.entries()) {
    await page.getByText(`${index + 1} of ${WAYS.length}`).waitFor();
    await page.waitForFunction(() => !document.querySelector("#pair").classList.contains("loading"));
    const [left, right] = await page.$$eval("#pair img", (all) => all.map((one) => new URL(one.src).pathname.slice(1)));
    assert.equal(left.slice(1), right.slice(1), "both sides show one file");
    seen.push({ file: left.slice(2, -4), left: left[0], right: right[0], chose });
    await answer(page);
  }
  const { answers, begun } = JSON.parse(readFileSync(await (await saved).path(), "utf8"));
  assert.deepEqual(answers.map(({ ms: _, ...answer }) => answer), seen);
  assert.deepEqual(answers.map((answer) => answer.file).sort(), [...FILES].sort(), "each pair once");
  assert.ok(answers.every(({ ms }) => ms >= 0) && Date.parse(begun) > 0);
  assert.deepEqual(errors, []);
});

test("a picture that is not there is told, and not asked about", async () => {
  const { page, closePage } = await browser.newPage();
  await page.route("**/*.gif", (route) => route.fulfill({ status: 404 }));
  await page.goto(`${served.url}page.html`);
  await page.getByText(/gif cannot be shown/).waitFor();
  await page.keyboard.press("ArrowLeft");
  assert.match(await page.locator("#progress").textContent(), /cannot be shown/);
  await closePage();
});
