//! Anchored frames, from which pictures are carried.

use std::sync::Arc;

use super::cells::{Cell, LowPlace, SIDE};
use super::colour::Colour;
use super::picture::CarriedPicture;
use windlass_types::Size;
use windlass_types::tiles::{TILE, TileMap};
use windlass_vp9::{FrameBuffer, Plane, PlaneSize};

/// Maximum number of references that are kept. A captured anchor may come a second late: its place is then among the
/// enhanced anchors that came in the meantime.
pub(crate) const MAX_REFERENCES: usize = 6;

/// Side of a spot, in low samples: the energy of detail is measured for each spot.
const SPOT: usize = 2;

/// An anchored frame.
#[derive(Debug)]
pub(crate) struct Reference {
    /// The frame's number (id).
    pub id: u64,
    /// The frame's low picture.
    pub low: Arc<FrameBuffer>,
    /// The frame's HR luma: from anchors in their tiles, and elsewhere from the references before it.
    pub high: Plane,
    /// The frame's HR chroma, where some is known.
    colour: Option<Colour>,
    /// For each spot: mean square of the luma's detail beyond the filters around it, in 1/256 square grey level.
    energy: Vec<u32>,
    /// For each cell of [`SIDE`]: whether its pixels are captured, by an anchor of this frame or of one before it.
    captured: Vec<bool>,
    /// The tiles that anchors of this frame gave.
    tiles: TileMap,
    /// The tiles whose last anchor of this frame was captured.
    captured_tiles: TileMap,
}

/// The HR picture that an anchor makes of its frame.
pub(crate) struct AnchorPicture<'a> {
    /// The frame's luma with the anchor's detail.
    pub high: &'a Plane,
    /// The frame's luma as the filters alone make it.
    pub base: &'a Plane,
    /// The HR chroma, where the anchor has any.
    pub colour: Option<Colour>,
    /// The tiles that the anchor gives. The others are not used.
    pub tiles: &'a TileMap,
    /// Whether the anchor is captured; otherwise it is enhanced.
    pub captured: bool,
    /// The frame's picture before this anchor. A new reference needs it where the anchor does not give all tiles.
    pub before: Option<CarriedPicture>,
}

impl Reference {
    fn new(id: u64, low: Arc<FrameBuffer>, anchor: &AnchorPicture<'_>) -> Self {
        let (width, height) = (low.width(), low.height());
        let none = TileMap::empty(Size::saturating(width, height));
        let cells = width.div_ceil(SIDE) * height.div_ceil(SIDE);
        let (high, captured) = match &anchor.before {
            Some(before) => (before.luma.clone(), before.captured.clone()),
            None => (anchor.base.clone(), vec![false; cells]),
        };
        let colour = anchor.before.as_ref().and_then(|before| before.colour.clone());
        let (energy, tiles, captured_tiles) = (Vec::new(), none.clone(), none);
        Self { id, low, high, colour, energy, captured, tiles, captured_tiles }
    }

    /// Takes over the tiles that an anchor gives.
    fn take(&mut self, anchor: &mut AnchorPicture<'_>, scale: usize) {
        let columns = self.low.width().div_ceil(SIDE);
        for i in 0..self.captured.len() {
            let cell = Cell::numbered(i, columns);
            if !covers(anchor.tiles, cell) {
                continue;
            }
            // Captured pixels that fit are better than what super-resolution makes of the low picture.
            let carried = anchor.before.as_ref().filter(|before| before.captured[i]);
            if let (false, Some(before)) = (anchor.captured, carried) {
                copy(&before.luma, &mut self.high, cell, scale);
                self.captured[i] = true;
                continue;
            }
            copy(anchor.high, &mut self.high, cell, scale);
            self.captured[i] = anchor.captured;
            let Some(colour) = &mut anchor.colour else { continue };
            if colour.known[i] && self.colour.is_some() {
                self.take_colour(colour, i, scale);
            }
        }
        if self.colour.is_none() {
            self.colour = anchor.colour.take();
        }
        self.tiles = self.tiles.with(anchor.tiles);
        self.captured_tiles = if anchor.captured {
            self.captured_tiles.with(anchor.tiles)
        } else {
            self.captured_tiles.without(anchor.tiles)
        };
        self.measure(anchor.base, scale);
    }

