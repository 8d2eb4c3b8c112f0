"""Training patches: cut from coded clips once, kept in a file, drawn in batches turned and relit at random."""

from __future__ import annotations

import math
import multiprocessing
import time
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
GAINS, SHIFTS = (0.7, 1.25), (-24.0, 24.0)  # of contrast and brightness, least and most


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


@dataclass(frozen=True)
class Task:
    """A stream that one of many processes draws and cuts, by a generator of its own."""

    clip: dict[str, Any]
    path: Path
    scale: int
    twins: tuple[str, ...]
    enhancer: Path | None
    soft: float
    seeds: tuple[int, int, int]  # the run's, the clip's number, the draw's
    until: float  # by the monotonic clock: no stream is begun after it


def _streamed(task: Task) -> tuple[str, str, tuple[np.ndarray | None, ...]] | None:
    """Kind, label and patches of a stream, or nothing when time is over or it cannot be made."""
    if time.monotonic() > task.until:
        return None
    rng = np.random.default_rng(task.seeds)
    some = (task.clip, task.path, task.scale, 1, task.twins, task.enhancer, task.soft)
    try:
        ((variant, made),) = pairs.drawn(*some, rng)
    except RuntimeError as error:
        print(f"{task.clip['name']}: left out: {error}", flush=True)
        return None
    cuts = cut(made, task.scale, rng)
    arrays = tuple(None if part is None else part.numpy() for part in (cuts.lr, cuts.hr, cuts.twin))
    return variant.kind, variant.label, arrays


def _in_processes(tasks: list[Task], jobs: int) -> Iterator[tuple[str, str, Batch]]:
    """What the tasks give, in their order."""
    with multiprocessing.get_context("fork").Pool(jobs, torch.set_num_threads, (1,)) as pool:
        for made in pool.imap(_streamed, tasks):
            if made is not None:
                kind, label, arrays = made
                yield kind, label, Batch(*(None if part is None else torch.from_numpy(part) for part in arrays))


def prepare(
    cache: Path,
    shape: network.Shape,
    folder: Path | None,
    enhancer: Path | None,
    draws: int,
    soft: float,
    seed: int,
    jobs: int = 1,
    seconds: float = math.inf,
) -> dict[str, Batch]:
    """The patches by kind, from the cache file when it was made for the same clips, draws, softness and seed.

    One job draws all streams by one generator. Of more, each stream has its own: any number above one gives the same
    patches, unless they may begin no stream after so many seconds; then each clip has about as many as any other.
    """
    twins = pairs.VIEWERS if shape.over_twin else pairs.TWINS if shape.fused else ()
    clips = list(sources(folder))
    listing = str([clip for clip, _ in clips] + [draws, soft, seed, shape.scale, twins, str(enhancer)])
    if jobs > 1:
        listing += f" each by its own generator, within {seconds} s"
    if cache.exists():
        stored = torch.load(cache)
        if stored["listing"] == listing:
            return {kind: Batch(*tensors) for kind, tensors in stored["patches"].items()}
    found: dict[str, list[Batch]] = {}
    if jobs > 1:
        until, common = time.monotonic() + seconds, (shape.scale, twins, enhancer, soft)
        each = [(*one, number) for number, one in enumerate(clips)]
        tasks = [Task(a, b, *common, (seed, i, draw), until) for draw in range(draws) for a, b, i in each]
        streams = _in_processes(tasks, jobs)
    else:
        streams = _in_turn(clips, shape.scale, draws, twins, enhancer, soft, np.random.default_rng(seed))
    for kind, label, cuts in streams:
        found.setdefault(kind, []).append(cuts)
        print(f"{label}: {len(cuts.lr)} patches", flush=True)
    if not found:
        raise RuntimeError(f"there is nothing to train on in {folder or pairs.clips_folder()}")
    out = {kind: _joined(parts) for kind, parts in found.items()}
    cache.parent.mkdir(parents=True, exist_ok=True)
    stored = {kind: (part.lr, part.hr, part.twin) for kind, part in out.items()}
    torch.save({"listing": listing, "patches": stored}, cache)
    return out


def _in_turn(
    clips: list[tuple[dict[str, Any], Path]],
    scale: int,
    draws: int,
    twins: tuple[str, ...],
    enhancer: Path | None,
    soft: float,
    rng: np.random.Generator,
) -> Iterator[tuple[str, str, Batch]]:
    """Kind, label and patches of all streams by one generator."""
    for clip, path in clips:
        for variant, made in pairs.drawn(clip, path, scale, draws, twins, enhancer, soft, rng):
            yield variant.kind, variant.label, cut(made, scale, rng)


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
    gain = torch.from_numpy(rng.uniform(*GAINS, shape).astype(np.float32)).to(device)
    shift = torch.from_numpy(rng.uniform(*SHIFTS, shape).astype(np.float32)).to(device)
    return _relit(batch, gain, shift)


def _relit(batch: Batch, gain: Tensor, shift: Tensor) -> Batch:
    middle = batch.lr.float().mean((1, 2), keepdim=True)
    return batch.each(lambda part: (part - middle) * gain + middle + shift)


def draw_there(stock: dict[str, Batch], batch: int, screen_share: float, generator: torch.Generator) -> Batch:
    """A batch drawn, turned and relit where the stock is, without a word from the host: faces first, then screens.

    Unlike `draw`, it has as many screens each time, and turns each patch by itself.
    """
    screens = max(1, round(batch * screen_share)) if "screen" in stock and screen_share else 0
    screens = batch if "face" not in stock else screens
    device, parts = generator.device, []
    for kind, count in (("face", batch - screens), ("screen", screens)):
        if count:
            picked = torch.randint(len(stock[kind].lr), (count,), generator=generator, device=device)
            parts.append(stock[kind].each(lambda part, picked=picked: part[picked]))
    out = _joined(parts)
    chance = torch.rand((5, batch, 1, 1), generator=generator, device=device)
    for turned, change in (
        (chance[0] < 0.5, lambda part: part.flip(1)),
        (chance[1] < 0.5, lambda part: part.flip(2)),
        (chance[2] < 0.5, lambda part: part.transpose(1, 2)),
    ):
        out = out.each(lambda part, turned=turned, change=change: torch.where(turned, change(part), part))
    return _relit(out, _between(chance[3], GAINS), _between(chance[4], SHIFTS))


def _between(share: Tensor, ends: tuple[float, float]) -> Tensor:
    return ends[0] + (ends[1] - ends[0]) * share
