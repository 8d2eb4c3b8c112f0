//! One frame as RTP payloads. A payload of VP9 is the descriptor of RFC 9628 as Chromium writes it for one spatial and
//! one temporal layer (non-flexible mode, 15-bit picture id, layer indices), then a part of the frame.
//!
//! The payloads of other codecs are made by webrtc-rs. It has a payloader of VP9 too, which marks every frame as a key
//! frame, so ours is used.
//!
//! The WebRTC stack has a packetiser too, but only with its own timestamps and numbers, which a replay sets itself.

use anyhow::{Context, Result};
use rtc::rtp::codec::av1::Av1Payloader;
use rtc::rtp::codec::h264::H264Payloader;
use rtc::rtp::codec::vp8::Vp8Payloader;
use rtc::rtp::packetizer::Payloader;
use windlass_types::VideoCodec;

use super::recording::Frame;

/// Maximum length of a payload, in bytes: it fits the usual path with all headers.
const PAYLOAD_BYTES: usize = 1150;
/// Length of the payload descriptor before the part of the frame, in bytes.
const DESCRIPTOR_BYTES: usize = 5;

/// Makes the payloads of one layer.
pub(super) enum Packetizer {
    /// The payloads of VP9, written here.
    Vp9,
    /// The payloads of another codec, by webrtc-rs.
    Other(Box<dyn Payloader>),
}

impl Packetizer {
    /// A packetizer of this codec.
    pub(super) fn new(codec: VideoCodec) -> Packetizer {
        match codec {
            VideoCodec::Vp9 => Packetizer::Vp9,
            VideoCodec::Vp8 => {
                let mut payloader = Vp8Payloader::default();
                payloader.enable_picture_id = true;
                Packetizer::Other(Box::new(payloader))
            }
            VideoCodec::H264 => Packetizer::Other(Box::new(H264Payloader::default())),
            VideoCodec::Av1 => Packetizer::Other(Box::new(Av1Payloader::default())),
        }
    }

    /// The payloads of a frame in order; the last one ends the frame. `number` counts the layer's frames.
    pub(super) fn packets(&mut self, frame: &Frame, number: u64) -> Result<Vec<Vec<u8>>> {
        match self {
            Packetizer::Vp9 => Ok(vp9(&frame.data, frame.key, number)),
            Packetizer::Other(payloader) => {
                let payloads = payloader.payload(PAYLOAD_BYTES, &frame.data);
                Ok(payloads.context("cutting a frame")?.into_iter().map(Vec::from).collect())
            }
        }
    }
}

/// The payloads of a frame of VP9.
fn vp9(frame: &[u8], key: bool, number: u64) -> Vec<Vec<u8>> {
    // The parts have equal lengths, as in Chromium.
    let count = frame.len().div_ceil(PAYLOAD_BYTES - DESCRIPTOR_BYTES).max(1);
    let size = frame.len().div_ceil(count).max(1);
    let [high, low] = (number as u16 & 0x7fff | 0x8000).to_be_bytes();
    let parts = frame.chunks(size);
    let last = parts.len().saturating_sub(1);
    parts
        .enumerate()
        .map(|(n, part)| {
            // The descriptor's bits I and L are set; P, B and E depend on the packet.
            let flags = 0xa0
                | if key { 0 } else { 0x40 }
                | if n == 0 { 0x08 } else { 0 }
                | if n == last { 0x04 } else { 0 };
            let mut payload = Vec::with_capacity(DESCRIPTOR_BYTES + part.len());
            payload.extend([flags, high, low, 0, number as u8]);
            payload.extend_from_slice(part);
            payload
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    use crate::viewer::Part;

    /// Frames as encoders write them: a key frame, and another one, of several packets.
    fn frames(codec: VideoCodec) -> [Vec<u8>; 2] {
        let of = |head: &[u8]| [head, &[0xff; 3000]].concat();
        match codec {
            VideoCodec::Vp9 => [of(&[0x82]), of(&[0x86])],
            VideoCodec::Vp8 => [of(&[0x10]), of(&[0x11])],
            VideoCodec::H264 => {
                let parameters = [0, 0, 0, 1, 9, 16, 0, 0, 0, 1, 0x67, 5, 6, 0, 0, 0, 1, 0x68, 7];
                let key = [&parameters[..], &[0, 0, 1, 0x65, 0x88]].concat();
                [of(&key), of(&[0, 0, 0, 1, 9, 48, 0, 0, 0, 1, 0x61, 0x9a])]
            }
            // A delimiter, a sequence header of three bytes, and a frame of 3,000.
            VideoCodec::Av1 => [
                of(&[0x12, 0, 0x0a, 3, 1, 2, 3, 0x32, 0xb8, 0x17]),
                of(&[0x12, 0, 0x32, 0xb8, 0x17]),
            ],
        }
    }

    #[test]
    fn each_codec_s_first_payload_says_that_it_begins_and_no_other_does() {
        for codec in VideoCodec::ALL {
            let mut packetizer = Packetizer::new(codec);
            for (data, key) in frames(codec).into_iter().zip([true, false]) {
                let frame = Frame::new(codec, data);
                assert_eq!(frame.key, key, "{codec:?}");
                let payloads = packetizer.packets(&frame, 1).unwrap();
                let parts: Vec<Part> =
                    payloads.iter().map(|p| Part::of(codec, p, false).unwrap()).collect();
                assert!(parts.len() > 2, "{codec:?}");
                assert_eq!((parts[0].begins, parts[0].key), (true, key), "{codec:?}");
                assert!(parts[1..].iter().all(|part| !part.begins), "{codec:?}: {parts:?}");
                assert!(payloads.iter().all(|p| p.len() <= PAYLOAD_BYTES), "{codec:?}");
            }
        }
    }

    #[test]
    fn only_the_first_begins_and_only_the_last_ends() {
        let flags: Vec<u8> = vp9(&[7; 3000], false, 1).iter().map(|p| p[0]).collect();
        assert_eq!(flags, [0xe8, 0xe0, 0xe4]);
        assert_eq!(vp9(&[7; 30], true, 1)[0][0], 0xac);
    }

    #[test]
    fn picture_ids_have_fifteen_bits() {
        assert_eq!(vp9(&[7], true, 0x1_8001)[0][1..3], [0x80, 0x01]);
        assert_eq!(vp9(&[7], true, 0x7fff)[0][1..3], [0xff, 0xff]);
    }

    proptest! {
        #[test]
        fn the_parts_are_the_frame_and_fit(frame in prop::collection::vec(any::<u8>(), 1..9000), number: u64) {
            let packets = vp9(&frame, false, number);
            prop_assert!(packets.iter().all(|p| p.len() <= PAYLOAD_BYTES));
            let joined: Vec<u8> = packets.iter().flat_map(|p| p[DESCRIPTOR_BYTES..].to_vec()).collect();
            prop_assert_eq!(joined, frame);
        }
    }
}
