// Times the WASM decoder's calls in the workers of a page, whatever the page's own scripts tell.

/** To be run in the page before its scripts: every worker's calls go to `window.decoderTimes`, in ms. */
export function timeDecoder() {
  const channel = "decoder-times";
  window.decoderTimes = { push_frame: [], push_message: [], warm_up: [] };
  new BroadcastChannel(channel).onmessage = ({ data: { name, ms } }) => window.decoderTimes[name]?.push(ms);
  /** In the worker: instances from now on are timed. */
  const patch = (channel) => {
    const out = new BroadcastChannel(channel);
    const Instance = WebAssembly.Instance;
    WebAssembly.Instance = function (module, imports) {
      const exports = { ...new Instance(module, imports).exports };
      for (const name of ["push_frame", "push_message", "warm_up"]) {
        const call = exports[name];
        if (call === undefined) continue;
        exports[name] = (...args) => {
          const from = performance.now();
          const result = call(...args);
          out.postMessage({ name, ms: performance.now() - from });
          return result;
        };
      }
      return { exports };
    };
  };
  const Plain = window.Worker;
  window.Worker = class extends Plain {
    constructor(url, options) {
      const source = `import ${JSON.stringify(new URL(url, location.href).href)};\n(${patch})(${JSON.stringify(channel)});`;
      super(URL.createObjectURL(new Blob([source], { type: "text/javascript" })), options);
    }
  };
}

/** Takes the times collected so far: ms of each call, `push_frame` and `push_message`. */
export function takeTimes(page) {
  return page.evaluate(() => {
    const taken = window.decoderTimes;
    window.decoderTimes = { push_frame: [], push_message: [], warm_up: [] };
    return taken;
  });
}
