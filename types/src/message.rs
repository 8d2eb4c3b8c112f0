//! Anchor messages: how an encoded anchor travels on the data channel `windlass-anchors`.
//!
//! An anchor is cut into chunks, each behind the same 24-byte header, big endian:
//!
//! | at | field | |
//! | --- | --- | --- |
//! | 0 | version | u8, 1 |
//! | 1 | codec | u8, 2: [`HTJ2K`] |
//! | 2 | source | u8, 0 enhanced, 1 captured |
//! | 3 | flags | u8, bit 0: a [tile map](super::tiles) comes before the image in the payload; bit 1: the image is of detail beyond the built-in filters; bits 4 to 7: part, 0 without tiles; other bits 0 |
//! | 4 | stream | u32 |
//! | 8 | epoch | u16 |
//! | 10 | chunk index | u16 |
//! | 12 | chunk count | u16, 1 to 256 |
//! | 14 | age | u16, ms from the frame's arrival at the SFU to sending |
//! | 16 | RTP timestamp | u32, the subscriber's timeline |
//! | 20 | width | u16, HR |
//! | 22 | height | u16, HR |
//! | 24 | payload | at most [`MAX_CHUNK`] bytes |
//!
//! An anchor of many tiles may be sent in parts, each an anchor of its own with other tiles of the same frame: the loss
//! of one costs only its tiles.
//!
//! The channel is unordered and loses messages, so the [`Reassembler`] keeps a few anchors in
//! flight, drops the oldest when it is full, and counts what it drops.

use std::collections::VecDeque;

use crate::{AnchorSource, SCALES, Size};

/// The version of the message format that this code reads and writes.
pub const VERSION: u8 = 1;
/// The codec of all anchors: High-throughput JPEG 2000 (`windlass_hybrid::anchor::codec`).
pub const HTJ2K: u8 = 2;
/// Length of the header before the payload of a message, in bytes.
pub const HEADER_BYTES: usize = 24;
/// Flag in the header: the payload begins with a tile map.
const TILED: u8 = 1;
/// Flag in the header: the image is of detail that the built-in filters do not predict.
const BEYOND_PRIOR: u8 = 2;
/// Maximum number of chunks of one anchor.
pub const MAX_CHUNKS: u16 = 256;
/// Maximum payload of one message, in bytes.
pub const MAX_CHUNK: usize = 16 * 1024;
/// Maximum payload of one anchor, in bytes.
pub const MAX_ANCHOR: usize = 1024 * 1024;
/// Maximum number of unfinished anchors that a [`Reassembler`] holds.
pub const MAX_IN_FLIGHT: usize = 8;
/// Maximum payload that a [`Reassembler`] holds, in bytes.
pub const MAX_BYTES_IN_FLIGHT: usize = 2 * 1024 * 1024;

/// The header of every message of one anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnchorHeader {
    /// Codec id of the payload.
    pub codec: u8,
    /// Where the anchor's detail comes from.
    pub source: AnchorSource,
    /// Whether the payload begins with a map of the tiles that the anchor gives.
    pub tiled: bool,
    /// Whether the image is of detail that the built-in filters do not predict.
    pub beyond_prior: bool,
    /// Which part of the frame's tiles the anchor gives, 0 to 15; 0 where the anchor is not tiled.
    pub part: u8,
    /// The stream of the anchor's frame: the SFU's stream id, as signalling tells it.
    pub stream: u32,
    /// The span of one layer and one resolution that the frame belongs to.
    pub epoch: u16,
    /// The chunk's index, from 0. Ignored by [`encode_chunks`].
    pub chunk_index: u16,
    /// The anchor's number of chunks. Ignored by [`encode_chunks`].
    pub chunk_count: u16,
    /// Milliseconds from the frame's arrival at the SFU to sending.
    pub age_ms: u16,
    /// The frame's RTP timestamp in the subscriber's timeline (90 kHz).
    pub rtp_timestamp: u32,
    /// Size of the HR picture.
    pub size: Size,
}

impl AnchorHeader {
    /// Size of the anchor's picture over that of a low one, where it is one of [`SCALES`].
    pub fn scale_over(&self, low: Size) -> Option<usize> {
        let is_over =
            |scale: &usize, high: u16, low: u16| scale * usize::from(low) == usize::from(high);
        SCALES.into_iter().find(|scale| {
            is_over(scale, self.size.width, low.width)
                && is_over(scale, self.size.height, low.height)
        })
    }

