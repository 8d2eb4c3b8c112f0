//! The uncompressed header (specification §6.2, §7.2).

use super::{
    FrameType, LoopFilterParams, Persistent, QuantiserParams, SegmentFeatures, Segmentation,
};
use crate::DecodeError;
use crate::bit_reader::BitReader;

/// The three bytes of `frame_sync_code` (§7.2.1).
const SYNC_CODE: u32 = 0x49_83_42;
/// Value of `color_space` for RGB pictures (§7.2.2).
const CS_RGB: u32 = 7;
/// The filters of `literal_to_type`, as this crate numbers them: 0 regular, 1 smooth, 2 sharp, 3 bilinear.
const FILTERS: [u8; 4] = [1, 0, 2, 3];

/// The content of an uncompressed header.
#[derive(Debug, Clone)]
pub(crate) enum Header {
    /// The frame in a slot is shown again.
    ShowExisting {
        /// Number of the slot, 0 to 7.
        slot: u8,
    },
    /// An encoded frame follows.
    Frame(FrameHeader),
}

/// The header of an encoded frame.
#[derive(Debug, Clone)]
pub(crate) struct FrameHeader {
    pub(crate) frame_type: FrameType,
    pub(crate) show: bool,
    pub(crate) error_resilient: bool,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// The value of `reset_frame_context`, 0 to 3.
    pub(crate) reset_context: u8,
    pub(crate) refresh_mask: u8,
    /// The slots of the last, golden and alternate reference.
    pub(crate) reference_slots: [u8; 3],
    /// Sign bias by reference: intra (never set), last, golden, altref.
    pub(crate) sign_bias: [bool; 4],
    pub(crate) high_precision: bool,
    /// The interpolation filter of all blocks; `None`: every block has its own.
    pub(crate) filter: Option<u8>,
    pub(crate) refresh_context: bool,
    pub(crate) parallel: bool,
    /// The value of `frame_context_idx` in the stream; the effective one is 0 after a reset.
    pub(crate) context: u8,
    pub(crate) loop_filter: LoopFilterParams,
    pub(crate) quantiser: QuantiserParams,
    pub(crate) segmentation: Segmentation,
    pub(crate) tile_cols_log2: u32,
    pub(crate) tile_rows_log2: u32,
    /// Length of the uncompressed header, in bytes.
    pub(crate) bytes: usize,
    /// Length of the compressed header that follows, in bytes.
    pub(crate) compressed_bytes: usize,
}

impl FrameHeader {
    /// Whether the frame is a key frame or an intra-only frame (`FrameIsIntra`).
    pub(crate) fn is_intra(&self) -> bool {
        self.frame_type != FrameType::Inter
    }

    /// Whether the frame resets the state that earlier frames left (`setup_past_independence`).
    pub(crate) fn independent(&self) -> bool {
        self.is_intra() || self.error_resilient
    }

    /// Width in 8×8 units (`MiCols`).
    pub(crate) fn mi_cols(&self) -> usize {
        self.width.div_ceil(8) as usize
    }

    /// Height in 8×8 units (`MiRows`).
    pub(crate) fn mi_rows(&self) -> usize {
        self.height.div_ceil(8) as usize
    }

    /// Width in superblocks of 64×64 samples (`Sb64Cols`).
    pub(crate) fn sb_cols(&self) -> usize {
        self.width.div_ceil(64) as usize
    }

    /// Height in superblocks of 64×64 samples (`Sb64Rows`).
    pub(crate) fn sb_rows(&self) -> usize {
        self.height.div_ceil(64) as usize
    }
}

