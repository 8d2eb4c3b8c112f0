//! The Dependency Descriptor that the SFU writes on every video packet of a subscriber.
//!
//! Browsers give encoded transforms frame numbers and dependencies only when this RTP header extension is there.
//! Whatever the publisher's own structure, a forwarded stream is one layer where each frame needs the one before: one
//! decode target, one chain, two templates (key, delta). Format: AV1 RTP payload specification, appendix A. Seen in
//! Chromium 156: `frameId` jumps over missing frames and goes on over switches. Frames reach a transform when they are
//! complete, so under jitter they come out of order. A packet repeated by RTX padding may bring a frame twice.

use str0m::rtp::{ExtensionSerializer, ExtensionValues};

use super::templates::Templates;

/// URI of the RTP header extension.
pub(crate) const URI: &str =
    "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension";

/// The fields of a packet's descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameDependency {
    /// Number of the frame in the subscriber's stream.
    pub frame: u16,
    /// Whether the frame is a key frame.
    pub key: bool,
    /// Whether the packet is the first one of its frame.
    pub begin: bool,
    /// Whether the packet is the last one of its frame.
    pub end: bool,
}

/// The two templates: that of key frames, and that of all others. Each has the difference to the frame that it depends
/// on and the difference in its chain.
const TEMPLATES: [(Option<u8>, u8); 2] = [(None, 0), (Some(1), 1)];

impl FrameDependency {
    /// Writes the descriptor; returns its length, at most [`FrameDependency::MAX_LEN`], or 0 without room for it.
    pub(crate) fn write(self, buffer: &mut [u8]) -> usize {
        let mut bits = Bits { bytes: [0; Self::MAX_LEN], at: 0 };
        bits.put(u32::from(self.begin), 1);
        bits.put(u32::from(self.end), 1);
        bits.put(u32::from(!self.key), 6);
        bits.put(u32::from(self.frame), 16);
        if self.key && self.begin {
            bits.put(0b1_0000, 5); // the structure follows; nothing custom
            bits.put(0, 6); // template_id_offset
            bits.put(0, 5); // dt_cnt_minus_one
            bits.put(0, 2); // second template: same layer
            bits.put(3, 2); // no more templates
            for _ in TEMPLATES {
                bits.put(2, 2); // decode target indication: switch
            }
            for (reference, _) in TEMPLATES {
                if let Some(distance) = reference {
                    bits.put(1, 1);
                    bits.put(u32::from(distance) - 1, 4);
                }
                bits.put(0, 1);
            }
            bits.put(1, 1); // one chain, which protects the one decode target
            for (_, chain) in TEMPLATES {
                bits.put(u32::from(chain), 4);
            }
            bits.put(0, 1); // no resolutions
        }
        let len = bits.at.div_ceil(8);
        match buffer.get_mut(..len) {
            Some(room) => {
                room.copy_from_slice(&bits.bytes[..len]);
                len
            }
            None => 0,
        }
    }

    /// Puts the descriptor among a packet's values for [`Serializer`]. It takes the place of frame marking, which is
    /// never negotiated here. The stack's place for user values is a hash map that costs time with each packet.
    pub(crate) fn set(self, values: &mut ExtensionValues) {
        let flags = u32::from(self.key) | u32::from(self.begin) << 1 | u32::from(self.end) << 2;
        values.frame_mark = Some(u32::from(self.frame) | flags << 16);
    }

    fn get(values: &ExtensionValues) -> Option<FrameDependency> {
        let mark = values.frame_mark?;
        let flag = |n: u32| mark >> (16 + n) & 1 != 0;
        Some(FrameDependency { frame: mark as u16, key: flag(0), begin: flag(1), end: flag(2) })
    }

    /// The longest descriptor in bytes; short enough for the one-byte extension form.
    pub(crate) const MAX_LEN: usize = 9;
}

struct Bits {
    bytes: [u8; FrameDependency::MAX_LEN],
    at: usize,
}

impl Bits {
    fn put(&mut self, value: u32, n: usize) {
        for i in (0..n).rev() {
            self.bytes[self.at / 8] |= ((value >> i & 1) as u8) << (7 - self.at % 8);
            self.at += 1;
        }
    }
}

/// Writes [`FrameDependency`] values for the WebRTC stack, and reads the [`Templates`] of publishers.
#[derive(Debug)]
pub(crate) struct Serializer;

impl ExtensionSerializer for Serializer {
    fn write_to(&self, buf: &mut [u8], ev: &ExtensionValues) -> usize {
        FrameDependency::get(ev).map_or(0, |d| d.write(buf))
    }

    fn parse_value(&self, buf: &[u8], ev: &mut ExtensionValues) -> bool {
        Templates::parse(buf, ev)
    }

    fn is_video(&self) -> bool {
        true
    }

    fn is_audio(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(d: FrameDependency) -> Vec<u8> {
        let mut buffer = [0xff; 16];
        let n = d.write(&mut buffer);
        buffer[..n].to_vec()
    }

    #[test]
    fn a_delta_frame_has_three_bytes() {
        let d = FrameDependency { frame: 0x1234, key: false, begin: true, end: true };
        assert_eq!(written(d), [0xc1, 0x12, 0x34]);
    }

    #[test]
    fn the_first_packet_of_a_key_frame_carries_the_structure() {
        let d = FrameDependency { frame: 1, key: true, begin: true, end: false };
        let bytes = written(d);
        assert_eq!(bytes[..3], [0x80, 0x00, 0x01]);
        // Flags, offset and target count, templates, indications, distances (none; one of 1), chain, resolutions.
        let value = bytes[3..].iter().fold(0u64, |v, &b| v << 8 | u64::from(b));
        let bits = format!("{value:048b}");
        let syntax = "10000 000000 00000 0011 1010 0 10000 0 1 00000001 0".replace(' ', "");
        assert!(bits.starts_with(&syntax), "{bits}");
        assert!(
            bits[syntax.len()..].bytes().all(|b| b == b'0')
                && bytes.len() == FrameDependency::MAX_LEN
        );
    }

    #[test]
    fn later_packets_of_a_key_frame_do_not_repeat_it() {
        let d = FrameDependency { frame: 1, key: true, begin: false, end: true };
        assert_eq!(written(d), [0x40, 0x00, 0x01]);
    }

    #[test]
    fn a_descriptor_is_read_back_from_a_packets_values() {
        for bits in 0..8u16 {
            let (key, begin, end) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
            let d = FrameDependency { frame: u16::MAX - bits, key, begin, end };
            let mut values = ExtensionValues::default();
            assert_eq!(FrameDependency::get(&values), None);
            d.set(&mut values);
            assert_eq!(FrameDependency::get(&values), Some(d));
        }
    }

    #[test]
    fn a_descriptor_without_room_is_left_out() {
        let d = FrameDependency { frame: 1, key: true, begin: true, end: true };
        assert_eq!(d.write(&mut [0; 4]), 0);
    }
}
