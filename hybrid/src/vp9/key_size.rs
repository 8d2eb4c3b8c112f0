//! The size of a key frame's pictures without decoding it (specification §6.2, §7.2).

use super::bit_reader::BitReader;

/// Width and height of a key frame, from the first bytes of its uncompressed header; profile 0 only. `None` of all else.
pub fn key_frame_size(frame: &[u8]) -> Option<(u16, u16)> {
    let mut bits = BitReader::new(frame);
    let (marker, profile) = (bits.literal(2), bits.literal(2));
    let (shows_existing, inter) = (bits.flag(), bits.flag());
    if marker != 2 || profile != 0 || shows_existing || inter {
        return None;
    }
    bits.literal(2); // show_frame, error_resilient_mode
    if bits.literal(24) != 0x0049_8342 {
        return None;
    }
    let colour_space = bits.literal(3);
    if colour_space == 7 {
        return None; // RGB, not in profile 0
    }
    bits.flag(); // color_range
    let (width, height) = (bits.literal(16), bits.literal(16));
    let size = (u16::try_from(width + 1).ok()?, u16::try_from(height + 1).ok()?);
    (!bits.overrun()).then_some(size)
}
