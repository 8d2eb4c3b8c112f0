//! The frame loop (specification §6.1, §8.2, §8.10): headers, references, contexts.

use std::sync::Arc;

use crate::frame::{FrameWork, MAX_TILE_COLS, Memory};
use crate::frame_buffer::{FrameBuffer, Pool};
use crate::header::{
    CompressedHeader, FrameHeader, FrameType, Header, Persistent, Superframe, parse,
};
use crate::info::{FrameInfo, FrameKind};
use crate::predict::ReferenceFrame;
use crate::probability::{Counts, FrameContext};
use crate::simd::Isa;
use crate::visitor::Visitor;
use crate::{DecodeError, DecodedFrame, MAX_HEIGHT, MAX_WIDTH};

/// Number of pictures that are kept for reuse: eight references, the current one, and some that callers hold.
const POOLED: usize = 14;

/// The largest picture that a decoder accepts. A larger one is refused before anything is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimit {
    /// Maximum area of a picture, in luma samples.
    pub area: u64,
    /// Maximum width or height, in luma samples.
    pub side: u32,
}

impl SizeLimit {
    /// Whether a picture is within the limit.
    pub fn allows(self, width: u32, height: u32) -> bool {
        u64::from(width) * u64::from(height) <= self.area && width.max(height) <= self.side
    }
}

impl Default for SizeLimit {
    fn default() -> Self {
        Self { area: u64::from(MAX_WIDTH) * u64::from(MAX_HEIGHT), side: 2 * MAX_WIDTH }
    }
}

/// The state that one frame passes on to the next.
#[derive(Debug, Default)]
struct Stream {
    persistent: Persistent,
    contexts: [FrameContext; 4],
    slots: [Option<Arc<FrameBuffer>>; 8],
    segment_ids: Vec<u8>,
    /// The info of the last decoded frame.
    previous: Option<Arc<FrameInfo>>,
    last_size: (u32, u32),
    last_shown: bool,
    last_key: bool,
    /// Whether a key frame has come since the start or the last error.
    running: bool,
}

/// A VP9 decoder of profile 0 for one stream.
///
/// ```
/// use windlass_vp9::{DecodeError, Decoder};
///
/// // An IVF file: a header of 32 bytes, then each chunk behind 12 bytes that begin with its size.
/// let mut rest = &include_bytes!("../tests/fixtures/realtime.ivf")[32..];
/// let mut decoder = Decoder::new();
/// let mut pictures = 0;
/// while let Some((head, tail)) = rest.split_first_chunk::<12>() {
///     let size = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
///     let (chunk, next) = tail.split_at(size);
///     for frame in decoder.decode(chunk)?.iter().filter(|frame| frame.info.shown) {
///         assert_eq!((frame.picture.width(), frame.picture.height()), (161, 91));
///         pictures += 1;
///     }
///     rest = next;
/// }
/// assert!(pictures > 1 && !decoder.needs_key_frame());
///
/// // What is no VP9 is refused, and a key frame must come next.
/// assert!(decoder.decode(&[0; 16]).is_err() && decoder.needs_key_frame());
/// # Ok::<(), DecodeError>(())
/// ```
pub struct Decoder {
    isa: Isa,
    limit: SizeLimit,
    stream: Stream,
    memory: Box<Memory>,
    pictures: Pool<FrameBuffer>,
    infos: Pool<FrameInfo>,
    frames: Vec<DecodedFrame>,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("isa", &self.isa).finish_non_exhaustive()
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder that waits for a key frame.
    pub fn new() -> Self {
        Self::with_limit(SizeLimit::default())
    }

    /// A decoder that refuses pictures beyond `limit`.
    pub fn with_limit(limit: SizeLimit) -> Self {
        Self::with(limit, Isa::detect())
    }

    /// A decoder that uses one instruction set: for comparisons.
    pub fn with_isa(isa: Isa) -> Self {
        Self::with(SizeLimit::default(), isa)
    }

    fn with(limit: SizeLimit, isa: Isa) -> Self {
        Self {
            isa,
            limit,
            stream: Stream::default(),
            memory: Box::default(),
            pictures: Pool::new(POOLED),
            infos: Pool::new(POOLED),
            frames: Vec::with_capacity(8),
        }
    }

    /// Makes the decoder refuse pictures beyond `limit`.
    #[must_use]
    pub fn limited(mut self, limit: SizeLimit) -> Self {
        self.limit = limit;
        self
    }

    /// Refuses pictures beyond `limit` from now on.
    pub fn limit(&mut self, limit: SizeLimit) {
        self.limit = limit;
    }

