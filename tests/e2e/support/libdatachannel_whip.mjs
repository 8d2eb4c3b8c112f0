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
import { H264, openSession, PAYLOAD_TYPE } from "./libdatachannel.mjs";

const split = process.argv.includes("--") ? process.argv.indexOf("--") : process.argv.length;
const { positionals, values } = parseArgs({ args: process.argv.slice(2, split), options: { token: { type: "string" } }, allowPositionals: true });
const [url] = positionals;
const { token } = values;
const input = process.argv.slice(split + 1);
if (url === undefined) throw new Error("The WHIP endpoint is missing: give its URL");
const SSRC = 0x5eed;

const peer = new datachannel.PeerConnection("whip", { iceServers: [] });
const media = new datachannel.Video("0", "SendOnly");
media.addH264Codec(PAYLOAD_TYPE, H264);
media.addSSRC(SSRC, "libdatachannel");
const track = peer.addTrack(media);
track.setMediaHandler(new datachannel.RtcpNackResponder());

const end = await openSession(peer, url, token);

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
await end();
datachannel.cleanup();
console.log(`sent ${sent}`);
process.exit(0);
