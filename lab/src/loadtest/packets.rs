//! One VP9 frame as RTP payloads: the payload descriptor of RFC 9628 as Chromium writes it for one spatial and one
//! temporal layer (non-flexible mode, 15-bit picture id, layer indices), then a part of the frame.
//!
//! The WebRTC stack has a packetiser too, but only with its own timestamps and numbers, which a replay sets itself.

/// Maximum length of a payload, in bytes: it fits the usual path with all headers.
const PAYLOAD_BYTES: usize = 1150;
/// Length of the payload descriptor before the part of the frame, in bytes.
const DESCRIPTOR_BYTES: usize = 5;

/// The payloads of a frame in order; the last one ends the frame. `number` counts the layer's frames.
pub(super) fn packets(frame: &[u8], key: bool, number: u64) -> Vec<Vec<u8>> {
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

    #[test]
    fn only_the_first_begins_and_only_the_last_ends() {
        let flags: Vec<u8> = packets(&[7; 3000], false, 1).iter().map(|p| p[0]).collect();
        assert_eq!(flags, [0xe8, 0xe0, 0xe4]);
        assert_eq!(packets(&[7; 30], true, 1)[0][0], 0xac);
    }

    #[test]
    fn picture_ids_have_fifteen_bits() {
        assert_eq!(packets(&[7], true, 0x1_8001)[0][1..3], [0x80, 0x01]);
        assert_eq!(packets(&[7], true, 0x7fff)[0][1..3], [0xff, 0xff]);
    }

    proptest! {
        #[test]
        fn the_parts_are_the_frame_and_fit(frame in prop::collection::vec(any::<u8>(), 1..9000), number: u64) {
            let packets = packets(&frame, false, number);
            prop_assert!(packets.iter().all(|p| p.len() <= PAYLOAD_BYTES));
            let joined: Vec<u8> = packets.iter().flat_map(|p| p[DESCRIPTOR_BYTES..].to_vec()).collect();
            prop_assert_eq!(joined, frame);
        }
    }
}
