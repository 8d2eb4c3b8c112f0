import assert from "node:assert/strict";
import { test } from "node:test";
import { columnsFor, largeOf, type Placed, pageOf, pageSize, pagesFor, withSpeaker } from "./layout.js";

interface Tile extends Placed {
  name: string;
}
const tile = (name: string, spokeAt = 0, screen = false): Tile => ({ name, spokeAt, screen });
const names = (tiles: readonly Tile[]) => tiles.map(({ name }) => name).join("");
const twelve = [..."abcdefghijkl"].map((name) => tile(name));

test("tiles are as large as the window allows", () => {
  const wide = [1, 2, 3, 4, 5, 9].map((count) => columnsFor(count, 1200, 675));
  assert.deepEqual(wide, [1, 2, 2, 2, 3, 3]);
  const phone = [1, 2, 3, 6].map((count) => columnsFor(count, 340, 500));
  assert.deepEqual(phone, [1, 1, 1, 2]);
});

test("nine tiles fill a page, six one of a phone; beside a large one there are fewer", () => {
  assert.deepEqual([pageSize("grid", 1280), pageSize("grid", 360)], [9, 6]);
  assert.deepEqual([pageSize("speaker", 1280), pageSize("speaker", 360)], [6, 3]);
});

test("twelve tiles are two pages, which hold each once", () => {
  assert.deepEqual(
    [0, 1, 9, 10, 18, 19].map((count) => pagesFor(count, 9)),
    [1, 1, 1, 2, 2, 3],
  );
  assert.deepEqual(
    [0, 1, 2].map((page) => names(pageOf(twelve, 9, page))),
    ["abcdefghi", "jkl", ""],
  );
});

test("the grid has a large tile only where one is pinned", () => {
  const [a, b] = [tile("a"), tile("b", 5)];
  assert.equal(largeOf([a, b], "grid", null), null);
  assert.equal(largeOf([a, b], "grid", a), a);
  assert.equal(largeOf([b], "grid", a), null);
});

test("the speaker view shows who spoke last, a shared screen before that, and a pinned tile before both", () => {
  const [a, b, s] = [tile("a", 9), tile("b", 5), tile("s", 0, true)];
  assert.equal(largeOf([b, a], "speaker", null), a);
  assert.equal(largeOf([b, a, s], "speaker", null), s);
  assert.equal(largeOf([b, a, s], "speaker", b), b);
  assert.equal(largeOf([tile("x")], "speaker", null)?.name, "x");
  assert.equal(largeOf([], "speaker", null), null);
});

test("who speaks comes into the first page in the place of the quietest, and nobody else moves", () => {
  const some = twelve.map((one, at) => tile(one.name, at === 3 ? 0 : 10 + at));
  const speaker = some[10] as Tile;
  assert.equal(names(withSpeaker(some, speaker, 9)), "abckefghijdl");
  assert.equal(names(withSpeaker(some, some[2] as Tile, 9)), names(some));
});

test("a shared screen keeps its place when somebody speaks", () => {
  const tiles = [tile("s", 0, true), tile("a", 4), tile("b", 9)];
  assert.equal(names(withSpeaker(tiles, tiles[2] as Tile, 2)), "sba");
});
