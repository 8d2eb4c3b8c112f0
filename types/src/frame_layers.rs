//! The layers of a packet's frame, as a publisher says them beside the payload.

/// What a publisher's Dependency Descriptor says of a packet (AV1 RTP payload specification, appendix A).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLayers {
    /// Whether the packet is the first one of its frame.
    pub begin: bool,
    /// Whether the packet is the last one of its frame.
    pub end: bool,
    /// The frame's spatial layer, up to 3.
    pub spatial: u8,
    /// The frame's temporal layer, up to 7.
    pub temporal: u8,
    /// Number of spatial layers from this packet on, up to 4; 0: as before.
    pub spatial_layers: u8,
    /// Number of the picture, modulo 2^15. Its spatial layers have the same.
    pub picture: u16,
}

impl FrameLayers {
    /// The fields in 25 bits.
    pub fn to_bits(self) -> u32 {
        u32::from(self.begin)
            | u32::from(self.end) << 1
            | u32::from(self.spatial & 3) << 2
            | u32::from(self.temporal & 7) << 4
            | u32::from(self.spatial_layers & 7) << 7
            | u32::from(self.picture & 0x7fff) << 10
    }

    /// The fields of [`FrameLayers::to_bits`]. Other bits do not count.
    pub fn from_bits(bits: u32) -> FrameLayers {
        let field = |at: u32, mask: u32| (bits >> at & mask) as u8;
        FrameLayers {
            begin: bits & 1 != 0,
            end: bits & 2 != 0,
            spatial: field(2, 3),
            temporal: field(4, 7),
            spatial_layers: field(7, 7).min(4),
            picture: (bits >> 10 & 0x7fff) as u16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_hold_all_fields() {
        for low in 0..1 << 10 {
            let bits = low | 0x5a5a << 10;
            let layers = FrameLayers::from_bits(bits);
            assert!(layers.spatial_layers <= 4);
            if low >> 7 <= 4 {
                assert_eq!(layers.to_bits(), bits);
            }
        }
    }
}
