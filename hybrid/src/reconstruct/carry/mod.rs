//! Fetching the detail of a cell from its anchor, and how far to trust it.
//!
//! Source: the weight is Wiener's: the energy of the wanted signal over that of signal and noise. The
//! signal is the anchor's detail around the cell, the noise how badly the anchor's *low* picture, moved by the
//! same vector, fits the low picture of now: both ends have both, bit for bit.

mod simd;

use super::field::CELL;
use crate::detail::Detail;
use crate::resample::Samples;
use crate::simd::{Isa, by_isa};
use crate::vp9::MotionVector;
use simd::{add_fetched as add_fetched_simd, squares as squares_simd};

/// How much the misfit of low pictures counts against the energy of detail: misfit of the low
/// frequencies stands for more of it in the high ones.
const MISFIT: u64 = 3;
/// A weight of one, as nearly as 16 bits hold it: detail stays what it is.
pub(crate) const WHOLE: i16 = i16::MAX;
/// Catmull-Rom taps by eighths of a sample, in 1/128, over samples −1 to 2.
const TAPS: [[i16; 4]; 8] = [
    [0, 128, 0, 0],
    [-6, 125, 10, -1],
    [-9, 111, 29, -3],
    [-9, 93, 52, -8],
    [-8, 72, 72, -8],
    [-8, 52, 93, -9],
    [-3, 29, 111, -9],
    [-1, 10, 125, -6],
];
/// Largest side of a cell in HR samples.
const MAX_SIDE: usize = CELL * 4;
/// From row to row of a patch: a cell, one sample before, two behind, and what vectors touch.
const PATCH_STRIDE: usize = MAX_SIDE + 3 + 16;
/// Rows of a patch.
const PATCH_ROWS: usize = MAX_SIDE + 3;

/// A rectangle of samples, inside its picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
}

/// Mean square difference, in 1/64 square grey level, of an area of the low picture, at most a cell, from what
/// `vector` (1/8 sample) points to in another (bilinear, edges repeated).
pub(crate) fn misfit(
    isa: Isa,
    low: Samples<'_>,
    from: Samples<'_>,
    area: Area,
    vector: MotionVector,
) -> u32 {
    let Area { x, y, width, height } = area;
    let fraction = (i16::from(vector.x as u8 & 7), i16::from(vector.y as u8 & 7));
    let left = x as isize + isize::from(vector.x >> 3);
    let top = y as isize + isize::from(vector.y >> 3);
    let mut patch = [0u8; (CELL + 1) * 16];
    let inside = |first: isize, len: usize, size: usize| {
        first >= 0 && (first as usize).saturating_add(len) <= size
    };
    let direct = inside(left, CELL + 1, from.width) && inside(top, CELL + 1, from.height);
    let then = if direct {
        (&from.data[top as usize * from.stride + left as usize..], from.stride)
    } else {
        let (right, bottom) = (from.width as isize - 1, from.height as isize - 1);
        for (j, row) in patch.chunks_exact_mut(16).enumerate() {
            let line = from.row((top + j as isize).clamp(0, bottom) as usize);
            for (i, v) in row[..=CELL].iter_mut().enumerate() {
                *v = line[(left + i as isize).clamp(0, right) as usize];
            }
        }
        (&patch[..], 16)
    };
    let now = (&low.data[y * low.stride + x..], low.stride);
    let whole = (width, height) == (CELL, CELL);
    let isa = if whole { isa } else { Isa::SCALAR };
    assert!(then.0.len() > CELL * then.1 + CELL && now.0.len() >= (height - 1) * now.1 + width);
    // SAFETY: checked above; SIMD forms see a whole cell, one sample more to the right, one row more below.
    let mut sum = 0;
    let to = &mut sum;
    by_isa!(
        isa,
        squares(now, then, fraction, (width, height), to),
        squares_simd(
            now: (&[u8], usize),
            then: (&[u8], usize),
            fraction: (i16, i16),
            to: &mut u32,
        )
    );
    sum / (width * height).max(1) as u32
}

/// Sum of squared differences in 1/64 square grey level.
fn squares(
    now: (&[u8], usize),
    then: (&[u8], usize),
    (fx, fy): (i16, i16),
    (width, height): (usize, usize),
    sum: &mut u32,
) {
    for j in 0..height {
        let (above, below) = (&then.0[j * then.1..], &then.0[(j + 1) * then.1..]);
        for (i, &now) in now.0[j * now.1..][..width].iter().enumerate() {
            let across = |row: &[u8]| i16::from(row[i]) * (8 - fx) + i16::from(row[i + 1]) * fx;
            let was = across(above) * (8 - fy) + across(below) * fy;
            let difference = i32::from((was - 64 * i16::from(now)) >> 3);
            *sum += (difference * difference) as u32;
        }
    }
}

