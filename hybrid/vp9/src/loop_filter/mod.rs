//! The loop filter: which edges of a superblock are filtered, how far, and in which order.
//!
//! Source: VP9 specification 8.8 for 8-bit 4:2:0 pictures. The decoder tells every block to the
//! [`SuperblockEdges`] of its superblock while it is decoded; [`filter_superblock`] then filters
//! the superblock with the kernels of [`crate::kernels::loop_filter`]. Positions and sizes
//! are in units of 8x8 luma samples ("mi" in the specification).
//!
//! Superblocks are filtered in raster order. Filtering one changes up to 8 samples to its left
//! and above it, so a row of superblocks is final only after the row below was filtered.

use crate::kernels::inverse_transform::TransformSize;
use crate::kernels::loop_filter::{Area, Direction, EdgeMasks, Levels, filter_edges};
use crate::simd::Isa;

pub use crate::kernels::loop_filter::Limits;

#[cfg(test)]
mod tests;

/// The bit of place 0 of every line.
const EACH_LINE: u64 = 0x0101_0101_0101_0101;
/// The bits of lines 32 samples apart: there 4x4 transforms get the filter of 8x8 ones.
const LINES_OF_32: u64 = 0x0000_00ff_0000_00ff;
/// The bits of lines 16 samples apart.
const LINES_OF_16: u64 = 0x00ff_00ff_00ff_00ff;

/// Edges of one plane type in one direction.
#[derive(Debug, Clone, Copy, Default)]
struct Edges {
    masks: EdgeMasks,
    levels: Levels,
}

/// The extent of a rectangle of 8x8 units in one direction.
#[derive(Clone, Copy)]
struct Span {
    line: usize,
    lines: usize,
    place: usize,
    places: usize,
}

/// The edges of one superblock that are to be filtered. A decoder that filters each superblock before it clears the
/// edges needs only one. It holds no heap memory.
#[derive(Debug, Clone, Default)]
pub struct SuperblockEdges {
    /// The edges of the luma plane: vertical ones, then horizontal ones.
    luma: [Edges; 2],
    chroma: [Edges; 2],
}

/// One decoded block, as the loop filter sees it.
#[derive(Debug, Clone, Copy)]
pub struct FilteredBlock {
    /// Row of the block inside the superblock, 0 to 7, in 8×8 units.
    pub row: usize,
    /// Column of the block inside the superblock, 0 to 7, in 8×8 units.
    pub col: usize,
    /// Width in 8×8 units, 1 to 8. The block may reach beyond the picture's edge, not beyond the superblock's.
    pub width: usize,
    /// Height in 8×8 units, 1 to 8. The block may reach beyond the picture's edge, not beyond the superblock's.
    pub height: usize,
    /// Size of the luma transforms.
    pub transform: TransformSize,
    /// Size of the chroma transforms.
    pub chroma_transform: TransformSize,
    /// Whether the block is an inter block without coefficients: only its outer edges are filtered.
    pub skip_inter: bool,
    /// Level of the filter with all deltas applied, 0 (off) to 63.
    pub level: u8,
}

/// One whole plane of the picture.
#[derive(Debug)]
pub struct PlaneMut<'a> {
    /// The samples, with rows and columns up to a whole number of superblocks.
    pub samples: &'a mut [u8],
    /// Distance from row to row, in samples.
    pub stride: usize,
}

/// The place of a superblock in its picture.
#[derive(Debug, Clone, Copy)]
pub struct Position {
    /// Row of the superblock's first block, a multiple of 8.
    pub mi_row: usize,
    /// Column of the superblock's first block, a multiple of 8.
    pub mi_col: usize,
    /// Number of rows of the picture, in 8×8 units.
    pub mi_rows: usize,
    /// Number of columns of the picture, in 8×8 units.
    pub mi_cols: usize,
}

impl SuperblockEdges {
    /// Forgets all blocks.
    #[inline]
    pub fn clear(&mut self) {
        for edges in self.luma.iter_mut().chain(&mut self.chroma) {
            edges.masks = EdgeMasks::default();
        }
    }

    /// Adds a decoded block.
    ///
    /// Chroma follows the blocks that begin on even rows and columns, as specification 8.8.2 has it.
    #[inline]
    pub fn add_block(&mut self, block: &FilteredBlock) {
        let FilteredBlock { row, col, width, height, .. } = *block;
        debug_assert!(row + height <= 8 && col + width <= 8 && width > 0 && height > 0);
        if block.level == 0 {
            return;
        }
        let add = |edges: &mut [Edges; 2], size, row, col, height, width| {
            let [vertical, horizontal] = edges;
            let span = Span { line: col, lines: width, place: row, places: height };
            vertical.add(span, size, block.skip_inter, block.level);
            let span = Span { line: row, lines: height, place: col, places: width };
            horizontal.add(span, size, block.skip_inter, block.level);
        };
        add(&mut self.luma, block.transform, row, col, height, width);
        if row % 2 == 0 && col % 2 == 0 {
            let (height, width) = (height.div_ceil(2), width.div_ceil(2));
            add(&mut self.chroma, block.chroma_transform, row / 2, col / 2, height, width);
        }
    }
}

