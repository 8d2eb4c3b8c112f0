//! What pictures are carried from: anchored frames.

use std::sync::Arc;

use super::colour::Colour;
use super::plan::{Painted, SIDE};
use windlass_types::tiles::{TILE, TileMap};
use windlass_vp9::{FrameBuffer, Plane};

/// References that are kept. The publisher's own picture may come a second late, and then has its place among those
/// that were made of the low picture in the meantime.
pub(crate) const MOST: usize = 6;

/// Side of a spot in low samples: the energy of detail is known by these.
const SPOT: usize = 2;

/// An anchored frame.
#[derive(Debug)]
pub(crate) struct Reference {
    /// The frame's number.
    pub id: u64,
    /// Its low picture.
    pub low: Arc<FrameBuffer>,
    /// Its luma: what anchors gave, elsewhere what the frame showed before.
    pub high: Plane,
    /// Its chroma, where some is known.
    colour: Option<Colour>,
    /// By spot: mean square of what the luma has around it beyond the filters, in 1/256 square grey level.
    energy: Vec<u32>,
    /// By cell of [`SIDE`]: whether its pixels are the publisher's own.
    captured: Vec<bool>,
    /// The tiles that anchors gave.
    tiles: TileMap,
    /// Those of them that are the publisher's own.
    own: TileMap,
}

/// What an anchor gives of a frame.
pub(crate) struct Given<'a> {
    /// The frame's luma with the anchor's detail.
    pub high: &'a Plane,
    /// Without it.
    pub base: &'a Plane,
    /// Its chroma, where the anchor has any.
    pub colour: Option<Colour>,
    /// The tiles that count.
    pub tiles: &'a TileMap,
    /// Whether they are the publisher's own pixels; otherwise the anchor is made of the low picture.
    pub captured: bool,
    /// What the frame showed before. Needed where there are other tiles.
    pub painted: Option<Painted>,
}

impl Reference {
    fn new(id: u64, low: Arc<FrameBuffer>, given: &mut Given<'_>) -> Self {
        let size = (low.width(), low.height());
        let none = TileMap::empty(size.0, size.1);
        let cells = size.0.div_ceil(SIDE) * size.1.div_ceil(SIDE);
        let (high, captured) = match &given.painted {
            Some(painted) => (painted.luma.clone(), painted.captured.clone()),
            None => (given.base.clone(), vec![false; cells]),
        };
        let colour = given.painted.as_ref().and_then(|painted| painted.colour.clone());
        let (energy, tiles, own) = (Vec::new(), none.clone(), none);
        Self { id, low, high, colour, energy, captured, tiles, own }
    }

    /// Takes the tiles that an anchor gives.
    fn take(&mut self, given: &mut Given<'_>, scale: usize) {
        let columns = self.low.width().div_ceil(SIDE);
        for i in 0..self.captured.len() {
            let (column, row) = (i % columns, i / columns);
            if !covers(given.tiles, column, row) {
                continue;
            }
            let painted = given.painted.as_ref();
            // What super-resolution makes of the low picture knows less than the publisher's own pixels, where they fit.
            if !given.captured && painted.is_some_and(|painted| painted.captured[i]) {
                if let Some(painted) = painted {
                    copy(&painted.luma, &mut self.high, (column, row), scale);
                }
                self.captured[i] = true;
                continue;
            }
            copy(given.high, &mut self.high, (column, row), scale);
            self.captured[i] = given.captured;
            let Some(colour) = &mut given.colour else { continue };
            if colour.known[i] && self.colour.is_some() {
                self.take_colour(colour, i, scale);
            }
        }
        if self.colour.is_none() {
            self.colour = given.colour.take();
        }
        self.tiles = self.tiles.with(given.tiles);
        self.own =
            if given.captured { self.own.with(given.tiles) } else { self.own.without(given.tiles) };
        self.measure(given.base, scale);
    }

    /// Shows outside its tiles what the frame shows there now, and in those that were made of the low picture the
    /// publisher's own pixels where they fit.
    pub fn repaint(&mut self, painted: &Painted, base: &Plane, scale: usize) {
        let columns = self.low.width().div_ceil(SIDE);
        for i in 0..self.captured.len() {
            let (column, row) = (i % columns, i / columns);
            let given = covers(&self.tiles, column, row);
            let own = covers(&self.own, column, row);
            if !given || !own && painted.captured[i] {
                copy(&painted.luma, &mut self.high, (column, row), scale);
                self.captured[i] = painted.captured[i];
            }
            if let (false, Some(colour)) = (own, &painted.colour) {
                self.take_colour(colour, i, scale);
            }
        }
        self.measure(base, scale);
    }

