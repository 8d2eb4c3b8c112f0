//! AV1 in RTP (AV1 RTP payload specification). Malformed input is an error, never a panic.

use windlass_types::{FrameLayers, Size};

use super::descriptor::{
    ALL_TEMPORAL, BitReader, Descriptor, MAX_SPATIAL, Malformed, PictureId, SpatialLayers,
};

/// OBU: sequence header.
const SEQUENCE_HEADER: u8 = 1;
/// OBUs that a frame has: frame header, tile group, and frame, which is both.
const FRAME: [u8; 3] = [3, 4, 6];

/// Reads the aggregation header at the start of an RTP payload. `frame`: what the publisher says of it beside the
/// payload, without which spatial layers are not told apart.
pub(crate) fn parse(frame: Option<FrameLayers>, payload: &[u8]) -> Result<Descriptor, Malformed> {
    let &[header, _, ..] = payload else { return Err(Malformed) };
    let (continues, new_sequence) = (header & 0x80 != 0, header & 0x08 != 0);
    if continues && new_sequence {
        return Err(Malformed);
    }
    let temporal = frame.map(|frame| frame.temporal).or_else(|| temporal_layer(payload));
    let count = frame.map_or(0, |frame| usize::from(frame.spatial_layers));
    Ok(Descriptor {
        picture_id: frame.map(|frame| PictureId { value: frame.picture, wide: true, offset: None }),
        tl0: None,
        inter: !new_sequence,
        begin: frame.map_or(!continues, |frame| frame.begin),
        end: frame.is_none_or(|frame| frame.end),
        spatial: frame.map_or(0, |frame| frame.spatial),
        temporal,
        // In all scalability modes of WebRTC a base frame is all that later frames of higher layers need.
        resumes: temporal.filter(|layer| *layer == 0).map(|_| ALL_TEMPORAL),
        layers: (count > 1).then(|| spatial_layers(count.min(MAX_SPATIAL), payload)),
        len: 1,
    })
}

/// The spatial layers of a key frame. Each counts as twice as large as the one below, as in most modes.
fn spatial_layers(count: usize, payload: &[u8]) -> SpatialLayers {
    let largest = key_frame_size(payload);
    let mut sizes = [None; MAX_SPATIAL];
    for (n, size) in sizes.iter_mut().enumerate().take(count) {
        let by = count - 1 - n;
        let smaller = largest.map(|Size { width, height }| Size::new(width >> by, height >> by));
        *size = smaller.filter(|size| size.pixels() > 0);
    }
    SpatialLayers { count, sizes }
}

/// Size of a key frame, from its first packet; `None` if that has no sequence header.
pub(crate) fn key_frame_size(payload: &[u8]) -> Option<Size> {
    let header = elements(payload).find(|obu| kind(obu) == Some(SEQUENCE_HEADER))?;
    let (first, mut data) = header.split_first()?;
    if first & 4 != 0 {
        data = data.get(1..)?;
    }
    if first & 2 != 0 {
        data = leb128(data)?.1;
    }
    size(data)
}

/// The temporal layer of the first frame that begins in a packet; `None` where the frame does not say (AV1 §5.3.3).
fn temporal_layer(payload: &[u8]) -> Option<u8> {
    let continued = usize::from(payload.first()? & 0x80 != 0);
    let frame = |obu: &&[u8]| kind(obu).is_some_and(|kind| FRAME.contains(&kind));
    match elements(payload).skip(continued).find(frame)? {
        [first, extension, ..] if first & 4 != 0 => Some(extension >> 5),
        _ => None,
    }
}

fn kind(obu: &[u8]) -> Option<u8> {
    obu.first().map(|first| first >> 3 & 15)
}

/// The OBUs of a packet, of which the first and the last may be parts.
fn elements(payload: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (header, mut rest) = payload.split_first().unwrap_or((&0, &[]));
    // Number of OBUs, if the last one's length is left out.
    let (count, mut n) = (usize::from(header >> 4 & 3), 0_usize);
    std::iter::from_fn(move || {
        n += 1;
        let (length, after) = match n {
            _ if rest.is_empty() => return None,
            n if n == count => (rest.len(), rest),
            _ => leb128(rest).map(|(length, after)| (length as usize, after))?,
        };
        let (obu, after) = after.split_at_checked(length)?;
        rest = after;
        Some(obu)
    })
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
        assert!(parse(None, &packet).expect("a packet").starts_key());
        assert_eq!(key_frame_size(&packet), Some(Size::new(640, 360)));
    }

    #[test]
    fn the_temporal_layer_of_a_frame_is_read() {
        let layer = |packet: &[u8]| parse(None, packet).expect("a packet").temporal;
        // Of one OBU with an extension: a frame of layer 0, then of layer 2.
        assert_eq!(layer(&[0x10, 0x34, 0x00, 1]), Some(0));
        assert_eq!(
            parse(None, &[0x10, 0x34, 0x00, 1]).expect("a packet").resumes,
            Some(ALL_TEMPORAL)
        );
        assert_eq!(layer(&[0x10, 0x34, 0x40, 1]), Some(2));
        assert_eq!(layer(&[0x10, 0x30, 0x40, 1]), None, "no extension");
        assert_eq!(layer(&[0x90, 0x34, 0x40, 1]), None, "a part that looks like a frame");
        // What continues, with its length, then a frame.
        assert_eq!(layer(&[0xa0, 0x01, 0x34, 0x34, 0x20, 1]), Some(1));
    }

    #[test]
    fn spatial_layers_are_as_the_publisher_says_beside_the_payload() {
        let frame = FrameLayers {
            begin: true,
            end: false,
            spatial: 0,
            temporal: 0,
            spatial_layers: 3,
            picture: 7,
        };
        let base = parse(Some(frame), &key()).expect("a packet");
        assert_eq!((base.begin, base.end, base.spatial), (true, false, 0));
        let id = base.picture_id.expect("numbered");
        assert_eq!((id.value, id.offset), (7, None));
        let sizes = [(160, 90), (320, 180), (640, 360)].map(|(w, h)| Some(Size::new(w, h)));
        assert_eq!(base.layers, Some(SpatialLayers { count: 3, sizes }));
        let above = FrameLayers { end: true, spatial: 2, spatial_layers: 0, ..frame };
        let above = parse(Some(above), &[0x10, 0x30]).expect("a packet");
        assert_eq!((above.end, above.spatial, above.layers), (true, 2, None));
    }

    #[test]
    fn other_packets_begin_no_key_frame() {
        assert!(!parse(None, &[0x10, 0x30]).expect("a packet").starts_key());
        assert!(!parse(None, &[0x90, 0x30]).expect("a packet that continues").begin);
        assert_eq!(parse(None, &[0x88, 0x30]), Err(Malformed));
        assert_eq!(parse(None, &[0x10]), Err(Malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data: Vec<u8>, bits: u32) {
            let _ = (parse(None, &data), key_frame_size(&data));
            let _ = parse(Some(FrameLayers::from_bits(bits)), &data);
        }
    }
}
