//! The wavelet transforms of ITU-T T.800, Annex F, in place: after a level, its low band is the
//! upper left corner of the plane, the other three lie beside and below it.
//!
//! Both transforms lift: a row of odd samples is changed by the even rows above and below it, then
//! the other way round. A "row" is one sample when transforming horizontally and a strip of columns
//! when transforming vertically; the loops are the same and run over whole slices.
//!
//! The 9/7 runs in `f32` and uses nothing but additions, multiplications and one rounding, in an
//! order that the source fixes. Rust gives these their IEEE 754 results on every target that this
//! project builds for and never fuses or reorders them, so that decoding gives the same samples
//! everywhere; `tests/conformance.rs` holds a digest that all targets must reproduce.

/// Columns that are transformed vertically together: two cache lines.
const STRIP: usize = 32;

/// A way to lift.
pub(crate) trait Lifting {
    /// Type of a coefficient.
    type Value: Copy + Default;

    /// Splits signals into low and high halves. Each row has `lanes` values; there are as many low
    /// rows as high ones, or one more.
    fn forward(low: &mut [Self::Value], high: &mut [Self::Value], lanes: usize);

    /// Undoes [`forward`](Self::forward).
    fn inverse(low: &mut [Self::Value], high: &mut [Self::Value], lanes: usize);

    /// Whether all values are 0, of which the inverse makes 0 again.
    fn are_zero(values: &[Self::Value]) -> bool;
}

/// The irreversible 9/7 transform.
pub(crate) struct Irreversible;

const ALPHA: f32 = -1.586_134_3;
const BETA: f32 = -0.052_980_12;
const GAMMA: f32 = 0.882_911_1;
const DELTA: f32 = 0.443_506_85;
const K: f32 = 1.230_174_1;

impl Lifting for Irreversible {
    type Value = f32;

    fn forward(low: &mut [f32], high: &mut [f32], lanes: usize) {
        change_high(high, low, lanes, |x, a, b| x + ALPHA * (a + b));
        change_low(low, high, lanes, |x, a, b| x + BETA * (a + b));
        change_high(high, low, lanes, |x, a, b| x + GAMMA * (a + b));
        change_low(low, high, lanes, |x, a, b| x + DELTA * (a + b));
        scale(low, 1.0 / K);
        scale(high, K);
    }

    fn inverse(low: &mut [f32], high: &mut [f32], lanes: usize) {
        scale(low, K);
        scale(high, 1.0 / K);
        change_low(low, high, lanes, |x, a, b| x - DELTA * (a + b));
        change_high(high, low, lanes, |x, a, b| x - GAMMA * (a + b));
        change_low(low, high, lanes, |x, a, b| x - BETA * (a + b));
        change_high(high, low, lanes, |x, a, b| x - ALPHA * (a + b));
    }

    fn are_zero(values: &[f32]) -> bool {
        values.iter().fold(0, |any, v| any | v.to_bits()) == 0
    }
}

fn scale(values: &mut [f32], by: f32) {
    for x in values {
        *x *= by;
    }
}

/// The reversible 5/3 transform. Foreign coefficients may be of any size, so it wraps.
pub(crate) struct Reversible;

impl Lifting for Reversible {
    type Value = i32;

    fn forward(low: &mut [i32], high: &mut [i32], lanes: usize) {
        change_high(high, low, lanes, |x, a, b| x.wrapping_sub(a.wrapping_add(b) >> 1));
        change_low(low, high, lanes, |x, a, b| {
            x.wrapping_add(a.wrapping_add(b).wrapping_add(2) >> 2)
        });
    }

    fn inverse(low: &mut [i32], high: &mut [i32], lanes: usize) {
        change_low(low, high, lanes, |x, a, b| {
            x.wrapping_sub(a.wrapping_add(b).wrapping_add(2) >> 2)
        });
        change_high(high, low, lanes, |x, a, b| x.wrapping_add(a.wrapping_add(b) >> 1));
    }

    fn are_zero(values: &[i32]) -> bool {
        values.iter().fold(0, |any, v| any | v) == 0
    }
}

