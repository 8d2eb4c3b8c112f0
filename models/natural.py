"""Trains a frame network on, from its faithful weights, for pictures that look natural.

In: weights of a frame network and the patches that `train.py` prepares. Out: the same network's weights. The loss is
`train.py`'s, and beside it: SSIMULACRA2 (`--ssimulacra2`), an adversary that learns to tell made pictures from wanted
ones (`--adversary`), and a bound: scaled down, a picture is to be the low one within a grey level (`--bound`).

    python models/natural.py models/frames/xs-x2.safetensors --ssimulacra2 0.3 --out natural.safetensors
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
WIDTH = 32


class Adversary(nn.Module):
    """Says how real each place of a picture looks, beside what was shown without the network."""

    def __init__(self) -> None:
        super().__init__()
        widths = [2, WIDTH, WIDTH, 2 * WIDTH, 2 * WIDTH]
        convs = [
            spectral_norm(nn.Conv2d(a, b, 4 if index in (1, 2) else 3, 2 if index in (1, 2) else 1, 1))
            for index, (a, b) in enumerate(zip(widths, widths[1:], strict=False))
        ]
        self.body = nn.ModuleList(convs)
        self.last = nn.Conv2d(widths[-1], 1, 3)

    def forward(self, picture: Tensor, twin: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The logits, and the features that led to them."""
        x, features = torch.cat([picture - twin, twin - twin.mean((2, 3), keepdim=True)], 1) / 16.0, []
        for conv in self.body:
            x = F.leaky_relu(conv(x), 0.2)
            features.append(x)
        return self.last(x), features


def beyond_bound(made: Tensor, low: Tensor, scale: int) -> Tensor:
    """By how much low samples are off more than they may, squared, in the mean."""
    off = F.avg_pool2d(made, scale) - low
    return (off.abs() - WITHIN).clamp_min(0.0).square().mean()


def inside(picture: Tensor, scale: int) -> Tensor:
    """What does not see a patch's padding."""
    edge = scale * train.RING
    return picture[:, :, edge:-edge, edge:-edge]


def telling(real: Tensor, made: Tensor) -> Tensor:
    """The adversary's loss: real ones are to look more real than the mean of the made ones, and the other way round."""
    return F.softplus(made.mean() - real).mean() + F.softplus(made - real.mean()).mean()


def run(args: argparse.Namespace) -> None:
    """Data, steps, export."""
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    shape, weights = network.load(args.start)
    stock = patches.prepare(args.work / f"frames/x{shape.scale}.pt", shape, None, None, args.draws, 1)
    net = network.Net(shape)
    net.become(weights)
    mean = {name: value.clone() for name, value in net.state_dict().items()}
    optimizer = torch.optim.Adam(net.parameters(), lr=args.rate, betas=(0.9, 0.99), fused=True)
    adversary = Adversary()
    teller = torch.optim.Adam(adversary.parameters(), lr=args.teller_rate, betas=(0.5, 0.99), fused=True)
    ring = train.edge_weights(shape.scale, torch.device("cpu"))
    begun, shown = time.monotonic(), []
    for number in range(args.steps):
        rng = np.random.default_rng((args.seed, number))
        for group in optimizer.param_groups:
            group["lr"] = train.learning_rate(number, args.steps, args.rate)
        batch = patches.relight(patches.draw(stock, args.batch, args.screen_share, rng), rng)
        step = train.stage(shape, batch)
        low = batch.lr[:, None, patches.HALO : -patches.HALO, patches.HALO : -patches.HALO]
        made = step.base + network.beyond_base(shape, net(step.inputs), step.base, step.twin)
        far = train.distance(made, step, True, ring, train.FLOORS[shape.base])
        parts = {"distance": (args.distance, far)}
        if args.perceived:
            parts["perceived"] = args.perceived, train.lacking(made, step.wanted, shape.scale)
        if args.ssimulacra2:
            some = slice(max(1, 2 * len(made) // shape.scale**2))
            both = inside(step.wanted[some], shape.scale), inside(made[some], shape.scale)
            parts["ssimulacra2"] = args.ssimulacra2, 1.0 - ssimulacra2.score(*both).mean() / 100.0
        if args.bound:
            parts["bound"] = args.bound, beyond_bound(made, low, shape.scale)
        if args.adversary:
            some = slice(max(1, 2 * len(made) // shape.scale**2))
            seen = [inside(part[some], shape.scale) for part in (step.wanted, made, step.twin)]
            real, _ = adversary(seen[0], seen[2])
            told, _ = adversary(seen[1].detach(), seen[2])
            loss = telling(real, told)
            teller.zero_grad(set_to_none=True)
            loss.backward()
            teller.step()
            with torch.no_grad():
                real, wanted_features = adversary(seen[0], seen[2])
            told, features = adversary(seen[1], seen[2])
            fooled = F.softplus(told.mean() * 0.0 + real.mean() - told).mean()
            parts["fooled"] = args.adversary * min(1.0, number / 300), fooled
            near = [(a - b).abs().mean() / b.abs().mean() for a, b in zip(features, wanted_features, strict=True)]
            parts["features"] = args.features, torch.stack(near).mean()
            parts["telling"] = 0.0, loss.detach()
        train.descend(net, optimizer, sum(weight * part for weight, part in parts.values()), mean, number)
        shown.append([part.detach() for _, part in parts.values()])
        if (number + 1) % args.every == 0 or number + 1 == args.steps:
            recent = torch.tensor(shown[-args.every :]).mean(0)
            words = " ".join(f"{name} {value:.4f}" for name, value in zip(parts, recent.tolist(), strict=True))
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
    parser.add_argument("--perceived", type=float, default=0.0, help="weight of VMAF-NEG's terms")
    parser.add_argument("--ssimulacra2", type=float, default=0.0, help="weight of what lacks of SSIMULACRA2")
    parser.add_argument("--adversary", type=float, default=0.0, help="weight of fooling an adversary")
    parser.add_argument("--features", type=float, default=0.0, help="weight of differences in the adversary's features")
    parser.add_argument("--bound", type=float, default=0.5, help="weight of low samples that are off")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--draws", type=int, default=10, help="streams drawn of each clip")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--teller-rate", type=float, default=3e-4)
    parser.add_argument("--screen-share", type=float, default=0.12, help="share of shared-screen patches")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--every", type=int, default=500, help="steps between exports")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
