import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { probeDevice } from "./check/devices.js";
import { only, openSignalling, probePath, probeSocket, type Signalling } from "./check/paths.js";
import { probeSpeed } from "./check/speed.js";
import { CHECK_TITLES, ok, TEXTS } from "./check/texts.js";
import { type CheckResult, check, type Probes, results } from "./check.js";
import { deviceError } from "./devices/errors.js";
import { unreachable, WindlassError } from "./errors.js";
import { FakeServer, startServers, stopServers } from "./testing/server.js";
import { WorkerScript } from "./worker-script.js";

beforeEach(startServers);
afterEach(stopServers);

const ANSWER = [
  "v=0",
  "a=candidate:1 1 udp 1 192.0.2.1 7881 typ host",
  "a=candidate:2 1 UDP 1 2001:db8::1 7881 typ host",
  "a=candidate:3 1 tcp 1 192.0.2.1 443 typ host tcptype passive",
  "a=end-of-candidates",
].join("\r\n");

/** A signalling whose server offers all of {@link ANSWER}. */
function signalling(
  log: string[] = [],
  ice: Signalling["ice"] = { servers: [] },
  answer = ANSWER,
): () => Promise<Signalling> {
  return () => Promise.resolve({ ice, answer: () => Promise.resolve(answer), close: () => void log.push("left") });
}

/** A peer connection that ends up as `state`. */
function connection(state: RTCPeerConnectionState, log: string[] = []) {
  return (config: RTCConfiguration): RTCPeerConnection => {
    log.push(`policy ${config.iceTransportPolicy}, ${config.iceServers?.length} servers`);
    const pc = {
      connectionState: "new",
      localDescription: { sdp: "offer" },
      onconnectionstatechange: null as (() => void) | null,
      createDataChannel: () => undefined,
      setLocalDescription: () => Promise.resolve(),
      setRemoteDescription: ({ sdp }: { sdp: string }) => {
        log.push(...sdp.split("\r\n").filter((line) => line.startsWith("a=candidate")));
        queueMicrotask(() => {
          pc.connectionState = state;
          pc.onconnectionstatechange?.();
        });
        return Promise.resolve();
      },
      getStats: () =>
        Promise.resolve(
          new Map<string, unknown>([
            [
              "p",
              {
                id: "p",
                type: "candidate-pair",
                nominated: true,
                state: "succeeded",
                remoteCandidateId: "r",
                currentRoundTripTime: 0.02,
              },
            ],
            ["r", { id: "r", type: "remote-candidate", address: "192.0.2.1", port: 7881 }],
          ]),
        ),
      close: () => void log.push("closed"),
    };
    return pc as unknown as RTCPeerConnection;
  };
}

test("a description keeps the candidates of one protocol", () => {
  assert.deepEqual(only(ANSWER, "udp").addresses, ["192.0.2.1:7881", "[2001:db8::1]:7881"]);
  const tcp = only(ANSWER, "tcp");
  assert.deepEqual(tcp.addresses, ["192.0.2.1:443"]);
  assert.doesNotMatch(tcp.sdp, /udp/i);
  assert.match(tcp.sdp, /end-of-candidates/);
});

test("a way that connects tells where to and how fast, and is closed", async () => {
  const log: string[] = [];
  assert.deepEqual(
    await probePath("udp", signalling(log), connection("connected", log)),
    ok("This browser reaches 192.0.2.1:7881 in 20 ms."),
  );
  assert.deepEqual(log.slice(-2), ["closed", "left"]);
  assert.ok(log.every((line) => !line.includes("tcp")));
});

test("a way that fails names the addresses that must be let through", async () => {
  const udp = await probePath("udp", signalling(), connection("failed"));
  assert.equal(udp.outcome, "failed");
  assert.match(udp.advice, /allow UDP to 192\.0\.2\.1:7881 or \[2001:db8::1\]:7881/);
  const tcp = await probePath("tcp", signalling(), connection("failed"));
  assert.match(tcp.advice, /allow TCP to 192\.0\.2\.1:443/);
});

