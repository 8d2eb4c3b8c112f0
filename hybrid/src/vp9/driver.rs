//! The frame loop over `vp9dec`'s modules: decoding order, references, probability contexts.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use vp9dec::compressed_header::{
    CompressedHeader, FrameContext, FrameContextStore, parse_compressed_header,
};
use vp9dec::counts::{Counts, adapt_coef_probs, adapt_noncoef_probs};
use vp9dec::dpb::{Dpb, RefFrameData};
use vp9dec::framebuffer::Plane as WidePlane;
use vp9dec::header::{
    ColorConfig, FrameHeader, FrameType, LoopFilterDeltas, NewFrameHeader, PersistentState,
    SegFeaturePersist, parse_uncompressed_header,
};
use vp9dec::prob_tables::{NUM_8X8_BLOCKS_HIGH_LOOKUP, NUM_8X8_BLOCKS_WIDE_LOOKUP};
use vp9dec::superframe::split_superframe;
use vp9dec::tile::{MiGrid, MiInfo, TileDecoder, TileError};

use super::{
    Block, DecodeError, DecodedFrame, FrameInfo, FrameKind, MAX_HEIGHT, MAX_WIDTH, MotionVector,
    Reference,
};
use crate::picture::{Picture, Plane};

/// A VP9 decoder of profile 0 for one stream.
#[derive(Default)]
pub struct Decoder {
    state: Option<State>,
}

impl Decoder {
    /// A decoder that waits for a key frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything; a key frame must come next.
    pub fn reset(&mut self) {
        self.state = None;
    }

    /// Whether only a key frame can be decoded next.
    pub fn needs_key_frame(&self) -> bool {
        self.state.is_none()
    }

    /// Decodes one chunk (a frame or a superframe): its frames in decoding order.
    ///
    /// After an error the decoder has forgotten its references and waits for a key frame.
    pub fn decode(&mut self, chunk: &[u8]) -> Result<Vec<DecodedFrame>, DecodeError> {
        if chunk.is_empty() {
            return Err(DecodeError::Empty);
        }
        // The state is moved in, so that a panic or an error leaves none behind.
        let mut state = self.state.take();
        let run = AssertUnwindSafe(|| {
            let mut frames = Vec::with_capacity(2);
            for data in split_superframe(chunk) {
                frames.push(decode_one(&mut state, data)?);
            }
            Ok((frames, state))
        });
        let (frames, state) = catch_unwind(run).unwrap_or(Err(DecodeError::Internal))?;
        self.state = state;
        Ok(frames)
    }
}

/// What one frame hands on to the next.
struct State {
    persistent: PersistentState,
    contexts: FrameContextStore,
    references: Dpb,
    pictures: [Option<Arc<Picture>>; 8],
    colour: ColorConfig,
    last_size: Option<(u32, u32)>,
    last_shown: bool,
    last_type: Option<FrameType>,
    last_grid: Option<Arc<MiGrid>>,
    segment_ids: Arc<Vec<u8>>,
}

impl State {
    fn new(colour: ColorConfig) -> Self {
        Self {
            persistent: PersistentState::default(),
            contexts: FrameContextStore::new(),
            references: Dpb::new(),
            pictures: std::array::from_fn(|_| None),
            colour,
            last_size: None,
            last_shown: false,
            last_type: None,
            last_grid: None,
            segment_ids: Arc::new(Vec::new()),
        }
    }
}

