"""Crops side by side, for the eye: the liveliest part of a frame as each method shows it."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

SIDE = 160
ZOOM = 2
GAP = 4


def busiest(wanted: Tensor) -> tuple[int, int]:
    """Top and left of the square of `SIDE` samples with the most contrast within 8×8 blocks."""
    blocks = F.unfold(wanted, 8, stride=8).std(dim=1).reshape(1, 1, wanted.shape[2] // 8, wanted.shape[3] // 8)
    sums = F.avg_pool2d(blocks, min(SIDE // 8, *blocks.shape[2:]), stride=1)
    at = int(sums.argmax())
    return 8 * (at // sums.shape[3]), 8 * (at % sums.shape[3])


def write(path: Path, wanted: Tensor, panels: list[Tensor]) -> None:
    """The source, then the panels, each sample as 2×2 pixels, as PNG."""
    top, left = busiest(wanted)
    wide = [F.interpolate(p[:, :, top : top + SIDE, left : left + SIDE], scale_factor=ZOOM) for p in (wanted, *panels)]
    gap = torch.full((1, 1, wide[0].shape[2], GAP), 255.0)
    row = torch.cat([part for panel in wide for part in (panel, gap)][:-1], dim=3)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(row[0, 0].to(torch.uint8).numpy()).save(path)
