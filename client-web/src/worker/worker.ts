/**
 * The entry of all workers. The first message of the window decides which worker it is: that of a received video track
 * (`track.ts`), the relay of the page (`relay.ts`), that of a published camera (`publish.ts`), or one that warms the
 * decoder up (`warm-up.ts`). The worker of a track may start others, which run its network (`network/row-workers.ts`).
 *
 * In the worker of a track, copies of encoded frames come from the relay; messages and timers drive the pipeline. Each
 * frame is decoded in a task of its own.
 */
import { BaseKeys } from "./base-keys.js";
import { EncryptedStills, type StillOutcome } from "./encrypted-stills.js";
import type {
  FrameCopy,
  FromRows,
  FromWorker,
  Outside,
  PictureSink,
  Ping,
  Pong,
  TakeCopies,
  ToPublisher,
  ToRelay,
  ToRelayByPort,
  ToRows,
  ToWorker,
  TransformOptions,
} from "./messages.js";
import type { BackendScript, OutsideBackend } from "./network/backend.js";
import { OutsideNetwork } from "./network/outside-network.js";
import { type NamedBackend, OutsideNetworks } from "./network/outside-networks.js";
import { type RowHost, type RowPort, rowWorkers } from "./network/row-workers.js";
import { importNetworks } from "./network/script.js";
import type { NetworkTier } from "./network-choice.js";
import { encryptStills, handlePublisher, takeSent } from "./publish.js";
import { Relay } from "./relay.js";
import { TrackPipeline } from "./track.js";
import { measureSpeed, warmUp } from "./warm-up.js";
import { HybridDecoder, RowNetwork } from "./wasm.js";

declare const self: DedicatedWorkerGlobalScope & {
  onrtctransform: ((event: RTCTransformEvent) => void) | null;
};

/** HR over LR size of the module's own stream. */
const WARM_UP_SCALE = 2;
/** Max pictures being written to the sink at once. */
const MAX_WRITING = 2;
/** Cores from which a track's network may have two workers of its own, beside the track's and the page. */
const MIN_CORES = 4;
/** Interval of statistics, milliseconds. */
const STATS_MS = 1000;
/** Interval of checks for gaps, milliseconds. */
const GAP_CHECK_MS = 100;

const now = (): number => performance.timeOrigin + performance.now();
const post = (message: FromWorker | FromRows | Pong, transfer: Transferable[] = []): void =>
  self.postMessage(message, transfer);

const keys = new BaseKeys();
const relay = new Relay(keys);
encryptStills(keys);
let pipeline: TrackPipeline | null = null;
/** What decrypts the anchors of the track; null: they are not encrypted. */
let stills: EncryptedStills | null = null;
/** The port of the copies of the track's frames. */
let copies: MessagePort | null = null;
/** The decoder of the track, once it is loaded. */
let compiled: WebAssembly.Module | null = null;
/** The network that this worker runs on rows for another one. */
let rows: RowNetwork | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;

const taskChannel = new MessageChannel();
let scheduled = false;
taskChannel.port1.onmessage = () => {
  scheduled = false;
  if (pipeline?.pump()) schedule();
  present();
};

/** Runs the pipeline in a task of its own, after the messages that have arrived meanwhile. */
function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  taskChannel.port2.postMessage(null);
}

/** Shows the picture that is due, and schedules the next one. */
function present(): void {
  if (pipeline === null) return;
  pipeline.show();
  clearTimeout(timer);
  const wait = pipeline.waitMs();
  if (wait !== null) timer = setTimeout(schedule, wait);
}

/** Writes pictures to the sink. A picture is dropped while two are being written. */
function pictureSink(sink: PictureSink): (picture: VideoFrame) => void {
  if (sink.kind === "post") return (frame) => post({ type: "frame", frame }, [frame]);
  const writer = sink.writable.getWriter();
  let writing = 0;
  return (frame) => {
    if (writing >= MAX_WRITING) {
      frame.close();
      return;
    }
    writing++;
    writer
      .write(frame)
      .catch(() => frame.close())
      .finally(() => writing--);
  };
}

/** How the script of networks on WebGPU is loaded; null where the browser has no WebGPU. */
function gpuScript({ script }: Outside): (() => Promise<BackendScript>) | null {
  if (!("gpu" in navigator)) return null;
  return async () => {
    try {
      return await importNetworks(script);
    } catch (error) {
      console.warn(`Windlass: no network runs on WebGPU, as its script cannot be loaded. ${(error as Error).message}`);
      throw error;
    }
  };
}

/** Starts a worker that runs the track's network on some rows: this script again. */
const rowWorker = (): RowPort => new Worker(self.location.href, { type: "module", name: "windlass network" });

/** See {@link RowHost.place}: one track of all pages of an origin. It ends with this worker at the latest. */
const workersPlace: RowHost["place"] = () =>
  new Promise((resolve) => {
    navigator.locks
      .request("windlass network workers", { ifAvailable: true }, (lock) => {
        if (lock !== null) return new Promise<void>((release) => resolve(release));
        resolve(null);
        return undefined;
      })
      .catch(() => resolve(null));
  });

