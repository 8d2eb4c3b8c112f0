"""Trains a frame network on, from its faithful weights, for pictures that look natural.

In: weights of a frame network, and the patches of `train.py`. Out: the same network's weights. The loss is squared
errors, and beside them what was asked for: SSIMULACRA2 (`--ssimulacra2`), an adversary that learns to tell made
pictures from wanted ones (`--adversary`, relativistic; `--features`: its features, too, are to be alike), and a bound:
scaled down, a picture is to be the low one within a grey level (`--bound`).

    python models/natural.py models/frames/xs-x2.safetensors --ssimulacra2 3 --out natural.safetensors
    python models/natural.py models/frames/xs-x2.safetensors --distance 0.5 --adversary 0.05 --features 0.3
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

import network
import pairs
import patches
import ssimulacra2
import train

WITHIN = 1.0  # grey levels that a low sample may be off
GAIN = 1.0 / 16.0  # of grey levels, as the adversary sees them
WARM_UP = 300  # steps until an adversary counts in full
# Inputs, outputs, side and stride of the adversary's layers.
LAYERS = ((2, 32, 3, 1), (32, 32, 4, 2), (32, 64, 4, 2), (64, 64, 3, 1))


class Adversary(nn.Module):
    """Says how real each place of a picture looks, beside what was shown without the network."""

    def __init__(self) -> None:
        super().__init__()
        convs = [spectral_norm(nn.Conv2d(a, b, side, stride, 1)) for a, b, side, stride in LAYERS]
        self.body = nn.ModuleList(convs)
        self.last = nn.Conv2d(LAYERS[-1][1], 1, 3)

    def forward(self, picture: Tensor, twin: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The logits, and the features that led to them."""
        x, features = GAIN * torch.cat([picture - twin, twin - twin.mean((2, 3), keepdim=True)], 1), []
        for conv in self.body:
            x = F.leaky_relu(conv(x), 0.2)
            features.append(x)
        return self.last(x), features


def beyond_bound(made: Tensor, low: Tensor, scale: int) -> Tensor:
    """By how much low samples are off more than they may, squared, in the mean."""
    off = F.avg_pool2d(made, scale) - low
    return (off.abs() - WITHIN).clamp_min(0.0).square().mean()


def inside(picture: Tensor, scale: int) -> Tensor:
    """The few patches that a costly loss looks at, without what sees their padding."""
    edge = scale * train.RING
    return picture[: max(1, 2 * len(picture) // scale**2), :, edge:-edge, edge:-edge]


def taught(adversary: Adversary, teller: torch.optim.Optimizer, real: Tensor, made: Tensor, twin: Tensor) -> None:
    """A step of the adversary: real places are to look more real than the mean of made ones, and the reverse."""
    is_real, is_made = adversary(real, twin)[0], adversary(made.detach(), twin)[0]
    loss = F.softplus(is_made.mean() - is_real).mean() + F.softplus(is_made - is_real.mean()).mean()
    teller.zero_grad(set_to_none=True)
    loss.backward()
    teller.step()


def told_apart(adversary: Adversary, real: Tensor, made: Tensor, twin: Tensor) -> tuple[Tensor, Tensor]:
    """How well the adversary tells made places, and by what share its features differ."""
    with torch.no_grad():
        is_real, wanted = adversary(real, twin)
    is_made, found = adversary(made, twin)
    shares = [(a - b).abs().mean() / b.abs().mean() for a, b in zip(found, wanted, strict=True)]
    return F.softplus(is_real.mean() - is_made).mean(), torch.stack(shares).mean()


def run(args: argparse.Namespace) -> None:
    """Data, steps, export."""
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    shape, weights = network.load(args.start)
    scale = shape.scale
    stock = patches.prepare(args.work / f"frames/x{scale}.pt", shape, None, None, args.draws, 0.0, 1)
    net = network.Net(shape)
    net.become(weights)
    mean = {name: value.clone() for name, value in net.state_dict().items()}
    optimizer = torch.optim.Adam(net.parameters(), lr=args.rate, betas=(0.9, 0.99), fused=True)
    adversary = Adversary()
    teller = torch.optim.Adam(adversary.parameters(), lr=args.teller_rate, betas=(0.5, 0.99), fused=True)
    ring = train.edge_weights(scale, torch.device("cpu"))
    begun, shown = time.monotonic(), []
    for number in range(args.steps):
        rng = np.random.default_rng((args.seed, number))
        for group in optimizer.param_groups:
            group["lr"] = train.learning_rate(number, args.steps, args.rate)
        batch = patches.relight(patches.draw(stock, args.batch, args.screen_share, rng), rng)
        step = train.stage(shape, batch)
        low = batch.lr[:, None, patches.HALO : -patches.HALO, patches.HALO : -patches.HALO]
        made = step.base + network.beyond_base(shape, net(step.inputs), step.base, step.twin)
        parts = {"distance": (args.distance, train.distance(made, step, True, ring, train.FLOORS[shape.base]))}
        parts["bound"] = args.bound, beyond_bound(made, low, scale)
        seen = [inside(part, scale) for part in (step.wanted, made, step.twin)]
        if args.ssimulacra2:
            parts["ssimulacra2"] = args.ssimulacra2, 1.0 - ssimulacra2.score(*seen[:2]).mean() / 100.0
        if args.adversary:
            taught(adversary, teller, *seen)
            told, features = told_apart(adversary, *seen)
            parts["told"] = args.adversary * min(1.0, number / WARM_UP), told
            parts["features"] = args.features, features
        train.descend(net, optimizer, sum(weight * part for weight, part in parts.values()), mean, number)
        shown.append([part.detach() for _, part in parts.values()])
        if (number + 1) % args.every == 0 or number + 1 == args.steps:
            recent = torch.tensor(shown[-args.every :]).mean(0).tolist()
            words = " ".join(f"{name} {value:.4f}" for name, value in zip(parts, recent, strict=True))
            print(f"step {number + 1} of {args.steps}: {words} after {time.monotonic() - begun:.0f} s", flush=True)
            averaged = network.Net(shape)
            averaged.load_state_dict(mean)
            network.export(shape, averaged.folded() | train.calibrated(shape, averaged.folded(), stock), args.out)


def main() -> None:
    """Reads the options and trains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("start", type=Path, help="weights of a frame network")
    parser.add_argument("--out", type=Path, default=Path("natural.safetensors"))
    parser.add_argument("--work", type=Path, default=pairs.HERE / ".work", help="cache of patches")
    parser.add_argument("--distance", type=float, default=1.0, help="weight of squared errors")
    parser.add_argument("--ssimulacra2", type=float, default=0.0, help="weight of what lacks of SSIMULACRA2")
    parser.add_argument("--adversary", type=float, default=0.0, help="weight of what an adversary tells apart")
    parser.add_argument("--features", type=float, default=0.0, help="weight of differences in the adversary's features")
    parser.add_argument("--bound", type=float, default=0.5, help="weight of low samples that are off")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--draws", type=int, default=10, help="streams drawn of each clip")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--teller-rate", type=float, default=3e-4)
    parser.add_argument("--screen-share", type=float, default=0.12, help="share of shared-screen patches")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--every", type=int, default=250, help="steps between exports")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
