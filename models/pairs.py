"""LR/HR luma pairs: clips scaled to an HR size, halved, coded with VP9 as a browser codes a call, decoded.

Source: seed 000 §6.1 (training on what the codec leaves). In: the clips of `data.toml` below WINDLASS_CLIPS.
Out: arrays of 8-bit luma, `lr` [frames, H, W] and `hr` [frames, 2H, 2W], paired by frame number.
"""

from __future__ import annotations

import os
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Luma = npt.NDArray[np.uint8]
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Variant:
    """One HR size of a clip at one bit rate of its LR stream."""

    clip: str
    kind: str
    role: str
    width: int
    height: int
    kbps: int
    stride: int

    @property
    def label(self) -> str:
        """Such as `d13 320x180@150`: clip, LR size and kbit/s."""
        return f"{self.clip} {self.width // 2}x{self.height // 2}@{self.kbps}"


def clips_folder() -> Path:
    """The folder of the clips: WINDLASS_CLIPS, or `../shared/clips` beside the repository."""
    default = HERE.parent.parent / "shared" / "clips"
    return Path(os.environ.get("WINDLASS_CLIPS", default)).resolve()


def ffmpeg_with(filter_name: str | None = None) -> str | None:
    """An ffmpeg that has the filter: WINDLASS_FFMPEG, the one on the path, or that of imageio-ffmpeg."""
    candidates = [os.environ.get("WINDLASS_FFMPEG"), "ffmpeg"]
    try:
        import imageio_ffmpeg

        candidates.append(imageio_ffmpeg.get_ffmpeg_exe())
    except ImportError:
        pass
    for exe in filter(None, candidates):
        try:
            listing = subprocess.run([exe, "-hide_banner", "-filters"], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        if filter_name is None or f" {filter_name} " in listing.stdout:
            return exe
    return None


def load_list(path: Path = HERE / "data.toml") -> list[dict[str, Any]]:
    """The clip entries of the data list."""
    with path.open("rb") as handle:
        return tomllib.load(handle)["clip"]


def read_i420(exe: str, clip: dict[str, Any], width: int, height: int) -> tuple[npt.NDArray[np.uint8], float]:
    """All frames of a clip, cropped and scaled (never up), as rows of I420 bytes, and their rate per second."""
    path = clips_folder() / clip["file"]
    crop_width, crop_height = (int(v) for v in clip["crop"].split(":")[:2])
    if width > crop_width or height > crop_height:
        raise ValueError(f"{clip['name']}: {width}x{height} is above the crop {crop_width}x{crop_height}")
    filters = [f"crop={clip['crop']}"]
    if "fps" in clip:
        filters.insert(0, f"fps={clip['fps']}")
    filters.append(f"scale={width}:{height}:flags=bicubic+accurate_rnd")
    out = ["-frames:v", str(clip["frames"]), "-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-f", "rawvideo", "-"]
    raw = _run([exe, "-v", "error", "-i", str(path), "-vf", ",".join(filters), *out])
    frames = np.frombuffer(raw, np.uint8).reshape(-1, width * height * 3 // 2)
    return frames, float(clip.get("fps", 30))


def box_half(plane: Luma) -> Luma:
    """Means of 2×2 samples, rounded as libyuv's box filter rounds, over the last two axes."""
    wide = plane.astype(np.uint16)
    total = wide[..., 0::2, 0::2] + wide[..., 0::2, 1::2] + wide[..., 1::2, 0::2] + wide[..., 1::2, 1::2]
    return ((total + 2) >> 2).astype(np.uint8)


def half_i420(frames: npt.NDArray[np.uint8], width: int, height: int) -> bytes:
    """The I420 frames at half width and height (both multiples of 4)."""
    count, luma = len(frames), width * height
    planes = [frames[:, :luma].reshape(count, height, width)]
    for at in (luma, luma + luma // 4):
        planes.append(frames[:, at : at + luma // 4].reshape(count, height // 2, width // 2))
    return np.concatenate([box_half(p).reshape(count, -1) for p in planes], axis=1).tobytes()


def through_vp9(exe: str, i420: bytes, width: int, height: int, fps: float, kbps: int, screen: bool) -> Luma:
    """Codes the frames with libvpx's real-time settings of a browser (one keyframe, CBR) and decodes their luma."""
    size = f"{width}x{height}"
    raw = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", size, "-r", str(fps), "-i", "-"]
    speed = "5" if width * height <= 352 * 288 else "7"
    rate = ["-b:v", f"{kbps}k", "-minrate", f"{kbps}k", "-maxrate", f"{kbps}k", "-bufsize", f"{kbps}k"]
    mode = ["-deadline", "realtime", "-cpu-used", speed, "-lag-in-frames", "0", "-auto-alt-ref", "0", "-aq-mode", "3"]
    limits = ["-g", "99999", "-qmin", "8" if screen else "2", "-qmax", "52", "-undershoot-pct", "50"]
    limits += ["-overshoot-pct", "50", "-tune-content", "screen" if screen else "default", "-threads", "1"]
    coded = _run([exe, "-v", "error", *raw, "-c:v", "libvpx-vp9", *mode, *rate, *limits, "-f", "ivf", "-"], i420)
    decode = ["-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-f", "rawvideo", "-"]
    data = np.frombuffer(_run([exe, "-v", "error", "-f", "ivf", "-i", "-", *decode], coded), np.uint8)
    chroma = 2 * ((width + 1) // 2) * ((height + 1) // 2)
    frames = data.reshape(-1, width * height + chroma)
    return np.ascontiguousarray(frames[:, : width * height]).reshape(-1, height, width)


def variants(clip: dict[str, Any]) -> Iterator[tuple[Variant, Luma, Luma]]:
    """Every size and bit rate of a clip: what it is, LR luma, HR luma."""
    exe = ffmpeg_with()
    if exe is None:
        raise RuntimeError("no ffmpeg found: install it or set WINDLASS_FFMPEG")
    for row in clip["sizes"]:
        width, height = (int(v) for v in row["hr"].split("x"))
        frames, fps = read_i420(exe, clip, width, height)
        hr = frames[:, : width * height].reshape(-1, height, width)
        low = half_i420(frames, width, height)
        for kbps in row["kbps"]:
            lr = through_vp9(exe, low, width // 2, height // 2, fps, kbps, clip["kind"] == "screen")
            if len(lr) != len(hr):
                raise RuntimeError(f"{clip['name']}: {len(lr)} frames decoded of {len(hr)}")
            yield Variant(clip["name"], clip["kind"], clip["role"], width, height, kbps, clip["stride"]), lr, hr


def _run(command: list[str], data: bytes | None = None) -> bytes:
    """Runs a command over bytes; its error text becomes the exception's."""
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.decode(errors='replace').strip()[-400:]}")
    return done.stdout
