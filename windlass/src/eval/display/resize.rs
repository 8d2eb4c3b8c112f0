//! Between the coded and the shown size: down as publishers do, up as browsers do.
//!
//! Sizes between the decoder's scales are needed here only, so a library resamples. Down is the mean of what a sample
//! covers (libyuv's box); up is bicubic (Catmull and Rom), or Lanczos-3 with an unsharp mask as wide as the scale.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use windlass_hybrid::picture::{Picture, Plane};

use super::ShownBy;
use crate::eval::frames::Size;

/// How much of what a blur takes away is added.
const AMOUNT: f32 = 0.3;

/// The picture that a publisher codes.
pub fn down(picture: &Picture, size: Size) -> Picture {
    resampled(picture, size, FilterType::Box)
}

/// The picture as it is shown. The product's own ways are not made here, and leave it as it is.
pub fn shown(picture: &Picture, size: Size, by: ShownBy) -> Picture {
    match by {
        ShownBy::Bicubic => resampled(picture, size, FilterType::CatmullRom),
        ShownBy::Sharpened => {
            let scale = size.width as f32 / picture.width() as f32;
            let high = resampled(picture, size, FilterType::Lanczos3);
            Picture { y: unsharp(&high.y, 0.75 * scale), ..high }
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

/// `y + amount · (y − blur(y))` with a Gaussian blur; edges repeat.
fn unsharp(plane: &Plane, sigma: f32) -> Plane {
    let (width, height) = (plane.width(), plane.height());
    let reach = (2.5 * sigma).ceil() as usize;
    let taps: Vec<f32> = (0..=2 * reach)
        .map(|i| (-(i as f32 - reach as f32).powi(2) / (2.0 * sigma * sigma)).exp())
        .collect();
    let sum: f32 = taps.iter().sum();
    let taps: Vec<f32> = taps.iter().map(|t| t / sum).collect();
    let mut across = vec![0f32; width * height];
    let mut padded = vec![0f32; width + 2 * reach];
    for y in 0..height {
        let row = plane.row(y);
        for (x, out) in padded.iter_mut().enumerate() {
            *out = f32::from(row[x.saturating_sub(reach).min(width - 1)]);
        }
        for (out, near) in across[y * width..][..width].iter_mut().zip(padded.windows(taps.len())) {
            *out = taps.iter().zip(near).map(|(t, v)| t * v).sum();
        }
    }
    let mut sharp = plane.clone();
    let mut blur = vec![0f32; width];
    for (y, row) in sharp.samples_mut().chunks_exact_mut(width).enumerate() {
        blur.fill(0.0);
        for (i, t) in taps.iter().enumerate() {
            let near = (y + i).saturating_sub(reach).min(height - 1);
            for (sum, v) in blur.iter_mut().zip(&across[near * width..][..width]) {
                *sum += t * v;
            }
        }
        for (sample, blur) in row.iter_mut().zip(&blur) {
            let value = f32::from(*sample);
            *sample = (value + AMOUNT * (value - blur)).round().clamp(0.0, 255.0) as u8;
        }
    }
    sharp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharpening_leaves_flat_areas_alone_and_steepens_edges() {
        let flat = Plane::filled(33, 17, 90);
        assert_eq!(unsharp(&flat, 1.5), flat);
        let edge: Vec<u8> = (0..32 * 8).map(|i| if i % 32 < 16 { 50 } else { 150 }).collect();
        let sharp = unsharp(&Plane::from_samples(32, 8, edge).unwrap(), 1.5);
        assert!(sharp.row(1)[15] < 50 && sharp.row(1)[16] > 150, "{:?}", sharp.row(1));
        assert_eq!((sharp.row(1)[0], sharp.row(1)[31]), (50, 150));
    }

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