    /// The header of a key anchor in one chunk, whole and without flags. Fields that are not arguments are 0.
    pub fn new(codec: u8, source: AnchorSource, rtp_timestamp: u32, size: Size) -> Self {
        Self {
            codec,
            source,
            tiled: false,
            beyond_prior: false,
            part: 0,
            stream: 0,
            epoch: 0,
            chunk_index: 0,
            chunk_count: 1,
            age_ms: 0,
            rtp_timestamp,
            size,
        }
    }
}

/// Why bytes are no anchor message, or a payload cannot be sent as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnchorMessageError {
    /// The message is shorter than the header.
    #[error("the anchor message is shorter than its header")]
    Short,
    /// The message has another version than [`VERSION`].
    #[error("the anchor message has version {0}, which is not known")]
    Version(u8),
    /// The source is neither 0 nor 1.
    #[error("the anchor message has source {0}, which is not known")]
    Source(u8),
    /// The header has a flag that this version does not define.
    #[error("the anchor message has flags {0:#04x}, which are not known")]
    Flags(u8),
    /// The chunk count is 0 or too large, or the index is beyond it.
    #[error("the anchor message is chunk {index} of {count}, which is impossible")]
    Chunk {
        /// The index in the header.
        index: u16,
        /// The count in the header.
        count: u16,
    },
    /// A width or height is 0.
    #[error("the anchor message is of a picture of {0}, which is impossible")]
    Size(Size),
    /// The payload is empty or beyond the bound.
    #[error("a payload of {0} bytes is refused: it is empty or too long")]
    Payload(usize),
}

impl AnchorHeader {
    /// Splits a message into its header and its chunk of the payload.
    ///
    /// # Errors
    ///
    /// Fails if the message is shorter than its header, has no payload or too long a one, or has a header field that
    /// this version does not allow.
    pub fn parse(message: &[u8]) -> Result<(Self, &[u8]), AnchorMessageError> {
        let (head, payload) =
            message.split_first_chunk::<HEADER_BYTES>().ok_or(AnchorMessageError::Short)?;
        let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) << 16 | u32::from(u16_at(at + 2));
        if head[0] != VERSION {
            return Err(AnchorMessageError::Version(head[0]));
        }
        let (tiled, part) = (head[3] & TILED != 0, head[3] >> 4);
        if head[3] & 0x0c != 0 || (part != 0 && !tiled) {
            return Err(AnchorMessageError::Flags(head[3]));
        }
        let header = Self {
            codec: head[1],
            source: match head[2] {
                0 => AnchorSource::Enhanced,
                1 => AnchorSource::Captured,
                other => return Err(AnchorMessageError::Source(other)),
            },
            tiled,
            beyond_prior: head[3] & BEYOND_PRIOR != 0,
            part,
            stream: u32_at(4),
            epoch: u16_at(8),
            chunk_index: u16_at(10),
            chunk_count: u16_at(12),
            age_ms: u16_at(14),
            rtp_timestamp: u32_at(16),
            size: Size::new(u16_at(20), u16_at(22)),
        };
        let (index, count) = (header.chunk_index, header.chunk_count);
        if count > MAX_CHUNKS || index >= count {
            return Err(AnchorMessageError::Chunk { index, count });
        }
        if header.size.width == 0 || header.size.height == 0 {
            return Err(AnchorMessageError::Size(header.size));
        }
        if payload.is_empty() || payload.len() > MAX_CHUNK {
            return Err(AnchorMessageError::Payload(payload.len()));
        }
        Ok((header, payload))
    }

    /// The 24 bytes of the header.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[0] = VERSION;
        out[1] = self.codec;
        out[2] = match self.source {
            AnchorSource::Enhanced => 0,
            AnchorSource::Captured => 1,
        };
        let beyond = if self.beyond_prior { BEYOND_PRIOR } else { 0 };
        out[3] = beyond | if self.tiled { TILED | self.part << 4 } else { 0 };
        out[4..8].copy_from_slice(&self.stream.to_be_bytes());
        out[8..10].copy_from_slice(&self.epoch.to_be_bytes());
        out[10..12].copy_from_slice(&self.chunk_index.to_be_bytes());
        out[12..14].copy_from_slice(&self.chunk_count.to_be_bytes());
        out[14..16].copy_from_slice(&self.age_ms.to_be_bytes());
        out[16..20].copy_from_slice(&self.rtp_timestamp.to_be_bytes());
        out[20..22].copy_from_slice(&self.size.width.to_be_bytes());
        out[22..24].copy_from_slice(&self.size.height.to_be_bytes());
        out
    }

    /// Whether two messages belong to the same anchor.
    fn same_anchor(&self, other: &Self) -> bool {
        (self.stream, self.epoch, self.rtp_timestamp, self.source, self.part)
            == (other.stream, other.epoch, other.rtp_timestamp, other.source, other.part)
    }

    /// Whether two messages of one anchor also agree about its codec, form and number of chunks.
    fn agrees(&self, other: &Self) -> bool {
        (self.codec, self.tiled, self.beyond_prior, self.chunk_count)
            == (other.codec, other.tiled, other.beyond_prior, other.chunk_count)
            && self.size == other.size
    }
}

