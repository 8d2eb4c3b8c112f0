// Plays H.264 from a WHEP endpoint by libdatachannel, the WebRTC stack of OBS; ffmpeg decodes.
//
//   node libdatachannel_whep.mjs URL [--token TOKEN]
//
// Prints the connection's states, and a line a second: the frames of video decoded, none of sound, and the picture's width. Ends
// its session on SIGINT.
import { spawn } from "node:child_process";
import dgram from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import datachannel from "node-datachannel";
import { H264, openSession, PAYLOAD_TYPE } from "./libdatachannel.mjs";
import { freePort } from "./ports.mjs";

const { positionals, values } = parseArgs({ options: { token: { type: "string" } }, allowPositionals: true });
const [url] = positionals;
const { token } = values;
if (url === undefined) throw new Error("The WHEP endpoint is missing: give its URL");

const peer = new datachannel.PeerConnection("whep", { iceServers: [] });
const media = new datachannel.Video("0", "RecvOnly");
media.addH264Codec(PAYLOAD_TYPE, H264);
const track = peer.addTrack(media);
track.setMediaHandler(new datachannel.RtcpReceivingSession());

const port = await freePort();
const folder = mkdtempSync(path.join(tmpdir(), "whep-"));
const description = path.join(folder, "picture.sdp");
const lines = ["v=0", "o=- 0 0 IN IP4 127.0.0.1", "s=-", "c=IN IP4 127.0.0.1", "t=0 0", `m=video ${port} RTP/AVP ${PAYLOAD_TYPE}`];
writeFileSync(description, [...lines, `a=rtpmap:${PAYLOAD_TYPE} H264/90000`, `a=fmtp:${PAYLOAD_TYPE} ${H264}`, ""].join("\r\n"));
const decode = ["-v", "info", "-protocol_whitelist", "file,udp,rtp", "-i", description, "-f", "null", "-progress", "pipe:1", "-"];
const ffmpeg = spawn("ffmpeg", decode, { stdio: ["ignore", "pipe", "pipe"] });
let [frames, width] = [0, 0];
ffmpeg.stdout.on("data", (text) => (frames = Number(/frame=(\d+)/.exec(text)?.[1] ?? frames)));
ffmpeg.stderr.on("data", (text) => (width = Number(/Video: .* (\d+)x\d+/.exec(text)?.[1] ?? width)));
const socket = dgram.createSocket("udp4");
track.onMessage((packet) => socket.send(packet, port, "127.0.0.1"));

const end = await openSession(peer, url, token);

// ffmpeg listens later than the first key frame comes.
const asking = setInterval(() => {
  if (frames === 0 && track.isOpen()) track.requestKeyframe();
  console.log("got", frames, 0, width);
}, 1000);
await once(process, "SIGINT");
clearInterval(asking);
ffmpeg.kill("SIGKILL");
socket.close();
await end();
datachannel.cleanup();
rmSync(folder, { recursive: true, force: true });
process.exit(0);
