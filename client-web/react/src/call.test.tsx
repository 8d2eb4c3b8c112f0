import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { renderToString } from "react-dom/server";
import { Call } from "./call.js";
import { PreJoin } from "./pre-join.js";

test("a call is rendered on a server, where it joins nothing", () => {
  const html = renderToString(<Call url="https://calls.example/" room="standup" name="Ada" />);
  assert.match(html, /aria-label="Call standup"/);
  assert.match(html, /Joining …/);
  assert.match(html, />Leave</);
});

test("so is the page before it", () => {
  assert.match(renderToString(<PreJoin onJoin={() => undefined} name="Ada" />), /Your name<input[^>]* value="Ada"/);
});

test("the README's code is the example's", () => {
  const read = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), "utf8");
  const [, code] = read("README.md").match(/```tsx\n(.*?)```/s) ?? [];
  assert.equal(code, read("../examples/react/app.tsx"));
});
