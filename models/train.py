"""Trains a network on VP9-coded clips and exports it.

Source: NeuroScaler §8. In: the clips of `data.toml` (role `train` only), or all of a folder. Out: `NAME.safetensors`,
its test vector, and a checkpoint to resume from; at the end the report of `evaluate.py`. The same seed, steps and
thread count give the same weights on the same machine.

    python models/train.py --tier xs --inputs luma+twin --steps 20000
    python models/train.py --tier xs --inputs luma+twin --steps 30000 --resume
    python models/train.py --tier s --clips recordings --start models/s-x2.safetensors
    python models/train.py --tier xs --inputs luma+twin --base twin
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import evaluate
import network
import pairs
import patches
import perceived
from patches import HALO, Batch

RING_WEIGHT = 0.1  # share in the loss of what sees a patch's zero padding: real frames have edges too, but few
RING = 5  # LR samples at a patch's edge that do, with five layers
CALIBRATING = 512  # patches by which the ranges of activations are found
# Squared grey levels added to what was wrong before, so that flat patches do not rule the loss. Frame networks are also
# shown pictures with stills, where little is wrong.
FLOORS = {"lanczos3": 8.0, "twin": 1.5}


@dataclass
class Step:
    """What a step of training compares: HR, the base and, for networks that see it, the twin's picture."""

    inputs: Tensor
    base: Tensor
    twin: Tensor | None
    wanted: Tensor


def stage(shape: network.Shape, batch: Batch) -> Step:
    """A batch as the network takes it."""
    inner = batch.lr[:, None, HALO:-HALO, HALO:-HALO]
    twin = None if batch.twin is None else batch.twin[:, None]
    base = twin if shape.over_twin else patches.base(batch.lr, shape.scale)
    inputs = network.inputs_of(shape, inner, twin).contiguous(memory_format=torch.channels_last)
    return Step(inputs, base, twin, batch.hr[:, None])


def edge_weights(scale: int, device: torch.device) -> Tensor:
    """Loss weights with mean 1: less where a patch's edge reaches into the receptive field."""
    side = scale * patches.PATCH
    weight = torch.full((side, side), RING_WEIGHT, device=device)
    weight[scale * RING : -scale * RING, scale * RING : -scale * RING] = 1.0
    return weight / weight.mean()


def distance(made: Tensor, step: Step, squared: bool, weights: Tensor, floor: float = FLOORS["lanczos3"]) -> Tensor:
    """The loss of HR luma: absolute, or squared and relative to what was wrong before (of the twin, or of Lanczos).

    Relative, since a page of text would else count as much as ten faces.
    """
    error = made - step.wanted
    if not squared:
        return (error.abs() * weights).mean()
    before = step.base if step.twin is None else step.twin
    left = (before - step.wanted).square().mean((1, 2, 3), keepdim=True)
    return (error.square() * weights / (left + floor)).mean()


