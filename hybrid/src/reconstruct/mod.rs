//! HR reconstruction: how luma detail travels from frame to frame.
//!
//! Source: seed 000 §4 and §6.2 (the high picture follows the low layer's vectors), changed as
//! `docs/reconstruction.md` measures. A high picture is `Lanczos(LR) + D`, so nothing but the detail
//! `D` is carried and the base cannot drift. For every inter block, `D` is fetched from the
//! reference's twin by the block's own vector, twice as long:
//!
//! - Where the low layer codes no residual (`skip`), the low picture moved with the block, and so
//!   did its errors: `D` is kept whole.
//! - Elsewhere the low layer has renewed what it can carry. The part of `D` that it carries is taken
//!   out (`D − up(r · down(D))`, `r` being [`Reconstruction::renewal`]), and the rest is faded by how badly the vector predicts the low picture:
//!   whole up to [`Reconstruction::trust_q4`] mean absolute error, gone at
//!   [`Reconstruction::distrust_q4`].
//! - Intra blocks, and references of another size, have no detail.
//!
//! What of an anchor follows from its low picture is not carried but predicted for every frame anew:
//! see [`learned`]. The rest, `D` without the prediction, is what travels as above.

pub mod learned;
pub mod motion;

use std::sync::Arc;

use crate::detail::Detail;
use crate::picture::{Picture, Plane};
use crate::resample::{box_half_signed, lanczos2x_signed};
use crate::vp9::{FrameInfo, MotionVector, Part};
use motion::{Area, MAX_BLOCK, MotionScratch, compensate};

/// How detail is carried. The constants were chosen by measurement: `docs/reconstruction.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconstruction {
    /// Mean absolute error of the vector's prediction of the low picture, in 1/16 grey level, up
    /// to which detail is kept whole.
    pub trust_q4: i32,
    /// The error at which detail is dropped; larger than [`trust_q4`](Self::trust_q4).
    pub distrust_q4: i32,
    /// How much of what the low layer carries is taken out of renewed areas, in 1/256.
    pub renewal: i32,
    /// The most that renewed areas keep, in 1/256.
    pub kept: i32,
}

impl Reconstruction {
    /// For detail that the network made of the low picture itself: small, and never far wrong.
    pub const ENHANCED: Self = Self { trust_q4: 160, distrust_q4: 448, renewal: 20, kept: 192 };
    /// For detail of the original, which turns into ghosts where its vectors mislead.
    pub const CAPTURED: Self = Self { trust_q4: 40, distrust_q4: 128, renewal: 128, kept: 256 };
}

/// The HR twin of a decoded frame: what a VP9 reference slot holds beside its low picture.
#[derive(Debug)]
pub(crate) struct Twin {
    /// The frame it came from.
    pub id: u64,
    /// Its low picture.
    pub low: Arc<Picture>,
    /// Its detail, at twice the size; `None` where there is none at all.
    pub detail: Option<Detail>,
}

/// Side of a cell of the low picture that is trusted as one.
const CELL: usize = 8;
/// A weight of one.
const WHOLE: i32 = 256;

/// The detail that a frame inherits through its vectors from its references (`Last`, `Golden`,
/// `Altref`); `None` when there is none.
pub(crate) fn propagate(
    info: &FrameInfo,
    low: &Plane,
    references: &[Option<Arc<Twin>>; 3],
    how: &Reconstruction,
) -> Option<Detail> {
    let size = (low.width(), low.height());
    let usable = references
        .each_ref()
        .map(|r| r.as_deref().filter(|t| (t.low.width(), t.low.height()) == size));
    if info.is_intra() || !usable.iter().flatten().any(|t| t.detail.is_some()) {
        return None;
    }
    let mut detail = Detail::zero(2 * size.0, 2 * size.1);
    let mut renewed = Vec::new();
    let mut buffers = Buffers::default();
    for block in &info.blocks {
        for part in block.parts() {
            let inherited = fetch(&part, &usable, &mut detail, &mut buffers);
            if inherited && !block.skip {
                fade(&part, low, &usable, how, &mut detail);
                renewed.push(area_of(&part, size.0, size.1));
            }
        }
    }
    remove_carried(&mut detail, &renewed, how.renewal);
    detail.samples().iter().any(|&d| d != 0).then_some(detail)
}

/// Working memory of one frame.
#[derive(Default)]
struct Buffers {
    motion: MotionScratch,
    first: Vec<i16>,
    second: Vec<i16>,
}

/// The part of a block inside a picture of the given size.
fn area_of(block: &Part, width: usize, height: usize) -> Area {
    let (x, y) = (usize::from(block.x), usize::from(block.y));
    Area {
        x,
        y,
        width: usize::from(block.width).min(width.saturating_sub(x)),
        height: usize::from(block.height).min(height.saturating_sub(y)),
    }
}

