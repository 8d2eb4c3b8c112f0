"""The networks, what they are added to, and the safetensors files that the engines read.

Source: NeuroScaler §8. In: luma in grey levels and, for `luma+twin`, what a subscriber's decoder shows for it. Out:
HR luma. While training, every convolution is a product of two linear maps, plus an identity in chains (SESR's
collapsible block); `Net.folded` gives the plain 3×3 kernels with all scalings of the training folded in. `answer` and
`high` are what an engine computes from those; `resampling.py` has the base. Frame networks, which browsers run on every
frame, have the twin's picture for a base.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import resampling

EXPANSION = 64
INPUT_GAIN = 4.0
OUTPUT_GAIN = 25.5
GATE_GAIN = 4.0
GATE_START = 1.5  # the logit of a gate before training: most of the twin's picture is taken
RANGE_SHARE = 0.9999  # of a channel's activations, those that its range covers
MIN_RANGE = 1e-3  # for channels that are silent


@dataclass(frozen=True)
class Shape:
    """What a network is like, as its file's metadata and tensors say."""

    arch: str  # "chain" or "blocks"
    channels: int
    convs: int
    scale: int = 2
    inputs: str = "luma"  # or "luma+twin"
    base: str = "lanczos3"  # or "twin", what a frame network's residual is added to

    @property
    def fused(self) -> bool:
        """Whether it sees the twin's picture."""
        return self.inputs == "luma+twin"

    @property
    def over_twin(self) -> bool:
        """Whether it is a frame network: its residual is added to the twin's picture, and there is no gate."""
        return self.base == "twin"

    @property
    def gated(self) -> bool:
        """Whether it answers how much of the twin's picture is let in."""
        return self.fused and not self.over_twin

    @property
    def ends(self) -> tuple[int, int]:
        """Channels that go in and come out."""
        phases = self.scale**2
        return 1 + phases * self.fused, phases + phases * self.gated

    @property
    def widths(self) -> list[tuple[int, int]]:
        """Inputs and outputs of every convolution."""
        first, last = self.ends
        between = [self.channels] * (self.convs - 1)
        return list(zip([first, *between], [*between, last], strict=True))

    @property
    def macs(self) -> int:
        """Multiply-accumulates for each LR sample."""
        return sum(9 * a * b for a, b in self.widths)


# Named by cost; `l` is NeuroScaler's.
TIERS = {
    "xxs": Shape("chain", 8, 4),
    "xs": Shape("chain", 16, 5),
    "s": Shape("chain", 24, 5),
    "m": Shape("chain", 32, 5),
    "l": Shape("blocks", 32, 18),
}


class CollapsibleConv(nn.Module):
    """A 3×3 convolution trained as 3×3 to `EXPANSION` channels, then 1×1, plus the identity where asked for."""

    def __init__(self, inputs: int, outputs: int, gain: float, identity: bool) -> None:
        super().__init__()
        self.expand = nn.Parameter(torch.empty(EXPANSION, inputs, 3, 3))
        self.project = nn.Parameter(torch.empty(outputs, EXPANSION))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.normal_(self.expand, std=math.sqrt(2.0 / (9 * inputs)))
        nn.init.normal_(self.project, std=gain / math.sqrt(EXPANSION))
        self.identity = identity

    def kernel(self) -> Tensor:
        """The equal plain kernel [outputs, inputs, 3, 3]."""
        weight = torch.einsum("oe,eikl->oikl", self.project, self.expand)
        if self.identity:
            weight = weight + F.pad(torch.eye(weight.shape[0], device=weight.device)[:, :, None, None], (1, 1, 1, 1))
        return weight

    @torch.no_grad()
    def become(self, weight: Tensor, bias: Tensor) -> None:
        """Takes on a plain kernel [outputs, inputs, 3, 3] and its bias."""
        if self.identity:
            weight = weight - F.pad(torch.eye(weight.shape[0])[:, :, None, None], (1, 1, 1, 1))
        self.expand.copy_(torch.einsum("eo,oikl->eikl", torch.linalg.pinv(self.project), weight))
        self.bias.copy_(bias)


