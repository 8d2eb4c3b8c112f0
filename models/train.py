"""Trains `xs-x2` on VP9-coded clips and exports it.

Source: seed 000 §6.1. In: the clips of `data.toml` (role `train` only). Out: `xs-x2.safetensors`, its test vector,
and a checkpoint to resume from. The same seed, steps and thread count give the same weights on the same machine.

    python models/train.py --steps 18000
    python models/train.py --steps 24000 --resume
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import network
import pairs

PATCH = 48  # LR samples per side
HALO = 3  # LR samples that the Lanczos base reads beyond a patch
RING = 5  # LR samples at a patch's edge that see the network's zero padding
RING_WEIGHT = 0.1  # their share in the loss: real frames have edges too, but few
FLOOR = 8.0  # squared grey levels added to what Lanczos leaves, so that flat patches do not rule the loss
EASIEST = 0.3  # share of candidate patches left out because Lanczos already does well on them


@dataclass
class Patches:
    """Training patches of one kind: LR with halo [N, 54, 54] and HR [N, 96, 96], 8-bit."""

    lr: Tensor
    hr: Tensor


def cut(lr: pairs.Luma, hr: pairs.Luma, stride: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random patches of every `stride`-th frame; those with the least error under Lanczos are left out."""
    lows, highs = [], []
    _, height, width = lr.shape
    per_frame = max(1, height * width // PATCH**2)
    for index in range(int(rng.integers(stride)), len(lr), stride):
        low = np.pad(lr[index], HALO, mode="edge")
        for _ in range(per_frame):
            top, left = int(rng.integers(height - PATCH + 1)), int(rng.integers(width - PATCH + 1))
            side = PATCH + 2 * HALO
            lows.append(low[top : top + side, left : left + side])
            highs.append(hr[index, 2 * top : 2 * (top + PATCH), 2 * left : 2 * (left + PATCH)])
    low, high = np.stack(lows), np.stack(highs)
    error = torch.cat([(base(a) - b[:, None].float()).square().mean((1, 2, 3)) for a, b in _chunks(low, high)]).numpy()
    keep = np.sort(np.argsort(error, kind="stable")[int(EASIEST * len(error)) :])
    return low[keep], high[keep]


def base(lr: Tensor) -> Tensor:
    """The Lanczos base [N, 1, 96, 96] of patches with halo."""
    inner = slice(2 * HALO, -2 * HALO)
    return network.up2(lr[:, None].float())[:, :, inner, inner]


def _chunks(low: np.ndarray, high: np.ndarray, size: int = 256) -> list[tuple[Tensor, Tensor]]:
    return list(zip(torch.from_numpy(low).split(size), torch.from_numpy(high).split(size), strict=True))


def prepare(cache: Path, seed: int) -> dict[str, Patches]:
    """The patches by kind, from the cache file when it was made for the same data list and seed."""
    listing = (pairs.HERE / "data.toml").read_text()
    if cache.exists():
        stored = torch.load(cache)
        if stored["listing"] == listing and stored["seed"] == seed:
            return {kind: Patches(*tensors) for kind, tensors in stored["patches"].items()}
    rng = np.random.default_rng(seed)
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for clip in pairs.load_list():
        if clip["role"] != "train":
            continue
        for variant, lr, hr in pairs.variants(clip):
            low, high = cut(lr, hr, variant.stride, rng)
            found.setdefault(variant.kind, []).append((low, high))
            print(f"{variant.label}: {len(low)} patches", flush=True)
    out = {
        kind: Patches(*(torch.from_numpy(np.concatenate(part)) for part in zip(*parts, strict=True)))
        for kind, parts in found.items()
    }
    cache.parent.mkdir(parents=True, exist_ok=True)
    stored = {"listing": listing, "seed": seed, "patches": {kind: (p.lr, p.hr) for kind, p in out.items()}}
    torch.save(stored, cache)
    return out


def draw(
    patches: dict[str, Patches], batch: int, screen_share: float, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """A batch of LR [N, 54, 54] and HR [N, 96, 96], turned at random."""
    screens = int(rng.binomial(batch, screen_share)) if "screen" in patches else 0
    lows, highs = [], []
    for kind, count in (("face", batch - screens), ("screen", screens)):
        if count:
            picked = torch.from_numpy(rng.integers(len(patches[kind].lr), size=count))
            lows.append(patches[kind].lr[picked])
            highs.append(patches[kind].hr[picked])
    lr, hr = torch.cat(lows), torch.cat(highs)
    for axis in (1, 2):
        if rng.random() < 0.5:
            lr, hr = lr.flip(axis), hr.flip(axis)
    if rng.random() < 0.5:
        lr, hr = lr.transpose(1, 2), hr.transpose(1, 2)
    return lr, hr


def relight(lr: Tensor, hr: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Contrast and brightness drawn per patch, the same for both, so that few rooms stand for many."""
    shape = (len(lr), 1, 1)
    gain = torch.from_numpy(rng.uniform(0.7, 1.25, shape).astype(np.float32))
    shift = torch.from_numpy(rng.uniform(-24.0, 24.0, shape).astype(np.float32))
    middle = lr.float().mean((1, 2), keepdim=True)
    return (lr - middle) * gain + middle + shift, (hr - middle) * gain + middle + shift


def edge_weights() -> Tensor:
    """Loss weights [96, 96] with mean 1: less where a patch's edge reaches into the receptive field."""
    weight = torch.full((2 * PATCH, 2 * PATCH), RING_WEIGHT)
    weight[2 * RING : -2 * RING, 2 * RING : -2 * RING] = 1.0
    return weight / weight.mean()


EDGE_WEIGHTS = edge_weights()


def distance(out: Tensor, wanted: Tensor, squared: bool) -> Tensor:
    """The loss of residuals [N, 1, 96, 96]: absolute, or squared and relative to what Lanczos leaves of each patch.

    Relative, since a page of text would else count as much as ten faces.
    """
    error = out - wanted
    if not squared:
        return (error.abs() * EDGE_WEIGHTS).mean()
    left = wanted.square().mean((1, 2, 3), keepdim=True)
    return (error.square() * EDGE_WEIGHTS / (left + FLOOR)).mean()


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Warm-up of 100 steps, then a cosine to zero."""
    return peak * min(1.0, (step + 1) / 100) * 0.5 * (1.0 + math.cos(math.pi * step / steps))


def train(args: argparse.Namespace) -> None:
    """The whole run: data, steps, checkpoints, export."""
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    patches = prepare(args.work / "patches.pt", args.seed)
    print({kind: len(p.lr) for kind, p in patches.items()}, flush=True)
    net = network.Net()
    mean = {name: value.clone() for name, value in net.state_dict().items()}
    optimizer = torch.optim.Adam(net.parameters(), lr=args.rate, betas=(0.9, 0.99))
    start, checkpoint = 0, args.work / "checkpoint.pt"
    if args.resume:
        stored = torch.load(checkpoint)
        net.load_state_dict(stored["net"])
        optimizer.load_state_dict(stored["optimizer"])
        mean, start = stored["mean"], stored["step"]
    body = torch.bfloat16 if args.bf16 else torch.float32
    begun, losses = time.monotonic(), []
    for step in range(start, args.steps):
        rng = np.random.default_rng((args.seed, step))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, args.steps, args.rate)
        lr, hr = relight(*draw(patches, args.batch, args.screen_share, rng), rng)
        inner = lr[:, HALO:-HALO, HALO:-HALO]
        out = net(inner[:, None].contiguous(memory_format=torch.channels_last), body)
        loss = distance(out, hr[:, None] - base(lr), step >= args.l1_share * args.steps)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 20.0)
        optimizer.step()
        keep = min(0.999, (step + 1) / (step + 10))
        with torch.no_grad():
            for name, value in net.state_dict().items():
                mean[name].lerp_(value, 1.0 - keep)
        losses.append(loss.item())
        if (step + 1) % args.every == 0 or step + 1 == args.steps:
            took = time.monotonic() - begun
            print(f"step {step + 1} loss {np.mean(losses[-args.every :]):.4f} after {took:.0f} s", flush=True)
            stored = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "mean": mean, "step": step + 1}
            torch.save(stored, checkpoint)
            averaged = network.Net()
            averaged.load_state_dict(mean)
            network.export(averaged.folded(), args.out)


def main() -> None:
    """Reads the options and trains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=pairs.HERE / "xs-x2.safetensors")
    parser.add_argument("--work", type=Path, default=pairs.HERE / ".work", help="cache of patches, checkpoint")
    parser.add_argument("--steps", type=int, default=18000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--l1-share", type=float, default=0.5, help="share of the steps with L1; the rest squared")
    parser.add_argument("--screen-share", type=float, default=0.12, help="share of shared-screen patches")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="more only on an idle machine")
    parser.add_argument("--every", type=int, default=500, help="steps between checkpoints")
    parser.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --work")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
