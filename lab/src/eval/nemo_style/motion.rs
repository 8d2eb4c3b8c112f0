//! VP9's own motion compensation on a plane that is S times as large.
//!
//! A vector in 1/8 LR sample is `2 · S` times as many 1/16 HR samples; the block's eight-tap filter
//! runs along rows, then along columns, rounded to 8 bits after each (VP9 specification §8.5.2.3).
//! Samples beyond the edges repeat the edge.

use windlass_vp9::kernels::convolve::SUBPEL_FILTERS;
use windlass_vp9::{MotionVector, Plane};

/// Number of samples before the whole position that a filter reads.
const BEFORE: isize = 3;
/// Number of taps of VP9's filters.
const TAPS: usize = 8;

/// A rectangle of HR samples inside the picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    /// Left edge, in HR samples.
    pub x: usize,
    /// Upper edge, in HR samples.
    pub y: usize,
    /// Width, in HR samples.
    pub width: usize,
    /// Height, in HR samples.
    pub height: usize,
}

/// Writes the prediction of `area` to `out`, row by row without gaps.
pub(super) fn compensate(
    reference: &Plane,
    area: Area,
    vector: MotionVector,
    scale: usize,
    filter: u8,
    out: &mut Vec<u8>,
) {
    let sixteenths = |v: i16| isize::from(v) * 2 * scale as isize;
    let (dx, dy) = (sixteenths(vector.x), sixteenths(vector.y));
    let filters = &SUBPEL_FILTERS[usize::from(filter & 3)];
    let (across, down) = (&filters[(dx & 15) as usize], &filters[(dy & 15) as usize]);
    let (left, top) = (area.x as isize + (dx >> 4), area.y as isize + (dy >> 4));
    let (right, bottom) = (reference.width() as isize - 1, reference.height() as isize - 1);
    // The rows that the columns' filter needs, each with the samples that the rows' filter needs.
    let wide = area.width + TAPS - 1;
    let tall = area.height + TAPS - 1;
    let mut line = vec![0u8; wide];
    let mut rows = vec![0u8; area.width * tall];
    for (i, row) in rows.chunks_exact_mut(area.width).enumerate() {
        let source = reference.row((top - BEFORE + i as isize).clamp(0, bottom) as usize);
        let first = left - BEFORE;
        if first >= 0 && first + wide as isize - 1 <= right {
            line.copy_from_slice(&source[first as usize..first as usize + wide]);
        } else {
            for (x, v) in line.iter_mut().enumerate() {
                *v = source[(first + x as isize).clamp(0, right) as usize];
            }
        }
        filtered(row, across, |tap| &line[tap..tap + area.width]);
    }
    out.resize(area.width * area.height, 0);
    for (y, row) in out.chunks_exact_mut(area.width).enumerate() {
        filtered(row, down, |tap| &rows[(y + tap) * area.width..][..area.width]);
    }
}

/// One row of weighted sums over eight rows of the same length.
fn filtered<'a>(out: &mut [u8], filter: &[i16; TAPS], source: impl Fn(usize) -> &'a [u8]) {
    if filter[BEFORE as usize] == 128 {
        out.copy_from_slice(source(BEFORE as usize));
        return;
    }
    let mut sums = [0i32; 256];
    let sums = &mut sums[..out.len()];
    for (tap, &factor) in filter.iter().enumerate() {
        for (sum, &v) in sums.iter_mut().zip(source(tap)) {
            *sum += i32::from(factor) * i32::from(v);
        }
    }
    for (o, &sum) in out.iter_mut().zip(sums.iter()) {
        *o = ((sum + 64) >> 7).clamp(0, 255) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane() -> Plane {
        let samples = (0..40 * 30).map(|i| (i * 89 % 253) as u8).collect();
        Plane::from_samples(40, 30, samples).unwrap()
    }

    fn moved(x: i16, y: i16, scale: usize, filter: u8) -> Vec<u8> {
        let mut out = Vec::new();
        let area = Area { x: 8, y: 8, width: 16, height: 8 };
        compensate(&plane(), area, MotionVector { x, y }, scale, filter, &mut out);
        out
    }

    #[test]
    fn whole_vectors_copy_and_count_more_samples_at_a_larger_scale() {
        for scale in [2, 3] {
            // A vector of 8/8 is one LR sample: `scale` HR samples.
            let out = moved(8, -8, scale, 0);
            for y in 0..8 {
                let plane = plane();
                let expected = &plane.row(8 + y - scale)[8 + scale..][..16];
                assert_eq!(&out[y * 16..][..16], expected);
            }
        }
    }

    #[test]
    fn half_a_sample_by_the_bilinear_filter_is_the_mean_of_two() {
        // 2/8 of an LR sample at scale 2 is half an HR sample.
        let out = moved(2, 0, 2, 3);
        let plane = plane();
        for (x, &v) in out[..16].iter().enumerate() {
            let pair = &plane.row(8)[8 + x..][..2];
            assert_eq!(u16::from(v), (u16::from(pair[0]) + u16::from(pair[1])).div_ceil(2));
        }
    }

    #[test]
    fn beyond_the_edges_the_edge_repeats() {
        let out = moved(i16::MIN, i16::MIN, 4, 0);
        assert!(out.iter().all(|&v| v == plane().samples()[0]));
        let out = moved(i16::MAX, i16::MAX, 4, 2);
        assert!(out.iter().all(|&v| v == *plane().samples().last().unwrap()));
    }
}
