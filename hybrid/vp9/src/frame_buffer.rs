//! Pictures as the decoder keeps them: rows padded to whole superblocks, memory reused.

use std::sync::Arc;

use crate::picture::{Picture, Plane, PlaneSize};
use crate::samples::Samples;

/// Side of a superblock, in luma samples.
const SUPERBLOCK: usize = 64;
/// Number of bytes behind the last row, so that wide loads near the end stay inside.
const SLACK: usize = 64;

/// One plane: rows of whole superblocks, of which the picture is the upper left part.
#[derive(Debug, Clone, Default)]
pub struct PlaneBuffer {
    width: usize,
    height: usize,
    stride: usize,
    data: Vec<u8>,
}

impl PlaneBuffer {
    fn resize(&mut self, width: usize, height: usize, unit: usize) {
        self.width = width;
        self.height = height;
        self.stride = width.next_multiple_of(unit);
        let bytes = self.stride * height.next_multiple_of(unit) + SLACK;
        self.data.resize(bytes, 0);
    }

    /// Width of the picture in samples.
    #[inline]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height of the picture in samples.
    #[inline]
    pub fn height(&self) -> usize {
        self.height
    }

    /// Distance from one row to the next, in samples.
    #[inline]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// All samples with their padding; row `y` begins at `y * stride`.
    #[inline]
    pub fn samples(&self) -> &[u8] {
        &self.data
    }

    /// The picture's samples of row `y`.
    #[inline]
    pub fn row(&self, y: usize) -> &[u8] {
        &self.data[y * self.stride..][..self.width]
    }

    /// Whether the plane has the same size and samples as another.
    pub fn shows_the_same(&self, other: &Self) -> bool {
        (self.width, self.height) == (other.width, other.height)
            && (0..self.height).all(|y| self.row(y) == other.row(y))
    }
}

/// A decoded picture: I420, 8 bits.
#[derive(Debug, Clone, Default)]
pub struct FrameBuffer {
    planes: [PlaneBuffer; 3],
}

impl FrameBuffer {
    /// A grey picture.
    pub fn grey(width: usize, height: usize) -> Self {
        let mut buffer = Self::default();
        buffer.resize(width, height);
        for plane in &mut buffer.planes {
            plane.data.fill(128);
        }
        buffer
    }

    /// A picture of packed I420: the rows of luma, U and V one after the other, without gaps. `None` where that is
    /// empty, or of another length than such a picture.
    pub fn from_i420(width: usize, height: usize, data: &[u8]) -> Option<Self> {
        let chroma = width.div_ceil(2).checked_mul(height.div_ceil(2))?;
        let length = width.checked_mul(height)?.checked_add(chroma.checked_mul(2)?)?;
        if length == 0 || data.len() != length {
            return None;
        }
        let mut buffer = Self::default();
        buffer.resize(width, height);
        let mut rest = data;
        for plane in &mut buffer.planes {
            let (width, stride) = (plane.width, plane.stride);
            for row in plane.data.chunks_exact_mut(stride).take(plane.height) {
                let (from, after) = rest.split_at(width);
                row[..width].copy_from_slice(from);
                rest = after;
            }
        }
        Some(buffer)
    }

    /// Gives the buffer a size; memory is allocated only where it grows.
    pub(crate) fn resize(&mut self, width: usize, height: usize) {
        let [y, chroma @ ..] = &mut self.planes;
        y.resize(width, height, SUPERBLOCK);
        for plane in chroma {
            plane.resize(width.div_ceil(2), height.div_ceil(2), SUPERBLOCK / 2);
        }
    }

    /// Luma width, in samples.
    pub fn width(&self) -> usize {
        self.planes[0].width
    }

    /// Luma height, in samples.
    pub fn height(&self) -> usize {
        self.planes[0].height
    }

    /// Size of the luma.
    pub fn size(&self) -> PlaneSize {
        PlaneSize { width: self.width(), height: self.height() }
    }

    /// The samples of luma and the two chroma planes.
    pub fn samples(&self) -> [Samples<'_>; 3] {
        self.planes.each_ref().map(Samples::from)
    }

    /// The planes: luma, then the two chroma planes.
    #[inline]
    pub fn planes(&self) -> &[PlaneBuffer; 3] {
        &self.planes
    }

