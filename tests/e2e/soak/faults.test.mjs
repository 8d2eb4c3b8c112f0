// A cluster of three servers, three workers and three NATS servers, each on a machine of its own, and faults by a schedule: processes are killed or hang, machines are
// cut off, parted or slow, are ended, clocks jump. A call of a publisher and two viewers goes on all the while, beside others that come and go.
//
// WINDLASS_FAULTS_SECONDS: how long (600), WINDLASS_FAULTS_SEED: which schedule (1), WINDLASS_FAULTS_NATS: how many NATS servers (by the seed 1, 2 or 3).
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { openPage } from "../support/browser.mjs";
import { enhanced, nativeFrames, sleep, until } from "../support/call.mjs";
import { Machines, whyNoMachines } from "../support/machines.mjs";
import { callSeen, roomEvents, watchCall, watchRoom } from "../support/picture.mjs";
import { makeScene, smallFrames } from "../support/scene.mjs";
import { labBinary } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";

const SECONDS = Number(process.env.WINDLASS_FAULTS_SECONDS ?? 600);
const SEED = Number(process.env.WINDLASS_FAULTS_SEED ?? 1);
const NATS = Number(process.env.WINDLASS_FAULTS_NATS ?? ((SEED - 1) % 3) + 1);
/** Where a server is told to end, the picture goes on; without a worker, anchors come again so much later than as a rule. Both with room for a busy machine. */
const GAP_MS = 1500;
const ANCHORS_MS = 1500;
/** Who is on a server that is parted from the publisher's is on another by then. */
const APART_MS = 9_000;
/** From a fault's beginning to frames again, at most: what is silent is noticed after a while. */
const BACK_MS = 30_000;

/** Numbers from 0 to 1 by a seed (mulberry32). */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** An authority, and one certificate of it for all addresses; they were made ten days ago, so that clocks may jump. */
function certificates(folder, addresses, clock) {
  const file = (name) => path.join(folder, name);
  writeFileSync(file("past"), new BigInt64Array([-864_000n]));
  const env = { ...process.env, LD_PRELOAD: clock, CLOCK_OFFSET: file("past") };
  const openssl = (...args) => execFileSync("openssl", args, { stdio: "ignore", env });
  const names = ["DNS:windlass-sfu", "DNS:windlass-enhancer", ...addresses.map((a) => `IP:${a}`)].join(",");
  openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "20", "-subj", "/CN=cluster", "-keyout", file("ca.key"), "-out", file("ca.pem"));
  openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=node", "-keyout", file("node.key"), "-out", file("node.csr"));
  writeFileSync(file("ext"), `subjectAltName=${names}\nbasicConstraints=CA:FALSE\n`);
  openssl("x509", "-req", "-in", file("node.csr"), "-CA", file("ca.pem"), "-CAkey", file("ca.key"), "-CAcreateserial", "-days", "20", "-extfile", file("ext"), "-out", file("node.pem"));
  return ["--cluster-token", "a-cluster-of-tests", "--cluster-tls", ["ca.pem", "node.pem", "node.key"].map(file).join(",")];
}

const why = whyNoMachines();

