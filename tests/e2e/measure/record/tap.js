// Worker of the recorder's page: copies every encoded frame on its way to the network and sends the copies home.
// One record: length, SSRC, RTP time (each u32, big endian), key frame, temporal layer (each u8), then the frame.
const HEAD = 14;
let waiting = [];
let sending = Promise.resolve();

self.onrtctransform = ({ transformer }) => {
  const copy = new TransformStream({
    transform(frame, out) {
      keep(frame);
      out.enqueue(frame);
    },
  });
  transformer.readable.pipeThrough(copy).pipeTo(transformer.writable);
};

self.onmessage = async ({ ports: [reply] }) => {
  await flush();
  reply.postMessage("flushed");
};

setInterval(flush, 500);

function keep(frame) {
  const { synchronizationSource, rtpTimestamp, temporalIndex } = frame.getMetadata();
  const record = new Uint8Array(HEAD + frame.data.byteLength);
  const head = new DataView(record.buffer);
  head.setUint32(0, frame.data.byteLength);
  head.setUint32(4, synchronizationSource);
  head.setUint32(8, rtpTimestamp);
  head.setUint8(12, frame.type === "key" ? 1 : 0);
  head.setUint8(13, temporalIndex ?? 0);
  record.set(new Uint8Array(frame.data), HEAD);
  waiting.push(record);
}

function flush() {
  const body = new Blob(waiting);
  waiting = [];
  if (body.size) sending = sending.then(() => fetch("/frames", { method: "POST", body }));
  return sending;
}
