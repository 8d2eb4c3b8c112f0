//! A decoder on `vp9dec`'s modules that also counts the tools it meets, as a second oracle.

use std::sync::Arc;

use vp9dec::compressed_header::parse_compressed_header;
use vp9dec::compressed_header::{CompressedHeader, FrameContext, FrameContextStore};
use vp9dec::counts::{Counts, adapt_coef_probs, adapt_noncoef_probs};
use vp9dec::dpb::{Dpb, RefFrameData};
use vp9dec::framebuffer::Plane;
use vp9dec::header::{
    ColorConfig, FrameHeader, FrameType, LoopFilterDeltas, NewFrameHeader, PersistentState,
    SegFeaturePersist, parse_uncompressed_header,
};
use vp9dec::superframe::split_superframe;
use vp9dec::tile::{MiGrid, TileDecoder};

use super::{Coverage, FrameDecoder, I420};

/// Decodes with `vp9dec`'s modules and counts the tools of the streams it decodes. A copy goes on
/// from the same state.
#[derive(Clone, Default)]
pub struct Probe {
    coverage: Coverage,
    header: Option<NewFrameHeader>,
    persistent: PersistentState,
    contexts: FrameContextStore,
    references: Dpb,
    colour: Option<ColorConfig>,
    last: Option<Last>,
    segment_ids: Arc<Vec<u8>>,
}

/// What the frame before leaves for the next.
#[derive(Clone)]
struct Last {
    size: (u32, u32),
    shown: bool,
    kind: FrameType,
    grid: Arc<MiGrid>,
}

impl Probe {
    /// A decoder that waits for a key frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tools met so far.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// The last new frame's header and its block at luma sample (`x`, `y`), in words for reports.
    pub fn describe(&self, x: usize, y: usize) -> String {
        let (Some(h), Some(last)) = (&self.header, &self.last) else { return String::new() };
        let b = last.grid.get(y as u32 / 8, x as u32 / 8);
        format!(
            "{:?} frame {}x{}{}, slots {:?}, filter {}, quantiser {}, loop filter {:?}, segments {}; \
             block size {}, transform {}, references {:?}, luma mode {} {:?}, chroma mode {}, \
             vectors (down, right) {:?}, filter {}, segment {}, skip {}",
            h.frame_type,
            h.width,
            h.height,
            if h.intra_only { " (intra-only)" } else { "" },
            h.ref_frame_idx,
            h.interpolation_filter,
            h.quantization.base_q_idx,
            h.loop_filter,
            h.segmentation.enabled,
            b.mi_size,
            b.tx_size,
            b.ref_frame,
            b.y_mode,
            b.sub_modes,
            b.uv_mode,
            b.sub_mvs,
            b.interp_filter,
            b.segment_id,
            b.skip,
        )
    }

    fn frame(&mut self, data: &[u8]) -> Result<Option<I420>, String> {
        let (header, used) = parse_uncompressed_header(data, &self.persistent)
            .map_err(|e| format!("header: {e:?}"))?;
        let header = match header {
            FrameHeader::New(mut header) => {
                // libvpx resets these after reading them, and so allows no compound prediction;
                // `vp9dec` does not.
                if header.error_resilient_mode {
                    header.ref_frame_sign_bias = [false; 4];
                }
                header
            }
            FrameHeader::ShowExistingFrame { frame_to_show_map_idx } => {
                self.coverage.bump("show-existing frame");
                let data = self.references.get(frame_to_show_map_idx).ok_or("empty slot shown")?;
                let planes = [&data.y, &data.u, &data.v];
                return Ok(Some(crop(planes, data.width, data.height)));
            }
        };
        let end = used + usize::from(header.header_size_in_bytes);
        let compressed = data.get(used..end).ok_or("truncated compressed header")?;
        self.new_frame(&header, compressed, &data[end..])
    }

