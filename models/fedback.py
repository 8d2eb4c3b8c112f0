"""Measures fused networks that are shown their own anchors, or not.

In: exported weights and the held-out faces of `data.toml`. Out: a table (Markdown) of PSNR-Y in dB over Lanczos of what
each network makes of a frame, before that is coded: from a decoder that has had nothing, and from one that has had its
anchors, whole frames, coded as the enhancer codes them, on every so manieth frame before. All columns are means over
the same frames: every 15th from the 30th on. With `--own` the network sees a decoder of its own that has its anchors at
that quality instead of what viewers have, with `--apart` one that has none. With `--shown` the columns are what viewers
see after the anchor, and `fresh` what they see without any. `--model` adds PSNR-Y to the decoder's picture of the one
that `recurrent.py` models, of the same without coding, and of one that has had nothing.

    python models/fedback.py models/fused-xs-x2.safetensors recurrent.safetensors
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

import metrics
import network
import pairs
import recurrent
import resampling

FIRST, APART = 30, 15
LAST = 60  # the frame on which the modelled decoder is compared


def planes(frames: pairs.Luma) -> torch.Tensor:
    """Frames as networks take them, [N, 1, H, W]."""
    return torch.from_numpy(frames.copy())[:, None].float()


def over_lanczos(made: pairs.Pairs, shape: network.Shape, weights: dict[str, torch.Tensor], shown: bool) -> float:
    """The mean gain of a network, or of what the decoder shows."""
    gains = []
    for low, twin, wanted in zip(planes(made.lr), planes(made.twin), planes(made.hr), strict=True):
        high, base = network.high(shape, weights, low[None], twin[None]), resampling.up(low[None], shape.scale)
        high = twin[None] if shown else high
        psnrs = [metrics.psnr(picture.round().clamp(0, 255)[0], wanted) for picture in (high, base)]
        gains.append(psnrs[0] - psnrs[1])
    return float(np.mean(gains))


@torch.inference_mode()
def likeness(
    variant: pairs.Variant, frames: np.ndarray, fps: float, weights: Path, every: int
) -> tuple[float, float, float]:
    """PSNR-Y to the decoder's twin of the modelled one, of the modelled one without coding, and of one with nothing."""
    width, height = variant.width, variant.height // 32 * 32
    luma = pairs.luma_of(frames, variant.width, variant.height)[:, :height]
    chroma = np.full((len(frames), width * height // 2), 128, np.uint8)
    frames = np.concatenate([luma.reshape(len(frames), -1), chroma], 1)
    at = list(range(0, LAST + 1, every))
    variant = replace(variant, height=height, twin="")
    bare, cells = recurrent.frames_of(variant, frames[: at[-1] + 1], fps, at)
    variant = replace(variant, twin=f"enhanced={every} late=0 before=1 model={weights.resolve()}")
    real, _ = recurrent.frames_of(variant, frames[: at[-1] + 1], fps, at)
    low = np.pad(bare.lr, ((0, 0), (recurrent.HALO,) * 2, (recurrent.HALO,) * 2), mode="edge")
    run = recurrent.Runs(*(torch.from_numpy(part.copy())[None] for part in (low, bare.hr, bare.twin, cells)))
    shape, tensors = network.load(weights)
    net = network.Net(shape)
    net.become(tensors)
    last = planes(real.twin)[-1]
    out = []
    for codec in (partial(recurrent.coded, recurrent.CODED), lambda made, _, twin: made - twin):
        *_, (_, step, _, _) = recurrent.unroll(shape, net, run, range(len(at)), recurrent.State([], []), codec)
        out.append(metrics.psnr(step.twin[0].round().clamp(0, 255), last))
    return out[0], out[1], metrics.psnr(planes(bare.twin)[-1], last)


def main() -> None:
    """Reads the options and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="+")
    parser.add_argument("--every", type=int, nargs="*", default=[1, 5, 15])
    parser.add_argument("--own", type=int, default=0, help="the network's own decoder has anchors of this quality")
    parser.add_argument("--apart", action="store_true", help="the network's own decoder has none of its anchors")
    parser.add_argument("--shown", action="store_true", help="measure what viewers see")
    parser.add_argument("--model", action="store_true", help="also compare the modelled decoder with the real one")
    parser.add_argument("--only", nargs="*", default=[], help="names of clips")
    parser.add_argument("--kbps", type=int, nargs="*", default=[300])
    args = parser.parse_args()
    torch.set_num_threads(1)
    header = ["clip", "input", "video_kbps", "network", "fresh", *(f"every {n}" for n in args.every)]
    print("| " + " | ".join(header) + " |\n|" + " --- |" * len(header))
    for clip in pairs.load_list():
        path = pairs.find(clip)
        wanted = clip["role"] == "holdout" and clip["kind"] == "face" and (not args.only or clip["name"] in args.only)
        if path is None or not wanted:
            continue
        width, height = pairs.size_of(clip["sizes"][0]["hr"])
        frames, fps = pairs.read_i420(path, clip, width, height)
        for kbps in args.kbps:
            variant = pairs.Variant(clip["name"], clip["kind"], clip["role"], width, height, kbps)
            for weights in args.weights:
                row = [clip["name"], f"{width // 2}x{height // 2}", str(kbps), weights.stem]
                how = f"late=0 before={int(not args.shown)} own={args.own} apart={int(args.apart)}"
                for every in (0, *args.every):
                    twin = f"enhanced={every} {how} model={weights.resolve()}"
                    made = pairs.pairs_of(replace(variant, twin=twin), frames, fps, FIRST, APART, True)
                    row.append(f"{over_lanczos(made, *network.load(weights), args.shown):+.2f}")
                print("| " + " | ".join(row) + " |", flush=True)
                if args.model:
                    for every in args.every:
                        near = likeness(variant, frames, fps, weights, every)
                        print(
                            f"every {every}: modelled {near[0]:.1f}, uncoded {near[1]:.1f}, nothing {near[2]:.1f} dB",
                            flush=True,
                        )


if __name__ == "__main__":
    main()
