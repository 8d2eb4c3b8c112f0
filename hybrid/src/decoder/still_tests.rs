//! Behaviour of whole decoders that are given the publisher's own pixels, as stills.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::anchor::codec::Htj2k;
use crate::anchor::fixture::low_layer;
use crate::detail::Detail;
use crate::still::{StillMaker, StillRequest};
use windlass_types::message::AnchorHeader;
use windlass_types::message::HTJ2K;
use windlass_vp9::{Plane, psnr};

/// The tiles of a low picture of 96 × 64 samples: both, or the right one alone.
const ALL: [u8; 1] = [0b11];
const RIGHT: [u8; 1] = [0b10];

fn at(frame: usize) -> u32 {
    frame as u32 * 3000
}

fn anchor(frame: usize, payload: Vec<u8>, tiled: bool) -> ReassembledAnchor {
    ReassembledAnchor {
        header: AnchorHeader {
            tiled,
            beyond_prior: true,
            stream: 1,
            ..AnchorHeader::new(
                HTJ2K,
                AnchorSource::Captured,
                at(frame),
                windlass_types::Size::new(192, 128),
            )
        },
        payload,
    }
}

/// The still of some tiles of a frame.
fn still_of(frame: usize, tiles: &[u8]) -> ReassembledAnchor {
    let mut maker = StillMaker::default();
    for (n, coded) in low_layer()[..=frame].iter().enumerate() {
        maker.follow(at(n), coded).expect("a sound stream");
    }
    let (luma, u) = (original(frame), colour());
    let v = Plane::filled(96, 64, 128);
    let request = StillRequest { rtp_timestamp: at(frame), scale: 2, tiles, bytes: 8000 };
    let still = maker.make([(&luma).into(), (&u).into(), (&v).into()], &request).expect("it fits");
    anchor(frame, still.payload, still.tiled)
}

/// The still of a whole frame.
fn still(frame: usize) -> ReassembledAnchor {
    still_of(frame, &ALL)
}

/// What the camera saw: see `lab/examples/low_layer.rs`.
fn original(n: usize) -> Plane {
    let samples = (0..192 * 128).map(|i| {
        let (x, y) = ((i % 192) as f32, (i / 192) as f32);
        let moving = ((x + 2.0 * n as f32) * 1.3).sin() * (y * 1.1).cos();
        (128.0 + 30.0 * moving + 40.0 * (x * 0.05 + y * 0.08).sin()) as u8
    });
    Plane::from_samples(192, 128, samples.collect()).expect("the count is right")
}

/// First chroma plane of the scene, the same in all frames.
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
        d.push_frame(at(n), &low_layer()[n]).expect("a sound stream");
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
        let frames = Decoder::new().decode(&low_layer()[0]).expect("a sound stream").to_vec();
        d.push_decoded(at(n), &frames);
        let mut without = HybridDecoder::new(HybridConfig::default());
        without.push_decoded(at(n), &frames);
        let of = |d: &mut HybridDecoder| psnr(&d.picture_at(at(n)).expect("shown").u, &colour());
        of(d) - of(&mut without)
    };
    assert!(gain(&mut d, 0).abs() < 1e-9);
    assert_eq!(d.push_anchor(&still(0)), APPLIED);
    let later = gain(&mut d, 1);
    assert!(later > 3.0, "{later} dB");
    // An anchor made of the low picture has no colour, and takes none away.
    assert_eq!(d.push_anchor(&enhanced(1)), APPLIED);
    let after = gain(&mut d, 2);
    assert!(after > 3.0, "{after} dB");
}

/// An anchor that says that the filters are right.
fn enhanced(frame: usize) -> ReassembledAnchor {
    let payload = Htj2k::encode(&Detail::zero(192, 128), 70).expect("a legal size");
    let mut anchor = anchor(frame, payload, false);
    anchor.header.beyond_prior = false;
    (anchor.header.codec, anchor.header.source) = (HTJ2K, AnchorSource::Enhanced);
    anchor
}

const APPLIED: AnchorOutcome = AnchorOutcome::Applied { frames_late: 0 };

#[test]
fn a_picture_brings_its_frame_and_those_after_it_closer_to_the_camera() {
    let (mut with, mut without) = (after(1), after(1));
    assert_eq!(with.push_anchor(&still(0)), APPLIED);
    let gain = psnr(shown(&mut with), &original(0)) - psnr(shown(&mut without), &original(0));
    assert!(gain > 5.0, "{gain} dB");
    push(&mut with, 1..3);
    push(&mut without, 1..3);
    assert_eq!(with.push_anchor(&still(2)), APPLIED);
    let gain = psnr(shown(&mut with), &original(2)) - psnr(shown(&mut without), &original(2));
    assert!(gain > 5.0, "{gain} dB");
}

#[test]
fn wrong_sizes_and_broken_code_are_refused() {
    let mut d = after(1);
    let mut wide = still(0);
    wide.header.size.width = 194;
    assert_eq!(d.push_anchor(&wide), AnchorOutcome::WrongSize);
    let mut cut = still(0);
    cut.payload.truncate(12);
    assert_eq!(d.push_anchor(&cut), AnchorOutcome::Malformed);
    assert_eq!(d.push_anchor(&still(0)), APPLIED);
}

#[test]
fn a_region_changes_its_tiles_alone() {
    let (mut d, mut plain) = (after(8), after(8));
    // Filters that learn change other places as well.
    d.config.learning = false;
    assert_eq!(d.push_anchor(&still_of(7, &RIGHT)), APPLIED);
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
        static PAYLOADS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
            let stills = [0, 2, 4, 6].map(still).into_iter().chain([still_of(7, &RIGHT)]);
            stills.map(|still| still.payload).collect()
        });
        let mut payloads = PAYLOADS.clone();
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
        let coded = Htj2k::encode(&Detail::zero(192, 128), 70).expect("a legal size");
        anchor.header.beyond_prior = false;
        (anchor.header.codec, anchor.header.source) = (HTJ2K, source);
        anchor.payload = coded;
        anchor
    };
    let quality = |enhanced: Option<AnchorSource>| {
        let mut d = HybridDecoder::new(HybridConfig { learning: false, ..HybridConfig::default() });
        push(&mut d, 0..1);
        assert_eq!(d.push_anchor(&still(0)), APPLIED);
        push(&mut d, 1..3);
        if let Some(source) = enhanced {
            assert_eq!(d.push_anchor(&zero(source)), APPLIED);
        }
        psnr(shown(&mut d), &original(2))
    };
    let (without, with) = (quality(None), quality(Some(AnchorSource::Enhanced)));
    assert!(with > without - 0.5, "{without} dB, then {with} dB");
    assert!(quality(Some(AnchorSource::Captured)) < without - 1.0, "it does displace");
}

#[test]
fn the_publishers_own_pixels_replace_what_was_made_of_the_low_picture() {
    let mut d = after(1);
    let enhanced = enhanced(0);
    assert_eq!(d.push_anchor(&enhanced), APPLIED);
    let before = psnr(shown(&mut d), &original(0));
    assert_eq!(d.push_anchor(&still(0)), APPLIED);
    assert!(psnr(shown(&mut d), &original(0)) > before + 5.0);
    assert_eq!(d.push_anchor(&enhanced), AnchorOutcome::Duplicate);
}