/// Changes each high row by the low rows on both sides; beyond the end the signal is mirrored.
fn change_high<T: Copy>(high: &mut [T], low: &[T], lanes: usize, lift: impl Fn(T, T, T) -> T) {
    let inner = high.len().min(low.len() - lanes);
    let (body, end) = high.split_at_mut(inner);
    for ((x, &a), &b) in body.iter_mut().zip(low).zip(&low[lanes..]) {
        *x = lift(*x, a, b);
    }
    for (x, &a) in end.iter_mut().zip(&low[inner..]) {
        *x = lift(*x, a, a);
    }
}

/// Changes each low row by the high rows on both sides.
fn change_low<T: Copy>(low: &mut [T], high: &[T], lanes: usize, lift: impl Fn(T, T, T) -> T) {
    let (start, rest) = low.split_at_mut(lanes);
    for (x, &b) in start.iter_mut().zip(high) {
        *x = lift(*x, b, b);
    }
    let (body, end) = rest.split_at_mut(rest.len().min(high.len() - lanes));
    for ((x, &a), &b) in body.iter_mut().zip(high).zip(&high[lanes..]) {
        *x = lift(*x, a, b);
    }
    for (x, &a) in end.iter_mut().zip(&high[high.len() - lanes..]) {
        *x = lift(*x, a, a);
    }
}

/// Length of the low band after `level` levels.
pub(crate) fn low_length(length: usize, level: u8) -> usize {
    (length as u64).div_ceil(1 << level) as usize
}

/// Transforms a plane of `width` columns over a number of levels.
pub(crate) fn forward<L: Lifting>(plane: &mut [L::Value], width: usize, levels: u8) {
    let height = plane.len() / width;
    let mut scratch = Scratch::<L>::new(width, height);
    for level in 0..levels {
        let size = (low_length(width, level), low_length(height, level));
        if size == (1, 1) {
            return;
        }
        scratch.columns(plane, width, size, Direction::Forward);
        scratch.rows(plane, width, size, Direction::Forward);
    }
}

