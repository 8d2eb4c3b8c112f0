// coturn as a process, on free ports of this machine.
import { spawn, spawnSync } from "node:child_process";
import dgram from "node:dgram";
import { once } from "node:events";
import path from "node:path";
import { freePort } from "./ports.mjs";

/** An address of this machine whose port 443 no other test has. */
export const TLS_IP = "127.0.0.7";

/** A certificate of {@link TLS_IP} and its key, as files in `folder`, and the hash by which Chromium can be told to trust it. */
export function certificate(folder) {
  const [cert, key] = ["cert.pem", "key.pem"].map((name) => path.join(folder, name));
  const asked = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=turn".split(" ");
  // No authority: clients do not take one's certificate for that of a server.
  const says = [`subjectAltName=IP:${TLS_IP}`, "basicConstraints=critical,CA:FALSE"].flatMap((one) => ["-addext", one]);
  spawnSync("openssl", [...asked, ...says, "-keyout", key, "-out", cert], { stdio: "ignore" });
  const hash = "openssl x509 -in $0 -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64";
  return { cert, key, spki: spawnSync("sh", ["-c", hash, cert], { encoding: "utf8" }).stdout.trim() };
}

/**
 * Starts `turnserver`, which shares `secret` with the server; null where it is not installed. With the files of a certificate it
 * takes TLS at port 443 of {@link TLS_IP} too.
 */
export async function startTurn(secret, tls = null) {
  const port = await freePort();
  const args = ["-n", "--no-cli", "--no-dtls", "--verbose", "--log-file=stdout", "--simple-log"];
  args.push("--listening-ip=127.0.0.1", `--listening-port=${port}`, "--relay-ip=127.0.0.1", "--realm=windlass");
  if (tls === null) args.push("--no-tls");
  else args.push(`--listening-ip=${TLS_IP}`, "--tls-listening-port=443", `--cert=${tls.cert}`, `--pkey=${tls.key}`);
  args.push("--min-port=50000", "--max-port=50200", "--pidfile=/dev/null");
  // What it relays to is this machine itself: nowhere but in a test is that allowed.
  args.push("--use-auth-secret", `--static-auth-secret=${secret}`, "--allow-loopback-peers");
  const child = spawn("turnserver", args, { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (d) => (log += d));
  const failed = once(child, "error").then(([error]) => error);
  const spawned = await Promise.race([once(child, "spawn").then(() => null), failed]);
  if (spawned !== null) return null;
  const end = Date.now() + 10_000;
  while (!(await answers(port))) {
    if (child.exitCode !== null || Date.now() > end) throw new Error(`coturn does not answer:\n${log}`);
  }
  return {
    port,
    log: () => log,
    /** It is silent until it is resumed, and forgets nothing. */
    pause: () => child.kill("SIGSTOP"),
    resume: () => child.kill("SIGCONT"),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

/** Whether a STUN server answers. */
async function answers(port) {
  const socket = dgram.createSocket("udp4");
  const request = Buffer.from("000100002112a442000102030405060708090a0b", "hex");
  try {
    socket.send(request, port, "127.0.0.1");
    const answer = once(socket, "message").then(() => true);
    return await Promise.race([answer, new Promise((r) => setTimeout(() => r(false), 300))]);
  } finally {
    socket.close();
  }
}