/// What is to be kept of detail with this energy (1/256 square grey level) where low pictures differ so
/// (1/64 square grey level), in 1/[`WHOLE`].
pub(crate) fn weight(energy: u32, misfit: u32) -> i16 {
    let signal = u64::from(energy);
    let noise = MISFIT * 4 * u64::from(misfit);
    (signal * WHOLE as u64 / (signal + noise).max(1)) as i16
}

/// Adds an area's detail, fetched by a vector in 1/8 *low* sample and weighed in 1/[`WHOLE`], to rows of
/// `stride` samples that begin with the area's first. The area is at most a cell by four.
#[allow(clippy::too_many_arguments)]
pub(crate) fn fetch_add(
    isa: Isa,
    detail: &Detail,
    area: Area,
    vector: MotionVector,
    scale: usize,
    weight: i16,
    out: &mut [i16],
    stride: usize,
) {
    let Area { x, y, width, height } = area;
    assert!(width <= MAX_SIDE && height <= MAX_SIDE && width <= stride);
    assert!(height > 0);
    let eighths = |v: i16| i32::from(v) * scale as i32;
    let (ex, ey) = (eighths(vector.x), eighths(vector.y));
    let fraction = ((ex & 7) as usize, (ey & 7) as usize);
    let left = x as isize + (ex >> 3) as isize - 1;
    let top = y as isize + (ey >> 3) as isize - 1;
    // One sample before and two behind; vectors may read sixteen more.
    let inside = |first: isize, len: usize, size: usize| {
        first >= 0 && (first as usize).saturating_add(len) <= size
    };
    let direct =
        inside(left, width + 3 + 16, detail.width()) && inside(top, height + 3, detail.height());
    let size = (width, height);
    if direct {
        let first = top as usize * detail.width() + left as usize;
        let from = (&detail.samples()[first..], detail.width());
        add_from(isa, from, fraction, weight, out, stride, size);
        return;
    }
    let (right, bottom) = (detail.width() as isize - 1, detail.height() as isize - 1);
    let mut patch = [0i16; PATCH_STRIDE * PATCH_ROWS];
    for (j, row) in patch.chunks_exact_mut(PATCH_STRIDE).take(height + 3).enumerate() {
        let line = detail.row((top + j as isize).clamp(0, bottom) as usize);
        for (i, v) in row[..width + 3].iter_mut().enumerate() {
            *v = line[(left + i as isize).clamp(0, right) as usize];
        }
    }
    add_from(isa, (&patch, PATCH_STRIDE), fraction, weight, out, stride, size);
}

/// `from` begins one sample before and above the area and has sixteen more than it needs.
fn add_from(
    isa: Isa,
    from: (&[i16], usize),
    fraction: (usize, usize),
    weight: i16,
    out: &mut [i16],
    stride: usize,
    size: (usize, usize),
) {
    assert!(from.0.len() >= (size.1 + 2) * from.1 + size.0 + 3 + 16);
    assert!(out.len() >= (size.1 - 1) * stride + size.0 && size.1 <= MAX_SIDE);
    // SAFETY: checked above.
    by_isa!(
        isa,
        add_fetched(from, fraction, weight, out, stride, size),
        add_fetched_simd(
            from: (&[i16], usize),
            fraction: (usize, usize),
            weight: i16,
            out: &mut [i16],
            stride: usize,
            size: (usize, usize),
        )
    );
}

/// `from` begins one sample before and above the area.
fn add_fetched(
    from: (&[i16], usize),
    (fx, fy): (usize, usize),
    weight: i16,
    out: &mut [i16],
    stride: usize,
    (width, height): (usize, usize),
) {
    let mut across = [0i16; MAX_SIDE * PATCH_ROWS];
    for (j, row) in across.chunks_exact_mut(MAX_SIDE).take(height + 3).enumerate() {
        let line = &from.0[j * from.1..][..width + 3];
        for (i, v) in row[..width].iter_mut().enumerate() {
            *v = filter([line[i], line[i + 1], line[i + 2], line[i + 3]], TAPS[fx]);
        }
    }
    for (j, row) in out.chunks_mut(stride).take(height).enumerate() {
        for (i, o) in row[..width].iter_mut().enumerate() {
            let at = |k: usize| across[(j + k) * MAX_SIDE + i];
            let v = filter([at(0), at(1), at(2), at(3)], TAPS[fy]);
            *o = o.saturating_add(weighed(v, weight));
        }
    }
}

