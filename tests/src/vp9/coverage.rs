//! Which tools of the format a set of streams contains, counted, so that tests can insist on them.
//!
//! [`Probe`] fills it in: it decodes with `vp9dec`'s modules, so its numbers come from the
//! specification's syntax and do not depend on the decoder under test.

use std::collections::BTreeMap;
use std::fmt;

use vp9dec::compressed_header::CompressedHeader;
use vp9dec::header::{FrameType, NewFrameHeader};
use vp9dec::prob_tables::{
    BLOCK_8X8, INTRA_FRAME, NUM_8X8_BLOCKS_HIGH_LOOKUP, NUM_8X8_BLOCKS_WIDE_LOOKUP,
};
use vp9dec::tile::{MiGrid, MiInfo};

pub use super::probe::Probe;

const BLOCKS: [&str; 13] = [
    "block 4x4",
    "block 4x8",
    "block 8x4",
    "block 8x8",
    "block 8x16",
    "block 16x8",
    "block 16x16",
    "block 16x32",
    "block 32x16",
    "block 32x32",
    "block 32x64",
    "block 64x32",
    "block 64x64",
];
const TRANSFORMS: [&str; 4] =
    ["transform 4x4", "transform 8x8", "transform 16x16", "transform 32x32"];
const TRANSFORM_MODES: [&str; 5] = [
    "transform mode: only 4x4",
    "transform mode: up to 8x8",
    "transform mode: up to 16x16",
    "transform mode: up to 32x32",
    "transform mode: select",
];
const FRAME_FILTERS: [&str; 5] = [
    "frame filter: regular",
    "frame filter: smooth",
    "frame filter: sharp",
    "frame filter: bilinear",
    "frame filter: switchable",
];
const BLOCK_FILTERS: [&str; 4] = [
    "block filter: regular",
    "block filter: smooth",
    "block filter: sharp",
    "block filter: bilinear",
];
const LUMA_MODES: [&str; 14] = [
    "luma DC",
    "luma V",
    "luma H",
    "luma D45",
    "luma D135",
    "luma D117",
    "luma D153",
    "luma D207",
    "luma D63",
    "luma TM",
    "nearest vector",
    "near vector",
    "zero vector",
    "new vector",
];
const CHROMA_MODES: [&str; 10] = [
    "chroma DC",
    "chroma V",
    "chroma H",
    "chroma D45",
    "chroma D135",
    "chroma D117",
    "chroma D153",
    "chroma D207",
    "chroma D63",
    "chroma TM",
];
const REFERENCES: [&str; 4] = ["intra block", "from last", "from golden", "from altref"];
const REFERENCE_MODES: [&str; 3] =
    ["references: single", "references: compound", "references: select"];
const FEATURES: [&str; 4] = [
    "segment feature: quantiser",
    "segment feature: loop filter",
    "segment feature: reference",
    "segment feature: skip",
];
const TILE_COLUMNS: [&str; 7] = [
    "1 tile column",
    "2 tile columns",
    "4 tile columns",
    "8 tile columns",
    "16 tile columns",
    "32 tile columns",
    "64 tile columns",
];
const TILE_ROWS: [&str; 3] = ["1 tile row", "2 tile rows", "4 tile rows"];
const CONTEXTS: [&str; 4] = ["context 0", "context 1", "context 2", "context 3"];
const RESETS: [&str; 4] =
    ["context reset 0", "context reset 1", "context reset 2", "context reset 3"];

/// How often each tool occurs, in frames or blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    counts: BTreeMap<&'static str, u64>,
}

impl Coverage {
    /// How often `tool` occurs.
    pub fn count(&self, tool: &str) -> u64 {
        self.counts.get(tool).copied().unwrap_or(0)
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Coverage) {
        for (tool, n) in &other.counts {
            *self.counts.entry(tool).or_default() += n;
        }
    }

