//! Motion compensation of HR planes.
//!
//! Vectors are the low layer's, in 1/8 LR sample towards the reference; at twice the size the same
//! number counts 1/4 HR samples. Interpolation is separable with six taps in 1/128; samples beyond
//! the reference's edges repeat the edge.

use crate::detail::Detail;
use crate::vp9::MotionVector;

/// Largest side of a block in HR samples.
pub const MAX_BLOCK: usize = 128;
/// Samples needed before and after a block.
const BEFORE: isize = 2;
const MARGIN: usize = 5;

/// Lanczos-3 taps by quarter sample, over samples -2 to 3.
const TAPS: [[i16; 6]; 4] = [
    [0, 0, 128, 0, 0, 0],
    [4, -17, 114, 35, -9, 1],
    [3, -17, 78, 78, -17, 3],
    [1, -9, 35, 114, -17, 4],
];

/// A rectangle of HR samples, inside the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// Left edge.
    pub x: usize,
    /// Upper edge.
    pub y: usize,
    /// Width, at most 128.
    pub width: usize,
    /// Height, at most 128.
    pub height: usize,
}

/// Buffers that the kernel reuses from block to block.
pub struct MotionScratch {
    patch: Vec<i16>,
    rows: Vec<i16>,
}

impl Default for MotionScratch {
    fn default() -> Self {
        Self {
            patch: vec![0; (MAX_BLOCK + MARGIN) * (MAX_BLOCK + MARGIN)],
            rows: vec![0; MAX_BLOCK * (MAX_BLOCK + MARGIN)],
        }
    }
}

/// Writes the prediction of `area` from `reference` to `out`, row by row without gaps
/// (`area.width * area.height` samples).
pub fn compensate(
    reference: &Detail,
    area: Area,
    vector: MotionVector,
    scratch: &mut MotionScratch,
    out: &mut [i16],
) {
    let Area { width, height, .. } = area;
    let (fx, fy) = ((vector.x & 3) as usize, (vector.y & 3) as usize);
    let left = area.x as isize + isize::from(vector.x >> 2);
    let top = area.y as isize + isize::from(vector.y >> 2);
    let inside = |first: isize, len: usize, size: usize| {
        first >= BEFORE && first - BEFORE + (len + MARGIN) as isize <= size as isize
    };
    let MotionScratch { patch, rows } = scratch;
    // `source` begins BEFORE samples left of and above the block.
    let (source, stride): (&[i16], usize) =
        if inside(left, width, reference.width()) && inside(top, height, reference.height()) {
            let start = (top - BEFORE) as usize * reference.width() + (left - BEFORE) as usize;
            (&reference.samples()[start..], reference.width())
        } else {
            clamp_patch(reference, left - BEFORE, top - BEFORE, width, height, patch);
            (patch, width + MARGIN)
        };
    if fx == 0 && fy == 0 {
        for (y, row) in out.chunks_exact_mut(width).enumerate() {
            row.copy_from_slice(&source[(y + 2) * stride + 2..][..width]);
        }
        return;
    }
    for (y, row) in rows.chunks_exact_mut(width).take(height + MARGIN).enumerate() {
        let line = &source[y * stride..][..width + MARGIN];
        if fx == 0 {
            row.copy_from_slice(&line[2..2 + width]);
        } else {
            let taps: [&[i16]; 6] = std::array::from_fn(|k| &line[k..k + width]);
            filter(&taps, &TAPS[fx], row);
        }
    }
    for (y, row) in out.chunks_exact_mut(width).enumerate() {
        if fy == 0 {
            row.copy_from_slice(&rows[(y + 2) * width..][..width]);
        } else {
            let taps: [&[i16]; 6] = std::array::from_fn(|k| &rows[(y + k) * width..][..width]);
            filter(&taps, &TAPS[fy], row);
        }
    }
}