/// Cuts a payload into messages with at most `max_chunk` payload bytes each.
///
/// `max_chunk` is clamped to what the format allows, so that the count stays within
/// [`MAX_CHUNKS`]. An empty payload, or one beyond [`MAX_ANCHOR`], is refused.
///
/// # Errors
///
/// Fails if the payload is empty or longer than [`MAX_ANCHOR`].
pub fn encode_chunks(
    header: &AnchorHeader,
    payload: &[u8],
    max_chunk: usize,
) -> Result<Vec<Vec<u8>>, AnchorMessageError> {
    if payload.is_empty() || payload.len() > MAX_ANCHOR {
        return Err(AnchorMessageError::Payload(payload.len()));
    }
    let min = payload.len().div_ceil(usize::from(MAX_CHUNKS));
    let chunks = payload.chunks(max_chunk.clamp(min, MAX_CHUNK));
    let count = chunks.len() as u16;
    Ok(chunks
        .enumerate()
        .map(|(index, chunk)| {
            let header = AnchorHeader { chunk_index: index as u16, chunk_count: count, ..*header };
            let mut message = Vec::with_capacity(HEADER_BYTES + chunk.len());
            message.extend_from_slice(&header.to_bytes());
            message.extend_from_slice(chunk);
            message
        })
        .collect())
}

/// A complete anchor, still encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReassembledAnchor {
    /// The header of the anchor's first message to arrive.
    pub header: AnchorHeader,
    /// The whole payload.
    pub payload: Vec<u8>,
}

/// The counters of a [`Reassembler`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReassemblyStats {
    /// Anchors that were completed.
    pub completed: u64,
    /// Unfinished anchors that were dropped to make room.
    pub dropped: u64,
    /// Messages that could not be parsed or that contradict others of their anchor.
    pub malformed: u64,
    /// Messages that repeat one that is already held.
    pub duplicates: u64,
}

/// Puts the messages of one track's anchors together again.
///
/// Holds at most [`MAX_IN_FLIGHT`] anchors and [`MAX_BYTES_IN_FLIGHT`] bytes; beyond that the
/// oldest is dropped. Repeats of an anchor completed a short while ago are ignored.
///
/// ```
/// use windlass_types::message::{AnchorHeader, HTJ2K, Reassembler, encode_chunks};
/// use windlass_types::{AnchorSource, Size};
///
/// let header = AnchorHeader::new(HTJ2K, AnchorSource::Enhanced, 90_000, Size::new(640, 360));
/// let messages = encode_chunks(&header, &[7; 2500], 1000)?;
/// assert_eq!(messages.len(), 3);
///
/// // The data channel is unordered: the last chunk comes first.
/// let mut reassembler = Reassembler::new();
/// assert_eq!(reassembler.push(&messages[2])?, None);
/// assert_eq!(reassembler.push(&messages[0])?, None);
/// let anchor = reassembler.push(&messages[1])?.expect("no chunk is missing");
/// assert_eq!((anchor.header.rtp_timestamp, anchor.payload), (90_000, vec![7; 2500]));
/// # Ok::<(), windlass_types::message::AnchorMessageError>(())
/// ```
#[derive(Debug, Default)]
pub struct Reassembler {
    in_flight: VecDeque<Partial>,
    finished: VecDeque<AnchorHeader>,
    stats: ReassemblyStats,
}

#[derive(Debug)]
struct Partial {
    header: AnchorHeader,
    chunks: Vec<Option<Vec<u8>>>,
    missing: usize,
    bytes: usize,
}

impl Reassembler {
    /// A reassembler that holds nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The counters since the reassembler was made.
    pub fn stats(&self) -> ReassemblyStats {
        self.stats
    }

    /// Drops all unfinished anchors and keeps the counters.
    pub fn clear(&mut self) {
        self.in_flight.clear();
        self.finished.clear();
    }

