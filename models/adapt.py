"""Measures what a publisher's own weights gain, and by which way of learning them from a few stills.

In: an exported network that sees the twin, and the clips of `data.toml`. The first frames of a clip are the call so
far: one still in two seconds of them is learned from, as the camera had it or as a decoder has it from so many kbit/s.
The rest is measured. The newest still is held back: it says when to stop, and whether there should be no network, the
generic one or the adapted one (`or less`). Out: tables (Markdown) of what each way gains over the generic network in
PSNR-Y and, with `--vmaf`, in VMAF-NEG, and of core-seconds.

    python models/adapt.py models/frames/xs-x2.safetensors --twins "" "detail=30@0.5" --sent "" 30@0.5 --vmaf
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import metrics
import network
import pairs
import patches
import train
from evaluate import planes

LONGEST = 600  # frames of a clip
SEEN, SHARE = 10.0, 0.7  # the call so far: seconds, and at most this share of the clip
GAP = 10  # frames between that and what is measured
MEASURED = 12  # frames of the rest, at least, where it has them at every other frame
LOOK = 50  # steps between two looks at the still that is held back
RIDGES = (1.0, 0.1, 0.01, 0.001)  # pulls to the generic weights, of which the still that is held back chooses
Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Call:
    """What is learned from, and what is measured."""

    seen: pairs.Pairs
    rest: pairs.Pairs
    worth: float  # PSNR-Y of the stills, infinite for the camera's own


def call_of(clip: dict, scale: int, kbps: int, twin: str, sent: str, rate: float) -> Call:
    """A clip as a call: `sent` is `KBPS@STILLS_A_SECOND`, or nothing for the camera's own pictures at `rate`."""
    width, height = pairs.fitting(*pairs.size_of(clip["sizes"][0]["hr"] if "sizes" in clip else clip["most"]), scale)
    most = LONGEST if clip["kind"] == "face" else clip["frames"]
    frames, fps = pairs.read_i420(pairs.find(clip), clip | {"frames": most}, width, height)
    variant = pairs.Variant(clip["name"], clip["kind"], clip["role"], width, height, kbps, scale, twin)
    made = pairs.pairs_of(variant, frames, fps, 0, 1, True)
    until = int(min(SEEN * fps, SHARE * len(frames)))
    step = round(fps / (float(sent.split("@")[1]) if sent else rate))
    at = slice(step if twin else 0, until, step)  # a viewer that has stills was without any at the first alone
    high, worth = made.hr[at], float("inf")
    if sent:
        arrived = replace(variant, twin=f"detail={sent} late=0")
        high = pairs.pairs_of(arrived, frames[:until], fps, at.start, step, True).twin
        worth = metrics.psnr(*(torch.from_numpy(part.copy()).float() for part in (high, made.hr[at])))
    after = slice(until + GAP, None, 2 * max(1, (len(frames) - until - GAP) // (2 * MEASURED)))
    rest = pairs.Pairs(*(part[after].copy() for part in (made.lr, made.hr, made.twin)))
    return Call(pairs.Pairs(made.lr[at].copy(), high.copy(), made.twin[at].copy()), rest, worth)


def some(made: pairs.Pairs, which: slice) -> pairs.Pairs:
    """Some of the frames."""
    return pairs.Pairs(made.lr[which], made.hr[which], made.twin[which])


def shown(shape: network.Shape, weights: Weights, made: pairs.Pairs) -> list[Tensor]:
    """The network's pictures as 8-bit values."""
    given = zip(planes(made.lr, len(made.lr)), planes(made.twin, len(made.lr)), strict=True)
    return [network.high(shape, weights, low, twin).round().clamp(0, 255) for low, twin in given]


def error(shape: network.Shape, weights: Weights, made: pairs.Pairs) -> float:
    """Mean squared error of the network's pictures."""
    pictures = zip(shown(shape, weights, made), planes(made.hr, len(made.lr)), strict=True)
    return float(np.mean([float((a - b).square().mean()) for a, b in pictures]))


def times(shape: network.Shape, weights: Weights, gain: float) -> Weights:
    """The weights of a frame network whose residual is so many times this one's."""
    last = f"conv{shape.convs - 1}."
    return {name: value * gain if name.startswith(last) else value for name, value in weights.items()}


def gain(shape: network.Shape, weights: Weights, seen: pairs.Pairs) -> float:
    """By how much to multiply a frame network's residual: least squares, between nothing and all of it."""
    wanted, given = 0.0, 1e-9
    for low, twin, high in zip(*(planes(part, len(seen.lr)) for part in (seen.lr, seen.twin, seen.hr)), strict=True):
        residual = network.high(shape, weights, low, twin) - twin
        wanted += float((residual * (high - twin)).sum())
        given += float(residual.square().sum())
    return min(1.0, max(0.0, wanted / given))


@torch.inference_mode()
def ridge(shape: network.Shape, weights: Weights, seen: pairs.Pairs, kept: pairs.Pairs) -> Weights:
    """A frame network with a last layer by ridge regression about the generic one."""
    last, width = shape.convs - 1, 9 * shape.channels + 1
    products, answers = torch.zeros(width, width, dtype=torch.float64), torch.zeros(width, shape.ends[1]).double()
    for low, twin, high in zip(*(planes(part, len(seen.lr)) for part in (seen.lr, seen.twin, seen.hr)), strict=True):
        into: list[Tensor] = []

        def layer(index: int, x: Tensor, into: list[Tensor] = into) -> Tensor:
            into.append(x)
            return F.conv2d(x, weights[f"conv{index}.weight"], weights[f"conv{index}.bias"], padding=1)

        answer = network.run_layers(shape, layer, network.inputs_of(shape, low, twin))
        lacks = (F.pixel_unshuffle(high - twin, shape.scale) - answer)[0].flatten(1)
        taps = F.pad(F.unfold(into[-1], 3, padding=1)[0], (0, 0, 0, 1), value=1.0)
        products += (taps @ taps.T).double()
        answers += (taps @ lacks.T).double()
    found = [weights]
    for pull in RIDGES:
        more = torch.linalg.solve(products + torch.diag(pull * products.diagonal() + 1e-6), answers).T.float()
        new = dict(weights)
        new[f"conv{last}.weight"] = weights[f"conv{last}.weight"] + more[:, :-1].reshape(-1, shape.channels, 3, 3)
        new[f"conv{last}.bias"] = weights[f"conv{last}.bias"] + more[:, -1]
        found.append(new)
    return min(found, key=lambda new: error(shape, new, kept))


def moved(weights: Weights, by: Weights) -> Weights:
    """The weights after a change: kernels and biases in parts of their root mean square, `.scale` for each channel."""
    out = dict(weights)
    for name, change in by.items():
        if name.endswith(".scale"):
            name = name.removesuffix(".scale") + ".weight"
            out[name] = weights[name] * (1.0 + change)
        else:
            out[name] = weights[name] + weights[name].square().mean().sqrt() * change
    return out


def sent_as(weights: Weights, new: Weights) -> Weights:
    """The new weights as a viewer has them: differences in 8 bits, with a step for each channel."""
    out = dict(weights)
    for name in new:
        change = new[name] - weights[name]
        if name.endswith(".weight"):
            step = change.abs().amax((1, 2, 3), keepdim=True).clamp_min(1e-12) / 127.0
            change = (change / step).round() * step
        out[name] = weights[name] + change
    return out


@dataclass(frozen=True)
class Steps:
    """How networks are trained on stills."""

    count: int
    rate: float
    perceived: float

    def loss(self, shape: network.Shape, weights: Weights, batch: patches.Batch, share: Tensor) -> Tensor:
        """That of `train.py`."""

        def layer(index: int, x: Tensor) -> Tensor:
            return F.conv2d(x, weights[f"conv{index}.weight"], weights[f"conv{index}.bias"], padding=1)

        step = train.stage(shape, batch.each(lambda part: part.float()))
        answer = network.run_layers(shape, layer, step.inputs)
        made = step.base + network.beyond_base(shape, answer, step.base, step.twin)
        loss = train.distance(made, step, True, share, train.FLOORS[shape.base])
        return loss + self.perceived * train.lacking(made, step.wanted, shape.scale) if self.perceived else loss

    @torch.no_grad()
    def loss_of(self, shape: network.Shape, weights: Weights, kept: pairs.Pairs) -> float:
        """The loss of whole pictures."""
        low = np.pad(kept.lr, ((0, 0), (patches.HALO,) * 2, (patches.HALO,) * 2), mode="edge")
        stills = patches.Batch(*(torch.from_numpy(part.copy()) for part in (low, kept.hr, kept.twin)))
        return float(self.loss(shape, weights, stills, torch.ones(1)))

    def train(
        self, shape: network.Shape, weights: Weights, seen: pairs.Pairs, kept: pairs.Pairs, layers: int | None
    ) -> Weights:
        """The weights that did best on what was held back: so many last layers learn, or scales and biases of all."""
        rng = np.random.default_rng(0)
        stock = {"face": patches.cut(seen, shape.scale, rng)}
        by: Weights = {}
        for index in range(shape.convs - (layers or shape.convs), shape.convs):
            kernel, bias = weights[f"conv{index}.weight"], weights[f"conv{index}.bias"]
            name = f"conv{index}.weight" if layers else f"conv{index}.scale"
            by[name] = torch.zeros_like(kernel if layers else kernel[:, :1, :1, :1]).requires_grad_()
            by[f"conv{index}.bias"] = torch.zeros_like(bias).requires_grad_()
        optimizer = torch.optim.Adam(by.values(), lr=self.rate, betas=(0.9, 0.99))
        share = train.edge_weights(shape.scale, torch.device("cpu"))
        best, least = weights, self.loss_of(shape, weights, kept)
        for number in range(self.count):
            for group in optimizer.param_groups:
                group["lr"] = train.learning_rate(number, self.count, self.rate)
            loss = self.loss(shape, moved(weights, by), patches.draw(stock, 16, 0.0, rng), share)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if (number + 1) % LOOK == 0:
                new = {name: value.detach() for name, value in moved(weights, by).items()}
                left = self.loss_of(shape, new, kept)
                if left < least:
                    best, least = new, left
        return best


def ways(shape: network.Shape, weights: Weights, fixed: float, steps: Steps) -> dict[str, Callable]:
    """By name, what makes weights of the stills to learn from and the one that is held back."""
    out: dict[str, Callable] = {}
    if shape.over_twin:
        out["no network"] = lambda seen, kept: times(shape, weights, 0.0)
        out[f"gain {fixed}"] = lambda seen, kept: times(shape, weights, fixed)
        own = lambda seen, kept: gain(shape, weights, both(seen, kept))  # noqa: E731
        out["own gain"] = lambda seen, kept: times(shape, weights, own(seen, kept))
        out["gain by the usual"] = lambda seen, kept: times(shape, weights, min(1.0, own(seen, kept) / fixed))
        out["ridge"] = lambda seen, kept: ridge(shape, weights, seen, kept)
    layers = {"scales": None, "last": 1, "last two": 2, "all": shape.convs}
    for name, count in layers.items():
        out[name] = lambda seen, kept, count=count: steps.train(shape, weights, seen, kept, count)
    return out


def both(seen: pairs.Pairs, kept: pairs.Pairs) -> pairs.Pairs:
    """All stills."""
    return pairs.Pairs(*(np.concatenate(part) for part in zip(parts(seen), parts(kept), strict=True)))


def parts(made: pairs.Pairs) -> tuple[pairs.Luma, pairs.Luma, pairs.Luma]:
    """The arrays of the pairs."""
    return made.lr, made.hr, made.twin


def gains(shape: network.Shape, weights: Weights, call: Call, chosen: dict[str, Callable], vmaf: str | None) -> dict:
    """For each way (dB, VMAF-NEG) over the generic network, and its core-seconds; `generic` has its own figures."""
    seen, kept = some(call.seen, slice(-1)), some(call.seen, slice(-1, None))
    wanted = planes(call.rest.hr, len(call.rest.lr))

    def quality(new: Weights) -> np.ndarray:
        pictures = shown(shape, new, call.rest)
        neg = metrics.vmaf(vmaf, pictures, wanted)["vmaf_neg"] if vmaf else float("nan")
        return np.array([np.mean(list(map(metrics.psnr, pictures, wanted))), neg])

    generic = quality(weights)
    out = {"generic": (*generic, 0.0)}
    safe = [(error(shape, weights, kept), np.where(np.isnan(generic), np.nan, 0.0))]
    for name, way in chosen.items():
        begun = time.process_time()
        new = way(seen, kept)
        if not name.startswith(("no", "gain", "own")):
            new = sent_as(weights, new)
        took, more = time.process_time() - begun, quality(new) - generic
        out[name] = (*more, took)
        if name == "no network":
            safe.append((error(shape, new, kept), more))
            out["generic or less"] = (*min(safe, key=lambda pair: pair[0])[1], 0.0)
        elif not name.startswith(("gain", "own")):
            out[f"{name} or less"] = (*min([*safe, (error(shape, new, kept), more)], key=lambda p: p[0])[1], took)
    return out


def main() -> None:
    """Reads the options and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--role", choices=["holdout", "train"], default="holdout")
    parser.add_argument("--only", nargs="*", default=[], help="names of clips; all faces by default")
    parser.add_argument("--kbps", type=int, default=150)
    parser.add_argument("--twins", nargs="*", default=[""], help="what decoders have had, as `twin_pictures` takes it")
    parser.add_argument("--sent", nargs="*", default=[""], help="KBPS@STILLS_A_SECOND, or nothing for the camera's own")
    parser.add_argument("--own-rate", type=float, default=0.5, help="the camera's own pictures a second")
    parser.add_argument("--ways", nargs="*", default=[])
    parser.add_argument("--gain", type=float, default=0.8, help="of a control: the same for all")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--perceived", type=float, default=2.5, help="as that of `train.py`")
    parser.add_argument("--vmaf", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    shape, weights = network.load(args.weights)
    vmaf = pairs.ffmpeg_with("libvmaf") if args.vmaf else None
    chosen = ways(shape, weights, args.gain, Steps(args.steps, args.rate, args.perceived))
    chosen = {name: way for name, way in chosen.items() if not args.ways or name in args.ways or name == "no network"}
    for twin in args.twins:
        for sent in args.sent:
            rows = {}
            for clip in pairs.load_list():
                if clip["role"] != args.role or pairs.find(clip) is None:
                    continue
                if clip["name"] not in args.only if args.only else clip["kind"] != "face":
                    continue
                call = call_of(clip, shape.scale, args.kbps, twin, sent, args.own_rate)
                rows[clip["name"]] = call, gains(shape, weights, call, chosen, vmaf)
            report(twin, sent, rows)


def report(twin: str, sent: str, rows: dict[str, tuple[Call, dict]]) -> None:
    """Prints the table of one twin and one kind of stills: a row for each clip, their mean, the worst and the time."""
    names = list(next(iter(rows.values()))[1])
    source = f"stills of {sent}" if sent else "the camera's own"
    print(f"\ntwin: {twin or 'nothing'}; learned from {source}; dB (VMAF-NEG)\n")
    print("| clip | stills | their dB | " + " | ".join(names) + " |\n|" + " --- |" * (len(names) + 3))
    for name, (call, found) in rows.items():
        cells = [name, str(len(call.seen.lr)), f"{call.worth:.1f}" if sent else "–"]
        print("| " + " | ".join([*cells, *(cell(way, *found[way]) for way in names)]) + " |")
    for label, pick in (("**mean**", np.mean), ("**worst**", np.min)):
        over = (cell(way, *pick([found[way] for _, found in rows.values()], axis=0)) for way in names)
        print("| " + " | ".join([label, "", "", *over]) + " |")
    took = (f"{np.mean([found[way][2] for _, found in rows.values()]):.1f}" for way in names)
    print("| core-seconds | | | " + " | ".join(took) + " |", flush=True)


def cell(way: str, db: float, neg: float, _: float) -> str:
    """Two figures of a way: differences, but for the generic network."""
    db, neg = (f"{db:.2f}", f"{neg:.1f}") if way == "generic" else (f"{db:+.2f}", f"{neg:+.1f}")
    return db if neg.endswith("nan") else f"{db} ({neg})"


if __name__ == "__main__":
    main()
