"""Measures networks against bicubic, Lanczos and the subscriber's own reconstruction on VP9-coded clips.

In: exported weights, all of one scale, and the clips of `data.toml`. Out: a table (Markdown), or with `--json` one
object, of PSNR-Y, SSIM, SSIMULACRA2 of luma and, where an ffmpeg with libvmaf is found, VMAF and VMAF-NEG, by clip, LR
size, bit rate and what the subscriber's decoder has had (`twin`: nothing, or a captured frame a second). `low_kept` is
the share of low samples that the picture, scaled down, has within a grey level. Frames are paired by number; figures are
means over frames. `lanczos@0.3` is Lanczos, then unsharp masking (5×5 binomial blur, amount 0.3): a gain
in VMAF counts only above it and with a gain in PSNR. `twin` as a method is what the decoder shows without the network.

    python models/evaluate.py models/xs-x2.safetensors models/fused-xs-x2.safetensors --pictures output/crops
    python models/evaluate.py models/xs-x3.safetensors --role train --stride 20 --no-vmaf
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import crops
import metrics
import network
import pairs
import resampling
import ssimulacra2

BINOMIAL = torch.tensor([1.0, 4.0, 6.0, 4.0, 1.0]) / 16.0
TWINS = ("", "detail=50@1")
Row = dict[str, object]


def unsharp(picture: Tensor, amount: float) -> Tensor:
    """Unsharp masking with a 5×5 binomial blur, edges clamped."""
    padded = F.pad(picture, (2, 2, 2, 2), mode="replicate")
    blurred = F.conv2d(F.conv2d(padded, BINOMIAL[None, None, None, :]), BINOMIAL[None, None, :, None])
    return picture + amount * (picture - blurred)


def upscaled(method: str, models: dict[str, tuple], lr: Tensor, twin: Tensor | None, scale: int) -> Tensor:
    """HR luma as 8-bit values (in f32) by a network's name or one of the other methods."""
    name, _, rest = method.partition(" then ")
    if name in models:
        shape, weights = models[name]
        out = network.high(shape, weights, lr, twin if shape.fused else None)
        if rest:
            kernel = resampling.triangle if rest == "bilinear" else resampling.lanczos3
            out = resampling.up(out.round().clamp(0, 255), scale // shape.scale, kernel)
            out = unsharp(out, 0.3) if rest == "lanczos@0.3" else out
    elif method == "twin" and twin is not None:
        out = twin
    else:
        out = resampling.up(lr, scale, resampling.catmull_rom if method == "bicubic" else resampling.lanczos3)
        out = unsharp(out, 0.3) if method == "lanczos@0.3" else out
    return out.round().clamp(0, 255)


def exchanged(detail: Tensor, of: Tensor, scale: int) -> Tensor:
    """A picture whose means over low samples are those `of`; all else is `detail`'s."""
    off = of - F.avg_pool2d(detail, scale)
    return (detail + F.interpolate(off, scale_factor=scale)).round().clamp(0, 255)


def planes(frames: pairs.Luma | None, count: int) -> list[Tensor | None]:
    """Frames one by one, as the networks take them."""
    if frames is None:
        return [None] * count
    return [torch.from_numpy(frame.copy())[None, None].float() for frame in frames]


@torch.inference_mode()
def measure(
    variant: pairs.Variant,
    made: pairs.Pairs,
    models: dict[str, tuple],
    methods: list[str],
    vmaf_exe: str | None,
    pictures: Path | None,
) -> list[Row]:
    """One row per method."""
    wanted, given, twins = (planes(part, len(made.lr)) for part in (made.hr, made.lr, made.twin))
    rows, panels = [], []
    for method in methods:
        all_planes = zip(wanted, given, twins, strict=True)
        if method == "source's detail":
            frames = [exchanged(high, low, variant.scale) for high, low, _ in all_planes]
        elif method == "source's low":
            frames = [exchanged(twin, F.avg_pool2d(high, variant.scale), variant.scale) for high, _, twin in all_planes]
        else:
            frames = [upscaled(method, models, low, twin, variant.scale) for _, low, twin in all_planes]
        row: Row = {
            "clip": variant.clip,
            "input": f"{made.lr.shape[2]}x{made.lr.shape[1]}",
            "video_kbps": variant.kbps,
            "twin": variant.twin or "–",
            "method": method,
            "frames": len(frames),
            "psnr_y_db": sum(map(metrics.psnr, frames, wanted)) / len(frames),
            "ssim": sum(map(metrics.ssim, frames, wanted)) / len(frames),
            "ssimulacra2": sum(float(ssimulacra2.score(a, b)) for a, b in zip(wanted, frames, strict=True)) / len(frames),
            "low_kept": sum(map(metrics.low_kept, frames, given)) / len(frames),
        }
        if vmaf_exe:
            row |= metrics.vmaf(vmaf_exe, frames, wanted)
        rows.append(row)
        panels.append(frames[len(frames) // 2])
    if pictures:
        name = "_".join([variant.label.replace(" ", "_").replace("@", "-"), *methods])
        crops.write(pictures / f"{name}.png", wanted[len(wanted) // 2], panels)
    return rows


def run(
    paths: list[Path],
    role: str,
    stride: int,
    vmaf: bool,
    pictures: Path | None = None,
    twins: Sequence[str] = TWINS,
    only: Sequence[str] = (),
    halfway: Sequence[Path] = (),
    limits: bool = False,
) -> list[Row]:
    """All rows; what needs no twin is measured beside the first of the twins. `halfway`: of a factor of the scale."""
    models = {path.stem: network.load(path) for path in paths}
    scales = {shape.scale for shape, _ in models.values()}
    if len(scales) != 1:
        raise ValueError(f"networks of one scale can be measured at once, not of {sorted(scales)}")
    fused = any(shape.fused for shape, _ in models.values())
    parts = {path.stem: network.load(path) for path in halfway}
    if any(scales.copy().pop() % shape.scale or shape.fused for shape, _ in parts.values()):
        raise ValueError("what comes halfway must be of luma alone, and of a factor of the scale")
    seeing = ["twin", *(name for name, (shape, _) in models.items() if shape.fused)]
    vmaf_exe = pairs.ffmpeg_with("libvmaf") if vmaf else None
    if vmaf and vmaf_exe is None:
        print("no ffmpeg with libvmaf found: VMAF is left out", file=sys.stderr)
    rows: list[Row] = []
    for clip in pairs.load_list():
        path = pairs.find(clip)
        if clip["role"] != role or "sizes" not in clip or (only and clip["name"] not in only):
            continue
        if path is None:
            print(f"{clip['name']}: {clip['file']} is not in {pairs.clips_folder()}, skipped", file=sys.stderr)
            continue
        for variant, made in pairs.measured(clip, path, scales.copy().pop(), stride, list(twins) if fused else []):
            methods = ["bicubic", "lanczos", "lanczos@0.3", *models]
            methods += [f"{name} then {rest}" for name in parts for rest in ("lanczos", "lanczos@0.3", "bilinear")]
            if fused:
                first = variant.twin == twins[0]
                methods = ["bicubic", "lanczos", "lanczos@0.3", "twin", *models] if first else list(seeing)
                methods += ["source's detail", "source's low"] if limits else []
            rows += measure(variant, made, models | parts, methods, vmaf_exe, pictures)
            print(f"{variant.label}: measured", file=sys.stderr)
    return with_gains(rows)


def with_gains(rows: list[Row]) -> list[Row]:
    """The rows with their gains in PSNR over Lanczos, and over the twin where there is one."""
    keys = ("clip", "input", "video_kbps")
    found = {(*(row[key] for key in keys), row["twin"], row["method"]): float(str(row["psnr_y_db"])) for row in rows}
    for row in rows:
        call = tuple(row[key] for key in keys)
        for name, other in (
            ("over_lanczos_db", (*call, rows[0]["twin"], "lanczos")),
            ("over_twin_db", (*call, row["twin"], "twin")),
        ):
            if other in found:
                row[name] = float(str(row["psnr_y_db"])) - found[other]
    return rows


def table(rows: list[Row]) -> str:
    """The rows as Markdown."""
    digits = {"psnr_y_db": ".2f", "over_lanczos_db": "+.2f", "over_twin_db": "+.2f", "ssim": ".4f", "ssimulacra2": ".2f", "low_kept": ".3f"}
    digits |= {"vmaf": ".1f", "vmaf_neg": ".1f"}
    keys = ["clip", "input", "video_kbps", "twin", "method", *digits]
    keys = [key for key in keys if any(row.get(key, "–") != "–" for row in rows)]
    lines = ["| " + " | ".join(keys) + " |", "|" + " --- |" * len(keys)]
    for row in rows:
        cells = (
            f"{row[key]:{digits[key]}}" if key in digits and key in row else str(row.get(key, "–")) for key in keys
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def report(paths: list[Path], role: str, stride: int, vmaf: bool) -> str:
    """The table of some networks."""
    return table(run(paths, role, stride, vmaf))


def main() -> None:
    """Reads the options and prints the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="*", default=[pairs.HERE / "xs-x2.safetensors"])
    parser.add_argument("--role", choices=["holdout", "train"], default="holdout")
    parser.add_argument("--stride", type=int, default=4, help="measure every so manieth frame")
    parser.add_argument("--vmaf", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--only", nargs="*", default=[], help="names of clips")
    parser.add_argument("--pictures", type=Path, help="folder for crops side by side: source, then each method")
    parser.add_argument("--twins", nargs="*", default=TWINS, help="what decoders have had, as `twin_pictures` takes it")
    parser.add_argument(
        "--halfway",
        type=Path,
        nargs="*",
        default=[],
        help="networks of a factor of the scale, and plain stretching after them",
    )
    parser.add_argument(
        "--limits",
        action="store_true",
        help="also the source's own detail where the low picture is kept, and the twin's where that is the source's",
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    chosen = (args.twins, args.only, args.halfway, args.limits)
    rows = run(args.weights, args.role, args.stride, args.vmaf, args.pictures, *chosen)
    print(json.dumps({"command": "models/evaluate.py", "rows": rows}) if args.json else table(rows))


if __name__ == "__main__":
    main()
