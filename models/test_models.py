"""Checks of the resampling, the folding and the committed weights: `python -m unittest discover models`."""

from __future__ import annotations

import unittest

import numpy as np
import torch

import network
import pairs
import train

WEIGHTS = pairs.HERE / "xs-x2.safetensors"


class Resampling(unittest.TestCase):
    """`network.up2` and `pairs.box_half`."""

    def test_lanczos_keeps_a_flat_picture_up_to_its_edges(self) -> None:
        flat = torch.full((1, 1, 5, 7), 90.0)
        torch.testing.assert_close(network.up2(flat), torch.full((1, 1, 10, 14), 90.0))

    def test_lanczos_reads_the_clamped_neighbours_at_minus_a_quarter(self) -> None:
        row = torch.tensor([10.0, 20.0, 40.0, 80.0])
        at = [max(0, min(3, tap)) for tap in range(-2, 4)]
        taps = torch.tensor([network.lanczos3(0.75 - tap) for tap in range(-2, 4)])
        wanted = float((row[at] * taps).sum() / taps.sum())
        self.assertAlmostEqual(float(network.up2(row[None, None, None, :])[0, 0, 0, 2]), wanted, places=4)

    def test_box_rounds_half_up(self) -> None:
        block = np.array([[1, 2], [2, 1]], np.uint8)
        self.assertEqual(pairs.box_half(block).tolist(), [[2]])

    def test_the_base_of_a_patch_is_that_of_its_frame(self) -> None:
        rng = np.random.default_rng(2)
        lr = rng.integers(0, 256, (1, 60, 70), dtype=np.uint8)
        hr = network.up2(torch.from_numpy(lr)[:, None].float()).round().clamp(0, 255)[:, 0].numpy().astype(np.uint8)
        low, high = train.cut(lr, hr, 1, rng)
        rounded = train.base(torch.from_numpy(low)).round().clamp(0, 255)[:, 0].numpy()
        self.assertLessEqual(np.abs(rounded - high).max(), 1.0)


class Network(unittest.TestCase):
    """Folding, and the weights in the repository."""

    def test_folded_kernels_equal_the_trained_form(self) -> None:
        torch.manual_seed(3)
        net = network.Net()
        luma = torch.rand(1, 1, 12, 9) * 255.0
        torch.testing.assert_close(network.residual(net.folded(), luma), net(luma).detach(), atol=1e-3, rtol=1e-4)

    def test_the_fixture_belongs_to_the_committed_weights(self) -> None:
        fixture = network.load(WEIGHTS.with_suffix(".fixture.safetensors"))
        made = network.residual(network.load(WEIGHTS), fixture["lr"][None, None])[0, 0]
        torch.testing.assert_close(made, fixture["residual"], atol=1e-3, rtol=1e-4)


if __name__ == "__main__":
    unittest.main()