fn decode_one(state: &mut Option<State>, data: &[u8]) -> Result<DecodedFrame, DecodeError> {
    if data.is_empty() {
        return Err(DecodeError::Empty);
    }
    refuse_profile(data[0])?;
    let blank = PersistentState::default();
    let persistent = state.as_ref().map_or(&blank, |s| &s.persistent);
    let (header, used) =
        parse_uncompressed_header(data, persistent).map_err(|_| DecodeError::Header)?;
    let header = match header {
        FrameHeader::New(header) => header,
        FrameHeader::ShowExistingFrame { frame_to_show_map_idx } => {
            let state = state.as_ref().ok_or(DecodeError::NeedKeyFrame)?;
            return show_existing(state, frame_to_show_map_idx, data.len());
        }
    };
    if state.is_none() && header.frame_type != FrameType::KeyFrame {
        return Err(DecodeError::NeedKeyFrame);
    }
    refuse_size(header.width, header.height)?;
    if header.frame_type == FrameType::KeyFrame {
        // A key frame resets everything but the segmentation map rules, which its own size
        // and intra coding reset below.
        let colour = header.color_config.ok_or(DecodeError::Header)?;
        state.get_or_insert_with(|| State::new(colour)).colour = colour;
    }
    let state = state.as_mut().ok_or(DecodeError::NeedKeyFrame)?;
    let compressed_end = used + usize::from(header.header_size_in_bytes);
    if header.header_size_in_bytes == 0 || compressed_end > data.len() {
        return Err(DecodeError::Truncated);
    }
    decode_new(state, &header, &data[used..compressed_end], &data[compressed_end..], data.len())
}

/// The profile stands in the first byte: marker (2 bits), low bit, high bit.
fn refuse_profile(first: u8) -> Result<(), DecodeError> {
    if first >> 6 != 2 {
        return Err(DecodeError::Header);
    }
    match ((first >> 5) & 1) | ((first >> 4) & 1) << 1 {
        0 => Ok(()),
        profile => Err(DecodeError::Profile(profile)),
    }
}

fn refuse_size(width: u32, height: u32) -> Result<(), DecodeError> {
    let area = u64::from(width) * u64::from(height);
    if area == 0 {
        return Err(DecodeError::MissingReference);
    }
    if area > u64::from(MAX_WIDTH) * u64::from(MAX_HEIGHT) || width.max(height) > 2 * MAX_WIDTH {
        return Err(DecodeError::Size { width, height });
    }
    Ok(())
}

fn show_existing(state: &State, slot: u8, bytes: usize) -> Result<DecodedFrame, DecodeError> {
    let picture = state
        .pictures
        .get(usize::from(slot))
        .and_then(Clone::clone)
        .ok_or(DecodeError::MissingReference)?;
    Ok(DecodedFrame {
        info: FrameInfo {
            kind: FrameKind::ShowExisting { slot },
            shown: true,
            width: picture.width() as u32,
            height: picture.height() as u32,
            refresh_mask: 0,
            reference_slots: [0; 3],
            quantiser: 0,
            encoded_bytes: bytes,
            blocks: Vec::new(),
        },
        picture,
    })
}