    /// Keeps `more` pictures and infos for reuse, for a caller that holds `more` of them besides the references.
    #[must_use]
    pub fn lending(mut self, more: usize) -> Self {
        self.pictures = Pool::new(POOLED + more);
        self.infos = Pool::new(POOLED + more);
        self
    }

    /// Forgets everything; a key frame must come next.
    pub fn reset(&mut self) {
        let segment_ids = std::mem::take(&mut self.stream.segment_ids);
        self.stream = Stream { segment_ids, ..Stream::default() };
        self.frames.clear();
    }

    /// Whether only a key frame (or an intra-only frame that resets everything) can be decoded next.
    pub fn needs_key_frame(&self) -> bool {
        !self.stream.running
    }

    /// Decodes one chunk (a frame or a superframe): its frames in decoding order, until the next
    /// call. Nothing is allocated once pictures of the stream's size have been decoded and those
    /// handed out are dropped in time.
    ///
    /// After an error the decoder has forgotten its references and waits for a key frame.
    ///
    /// # Errors
    ///
    /// Fails if the chunk is malformed or truncated, has a profile other than 0 or a picture beyond the size limit, or
    /// needs a frame that the decoder does not have.
    pub fn decode(&mut self, chunk: &[u8]) -> Result<&[DecodedFrame], DecodeError> {
        self.decode_with(chunk, None, &mut ())
    }

    /// Decodes one chunk as [`Decoder::decode`] does, with its temporal layer (for [`FrameInfo`]) and a visitor.
    ///
    /// # Errors
    ///
    /// Fails where [`Decoder::decode`] does.
    pub fn decode_with<V: Visitor>(
        &mut self,
        chunk: &[u8],
        temporal_layer: Option<u8>,
        visitor: &mut V,
    ) -> Result<&[DecodedFrame], DecodeError> {
        self.chunk(chunk, temporal_layer, visitor)?;
        Ok(&self.frames)
    }

    fn chunk<V: Visitor>(
        &mut self,
        chunk: &[u8],
        temporal_layer: Option<u8>,
        visitor: &mut V,
    ) -> Result<(), DecodeError> {
        self.frames.clear();
        if chunk.is_empty() {
            return Err(DecodeError::Empty);
        }
        let frames = Superframe::new(chunk).ok_or(DecodeError::Truncated);
        let result = frames.and_then(|frames| {
            // Encoders leave frames of a superframe empty that they skip.
            for data in frames.filter(|data| !data.is_empty()) {
                self.frame(data, temporal_layer, visitor)?;
            }
            Ok(())
        });
        if let Err(error) = result
            && error != DecodeError::StaleReference
        {
            self.reset();
        }
        result
    }

    fn frame<V: Visitor>(
        &mut self,
        data: &[u8],
        temporal_layer: Option<u8>,
        visitor: &mut V,
    ) -> Result<(), DecodeError> {
        let known = self.stream.running.then_some(&self.stream.persistent);
        let header = match parse(data, known)? {
            Header::ShowExisting { slot } => {
                return self.show_existing(slot, data.len(), temporal_layer);
            }
            Header::Frame(header) => header,
        };
        self.check(&header)?;
        let references = self.references(&header)?;
        let rest = data.get(header.bytes..).unwrap_or_default();
        if rest.len() <= header.compressed_bytes {
            return Err(DecodeError::Truncated);
        }
        let (compressed, tiles) = rest.split_at(header.compressed_bytes);
        let rest = AfterHeader { compressed, tiles, bytes: data.len(), temporal_layer };
        self.new_frame(&header, &rest, references, visitor)
    }

    fn show_existing(
        &mut self,
        slot: u8,
        bytes: usize,
        temporal_layer: Option<u8>,
    ) -> Result<(), DecodeError> {
        let index = usize::from(slot & 7);
        let picture = self.stream.slots[index].clone().ok_or(DecodeError::MissingReference)?;
        let (width, height) =
            self.stream.persistent.slot_sizes[index].ok_or(DecodeError::MissingReference)?;
        let mut info = self.infos.take();
        if let Some(info) = Arc::get_mut(&mut info) {
            let (mut blocks, mut grid) =
                (std::mem::take(&mut info.blocks), std::mem::take(&mut info.grid));
            blocks.clear();
            grid.clear();
            *info = FrameInfo {
                kind: FrameKind::ShowExisting { slot },
                shown: true,
                width,
                height,
                encoded_bytes: bytes,
                temporal_layer,
                blocks,
                grid,
                ..FrameInfo::default()
            };
        }
        self.infos.keep(info.clone());
        self.frames.push(DecodedFrame { picture, info });
        Ok(())
    }

