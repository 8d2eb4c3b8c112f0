"""Checks of the resampling, the networks and the committed weights: `python -m unittest discover models`."""

from __future__ import annotations

import unittest
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import adapt
import evaluate
import make
import metrics
import natural
import network
import pairs
import patches
import perceived
import recurrent
import resampling
import ssimulacra2
import train

KINDS = (("luma", "lanczos3"), ("luma+twin", "lanczos3"), ("luma+twin", "twin"))
COMMITTED = sorted(p for p in pairs.HERE.glob("**/*-x?.safetensors") if not p.stem.endswith("fixture") and ".work" not in p.parts)


class Resampling(unittest.TestCase):
    """`resampling.up` and `pairs.box_down`."""

    def test_lanczos_keeps_a_flat_picture_up_to_its_edges(self) -> None:
        flat = torch.full((1, 1, 5, 7), 90.0)
        for scale in (2, 3, 4):
            torch.testing.assert_close(resampling.up(flat, scale), torch.full((1, 1, 5 * scale, 7 * scale), 90.0))

    def test_lanczos_reads_the_clamped_neighbours_at_minus_a_quarter(self) -> None:
        row = torch.tensor([10.0, 20.0, 40.0, 80.0])
        at = [max(0, min(3, tap)) for tap in range(-2, 4)]
        taps = torch.tensor([resampling.lanczos3(0.75 - tap) for tap in range(-2, 4)])
        wanted = float((row[at] * taps).sum() / taps.sum())
        self.assertAlmostEqual(float(resampling.up(row[None, None, None, :], 2)[0, 0, 0, 2]), wanted, places=4)

    def test_by_three_the_middle_sample_is_the_low_one(self) -> None:
        row = torch.tensor([10.0, 20.0, 40.0, 80.0])[None, None, None, :]
        torch.testing.assert_close(resampling.up(row, 3)[:, :, 1:2, 1::3], row)

    def test_box_rounds_half_up(self) -> None:
        block = np.array([[1, 2], [2, 1]], np.uint8)
        self.assertEqual(pairs.box_down(block, 2).tolist(), [[2]])

    def test_the_base_of_a_patch_is_that_of_its_frame(self) -> None:
        rng = np.random.default_rng(2)
        for scale in (2, 3):
            lr = rng.integers(0, 256, (1, 60, 70), dtype=np.uint8)
            high = resampling.up(torch.from_numpy(lr)[:, None].float(), scale).round().clamp(0, 255)[:, 0]
            made = pairs.Pairs(lr, high.numpy().astype(np.uint8), None)
            cut = patches.cut(made, scale, rng)
            rounded = patches.base(cut.lr, scale).round().clamp(0, 255)[:, 0]
            self.assertLessEqual(float((rounded - cut.hr).abs().max()), 1.0)


