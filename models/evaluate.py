"""Measures `xs-x2` against bicubic and Lanczos on VP9-coded clips.

In: exported weights and the clips of `data.toml`. Out: a table (Markdown), or with `--json` one object, of PSNR-Y,
SSIM and, where an ffmpeg with libvmaf is found, VMAF and VMAF-NEG, by clip, LR size and bit rate.
Frames are paired by number; figures are means over frames. `lanczos@0.3` is Lanczos, then unsharp masking (5×5
binomial blur, amount 0.3): a gain in VMAF counts only above it and with a gain in PSNR.

    python models/evaluate.py
    python models/evaluate.py --role train --stride 20 --no-vmaf
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import network
import pairs

BINOMIAL = torch.tensor([1.0, 4.0, 6.0, 4.0, 1.0]) / 16.0
METHODS = ("bicubic", "lanczos", "lanczos@0.3", "xs-x2")


def separable(picture: Tensor, taps: Tensor) -> Tensor:
    """A picture [N, 1, H, W] filtered by the same taps along both axes, edges clamped."""
    reach = len(taps) // 2
    padded = F.pad(picture, (reach, reach, reach, reach), mode="replicate")
    return F.conv2d(F.conv2d(padded, taps[None, None, None, :]), taps[None, None, :, None])


def unsharp(picture: Tensor, amount: float) -> Tensor:
    """Unsharp masking with a 5×5 binomial blur."""
    return picture + amount * (picture - separable(picture, BINOMIAL))


def upscaled(method: str, lr: Tensor, weights: dict[str, Tensor]) -> Tensor:
    """HR luma [N, 1, 2H, 2W] as 8-bit values (in f32) by one of `METHODS`."""
    out = network.up2(lr, network.BICUBIC_TAPS if method == "bicubic" else network.LANCZOS_TAPS)
    if method == "lanczos@0.3":
        out = unsharp(out, 0.3)
    elif method == "xs-x2":
        out = out + network.residual(weights, lr)
    return out.round().clamp(0, 255)


def psnr(a: Tensor, b: Tensor) -> float:
    """PSNR in dB of 8-bit values."""
    return float(10.0 * torch.log10(255.0**2 / (a - b).square().mean().clamp_min(1e-9)))


def ssim(a: Tensor, b: Tensor) -> float:
    """Mean SSIM with the usual 11-tap Gaussian of σ = 1.5, without the borders that it does not cover."""
    at = torch.arange(-5.0, 6.0)
    gauss = torch.exp(-at.square() / 4.5)
    gauss = gauss / gauss.sum()

    def blur(picture: Tensor) -> Tensor:
        return F.conv2d(F.conv2d(picture, gauss[None, None, None, :]), gauss[None, None, :, None])

    mean_a, mean_b = blur(a), blur(b)
    var_a, var_b = blur(a * a) - mean_a.square(), blur(b * b) - mean_b.square()
    cov = blur(a * b) - mean_a * mean_b
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    top = (2 * mean_a * mean_b + c1) * (2 * cov + c2)
    return float((top / ((mean_a.square() + mean_b.square() + c1) * (var_a + var_b + c2))).mean())


def vmaf(exe: str, made: Path, wanted: Path, width: int, height: int) -> dict[str, float]:
    """VMAF and VMAF-NEG of two raw I420 files with the same number of frames."""
    raw = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", f"{width}x{height}", "-r", "30"]
    with tempfile.NamedTemporaryFile(suffix=".json") as log:
        models = r"version=vmaf_v0.6.1\:name=vmaf|version=vmaf_v0.6.1neg\:name=neg"
        graph = f"[0:v][1:v]libvmaf=model='{models}':log_fmt=json:log_path={log.name}:n_threads=2"
        inputs = [*raw, "-i", str(made), *raw, "-i", str(wanted)]
        command = [exe, "-v", "error", *inputs, "-lavfi", graph, "-f", "null", "-"]
        subprocess.run(command, check=True, capture_output=True)
        pooled = json.load(log)["pooled_metrics"]
    return {"vmaf": pooled["vmaf"]["mean"], "vmaf_neg": pooled["neg"]["mean"]}


def write_luma(path: Path, frames: list[Tensor]) -> None:
    """Frames [1, 1, H, W] as I420 with grey chroma."""
    with path.open("wb") as handle:
        for frame in frames:
            plane = frame[0, 0].to(torch.uint8).numpy()
            handle.write(plane.tobytes())
            handle.write(b"\x80" * (plane.size // 2))


@torch.inference_mode()
def measure(
    variant: pairs.Variant,
    lr: pairs.Luma,
    hr: pairs.Luma,
    weights: dict[str, Tensor],
    stride: int,
    vmaf_exe: str | None,
) -> list[dict[str, object]]:
    """One row per method."""
    index = range(0, len(lr), stride)
    wanted = [torch.from_numpy(hr[i].copy())[None, None].float() for i in index]
    given = [torch.from_numpy(lr[i].copy())[None, None].float() for i in index]
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        truth, made = Path(folder, "truth.yuv"), Path(folder, "made.yuv")
        if vmaf_exe:
            write_luma(truth, wanted)
        for method in METHODS:
            frames = [upscaled(method, low, weights) for low in given]
            row: dict[str, object] = {
                "clip": variant.clip,
                "input": f"{variant.width // 2}x{variant.height // 2}",
                "video_kbps": variant.kbps,
                "method": method,
                "frames": len(frames),
                "psnr_y_db": sum(map(psnr, frames, wanted)) / len(frames),
                "ssim": sum(map(ssim, frames, wanted)) / len(frames),
            }
            if vmaf_exe:
                write_luma(made, frames)
                row |= vmaf(vmaf_exe, made, truth, variant.width, variant.height)
            rows.append(row)
    return rows


def table(rows: list[dict[str, object]]) -> str:
    """The rows as Markdown, with the gain in PSNR over Lanczos."""
    keys = ["clip", "input", "video_kbps", "method", "psnr_y_db", "over lanczos", "ssim", "vmaf", "vmaf_neg"]
    lines = ["| " + " | ".join(keys) + " |", "|" + " --- |" * len(keys)]
    digits = {"psnr_y_db": 2, "over lanczos": 2, "ssim": 4, "vmaf": 1, "vmaf_neg": 1}
    for at, row in enumerate(rows):
        lanczos = rows[at - at % len(METHODS) + METHODS.index("lanczos")]
        shown = dict(row) | {"over lanczos": float(str(row["psnr_y_db"])) - float(str(lanczos["psnr_y_db"]))}
        cells = []
        for key in keys:
            value = shown.get(key, "–")
            sign = "+" if key == "over lanczos" else ""
            cells.append(f"{value:{sign}.{digits[key]}f}" if isinstance(value, float) else str(value))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Reads the options and prints the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, default=pairs.HERE / "xs-x2.safetensors")
    parser.add_argument("--role", choices=["holdout", "train"], default="holdout")
    parser.add_argument("--stride", type=int, default=1, help="measure every so manieth frame")
    parser.add_argument("--vmaf", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    weights = network.load(args.weights)
    vmaf_exe = pairs.ffmpeg_with("libvmaf") if args.vmaf else None
    if args.vmaf and vmaf_exe is None:
        print("no ffmpeg with libvmaf found: VMAF is left out", file=sys.stderr)
    rows: list[dict[str, object]] = []
    for clip in pairs.load_list():
        if clip["role"] != args.role:
            continue
        if not (pairs.clips_folder() / clip["file"]).exists():
            print(f"{clip['name']}: {clip['file']} is not in {pairs.clips_folder()}, skipped", file=sys.stderr)
            continue
        for variant, lr, hr in pairs.variants(clip):
            rows += measure(variant, lr, hr, weights, args.stride, vmaf_exe)
            print(f"{variant.label}: measured", file=sys.stderr)
    print(json.dumps({"command": "models/evaluate.py", "rows": rows}) if args.json else table(rows))


if __name__ == "__main__":
    main()
