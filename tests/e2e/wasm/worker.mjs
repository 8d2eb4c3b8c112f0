// Checks or times the module on a stream with anchors.
import { timeCall } from "./hybrid-timer.mjs";
import { checkCase, checkModule } from "./twin-check.mjs";

async function run({ module, what, stream, cases, passes }) {
  const ivf = new Uint8Array(await (await fetch(stream)).arrayBuffer());
  const list = await (await fetch(cases)).json();
  if (what === "time") return timeCall(module, ivf, list[0], passes);
  checkModule(module);
  return list.map((one) => checkCase(module, ivf, one));
}

onmessage = ({ data }) => {
  run(data).then(postMessage, (error) => postMessage({ error: error.message }));
};
