//! Reads what the bitstream says about a block before its residual (specification §6.4.5 – §6.4.20).

use super::reference_context::{Neighbour, Neighbours};
use super::vectors::{Candidates, Place, TileColumns, uses_high_precision};
use super::{BlockSize, PARTITION_HORIZONTAL, PARTITION_SPLIT, PARTITION_VERTICAL};
use crate::DecodeError;
use crate::bool_decoder::BoolDecoder;
use crate::header::{CompressedHeader, FrameHeader, ReferenceMode, SegmentFeatures, TxMode};
use crate::info::{Block, FrameInfo, MotionVector, PredictionMode};
use crate::kernels::inverse_transform::TransformSize;
use crate::probability::{Counts, FrameContext, MotionCounts, MotionProbs, defaults, trees};

/// Bound of a vector's components, in 1/8 sample: all are smaller (`MV_UPP`).
const MAX_VECTOR: i32 = 1 << 14;

/// Contexts along the upper edge of the tiles, kept from frame to frame for their memory.
#[derive(Debug, Default)]
pub(crate) struct AboveModes {
    partition: Vec<u8>,
    predicted_segment: Vec<u8>,
}

impl AboveModes {
    /// Clears the contexts at the start of a tile (`clear_above_context`, §7.4.1).
    pub(crate) fn clear(&mut self, sb_cols: usize) {
        for line in [&mut self.partition, &mut self.predicted_segment] {
            line.clear();
            line.resize(sb_cols * 8, 0);
        }
    }
}

/// Contexts along the left edge of a row of superblocks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LeftModes {
    partition: [u8; 8],
    predicted_segment: [u8; 8],
}

/// The inputs that do not change within a frame.
pub(crate) struct FrameModes<'a> {
    pub(crate) header: &'a FrameHeader,
    pub(crate) compressed: CompressedHeader,
    pub(crate) context: &'a FrameContext,
    pub(crate) previous: Option<&'a FrameInfo>,
    /// Quantiser index by segment.
    pub(crate) quantisers: [u8; 8],
    /// Loop filter level (§8.8.1) by segment, reference and kind of vector (zero, other).
    pub(crate) levels: [[[u8; 2]; 4]; 8],
}

/// Reads the modes of the blocks of a frame.
pub(crate) struct ModeReader<'a> {
    pub(crate) frame: FrameModes<'a>,
    pub(crate) info: &'a mut FrameInfo,
    pub(crate) counts: &'a mut Counts,
    pub(crate) segment_ids: &'a mut [u8],
    pub(crate) above: &'a mut AboveModes,
    pub(crate) left: LeftModes,
    pub(crate) mi_rows: usize,
    pub(crate) mi_cols: usize,
    pub(crate) tile: TileColumns,
}

