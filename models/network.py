"""The `xs-x2` network, its Lanczos base, and the safetensors files that the engine reads.

Source: seed 000 §6.1. In: luma in grey levels. Out: the residual over Lanczos-3 ×2, in grey levels.
While training, every convolution is a product of two linear maps plus an identity (SESR's collapsible block);
`Net.folded` gives the plain 3×3 kernels with all scalings of the training folded in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

CHANNELS = 16
LAYERS = 5
EXPANSION = 64
INPUT_GAIN = 4.0
OUTPUT_GAIN = 25.5


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


def phase_taps(kernel: Callable[[float], float], reach: int) -> Tensor:
    """Weights [2, 2·reach + 1] over LR samples i−reach…i+reach, for HR samples 2i (i−0.25) and 2i+1 (i+0.25)."""
    rows = [[kernel(at - tap) for tap in range(-reach, reach + 1)] for at in (-0.25, 0.25)]
    taps = torch.tensor(rows, dtype=torch.float64)
    return (taps / taps.sum(dim=1, keepdim=True)).float()


LANCZOS_TAPS = phase_taps(lanczos3, 3)
BICUBIC_TAPS = phase_taps(catmull_rom, 2)


def up2(luma: Tensor, taps: Tensor = LANCZOS_TAPS) -> Tensor:
    """Centre-aligned 2:1 interpolation of [N, 1, H, W], edges clamped, not rounded; rows first, then columns."""
    reach = taps.shape[1] // 2
    count, _, height, width = luma.shape
    padded = F.pad(luma, (reach, reach, 0, 0), mode="replicate")
    wide = F.conv2d(padded, taps[:, None, None, :])
    wide = wide.permute(0, 2, 3, 1).reshape(count, 1, height, 2 * width)
    padded = F.pad(wide, (0, 0, reach, reach), mode="replicate")
    tall = F.conv2d(padded, taps[:, None, :, None])
    return tall.permute(0, 2, 1, 3).reshape(count, 1, 2 * height, 2 * width)


class CollapsibleConv(nn.Module):
    """A 3×3 convolution trained as 3×3 to `EXPANSION` channels, then 1×1, plus the identity where shapes allow."""

    def __init__(self, inputs: int, outputs: int, gain: float) -> None:
        super().__init__()
        self.expand = nn.Parameter(torch.empty(EXPANSION, inputs, 3, 3))
        self.project = nn.Parameter(torch.empty(outputs, EXPANSION))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.normal_(self.expand, std=math.sqrt(2.0 / (9 * inputs)))
        nn.init.normal_(self.project, std=gain / math.sqrt(EXPANSION))
        self.identity = inputs == outputs

    def kernel(self) -> Tensor:
        """The equal plain kernel [outputs, inputs, 3, 3]."""
        weight = torch.einsum("oe,eikl->oikl", self.project, self.expand)
        if self.identity:
            weight = weight + F.pad(torch.eye(weight.shape[0])[:, :, None, None], (1, 1, 1, 1))
        return weight


class Net(nn.Module):
    """The trained form of the network."""

    def __init__(self) -> None:
        super().__init__()
        body = [CollapsibleConv(CHANNELS, CHANNELS, 0.5) for _ in range(LAYERS - 2)]
        self.convs = nn.ModuleList([CollapsibleConv(1, CHANNELS, 1.0), *body, CollapsibleConv(CHANNELS, 4, 0.1)])

    def forward(self, luma: Tensor, body: torch.dtype = torch.float32) -> Tensor:
        """The residual [N, 1, 2H, 2W] of luma [N, 1, H, W], both in grey levels; `body`: type of the middle layers."""
        x = (luma / 255.0 - 0.5) * INPUT_GAIN
        for index, conv in enumerate(self.convs):
            kind = body if 0 < index < LAYERS - 1 else torch.float32
            kernel = conv.kernel().to(kind).contiguous(memory_format=torch.channels_last)
            x = F.conv2d(x.to(kind), kernel, conv.bias.to(kind), padding=1)
            if index < LAYERS - 1:
                x = F.relu(x)
        return F.pixel_shuffle(x * OUTPUT_GAIN, 2)

    @torch.no_grad()
    def folded(self) -> dict[str, Tensor]:
        """Plain weights for `residual`: tensors `conv0.weight`, `conv0.bias`, … in f32."""
        out: dict[str, Tensor] = {}
        for index, conv in enumerate(self.convs):
            weight, bias = conv.kernel(), conv.bias
            if index == 0:
                weight = weight * INPUT_GAIN
            if index == LAYERS - 1:
                weight, bias = weight * OUTPUT_GAIN, bias * OUTPUT_GAIN
            out[f"conv{index}.weight"] = weight.float().contiguous()
            out[f"conv{index}.bias"] = bias.float().contiguous().clone()
        return out


@torch.inference_mode()
def residual(weights: dict[str, Tensor], luma: Tensor) -> Tensor:
    """What an engine computes from exported weights: luma [N, 1, H, W] to residual [N, 1, 2H, 2W]."""
    x = luma.to(weights["conv0.weight"].dtype) / 255.0 - 0.5
    for index in range(LAYERS):
        x = F.conv2d(x, weights[f"conv{index}.weight"], weights[f"conv{index}.bias"], padding=1)
        if index < LAYERS - 1:
            x = F.relu(x)
    return F.pixel_shuffle(x, 2)


def export(weights: dict[str, Tensor], path: Path) -> None:
    """Writes the weights, and beside them a test vector `*.fixture.safetensors` for engines."""
    save_file(weights, path, metadata={"name": path.stem, "scale": "2", "base": "lanczos3"})
    lr = fixture_luma()
    luma = torch.from_numpy(lr)[None, None]
    check = residual(weights, luma)
    exact = residual({name: value.double() for name, value in weights.items()}, luma)
    if (check - exact).abs().max() > 1e-3:
        raise RuntimeError("the f32 and f64 results of the network differ")
    vector = {"lr": torch.from_numpy(lr), "residual": check[0, 0].contiguous()}
    save_file(vector, path.with_suffix(".fixture.safetensors"), metadata={"weights": path.name})


def load(path: Path) -> dict[str, Tensor]:
    """Reads exported weights."""
    return load_file(path)


def fixture_luma() -> np.ndarray:
    """A seeded 24×20 picture with ramps, edges, strokes, noise and both ends of the range."""
    rng = np.random.default_rng(6)
    y, x = np.mgrid[0:24, 0:20]
    picture = 40.0 + 6.0 * x + 3.0 * y + 30.0 * np.sin(x * y / 9.0)
    picture[4:9, 3:8] = 255.0
    picture[12:20, 10:18:2] = 0.0
    picture[20:, :6] += rng.normal(0.0, 20.0, (4, 6))
    return np.clip(np.round(picture), 0, 255).astype(np.uint8)
