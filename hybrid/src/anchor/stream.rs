//! Codec 3: the anchors of one stream as a second VP9 sequence of luma detail, so that what did not
//! change since the anchor before costs almost nothing.
//!
//! Source: issue 4, *Anchor codecs*; VP9 as in [`vp9`](crate::vp9). Each picture is as large as HR;
//! its luma is `clamp(round(D · gain / 16) + 128)` with `D` in 1/16 grey level, its chroma flat. A
//! payload is
//!
//! | bytes | holds |
//! | --- | --- |
//! | 0 | version 1 in the upper four bits; below it the [`Prediction`] |
//! | 1 | binary logarithm of the gain, 0 to 3 |
//! | 2, 3 | sequence number of this anchor, big endian |
//! | 4, 5 | sequence number of the anchor that it is predicted from; its own for a key anchor |
//! | 6, 7 | run: an arbitrary number of the encoder, by which one that begins anew is told from the one before |
//! | 8… | one VP9 frame, error-resilient, so that it needs nothing but that anchor |
//!
//! [`StreamDecoder`] takes payloads as they come off the network, in any order; what it decodes of them is said in
//! [`chain`](super::chain).

use crate::detail::{Detail, ONE};

use super::chain::Chain;
pub use super::chain::StreamError;

/// Codec id of the anchor stream in the message header.
pub const VP9_STREAM: u8 = 3;
/// Bytes before the VP9 frame.
pub const HEADER_BYTES: usize = 8;

const VERSION: u8 = 1;
/// The luma sample of no detail.
const ZERO: i32 = 128;

/// What an anchor of a stream is predicted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Prediction {
    /// Nothing: a late joiner can begin here.
    Key,
    /// The last key anchor: whatever was lost since does not matter.
    FromKey,
    /// The anchor before it.
    FromLast,
}

/// How far detail is enlarged before it is rounded to 8 bits: finer steps, smaller range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gain(u8);

impl Gain {
    /// Greatest gain: 8.
    pub const MAX_SHIFT: u8 = 3;
    /// Detail of ±128 grey levels, in steps of 1.
    pub const ONE: Gain = Gain(0);
    /// Detail of ±64 grey levels, in steps of 1/2.
    pub const TWO: Gain = Gain(1);
    /// Detail of ±32 grey levels, in steps of 1/4.
    pub const FOUR: Gain = Gain(2);

    /// The gain `1 << shift`; `None` where that is too much.
    pub fn from_shift(shift: u8) -> Option<Self> {
        (shift <= Self::MAX_SHIFT).then_some(Self(shift))
    }

    /// Binary logarithm.
    pub fn shift(self) -> u8 {
        self.0
    }

    /// The 8-bit sample of detail, before clamping, in 1/16.
    pub fn sample_q4(self, detail: i16) -> i32 {
        (i32::from(detail) << self.0) + (ZERO << 4)
    }

    /// The detail of an 8-bit sample.
    pub fn detail(self, sample: u8) -> i16 {
        (((i32::from(sample) - ZERO) * i32::from(ONE)) >> self.0) as i16
    }
}

/// What precedes the VP9 frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamHeader {
    /// What the anchor is predicted from.
    pub prediction: Prediction,
    /// How far its detail is enlarged.
    pub gain: Gain,
    /// Its number.
    pub sequence: u16,
    /// Number of the anchor it is predicted from.
    pub refers_to: u16,
    /// The encoder's run.
    pub run: u16,
}

impl StreamHeader {
    /// Splits a payload into its header and its VP9 frame.
    pub fn parse(payload: &[u8]) -> Option<(Self, &[u8])> {
        let (head, frame) = payload.split_first_chunk::<HEADER_BYTES>()?;
        if head[0] >> 4 != VERSION || frame.is_empty() {
            return None;
        }
        let prediction = match head[0] & 15 {
            0 => Prediction::Key,
            1 => Prediction::FromKey,
            2 => Prediction::FromLast,
            _ => return None,
        };
        let header = Self {
            prediction,
            gain: Gain::from_shift(head[1])?,
            sequence: u16::from_be_bytes([head[2], head[3]]),
            refers_to: u16::from_be_bytes([head[4], head[5]]),
            run: u16::from_be_bytes([head[6], head[7]]),
        };
        let is_key = prediction == Prediction::Key;
        (is_key == (header.sequence == header.refers_to)).then_some((header, frame))
    }

