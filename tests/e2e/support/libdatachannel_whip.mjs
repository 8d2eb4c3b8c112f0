// Sends H.264 to a WHIP endpoint by libdatachannel, the WebRTC stack of OBS: a drawn picture, or what an input of ffmpeg has.
//
//   node libdatachannel_whip.mjs URL [--token TOKEN] [-- OPTIONS OF FFMPEG'S INPUT]
//   node libdatachannel_whip.mjs URL -- -rtsp_transport tcp -i rtsp://camera/stream
//
// The H.264 of an input goes as it is: nothing is encoded. ffmpeg packetizes (RTP over a local UDP port); libdatachannel has the
// connection. Prints the connection's states. Ends its session on SIGINT, and when the input ends.
import { spawn } from "node:child_process";
import dgram from "node:dgram";
import { once } from "node:events";
import { parseArgs } from "node:util";
import datachannel from "node-datachannel";

const split = process.argv.includes("--") ? process.argv.indexOf("--") : process.argv.length;
const { positionals, values } = parseArgs({ args: process.argv.slice(2, split), options: { token: { type: "string" } }, allowPositionals: true });
const [url] = positionals;
const { token } = values;
const input = process.argv.slice(split + 1);
if (url === undefined) throw new Error("The WHIP endpoint is missing: give its URL");
const PAYLOAD_TYPE = 96;
const SSRC = 0x5eed;

const peer = new datachannel.PeerConnection("whip", { iceServers: [] });
const media = new datachannel.Video("0", "SendOnly");
media.addH264Codec(PAYLOAD_TYPE, "profile-level-id=42e01f;packetization-mode=1;level-asymmetry-allowed=1");
media.addSSRC(SSRC, "libdatachannel");
const track = peer.addTrack(media);
track.setMediaHandler(new datachannel.RtcpNackResponder());

const gathered = new Promise((resolve) => peer.onGatheringStateChange((state) => state === "complete" && resolve()));
peer.onStateChange((state) => console.log(state));
peer.setLocalDescription();
await gathered;
const headers = { "content-type": "application/sdp", ...(token ? { authorization: `Bearer ${token}` } : {}) };
const answer = await fetch(url, { method: "POST", headers, body: peer.localDescription().sdp });
if (answer.status !== 201) throw new Error(`${answer.status}: ${await answer.text()}`);
const session = new URL(answer.headers.get("location"), url);
peer.setRemoteDescription(await answer.text(), "answer");

const socket = dgram.createSocket("udp4");
await new Promise((resolve) => socket.bind(0, "127.0.0.1", resolve));
const drawn = "-re -f lavfi -i testsrc2=size=640x360:rate=30 -pix_fmt yuv420p".split(" ");
const encode = "-c:v libx264 -profile:v baseline -preset ultrafast -tune zerolatency -g 60 -b:v 600k".split(" ");
// With the parameter sets before each key frame: cameras have them in the session's description alone.
const copy = "-an -c:v copy -bsf:v dump_extra=freq=keyframe".split(" ");
const from = input.length > 0 ? [...input, ...copy] : [...drawn, ...encode];
const to = ["-payload_type", `${PAYLOAD_TYPE}`, "-f", "rtp", `rtp://127.0.0.1:${socket.address().port}?pkt_size=1200`];
const ffmpeg = spawn("ffmpeg", ["-v", "error", ...from, ...to], { stdio: ["ignore", "ignore", "inherit"] });
let sent = 0;
socket.on("message", (packet) => {
  packet.writeUInt32BE(SSRC, 8);
  if (track.isOpen() && track.sendMessageBinary(packet)) sent += 1;
});
process.on("SIGINT", () => ffmpeg.kill());
await once(ffmpeg, "exit");
socket.close();
await fetch(session, { method: "DELETE", headers });
peer.close();
datachannel.cleanup();
console.log(`sent ${sent}`);
process.exit(0);
