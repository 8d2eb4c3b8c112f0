"""Trains a fused network on what becomes of its own detail: frames in a row, each seeing what the last ones added.

Source: FRVSR (recurrence over unrolled frames), with VP9's vectors for the flow. In: the clips of `data.toml` (role
`train`), and weights to begin with. Out: weights of the same shape. The decoder's part is modelled here as it was before
decision 028 (dense flow): a cell's detail is fetched by its composed vector (`lab/examples/flow`), weighed by how
well the low pictures agree, and coarsened as the anchors' codec does. Streams with captured detail are seen frame by
frame, with nothing carried: there the decoder keeps that instead.

    python models/recurrent.py --start models/fused-xs-x2.safetensors --steps 12000 --out recurrent.safetensors
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import network
import pairs
import patches
import train
from patches import HALO, PATCH

FRAMES = 20  # of a run: what a network adds to its own detail grows slowly
UNROLLED = 4  # frames that a gradient goes back through; a step of training takes so many
PARTS = FRAMES // UNROLLED
KEPT = 4  # frames whose detail the decoder keeps
GAPS = (1, 1, 2, 5, 10)  # frames from one to the next of a run, drawn for each run unless told otherwise
REST = 6  # frames between two runs
MOST = 60  # runs of patches of one stream
CELL = 8  # LR samples, as the decoder has it
SCALE = 2
SIDE = SCALE * PATCH
MISFIT = 3.0  # the decoder's weights, in square grey levels
FLOOR = 8.0 / 256.0
CODED = 4.8  # the codec's step in grey levels at the enhancer's quality, 85; 0.16 at 100
LEVELS = 5  # of its transform
EXPECTED = 0.8  # share of what the decoder's filters add that is not coded
NOISE = 0.5  # detail below this is taken for coding noise
Codec = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass
class Runs:
    """Patches of frames in a row: LR with halo, HR, the twin without the network, and where cells come from."""

    lr: Tensor  # [N, T, 54, 54]
    hr: Tensor  # [N, T, 96, 96]
    twin: Tensor  # [N, T, 96, 96]
    cells: Tensor  # [N, T, 6, 6, 3]: frames of the run ago (0: from nowhere), then x and y in 1/8 LR sample

    def picked(self, which: Tensor) -> Runs:
        """Some of them."""
        return Runs(*(part[which] for part in (self.lr, self.hr, self.twin, self.cells)))


def frames_of(variant: pairs.Variant, frames: np.ndarray, fps: float, at: list[int]) -> tuple[pairs.Pairs, np.ndarray]:
    """The pairs of some frames, and their cells [frames, rows, columns, 3]."""
    width, height = variant.width, variant.height
    low = (height // SCALE, width // SCALE)
    grid = tuple(-(-side // CELL) for side in low)
    words = [f"size={width}x{height}", f"kbps={variant.kbps}", f"fps={fps}", f"screen={int(variant.kind == 'screen')}"]
    words += ["flow=1", "at=" + ",".join(map(str, at)), *variant.twin.split()]
    raw = pairs.run([*pairs.twin_tool(), *words], frames.tobytes())
    rows = np.frombuffer(raw, np.uint8).reshape(len(at), -1)
    area = low[0] * low[1]
    lr, twin, cells = np.split(rows, [area, area + width * height], axis=1)
    made = pairs.Pairs(lr.reshape(-1, *low), pairs.luma_of(frames, width, height)[at], twin.reshape(-1, height, width))
    return made, np.ascontiguousarray(cells).view("<i2").reshape(-1, *grid, 3)


def cut(made: pairs.Pairs, cells: np.ndarray, rng: np.random.Generator) -> Runs:
    """Random patches on the grid of cells, each through all frames of a run."""
    count, height, width = len(made.lr) // FRAMES, *made.lr.shape[1:]
    per_run = max(1, MOST // count)
    parts: list[list[np.ndarray]] = [[], [], [], []]
    for run in range(count):
        span = slice(run * FRAMES, (run + 1) * FRAMES)
        low = np.pad(made.lr[span], ((0, 0), (HALO, HALO), (HALO, HALO)), mode="edge")
        for _ in range(per_run):
            row, column = (int(rng.integers((side - PATCH) // CELL + 1)) for side in (height, width))
            top, left = row * CELL, column * CELL
            parts[0].append(low[:, top : top + PATCH + 2 * HALO, left : left + PATCH + 2 * HALO])
            there = (span, slice(SCALE * top, SCALE * top + SIDE), slice(SCALE * left, SCALE * left + SIDE))
            parts[1].append(made.hr[there])
            parts[2].append(made.twin[there])
            own = cells[span, row : row + PATCH // CELL, column : column + PATCH // CELL].copy()
            ago = own[..., 0]
            ago[ago > np.arange(FRAMES)[:, None, None]] = 0  # from before the run
            parts[3].append(own)
    out = Runs(*(torch.from_numpy(np.stack(part)) for part in parts))
    error = (patches.base(out.lr[:, 0], SCALE) - out.hr[:, :1].float()).square().mean((1, 2, 3))
    return out.picked(error.argsort(stable=True)[int(patches.EASIEST * len(error)) :].sort().values)


def places(count: int, gaps: Sequence[int], rng: np.random.Generator) -> list[int]:
    """The frames of runs, one after the other."""
    at, now = [], int(rng.integers(3))
    while True:
        fitting = [gap for gap in gaps if now + gap * (FRAMES - 1) < count]
        if not fitting:
            return at
        gap = int(rng.choice(fitting))
        at += range(now, now + gap * FRAMES, gap)
        now = at[-1] + REST


def prepare(cache: Path, draws: int, gaps: Sequence[int], detail: bool, seed: int) -> dict[str, Runs]:
    """The patches by kind, from the cache file where it is there."""
    if cache.exists():
        return {kind: Runs(*parts) for kind, parts in torch.load(cache).items()}
    rng = np.random.default_rng(seed)
    found: dict[str, list[Runs]] = {}
    for clip, path in patches.sources(None):
        for variant, frames, fps in streams(clip, path, draws, detail, rng):
            at = places(len(frames), gaps, rng)
            if not at:
                continue
            made, cells = frames_of(variant, frames, fps, at)
            if variant.twin:
                cells = np.zeros_like(cells)
            found.setdefault(variant.kind, []).append(cut(made, cells, rng))
            print(f"{variant.label}: {len(found[variant.kind][-1].lr)} runs", flush=True)
    out = {
        kind: Runs(*(torch.cat([getattr(p, name) for p in parts]) for name in ("lr", "hr", "twin", "cells")))
        for kind, parts in found.items()
    }
    cache.parent.mkdir(parents=True, exist_ok=True)
    torch.save({kind: (part.lr, part.hr, part.twin, part.cells) for kind, part in out.items()}, cache)
    return out


def streams(
    clip: dict, path: Path, draws: int, detail: bool, rng: np.random.Generator
) -> Iterator[tuple[pairs.Variant, np.ndarray, float]]:
    """Streams drawn as `pairs.drawn` draws them; with `detail` a third of them have captured detail."""
    most = pairs.size_of(clip["most"])
    least = min(1.0, max(0.4, 96 * SCALE / min(most)))
    for index in range(draws):
        share = float(rng.uniform(least, 1.0))
        width, height = pairs.fitting(round(share * most[0]), round(share * most[1]), SCALE)
        start = int(rng.integers(max(1, clip["frames"] - pairs.LONGEST + 1)))
        frames, fps = pairs.read_i420(path, clip, width, height, start, pairs.LONGEST)
        bits = float(np.exp(rng.uniform(*np.log(pairs.BITS[clip["kind"]]))))
        kbps = int(np.clip(bits * width * height / SCALE**2 * fps / 1000, 40, 700))
        twin = str(rng.choice([twin for twin in pairs.TWINS if twin.startswith("detail")]))
        twin = twin if detail and index % 3 == 2 else ""
        yield pairs.Variant(clip["name"], clip["kind"], clip["role"], width, height, kbps, SCALE, twin), frames, fps


def catmull_rom(fraction: Tensor, side: int) -> Tensor:
    """Rows [..., side, side + 3] that take samples at a fraction in eighths behind the second of each four."""
    t = fraction[..., None].float() / 8.0
    taps = torch.cat(
        [
            -0.5 * t + t**2 - 0.5 * t**3,
            1.0 - 2.5 * t**2 + 1.5 * t**3,
            0.5 * t + 2.0 * t**2 - 1.5 * t**3,
            -0.5 * t**2 + 0.5 * t**3,
        ],
        -1,
    )
    shifts = torch.stack([torch.eye(side, side + 3).roll(k, 1) for k in range(4)])
    return torch.einsum("...k,kij->...ij", taps, shifts)


def bilinear(fraction: Tensor, side: int) -> Tensor:
    """Rows [..., side, side + 1] that take samples at a fraction in eighths."""
    t = fraction[..., None, None].float() / 8.0
    here, next_one = torch.eye(side, side + 1), torch.eye(side, side + 1).roll(1, 1)
    return (1.0 - t) * here + t * next_one


def fetch(stack: Tensor, step: Tensor, top: Tensor, left: Tensor, side: int) -> Tensor:
    """Squares [N, cells, side, side] of pictures [N, T, H, W], by picture and place; edges are repeated."""
    count, _, height, width = stack.shape
    across = torch.arange(side)
    rows = (top[..., None] + across).clamp(0, height - 1)
    columns = (left[..., None] + across).clamp(0, width - 1)
    at = (step[..., None, None] * height + rows[..., :, None]) * width + columns[..., None, :]
    return stack.reshape(count, -1).gather(1, at.reshape(count, -1)).reshape(at.shape)


def carried(details: Tensor, lows: Tensor, low: Tensor, cells: Tensor) -> Tensor:
    """What the decoder shows of earlier detail [N, T, sH, sW] in a frame [N, sH, sW].

    `lows` [N, T, H + halo, W + halo] are those frames' low pictures and `low` this one's; `cells` [N, rows, columns, 3]
    say for each cell which of them, from the last one back, and the vector there.
    """
    count, steps, height, width = details.shape
    rows, columns, side = *cells.shape[1:3], SCALE * CELL
    ago, x, y = (part.reshape(count, -1).long() for part in cells.unbind(-1))
    there = (ago > 0) & (ago <= steps)
    step = (steps - ago).clamp(0, steps - 1)
    row = torch.arange(rows).repeat_interleave(columns).expand_as(ago)
    column = torch.arange(columns).repeat(rows).expand_as(ago)
    # How well the low pictures agree, and how much detail there is.
    then = fetch(lows, step, CELL * row + HALO + (y >> 3), CELL * column + HALO + (x >> 3), CELL + 1)
    then = bilinear(y & 7, CELL) @ then @ bilinear(x & 7, CELL).transpose(-1, -2)
    now = fetch(low[:, None], torch.zeros_like(ago), CELL * row + HALO, CELL * column + HALO, CELL)
    misfit = (now - then).square().mean((-1, -2))
    with torch.no_grad():
        energies = F.avg_pool2d(details.square(), side).reshape(count, -1)
        near = ((CELL * row + CELL // 2 + (y >> 3)).clamp(0, CELL * rows - 1) // CELL) * columns
        near = near + (CELL * column + CELL // 2 + (x >> 3)).clamp(0, CELL * columns - 1) // CELL
        energy = energies.gather(1, step * rows * columns + near)
        weight = energy / (energy + MISFIT * misfit).clamp_min(1e-6)
        weight = weight * ((weight * energy >= FLOOR) & there)
        # A patch does not know what moves into it.
        top, left = side * row + (SCALE * y >> 3), side * column + (SCALE * x >> 3)
        inside = (top >= -2) & (left >= -2) & (top <= height - side + 2) & (left <= width - side + 2)
        weight = weight * inside
    found = fetch(details, step, top - 1, left - 1, side + 3)
    found = catmull_rom(SCALE * y & 7, side) @ found @ catmull_rom(SCALE * x & 7, side).transpose(-1, -2)
    found = found * weight[..., None, None]
    return found.reshape(count, rows, columns, side, side).transpose(2, 3).reshape(count, height, width)


@lru_cache
def wavelet(side: int) -> tuple[Tensor, Tensor]:
    """One level of the 9/7 transform of so many samples, with norms of one, as a matrix, and its inverse."""
    rows = torch.eye(side, dtype=torch.float64)
    even, odd = rows[::2].clone(), rows[1::2].clone()
    for high, low in ((-1.586134342, -0.052980119), (0.882911076, 0.443506852)):
        odd += high * (even + torch.cat([even[1:], even[-1:]]))
        even += low * (odd + torch.cat([odd[:1], odd[:-1]]))
    there = torch.cat([even, odd])
    back = torch.linalg.inv(there)
    norms = back[:, [side // 4, side // 2 + side // 4]].norm(dim=0).repeat_interleave(side // 2)
    return (there * norms[:, None]).float(), (back / norms).float()


def quantised(planes: Tensor, size: float, levels: int = LEVELS) -> Tensor:
    """Planes [N, H, W] as the anchors' codec leaves them: wavelet, dead zone, middle of each step."""
    height, width = planes.shape[1:]
    if levels == 0 or height % 2 or width % 2:
        steps = (planes.abs() / size).floor()
        return planes.sign() * torch.where(steps > 0, (steps + 0.5) * size, 0.0)
    (down, down_back), (across, across_back) = wavelet(height), wavelet(width)
    bands = down @ planes @ across.T
    low = bands[:, : height // 2, : width // 2].clone()
    made = quantised(bands, size, 0)
    made[:, : height // 2, : width // 2] = quantised(low, size, levels - 1)
    return down_back @ made @ across_back.T


def coded(size: float, made: Tensor, base: Tensor, twin: Tensor) -> Tensor:
    """What the decoder has of a made picture beyond its own [N, sH, sW]; gradients go straight through.

    Four fifths of what its filters add (twin − base) are not coded (`hybrid/src/anchor/prior.rs`).
    """
    expected = EXPECTED * (twin - base)
    with torch.no_grad():
        detail = quantised(made - base - expected, size) + expected + base - twin
        detail = F.softshrink(detail, NOISE)
    wanted = made - twin
    return wanted + (detail - wanted).detach()


@dataclass
class State:
    """What the decoder has of the frames before, the last at the end."""

    details: list[Tensor]
    lows: list[Tensor]

    def then(self, detail: Tensor, low: Tensor) -> State:
        """With one more."""
        return State([*self.details, detail][-KEPT:], [*self.lows, low][-KEPT:])

    def detached(self) -> State:
        """Without what gradients need."""
        return State([detail.detach() for detail in self.details], self.lows)


def unroll(
    shape: network.Shape, net: network.Net, runs: Runs, frames: range, state: State, codec: Codec
) -> Iterator[tuple[int, train.Step, Tensor, State]]:
    """For each frame, what is given to the network, what it makes of it, and the state after that."""
    for index in frames:
        low, seen = runs.lr[:, index], runs.twin[:, index]
        if state.details:
            details, lows = torch.stack(state.details, 1), torch.stack(state.lows, 1)
            seen = seen + carried(details, lows.float(), low.float(), runs.cells[:, index])
        step = train.stage(shape, patches.Batch(low, runs.hr[:, index], seen))
        made = step.base + network.beyond_base(shape, net(step.inputs), step.base, step.twin)
        state = state.then(codec(made[:, 0], step.base[:, 0], runs.twin[:, index]), low)
        yield index, step, made, state


def draw(stock: dict[str, Runs], batch: int, screen_share: float, alone: float, rng: np.random.Generator) -> Runs:
    """A batch, turned and relit at random, of whole frames' order."""
    screens = int(rng.binomial(batch, screen_share)) if "screen" in stock else 0
    parts = []
    for kind, count in (("face", batch - screens), ("screen", screens)):
        if count:
            parts.append(stock[kind].picked(torch.from_numpy(rng.integers(len(stock[kind].lr), size=count))))
    lr, hr, twin = (torch.cat([getattr(part, name) for part in parts]) for name in ("lr", "hr", "twin"))
    cells = torch.cat([part.cells for part in parts]).clone()
    cells[torch.from_numpy(rng.random(batch) < alone), ..., 0] = 0
    # The last of a cell's words is y, and so is the first of the axes.
    for axis, word in ((2, 2), (3, 1)):
        if rng.random() < 0.5:
            lr, hr, twin, cells = (part.flip(axis) for part in (lr, hr, twin, cells))
            cells[..., word].neg_()
    if rng.random() < 0.5:
        lr, hr, twin, cells = (part.transpose(2, 3) for part in (lr, hr, twin, cells))
        cells = cells[..., [0, 2, 1]]
    gain = torch.from_numpy(rng.uniform(0.7, 1.25, (batch, 1, 1, 1)).astype(np.float32))
    shift = torch.from_numpy(rng.uniform(-24.0, 24.0, (batch, 1, 1, 1)).astype(np.float32))
    middle = lr.float().mean((1, 2, 3), keepdim=True)
    lit = ((part - middle) * gain + middle + shift for part in (lr, hr, twin))
    return Runs(*(part.contiguous() for part in lit), cells)


def run(args: argparse.Namespace) -> None:
    """Data, steps, export."""
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    name = f"runs-{args.draws}-{'-'.join(map(str, args.gaps))}-{args.detail}-{args.seed}.pt"
    stock = prepare(args.work / name, args.draws, args.gaps, args.detail, args.seed)
    shape, weights = network.load(args.start)
    if not shape.fused or shape.scale != SCALE:
        raise SystemExit("only fused networks by two see what they added")
    net = network.Net(shape)
    net.become(weights)
    mean = {name: value.clone() for name, value in net.state_dict().items()}
    optimizer = torch.optim.Adam(net.parameters(), lr=args.rate, betas=(0.9, 0.99), fused=True)
    codec = partial(coded, args.coded)
    ring = train.edge_weights(SCALE, torch.device("cpu"))
    going: dict[int, tuple[Runs, State]] = {}
    begun, losses = time.monotonic(), [[] for _ in range(PARTS)]
    for number in range(args.steps):
        rng = np.random.default_rng((args.seed, number))
        for group in optimizer.param_groups:
            group["lr"] = train.learning_rate(number, args.steps, args.rate)
        # As many batches as a run has parts, each at another: steps in a row see others.
        group, part = number % PARTS, (number // PARTS + number) % PARTS
        if part == 0 or group not in going:
            going[group] = (draw(stock, args.batch, args.screen_share, args.alone, rng), State([], []))
        runs, state = going[group]
        each, span = [], range(part * UNROLLED, (part + 1) * UNROLLED)
        for index, step, made, after in unroll(shape, net, runs, span, state, codec):
            # The scale is that of the twin without the network: as hard for all frames.
            wrong = runs.twin[:, index, None]
            each.append(train.distance(made, train.Step(step.inputs, step.base, wrong, step.wanted), True, ring))
            state = after
        going[group] = (runs, state.detached())
        loss = torch.stack(each).mean()
        train.descend(net, optimizer, loss, mean, number)
        losses[part].append(loss.detach())
        if (number + 1) % args.every == 0 or number + 1 == args.steps:
            recent = (torch.stack(each[-args.every // PARTS :]).mean().item() for each in losses if each)
            took = time.monotonic() - begun
            shown = " ".join(f"{value:.4f}" for value in recent)
            print(f"step {number + 1} of {args.steps}: loss by part {shown} after {took:.0f} s", flush=True)
            averaged = network.Net(shape)
            averaged.load_state_dict(mean)
            network.export(shape, averaged.folded(), args.out)


def main() -> None:
    """Reads the options and trains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=Path, default=pairs.HERE / "fused-xs-x2.safetensors")
    parser.add_argument("--out", type=Path, default=Path("recurrent.safetensors"))
    parser.add_argument("--work", type=Path, default=pairs.HERE / ".work", help="cache of patches")
    parser.add_argument("--steps", type=int, default=12000)
    parser.add_argument("--draws", type=int, default=6, help="streams drawn of each clip")
    parser.add_argument("--gaps", type=int, nargs="*", default=GAPS, help="frames from one to the next, to draw from")
    parser.add_argument("--detail", action=argparse.BooleanOptionalAction, default=True, help="captured, in a third")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rate", type=float, default=8e-4)
    parser.add_argument("--screen-share", type=float, default=0.12, help="share of shared-screen patches")
    parser.add_argument("--alone", type=float, default=0.2, help="share of runs in which nothing is carried")
    parser.add_argument("--coded", type=float, default=CODED, help="the codec's step in grey levels")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--every", type=int, default=500, help="steps between exports")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
