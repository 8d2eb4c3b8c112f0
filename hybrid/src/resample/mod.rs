//! Resampling by two, in integers, the same on every machine.
//!
//! The geometry is centre-aligned: HR sample `2i` lies at LR coordinate `i - 0.25`, `2i + 1` at
//! `i + 0.25`; edges repeat. These scalar forms define the results; their inner loops run over
//! slices so that compilers turn them into SIMD (x86-64, aarch64, wasm32 `simd128`).
//!
//! Fixed point: a [`Detail`](crate::detail::Detail) sample and every HR intermediate is an `i16`
//! in 1/16 grey level (`Q4`).

mod kernel;

use crate::detail::{Detail, ONE};
use crate::picture::{Picture, Plane};
use kernel::{BICUBIC, LANCZOS3, columns, row_i16, row_u8};

/// The Lanczos-3 upsampled plane in 1/16 grey level, unclamped, twice the size.
///
/// Taps are quantised to 1/128: `[1, -9, 35, 114, -17, 4]` over samples `i-3..=i+2` for `2i`,
/// mirrored over `i-2..=i+3` for `2i + 1`.
pub fn lanczos2x_q4(source: &Plane) -> Detail {
    let (width, height) = (source.width(), source.height());
    let mut rows = Detail::zero(2 * width, height);
    let mut pad = Vec::new();
    for y in 0..height {
        row_u8(source.row(y), &LANCZOS3, rows.row_mut(y), &mut pad);
    }
    // The rows are 128 times (sample - 128): back to 1/16 with the grey level added again.
    let mut out = Detail::zero(2 * width, 2 * height);
    columns(&rows, &LANCZOS3, 10, 128 * i32::from(ONE), &mut out);
    out
}

/// The Lanczos-3 upsampled plane, rounded and clamped to 8 bits.
pub fn lanczos2x(source: &Plane) -> Plane {
    to_plane(&lanczos2x_q4(source))
}

/// Lanczos-3 of a signed plane in 1/16 grey level, as back-projection needs it.
pub fn lanczos2x_signed(source: &Detail) -> Detail {
    let (width, height) = (source.width(), source.height());
    let mut rows = Detail::zero(2 * width, height);
    let mut pad = Vec::new();
    for y in 0..height {
        row_i16(source.row(y), &LANCZOS3, rows.row_mut(y), &mut pad);
    }
    let mut out = Detail::zero(2 * width, 2 * height);
    columns(&rows, &LANCZOS3, 9, 0, &mut out);
    out
}

/// Bicubic (Catmull-Rom) upsampling to 8 bits, cropped to `width` × `height`.
///
/// Used for chroma, whose HR size is odd where the LR luma size is: `width` and `height` are at
/// most twice the source's.
pub fn bicubic2x(source: &Plane, width: usize, height: usize) -> Plane {
    let mut rows = Detail::zero(2 * source.width(), source.height());
    let mut pad = Vec::new();
    for y in 0..source.height() {
        row_u8(source.row(y), &BICUBIC, rows.row_mut(y), &mut pad);
    }
    let mut wide = Detail::zero(2 * source.width(), 2 * source.height());
    columns(&rows, &BICUBIC, 10, 128 * i32::from(ONE), &mut wide);
    let mut out = Plane::filled(width, height, 0);
    if width > 0 {
        for (y, row) in out.samples_mut().chunks_exact_mut(width).enumerate() {
            for (o, &v) in row.iter_mut().zip(wide.row(y)) {
                *o = narrow(v);
            }
        }
    }
    out
}

/// The whole picture at twice its size by Lanczos (luma) and bicubic (chroma): what a viewer
/// gets without any detail.
pub fn upsample(picture: &Picture) -> Picture {
    with_luma(picture, lanczos2x(&picture.y))
}

/// An HR picture from a finished luma plane and the chroma of the low one.
pub(crate) fn with_luma(low: &Picture, y: Plane) -> Picture {
    let (cw, ch) = (y.width().div_ceil(2), y.height().div_ceil(2));
    Picture { u: bicubic2x(&low.u, cw, ch), v: bicubic2x(&low.v, cw, ch), y }
}

/// Means of 2×2 samples, rounded: the publisher's own way down (libyuv's box for 2:1).
/// An odd last row or column is left out.
pub fn box_half(source: &Plane) -> Plane {
    let (width, height) = (source.width() / 2, source.height() / 2);
    let mut out = Plane::filled(width, height, 0);
    if width > 0 {
        for (y, row) in out.samples_mut().chunks_exact_mut(width).enumerate() {
            let (a, b) = (source.row(2 * y), source.row(2 * y + 1));
            for ((o, a), b) in row.iter_mut().zip(a.chunks_exact(2)).zip(b.chunks_exact(2)) {
                let sum: u16 = [a[0], a[1], b[0], b[1]].into_iter().map(u16::from).sum();
                *o = ((sum + 2) / 4) as u8;
            }
        }
    }
    out
}