/// Undoes [`forward`].
pub(crate) fn inverse<L: Lifting>(plane: &mut [L::Value], width: usize, levels: u8) {
    let height = plane.len() / width;
    let mut scratch = Scratch::<L>::new(width, height);
    for level in (0..levels).rev() {
        let size = (low_length(width, level), low_length(height, level));
        scratch.rows(plane, width, size, Direction::Inverse);
        scratch.columns(plane, width, size, Direction::Inverse);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Forward,
    Inverse,
}

struct Scratch<L: Lifting> {
    low: Vec<L::Value>,
    high: Vec<L::Value>,
}

impl<L: Lifting> Scratch<L> {
    fn new(width: usize, height: usize) -> Self {
        let most = width.max(height * STRIP.min(width)).div_ceil(2) + STRIP;
        Self { low: vec![L::Value::default(); most], high: vec![L::Value::default(); most] }
    }

    fn rows(
        &mut self,
        plane: &mut [L::Value],
        stride: usize,
        (width, height): (usize, usize),
        direction: Direction,
    ) {
        if width < 2 {
            return;
        }
        let low = &mut self.low[..width.div_ceil(2)];
        let high = &mut self.high[..width / 2];
        for row in plane.chunks_exact_mut(stride).take(height) {
            let row = &mut row[..width];
            if direction == Direction::Forward {
                let pairs = row.as_chunks::<2>().0;
                for ((l, h), pair) in low.iter_mut().zip(high.iter_mut()).zip(pairs) {
                    [*l, *h] = *pair;
                }
                if width % 2 == 1 {
                    low[width / 2] = row[width - 1];
                }
                L::forward(low, high, 1);
                row[..low.len()].copy_from_slice(low);
                row[low.len()..].copy_from_slice(high);
            } else if !L::are_zero(row) {
                low.copy_from_slice(&row[..low.len()]);
                high.copy_from_slice(&row[low.len()..]);
                L::inverse(low, high, 1);
                let pairs = row.as_chunks_mut::<2>().0;
                for ((l, h), pair) in low.iter().zip(high.iter()).zip(pairs) {
                    *pair = [*l, *h];
                }
                if width % 2 == 1 {
                    row[width - 1] = low[width / 2];
                }
            }
        }
    }

    fn columns(
        &mut self,
        plane: &mut [L::Value],
        stride: usize,
        (width, height): (usize, usize),
        direction: Direction,
    ) {
        if height < 2 {
            return;
        }
        let lows = height.div_ceil(2);
        for x in (0..width).step_by(STRIP) {
            let lanes = STRIP.min(width - x);
            let low = &mut self.low[..lows * lanes];
            let high = &mut self.high[..height / 2 * lanes];
            // Rows of the plane, even and odd or low and high, against those of the strip.
            let (even_to_low, odd_to_high) = (|i: usize| 2 * i, |i: usize| 2 * i + 1);
            let (low_to_low, high_to_high) = (|i: usize| i, |i: usize| lows + i);
            if direction == Direction::Forward {
                load(low, plane, stride, x, lanes, even_to_low);
                load(high, plane, stride, x, lanes, odd_to_high);
                L::forward(low, high, lanes);
                store(low, plane, stride, x, lanes, low_to_low);
                store(high, plane, stride, x, lanes, high_to_high);
            } else {
                load(low, plane, stride, x, lanes, low_to_low);
                load(high, plane, stride, x, lanes, high_to_high);
                if L::are_zero(low) && L::are_zero(high) {
                    continue;
                }
                L::inverse(low, high, lanes);
                store(low, plane, stride, x, lanes, even_to_low);
                store(high, plane, stride, x, lanes, odd_to_high);
            }
        }
    }
}

fn load<T: Copy>(
    strip: &mut [T],
    plane: &[T],
    stride: usize,
    x: usize,
    lanes: usize,
    row_of: impl Fn(usize) -> usize,
) {
    for (i, row) in strip.chunks_exact_mut(lanes).enumerate() {
        row.copy_from_slice(&plane[row_of(i) * stride + x..][..lanes]);
    }
}

fn store<T: Copy>(
    strip: &[T],
    plane: &mut [T],
    stride: usize,
    x: usize,
    lanes: usize,
    row_of: impl Fn(usize) -> usize,
) {
    for (i, row) in strip.chunks_exact(lanes).enumerate() {
        plane[row_of(i) * stride + x..][..lanes].copy_from_slice(row);
    }
}

/// How much an error in a coefficient of a band weighs in the picture: the L2 norm of its synthesis
/// function, low and high, by level from 1.
pub(crate) const NORMS: [(f32, f32); 8] = [
    (1.402_108, 0.721_261),
    (2.030_372, 0.983_471),
    (2.901_163, 1.441_962),
    (4.115_285, 2.073_76),
    (5.824_511, 2.947_325),
    (8.238_76, 4.173_589),
    (11.651_955, 5.904_302),
    (16.478_561, 8.350_639),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn norms_are_those_of_the_transform() {
        for level in 1..=8u8 {
            let length = 64 << level;
            for (high, norm) in
                [(false, NORMS[usize::from(level) - 1].0), (true, NORMS[usize::from(level) - 1].1)]
            {
                let mut plane = vec![0.0; length];
                plane[32 + if high { 64 } else { 0 }] = 1.0;
                inverse::<Irreversible>(&mut plane, length, level);
                let energy: f32 = plane.iter().map(|v| v * v).sum();
                assert!((energy.sqrt() - norm).abs() < 1e-3, "{level} {high} {energy}");
            }
        }
    }

    #[test]
    fn a_flat_plane_is_all_in_the_low_band() {
        let mut plane = vec![100.0; 45 * 31];
        forward::<Irreversible>(&mut plane, 45, 3);
        for (i, &v) in plane.iter().enumerate() {
            let low = i % 45 < 6 && i / 45 < 4;
            assert!((v - if low { 100.0 } else { 0.0 }).abs() < 1e-3, "{i}: {v}");
        }
    }

    proptest! {
        #[test]
        fn both_transforms_come_back(
            width in 1usize..80, height in 1usize..80, levels in 0u8..7, seed: u32,
        ) {
            let mut state = seed;
            let plane: Vec<i32> = (0..width * height)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 19) as i32 - 4096
                })
                .collect();
            let mut exact = plane.clone();
            forward::<Reversible>(&mut exact, width, levels);
            inverse::<Reversible>(&mut exact, width, levels);
            prop_assert_eq!(&exact, &plane);
            let mut close: Vec<f32> = plane.iter().map(|&v| v as f32).collect();
            forward::<Irreversible>(&mut close, width, levels);
            inverse::<Irreversible>(&mut close, width, levels);
            for (a, b) in close.iter().zip(&plane) {
                prop_assert!((a - *b as f32).abs() < 0.1);
            }
        }
    }
}
