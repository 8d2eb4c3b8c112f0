//! H.264 in RTP, packetization mode 1 (RFC 6184). Malformed input is an error, never a panic.
//!
//! There is no descriptor: the packets' NAL units say where a key frame begins. A frame counts as one if it has a
//! sequence parameter set: without it nobody could begin to decode there.

use windlass_types::Size;

use super::descriptor::{ALL_TEMPORAL, BitReader, Descriptor, Malformed};

/// NAL unit: sequence parameter set.
const SPS: u8 = 7;
/// NAL unit: says of the slice after it which layer it is of (H.264 §7.3.1; RFC 6190 §1.1.3).
const PREFIX: u8 = 14;
/// Packet: several NAL units of one time.
const AGGREGATE: u8 = 24;
/// Packet: a fragment of a NAL unit.
const FRAGMENT: u8 = 28;
/// Profiles whose parameter sets have a chroma format (H.264 §7.3.2.1.1).
const WITH_CHROMA: [u32; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/// Reads the start of an RTP payload.
pub(crate) fn parse(payload: &[u8]) -> Result<Descriptor, Malformed> {
    let kind = payload.first().ok_or(Malformed)? & 0x1f;
    let whole = match kind {
        0 | 30.. => return Err(Malformed),
        FRAGMENT => payload.get(1).ok_or(Malformed)? & 0x80 != 0,
        _ => true,
    };
    let key = parameter_set(payload).is_some();
    let (picture_id, tl0) = (None, None);
    let temporal = temporal_layer(payload);
    Ok(Descriptor {
        picture_id,
        tl0,
        inter: !key,
        begin: whole,
        end: true,
        spatial: 0,
        temporal,
        // In all scalability modes of WebRTC a base frame is all that later frames of higher layers need.
        resumes: temporal.filter(|layer| *layer == 0).map(|_| ALL_TEMPORAL),
        layers: None,
        len: 0,
    })
}

/// Size of a key frame, from its first packet; `None` if that has none.
pub(crate) fn key_frame_size(payload: &[u8]) -> Option<Size> {
    size(parameter_set(payload)?)
}

/// The sequence parameter set of a packet, without its header.
fn parameter_set(payload: &[u8]) -> Option<&[u8]> {
    unit(payload, SPS)
}

/// The temporal layer of the slice that begins in a packet; `None` where no unit says it.
fn temporal_layer(payload: &[u8]) -> Option<u8> {
    match unit(payload, PREFIX)? {
        [first, _, layers, ..] if first & 0x80 != 0 => Some(layers >> 5),
        _ => None,
    }
}

/// The first NAL unit of a kind that a packet has whole, without its header.
fn unit(payload: &[u8], kind: u8) -> Option<&[u8]> {
    let (first, mut rest) = payload.split_first()?;
    match first & 0x1f {
        own if own == kind => Some(rest),
        AGGREGATE => loop {
            let (length, after) = rest.split_first_chunk::<2>()?;
            let (unit, after) = after.split_at_checked(u16::from_be_bytes(*length).into())?;
            match unit.split_first() {
                Some((header, unit)) if header & 0x1f == kind => return Some(unit),
                _ => rest = after,
            }
        },
        _ => None,
    }
}

/// Width and height of a sequence parameter set (H.264 §7.3.2.1.1).
fn size(set: &[u8]) -> Option<Size> {
    // A 3 after two zeros is there to keep start codes out.
    let mut plain = Vec::with_capacity(set.len().min(64));
    for &byte in set.iter().take(64) {
        if byte != 3 || !plain.ends_with(&[0, 0]) {
            plain.push(byte);
        }
    }
    let mut from = BitReader::new(&plain);
    let profile = from.bits(8)?;
    from.bits(16)?;
    from.exp_golomb()?;
    let (mut chroma, mut planes) = (1, false);
    if WITH_CHROMA.contains(&profile) {
        chroma = from.exp_golomb()?;
        if chroma == 3 {
            planes = from.flag()?;
        }
        from.exp_golomb()?;
        from.exp_golomb()?;
        from.flag()?;
        if from.flag()? {
            // Scaling lists: no encoder of a call has them.
            return None;
        }
    }
    from.exp_golomb()?;
    match from.exp_golomb()? {
        0 => _ = from.exp_golomb()?,
        1 => {
            from.flag()?;
            from.exp_golomb()?;
            from.exp_golomb()?;
            for _ in 0..from.exp_golomb()?.min(255) {
                from.exp_golomb()?;
            }
        }
        _ => {}
    }
    from.exp_golomb()?;
    from.flag()?;
    let width = from.exp_golomb()?.checked_add(1)?.checked_mul(16)?;
    let rows = from.exp_golomb()?.checked_add(1)?;
    let fields = if from.flag()? { 1 } else { 2 };
    if fields == 2 {
        from.flag()?;
    }
    from.flag()?;
    let height = rows.checked_mul(16 * fields)?;
    let mut cropped = (0, 0);
    if from.flag()? {
        let mut side = || from.exp_golomb()?.checked_add(from.exp_golomb()?);
        let (across, down) = (side()?, side()?);
        let subsampled = |by: bool| if by && !planes { 2 } else { 1 };
        let units = (subsampled(chroma == 1 || chroma == 2), subsampled(chroma == 1) * fields);
        cropped = (across.checked_mul(units.0)?, down.checked_mul(units.1)?);
    }
    let side = |all: u32, cropped| u16::try_from(all.checked_sub(cropped)?).ok().filter(|s| *s > 0);
    Some(Size::new(side(width, cropped.0)?, side(height, cropped.1)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A parameter set of x264: baseline, 640×360, which is 368 rows, of which 8 are cropped.
    const SET: [u8; 23] = [
        0x67, 0x42, 0xc0, 0x1e, 0xd9, 0x00, 0xa0, 0x2f, 0xf9, 0x70, 0x16, 0xc8, 0x00, 0x00, 0x03,
        0x00, 0x08, 0x00, 0x00, 0x03, 0x01, 0xe4, 0x78,
    ];

    #[test]
    fn a_parameter_set_begins_a_key_frame_and_has_its_size() {
        assert!(parse(&SET).expect("a packet").starts_key());
        assert_eq!(key_frame_size(&SET), Some(Size::new(640, 360)));
        let mut several = vec![0x78, 0, SET.len() as u8];
        several.extend(SET);
        several.extend([0, 2, 0x68, 0xce]);
        assert!(parse(&several).expect("a packet").starts_key());
        assert_eq!(key_frame_size(&several), Some(Size::new(640, 360)));
    }

    #[test]
    fn the_temporal_layer_before_a_slice_is_read() {
        let layer = |packet: &[u8]| parse(packet).expect("a packet").temporal;
        let (base, higher) = ([0x6e, 0xc0, 0x80, 0x07], [0x0e, 0x80, 0x80, 0x2f]);
        assert_eq!((layer(&base), layer(&higher)), (Some(0), Some(1)));
        assert_eq!(parse(&base).expect("a packet").resumes, Some(ALL_TEMPORAL));
        let several = [&[0x18, 0, 4][..], &higher, &[0, 2, 0x01, 0x9a]].concat();
        assert_eq!(layer(&several), Some(1));
        assert_eq!(layer(&[0x41, 0xff, 0xff, 0xff]), None);
    }

    #[test]
    fn fragments_and_slices_begin_no_key_frame() {
        // A fragment that begins a slice of a key frame, one that follows, and a slice.
        for (packet, begins) in
            [(&[0x7c, 0x85, 1][..], true), (&[0x7c, 0x05], false), (&[0x41], true)]
        {
            let descriptor = parse(packet).expect("a packet");
            assert!(!descriptor.starts_key() && descriptor.begin == begins, "{packet:?}");
        }
        assert_eq!(parse(&[0x1f]), Err(Malformed));
        assert_eq!(parse(&[]), Err(Malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data: Vec<u8>) {
            let _ = (parse(&data), key_frame_size(&data));
        }
    }
}
