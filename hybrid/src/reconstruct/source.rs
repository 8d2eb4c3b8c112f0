//! What fields point to: the complete detail of an anchored frame, with its low picture.

use std::sync::Arc;

use super::carry::{Area, WHOLE, fetch_add, misfit, weigh, weight};
use super::field::{CELL, Cell, Field};
use crate::anchor::tiles::{TILE, TileMap};
use crate::detail::Detail;
use crate::resample::Samples;
use crate::simd::Isa;
use crate::vp9::FrameBuffer;

/// Sources that are kept: fields of long-lived references may still point to older ones.
pub(crate) const MOST: usize = 4;

/// From this weight on captured detail is not displaced by enhanced.
const FITS: i16 = WHOLE / 8;

/// Detail that betters a cell by less, in 1/256 square grey level, is left out.
const FLOOR: u64 = 8;

/// The detail of one frame beyond what its low picture lets expect.
#[derive(Debug)]
pub(crate) struct Source {
    /// Its number, from 1 on.
    pub id: u32,
    /// Its low picture.
    pub low: Arc<FrameBuffer>,
    /// Detail at HR size.
    pub rest: Detail,
    /// Mean energy of the detail by cell, in 1/256 square grey level.
    energy: Vec<u32>,
    /// By cell: whether its detail is the publisher's own.
    captured: Vec<bool>,
}

impl Source {
    /// The cell of this source around the place that a cell's vector points to.
    fn place(&self, column: usize, row: usize, cell: Cell) -> usize {
        let (width, height) = (self.low.width() as i32, self.low.height() as i32);
        let place = |at: usize, v: i16, end: i32| {
            let centre = (at * CELL + CELL / 2) as i32 + (i32::from(v) >> 3);
            centre.clamp(0, end - 1) as usize / CELL
        };
        let column = place(column, cell.vector.x, width);
        let row = place(row, cell.vector.y, height);
        row * (width as usize).div_ceil(CELL) + column
    }
}

/// The sources of a stream, at most [`MOST`].
#[derive(Debug, Default)]
pub(crate) struct Sources {
    kept: Vec<Source>,
    last: u32,
}

impl Sources {
    /// The source of a number, unless it is gone.
    pub fn get(&self, id: u32) -> Option<&Source> {
        self.kept.iter().find(|s| s.id == id)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// Makes a source of an anchor's detail, of which only the given tiles count: elsewhere the frame's own
    /// field says what is there already. Returns its number.
    pub fn add(
        &mut self,
        isa: Isa,
        low: Arc<FrameBuffer>,
        mut rest: Detail,
        scale: usize,
        given: &Tiled<'_>,
    ) -> u32 {
        let cells = low.width().div_ceil(CELL) * low.height().div_ceil(CELL);
        let mut captured = vec![false; cells];
        given.mark(low.width(), &mut captured);
        if !given.tiles.is_full() || given.keep.is_some() {
            self.fill(isa, &low, &mut rest, scale, given, None, &mut captured);
        }
        self.last = self.last.checked_add(1).unwrap_or(1);
        let energy = energies(&rest, low.width(), low.height(), scale);
        if self.kept.len() == MOST {
            self.kept.remove(0);
        }
        self.kept.push(Source { id: self.last, low, rest, energy, captured });
        self.last
    }

    /// Takes further tiles of a source's own frame. Whether the source is still there.
    pub fn add_tiles(&mut self, id: u32, detail: &Detail, scale: usize, given: &Tiled<'_>) -> bool {
        let Some(source) = self.kept.iter_mut().find(|s| s.id == id) else { return false };
        if let Some(change) = given.change {
            for (d, &c) in source.rest.samples_mut().iter_mut().zip(change.samples()) {
                *d = d.saturating_add(c);
            }
        }
        let (width, side) = (detail.width(), TILE * scale);
        for (column, row) in given.tiles.iter() {
            let columns = column * side..((column + 1) * side).min(width);
            for y in row * side..((row + 1) * side).min(detail.height()) {
                source.rest.row_mut(y)[columns.clone()]
                    .copy_from_slice(&detail.row(y)[columns.clone()]);
            }
        }
        source.energy = energies(&source.rest, source.low.width(), source.low.height(), scale);
        given.mark(source.low.width(), &mut source.captured);
        true
    }

    /// Makes a source anew outside the tiles that were given to it, and in the cells to `keep`, where its frame's
    /// detail comes from elsewhere now, as `field` says.
    pub fn refill(
        &mut self,
        isa: Isa,
        id: u32,
        scale: usize,
        given: &TileMap,
        field: &Field,
        keep: Option<&[bool]>,
    ) {
        let Some(at) = self.kept.iter().position(|s| s.id == id) else { return };
        let source = &mut self.kept[at];
        let (low, mut rest) = (source.low.clone(), std::mem::take(&mut source.rest));
        let mut captured = std::mem::take(&mut source.captured);
        let given = Tiled { tiles: given, field, change: None, keep, captured: None };
        self.fill(isa, &low, &mut rest, scale, &given, Some(id), &mut captured);
        self.kept[at].energy = energies(&rest, low.width(), low.height(), scale);
        (self.kept[at].rest, self.kept[at].captured) = (rest, captured);
    }

    /// By cell of some tiles, whether the frame of a field shows detail of the publisher's own there that still fits:
    /// what super-resolution makes of the low picture knows less. `None` where there is none.
    pub fn fitting(
        &self,
        isa: Isa,
        low: &FrameBuffer,
        field: &Field,
        tiles: &TileMap,
    ) -> Option<Vec<bool>> {
        if !self.kept.iter().any(|source| source.captured.contains(&true)) {
            return None;
        }
        let fits = |(i, &cell): (usize, &Cell)| {
            let (column, row) = (i % field.columns(), i / field.columns());
            tiles.contains(column * CELL / TILE, row * CELL / TILE)
                && self.at(isa, low, column, row, cell).from.is_some_and(|(source, weight)| {
                    weight >= FITS && source.captured[source.place(column, row, cell)]
                })
        };
        Some(field.cells().iter().enumerate().map(fits).collect())
    }

    /// Puts into the cells outside the given tiles, and those to keep, what the frame shows there; cells that refer to
    /// the source itself, `own`, stay.
    #[allow(clippy::too_many_arguments)]
    fn fill(
        &self,
        isa: Isa,
        low: &FrameBuffer,
        rest: &mut Detail,
        scale: usize,
        given: &Tiled<'_>,
        own: Option<u32>,
        captured: &mut [bool],
    ) {
        let (stride, field) = (rest.width(), given.field);
        for (i, &cell) in field.cells().iter().enumerate() {
            let (column, row) = (i % field.columns(), i / field.columns());
            let inside = given.tiles.contains(column * CELL / TILE, row * CELL / TILE)
                && given.keep.is_none_or(|keep| !keep[i]);
            if inside || own == Some(cell.source) {
                continue;
            }
            let at = self.at(isa, low, column, row, cell);
            let area = at.area.scaled(scale);
            let first = area.y * stride + area.x;
            let lines = rest.samples_mut()[first..].chunks_mut(stride).take(area.height);
            for (y, line) in lines.enumerate() {
                match (&at.from, given.change) {
                    (Some((_, weight)), Some(change)) => {
                        let change = &change.row(area.y + y)[area.x..];
                        weigh(&mut line[..area.width], change, *weight);
                    }
                    _ => line[..area.width].fill(0),
                }
            }
            captured[i] = false;
            if let Some((source, weight)) = at.from {
                captured[i] = source.captured[source.place(column, row, cell)];
                let out = &mut rest.samples_mut()[first..];
                fetch_add(isa, &source.rest, area, cell.vector, scale, weight, out, stride);
            }
        }
    }

    /// A cell of a low picture: its area there, and the source of its detail with what is to be kept of it.
    pub fn at(
        &self,
        isa: Isa,
        low: &FrameBuffer,
        column: usize,
        row: usize,
        cell: Cell,
    ) -> Place<'_> {
        let (x, y) = (column * CELL, row * CELL);
        let area =
            Area { x, y, width: CELL.min(low.width() - x), height: CELL.min(low.height() - y) };
        let size = (low.width(), low.height());
        let source = (cell.source != 0)
            .then(|| self.get(cell.source))
            .flatten()
            .filter(|s| (s.low.width(), s.low.height()) == size);
        let from = source.and_then(|source| {
            let now = Samples::from(&low.planes()[0]);
            let then = Samples::from(&source.low.planes()[0]);
            let energy = source.energy[source.place(column, row, cell)];
            // Detail can better the picture by no more than its energy, and does by the kept part of that.
            let gain = |kept: i16| u64::from(energy) * kept as u64 / WHOLE as u64;
            (gain(WHOLE) >= FLOOR)
                .then(|| weight(energy, misfit(isa, now, then, area, cell.vector)))
                .filter(|&kept| gain(kept) >= FLOOR)
                .map(|kept| (source, kept))
        });
        Place { area, from }
    }
}

