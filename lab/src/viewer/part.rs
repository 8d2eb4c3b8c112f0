//! What the payload of a packet says of its place in the frame, by the payload format of each codec.

use windlass_types::VideoCodec;

/// The place of a packet in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Whether the packet is the first of its frame.
    pub begins: bool,
    /// Whether the packet is the last of its frame.
    pub ends: bool,
    /// Whether the frame is a key frame. Codecs other than VP9 say so in the first packet alone.
    pub key: bool,
}

impl Part {
    /// The place of a packet; `None` of padding, which has no payload. `marker` is that of the RTP header.
    pub(crate) fn of(codec: VideoCodec, payload: &[u8], marker: bool) -> Option<Part> {
        let &first = payload.first()?;
        Some(match codec {
            VideoCodec::Vp9 => {
                Part { begins: first & 0x08 != 0, ends: first & 0x04 != 0, key: first & 0x40 == 0 }
            }
            VideoCodec::Vp8 => {
                let begins = first & 0x17 == 0x10;
                let key = payload.get(vp8_descriptor(payload)).is_some_and(|head| head & 1 == 0);
                Part { begins, ends: marker, key: begins && key }
            }
            VideoCodec::H264 => {
                let key = holds_parameters(first);
                Part { begins: key || begins_slice(payload), ends: marker, key }
            }
            // The aggregation header's bits Z (it continues a unit) and N (a new sequence begins).
            VideoCodec::Av1 => {
                Part { begins: first & 0x80 == 0, ends: marker, key: first & 0x08 != 0 }
            }
        })
    }
}

/// Length of the payload descriptor of VP8 (RFC 7741, 4.2), in bytes.
fn vp8_descriptor(payload: &[u8]) -> usize {
    let at = |n: usize| payload.get(n).copied().unwrap_or_default();
    if at(0) & 0x80 == 0 {
        return 1;
    }
    let extensions = at(1);
    let has = |bits: u8| usize::from(extensions & bits != 0);
    let picture_id = has(0x80) + has(0x80) * usize::from(at(2) & 0x80 != 0);
    2 + picture_id + has(0x40) + has(0x30)
}

/// Whether a NAL unit has parameter sets, which stand before each key frame: SPS, or what is aggregated with it.
fn holds_parameters(head: u8) -> bool {
    matches!(head & 0x1f, 7 | 24)
}

/// Whether a payload begins the first slice of a picture that is no key frame: the slice's first number is 0, which is
/// a single set bit.
fn begins_slice(payload: &[u8]) -> bool {
    match payload {
        [head, slice, ..] if head & 0x1f == 1 => slice & 0x80 != 0,
        [head, fragment, slice, ..] if head & 0x1f == 28 && fragment & 0x9f == 0x81 => {
            slice & 0x80 != 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(codec: VideoCodec, payload: &[u8]) -> [bool; 3] {
        let Part { begins, ends, key } = Part::of(codec, payload, true).unwrap();
        [begins, ends, key]
    }

    #[test]
    fn vp9_says_it_in_each_packet() {
        assert_eq!(of(VideoCodec::Vp9, &[0x88]), [true, false, true]);
        assert_eq!(of(VideoCodec::Vp9, &[0xc4]), [false, true, false]);
    }

    #[test]
    fn vp8_has_its_kind_behind_a_descriptor_of_any_length() {
        for head in [&[0x10][..], &[0x90, 0x00], &[0x90, 0x80, 7], &[0x90, 0xf0, 0x81, 7, 1, 2]] {
            let with = |kind| [head, &[kind]].concat();
            assert_eq!(of(VideoCodec::Vp8, &with(0)), [true, true, true], "{head:?}");
            assert_eq!(of(VideoCodec::Vp8, &with(1)), [true, true, false], "{head:?}");
        }
        assert_eq!(of(VideoCodec::Vp8, &[0x00, 0]), [false, true, false]);
        assert_eq!(of(VideoCodec::Vp8, &[0x11, 0]), [false, true, false], "a later partition");
    }

    #[test]
    fn h264_begins_with_parameters_or_with_a_first_slice() {
        assert_eq!(of(VideoCodec::H264, &[0x78, 0]), [true, true, true]);
        assert_eq!(of(VideoCodec::H264, &[0x65, 0x80]), [false, true, false], "behind them");
        assert_eq!(of(VideoCodec::H264, &[0x61, 0x80]), [true, true, false]);
        assert_eq!(of(VideoCodec::H264, &[0x61, 0x40]), [false, true, false], "a later slice");
        assert_eq!(of(VideoCodec::H264, &[0x7c, 0x81, 0x80]), [true, true, false]);
        assert_eq!(of(VideoCodec::H264, &[0x7c, 0x01, 0x80]), [false, true, false]);
    }

    #[test]
    fn av1_says_what_goes_on_and_what_is_new() {
        assert_eq!(of(VideoCodec::Av1, &[0x18]), [true, true, true]);
        assert_eq!(of(VideoCodec::Av1, &[0x10]), [true, true, false]);
        assert_eq!(of(VideoCodec::Av1, &[0x90]), [false, true, false]);
    }

    #[test]
    fn padding_and_a_truncated_payload_are_no_frame() {
        for codec in VideoCodec::ALL {
            assert_eq!(Part::of(codec, &[], true), None);
        }
        assert!(!Part::of(VideoCodec::Vp8, &[0x90], true).unwrap().key);
        assert!(!Part::of(VideoCodec::H264, &[0x7c], true).unwrap().begins);
    }
}
