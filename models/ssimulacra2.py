"""SSIMULACRA2 of luma alone, in a form that training can descend.

Source: SSIMULACRA2 2.1 (Sneyers, Cloudinary), as the crate `ssimulacra2` has it. In: wanted and made luma [N, 1, H, W]
in grey levels (16 is black, 235 white). Out: a score for each, 100 for a perfect one. Of grey pictures only the channel
Y differs, so that 36 of its 108 terms are left, of which these 15 are not next to nothing.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

SCALES = 5  # the sixth has no weight in Y
RADIUS = 5
BIAS = 0.0037930734
C2 = 0.0009
# By scale, the mean and the fourth norm of: structure that differs, edges that are added, detail that is lost.
WEIGHTS = (
    ((0.0, 0.0, 0.0), (7.466890328, 0.0, 17.445833984)),
    ((0.0, 0.0, 0.0), (6.683678146, 0.000377244, 1.027889938)),
    ((225.205153008, 0.0, 0.0), (19.213238186, 0.001140152, 0.001237756)),
    ((176.393175985, 0.0, 0.0), (24.43300999, 0.285208026, 0.000448544)),
    ((0.0, 0.0, 0.0), (34.779063445, 44.835625329, 0.0)),
)


def linear(luma: Tensor) -> Tensor:
    """Light, 0 to 1, of luma in grey levels."""
    value = ((luma - 16.0) / 219.0).clamp(0.0, 1.0)
    return torch.where(value <= 0.04045, value / 12.92, ((value.clamp_min(0.04) + 0.055) / 1.055).pow(2.4))


def blur(planes: Tensor) -> Tensor:
    """A Gaussian of σ = 1.5; beyond the borders is nothing."""
    at = torch.arange(-RADIUS, RADIUS + 1.0)
    kernel = torch.exp(-at.square() / 4.5)
    across = (kernel / kernel.sum()).expand(planes.shape[1], 1, 1, -1)
    rows = F.conv2d(planes, across, padding=(0, RADIUS), groups=planes.shape[1])
    return F.conv2d(rows, across.transpose(2, 3), padding=(RADIUS, 0), groups=planes.shape[1])


def halved(light: Tensor) -> Tensor:
    """The 2×2 means; an odd edge is repeated."""
    height, width = light.shape[2:]
    return F.avg_pool2d(F.pad(light, (0, width % 2, 0, height % 2), mode="replicate"), 2)


def norms(error: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of each picture's errors, and their fourth norm."""
    return error.mean((1, 2, 3)), (error.pow(4).mean((1, 2, 3)) + 1e-30).pow(0.25)


def terms(wanted: Tensor, made: Tensor) -> tuple[tuple[Tensor, Tensor], ...]:
    """The norms of structure that differs, edges that are added and detail that is lost, at one scale."""
    one, two = ((light + BIAS).pow(1.0 / 3.0) - BIAS ** (1.0 / 3.0) + 0.01 for light in (wanted, made))
    mean1, mean2, s11, s22, s12 = blur(torch.cat([one, two, one * one, two * two, one * two], 1)).split(1, 1)
    alike = (1.0 - (mean1 - mean2).square()) * (2.0 * (s12 - mean1 * mean2) + C2)
    structure = 1.0 - alike / (s11 - mean1.square() + s22 - mean2.square() + C2)
    edge = (1.0 + (two - mean2).abs()) / (1.0 + (one - mean1).abs()) - 1.0
    return tuple(norms(error.clamp_min(0.0)) for error in (structure, edge, -edge))


def score(wanted: Tensor, made: Tensor) -> Tensor:
    """The scores [N]."""
    total = torch.zeros(len(wanted))
    wanted, made = linear(wanted), linear(made)
    for index, weights in enumerate(WEIGHTS):
        if index > 0:
            wanted, made = halved(wanted), halved(made)
        for (mean, fourth), of_mean, of_fourth in zip(terms(wanted, made), *weights, strict=True):
            total = total + of_mean * mean + of_fourth * fourth
    total = 0.9562382616834844 * total
    total = 6.248496625763138e-5 * total.pow(3) - 0.020884521182843837 * total.square() + 2.326765642916932 * total
    return 100.0 - 10.0 * total.clamp_min(1e-6).pow(0.6276336467831387)
