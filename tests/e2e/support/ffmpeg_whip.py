"""Sends a drawn picture and a tone by FFmpeg's WHIP muxer, in H.264 and Opus, until SIGINT.

    python ffmpeg_whip.py URL [TOKEN]

The package `av` 18 brings FFmpeg 8.1, which has the muxer, libx264 and libopus; `pip install aiortc` brings both it and
`cryptography`. Debian 12 has FFmpeg 5.1, without the muxer.
"""
import datetime
import math
import signal
import struct
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import av
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

WIDTH, HEIGHT, RATE, SQUARE = 640, 360, 30, 80
# Opus takes frames of 20 ms.
SAMPLES, SAMPLE_RATE, TONE_HZ = 960, 48_000, 440


def certificate(folder):
    """Writes a certificate by P-256 and its key. With GnuTLS, FFmpeg makes one by P-224, which the server does not take."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "camera")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number())
    made = made.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=30))
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    pem, pkcs8, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(pem, pkcs8, plain))
    return {"cert_file": str(paths[0]), "key_file": str(paths[1])}


def picture(number):
    """A bright square that moves over a ramp."""
    frame = av.VideoFrame(WIDTH, HEIGHT, "yuv420p")
    luma, *chroma = frame.planes
    at = number * 5 % (WIDTH - SQUARE)
    ramp = bytes(40 + x // 5 for x in range(WIDTH)).ljust(luma.line_size, b"\0")
    bright = ramp[:at] + b"\xeb" * SQUARE + ramp[at + SQUARE :]
    luma.update(ramp * 100 + bright * SQUARE + ramp * (HEIGHT - 100 - SQUARE))
    for plane in chroma:
        plane.update(b"\x80" * plane.buffer_size)
    frame.pts, frame.time_base = number, Fraction(1, RATE)
    return frame


def tone(number):
    frame = av.AudioFrame("s16", "stereo", SAMPLES)
    first = number * SAMPLES
    values = (int(8000 * math.sin(2 * math.pi * TONE_HZ * (first + n) / SAMPLE_RATE)) for n in range(SAMPLES))
    frame.planes[0].update(b"".join(struct.pack("<hh", value, value) for value in values))
    frame.sample_rate, frame.pts, frame.time_base = SAMPLE_RATE, first, Fraction(1, SAMPLE_RATE)
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
        began, pictures, tones = time.monotonic(), 0, 0
        while not is_over():
            now = time.monotonic() - began
            while tones * SAMPLES / SAMPLE_RATE <= now:
                session.mux(audio.encode(tone(tones)))
                tones += 1
            while pictures / RATE <= now:
                session.mux(video.encode(picture(pictures)))
                pictures += 1
            time.sleep(0.005)


if __name__ == "__main__":
    ended = []
    signal.signal(signal.SIGINT, lambda *_: ended.append(True))
    with tempfile.TemporaryDirectory() as folder:
        send(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "", certificate(Path(folder)), lambda: bool(ended))
