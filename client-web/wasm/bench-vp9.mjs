// Times the WebAssembly module's VP9 decoder in Node; `windlass-lab bench vp9 --wasm` runs it.
//   node bench-vp9.mjs MODULE.wasm FILE.ivf PASSES
// Prints one JSON object: ms by frame, `cold` for the first three seconds after loading, `steady` after warm-up.
import { readFileSync } from "node:fs";
import { Vp9Timer } from "./vp9-timer.mjs";

const [modulePath, ivfPath, passes] = process.argv.slice(2);
// On a busy machine other programs run in between: then CPU time is the lesser one. It counts V8's own threads too,
// which are busy while V8 optimises: then wall-clock time is the lesser one.
const cpuTime = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
const module = await WebAssembly.compile(readFileSync(modulePath));
const timer = new Vp9Timer(module, readFileSync(ivfPath), [() => performance.now(), cpuTime]);
const cold = await timer.cold();
console.log(JSON.stringify({ cold, steady: timer.steady(Number(passes)) }));
