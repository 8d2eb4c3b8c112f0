//! Anchors coded as a VP9 stream, from the encoder to the hybrid decoder.

use windlass_enhancer::encode::{Prediction, StreamConfig, StreamEncoder};
use windlass_hybrid::anchor::stream::VP9_STREAM;
use windlass_hybrid::anchor::tiles::TileMap;
use windlass_hybrid::anchor::{AnchorHeader, AnchorOrigin, ReassembledAnchor, payload};
use windlass_hybrid::{AnchorOutcome, Detail, HybridConfig, HybridDecoder};

const REALTIME: &[u8] = include_bytes!("../../hybrid/tests/fixtures/realtime.ivf");
/// The fixture is 161×91.
const LOW: (usize, usize) = (161, 91);

fn frames() -> Vec<&'static [u8]> {
    let (mut out, mut rest) = (Vec::new(), &REALTIME[32..]);
    while let Some((head, tail)) = rest.split_first_chunk::<12>() {
        let size = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        out.push(&tail[..size]);
        rest = &tail[size..];
    }
    out
}

fn detail(n: usize) -> Detail {
    let (w, h) = (2 * LOW.0, 2 * LOW.1);
    let samples = (0..w * h).map(|i| ((i % w * 7 + i / w * 3 + n) % 41) as i16 * 12 - 240);
    Detail::from_samples(w, h, samples.collect()).expect("the count is right")
}

/// The anchor of frame `n` in these tiles.
fn anchor(
    encoder: &mut StreamEncoder,
    n: usize,
    tiles: &TileMap,
    prediction: Prediction,
) -> ReassembledAnchor {
    let coded = encoder.encode(&detail(n), tiles, 2, None, prediction).expect("libvpx codes it");
    let (payload, tiled) = payload::pack(tiles, coded.payload);
    let header = AnchorHeader {
        codec: VP9_STREAM,
        source: AnchorOrigin::Enhanced,
        tiled,
        beyond_prior: false,
        part: 0,
        stream: 1,
        epoch: 3,
        chunk_index: 0,
        chunk_count: 1,
        age_ms: 0,
        rtp_timestamp: n as u32 * 3000,
        width: 2 * LOW.0 as u16,
        height: 2 * LOW.1 as u16,
    };
    ReassembledAnchor { header, payload }
}

#[test]
fn a_lost_anchor_of_a_stream_asks_for_a_key_anchor_which_mends_it() {
    let mut encoder =
        StreamEncoder::new(StreamConfig::new(2 * LOW.0, 2 * LOW.1)).expect("libvpx is there");
    let mut decoder = HybridDecoder::new(HybridConfig::default());
    let full = TileMap::full(LOW.0, LOW.1);
    let mut one = TileMap::empty(LOW.0, LOW.1);
    one.set(1, 0);
    let mut outcomes = Vec::new();
    for (n, data) in frames().into_iter().enumerate().take(12) {
        decoder.push_frame(n as u32 * 3000, data).expect("a sound stream");
        let (tiles, prediction) = match n {
            10 => (&full, Prediction::Key),
            4 | 11 => (&one, Prediction::FromLast),
            _ if n % 2 == 0 => (&full, Prediction::FromLast),
            _ => continue,
        };
        let anchor = anchor(&mut encoder, n, tiles, prediction);
        if n != 6 {
            outcomes.push(decoder.push_anchor(&anchor));
        }
        if n == 2 {
            outcomes.push(decoder.push_anchor(&anchor));
        }
    }
    let applied = AnchorOutcome::Applied { frames_late: 0 };
    let duplicate = AnchorOutcome::Duplicate;
    let needs_key = AnchorOutcome::NeedsKey;
    assert_eq!(outcomes, [applied, applied, duplicate, applied, needs_key, applied, applied]);
    assert_eq!((decoder.stats().needs_key, decoder.stats().applied), (1, 5));
}

#[test]
fn an_anchor_for_a_frame_that_is_gone_still_serves_those_predicted_from_it() {
    let mut encoder =
        StreamEncoder::new(StreamConfig::new(2 * LOW.0, 2 * LOW.1)).expect("libvpx is there");
    let config = HybridConfig { history: 4, ..HybridConfig::default() };
    let mut decoder = HybridDecoder::new(config);
    let full = TileMap::full(LOW.0, LOW.1);
    let first = anchor(&mut encoder, 0, &full, Prediction::Key);
    let second = anchor(&mut encoder, 8, &full, Prediction::FromLast);
    for (n, data) in frames().into_iter().enumerate().take(10) {
        decoder.push_frame(n as u32 * 3000, data).expect("a sound stream");
    }
    assert_eq!(decoder.push_anchor(&first), AnchorOutcome::TooOld);
    assert_eq!(decoder.push_anchor(&second), AnchorOutcome::Applied { frames_late: 1 });
}