/// Motion-compensates the detail of a block; whether any of its references had some.
fn fetch(
    block: &Part,
    references: &[Option<&Twin>; 3],
    detail: &mut Detail,
    buffers: &mut Buffers,
) -> bool {
    let low = area_of(block, detail.width() / 2, detail.height() / 2);
    let area = Area { x: 2 * low.x, y: 2 * low.y, width: 2 * low.width, height: 2 * low.height };
    let count = area.width * area.height;
    buffers.first.resize(MAX_BLOCK * MAX_BLOCK, 0);
    buffers.second.resize(MAX_BLOCK * MAX_BLOCK, 0);
    let mut predict = |list: usize, out: &mut [i16]| {
        let (reference, vector) = block.predictions[list]?;
        let from = references[reference.index()]?.detail.as_ref()?;
        compensate(from, area, vector, &mut buffers.motion, out);
        Some(())
    };
    let first = &mut buffers.first[..count];
    let second = &mut buffers.second[..count];
    let found =
        (predict(0, first).is_some(), predict(1, second).is_some(), block.predictions[1].is_some());
    let prediction: &[i16] = match found {
        (false, false, _) => return false,
        (true, _, false) => first,
        (a, b, _) => {
            // Compound: the mean, a reference without detail counting as zero.
            for (f, &s) in first.iter_mut().zip(&*second) {
                let sum = i32::from(a) * i32::from(*f) + i32::from(b) * i32::from(s);
                *f = ((sum + 1) >> 1) as i16;
            }
            first
        }
    };
    for (y, row) in prediction.chunks_exact(area.width).enumerate() {
        detail.row_mut(area.y + y)[area.x..area.x + area.width].copy_from_slice(row);
    }
    true
}

/// Fades a block's detail, cell by cell, where its vector predicts the low picture badly.
fn fade(
    block: &Part,
    low: &Plane,
    references: &[Option<&Twin>; 3],
    how: &Reconstruction,
    detail: &mut Detail,
) {
    let area = area_of(block, low.width(), low.height());
    for y in (area.y..area.y + area.height).step_by(CELL) {
        for x in (area.x..area.x + area.width).step_by(CELL) {
            let cell = Area {
                x,
                y,
                width: CELL.min(area.x + area.width - x),
                height: CELL.min(area.y + area.height - y),
            };
            let error = prediction_error(block, cell, low, references);
            let span = (how.distrust_q4 - how.trust_q4).max(1);
            let weight = ((how.distrust_q4 - error) * WHOLE / span).clamp(0, WHOLE);
            let weight = weight * how.kept / WHOLE;
            if weight == WHOLE {
                continue;
            }
            for row in 2 * y..2 * (y + cell.height) {
                for d in &mut detail.row_mut(row)[2 * x..2 * (x + cell.width)] {
                    *d = ((i32::from(*d) * weight + WHOLE / 2) >> 8) as i16;
                }
            }
        }
    }
}

/// Mean absolute error, in 1/16 grey level, of the low picture's prediction by the block's first
/// vector (bilinear).
fn prediction_error(block: &Part, cell: Area, low: &Plane, references: &[Option<&Twin>; 3]) -> i32 {
    let Some((reference, vector)) = block.predictions[0] else {
        return i32::MAX / (2 * WHOLE);
    };
    let Some(twin) = references[reference.index()] else {
        return i32::MAX / (2 * WHOLE);
    };
    let mut sum = 0;
    for y in cell.y..cell.y + cell.height {
        for x in cell.x..cell.x + cell.width {
            sum += (bilinear_q4(&twin.low.y, x, y, vector) - (i32::from(low.row(y)[x]) << 4)).abs();
        }
    }
    sum / (cell.width * cell.height).max(1) as i32
}

/// A low sample moved by a vector in 1/8, in 1/16 grey level, edges repeated.
fn bilinear_q4(plane: &Plane, x: usize, y: usize, vector: MotionVector) -> i32 {
    let (fx, fy) = (i32::from(vector.x & 7), i32::from(vector.y & 7));
    let left = x as isize + isize::from(vector.x >> 3);
    let top = y as isize + isize::from(vector.y >> 3);
    let column = |x: isize| x.clamp(0, plane.width() as isize - 1) as usize;
    let row = |y: isize| plane.row(y.clamp(0, plane.height() as isize - 1) as usize);
    let (a, b) = (column(left), column(left + 1));
    let across = |line: &[u8]| i32::from(line[a]) * (8 - fx) + i32::from(line[b]) * fx;
    (across(row(top)) * (8 - fy) + across(row(top + 1)) * fy + 2) >> 2
}

/// Takes out of the given areas (in low samples) what the low layer itself carries:
/// `D −= up(share · down(D))`.
fn remove_carried(detail: &mut Detail, areas: &[Area], share: i32) {
    if areas.is_empty() || share == 0 {
        return;
    }
    let means = box_half_signed(detail);
    let mut carried = Detail::zero(means.width(), means.height());
    for area in areas {
        for y in area.y..area.y + area.height {
            let span = area.x..area.x + area.width;
            let means = &means.row(y)[span.clone()];
            for (c, &m) in carried.row_mut(y)[span].iter_mut().zip(means) {
                *c = ((i32::from(m) * share + WHOLE / 2) >> 8) as i16;
            }
        }
    }
    let carried = lanczos2x_signed(&carried);
    for (d, &c) in detail.samples_mut().iter_mut().zip(carried.samples()) {
        *d = d.saturating_sub(c);
    }
}
