// A call whose clients send nothing but through a TURN server, coturn, by names and passwords that end.
//
// Runs beside any file.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { enhanced, nativeFrames, publish, sleep, subscribe, until } from "../support/call.mjs";
import { selectedPair } from "../support/paths.mjs";
import { fewFrames, makeScene } from "../support/scene.mjs";
import { startServer } from "../support/server.mjs";
import { skipped } from "../support/skips.mjs";
import { certificate, startTurn, TLS_IP } from "../support/turn_server.mjs";

const SECRET = "the secret of both";

/** What `windlass doctor` finds of this relay. */
function doctor(url, secret, env = {}) {
  const alone = ["--http", "127.0.0.1:0", "--udp", "127.0.0.1:0", "--device", "off"];
  const args = ["doctor", "--json", ...alone, "--turn-url", url, "--turn-secret", secret];
  const { stdout } = spawnSync(process.env.WINDLASS_BIN, args, { encoding: "utf8", env: { ...process.env, ...env } });
  return JSON.parse(stdout).findings.find(({ check }) => check === "turn");
}

/** Runs in the page: all that goes out goes through a relay. */
function relayOnly() {
  const Plain = window.RTCPeerConnection;
  window.connections = [];
  window.RTCPeerConnection = class extends Plain {
    constructor(config) {
      super({ ...config, iceTransportPolicy: "relay" });
      window.connections.push(this);
    }
  };
}

const turn = await startTurn(SECRET);

describe("a network that lets nothing through but TURN", { only: true, skip: skipped("a network that lets nothing through but TURN", turn === null && "coturn is not installed (`cargo xtask soak` installs it)") }, () => {
  after(() => turn?.stop());

  test("`windlass doctor` tells a secret that coturn takes from one that it does not", { only: true }, () => {
    for (const transport of ["udp", "tcp"]) {
      const url = `turn:127.0.0.1:${turn.port}?transport=${transport}`;
      assert.match(doctor(url, SECRET).found, /relays, at 127\.0\.0\.1$/);
      const refused = doctor(url, "another secret");
      assert.equal(refused.level, "fault");
      assert.match(refused.found, /refused: it does not take these credentials/);
    }
  });

  test("the call goes through coturn, and comes back with a new name when that was away", { only: true }, async () => {
    const scene = makeScene(fewFrames);
    const args = ["--turn-url", `turn:127.0.0.1:${turn.port}?transport=udp`, "--turn-secret", SECRET, "--turn-ttl", "70s", "--log", "debug"];
    const server = await startServer({ args });
    const publisher = await publish(server, scene, { init: relayOnly });
    const viewer = await subscribe(server, { init: relayOnly });
    const pages = [publisher.page, viewer.page];
    try {
      await enhanced(viewer.page, 40_000);
      const from = await nativeFrames(viewer.page);
      await until(async () => (await nativeFrames(viewer.page)) > from + 30, "pictures go on", 10_000);
      const pairs = await Promise.all(pages.map(selectedPair));
      console.log("turn:", JSON.stringify({ pairs }));
      for (const { local } of pairs) assert.deepEqual([local.candidateType, local.relayProtocol], ["relay", "udp"]);

      // Its name and password end in less than a minute: before it looks for another path, it gets others.
      const names = () => viewer.page.evaluate(() => window.connections.at(-1).getConfiguration().iceServers.map((s) => s.username));
      const [before] = await names();
      await sleep(8000);
      turn.pause();
      await until(async () => (await server.metrics()).windlass_sfu_ice_restarts_total >= 2, "both clients restart ICE", 20_000);
      turn.resume();
      const again = await nativeFrames(viewer.page);
      await until(async () => (await nativeFrames(viewer.page)) > again + 60, "pictures come again", 20_000);
      assert.equal((await selectedPair(viewer.page)).local.candidateType, "relay");
      assert.match(before, /^\d+:p\d+$/);
      const [after] = await names();
      assert.ok(Number.parseInt(after, 10) > Number.parseInt(before, 10), `${before}, ${after}`);

      const passwords = await viewer.page.evaluate(() => window.connections.at(-1).getConfiguration().iceServers.map((s) => s.credential));
      const log = server.log();
      for (const secret of [SECRET, ...passwords]) assert.ok(!log.includes(secret), "a secret is in the log");
      assert.deepEqual([...publisher.errors, ...viewer.errors], []);
    } finally {
      await viewer.close();
      await publisher.close();
      await server.stop();
    }
  });

  test("a password that is not of the secret opens nothing", async () => {
    const scene = makeScene({ clip: "d13" });
    const server = await startServer({ args: ["--turn-url", `turn:127.0.0.1:${turn.port}`, "--turn-secret", "another secret"] });
    const publisher = await publish(server, scene, { init: relayOnly });
    try {
      await sleep(5000);
      assert.equal(await selectedPair(publisher.page), null);
      assert.equal((await server.metrics()).windlass_sfu_connected, 0);
    } finally {
      await publisher.close();
      await server.stop();
    }
  });
});

const TLS = "a network that lets nothing through but TLS on port 443";
const why = turn === null ? "coturn is not installed (`cargo xtask soak` installs it)" : process.getuid() !== 0 && "port 443 needs root";

describe(TLS, { skip: skipped(TLS, why) }, () => {
  let folder;
  let files;
  let overTls;
  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "turn-"));
    files = certificate(folder);
    overTls = await startTurn(SECRET, files);
  });
  after(async () => {
    await overTls?.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const url = `turns:${TLS_IP}:443?transport=tcp`;

  test("`windlass doctor` takes a certificate that it can trust, and no other", () => {
    assert.match(doctor(url, SECRET, { SSL_CERT_FILE: files.cert }).found, /relays, at 127\.0\.0\.1$/);
    const strange = doctor(url, SECRET);
    assert.equal(strange.level, "fault", JSON.stringify(strange));
    assert.match(strange.found, /certificate/);
  });

  test("the call goes through coturn by TLS, and is enhanced", async (t) => {
    const server = await startServer({ args: ["--turn-url", url, "--turn-secret", SECRET] });
    t.after(() => server.stop());
    const trust = [`--ignore-certificate-errors-spki-list=${files.spki}`];
    const publisher = await publish(server, makeScene({ clip: "d13" }), { init: relayOnly, browser: { args: trust } });
    t.after(() => publisher.close());
    const viewer = await subscribe(server, { init: relayOnly, args: trust });
    t.after(() => viewer.close());
    await enhanced(viewer.page, 40_000);
    for (const page of [publisher.page, viewer.page]) {
      const { local } = await selectedPair(page);
      assert.deepEqual([local.candidateType, local.relayProtocol], ["relay", "tls"]);
    }
    assert.deepEqual([...publisher.errors, ...viewer.errors], []);
  });
});