/// Means of 2×2 samples of a signed plane in 1/16 grey level, rounded.
pub fn box_half_signed(source: &Detail) -> Detail {
    let mut out = Detail::zero(source.width() / 2, source.height() / 2);
    for y in 0..out.height() {
        let (a, b) = (source.row(2 * y), source.row(2 * y + 1));
        let pairs = a.chunks_exact(2).zip(b.chunks_exact(2));
        for (o, (a, b)) in out.row_mut(y).iter_mut().zip(pairs) {
            let sum = i32::from(a[0]) + i32::from(a[1]) + i32::from(b[0]) + i32::from(b[1]);
            *o = ((sum + 2) >> 2) as i16;
        }
    }
    out
}

/// A plane in 1/16 grey level, rounded and clamped to 8 bits.
pub fn to_plane(source: &Detail) -> Plane {
    let samples = source.samples().iter().map(|&v| narrow(v)).collect();
    Plane::from_samples(source.width(), source.height(), samples).unwrap_or_default()
}

fn narrow(q4: i16) -> u8 {
    (q4.saturating_add(ONE / 2) >> 4).clamp(0, 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(width: usize, height: usize, mut seed: u32) -> Plane {
        let samples = (0..width * height)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            })
            .collect();
        Plane::from_samples(width, height, samples).expect("the count is right")
    }

    /// Lanczos-3 in floating point, as the contract words it.
    fn exact(source: &Plane, x: usize, y: usize) -> f64 {
        let weights = |at: usize| {
            let centre = at as f64 / 2.0 - 0.25;
            let first = centre.floor() as isize - 2;
            let raw: Vec<f64> = (first..first + 6)
                .map(|k| {
                    let d = std::f64::consts::PI * (k as f64 - centre);
                    3.0 * d.sin() * (d / 3.0).sin() / (d * d)
                })
                .collect();
            let sum: f64 = raw.iter().sum();
            (first, raw.into_iter().map(move |w| w / sum).collect::<Vec<_>>())
        };
        let ((fx, wx), (fy, wy)) = (weights(x), weights(y));
        let clamp = |k: isize, n: usize| k.clamp(0, n as isize - 1) as usize;
        let mut sum = 0.0;
        for (j, b) in wy.iter().enumerate() {
            let row = source.row(clamp(fy + j as isize, source.height()));
            for (i, a) in wx.iter().enumerate() {
                sum += a * b * f64::from(row[clamp(fx + i as isize, source.width())]);
            }
        }
        sum
    }

    #[test]
    fn lanczos_follows_the_contract_within_its_tap_precision() {
        let source = noise(9, 7, 1);
        let out = lanczos2x_q4(&source);
        for y in 0..14 {
            for x in 0..18 {
                let got = f64::from(out.row(y)[x]) / 16.0;
                assert!((got - exact(&source, x, y)).abs() < 1.6, "at {x},{y}");
            }
        }
    }

    #[test]
    fn flat_areas_stay_flat_in_every_filter() {
        for value in [0, 1, 127, 128, 254, 255] {
            let flat = Plane::filled(5, 3, value);
            assert!(lanczos2x(&flat).samples().iter().all(|&v| v == value));
            assert!(bicubic2x(&flat, 9, 5).samples().iter().all(|&v| v == value));
            assert!(box_half(&flat).samples().iter().all(|&v| v == value));
        }
    }

    #[test]
    fn extreme_pictures_neither_overflow_nor_wrap() {
        let checks = (0..16 * 16).map(|i| if (i % 16 + i / 16) % 2 == 0 { 255 } else { 0 });
        let plane = Plane::from_samples(16, 16, checks.collect()).expect("256 samples");
        let _ = upsample(&Picture { y: plane.clone(), u: plane.clone(), v: plane });
        let mut signed = Detail::zero(8, 8);
        for (i, v) in signed.samples_mut().iter_mut().enumerate() {
            *v = if (i % 8 + i / 8) % 2 == 0 { 4080 } else { -4080 };
        }
        let up = lanczos2x_signed(&signed);
        assert_eq!((up.width(), up.height()), (16, 16));
    }

    #[test]
    fn odd_chroma_is_cropped_to_the_size_of_the_luma() {
        let low = Picture::grey(5, 3);
        let high = upsample(&low);
        assert_eq!((high.width(), high.height()), (10, 6));
        assert_eq!((high.u.width(), high.u.height()), (5, 3));
    }

    #[test]
    fn empty_planes_are_harmless() {
        let empty = Plane::default();
        assert_eq!(lanczos2x(&empty).samples().len(), 0);
        assert_eq!(box_half(&empty).samples().len(), 0);
        assert_eq!(bicubic2x(&empty, 0, 0).samples().len(), 0);
    }
}
