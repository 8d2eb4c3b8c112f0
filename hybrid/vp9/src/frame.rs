//! Decodes the tiles of one frame: the order of decoding and filtering (specification §6.4, §8.8.1).

use crate::DecodeError;
use crate::block::mode_info::{AboveModes, FrameModes, LeftModes, ModeReader};
use crate::block::vectors::TileColumns;
use crate::bool_decoder::BoolDecoder;
use crate::frame_buffer::{FrameBuffer, PictureRows};
use crate::header::{CompressedHeader, FrameHeader, SegmentFeatures};
use crate::info::FrameInfo;
use crate::loop_filter::{Limits, PlaneMut, Position, SuperblockEdges, filter_superblock};
use crate::predict::ReferenceFrame;
use crate::probability::{Counts, FrameContext};
use crate::residual::quantiser;
use crate::simd::Isa;
use crate::tile::{AboveNonzero, Row, TileDecoder, Workspace};
use crate::visitor::Visitor;

/// Maximum number of tile columns in the bitstream.
pub(crate) const MAX_TILE_COLS: usize = 64;

/// Working memory that every frame uses.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) counts: Counts,
    pub(crate) context: FrameContext,
    above_modes: AboveModes,
    above_nonzero: AboveNonzero,
    workspace: Workspace,
    /// Edges for the loop filter, by even and odd rows of superblocks: the current row and the one above it.
    edges: [Vec<SuperblockEdges>; 2],
}

/// The inputs for the tiles of one frame.
pub(crate) struct FrameWork<'a> {
    pub(crate) header: &'a FrameHeader,
    pub(crate) compressed: CompressedHeader,
    pub(crate) previous: Option<&'a FrameInfo>,
    pub(crate) references: &'a [Option<ReferenceFrame>; 3],
    pub(crate) isa: Isa,
}

impl FrameWork<'_> {
    /// Decodes all tiles (`decode_tiles`, §6.4), by rows of superblocks across all tile columns. The loop filter runs
    /// one row behind.
    pub(crate) fn decode<V: Visitor>(
        &self,
        data: &[u8],
        memory: &mut Memory,
        info: &mut FrameInfo,
        picture: &mut FrameBuffer,
        segment_ids: &mut [u8],
        visitor: &mut V,
    ) -> Result<(), DecodeError> {
        let header = self.header;
        let (sb_cols, sb_rows) = (header.sb_cols(), header.sb_rows());
        let (mi_cols, mi_rows) = (header.mi_cols(), header.mi_rows());
        memory.above_modes.clear(sb_cols);
        memory.above_nonzero.clear(sb_cols);
        for edges in &mut memory.edges {
            edges.resize_with(sb_cols, SuperblockEdges::default);
        }
        let quantisers = std::array::from_fn(|segment| {
            let s = &header.segmentation;
            let features = if s.enabled { s.features[segment] } else { SegmentFeatures::default() };
            quantiser::index(header.quantiser, s.absolute, &features)
        });
        let mut decoder = TileDecoder {
            isa: self.isa,
            modes: ModeReader {
                frame: FrameModes {
                    header,
                    compressed: self.compressed,
                    context: &memory.context,
                    previous: self.previous,
                    quantisers,
                    levels: filter_levels(header),
                },
                info,
                counts: &mut memory.counts,
                segment_ids,
                above: &mut memory.above_modes,
                left: LeftModes::default(),
                mi_rows,
                mi_cols,
                tile: TileColumns { first: 0, end: mi_cols },
            },
            references: self.references,
            dequantisers: quantisers.map(|q| quantiser::dequantiser(header.quantiser, q)),
            lossless: header.quantiser.lossless(),
            above: &mut memory.above_nonzero,
            left: [0; 3],
            workspace: &mut memory.workspace,
            visitor,
        };
        let filter = Filter {
            on: header.loop_filter.level != 0,
            isa: self.isa,
            limits: Limits::new(header.loop_filter.sharpness),
            mi_rows,
            mi_cols,
        };
        let (tile_cols, tile_rows) = (1 << header.tile_cols_log2, 1 << header.tile_rows_log2);
        let mut data = data;
        let mut readers: [BoolDecoder<'_>; MAX_TILE_COLS] =
            std::array::from_fn(|_| BoolDecoder::default());
        let mut picture = picture.rows_mut();
        for tile_row in 0..tile_rows {
            for (col, reader) in readers[..tile_cols].iter_mut().enumerate() {
                let last = tile_row + 1 == tile_rows && col + 1 == tile_cols;
                *reader = BoolDecoder::new(next_tile(&mut data, last)?).ok_or(DecodeError::Tile)?;
            }
            let start = tile_start(tile_row, mi_rows, header.tile_rows_log2);
            let end = tile_start(tile_row + 1, mi_rows, header.tile_rows_log2);
            for sb_row in start / 8..end.div_ceil(8) {
                let [even, odd] = &mut memory.edges;
                let (edges, edges_above) =
                    if sb_row % 2 == 0 { (even, &*odd) } else { (odd, &*even) };
                for (col, reader) in readers[..tile_cols].iter_mut().enumerate() {
                    let tile = TileColumns {
                        first: tile_start(col, mi_cols, header.tile_cols_log2),
                        end: tile_start(col + 1, mi_cols, header.tile_cols_log2),
                    };
                    let mut row = Row { reader, edges, picture: &mut picture };
                    decoder.superblock_row(&mut row, sb_row * 8, tile)?;
                }
                // Intra prediction of the next row looks at unfiltered samples of this row alone.
                if let Some(above) = sb_row.checked_sub(1) {
                    filter.row(&mut picture, edges_above, above);
                }
            }
        }
        let last = sb_rows - 1;
        filter.row(&mut picture, &memory.edges[last % 2], last);
        Ok(())
    }
}

