// The real server as a process, on free ports.
import { spawn } from "node:child_process";
import path from "node:path";
import { once } from "node:events";
import { endAfterTests } from "./leftovers.mjs";
import { freePort } from "./ports.mjs";
import { UdpProxy } from "./udp_proxy.mjs";

/** The laboratory's program: beside the server's, unless `WINDLASS_LAB` names it. */
export const labBinary = () => {
  const { WINDLASS_LAB, WINDLASS_BIN } = process.env;
  return WINDLASS_LAB ?? path.join(path.dirname(WINDLASS_BIN), "windlass-lab");
};

/**
 * Starts `windlass serve`; with `path` its media goes through an impaired path, with `link` through `windlass-lab link` of these options. `host` is the address of its page,
 * `secure` whether `args` have it speak HTTPS, `udpHost` the address of its media port, `ports` those of a server that was there before, `advertiseTcp` an address at which that port is told for TCP,
 * `env` variables of its environment.
 */
export async function startServer({ args = [], ports: given, path: impaired, link, host, secure = false, udpHost = "127.0.0.1", advertiseTcp, env = {} } = {}) {
  const bin = process.env.WINDLASS_BIN;
  if (!bin) throw new Error("WINDLASS_BIN must name the windlass binary; run `cargo xtask test e2e`");
  const ports = given ?? { http: await freePort(), udp: await freePort() };
  const proxy = impaired ? await UdpProxy.start(ports.udp, impaired) : undefined;
  const linkPort = link ? await freePort() : undefined;
  const emulator = link
    ? spawn(labBinary(), ["link", "--listen", `127.0.0.1:${linkPort}`, "--to", `127.0.0.1:${ports.udp}`, ...link], { stdio: "inherit" })
    : undefined;
  const front = proxy?.port ?? linkPort;
  const advertise = front ? ["--advertise", `127.0.0.1:${front}`] : [];
  if (advertiseTcp) advertise.push("--advertise", `tcp:${advertiseTcp}`);
  const child = spawn(
    bin,
    ["serve", "--http", `${host ?? "127.0.0.1"}:${ports.http}`, "--udp", `${udpHost}:${ports.udp}`, "--forwarding-threads", "2", "--admin-local", ...advertise, ...(typeof args === "function" ? args(ports) : args)],
    { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, RUST_BACKTRACE: "1", ...env } },
  );
  const ended = endAfterTests(() => [child, emulator].forEach((program) => program?.kill("SIGKILL")));
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (d) => (log += d));
  const url = `${secure ? "https" : "http"}://${host ?? "localhost"}:${ports.http}`;
  const deadline = Date.now() + 20_000;
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`the server ended at once:\n${log}`);
    const ready = await fetch(`${url}/healthz`).then((r) => r.ok, () => false);
    if (ready) break;
    if (Date.now() > deadline) throw new Error(`the server did not become ready:\n${log}`);
    await new Promise((r) => setTimeout(r, 100));
  }
  return {
    url,
    ports,
    proxy,
    pid: child.pid,
    log: () => log,
    alive: () => child.exitCode === null && child.signalCode === null,
    /** Prometheus samples by name, labels included in the name. */
    async metrics() {
      const text = await (await fetch(`${url}/metrics`)).text();
      const samples = text.split("\n").filter((l) => l && !l.startsWith("#"));
      return Object.fromEntries(samples.map((l) => [l.slice(0, l.lastIndexOf(" ")), Number(l.slice(l.lastIndexOf(" ") + 1))]));
    },
    async setEnhancer(enabled) {
      const body = JSON.stringify({ enabled });
      const r = await fetch(`${url}/admin/enhancer`, { method: "POST", headers: { "content-type": "application/json" }, body });
      if (!r.ok) throw new Error(`switching the enhancer: ${r.status} ${await r.text()}`);
    },
    async stop() {
      proxy?.close();
      emulator?.kill("SIGINT");
      // Also where it was ended as a leftover: its exit would be waited for in vain.
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      // Not SIGTERM: that lets rooms end first.
      child.kill("SIGINT");
      const hard = setTimeout(() => child.kill("SIGKILL"), 10_000);
      const [code] = await once(child, "exit");
      clearTimeout(hard);
      ended();
      return code;
    },
  };
}
