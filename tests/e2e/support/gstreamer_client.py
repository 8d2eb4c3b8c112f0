"""Sends a drawn picture and a tone by GStreamer's whipclientsink, or plays what a WHEP endpoint gives by its whepsrc.

    python3 gstreamer_client.py whip|whep http://localhost:7880/whip/ROOM [TOKEN [vp9|h264]]

GST_PLUGIN_PATH names the folder of GStreamer's Rust plugins, where the distribution has none. A player prints a line a
second: the frames of video, the buffers of sound that were decoded, and the picture's width.
"""
import signal
import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

# I420: `vp9enc` makes VP9 of other profiles from other formats, and those are not forwarded.
SENDING = """whipclientsink name=rtc video-caps=video/x-{codec}
  videotestsrc is-live=true pattern=ball ! video/x-raw,format=I420,width=320,height=180,framerate=30/1 ! queue ! rtc.video_0
  audiotestsrc is-live=true freq=440 ! audioconvert ! audioresample ! queue ! rtc.audio_0"""
PLAYING = "whepsrc name=rtc video-caps=application/x-rtp,media=video,encoding-name={codec},payload=98,clock-rate=90000{more}"
# H.264 without these is of packetization mode 0 (RFC 6184 §6.2), which no browser sends.
MORE = {"vp9": "", "h264": ",packetization-mode=(string)1,profile-level-id=(string)42e01f"}
DECODED = {
    "VP9": "rtpvp9depay ! vp9dec",
    "H264": "rtph264depay ! h264parse ! openh264dec",
    "OPUS": "rtpopusdepay ! opusdec",
}


class Client:
    """One session of WHIP or WHEP."""

    def __init__(self, way, endpoint, token="", codec="vp9"):
        sends = way == "whip"
        self.pipeline = Gst.parse_launch(SENDING.format(codec=codec) if sends else PLAYING.format(codec=codec.upper(), more=MORE[codec]))
        self.loop = GLib.MainLoop()
        rtc = self.pipeline.get_by_name("rtc") if sends else self.pipeline
        session = rtc.get_property("signaller") if sends else rtc
        session.set_property(f"{way}-endpoint", endpoint)
        if token:
            session.set_property("auth-token", token)
        if not sends:
            self.pipeline = Gst.Pipeline()
            self.pipeline.add(rtc)
            self.counts = {"video": 0, "audio": 0, "width": 0}
            rtc.connect("pad-added", self.linked)
            GLib.timeout_add_seconds(1, self.tell)
        bus = self.pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message::error", self.failed)

    def linked(self, _rtc, pad):
        # What it is, its first event of capabilities tells.
        pad.add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, self.decode)

    def decode(self, pad, info):
        event = info.get_event()
        if event.type != Gst.EventType.CAPS:
            return Gst.PadProbeReturn.OK
        received = event.parse_caps().get_structure(0)
        kind, codec = received["media"], received["encoding-name"]
        chain = Gst.parse_bin_from_description(f"queue ! {DECODED[codec]} ! fakesink name=end sync=false", True)
        self.pipeline.add(chain)
        chain.get_by_name("end").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, self.count, kind)
        chain.sync_state_with_parent()
        pad.link(chain.get_static_pad("sink"))
        return Gst.PadProbeReturn.REMOVE

    def count(self, pad, _info, kind):
        self.counts[kind] += 1
        if kind == "video":
            self.counts["width"] = pad.get_current_caps().get_structure(0)["width"]
        return Gst.PadProbeReturn.OK

    def tell(self):
        print("got", self.counts["video"], self.counts["audio"], self.counts["width"], flush=True)
        return True

    def failed(self, _bus, message):
        print("failed", *message.parse_error(), flush=True)
        self.loop.quit()

    def run(self):
        """Sends or plays until it is interrupted, or fails. The element ends its session when it stops."""
        for number in (signal.SIGINT, signal.SIGTERM):
            GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, number, self.loop.quit)
        self.pipeline.set_state(Gst.State.PLAYING)
        self.loop.run()
        self.pipeline.set_state(Gst.State.NULL)


Gst.init(None)
Client(*sys.argv[1:]).run()
