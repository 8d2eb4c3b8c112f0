"""LR/HR luma pairs: clips scaled to an HR size, box-scaled down, coded with VP9 as a browser codes a call, decoded.

Source: NeuroScaler §8 (a network is trained for what the codec leaves). In: the clips of `data.toml` below WINDLASS_CLIPS.
Out: arrays of 8-bit luma, `lr` [frames, H, W] and `hr` [frames, sH, sW], paired by frame number, and for fused models
`twin`, what a subscriber's decoder shows (the example `twin_pictures` of `windlass-lab` makes it).
"""

from __future__ import annotations

import os
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Luma = npt.NDArray[np.uint8]
HERE = Path(__file__).resolve().parent
EVERY = 12  # frames between two that training draws from
LONGEST = 240  # frames of a clip that one draw codes
# Bits for each LR pixel of a training draw's stream, least and most: 60 to 600 kbit/s at the usual sizes.
BITS = {"face": (0.03, 0.22), "screen": (0.01, 0.06)}
# What the twin has had, drawn for each stream: nothing, captured detail in kbit/s @ frames/s, enhanced anchors.
TWINS = ("", "", "", "enhanced=5 late=0", "enhanced=15", "detail=35@1", "detail=50@1", "detail=60@2", "detail=100@2")
# The same for frame networks, which see what a viewer is shown: nothing in half of the draws, or stills up to 4 s old.
STILLS = ("detail=15@0.25", "detail=20@0.5", "detail=30@0.5", "detail=30@1", "detail=40@1")
VIEWERS = ("",) * len(STILLS) + STILLS
# Standard deviation, in LR samples, of the blur that makes a sharp clip one of a soft camera, least and most.
BLUR = (0.25, 0.8)


@dataclass(frozen=True)
class Variant:
    """One HR size of a clip at one bit rate of its LR stream, and what the twin has had."""

    clip: str
    kind: str
    role: str
    width: int
    height: int
    kbps: int
    scale: int = 2
    twin: str = ""

    @property
    def label(self) -> str:
        """Such as `d13 320x180@150`: clip, LR size and kbit/s, then what the twin has had."""
        name = f"{self.clip} {self.width // self.scale}x{self.height // self.scale}@{self.kbps}"
        return f"{name} {self.twin}".strip()


@dataclass(frozen=True)
class Pairs:
    """Sampled frames of a variant; `twin` where the tool made them."""

    lr: Luma
    hr: Luma
    twin: Luma | None


def clips_folder() -> Path:
    """The folder of the clips: WINDLASS_CLIPS, or `../shared/clips` beside the repository (docs/CONTRIBUTING.md, *Clips*)."""
    default = HERE.parent.parent / "shared" / "clips"
    return Path(os.environ.get("WINDLASS_CLIPS", default)).resolve()


def find(clip: dict[str, Any], folder: Path | None = None) -> Path | None:
    """The clip's file, where it is there."""
    path = (folder or clips_folder()) / clip["file"]
    return path if path.exists() else None


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


def twin_tool() -> list[str]:
    """The command that plays streams: WINDLASS_TWIN_PICTURES, or the example through cargo."""
    given = os.environ.get("WINDLASS_TWIN_PICTURES")
    if given:
        return [given]
    manifest = str(HERE.parent / "Cargo.toml")
    example = ["-p", "windlass-lab", "--example", "twin_pictures", "--"]
    return ["cargo", "run", "-q", "--release", "--manifest-path", manifest, *example]


def load_list(path: Path = HERE / "data.toml") -> list[dict[str, Any]]:
    """The clip entries of the data list."""
    with path.open("rb") as handle:
        return tomllib.load(handle)["clip"]


def size_of(text: str) -> tuple[int, int]:
    """Width and height of `WxH`."""
    width, height = (int(v) for v in text.split("x"))
    return width, height