class Network(unittest.TestCase):
    """Folding, and the weights in the repository."""

    def test_folded_kernels_equal_the_trained_form(self) -> None:
        for tier in ("xs", "l"):
            for inputs, base in KINDS:
                torch.manual_seed(3)
                shape = replace(network.TIERS[tier], scale=3, inputs=inputs, base=base)
                net = network.Net(shape)
                luma, twin = torch.rand(1, 1, 12, 9) * 255.0, torch.rand(1, 1, 36, 27) * 255.0
                wanted = net(network.inputs_of(shape, luma, twin)).detach()
                torch.testing.assert_close(
                    network.answer(shape, net.folded(), luma, twin), wanted, atol=1e-3, rtol=1e-4
                )

    def test_training_begins_with_exported_weights(self) -> None:
        torch.manual_seed(3)
        for inputs, base in KINDS:
            shape = replace(network.TIERS["xs"], inputs=inputs, base=base)
            weights, other = network.Net(shape).folded(), network.Net(shape)
            other.become(weights)
            for name, value in other.folded().items():
                torch.testing.assert_close(value, weights[name], atol=1e-4, rtol=1e-4)

    def test_a_widened_network_answers_the_same(self) -> None:
        torch.manual_seed(3)
        narrow, wide = (replace(network.TIERS[tier], inputs="luma+twin") for tier in ("xs", "m"))
        weights, net = network.Net(narrow).folded(), network.Net(wide)
        net.become(network.widened(weights, wide))
        luma, twin = torch.rand(1, 1, 12, 9) * 255.0, torch.rand(1, 1, 24, 18) * 255.0
        wanted = network.answer(narrow, weights, luma, twin)
        torch.testing.assert_close(network.answer(wide, net.folded(), luma, twin), wanted, atol=2e-3, rtol=1e-3)

    def test_an_untrained_fused_network_is_near_the_twin(self) -> None:
        torch.manual_seed(3)
        shape = replace(network.TIERS["xs"], inputs="luma+twin")
        step = train.stage(
            shape, patches.Batch(torch.rand(2, 54, 54) * 255.0, torch.zeros(2, 96, 96), torch.rand(2, 96, 96))
        )
        made = network.beyond_base(shape, torch.zeros(2, 8, 48, 48) + 40.0, step.base, step.twin)
        torch.testing.assert_close(made, step.twin - step.base + 40.0, atol=1e-2, rtol=1e-4)

    def test_a_frame_network_adds_its_answer_to_the_twin(self) -> None:
        torch.manual_seed(3)
        shape = replace(network.TIERS["xs"], inputs="luma+twin", base="twin")
        luma, twin = torch.rand(1, 1, 9, 8) * 255.0, torch.rand(1, 1, 18, 16) * 255.0
        weights = network.Net(shape).folded()
        added = torch.nn.functional.pixel_shuffle(network.answer(shape, weights, luma, twin), 2)
        torch.testing.assert_close(network.high(shape, weights, luma, twin), twin + added)

    def test_a_frame_network_begins_with_half_of_a_gated_ones_residual(self) -> None:
        torch.manual_seed(3)
        gated = replace(network.TIERS["xs"], inputs="luma+twin")
        weights, shape = network.Net(gated).folded(), replace(gated, base="twin")
        luma, twin = torch.rand(1, 1, 9, 8) * 255.0, torch.rand(1, 1, 18, 16) * 255.0
        wanted = network.answer(gated, weights, luma, twin)[:, :4] * 0.5
        torch.testing.assert_close(network.answer(shape, network.ungated(weights, shape), luma, twin), wanted)

    def test_ranges_cover_all_activations_but_the_rarest(self) -> None:
        shape = network.Shape("chain", 2, 2)
        weights = {"conv0.weight": torch.zeros(2, 1, 3, 3), "conv0.bias": torch.tensor([0.0, -1.0])}
        weights |= {"conv1.weight": torch.zeros(4, 2, 3, 3), "conv1.bias": torch.zeros(4)}
        weights["conv0.weight"][0, 0, 1, 1] = 1.0
        luma = torch.full((1, 1, 200, 200), 178.5)
        luma[0, 0, 0, :2] = 255.0
        found = network.ranges(shape, weights, luma, None)
        torch.testing.assert_close(found, {"conv0.range": torch.tensor([0.2, network.MIN_RANGE])})

    def test_the_fixtures_belong_to_the_committed_weights(self) -> None:
        self.assertTrue(COMMITTED)
        for path in COMMITTED:
            with self.subTest(path.stem):
                shape, weights = network.load(path)
                fixture = network.load_file(path.with_suffix(".fixture.safetensors"))
                luma = fixture["lr"][None, None]
                twin = fixture["twin"][None, None].float() if shape.fused else None
                made = torch.nn.functional.pixel_shuffle(network.answer(shape, weights, luma, twin), shape.scale)[0]
                torch.testing.assert_close(made[0], fixture["residual"], atol=1e-3, rtol=1e-4)
                if twin is not None:
                    if shape.gated:
                        torch.testing.assert_close(made[1], fixture["gate"], atol=1e-3, rtol=1e-4)
                    high = network.high(shape, weights, luma, twin)[0, 0]
                    torch.testing.assert_close(high, fixture["high"], atol=1e-3, rtol=1e-4)
                if shape.over_twin:
                    for index in range(shape.convs - 1):
                        self.assertGreater(float(weights[f"conv{index}.range"].min()), 0.0)


class Perceived(unittest.TestCase):
    """What `perceived` makes of a picture."""

    def setUp(self) -> None:
        torch.manual_seed(3)
        rough = torch.randn(1, 1, 96, 96) * 40.0
        self.wanted = 128.0 + resampling.up(rough[:, :, :48, :48], 2)

    def lacking(self, made: torch.Tensor) -> float:
        return float(perceived.lacking(made, self.wanted))

    def test_a_perfect_picture_lacks_nothing(self) -> None:
        self.assertAlmostEqual(self.lacking(self.wanted), 0.0, places=2)

    def test_blur_and_noise_lack_something(self) -> None:
        blurred = torch.nn.functional.avg_pool2d(self.wanted, 3, 1, 1)
        self.assertGreater(self.lacking(blurred), 0.2)
        self.assertGreater(self.lacking(self.wanted + 20.0 * torch.randn_like(self.wanted)), 0.2)

    def test_contrast_beyond_the_original_is_no_gain(self) -> None:
        stronger = 128.0 + 1.3 * (self.wanted - 128.0)
        self.assertGreaterEqual(self.lacking(stronger), self.lacking(self.wanted) - 1e-3)