class Net(nn.Module):
    """The trained form of a network."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        convs = []
        for index, (inputs, outputs) in enumerate(shape.widths):
            middle = 0 < index < shape.convs - 1
            gain = 1.0 if index == 0 else 0.1 if not middle else 0.5
            if shape.arch == "blocks" and middle:
                gain = 1.0 if index % 2 == 1 else 0.2
            convs.append(CollapsibleConv(inputs, outputs, gain, middle and shape.arch == "chain"))
        self.convs = nn.ModuleList(convs)
        scaling = torch.full((shape.ends[1], 1, 1), OUTPUT_GAIN)
        if shape.gated:
            scaling[shape.scale**2 :] = GATE_GAIN
            with torch.no_grad():
                convs[-1].bias[shape.scale**2 :] = GATE_START / GATE_GAIN
        self.register_buffer("scaling", scaling, persistent=False)

    def forward(self, x: Tensor, body: torch.dtype = torch.float32) -> Tensor:
        """The answer [N, out, H, W] to inputs [N, in, H, W] as `inputs_of` makes them; `body`: type of the middle."""
        kernels = [conv.kernel() for conv in self.convs]
        last = len(kernels) - 1

        def layer(index: int, given: Tensor) -> Tensor:
            kind = body if 0 < index < last else torch.float32
            kernel = kernels[index].to(kind).contiguous(memory_format=torch.channels_last)
            return F.conv2d(given.to(kind), kernel, self.convs[index].bias.to(kind), padding=1)

        return run_layers(self.shape, layer, x * INPUT_GAIN) * self.scaling

    def become(self, weights: dict[str, Tensor]) -> None:
        """Takes on exported weights of the same shape."""
        for index, conv in enumerate(self.convs):
            weight, bias = weights[f"conv{index}.weight"], weights[f"conv{index}.bias"]
            weight = weight / INPUT_GAIN if index == 0 else weight
            if index == len(self.convs) - 1:
                weight, bias = weight / self.scaling[..., None].cpu(), bias / self.scaling[:, 0, 0].cpu()
            conv.become(weight, bias)

    @torch.no_grad()
    def folded(self) -> dict[str, Tensor]:
        """Plain weights: tensors `conv0.weight`, `conv0.bias`, … in f32."""
        out: dict[str, Tensor] = {}
        for index, conv in enumerate(self.convs):
            weight, bias = conv.kernel(), conv.bias
            if index == 0:
                weight = weight * INPUT_GAIN
            if index == len(self.convs) - 1:
                weight, bias = weight * self.scaling[..., None], bias * self.scaling[:, 0, 0]
            out[f"conv{index}.weight"] = weight.float().cpu().contiguous()
            out[f"conv{index}.bias"] = bias.float().cpu().contiguous().clone()
        return out


def widened(weights: dict[str, Tensor], shape: Shape) -> dict[str, Tensor]:
    """A narrower chain's weights in a wider one that answers the same: what the new channels say is not heard yet."""
    out = Net(shape).folded()
    for index in range(shape.convs):
        weight, bias = weights[f"conv{index}.weight"], weights[f"conv{index}.bias"]
        outputs, inputs = weight.shape[:2]
        out[f"conv{index}.weight"][:outputs] = 0.0
        out[f"conv{index}.weight"][:outputs, :inputs] = weight
        out[f"conv{index}.bias"][:outputs] = bias
    return out


def ungated(weights: dict[str, Tensor], shape: Shape) -> dict[str, Tensor]:
    """A gated chain's weights as the start of a frame network of this shape.

    Half of the residual is kept: the twin's picture has a part of it already.
    """
    out = dict(weights)
    for name in (f"conv{shape.convs - 1}.weight", f"conv{shape.convs - 1}.bias"):
        out[name] = weights[name][: shape.ends[1]] * 0.5
    return out


def run_layers(shape: Shape, layer, x: Tensor) -> Tensor:  # noqa: ANN001
    """Both architectures over `layer(index, x)`."""
    last = shape.convs - 1
    if shape.arch == "chain":
        for index in range(last):
            x = F.relu(layer(index, x))
        return layer(last, x)
    head = layer(0, x)
    flow = head
    for index in range(1, last, 2):
        flow = flow + layer(index + 1, F.relu(layer(index, flow)))
    return layer(last, flow + head)


def inputs_of(shape: Shape, luma: Tensor, twin: Tensor | None) -> Tensor:
    """A network's input planes of LR luma [N, 1, H, W] and the twin's luma [N, 1, sH, sW], in grey levels."""
    planes = [luma / 255.0 - 0.5]
    if shape.fused:
        if twin is None:
            raise ValueError("a fused network needs the twin's picture")
        planes.append(F.pixel_unshuffle(twin, shape.scale) / 255.0 - 0.5)
    return torch.cat(planes, 1) if len(planes) > 1 else planes[0]


def beyond_base(shape: Shape, answer: Tensor, base: Tensor, twin: Tensor | None) -> Tensor:
    """What the answer adds to the base [N, 1, sH, sW]: the residual, and as much of the twin as a gate lets in."""
    planes = F.pixel_shuffle(answer, shape.scale)
    if not shape.gated or twin is None:
        return planes
    return planes[:, :1] + torch.sigmoid(planes[:, 1:]) * (twin - base)


