//! Streams of random bits under sound headers.
//!
//! Any bits decode to some syntax in VP9, symbols falling as their probabilities say. So random
//! tile data under a header with random, legal fields meets every tool of the format in every
//! combination, those too that no encoder chooses: all segment features at once, compound
//! prediction from scaled references, contexts kept and reset in any order, frames shown again.
//!
//! Two things are not legal by themselves. A frame that libvpx refuses (a skip segment below 8×8,
//! a vector out of range) is drawn again. Coefficients can exceed 16 bits, where the format defines
//! nothing; quantisers are small to make that rare, and a frame about which libvpx and `vp9dec`
//! disagree is drawn again and counted.

use vp9dec::header::{
    FrameType, LoopFilterParams, NewFrameHeader, QuantizationParams, SegmentationParams,
};

use super::coverage::Probe;
use super::header_writer::{show_existing, write};
use super::source::hash;
use super::splice::superframe;
use super::{FrameDecoder, I420, Libvpx, Stream};

/// What a noise stream looks like.
#[derive(Debug, Clone, Copy)]
pub struct Noise {
    /// Another seed, another stream.
    pub seed: u32,
    /// Frames, hidden ones and those shown again included.
    pub frames: usize,
    /// Largest width and height.
    pub largest: (u32, u32),
    /// Whether the size changes in mid-stream.
    pub resizes: bool,
}

/// A noise stream and how often a frame was drawn again.
#[derive(Debug)]
pub struct Made {
    /// The stream.
    pub stream: Stream,
    /// Frames that libvpx refused.
    pub refused: usize,
    /// Frames that the two oracles decoded differently.
    pub disputed: Vec<Vec<Vec<u8>>>,
}

/// Seeded random numbers.
struct Random(u32, u32);

impl Random {
    fn bits(&mut self) -> u32 {
        self.1 = self.1.wrapping_add(1);
        hash(self.0 ^ hash(self.1))
    }

    /// 0 to `end` - 1.
    fn below(&mut self, end: u32) -> u32 {
        ((u64::from(self.bits()) * u64::from(end)) >> 32) as u32
    }

    fn percent(&mut self, chance: u32) -> bool {
        self.below(100) < chance
    }

    fn within(&mut self, most: i32) -> i32 {
        self.below(2 * most as u32 + 1) as i32 - most
    }
}

/// A frame whose tile is longer than needed.
struct Frame {
    data: Vec<u8>,
    /// Bytes before the tile.
    head: usize,
    /// Slots that it refreshes.
    refreshed: u8,
    size: (u32, u32),
}

impl Frame {
    /// Cuts the tile to about what is read of it, as `vp9dec` takes a much longer or shorter one for
    /// damaged. Gives the chunk, the decoder after it and its pictures; `None` if it is illegal.
    fn fit(&self, before: &Probe) -> Option<(Vec<u8>, Probe, Vec<I420>)> {
        // `vp9dec` tolerates 128 bits too few and 1024 too many; libvpx tolerates none too few.
        let (step, more) = (96, 20);
        let most = (self.data.len() - self.head).div_ceil(step);
        (0..=most).find_map(|steps| {
            let end = (self.head + steps * step).min(self.data.len());
            before.clone().decode(&superframe(&[&self.data[..end]])).ok()?;
            // A tile cut short can seem to fit, as zeros after its end decode to little.
            let end = (end + more).min(self.data.len());
            let chunk = superframe(&[&self.data[..end]]);
            let mut after = before.clone();
            let pictures = after.decode(&chunk).ok()?;
            Some((chunk, after, pictures))
        })
    }
}

impl Noise {
    /// Makes the stream.
    pub fn make(&self) -> Made {
        let mut made = Made {
            stream: Stream { name: format!("noise {}", self.seed), chunks: Vec::new() },
            refused: 0,
            disputed: Vec::new(),
        };
        let mut random = Random(hash(self.seed), 0);
        let mut sizes = [(0, 0); 8];
        let (mut libvpx, mut probe) = (Libvpx::new(), Probe::new());
        while made.stream.chunks.len() < self.frames {
            let first = made.stream.chunks.is_empty();
            let frame = self.frame(&mut random, first, &sizes);
            let Some((chunk, after, picture)) = frame.fit(&probe) else {
                made.refused += 1;
                continue;
            };
            let expected = libvpx.decode(&chunk);
            if expected.as_ref() == Ok(&picture) {
                made.stream.chunks.push(chunk);
                probe = after;
                for slot in (0..8).filter(|slot| frame.refreshed >> slot & 1 == 1) {
                    sizes[slot] = frame.size;
                }
                continue;
            }
            match expected {
                Ok(_) => {
                    made.disputed.push(made.stream.chunks.iter().cloned().chain([chunk]).collect());
                }
                Err(_) => made.refused += 1,
            }
            // libvpx goes on from the frames kept so far.
            libvpx = Libvpx::new();
            for kept in &made.stream.chunks {
                let again = libvpx.decode(kept);
                debug_assert!(again.is_ok());
            }
        }
        made
    }

