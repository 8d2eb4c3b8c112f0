"""Interpolation by whole factors, as every engine and decoder here does it: what the networks add to.

In: luma [N, 1, H, W] in grey levels. Out: [N, 1, sH, sW], centre-aligned, edges clamped, not rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

REACH = 3


def lanczos3(x: float) -> float:
    """The Lanczos window of three lobes."""
    if x == 0.0:
        return 1.0
    if abs(x) >= 3.0:
        return 0.0
    return 3.0 * math.sin(math.pi * x) * math.sin(math.pi * x / 3.0) / (math.pi * x) ** 2


def catmull_rom(x: float) -> float:
    """The bicubic kernel with a = −0.5."""
    x = abs(x)
    if x < 1.0:
        return 1.5 * x**3 - 2.5 * x**2 + 1.0
    if x < 2.0:
        return -0.5 * x**3 + 2.5 * x**2 - 4.0 * x + 2.0
    return 0.0


def triangle(x: float) -> float:
    """The bilinear kernel, by which browsers enlarge pictures."""
    return max(0.0, 1.0 - abs(x))


@lru_cache
def phase_taps(kernel: Callable[[float], float], scale: int) -> Tensor:
    """Weights [scale, 2·REACH + 1] over LR samples i−REACH…i+REACH for HR samples scale·i, …, scale·i + scale − 1."""
    places = [(phase + 0.5) / scale - 0.5 for phase in range(scale)]
    rows = [[kernel(at - tap) for tap in range(-REACH, REACH + 1)] for at in places]
    taps = torch.tensor(rows, dtype=torch.float64)
    return taps / taps.sum(dim=1, keepdim=True)


@lru_cache
def taps_there(kernel: Callable[[float], float], scale: int, device: torch.device, kind: torch.dtype) -> Tensor:
    """The same of a type on a device, copied once."""
    with torch.inference_mode(False):
        return phase_taps(kernel, scale).to(device, kind)


def up(luma: Tensor, scale: int, kernel: Callable[[float], float] = lanczos3) -> Tensor:
    """The picture `scale` times as large; rows first, then columns."""
    taps = taps_there(kernel, scale, luma.device, luma.dtype)
    count, _, height, width = luma.shape
    padded = F.pad(luma, (REACH, REACH, 0, 0), mode="replicate")
    wide = F.conv2d(padded, taps[:, None, None, :])
    wide = wide.permute(0, 2, 3, 1).reshape(count, 1, height, scale * width)
    padded = F.pad(wide, (0, 0, REACH, REACH), mode="replicate")
    tall = F.conv2d(padded, taps[:, None, :, None])
    return tall.permute(0, 2, 1, 3).reshape(count, 1, scale * height, scale * width)