/// One row of weighted sums over six rows or six shifts of a row.
fn filter(sources: &[&[i16]; 6], taps: &[i16; 6], out: &mut [i16]) {
    let n = out.len();
    let [a, b, c, d, e, f] = sources.map(|s| &s[..n]);
    let w = taps.map(i32::from);
    for (x, o) in out.iter_mut().enumerate() {
        let sum = w[0] * i32::from(a[x])
            + w[1] * i32::from(b[x])
            + w[2] * i32::from(c[x])
            + w[3] * i32::from(d[x])
            + w[4] * i32::from(e[x])
            + w[5] * i32::from(f[x]);
        *o = ((sum + 64) >> 7).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
    }
}

/// Copies a window that reaches beyond the plane, with its edges repeated.
fn clamp_patch(
    reference: &Detail,
    left: isize,
    top: isize,
    width: usize,
    height: usize,
    patch: &mut [i16],
) {
    let (right, bottom) = (reference.width() as isize - 1, reference.height() as isize - 1);
    let stride = width + MARGIN;
    for (y, row) in patch.chunks_exact_mut(stride).take(height + MARGIN).enumerate() {
        let line = reference.row((top + y as isize).clamp(0, bottom) as usize);
        for (x, o) in row.iter_mut().enumerate() {
            *o = line[(left + x as isize).clamp(0, right) as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plane(width: usize, height: usize) -> Detail {
        let samples =
            (0..width * height).map(|i| ((i * 7919 + i / 13) % 4081) as i16 - 2040).collect();
        Detail::from_samples(width, height, samples).expect("the count is right")
    }

    /// The definition: every sample on its own, every coordinate clamped.
    fn defined(reference: &Detail, x: usize, y: usize, vector: MotionVector) -> i16 {
        let at = |x: isize, y: isize| {
            let x = x.clamp(0, reference.width() as isize - 1) as usize;
            let y = y.clamp(0, reference.height() as isize - 1) as usize;
            i32::from(reference.row(y)[x])
        };
        let (fx, fy) = ((vector.x & 3) as usize, (vector.y & 3) as usize);
        let (x, y) =
            (x as isize + isize::from(vector.x >> 2), y as isize + isize::from(vector.y >> 2));
        let sum = |values: [i32; 6], taps: &[i16; 6]| {
            let s: i32 = values.iter().zip(taps).map(|(v, &t)| v * i32::from(t)).sum();
            (s + 64) >> 7
        };
        let row =
            |dy: isize| sum(std::array::from_fn(|k| at(x + k as isize - 2, y + dy)), &TAPS[fx]);
        sum(std::array::from_fn(|k| row(k as isize - 2)), &TAPS[fy]) as i16
    }

    proptest! {
        #[test]
        fn every_block_and_vector_follows_the_definition(
            (w, h) in (1usize..70, 1usize..70),
            x in 0usize..70, y in 0usize..70, bw in 1usize..40, bh in 1usize..40,
            vx in -700i16..700, vy in -700i16..700,
        ) {
            let reference = plane(w, h);
            let (x, y) = (x % w, y % h);
            let area = Area { x, y, width: bw.min(w - x), height: bh.min(h - y) };
            let vector = MotionVector { x: vx, y: vy };
            let mut out = vec![0; area.width * area.height];
            compensate(&reference, area, vector, &mut MotionScratch::default(), &mut out);
            for (i, &got) in out.iter().enumerate() {
                let (px, py) = (x + i % area.width, y + i / area.width);
                prop_assert_eq!(got, defined(&reference, px, py, vector));
            }
        }
    }

    #[test]
    fn extreme_vectors_repeat_the_edge() {
        let reference = plane(40, 30);
        let area = Area { x: 8, y: 8, width: 16, height: 16 };
        let mut out = vec![0; 256];
        let vector = MotionVector { x: i16::MIN, y: i16::MAX };
        compensate(&reference, area, vector, &mut MotionScratch::default(), &mut out);
        assert!(out.iter().all(|&v| v == reference.row(29)[0]));
    }
}