/// The loop filter of one frame.
struct Filter {
    on: bool,
    isa: Isa,
    limits: Limits,
    mi_rows: usize,
    mi_cols: usize,
}

impl Filter {
    /// Filters one row of superblocks.
    fn row(&self, picture: &mut PictureRows<'_>, edges: &[SuperblockEdges], sb_row: usize) {
        if !self.on {
            return;
        }
        let mut planes = picture.planes.each_mut().map(|plane| {
            let stride = plane.stride();
            PlaneMut { samples: plane.samples_mut(), stride }
        });
        for (sb_col, edges) in edges.iter().enumerate() {
            let at = Position {
                mi_row: sb_row * 8,
                mi_col: sb_col * 8,
                mi_rows: self.mi_rows,
                mi_cols: self.mi_cols,
            };
            filter_superblock(self.isa, edges, &self.limits, &mut planes, at);
        }
    }
}

/// The data of the next tile. The tile's size stands before it, except for the last tile.
fn next_tile<'a>(data: &mut &'a [u8], last: bool) -> Result<&'a [u8], DecodeError> {
    if last {
        return Ok(std::mem::take(data));
    }
    let (size, rest) = data.split_first_chunk::<4>().ok_or(DecodeError::Truncated)?;
    let (tile, rest) =
        rest.split_at_checked(u32::from_be_bytes(*size) as usize).ok_or(DecodeError::Truncated)?;
    *data = rest;
    Ok(tile)
}

/// The first 8×8 unit of a tile (`get_tile_offset`, §6.4.1).
fn tile_start(tile: usize, units: usize, log2: u32) -> usize {
    let superblocks = units.div_ceil(8);
    (((tile * superblocks) >> log2) * 8).min(units)
}

/// The loop filter's levels by segment, reference and kind of vector (§8.8.1).
fn filter_levels(header: &FrameHeader) -> [[[u8; 2]; 4]; 8] {
    let params = &header.loop_filter;
    let segmentation = &header.segmentation;
    std::array::from_fn(|segment| {
        let base = i32::from(params.level);
        let level = match segmentation.features[segment].loop_filter {
            Some(value) if segmentation.enabled && segmentation.absolute => i32::from(value),
            Some(value) if segmentation.enabled => base + i32::from(value),
            _ => base,
        }
        .clamp(0, 63);
        if !params.delta_enabled {
            return [[level as u8; 2]; 4];
        }
        // The change depends on the frame's level, not on the segment's.
        let shift = params.level >> 5;
        std::array::from_fn(|reference| {
            let level = level + (i32::from(params.ref_deltas[reference]) << shift);
            std::array::from_fn(|kind| {
                let mode = if reference == 0 { 0 } else { i32::from(params.mode_deltas[kind]) };
                (level + (mode << shift)).clamp(0, 63) as u8
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_begin_at_whole_superblocks() {
        let starts: Vec<_> = (0..=4).map(|t| tile_start(t, 100, 2)).collect();
        assert_eq!(starts, [0, 24, 48, 72, 100]);
    }

    #[test]
    fn a_tile_that_claims_too_much_is_truncated() {
        let mut data: &[u8] = &[0, 0, 0, 9, 1, 2];
        assert_eq!(next_tile(&mut data, false), Err(DecodeError::Truncated));
        let mut data: &[u8] = &[0, 0, 0, 1, 1, 2];
        assert_eq!(next_tile(&mut data, false), Ok(&[1u8][..]));
        assert_eq!(next_tile(&mut data, true), Ok(&[2u8][..]));
    }
}