/// Parses the header at the start of `data`. Inter frames take sizes and deltas from `persistent`,
/// `None` while no key frame has been seen.
pub(crate) fn parse(data: &[u8], persistent: Option<&Persistent>) -> Result<Header, DecodeError> {
    let mut r = BitReader::new(data);
    if data.is_empty() {
        return Err(DecodeError::Empty);
    }
    if r.literal(2) != 2 {
        return Err(DecodeError::Header);
    }
    let profile = u8::from(r.flag()) | u8::from(r.flag()) << 1;
    if profile != 0 {
        return Err(DecodeError::Profile(profile));
    }
    if r.flag() {
        let slot = r.literal(3) as u8;
        return if r.overrun() {
            Err(DecodeError::Truncated)
        } else {
            Ok(Header::ShowExisting { slot })
        };
    }
    let key = !r.flag();
    let show = r.flag();
    let error_resilient = r.flag();
    let blank = Persistent::default();
    let mut frame = FrameHeader {
        frame_type: FrameType::Key,
        show,
        error_resilient,
        width: 0,
        height: 0,
        reset_context: 0,
        refresh_mask: 0xff,
        reference_slots: [0; 3],
        sign_bias: [false; 4],
        high_precision: false,
        filter: Some(0),
        refresh_context: false,
        parallel: true,
        context: 0,
        loop_filter: LoopFilterParams::default(),
        quantiser: QuantiserParams::default(),
        segmentation: Segmentation::default(),
        tile_cols_log2: 0,
        tile_rows_log2: 0,
        bytes: 0,
        compressed_bytes: 0,
    };
    if key {
        sync_code(&mut r)?;
        if r.literal(3) == CS_RGB {
            // 4:4:4 needs profile 1.
            return Err(DecodeError::Header);
        }
        r.flag(); // color_range
        (frame.width, frame.height) = frame_size(&mut r);
        render_size(&mut r);
    } else {
        let intra_only = !show && r.flag();
        frame.reset_context = if error_resilient { 0 } else { r.literal(2) as u8 };
        frame.frame_type = if intra_only { FrameType::IntraOnly } else { FrameType::Inter };
        if intra_only {
            sync_code(&mut r)?;
            frame.refresh_mask = r.literal(8) as u8;
            (frame.width, frame.height) = frame_size(&mut r);
            render_size(&mut r);
        } else {
            inter_fields(&mut frame, &mut r, persistent.ok_or(DecodeError::NeedKeyFrame)?)?;
        }
    }
    if !error_resilient {
        frame.refresh_context = r.flag();
        frame.parallel = r.flag();
    }
    frame.context = r.literal(2) as u8;
    let before =
        if frame.independent() { &blank } else { persistent.ok_or(DecodeError::NeedKeyFrame)? };
    frame.loop_filter = loop_filter(&mut r, before.loop_filter);
    frame.quantiser = QuantiserParams {
        base: r.literal(8) as u8,
        delta_y_dc: delta_q(&mut r),
        delta_uv_dc: delta_q(&mut r),
        delta_uv_ac: delta_q(&mut r),
    };
    frame.segmentation = segmentation(&mut r, before.segmentation);
    tile_info(&mut frame, &mut r);
    frame.compressed_bytes = r.literal(16) as usize;
    if r.overrun() {
        return Err(DecodeError::Truncated);
    }
    if frame.compressed_bytes == 0 {
        return Err(DecodeError::Header);
    }
    frame.bytes = r.bytes_used();
    Ok(Header::Frame(frame))
}

fn sync_code(r: &mut BitReader<'_>) -> Result<(), DecodeError> {
    if r.literal(24) == SYNC_CODE { Ok(()) } else { Err(DecodeError::Header) }
}

fn frame_size(r: &mut BitReader<'_>) -> (u32, u32) {
    let width = r.literal(16) + 1;
    (width, r.literal(16) + 1)
}

/// Skips the render size: a hint for the display, which does not change the picture.
fn render_size(r: &mut BitReader<'_>) {
    if r.flag() {
        r.literal(32);
    }
}

