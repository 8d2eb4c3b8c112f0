//! Fetching a cell of an anchor's picture from where a vector points, between samples too.
//!
//! Catmull-Rom, in one pass across and one down, in 16 bits: samples across are in 1/128 grey level about
//! the middle of the range, so that no sum of them by the taps overflows. The scalar forms define the results.

mod simd;

#[cfg(test)]
mod tests;

use crate::picture::Plane;
use crate::resample::Samples;
use crate::simd::{Isa, by_isa};
use simd::{blend as blend_simd, squares as squares_simd};

/// Steps of a vector in a sample.
pub(crate) const UNIT: i32 = 32;
/// A share of one, as nearly as 16 bits hold it: the picture is replaced.
pub(crate) const WHOLE: i16 = i16::MAX;

/// Taps over samples −1 to 2 by 32nds of a sample, in 1/128.
const TAPS: [[i16; 4]; UNIT as usize] = taps();
/// What taps make of the middle of the range, 128.
const MIDDLE: i32 = 128 * 128;
/// Largest side of a cell in HR samples.
const MAX_SIDE: usize = 16;
/// Rows of a patch: a cell, one row before, two behind, and one that vectors touch.
const PATCH_ROWS: usize = MAX_SIDE + 4;
/// From row to row of a patch: likewise.
const PATCH_STRIDE: usize = 32;

/// A rectangle of samples, inside its picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
}

impl Area {
    /// The same area of the HR picture.
    pub fn scaled(self, scale: usize) -> Self {
        let Self { x, y, width, height } = self;
        Self { x: x * scale, y: y * scale, width: width * scale, height: height * scale }
    }

    /// Its chroma in the HR picture.
    pub fn chroma(self, scale: usize) -> Self {
        let Self { x, y, width, height } = self.scaled(scale);
        Self { x: x / 2, y: y / 2, width: width.div_ceil(2), height: height.div_ceil(2) }
    }
}

/// A vector in 1/[`UNIT`] sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Step {
    pub x: i32,
    pub y: i32,
}

const fn taps() -> [[i16; 4]; UNIT as usize] {
    const fn rounded(v: i32) -> i16 {
        ((v + 256) >> 9) as i16
    }
    let mut all = [[0; 4]; UNIT as usize];
    let mut p = 0;
    while p < UNIT {
        let (p2, p3) = (p * p, p * p * p);
        let before = rounded(-1024 * p + 64 * p2 - p3);
        let behind = rounded(1024 * p + 128 * p2 - 3 * p3);
        let last = rounded(p3 - 32 * p2);
        all[p as usize] = [before, 128 - before - behind - last, behind, last];
        p += 1;
    }
    all
}

/// Brings an area of the picture that is being made, in 1/16 grey level, nearer to what a vector points to in
/// another by a share in 1/[`WHOLE`]. `out` begins with the area's first sample.
pub(crate) fn blend(
    isa: Isa,
    from: &Plane,
    area: Area,
    step: Step,
    share: i16,
    out: &mut [i16],
    stride: usize,
) {
    let mut patch = [0; PATCH_STRIDE * PATCH_ROWS];
    let (from, fraction) = patch_at(from.into(), area, step, &mut patch);
    let Area { width, height, .. } = area;
    let size = (width, height);
    // Other sizes lie at edges.
    let isa = if width.is_multiple_of(4) && height.is_multiple_of(2) { isa } else { Isa::SCALAR };
    assert!(height == 0 || out.len() >= (height - 1) * stride + width);
    // SAFETY: the area's rows are there, and `patch_at` gives what is read.
    by_isa!(
        isa,
        blend_scalar(from, fraction, size, share, out, stride),
        blend_simd(
            from: (&[u8], usize),
            fraction: (usize, usize),
            size: (usize, usize),
            share: i16,
            out: &mut [i16],
            stride: usize,
        )
    );
}

/// The definition of [`blend`]; `from` begins one sample before and above the area.
fn blend_scalar(
    from: (&[u8], usize),
    fraction: (usize, usize),
    size: (usize, usize),
    share: i16,
    out: &mut [i16],
    stride: usize,
) {
    fetch(from, fraction, size, |x, y, sample| {
        let o = &mut out[y * stride + x];
        *o = o.saturating_add(weighed(sample.saturating_sub(*o), share));
    });
}