fn decode_new(
    state: &mut State,
    header: &NewFrameHeader,
    compressed_bytes: &[u8],
    tiles: &[u8],
    encoded_bytes: usize,
) -> Result<DecodedFrame, DecodeError> {
    let size = (header.width, header.height);
    let (mi_cols, mi_rows) = (header.width.div_ceil(8), header.height.div_ceil(8));
    let independent = header.frame_is_intra || header.error_resilient_mode;
    let use_previous_vectors = !independent
        && state.last_size == Some(size)
        && state.last_shown
        && state.last_grid.is_some();
    if independent || state.last_size != Some(size) {
        state.segment_ids = Arc::new(vec![0; (mi_cols * mi_rows) as usize]);
    }
    if independent {
        reset_contexts(&mut state.contexts, header);
    }

    let context = header.effective_frame_context_idx();
    let starting = state.contexts.load(context);
    let compressed = parse_compressed_header(compressed_bytes, header, starting.clone())
        .map_err(|_| DecodeError::CompressedHeader)?;
    let references = if header.frame_is_intra {
        [None, None, None]
    } else {
        header.ref_frame_idx.map(|slot| state.references.get_arc(slot))
    };

    let mut decoder = TileDecoder::new_with_prev(
        header,
        state.colour,
        &compressed,
        use_previous_vectors,
        state.last_grid.clone().filter(|_| use_previous_vectors),
        references,
        state.segment_ids.clone(),
    );
    decoder.decode_tiles(tiles).map_err(|e| match e {
        TileError::MissingReference | TileError::RefFrameSizeOutOfRange => {
            DecodeError::MissingReference
        }
        _ => DecodeError::Tile,
    })?;
    if header.loop_filter.level != 0 {
        decoder.apply_loop_filter(&header.loop_filter);
    }

    if header.segmentation.enabled && header.segmentation.update_map {
        let grid = decoder.mi_grid();
        let ids = (0..mi_rows).flat_map(|r| (0..mi_cols).map(move |c| grid.get(r, c).segment_id));
        state.segment_ids = Arc::new(ids.collect());
    }
    if header.refresh_frame_context {
        let adapted =
            adapted_context(header, starting, &compressed, decoder.counts(), state.last_type);
        state.contexts.save(context, adapted);
    }

    let picture = Arc::new(crop(decoder.planes(), header.width, header.height));
    refresh_references(state, header, decoder.planes(), &picture);
    state.last_size = Some(size);
    state.last_shown = header.show_frame;
    state.last_type = Some(header.frame_type);
    state.persistent.loop_filter_deltas = LoopFilterDeltas {
        ref_deltas: header.loop_filter.ref_deltas,
        mode_deltas: header.loop_filter.mode_deltas,
    };
    state.persistent.segmentation = SegFeaturePersist {
        enabled: header.segmentation.feature_enabled,
        data: header.segmentation.feature_data,
        abs_or_delta: header.segmentation.abs_or_delta_update,
    };
    let grid = decoder.into_mi_grid();
    let info = FrameInfo {
        kind: match (header.frame_type, header.frame_is_intra) {
            (FrameType::KeyFrame, _) => FrameKind::Key,
            (FrameType::NonKeyFrame, true) => FrameKind::IntraOnly,
            (FrameType::NonKeyFrame, false) => FrameKind::Inter,
        },
        shown: header.show_frame,
        width: header.width,
        height: header.height,
        refresh_mask: header.refresh_frame_flags,
        reference_slots: header.ref_frame_idx,
        quantiser: header.quantization.base_q_idx,
        encoded_bytes,
        blocks: blocks(&grid, mi_cols, mi_rows),
    };
    state.last_grid = Some(Arc::new(grid));
    Ok(DecodedFrame { picture, info })
}

/// `setup_past_independence()` (specification §7.2) on the stored contexts.
fn reset_contexts(contexts: &mut FrameContextStore, header: &NewFrameHeader) {
    let all = header.frame_type == FrameType::KeyFrame
        || header.error_resilient_mode
        || header.reset_frame_context == 3;
    if all {
        contexts.reset_all();
    } else if header.reset_frame_context == 2 {
        contexts.save(header.frame_context_idx, FrameContext::default());
    }
}

/// `refresh_probs()` (specification §6.1.2): the context to store after a frame.
fn adapted_context(
    header: &NewFrameHeader,
    starting: FrameContext,
    compressed: &CompressedHeader,
    counts: &Counts,
    last_type: Option<FrameType>,
) -> FrameContext {
    if header.error_resilient_mode || header.frame_parallel_decoding_mode {
        return (*compressed.probs).clone();
    }
    let mut working = starting;
    let before = (working.tx_probs, working.skip_prob);
    working.tx_probs = compressed.probs.tx_probs;
    working.skip_prob = compressed.probs.skip_prob;
    let after_key = !header.frame_is_intra && last_type == Some(FrameType::KeyFrame);
    let update_factor = if after_key { 128 } else { 112 };
    adapt_coef_probs(&mut working.coef_probs, counts, update_factor);
    if !header.frame_is_intra {
        (working.tx_probs, working.skip_prob) = before;
        adapt_noncoef_probs(
            &mut working,
            counts,
            header.interpolation_filter,
            compressed.tx_mode,
            header.allow_high_precision_mv,
        );
    }
    working
}

