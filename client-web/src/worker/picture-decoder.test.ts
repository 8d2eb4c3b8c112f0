import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { settle } from "../sdk/testing/clock.js";
import { codecString, type DecodedPicture, PictureDecoder } from "./picture-decoder.js";

/** A decoder of the browser that does as the test says. */
class FakeDecoder {
  static last: FakeDecoder;
  static unsupported = false;
  state = "configured";
  /** Pictures that are not closed. */
  open = 0;
  config: VideoDecoderConfig | null = null;
  readonly chunks: number[] = [];
  constructor(private readonly init: { output(frame: VideoFrame): void; error(error: Error): void }) {
    FakeDecoder.last = this;
  }
  configure(config: VideoDecoderConfig): void {
    if (FakeDecoder.unsupported) throw Object.assign(new Error(), { name: "NotSupportedError" });
    this.config = config;
  }
  decode({ timestamp }: { timestamp: number }): void {
    this.chunks.push(timestamp);
  }
  close(): void {
    this.state = "closed";
  }
  /** Gives the picture of a chunk: two by two samples, after `copyMs`; or says another size. */
  give(timestamp: number, copyMs = 0, side = 2): void {
    this.open++;
    const copyTo = async (to: Uint8Array) => {
      await new Promise((resolve) => setTimeout(resolve, copyMs));
      to.set([timestamp, 2, 0, 3, 4, 0, 5, 6]);
      return [
        { offset: 0, stride: 3 },
        { offset: 6, stride: 1 },
        { offset: 7, stride: 1 },
      ];
    };
    const visibleRect = { width: side, height: side };
    const colorSpace = { toJSON: () => ({ matrix: "bt709" }) };
    this.init.output({
      format: "I420",
      visibleRect,
      colorSpace,
      timestamp,
      allocationSize: () => 8,
      copyTo,
      close: () => void this.open--,
    } as unknown as VideoFrame);
  }
  fail(error: Error): void {
    this.init.error(error);
  }
}

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout"] });
  FakeDecoder.unsupported = false;
  Object.assign(globalThis, {
    VideoDecoder: FakeDecoder,
    EncodedVideoChunk: class {
      constructor(init: object) {
        Object.assign(this, init);
      }
    },
  });
});

afterEach(() => mock.timers.reset());

/** Lets copies that take up to `ms` milliseconds end, of which each begins when the one before it has ended. */
async function settled(ms = 40): Promise<void> {
  for (let passed = 0; passed < ms; passed++) {
    await settle();
    mock.timers.tick(1);
  }
  await settle();
}
const frame = (rtpTimestamp: number, key = false) => ({
  rtpTimestamp,
  key,
  data: Uint8Array.of(0, 0, 1, 0x67, 0x42, 0xe0, 0x1f, 9),
});

function decoder() {
  const got: [number, DecodedPicture][] = [];
  const failures: boolean[] = [];
  const sizes: number[] = [];
  const host = {
    decoded: (rtpTimestamp: number, picture: DecodedPicture) => got.push([rtpTimestamp, picture]),
    tooLarge: ({ width }: { width: number }) => sizes.push(width),
    failed: (unsupported: boolean) => failures.push(unsupported),
  };
  return { pictures: new PictureDecoder(host, 16), got, failures, sizes };
}

test("it begins at a key frame, and gives packed pictures in order however long their copies take", async () => {
  const { pictures, got } = decoder();
  pictures.decode("h264", frame(1));
  for (const rtp of [10, 20]) pictures.decode("h264", frame(rtp, rtp === 10));
  const { chunks, config } = FakeDecoder.last;
  assert.equal(config?.codec, "avc1.42e01f");
  FakeDecoder.last.give(chunks[0] as number, 20);
  FakeDecoder.last.give(chunks[1] as number, 0);
  await settled();
  assert.deepEqual(
    got.map(([rtp]) => rtp),
    [10, 20],
  );
  const { width, height, data, colour } = (got[0] as [number, DecodedPicture])[1];
  assert.deepEqual([width, height, [...data], colour], [2, 2, [chunks[0], 2, 3, 4, 5, 6], { matrix: "bt709" }]);
});

test("pictures of before a reset do not come", async () => {
  const { pictures, got } = decoder();
  pictures.decode("vp8", frame(10, true));
  const before = FakeDecoder.last;
  pictures.reset();
  before.give(before.chunks[0] as number);
  pictures.decode("vp8", frame(20));
  await settled();
  assert.deepEqual([got.length, before.state, FakeDecoder.last === before], [0, "closed", true]);
});

test("what cannot be decoded is reported, and after three times that the browser cannot", () => {
  const { pictures, failures } = decoder();
  for (let n = 0; n < 3; n++) {
    pictures.decode("vp8", frame(n, true));
    FakeDecoder.last.fail(new Error("broken"));
    FakeDecoder.last.fail(new Error("again"));
  }
  assert.deepEqual(failures, [false, false, true], "each once");
});

test("where there is no decoder in software any other is taken, and then none", () => {
  const { pictures, failures } = decoder();
  const none = Object.assign(new Error("Unsupported configuration"), { name: "OperationError" });
  for (const [rtp, preference] of [
    [0, "prefer-software"],
    [1, "no-preference"],
  ] as const) {
    pictures.decode("h264", frame(rtp, true));
    assert.equal(FakeDecoder.last.config?.hardwareAcceleration, preference);
    FakeDecoder.last.fail(none);
  }
  assert.deepEqual(failures, [false, true]);
  Object.assign(globalThis, { VideoDecoder: undefined });
  pictures.decode("av1", frame(30, true));
  assert.deepEqual(failures, [false, true, true], "no WebCodecs");
});

test("frames without a picture do not stay, and every picture is closed", async () => {
  const { pictures, failures } = decoder();
  for (let n = 0; n < 40; n += 2) {
    for (const rtp of [n, n + 1]) pictures.decode("vp8", frame(rtp, n === 0));
    FakeDecoder.last.give(FakeDecoder.last.chunks.at(-1) as number);
    await settled(1);
  }
  await settled();
  assert.deepEqual([failures, pictures.pending, FakeDecoder.last.open], [[], 0, 0]);
});

test("a picture that is too large is not copied", async () => {
  const { pictures, got, sizes } = decoder();
  pictures.decode("vp8", frame(1, true));
  FakeDecoder.last.give(FakeDecoder.last.chunks[0] as number, 0, 5);
  await settled();
  assert.deepEqual([got, sizes, FakeDecoder.last.open], [[], [5], 0]);
});

test("the name of a codec is that of its key frame", () => {
  assert.equal(codecString("h264", Uint8Array.of(0, 0, 0, 1, 9, 0x10, 0, 0, 1, 0x67, 0x64, 0, 0x28, 1)), "avc1.640028");
  assert.equal(codecString("h264", Uint8Array.of(1, 2)), "avc1.42e01f");
  assert.equal(
    codecString("h264", Uint8Array.of(0, 0, 1, 0x67, 0x42, 0xe3, 0x1f, 1)),
    "avc1.42e01f",
    "no such profile",
  );
  assert.equal(codecString("vp8", new Uint8Array()), "vp8");
});
