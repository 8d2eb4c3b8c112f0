//! Behaviour of whole decoders that are given the publisher's own pictures (codec 4).

use proptest::prelude::*;

use super::*;
use crate::anchor::codec::{AnchorCodec, ResidualJpeg};
use crate::anchor::pictures::fixture::parts;
use crate::picture::{Plane, psnr};

fn at(frame: usize) -> u32 {
    frame as u32 * 3000
}

fn anchor(frame: usize, payload: Vec<u8>, tiled: bool) -> ReassembledAnchor {
    ReassembledAnchor {
        header: AnchorHeader {
            tiled,
            stream: 1,
            ..AnchorHeader::new(VP9_PICTURES, AnchorOrigin::Captured, at(frame), (192, 128))
        },
        payload,
    }
}

/// Picture `n` of the detail stream, which is of frame `2 * n`.
fn picture(n: usize) -> ReassembledAnchor {
    anchor(2 * n, parts().1[n].clone(), false)
}

/// What the camera saw: see `enhancer/examples/anchor_pictures.rs`.
fn original(n: usize) -> Plane {
    let samples = (0..192 * 128).map(|i| {
        let (x, y) = ((i % 192) as f32, (i / 192) as f32);
        let moving = ((x + 2.0 * n as f32) * 1.3).sin() * (y * 1.1).cos();
        (128.0 + 30.0 * moving + 40.0 * (x * 0.05 + y * 0.08).sin()) as u8
    });
    Plane::from_samples(192, 128, samples.collect()).expect("the count is right")
}

/// Its first chroma plane, the same in all frames.
fn colour() -> Plane {
    let samples = (0..96 * 64).map(|i| {
        let (x, y) = ((i % 96) as f32, (i / 96) as f32);
        (128.0 + 40.0 * (x * 1.7).sin() * (y * 1.5).cos()) as u8
    });
    Plane::from_samples(96, 64, samples.collect()).expect("the count is right")
}

/// A decoder that has been given some frames.
fn after(frames: usize) -> HybridDecoder {
    let mut d = HybridDecoder::new(HybridConfig::default());
    push(&mut d, 0..frames);
    d
}

fn push(d: &mut HybridDecoder, frames: std::ops::Range<usize>) {
    for n in frames {
        d.push_frame(at(n), &parts().0[n]).expect("a sound stream");
    }
}

fn shown(d: &mut HybridDecoder) -> &Plane {
    d.refresh();
    &d.hr().expect("shown").y
}

#[test]
fn a_pictures_colour_is_shown_and_carried_with_its_luma() {
    let mut d = HybridDecoder::new(HybridConfig::default());
    let gain = |d: &mut HybridDecoder, n: usize| {
        // The same picture again is another frame.
        let frames = Decoder::new().decode(&parts().0[0]).expect("a sound stream").to_vec();
        d.push_decoded(at(n), &frames);
        let mut without = HybridDecoder::new(HybridConfig::default());
        without.push_decoded(at(n), &frames);
        let of = |d: &mut HybridDecoder| psnr(&d.picture_at(at(n)).expect("shown").u, &colour());
        of(d) - of(&mut without)
    };
    assert!(gain(&mut d, 0).abs() < 1e-9);
    assert_eq!(d.push_anchor(&picture(0)), APPLIED);
    let later = gain(&mut d, 1);
    assert!(later > 3.0, "{later} dB");
    // An anchor made of the low picture has no colour, and takes none away.
    assert_eq!(d.push_anchor(&enhanced(1)), APPLIED);
    let after = gain(&mut d, 2);
    assert!(after > 3.0, "{after} dB");
}

/// An anchor that says that the filters are right.
fn enhanced(frame: usize) -> ReassembledAnchor {
    let payload = ResidualJpeg.encode(&Detail::zero(192, 128), 70).expect("a legal size");
    let mut anchor = anchor(frame, payload, false);
    (anchor.header.codec, anchor.header.source) = (ResidualJpeg.id(), AnchorOrigin::Enhanced);
    anchor
}

const APPLIED: AnchorOutcome = AnchorOutcome::Applied { frames_late: 0 };

#[test]
fn a_picture_brings_its_frame_and_those_after_it_closer_to_the_camera() {
    let (mut with, mut without) = (after(1), after(1));
    assert_eq!(with.push_anchor(&picture(0)), APPLIED);
    let gain = psnr(shown(&mut with), &original(0)) - psnr(shown(&mut without), &original(0));
    assert!(gain > 5.0, "{gain} dB");
    push(&mut with, 1..3);
    push(&mut without, 1..3);
    assert_eq!(with.push_anchor(&picture(1)), APPLIED);
    let gain = psnr(shown(&mut with), &original(2)) - psnr(shown(&mut without), &original(2));
    assert!(gain > 5.0, "{gain} dB");
}

#[test]
fn a_lost_picture_stops_the_stream_and_nothing_else() {
    let mut d = after(7);
    assert_eq!(d.push_anchor(&picture(0)), AnchorOutcome::Applied { frames_late: 6 });
    assert_eq!(d.push_anchor(&picture(2)), AnchorOutcome::NeedsKey);
    assert_eq!(d.push_anchor(&picture(0)), AnchorOutcome::Duplicate);
    push(&mut d, 7..8);
    assert_eq!(d.push_anchor(&anchor(7, parts().2, true)), APPLIED);
    let stats = d.stats();
    assert_eq!((stats.needs_key, stats.duplicate, stats.applied), (1, 1, 2));
}

