// The SDK as npm packs it, with its React components or without, in an app of its own that bundlers make a page of.
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

/**
 * Packs the SDK, with `react` its React components too; apps that have them installed come from `app`, made from the files
 * of a folder, and `remove` deletes all of them.
 */
export function packSdk({ react = false } = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), "windlass-packed-"));
  // Else the bundlers are sought in folders above.
  symlinkSync(path.join(bundlers, "node_modules"), path.join(folder, "node_modules"));
  const npm = (args, cwd) => execFileSync("npm", [...args, "--loglevel=error"], { cwd, encoding: "utf8" });
  const pack = (at, ...scripts) => {
    for (const script of scripts) npm(["run", "--silent", script], at);
    const [{ filename }] = JSON.parse(npm(["pack", "--json", "--ignore-scripts", "--pack-destination", folder], at));
    return path.join(folder, filename);
  };
  const tarballs = [pack(client, "types")];
  if (react) tarballs.push(pack(path.join(client, "react"), "build", "types"));
  return {
    app: (name, source = path.join(bundlers, "app")) => makeApp(folder, name, source, tarballs, npm),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function makeApp(folder, name, source, tarballs, npm) {
  const at = path.join(folder, name.replace(/\W+/g, "-"));
  mkdirSync(at);
  cpSync(source, at, { recursive: true, filter: (file) => path.basename(file) !== "node_modules" });
  if (name.startsWith("next")) cpSync(path.join(bundlers, "next"), at, { recursive: true });
  cpSync(path.join(bundlers, "types.ts"), path.join(at, "types.ts"));
  writeFileSync(path.join(at, "package.json"), '{ "private": true, "type": "module" }\n');
  // React is that of the bundlers, which npm does not know.
  npm(["install", "--offline", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--legacy-peer-deps", ...tarballs], at);
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