class Recurrence(unittest.TestCase):
    """The decoder's part in `recurrent`."""

    def setUp(self) -> None:
        torch.manual_seed(3)
        self.detail = torch.randn(1, 1, 96, 96) * 20.0
        self.low = torch.full((1, 54, 54), 90.0)
        self.cells = torch.zeros(1, 6, 6, 3, dtype=torch.int16)

    def carried(self) -> torch.Tensor:
        return recurrent.carried(self.detail, self.low[:, None], self.low, self.cells)

    def test_whole_vectors_move_a_picture(self) -> None:
        self.cells[...] = torch.tensor([1, 2 * 8, -8])
        made = self.carried()
        # Two low samples to the right and one up are four and two high ones; what moves in from outside is not known.
        torch.testing.assert_close(made[:, 16:, :80], self.detail[0, :, 14:94, 4:84])
        self.assertEqual(float(made[:, :, 80:].abs().max()), 0.0)

    def test_nothing_comes_from_nowhere_or_where_low_pictures_differ(self) -> None:
        self.assertEqual(float(self.carried().abs().max()), 0.0)
        self.cells[..., 0] = 1
        torch.testing.assert_close(self.carried(), self.detail[:, 0])
        noisy = self.low + 100.0 * torch.randn_like(self.low)
        made = recurrent.carried(self.detail, self.low[:, None], noisy, self.cells)
        self.assertLess(float(made.square().mean()), 0.01 * float(self.detail.square().mean()))

    def test_older_frames_are_found(self) -> None:
        details = torch.cat([self.detail, torch.zeros_like(self.detail)], 1)
        self.cells[..., 0] = 2
        made = recurrent.carried(details, self.low[:, None].expand(-1, 2, -1, -1), self.low, self.cells)
        torch.testing.assert_close(made, self.detail[:, 0])

    def test_the_codec_keeps_what_is_above_its_step(self) -> None:
        fine = recurrent.quantised(self.detail[0], 1e-3)
        torch.testing.assert_close(fine, self.detail[0], atol=5e-3, rtol=0.0)
        self.assertEqual(float(recurrent.quantised(torch.full((1, 96, 96), 0.01), 4.8).abs().max()), 0.0)


class Adapting(unittest.TestCase):
    """What `adapt` learns from pictures that a frame network made."""

    def setUp(self) -> None:
        torch.manual_seed(3)
        self.shape = replace(network.TIERS["xxs"], inputs="luma+twin", base="twin")
        self.weights = network.Net(self.shape).folded()
        rng = np.random.default_rng(3)
        self.low = rng.integers(64, 192, (3, 40, 40), dtype=np.uint8)
        self.twin = rng.integers(64, 192, (3, 80, 80), dtype=np.uint8)

    def call(self, weights: dict) -> pairs.Pairs:
        high = [picture.numpy()[0, 0] for picture in adapt.shown(self.shape, weights, self.pairs(self.twin))]
        return self.pairs(np.stack(high).astype(np.uint8))

    def pairs(self, high: np.ndarray) -> pairs.Pairs:
        return pairs.Pairs(self.low, high, self.twin)

    def test_the_gain_is_that_of_the_pictures_and_never_negative(self) -> None:
        for wanted in (0.0, 0.5, 1.0):
            seen = self.call(adapt.times(self.shape, self.weights, wanted))
            self.assertAlmostEqual(adapt.gain(self.shape, self.weights, seen), wanted, delta=0.02)
        turned = self.call(adapt.times(self.shape, self.weights, -0.5))
        self.assertEqual(adapt.gain(self.shape, self.weights, turned), 0.0)

    def test_ridge_finds_the_last_layer_that_made_the_pictures(self) -> None:
        other = adapt.moved(self.weights, {"conv3.weight": 0.3 * torch.randn_like(self.weights["conv3.weight"])})
        seen, kept = (adapt.some(self.call(other), part) for part in (slice(-1), slice(-1, None)))
        found = adapt.ridge(self.shape, self.weights, seen, kept)
        self.assertLess(adapt.error(self.shape, found, kept), 0.1 * adapt.error(self.shape, self.weights, kept))

    def test_ridge_keeps_the_generic_weights_where_nothing_is_better(self) -> None:
        kept = adapt.some(self.call(self.weights), slice(-1, None))
        seen = adapt.some(self.call(adapt.times(self.shape, self.weights, 3.0)), slice(-1))
        self.assertIs(adapt.ridge(self.shape, self.weights, seen, kept), self.weights)

    def test_sent_differences_are_near_what_they_were(self) -> None:
        other = {name: value + 0.01 * torch.randn_like(value) for name, value in self.weights.items()}
        for name, value in adapt.sent_as(self.weights, other).items():
            torch.testing.assert_close(value, other[name], atol=4e-4, rtol=0.0)


