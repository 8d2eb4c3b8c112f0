// Checks or times the module on a stream with anchors.
import { timeCall } from "./hybrid-timer.mjs";
import { checkCase, checkModule } from "./twin-check.mjs";
import { framesOf } from "./vp9-timer.mjs";

/** The frames of H.264 that begin with a delimiter each (NAL unit 9). */
function delimited(stream) {
  const starts = [];
  for (let at = 0; at + 4 < stream.length; at++) {
    if (stream[at] === 0 && stream[at + 1] === 0 && stream[at + 2] === 1 && (stream[at + 3] & 31) === 9) starts.push(at);
  }
  return starts.map((start, i) => stream.subarray(start, starts[i + 1]));
}

/** The pictures that the browser's decoder makes of a stream, by the SDK's own use of it; `null` where it has none. */
async function pictures(codec, stream) {
  const { PictureDecoder, MAX_PENDING } = await import("./picture-decoder.mjs");
  const found = [];
  let failed = false;
  const host = {
    decoded: (_, picture) => found.push(picture),
    tooLarge: ({ width, height }) => { throw new Error(`${width}x${height} are too large`); },
    failed: (unsupported) => { failed ||= unsupported; },
  };
  const decoder = new PictureDecoder(host, 1 << 20);
  const frames = codec === "h264" ? delimited(stream) : framesOf(stream);
  for (const [n, data] of frames.entries()) {
    while (decoder.pending >= MAX_PENDING && !failed) await new Promise((resolve) => setTimeout(resolve, 1));
    decoder.decode(codec, { rtpTimestamp: n, key: n === 0, data });
  }
  for (let left = 500; found.length < frames.length && !failed && left > 0; left--) await new Promise((resolve) => setTimeout(resolve, 10));
  return failed ? null : found;
}

async function run({ module, what, stream, codec, cases, passes }) {
  const bytes = new Uint8Array(await (await fetch(stream)).arrayBuffer());
  const list = await (await fetch(cases)).json();
  if (what === "time") return timeCall(module, bytes, list[0], passes);
  checkModule(module);
  const frames = codec ? await pictures(codec, bytes) : framesOf(bytes);
  return frames && list.map((one) => checkCase(module, frames, one));
}

onmessage = ({ data }) => {
  run(data).then(postMessage, (error) => postMessage({ error: error.message }));
};
