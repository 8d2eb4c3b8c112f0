//! The size of a VP9 key frame's pictures without decoding it (VP9 specification §6.2, §7.2).

use crate::Size;

/// The size of a VP9 key frame, from the first bytes of its uncompressed header; `None` if it is no key frame of
/// profile 0.
pub fn key_frame_size(frame: &[u8]) -> Option<Size> {
    let mut at = 0;
    // The next `n` ≤ 32 bits, most significant first.
    let mut literal = |n: usize| -> Option<u32> {
        let bits = (at..at + n).try_fold(0, |value, bit: usize| {
            let byte = frame.get(bit / 8)?;
            Some(value << 1 | u32::from(byte >> (7 - bit % 8) & 1))
        });
        at += n;
        bits
    };
    let (marker, profile) = (literal(2)?, literal(2)?);
    let (shows_existing, inter) = (literal(1)?, literal(1)?);
    if (marker, profile, shows_existing, inter) != (2, 0, 0, 0) {
        return None;
    }
    literal(2)?; // show_frame, error_resilient_mode
    if literal(24)? != 0x0049_8342 {
        return None;
    }
    let colour_space = literal(3)?;
    if colour_space == 7 {
        return None; // RGB, not in profile 0
    }
    literal(1)?; // color_range
    let (width, height) = (literal(16)?, literal(16)?);
    Some(Size::new(u16::try_from(width + 1).ok()?, u16::try_from(height + 1).ok()?))
}