/** The backends that may run the track's network: one alone, or those of this machine. */
function backends(maxNetwork: NetworkTier, outside: Outside): NamedBackend[] {
  const forced = outside.forced !== null;
  const workers = async (): Promise<BackendScript> =>
    rowWorkers({ module: () => compiled, start: rowWorker, place: workersPlace });
  const all: NamedBackend[] = [
    { name: "webgpu", network: new OutsideNetwork(maxNetwork, gpuScript(outside), forced, now) },
    { name: "workers", network: new OutsideNetwork(maxNetwork, workers, forced, now, Math.random, "larger") },
  ];
  const may = (name: OutsideBackend): boolean =>
    forced ? name === outside.forced : name === "webgpu" || navigator.hardwareConcurrency >= MIN_CORES;
  return all.filter(({ name }) => may(name));
}

function init({ sink, maxPixels, scale, maxNetwork, outside, encrypted }: Extract<ToWorker, { type: "init" }>): void {
  const host = {
    clock: now,
    show: pictureSink(sink),
    post,
    requestKeyFrame: () => copies?.postMessage("keyFrame" satisfies ToRelayByPort),
    wake: schedule,
  };
  const networks = new OutsideNetworks(backends(maxNetwork, outside));
  pipeline = new TrackPipeline(host, maxPixels, scale, maxNetwork, networks);
  stills = encrypted ? new EncryptedStills(() => keys.all) : null;
  setInterval(() => {
    if (pipeline !== null) post({ type: "stats", stats: pipeline.stats() });
  }, STATS_MS);
  // Detects gaps when no further frame comes.
  setInterval(schedule, GAP_CHECK_MS);
}

self.onmessage = (event: MessageEvent<Ping | ToRelay | TakeCopies | ToWorker | ToRows | ToPublisher>) => {
  const message = event.data;
  switch (message.type) {
    case "ping":
      post({ type: "pong" });
      break;
    case "handCopies":
      relay.connect(message.id, message.port);
      break;
    case "key":
      keys.add(message.key);
      break;
    case "takeCopies":
      if (pipeline === null) takeSent(message.port);
      else takeReceived(message.port);
      break;
    case "init":
      init(message);
      break;
    case "module":
      if (pipeline === null) handlePublisher(message);
      else {
        compiled = message.module;
        pipeline.start(message.module);
        schedule();
      }
      break;
    case "warmUp":
      warmUp(() => new HybridDecoder(message.module, WARM_UP_SCALE));
      post({ type: "warm" });
      break;
    case "speed":
      post({
        type: "speed",
        pixelsPerSecond: measureSpeed(() => new HybridDecoder(message.module, WARM_UP_SCALE)),
      });
      break;
    case "rows":
      rows = new RowNetwork(message.module, message.tier, message.scale);
      post({ type: "rows", reach: rows.reach });
      break;
    case "part":
      rows?.run(new Uint8Array(message.bytes), message.width, message.height);
      post({ type: "part", bytes: message.bytes }, [message.bytes]);
      break;
    case "anchor":
      takeAnchor(message.data).catch(reportError);
      break;
    case "nativeShown":
      pipeline?.nativeShown(message.rtpTimestamp, message.at);
      break;
    case "colour":
      pipeline?.nativeColour(message.colour);
      break;
    case "rung":
      pipeline?.setRung(message.enhanced, message.scale, message.spatial);
      break;
    case "maxNetwork":
      pipeline?.limitNetworks(message.max);
      break;
    case "shown":
      pipeline?.setPlace(message);
      break;
    case "restart":
      pipeline?.restart(message.enabled);
      break;
    case "camera":
    case "frame":
    case "regions":
      handlePublisher(message);
      break;
  }
};

/** Takes an anchor message of the track. */
async function takeAnchor(data: ArrayBuffer): Promise<void> {
  giveAnchor(stills === null ? data : await stills.take(data));
}

function giveAnchor(message: StillOutcome): void {
  if (message === "incomplete") return;
  if (message === "unreadable") pipeline?.anchorUnreadable();
  else pipeline?.message(message);
  present();
}

/** Takes the copies of received frames from a port. */
function takeReceived(port: MessagePort): void {
  copies?.close();
  copies = port;
  port.onmessage = ({ data: { rtpTimestamp, frameId, data, other, afterGap } }: MessageEvent<FrameCopy>) => {
    port.postMessage("taken" satisfies ToRelayByPort);
    if (afterGap) pipeline?.framesMissing();
    const bytes = new Uint8Array(data);
    pipeline?.frame({ rtpTimestamp, frameId, data: bytes, other });
    const waiting = stills?.frame(rtpTimestamp, bytes);
    waiting?.then((still) => still !== null && giveAnchor(still)).catch(reportError);
    schedule();
  };
}

self.onrtctransform = ({ transformer }) => {
  relay.pass(transformer, transformer.options as TransformOptions).catch(reportError);
};