    fn frame(&self, r: &mut Random, first: bool, sizes: &[(u32, u32); 8]) -> Frame {
        if !first && r.percent(8) {
            let data = show_existing(r.below(8) as u8);
            return Frame { head: data.len(), data, refreshed: 0, size: (0, 0) };
        }
        let key = first || r.percent(4);
        let show_frame = r.percent(80);
        let intra_only = !key && !show_frame && r.percent(40);
        let inter = !key && !intra_only;
        let error_resilient_mode = r.percent(15);
        let (size, ref_frame_idx) = self.size_and_references(r, first, inter, sizes);
        let mut header = NewFrameHeader {
            profile: 0,
            frame_type: if key { FrameType::KeyFrame } else { FrameType::NonKeyFrame },
            show_frame,
            error_resilient_mode,
            frame_is_intra: !inter,
            intra_only,
            reset_frame_context: if key || error_resilient_mode { 0 } else { r.below(4) as u8 },
            color_config: None,
            width: size.0,
            height: size.1,
            render_width: if r.percent(10) { 1 + r.below(500) } else { size.0 },
            render_height: size.1,
            refresh_frame_flags: if key { 255 } else { (r.bits() & r.bits()) as u8 },
            ref_frame_idx,
            ref_frame_sign_bias: [false, r.percent(50), r.percent(50), r.percent(50)],
            allow_high_precision_mv: r.percent(60),
            interpolation_filter: if r.percent(50) { 4 } else { r.below(4) as u8 },
            refresh_frame_context: !error_resilient_mode && r.percent(70),
            frame_parallel_decoding_mode: error_resilient_mode || r.percent(30),
            frame_context_idx: r.below(4) as u8,
            loop_filter: loop_filter(r),
            quantization: quantisers(r),
            segmentation: segmentation(r, inter),
            tile_cols_log2: 0,
            tile_rows_log2: 0,
            header_size_in_bytes: 0,
        };
        let compressed = random_bytes(r, 200);
        header.header_size_in_bytes = compressed.len() as u16;
        let mut data = write(&header);
        data.extend(compressed);
        let head = data.len();
        let area = size.0.next_multiple_of(64) * size.1.next_multiple_of(64);
        data.extend(random_bytes(r, 64 + 3 * area as usize));
        Frame { data, head, refreshed: header.refresh_frame_flags, size }
    }

    /// A size, and three slots whose pictures may be references at that size.
    fn size_and_references(
        &self,
        r: &mut Random,
        first: bool,
        inter: bool,
        sizes: &[(u32, u32); 8],
    ) -> ((u32, u32), [u8; 3]) {
        loop {
            let size = if first || self.resizes && r.percent(40) {
                (1 + r.below(self.largest.0), 1 + r.below(self.largest.1))
            } else {
                sizes[r.below(8) as usize]
            };
            let fits = |of: (u32, u32)| {
                2 * size.0 >= of.0
                    && 2 * size.1 >= of.1
                    && size.0 <= 16 * of.0
                    && size.1 <= 16 * of.1
            };
            let usable: Vec<u8> = (0..8).filter(|&slot| fits(sizes[usize::from(slot)])).collect();
            if !inter {
                return (size, [0; 3]);
            }
            if !usable.is_empty() {
                return (size, [(); 3].map(|()| usable[r.below(usable.len() as u32) as usize]));
            }
        }
    }
}

/// Random bytes that begin with the marker bit 0 of a bool decoder (§9.2.1).
fn random_bytes(r: &mut Random, count: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        (0..count.div_ceil(4)).flat_map(|_| r.bits().to_le_bytes()).take(count).collect();
    bytes[0] &= 127;
    bytes
}

fn loop_filter(r: &mut Random) -> LoopFilterParams {
    let delta_enabled = r.percent(50);
    let most = if r.percent(30) { 63 } else { 8 };
    LoopFilterParams {
        level: if r.percent(15) { 0 } else { r.below(64) as u8 },
        sharpness: if r.percent(40) { r.below(8) as u8 } else { 0 },
        delta_enabled,
        ref_deltas: [(); 4].map(|()| r.within(most) as i8),
        mode_deltas: [(); 2].map(|()| r.within(most) as i8),
    }
}

fn quantisers(r: &mut Random) -> QuantizationParams {
    let mut delta = || if r.percent(20) { r.within(15) } else { 0 };
    let (delta_q_y_dc, delta_q_uv_dc, delta_q_uv_ac) = (delta(), delta(), delta());
    let base_q_idx = if r.percent(8) { 0 } else { r.below(20) as u8 };
    let lossless = base_q_idx == 0 && delta_q_y_dc == 0 && delta_q_uv_dc == 0 && delta_q_uv_ac == 0;
    QuantizationParams { base_q_idx, delta_q_y_dc, delta_q_uv_dc, delta_q_uv_ac, lossless }
}

fn segmentation(r: &mut Random, inter: bool) -> SegmentationParams {
    let mut s = SegmentationParams { enabled: r.percent(40), ..Default::default() };
    if !s.enabled {
        return s;
    }
    s.update_map = r.percent(70);
    s.temporal_update = s.update_map && inter && r.percent(50);
    if s.update_map {
        s.tree_probs = [(); 7].map(|()| if r.percent(20) { 255 } else { 1 + r.below(255) as u8 });
    }
    if s.temporal_update {
        s.pred_prob = [(); 3].map(|()| 1 + r.below(255) as u8);
    }
    s.abs_or_delta_update = r.percent(40);
    let skips = r.percent(10);
    for segment in 0..8 {
        let absolute = s.abs_or_delta_update;
        let quantiser = if absolute { r.below(30) as i32 } else { r.within(20) };
        let level = if absolute { r.below(64) as i32 } else { r.within(63) };
        let values = [quantiser, level, r.below(4) as i32, 0];
        let chances = [30, 30, 15, if skips { 10 } else { 0 }];
        for feature in 0..4 {
            if r.percent(chances[feature]) {
                s.feature_enabled[segment][feature] = true;
                s.feature_data[segment][feature] = values[feature];
            }
        }
    }
    s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noise_stream_repeats_and_decodes() {
        let noise = Noise { seed: 3, frames: 6, largest: (70, 70), resizes: true };
        let made = noise.make();
        assert_eq!(made.stream.chunks.len(), 6);
        assert_eq!(made.stream.chunks, noise.make().stream.chunks);
    }
}
