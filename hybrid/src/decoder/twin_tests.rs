//! A server's twin of its subscribers' decoders: fed with decoded frames, asked for any remembered picture.

use super::tests::{ALTREF, REALTIME, anchor, at, captured, frames};
use super::*;

/// Feeds both with the same frames, and with `given` once the frame `late` later is there.
fn twins(
    ivf: &'static [u8],
    given: &[ReassembledAnchor],
    late: usize,
) -> (HybridDecoder, HybridDecoder) {
    let mut subscriber = HybridDecoder::new(HybridConfig::default());
    let mut twin = HybridDecoder::new(HybridConfig::default());
    let mut decoder = Decoder::new();
    for (n, chunk) in frames(ivf).into_iter().enumerate() {
        subscriber.push_frame(at(n), chunk).expect("a sound stream");
        twin.push_decoded(at(n), decoder.decode(chunk).expect("a sound stream"));
        for anchor in given.iter().filter(|a| a.header.rtp_timestamp == at(n.wrapping_sub(late))) {
            assert_eq!(subscriber.push_anchor(anchor), twin.push_anchor(anchor));
        }
        subscriber.refresh();
        let seen = (subscriber.hr().cloned(), twin.picture_at(at(n)).cloned());
        assert_eq!(seen.0, seen.1, "frame {n}");
    }
    (subscriber, twin)
}

#[test]
fn the_twin_sees_what_its_subscriber_sees() {
    for ivf in [REALTIME, ALTREF] {
        let (_, mut low) = twins(ivf, &[], 0);
        let size = low.lr().map(|low| (low.width() as u16, low.height() as u16));
        let (width, height) = size.expect("frames were shown");
        let given = [anchor(3, 2 * width, 2 * height), captured(anchor(8, 2 * width, 2 * height))];
        for late in [0, 4] {
            let (subscriber, twin) = twins(ivf, &given, late);
            assert_eq!(subscriber.stats().applied, twin.stats().applied);
            assert!(twin.stats().applied == 2, "{:?}", twin.stats());
        }
        assert!(low.picture_at(at(1_000)).is_none());
    }
}

#[test]
fn an_earlier_picture_has_what_came_since() {
    let (mut before, _) = twins(REALTIME, &[], 0);
    let low = before.lr().map(|low| (2 * low.width() as u16, 2 * low.height() as u16));
    let (width, height) = low.expect("frames were shown");
    let plain = before.picture_at(at(12)).cloned().expect("it is remembered");
    let (_, mut twin) = twins(REALTIME, &[anchor(10, width, height)], 6);
    let now = twin.picture_at(at(12)).cloned().expect("it is remembered");
    assert_ne!(now, plain);
    let mut timely = twins(REALTIME, &[anchor(10, width, height)], 0).0;
    assert_eq!(timely.picture_at(at(12)), Some(&now));
}
