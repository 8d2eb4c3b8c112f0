"""Measures what fine-tuning a fused network to one speaker gains, and what the pictures it learns from must be worth.

In: exported weights and the held-out clips of `data.toml` at 300 kbit/s. The first frames of a clip are the call so
far: one a second of them has an HR picture, the camera's own, or as a VP9 stream of one frame a second delivers it. The
rest is measured. Out: a table (Markdown) of PSNR-Y in dB over the network as it was and over what the viewer sees
without it.

    python models/adapt.py models/fused-xs-x2.safetensors --steps 800 --sent 50 200
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import metrics
import network
import pairs
import patches
import train
from evaluate import planes

KBPS = 300
SEEN = 150  # frames of the call so far
GAP = 10  # frames between those and what is measured


def adapted(shape: network.Shape, weights: dict, seen: pairs.Pairs, steps: int, rate: float) -> dict:
    """The weights after so many steps on these pictures."""
    rng = np.random.default_rng(0)
    stock = {"face": patches.cut(seen, shape.scale, rng)}
    net = network.Net(shape)
    net.become(weights)
    optimizer = torch.optim.Adam(net.parameters(), lr=rate, betas=(0.9, 0.99))
    share = train.edge_weights(shape.scale, torch.device("cpu"))
    for number in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = train.learning_rate(number, steps, rate)
        step = train.stage(shape, patches.draw(stock, 16, 0.0, rng).each(lambda part: part.float()))
        made = step.base + network.beyond_base(shape, net(step.inputs), step.base, step.twin)
        loss = train.distance(made, step, True, share)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return net.folded()


def quality(shape: network.Shape, weights: dict, rest: pairs.Pairs) -> float:
    """Mean PSNR-Y of the network's pictures."""
    parts = zip(*(planes(part, len(rest.lr)) for part in (rest.lr, rest.twin, rest.hr)), strict=True)
    made = [(network.high(shape, weights, low, twin).round().clamp(0, 255), wanted) for low, twin, wanted in parts]
    return float(np.mean([metrics.psnr(*pair) for pair in made]))


def main() -> None:
    """Reads the options and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--sent", type=int, nargs="*", default=[50, 200], help="kbit/s of the pictures to learn from")
    args = parser.parse_args()
    torch.set_num_threads(1)
    shape, weights = network.load(args.weights)
    print("| clip | learned from | its psnr_y_db | over the network | over the twin | cpu_s |\n|" + " --- |" * 6)
    for clip in pairs.load_list():
        path = pairs.find(clip)
        if clip["role"] != "holdout" or clip["kind"] != "face" or path is None:
            continue
        width, height = pairs.size_of(clip["sizes"][0]["hr"])
        frames, fps = pairs.read_i420(path, clip, width, height)
        variant = pairs.Variant(clip["name"], clip["kind"], clip["role"], width, height, KBPS, shape.scale)
        made = pairs.pairs_of(variant, frames, fps, 0, 1, True)
        at = list(range(0, SEEN, round(fps)))
        rest = pairs.Pairs(*(part[SEEN + GAP :: 6] for part in (made.lr, made.hr, made.twin)))
        before, twin = quality(shape, weights, rest), float(np.mean(list(map(metrics.psnr, *_both(rest)))))
        for kbps in [None, *args.sent]:
            own = made.hr[at]
            high = own if kbps is None else pairs.through_vp9(frames[at].tobytes(), width, height, 1.0, kbps, False)
            begun = time.process_time()
            new = adapted(shape, weights, pairs.Pairs(made.lr[at], high, made.twin[at]), args.steps, args.rate)
            took, after = time.process_time() - begun, quality(shape, new, rest)
            worth = metrics.psnr(torch.from_numpy(high.copy()).float(), torch.from_numpy(own.copy()).float())
            said = "the camera's" if kbps is None else f"{kbps} kbit/s"
            cells = [clip["name"], f"{len(at)} frames, {said}", "–" if kbps is None else f"{worth:.1f}"]
            print("| " + " | ".join([*cells, f"{after - before:+.2f}", f"{after - twin:+.2f}", f"{took:.0f}"]) + " |")


def _both(rest: pairs.Pairs) -> tuple[list, list]:
    return planes(rest.twin, len(rest.lr)), planes(rest.hr, len(rest.lr))


if __name__ == "__main__":
    main()
