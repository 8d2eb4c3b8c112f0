import { run } from "./cold-timer.mjs";

onmessage = ({ data: { module, ivf, warm, what } }) => {
  run(module, ivf, warm, what).then(postMessage, (error) => postMessage({ error: error.message }));
};
