"""Training patches: cut from coded clips once, kept in a file, drawn in batches turned and relit at random."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import network
import pairs
import resampling

PATCH = 48  # LR samples per side
HALO = 3  # LR samples that the Lanczos base reads beyond a patch
EASIEST = 0.3  # share of candidate patches left out because Lanczos already does well on them
MOST = 600  # candidates of one stream


@dataclass
class Batch:
    """Patches: LR with halo [N, 54, 54], HR and the twin's picture [N, s·48, s·48]; 8-bit unless relit."""

    lr: Tensor
    hr: Tensor
    twin: Tensor | None

    def to(self, device: torch.device) -> Batch:
        """The same on a device."""
        return self.each(lambda part: part.to(device))

    def each(self, change) -> Batch:  # noqa: ANN001
        """The same change to all of them."""
        return Batch(change(self.lr), change(self.hr), None if self.twin is None else change(self.twin))


def cut(made: pairs.Pairs, scale: int, rng: np.random.Generator) -> Batch:
    """Random patches of every frame; those with the least error under Lanczos are left out."""
    lows, highs, twins = [], [], []
    count, height, width = made.lr.shape
    per_frame = max(1, min(height * width // PATCH**2, MOST // count))
    for index in range(count):
        low = np.pad(made.lr[index], HALO, mode="edge")
        for _ in range(per_frame):
            top, left = int(rng.integers(height - PATCH + 1)), int(rng.integers(width - PATCH + 1))
            side = PATCH + 2 * HALO
            lows.append(low[top : top + side, left : left + side])
            there = (slice(scale * top, scale * (top + PATCH)), slice(scale * left, scale * (left + PATCH)))
            highs.append(made.hr[index][there])
            if made.twin is not None:
                twins.append(made.twin[index][there])
    out = Batch(*(torch.from_numpy(np.stack(part)) if part else None for part in (lows, highs, twins)))
    chunks = zip(out.lr.split(256), out.hr.split(256), strict=True)
    error = torch.cat([(base(a, scale) - b[:, None].float()).square().mean((1, 2, 3)) for a, b in chunks])
    keep = error.argsort(stable=True)[int(EASIEST * len(error)) :].sort().values
    return out.each(lambda part: part[keep])


def base(lr: Tensor, scale: int) -> Tensor:
    """The Lanczos base [N, 1, s·48, s·48] of patches with halo."""
    inner = slice(scale * HALO, -scale * HALO)
    return resampling.up(lr[:, None].float(), scale)[:, :, inner, inner]


def sources(folder: Path | None) -> Iterator[tuple[dict[str, Any], Path]]:
    """The clips to train on with their files: those of the data list, or all videos of a folder."""
    if folder is None:
        for clip in pairs.load_list():
            path = pairs.find(clip)
            if clip["role"] == "train" and path is None:
                print(f"{clip['name']}: {clip['file']} is not in {pairs.clips_folder()}, skipped", flush=True)
            elif clip["role"] == "train":
                yield clip, path
        return
    for path in sorted(p for p in folder.iterdir() if p.suffix in (".mp4", ".webm", ".mkv")):
        yield pairs.described(path), path


def prepare(
    cache: Path, shape: network.Shape, folder: Path | None, enhancer: Path | None, draws: int, soft: float, seed: int
) -> dict[str, Batch]:
    """The patches by kind, from the cache file when it was made for the same clips, draws, softness and seed."""
    twins = pairs.VIEWERS if shape.over_twin else pairs.TWINS if shape.fused else ()
    listing = str([clip for clip, _ in sources(folder)] + [draws, soft, seed, shape.scale, twins, str(enhancer)])
    if cache.exists():
        stored = torch.load(cache)
        if stored["listing"] == listing:
            return {kind: Batch(*tensors) for kind, tensors in stored["patches"].items()}
    rng = np.random.default_rng(seed)
    drawing = pairs.Draws(shape.scale, draws, twins, enhancer, soft)
    found: dict[str, list[Batch]] = {}
    for clip, path in sources(folder):
        for variant, made in pairs.drawn(clip, path, drawing, rng):
            cuts = cut(made, shape.scale, rng)
            found.setdefault(variant.kind, []).append(cuts)
            print(f"{variant.label}: {len(cuts.lr)} patches", flush=True)
    if not found:
        raise RuntimeError(f"there is nothing to train on in {folder or pairs.clips_folder()}")
    out = {kind: _joined(parts) for kind, parts in found.items()}
    cache.parent.mkdir(parents=True, exist_ok=True)
    stored = {kind: (part.lr, part.hr, part.twin) for kind, part in out.items()}
    torch.save({"listing": listing, "patches": stored}, cache)
    return out


def _joined(parts: list[Batch]) -> Batch:
    twins = [part.twin for part in parts if part.twin is not None]
    lr, hr = (torch.cat([getattr(part, name) for part in parts]) for name in ("lr", "hr"))
    return Batch(lr, hr, torch.cat(twins) if twins else None)


def draw(stock: dict[str, Batch], batch: int, screen_share: float, rng: np.random.Generator) -> Batch:
    """A batch, turned at random."""
    screens = int(rng.binomial(batch, screen_share)) if "screen" in stock else 0
    screens = batch if "face" not in stock else screens
    parts = []
    for kind, count in (("face", batch - screens), ("screen", screens)):
        if count:
            picked = torch.from_numpy(rng.integers(len(stock[kind].lr), size=count)).to(stock[kind].lr.device)
            parts.append(stock[kind].each(lambda part, picked=picked: part[picked]))
    out = _joined(parts)
    for axis in (1, 2):
        if rng.random() < 0.5:
            out = out.each(lambda part, axis=axis: part.flip(axis))
    return out.each(lambda part: part.transpose(1, 2)) if rng.random() < 0.5 else out


def relight(batch: Batch, rng: np.random.Generator) -> Batch:
    """Contrast and brightness drawn per patch, the same for all its pictures, so that few rooms stand for many."""
    shape, device = (len(batch.lr), 1, 1), batch.lr.device
    gain = torch.from_numpy(rng.uniform(0.7, 1.25, shape).astype(np.float32)).to(device)
    shift = torch.from_numpy(rng.uniform(-24.0, 24.0, shape).astype(np.float32)).to(device)
    middle = batch.lr.float().mean((1, 2), keepdim=True)
    return batch.each(lambda part: (part - middle) * gain + middle + shift)
