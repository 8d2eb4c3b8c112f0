"""Sends a drawn picture and silence by FFmpeg's WHIP muxer, in H.264 and Opus, until SIGINT.

    python ffmpeg_whip.py URL [TOKEN]

The package `av` 18 brings FFmpeg 8.1, which has the muxer, libx264 and libopus. Debian 12
has FFmpeg 5.1, without the muxer.
"""
import signal
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import av
from square import HEIGHT, WIDTH, square

RATE = 30
# Opus takes frames of 20 ms.
SAMPLES, SAMPLE_RATE = 960, 48_000


def certificate(folder):
    """Writes a certificate by P-256 and its key. With GnuTLS, FFmpeg makes one by P-224, which the server does not take."""
    files = {"cert_file": str(folder / "cert.pem"), "key_file": str(folder / "key.pem")}
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=camera".split()
    made += ["-keyout", files["key_file"], "-out", files["cert_file"]]
    subprocess.run(made, check=True, stderr=subprocess.DEVNULL)
    return files


def picture(number):
    frame = square(5 * number)
    frame.pts, frame.time_base = number, Fraction(1, RATE)
    return frame


def silence(number):
    frame = av.AudioFrame("s16", "stereo", SAMPLES)
    frame.planes[0].update(bytes(frame.planes[0].buffer_size))
    frame.sample_rate, frame.pts, frame.time_base = SAMPLE_RATE, number * SAMPLES, Fraction(1, SAMPLE_RATE)
    return frame


def send(url, token, files, is_over):
    options = files | ({"authorization": token} if token else {})
    with av.open(url, "w", format="whip", options=options) as session:
        video = session.add_stream("libx264", rate=RATE)
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        # No key frame is sent on request, so one comes every two seconds; B-frames are not for WebRTC.
        video.options = {"profile": "baseline", "tune": "zerolatency", "preset": "veryfast", "g": str(2 * RATE)}
        audio = session.add_stream("libopus", rate=SAMPLE_RATE)
        audio.layout = "stereo"
        began, pictures, sounds = time.monotonic(), 0, 0
        while not is_over():
            now = time.monotonic() - began
            while sounds * SAMPLES / SAMPLE_RATE <= now:
                session.mux(audio.encode(silence(sounds)))
                sounds += 1
            while pictures / RATE <= now:
                session.mux(video.encode(picture(pictures)))
                pictures += 1
            time.sleep(0.005)


if __name__ == "__main__":
    ended = []
    signal.signal(signal.SIGINT, lambda *_: ended.append(True))
    with tempfile.TemporaryDirectory() as folder:
        send(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "", certificate(Path(folder)), lambda: bool(ended))