    /// Whether [`repaint`](Self::repaint) has nothing to do, where references before it have the publisher's own pixels or not.
    pub fn is_settled(&self, captured_before: bool) -> bool {
        if captured_before { self.own.is_full() } else { self.tiles.is_full() }
    }

    /// Whether any of it is the publisher's own.
    pub fn has_captured(&self) -> bool {
        self.captured.contains(&true)
    }

    /// Finds out what it has beyond the filters.
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
    pub fn energy(&self, (x, y): (usize, usize)) -> u32 {
        self.energy[y / SPOT * self.low.width().div_ceil(SPOT) + x / SPOT]
    }

    fn take_colour(&mut self, from: &Colour, cell: usize, scale: usize) {
        let size = (self.low.width(), self.low.height());
        let colour = self.colour.get_or_insert_with(|| Colour::none(size, scale));
        colour.take(from, cell, size, scale);
    }

    /// Its chroma, where that around a low sample is known.
    pub fn colour(&self, (x, y): (usize, usize)) -> Option<&[Plane; 2]> {
        let cell = y / SIDE * self.low.width().div_ceil(SIDE) + x / SIDE;
        self.colour.as_ref().filter(|colour| colour.known[cell]).map(|colour| &colour.planes)
    }

    /// Whether any of it has colour.
    pub fn has_colour(&self) -> bool {
        self.colour.is_some()
    }

    /// Whether a low sample is the publisher's own.
    pub fn is_captured(&self, (x, y): (usize, usize)) -> bool {
        self.captured[y / SIDE * self.low.width().div_ceil(SIDE) + x / SIDE]
    }
}

/// Whether a cell lies in one of the tiles.
fn covers(tiles: &TileMap, column: usize, row: usize) -> bool {
    tiles.contains(column * SIDE / TILE, row * SIDE / TILE)
}

/// Copies a cell.
fn copy(from: &Plane, to: &mut Plane, (column, row): (usize, usize), scale: usize) {
    let side = SIDE * scale;
    let (width, height) = (from.width(), from.height());
    let columns = column * side..((column + 1) * side).min(width);
    for y in row * side..((row + 1) * side).min(height) {
        let at = y * width;
        let span = at + columns.start..at + columns.end;
        to.samples_mut()[span.clone()].copy_from_slice(&from.samples()[span]);
    }
}

/// The references of a stream, oldest first, at most [`MOST`].
#[derive(Debug, Default)]
pub(crate) struct References {
    kept: Vec<Reference>,
    /// The memory of a colour that is not needed any more.
    spare: Option<Colour>,
}

impl References {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// The reference of a frame.
    pub fn get(&self, id: u64) -> Option<&Reference> {
        self.kept.iter().find(|r| r.id == id)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, id: u64) -> Option<&mut Reference> {
        self.kept.iter_mut().find(|r| r.id == id)
    }

    /// Those of frames before one, oldest first.
    pub fn before(&self, id: u64) -> &[Reference] {
        &self.kept[..self.kept.partition_point(|r| r.id < id)]
    }

    /// The first of a frame after one.
    pub fn next_after(&self, id: u64) -> Option<&Reference> {
        self.kept.get(self.kept.partition_point(|r| r.id <= id))
    }

    /// Whether a frame lies before all of them and there is no room for more.
    pub fn are_beyond(&self, id: u64) -> bool {
        self.kept.len() == MOST && self.kept[0].id > id
    }

    /// Makes a frame a reference, or gives it more.
    pub fn give(&mut self, id: u64, low: &Arc<FrameBuffer>, mut given: Given<'_>, scale: usize) {
        let at = self.kept.partition_point(|r| r.id < id);
        if self.kept.get(at).is_none_or(|r| r.id != id) {
            self.kept.insert(at, Reference::new(id, low.clone(), &mut given));
        }
        self.kept[at].take(&mut given, scale);
        self.spare = given.colour.or(self.spare.take());
    }

    /// A colour of HR pictures at `scale`, of one that is made at another.
    pub fn colour(
        &mut self,
        size: (usize, usize),
        (made, scale): (usize, usize),
        make: impl FnOnce(&mut Colour),
    ) -> Colour {
        let spare = self.spare.take().filter(|colour| colour.is_of(size, scale));
        let mut colour = spare.unwrap_or_else(|| Colour::none(size, scale));
        if made == scale {
            make(&mut colour);
        } else {
            let mut larger = Colour::none(size, made);
            make(&mut larger);
            colour.shrink(&larger);
        }
        colour
    }

    /// Drops what is too much.
    pub fn trim(&mut self) {
        let more = self.kept.len().saturating_sub(MOST);
        let mut dropped = self.kept.drain(..more).filter_map(|reference| reference.colour);
        self.spare = dropped.next_back().or(self.spare.take());
    }
}