#[test]
fn a_picture_whose_frame_is_gone_still_serves_the_next() {
    let mut d = HybridDecoder::new(HybridConfig { history: 2, ..HybridConfig::default() });
    push(&mut d, 0..3);
    assert_eq!(d.push_anchor(&picture(0)), AnchorOutcome::TooOld);
    assert_eq!(d.push_anchor(&picture(1)), APPLIED);
}

#[test]
fn the_stream_goes_on_in_another_epoch_and_a_former_one_is_refused() {
    let mut d = after(3);
    assert!(matches!(d.push_anchor(&picture(0)), AnchorOutcome::Applied { .. }));
    let of = |n: usize, epoch: u16| {
        let mut anchor = picture(n);
        anchor.header.epoch = epoch;
        anchor
    };
    assert_eq!(d.push_anchor(&of(1, 4)), APPLIED);
    push(&mut d, 3..5);
    assert_eq!(d.push_anchor(&of(2, 3)), AnchorOutcome::FormerEpoch);
}

#[test]
fn wrong_sizes_and_flags_are_refused() {
    let mut d = after(1);
    let mut wide = picture(0);
    wide.header.width = 194;
    assert_eq!(d.push_anchor(&wide), AnchorOutcome::WrongSize);
    let mut beyond = picture(0);
    beyond.header.beyond_prior = true;
    assert_eq!(d.push_anchor(&beyond), AnchorOutcome::Malformed);
    let mut cut = picture(0);
    cut.payload.truncate(12);
    assert_eq!(d.push_anchor(&cut), AnchorOutcome::Malformed);
    assert_eq!(d.push_anchor(&picture(0)), APPLIED);
}

#[test]
fn a_region_changes_its_tiles_alone() {
    let (mut d, mut plain) = (after(8), after(8));
    // Filters that learn change other places as well.
    d.config.learning = false;
    assert_eq!(d.push_anchor(&anchor(7, parts().2, true)), APPLIED);
    let (with, without) = (shown(&mut d).clone(), shown(&mut plain).clone());
    for y in 0..128 {
        assert_eq!(with.row(y)[..128], without.row(y)[..128]);
    }
    let right = |p: &Plane| {
        let samples = (0..128).flat_map(|y| p.row(y)[128..].to_vec()).collect();
        Plane::from_samples(64, 128, samples).expect("the count is right")
    };
    let truth = right(&original(7));
    let gain = psnr(&right(&with), &truth) - psnr(&right(&without), &truth);
    assert!(gain > 5.0, "{gain} dB");
}

proptest! {
    #[test]
    fn damaged_pictures_never_panic_and_every_set_of_instructions_agrees(
        edits in proptest::collection::vec((0usize..5, any::<prop::sample::Index>(), any::<u8>()), 0..12),
        order in proptest::collection::vec((0usize..5, 0usize..8, any::<bool>()), 0..8),
    ) {
        let (_, mut payloads, region) = parts();
        payloads.push(region);
        for (n, at, value) in edits {
            *at.get_mut(&mut payloads[n]) = value;
        }
        let isas = [Isa::SCALAR, Isa::detect()];
        let mut decoders =
            isas.map(|isa| HybridDecoder::new(HybridConfig { isa, ..HybridConfig::default() }));
        for d in &mut decoders {
            push(d, 0..8);
        }
        for (n, frame, tiled) in order {
            let anchor = anchor(frame, payloads[n].clone(), tiled);
            let [scalar, simd] = decoders.each_mut().map(|d| d.push_anchor(&anchor));
            prop_assert_eq!(scalar, simd);
        }
        let [scalar, simd] = &mut decoders;
        prop_assert!(shown(scalar) == shown(simd));
    }
}

#[test]
fn an_enhanced_anchor_leaves_fresh_pictures_of_the_publisher_alone() {
    let zero = |source| {
        let mut anchor = anchor(2, Vec::new(), false);
        let coded = ResidualJpeg.encode(&Detail::zero(192, 128), 70).expect("a legal size");
        (anchor.header.codec, anchor.header.source) = (ResidualJpeg.id(), source);
        anchor.payload = coded;
        anchor
    };
    let quality = |enhanced: Option<AnchorOrigin>| {
        let mut d = HybridDecoder::new(HybridConfig { learning: false, ..HybridConfig::default() });
        push(&mut d, 0..1);
        assert_eq!(d.push_anchor(&picture(0)), APPLIED);
        push(&mut d, 1..3);
        if let Some(source) = enhanced {
            assert_eq!(d.push_anchor(&zero(source)), APPLIED);
        }
        psnr(shown(&mut d), &original(2))
    };
    let (without, with) = (quality(None), quality(Some(AnchorOrigin::Enhanced)));
    assert!(with > without - 0.5, "{without} dB, then {with} dB");
    assert!(quality(Some(AnchorOrigin::Captured)) < without - 1.0, "it does displace");
}

#[test]
fn regions_teach_the_filters_nothing() {
    let mut d = after(8);
    assert!(matches!(d.push_anchor(&anchor(7, parts().2, true)), AnchorOutcome::Applied { .. }));
    assert!(!d.taught);
}

#[test]
fn the_publishers_own_pixels_replace_what_was_made_of_the_low_picture() {
    let mut d = after(1);
    let enhanced = enhanced(0);
    assert_eq!(d.push_anchor(&enhanced), APPLIED);
    let before = psnr(shown(&mut d), &original(0));
    assert_eq!(d.push_anchor(&picture(0)), APPLIED);
    assert!(psnr(shown(&mut d), &original(0)) > before + 5.0);
    assert_eq!(d.push_anchor(&enhanced), AnchorOutcome::Duplicate);
}