    fn new_frame(
        &mut self,
        header: &NewFrameHeader,
        compressed: &[u8],
        tiles: &[u8],
    ) -> Result<Option<I420>, String> {
        self.colour = header.color_config.or(self.colour);
        let colour = self.colour.ok_or("no key frame yet")?;
        let size = (header.width, header.height);
        let (cols, rows) = (header.width.div_ceil(8), header.height.div_ceil(8));
        let independent = header.frame_is_intra || header.error_resilient_mode;
        let same_size = self.last.as_ref().is_some_and(|last| last.size == size);
        let previous = self.last.as_ref().filter(|last| !independent && same_size && last.shown);
        let previous = previous.map(|last| last.grid.clone());
        if previous.is_some() {
            self.coverage.bump("vectors of the previous frame");
        }
        let key = header.frame_type == FrameType::KeyFrame;
        if !key && self.last.is_some() && !same_size {
            self.coverage.bump("resized without key frame");
        }
        if independent || !same_size {
            self.segment_ids = Arc::new(vec![0; (cols * rows) as usize]);
        }
        if independent {
            if key || header.error_resilient_mode || header.reset_frame_context == 3 {
                self.contexts.reset_all();
            } else if header.reset_frame_context == 2 {
                self.contexts.save(header.frame_context_idx, FrameContext::default());
            }
        }
        let context = header.effective_frame_context_idx();
        let starting = self.contexts.load(context);
        let compressed = parse_compressed_header(compressed, header, starting.clone())
            .map_err(|e| format!("compressed header: {e:?}"))?;
        let references = if header.frame_is_intra {
            [None, None, None]
        } else {
            header.ref_frame_idx.map(|slot| self.references.get_arc(slot))
        };
        let sizes = references.each_ref().map(|r| r.as_ref().map_or(size, |r| (r.width, r.height)));
        self.coverage.frame(header, &compressed, (!header.frame_is_intra).then_some(sizes));

        let mut decoder = TileDecoder::new_with_prev(
            header,
            colour,
            &compressed,
            previous.is_some(),
            previous,
            references,
            self.segment_ids.clone(),
        );
        decoder.decode_tiles(tiles).map_err(|e| format!("tiles: {e:?}"))?;
        if header.loop_filter.level != 0 {
            decoder.apply_loop_filter(&header.loop_filter);
        }
        self.coverage.blocks(decoder.mi_grid(), header, sizes.map(|s| s != size));
        if header.segmentation.enabled && header.segmentation.update_map {
            let grid = decoder.mi_grid();
            let ids = (0..rows).flat_map(|r| (0..cols).map(move |c| grid.get(r, c).segment_id));
            self.segment_ids = Arc::new(ids.collect());
        }
        if header.refresh_frame_context {
            let after_key = self.last.as_ref().is_some_and(|l| l.kind == FrameType::KeyFrame);
            let context_after = adapt(header, starting, &compressed, decoder.counts(), after_key);
            self.contexts.save(context, context_after);
        }
        self.keep(header, &decoder);
        self.header = Some(header.clone());
        let [y, u, v] = decoder.planes();
        let picture = header.show_frame.then(|| crop([y, u, v], size.0, size.1));
        self.last = Some(Last {
            size,
            shown: header.show_frame,
            kind: header.frame_type,
            grid: Arc::new(decoder.into_mi_grid()),
        });
        Ok(picture)
    }

    /// The reference frame update process and the values that persist (specification §8.10, §7.2).
    fn keep(&mut self, header: &NewFrameHeader, decoder: &TileDecoder) {
        if header.refresh_frame_flags != 0 {
            let (w, h) = (header.width as usize, header.height as usize);
            let (cw, ch) = (w.div_ceil(2), h.div_ceil(2));
            let [y, u, v] = decoder.planes();
            let data = Arc::new(RefFrameData {
                width: header.width,
                height: header.height,
                subsampling_x: 1,
                subsampling_y: 1,
                bit_depth: 8,
                y: y.crop_to_plane(w, h),
                u: u.crop_to_plane(cw, ch),
                v: v.crop_to_plane(cw, ch),
            });
            self.references.update(header.refresh_frame_flags, &data);
            for slot in (0..8).filter(|slot| header.refresh_frame_flags >> slot & 1 == 1) {
                self.persistent.ref_frame_sizes[slot] = (header.width, header.height);
            }
        }
        self.persistent.loop_filter_deltas = LoopFilterDeltas {
            ref_deltas: header.loop_filter.ref_deltas,
            mode_deltas: header.loop_filter.mode_deltas,
        };
        self.persistent.segmentation = SegFeaturePersist {
            enabled: header.segmentation.feature_enabled,
            data: header.segmentation.feature_data,
            abs_or_delta: header.segmentation.abs_or_delta_update,
        };
    }
}

impl FrameDecoder for Probe {
    fn name(&self) -> &'static str {
        "vp9dec"
    }

    fn decode(&mut self, chunk: &[u8]) -> Result<Vec<I420>, String> {
        let frames = split_superframe(chunk);
        if frames.len() > 1 {
            self.coverage.bump("superframe");
        }
        let mut shown = None;
        for data in frames {
            shown = self.frame(data)?.or(shown);
        }
        Ok(shown.into_iter().collect())
    }
}

/// `refresh_probs()` (specification §6.1.2): the context to store after a frame.
fn adapt(
    header: &NewFrameHeader,
    starting: FrameContext,
    compressed: &CompressedHeader,
    counts: &Counts,
    after_key: bool,
) -> FrameContext {
    if header.error_resilient_mode || header.frame_parallel_decoding_mode {
        return (*compressed.probs).clone();
    }
    let mut working = starting;
    let before = (working.tx_probs, working.skip_prob);
    working.tx_probs = compressed.probs.tx_probs;
    working.skip_prob = compressed.probs.skip_prob;
    let update_factor = if !header.frame_is_intra && after_key { 128 } else { 112 };
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

fn crop(planes: [&Plane; 3], width: u32, height: u32) -> I420 {
    let mut picture = I420::new(width as usize, height as usize);
    for (plane, from) in planes.into_iter().enumerate() {
        let (w, h) = picture.plane_size(plane);
        picture.plane_mut(plane).copy_from_slice(&from.crop_u8(w, h));
    }
    picture
}
