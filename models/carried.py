"""Measures what enhanced anchors leave with a viewer, by how many frames ago the last one was.

In: exported weights and the held-out clips of `data.toml`. Out: a table (Markdown) of PSNR-Y in dB over what the same
decoder shows without any anchor, by clip, LR size and bit rate: the mean over all frames, and at some distances from
the anchor. Anchors are whole frames, coded as the enhancer codes them, one every `--every` frames, `--late` frames
after its own.

    python models/carried.py models/xs-x2.safetensors models/fused-xs-x2.safetensors --every 15 --late 0
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

import network
import pairs

FRAMES = 150


def psnr(made: pairs.Luma, wanted: pairs.Luma) -> np.ndarray:
    """PSNR-Y of each frame."""
    return np.array(
        [10.0 * np.log10(255.0**2 / np.square(a - b.astype(float)).mean()) for a, b in zip(made, wanted, strict=True)]
    )


def main() -> None:
    """Reads the options and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="+")
    parser.add_argument("--every", type=int, default=15)
    parser.add_argument("--late", type=int, default=0)
    parser.add_argument("--apart", action="store_true", help="networks see a decoder without the enhanced anchors")
    args = parser.parse_args()
    scale = network.load(args.weights[0])[0].scale
    places = [at for at in (0, 1, 2, 4, 8, 14, 29) if at < args.every]
    header = ["clip", "input", "video_kbps", "network", "mean", *(f"after {at}" for at in places)]
    print("| " + " | ".join(header) + " |\n|" + " --- |" * len(header))
    for clip in pairs.load_list():
        path = pairs.find(clip)
        if clip["role"] != "holdout" or path is None:
            continue
        for variant, bare in pairs.measured(clip | {"frames": FRAMES}, path, scale, 1, [""]):
            frames, fps = read(clip, path, variant)
            without = psnr(bare.twin, bare.hr)
            for weights in args.weights:
                twin = f"enhanced={args.every} late={args.late} apart={int(args.apart)} model={weights.resolve()}"
                made = pairs.pairs_of(replace(variant, twin=twin), frames, fps, 0, 1, True)
                gain = (psnr(made.twin, made.hr) - without)[args.every + args.late :]
                means = [gain.mean(), *(gain[(at - args.late) % args.every :: args.every].mean() for at in places)]
                row = [variant.clip, f"{bare.lr.shape[2]}x{bare.lr.shape[1]}", str(variant.kbps), weights.stem]
                print("| " + " | ".join([*row, *(f"{mean:+.2f}" for mean in means)]) + " |", flush=True)


def read(clip: dict, path: Path, variant: pairs.Variant) -> tuple[np.ndarray, float]:
    """The frames that the variant codes."""
    return pairs.read_i420(path, clip | {"frames": FRAMES}, variant.width, variant.height)


if __name__ == "__main__":
    main()
