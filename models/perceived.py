"""What VMAF-NEG sees, in a form that training can descend: ADM and VIF of luma patches.

Source: libvmaf's ADM (wavelets, decoupling, contrast masking) and VIF (Gaussian scale mixture), with no credit for
gains above one, as in its NEG models. In: made and wanted luma [N, 1, H, W] in grey levels, at least 64 a side. Out:
what is lacking in each patch, 0 for a perfect one. The support vectors are left out: among pictures like those of
viewers, VMAF-NEG is close to linear in these terms.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

LOW = (0.482962913144690, 0.836516303737469, 0.224143868041857, -0.129409522550921)
HIGH = (-0.129409522550921, -0.224143868041857, 0.836516303737469, -0.482962913144690)
# By wavelet scale: amplitudes of the basis functions, horizontal or vertical, and diagonal.
AMPLITUDES = ((0.67234, 0.72709), (0.41317, 0.49428), (0.22727, 0.28688), (0.11792, 0.15214))
SAMPLES_A_DEGREE = 3.0 * 1080.0 * math.pi / 180.0
NOISE = 2.0  # variance of what the eye adds, in VIF
TAPS = (17, 9, 5, 3)
# What a unit of ADM and of VIF at its four scales is worth, as VMAF-NEG / 100: least squares over changes of the
# twin's pictures of four training clips, which they explain up to 0.36 of VMAF-NEG (of 3.1).
WORTH = (2.0, 0.05, 0.05, 0.4, 0.5)


def visible(scale: int, diagonal: bool) -> float:
    """The sensitivity to a band of the wavelets (Watson's thresholds for luma)."""
    cycles = 2.0 ** (scale + 1) * 0.401 * (0.534 if diagonal else 1.0) / SAMPLES_A_DEGREE
    threshold = 0.495 * 10.0 ** (0.466 * math.log10(cycles) ** 2)
    return AMPLITUDES[scale][diagonal] / (2.0 * threshold)


@lru_cache
def wavelets(device: torch.device) -> Tensor:
    """Kernels [4, 1, 4, 4]: smooth, and the three bands."""
    low, high = torch.tensor(LOW), torch.tensor(HIGH)
    outer = [torch.outer(a, b) for a, b in ((low, low), (high, low), (low, high), (high, high))]
    return torch.stack(outer)[:, None].to(device)


@lru_cache
def sensitivity(scale: int, device: torch.device) -> Tensor:
    """That to the three bands of a scale [3, 1, 1]."""
    return torch.tensor([visible(scale, False), visible(scale, False), visible(scale, True)], device=device)[
        :, None, None
    ]


def adm(made: Tensor, wanted: Tensor) -> Tensor:
    """The detail loss measure [N]."""
    got, due = made.new_zeros(len(made)), made.new_zeros(len(made))
    both = torch.cat([made, wanted])
    for scale in range(len(AMPLITUDES)):
        split = F.conv2d(F.pad(both, (1, 2, 1, 2), mode="reflect"), wavelets(made.device), stride=2)
        both = split[:, :1]
        seen = sensitivity(scale, made.device)
        bands, original = (part * seen for part in split[:, 1:].chunk(2))
        share = (bands * original / (original.square() + 1e-6)).clamp(0.0, 1.0)
        restored = share * original
        added = (bands - restored).abs().sum(1, keepdim=True)
        masking = F.avg_pool2d(added, 3, 1, 1) * 9.0 / 30.0 + added / 30.0
        kept = (restored.abs() - masking).clamp_min(0.0)
        area = (split.shape[2] * split.shape[3] / 32.0) ** (1.0 / 3.0)
        for part, total in ((kept, got), (original.abs(), due)):
            total += ((part.pow(3).sum((2, 3)) + 1e-6).pow(1.0 / 3.0) + area).sum(1)
    return got / due


@lru_cache
def gaussian(taps: int, device: torch.device) -> Tensor:
    """A kernel [taps] of sum 1."""
    at = torch.arange(taps) - taps // 2
    kernel = torch.exp(-at.square() / (2.0 * (taps / 5.0) ** 2))
    return (kernel / kernel.sum()).to(device)


def smooth(picture: Tensor, taps: int) -> Tensor:
    """A Gaussian blur without the borders that it does not cover."""
    channels = picture.shape[1]
    across = gaussian(taps, picture.device).expand(channels, 1, 1, -1)
    return F.conv2d(F.conv2d(picture, across, groups=channels), across.transpose(2, 3), groups=channels)


def vif(made: Tensor, wanted: Tensor) -> list[Tensor]:
    """Visual information fidelity at four scales, each [N]."""
    out = []
    for scale, taps in enumerate(TAPS):
        if scale > 0:
            made, wanted = smooth(torch.cat([made, wanted], 1), taps)[:, :, ::2, ::2].split(1, 1)
        moments = torch.cat([made, wanted, made * made, wanted * wanted, made * wanted], 1)
        mean_made, mean, made2, wanted2, cross = smooth(moments, taps).split(1, 1)
        var_made = (made2 - mean_made.square()).clamp_min(0.0)
        var = (wanted2 - mean.square()).clamp_min(0.0)
        cov = cross - mean_made * mean
        gain = (cov / (var + 1e-2)).clamp_min(0.0)
        rest = (var_made - gain * cov).clamp_min(0.0)
        kept = torch.log2(1.0 + gain.clamp_max(1.0).square() * var / (rest + NOISE))
        due = torch.log2(1.0 + var / NOISE)
        out.append((kept.sum((1, 2, 3)) + 1.0) / (due.sum((1, 2, 3)) + 1.0))
    return out


def lacking(made: Tensor, wanted: Tensor) -> Tensor:
    """What each patch lacks of VMAF-NEG, as a share of it [N]."""
    terms = [adm(made, wanted), *vif(made, wanted)]
    return sum(worth * (1.0 - term) for worth, term in zip(WORTH, terms, strict=True))