    /// Takes over a new picture from the references before it: outside the anchored tiles all of it, in enhanced
    /// tiles the captured pixels that fit.
    pub(crate) fn update(&mut self, carried: &CarriedPicture, base: &Plane, scale: usize) {
        let columns = self.low.width().div_ceil(SIDE);
        for i in 0..self.captured.len() {
            let cell = Cell::numbered(i, columns);
            let anchored = covers(&self.tiles, cell);
            let captured = covers(&self.captured_tiles, cell);
            if !anchored || !captured && carried.captured[i] {
                copy(&carried.luma, &mut self.high, cell, scale);
                self.captured[i] = carried.captured[i];
            }
            if let (false, Some(colour)) = (captured, &carried.colour) {
                self.take_colour(colour, i, scale);
            }
        }
        self.measure(base, scale);
    }

    /// Whether [`update`](Self::update) would change nothing. `captured_before`: references before it have captured
    /// pixels.
    pub(crate) fn is_settled(&self, captured_before: bool) -> bool {
        if captured_before { self.captured_tiles.is_full() } else { self.tiles.is_full() }
    }

    /// Whether any pixels are captured.
    pub(crate) fn has_captured(&self) -> bool {
        self.captured.contains(&true)
    }

    /// Measures the energy of the luma's detail beyond the filters, around each spot.
    fn measure(&mut self, base: &Plane, scale: usize) {
        let (columns, rows) = (self.low.width().div_ceil(SPOT), self.low.height().div_ceil(SPOT));
        let side = SPOT * scale;
        let mut sums = vec![(0u32, 0u32); columns * rows];
        for y in 0..self.high.height() {
            let row = &mut sums[y / side * columns..][..columns];
            let lines = self.high.row(y).chunks(side).zip(base.row(y).chunks(side));
            for (sum, (a, b)) in row.iter_mut().zip(lines) {
                sum.0 +=
                    a.iter().zip(b).map(|(&a, &b)| u32::from(a.abs_diff(b)).pow(2)).sum::<u32>();
                sum.1 += a.len() as u32;
            }
        }
        self.energy.clear();
        for i in 0..columns * rows {
            let (x, y) = (i % columns, i / columns);
            let beside = x.saturating_sub(1)..(x + 2).min(columns);
            let lines = sums.chunks_exact(columns).take(y + 2).skip(y.saturating_sub(1));
            let (sum, count) = lines
                .flat_map(|line| &line[beside.clone()])
                .fold((0, 0), |all, one| (all.0 + u64::from(one.0), all.1 + u64::from(one.1)));
            self.energy.push((sum * 256 / count.max(1)) as u32);
        }
    }

    /// The energy around a low sample.
    pub(crate) fn energy(&self, LowPlace { x, y }: LowPlace) -> u32 {
        self.energy[y / SPOT * self.low.width().div_ceil(SPOT) + x / SPOT]
    }

    /// Takes over the chroma of one cell.
    fn take_colour(&mut self, from: &Colour, cell: usize, scale: usize) {
        let size = self.low.size();
        let colour = self.colour.get_or_insert_with(|| Colour::none(size, scale));
        colour.take(from, cell, size, scale);
    }

    /// The HR chroma planes, where the chroma of a low sample is known.
    pub(crate) fn colour(&self, place: LowPlace) -> Option<&[Plane; 2]> {
        let cell = place.cell().number(self.low.width().div_ceil(SIDE));
        self.colour.as_ref().filter(|colour| colour.known[cell]).map(|colour| &colour.planes)
    }

