//! A picture in 8-bit I420, tightly packed, and the place where two differ.

use std::fmt;

/// Luma, then both chroma planes, rows without padding. Odd sizes round chroma up.
#[derive(Clone, PartialEq, Eq)]
pub struct I420 {
    width: usize,
    height: usize,
    samples: Vec<u8>,
}

impl I420 {
    /// A black picture: all samples 0.
    pub fn new(width: usize, height: usize) -> I420 {
        let chroma = width.div_ceil(2) * height.div_ceil(2);
        I420 { width, height, samples: vec![0; width * height + 2 * chroma] }
    }

    /// Luma width.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Luma height.
    pub fn height(&self) -> usize {
        self.height
    }

    /// All samples: Y, U, V.
    pub fn samples(&self) -> &[u8] {
        &self.samples
    }

    /// Width and height of plane 0 to 2.
    pub fn plane_size(&self, plane: usize) -> (usize, usize) {
        match plane {
            0 => (self.width, self.height),
            _ => (self.width.div_ceil(2), self.height.div_ceil(2)),
        }
    }

    /// Samples of plane 0 to 2.
    pub fn plane(&self, plane: usize) -> &[u8] {
        let (start, end) = self.bounds(plane);
        &self.samples[start..end]
    }

    /// Samples of plane 0 to 2.
    pub fn plane_mut(&mut self, plane: usize) -> &mut [u8] {
        let (start, end) = self.bounds(plane);
        &mut self.samples[start..end]
    }

    /// Fills a plane from rows of any stride. `rows` yields at least as many rows as the plane has,
    /// each at least as long.
    pub fn fill<'a>(&mut self, plane: usize, rows: impl Iterator<Item = &'a [u8]>) {
        let (width, _) = self.plane_size(plane);
        for (to, from) in self.plane_mut(plane).chunks_exact_mut(width).zip(rows) {
            to.copy_from_slice(&from[..width]);
        }
    }

    /// MD5 of all samples, as `vpxdec --i420 --md5` takes it of a frame.
    pub fn md5(&self) -> String {
        format!("{:x}", md5::compute(&self.samples))
    }

    /// The first sample in plane and raster order that is not the same; `None` when all are.
    pub fn difference(&self, other: &I420) -> Option<Difference> {
        if (self.width, self.height) != (other.width, other.height) {
            return Some(Difference::Size {
                expected: (self.width, self.height),
                found: (other.width, other.height),
            });
        }
        (0..3).find_map(|plane| {
            let (a, b) = (self.plane(plane), other.plane(plane));
            let at = a.iter().zip(b).position(|(a, b)| a != b)?;
            let (width, height) = self.plane_size(plane);
            Some(Difference::Sample {
                plane: ["Y", "U", "V"][plane],
                x: at % width,
                y: at / width,
                size: (width, height),
                expected: a[at],
                found: b[at],
                count: a.iter().zip(b).filter(|(a, b)| a != b).count(),
            })
        })
    }

    fn bounds(&self, plane: usize) -> (usize, usize) {
        let luma = self.width * self.height;
        let chroma = (self.samples.len() - luma) / 2;
        match plane {
            0 => (0, luma),
            n => (luma + (n - 1) * chroma, luma + n * chroma),
        }
    }
}

impl fmt::Debug for I420 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "I420 {}x{} {}", self.width, self.height, self.md5())
    }
}

/// Where a picture departs from the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// Width and height differ.
    Size {
        /// Size of the oracle's picture.
        expected: (usize, usize),
        /// Size of the decoder's picture.
        found: (usize, usize),
    },
    /// The first sample that differs.
    Sample {
        /// `Y`, `U` or `V`.
        plane: &'static str,
        /// Column in the plane.
        x: usize,
        /// Row in the plane.
        y: usize,
        /// Size of the plane.
        size: (usize, usize),
        /// The oracle's value.
        expected: u8,
        /// The decoder's.
        found: u8,
        /// How many samples of the plane differ.
        count: usize,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Size { expected: (w, h), found: (x, y) } => {
                write!(f, "size {x}x{y} instead of {w}x{h}")
            }
            Difference::Sample { plane, x, y, size: (w, h), expected, found, count } => write!(
                f,
                "plane {plane} of {w}x{h} from x {x}, y {y} on: {found} instead of {expected}, \
                 {count} samples in all"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_sizes_round_chroma_up() {
        let picture = I420::new(5, 3);
        assert_eq!(picture.samples().len(), 15 + 2 * 6);
        assert_eq!(picture.plane_size(2), (3, 2));
    }

    #[test]
    fn the_first_differing_sample_is_told_with_its_plane_and_place() {
        let a = I420::new(5, 3);
        let mut b = a.clone();
        assert_eq!(a.difference(&b), None);
        b.plane_mut(2)[4] = 9;
        b.plane_mut(2)[5] = 9;
        let Some(Difference::Sample { plane, x, y, count, .. }) = a.difference(&b) else {
            panic!("no difference")
        };
        assert_eq!((plane, x, y, count), ("V", 1, 1, 2));
    }

    #[test]
    fn another_size_is_a_difference() {
        assert!(matches!(
            I420::new(4, 4).difference(&I420::new(4, 5)),
            Some(Difference::Size { .. })
        ));
    }
}