def lacking(made: Tensor, wanted: Tensor, scale: int) -> Tensor:
    """The mean of what the insides of patches lack for the eye, of as few as cost what the network does."""
    some, inside = slice(max(1, 2 * len(made) // scale**2)), slice(scale * RING, -scale * RING)
    return perceived.lacking(made[some, :, inside, inside], wanted[some, :, inside, inside]).mean()


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Warm-up of 100 steps, then a cosine to zero."""
    return peak * min(1.0, (step + 1) / 100) * 0.5 * (1.0 + math.cos(math.pi * step / steps))


def descend(
    net: network.Net, optimizer: torch.optim.Optimizer, loss: Tensor, mean: dict[str, Tensor], number: int
) -> None:
    """A step down the loss, after which the mean of the weights follows: the longer the training, the more slowly."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 20.0)
    optimizer.step()
    keep = min(0.999, (number + 1) / (number + 10))
    with torch.no_grad():
        for name, value in net.state_dict().items():
            mean[name].lerp_(value, 1.0 - keep)


def calibrated(shape: network.Shape, weights: dict[str, Tensor], stock: dict[str, Batch]) -> dict[str, Tensor]:
    """The ranges of a frame network's activations on patches of the stock; of other networks, nothing."""
    if not shape.over_twin:
        return {}
    batch = patches.draw(stock, CALIBRATING, 0.2, np.random.default_rng(0)).each(lambda part: part.cpu().float())
    return network.ranges(shape, weights, batch.lr[:, None, HALO:-HALO, HALO:-HALO], batch.twin[:, None])


def train(args: argparse.Namespace) -> None:
    """The whole run: data, steps, checkpoints, export."""
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    device = torch.device(args.device)
    shape = replace(network.TIERS[args.tier], scale=args.scale, inputs=args.inputs, base=args.base)
    stock = patches.prepare(
        args.work / f"{args.kind}x{args.scale}.pt", shape, args.clips, args.enhancer, args.draws, args.soft, args.seed
    )
    print(
        f"{args.out.stem}: {shape.macs} MAC for each LR sample;", {k: len(p.lr) for k, p in stock.items()}, flush=True
    )
    stock = {kind: part.to(device) for kind, part in stock.items()}
    net = network.Net(shape)
    if args.start:
        other, weights = network.load(args.start)
        if shape.over_twin and other.gated:
            other, weights = replace(other, base="twin"), network.ungated(weights, shape)
        if replace(other, channels=shape.channels) != shape or other.channels > shape.channels:
            raise SystemExit(f"{args.start} is of another shape: {other}, not {shape} or a narrower one")
        net.become(weights if other == shape else network.widened(weights, shape))
    net = net.to(device)
    mean = {name: value.clone() for name, value in net.state_dict().items()}
    optimizer = torch.optim.Adam(net.parameters(), lr=args.rate, betas=(0.9, 0.99), fused=True)
    start, checkpoint = 0, args.work / f"{args.out.stem}.checkpoint.pt"
    if args.resume:
        stored = torch.load(checkpoint, map_location=device)
        net.load_state_dict(stored["net"])
        optimizer.load_state_dict(stored["optimizer"])
        mean, start = stored["mean"], stored["step"]
    body = torch.bfloat16 if args.bf16 else torch.float32
    weights = edge_weights(shape.scale, device)
    begun, losses = time.monotonic(), []
    end = min(args.steps, args.stop or args.steps)
    for number in range(start, end):
        rng = np.random.default_rng((args.seed, number))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(number, args.steps, args.rate)
        step = stage(shape, patches.relight(patches.draw(stock, args.batch, args.screen_share, rng), rng))
        answer = net(step.inputs, body).float()
        made = step.base + network.beyond_base(shape, answer, step.base, step.twin)
        squared = number >= args.l1_share * args.steps
        loss = distance(made, step, squared, weights, FLOORS[shape.base])
        if squared and args.perceived > 0.0:
            loss = loss + args.perceived * lacking(made, step.wanted, shape.scale)
        descend(net, optimizer, loss, mean, number)
        losses.append(loss.detach())
        if (number + 1) % args.every == 0 or number + 1 == end:
            took = time.monotonic() - begun
            recent = torch.stack(losses[-args.every :]).mean().item()
            print(f"step {number + 1} of {args.steps}: loss {recent:.4f} after {took:.0f} s", flush=True)
            stored = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "mean": mean, "step": number + 1}
            torch.save(stored, checkpoint)
            averaged = network.Net(shape)
            averaged.load_state_dict(mean)
            network.export(shape, averaged.folded() | calibrated(shape, averaged.folded(), stock), args.out)


def options() -> argparse.ArgumentParser:
    """The options of the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", choices=list(network.TIERS), default="xs")
    parser.add_argument("--scale", type=int, choices=[2, 3, 4], default=2)
    parser.add_argument("--inputs", choices=["luma", "luma+twin"], default="luma")
    parser.add_argument("--base", choices=["lanczos3", "twin"], default="lanczos3", help="twin: a frame network")
    parser.add_argument("--clips", type=Path, help="train on all videos of this folder instead of the data list")
    parser.add_argument("--enhancer", type=Path, help="network of the anchors that twins have had (built in: xs-x2)")
    parser.add_argument("--out", type=Path, help="[fused-|frames/]TIER-xSCALE.safetensors in this folder by default")
    parser.add_argument("--work", type=Path, default=pairs.HERE / ".work", help="cache of patches, checkpoints")
    parser.add_argument("--steps", type=int, default=18000)
    parser.add_argument("--stop", type=int, help="end after this one of the steps")
    parser.add_argument("--draws", type=int, default=8, help="streams drawn of each clip")
    parser.add_argument("--soft", type=float, default=0.0, help="share of the streams of faces that are blurred")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--l1-share", type=float, default=0.5, help="share of the steps with L1; the rest squared")
    parser.add_argument("--perceived", type=float, default=0.0, help="weight of VMAF-NEG's terms beside squared errors")
    parser.add_argument("--screen-share", type=float, default=0.12, help="share of shared-screen patches")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=1, help="more only on an idle machine")
    parser.add_argument("--every", type=int, default=500, help="steps between checkpoints")
    parser.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--start", type=Path, help="begin with these weights, of this tier or narrower")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --work")
    parser.add_argument("--report", action=argparse.BooleanOptionalAction, default=True)
    return parser


def main() -> None:
    """Reads the options, trains and reports."""
    parser = options()
    args = parser.parse_args()
    if args.base == "twin" and args.inputs != "luma+twin":
        parser.error("--base twin goes with --inputs luma+twin")
    args.kind = "frames/" if args.base == "twin" else "fused-" if args.inputs == "luma+twin" else ""
    if args.out is None:
        args.out = pairs.HERE / f"{args.kind}{args.tier}-x{args.scale}.safetensors"
    train(args)
    if args.report:
        print(evaluate.report([args.out], "holdout", stride=4, vmaf=True))


if __name__ == "__main__":
    main()