    /// Whether any cell has known chroma.
    pub(crate) fn has_colour(&self) -> bool {
        self.colour.is_some()
    }

    /// Whether the pixels of a low sample are captured.
    pub(crate) fn is_captured(&self, place: LowPlace) -> bool {
        self.captured[place.cell().number(self.low.width().div_ceil(SIDE))]
    }
}

/// Whether a cell lies in one of the tiles.
fn covers(tiles: &TileMap, Cell { column, row }: Cell) -> bool {
    tiles.contains(column * SIDE / TILE, row * SIDE / TILE)
}

/// Copies the samples of one cell from plane to plane.
fn copy(from: &Plane, to: &mut Plane, Cell { column, row }: Cell, scale: usize) {
    let side = SIDE * scale;
    let (width, height) = (from.width(), from.height());
    let columns = column * side..((column + 1) * side).min(width);
    for y in row * side..((row + 1) * side).min(height) {
        let at = y * width;
        let span = at + columns.start..at + columns.end;
        to.samples_mut()[span.clone()].copy_from_slice(&from.samples()[span]);
    }
}

/// The references of a stream, oldest first, at most [`MAX_REFERENCES`].
#[derive(Debug, Default)]
pub(crate) struct References {
    kept: Vec<Reference>,
    /// The memory of a colour that is no longer needed, for the next one.
    spare: Option<Colour>,
}

impl References {
    /// Forgets all references.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
    }

    /// The reference that is this frame, if there is one.
    pub(crate) fn get(&self, id: u64) -> Option<&Reference> {
        self.kept.iter().find(|r| r.id == id)
    }

    /// The reference that is this frame, to be changed.
    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Reference> {
        self.kept.iter_mut().find(|r| r.id == id)
    }

    /// The references of frames before this one, oldest first.
    pub(crate) fn before(&self, id: u64) -> &[Reference] {
        &self.kept[..self.kept.partition_point(|r| r.id < id)]
    }

    /// The first reference of a frame after this one.
    pub(crate) fn next_after(&self, id: u64) -> Option<&Reference> {
        self.kept.get(self.kept.partition_point(|r| r.id <= id))
    }

    /// Whether there is no room for a reference of this frame: the list is full, and the frame is older than all.
    pub(crate) fn are_beyond(&self, id: u64) -> bool {
        self.kept.len() == MAX_REFERENCES && self.kept[0].id > id
    }

    /// Makes a frame a reference, or adds an anchor's tiles to the reference.
    pub(crate) fn add(
        &mut self,
        id: u64,
        low: &Arc<FrameBuffer>,
        mut anchor: AnchorPicture<'_>,
        scale: usize,
    ) {
        let at = self.kept.partition_point(|r| r.id < id);
        if self.kept.get(at).is_none_or(|r| r.id != id) {
            self.kept.insert(at, Reference::new(id, low.clone(), &anchor));
        }
        self.kept[at].take(&mut anchor, scale);
        self.spare = anchor.colour.or(self.spare.take());
    }

    /// The colour that `make` fills in at the scale `made`, converted to `scale`.
    pub(crate) fn colour(
        &mut self,
        low: PlaneSize,
        made: usize,
        scale: usize,
        make: impl FnOnce(&mut Colour),
    ) -> Colour {
        let spare = self.spare.take().filter(|colour| colour.is_of(low, scale));
        let mut colour = spare.unwrap_or_else(|| Colour::none(low, scale));
        if made == scale {
            make(&mut colour);
        } else {
            let mut larger = Colour::none(low, made);
            make(&mut larger);
            colour.shrink(&larger);
        }
        colour
    }

    /// Drops the oldest references beyond [`MAX_REFERENCES`].
    pub(crate) fn trim(&mut self) {
        let more = self.kept.len().saturating_sub(MAX_REFERENCES);
        let mut dropped = self.kept.drain(..more).filter_map(|reference| reference.colour);
        self.spare = dropped.next_back().or(self.spare.take());
    }
}
