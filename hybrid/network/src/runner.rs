//! Runs a network over pictures, row by row through all layers, so that what lies between them stays in the cache.

use std::ops::Range;

use windlass_vp9::simd::Isa;
use windlass_vp9::{Plane, PlaneSize, Samples};

use crate::Network;
use crate::kernel::convolve;
use crate::ring::Ring;
use crate::spans::Spans;

/// The parts of the pictures that have changed since the last run.
#[derive(Debug, Clone, Copy)]
pub enum Changed<'a> {
    /// All cells have changed, or there was no last run.
    All,
    /// Some cells have changed, of `side` × `side` low samples each.
    Cells {
        /// A flag for each cell, row by row: whether a low sample of it, or a high one over it, has changed.
        changed: &'a [bool],
        /// Side of a cell, in low samples.
        side: usize,
    },
}

/// Working memory for a network; grows to what the largest picture needs and is used again.
#[derive(Debug)]
pub struct Runner {
    isa: Isa,
    /// For each layer: the last rows of its input, and below the samples of its output that must be made. The last
    /// ring is of the residual.
    rings: Vec<Ring>,
    /// The samples that must be made of each layer's output; the first are of the input.
    spans: Vec<Spans>,
    /// The samples of the output that the changed cells reach.
    needed: Spans,
}

impl Runner {
    /// A runner without memory yet.
    pub fn new(isa: Isa) -> Self {
        Self { isa, rings: Vec::new(), spans: Vec::new(), needed: Spans::default() }
    }

    /// Makes `shown` from the low and the high luma. Where only some cells have changed, `shown` must be what the
    /// last run of this network made. The other samples then stay, and the result is that of a run over everything.
    ///
    /// # Panics
    ///
    /// Panics if the high picture or `shown` is not [`Network::scale`] times as large as the low one, or the number of
    /// cells is another.
    pub fn run(
        &mut self,
        network: &Network,
        low: Samples<'_>,
        high: Samples<'_>,
        changed: Changed<'_>,
        shown: &mut Plane,
    ) {
        let (height, scale) = (low.height, network.scale());
        let size = low.size().scaled(scale);
        assert_eq!(high.size(), size, "the high picture has another size");
        assert_eq!(shown.size(), size, "the picture to show has another size");
        self.plan(network, low.size(), changed);
        if self.spans[0].is_empty() {
            return;
        }
        let (layers, isa) = (network.layers(), self.isa);
        let stride = shown.stride();
        for step in 0..height + layers.len() {
            if step < height {
                let span = self.spans[0].row(step);
                let inputs = layers[0].inputs;
                fold(low, high, scale, step, span, inputs, self.rings[0].row_mut(step));
            }
            for (n, layer) in layers.iter().enumerate() {
                // A layer's row needs the row below it of its input, which the layer before has just made.
                let Some(y) = step.checked_sub(n + 1).filter(|&y| y < height) else { continue };
                let (before, after) = self.rings.split_at_mut(n + 1);
                let (rows, span) = (before[n].around(y, height), self.spans[n + 1].row(y));
                convolve(isa, layer, rows, span.clone(), after[0].row_mut(y));
                if n + 1 == layers.len() {
                    let channels = layer.outputs;
                    let residual = &after[0].row_mut(y)[channels..];
                    let shown = &mut shown.samples_mut()[scale * y * stride..];
                    unfold(residual, channels, high, scale, y, span, shown);
                }
            }
        }
    }

    /// Finds the samples that must be made of each layer's output, and makes room for them.
    fn plan(&mut self, network: &Network, size: PlaneSize, changed: Changed<'_>) {
        let (layers, reach) = (network.layers(), network.reach());
        self.rings.resize_with(layers.len() + 1, Ring::default);
        self.spans.resize_with(layers.len() + 1, Spans::default);
        for (ring, layer) in self.rings.iter_mut().zip(layers) {
            ring.resize(size.width, layer.inputs);
        }
        if let (Some(ring), Some(layer)) = (self.rings.last_mut(), layers.last()) {
            ring.resize(size.width, layer.outputs);
        }
        let [input, ..] = &mut self.spans[..] else { return };
        match changed {
            Changed::All => input.fill(size.width, size.height, |_| 0..size.width),
            Changed::Cells { changed, side } => {
                let side = side.max(1);
                let columns = size.width.div_ceil(side);
                assert_eq!(changed.len(), columns * size.height.div_ceil(side), "cells");
                input.fill(size.width, size.height, |y| {
                    row_of(&changed[y / side * columns..][..columns], side)
                });
            }
        }
        // The samples that the changes reach must be made, and of each layer the samples that these need.
        self.needed.widen(input, reach);
        for (n, spans) in self.spans.iter_mut().enumerate() {
            spans.widen(&self.needed, reach - n);
        }
    }
}