/// Mean square difference, in 1/256 square grey level, of an area of a picture from what a vector points to in another.
pub(crate) fn misfit(isa: Isa, now: Samples<'_>, then: Samples<'_>, area: Area, step: Step) -> u32 {
    let mut patch = [0; PATCH_STRIDE * PATCH_ROWS];
    let (from, fraction) = patch_at(then, area, step, &mut patch);
    let Area { x, y, width, height } = area;
    let now = (&now.data[y * now.stride + x..], now.stride);
    let isa = if (width, height) == (8, 8) { isa } else { Isa::SCALAR };
    assert!(height == 0 || now.0.len() >= (height - 1) * now.1 + width);
    let mut sum = 0;
    let to = &mut sum;
    // SAFETY: the area's rows are there, and `patch_at` gives what is read.
    by_isa!(
        isa,
        squares(now, from, fraction, (width, height), to),
        squares_simd(
            now: (&[u8], usize),
            from: (&[u8], usize),
            fraction: (usize, usize),
            to: &mut u32,
        )
    );
    sum / (width * height).max(1) as u32
}

/// Sum of squared differences in 1/256 square grey level.
fn squares(
    now: (&[u8], usize),
    from: (&[u8], usize),
    fraction: (usize, usize),
    size: (usize, usize),
    sum: &mut u32,
) {
    fetch(from, fraction, size, |x, y, sample| {
        let difference = i32::from(sample) - 16 * i32::from(now.0[y * now.1 + x]);
        *sum += (difference * difference) as u32;
    });
}

/// Samples that begin one before and above what a vector points to, with the stride of their rows, and the rest of
/// the vector. Where they reach beyond the picture, whose edges repeat, they are put together in `patch`.
fn patch_at<'a>(
    from: Samples<'a>,
    area: Area,
    step: Step,
    patch: &'a mut [u8; PATCH_STRIDE * PATCH_ROWS],
) -> ((&'a [u8], usize), (usize, usize)) {
    assert!(area.width <= MAX_SIDE && area.height <= MAX_SIDE && from.height > 0);
    assert!(from.data.len() >= (from.height - 1) * from.stride + from.width);
    let fraction = ((step.x & (UNIT - 1)) as usize, (step.y & (UNIT - 1)) as usize);
    let left = area.x as isize + (step.x >> 5) as isize - 1;
    let top = area.y as isize + (step.y >> 5) as isize - 1;
    let inside = |first: isize, len: usize, size: usize| {
        first >= 0 && (first as usize).saturating_add(len) <= size
    };
    // Vectors are eight samples wide and two rows high.
    let (columns, rows) = (area.width.next_multiple_of(8) + 3, area.height + 4);
    if inside(left, columns, from.width) && inside(top, rows, from.height) {
        return ((&from.data[top as usize * from.stride + left as usize..], from.stride), fraction);
    }
    let (right, bottom) = (from.width as isize - 1, from.height as isize - 1);
    for (j, row) in patch.chunks_exact_mut(PATCH_STRIDE).take(rows).enumerate() {
        let line = from.row((top + j as isize).clamp(0, bottom) as usize);
        for (i, v) in row[..columns].iter_mut().enumerate() {
            *v = line[(left + i as isize).clamp(0, right) as usize];
        }
    }
    ((&patch[..], PATCH_STRIDE), fraction)
}

/// Gives each sample of an area in 1/16 grey level; `from` begins one sample before and above it.
fn fetch(
    (from, stride): (&[u8], usize),
    (fx, fy): (usize, usize),
    (width, height): (usize, usize),
    mut give: impl FnMut(usize, usize, i16),
) {
    let mut across = [0i16; MAX_SIDE * PATCH_ROWS];
    for (j, row) in across.chunks_exact_mut(MAX_SIDE).take(height + 3).enumerate() {
        let line = &from[j * stride..][..width + 3];
        for (i, v) in row[..width].iter_mut().enumerate() {
            let taps = line[i..i + 4].iter().zip(TAPS[fx]);
            let sum: i32 = taps.map(|(&s, t)| i32::from(s) * i32::from(t)).sum();
            *v = (sum - MIDDLE) as i16;
        }
    }
    for y in 0..height {
        for x in 0..width {
            let at = |k: usize| across[(y + k) * MAX_SIDE + x];
            let sum: i16 = (0..4).map(|k| weighed(at(k), down(TAPS[fy][k]))).sum();
            give(x, y, ((sum + 4) >> 3) + 2048);
        }
    }
}

/// A tap in 1/[`WHOLE`].
const fn down(tap: i16) -> i16 {
    if tap == 128 { WHOLE } else { tap << 8 }
}

/// A sample by a weight in 1/[`WHOLE`], rounded.
fn weighed(sample: i16, weight: i16) -> i16 {
    ((i32::from(sample) * i32::from(weight) + 0x4000) >> 15) as i16
}