    /// The bytes of the header.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let kind = match self.prediction {
            Prediction::Key => 0,
            Prediction::FromKey => 1,
            Prediction::FromLast => 2,
        };
        let ([s0, s1], [r0, r1]) = (self.sequence.to_be_bytes(), self.refers_to.to_be_bytes());
        let [n0, n1] = self.run.to_be_bytes();
        [VERSION << 4 | kind, self.gain.shift(), s0, s1, r0, r1, n0, n1]
    }
}

/// Decodes the anchors of one stream and epoch: see the module's text.
#[derive(Debug)]
pub struct StreamDecoder {
    chain: Chain,
    detail: Detail,
}

impl StreamDecoder {
    /// A decoder of HR pictures of this size that waits for a key anchor.
    pub fn new(width: u16, height: u16) -> Self {
        let detail = Detail::zero(width.into(), height.into());
        Self { chain: Chain::new(width, height), detail }
    }

    /// Width and height of its pictures.
    pub fn size(&self) -> (usize, usize) {
        self.chain.size()
    }

    /// Whether only a key anchor can be decoded.
    pub fn needs_key(&self) -> bool {
        self.chain.needs_key()
    }

    /// Forgets everything; a key anchor must come next.
    pub fn reset(&mut self) {
        self.chain.reset();
    }

