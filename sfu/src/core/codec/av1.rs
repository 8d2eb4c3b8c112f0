//! AV1 in RTP (AV1 RTP payload specification). Malformed input is an error, never a panic.

use windlass_types::Size;

use super::descriptor::{BitReader, Descriptor, Malformed};

/// OBU: sequence header.
const SEQUENCE_HEADER: u8 = 1;

/// Reads the aggregation header at the start of an RTP payload.
pub(crate) fn parse(payload: &[u8]) -> Result<Descriptor, Malformed> {
    let &[header, _, ..] = payload else { return Err(Malformed) };
    let (continues, new_sequence) = (header & 0x80 != 0, header & 0x08 != 0);
    if continues && new_sequence {
        return Err(Malformed);
    }
    let (picture_id, tl0, begin) = (None, None, !continues);
    Ok(Descriptor {
        picture_id,
        tl0,
        inter: !new_sequence,
        begin,
        end: true,
        spatial: 0,
        size: None,
        len: 1,
    })
}

/// Size of a key frame, from its first packet; `None` if that has no sequence header.
pub(crate) fn key_frame_size(payload: &[u8]) -> Option<Size> {
    let (header, mut rest) = payload.split_first()?;
    // Number of OBUs, if the last one's length is left out.
    let count = header >> 4 & 3;
    for n in 1.. {
        let (length, after) = if n == count {
            (rest.len(), rest)
        } else {
            leb128(rest).map(|(l, r)| (l as usize, r))?
        };
        let (obu, after) = after.split_at_checked(length)?;
        let (first, mut data) = obu.split_first()?;
        if first >> 3 & 15 == SEQUENCE_HEADER {
            if first & 4 != 0 {
                data = data.get(1..)?;
            }
            if first & 2 != 0 {
                data = leb128(data)?.1;
            }
            return size(data);
        }
        rest = after;
    }
    None
}

/// A number in LEB128 (AV1 §4.10.5), and what follows.
fn leb128(from: &[u8]) -> Option<(u32, &[u8])> {
    let mut value = 0;
    for (n, byte) in from.iter().enumerate().take(4) {
        value |= u32::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            return Some((value, &from[n + 1..]));
        }
    }
    None
}

/// Maximum frame size of a sequence header (AV1 §5.5.1).
fn size(header: &[u8]) -> Option<Size> {
    let mut from = BitReader::new(header);
    from.bits(4)?;
    if from.flag()? {
        from.bits(5)?;
    } else {
        if from.flag()? {
            // Timing: no encoder of a call has it.
            return None;
        }
        let delays = from.flag()?;
        for _ in 0..=from.bits(5)? {
            from.bits(12)?;
            if from.bits(5)? > 7 {
                from.bits(1)?;
            }
            if delays && from.flag()? {
                from.bits(4)?;
            }
        }
    }
    let (width_bits, height_bits) = (from.bits(4)? + 1, from.bits(4)? + 1);
    let mut side = |bits| u16::try_from(from.bits(bits)? + 1).ok();
    Some(Size::new(side(width_bits)?, side(height_bits)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A first packet: one OBU more than the sequence header of 640×360, whose sides have 10 and 9 bits.
    fn key() -> Vec<u8> {
        // Profile 0, moving, full header; no timing, no delays, one operating point of level 5.
        let level = format!("{:03b}{:02b}{:02b}{:05b}{:012b}{:05b}", 0, 0, 0, 0, 0, 5);
        let sides = format!("{:04b}{:04b}{:010b}{:09b}", 9, 8, 639, 359);
        let mut bits = level + &sides;
        while bits.len() % 8 != 0 {
            bits.push('0');
        }
        let header = bits
            .as_bytes()
            .chunks(8)
            .map(|byte| byte.iter().fold(0, |value, bit| value << 1 | (bit - b'0')));
        let header: Vec<u8> = std::iter::once(0x08).chain(header).collect();
        let mut packet = vec![0x28, header.len() as u8];
        packet.extend(header);
        packet.extend([0x30, 1, 2, 3]);
        packet
    }

    #[test]
    fn a_new_sequence_begins_a_key_frame_and_has_its_size() {
        let packet = key();
        assert!(parse(&packet).expect("a packet").starts_key());
        assert_eq!(key_frame_size(&packet), Some(Size::new(640, 360)));
    }

    #[test]
    fn other_packets_begin_no_key_frame() {
        assert!(!parse(&[0x10, 0x30]).expect("a packet").starts_key());
        assert!(!parse(&[0x90, 0x30]).expect("a packet that continues").begin);
        assert_eq!(parse(&[0x88, 0x30]), Err(Malformed));
        assert_eq!(parse(&[0x10]), Err(Malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data: Vec<u8>) {
            let _ = (parse(&data), key_frame_size(&data));
        }
    }
}