    /// Takes one message, and returns the anchor if this message completes it.
    ///
    /// # Errors
    ///
    /// Fails if the message is malformed, as [`AnchorHeader::parse`] says; such a message is counted and changes
    /// nothing else.
    pub fn push(
        &mut self,
        message: &[u8],
    ) -> Result<Option<ReassembledAnchor>, AnchorMessageError> {
        let result = self.take(message);
        if result.is_err() {
            self.stats.malformed += 1;
        }
        result
    }

    fn take(&mut self, message: &[u8]) -> Result<Option<ReassembledAnchor>, AnchorMessageError> {
        let (header, payload) = AnchorHeader::parse(message)?;
        if self.finished.iter().any(|f| f.same_anchor(&header)) {
            self.stats.duplicates += 1;
            return Ok(None);
        }
        let found = self.in_flight.iter().position(|p| p.header.same_anchor(&header));
        let at = found.unwrap_or_else(|| self.begin(header));
        let index = usize::from(header.chunk_index);
        let partial = &mut self.in_flight[at];
        if !partial.header.agrees(&header) {
            return Err(AnchorMessageError::Chunk {
                index: header.chunk_index,
                count: header.chunk_count,
            });
        }
        if partial.chunks[index].is_some() {
            self.stats.duplicates += 1;
            return Ok(None);
        }
        if partial.bytes + payload.len() > MAX_ANCHOR {
            let bytes = partial.bytes + payload.len();
            self.in_flight.remove(at);
            return Err(AnchorMessageError::Payload(bytes));
        }
        partial.chunks[index] = Some(payload.to_vec());
        partial.bytes += payload.len();
        partial.missing -= 1;
        if partial.missing == 0 {
            return Ok(self.finish(at));
        }
        while self.in_flight.iter().map(|p| p.bytes).sum::<usize>() > MAX_BYTES_IN_FLIGHT {
            self.drop_oldest();
        }
        Ok(None)
    }

    fn begin(&mut self, header: AnchorHeader) -> usize {
        while self.in_flight.len() >= MAX_IN_FLIGHT {
            self.drop_oldest();
        }
        let count = usize::from(header.chunk_count);
        self.in_flight.push_back(Partial {
            header,
            chunks: vec![None; count],
            missing: count,
            bytes: 0,
        });
        self.in_flight.len() - 1
    }

    fn finish(&mut self, at: usize) -> Option<ReassembledAnchor> {
        let partial = self.in_flight.remove(at)?;
        self.stats.completed += 1;
        if self.finished.len() >= MAX_IN_FLIGHT {
            self.finished.pop_front();
        }
        self.finished.push_back(partial.header);
        Some(ReassembledAnchor {
            header: partial.header,
            payload: partial.chunks.into_iter().flatten().flatten().collect(),
        })
    }