/// The samples from the first to behind the last cell of a row that has changed.
fn row_of(changed: &[bool], side: usize) -> Range<usize> {
    let first = changed.iter().position(|&c| c);
    let last = changed.iter().rposition(|&c| c);
    first.zip(last).map_or(0..0, |(first, last)| first * side..(last + 1) * side)
}

/// Makes a row of the network's input. Each sample has the low luma, then the high luma over it by row and column.
fn fold(
    low: Samples<'_>,
    high: Samples<'_>,
    scale: usize,
    y: usize,
    span: Range<usize>,
    channels: usize,
    to: &mut [i16],
) {
    let to = &mut to[(span.start + 1) * channels..(span.end + 1) * channels];
    let centred = |v: u8| 2 * i16::from(v) - 255;
    for (to, &luma) in to.chunks_exact_mut(channels).zip(&low.row(y)[span.clone()]) {
        to[0] = centred(luma);
    }
    for dy in 0..scale {
        let row = &high.row(scale * y + dy)[scale * span.start..scale * span.end];
        for (to, from) in to.chunks_exact_mut(channels).zip(row.chunks_exact(scale)) {
            for (to, &luma) in to[1 + scale * dy..].iter_mut().zip(from) {
                *to = centred(luma);
            }
        }
    }
}

/// Adds a row of residuals to the high luma: `shown` begins with the first high row of the low row `y`.
fn unfold(
    residual: &[i16],
    channels: usize,
    high: Samples<'_>,
    scale: usize,
    y: usize,
    span: Range<usize>,
    shown: &mut [u8],
) {
    let residual = &residual[span.start * channels..span.end * channels];
    for dy in 0..scale {
        let wide = scale * span.start..scale * span.end;
        let high_row = &high.row(scale * y + dy)[wide.clone()];
        let shown = &mut shown[dy * high.width..][wide];
        let samples = shown.chunks_exact_mut(scale).zip(high_row.chunks_exact(scale));
        for ((shown, high), residual) in samples.zip(residual.chunks_exact(channels)) {
            for ((shown, &high), &r) in shown.iter_mut().zip(high).zip(&residual[scale * dy..]) {
                *shown = i16::from(high).saturating_add(r).clamp(0, 255) as u8;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Weights;
    use crate::rounding::tests::random;

    /// A plane of smooth and rough parts.
    fn plane(width: usize, height: usize, seed: usize) -> Plane {
        let sample = |i: usize| {
            let (x, y) = (i % width, i / width);
            let rough = (i + seed).wrapping_mul(2_654_435_761) >> 13;
            let smooth = 3 * x + 5 * y + seed;
            if (x / 7 + y / 5) % 3 == 0 { rough as u8 } else { (smooth % 256) as u8 }
        };
        Plane::from_samples(width, height, (0..width * height).map(sample).collect()).unwrap()
    }

    fn run(isa: Isa, weights: &Weights, low: &Plane, high: &Plane) -> Plane {
        let mut shown = Plane::filled(high.width(), high.height(), 0);
        let network = Network::new(weights).unwrap();
        Runner::new(isa).run(&network, low.into(), high.into(), Changed::All, &mut shown);
        shown
    }

    /// What the file says, in 64-bit floats.
    fn exact(weights: &Weights, low: &Plane, high: &Plane) -> Vec<f64> {
        let (width, height, scale) = (low.width(), low.height(), weights.size().scale());
        let at = |planes: &[Vec<f64>], c: usize, x: isize, y: isize| {
            let inside = (0..width as isize).contains(&x) && (0..height as isize).contains(&y);
            if inside { planes[c][y as usize * width + x as usize] } else { 0.0 }
        };
        let centred = |v: u8| f64::from(v) / 255.0 - 0.5;
        let mut planes = vec![low.samples().iter().map(|&v| centred(v)).collect::<Vec<_>>()];
        for phase in 0..scale * scale {
            let sample = |i: usize| {
                let (x, y) = (i % width * scale + phase % scale, i / width * scale + phase / scale);
                centred(high.row(y)[x])
            };
            planes.push((0..width * height).map(sample).collect());
        }
        for (n, conv) in weights.convs().iter().enumerate() {
            let inputs = weights.size().shape(n).0;
            let output = |o: usize| {
                let sum = |i: usize| {
                    let (x, y) = ((i % width) as isize, (i / width) as isize);
                    let mut sum = f64::from(conv.bias[o]);
                    for c in 0..inputs {
                        for k in 0..9 {
                            let (dx, dy) = (k as isize % 3 - 1, k as isize / 3 - 1);
                            sum += f64::from(conv.weights[(o * inputs + c) * 9 + k])
                                * at(&planes, c, x + dx, y + dy);
                        }
                    }
                    if n + 1 == weights.convs().len() { sum } else { sum.max(0.0) }
                };
                (0..width * height).map(sum).collect()
            };
            planes = (0..conv.bias.len()).map(output).collect();
        }
        let shown = |i: usize| {
            let (x, y) = (i % (scale * width), i / (scale * width));
            let r = planes[y % scale * scale + x % scale][y / scale * width + x / scale];
            (f64::from(high.samples()[i]) + r).clamp(0.0, 255.0)
        };
        (0..scale * scale * width * height).map(shown).collect()
    }

    #[test]
    fn integers_are_near_what_the_file_says() {
        for (scale, channels, convs) in [(2, 16, 5), (2, 8, 4), (3, 16, 3), (4, 16, 5)] {
            let weights = random(scale, channels, convs, 5);
            let (low, high) = (plane(21, 17, 1), plane(21 * scale, 17 * scale, 2));
            let exact = exact(&weights, &low, &high);
            let made = run(Isa::detect(), &weights, &low, &high);
            let errors =
                made.samples().iter().zip(&exact).map(|(&a, b)| (f64::from(a) - b).powi(2));
            let rms = (errors.sum::<f64>() / exact.len() as f64).sqrt();
            // Rounding to grey levels alone makes 0.29.
            assert!(rms < 0.4, "scale {scale}, {convs} convolutions: {rms}");
        }
    }

    #[test]
    fn all_instruction_sets_make_the_same_picture() {
        for scale in 2..=4 {
            let weights = random(scale, 24, 3, 9);
            let (low, high) = (plane(37, 9, 1), plane(37 * scale, 9 * scale, 2));
            let expected = run(Isa::SCALAR, &weights, &low, &high);
            for &isa in Isa::available() {
                assert_eq!(run(isa, &weights, &low, &high), expected, "{isa:?}");
            }
        }
    }

    #[test]
    fn pictures_of_a_single_row_or_column_are_near_what_the_file_says() {
        let weights = random(2, 8, 4, 2);
        for (width, height) in [(1, 1), (1, 9), (9, 1), (2, 3)] {
            let (low, high) = (plane(width, height, 1), plane(2 * width, 2 * height, 2));
            let made = run(Isa::detect(), &weights, &low, &high);
            for (&made, exact) in made.samples().iter().zip(exact(&weights, &low, &high)) {
                assert!((f64::from(made) - exact).abs() < 2.0, "{width}x{height}: {made} {exact}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_run_over_changes_makes_the_same_as_one_over_all(
            size in (1usize..50, 1usize..40), changes in proptest::collection::vec((0usize..50, 0usize..40), 0..4),
            scale in 2usize..5,
        ) {
            let (width, height) = size;
            let weights = random(scale, 8, 4, 3);
            let network = Network::new(&weights).unwrap();
            let (mut low, mut high) = (plane(width, height, 1), plane(scale * width, scale * height, 2));
            let mut runner = Runner::new(Isa::detect());
            let mut shown = Plane::filled(scale * width, scale * height, 0);
            runner.run(&network, (&low).into(), (&high).into(), Changed::All, &mut shown);
            let (side, columns) = (8, width.div_ceil(8));
            let mut changed = vec![false; columns * height.div_ceil(8)];
            for (n, (x, y)) in changes.into_iter().enumerate() {
                let (x, y) = (x % width, y % height);
                changed[y / side * columns + x / side] = true;
                if n % 2 == 0 {
                    low.samples_mut()[y * width + x] ^= 0x55;
                } else {
                    high.samples_mut()[(scale * y + 1) * scale * width + scale * x] ^= 0x55;
                }
            }
            let cells = Changed::Cells { changed: &changed, side };
            runner.run(&network, (&low).into(), (&high).into(), cells, &mut shown);
            prop_assert_eq!(shown, run(Isa::detect(), &weights, &low, &high));
        }

        #[test]
        fn what_a_runner_did_before_does_not_matter(
            runs in proptest::collection::vec((1usize..40, 1usize..12, 0usize..4), 2..5),
        ) {
            // Of widths and channels that make rows of the same length too.
            let networks = [(2, 8, 4), (2, 16, 3), (4, 16, 3), (3, 24, 2)];
            let mut runner = Runner::new(Isa::detect());
            for (width, height, which) in runs {
                let (scale, channels, convs) = networks[which];
                let weights = random(scale, channels, convs, which as u64);
                for width in [width, 2 * (width + 2) - 2] {
                    let (low, high) = (plane(width, height, 1), plane(scale * width, scale * height, 2));
                    let mut shown = Plane::filled(scale * width, scale * height, 0);
                    let network = Network::new(&weights).unwrap();
                    runner.run(&network, (&low).into(), (&high).into(), Changed::All, &mut shown);
                    prop_assert_eq!(shown, run(Isa::detect(), &weights, &low, &high));
                }
            }
        }
    }
}