fn refresh_references(
    state: &mut State,
    header: &NewFrameHeader,
    planes: &[WidePlane; 3],
    picture: &Arc<Picture>,
) {
    if header.refresh_frame_flags == 0 {
        return;
    }
    let (w, h) = (header.width as usize, header.height as usize);
    let (cw, ch) = (w.div_ceil(2), h.div_ceil(2));
    let data = Arc::new(RefFrameData {
        width: header.width,
        height: header.height,
        subsampling_x: 1,
        subsampling_y: 1,
        bit_depth: 8,
        y: planes[0].crop_to_plane(w, h),
        u: planes[1].crop_to_plane(cw, ch),
        v: planes[2].crop_to_plane(cw, ch),
    });
    state.references.update(header.refresh_frame_flags, &data);
    for slot in 0..8 {
        if header.refresh_frame_flags >> slot & 1 == 1 {
            state.persistent.ref_frame_sizes[slot] = (header.width, header.height);
            state.pictures[slot] = Some(picture.clone());
        }
    }
}

fn crop(planes: &[WidePlane; 3], width: u32, height: u32) -> Picture {
    let (w, h) = (width as usize, height as usize);
    let (cw, ch) = (w.div_ceil(2), h.div_ceil(2));
    let plane =
        |p: &WidePlane, w, h| Plane::from_samples(w, h, p.crop_u8(w, h)).unwrap_or_default();
    Picture {
        y: plane(&planes[0], w, h),
        u: plane(&planes[1], cw, ch),
        v: plane(&planes[2], cw, ch),
    }
}

/// The blocks behind the grid of 8×8 cells. A block's origin is the first cell, in raster order,
/// that no block before it covers.
fn blocks(grid: &MiGrid, mi_cols: u32, mi_rows: u32) -> Vec<Block> {
    let mut covered = vec![false; (mi_cols * mi_rows) as usize];
    let mut out = Vec::with_capacity(covered.len() / 4);
    for row in 0..mi_rows {
        for col in 0..mi_cols {
            if covered[(row * mi_cols + col) as usize] {
                continue;
            }
            let cell = grid.get(row, col);
            let size = usize::from(cell.mi_size);
            let wide = u32::from(NUM_8X8_BLOCKS_WIDE_LOOKUP[size]);
            let high = u32::from(NUM_8X8_BLOCKS_HIGH_LOOKUP[size]);
            for r in row..(row + high).min(mi_rows) {
                let line = (r * mi_cols) as usize;
                covered[line + col as usize..line + (col + wide).min(mi_cols) as usize].fill(true);
            }
            push_cell(
                &mut out,
                cell,
                (col * 8) as u16,
                (row * 8) as u16,
                wide as u8 * 8,
                high as u8 * 8,
            );
        }
    }
    out
}

/// Adds one grid cell's block; four of 4×4 where the vectors inside an 8×8 differ.
fn push_cell(out: &mut Vec<Block>, cell: &MiInfo, x: u16, y: u16, width: u8, height: u8) {
    let prediction = |list: usize, part: usize| {
        let reference = Reference::from_vp9(cell.ref_frame[list])?;
        let [dy, dx] = cell.sub_mvs[list][part];
        Some((
            reference,
            MotionVector {
                x: dx.clamp(i16::MIN.into(), i16::MAX.into()) as i16,
                y: dy.clamp(i16::MIN.into(), i16::MAX.into()) as i16,
            },
        ))
    };
    let block = |x, y, width, height, part| Block {
        x,
        y,
        width,
        height,
        predictions: [prediction(0, part), prediction(1, part)],
        skip: cell.skip,
        filter: cell.interp_filter,
    };
    let split = cell.sub_mvs.iter().any(|list| list.iter().any(|v| *v != list[0]));
    if split && width == 8 && height == 8 {
        for part in 0..4u16 {
            out.push(block(x + part % 2 * 4, y + part / 2 * 4, 4, 4, usize::from(part)));
        }
    } else {
        out.push(block(x, y, width, height, 3));
    }
}
