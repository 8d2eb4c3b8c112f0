//! A luma picture at halving sizes, with its edges repeated all around.

use windlass_vp9::{PlaneSize, Samples};

use super::FlowError;

/// Minimum side of a picture, in samples: two patches.
pub const MIN_SIDE: usize = 16;

/// Maximum side of a picture, in samples.
pub const MAX_SIDE: usize = 1 << 14;

/// Number of samples that repeat an edge, on each side: patches reach beyond edges and are searched beyond them.
pub(super) const PAD: usize = 16;

/// Maximum number of levels. With six, a descent at the coarsest leads as far as vectors do at the finest.
pub(super) const MAX_LEVELS: usize = 6;

/// One level of a pyramid: the picture at one size, with its edges repeated.
#[derive(Debug, Clone, Default)]
pub(super) struct Level {
    width: usize,
    height: usize,
    data: Vec<u8>,
}

impl Level {
    /// Width of the level, in samples, without those that repeat the edges.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Height of the level, in rows, without those that repeat the edges.
    pub(super) fn height(&self) -> usize {
        self.height
    }

    /// Distance from one row to the next, in samples.
    pub(super) fn stride(&self) -> usize {
        self.width + 2 * PAD
    }

    /// All samples from place (x, y) on; `x` and `y` are at least -[`PAD`].
    #[inline]
    pub(super) fn from(&self, x: i32, y: i32) -> &[u8] {
        let (x, y) = ((x + PAD as i32) as usize, (y + PAD as i32) as usize);
        &self.data[y * self.stride() + x..]
    }

    /// The samples of a row, without those that repeat the edges.
    fn row(&self, y: usize) -> &[u8] {
        &self.data[(y + PAD) * self.stride() + PAD..][..self.width]
    }

    fn row_mut(&mut self, y: usize) -> &mut [u8] {
        let (stride, width) = (self.stride(), self.width);
        &mut self.data[(y + PAD) * stride + PAD..][..width]
    }

    fn resize(&mut self, width: usize, height: usize) {
        (self.width, self.height) = (width, height);
        self.data.resize((width + 2 * PAD) * (height + 2 * PAD), 0);
    }

    fn copy(&mut self, picture: Samples<'_>) {
        self.resize(picture.width, picture.height);
        for y in 0..picture.height {
            self.row_mut(y).copy_from_slice(picture.row(y));
        }
        self.repeat_edges();
    }

    /// Makes this level from another at half its size: means of 2 × 2 samples, rounded. An odd last row or column is
    /// left out.
    fn halve(&mut self, from: &Self) {
        self.resize(from.width / 2, from.height / 2);
        for y in 0..self.height {
            let (above, below) = (from.row(2 * y), from.row(2 * y + 1));
            let pairs = above.chunks_exact(2).zip(below.chunks_exact(2));
            for (o, (a, b)) in self.row_mut(y).iter_mut().zip(pairs) {
                let sum = u16::from(a[0]) + u16::from(a[1]) + u16::from(b[0]) + u16::from(b[1]);
                *o = ((sum + 2) >> 2) as u8;
            }
        }
        self.repeat_edges();
    }

    fn repeat_edges(&mut self) {
        let (stride, width, height) = (self.stride(), self.width, self.height);
        for row in self.data.chunks_exact_mut(stride).skip(PAD).take(height) {
            let (first, last) = (row[PAD], row[PAD + width - 1]);
            row[..PAD].fill(first);
            row[PAD + width..].fill(last);
        }
        for y in 0..PAD {
            self.data.copy_within(PAD * stride..(PAD + 1) * stride, y * stride);
            let last = PAD + height - 1;
            self.data.copy_within(last * stride..(last + 1) * stride, (last + 1 + y) * stride);
        }
    }
}

/// A picture's levels, the finest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Pyramid {
    /// The memory of all levels; the first `count` are in use.
    levels: [Level; MAX_LEVELS],
    count: usize,
}

impl Pyramid {
    /// Makes the levels of a picture, and reuses the memory. If it fails, the pyramid has no levels.
    pub(super) fn fill(&mut self, picture: Samples<'_>) -> Result<(), FlowError> {
        let Samples { data, stride, width, height } = picture;
        self.count = 0;
        let sides = MIN_SIDE..=MAX_SIDE;
        let fits = sides.contains(&width) && sides.contains(&height) && stride >= width;
        // The last row ends with its width, not with its stride.
        let least = stride.checked_mul(height.saturating_sub(1)).and_then(|n| n.checked_add(width));
        if !fits || least.is_none_or(|n| data.len() < n) {
            return Err(FlowError::Size(width, height));
        }
        self.levels[0].copy(picture);
        self.count = 1;
        while self.count < MAX_LEVELS {
            let (finer, coarser) = self.levels.split_at_mut(self.count);
            let finer = &finer[self.count - 1];
            if finer.width.min(finer.height) / 2 < MIN_SIDE {
                break;
            }
            coarser[0].halve(finer);
            self.count += 1;
        }
        Ok(())
    }

    /// The levels, the finest first.
    pub(super) fn levels(&self) -> &[Level] {
        &self.levels[..self.count]
    }

    /// Size of the picture; zero where there is none.
    pub(super) fn size(&self) -> PlaneSize {
        let size = |level: &Level| PlaneSize::new(level.width, level.height);
        self.levels().first().map_or(PlaneSize::default(), size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_vp9::Plane;

    #[test]
    fn levels_halve_down_to_two_patches_and_repeat_their_edges() {
        let samples = (0..75 * 37).map(|i| (i * 31 % 256) as u8).collect();
        let picture = Plane::from_samples(75, 37, samples).expect("the count");
        let mut pyramid = Pyramid::default();
        pyramid.fill((&picture).into()).expect("a legal size");
        let sizes: Vec<_> = pyramid.levels().iter().map(|l| (l.width(), l.height())).collect();
        assert_eq!(sizes, [(75, 37), (37, 18)]);
        let [fine, coarse] = pyramid.levels() else { panic!("two levels") };
        let at = |x, y| u16::from(picture.row(y)[x]);
        assert_eq!(
            u16::from(coarse.from(3, 5)[0]),
            (at(6, 10) + at(7, 10) + at(6, 11) + at(7, 11) + 2) / 4
        );
        assert_eq!(u16::from(fine.from(-16, -16)[0]), at(0, 0));
        assert_eq!(u16::from(fine.from(90, 20)[0]), at(74, 20));
        assert_eq!(u16::from(fine.from(40, 52)[0]), at(40, 36));
    }
}
