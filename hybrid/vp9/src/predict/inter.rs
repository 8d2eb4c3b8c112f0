//! Prediction from reference frames (specification §8.5.2).

use std::sync::Arc;

use crate::frame_buffer::{FrameBuffer, PlaneBuffer, PlaneRows};
use crate::info::MotionVector;
use crate::kernels::convolve::{self, Reference, Steps};
use crate::simd::Isa;

/// Number of fractional bits of a scale factor (`REF_SCALE_SHIFT`).
const SCALE_BITS: u32 = 14;
/// Number of samples that filters reach before a block.
const BEFORE: isize = 3;
/// Number of samples that filters reach behind a block.
const AFTER: isize = 4;
/// Side of the room for a block with its surroundings, in samples: 64 at twice the size, and at least 8
/// more.
const ROOM: usize = 144;

/// A reference, with its size relative to the current frame's.
#[derive(Debug, Clone)]
pub(crate) struct ReferenceFrame {
    picture: Arc<FrameBuffer>,
    /// `None` where sizes are equal.
    scale: Option<Scale>,
}

/// Size of a reference, relative to the frame's, in 1/2^14.
#[derive(Debug, Clone, Copy)]
struct Scale {
    x: i64,
    y: i64,
}

/// Motion vector in 1/16 sample of a plane.
#[derive(Debug, Clone, Copy)]
struct PlaneVector {
    x: i32,
    y: i32,
}

impl ReferenceFrame {
    /// A reference for frames of `width` × `height` luma samples. `None` if it is more than twice as large or less
    /// than a sixteenth as large (§7.2.5).
    pub(crate) fn new(picture: Arc<FrameBuffer>, width: usize, height: usize) -> Option<Self> {
        let fits = |own: usize, of: usize| 2 * own >= of && own <= 16 * of;
        if !fits(width, picture.width()) || !fits(height, picture.height()) {
            return None;
        }
        let factor = |of: usize, own: usize| ((of << SCALE_BITS) / own) as i64;
        let scale = ((picture.width(), picture.height()) != (width, height)).then(|| Scale {
            x: factor(picture.width(), width),
            y: factor(picture.height(), height),
        });
        Some(Self { picture, scale })
    }

    /// Whether the reference has another size than the frame.
    pub(crate) fn is_scaled(&self) -> bool {
        self.scale.is_some()
    }
}

/// Working memory for blocks that reach beyond their reference.
#[derive(Debug)]
pub(crate) struct Scratch(Box<[u8; ROOM * ROOM]>);

impl Default for Scratch {
    fn default() -> Self {
        #[allow(clippy::large_stack_arrays)] // 20 KiB, once
        Self(Box::new([0; ROOM * ROOM]))
    }
}

/// A rectangle of one plane with one vector.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InterBlock {
    /// The plane: 0 luma, 1 and 2 chroma.
    pub(crate) plane: usize,
    /// Place and size of the rectangle in the plane's samples.
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Distances that vectors are clamped to, in 1/16 sample (§8.5.2.3): left, right, top, bottom.
    pub(crate) bounds: [i32; 4],
    /// Motion vector in 1/8 luma sample.
    pub(crate) vector: MotionVector,
    pub(crate) filter: u8,
    /// Whether the prediction is averaged with what is there, as the second one of a compound block is.
    pub(crate) average: bool,
}

impl InterBlock {
    /// The rectangle in its plane.
    #[inline]
    fn destination<'a>(&self, plane: &'a mut PlaneRows<'_>) -> convolve::Block<'a> {
        let stride = plane.stride();
        convolve::Block {
            dst: plane.after_mut(self.x, self.y),
            stride,
            width: self.width,
            height: self.height,
            average: self.average,
        }
    }
}

/// Predicts a rectangle into `dst`.
#[inline]
pub(crate) fn predict_inter(
    isa: Isa,
    block: &InterBlock,
    reference: &ReferenceFrame,
    dst: &mut PlaneRows<'_>,
    scratch: &mut Scratch,
) {
    let source = &reference.picture.planes()[block.plane];
    // Vectors of 1/8 luma sample are of 1/16 chroma sample.
    let precision = i32::from(block.plane == 0);
    let [left, right, top, bottom] = block.bounds;
    let vector = PlaneVector {
        x: (i32::from(block.vector.x) << precision).max(left).min(right),
        y: (i32::from(block.vector.y) << precision).max(top).min(bottom),
    };
    if let Some(scale) = reference.scale {
        return predict_scaled(isa, block, source, scale, vector, dst, scratch);
    }
    let (fx, fy) = ((vector.x & 15) as u8, (vector.y & 15) as u8);
    let x = block.x as isize + (vector.x >> 4) as isize;
    let y = block.y as isize + (vector.y >> 4) as isize;
    let around = Surroundings {
        x: x - if fx == 0 { 0 } else { BEFORE },
        y: y - if fy == 0 { 0 } else { BEFORE },
        width: block.width + if fx == 0 { 0 } else { (BEFORE + AFTER) as usize },
        height: block.height + if fy == 0 { 0 } else { (BEFORE + AFTER) as usize },
    };
    let from = around.reference(source, x, y, scratch);
    convolve::predict(isa, block.filter, fx, fy, from, block.destination(dst));
}

