//! Resizes between the encoded and the shown size: down as publishers do, up as browsers do.
//!
//! Sizes between the decoder's scales are needed here only, so a library resamples. Down is the mean of what a sample
//! covers (libyuv's box); up is bicubic (Catmull and Rom), or Lanczos-3 with an unsharp mask as wide as the scale.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use windlass_vp9::{Picture, Plane};

use super::row::ShownBy;
use crate::eval::frames::Size;
use crate::eval::sharpen::{gaussian, unsharp};

/// Strength of the unsharp mask: the share of what a blur takes away that is added.
const AMOUNT: f32 = 0.3;

/// The picture that a publisher encodes, scaled down to a size.
pub(super) fn down(picture: &Picture, size: Size) -> Picture {
    resampled(picture, size, FilterType::Box)
}

/// The picture as it is shown. The product's own ways are not made here, and return it unchanged.
pub(super) fn shown(picture: &Picture, size: Size, by: ShownBy) -> Picture {
    match by {
        ShownBy::Bicubic => resampled(picture, size, FilterType::CatmullRom),
        ShownBy::Sharpened => {
            let scale = size.width as f32 / picture.width() as f32;
            let high = resampled(picture, size, FilterType::Lanczos3);
            Picture { y: unsharp(&high.y, &gaussian(0.75 * scale), AMOUNT), ..high }
        }
        _ => picture.clone(),
    }
}

fn resampled(picture: &Picture, size: Size, filter: FilterType) -> Picture {
    if Size::of(picture) == size {
        return picture.clone();
    }
    let (width, height) = (size.width.div_ceil(2), size.height.div_ceil(2));
    Picture {
        y: plane(&picture.y, size.width, size.height, filter),
        u: plane(&picture.u, width, height, filter),
        v: plane(&picture.v, width, height, filter),
    }
}

fn plane(from: &Plane, width: usize, height: usize, filter: FilterType) -> Plane {
    let source =
        ImageRef::new(from.width() as u32, from.height() as u32, from.samples(), PixelType::U8)
            .expect("a plane has as many samples as its sides say");
    let mut out = Image::new(width as u32, height as u32, PixelType::U8);
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter));
    Resizer::new().resize(&source, &mut out, &options).expect("both planes have one byte a sample");
    Plane::from_samples(width, height, out.into_vec())
        .expect("the resized plane has as many samples as its sides say")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_come_out_at_the_size_shown() {
        let low = Picture::grey(80, 48);
        let size = Size { width: 106, height: 64 };
        for by in [ShownBy::Bicubic, ShownBy::Sharpened] {
            assert_eq!(shown(&low, size, by), Picture::grey(106, 64));
        }
        assert_eq!(
            Size::of(&down(&low, Size { width: 60, height: 36 })),
            Size { width: 60, height: 36 }
        );
    }
}