    /// Refuses frames that are too large, and frames with which a decoder that has lost its state cannot begin.
    fn check(&self, header: &FrameHeader) -> Result<(), DecodeError> {
        let (width, height) = (header.width, header.height);
        if !self.limit.allows(width, height) {
            return Err(DecodeError::Size { width, height });
        }
        if header.tile_cols_log2 > MAX_TILE_COLS.ilog2() {
            return Err(DecodeError::Header);
        }
        let fresh = header.frame_type == FrameType::Key
            || header.frame_type == FrameType::IntraOnly
                && (header.error_resilient || header.reset_context == 3);
        if self.stream.running || fresh { Ok(()) } else { Err(DecodeError::NeedKeyFrame) }
    }

    /// The references of an inter frame. `None` stands for one of an impossible size, which blocks must not use.
    fn references(
        &mut self,
        header: &FrameHeader,
    ) -> Result<[Option<ReferenceFrame>; 3], DecodeError> {
        let mut references = [None, None, None];
        if header.is_intra() {
            return Ok(references);
        }
        let sizes = &self.stream.persistent.slot_sizes;
        let slots = header.reference_slots.map(|slot| usize::from(slot & 7));
        if slots.iter().any(|&slot| sizes[slot].is_none()) {
            // Slots can be empty after recovery from an intra-only frame. What this frame would
            // have left behind is missing too; a frame that keeps to itself costs nothing else.
            if !header.error_resilient {
                return Err(DecodeError::MissingReference);
            }
            for slot in (0..8).filter(|slot| header.refresh_mask >> slot & 1 == 1) {
                self.stream.slots[slot] = None;
                self.stream.persistent.slot_sizes[slot] = None;
            }
            return Err(DecodeError::StaleReference);
        }
        let (width, height) = (header.width as usize, header.height as usize);
        let mut any = false;
        for (reference, slot) in references.iter_mut().zip(slots) {
            let Some(picture) = &self.stream.slots[slot] else {
                return Err(DecodeError::MissingReference);
            };
            *reference = ReferenceFrame::new(picture.clone(), width, height);
            any |= reference.is_some();
        }
        if any { Ok(references) } else { Err(DecodeError::MissingReference) }
    }

    fn new_frame<V: Visitor>(
        &mut self,
        header: &FrameHeader,
        rest: &AfterHeader<'_>,
        references: [Option<ReferenceFrame>; 3],
        visitor: &mut V,
    ) -> Result<(), DecodeError> {
        let size = (header.width, header.height);
        let stream = &mut self.stream;
        let memory = &mut *self.memory;
        if header.independent() {
            reset_contexts(&mut stream.contexts, header);
        }
        let units = header.mi_cols() * header.mi_rows();
        if header.independent() || stream.last_size != size || stream.segment_ids.len() != units {
            stream.segment_ids.clear();
            stream.segment_ids.resize(units, 0);
        }
        let slot = if header.independent() { 0 } else { usize::from(header.context & 3) };
        memory.context.clone_from(&stream.contexts[slot]);
        let compressed = CompressedHeader::parse(rest.compressed, header, &mut memory.context)?;

        let mut picture = self.pictures.take();
        let mut info = self.infos.take();
        let (Some(pixels), Some(new_info)) = (Arc::get_mut(&mut picture), Arc::get_mut(&mut info))
        else {
            return Err(DecodeError::Internal);
        };
        pixels.resize(header.width as usize, header.height as usize);
        new_info.begin(header, rest.bytes);
        new_info.temporal_layer = rest.temporal_layer;
        let use_previous = !header.independent() && stream.last_size == size && stream.last_shown;
        let previous = stream.previous.take();
        memory.counts = Counts::default();
        let work = FrameWork {
            header,
            compressed,
            previous: previous.as_deref().filter(|_| use_previous),
            references: &references,
            isa: self.isa,
        };
        work.decode(rest.tiles, memory, new_info, pixels, &mut stream.segment_ids, visitor)?;
        if let Some(previous) = previous {
            self.infos.keep(previous);
        }
        drop(references);

        if header.refresh_context {
            if !header.error_resilient && !header.parallel {
                let before = &stream.contexts[slot];
                let factor = if !header.is_intra() && stream.last_key { 128 } else { 112 };
                memory.context.adapt_coefficients(before, &memory.counts, factor);
                if !header.is_intra() {
                    memory.context.adapt_others(
                        before,
                        &memory.counts,
                        header.filter.is_none(),
                        compressed.tx_mode == crate::header::TxMode::Select,
                        header.high_precision,
                    );
                }
            }
            stream.contexts[slot].clone_from(&memory.context);
        }
        for slot in (0..8).filter(|slot| header.refresh_mask >> slot & 1 == 1) {
            stream.slots[slot] = Some(picture.clone());
            stream.persistent.slot_sizes[slot] = Some(size);
        }
        stream.persistent.loop_filter = header.loop_filter;
        stream.persistent.segmentation = header.segmentation;
        stream.last_size = size;
        stream.last_shown = header.show;
        stream.last_key = header.frame_type == FrameType::Key;
        stream.previous = Some(info.clone());
        stream.running = true;
        self.pictures.keep(picture.clone());
        self.frames.push(DecodedFrame { picture, info });
        Ok(())
    }
}

