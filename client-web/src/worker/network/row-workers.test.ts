import assert from "node:assert/strict";
import { test } from "node:test";
import type { FromRows, ToRows } from "../messages.js";
import { type FailureReason, type FrameNetwork, failureReason, type Plane } from "./backend.js";
import { type RowHost, type RowPort, rowWorkers } from "./row-workers.js";

const REACH = 2;
const MODULE = {} as WebAssembly.Module;

/** A worker that adds to each high sample the sum of the low rows on which it depends, or (`mute`) never answers. */
class Port implements RowPort {
  onmessage: RowPort["onmessage"] = null;
  onerror: RowPort["onerror"] = null;
  ended = false;
  mute = false;
  readonly sizes: string[] = [];
  private scale = 0;

  postMessage(sent: ToRows, options?: StructuredSerializeOptions | Transferable[]): void {
    // What was handed over is gone here.
    const transfer = Array.isArray(options) ? options : (options?.transfer ?? []);
    const message = sent.type === "part" ? structuredClone(sent, { transfer }) : sent;
    if (this.mute) return;
    if (message.type === "rows") this.scale = message.scale;
    const answer: FromRows = message.type === "rows" ? { type: "rows", reach: REACH } : this.part(message);
    setImmediate(() => this.onmessage?.call(undefined as never, { data: answer } as MessageEvent));
  }

  terminate(): void {
    this.ended = true;
  }

  fail(): void {
    this.onerror?.call(undefined as never, { message: "planted", preventDefault: () => undefined } as ErrorEvent);
  }

  private part({ bytes, width, height }: Extract<ToRows, { type: "part" }>): FromRows {
    this.sizes.push(`${width}x${height}`);
    const all = new Uint8Array(bytes);
    const low = plane(width, height, all.subarray(0, width * height));
    const high = plane(this.scale * width, this.scale * height, all.subarray(width * height));
    high.bytes.set(made(low, high, this.scale));
    return { type: "part", bytes };
  }
}

function plane(width: number, height: number, bytes: Uint8Array): Plane {
  return { bytes, width, height, stride: width };
}

/** What {@link Port} makes, without a copy of the rows that are not there. */
function made(low: Plane, high: Plane, scale: number): Uint8Array {
  const out = high.bytes.slice(0, high.width * high.height);
  for (let y = 0; y < high.height; y++) {
    const row = Math.floor(y / scale);
    let sum = 0;
    for (let r = Math.max(0, row - REACH); r <= Math.min(low.height - 1, row + REACH); r++)
      for (let x = 0; x < low.width; x++) sum += (x + 1) * (low.bytes[r * low.stride + x] ?? 0);
    for (let x = 0; x < high.width; x++) out[y * high.width + x] = (high.bytes[y * high.stride + x] ?? 0) + sum;
  }
  return out;
}

const noise = (length: number, seed: number): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => ((i + seed) * 2_654_435_761) >>> 24);

function started({ limits = {}, prepare = (_: Port) => {} } = {}) {
  const ports: Port[] = [];
  let places = 1;
  const host: RowHost = {
    module: () => MODULE,
    start: () => {
      const port = new Port();
      prepare(port);
      ports.push(port);
      return port;
    },
    place: async () => {
      if (places === 0) return null;
      places--;
      return () => void places++;
    },
  };
  const start = () => rowWorkers(host).startBuiltIn("xs", 2, { limits });
  return { network: start(), start, ports };
}

const pictures = (height = 9): [Plane, Plane] => [
  { bytes: noise(16 * height, 1), width: 8, height, stride: 16 },
  { bytes: noise(32 * 2 * height, 2), width: 16, height: 2 * height, stride: 32 },
];

async function reasonOf(promise: Promise<unknown>): Promise<FailureReason | null | "none"> {
  return promise.then(
    () => "none" as const,
    (error) => failureReason(error),
  );
}

