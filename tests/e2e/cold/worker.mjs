import { run } from "./cold-timer.mjs";

onmessage = ({ data: { module, ivf, warm } }) => {
  run(module, ivf, warm).then(postMessage, (error) => postMessage({ error: error.message }));
};
