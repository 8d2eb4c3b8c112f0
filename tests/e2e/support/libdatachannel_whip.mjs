// Sends H.264 that ffmpeg makes to a WHIP endpoint by libdatachannel, the WebRTC stack of OBS.
//
//   node libdatachannel_whip.mjs URL [TOKEN]
//
// ffmpeg packetizes (RTP over a local UDP port); libdatachannel has the connection. Prints the connection's states. Ends its
// session on SIGINT.
import { spawn } from "node:child_process";
import dgram from "node:dgram";
import datachannel from "node-datachannel";

const [url, token] = process.argv.slice(2);
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
const encode = "-c:v libx264 -profile:v baseline -preset ultrafast -tune zerolatency -g 60 -b:v 600k -payload_type";
const ffmpeg = spawn(
  "ffmpeg",
  [
    ..."-v error -re -f lavfi -i testsrc2=size=640x360:rate=30 -pix_fmt yuv420p".split(" "),
    ...encode.split(" "),
    `${PAYLOAD_TYPE}`,
    "-f",
    "rtp",
    `rtp://127.0.0.1:${socket.address().port}?pkt_size=1200`,
  ],
  { stdio: ["ignore", "ignore", "inherit"] },
);
let sent = 0;
socket.on("message", (packet) => {
  packet.writeUInt32BE(SSRC, 8);
  if (track.isOpen() && track.sendMessageBinary(packet)) sent += 1;
});
process.on("SIGINT", async () => {
  ffmpeg.kill();
  socket.close();
  await fetch(session, { method: "DELETE", headers });
  peer.close();
  datachannel.cleanup();
  console.log(`sent ${sent}`);
  process.exit(0);
});
