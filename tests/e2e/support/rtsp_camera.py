"""A camera that is asked for its stream, as IP cameras are: an RTSP server (RFC 2326) of H.264, by GStreamer.

    /usr/bin/python3 rtsp_camera.py PORT

Serves rtsp://127.0.0.1:PORT/stream: 640x360, 30 frames a second, a key frame every two seconds. Prints `listening`,
and `asked` for each client.
"""

import signal
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

DRAWN = "videotestsrc is-live=true pattern=ball ! video/x-raw,format=I420,width=640,height=360,framerate=30/1"
CODED = "openh264enc bitrate=600000 gop-size=60 complexity=low ! video/x-h264,profile=constrained-baseline"
SENT = "h264parse ! rtph264pay name=pay0 pt=96 config-interval=-1"


def main():
    Gst.init(None)
    server = GstRtspServer.RTSPServer(address="127.0.0.1", service=sys.argv[1])
    stream = GstRtspServer.RTSPMediaFactory(shared=True)
    stream.set_launch(f"( {DRAWN} ! {CODED} ! {SENT} )")
    server.get_mount_points().add_factory("/stream", stream)
    server.connect("client-connected", lambda *_: print("asked", flush=True))
    if server.attach(None) == 0:
        sys.exit(f"port {sys.argv[1]} cannot be used: another program has it")
    print("listening", flush=True)
    loop = GLib.MainLoop()
    GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, signal.SIGINT, loop.quit)
    loop.run()


if __name__ == "__main__":
    main()
