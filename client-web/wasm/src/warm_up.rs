//! A short stream that makes the engine compile the decoder before the first real frame comes.
//!
//! Browsers compile a module's functions when they are first called, and optimise those that were called often. A
//! track's first frame would wait for the one, and its first seconds for the other. The compiled code belongs to the
//! module, not to the instance, so decoding any stream warms it up for all tracks. The stream is synthetic
//! (`warm-up/make.sh`). It begins with flat and small frames, over which the work of the first steps spreads. Then
//! come frames as in a call, with an anchor among them. The last ones are encoded more slowly, with more block sizes,
//! transforms and modes.
//!
//! Format of `stream.bin`: pieces, each behind its length (u32, little-endian). A VP9 frame begins
//! with the bits 10, an anchor message with its version.

use windlass_network::Tier;
use windlass_types::message::VERSION;

/// The embedded stream: pieces, each behind its length (u32, little-endian).
const STREAM: &[u8] = include_bytes!("../warm-up/stream.bin");
/// Number of times that the stream is decoded: engines optimise functions that are called often.
const PASSES: u32 = 3;
/// RTP ticks from piece to piece, at 90 kHz: the timestamps of the stream's anchors are made with it.
const TICKS: u32 = 3000;

/// The input of the decoder at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// A VP9 frame.
    Frame {
        /// The frame's RTP timestamp.
        rtp_timestamp: u32,
        /// The frame's bytes.
        data: &'static [u8],
    },
    /// A complete anchor in one message.
    Message(&'static [u8]),
}

/// Whether the stream begins anew with this step: the decoder must forget the pass before.
pub fn begins_pass(step: u32) -> bool {
    step.is_multiple_of(pieces().count() as u32)
}

/// The network of the pass that a step belongs to: none in the first pass, then each in turn.
pub fn network(step: u32) -> Option<Tier> {
    let pass = step / pieces().count() as u32;
    pass.checked_sub(1).and_then(|n| Tier::ALL.get(n as usize % Tier::ALL.len()).copied())
}

/// The piece of a step, counted from 0 over all passes; `None` after the last.
pub fn piece(step: u32) -> Option<Piece> {
    let count = pieces().count() as u32;
    if step >= count * PASSES {
        return None;
    }
    let at = step % count;
    let data = pieces().nth(at as usize)?;
    Some(if data.first() == Some(&VERSION) {
        Piece::Message(data)
    } else {
        Piece::Frame { rtp_timestamp: at * TICKS, data }
    })
}

fn pieces() -> impl Iterator<Item = &'static [u8]> {
    let mut rest = STREAM;
    std::iter::from_fn(move || {
        let (length, tail) = rest.split_first_chunk()?;
        let (data, next) = tail.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = next;
        Some(data)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_hybrid::{AnchorOutcome, HybridConfig, HybridDecoder};
    use windlass_types::message::Reassembler;

    #[test]
    fn every_network_has_a_pass() {
        let passes = (0..PASSES).map(|pass| network(pass * pieces().count() as u32));
        let expected = std::iter::once(None).chain(Tier::ALL.map(Some));
        assert!(passes.eq(expected));
    }

    #[test]
    fn every_piece_is_decoded_and_every_anchor_applied() {
        let mut decoder = HybridDecoder::new(HybridConfig::default());
        let mut reassembler = Reassembler::new();
        let (mut step, mut keys, mut anchors) = (0, 0, 0);
        while let Some(piece) = piece(step) {
            if begins_pass(step) {
                decoder.reset();
                reassembler.clear();
            }
            match piece {
                Piece::Frame { rtp_timestamp, data } => {
                    let outcome = decoder.push_frame(rtp_timestamp, data).expect("a sound frame");
                    keys += u32::from(outcome.key);
                }
                Piece::Message(message) => {
                    let anchor = reassembler.push(message).expect("a sound message");
                    let outcome = decoder.push_anchor(&anchor.expect("a key anchor"));
                    assert_eq!(outcome, AnchorOutcome::Applied { frames_late: 1 });
                    anchors += 1;
                }
            }
            step += 1;
        }
        assert_eq!((keys, anchors), (3 * PASSES, PASSES));
        assert!(decoder.stats().enhanced > 0);
    }

    #[test]
    fn the_stream_is_small_and_ends() {
        assert!(STREAM.len() <= 25_000, "{} bytes", STREAM.len());
        assert_eq!(pieces().map(|p| p.len() + 4).sum::<usize>(), STREAM.len());
        assert_eq!(piece(u32::MAX), None);
    }
}
