/**
 * The worker of one received video track: copies of its encoded frames come from the relay and go into its pipeline,
 * which timers drive. Each is decoded in a task of its own.
 *
 * What the window tells it first makes it something else: the page's relay (`relay.ts`), the worker of a published camera
 * (`publish.ts`), or one that warms the decoder up for the others (`warm-up.ts`).
 */
import type {
  FrameCopy,
  FromWorker,
  PictureSink,
  Ping,
  Pong,
  TakeCopies,
  ToPublisher,
  ToRelay,
  ToRelayByPort,
  ToWorker,
  TransformOptions,
} from "./messages.js";
import { followSent, hearPublisher } from "./publish.js";
import { Relay } from "./relay.js";
import { TrackPipeline } from "./track.js";
import { warmUp } from "./warm-up.js";
import { HybridDecoder } from "./wasm.js";

declare const self: DedicatedWorkerGlobalScope & {
  onrtctransform: ((event: RTCTransformEvent) => void) | null;
};

/** Size of the anchors in the module's own stream over that of its frames. */
const WARM_UP_SCALE = 2;

const now = (): number => performance.timeOrigin + performance.now();
const tell = (message: FromWorker | Pong, transfer: Transferable[] = []): void => self.postMessage(message, transfer);

const relay = new Relay();
let pipeline: TrackPipeline | null = null;
/** Where copies of the track's frames come from. */
let copies: MessagePort | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;

const turn = new MessageChannel();
let turning = false;
turn.port1.onmessage = () => {
  turning = false;
  if (pipeline?.pump()) schedule();
  present();
};

/** Runs the pipeline in a task of its own, after whatever has arrived meanwhile. */
function schedule(): void {
  if (turning) return;
  turning = true;
  turn.port2.postMessage(null);
}

/** Shows what is due, and comes back when the next picture is. */
function present(): void {
  if (pipeline === null) return;
  pipeline.show();
  clearTimeout(timer);
  const wait = pipeline.waitMs();
  if (wait !== null) timer = setTimeout(schedule, wait);
}

/** Where pictures go. A sink that is still busy with two of them is not given a third. */
function pictureSink(sink: PictureSink): (picture: VideoFrame) => void {
  if (sink.kind === "post") return (frame) => tell({ type: "frame", frame }, [frame]);
  const writer = sink.writable.getWriter();
  let writing = 0;
  return (frame) => {
    if (writing >= 2) {
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

function init(sink: PictureSink, maxPixels: number, scale: number): void {
  const host = {
    clock: now,
    show: pictureSink(sink),
    tell,
    requestKeyFrame: () => copies?.postMessage("keyFrame" satisfies ToRelayByPort),
  };
  pipeline = new TrackPipeline(host, maxPixels, scale);
  setInterval(() => {
    if (pipeline !== null) tell({ type: "stats", stats: pipeline.stats() });
  }, 1000);
  // Notices gaps also when no frame comes any more.
  setInterval(schedule, 100);
}

self.onmessage = (event: MessageEvent<Ping | ToRelay | TakeCopies | ToWorker | ToPublisher>) => {
  const message = event.data;
  switch (message.type) {
    case "ping":
      tell({ type: "pong" });
      break;
    case "handCopies":
      relay.connect(message.id, message.port);
      break;
    case "takeCopies":
      if (pipeline === null) followSent(message.port);
      else followReceived(message.port);
      break;
    case "init":
      init(message.sink, message.maxPixels, message.scale);
      break;
    case "module":
      if (pipeline === null) hearPublisher(message);
      else {
        pipeline.start(message.module);
        schedule();
      }
      break;
    case "warmUp":
      warmUp(() => new HybridDecoder(message.module, WARM_UP_SCALE));
      tell({ type: "warm" });
      break;
    case "anchor":
      pipeline?.message(message.data);
      present();
      break;
    case "nativeShown":
      pipeline?.nativeShown(message.rtpTimestamp, message.at);
      break;
    case "colour":
      pipeline?.nativeColour(message.colour);
      break;
    case "rung":
      pipeline?.rung(message.enhanced, message.scale);
      break;
    case "shown":
      pipeline?.shownIn(message);
      break;
    case "restart":
      pipeline?.restart(message.enabled);
      break;
    case "camera":
    case "frame":
    case "regions":
      hearPublisher(message);
      break;
  }
};

/** Takes copies of the track's frames from a port. */
function followReceived(port: MessagePort): void {
  copies?.close();
  copies = port;
  port.onmessage = ({ data: { rtpTimestamp, frameId, data, afterGap } }: MessageEvent<FrameCopy>) => {
    port.postMessage("taken" satisfies ToRelayByPort);
    if (afterGap) pipeline?.missed();
    pipeline?.frame({ rtpTimestamp, frameId, data: new Uint8Array(data) });
    schedule();
  };
}

self.onrtctransform = ({ transformer }) => {
  const { role, id, keyFrame } = transformer.options as TransformOptions;
  relay.pass(transformer, role, id, keyFrame).catch(reportError);
};
