//! The wavelet transforms of ITU-T T.800, Annex F, in place. After a level, the low band of a row lies at its left and
//! the high one at its right; rows stay where they are: those of the low band are every second one ([`Rows`]).
//!
//! Both transforms lift: a row of odd samples is changed by the even rows above and below it, then the other way
//! round, one or two times. A level goes over the plane once. Each step of lifting follows the one before by a row,
//! so that its input is still in the cache. A row is transformed horizontally when its last vertical step is done; on
//! the way back, before its first one.
//!
//! The 9/7 runs in `f32` and uses nothing but additions, multiplications and one rounding, in an order that the
//! source fixes. Rust gives these their IEEE 754 results on every target that this project builds for, and never
//! fuses or reorders them. So decoding gives the same samples everywhere; `tests/conformance.rs` holds a digest that
//! all targets must reproduce.

#![allow(clippy::inline_always)] // functions take on the target features of their callers

use crate::wide::wide;

/// A lifting scheme. Steps are counted in the order of the forward transform; each changes high rows and then low
/// ones.
pub(crate) trait Lifting {
    /// Type of a coefficient.
    type Value: Copy + Default;
    /// Number of lifting steps.
    const STEPS: usize;

    /// A high sample after a step, from the low ones on both sides of it.
    fn high(step: usize, x: Self::Value, a: Self::Value, b: Self::Value) -> Self::Value;
    /// A low sample after a step, from the high ones on both sides of it.
    fn low(step: usize, x: Self::Value, a: Self::Value, b: Self::Value) -> Self::Value;
    /// Undoes [`high`](Self::high).
    fn undo_high(step: usize, x: Self::Value, a: Self::Value, b: Self::Value) -> Self::Value;
    /// Undoes [`low`](Self::low).
    fn undo_low(step: usize, x: Self::Value, a: Self::Value, b: Self::Value) -> Self::Value;
    /// Scales a low or high sample after the last step.
    fn scale(x: Self::Value, high: bool) -> Self::Value;
    /// Undoes [`scale`](Self::scale).
    fn undo_scale(x: Self::Value, high: bool) -> Self::Value;
    /// The bits of a value: all zero for a value whose inverse transform is 0 again.
    fn bits(x: Self::Value) -> u32;
}

/// The irreversible 9/7 transform.
pub(crate) struct Irreversible;

/// Lifting factors of the high samples, by step (ITU-T T.800, table F.4: α and γ).
const HIGH: [f32; 2] = [-1.586_134_3, 0.882_911_1];
/// Lifting factors of the low samples, by step (ITU-T T.800, table F.4: β and δ).
const LOW: [f32; 2] = [-0.052_980_12, 0.443_506_85];
/// Scaling factor of the high band; its inverse scales the low band (ITU-T T.800, table F.4).
const K: f32 = 1.230_174_1;

impl Lifting for Irreversible {
    type Value = f32;
    const STEPS: usize = 2;

    #[inline(always)]
    fn high(step: usize, x: f32, a: f32, b: f32) -> f32 {
        x + HIGH[step] * (a + b)
    }

    #[inline(always)]
    fn low(step: usize, x: f32, a: f32, b: f32) -> f32 {
        x + LOW[step] * (a + b)
    }

    #[inline(always)]
    fn undo_high(step: usize, x: f32, a: f32, b: f32) -> f32 {
        x - HIGH[step] * (a + b)
    }

    #[inline(always)]
    fn undo_low(step: usize, x: f32, a: f32, b: f32) -> f32 {
        x - LOW[step] * (a + b)
    }

    #[inline(always)]
    fn scale(x: f32, high: bool) -> f32 {
        x * if high { K } else { 1.0 / K }
    }

    #[inline(always)]
    fn undo_scale(x: f32, high: bool) -> f32 {
        x * if high { 1.0 / K } else { K }
    }

    #[inline(always)]
    fn bits(x: f32) -> u32 {
        x.to_bits()
    }
}

/// The reversible 5/3 transform. Foreign coefficients may be of any size, so the arithmetic wraps.
pub(crate) struct Reversible;

