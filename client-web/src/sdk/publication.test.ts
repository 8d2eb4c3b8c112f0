import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Publication, type Uplink } from "./publication.js";
import { settle } from "./testing/clock.js";

/** A sender that applies, drops or never answers changes, by `obeys`. */
class Sender {
  private encodings = ["q", "h", "f"].map((rid): RTCRtpEncodingParameters => ({ rid, active: rid !== "f" }));
  obeys: "at once" | "never" | "answers nothing" = "at once";

  getParameters() {
    return structuredClone({ encodings: this.encodings });
  }

  setParameters({ encodings }: { encodings: RTCRtpEncodingParameters[] }): Promise<void> {
    if (this.obeys === "answers nothing") return new Promise(() => undefined);
    if (this.obeys === "at once") this.encodings = encodings;
    return Promise.resolve();
  }

  getStats() {
    return Promise.resolve(new Map());
  }

  get sent() {
    return this.encodings.filter(({ active }) => active).map(({ rid }) => rid);
  }
}

function camera(offer = () => undefined): {
  publication: Publication;
  sender: Sender;
  pc: RTCPeerConnection;
  look(): Promise<void>;
} {
  Object.assign(globalThis, { RTCRtpSender: { getCapabilities: () => ({ codecs: [] }) } });
  const sender = new Sender();
  const transceiver = { mid: "0", sender, setCodecPreferences: () => undefined };
  const pc = { addTransceiver: () => transceiver, getTransceivers: () => [{}] } as unknown as RTCPeerConnection;
  const publication = new Publication({ kind: "video" } as MediaStreamTrack, "camera", "qh");
  publication.attach({ pc, scale: 2, offer, relay: { encrypts: false } } as unknown as Uplink);
  return { publication, sender, pc, look: () => publication.sampleUplink(pc) };
}

test("what is sent no more gives its section of the descriptions free", () => {
  const { publication, pc, sender } = camera();
  const transceiver = pc.addTransceiver("video") as unknown as { stop(): void };
  let stopped = 0;
  Object.assign(transceiver, { stop: () => void stopped++ });
  Object.assign(sender, { replaceTrack: async () => undefined });
  publication.detach(pc);
  assert.equal(stopped, 1);
});

test("layers that are asked for are sent", async () => {
  const { publication, sender } = camera();
  await publication.setLayers("q");
  assert.deepEqual(sender.sent, ["q"]);
});

test("the largest layer is reported to the server, and again where that changes", async () => {
  let offers = 0;
  const { publication, pc } = camera(() => void offers++);
  assert.equal(publication.entry(pc)?.max, "h");
  await publication.setLayers("qhf");
  assert.deepEqual([publication.entry(pc)?.max, offers], ["f", 1]);
  await publication.setLayers("qf");
  assert.equal(offers, 1, "the largest is the same");
});

test("a backup has the first codec that the browser encodes, names its track, and follows it", async () => {
  const { publication, pc, sender } = camera();
  const codecs = [{ mimeType: "video/VP8", clockRate: 90_000 }];
  Object.assign(globalThis, { RTCRtpSender: { getCapabilities: () => ({ codecs }) } });
  assert.equal(publication.backUp(["av1"]), null);
  const backup = publication.backUp(["av1", "vp8"]);
  assert.ok(backup !== null);
  assert.deepEqual([backup.codec, backup.name, backup.backUp(["vp8"])], ["vp8", "camera", null]);
  assert.equal(backup.entry(pc), null, "it is not attached");
  const transceiver = { mid: "1", sender, setCodecPreferences: () => undefined };
  const second = { addTransceiver: () => transceiver } as unknown as RTCPeerConnection;
  backup.attach({ pc: second, scale: 2, offer: () => undefined, relay: { encrypts: false } } as unknown as Uplink);
  assert.equal(backup.entry(second), null, "its track is not there");
  const links = (of: Publication) => (of as unknown as { links: Map<RTCPeerConnection, unknown> }).links;
  links(backup).set(pc, links(backup).get(second));
  assert.deepEqual(backup.entry(pc), { mid: "1", kind: "video", name: "camera", max: "h", backup_of: "0" });
  await publication.setLayers("q");
  assert.equal(backup.entry(pc)?.max, "q");
  Object.assign(sender, { replaceTrack: () => Promise.resolve() });
  const other = { kind: "video" } as MediaStreamTrack;
  await publication.replaceTrack(other);
  assert.equal(backup.track, other);
  publication.setMuted(true);
  assert.equal(backup.muted, true);
});

test("a publication without backups gives none", () => {
  const codecs = [{ mimeType: "video/VP8", clockRate: 90_000 }];
  Object.assign(globalThis, { RTCRtpSender: { getCapabilities: () => ({ codecs }) } });
  const track = { kind: "video" } as MediaStreamTrack;
  const alone = new Publication(track, "camera", "qh", { backupCodec: false });
  assert.equal(alone.backUp(["vp8"]), null);
});

test("a change that the browser dropped is made again", async () => {
  const { publication, sender, look } = camera();
  sender.obeys = "never";
  await publication.setLayers("q");
  assert.deepEqual(sender.sent, ["q", "h"]);
  sender.obeys = "at once";
  await look();
  assert.deepEqual(sender.sent, ["q"]);
});

test("a change that the browser never answers holds up no later one for long", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const { publication, sender } = camera();
    sender.obeys = "answers nothing";
    void publication.setLayers("qhf");
    await settle();
    sender.obeys = "at once";
    const changed = publication.setLayers("q");
    mock.timers.tick(2000);
    await changed;
    assert.deepEqual(sender.sent, ["q"]);
  } finally {
    mock.timers.reset();
  }
});