def read_i420(
    path: Path, clip: dict[str, Any], width: int, height: int, start: int = 0, most: int | None = None, blur: float = 0
) -> tuple[npt.NDArray[np.uint8], float]:
    """Frames of a clip from about `start` on, cropped and scaled (never up), as rows of I420 bytes, and their rate.

    `blur`: standard deviation of a Gaussian blur of the scaled frames, in samples of luma.
    """
    rate = float(clip.get("rate", clip.get("fps", 30)))
    exe = ffmpeg_with()
    if exe is None:
        raise RuntimeError("no ffmpeg found: install it or set WINDLASS_FFMPEG")
    filters = []
    if "fps" in clip:
        filters.append(f"fps={clip['fps']}")
    if "crop" in clip:
        filters.append(f"crop={clip['crop']}")
        crop_width, crop_height = (int(v) for v in clip["crop"].split(":")[:2])
        if width > crop_width or height > crop_height:
            raise ValueError(f"{clip['name']}: {width}x{height} is above the crop {crop_width}x{crop_height}")
    filters.append(f"scale={width}:{height}:flags=bicubic+accurate_rnd")
    if blur:
        filters.append(f"gblur=sigma={blur:.2f}:planes=1")
    count = min(clip["frames"] - start, most or clip["frames"])
    out = ["-frames:v", str(count), "-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-f", "rawvideo", "-"]
    seek = ["-ss", f"{start / rate:.3f}"] if start else []
    raw = run([exe, "-v", "error", *seek, "-i", str(path), "-vf", ",".join(filters), *out])
    frames = np.frombuffer(raw, np.uint8).reshape(-1, width * height * 3 // 2)
    return frames, rate


def luma_of(frames: npt.NDArray[np.uint8], width: int, height: int) -> Luma:
    """The luma of rows of I420 bytes."""
    return frames[:, : width * height].reshape(-1, height, width)


def box_down(plane: Luma, scale: int) -> Luma:
    """Means of scale × scale samples, rounded half up, over the last two axes."""
    *lead, height, width = plane.shape
    blocks = plane.reshape(*lead, height // scale, scale, width // scale, scale)
    total = blocks.sum(axis=(-3, -1), dtype=np.uint32)
    return ((total + scale * scale // 2) // (scale * scale)).astype(np.uint8)


def down_i420(frames: npt.NDArray[np.uint8], width: int, height: int, scale: int) -> bytes:
    """The I420 frames scaled down (both sides are multiples of twice the scale)."""
    count, luma = len(frames), width * height
    planes = [luma_of(frames, width, height)]
    for at in (luma, luma + luma // 4):
        planes.append(frames[:, at : at + luma // 4].reshape(count, height // 2, width // 2))
    return np.concatenate([box_down(p, scale).reshape(count, -1) for p in planes], axis=1).tobytes()


def through_vp9(i420: bytes, width: int, height: int, fps: float, kbps: int, screen: bool) -> Luma:
    """Codes the frames with libvpx's real-time settings of a browser (one keyframe, CBR) and decodes their luma."""
    exe = ffmpeg_with()
    size = f"{width}x{height}"
    raw = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", size, "-r", str(fps), "-i", "-"]
    speed = "5" if width * height <= 352 * 288 else "7"
    rate = ["-b:v", f"{kbps}k", "-minrate", f"{kbps}k", "-maxrate", f"{kbps}k", "-bufsize", f"{kbps}k"]
    mode = ["-deadline", "realtime", "-cpu-used", speed, "-lag-in-frames", "0", "-auto-alt-ref", "0", "-aq-mode", "3"]
    limits = ["-g", "99999", "-qmin", "8" if screen else "2", "-qmax", "52", "-undershoot-pct", "50"]
    limits += ["-overshoot-pct", "50", "-tune-content", "screen" if screen else "default", "-threads", "1"]
    coded = run([exe, "-v", "error", *raw, "-c:v", "libvpx-vp9", *mode, *rate, *limits, "-f", "ivf", "-"], i420)
    decode = ["-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-f", "rawvideo", "-"]
    data = np.frombuffer(run([exe, "-v", "error", "-f", "ivf", "-i", "-", *decode], coded), np.uint8)
    chroma = 2 * ((width + 1) // 2) * ((height + 1) // 2)
    frames = data.reshape(-1, width * height + chroma)
    return np.ascontiguousarray(frames[:, : width * height]).reshape(-1, height, width)


def pairs_of(variant: Variant, frames: npt.NDArray[np.uint8], fps: float, first: int, every: int, fused: bool) -> Pairs:
    """Codes the frames of a variant and gives every `every`-th from `first` on."""
    width, height, scale = variant.width, variant.height, variant.scale
    low = (height // scale, width // scale)
    hr = luma_of(frames, width, height)[first::every]
    screen = variant.kind == "screen"
    if not fused:
        lr = through_vp9(down_i420(frames, width, height, scale), low[1], low[0], fps, variant.kbps, screen)
        return Pairs(lr[first::every], hr, None)
    words = [f"size={width}x{height}", f"kbps={variant.kbps}", f"fps={fps}", f"scale={scale}"]
    words += [f"screen={int(screen)}", f"first={first}", f"every={every}", *variant.twin.split()]
    raw = run([*twin_tool(), *words], frames.tobytes())
    rows = np.frombuffer(raw, np.uint8).reshape(len(hr), -1)
    area = low[0] * low[1]
    return Pairs(rows[:, :area].reshape(-1, *low), hr, rows[:, area:].reshape(-1, height, width))


def measured(
    clip: dict[str, Any], path: Path, scale: int, every: int, twins: list[str]
) -> Iterator[tuple[Variant, Pairs]]:
    """The sizes and bit rates that a clip is measured at, with each of the twins, or none."""
    for row in clip["sizes"]:
        width, height = fitting(*size_of(row["hr"]), scale)
        frames, fps = read_i420(path, clip, width, height)
        for kbps in row["kbps"]:
            for twin in twins or [""]:
                names = (clip["name"], clip["kind"], clip["role"])
                variant = Variant(*names, width, height, kbps, scale, twin)
                yield variant, pairs_of(variant, frames, fps, 0, every, bool(twins))


def fitting(width: int, height: int, scale: int) -> tuple[int, int]:
    """The largest sides not above these that a coder of pictures `scale` times smaller takes."""
    unit = 2 * scale
    return width // unit * unit, height // unit * unit


@dataclass(frozen=True)
class Draws:
    """What is drawn of each clip.

    `number`: the streams. `twins`: what the twin may have had; without any, there is no twin. `enhancer`: the network
    of the enhanced anchors, where it is not the built-in one. `soft`: share of the streams of faces that are blurred,
    as many cameras are soft.
    """

    scale: int
    number: int
    twins: Sequence[str]
    enhancer: Path | None
    soft: float


def drawn(clip: dict[str, Any], path: Path, draws: Draws, rng: np.random.Generator) -> Iterator[tuple[Variant, Pairs]]:
    """Streams of a clip as training sees it: size, part, bit rate and what the twin has had, all drawn at random."""
    scale, twins = draws.scale, draws.twins
    most = size_of(clip["most"])
    least, range_of_bits = min(1.0, max(0.4, 96 * scale / min(most))), BITS[clip["kind"]]
    for _ in range(draws.number):
        share = float(rng.uniform(least, 1.0))
        width, height = fitting(round(share * most[0]), round(share * most[1]), scale)
        start = int(rng.integers(max(1, clip["frames"] - LONGEST + 1)))
        # Nothing is drawn where it is not asked for: trainings without it keep their streams.
        blurred = draws.soft > 0 and clip["kind"] == "face" and rng.random() < draws.soft
        blur = float(rng.uniform(*BLUR)) * scale if blurred else 0
        frames, fps = read_i420(path, clip, width, height, start, LONGEST, blur)
        bits = float(np.exp(rng.uniform(*np.log(range_of_bits))))
        kbps = int(np.clip(bits * width * height / scale**2 * fps / 1000, 40, 700))
        twin = str(rng.choice(twins)) if twins else ""
        if twin.startswith("enhanced") and draws.enhancer:
            twin += f" model={draws.enhancer}"
        elif twin.startswith("enhanced") and scale != 2:
            twin = ""  # the built-in model has scale 2
        variant = Variant(clip["name"], clip["kind"], clip["role"], width, height, kbps, scale, twin)
        yield variant, pairs_of(variant, frames, fps, int(rng.integers(EVERY)), EVERY, bool(twins))


def described(path: Path) -> dict[str, Any]:
    """An operator's own clip, as the data list would describe it: whole frames, at most 720 lines."""
    probe = run(
        [ffmpeg_with() or "ffmpeg", "-v", "error", "-i", str(path), "-frames:v", "1", "-f", "yuv4mpegpipe", "-"]
    )
    words = {word[:1]: word[1:] for word in probe[: probe.index(b"\n")].decode().split()[1:]}
    width, height = int(words["W"]), int(words["H"])
    over, under = (int(v) for v in words["F"].split(":"))
    share = min(1.0, 720 / height)
    packets = run(
        [
            ffmpeg_with() or "ffmpeg",
            "-v",
            "error",
            "-i",
            str(path),
            "-map",
            "0:v:0",
            "-c",
            "copy",
            "-f",
            "framecrc",
            "-",
        ]
    )
    most = f"{round(share * width)}x{round(share * height)}"
    names = {"name": path.stem, "file": path.name, "role": "train", "kind": "face"}
    names["frames"] = sum(not line.startswith(b"#") for line in packets.splitlines())
    return names | {"rate": over / under, "crop": f"{width}:{height}:0:0", "most": most}


def run(command: list[str], data: bytes | None = None) -> bytes:
    """Runs a command over bytes; its error text becomes the exception's."""
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.decode(errors='replace').strip()[-400:]}")
    return done.stdout
