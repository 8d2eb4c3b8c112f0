//! The colour of anchored frames: only captured anchors have any.

use windlass_vp9::{Plane, PlaneSize};

use super::cells::{Cell, SIDE};
use crate::anchor::colour::Decoded;
use crate::resample;

/// HR chroma of a frame, of which some cells are known.
#[derive(Debug, Clone)]
pub(crate) struct Colour {
    pub planes: [Plane; 2],
    /// For each cell of [`SIDE`] low samples: whether its chroma is known.
    pub known: Vec<bool>,
}

impl Colour {
    /// The colour of a low picture in which no cell is known.
    pub(crate) fn none(low: PlaneSize, scale: usize) -> Self {
        let PlaneSize { width, height } = low.scaled(scale).chroma();
        let plane = || Plane::filled(width, height, 128);
        let known = vec![false; low.width.div_ceil(SIDE) * low.height.div_ceil(SIDE)];
        Self { planes: [plane(), plane()], known }
    }

    /// Whether the planes have the size for this low picture and scale.
    pub(crate) fn is_of(&self, low: PlaneSize, scale: usize) -> bool {
        self.planes[0].size() == low.scaled(scale).chroma()
            && self.known.len() == low.width.div_ceil(SIDE) * low.height.div_ceil(SIDE)
    }

    /// Takes over the decoded colour of an anchor of the same size.
    pub(crate) fn show(&mut self, decoded: Decoded) {
        (self.planes, self.known) = (decoded.planes, decoded.coded);
    }

    /// Takes over the colour of the same picture at a larger scale, made smaller.
    pub(crate) fn shrink(&mut self, larger: &Self) {
        for (from, to) in larger.planes.iter().zip(&mut self.planes) {
            *to = resample::area(from.into(), to.size());
        }
        self.known.clone_from(&larger.known);
    }

    /// Takes over the chroma of one cell of another colour.
    pub(crate) fn take(&mut self, other: &Self, cell: usize, low: PlaneSize, scale: usize) {
        self.known[cell] = other.known[cell];
        let columns = low.width.div_ceil(SIDE);
        let area = Cell::numbered(cell, columns).area(low).chroma(scale);
        for (from, to) in other.planes.iter().zip(&mut self.planes) {
            let width = from.width();
            for y in area.y..(area.y + area.height).min(from.height()) {
                let span = y * width + area.x..y * width + (area.x + area.width).min(width);
                to.samples_mut()[span.clone()].copy_from_slice(&from.samples()[span]);
            }
        }
    }
}
