"""PSNR, SSIM and VMAF of luma pictures [1, 1, H, W] in grey levels."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor


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


def low_kept(made: Tensor, low: Tensor) -> float:
    """The share of low samples that a made picture, scaled down by means, has within a grey level."""
    off = F.avg_pool2d(made, made.shape[3] // low.shape[3]) - low
    return float((off.abs() <= 1.0).float().mean())


def vmaf(exe: str, made: list[Tensor], wanted: list[Tensor]) -> dict[str, float]:
    """VMAF and VMAF-NEG of as many frames, the means over them."""
    height, width = wanted[0].shape[2:]
    raw = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", f"{width}x{height}", "-r", "30"]
    models = r"version=vmaf_v0.6.1\:name=vmaf|version=vmaf_v0.6.1neg\:name=neg"
    with tempfile.TemporaryDirectory() as folder:
        log, inputs = Path(folder, "log.json"), []
        for name, frames in (("made", made), ("wanted", wanted)):
            write_luma(Path(folder, name), frames)
            inputs += [*raw, "-i", str(Path(folder, name))]
        graph = f"[0:v][1:v]libvmaf=model='{models}':log_fmt=json:log_path={log}:n_threads=1"
        command = [exe, "-v", "error", *inputs, "-lavfi", graph, "-f", "null", "-"]
        subprocess.run(command, check=True, capture_output=True)
        pooled = json.loads(log.read_text())["pooled_metrics"]
    return {"vmaf": pooled["vmaf"]["mean"], "vmaf_neg": pooled["neg"]["mean"]}


def write_luma(path: Path, frames: list[Tensor]) -> None:
    """Frames as I420 with grey chroma."""
    with path.open("wb") as handle:
        for frame in frames:
            plane = frame[0, 0].to(torch.uint8).numpy()
            handle.write(plane.tobytes())
            handle.write(b"\x80" * (2 * ((plane.shape[0] + 1) // 2) * ((plane.shape[1] + 1) // 2)))