describe(`a cluster under faults, schedule ${SEED}`, { timeout: (SECONDS + 300) * 1000, only: true, skip: skipped("a cluster under faults", why) }, () => {
  let folder;
  let machines;
  let [sfus, workers, nats] = [[], [], []];
  let tabs;

  const metrics = async (sfu) => {
    const text = await (await fetch(`http://${sfu.address}:7880/metrics`, { signal: AbortSignal.timeout(2000) })).text();
    const lines = text.split("\n").filter((l) => l && !l.startsWith("#"));
    return Object.fromEntries(lines.map((l) => [l.slice(0, l.lastIndexOf(" ")), Number(l.slice(l.lastIndexOf(" ") + 1))]));
  };
  const all = (metric) => Promise.all(sfus.map(async (s) => (await metrics(s).catch(() => ({ [metric]: -1 })))[metric]));
  const seen = (tab) => tab.page.evaluate(() => ({ phase: window.windlass.phase, names: [...window.windlass.room.participants].map((p) => p.name).sort(), videos: window.windlass.remoteVideos().length }));
  const others = ["Publisher", "Ben", "Cora"];

  /** Milliseconds until everybody sees everybody once, and frames come at both viewers. */
  const whole = async (begun, what) => {
    const left = () => Math.max(1000, BACK_MS - (Date.now() - begun));
    for (const [at, tab] of tabs.entries()) {
      const wanted = others.filter((_, n) => n !== at).sort();
      const is = async () => {
        const now = await seen(tab);
        assert.ok(["call", "reconnecting"].includes(now.phase), `${others[at]} has lost its call: ${now.phase}`);
        return JSON.stringify(now.names) === JSON.stringify(wanted) && now.videos === (at === 0 ? 0 : 1);
      };
      await until(is, `${others[at]} sees ${wanted} after: ${what}`, left());
    }
    for (const tab of tabs.slice(1)) {
      const before = await nativeFrames(tab.page);
      await until(async () => (await nativeFrames(tab.page)) > before + 5, `frames come after: ${what}`, left());
    }
    return Date.now() - begun;
  };

  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "windlass-faults-"));
    machines = new Machines();
    const bin = process.env.WINDLASS_BIN;
    nats = Array.from({ length: NATS }, (_, n) => machines.add(`nats${n}`));
    sfus = [0, 1, 2].map((n) => machines.add(`sfu${n}`));
    workers = [0, 1, 2].map((n) => machines.add(`worker${n}`));
    const routes = nats.map((m) => `nats://${m.address}:6222`).join(",");
    for (const m of nats) {
      const cluster = NATS > 1 ? ["--cluster_name", "calls", "--cluster", `nats://${m.address}:6222`, "--routes", routes] : [];
      m.start("nats-server", ["-a", m.address, "-p", "4222", "-js", "-sd", path.join(folder, m.name), "-n", m.name, ...cluster]);
    }
    const clock = path.join(folder, "clock.so");
    execFileSync("cc", ["-shared", "-fPIC", "-O1", "-o", clock, new URL("../support/clock.c", import.meta.url).pathname]);
    const secret = certificates(folder, [...sfus, ...workers].map((m) => m.address), clock);
    const shared = ["--nats", nats.map((m) => `nats://${m.address}:4222`).join(","), ...secret];
    for (const m of workers) m.start(bin, ["enhance", "--listen", `${m.address}:7890`, ...shared, "--network", "xs"]);
    for (const m of sfus) {
      const offset = path.join(folder, `${m.name}.clock`);
      // In place: the process has the file mapped.
      m.jump = (seconds) => writeFileSync(offset, new BigInt64Array([BigInt(seconds)]), { flag: existsSync(offset) ? "r+" : "w" });
      m.jump(0);
      const own = ["--http", `${m.address}:7880`, "--udp", `${m.address}:7881`, "--node-url", `ws://${m.address}:7880/ws`, "--node-listen", `${m.address}:7883`, "--node-max-participants", "1", "--no-congestion-control", "--open-rooms"];
      m.start(bin, ["serve", ...own, ...shared], { LD_PRELOAD: clock, CLOCK_OFFSET: offset });
    }
    await until(async () => (await all("windlass_cluster_nodes")).every((n) => n === 3), "each server knows three", 30_000);
    const scene = makeScene(smallFrames);
    const origins = sfus.map((m) => `http://${m.address}:7880`).join(",");
    const args = [`--unsafely-treat-insecure-origin-as-secure=${origins}`];
    tabs = [];
    for (const name of others) {
      const tab = await openPage({ args, ...(name === "Publisher" ? { camera: scene.file } : {}) });
      const how = name === "Publisher" ? "layers=qh" : "source=none&view=enhanced";
      await tab.page.goto(`http://${sfus[0].address}:7880/?room=call&name=${name}&auto=1&adaptive=0&${how}`);
      await until(() => tab.page.evaluate(() => window.windlass?.phase === "call"), `${name} joins`, 20_000);
      tabs.push(tab);
    }
    await whole(Date.now(), "the beginning");
    for (const tab of tabs.slice(1)) await enhanced(tab.page);
    for (const tab of tabs) await watchRoom(tab.page);
    for (const tab of tabs.slice(1)) await watchCall(tab.page);
  });

  /** A call whose participants come and go, as long as `over` is not so: it begins anew where its servers fell. How often it began. */
  const traffic = async (over) => {
    for (let begun = 1; ; begun++) {
      const { address } = sfus[begun % sfus.length];
      const how = ["--publishers", "1", "--subscribers", "2", "--stay", "15", "--seconds", String(SECONDS + 120), "--no-anchors"];
      const child = spawn("nice", [labBinary(), "loadtest", "--server", `http://${address}:7880`, ...how], { stdio: "ignore" });
      const exit = new Promise((resolve) => child.on("exit", resolve));
      const ended = exit.then(() => true);
      while (!over() && !(await Promise.race([ended, sleep(200)])));
      child.kill("SIGKILL");
      await exit;
      if (over()) return begun;
      await sleep(1000);
    }
  };

  after(async () => {
    for (const tab of tabs ?? []) await tab.close();
    if (process.env.WINDLASS_FAULTS_LOGS) {
      for (const m of [...sfus, ...workers, ...nats]) writeFileSync(path.join(process.env.WINDLASS_FAULTS_LOGS, `${m.name}.log`), m.log);
    }
    machines?.close();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  test("a server is killed: its participant goes to another one, and all see each other again", { only: true }, async () => {
    const begun = Date.now();
    const server = sfus.at(-1);
    server.signal("SIGKILL");
    const ms = await whole(begun, `kill ${server.name}`);
    console.log(`faults: kill ${server.name}, alone: whole again ${ms} ms after`);
    server.again();
    await until(async () => (await all("windlass_cluster_nodes")).every((n) => n === 3), "each server knows three", 30_000);
    await whole(Date.now(), `${server.name} is back`);
  });

  test(`${SECONDS} seconds of faults`, async () => {
    const next = random(SEED);
    const one = (list) => list[Math.floor(next() * list.length)];
    const pair = (list) => {
      const first = one(list);
      return [first, one(list.filter((m) => m !== first))];
    };
    const lasts = { short: 3_000, long: 6_000, longer: 12_000 };
    const faults = {
      kill: (m) => [() => m.signal("SIGKILL"), lasts.long, () => m.again()],
      hang: (m) => [() => m.signal("SIGSTOP"), lasts.short, () => m.signal("SIGCONT")],
      cut: (m) => [() => m.cut(true), lasts.long, () => m.cut(false)],
      slow: (m) => [() => m.slow(true), lasts.long, () => m.slow(false)],
      end: (m) => [() => end(m), 0, () => m.again()],
    };
    const end = async (m) => {
      m.signal("SIGTERM");
      await until(() => m.ended, `${m.name} has ended`, 40_000);
    };
    const events = async () => (await Promise.all(tabs.map(({ page }) => roomEvents(page)))).map((told) => told.reconnecting);
    const calls = async () => {
      const seen = await Promise.all(tabs.slice(1).map(({ page }) => callSeen(page)));
      return { anchors: Math.max(...seen.map((s) => s.anchors)), double: Math.max(...seen.map((s) => s.double)) };
    };
    const took = {};
    const without = {};
    // The longest time that either viewer has no new frame, since it was last asked for.
    let stall = 0;
    let over = false;
    const watching = tabs.slice(1).map(async ({ page }) => {
      let [frames, since] = [0, Date.now()];
      while (!over) {
        const now = await nativeFrames(page).catch(() => 0);
        if (now > 0 && now !== frames) [frames, since] = [now, Date.now()];
        stall = Math.max(stall, Date.now() - since);
        await sleep(50);
      }
    });
    const beside = traffic(() => over);
    await calls();
    let asARule = 0;
    for (let window = 0; window < 4; window++) {
      await sleep(6000);
      asARule = Math.max(asARule, (await calls()).anchors);
    }
    console.log(`faults: ${NATS} NATS servers; without faults, no anchor for ${asARule} ms at most`);
    const stop = Date.now() + SECONDS * 1000;
    try {
      for (let number = 1; Date.now() < stop; number++) {
        const kind = one(["kill", "hang", "cut", "slow", "part", "clock", "end"]);
        let [what, begin, lasting, mend] = [];
        if (kind === "part") {
          const [a, b] = pair(one([sfus, [...sfus, ...workers], [...sfus, ...nats]]));
          const servers = [a, b].every((m) => sfus.includes(m));
          [what, begin, lasting, mend] = [`part ${a.name} ${b.name}`, () => a.part(b, true), servers ? lasts.longer : lasts.long, () => a.part(b, false)];
        } else if (kind === "clock") {
          const m = one(sfus);
          const by = Math.round((next() - 0.5) * 86_400 * 4);
          [what, begin, lasting, mend] = [`clock ${m.name} by ${by} s`, () => m.jump(by), lasts.short, () => {}];
        } else {
          const m = one(one(kind === "end" ? [sfus, workers] : [sfus, workers, nats]));
          // A server gives its rooms to those that it knows of.
          if (kind === "end") await until(async () => (await all("windlass_cluster_nodes")).every((n) => n === 3), "each server knows three", 30_000);
          [what, begin, lasting, mend] = [`${kind} ${m.name}`, ...faults[kind](m)];
        }
        const begun = Date.now();
        const told = await events();
        await calls();
        stall = 0;
        await begin();
        await sleep(lasting);
        mend();
        const ms = await whole(begun, `fault ${number}, ${what}`);
        const { anchors, double } = await calls();
        (took[kind] ??= []).push(stall);
        console.log(`faults: ${number} ${what}: whole again ${ms} ms after it began (it lasted ${lasting} ms), no frame for ${stall} ms, no anchor for ${anchors} ms`);
        if (kind === "end") {
          assert.deepEqual(await events(), told, `nobody lost the connection when ${what}`);
          assert.ok(stall < GAP_MS, `${what}: no frame for ${stall} ms`);
        } else {
          assert.ok(double <= 500, `${what}: the publisher came twice for ${double} ms`);
        }
        if (lasting === lasts.longer) assert.ok(stall < APART_MS, `${what}: no frame for ${stall} ms`);
        if (["kill", "hang", "end"].includes(kind) && /worker/.test(what)) {
          (without[kind] ??= []).push(anchors);
          assert.ok(anchors < asARule + ANCHORS_MS, `${what}: no anchor for ${anchors} ms`);
        }
        await sleep(1000 + next() * 2000);
      }
    } finally {
      over = true;
      await Promise.all([...watching, beside]);
    }
    console.log(`faults: beside it a call whose participants come and go began ${await beside} times`);
    for (const [kind, list] of Object.entries(without)) console.log(`faults: a worker, ${kind}: ${list.length}, no anchor for ${list} ms`);
    for (const [kind, list] of Object.entries(took)) console.log(`faults: ${kind}: ${list.length}, no frame for ${Math.max(...list)} ms at most`);
  });

  test("nothing panicked, and what is counted adds up", async () => {
    for (const m of [...sfus, ...workers]) assert.ok(!/panicked/.test(m.log), `${m.name}: ${/.*panicked.*/.exec(m.log)}`);
    for (const sfu of sfus) {
      const m = await metrics(sfu);
      const of = (name) => m[`windlass_sfu_${name}_total`] ?? 0;
      assert.equal(of("joins") - of("leaves"), m.windlass_sfu_participants, `${sfu.name}: joins, leaves and participants`);
      const given = ["out", "dropped_late", "dropped_full", "dropped_unmapped", "dropped_malformed", "dropped_left"].reduce((sum, n) => sum + of(`anchors_${n}`), 0);
      assert.ok(Math.abs(of("anchors_due") - given) <= 8, `${sfu.name}: ${of("anchors_due")} anchors due, ${given} sent or dropped`);
    }
    assert.equal((await all("windlass_sfu_participants")).reduce((a, b) => a + b), 3, "nobody is there twice");
  });
});
