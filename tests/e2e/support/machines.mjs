// Machines of a cluster: network namespaces on one bridge, each with an address of its own. Needs root, and `ip` and `tc` of iproute2.
import { execFileSync, spawn } from "node:child_process";

const BRIDGE = "wlbr";
const NET = "10.77.0";

const run = (command, ...args) => execFileSync(command, args, { stdio: ["ignore", "pipe", "pipe"] }).toString();
const quietly = (command, ...args) => {
  try {
    run(command, ...args);
  } catch {
    // What is not there need not be taken away.
  }
};

/** Why there can be none; null where there can. */
export function whyNoMachines() {
  try {
    run("ip", "netns", "list");
    run("ip", "link", "add", "wlprobe", "type", "bridge");
    run("ip", "link", "del", "wlprobe");
    return null;
  } catch (error) {
    return `network namespaces cannot be made here: ${String(error.message).split("\n").at(-2) ?? error.message}`;
  }
}

/** A bridge, and machines that are added to it. */
export class Machines {
  #all = [];

  constructor() {
    this.close();
    run("ip", "link", "add", BRIDGE, "type", "bridge");
    run("ip", "addr", "add", `${NET}.254/24`, "dev", BRIDGE);
    run("ip", "link", "set", BRIDGE, "up");
  }

  add(name) {
    const machine = new Machine(name, this.#all.length + 1);
    this.#all.push(machine);
    return machine;
  }

  /** Ends all processes, and takes everything away, of former runs too. */
  close() {
    for (const machine of this.#all) machine.stop();
    for (const line of run("ip", "netns", "list").split("\n")) {
      const name = line.split(" ")[0];
      if (!name.startsWith("wl-")) continue;
      for (const pid of run("ip", "netns", "pids", name).split("\n").filter(Boolean)) quietly("kill", "-9", pid);
      quietly("ip", "netns", "del", name);
    }
    quietly("ip", "link", "del", BRIDGE);
  }
}

/** One machine, with at most one process. */
class Machine {
  #child;
  #begin;
  log = "";

  constructor(name, number) {
    Object.assign(this, { name, number, address: `${NET}.${number}`, space: `wl-${name}`, link: `wl${number}` });
    run("ip", "netns", "add", this.space);
    run("ip", "link", "add", this.link, "type", "veth", "peer", "name", "eth0", "netns", this.space);
    run("ip", "link", "set", this.link, "master", BRIDGE, "up");
    this.inside("ip", "addr", "add", `${this.address}/24`, "dev", "eth0");
    this.inside("ip", "link", "set", "eth0", "up");
    this.inside("ip", "link", "set", "lo", "up");
  }

  inside(...command) {
    return run("ip", "netns", "exec", this.space, ...command);
  }

  /** Starts its process; `again` starts the same once more. */
  start(command, args, env = {}) {
    this.#begin = () => {
      this.#child = spawn("ip", ["netns", "exec", this.space, command, ...args], { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, RUST_BACKTRACE: "1", ...env } });
      for (const stream of [this.#child.stdout, this.#child.stderr]) stream.on("data", (data) => (this.log += data));
    };
    this.#begin();
  }

  again() {
    this.#begin();
  }

  /** Whether its process has ended. */
  get ended() {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  get pid() {
    return this.#child?.pid;
  }

  signal(name) {
    if (this.#child?.exitCode === null) this.#child.kill(name);
  }

  stop() {
    this.signal("SIGKILL");
  }

  /** Nothing comes or goes any more, and nobody is told; or it does again. */
  cut(isCut) {
    run("ip", "link", "set", this.link, isCut ? "down" : "up");
  }

  /** Nothing comes from, or goes to, one other machine. */
  part(other, isParted) {
    const verb = isParted ? "add" : "del";
    this.inside("ip", "route", verb, "blackhole", `${other.address}/32`);
    other.inside("ip", "route", verb, "blackhole", `${this.address}/32`);
  }

  /** What comes and goes has to pass a narrow link. */
  slow(isSlow) {
    const shape = ["root", "tbf", "rate", "700kbit", "burst", "6k", "latency", "300ms"];
    const ends = [(...args) => run("tc", ...args), (...args) => this.inside("tc", ...args)];
    for (const [end, device] of [[ends[0], this.link], [ends[1], "eth0"]]) {
      if (isSlow) end("qdisc", "add", "dev", device, ...shape);
      else end("qdisc", "del", "dev", device, "root");
    }
  }
}
