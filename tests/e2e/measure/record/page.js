// Page of the recorder: a camera, and a call of two peer connections between which three VP9 encodings pass.
// The receiving one has a media section per encoding and takes its RID for its MID, so that no server is needed.
const RIDS = ["q", "h", "f"];
const SCALE = { q: 4, h: 2, f: 1 };
const BITRATE = { q: 150_000, h: 500_000, f: 1_500_000 };
const SHORT_BITRATE = { q: 40_000, h: 90_000, f: 120_000 };
const MID = "urn:ietf:params:rtp-hdrext:sdes:mid";
const RID = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id";
const REPAIRED = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id";

const sender = new RTCPeerConnection();
const receiver = new RTCPeerConnection();
const worker = new Worker("tap.js");
let track;
let out;

/** Starts the call of a plan; every encoding has the scalability mode `mode`. Gives the RIDs that send. */
async function start(plan, mode) {
  const { rids, camera: size = [1280, 720], bitrate = BITRATE } = PLANS[plan];
  const [width, height] = size;
  const stream = await navigator.mediaDevices.getUserMedia({ video: { width, height, frameRate: 30 } });
  [track] = stream.getVideoTracks();
  const transceiver = sender.addTransceiver(track, {
    direction: "sendonly",
    sendEncodings: RIDS.map((rid) => ({
      rid,
      active: rids.includes(rid),
      scalabilityMode: mode,
      scaleResolutionDownBy: SCALE[rid],
      maxBitrate: bitrate[rid],
    })),
  });
  const codecs = RTCRtpSender.getCapabilities("video").codecs;
  const vp9 = codecs.filter((c) => c.mimeType === "video/VP9" && /profile-id=0/.test(c.sdpFmtpLine));
  transceiver.setCodecPreferences([...vp9, ...codecs.filter((c) => c.mimeType === "video/rtx")]);
  out = transceiver.sender;
  out.transform = new RTCRtpScriptTransform(worker);
  sender.onicecandidate = ({ candidate: c }) => c && receiver.addIceCandidate({ candidate: c.candidate, sdpMid: RIDS[0] });
  receiver.onicecandidate = ({ candidate: c }) => c && sender.addIceCandidate({ candidate: c.candidate, sdpMid: "0" });
  await sender.setLocalDescription();
  const offer = sender.localDescription.sdp;
  await receiver.setRemoteDescription({ type: "offer", sdp: offerPerRid(offer) });
  const answer = await receiver.createAnswer();
  const joined = answerOfAll(answer.sdp, offer);
  // The sender's answer first: candidates of the receiver come as soon as it has its own.
  await sender.setRemoteDescription({ type: "answer", sdp: joined });
  await receiver.setLocalDescription(answer);
  return rids;
}

/** Splits SDP into its session part and its media sections. */
function sections(sdp) {
  const [session, ...media] = sdp.split(/^(?=m=)/m);
  return { session, media };
}

function bundle(session, mids) {
  return session.replace(/^a=group:BUNDLE.*$/m, `a=group:BUNDLE ${mids.join(" ")}`);
}

function offerPerRid(offer) {
  const { session, media } = sections(offer);
  const base = media[0]
    .split("\r\n")
    .filter((line) => !/^a=(rid|simulcast|mid|msid|ssrc|ssrc-group)[: -]/.test(line))
    .filter((line) => !line.endsWith(MID) && !line.endsWith(REPAIRED))
    .map((line) => (line.endsWith(` ${RID}`) ? line.replace(RID, MID) : line))
    .join("\r\n");
  return bundle(session, RIDS) + RIDS.map((rid) => `${base}a=mid:${rid}\r\n`).join("");
}

function answerOfAll(answer, offer) {
  const { session, media } = sections(answer);
  const offered = offer.match(new RegExp(`^a=extmap:\\d+ ${MID}$`, "m"))[0];
  const lines = media[0]
    .replace(/^a=mid:.*$/m, "a=mid:0")
    .replace(new RegExp(`^(a=extmap:\\d+) ${MID}$`, "m"), `$1 ${RID}\r\n${offered}`)
    // Without it the top encoding is off for the first seconds.
    .replace(/^(a=fmtp:\d+ profile-id=0)/m, "$1;x-google-start-bitrate=2500");
  const rids = RIDS.map((rid) => `a=rid:${rid} recv\r\n`).join("");
  return `${bundle(session, ["0"])}${lines}${rids}a=simulcast:recv ${RIDS.join(";")}\r\n`;
}

/** Changes some encodings: `change` is a function of an encoding, and gives what differs from the usual. */
async function encodings(change = () => ({}), degradationPreference = "balanced") {
  const parameters = out.getParameters();
  parameters.degradationPreference = degradationPreference;
  for (const e of parameters.encodings) {
    delete e.maxFramerate;
    const usual = { active: true, maxBitrate: BITRATE[e.rid], scaleResolutionDownBy: SCALE[e.rid] };
    Object.assign(e, usual, change(e));
  }
  await out.setParameters(parameters);
}

