"""The picture that Python's encoders send."""
import av

WIDTH, HEIGHT, SQUARE = 640, 360, 80


def square(at):
    """A bright square, `at` pixels from the left edge, over a ramp."""
    frame = av.VideoFrame(WIDTH, HEIGHT, "yuv420p")
    luma, *chroma = frame.planes
    at %= WIDTH - SQUARE
    ramp = bytes(40 + x // 5 for x in range(WIDTH)).ljust(luma.line_size, b"\0")
    bright = ramp[:at] + b"\xeb" * SQUARE + ramp[at + SQUARE :]
    luma.update(ramp * 100 + bright * SQUARE + ramp * (HEIGHT - 100 - SQUARE))
    for plane in chroma:
        plane.update(b"\x80" * plane.buffer_size)
    return frame