fn inter_fields(
    frame: &mut FrameHeader,
    r: &mut BitReader<'_>,
    persistent: &Persistent,
) -> Result<(), DecodeError> {
    frame.refresh_mask = r.literal(8) as u8;
    for i in 0..3 {
        frame.reference_slots[i] = r.literal(3) as u8;
        // Read, and forgotten again with everything else that is past (libvpx resets it only now).
        frame.sign_bias[i + 1] = r.flag() && !frame.error_resilient;
    }
    let mut found = false;
    for slot in frame.reference_slots {
        if r.flag() {
            (frame.width, frame.height) =
                persistent.slot_sizes[usize::from(slot)].ok_or(DecodeError::MissingReference)?;
            found = true;
            break;
        }
    }
    if !found {
        (frame.width, frame.height) = frame_size(r);
    }
    render_size(r);
    frame.high_precision = r.flag();
    frame.filter = if r.flag() { None } else { Some(FILTERS[r.literal(2) as usize]) };
    Ok(())
}

fn loop_filter(r: &mut BitReader<'_>, before: LoopFilterParams) -> LoopFilterParams {
    let mut params = before;
    params.level = r.literal(6) as u8;
    params.sharpness = r.literal(3) as u8;
    params.delta_enabled = r.flag();
    if params.delta_enabled && r.flag() {
        for delta in params.ref_deltas.iter_mut().chain(&mut params.mode_deltas) {
            if r.flag() {
                *delta = r.signed(6) as i8;
            }
        }
    }
    params
}

fn delta_q(r: &mut BitReader<'_>) -> i8 {
    if r.flag() { r.signed(4) as i8 } else { 0 }
}

fn segmentation(r: &mut BitReader<'_>, before: Segmentation) -> Segmentation {
    let mut s = before;
    s.update_map = false;
    s.temporal_update = false;
    s.enabled = r.flag();
    if !s.enabled {
        return s;
    }
    s.update_map = r.flag();
    if s.update_map {
        let mut probability = |read: bool| {
            if read && r.flag() { r.literal(8) as u8 } else { 255 }
        };
        s.tree = std::array::from_fn(|_| probability(true));
        s.temporal_update = r.flag();
        let mut probability = |read: bool| {
            if read && r.flag() { r.literal(8) as u8 } else { 255 }
        };
        s.predicted = std::array::from_fn(|_| probability(s.temporal_update));
    }
    if r.flag() {
        s.absolute = r.flag();
        for features in &mut s.features {
            *features = SegmentFeatures {
                quantiser: r.flag().then(|| r.signed(8) as i16),
                loop_filter: r.flag().then(|| r.signed(6) as i8),
                reference: r.flag().then(|| r.literal(2) as u8),
                skip: r.flag(),
            };
        }
    }
    s
}

fn tile_info(frame: &mut FrameHeader, r: &mut BitReader<'_>) {
    let columns = frame.sb_cols();
    let mut least = 0;
    while (64usize << least) < columns {
        least += 1;
    }
    let mut most = 1;
    while columns >> most >= 4 {
        most += 1;
    }
    most -= 1;
    frame.tile_cols_log2 = least;
    while frame.tile_cols_log2 < most && r.flag() {
        frame.tile_cols_log2 += 1;
    }
    if r.flag() {
        frame.tile_rows_log2 = 1 + u32::from(r.flag());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_profiles_and_foreign_bytes_are_refused() {
        assert_eq!(parse(&[], None).err(), Some(DecodeError::Empty));
        assert_eq!(parse(&[0x00, 0, 0], None).err(), Some(DecodeError::Header));
        assert_eq!(parse(&[0b1010_0000], None).err(), Some(DecodeError::Profile(1)));
        assert_eq!(parse(&[0b1001_0000], None).err(), Some(DecodeError::Profile(2)));
    }

    #[test]
    fn an_inter_frame_needs_a_key_frame_before_it() {
        assert_eq!(parse(&[0b1000_0110, 0, 0, 0], None).err(), Some(DecodeError::NeedKeyFrame));
    }

    #[test]
    fn a_key_frame_header_cut_short_is_truncated() {
        let data = [0b1000_0010, 0x49, 0x83, 0x42, 0, 0];
        assert_eq!(parse(&data, None).err(), Some(DecodeError::Truncated));
    }
}