test("two workers make the picture that one would, whatever its height", async () => {
  const { network, ports } = started();
  for (const height of [9, 1, 2, 9, 5, 40]) {
    const [low, high] = pictures(height);
    const out = { ...high, bytes: new Uint8Array(high.bytes.length) };
    assert.ok(await (await network).run(low, high, out));
    const expected = made(low, high, 2);
    for (let y = 0; y < high.height; y++)
      assert.deepEqual(
        out.bytes.subarray(32 * y, 32 * y + 16),
        expected.subarray(16 * y, 16 * y + 16),
        `row ${y} of ${height}`,
      );
    if (height === 40)
      assert.deepEqual(
        ports.map((port) => port.sizes.at(-1)),
        ["8x22", "8x22"],
      );
  }
});

test("planes are read before the call returns, and the picture may be written over itself", async () => {
  const network = await started().network;
  const [low, high] = pictures();
  const expected = made(low, high, 2);
  const picture = network.run(low, high, high);
  low.bytes.fill(0);
  high.bytes.fill(0);
  assert.ok(await picture);
  for (let y = 0; y < high.height; y++)
    assert.deepEqual(high.bytes.subarray(32 * y, 32 * y + 16), expected.subarray(16 * y, 16 * y + 16), `row ${y}`);
});

test("one track has workers at a time, and another one after it", async () => {
  const { network, start } = started();
  const first = await network;
  assert.equal(await reasonOf(start()), "late");
  first.dispose();
  (await start()).dispose();
});

test("a third picture at once is refused, and planes of other sizes are an error of the caller", async () => {
  const network = await started().network;
  const [low, high] = pictures();
  const run = () => network.run(low, high, { ...high, bytes: new Uint8Array(high.bytes.length) });
  assert.deepEqual(await Promise.all([run(), run(), run()]), [true, true, false]);
  await assert.rejects(network.run(high, high, high), RangeError);
  assert.ok(await run());
});

test("each fault ends the network, with its reason and its workers", async () => {
  const faults: [FailureReason, (network: FrameNetwork, ports: Port[]) => void][] = [
    ["device_lost", (_, ports) => ports[1]?.fail()],
    ["device_lost", (network) => network.dispose()],
    [
      "stalled",
      (_, ports) => {
        for (const port of ports) port.mute = true;
      },
    ],
  ];
  for (const [reason, plant] of faults) {
    const { network: starting, ports } = started({ limits: { pictureMs: 20 } });
    const network = await starting;
    const [low, high] = pictures();
    if (reason === "stalled") plant(network, ports);
    const picture = network.run(low, high, high);
    if (reason !== "stalled") plant(network, ports);
    assert.equal(await reasonOf(picture), reason);
    assert.equal(await reasonOf(network.run(low, high, high)), "device_lost");
    assert.ok(ports.every((port) => port.ended));
  }
});

test("a start that fails says why, and leaves no worker", async () => {
  const port = new Port();
  const host: RowHost = { module: () => MODULE, start: () => port, place: async () => () => undefined };
  const unloaded = rowWorkers({ ...host, module: () => null });
  assert.equal(await reasonOf(unloaded.startBuiltIn("xs", 2, {})), "no_script");
  const start = (): RowPort => {
    throw new TypeError("a policy forbids it");
  };
  assert.equal(await reasonOf(rowWorkers({ ...host, start }).startBuiltIn("xs", 2, {})), "no_script");
  const missing = started({
    prepare: (port) => {
      port.mute = true;
      setImmediate(() => port.fail());
    },
  });
  assert.equal(await reasonOf(missing.network), "no_script");
  assert.ok(missing.ports.every((port) => port.ended));
  const mute = started({
    limits: { compileMs: 20 },
    prepare: (port) => {
      port.mute = true;
    },
  });
  assert.equal(await reasonOf(mute.network), "slow_compile");
  assert.ok(mute.ports.length === 2 && mute.ports.every((port) => port.ended));
});
