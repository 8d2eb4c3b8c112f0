//! How much pictures lose after anchors, on a stream of the fixtures.

use super::tests::{REALTIME, anchor, at, frames};
use super::*;

fn decoder() -> HybridDecoder {
    HybridDecoder::new(HybridConfig::default())
}

/// Frames 0 to 12, with anchors that come with frames 2 and `second`.
fn play(second: Option<usize>) -> HybridDecoder {
    let mut decoder = decoder();
    for (n, data) in frames(REALTIME).into_iter().take(13).enumerate() {
        decoder.push_frame(at(n), data).expect("the fixture is a stream");
        let PlaneSize { width, height } = decoder.size.expect("there is a picture");
        let (width, height) = (2 * width as u16, 2 * height as u16);
        if n == 2 || Some(n) == second {
            let outcome = decoder.push_anchor(&anchor(n, width, height));
            assert!(matches!(outcome, AnchorOutcome::Applied { .. }), "{outcome:?}");
        }
    }
    decoder
}

#[test]
fn the_first_anchor_says_nothing_and_the_second_what_was_lost_since() {
    let DecaySum { lost, frames } = play(None).decay();
    assert!(lost.abs() < 1e-12 && frames == 0);
    let mut before = play(None);
    let mut after = play(Some(9));
    let DecaySum { lost, frames } = after.decay();
    assert_eq!(frames, 7);
    let luma = |decoder: &mut HybridDecoder| {
        decoder.picture_at(at(9)).expect("it is remembered").y.samples().to_vec()
    };
    let (a, b) = (luma(&mut before), luma(&mut after));
    let square = |(&a, &b): (&u8, &u8)| (f64::from(a) - f64::from(b)).powi(2);
    let seen = a.iter().zip(&b).map(square).sum::<f64>() / a.len() as f64;
    // Pictures are whole numbers within bounds, details are not.
    assert!(seen > 0.05 && (lost - seen).abs() < 0.1 * seen + 0.2, "{lost} against {seen}");
}

#[test]
fn what_follows_a_reset_does_not_count_from_before_it() {
    let mut decoder = play(None);
    decoder.reset();
    for (n, data) in frames(REALTIME).into_iter().take(6).enumerate() {
        decoder.push_frame(at(20 + n), data).expect("it begins with a key frame");
    }
    let PlaneSize { width, height } = decoder.size.expect("there is a picture");
    decoder.push_anchor(&anchor(24, 2 * width as u16, 2 * height as u16));
    assert_eq!(decoder.decay().frames, 0);
}
