// The SDK as npm packs it, in an app of its own that bundlers make a page of.
import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "./call.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const client = path.join(here, "../../../client-web");
const bundlers = path.join(here, "../bundlers");
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };

/** Why bundlers cannot be run; false where they can. */
export const noBundlers = () => !existsSync(path.join(bundlers, "node_modules/vite")) && "the bundlers are not installed (`npm ci` in tests/e2e/bundlers)";

/** Packs the SDK; apps that have it installed come from `app`, and `remove` deletes all of them. */
export function packSdk() {
  const folder = mkdtempSync(path.join(tmpdir(), "windlass-packed-"));
  // Else the bundlers are sought in folders above.
  symlinkSync(path.join(bundlers, "node_modules"), path.join(folder, "node_modules"));
  const npm = (args, cwd) => execFileSync("npm", [...args, "--loglevel=error"], { cwd, encoding: "utf8" });
  npm(["run", "--silent", "types"], client);
  const [{ filename }] = JSON.parse(npm(["pack", "--json", "--ignore-scripts", "--pack-destination", folder], client));
  return { app: (name) => makeApp(folder, name, path.join(folder, filename), npm), remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function makeApp(folder, name, tarball, npm) {
  const at = path.join(folder, name.replace(/\W+/g, "-"));
  mkdirSync(at);
  cpSync(path.join(bundlers, "app"), at, { recursive: true });
  if (name.startsWith("next")) cpSync(path.join(bundlers, "next"), at, { recursive: true });
  cpSync(path.join(bundlers, "types.ts"), path.join(at, "types.ts"));
  writeFileSync(path.join(at, "package.json"), '{ "private": true, "type": "module" }\n');
  npm(["install", "--offline", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", tarball], at);
  const environment = { ...process.env, NEXT_TELEMETRY_DISABLED: "1", NO_COLOR: "1", NODE_ENV: undefined };
  const command = (program) => path.join(folder, "node_modules/.bin", program);
  return {
    at,
    /** Runs a program to its end, and gives what it said. */
    run: (program, ...args) => {
      try {
        const options = { cwd: at, encoding: "utf8", env: environment, stdio: ["ignore", "pipe", "pipe"] };
        return execFileSync(command(program), args, options);
      } catch (error) {
        throw new Error(`${program} ${args.join(" ")}: ${error.stdout}${error.stderr}`);
      }
    },
    /** Starts a program that serves the app, and waits until it says where. */
    serve: async (program, ...args) => {
      const child = spawn(command(program), args, { cwd: at, env: environment, stdio: ["ignore", "pipe", "pipe"] });
      let said = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (said += data));
      const told = async () => {
        if (child.exitCode !== null) throw new Error(said);
        return said.match(/http:\/\/localhost:\d+/)?.[0];
      };
      const url = await until(told, `${program} says where it serves`, 30_000, async () => said);
      return { url, close: () => child.kill("SIGTERM") };
    },
  };
}

/** Serves a folder on a free port. */
export async function serveFolder(folder) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const file = path.join(folder, pathname);
    if (!existsSync(file)) return response.writeHead(404).end();
    response.setHeader("content-type", TYPES[path.extname(file)] ?? "application/octet-stream");
    return response.end(readFileSync(file));
  });
  await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
  return { url: `http://localhost:${server.address().port}`, close: () => server.close() };
}
