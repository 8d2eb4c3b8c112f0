// A real server, and the README's sample beside it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

export const KEY = "k1=0123456789abcdef0123456789abcdef";
export const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

const here = new URL("..", import.meta.url);

/**
 * A port at which nobody listens, and that no other call returns while this process runs. It is below those that systems
 * give to whoever asks for any.
 */
export async function freePort() {
  const port = 20_000 + Math.floor(12_000 * Math.random());
  try {
    // A name that one process at a time can have stands for it, to the tests of all processes.
    const taken = createServer().unref();
    await once(taken.listen({ path: `\0windlass-test-port-${port}` }), "listening");
  } catch (error) {
    // Linux alone has such names.
    if (error.code === "EADDRINUSE") return freePort();
  }
  const server = createServer();
  try {
    await once(server.listen(port, "127.0.0.1"), "listening");
  } catch {
    return freePort();
  }
  await new Promise((closed) => server.close(closed));
  return port;
}

/** What a program prints, a line at a time. */
class Program {
  constructor(command, args, options) {
    this.child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"], ...options });
    this.lines = createInterface(this.child.stdout)[Symbol.asyncIterator]();
  }

  async line() {
    const { value, done } = await this.lines.next();
    if (done) throw new Error("the program has ended");
    return value;
  }

  async until(wanted) {
    for (;;) if ((await this.line()) === wanted) return;
  }

  async end() {
    this.child.kill("SIGKILL");
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "exit");
  }
}

/** Starts both; the server reports to the sample. */
export async function start() {
  const bin = process.env.WINDLASS_BIN;
  if (!bin) throw new Error("WINDLASS_BIN must name the server's program (`cargo build -p windlass`)");
  const port = await freePort();
  const hook = `http://127.0.0.1:${port}`;
  const args = ["serve", "--device=off", "--http=127.0.0.1:0", "--udp=127.0.0.1:0", `--token-key=${KEY}`];
  const server = new Program(bin, [...args, `--webhook=${hook}`, `--webhook-secret=${SECRET}`]);
  const url = (await server.line()).match(/http:\/\/[\w.:]+/)[0];
  const [, code] = readFileSync(new URL("README.md", here), "utf8").match(/```js\n(.*?)```/s);
  const env = {
    ...process.env,
    WINDLASS_URL: url,
    WINDLASS_TOKEN_KEY: KEY,
    WINDLASS_WEBHOOK_SECRET: SECRET,
    PORT: port,
  };
  const sample = new Program(process.execPath, ["--input-type=module", "--eval", code], { cwd: here, env });
  return { server, sample, url, hook };
}

/** Enters a room with a microphone and a camera, by WHIP: the answer. */
export function enter(url, room, token) {
  const body = readFileSync(new URL("../offer.sdp", here));
  const headers = { "content-type": "application/sdp", authorization: `Bearer ${token}` };
  return fetch(`${url}/whip/${room}`, { method: "POST", headers, body });
}