impl Edges {
    #[inline]
    fn add(&mut self, span: Span, size: TransformSize, skip_inter: bool, level: u8) {
        let Span { line, lines, place, places } = span;
        let row = (0xff >> (8 - places)) << place;
        let area = ((EACH_LINE >> (64 - 8 * lines)) * row) << (8 * line);
        let edge = row << (8 * line);
        let inside = if skip_inter { 0 } else { area };
        let masks = &mut self.masks;
        match size {
            TransformSize::Size32 => masks.wide |= edge | (inside & LINES_OF_32),
            TransformSize::Size16 => masks.wide |= edge | (inside & LINES_OF_16),
            TransformSize::Size8 => masks.medium |= edge | inside,
            TransformSize::Size4 => {
                masks.medium |= (edge | inside) & LINES_OF_32;
                masks.narrow |= (edge | inside) & !LINES_OF_32;
                masks.inner |= inside;
            }
        }
        let bytes = (u64::MAX >> (64 - 8 * places)) << (8 * place);
        let level = (EACH_LINE * u64::from(level)) & bytes;
        for levels in &mut self.levels[line..line + lines] {
            *levels = (*levels & !bytes) | level;
        }
    }
}

/// The bits of the first `lines` lines and `places` places.
fn first(lines: usize, places: usize) -> u64 {
    let row = (1u64 << places) - 1;
    if lines == 0 { 0 } else { (EACH_LINE >> (64 - 8 * lines)) * row }
}

/// Filters one superblock in all planes: the vertical edges of a plane, then the horizontal ones.
///
/// # Panics
///
/// When a plane does not hold the whole superblock.
pub fn filter_superblock(
    isa: Isa,
    edges: &SuperblockEdges,
    limits: &Limits,
    planes: &mut [PlaneMut; 3],
    at: Position,
) {
    let rows = at.mi_rows.saturating_sub(at.mi_row).min(8);
    let cols = at.mi_cols.saturating_sub(at.mi_col).min(8);
    let [luma, chroma @ ..] = planes;
    let starts = [at.mi_col == 0, at.mi_row == 0];
    let bounds = [(cols, rows), (rows, cols)];

    let mut masks = edges.luma.map(|e| e.masks);
    for ((masks, (lines, places)), start) in masks.iter_mut().zip(bounds).zip(starts) {
        let inside = first(lines, places);
        masks.inner &= inside;
        masks.keep(inside, start);
    }
    let offset = 8 * (at.mi_row * luma.stride + at.mi_col);
    filter_plane(isa, &edges.luma, &masks, limits, luma, offset, 8);

    let mut masks = edges.chroma.map(|e| e.masks);
    for ((masks, (lines, places)), start) in masks.iter_mut().zip(bounds).zip(starts) {
        masks.keep(first(lines.div_ceil(2), places.div_ceil(2)), start);
        if lines % 2 == 1 {
            // Only 4 samples of the last line's blocks are in the picture.
            let last = 0xff << (8 * (lines / 2));
            masks.medium |= masks.wide & last;
            masks.wide &= !last;
        }
    }
    // The inner edges lie outside the picture in its last column or row if that is odd. In the
    // last column, the horizontal ones are left out too; in the last row, not the vertical ones.
    masks[0].inner &= first(cols / 2, rows.div_ceil(2));
    masks[1].inner &= first(rows / 2, cols / 2);
    for plane in chroma {
        let offset = 4 * (at.mi_row * plane.stride + at.mi_col);
        filter_plane(isa, &edges.chroma, &masks, limits, plane, offset, 4);
    }
}

impl EdgeMasks {
    /// Drops edges on lines outside the picture, and those on its border if it starts here.
    fn keep(&mut self, inside: u64, start: bool) {
        let inside = if start { inside & !0xff } else { inside };
        self.wide &= inside;
        self.medium &= inside;
        self.narrow &= inside;
    }
}

fn filter_plane(
    isa: Isa,
    edges: &[Edges; 2],
    masks: &[EdgeMasks; 2],
    limits: &Limits,
    plane: &mut PlaneMut,
    offset: usize,
    units: usize,
) {
    let mut area = Area { samples: plane.samples, offset, stride: plane.stride, units };
    let directions = [Direction::Vertical, Direction::Horizontal];
    for ((edges, masks), direction) in edges.iter().zip(masks).zip(directions) {
        filter_edges(isa, direction, masks, &edges.levels, limits, &mut area);
    }
}