/// Predicts from a reference of another size (§8.5.2.3). The fraction of the position comes from luma coordinates in
/// every plane.
fn predict_scaled(
    isa: Isa,
    block: &InterBlock,
    source: &PlaneBuffer,
    scale: Scale,
    vector: PlaneVector,
    dst: &mut PlaneRows<'_>,
    scratch: &mut Scratch,
) {
    let chroma = u32::from(block.plane > 0);
    let axis = |at: usize, vector: i32, scale: i64, length: usize| {
        let scaled = |v: i64| (v * scale) >> SCALE_BITS;
        let base = scaled(at as i64);
        let fraction = scaled(16 * ((at as i64) << chroma)) & 15;
        let start = (base << 4) + scaled(i64::from(vector)) + fraction;
        let step = scaled(16);
        let (first, fraction) = ((start >> 4) as isize, (start & 15) as usize);
        let reach = ((length as i64 - 1) * step + (start & 15)) >> 4;
        (first, fraction, step as usize, reach as usize + 1)
    };
    let (x, fx, step_x, wide) = axis(block.x, vector.x, scale.x, block.width);
    let (y, fy, step_y, high) = axis(block.y, vector.y, scale.y, block.height);
    let around = Surroundings {
        x: x - BEFORE,
        y: y - BEFORE,
        width: wide + (BEFORE + AFTER) as usize,
        height: high + (BEFORE + AFTER) as usize,
    };
    let from = around.reference(source, x, y, scratch);
    let steps = Steps { fx, fy, step_x, step_y };
    convolve::predict_scaled(isa, block.filter, steps, from, block.destination(dst));
}

/// The rectangle of a reference that a filter reads.
struct Surroundings {
    x: isize,
    y: isize,
    width: usize,
    height: usize,
}

impl Surroundings {
    /// The samples around (`x`, `y`): those of the plane itself, or a copy whose edges are repeated where the rectangle
    /// reaches beyond the plane.
    #[inline]
    fn reference<'a>(
        &self,
        plane: &'a PlaneBuffer,
        x: isize,
        y: isize,
        scratch: &'a mut Scratch,
    ) -> Reference<'a> {
        let stride = plane.stride();
        let inside = self.x >= 0
            && self.y >= 0
            && self.x as usize + self.width <= plane.width()
            && self.y as usize + self.height <= plane.height();
        if inside {
            let offset = y as usize * stride + x as usize;
            return Reference { samples: plane.samples(), offset, stride };
        }
        self.copy(plane, scratch);
        let (dx, dy) = ((x - self.x) as usize, (y - self.y) as usize);
        Reference { samples: &scratch.0[..], offset: dy * ROOM + dx, stride: ROOM }
    }

    #[cold]
    fn copy(&self, plane: &PlaneBuffer, scratch: &mut Scratch) {
        let (last_x, last_y) = (plane.width() as isize - 1, plane.height() as isize - 1);
        let width = self.width.min(ROOM);
        // Columns before the plane, inside it, and behind it.
        let before = (-self.x).clamp(0, width as isize) as usize;
        let behind = (self.x + width as isize - 1 - last_x).clamp(0, width as isize) as usize;
        let inside = width.saturating_sub(before + behind);
        for (i, line) in scratch.0.chunks_exact_mut(ROOM).take(self.height).enumerate() {
            let row = plane.row((self.y + i as isize).clamp(0, last_y) as usize);
            let line = &mut line[..width];
            line[..before].fill(row[0]);
            if inside > 0 {
                let from = (self.x + before as isize) as usize;
                line[before..before + inside].copy_from_slice(&row[from..from + inside]);
            }
            line[width - behind..].fill(row[last_x as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp() -> Arc<FrameBuffer> {
        let mut b = FrameBuffer::default();
        b.resize(16, 16);
        for mut plane in b.rows_mut().planes {
            let stride = plane.stride();
            for (i, s) in plane.samples_mut().iter_mut().enumerate() {
                *s = (i % stride * 3 + i / stride * 5) as u8;
            }
        }
        Arc::new(b)
    }

    #[test]
    fn blocks_beyond_the_edge_see_it_repeated() {
        let reference = ReferenceFrame::new(ramp(), 16, 16).expect("same size");
        let mut dst = FrameBuffer::default();
        dst.resize(16, 16);
        for vector in [(-2000, -2000), (2000, 2000), (-64, 64), (0, -2000)] {
            let block = InterBlock {
                plane: 0,
                x: 8,
                y: 8,
                width: 8,
                height: 8,
                bounds: [-20000, 20000, -20000, 20000],
                vector: MotionVector { x: vector.0, y: vector.1 },
                filter: 0,
                average: false,
            };
            let plane = &mut dst.rows_mut().planes[0];
            predict_inter(Isa::SCALAR, &block, &reference, plane, &mut Scratch::default());
            let plane = &dst.planes()[0];
            for y in 0..8 {
                for x in 0..8 {
                    let sx = (8 + x + (i32::from(vector.0) >> 3)).clamp(0, 15);
                    let sy = (8 + y + (i32::from(vector.1) >> 3)).clamp(0, 15);
                    let got = plane.row((8 + y) as usize)[(8 + x) as usize];
                    assert_eq!(i32::from(got), (sx * 3 + sy * 5) & 255, "{vector:?} {x} {y}");
                }
            }
        }
    }

    #[test]
    fn references_of_an_impossible_size_are_refused() {
        assert!(ReferenceFrame::new(ramp(), 7, 16).is_none());
        assert!(ReferenceFrame::new(ramp(), 16, 257).is_none());
        assert!(ReferenceFrame::new(ramp(), 8, 256).is_some());
    }
}
