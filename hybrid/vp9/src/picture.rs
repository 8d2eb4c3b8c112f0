//! 8-bit I420 pictures without padding.

use crate::samples::Samples;

/// Width and height of a plane, in samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PlaneSize {
    /// Number of samples in a row.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
}

impl PlaneSize {
    /// A size of `width` × `height` samples.
    pub const fn new(width: usize, height: usize) -> Self {
        Self { width, height }
    }

    /// The size of the chroma planes of a picture whose luma has this size: half of it, rounded up.
    #[must_use]
    pub const fn chroma(self) -> Self {
        Self { width: self.width.div_ceil(2), height: self.height.div_ceil(2) }
    }

    /// Each side multiplied by `scale`.
    #[must_use]
    pub const fn scaled(self, scale: usize) -> Self {
        Self { width: scale * self.width, height: scale * self.height }
    }
}

/// One 8-bit plane of rows without padding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plane {
    width: usize,
    height: usize,
    data: Vec<u8>,
}

impl Plane {
    /// A plane filled with one value.
    pub fn filled(width: usize, height: usize, value: u8) -> Self {
        Self { width, height, data: vec![value; width * height] }
    }

    /// A plane over row-major samples; `None` when their number is not `width * height`.
    pub fn from_samples(width: usize, height: usize, data: Vec<u8>) -> Option<Self> {
        (data.len() == width.checked_mul(height)?).then_some(Self { width, height, data })
    }

    /// Width in samples.
    #[inline]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in samples.
    #[inline]
    pub fn height(&self) -> usize {
        self.height
    }

    /// Width and height in samples.
    #[inline]
    pub fn size(&self) -> PlaneSize {
        PlaneSize { width: self.width, height: self.height }
    }

    /// Bytes from one row to the next (equal to the width).
    #[inline]
    pub fn stride(&self) -> usize {
        self.width
    }

    /// All samples, row by row.
    #[inline]
    pub fn samples(&self) -> &[u8] {
        &self.data
    }

    /// All samples, row by row, to be changed.
    #[inline]
    pub fn samples_mut(&mut self) -> &mut [u8] {
        &mut self.data
    }

    /// The samples of row `y`.
    #[inline]
    pub fn row(&self, y: usize) -> &[u8] {
        &self.data[y * self.width..][..self.width]
    }
}

/// An I420 picture: full-size luma, chroma planes of half the size rounded up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Picture {
    /// The luma plane.
    pub y: Plane,
    /// The first chroma plane.
    pub u: Plane,
    /// The second chroma plane.
    pub v: Plane,
}

impl Picture {
    /// The samples of luma and the two chroma planes.
    pub fn samples(&self) -> [Samples<'_>; 3] {
        [&self.y, &self.u, &self.v].map(Samples::from)
    }

    /// A grey picture of the given luma size.
    pub fn grey(width: usize, height: usize) -> Self {
        let (cw, ch) = (width.div_ceil(2), height.div_ceil(2));
        Self {
            y: Plane::filled(width, height, 128),
            u: Plane::filled(cw, ch, 128),
            v: Plane::filled(cw, ch, 128),
        }
    }

    /// A picture from the bytes of its three planes, one after the other; `None` when there are
    /// too few or too many.
    pub fn from_i420(width: usize, height: usize, bytes: &[u8]) -> Option<Self> {
        let (cw, ch) = (width.div_ceil(2), height.div_ceil(2));
        let (luma, chroma) = (width.checked_mul(height)?, cw.checked_mul(ch)?);
        if bytes.len() != luma.checked_add(chroma.checked_mul(2)?)? {
            return None;
        }
        let (y, rest) = bytes.split_at(luma);
        let (u, v) = rest.split_at(chroma);
        Some(Self {
            y: Plane::from_samples(width, height, y.to_vec())?,
            u: Plane::from_samples(cw, ch, u.to_vec())?,
            v: Plane::from_samples(cw, ch, v.to_vec())?,
        })
    }

    /// Luma width, in samples.
    pub fn width(&self) -> usize {
        self.y.width
    }

    /// Luma height, in samples.
    pub fn height(&self) -> usize {
        self.y.height
    }

    /// Size of the luma.
    pub fn size(&self) -> PlaneSize {
        self.y.size()
    }

    /// The planes in the order Y, U, V.
    pub fn planes(&self) -> [&Plane; 3] {
        [&self.y, &self.u, &self.v]
    }
}

/// Peak signal-to-noise ratio of two planes of one size, in dB; infinite where they are equal.
pub fn psnr(a: &Plane, b: &Plane) -> f64 {
    let sum: u64 =
        a.samples().iter().zip(b.samples()).map(|(&x, &y)| u64::from(x.abs_diff(y)).pow(2)).sum();
    let mse = sum as f64 / a.samples().len().max(1) as f64;
    10.0 * (255.0 * 255.0 / mse).log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i420_bytes_of_an_odd_size_are_split_into_planes() {
        let bytes: Vec<u8> = (0..15 + 6 + 6).collect();
        let p = Picture::from_i420(5, 3, &bytes).expect("27 bytes are 5x3 in I420");
        assert_eq!((p.u.width(), p.u.height()), (3, 2));
        assert_eq!(p.v.samples()[0], 21);
        assert!(Picture::from_i420(5, 3, &bytes[1..]).is_none());
    }

    #[test]
    fn psnr_of_equal_planes_is_infinite() {
        let p = Plane::filled(4, 4, 7);
        assert!(psnr(&p, &p).is_infinite());
    }
}
