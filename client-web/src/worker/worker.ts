/**
 * The worker of one received video track: the encoded transform, and the timers that drive its pipeline.
 *
 * Each encoded frame is copied and passed on to the native decoder at once; the copy is decoded in a later task,
 * one frame a task, so that decoding never holds up the frames behind it by more than one decode.
 * A worker without a track warms the decoder up for the others (`warm-up.ts`). That of a published camera runs
 * `publish.ts` instead of all this.
 */
import type { FromWorker, PictureSink, ToPublisher, ToWorker } from "./messages.js";
import { hearPublisher, relaySent } from "./publish.js";
import { TrackPipeline } from "./track.js";
import { warmUp } from "./warm-up.js";
import { HybridDecoder } from "./wasm.js";

declare const self: DedicatedWorkerGlobalScope & {
  onrtctransform: ((event: RTCTransformEvent) => void) | null;
};

/** Size of the anchors in the module's own stream over that of its frames. */
const WARM_UP_SCALE = 2;

const now = (): number => performance.timeOrigin + performance.now();
const tell = (message: FromWorker, transfer: Transferable[] = []): void => self.postMessage(message, transfer);

let pipeline: TrackPipeline | null = null;
let transformer: RTCRtpScriptTransformer | null = null;
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
    requestKeyFrame: () => void transformer?.sendKeyFrameRequest().catch(() => undefined),
  };
  pipeline = new TrackPipeline(host, maxPixels, scale);
  setInterval(() => {
    if (pipeline !== null) tell({ type: "stats", stats: pipeline.stats() });
  }, 1000);
  // Notices gaps also when no frame comes any more.
  setInterval(schedule, 100);
}

self.onmessage = (event: MessageEvent<ToWorker | ToPublisher>) => {
  const message = event.data;
  switch (message.type) {
    case "init":
      init(message.sink, message.maxPixels, message.scale);
      break;
    case "module":
      pipeline?.start(message.module);
      schedule();
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

self.onrtctransform = (event) => {
  if (event.transformer.options?.role === "sent") {
    void relaySent(event.transformer);
    return;
  }
  transformer = event.transformer;
  void relay(event.transformer);
};

async function relay({ readable, writable }: RTCRtpScriptTransformer): Promise<void> {
  const reader = readable.getReader() as ReadableStreamDefaultReader<RTCEncodedVideoFrame>;
  const writer = writable.getWriter();
  for (;;) {
    const { value: frame, done } = await reader.read();
    if (done) return;
    const data = new Uint8Array(frame.data.slice(0));
    const { rtpTimestamp, frameId } = frame.getMetadata();
    writer.write(frame).catch(() => undefined);
    pipeline?.frame({ rtpTimestamp: rtpTimestamp ?? frame.timestamp, frameId, data });
    schedule();
  }
}