impl Lifting for Reversible {
    type Value = i32;
    const STEPS: usize = 1;

    #[inline(always)]
    fn high(_: usize, x: i32, a: i32, b: i32) -> i32 {
        x.wrapping_sub(a.wrapping_add(b) >> 1)
    }

    #[inline(always)]
    fn low(_: usize, x: i32, a: i32, b: i32) -> i32 {
        x.wrapping_add(a.wrapping_add(b).wrapping_add(2) >> 2)
    }

    #[inline(always)]
    fn undo_high(_: usize, x: i32, a: i32, b: i32) -> i32 {
        x.wrapping_add(a.wrapping_add(b) >> 1)
    }

    #[inline(always)]
    fn undo_low(_: usize, x: i32, a: i32, b: i32) -> i32 {
        x.wrapping_sub(a.wrapping_add(b).wrapping_add(2) >> 2)
    }

    #[inline(always)]
    fn scale(x: i32, _: bool) -> i32 {
        x
    }

    #[inline(always)]
    fn undo_scale(x: i32, _: bool) -> i32 {
        x
    }

    #[inline(always)]
    fn bits(x: i32) -> u32 {
        x.cast_unsigned()
    }
}

/// Length of the low band after `level` levels.
pub(crate) fn low_length(length: usize, level: u8) -> usize {
    (length as u64).div_ceil(1 << level) as usize
}

/// The rows of a band in a transformed plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rows {
    first: usize,
    step: usize,
}

impl Rows {
    /// The rows of the low or high band of a level, counted from 1. At level 0 there is no transform.
    pub(crate) fn new(level: u8, high: bool) -> Self {
        Self { first: if high { 1 << (level - 1) } else { 0 }, step: 1 << level }
    }

    /// The plane's row that is row `row` of the band.
    pub(crate) fn at(self, row: usize) -> usize {
        self.first + row * self.step
    }
}

/// The vertical band of a row.
#[derive(Debug, Clone, Copy)]
enum RowBand {
    /// Neither: a level of one row has no vertical transform.
    Single,
    Low,
    High,
}

impl RowBand {
    /// The band of row `row` of `rows`, before the bands are parted.
    fn of(row: usize, rows: usize) -> RowBand {
        match (rows, row % 2) {
            (1, _) => RowBand::Single,
            (_, 0) => RowBand::Low,
            _ => RowBand::High,
        }
    }

    /// Whether it is the high band, if it is one of the two.
    #[inline(always)]
    fn high(self) -> Option<bool> {
        match self {
            RowBand::Single => None,
            RowBand::Low => Some(false),
            RowBand::High => Some(true),
        }
    }
}

/// A lifting step, or the step that undoes it.
#[derive(Clone, Copy)]
enum Lift {
    High(usize),
    Low(usize),
    UndoHigh(usize),
    UndoLow(usize),
}

wide! {
    /// Changes samples by those on both sides of each.
    fn lift<L: Lifting>(how: Lift, x: &mut [L::Value], a: &[L::Value], b: &[L::Value]) = lift_by
}

#[inline(always)]
fn lift_by<L: Lifting>(how: Lift, x: &mut [L::Value], a: &[L::Value], b: &[L::Value]) {
    let all = x.iter_mut().zip(a).zip(b);
    match how {
        Lift::High(step) => all.for_each(|((x, &a), &b)| *x = L::high(step, *x, a, b)),
        Lift::Low(step) => all.for_each(|((x, &a), &b)| *x = L::low(step, *x, a, b)),
        Lift::UndoHigh(step) => all.for_each(|((x, &a), &b)| *x = L::undo_high(step, *x, a, b)),
        Lift::UndoLow(step) => all.for_each(|((x, &a), &b)| *x = L::undo_low(step, *x, a, b)),
    }
}