/// Four samples weighed by taps.
fn filter(samples: [i16; 4], taps: [i16; 4]) -> i16 {
    let sum: i32 = samples.iter().zip(taps).map(|(&s, t)| i32::from(s) * i32::from(t)).sum();
    ((sum + 64) >> 7).clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

/// Samples by a weight in 1/[`WHOLE`].
pub(crate) fn weigh(out: &mut [i16], samples: &[i16], weight: i16) {
    for (o, &s) in out.iter_mut().zip(samples) {
        *o = weighed(s, weight);
    }
}

/// A sample by a weight, rounded.
fn weighed(sample: i16, weight: i16) -> i16 {
    ((i32::from(sample) * i32::from(weight) + 0x4000) >> 15) as i16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::picture::Plane;

    fn detail(width: usize, height: usize) -> Detail {
        let samples = (0..width * height).map(|i| ((i * 7919 + i / 13) % 16_321) as i16 - 8160);
        Detail::from_samples(width, height, samples.collect()).expect("the count is right")
    }

    fn plane(width: usize, height: usize, seed: usize) -> Plane {
        let samples = (0..width * height).map(|i| ((i * 7919 + i / 13 * seed) % 256) as u8);
        Plane::from_samples(width, height, samples.collect()).expect("the count is right")
    }

    proptest! {
        #[test]
        fn every_set_of_instructions_fetches_the_same(
            (w, h) in (1usize..60, 1usize..40), scale in 2usize..=4, column in 0usize..8, row in 0usize..5,
            vx in -300i16..300, vy in -300i16..300, weight in 0..=WHOLE, fill: i16,
        ) {
            let (column, row) = (column % w.div_ceil(CELL), row % h.div_ceil(CELL));
            let (x, y) = (column * CELL, row * CELL);
            let low = Area { x, y, width: CELL.min(w - x), height: CELL.min(h - y) };
            let area = Area {
                x: x * scale, y: y * scale, width: low.width * scale, height: low.height * scale,
            };
            let (from, vector) = (detail(w * scale, h * scale), MotionVector { x: vx, y: vy });
            let (a, b) = (plane(w, h, 3), plane(w, h, 5));
            let stride = area.width + 5;
            let run = |isa| {
                let mut out = vec![fill; stride * area.height];
                fetch_add(isa, &from, area, vector, scale, weight, &mut out, stride);
                (out, misfit(isa, (&a).into(), (&b).into(), low, vector))
            };
            let defined = run(Isa::SCALAR);
            for &isa in Isa::available() {
                prop_assert_eq!(run(isa), defined.clone());
            }
            prop_assert!(defined.0.iter().enumerate().all(|(i, &v)| i % stride < area.width || v == fill));
        }
    }

    #[test]
    fn a_whole_weight_and_no_motion_add_the_detail_itself() {
        let from = detail(64, 32);
        let area = Area { x: 16, y: 16, width: 16, height: 16 };
        let mut out = vec![0; 256];
        fetch_add(Isa::detect(), &from, area, MotionVector::default(), 2, WHOLE, &mut out, 16);
        assert!(out.chunks(16).enumerate().all(|(j, row)| *row == from.row(16 + j)[16..32]));
    }

    #[test]
    fn detail_is_kept_where_pictures_agree_and_dropped_where_there_is_none() {
        assert_eq!(weight(100, 0), WHOLE);
        assert_eq!(weight(0, 0), 0);
        assert!((i32::from(weight(12, 1)) - i32::from(WHOLE) / 2).abs() < 2);
        assert_eq!(weight(u32::MAX, u32::MAX / 64), weight(u32::MAX / 2, u32::MAX / 128));
    }

    #[test]
    fn the_misfit_of_a_moved_picture_is_nothing() {
        let at = |x: usize, y: usize| ((x * 5 + y * 3) % 251) as u8;
        let make = |dx: usize| {
            let samples = (0..48 * 32).map(|i| at(i % 48 + dx, i / 48)).collect();
            Plane::from_samples(48, 32, samples).expect("the count is right")
        };
        let area = Area { x: 8, y: 8, width: 8, height: 8 };
        let vector = MotionVector { x: 16, y: 0 };
        for &isa in Isa::available() {
            assert_eq!(misfit(isa, (&make(2)).into(), (&make(0)).into(), area, vector), 0);
        }
    }
}
