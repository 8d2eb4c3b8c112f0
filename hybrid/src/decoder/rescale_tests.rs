//! Another size of HR pictures in the middle of a stream.

use windlass_vp9::psnr;

use super::tests::{REALTIME, anchor, at, frames};
use super::*;
use crate::resample::area;

const CHANGE: usize = 9;

fn new(scale: usize) -> HybridDecoder {
    HybridDecoder::new(HybridConfig { scale, ..HybridConfig::default() })
}

/// A decoder that has had the first frames, and an anchor, by two.
fn at_two() -> (HybridDecoder, (u16, u16)) {
    let mut decoder = new(2);
    let chunks = frames(REALTIME);
    decoder.push_frame(at(0), chunks[0]).expect("a sound stream");
    let low = decoder.lr().map(|low| (low.width() as u16, low.height() as u16));
    let (width, height) = low.expect("it is shown");
    let outcome = decoder.push_anchor(&anchor(0, 2 * width, 2 * height));
    assert!(matches!(outcome, AnchorOutcome::Applied { .. }), "{outcome:?}");
    for (n, chunk) in chunks.into_iter().enumerate().take(CHANGE).skip(1) {
        decoder.push_frame(at(n), chunk).expect("a sound stream");
    }
    (decoder, (width, height))
}

#[test]
fn pictures_of_another_size_are_those_of_a_decoder_that_always_made_them() {
    let (mut decoder, _) = at_two();
    let mut always = new(4);
    for (n, chunk) in frames(REALTIME).into_iter().enumerate().take(CHANGE) {
        always.push_frame(at(n), chunk).expect("a sound stream");
    }
    decoder.rescale(4);
    assert!(decoder.refresh(), "at once, where no frame comes");
    assert_eq!(decoder.hr(), always.hr());
    for (n, chunk) in frames(REALTIME).into_iter().enumerate().skip(CHANGE) {
        let outcome = decoder.push_frame(at(n), chunk).expect("no key frame is needed");
        assert!(!outcome.enhanced, "the former anchor was of another size");
        always.push_frame(at(n), chunk).expect("a sound stream");
        assert_eq!(decoder.hr(), always.hr(), "frame {n}");
    }
}

#[test]
fn anchors_of_the_new_size_are_taken_even_for_frames_before_and_others_are_not() {
    let (mut decoder, (width, height)) = at_two();
    decoder.rescale(3);
    assert_eq!(decoder.scale(), 3);
    let former = anchor(CHANGE - 1, 2 * width, 2 * height);
    assert_eq!(decoder.push_anchor(&former), AnchorOutcome::WrongSize);
    let late = anchor(CHANGE - 3, 3 * width, 3 * height);
    assert!(matches!(decoder.push_anchor(&late), AnchorOutcome::Applied { frames_late: 2 }));
    let chunk = frames(REALTIME)[CHANGE];
    assert!(decoder.push_frame(at(CHANGE), chunk).expect("a sound stream").enhanced);
    let size = decoder.hr().map(|high| (high.width(), high.height()));
    assert_eq!(size, Some((3 * usize::from(width), 3 * usize::from(height))));
}

#[test]
fn an_anchor_of_a_larger_scale_shows_its_picture_made_smaller() {
    let chunks = frames(REALTIME);
    let shown = |scale: usize| {
        let mut decoder = new(scale);
        decoder.push_frame(at(0), chunks[0]).expect("a sound stream");
        let plain = decoder.hr().expect("it is shown").y.clone();
        let low = decoder.lr().map(|low| (low.width() as u16, low.height() as u16));
        let (width, height) = low.expect("it is shown");
        let outcome = decoder.push_anchor(&anchor(0, 4 * width, 4 * height));
        assert!(matches!(outcome, AnchorOutcome::Applied { .. }), "{outcome:?} at {scale}");
        assert!(decoder.refresh());
        (plain, decoder.hr().expect("it is shown").y.clone())
    };
    let (_, four) = shown(4);
    for scale in [2, 3] {
        let (plain, seen) = shown(scale);
        let wanted = area((&four).into(), seen.size());
        let (before, after) = (psnr(&plain, &wanted), psnr(&seen, &wanted));
        assert!(after > 42.0 && after > before + 3.0, "{before:.1} to {after:.1} dB at {scale}");
    }
}

#[test]
fn the_same_size_changes_nothing() {
    let (mut decoder, _) = at_two();
    decoder.rescale(2);
    assert!(!decoder.refresh());
    let chunk = frames(REALTIME)[CHANGE];
    assert!(decoder.push_frame(at(CHANGE), chunk).expect("a sound stream").enhanced);
}

#[test]
fn low_pictures_whose_enlargement_would_be_too_large_are_refused() {
    // A key frame whose header says 3840 × 2160 pixels: four bits after the sync code, sixteen for each side.
    let mut large = frames(REALTIME)[0].to_vec();
    let fields = u64::from_be_bytes(large[4..12].try_into().expect("eight bytes"));
    let sides = 0x0eff_u64 << 44 | 0x086f << 28;
    let fields = fields & !(0xffff_ffff << 28) | sides;
    large[4..12].copy_from_slice(&fields.to_be_bytes());
    let refused = |decoder: &mut HybridDecoder| {
        matches!(decoder.push_frame(at(CHANGE), &large), Err(DecodeError::Size { .. }))
    };
    let (mut decoder, _) = at_two();
    assert!(!refused(&mut decoder), "it is cut short, and not too large by two");
    decoder.rescale(4);
    assert!(refused(&mut decoder));
    decoder.rescale(2);
    assert!(!refused(&mut decoder));
    let least = SizeLimit { area: 1_000_000, ..SizeLimit::default() };
    let mut decoder = decoder.limited(least);
    decoder.rescale(4);
    decoder.rescale(2);
    assert!(refused(&mut decoder), "the caller's limit holds");
}
