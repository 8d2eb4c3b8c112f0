//! Resampling by 2, 3 or 4, in integers, the same on every machine.
//!
//! The geometry is centre-aligned: with scale `S`, HR sample `S·i + k` lies at LR coordinate
//! `i + (k + 0.5) / S − 0.5`; edges repeat. Taps are quantised to 1/128 and sum to 128.
//!
//! Everything is made in strips, so that what follows finds them in the cache: a strip is the HR
//! rows of a range of LR rows. Working memory is the caller's ([`Scratch`]): nothing allocates
//! once it has grown to the size of the picture.
//!
//! Fixed point: a [`Detail`] sample and every HR intermediate is an `i16` in 1/16 grey level (`Q4`).
//!
//! ```
//! use windlass_vp9::Plane;
//! use windlass_hybrid::resample::{Scratch, lanczos, narrow};
//! use windlass_vp9::simd::Isa;
//!
//! let (isa, low) = (Isa::detect(), Plane::filled(40, 30, 77));
//! let (mut scratch, mut strip) = (Scratch::default(), vec![0; 3 * 40 * 3 * 10]);
//! lanczos(isa, (&low).into(), 3, 10..20, &mut strip, &mut scratch);
//! let mut high = vec![0; strip.len()];
//! narrow(isa, &strip, &mut high);
//! assert!(high.iter().all(|&v| v == 77));
//! ```

mod area;
mod kernel;
mod shrink;

#[cfg(test)]
mod tests;

use std::ops::Range;

#[cfg(test)]
use windlass_vp9::Picture;
use windlass_vp9::simd::Isa;
use windlass_vp9::{Plane, Samples};

use crate::detail::Detail;
use kernel::{BICUBIC, LANCZOS3, Strip, upsample_q4, upsample_u8};

pub use area::area;
pub use kernel::{Scratch, narrow};
pub(crate) use shrink::{Shrink, shrink_detail};

/// Lanczos-3 of LR `rows` in 1/16 grey level, unclamped: `out` is their
/// `scale * rows.len()` HR rows of `scale * low.width` samples.
///
/// # Panics
///
/// Panics if the scale is not 2, 3 or 4, the rows lie outside the plane, or `out` has another size.
pub fn lanczos(
    isa: Isa,
    low: Samples<'_>,
    scale: usize,
    rows: Range<usize>,
    out: &mut [i16],
    scratch: &mut Scratch,
) {
    let width = scale * low.width;
    assert_eq!(out.len(), width * scale * rows.len(), "the strip has another size");
    upsample_q4(isa, Strip { low, scale, rows, width, out }, &LANCZOS3, scratch);
}

/// Bicubic (Catmull-Rom) upsampling of LR `rows` to 8 bits.
///
/// For chroma, whose HR size need not be a multiple of its LR size: `out` has rows of `width`
/// samples, at most `scale * low.width`. It has at most `scale * rows.len()` rows; the rest is
/// cropped.
///
/// # Panics
///
/// Panics if the scale is not 2, 3 or 4, the rows lie outside the plane, or `out` is larger than that
/// or not whole rows.
pub fn bicubic(
    isa: Isa,
    low: Samples<'_>,
    scale: usize,
    rows: Range<usize>,
    width: usize,
    out: &mut [u8],
    scratch: &mut Scratch,
) {
    upsample_u8(isa, Strip { low, scale, rows, width, out }, &BICUBIC, scratch);
}

/// Adds `more` to each sample of a strip, with saturation. Compilers make of it the SIMD code that a separate form
/// would be.
///
/// # Panics
///
/// Panics if the lengths differ.
pub fn add_saturating(strip: &mut [i16], more: &[i16]) {
    assert_eq!(strip.len(), more.len(), "as many samples as there are");
    for (s, &m) in strip.iter_mut().zip(more) {
        *s = s.saturating_add(m);
    }
}

/// A plane made smaller: means of `scale` × `scale` samples, rounded. Publishers scale their layers this way
/// (libyuv's box for 2:1 and 4:1). Rows and columns that do not fill a box are left out.
pub fn box_down(source: &Plane, scale: usize) -> Plane {
    let (width, height) = (source.width() / scale, source.height() / scale);
    let mut out = Plane::filled(width, height, 0);
    if width == 0 {
        return out;
    }
    let area = (scale * scale) as u32;
    let mut sums = vec![0; width];
    for (y, row) in out.samples_mut().chunks_exact_mut(width).enumerate() {
        sums.fill(area / 2);
        for line in scale * y..scale * (y + 1) {
            for (sum, part) in sums.iter_mut().zip(source.row(line).chunks_exact(scale)) {
                *sum += part.iter().map(|&v| u32::from(v)).sum::<u32>();
            }
        }
        for (o, sum) in row.iter_mut().zip(&sums) {
            *o = (sum / area) as u8;
        }
    }
    out
}

/// A whole plane, enlarged two times by [`lanczos`], in 1/16 grey level.
pub fn lanczos2x_q4(source: &Plane) -> Detail {
    let mut out = Detail::zero(2 * source.width(), 2 * source.height());
    let (low, rows) = (source.into(), 0..source.height());
    lanczos(Isa::detect(), low, 2, rows, out.samples_mut(), &mut Scratch::default());
    out
}

/// A whole plane, enlarged two times by Lanczos-3, rounded and clamped to 8 bits.
pub fn lanczos2x(source: &Plane) -> Plane {
    to_plane(&lanczos2x_q4(source))
}

/// A whole plane, enlarged two times by [`bicubic`], cropped to `width` × `height`.
#[cfg(test)]
fn bicubic2x(source: &Plane, width: usize, height: usize) -> Plane {
    let mut out = Plane::filled(width, height, 0);
    let (low, rows) = (source.into(), 0..source.height());
    bicubic(Isa::detect(), low, 2, rows, width, out.samples_mut(), &mut Scratch::default());
    out
}

/// A whole picture at twice its size, by Lanczos (luma) and bicubic (chroma): as a viewer gets it without any detail.
#[cfg(test)]
pub(crate) fn upsample(picture: &Picture) -> Picture {
    let y = lanczos2x(&picture.y);
    let (cw, ch) = (y.width().div_ceil(2), y.height().div_ceil(2));
    Picture { u: bicubic2x(&picture.u, cw, ch), v: bicubic2x(&picture.v, cw, ch), y }
}

/// A plane at half its size, by [`box_down`].
pub fn box_half(source: &Plane) -> Plane {
    box_down(source, 2)
}

/// A plane of grey levels from one in 1/16 grey level, rounded and clamped to 8 bits.
pub fn to_plane(source: &Detail) -> Plane {
    let mut out = Plane::filled(source.width(), source.height(), 0);
    narrow(Isa::detect(), source.samples(), out.samples_mut());
    out
}