    /// The `tools` that do not occur.
    pub fn missing<'a>(&self, tools: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        tools.into_iter().filter(|tool| self.count(tool) == 0).collect()
    }

    /// Every tool that a stream of profile 0 can contain, by the names used here.
    pub fn all() -> impl Iterator<Item = &'static str> {
        let tables: [&[&str]; 13] = [
            &BLOCKS,
            &TRANSFORMS,
            &TRANSFORM_MODES,
            &FRAME_FILTERS,
            &BLOCK_FILTERS,
            &LUMA_MODES,
            &CHROMA_MODES,
            &REFERENCES,
            &REFERENCE_MODES,
            &FEATURES,
            &TILE_COLUMNS[..5],
            &TILE_ROWS,
            &CONTEXTS,
        ];
        let single = [
            "key frame",
            "intra-only frame",
            "inter frame",
            "hidden frame",
            "show-existing frame",
            "superframe",
            "error-resilient frame",
            "frame-parallel frame",
            "adapted frame",
            "context not kept",
            "context reset 2",
            "lossless frame",
            "quantiser 1 to 20",
            "quantiser 235 to 255",
            "luma DC quantiser offset",
            "chroma quantiser offset",
            "loop filter off",
            "loop filter sharpness",
            "loop filter deltas",
            "loop filter level 63",
            "segmentation",
            "segment map kept",
            "segment map predicted in time",
            "segment values absolute",
            "high-precision vectors",
            "quarter-sample vectors",
            "vectors of the previous frame",
            "resized without key frame",
            "reference scaled down",
            "reference scaled up",
            "block from scaled reference",
            "compound block",
            "compound block from scaled reference",
            "intra block in inter frame",
            "split vectors below 8x8",
            "split intra modes below 8x8",
            "skipped block",
            "vector beyond the frame",
            "vector of 64 samples or more",
            "frame refreshes nothing",
            "render size differs",
        ];
        tables.into_iter().flatten().copied().chain(single)
    }

    pub(super) fn bump(&mut self, tool: &'static str) {
        *self.counts.entry(tool).or_default() += 1;
    }

    fn bump_if(&mut self, holds: bool, tool: &'static str) {
        if holds {
            self.bump(tool);
        }
    }

    /// Counts what the headers of a frame say. `references`: sizes of the three, for an inter frame.
    pub(super) fn frame(
        &mut self,
        header: &NewFrameHeader,
        compressed: &CompressedHeader,
        references: Option<[(u32, u32); 3]>,
    ) {
        self.bump(match (header.frame_type, header.intra_only) {
            (FrameType::KeyFrame, _) => "key frame",
            (_, true) => "intra-only frame",
            _ => "inter frame",
        });
        self.bump_if(!header.show_frame, "hidden frame");
        self.bump_if(header.error_resilient_mode, "error-resilient frame");
        self.bump(if header.frame_parallel_decoding_mode {
            "frame-parallel frame"
        } else {
            "adapted frame"
        });
        self.bump_if(!header.refresh_frame_context, "context not kept");
        self.bump(CONTEXTS[usize::from(header.effective_frame_context_idx())]);
        self.bump(RESETS[usize::from(header.reset_frame_context)]);
        self.bump_if(header.refresh_frame_flags == 0, "frame refreshes nothing");
        let size = (header.width, header.height);
        self.bump_if((header.render_width, header.render_height) != size, "render size differs");
        let q = header.quantization;
        self.bump_if(q.lossless, "lossless frame");
        self.bump_if((1..=20).contains(&q.base_q_idx), "quantiser 1 to 20");
        self.bump_if(q.base_q_idx >= 235, "quantiser 235 to 255");
        self.bump_if(q.delta_q_y_dc != 0, "luma DC quantiser offset");
        self.bump_if(q.delta_q_uv_dc != 0 || q.delta_q_uv_ac != 0, "chroma quantiser offset");
        let filter = header.loop_filter;
        self.bump_if(filter.level == 0, "loop filter off");
        self.bump_if(filter.level == 63, "loop filter level 63");
        self.bump_if(filter.level > 0 && filter.sharpness > 0, "loop filter sharpness");
        self.bump_if(
            filter.delta_enabled
                && (filter.ref_deltas != [1, 0, -1, -1] || filter.mode_deltas != [0, 0]),
            "loop filter deltas",
        );
        self.bump(TILE_COLUMNS[header.tile_cols_log2 as usize]);
        self.bump(TILE_ROWS[header.tile_rows_log2 as usize]);
        self.bump(TRANSFORM_MODES[usize::from(compressed.tx_mode)]);
        self.segmentation(header);
        let Some(references) = references else { return };
        self.bump(FRAME_FILTERS[usize::from(header.interpolation_filter)]);
        self.bump(REFERENCE_MODES[usize::from(compressed.reference_mode)]);
        self.bump(if header.allow_high_precision_mv {
            "high-precision vectors"
        } else {
            "quarter-sample vectors"
        });
        for (w, h) in references {
            self.bump_if(w > size.0 || h > size.1, "reference scaled down");
            self.bump_if(w < size.0 || h < size.1, "reference scaled up");
        }
    }

    fn segmentation(&mut self, header: &NewFrameHeader) {
        let segmentation = header.segmentation;
        if !segmentation.enabled {
            return;
        }
        self.bump("segmentation");
        self.bump_if(!segmentation.update_map, "segment map kept");
        self.bump_if(segmentation.temporal_update, "segment map predicted in time");
        self.bump_if(segmentation.abs_or_delta_update, "segment values absolute");
        for (feature, name) in FEATURES.into_iter().enumerate() {
            let used = segmentation.feature_enabled.iter().any(|segment| segment[feature]);
            self.bump_if(used, name);
        }
    }

    /// Counts the blocks of a frame. `scaled`: whether each of the three references is.
    pub(super) fn blocks(&mut self, grid: &MiGrid, header: &NewFrameHeader, scaled: [bool; 3]) {
        let (cols, rows) = (header.width.div_ceil(8), header.height.div_ceil(8));
        let mut covered = vec![false; (cols * rows) as usize];
        for row in 0..rows {
            for col in 0..cols {
                if covered[(row * cols + col) as usize] {
                    continue;
                }
                let cell = grid.get(row, col);
                let size = usize::from(cell.mi_size);
                let wide = u32::from(NUM_8X8_BLOCKS_WIDE_LOOKUP[size]);
                let high = u32::from(NUM_8X8_BLOCKS_HIGH_LOOKUP[size]);
                for r in row..(row + high).min(rows) {
                    let line = (r * cols) as usize;
                    covered[line + col as usize..line + (col + wide).min(cols) as usize].fill(true);
                }
                self.block(cell, header, scaled, (col, row), (wide, high));
            }
        }
    }

    fn block(
        &mut self,
        cell: &MiInfo,
        header: &NewFrameHeader,
        scaled: [bool; 3],
        (col, row): (u32, u32),
        (wide, high): (u32, u32),
    ) {
        self.bump(BLOCKS[usize::from(cell.mi_size)]);
        self.bump(TRANSFORMS[usize::from(cell.tx_size)]);
        self.bump_if(cell.skip, "skipped block");
        self.bump_if(cell.segment_id > 0, "block of segment 1 to 7");
        self.bump(REFERENCES[usize::from(cell.ref_frame[0])]);
        let small = cell.mi_size < BLOCK_8X8;
        if cell.ref_frame[0] == INTRA_FRAME {
            for mode in cell.sub_modes {
                self.bump(LUMA_MODES[usize::from(mode)]);
            }
            self.bump(CHROMA_MODES[usize::from(cell.uv_mode)]);
            self.bump_if(!header.frame_is_intra, "intra block in inter frame");
            let split = cell.sub_modes.iter().any(|m| *m != cell.sub_modes[0]);
            self.bump_if(small && split, "split intra modes below 8x8");
            return;
        }
        self.bump(LUMA_MODES[usize::from(cell.y_mode)]);
        self.bump(BLOCK_FILTERS[usize::from(cell.interp_filter)]);
        let used: Vec<usize> = (0..2).filter(|&i| cell.ref_frame[i] > INTRA_FRAME).collect();
        let compound = used.len() == 2;
        let is_scaled = used.iter().any(|&i| scaled[usize::from(cell.ref_frame[i]) - 1]);
        self.bump_if(compound, "compound block");
        self.bump_if(is_scaled, "block from scaled reference");
        self.bump_if(compound && is_scaled, "compound block from scaled reference");
        let split = used.iter().any(|&i| cell.sub_mvs[i].iter().any(|v| *v != cell.sub_mvs[i][0]));
        self.bump_if(small && split, "split vectors below 8x8");
        for &i in &used {
            let [down, right] = cell.mv[i];
            self.bump_if(down.abs().max(right.abs()) >= 512, "vector of 64 samples or more");
            let (x, y) = ((col * 8) as i32 + (right >> 3), (row * 8) as i32 + (down >> 3));
            let beyond = x < 0
                || y < 0
                || x + (wide * 8) as i32 > header.width as i32
                || y + (high * 8) as i32 > header.height as i32;
            self.bump_if(beyond, "vector beyond the frame");
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts.iter().try_for_each(|(tool, n)| writeln!(f, "{n:>9}  {tool}"))
    }
}
