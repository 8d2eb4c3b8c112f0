"""Renders pages of text as a shared screen would show them: `python models/pages.py FOLDER/windlass__pages.mp4`.

Out: 300 frames of 1280×720 at 10 a second, coded without loss: headings, paragraphs, code, tables and boxes in the
DejaVu fonts, light and dark, that stand still for seconds, scroll, and give way to the next page.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import pairs

WIDTH, HEIGHT, FRAMES = 1280, 720, 300
FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSerif.ttf", "DejaVuSansMono.ttf", "DejaVuSansCondensed.ttf")


def words(rng: np.random.Generator) -> list[str]:
    """What pages are filled with: letters as often as in English, digits, and signs of programs."""
    signs = list("eeeeeetttttaaaaooooiiiinnnnsssshhhrrrddllcumwfgypbvkjxqzETAOINSHR0123456789().,:;=+-/_[]{}\"'")
    return ["".join(rng.choice(signs, int(rng.integers(1, 11)))) for _ in range(3000)]


def page(rng: np.random.Generator, stock: list[str]) -> Image.Image:
    """A page three screens tall."""
    dark = rng.random() < 0.35
    low, high = sorted(int(v) for v in rng.choice(np.arange(0, 60), 2))
    back, ink = ((low, high, low + 20), (225, 228, 220)) if dark else ((255 - low, 255 - high, 250), (low, high, 30))
    image = Image.new("RGB", (WIDTH, 3 * HEIGHT), back)
    draw = ImageDraw.Draw(image)
    y = 20
    while y < 3 * HEIGHT - 60:
        font = ImageFont.truetype(str(rng.choice(FONTS)), int(rng.choice([11, 12, 13, 14, 16, 18, 22, 30, 44])))
        left = int(rng.integers(10, 300))
        colour = tuple(int(v) for v in rng.integers(0, 256, 3)) if rng.random() < 0.3 else ink
        if rng.random() < 0.2:
            box = [left - 6, y - 4, left + int(rng.integers(100, 900)), y + int(rng.integers(30, 160))]
            draw.rectangle(box, outline=colour, fill=tuple(int(v) for v in rng.integers(0, 256, 3)))
        for _ in range(int(rng.integers(1, 7))):
            line = " ".join(rng.choice(stock, int(rng.integers(2, 16))))
            draw.text((left, y), line, colour, font)
            y += round(font.size * 1.35)
        y += int(rng.integers(6, 40))
    return image


def main(path: Path) -> None:
    """Renders and codes."""
    rng = np.random.default_rng(11)
    stock = words(rng)
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{WIDTH}x{HEIGHT}", "-r", "10", "-i", "-"]
    exe = pairs.ffmpeg_with() or "ffmpeg"
    command = [exe, "-v", "error", "-y", *raw, "-pix_fmt", "yuv420p", "-c:v", "libx264", "-qp", "1", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as coder:
        assert coder.stdin is not None
        left, at, step = 0, 0, 0
        shown = page(rng, stock)
        for _ in range(FRAMES):
            if left == 0:
                if rng.random() < 0.6:
                    shown, at = page(rng, stock), 0
                step = int(rng.choice([0, 0, 3, 8, 17]))
                left = int(rng.integers(10, 30))
            at = min(at + step, 2 * HEIGHT)
            left -= 1
            coder.stdin.write(shown.crop((0, at, WIDTH, at + HEIGHT)).tobytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
