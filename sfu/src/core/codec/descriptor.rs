//! What forwarding reads of a packet's payload, and rewrites in place, whatever its codec.

use windlass_types::Size;

/// The start of the payload cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed video payload")]
pub(crate) struct Malformed;

/// A picture id, with its place and width. VP9 and VP8 have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PictureId {
    /// Value of the picture id.
    pub value: u16,
    /// Whether the id has 15 bits rather than 7.
    pub wide: bool,
    /// Index of its first byte in the payload; `None`: it is not in the payload.
    pub offset: Option<usize>,
}

impl PictureId {
    /// Mask of the id's bits.
    pub(crate) fn mask(&self) -> u16 {
        if self.wide { 0x7fff } else { 0x7f }
    }

    /// Reads a picture id.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<PictureId, Malformed> {
        let offset = reader.at;
        let first = reader.u8()?;
        let wide = first & 0x80 != 0;
        let high = u16::from(first & 0x7f);
        let value = if wide { high << 8 | u16::from(reader.u8()?) } else { high };
        Ok(PictureId { value, wide, offset: Some(offset) })
    }
}

/// Maximum number of spatial layers that are told apart. Those above belong to the last one.
pub(crate) const MAX_SPATIAL: usize = 3;

/// The spatial layers of a key frame, as its first packet says them outside of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpatialLayers {
    /// Their number, from 1 to [`MAX_SPATIAL`].
    pub count: usize,
    /// Size of each, the smallest first, where the payload says it.
    pub sizes: [Option<Size>; MAX_SPATIAL],
}

impl SpatialLayers {
    /// The only layer of a key frame that names none.
    pub(crate) const ONE: SpatialLayers = SpatialLayers { count: 1, sizes: [None; MAX_SPATIAL] };
}

/// What a packet's payload says of its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// Picture id, if present.
    pub picture_id: Option<PictureId>,
    /// TL0PICIDX and its offset, if present.
    pub tl0: Option<(u8, usize)>,
    /// Whether the frame is predicted from others. Codecs other than VP9 say it in the packet where a key frame begins
    /// alone, so that all others count as predicted.
    pub inter: bool,
    /// Whether the packet is the first one of its frame, as far as the payload says.
    pub begin: bool,
    /// Whether the packet is the last one of its frame. Where the payload does not say, the RTP marker alone does.
    pub end: bool,
    /// Number of the spatial layer.
    pub spatial: u8,
    /// Number of the temporal layer, 0 the base; `None` where the packet does not say.
    pub temporal: Option<u8>,
    /// Highest temporal layer that who has had the base layer alone can decode from this frame on; `None` where that
    /// does not change here.
    pub resumes: Option<u8>,
    /// The spatial layers from the key frame on that begins here; `None` where the payload does not say.
    pub layers: Option<SpatialLayers>,
    /// Length of the descriptor in bytes; the frame's data follow.
    pub len: usize,
}

impl Descriptor {
    /// Whether a key frame of the base spatial layer begins here.
    pub(crate) fn starts_key(&self) -> bool {
        self.begin && !self.inter && self.spatial == 0
    }

    /// Whether the frame is of the base temporal layer, as far as the packet says.
    pub(crate) fn is_base(&self) -> bool {
        self.temporal.unwrap_or(0) == 0
    }

    /// Writes the picture id and TL0PICIDX into the payload that the descriptor was read from.
    pub(crate) fn rewrite(&self, payload: &mut [u8], picture_id: u16, tl0: u8) {
        if let Some((id, offset)) = self.picture_id.and_then(|id| Some((id, id.offset?))) {
            let value = picture_id & id.mask();
            let [high, low] = value.to_be_bytes();
            if id.wide {
                if let Some(bytes) = payload.get_mut(offset..offset + 2) {
                    bytes.copy_from_slice(&[high | 0x80, low]);
                }
            } else if let Some(byte) = payload.get_mut(offset) {
                *byte = low;
            }
        }
        if let Some((_, offset)) = self.tl0
            && let Some(byte) = payload.get_mut(offset)
        {
            *byte = tl0;
        }
    }
}

/// Above the number of any temporal layer: nothing is left out.
pub(crate) const ALL_TEMPORAL: u8 = 7;

/// Reads bytes one after the other.
pub(crate) struct Reader<'a> {
    data: &'a [u8],
    /// Index of the next byte.
    pub at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Reader<'a> {
        Reader { data, at: 0 }
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        let byte = *self.data.get(self.at).ok_or(Malformed)?;
        self.at += 1;
        Ok(byte)
    }

    pub(crate) fn skip(&mut self, n: usize) -> Result<(), Malformed> {
        self.at += n;
        if self.at > self.data.len() { Err(Malformed) } else { Ok(()) }
    }
}

/// Reads bits, the highest of a byte first.
pub(crate) struct BitReader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(data: &'a [u8]) -> BitReader<'a> {
        BitReader { data, at: 0 }
    }

    /// Reads up to 32 bits; `None` beyond the end.
    pub(crate) fn bits(&mut self, count: u32) -> Option<u32> {
        let mut value = 0;
        for _ in 0..count {
            let byte = *self.data.get(self.at / 8)?;
            value = value << 1 | u32::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Some(value)
    }

    /// Reads a bit.
    pub(crate) fn flag(&mut self) -> Option<bool> {
        self.bits(1).map(|bit| bit == 1)
    }

    /// Reads an unsigned number in Exp-Golomb code (H.264 §9.1).
    pub(crate) fn exp_golomb(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some((1 << zeros) - 1 + self.bits(zeros)?)
    }
}
