//! The scale (HR size over LR size), and the ways between the two sizes that know nothing but pictures.
//!
//! Pictures are made smaller as by publishers: by libyuv's box, the rounded mean of S×S samples. They are made larger
//! by the product's own resamplers, so that `lanczos` here is the base on which the product puts detail.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, ensure};
use windlass_hybrid::detail::Detail;
use windlass_hybrid::resample::{Scratch, bicubic, box_down, lanczos, to_plane};
use windlass_sr::Architecture;
use windlass_vp9::simd::Isa;
use windlass_vp9::{Picture, Plane};

use super::frames::Size;

/// HR size over LR size, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale(usize);

impl Scale {
    /// The scale of 2: twice as wide and as high.
    pub(crate) const TWO: Scale = Scale(2);

    /// The scale of a network.
    pub(crate) fn of(network: Architecture) -> Scale {
        Scale(network.scale)
    }

    /// The scale as a number.
    pub(crate) fn factor(self) -> usize {
        self.0
    }

    /// The number that HR sides must be multiples of: chroma is halved before it is scaled.
    pub(crate) fn multiple(self) -> usize {
        2 * self.0
    }

    /// The HR size for an LR size.
    pub(crate) fn high(self, low: Size) -> Size {
        Size { width: low.width * self.0, height: low.height * self.0 }
    }

    /// The LR size for an HR size.
    pub(crate) fn low(self, high: Size) -> Size {
        Size { width: high.width / self.0, height: high.height / self.0 }
    }

    /// The LR picture of an HR one, as Chromium makes its simulcast layers.
    pub(crate) fn shrink(self, picture: &Picture) -> Picture {
        let [y, u, v] = picture.planes().map(|plane| box_down(plane, self.0));
        Picture { y, u, v }
    }

    /// The Lanczos base of a luma plane, in 1/16 grey level.
    pub(crate) fn base(self, low: &Plane) -> Detail {
        let mut out = Detail::zero(self.0 * low.width(), self.0 * low.height());
        let rows = 0..low.height();
        let mut scratch = Scratch::default();
        lanczos(Isa::detect(), low.into(), self.0, rows, out.samples_mut(), &mut scratch);
        out
    }

    /// The HR picture by Lanczos, its chroma bicubic.
    pub(crate) fn lanczos(self, low: &Picture) -> Picture {
        self.with_luma(to_plane(&self.base(&low.y)), low)
    }

    /// The HR picture by bicubic interpolation.
    pub(crate) fn bicubic(self, low: &Picture) -> Picture {
        let size = self.high(Size::of(low));
        self.with_luma(self.enlarged(&low.y, size.width, size.height), low)
    }

    /// An HR picture from finished luma and the chroma of the low picture, enlarged by bicubic interpolation.
    pub(crate) fn with_luma(self, y: Plane, low: &Picture) -> Picture {
        let (width, height) = (y.width().div_ceil(2), y.height().div_ceil(2));
        let [u, v] = [&low.u, &low.v].map(|plane| self.enlarged(plane, width, height));
        Picture { y, u, v }
    }

    /// A plane enlarged by bicubic interpolation, cropped to a size.
    fn enlarged(self, plane: &Plane, width: usize, height: usize) -> Plane {
        let mut out = Plane::filled(width, height, 0);
        let rows = 0..plane.height();
        let mut scratch = Scratch::default();
        bicubic(Isa::detect(), plane.into(), self.0, rows, width, out.samples_mut(), &mut scratch);
        out
    }
}

impl FromStr for Scale {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Scale> {
        let factor = text.parse().unwrap_or(0);
        ensure!((2..=4).contains(&factor), "--scale is 2, 3 or 4, not {text:?}");
        Ok(Scale(factor))
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use windlass_hybrid::resample::lanczos2x;

    use super::*;

    fn textured(width: usize, height: usize) -> Plane {
        let samples = (0..width * height).map(|i| (i * 73 % 251) as u8).collect();
        Plane::from_samples(width, height, samples).unwrap()
    }

    #[test]
    fn what_is_scaled_down_and_up_again_has_its_size_at_every_scale() {
        for text in ["2", "3", "4"] {
            let scale: Scale = text.parse().unwrap();
            let side = 4 * scale.multiple();
            let chroma = || textured(side / 2, side / 2);
            let high = Picture { y: textured(side, side), u: chroma(), v: chroma() };
            let low = scale.shrink(&high);
            assert_eq!(scale.high(Size::of(&low)), Size::of(&high));
            for up in [scale.lanczos(&low), scale.bicubic(&low)] {
                assert_eq!((Size::of(&up), up.u.width()), (Size::of(&high), side / 2));
            }
        }
    }

    #[test]
    fn lanczos_is_the_codecs_own_and_bicubic_has_the_same_size() {
        let low = Picture { y: textured(12, 8), u: textured(6, 4), v: textured(6, 4) };
        let [u, v] = [&low.u, &low.v].map(|chroma| {
            let (mut out, mut scratch) = (Plane::filled(12, 8, 0), Scratch::default());
            bicubic(Isa::detect(), chroma.into(), 2, 0..4, 12, out.samples_mut(), &mut scratch);
            out
        });
        assert_eq!(Scale::TWO.lanczos(&low), Picture { y: lanczos2x(&low.y), u, v });
        assert_eq!(Size::of(&Scale::TWO.bicubic(&low)), Size { width: 24, height: 16 });
    }

    #[test]
    fn scales_beyond_those_of_the_design_are_refused() {
        assert_eq!("2".parse::<Scale>().unwrap(), Scale::TWO);
        assert!("1".parse::<Scale>().is_err() && "x".parse::<Scale>().is_err());
        assert_eq!("4".parse::<Scale>().unwrap().factor(), 4);
    }
}
