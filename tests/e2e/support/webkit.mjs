// A real WebKit, that of WebKitGTK, driven over WebDriver on a screen of its own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { endAfterTests } from "./leftovers.mjs";
import { freePort } from "./ports.mjs";

const [DRIVER, SCREEN] = ["/usr/bin/WebKitWebDriver", "/usr/bin/Xvfb"];
/** A limit for scripts, ms: the CPUs may have other things to do. Node gives an answer up after 300 s. */
const SCRIPT_MS = 240_000;

/** What a test in WebKit lacks here; false: nothing. */
export const webkitMissing = [DRIVER, SCREEN].some((file) => !existsSync(file)) && "no WebKitGTK (apt-get install webkit2gtk-driver xvfb)";

/** The first line that a program writes. */
async function firstLine({ stdout }) {
  let text = "";
  for await (const part of stdout) {
    text += part;
    if (text.includes("\n")) return text.trim();
  }
  throw new Error("the screen for WebKit did not begin");
}

/** Opens a browser with one page. */
export async function openWebkit() {
  const screen = spawn(SCREEN, ["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp"], { stdio: ["ignore", "pipe", "ignore"] });
  const programs = [screen];
  const end = () => programs.forEach((program) => program.kill("SIGKILL"));
  const ended = endAfterTests(end);
  const port = await freePort();
  const env = { ...process.env, DISPLAY: `:${await firstLine(screen)}` };
  programs.push(spawn(DRIVER, [`--port=${port}`], { stdio: "ignore", env }));
  const command = async (method, path, body) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, body: body && JSON.stringify(body) });
    const { value } = await answer.json();
    if (!answer.ok) throw new Error(`WebKit, ${method} ${path}: ${value.error}: ${value.message}`);
    return value;
  };
  for (let left = 100; !(await command("GET", "/status").catch(() => null))?.ready; left--) {
    if (left === 0) throw new Error("WebKit's driver does not answer");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const { sessionId, capabilities } = await command("POST", "/session", { capabilities: {} });
  const session = `/session/${sessionId}`;
  await command("POST", `${session}/timeouts`, { script: SCRIPT_MS });
  return {
    version: capabilities.browserVersion,
    goto: (url) => command("POST", `${session}/url`, { url }),
    /** Runs a function in the page and gives what it returns, or what its promise does. */
    async evaluate(what, argument = null) {
      const script = `const [argument, done] = arguments;
        Promise.resolve(argument).then(${what}).then((value) => done({ value }), (error) => done({ error: String(error) }));`;
      const { value, error } = await command("POST", `${session}/execute/async`, { script, args: [argument] });
      if (error) throw new Error(error);
      return value;
    },
    async close() {
      await command("DELETE", session).catch(() => {});
      // The screen leaves its lock behind where it is killed.
      for (const program of programs.reverse()) {
        if (program.exitCode !== null || program.signalCode !== null) continue;
        program.kill();
        await once(program, "exit");
      }
      ended();
    },
  };
}