test("a relay is tried alone where the server names one, and skipped where it names none", async () => {
  const log: string[] = [];
  const servers = [{ urls: ["stun:stun.example"] }, { urls: ["turn:relay.example"], username: "u", credential: "c" }];
  const found = await probePath("turn", signalling([], { servers }), connection("connected", log));
  assert.equal(found.outcome, "ok");
  assert.equal(log[0], "policy relay, 1 servers");
  const none = await probePath("turn", signalling([], { servers: servers.slice(0, 1) }), connection("connected"));
  assert.deepEqual(none, TEXTS.notOffered("turn"));
});

test("what the server does not offer is skipped", async () => {
  const udpOnly = only(ANSWER, "udp").sdp;
  const found = await probePath("tcp", signalling([], { servers: [] }, udpOnly), connection("connected"));
  assert.deepEqual([found.outcome, found.detail], ["skipped", "The server offers no media over TCP."]);
});

test("a server that answers lets a guest into a private room, and out again", async () => {
  const server = new FakeServer("one");
  const { finding, closed } = await probeSocket(server.url, () =>
    openSignalling(server.url, { room: "r", token: "t" }),
  );
  assert.deepEqual([finding.outcome, closed], ["ok", null]);
  const { room, loopback, token } = server.last("join") ?? {};
  assert.deepEqual([room, loopback, token], ["r", true, "t"]);
  assert.deepEqual(server.types, ["join", "leave"]);
});

test("a room on another server of a cluster is found there", async () => {
  const [one, two] = [new FakeServer("one"), new FakeServer("two")];
  one.answer = { type: "moved", url: two.url };
  (await openSignalling(one.url, { room: "r", token: undefined })).close();
  assert.deepEqual(two.types, ["join", "leave"]);
  await assert.rejects(openSignalling(one.url, { room: "r", token: "secret" }), { code: "moved" });
});

test("a server that answers without letting in is no failure of the connection", async () => {
  const server = new FakeServer("one");
  server.answer = {
    type: "error",
    code: "unauthorized",
    message: "A token is needed.",
    hint: "Open the link.",
    fatal: true,
  };
  const { finding, closed } = await probeSocket(server.url, () =>
    openSignalling(server.url, { room: "r", token: undefined }),
  );
  assert.equal(finding.outcome, "ok");
  assert.deepEqual(closed, { outcome: "skipped", detail: "A token is needed.", advice: "Open the link." });
});

const track = (more: object = {}) => ({
  label: "Cam",
  muted: false,
  readyState: "live",
  stopped: false,
  getSettings: () => ({ width: 1280, height: 720 }),
  stop() {
    this.stopped = true;
  },
  ...more,
});

const machine = (open: () => Promise<unknown>, kinds: string[] = ["videoinput", "audioinput"]) =>
  ({
    enumerateDevices: () => Promise.resolve(kinds.map((kind) => ({ kind }))),
    getUserMedia: async () => ({ getTracks: () => [] as unknown[], ...((await open()) as object) }),
  }) as unknown as MediaDevices;

test("a device is opened, reported by its label, and closed", async () => {
  const camera = track();
  const open = () => Promise.resolve({ getTracks: () => [camera] });
  assert.deepEqual(await probeDevice("camera", machine(open)), ok("Cam, 1280×720."));
  assert.ok(camera.stopped);
});

test("a device that is missing, denied, silent or out of reach each gets advice of its own", async () => {
  const refuse = (name: string) => () => Promise.reject(new DOMException("Permission denied", name));
  const advice = async (probe: Promise<{ outcome: string; advice: string }>) => {
    const { outcome, advice } = await probe;
    assert.equal(outcome, "failed");
    return advice;
  };
  assert.match(
    await advice(probeDevice("camera", machine(refuse("x"), ["audioinput"]))),
    /Connect one.*can join without/,
  );
  assert.match(await advice(probeDevice("microphone", machine(refuse("NotFoundError")))), /hear nothing of you/);
  const denied = deviceError(new DOMException("Permission denied", "NotAllowedError"), ["camera"]);
  assert.equal(await advice(probeDevice("camera", machine(refuse("NotAllowedError")))), denied.hint);
  const covered = () => Promise.resolve({ getTracks: () => [track({ muted: true })] });
  assert.match(await advice(probeDevice("camera", machine(covered))), /switch or a cover/);
  assert.match(await advice(probeDevice("camera", undefined)), /https/);
});

