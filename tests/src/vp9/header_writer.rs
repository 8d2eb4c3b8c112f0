//! The uncompressed header of a frame, written as bits (specification §6.2).
//!
//! It says everything explicitly: sizes, loop filter deltas and segment features are written out
//! where the format also lets a frame take those of another.

use vp9dec::header::{FrameType, NewFrameHeader};

/// Bits, the most significant first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for bit in (0..count).rev() {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> bit & 1) as u8) << (7 - self.used % 8);
            }
            self.used += 1;
        }
    }

    fn flag(&mut self, value: bool) {
        self.put(u32::from(value), 1);
    }

    /// Magnitude, then sign.
    fn signed(&mut self, value: i32, count: u32) {
        self.put(value.unsigned_abs(), count);
        self.flag(value < 0);
    }

    fn optional(&mut self, value: i32, count: u32) {
        self.flag(value != 0);
        if value != 0 {
            self.signed(value, count);
        }
    }

    fn probability(&mut self, value: u8) {
        self.flag(value != 255);
        if value != 255 {
            self.put(u32::from(value), 8);
        }
    }
}

/// A chunk that shows the picture in a reference slot again.
pub(super) fn show_existing(slot: u8) -> Vec<u8> {
    vec![0b1000_1000 | (slot & 7)]
}

/// The header's bytes, with `header_size_in_bytes` as it stands in `h`. Profile 0 only.
pub(super) fn write(h: &NewFrameHeader) -> Vec<u8> {
    let mut b = Bits::default();
    b.put(2, 2);
    b.put(0, 3); // profile 0, not a frame shown again
    let key = h.frame_type == FrameType::KeyFrame;
    b.flag(!key);
    b.flag(h.show_frame);
    b.flag(h.error_resilient_mode);
    if key {
        b.put(0x49_8342, 24);
        let colour = h.color_config.map_or((0, false), |c| (c.color_space, c.color_range));
        b.put(u32::from(colour.0), 3);
        b.flag(colour.1);
        size(&mut b, h);
    } else {
        if !h.show_frame {
            b.flag(h.intra_only);
        }
        if !h.error_resilient_mode {
            b.put(u32::from(h.reset_frame_context), 2);
        }
        if h.intra_only {
            b.put(0x49_8342, 24);
            b.put(u32::from(h.refresh_frame_flags), 8);
            size(&mut b, h);
        } else {
            b.put(u32::from(h.refresh_frame_flags), 8);
            for i in 0..3 {
                b.put(u32::from(h.ref_frame_idx[i]), 3);
                b.flag(h.ref_frame_sign_bias[i + 1]);
            }
            b.put(0, 3); // the size of none of the references
            size(&mut b, h);
            b.flag(h.allow_high_precision_mv);
            // Here, filters are numbered: regular, smooth, sharp, bilinear, switchable.
            b.flag(h.interpolation_filter == 4);
            if h.interpolation_filter < 4 {
                b.put([1, 0, 2, 3][usize::from(h.interpolation_filter)], 2);
            }
        }
    }
    if !h.error_resilient_mode {
        b.flag(h.refresh_frame_context);
        b.flag(h.frame_parallel_decoding_mode);
    }
    b.put(u32::from(h.frame_context_idx), 2);
    loop_filter(&mut b, h);
    let q = h.quantization;
    b.put(u32::from(q.base_q_idx), 8);
    for delta in [q.delta_q_y_dc, q.delta_q_uv_dc, q.delta_q_uv_ac] {
        b.optional(delta, 4);
    }
    segmentation(&mut b, h);
    let (least, most) = tile_columns_log2(h.width);
    for step in least..most {
        b.flag(step < h.tile_cols_log2);
        if step >= h.tile_cols_log2 {
            break;
        }
    }
    b.flag(h.tile_rows_log2 > 0);
    if h.tile_rows_log2 > 0 {
        b.flag(h.tile_rows_log2 > 1);
    }
    b.put(u32::from(h.header_size_in_bytes), 16);
    b.bytes
}

/// Least and largest base-2 logarithm of the number of tile columns (§6.2.14).
pub(super) fn tile_columns_log2(width: u32) -> (u32, u32) {
    let superblocks = width.div_ceil(64);
    let least = (0..6).find(|n| 64 << n >= superblocks).unwrap_or(6);
    let most = (1..16).find(|n| superblocks >> n < 4).map_or(0, |n| n - 1);
    (least, most)
}

fn size(b: &mut Bits, h: &NewFrameHeader) {
    b.put(h.width - 1, 16);
    b.put(h.height - 1, 16);
    let differs = (h.render_width, h.render_height) != (h.width, h.height);
    b.flag(differs);
    if differs {
        b.put(h.render_width - 1, 16);
        b.put(h.render_height - 1, 16);
    }
}

fn loop_filter(b: &mut Bits, h: &NewFrameHeader) {
    let filter = h.loop_filter;
    b.put(u32::from(filter.level), 6);
    b.put(u32::from(filter.sharpness), 3);
    b.flag(filter.delta_enabled);
    if filter.delta_enabled {
        b.flag(true);
        for delta in filter.ref_deltas.into_iter().chain(filter.mode_deltas) {
            b.flag(true);
            b.signed(i32::from(delta), 6);
        }
    }
}

fn segmentation(b: &mut Bits, h: &NewFrameHeader) {
    let s = h.segmentation;
    b.flag(s.enabled);
    if !s.enabled {
        return;
    }
    b.flag(s.update_map);
    if s.update_map {
        for p in s.tree_probs {
            b.probability(p);
        }
        b.flag(s.temporal_update);
        if s.temporal_update {
            for p in s.pred_prob {
                b.probability(p);
            }
        }
    }
    b.flag(true);
    b.flag(s.abs_or_delta_update);
    for segment in 0..8 {
        for (feature, (bits, is_signed)) in
            [(8, true), (6, true), (2, false), (0, false)].into_iter().enumerate()
        {
            let enabled = s.feature_enabled[segment][feature];
            b.flag(enabled);
            if enabled {
                let value = s.feature_data[segment][feature];
                b.put(value.unsigned_abs(), bits);
                if is_signed {
                    b.flag(value < 0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use vp9dec::header::{FrameHeader, PersistentState, parse_uncompressed_header};

    use windlass_vpx::Control;

    use super::super::Encoding;
    use super::*;

    #[test]
    fn headers_written_anew_read_as_before() {
        let stream = Encoding::new(70, 50, 6)
            .set(Control::AqMode, 3)
            .set(Control::ChromaDeltaQ, 7)
            .encode("headers")
            .unwrap();
        let mut persistent = PersistentState::default();
        for chunk in &stream.chunks {
            let Ok((FrameHeader::New(header), _)) = parse_uncompressed_header(chunk, &persistent)
            else {
                panic!("no new frame")
            };
            persistent.ref_frame_sizes = [(70, 50); 8];
            let (again, _) = parse_uncompressed_header(&write(&header), &persistent).unwrap();
            assert_eq!(again, FrameHeader::New(header.clone()));
            persistent.segmentation.enabled = header.segmentation.feature_enabled;
            persistent.segmentation.data = header.segmentation.feature_data;
        }
    }

    #[test]
    fn tile_columns_are_256_to_4096_wide() {
        assert_eq!(tile_columns_log2(64), (0, 0));
        assert_eq!(tile_columns_log2(512), (0, 1));
        assert_eq!(tile_columns_log2(4096), (0, 4));
        assert_eq!(tile_columns_log2(4160), (1, 4));
    }
}