/// Transforms a plane of `width` columns over a number of levels.
pub(crate) fn forward<L: Lifting>(plane: &mut [L::Value], width: usize, levels: u8) {
    let height = plane.len() / width;
    let mut halves = vec![L::Value::default(); width];
    for level in 0..levels {
        let (columns, rows) = (low_length(width, level), low_length(height, level));
        if (columns, rows) == (1, 1) {
            return;
        }
        let mut level = Level::<L> { plane, columns, rows, stride: width << level };
        for t in 0..rows.div_ceil(2) + L::STEPS {
            for step in 0..L::STEPS.min(t + 1) {
                level.lift(2 * (t - step) + 1, Lift::High(step));
                level.lift(2 * (t - step), Lift::Low(step));
            }
            // Rows that no later step needs.
            let done = [(t + 1).checked_sub(L::STEPS), t.checked_sub(L::STEPS)];
            for (pair, odd) in done.into_iter().zip([0, 1]) {
                let row = pair.map(|pair| 2 * pair + odd).filter(|&row| row < rows);
                if let Some(row) = row {
                    let band = RowBand::of(row, rows);
                    split::<L>(level.row(row), &mut halves[..columns], band);
                }
            }
        }
    }
}

/// Undoes [`forward`].
pub(crate) fn inverse<L: Lifting>(plane: &mut [L::Value], width: usize, levels: u8) {
    let height = plane.len() / width;
    let mut halves = vec![L::Value::default(); width];
    for level in (0..levels).rev() {
        let (columns, rows) = (low_length(width, level), low_length(height, level));
        let mut level = Level::<L> { plane, columns, rows, stride: width << level };
        for t in 0..rows.div_ceil(2) + L::STEPS {
            for row in (2 * t..rows).take(2) {
                let band = RowBand::of(row, rows);
                join::<L>(level.row(row), &mut halves[..columns], band);
            }
            for behind in 0..L::STEPS.min(t + 1) {
                let step = L::STEPS - 1 - behind;
                level.lift(2 * (t - behind), Lift::UndoLow(step));
                if t > behind {
                    level.lift(2 * (t - behind) - 1, Lift::UndoHigh(step));
                }
            }
        }
    }
}

/// The low band of a level's plane, which the next level divides.
struct Level<'a, L: Lifting> {
    plane: &'a mut [L::Value],
    columns: usize,
    rows: usize,
    /// Distance from one row to the next, in samples.
    stride: usize,
}

impl<L: Lifting> Level<'_, L> {
    fn row(&mut self, row: usize) -> &mut [L::Value] {
        &mut self.plane[row * self.stride..][..self.columns]
    }

    /// Changes a row, if there is one, by the rows above and below it. Beyond the ends the signal is mirrored.
    fn lift(&mut self, row: usize, how: Lift) {
        if row >= self.rows || self.rows == 1 {
            return;
        }
        let start = (row.max(1) - 1) * self.stride;
        let last = (row + 1).min(self.rows - 1) * self.stride + self.columns;
        let (before, rest) = self.plane[start..last].split_at_mut(row * self.stride - start);
        let (own, after) = rest.split_at_mut(self.stride.min(rest.len()));
        let own = &mut own[..self.columns];
        match (row > 0, row + 1 < self.rows) {
            (true, true) => lift::<L>(how, own, before, after),
            (true, false) => lift::<L>(how, own, before, before),
            (false, _) => lift::<L>(how, own, after, after),
        }
    }
}

wide! {
    /// Scales a row as its vertical band is, and transforms it; `halves` has the same length.
    fn split<L: Lifting>(row: &mut [L::Value], halves: &mut [L::Value], band: RowBand) = split_by
}

#[inline(always)]
fn split_by<L: Lifting>(row: &mut [L::Value], halves: &mut [L::Value], band: RowBand) {
    if let Some(high) = band.high() {
        for x in row.iter_mut() {
            *x = L::scale(*x, high);
        }
    }
    if row.len() < 2 {
        return;
    }
    let (low, high) = halves.split_at_mut(row.len().div_ceil(2));
    let (pairs, rest) = row.as_chunks::<2>();
    for ((l, h), pair) in low.iter_mut().zip(high.iter_mut()).zip(pairs) {
        [*l, *h] = *pair;
    }
    if let ([odd_one], [.., l]) = (rest, &mut *low) {
        *l = *odd_one;
    }
    for step in 0..L::STEPS {
        lift_high::<L>(Lift::High(step), high, low);
        lift_low::<L>(Lift::Low(step), low, high);
    }
    let (to_low, to_high) = row.split_at_mut(low.len());
    for (to, &x) in to_low.iter_mut().zip(&*low) {
        *to = L::scale(x, false);
    }
    for (to, &x) in to_high.iter_mut().zip(&*high) {
        *to = L::scale(x, true);
    }
}