const files = { worker: new WorkerScript(null, () => "blob:w"), decoder: { urls: ["w.wasm"], version: "" } };

/** The speed that a worker tells. */
function measured(pixelsPerSecond: number, canRebuild = true) {
  const start = () => {
    const worker = {
      onmessage: null as ((event: unknown) => void) | null,
      postMessage: () => queueMicrotask(() => worker.onmessage?.({ data: { type: "speed", pixelsPerSecond } })),
      terminate: () => undefined,
    };
    return worker as unknown as Worker;
  };
  return probeSpeed(files, canRebuild, () => Promise.resolve({} as WebAssembly.Module), start);
}

test("the speed is enough from 30 pictures a second on", async () => {
  assert.deepEqual(await measured(100 * 640 * 360), ok("100 pictures a second of 640×360."));
  assert.equal((await measured(29 * 640 * 360)).outcome, "failed");
  assert.deepEqual(await measured(0), TEXTS.noDecoder());
  assert.deepEqual(await measured(1, false), TEXTS.cannotRebuild());
});

test("a decoder that cannot be loaded is reported", async () => {
  assert.deepEqual(await probeSpeed(files, true, () => Promise.reject(new Error("404"))), TEXTS.noDecoder());
});

/** Probes that all succeed, except those of `more`. */
const probes = (more: Partial<Probes> = {}): Probes => {
  const fine = () => Promise.resolve(ok("fine"));
  return { open: signalling(), path: fine, device: fine, decode: fine, encode: fine, speed: fine, ...more };
};

async function all(server: string, devices: boolean, of: Probes): Promise<CheckResult[]> {
  const found: CheckResult[] = [];
  for await (const result of results(server, devices, of)) found.push(result);
  return found;
}

test("every part is reported once, in order, with its title", async () => {
  const found = await all("https://calls.example/", true, probes());
  assert.deepEqual(
    found.map(({ name }) => name),
    Object.keys(CHECK_TITLES),
  );
  assert.ok(found.every(({ outcome, title, name }) => outcome === "ok" && title === CHECK_TITLES[name]));
});

test("a browser without WebRTC, which Node is too, is told so", async () => {
  const found: CheckResult[] = [];
  for await (const result of check(new FakeServer("one").url, { devices: false })) found.push(result);
  const said = found.filter(({ outcome, detail }) => outcome === "failed" && detail === TEXTS.noWebRtc().detail);
  assert.deepEqual(
    said.map(({ name }) => name),
    ["udp", "tcp", "turn", "decode", "encode", "speed"],
  );
});

test("without a server, media is not tried, and all else is", async () => {
  const path = () => Promise.reject(new Error("tried"));
  const found = await all("https://calls.example/", true, probes({ open: () => Promise.reject(unreachable()), path }));
  const outcomes = found.map(({ outcome }) => outcome);
  assert.deepEqual(outcomes, ["failed", "skipped", "skipped", "skipped", "ok", "ok", "ok", "ok", "ok"]);
  assert.match(found[0]?.detail ?? "", /wss:\/\/calls\.example\/ws does not answer/);
});

test("nothing throws, whatever a probe or the page does", async () => {
  const broken = (error: unknown) => () => Promise.reject(error);
  const [first] = await all("ftp://nowhere", true, probes());
  assert.equal(first?.outcome, "failed");
  const found = await probePath("udp", broken(new TypeError("no constructor")));
  assert.match(found.detail, /no constructor/);
  const refused = await probePath("udp", broken(new WindlassError("room_full", "It is full.", "Wait.")));
  assert.deepEqual([refused.detail, refused.advice], ["It is full.", "Wait."]);
});

test("devices are left out where the page says so", async () => {
  const device = () => Promise.reject(new Error("opened"));
  const found = await all("https://calls.example/", false, probes({ device }));
  assert.deepEqual(
    found.filter(({ outcome }) => outcome === "skipped").map(({ name }) => name),
    ["camera", "microphone"],
  );
});