    /// The detail of an anchor: of the whole picture, of which only the tiles that the anchor
    /// gives are meant; the others hold what an earlier anchor left there.
    pub fn decode(&mut self, payload: &[u8]) -> Result<&Detail, StreamError> {
        let (header, frame) = StreamHeader::parse(payload).ok_or(StreamError::Malformed)?;
        let decoded = self.chain.decode(header, frame)?;
        let luma = &decoded.picture.planes()[0];
        for y in 0..luma.height() {
            for (d, &v) in self.detail.row_mut(y).iter_mut().zip(luma.row(y)) {
                *d = header.gain.detail(v);
            }
        }
        Ok(&self.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anchor::fixture::parts;
    use proptest::prelude::*;

    /// Key and inter frames of 96x64, made by the server's encoder from moving waves.
    const ANCHORS: &[u8] = include_bytes!("../../tests/fixtures/anchor_stream.bin");

    fn anchors() -> Vec<Vec<u8>> {
        parts(ANCHORS)
    }

    fn decoder() -> StreamDecoder {
        StreamDecoder::new(96, 64)
    }

    #[test]
    fn a_stream_is_decoded_in_order() {
        let mut d = decoder();
        for (n, payload) in anchors().iter().enumerate() {
            let detail = d.decode(payload).unwrap_or_else(|e| panic!("anchor {n}: {e}"));
            let energy: i64 = detail.samples().iter().map(|&v| i64::from(v).pow(2)).sum();
            assert!(energy / 6144 > 100, "anchor {n} has no detail");
        }
    }

    #[test]
    fn it_begins_with_a_key_anchor_only() {
        let anchors = anchors();
        let mut d = decoder();
        assert_eq!(d.decode(&anchors[1]), Err(StreamError::NeedsKey));
        assert!(d.needs_key());
        assert!(d.decode(&anchors[0]).is_ok() && !d.needs_key());
    }

    #[test]
    fn a_loss_is_found_and_an_anchor_from_the_key_anchor_mends_it() {
        // The fixture: 0 key, 1 and 2 from the last, 3 from the key anchor, 4 from the last.
        let anchors = anchors();
        let mut whole = decoder();
        let expected: Vec<Detail> =
            anchors.iter().map(|a| whole.decode(a).expect("nothing is lost").clone()).collect();
        let mut d = decoder();
        d.decode(&anchors[0]).expect("a key anchor");
        assert_eq!(d.decode(&anchors[2]), Err(StreamError::NeedsKey));
        assert_eq!(d.decode(&anchors[3]), Ok(&expected[3]));
        assert_eq!(d.decode(&anchors[4]), Ok(&expected[4]));
    }

    #[test]
    fn the_missing_anchor_may_come_late() {
        let anchors = anchors();
        let mut d = decoder();
        d.decode(&anchors[0]).expect("a key anchor");
        assert_eq!(d.decode(&anchors[2]), Err(StreamError::NeedsKey));
        assert!(d.decode(&anchors[1]).is_ok());
        assert!(d.decode(&anchors[2]).is_ok());
    }

    #[test]
    fn duplicates_and_old_anchors_are_outdated_and_change_nothing() {
        let anchors = anchors();
        let mut d = decoder();
        for a in &anchors[..2] {
            assert!(d.decode(a).is_ok());
            assert_eq!(d.decode(a), Err(StreamError::Outdated));
        }
        assert_eq!(d.decode(&anchors[0]), Err(StreamError::Outdated));
        assert!(d.decode(&anchors[2]).is_ok());
    }

    #[test]
    fn damage_inside_the_frame_asks_for_a_key_anchor() {
        let anchors = anchors();
        let mut d = decoder();
        d.decode(&anchors[0]).expect("a key anchor");
        let cut = &anchors[1][..=HEADER_BYTES];
        assert_eq!(d.decode(cut), Err(StreamError::Malformed));
        assert_eq!(d.decode(&anchors[1]), Err(StreamError::NeedsKey));
        assert!(d.decode(&anchors[0]).is_ok());
    }

    #[test]
    fn another_size_or_gain_is_refused() {
        let anchors = anchors();
        let mut small = StreamDecoder::new(96, 62);
        assert!(small.decode(&anchors[0]).is_err() && small.needs_key());
        let mut large = StreamDecoder::new(128, 64);
        assert_eq!(large.decode(&anchors[0]), Err(StreamError::WrongSize));
        let mut d = decoder();
        d.decode(&anchors[0]).expect("a key anchor");
        let mut other = anchors[1].clone();
        other[1] ^= 1;
        assert_eq!(d.decode(&other), Err(StreamError::Malformed));
        assert!(d.decode(&anchors[1]).is_ok(), "a wrong header changes nothing");
    }

    #[test]
    fn an_encoder_that_begins_anew_is_followed_from_its_key_anchor_on() {
        let anchors = anchors();
        let of_another_run = |payload: &[u8]| {
            let mut payload = payload.to_vec();
            payload[6] ^= 1;
            payload
        };
        let mut d = decoder();
        for a in &anchors {
            d.decode(a).expect("nothing is lost");
        }
        assert_eq!(d.decode(&of_another_run(&anchors[4])), Err(StreamError::NeedsKey));
        assert!(d.decode(&of_another_run(&anchors[0])).is_ok());
        assert!(d.decode(&of_another_run(&anchors[1])).is_ok());
        assert_eq!(d.decode(&anchors[4]), Err(StreamError::NeedsKey), "the former run is over");
    }

    #[test]
    fn sequence_numbers_wrap() {
        use crate::anchor::chain::is_newer;
        assert!(is_newer(0, u16::MAX) && is_newer(7, 6));
        assert!(!is_newer(6, 6) && !is_newer(u16::MAX, 0));
    }

    proptest! {
        #[test]
        fn headers_round_trip(kind in 0u8..3, shift in 0u8..4, sequence: u16, run: u16, before in 1u16..) {
            let prediction =
                [Prediction::Key, Prediction::FromKey, Prediction::FromLast][usize::from(kind)];
            let refers_to = if kind == 0 { sequence } else { sequence.wrapping_sub(before) };
            let gain = Gain::from_shift(shift).expect("below the greatest");
            let header = StreamHeader { prediction, gain, sequence, refers_to, run };
            let payload = [&header.to_bytes()[..], &[9]].concat();
            prop_assert_eq!(StreamHeader::parse(&payload), Some((header, &[9u8][..])));
        }

        #[test]
        fn samples_keep_detail_to_half_a_step(detail in -500i16..500, shift in 0u8..3) {
            let gain = Gain::from_shift(shift).expect("below the greatest");
            let sample = ((gain.sample_q4(detail) + 8) >> 4).clamp(0, 255) as u8;
            prop_assert!((gain.detail(sample) - detail).abs() <= 8 >> shift);
        }

        #[test]
        fn any_bytes_are_refused_without_panic(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..8),
        ) {
            let mut d = decoder();
            for p in &payloads {
                let _ = d.decode(p);
            }
        }

        #[test]
        fn damaged_streams_never_panic_and_end_with_a_key_anchor(
            edits in proptest::collection::vec((0usize..5, any::<prop::sample::Index>(), any::<u8>()), 0..24),
            order in proptest::collection::vec(0usize..5, 0..12),
        ) {
            let mut damaged = anchors();
            for (n, at, value) in edits {
                *at.get_mut(&mut damaged[n]) = value;
            }
            let mut d = decoder();
            for n in order {
                if let Ok(detail) = d.decode(&damaged[n]) {
                    prop_assert_eq!((detail.width(), detail.height()), (96, 64));
                }
            }
            d.reset();
            prop_assert!(d.decode(&anchors()[0]).is_ok());
        }
    }
}