    fn drop_oldest(&mut self) {
        if self.in_flight.pop_front().is_some() {
            self.stats.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(rtp_timestamp: u32) -> AnchorHeader {
        AnchorHeader {
            codec: 1,
            source: AnchorSource::Enhanced,
            tiled: false,
            beyond_prior: false,
            part: 0,
            stream: 7,
            epoch: 3,
            chunk_index: 0,
            chunk_count: 1,
            age_ms: 42,
            rtp_timestamp,
            size: Size::new(640, 360),
        }
    }

    fn bytes(n: usize) -> Vec<u8> {
        (0..n).map(|i| (i * 7 + i / 251) as u8).collect()
    }

    #[test]
    fn the_header_has_the_bytes_of_the_description() {
        let h = AnchorHeader {
            source: AnchorSource::Captured,
            beyond_prior: true,
            chunk_index: 1,
            chunk_count: 2,
            ..header(0x0102_0304)
        };
        let expected =
            [1, 1, 1, 2, 0, 0, 0, 7, 0, 3, 0, 1, 0, 2, 0, 42, 1, 2, 3, 4, 2, 128, 1, 104];
        assert_eq!(h.to_bytes(), expected);
    }

    #[test]
    fn chunks_in_any_order_make_the_anchor_again() {
        let payload = bytes(50_000);
        let mut messages = encode_chunks(&header(9), &payload, 1100).expect("50 kB are allowed");
        messages.reverse();
        let mut r = Reassembler::new();
        let (last, rest) = messages.split_last().expect("there are many");
        for m in rest {
            assert_eq!(r.push(m), Ok(None));
        }
        let anchor = r.push(last).expect("valid").expect("complete");
        assert_eq!(anchor.payload, payload);
        assert_eq!(r.stats().completed, 1);
    }

    #[test]
    fn duplicates_are_ignored_before_and_after_completion() {
        let messages = encode_chunks(&header(9), &bytes(300), 100).expect("allowed");
        let mut r = Reassembler::new();
        for m in [&messages[0], &messages[0], &messages[1]] {
            assert_eq!(r.push(m), Ok(None));
        }
        assert!(r.push(&messages[2]).expect("valid").is_some());
        assert_eq!(r.push(&messages[1]), Ok(None));
        assert_eq!(r.stats().duplicates, 2);
    }

    #[test]
    fn the_ninth_unfinished_anchor_drops_the_oldest() {
        let mut r = Reassembler::new();
        for ts in 0..9 {
            let m = encode_chunks(&header(ts), &bytes(200), 100).expect("allowed");
            assert_eq!(r.push(&m[0]), Ok(None));
        }
        assert_eq!(r.stats().dropped, 1);
        assert_eq!(r.in_flight.len(), MAX_IN_FLIGHT);
    }

    #[test]
    fn bytes_in_flight_are_bounded() {
        let mut r = Reassembler::new();
        for ts in 0..8 {
            let m = encode_chunks(&header(ts), &bytes(MAX_ANCHOR), MAX_CHUNK).expect("allowed");
            for m in &m[..60] {
                let _ = r.push(m);
            }
            let held: usize = r.in_flight.iter().map(|p| p.bytes).sum();
            assert!(held <= MAX_BYTES_IN_FLIGHT);
        }
        assert!(r.stats().dropped > 0);
    }

    #[test]
    fn messages_that_contradict_their_anchor_are_malformed() {
        let mut r = Reassembler::new();
        let first = encode_chunks(&header(5), &bytes(300), 100).expect("allowed");
        let other = AnchorHeader { size: Size::new(1280, 360), ..header(5) };
        let second = encode_chunks(&other, &bytes(300), 100).expect("allowed");
        assert_eq!(r.push(&first[0]), Ok(None));
        assert!(r.push(&second[1]).is_err());
        assert_eq!(r.stats().malformed, 1);
    }

    #[test]
    fn empty_and_oversized_payloads_are_refused() {
        let h = header(1);
        assert_eq!(encode_chunks(&h, &[], 100), Err(AnchorMessageError::Payload(0)));
        let big = vec![0; MAX_ANCHOR + 1];
        assert!(encode_chunks(&h, &big, 100).is_err());
        let tiny = encode_chunks(&h, &bytes(10_000), 1).expect("the chunk size is raised");
        assert!(tiny.len() <= usize::from(MAX_CHUNKS));
    }

    proptest! {
        #[test]
        fn headers_round_trip(
            codec: u8, captured: bool, beyond_prior: bool, part in proptest::option::of(0u8..16), stream: u32, epoch: u16, count in 1..=MAX_CHUNKS,
            index: u16, age_ms: u16, rtp_timestamp: u32, width in 1..u16::MAX, height in 1..u16::MAX,
            payload in proptest::collection::vec(any::<u8>(), 1..100),
        ) {
            let h = AnchorHeader {
                codec,
                source: if captured { AnchorSource::Captured } else { AnchorSource::Enhanced },
                tiled: part.is_some(), beyond_prior, part: part.unwrap_or_default(),
                stream, epoch, chunk_index: index % count, chunk_count: count, age_ms,
                rtp_timestamp, size: Size::new(width, height),
            };
            let message = [&h.to_bytes()[..], &payload].concat();
            prop_assert_eq!(AnchorHeader::parse(&message), Ok((h, &payload[..])));
        }

        #[test]
        fn any_bytes_are_taken_or_refused_without_panic(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..20),
        ) {
            let mut r = Reassembler::new();
            for m in &messages {
                let _ = r.push(m);
            }
        }

        #[test]
        fn mutated_messages_never_break_the_bounds(
            edits in proptest::collection::vec((0usize..40, 0usize..24, any::<u8>()), 0..60),
        ) {
            let mut messages = encode_chunks(&header(1), &bytes(4000), 100).expect("allowed");
            for (m, at, value) in edits {
                messages[m][at] = value;
            }
            let mut r = Reassembler::new();
            for m in &messages {
                let _ = r.push(m);
                prop_assert!(r.in_flight.len() <= MAX_IN_FLIGHT);
            }
        }
    }
}
