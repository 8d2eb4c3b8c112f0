//! Decodes the tiles of a frame (specification §6.4): partitions, blocks, and their prediction and residual.

use crate::DecodeError;
use crate::block::mode_info::{LeftModes, ModeReader};
use crate::block::vectors::TileColumns;
use crate::block::{
    BlockSize, PARTITION_HORIZONTAL, PARTITION_NONE, PARTITION_SPLIT, PARTITION_VERTICAL,
};
use crate::bool_decoder::BoolDecoder;
use crate::frame_buffer::PictureRows;
use crate::info::{Block, MotionVector, PredictionMode};
use crate::kernels::inverse_transform::{
    Shape, TransformKind, TransformSize, add_residual, inverse_transform, inverse_transform_add,
};
use crate::loop_filter::{FilteredBlock, SuperblockEdges};
use crate::predict::{InterBlock, IntraEdges, ReferenceFrame, Scratch, predict, predict_inter};
use crate::residual::quantiser::Dequantiser;
use crate::residual::scan::scan;
use crate::residual::{Coefficients, TokenReader};
use crate::simd::Isa;
use crate::visitor::Visitor;

/// Kind of an intra block's transform, by its mode (`mode2txfm_map`, §6.4.25).
static KINDS: [TransformKind; 10] = [
    TransformKind::DctDct,
    TransformKind::AdstDct,
    TransformKind::DctAdst,
    TransformKind::DctDct,
    TransformKind::AdstAdst,
    TransformKind::AdstDct,
    TransformKind::DctAdst,
    TransformKind::DctAdst,
    TransformKind::AdstDct,
    TransformKind::AdstAdst,
];

/// Whether 4×4 units above have coefficients (`AboveNonzeroContext`), by plane and superblock: one bit for each unit.
#[derive(Debug, Default)]
pub(crate) struct AboveNonzero([Vec<u16>; 3]);

impl AboveNonzero {
    /// Clears the contexts at the start of a tile (`clear_above_context`, §7.4.1).
    pub(crate) fn clear(&mut self, sb_cols: usize) {
        for line in &mut self.0 {
            line.clear();
            line.resize(sb_cols, 0);
        }
    }
}

/// Working memory that frames use one after the other.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) coefficients: Coefficients,
    pub(crate) scratch: Scratch,
    residual: Box<[i16; 1024]>,
}

impl Default for Workspace {
    fn default() -> Self {
        Self {
            coefficients: Coefficients::default(),
            scratch: Scratch::default(),
            residual: Box::new([0; 1024]),
        }
    }
}

/// The inputs and outputs of the decoding of a row of superblocks.
pub(crate) struct Row<'r, 'd, 'p> {
    pub(crate) reader: &'r mut BoolDecoder<'d>,
    /// The row's edges for the loop filter.
    pub(crate) edges: &'r mut [SuperblockEdges],
    /// The picture, in which the row of superblocks above is decoded and not yet filtered.
    pub(crate) picture: &'r mut PictureRows<'p>,
}

/// Decodes the blocks of a frame.
pub(crate) struct TileDecoder<'a, V> {
    pub(crate) isa: Isa,
    pub(crate) modes: ModeReader<'a>,
    pub(crate) references: &'a [Option<ReferenceFrame>; 3],
    /// Dequantisers by segment.
    pub(crate) dequantisers: [Dequantiser; 8],
    pub(crate) lossless: bool,
    pub(crate) above: &'a mut AboveNonzero,
    /// Whether 4×4 units to the left have coefficients (`LeftNonzeroContext`), by plane: one bit for each unit.
    pub(crate) left: [u16; 3],
    pub(crate) workspace: &'a mut Workspace,
    pub(crate) visitor: &'a mut V,
}

/// A plane of a block in 4×4 units of that plane.
#[derive(Clone, Copy)]
struct PlaneBlock {
    plane: usize,
    x4: usize,
    y4: usize,
    width4: usize,
    height4: usize,
    /// The frame's size in 4×4 units, as whole 8×8 luma units.
    columns4: usize,
    rows4: usize,
}

impl PlaneBlock {
    fn new(plane: usize, block: &Block, mi_cols: usize, mi_rows: usize) -> Self {
        let shift = if plane == 0 { 2 } else { 3 };
        let units = if plane == 0 { 2 } else { 1 };
        Self {
            plane,
            x4: usize::from(block.x) >> shift,
            y4: usize::from(block.y) >> shift,
            width4: usize::from(block.width) >> shift,
            height4: usize::from(block.height) >> shift,
            columns4: mi_cols * units,
            rows4: mi_rows * units,
        }
    }

