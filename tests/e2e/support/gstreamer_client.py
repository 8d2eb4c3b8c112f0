"""Sends a drawn picture and a tone to a WHIP endpoint by GStreamer's webrtcbin (1.22 or later), or plays what a WHEP
endpoint gives.

    python3 gstreamer_client.py whip|whep http://localhost:7880/whip/ROOM [TOKEN [vp9|h264 [ec|rsa]]]

A player prints a line a second: the frames of video, the buffers of sound that were decoded, and the picture's width.
webrtcbin makes RSA certificates, which Windlass's DTLS cannot check. So it is given an ECDSA one; and as it then takes
certificate and key together for the fingerprint in its offer, that is written anew. Its ICE agent keeps connections alive
by indications, which say nothing of consent (RFC 7675): it is told to ask instead.
"""
import base64
import hashlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request

import gi

for name in ("Gst", "GstSdp", "GstWebRTC"):
    gi.require_version(name, "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

# Windlass forwards VP9 of profile 0 (8 bits, 4:2:0), baseline H.264 and Opus. It asks for key frames when they are needed.
CODED = {
    "vp9": """vp9enc deadline=1 cpu-used=8 target-bitrate=500000 keyframe-max-dist=300
  ! rtpvp9pay picture-id-mode=15-bit ! application/x-rtp,media=video,encoding-name=VP9,payload=98,clock-rate=90000""",
    "h264": """openh264enc bitrate=500000 gop-size=300 complexity=low ! video/x-h264,profile=constrained-baseline ! h264parse
  ! rtph264pay config-interval=-1 aggregate-mode=zero-latency
  ! application/x-rtp,media=video,encoding-name=H264,payload=98,clock-rate=90000,packetization-mode=(string)1""",
}
RTC = "webrtcbin name=rtc bundle-policy=max-bundle"
SENDING = RTC + """
videotestsrc is-live=true pattern=ball ! video/x-raw,format=I420,width=320,height=180,framerate=30/1 ! CODED ! rtc.
audiotestsrc is-live=true freq=440 ! audioconvert ! audioresample ! opusenc ! rtpopuspay
  ! application/x-rtp,media=audio,encoding-name=OPUS,payload=111,clock-rate=48000 ! rtc.
"""
# What a player asks for, and how it decodes it.
PLAYED = {
    "vp9": "application/x-rtp,media=video,encoding-name=VP9,payload=98,clock-rate=90000",
    "h264": """application/x-rtp,media=video,encoding-name=H264,payload=98,clock-rate=90000,packetization-mode=(string)1,
  profile-level-id=(string)42e01f""",
    "opus": "application/x-rtp,media=audio,encoding-name=OPUS,payload=111,clock-rate=48000,encoding-params=(string)2",
}
DECODED = {
    "VP9": "rtpvp9depay ! vp9dec",
    "H264": "rtph264depay ! h264parse ! openh264dec",
    "OPUS": "rtpopusdepay ! opusdec",
}


KEYS = {"ec": "ec -pkeyopt ec_paramgen_curve:P-256", "rsa": "rsa:2048"}


def certificate(key):
    """A certificate with a key of this kind as PEM, and its fingerprint."""
    with tempfile.TemporaryDirectory() as folder:
        command = f"openssl req -x509 -newkey {KEYS[key]} -nodes -days 30 -subj /CN=WHIP"
        key, cert = f"{folder}/key.pem", f"{folder}/cert.pem"
        subprocess.run([*command.split(), "-keyout", key, "-out", cert], check=True, stderr=subprocess.DEVNULL)
        with open(cert) as c, open(key) as k:
            cert, key = c.read(), k.read()
    der = base64.b64decode("".join(line for line in cert.splitlines() if not line.startswith("-")))
    return cert + key, ":".join(f"{byte:02X}" for byte in hashlib.sha256(der).digest())


class Client:
    """One session of WHIP or WHEP."""

    def __init__(self, way, endpoint, token=None, codec="vp9", key="ec"):
        self.endpoint, self.token, self.session = endpoint, token, None
        self.pem, self.fingerprint = certificate(key)
        self.loop = GLib.MainLoop()
        sends = way == "whip"
        self.pipeline = Gst.parse_launch(SENDING.replace("CODED", CODED[codec])) if sends else Gst.Pipeline()
        if not sends:
            self.pipeline.add(Gst.parse_launch(RTC))
        self.rtc = self.pipeline.get_by_name("rtc")
        self.rtc.connect("deep-element-added", self.added)
        self.rtc.connect("on-negotiation-needed", lambda _: threading.Thread(target=self.offer).start())
        self.rtc.connect("notify::ice-gathering-state", self.gathered)
        self.rtc.connect("notify::connection-state", self.changed)
        # Held on to: the getters give no reference of their own in 1.22.
        self.ice = self.rtc.get_property("ice-agent")
        self.agent = self.ice.get_property("agent")
        self.agent.set_property("keepalive-conncheck", True)
        if sends:
            for index in range(2):
                transceiver = self.rtc.emit("get-transceiver", index)
                transceiver.set_property("direction", GstWebRTC.WebRTCRTPTransceiverDirection.SENDONLY)
        else:
            self.play(codec)

    def play(self, codec):
        """Asks for a video and a sound, and counts what is decoded of them."""
        self.counts = {"video": 0, "audio": 0, "width": 0}
        self.rtc.connect("pad-added", self.decode)
        for name in (codec, "opus"):
            caps = Gst.Caps.from_string(PLAYED[name])
            self.rtc.emit("add-transceiver", GstWebRTC.WebRTCRTPTransceiverDirection.RECVONLY, caps)
        GLib.timeout_add_seconds(1, self.tell)

    def decode(self, _rtc, pad):
        if pad.direction != Gst.PadDirection.SRC:
            return
        received = pad.get_current_caps().get_structure(0)
        kind, codec = received["media"], received["encoding-name"]
        chain = Gst.parse_bin_from_description(f"{DECODED[codec]} ! fakesink name=end sync=false", True)
        self.pipeline.add(chain)
        chain.get_by_name("end").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, self.count, kind)
        chain.sync_state_with_parent()
        pad.link(chain.get_static_pad("sink"))

    def count(self, pad, _info, kind):
        self.counts[kind] += 1
        if kind == "video":
            self.counts["width"] = pad.get_current_caps().get_structure(0)["width"]
        return Gst.PadProbeReturn.OK

    def tell(self):
        print("got", self.counts["video"], self.counts["audio"], self.counts["width"], flush=True)
        return True

    def run(self):
        """Sends or plays until it is interrupted, or refused."""
        for number in (signal.SIGINT, signal.SIGTERM):
            GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, number, self.loop.quit)
        self.pipeline.set_state(Gst.State.PLAYING)
        self.loop.run()
        if self.session is not None:
            self.end()
        self.pipeline.set_state(Gst.State.NULL)

    def added(self, _bin, _parent, element):
        factory = element.get_factory()
        if factory is not None and factory.get_name() == "dtlsdec":
            element.set_property("pem", self.pem)

    def offer(self):
        promise = Gst.Promise.new()
        self.rtc.emit("create-offer", None, promise)
        promise.wait()
        reply = promise.get_reply()  # the offer is its property
        self.rtc.emit("set-local-description", reply["offer"], None)

    def gathered(self, *_):
        if self.rtc.get_property("ice-gathering-state") == GstWebRTC.WebRTCICEGatheringState.COMPLETE:
            threading.Thread(target=self.post).start()

    def post(self):
        sdp = self.rtc.get_property("local-description").sdp.as_text()
        sdp = re.sub(r"(a=fingerprint:sha-256) \S+", rf"\1 {self.fingerprint}", sdp)
        try:
            answer = self.ask("POST", self.endpoint, sdp)
        except urllib.error.HTTPError as error:
            print("refused", error.code, error.read().decode(), flush=True)
            GLib.idle_add(self.loop.quit)
            return
        self.session = urllib.request.urljoin(self.endpoint, answer.headers["location"])
        _, message = GstSdp.SDPMessage.new_from_text(answer.read().decode())
        description = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, message)
        self.rtc.emit("set-remote-description", description, None)

    def end(self):
        try:
            self.ask("DELETE", self.session)
        except urllib.error.HTTPError as error:
            print("ended before", error.code, flush=True)

    def ask(self, method, url, body=None):
        headers = {"content-type": "application/sdp"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        data = None if body is None else body.encode()
        return urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method))

    def changed(self, *_):
        print(self.rtc.get_property("connection-state").value_nick, flush=True)


Gst.init(None)
Client(*sys.argv[1:]).run()
