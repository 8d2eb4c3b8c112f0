// Ends what is still open when the tests of a file are over. A hook that fails half-way leaves a browser or a server behind that nobody
// else knows of, and the file would wait for it without end.
import { after } from "node:test";

const left = new Set();

/** Has `end` called when the tests are over, unless the function that this returns is called before. */
export function endAfterTests(end) {
  left.add(end);
  return () => left.delete(end);
}

// Only where tests run: the programs of `measure` use the same support.
if (process.env.NODE_TEST_CONTEXT) after(() => Promise.allSettled([...left].map((end) => end())));