/// What an anchor of tiles gives, and what its frame shows elsewhere.
pub(crate) struct Tiled<'a> {
    pub tiles: &'a TileMap,
    /// Where the frame's detail came from before.
    pub field: &'a Field,
    /// By how much less the filters expect since the anchor has taught them: what they no longer
    /// add has to come from the source.
    pub change: Option<&'a Detail>,
    /// By cell: what the frame shows is to stay, though a tile is given.
    pub keep: Option<&'a [bool]>,
    /// By cell: whether what is given is the publisher's own; `None` where none of it is.
    pub captured: Option<&'a [bool]>,
}

impl Tiled<'_> {
    /// Marks the given cells as the publisher's own, or not.
    fn mark(&self, width: usize, captured: &mut [bool]) {
        let columns = width.div_ceil(CELL);
        for (i, captured) in captured.iter_mut().enumerate() {
            if self.tiles.contains(i % columns * CELL / TILE, i / columns * CELL / TILE) {
                *captured = self.captured.is_some_and(|own| own[i]);
            }
        }
    }
}

/// See [`Sources::at`].
pub(crate) struct Place<'a> {
    /// In low samples.
    pub area: Area,
    /// The source and the weight of its detail.
    pub from: Option<(&'a Source, i16)>,
}

impl Area {
    /// The same area of the HR picture.
    pub fn scaled(self, scale: usize) -> Self {
        let Self { x, y, width, height } = self;
        Self { x: x * scale, y: y * scale, width: width * scale, height: height * scale }
    }
}

/// Mean energy of detail by cell.
fn energies(rest: &Detail, lr_width: usize, lr_height: usize, scale: usize) -> Vec<u32> {
    let (columns, rows) = (lr_width.div_ceil(CELL), lr_height.div_ceil(CELL));
    let side = CELL * scale;
    let mut sums = vec![(0u64, 0u64); columns * rows];
    for y in 0..rest.height() {
        let row = &mut sums[y / side * columns..][..columns];
        for (sum, part) in row.iter_mut().zip(rest.row(y).chunks(side)) {
            sum.0 += part.iter().map(|&d| i64::from(d).pow(2) as u64).sum::<u64>();
            sum.1 += part.len() as u64;
        }
    }
    sums.into_iter().map(|(sum, n)| (sum / n.max(1)).min(u64::from(u32::MAX)) as u32).collect()
}
