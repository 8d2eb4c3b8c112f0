//! What the hybrid decoder allocates: nothing per frame once pictures of the stream's size have been
//! made, with and without anchors in them, and no more than its bounds whatever comes.

#[path = "../vp9/tests/common/mod.rs"]
mod common;
#[path = "../vp9/tests/common/counting.rs"]
mod counting;

use common::{ALTREF, REALTIME, ivf};
use counting::{allocations, peak};
use windlass_hybrid::anchor::codec::Htj2k;
use windlass_hybrid::anchor::payload::{self, Packed};
use windlass_hybrid::decoder::MAX_EARLY_BYTES;
use windlass_hybrid::{AnchorOutcome, Detail, HybridConfig, HybridDecoder};
use windlass_types::message::HTJ2K;
use windlass_types::message::{AnchorHeader, ReassembledAnchor};
use windlass_types::tiles::TileMap;
use windlass_types::{AnchorSource, Size};

/// Frames after which every buffer has been used: each way in which key frames, references, and the history
/// hold pictures has come by.
const WARM: usize = 100;
/// Frames before measuring where there are anchors, whose frames are held too.
const WARM_WITH_ANCHORS: usize = 250;
/// Frames before Chromium changes the size.
const ONE_SIZE: usize = 36;

/// Streams, with the size of their first frames.
const STREAMS: [(&str, &[u8], Size); 3] = [
    ("realtime", REALTIME, Size::new(161, 91)),
    ("altref", ALTREF, Size::new(160, 96)),
    ("l1t3", include_bytes!("../../tests/fixtures/vp9/chromium-l1t3.ivf"), Size::new(320, 180)),
];

fn at(frame: usize) -> u32 {
    (frame as u32).wrapping_mul(3000)
}

/// An anchor of a whole frame, or of its first tile alone.
fn anchor(frame: usize, low: Size, scale: usize, whole: bool) -> ReassembledAnchor {
    let size = low.scaled(scale as u16);
    let (w, h) = (usize::from(size.width), usize::from(size.height));
    let samples = (0..w * h).map(|i| ((i % w * 7 + i / w * 3) % 41) as i16 * 12 - 240);
    let detail = Detail::from_samples(w, h, samples.collect()).expect("the count is right");
    let mut tiles = TileMap::empty(low);
    tiles.set(0, 0);
    let tiles = if whole { TileMap::full(low) } else { tiles };
    let image = payload::image(detail, &tiles, scale);
    let coded = Htj2k::encode(&image, 70).expect("a legal size");
    let Packed { payload, tiled } = payload::pack(&tiles, coded);
    ReassembledAnchor {
        header: AnchorHeader {
            tiled,
            stream: 1,
            ..AnchorHeader::new(HTJ2K, AnchorSource::Captured, at(frame), size)
        },
        payload,
    }
}

/// Plays a stream again and again; anchors come as `anchors` says by frame: how many frames back.
fn steady(scale: usize, warm: usize, anchors: impl Fn(usize) -> Option<usize>) {
    for (name, stream, size) in STREAMS {
        let mut chunks = ivf(stream);
        chunks.truncate(ONE_SIZE);
        let mut decoder = HybridDecoder::new(HybridConfig { scale, ..HybridConfig::default() });
        let mut applied = 0;
        for n in 0..warm + 60 {
            let chunk = chunks[n % chunks.len()];
            let calls = allocations(|| {
                decoder.push_frame(at(n), chunk).expect("a sound stream");
            });
            assert!(n < warm || calls == 0, "{name} by {scale}: frame {n} allocates {calls} times");
            if let Some(back) = anchors(n).filter(|&back| back <= n) {
                let outcome = decoder.push_anchor(&anchor(n - back, size, scale, n % 2 == 0));
                assert!(matches!(outcome, AnchorOutcome::Applied { .. }), "{name}: {outcome:?}");
                // Now and then it is to be seen before the next frame.
                if n % 4 == 0 {
                    decoder.refresh();
                }
                applied += 1;
            }
        }
        assert_eq!(decoder.stats().applied, applied);
        assert_eq!(decoder.stats().enhanced > 0, applied > 0);
    }
}

#[test]
fn frames_without_anchors_allocate_nothing() {
    for scale in 2..=4 {
        steady(scale, WARM, |_| None);
    }
}

#[test]
fn frames_with_anchors_in_the_picture_allocate_nothing() {
    steady(2, WARM, |n| (n == 3).then_some(0));
    for scale in 2..=3 {
        // Now in time, now eight frames late.
        steady(scale, WARM_WITH_ANCHORS, |n| (n % 10 == 0).then_some(n % 20 * 8 / 10));
    }
}

#[test]
fn memory_is_bounded_whatever_anchors_come() {
    let chunks = ivf(REALTIME);
    let mut early = anchor(0, Size::new(161, 91), 2, false);
    early.payload.resize(100_000, 0);
    let mut run = |anchors: bool| {
        peak(|| {
            let mut decoder = HybridDecoder::new(HybridConfig::default());
            for n in 0..4 * chunks.len() {
                decoder.push_frame(at(n), chunks[n % chunks.len()]).expect("a sound stream");
                if !anchors {
                    continue;
                }
                decoder.push_anchor(&anchor(n, Size::new(161, 91), 2, n % 3 == 0));
                for ahead in 1..60 {
                    early.header.rtp_timestamp = at(n + ahead);
                    decoder.push_anchor(&early);
                }
            }
        })
    };
    // Four sources, an anchor that is being decoded, the sums that filters are fitted by, and
    // those that wait.
    let detail = 322 * 182 * 2;
    let bound = run(false) + 8 * detail + (3 << 20) + MAX_EARLY_BYTES as i64 + 400_000;
    let bytes = run(true);
    assert!(bytes <= bound, "{bytes} bytes, and at most {bound}");
}
