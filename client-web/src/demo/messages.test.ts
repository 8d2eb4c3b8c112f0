import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { chooseLanguage, fill, LANGUAGES, MESSAGES, words } from "./language.js";

const SOURCES = new URL("../../src/", import.meta.url);
/** The pages, each with its HTML. */
const PAGES = { demo: "index.html", show: "show.html", check: "check.html" };
/** Not the page's words: a picture of text, and a report for who helps. */
const OTHERS = ["show/text.ts", "check/report.ts"];
const places = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([place]) => place).sort();

for (const language of LANGUAGES) {
  test(`${language} has the texts of English, with the same places`, () => {
    assert.deepEqual(Object.keys(MESSAGES[language]), Object.keys(MESSAGES.en));
    for (const [key, text] of Object.entries(MESSAGES[language])) {
      assert.notEqual(text.trim(), "", key);
      assert.deepEqual(places(text), places(MESSAGES.en[key as keyof typeof MESSAGES.en]), key);
    }
  });
}

/** The sources of the pages, without their comments. */
async function sources(): Promise<[string, string][]> {
  const folders = Object.keys(PAGES).map(async (folder) =>
    (await readdir(new URL(folder, SOURCES))).map((file) => `${folder}/${file}`),
  );
  const files = (await Promise.all(folders)).flat();
  const scripts = files.filter((file) => /(?<!\.test)\.ts$/.test(file) && !OTHERS.includes(file));
  return Promise.all(
    scripts.map(async (file): Promise<[string, string]> => {
      const text = await readFile(new URL(file, SOURCES), "utf8");
      return [file, text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "")];
    }),
  );
}

/** The HTML of the pages. */
const pages = () =>
  Promise.all(Object.entries(PAGES).map(([folder, file]) => readFile(new URL(`${folder}/${file}`, SOURCES), "utf8")));

/** The strings of a script. */
const strings = (text: string) =>
  [...text.matchAll(/"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g)].map(([, a, b]) => a ?? b ?? "");

/** Whether people would read it: a capital and small letters, or words with a space between, outside of code's own. */
const reads = (text: string) => {
  const plain = text.replace(/\$\{[^}]*\}/g, "");
  if (/^(Arrow|Page)(Up|Down)$|^(Home|End|Escape|INPUT|WebGPU)$/.test(plain)) return false;
  return /(^|[^\p{L}])\p{Lu}\p{Ll}+/u.test(plain) || /\p{Ll}{2,} \p{Ll}{2,} \p{Ll}{2,}/u.test(plain);
};

/** What is the same in all languages: commands of the server, names of things, and the paths of icons. */
const SAME = [/^windlass(-lab)? /, /^\$\{network\}, WebGPU/, /^M\d[\d\s.,a-zA-Z-]*$/];

test("no text of the pages is outside of the files of texts", async () => {
  const found = (await sources()).flatMap(([file, text]) =>
    strings(text)
      .filter((string) => reads(string) && !SAME.some((same) => same.test(string)))
      .map((string) => `${file}: ${string}`),
  );
  assert.deepEqual(found, []);
  for (const html of await pages()) {
    const words = html
      .replace(/<[^>]*>/g, "")
      .trim()
      .split(/\s+/);
    assert.deepEqual(
      words.filter((word) => !/^\{[a-z.]+\}$/.test(word)),
      [],
    );
  }
});

test("every text is used", async () => {
  const all = (await sources()).map(([, text]) => text).join("");
  const html = (await pages()).join("");
  const keys = Object.keys(MESSAGES.en);
  /** Keys are also made of parts, such as `said.own.${kind}.on`. */
  const made = [...all.matchAll(/`([a-z_.-]*\$\{[^`]*)`/g)].map(
    ([, template = ""]) => new RegExp(`^${template.replace(/[.]/g, "\\.").replace(/\$\{[^}]*\}/g, "[a-z0-9_-]+")}$`),
  );
  const unused = keys.filter(
    (key) => !all.includes(`"${key}"`) && !html.includes(`{${key}}`) && !made.some((pattern) => pattern.test(key)),
  );
  assert.deepEqual(
    unused.filter((key) => key !== "product.noscript"),
    [],
  );
});

test("the language is the first of the browser's that the page has", () => {
  assert.equal(chooseLanguage(["fr-FR", "de-AT", "en"]), "de");
  assert.equal(chooseLanguage(["EN-GB"]), "en");
  assert.equal(chooseLanguage(["fr"]), "en");
});

test("values go to their places; a text in a text too", () => {
  assert.equal(fill("{a} and {b}, {c}", { a: 1, b: "x" }), "1 and x, {c}");
  assert.equal(String(words("tile.screen", { name: words("guest") })), "Guest’s screen");
});