wide! {
    /// Undoes [`split`].
    fn join<L: Lifting>(row: &mut [L::Value], halves: &mut [L::Value], band: RowBand) = join_by
}

#[inline(always)]
fn join_by<L: Lifting>(row: &mut [L::Value], halves: &mut [L::Value], band: RowBand) {
    if row.iter().fold(0, |any, &x| any | L::bits(x)) == 0 {
        return;
    }
    if row.len() > 1 {
        let (low, high) = halves.split_at_mut(row.len().div_ceil(2));
        let (from_low, from_high) = row.split_at(low.len());
        for (x, &from) in low.iter_mut().zip(from_low) {
            *x = L::undo_scale(from, false);
        }
        for (x, &from) in high.iter_mut().zip(from_high) {
            *x = L::undo_scale(from, true);
        }
        for step in (0..L::STEPS).rev() {
            lift_low::<L>(Lift::UndoLow(step), low, high);
            lift_high::<L>(Lift::UndoHigh(step), high, low);
        }
        let (pairs, rest) = row.as_chunks_mut::<2>();
        for ((l, h), pair) in low.iter().zip(high.iter()).zip(pairs) {
            *pair = [*l, *h];
        }
        if let ([odd_one], [.., l]) = (rest, &*low) {
            *odd_one = *l;
        }
    }
    if let Some(high) = band.high() {
        for x in row.iter_mut() {
            *x = L::undo_scale(*x, high);
        }
    }
}

/// Changes each high sample by the low ones on both sides of it; beyond the end the signal is mirrored.
#[inline(always)]
fn lift_high<L: Lifting>(how: Lift, high: &mut [L::Value], low: &[L::Value]) {
    let inner = high.len().min(low.len() - 1);
    let (body, end) = high.split_at_mut(inner);
    lift::<L>(how, body, low, &low[1..]);
    lift_by::<L>(how, end, &low[inner..], &low[inner..]);
}

/// Changes each low sample by the high ones on both sides of it.
#[inline(always)]
fn lift_low<L: Lifting>(how: Lift, low: &mut [L::Value], high: &[L::Value]) {
    let (start, rest) = low.split_at_mut(1);
    lift_by::<L>(how, start, high, high);
    let (body, end) = rest.split_at_mut(rest.len().min(high.len() - 1));
    lift::<L>(how, body, high, &high[1..]);
    let last = &high[high.len() - 1..];
    lift_by::<L>(how, end, last, last);
}

/// How much an error in a coefficient of a band weighs in the picture, by level from 1: the L2 norms of the synthesis
/// functions of the low and the high band.
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
            let low = i % 45 < 6 && i / 45 % 8 == 0;
            assert!((v - if low { 100.0 } else { 0.0 }).abs() < 1e-3, "{i}: {v}");
        }
    }

    proptest! {
        #[test]
        fn wide_registers_change_no_bit(
            row in proptest::collection::vec(-5000f32..5000.0, 1..200),
            band in proptest::sample::select(&[RowBand::Single, RowBand::Low, RowBand::High]),
        ) {
            let mut halves = vec![0.0; row.len()];
            let (mut narrow, mut wide) = (row.clone(), row);
            split_by::<Irreversible>(&mut narrow, &mut halves, band);
            split::<Irreversible>(&mut wide, &mut halves, band);
            prop_assert_eq!(&narrow, &wide);
            join_by::<Irreversible>(&mut narrow, &mut halves, band);
            join::<Irreversible>(&mut wide, &mut halves, band);
            prop_assert_eq!(narrow, wide);
        }

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