impl ModeReader<'_> {
    /// Reads `partition` (§6.4.3) of the square of side 8 << `log2`.
    #[inline]
    pub(crate) fn partition(
        &mut self,
        r: &mut BoolDecoder<'_>,
        mi_row: usize,
        mi_col: usize,
        log2: usize,
    ) -> u8 {
        let bit = 3 - log2;
        let above = self.above.partition[mi_col] >> bit & 1;
        let left = self.left.partition[mi_row & 7] >> bit & 1;
        let context = log2 * 4 + usize::from(2 * left + above);
        let p = if self.frame.header.is_intra() {
            &defaults::KEY_PARTITION[context]
        } else {
            &self.frame.context.partition[context]
        };
        let half = (1usize << log2) / 2;
        // An 8×8 square always has both halves.
        let has_rows = log2 == 0 || mi_row + half < self.mi_rows;
        let has_cols = log2 == 0 || mi_col + half < self.mi_cols;
        let partition = match (has_rows, has_cols) {
            (true, true) => r.read_tree(&trees::PARTITION, p),
            (false, true) if !r.read_bool(p[1]) => PARTITION_HORIZONTAL,
            (true, false) if !r.read_bool(p[2]) => PARTITION_VERTICAL,
            _ => PARTITION_SPLIT,
        };
        self.counts.partition[context][usize::from(partition)] += 1;
        partition
    }

    /// Notes the size of the parts of a square that is not cut further.
    #[inline]
    pub(crate) fn set_partition(
        &mut self,
        mi_row: usize,
        mi_col: usize,
        log2: usize,
        size: BlockSize,
    ) {
        let wide = 1usize << log2;
        let end = (mi_col + wide).min(self.above.partition.len());
        self.above.partition[mi_col..end].fill(15 >> size.width4_log2());
        let row = mi_row & 7;
        self.left.partition[row..(row + wide).min(8)].fill(15 >> size.height4_log2());
    }

    /// Reads the mode info of one block (§6.4.5).
    pub(crate) fn read(
        &mut self,
        r: &mut BoolDecoder<'_>,
        mi_row: usize,
        mi_col: usize,
        size: BlockSize,
    ) -> Result<Block, DecodeError> {
        let place = Place {
            mi_row,
            mi_col,
            size,
            mi_rows: self.mi_rows,
            mi_cols: self.mi_cols,
            tile: self.tile,
        };
        let mut block = Block {
            x: (mi_col * 8) as u16,
            y: (mi_row * 8) as u16,
            width: size.width8() as u8 * 8,
            height: size.height8() as u8 * 8,
            part_width: 4 << size.width4_log2(),
            part_height: 4 << size.height4_log2(),
            ..Block::default()
        };
        let neighbours = [
            (mi_row > 0).then(|| (mi_row - 1) * self.mi_cols + mi_col),
            (mi_col > self.tile.first).then(|| mi_row * self.mi_cols + mi_col - 1),
        ]
        .map(|at| at.and_then(|at| self.info.grid.get(at)).map(|&i| i as usize));
        if self.frame.header.is_intra() {
            self.intra_frame(r, &mut block, &place, neighbours);
        } else {
            self.inter_frame(r, &mut block, &place, neighbours)?;
        }
        let segment = usize::from(block.segment & 7);
        block.quantiser = self.frame.quantisers[segment];
        let moving = usize::from(block.mode != PredictionMode::ZeroMv);
        block.filter_level = self.frame.levels[segment][usize::from(block.references[0])][moving];
        Ok(block)
    }

    /// Adds a finished block to the frame's info.
    #[inline]
    pub(crate) fn push(&mut self, block: Block) {
        let index = self.info.blocks.len() as u32;
        let (row, col) = (usize::from(block.y / 8), usize::from(block.x / 8));
        let rows = usize::from(block.height / 8).min(self.mi_rows - row);
        let cols = usize::from(block.width / 8).min(self.mi_cols - col);
        for r in row..row + rows {
            self.info.grid[r * self.mi_cols + col..][..cols].fill(index);
        }
        self.info.blocks.push(block);
    }

    fn neighbours(&self, at: [Option<usize>; 2]) -> Neighbours {
        let [above, left] = at.map(|i| {
            let block = self.info.blocks.get(i?)?;
            Some(Neighbour {
                references: block.references,
                filter: block.filter,
                transform: block.transform as u8,
                skip: block.skip,
            })
        });
        Neighbours { above, left }
    }

    fn features(&self, segment: u8) -> SegmentFeatures {
        let segmentation = &self.frame.header.segmentation;
        if segmentation.enabled {
            segmentation.features[usize::from(segment & 7)]
        } else {
            SegmentFeatures::default()
        }
    }

    /// Reads `intra_frame_mode_info` (§6.4.6).
    fn intra_frame(
        &mut self,
        r: &mut BoolDecoder<'_>,
        block: &mut Block,
        place: &Place,
        at: [Option<usize>; 2],
    ) {
        let neighbours = self.neighbours(at);
        let segmentation = &self.frame.header.segmentation;
        if segmentation.enabled && segmentation.update_map {
            block.segment = r.read_tree(&trees::SEGMENT, &segmentation.tree);
            self.set_segment(place, block.segment);
        }
        self.read_skip(r, block, &neighbours);
        self.read_transform(r, block, place.size, &neighbours, true);
        let modes = |i: Option<usize>| {
            i.and_then(|i| self.info.blocks.get(i))
                .map_or([PredictionMode::Dc; 4], |b| b.quarter_modes)
        };
        let (above, left) = (modes(at[0]), modes(at[1]));
        let mut quarters = [PredictionMode::Dc; 4];
        let (wide, high) = (block.part_width >= 8, block.part_height >= 8);
        for (row, col) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let q = 2 * row + col;
            quarters[q] = if row == 1 && high {
                quarters[q - 2]
            } else if col == 1 && wide {
                quarters[q - 1]
            } else {
                let a = if row == 0 { above[2 + col] } else { quarters[q - 2] };
                let l = if col == 0 { left[2 * row + 1] } else { quarters[q - 1] };
                let p = &defaults::KEY_Y_MODE[a as usize][l as usize];
                intra_mode(r.read_tree(&trees::INTRA_MODE, p))
            };
        }
        block.quarter_modes = quarters;
        block.mode = quarters[3];
        let p = &defaults::KEY_UV_MODE[block.mode as usize];
        block.chroma_mode = intra_mode(r.read_tree(&trees::INTRA_MODE, p));
    }

    /// Reads `inter_frame_mode_info` (§6.4.11).
    fn inter_frame(
        &mut self,
        r: &mut BoolDecoder<'_>,
        block: &mut Block,
        place: &Place,
        at: [Option<usize>; 2],
    ) -> Result<(), DecodeError> {
        let neighbours = self.neighbours(at);
        block.segment = self.inter_segment(r, place);
        let features = self.features(block.segment);
        self.read_skip(r, block, &neighbours);
        let inter = if let Some(reference) = features.reference {
            reference != 0
        } else {
            let context = neighbours.is_inter();
            let inter = r.read_bool(self.frame.context.is_inter[context]);
            self.counts.is_inter[context][usize::from(inter)] += 1;
            inter
        };
        let select = !block.skip || !inter;
        self.read_transform(r, block, place.size, &neighbours, select);
        if inter {
            self.inter_block(r, block, place, &neighbours, &features)
        } else {
            self.intra_block(r, block, place.size);
            Ok(())
        }
    }

    fn read_skip(&mut self, r: &mut BoolDecoder<'_>, block: &mut Block, neighbours: &Neighbours) {
        if self.features(block.segment).skip {
            block.skip = true;
        } else {
            let context = neighbours.skip();
            block.skip = r.read_bool(self.frame.context.skip[context]);
            self.counts.skip[context][usize::from(block.skip)] += 1;
        }
    }

    /// Reads `tx_size` (§6.4.9).
    fn read_transform(
        &mut self,
        r: &mut BoolDecoder<'_>,
        block: &mut Block,
        size: BlockSize,
        neighbours: &Neighbours,
        select: bool,
    ) {
        let largest = size.largest_transform();
        let transform = match self.frame.compressed.tx_mode {
            TxMode::Largest(mode) => mode.min(largest),
            TxMode::Select if !select || size.below_8x8() => largest,
            TxMode::Select => {
                let context = neighbours.transform(largest);
                let (p, c) = (self.frame.context, &mut *self.counts);
                match largest {
                    1 => {
                        let t = r.read_tree(&trees::TX_8X8, &p.tx_8x8[context]);
                        c.tx_8x8[context][usize::from(t)] += 1;
                        t
                    }
                    2 => {
                        let t = r.read_tree(&trees::TX_16X16, &p.tx_16x16[context]);
                        c.tx_16x16[context][usize::from(t)] += 1;
                        t
                    }
                    _ => {
                        let t = r.read_tree(&trees::TX_32X32, &p.tx_32x32[context]);
                        c.tx_32x32[context][usize::from(t)] += 1;
                        t
                    }
                }
            }
        };
        let chroma = transform.min(size.largest_chroma_transform());
        block.transform = TransformSize::ALL[usize::from(transform)];
        block.chroma_transform = TransformSize::ALL[usize::from(chroma)];
    }

    /// The ranges of the segment map that a block covers, row by row.
    fn map_rows(&self, place: &Place) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let cols = place.size.width8().min(self.mi_cols - place.mi_col);
        let rows = place.size.height8().min(self.mi_rows - place.mi_row);
        let (stride, row, col) = (self.mi_cols, place.mi_row, place.mi_col);
        (row..row + rows).map(move |r| r * stride + col..r * stride + col + cols)
    }

    fn set_segment(&mut self, place: &Place, segment: u8) {
        for row in self.map_rows(place) {
            self.segment_ids[row].fill(segment);
        }
    }

    /// Reads `inter_segment_id` (§6.4.12).
    fn inter_segment(&mut self, r: &mut BoolDecoder<'_>, place: &Place) -> u8 {
        let segmentation = &self.frame.header.segmentation;
        if !segmentation.enabled {
            return 0;
        }
        let read = segmentation.update_map && !segmentation.temporal_update;
        let predicted = if read {
            0
        } else {
            let ids = self.map_rows(place).flat_map(|row| self.segment_ids[row].iter().copied());
            ids.min().unwrap_or(0)
        };
        if !segmentation.update_map {
            return predicted;
        }
        let segment = if segmentation.temporal_update {
            let (row, col) = (place.mi_row & 7, place.mi_col);
            let context = self.left.predicted_segment[row] + self.above.predicted_segment[col];
            let hit = r.read_bool(segmentation.predicted[usize::from(context.min(2))]);
            let end = (col + place.size.width8()).min(self.above.predicted_segment.len());
            self.above.predicted_segment[col..end].fill(u8::from(hit));
            let end = (row + place.size.height8()).min(8);
            self.left.predicted_segment[row..end].fill(u8::from(hit));
            if hit { predicted } else { r.read_tree(&trees::SEGMENT, &segmentation.tree) }
        } else {
            r.read_tree(&trees::SEGMENT, &segmentation.tree)
        };
        self.set_segment(place, segment);
        segment
    }

    /// Reads `intra_block_mode_info` (§6.4.15).
    fn intra_block(&mut self, r: &mut BoolDecoder<'_>, block: &mut Block, size: BlockSize) {
        let group = size.group();
        let mut quarters = [PredictionMode::Dc; 4];
        let (wide, high) = (block.part_width >= 8, block.part_height >= 8);
        for q in 0..4 {
            quarters[q] = if q >= 2 && high {
                quarters[q - 2]
            } else if q % 2 == 1 && wide {
                quarters[q - 1]
            } else {
                let mode = r.read_tree(&trees::INTRA_MODE, &self.frame.context.y_mode[group]);
                self.counts.y_mode[group][usize::from(mode)] += 1;
                intra_mode(mode)
            };
        }
        block.quarter_modes = quarters;
        block.mode = quarters[3];
        let luma = block.mode as usize;
        let mode = r.read_tree(&trees::INTRA_MODE, &self.frame.context.uv_mode[luma]);
        self.counts.uv_mode[luma][usize::from(mode)] += 1;
        block.chroma_mode = intra_mode(mode);
    }

    /// Reads the references of a block (`read_ref_frames`, §6.4.17).
    fn references(
        &mut self,
        r: &mut BoolDecoder<'_>,
        neighbours: &Neighbours,
        features: &SegmentFeatures,
    ) -> [u8; 2] {
        if let Some(reference) = features.reference {
            return [reference, 0];
        }
        let CompressedHeader {
            reference_mode,
            fixed_reference: fixed,
            variable_references: variable,
            ..
        } = self.frame.compressed;
        let (p, c) = (self.frame.context, &mut *self.counts);
        let compound = match reference_mode {
            ReferenceMode::Single => false,
            ReferenceMode::Compound => true,
            ReferenceMode::Select => {
                let context = neighbours.compound(fixed);
                let compound = r.read_bool(p.compound[context]);
                c.compound[context][usize::from(compound)] += 1;
                compound
            }
        };
        if compound {
            // The fixed reference stands where its side says.
            let place = usize::from(self.frame.header.sign_bias[usize::from(fixed)]);
            let context = neighbours.compound_reference(fixed, variable, 1 - place);
            let second = r.read_bool(p.compound_reference[context]);
            c.compound_reference[context][usize::from(second)] += 1;
            let mut references = [variable[usize::from(second)]; 2];
            references[place] = fixed;
            return references;
        }
        let context = neighbours.single_first();
        let other = r.read_bool(p.single_reference[context][0]);
        c.single_reference[context][0][usize::from(other)] += 1;
        if !other {
            return [1, 0];
        }
        let context = neighbours.single_second();
        let altref = r.read_bool(p.single_reference[context][1]);
        c.single_reference[context][1][usize::from(altref)] += 1;
        [2 + u8::from(altref), 0]
    }

    /// Reads `inter_block_mode_info` (§6.4.16).
    fn inter_block(
        &mut self,
        r: &mut BoolDecoder<'_>,
        block: &mut Block,
        place: &Place,
        neighbours: &Neighbours,
        features: &SegmentFeatures,
    ) -> Result<(), DecodeError> {
        block.references = self.references(r, neighbours, features);
        let lists = 1 + usize::from(block.is_compound());
        let below = place.size.below_8x8();
        let high_precision = self.frame.header.high_precision;
        let candidates = Candidates {
            info: self.info,
            previous: self.frame.previous,
            sign_bias: self.frame.header.sign_bias,
            place: *place,
        };
        let context = candidates.mode_context();
        let p = self.frame.context;
        let counts = &mut *self.counts;
        let inter_mode = |r: &mut BoolDecoder<'_>, counts: &mut Counts| {
            let mode = r.read_tree(&trees::INTER_MODE, &p.inter_mode[context]);
            counts.inter_mode[context][usize::from(mode)] += 1;
            PredictionMode::ALL[10 + usize::from(mode & 3)]
        };
        block.mode = PredictionMode::ZeroMv;
        if features.skip {
            if below {
                return Err(DecodeError::Tile);
            }
        } else if !below {
            block.mode = inter_mode(r, counts);
        }
        block.filter = if let Some(filter) = self.frame.header.filter {
            filter
        } else {
            let context = neighbours.filter();
            let filter = r.read_tree(&trees::INTERP_FILTER, &p.interp_filter[context]);
            counts.interp_filter[context][usize::from(filter)] += 1;
            filter
        };
        // Nearest and near by list; only what the modes need is looked for.
        let best = |block: &Block| {
            let mut best = [[MotionVector::default(); 2]; 2];
            for (best, &reference) in best.iter_mut().zip(&block.references[..lists]) {
                *best = candidates.best(candidates.find(reference, None), high_precision);
            }
            best
        };
        let new = |r: &mut BoolDecoder<'_>, counts: &mut Counts, near: [[MotionVector; 2]; 2]| {
            let mut vectors = [MotionVector::default(); 2];
            for (v, near) in vectors.iter_mut().zip(near).take(lists) {
                *v = read_vector(r, p, counts, near[0], high_precision)?;
            }
            Ok(vectors)
        };
        if !below {
            let vectors = match block.mode {
                PredictionMode::ZeroMv => [MotionVector::default(); 2],
                PredictionMode::NewMv => new(r, counts, best(block))?,
                PredictionMode::NearMv => best(block).map(|b| b[1]),
                _ => best(block).map(|b| b[0]),
            };
            block.vectors = [vectors; 4];
            return Ok(());
        }
        let whole = best(block);
        let (wide, high) = (block.part_width >= 8, block.part_height >= 8);
        for q in 0..4 {
            if q >= 2 && high {
                block.vectors[q] = block.vectors[q - 2];
                continue;
            }
            if q % 2 == 1 && wide {
                block.vectors[q] = block.vectors[q - 1];
                continue;
            }
            block.mode = inter_mode(r, counts);
            block.vectors[q] = match block.mode {
                PredictionMode::ZeroMv => [MotionVector::default(); 2],
                PredictionMode::NewMv => new(r, counts, whole)?,
                mode => {
                    let near = usize::from(mode == PredictionMode::NearMv);
                    let mut vectors = [MotionVector::default(); 2];
                    for (list, v) in vectors.iter_mut().enumerate().take(lists) {
                        let reference = block.references[list];
                        *v = candidates.quarter(reference, list, q, &block.vectors)[near];
                    }
                    vectors
                }
            };
        }
        Ok(())
    }
}