/** Asks for key frames of the given encodings. */
async function keyFrames(rids) {
  const parameters = out.getParameters();
  const encodingOptions = parameters.encodings.map((e) => ({ keyFrame: rids.includes(e.rid) }));
  await out.setParameters(parameters, { encodingOptions });
}

/** Leaves one encoding on, at a bitrate, which only the encoder itself may answer with a smaller picture. */
const only = (rid, maxBitrate) => encodings((e) => ({ active: e.rid === rid, maxBitrate }), "maintain-resolution");

/** Lets the encoder take the camera for a shared screen, in which detail is worth more than motion. */
async function sharedScreen(on) {
  track.contentHint = on ? "text" : "";
  await encodings();
}

const camera = (width, height) => track.applyConstraints({ width, height, frameRate: 30 });

/** What happens in each minute of a recording: encodings that send, and actions as second, name, function; other beginnings. */
const PLANS = {
  // All that happens in a call: other cameras, budgets and viewers.
  usual: {
    rids: RIDS,
    actions: [
      [0, "camera 1280x720", () => camera(1280, 720)],
      [8, "key frames of all", () => keyFrames(RIDS)],
      [12, "bitrates to a quarter", () => encodings((e) => ({ maxBitrate: BITRATE[e.rid] / 4 }))],
      [19, "bitrates as usual", () => encodings()],
      [22, "key frame of h", () => keyFrames(["h"])],
      [25, "camera 960x540", () => camera(960, 540)],
      [32, "key frame of q", () => keyFrames(["q"])],
      // Chromium has no third encoding of so small a picture: f pauses.
      [35, "camera 640x480", () => camera(640, 480)],
      [39, "camera 1024x576", () => camera(1024, 576)],
      [41, "odd sizes", () => encodings((e) => ({ scaleResolutionDownBy: SCALE[e.rid] * 1.37 }))],
      [46, "bitrates doubled", () => encodings((e) => ({ maxBitrate: BITRATE[e.rid] * 2 }))],
      [50, "half the frame rate", () => encodings(() => ({ maxFramerate: 15 }))],
      [54, "shared screen", () => sharedScreen(true)],
      [59, "camera again", () => sharedScreen(false)],
    ],
  },
  // libvpx shrinks and grows the picture between key frames: references have another size than the picture.
  // That needs Chromium's own quality scaler off (see record-vp9.mjs) and a single encoding.
  starved: {
    rids: ["f"],
    actions: [
      [0, "f alone", () => only("f", BITRATE.f)],
      [6, "starved", () => only("f", 90_000)],
      [24, "half fed", () => only("f", 400_000)],
      [34, "fed", () => only("f", BITRATE.f)],
      [42, "starved, camera 960x540", () => Promise.all([camera(960, 540), only("f", 60_000)])],
      [54, "fed, camera 1280x720", () => Promise.all([camera(1280, 720), only("f", BITRATE.f)])],
    ],
  },
  // Small and short, for the repository: key frames on request, then another size.
  short: {
    rids: ["q", "h"],
    camera: [640, 360],
    bitrate: SHORT_BITRATE,
    actions: [
      [1.2, "key frames", () => keyFrames(["q", "h"])],
      [2.4, "smaller", () => encodings((e) => ({ maxBitrate: SHORT_BITRATE[e.rid], scaleResolutionDownBy: SCALE[e.rid] * 1.37 }))],
    ],
  },
  // A short `starved`.
  "short-starved": {
    rids: ["f"],
    camera: [640, 360],
    bitrate: SHORT_BITRATE,
    actions: [
      [0, "f alone", () => only("f", SHORT_BITRATE.f)],
      [0.6, "starved", () => only("f", 15_000)],
    ],
  },
};

/** Lets `seconds` pass with a plan's changes in each minute; tells which of them Chromium refused, and why. */
async function live(plan, seconds) {
  const begin = performance.now();
  const until = (second) => new Promise((r) => setTimeout(r, begin + second * 1000 - performance.now()));
  const refused = {};
  for (let minute = 0; minute * 60 < seconds; minute++) {
    for (const [second, name, act] of PLANS[plan].actions) {
      const at = minute * 60 + second;
      if (at >= seconds) break;
      await until(at);
      await Promise.resolve(act()).catch((error) => (refused[name] = String(error)));
    }
  }
  await until(seconds);
  return refused;
}

/** RIDs by SSRC, as the sender's statistics give them. */
async function ridsBySsrc() {
  const stats = [...(await out.getStats()).values()];
  return Object.fromEntries(stats.filter((s) => s.type === "outbound-rtp").map((s) => [s.ssrc, s.rid]));
}

/** Waits until all frames are sent home. */
function flush() {
  const { port1, port2 } = new MessageChannel();
  worker.postMessage("flush", [port2]);
  return new Promise((r) => (port1.onmessage = r));
}

window.recorder = { start, live, ridsBySsrc, flush };