    /// All rows of the picture, to be written.
    pub(crate) fn rows_mut(&mut self) -> PictureRows<'_> {
        let planes = self
            .planes
            .each_mut()
            .map(|plane| PlaneRows { stride: plane.stride, samples: &mut plane.data });
        PictureRows { planes }
    }

    /// Copies the picture without padding; `picture` is allocated again only if its size differs.
    pub fn copy_to(&self, picture: &mut Picture) {
        if picture.size() != self.size() {
            *picture = Picture::grey(self.width(), self.height());
        }
        let copy = |from: &PlaneBuffer, to: &mut Plane| {
            let width = from.width.max(1);
            for (y, row) in to.samples_mut().chunks_exact_mut(width).enumerate() {
                row.copy_from_slice(from.row(y));
            }
        };
        copy(&self.planes[0], &mut picture.y);
        copy(&self.planes[1], &mut picture.u);
        copy(&self.planes[2], &mut picture.v);
    }

    /// The picture without padding.
    pub fn to_picture(&self) -> Picture {
        let mut picture = Picture::default();
        self.copy_to(&mut picture);
        picture
    }
}

/// A plane that is being decoded.
#[derive(Debug)]
pub struct PlaneRows<'a> {
    samples: &'a mut [u8],
    stride: usize,
}

impl PlaneRows<'_> {
    /// Distance from one row to the next, in samples.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The samples from (x, y) on, with the padding of their rows.
    #[inline]
    pub fn after(&self, x: usize, y: usize) -> &[u8] {
        &self.samples[y * self.stride + x..]
    }

    #[inline]
    pub(crate) fn after_mut(&mut self, x: usize, y: usize) -> &mut [u8] {
        &mut self.samples[y * self.stride + x..]
    }

    /// All samples of the plane, to be changed.
    pub(crate) fn samples_mut(&mut self) -> &mut [u8] {
        self.samples
    }
}

/// A picture that is being decoded. The loop filter has passed all rows above the row of superblocks before the
/// current one.
#[derive(Debug)]
pub struct PictureRows<'a> {
    pub(crate) planes: [PlaneRows<'a>; 3],
}

impl PictureRows<'_> {
    /// The planes: luma, then the two chroma planes.
    pub fn planes(&self) -> &[PlaneRows<'_>; 3] {
        &self.planes
    }
}

/// A pool of items that are lent as shared references and reused when nobody holds them.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    items: Vec<Arc<T>>,
    max: usize,
}

impl<T: Default> Pool<T> {
    /// A pool that keeps at most `max` items. An item that is lent beyond that is freed by its last holder.
    pub(crate) fn new(max: usize) -> Self {
        Self { items: Vec::with_capacity(max), max }
    }

    /// Takes an item that nobody else holds. It is not in the pool until [`Pool::keep`].
    pub(crate) fn take(&mut self) -> Arc<T> {
        let free = self.items.iter_mut().position(|item| Arc::get_mut(item).is_some());
        free.map_or_else(Arc::default, |i| self.items.swap_remove(i))
    }

    /// Puts an item into the pool, though it may still be lent to others.
    pub(crate) fn keep(&mut self, item: Arc<T>) {
        if self.items.len() < self.max {
            self.items.push(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_covers_whole_superblocks() {
        let mut b = FrameBuffer::default();
        b.resize(65, 1);
        let [y, u, _] = b.planes();
        assert_eq!((y.stride(), y.samples().len()), (128, 128 * 64 + SLACK));
        assert_eq!((u.width(), u.height(), u.stride()), (33, 1, 64));
    }

    #[test]
    fn a_copy_has_no_padding() {
        let mut b = FrameBuffer::default();
        b.resize(3, 2);
        b.rows_mut().planes[0].after_mut(0, 1)[0] = 9;
        let picture = b.to_picture();
        assert_eq!(picture.y.samples(), [0, 0, 0, 9, 0, 0]);
        assert_eq!((picture.u.width(), picture.u.height()), (2, 1));
    }

    #[test]
    fn a_pool_gives_again_what_nobody_holds() {
        let mut pool = Pool::<Vec<u8>>::new(2);
        let mut first = pool.take();
        Arc::get_mut(&mut first).expect("new").push(1);
        let lent = first.clone();
        pool.keep(first);
        assert!(pool.take().is_empty());
        drop(lent);
        assert_eq!(*pool.take(), [1]);
    }
}
