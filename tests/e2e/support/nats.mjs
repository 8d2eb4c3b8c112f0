// A real `nats-server` with JetStream, for clusters.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/** Starts one on a port, or a free one; `stop` ends it. */
export async function startNats(wanted = -1) {
  const folder = mkdtempSync(path.join(tmpdir(), "windlass-nats-"));
  const child = spawn("nats-server", ["-a", "127.0.0.1", "-p", String(wanted), "-js", "-sd", folder], { stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  const port = await new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", () => reject(new Error(`nats-server ended:\n${log}`)));
    child.stderr.on("data", (data) => {
      log += data;
      const listens = /client connections on .*:(\d+)/.exec(log);
      if (listens) resolve(Number(listens[1]));
    });
  });
  return {
    port,
    url: `nats://127.0.0.1:${port}`,
    stop() {
      child.removeAllListeners("exit");
      child.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