    /// The superblock that a unit is in, and the unit's index there.
    #[inline(always)]
    fn unit(&self, at: usize) -> (usize, usize) {
        if self.plane == 0 { (at >> 4, at & 15) } else { (at >> 3, at & 7) }
    }

    /// The first units beyond the frame, which are not decoded: column and row.
    fn end(&self) -> (usize, usize) {
        ((self.x4 + self.width4).min(self.columns4), (self.y4 + self.height4).min(self.rows4))
    }
}

/// The upper left corner of a transform block, in 4×4 units of its plane.
#[derive(Clone, Copy)]
struct Corner {
    x4: usize,
    y4: usize,
}

/// A mask with the bits of `count` (1 to 16) units from `first` on.
#[inline(always)]
fn units(first: usize, count: usize) -> u16 {
    (((1u32 << count) - 1) << first) as u16
}

impl<V: Visitor> TileDecoder<'_, V> {
    /// Decodes one row of superblocks in one tile column.
    pub(crate) fn superblock_row(
        &mut self,
        row: &mut Row<'_, '_, '_>,
        mi_row: usize,
        tile: TileColumns,
    ) -> Result<(), DecodeError> {
        self.modes.tile = tile;
        self.modes.left = LeftModes::default();
        self.left = [0; 3];
        for mi_col in (tile.first..tile.end).step_by(8) {
            row.edges[mi_col / 8].clear();
            self.square(row, mi_row, mi_col, 3)?;
        }
        if row.reader.overrun() { Err(DecodeError::Truncated) } else { Ok(()) }
    }

    /// Decodes a square of side 8 << `log2` (`decode_partition`, §6.4.3).
    fn square(
        &mut self,
        row: &mut Row<'_, '_, '_>,
        mi_row: usize,
        mi_col: usize,
        log2: usize,
    ) -> Result<(), DecodeError> {
        if mi_row >= self.modes.mi_rows || mi_col >= self.modes.mi_cols {
            return Ok(());
        }
        let partition = self.modes.partition(row.reader, mi_row, mi_col, log2);
        let size = BlockSize::part(log2, partition);
        let half = (1usize << log2) / 2;
        if log2 == 0 {
            self.block(row, mi_row, mi_col, size)?;
        } else {
            match partition {
                PARTITION_NONE => self.block(row, mi_row, mi_col, size)?,
                PARTITION_HORIZONTAL => {
                    self.block(row, mi_row, mi_col, size)?;
                    if mi_row + half < self.modes.mi_rows {
                        self.block(row, mi_row + half, mi_col, size)?;
                    }
                }
                PARTITION_VERTICAL => {
                    self.block(row, mi_row, mi_col, size)?;
                    if mi_col + half < self.modes.mi_cols {
                        self.block(row, mi_row, mi_col + half, size)?;
                    }
                }
                _ => {
                    for (down, right) in [(0, 0), (0, half), (half, 0), (half, half)] {
                        self.square(row, mi_row + down, mi_col + right, log2 - 1)?;
                    }
                }
            }
        }
        if log2 == 0 || partition != PARTITION_SPLIT {
            self.modes.set_partition(mi_row, mi_col, log2, size);
        }
        Ok(())
    }

    /// Decodes a block (`decode_block`, §6.4.4).
    fn block(
        &mut self,
        row: &mut Row<'_, '_, '_>,
        mi_row: usize,
        mi_col: usize,
        size: BlockSize,
    ) -> Result<(), DecodeError> {
        let mut block = self.modes.read(row.reader, mi_row, mi_col, size)?;
        let (mi_cols, mi_rows) = (self.modes.mi_cols, self.modes.mi_rows);
        let planes = [0, 1, 2].map(|plane| PlaneBlock::new(plane, &block, mi_cols, mi_rows));
        if block.skip {
            for p in planes {
                let (superblock, x) = p.unit(p.x4);
                self.above.0[p.plane][superblock] &= !units(x, p.width4);
                self.left[p.plane] &= !units(p.unit(p.y4).1, p.height4);
            }
        }
        if block.is_intra() {
            for p in &planes {
                self.intra_plane(row, &mut block, p);
            }
        } else {
            let usable = |&r: &u8| r == 0 || self.references[usize::from(r - 1)].is_some();
            if !block.references.iter().all(usable) {
                return Err(DecodeError::MissingReference);
            }
            self.predict_inter(row.picture, &block, &planes)?;
            if !block.skip {
                let mut any = false;
                for p in &planes {
                    any |= self.inter_plane(row, &mut block, p);
                }
                // A block without coefficients counts as skipped for its neighbours' contexts
                // and for the loop filter.
                block.skip = !any && !size.below_8x8();
            }
        }
        row.edges[mi_col / 8].add_block(&FilteredBlock {
            row: mi_row & 7,
            col: mi_col & 7,
            width: size.width8(),
            height: size.height8(),
            transform: block.transform,
            chroma_transform: block.chroma_transform,
            skip_inter: block.skip && !block.is_intra(),
            level: block.filter_level,
        });
        self.modes.push(block);
        self.visitor.block(&block, row.picture);
        Ok(())
    }

    fn intra_plane(&mut self, row: &mut Row<'_, '_, '_>, block: &mut Block, p: &PlaneBlock) {
        let size = if p.plane == 0 { block.transform } else { block.chroma_transform };
        let step = 1usize << size as u32;
        let (end_x, end_y) = p.end();
        // The frame's left edge is the tile's for prediction too.
        let left_edge = self.modes.tile.first * if p.plane == 0 { 2 } else { 1 };
        for y4 in (p.y4..end_y).step_by(step) {
            for x4 in (p.x4..end_x).step_by(step) {
                let mode = if p.plane == 0 {
                    block.quarter_modes[((y4 - p.y4) & 1) * 2 + ((x4 - p.x4) & 1)]
                } else {
                    block.chroma_mode
                };
                let at = IntraEdges {
                    x: x4 * 4,
                    y: y4 * 4,
                    side: size.side(),
                    have_left: x4 > left_edge,
                    have_above: y4 > 0,
                    have_right: x4 - p.x4 + step < p.width4,
                    columns: p.columns4 * 4,
                    rows: p.rows4 * 4,
                };
                predict(self.isa, mode, &at, &mut row.picture.planes[p.plane]);
                if !block.skip {
                    let kind = self.kind(p.plane, size, mode);
                    self.transform_block(row, block, p, Corner { x4, y4 }, size, kind);
                }
            }
        }
    }

    fn kind(&self, plane: usize, size: TransformSize, mode: PredictionMode) -> TransformKind {
        if plane > 0 || self.lossless || size == TransformSize::Size32 {
            TransformKind::DctDct
        } else {
            KINDS[(mode as usize).min(9)]
        }
    }

    /// Decodes the residual of an inter block's plane. Returns whether there is any.
    fn inter_plane(
        &mut self,
        row: &mut Row<'_, '_, '_>,
        block: &mut Block,
        p: &PlaneBlock,
    ) -> bool {
        let size = if p.plane == 0 { block.transform } else { block.chroma_transform };
        let step = 1usize << size as u32;
        let (end_x, end_y) = p.end();
        let mut any = false;
        for y4 in (p.y4..end_y).step_by(step) {
            for x4 in (p.x4..end_x).step_by(step) {
                any |= self.transform_block(
                    row,
                    block,
                    p,
                    Corner { x4, y4 },
                    size,
                    TransformKind::DctDct,
                );
            }
        }
        any
    }

    /// Reads the tokens of one transform block, and adds its residual to the prediction.
    #[inline]
    fn transform_block(
        &mut self,
        row: &mut Row<'_, '_, '_>,
        block: &mut Block,
        p: &PlaneBlock,
        Corner { x4, y4 }: Corner,
        size: TransformSize,
        kind: TransformKind,
    ) -> bool {
        let step = 1usize << size as u32;
        let chroma = usize::from(p.plane > 0);
        let ((superblock, x), (_, y)) = (p.unit(x4), p.unit(y4));
        let above = &mut self.above.0[p.plane][superblock];
        let left = &mut self.left[p.plane];
        let (across, down) = (units(x, step), units(y, step));
        let context = usize::from(*above & across != 0) + usize::from(*left & down != 0);
        let inter = usize::from(!block.is_intra());
        let dequantiser = &self.dequantisers[usize::from(block.segment & 7)];
        let mut tokens = TokenReader {
            probabilities: &self.modes.frame.context.coefficients[size as usize][chroma][inter],
            counts: &mut self.modes.counts.coefficients[size as usize][chroma][inter],
            scan: scan(size, kind),
            dequantiser: dequantiser[chroma],
            halve: size == TransformSize::Size32,
            side_log2: size.log2(),
        };
        let extent = tokens.read(row.reader, context, &mut self.workspace.coefficients);
        *above &= !across;
        *left &= !down;
        if extent.count == 0 {
            return false;
        }
        // Units beyond the frame's edge count as empty.
        *above |= units(x, step.min(p.columns4 - x4));
        *left |= units(y, step.min(p.rows4 - y4));
        if chroma == 0 {
            // Transforms scale coefficients by 8, that of 32×32 by 4.
            let shift = if size == TransformSize::Size32 { 4 } else { 6 };
            let energy = (extent.energy >> shift).min(u64::from(u32::MAX)) as u32;
            block.residual_energy = block.residual_energy.saturating_add(energy);
        }
        let plane = &mut row.picture.planes[p.plane];
        let stride = plane.stride();
        let dst = plane.after_mut(x4 * 4, y4 * 4);
        let (cols, rows) = (extent.cols, extent.rows);
        let shape = Shape { size, kind, lossless: self.lossless, cols, rows };
        let coefficients = &mut self.workspace.coefficients.values[..];
        let side = size.side();
        let coefficients = &mut coefficients[..side * side];
        if V::RESIDUAL {
            let residual = &mut self.workspace.residual[..side * side];
            inverse_transform(self.isa, &shape, coefficients, residual);
            self.visitor.residual(p.plane, x4 * 4, y4 * 4, side, residual);
            add_residual(self.isa, residual, side, dst, stride);
        } else {
            inverse_transform_add(self.isa, &shape, coefficients, dst, stride);
        }
        true
    }

    /// Predicts every plane of an inter block from one reference, or as the mean of two (§8.5.2).
    fn predict_inter(
        &mut self,
        picture: &mut PictureRows<'_>,
        block: &Block,
        planes: &[PlaneBlock; 3],
    ) -> Result<(), DecodeError> {
        let divided = block.part_width < 8 || block.part_height < 8;
        for list in 0..=usize::from(block.is_compound()) {
            let reference = usize::from(block.references[list].max(1)) - 1;
            let reference =
                self.references[reference].as_ref().ok_or(DecodeError::MissingReference)?;
            for p in planes {
                let mut inter = InterBlock {
                    plane: p.plane,
                    x: p.x4 * 4,
                    y: p.y4 * 4,
                    // Whole powers of two, as the kernels want them.
                    width: p.width4.min(p.columns4 - p.x4).next_power_of_two() * 4,
                    height: p.height4.min(p.rows4 - p.y4) * 4,
                    bounds: bounds(p),
                    vector: block.vectors[3][list],
                    filter: block.filter,
                    average: list == 1,
                };
                let plane = &mut picture.planes[p.plane];
                let scratch = &mut self.workspace.scratch;
                if divided && p.plane > 0 {
                    inter.vector = mean(block.vectors.map(|v| v[list]));
                    predict_inter(self.isa, &inter, reference, plane, scratch);
                } else if divided {
                    // Scaled positions are rounded for every quarter by itself.
                    (inter.width, inter.height) = if reference.is_scaled() {
                        (4, 4)
                    } else {
                        (usize::from(block.part_width), usize::from(block.part_height))
                    };
                    for y in (0..8).step_by(inter.height) {
                        for x in (0..8).step_by(inter.width) {
                            let vector = block.vectors[y / 4 * 2 + x / 4][list];
                            let part =
                                InterBlock { x: inter.x + x, y: inter.y + y, vector, ..inter };
                            predict_inter(self.isa, &part, reference, plane, scratch);
                        }
                    }
                } else {
                    predict_inter(self.isa, &inter, reference, plane, scratch);
                }
            }
        }
        Ok(())
    }
}

/// The bounds for a block's vectors, in 1/16 sample (§8.5.2.3): the frame's edges, the block's size and 4 samples
/// beyond.
fn bounds(p: &PlaneBlock) -> [i32; 4] {
    let axis = |at: usize, own: usize, all: usize| {
        let reach = (4 + own as i32 * 4) * 16;
        let low = -(at as i32 * 64) - reach;
        let high = (all as i32 - own as i32 - at as i32) * 64 + reach - 16;
        (low, high)
    };
    let (left, right) = axis(p.x4, p.width4, p.columns4);
    let (top, bottom) = axis(p.y4, p.height4, p.rows4);
    [left, right, top, bottom]
}

/// The chroma vector of a divided square: the mean of its four vectors, rounded away from zero.
fn mean(vectors: [MotionVector; 4]) -> MotionVector {
    let mean = |c: fn(&MotionVector) -> i16| {
        let sum: i32 = vectors.iter().map(|v| i32::from(c(v))).sum();
        ((if sum < 0 { sum - 2 } else { sum + 2 }) / 4) as i16
    };
    MotionVector { x: mean(|v| v.x), y: mean(|v| v.y) }
}