class Recipes(unittest.TestCase):
    """`make` and `recipes.toml`."""

    def test_each_committed_network_has_a_recipe_for_its_own_shape(self) -> None:
        shapes = {str(path.relative_to(pairs.HERE).with_suffix("")): network.load(path)[0] for path in COMMITTED}
        self.assertEqual(set(shapes), set(make.recipes()))
        for name, shape in shapes.items():
            *_, (_, command) = make.commands(make.recipes()[name], pairs.HERE / "train.py", make.WORK)
            args = train.options().parse_args(command[2:])
            tier = replace(network.TIERS[args.tier], scale=args.scale, inputs=args.inputs, base=args.base)
            self.assertEqual(tier, shape, name)
            self.assertEqual((args.out.stem, args.report), (Path(name).name, True))

    def test_a_run_begins_with_weights_that_are_made_before_it(self) -> None:
        recipes = make.recipes()
        outs = {(name, run.get("out")) for name, recipe in recipes.items() for run in recipe["runs"]}
        for name, recipe in recipes.items():
            made = set()
            for run in recipe["runs"]:
                for given in (run[option] for option in ("start", "enhancer") if option in run):
                    if "/" in given:
                        self.assertTrue((pairs.HERE.parent / given).exists(), given)
                    elif ":" in given:
                        self.assertIn(tuple(given.split(":")), outs)
                    else:
                        self.assertIn(given, made, name)
                made.add(run.get("out"))


class Natural(unittest.TestCase):
    """`ssimulacra2`, `natural` and what `evaluate` says of the low picture."""

    def test_grey_pictures_score_as_the_crate_scores_them(self) -> None:
        at = torch.arange(320 * 264)
        x, y = at % 320, at // 320
        noise = 30.0 * (((at * 7919) % 17) / 16.0 - 0.5)
        wanted = (128.0 + 60.0 * (x / 7.0).sin() * (y / 5.0).cos() + noise).reshape(1, 1, 264, 320)
        stripes = ((at % 13) / 12.0 - 0.5).reshape(1, 1, 264, 320)
        blurred = wanted.clone()
        blurred[..., 1:-1] = (wanted[..., :-2] + 2.0 * wanted[..., 1:-1] + wanted[..., 2:]) / 4.0
        # By the crate's version 0.5.1, of the same samples in floats.
        for made, score in (
            (wanted, 100.0),
            (wanted + 2.0 * stripes, 97.189),
            (wanted + 8.0 * stripes, 91.855),
            (wanted + 20.0 * stripes, 80.595),
            (blurred, 83.333),
        ):
            self.assertAlmostEqual(float(ssimulacra2.score(wanted, made)), score, delta=0.25)

    def test_what_is_exchanged_has_the_low_picture_of_the_one_and_the_detail_of_the_other(self) -> None:
        detail = torch.rand(1, 1, 8, 8) * 100.0 + 60.0
        low = torch.rand(1, 1, 4, 4).mul(100.0).round() + 60.0
        made = evaluate.exchanged(detail, low, 2)
        self.assertEqual(metrics.low_kept(made, low), 1.0)
        self.assertLess(metrics.low_kept(detail, low), 1.0)
        across = (detail[..., ::2] - detail[..., 1::2]) - (made[..., ::2] - made[..., 1::2])
        self.assertLessEqual(float(across.abs().max()), 1.0)

    def test_a_low_sample_may_be_off_by_a_grey_level(self) -> None:
        low = torch.full((1, 1, 2, 2), 90.0)
        for off, cost in ((1.0, 0.0), (-1.0, 0.0), (3.0, 4.0), (-2.0, 1.0)):
            self.assertEqual(float(natural.beyond_bound(torch.full((1, 1, 4, 4), 90.0 + off), low, 2)), cost)

    def test_an_adversary_learns_to_tell_pictures_apart(self) -> None:
        torch.manual_seed(3)
        adversary = natural.Adversary()
        teller = torch.optim.Adam(adversary.parameters(), lr=3e-3)
        twin = torch.rand(4, 1, 32, 32) * 40.0 + 100.0
        real = twin + torch.randn_like(twin) * 8.0
        before = float(natural.told_apart(adversary, real, twin, twin)[0])
        for _ in range(40):
            natural.taught(adversary, teller, real, twin, twin)
        self.assertGreater(float(natural.told_apart(adversary, real, twin, twin)[0]), before + 0.5)


if __name__ == "__main__":
    unittest.main()