/// What a new frame consists of besides its uncompressed header.
struct AfterHeader<'a> {
    compressed: &'a [u8],
    tiles: &'a [u8],
    /// Length of the whole frame, in bytes.
    bytes: usize,
    /// Temporal layer of the chunk, where the caller knows it.
    temporal_layer: Option<u8>,
}

/// Resets the stored contexts as `setup_past_independence` (§7.2) says.
fn reset_contexts(contexts: &mut [FrameContext; 4], header: &FrameHeader) {
    if header.frame_type == FrameType::Key || header.error_resilient || header.reset_context == 3 {
        for context in contexts {
            context.clone_from(&crate::probability::defaults::DEFAULT_CONTEXT);
        }
    } else if header.reset_context == 2 {
        contexts[usize::from(header.context & 3)]
            .clone_from(&crate::probability::defaults::DEFAULT_CONTEXT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_picture_is_refused_before_anything_is_allocated() {
        // Key frame, 16384×16384.
        let mut data = vec![0b1000_0010, 0x49, 0x83, 0x42];
        // color_space 1, color_range 0, then width - 1 and height - 1 from bit 4 on.
        let bits = 0b0010u64 << 60 | 16383u64 << 44 | 16383 << 28;
        data.extend(bits.to_be_bytes());
        // The compressed header's size, 16 bits, begins in byte 12; all else may be zero.
        data.extend([0; 24]);
        data[13] = 1;
        let mut decoder = Decoder::new();
        let error = decoder.decode(&data).err();
        assert_eq!(error, Some(DecodeError::Size { width: 16384, height: 16384 }));
        assert!(decoder.stream.segment_ids.is_empty());
    }
    /// Bits from pairs of a value and its length, filled up to a byte, then `data`.
    fn frame(bits: &[(u64, u32)], data: &[u8]) -> Vec<u8> {
        let bits: Vec<bool> =
            bits.iter().flat_map(|&(v, n)| (0..n).rev().map(move |i| v >> i & 1 == 1)).collect();
        let byte =
            |b: &[bool]| b.iter().enumerate().fold(0, |v, (i, &b)| v | u8::from(b) << (7 - i));
        bits.chunks(8).map(byte).chain(data.iter().copied()).collect()
    }

    #[test]
    fn a_block_whose_reference_has_an_impossible_size_is_refused() {
        // Without loop filter; quantiser 1.
        let flat = [(0, 10), (1, 8), (0, 3)];
        // One tile; 8 bytes of the compressed header, all of whose bools are false.
        let end = [(0, 1), (8, 16)];
        let size = |side: u64| [(side - 1, 16), (side - 1, 16), (0, 1)];
        let key = [
            &[(0b1000_0010, 8), (0x49_83_42, 24), (0b0010, 4)][..],
            &size(64),
            &[(0b01, 2), (0, 2)],
            &flat,
            &[(0, 1)],
            &end,
        ]
        .concat();
        // Of 2×2 samples, into slot 1.
        let intra_only = [
            &[(0b1000_0101, 8), (1, 1), (0x49_83_42, 24), (0b10, 8)][..],
            &size(2),
            &[(0, 2)],
            &flat,
            &[(0, 1)],
            &end,
        ]
        .concat();
        // 64×64 like slot 0, with slot 1 as golden; all segments predict from golden.
        let inter = [
            &[(0b1000_0111, 8), (0, 8), (0, 4), (1 << 1, 4), (0, 4), (1, 1), (0, 1)][..],
            &[(0, 1), (0, 3), (0, 2)],
            &flat,
            &[(0b1010, 4)],
            &[(0b00_1100, 6); 8],
            &end,
        ]
        .concat();
        let mut decoder = Decoder::new();
        for bits in [key, intra_only] {
            let chunk = frame(&bits, &[0; 80]);
            assert_eq!(decoder.decode(&chunk).map(<[_]>::len), Ok(1));
        }
        let chunk = frame(&inter, &[0; 80]);
        assert_eq!(decoder.decode(&chunk).err(), Some(DecodeError::MissingReference));
    }
}