/// The intra mode that a symbol of the tree stands for.
fn intra_mode(symbol: u8) -> PredictionMode {
    PredictionMode::ALL[usize::from(symbol.min(9))]
}

/// Reads a vector as its difference from `best` (`read_mv`, §6.4.19). Vectors out of bounds do not conform.
fn read_vector(
    r: &mut BoolDecoder<'_>,
    p: &FrameContext,
    counts: &mut Counts,
    best: MotionVector,
    high_precision: bool,
) -> Result<MotionVector, DecodeError> {
    let high = high_precision && uses_high_precision(best);
    let joint = r.read_tree(&trees::MOTION_JOINT, &p.motion_joint);
    counts.motion_joint[usize::from(joint)] += 1;
    let (mut y, mut x) = (i32::from(best.y), i32::from(best.x));
    if joint >= 2 {
        y += read_component(r, &p.motion[0], &mut counts.motion[0], high);
    }
    if joint & 1 == 1 {
        x += read_component(r, &p.motion[1], &mut counts.motion[1], high);
    }
    if y.abs() >= MAX_VECTOR || x.abs() >= MAX_VECTOR {
        return Err(DecodeError::Tile);
    }
    Ok(MotionVector { x: x as i16, y: y as i16 })
}

/// Reads a component of a difference (`read_mv_component`, §6.4.20). The high-precision bit counts even where the
/// stream does not hold it.
fn read_component(
    r: &mut BoolDecoder<'_>,
    p: &MotionProbs,
    c: &mut MotionCounts,
    high: bool,
) -> i32 {
    let sign = r.read_bool(p.sign);
    c.sign[usize::from(sign)] += 1;
    let class = usize::from(r.read_tree(&trees::MOTION_CLASS, &p.class));
    c.class[class] += 1;
    let magnitude = if class == 0 {
        let whole = usize::from(r.read_bool(p.class0));
        c.class0[whole] += 1;
        let fraction = r.read_tree(&trees::MOTION_FRACTION, &p.class0_fraction[whole]);
        c.class0_fraction[whole][usize::from(fraction)] += 1;
        let last = !high || r.read_bool(p.class0_high);
        c.class0_high[usize::from(last)] += 1;
        (whole as i32) << 3 | i32::from(fraction) << 1 | i32::from(last)
    } else {
        let mut whole = 0;
        for i in 0..class {
            let bit = r.read_bool(p.bits[i]);
            c.bits[i][usize::from(bit)] += 1;
            whole |= i32::from(bit) << i;
        }
        let fraction = r.read_tree(&trees::MOTION_FRACTION, &p.fraction);
        c.fraction[usize::from(fraction)] += 1;
        let last = !high || r.read_bool(p.high);
        c.high[usize::from(last)] += 1;
        (2 << (class + 2)) + (whole << 3 | i32::from(fraction) << 1 | i32::from(last))
    };
    if sign { -(magnitude + 1) } else { magnitude + 1 }
}
