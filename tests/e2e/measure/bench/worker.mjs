// Decodes a stream: first as in a call, in a module just loaded, then as fast as it goes.
import { Vp9Timer } from "./vp9-timer.mjs";

async function run({ module, ivf, passes }) {
  const timer = new Vp9Timer(module, ivf);
  return { cold: await timer.cold(), steady: timer.steady(passes) };
}

onmessage = ({ data }) => {
  run(data).then(postMessage, (error) => postMessage({ error: error.message }));
};