@torch.inference_mode()
def answer(shape: Shape, weights: dict[str, Tensor], luma: Tensor, twin: Tensor | None = None) -> Tensor:
    """What an engine computes from exported weights: [N, out, H, W], not yet shuffled."""
    kind = weights["conv0.weight"].dtype

    def layer(index: int, given: Tensor) -> Tensor:
        return F.conv2d(given, weights[f"conv{index}.weight"], weights[f"conv{index}.bias"], padding=1)

    luma, twin = luma.to(kind), None if twin is None else twin.to(kind)
    return run_layers(shape, layer, inputs_of(shape, luma, twin))


@torch.inference_mode()
def high(shape: Shape, weights: dict[str, Tensor], luma: Tensor, twin: Tensor | None = None) -> Tensor:
    """HR luma [N, 1, sH, sW] in grey levels, neither rounded nor clamped."""
    kind = weights["conv0.weight"].dtype
    twin = None if twin is None else twin.to(kind)
    base = twin if shape.over_twin else resampling.up(luma.to(kind), shape.scale)
    return base + beyond_base(shape, answer(shape, weights, luma, twin), base, twin)


@torch.inference_mode()
def ranges(shape: Shape, weights: dict[str, Tensor], luma: Tensor, twin: Tensor | None) -> dict[str, Tensor]:
    """What a chain's activations reach on some pictures, by channel: `conv0.range`, … of all layers but the last.

    Engines of 16-bit integers scale each channel by it. Rare peaks are left out.
    """
    found: dict[str, Tensor] = {}

    def layer(index: int, given: Tensor) -> Tensor:
        if index > 0:
            by_channel = given.transpose(0, 1).flatten(1)
            reached = by_channel.kthvalue(math.ceil(RANGE_SHARE * by_channel.shape[1]), 1).values
            found[f"conv{index - 1}.range"] = reached.clamp_min(MIN_RANGE)
        return F.conv2d(given, weights[f"conv{index}.weight"], weights[f"conv{index}.bias"], padding=1)

    run_layers(shape, layer, inputs_of(shape, luma, twin))
    return found


def export(shape: Shape, weights: dict[str, Tensor], path: Path) -> None:
    """Writes the weights, and beside them a test vector `*.fixture.safetensors` for engines."""
    meta = {"name": path.stem, "scale": str(shape.scale), "base": shape.base}
    meta |= {"arch": shape.arch, "inputs": shape.inputs}
    save_file(weights, path, metadata=meta)
    lr = fixture_luma()
    luma = torch.from_numpy(lr)[None, None]
    twin = fixture_twin(luma, shape.scale) if shape.fused else None
    check = answer(shape, weights, luma, twin)
    exact = answer(shape, {name: value.double() for name, value in weights.items()}, luma, twin)
    if (check - exact).abs().max() > 1e-3:
        raise RuntimeError("the f32 and f64 results of the network differ")
    vector = {"lr": torch.from_numpy(lr)}
    shuffled = F.pixel_shuffle(check, shape.scale)[0]
    vector["residual"] = shuffled[0].contiguous()
    if twin is not None:
        vector["twin"] = twin[0, 0].to(torch.uint8).contiguous()
        if shape.gated:
            vector["gate"] = shuffled[1].contiguous()
        vector["high"] = high(shape, weights, luma, twin)[0, 0].contiguous()
    save_file(vector, path.with_suffix(".fixture.safetensors"), metadata={"weights": path.name})


def load(path: Path) -> tuple[Shape, dict[str, Tensor]]:
    """Reads exported weights; what older files leave unsaid is a chain over luma."""
    weights = load_file(path)
    with safe_open(path, "pt") as handle:
        meta = handle.metadata() or {}
    shape = Shape(
        meta.get("arch", "chain"),
        weights["conv0.weight"].shape[0],
        sum(name.endswith(".weight") for name in weights),
        int(meta.get("scale", "2")),
        meta.get("inputs", "luma"),
        meta.get("base", "lanczos3"),
    )
    return shape, weights


def fixture_luma() -> np.ndarray:
    """A seeded 24×20 picture with ramps, edges, strokes, noise and both ends of the range."""
    rng = np.random.default_rng(6)
    y, x = np.mgrid[0:24, 0:20]
    picture = 40.0 + 6.0 * x + 3.0 * y + 30.0 * np.sin(x * y / 9.0)
    picture[4:9, 3:8] = 255.0
    picture[12:20, 10:18:2] = 0.0
    picture[20:, :6] += rng.normal(0.0, 20.0, (4, 6))
    return np.clip(np.round(picture), 0, 255).astype(np.uint8)


def fixture_twin(luma: Tensor, scale: int) -> Tensor:
    """The base of the picture with a seeded texture on half of it, as 8-bit values [1, 1, sH, sW] in f32."""
    base = resampling.up(luma.float(), scale)
    texture = np.random.default_rng(7).normal(0.0, 12.0, base.shape[2:])
    texture[:, : base.shape[3] // 2] = 0.0
    return (base + torch.from_numpy(texture).float()).round().clamp(0, 255)
