//! What anchors are worth to other frames than their own, on pictures made here.

use std::sync::Arc;

use super::*;
use crate::anchor::codec::{Htj2k, detail_of};
use crate::anchor::payload::{self, Packed};
use crate::resample::box_half;
use windlass_types::message::AnchorHeader;
use windlass_types::message::HTJ2K;
use windlass_types::tiles::TileMap;
use windlass_types::{AnchorSource, Size};
use windlass_vp9::{FrameInfo, Plane, psnr};

const SIZE: (usize, usize) = (256, 192);
const LOW: Size = Size::new(128, 96);

/// A scene that has moved to the left by so many HR samples.
fn scene(number: usize, moved: f64) -> Plane {
    // Each scene has a direction and a grain of its own.
    let (turn, grain) = (0.7 + number as f64 * 1.9, 1.0 - 0.25 * number as f64);
    let sample = |x: f64, y: f64| {
        let (a, b) = (x * turn.cos() + y * turn.sin(), y * turn.cos() - x * turn.sin());
        let fine = (a * 1.2 * grain).sin() * (b * 0.9 * grain + (x * 0.02).sin()).cos();
        128.0 + 40.0 * (a * 0.11).sin() * (b * 0.07 + number as f64).cos() + 25.0 * fine
    };
    let samples = (0..SIZE.0 * SIZE.1)
        .map(|i| sample((i % SIZE.0) as f64 + moved, (i / SIZE.0) as f64) as u8);
    Plane::from_samples(SIZE.0, SIZE.1, samples.collect()).expect("the count is right")
}

fn show(d: &mut HybridDecoder, at: u32, high: &Plane) -> Plane {
    let mut info = FrameInfo::default();
    info.shown = true;
    let (mut low, luma) = (Picture::grey(SIZE.0 / 2, SIZE.1 / 2), box_half(high));
    low.y = luma;
    let [y, u, v] = low.planes().map(Plane::samples);
    let picture = FrameBuffer::from_i420(low.width(), low.height(), &[y, u, v].concat());
    let picture = Arc::new(picture.expect("the count is right"));
    d.push_decoded(at, &[DecodedFrame { picture, info: Arc::new(info) }]);
    d.picture_at(at).expect("it was shown").y.clone()
}

fn give(d: &mut HybridDecoder, at: u32, high: &Plane, tiles: &TileMap) -> AnchorOutcome {
    give_from(AnchorSource::Enhanced, d, at, high, tiles)
}

fn give_from(
    source: AnchorSource,
    d: &mut HybridDecoder,
    at: u32,
    high: &Plane,
    tiles: &TileMap,
) -> AnchorOutcome {
    let low = box_half(high);
    let detail = detail_of(high, &low, 2).expect("sizes fit");
    let coded = Htj2k::encode(&payload::image(detail, tiles, 2), 98).expect("a legal size");
    let Packed { payload, tiled } = payload::pack(tiles, coded);
    let size = Size::new(SIZE.0 as u16, SIZE.1 as u16);
    let header = AnchorHeader { stream: 1, tiled, ..AnchorHeader::new(HTJ2K, source, at, size) };
    d.push_anchor(&ReassembledAnchor { header, payload })
}

fn all() -> TileMap {
    TileMap::full(LOW)
}

/// A decoder that has been given the first scene, and one that has not.
fn decoders() -> [HybridDecoder; 2] {
    let mut both = [(); 2].map(|()| HybridDecoder::new(HybridConfig::default()));
    for d in &mut both {
        show(d, 0, &scene(0, 0.0));
    }
    assert_eq!(
        give(&mut both[0], 0, &scene(0, 0.0), &all()),
        AnchorOutcome::Applied { frames_late: 0 }
    );
    both
}

#[test]
fn the_picture_follows_what_moves_by_parts_of_samples() {
    let [mut with, mut without] = decoders();
    for n in 1..6 {
        let now = scene(0, f64::from(n) * 2.6);
        let gain = psnr(&show(&mut with, n, &now), &now) - psnr(&show(&mut without, n, &now), &now);
        assert!(gain > 3.0, "{gain} dB at frame {n}");
    }
}

#[test]
fn nothing_is_carried_over_a_scene_cut_and_it_comes_back_with_the_scene() {
    let [mut with, mut without] = decoders();
    for n in 1..8 {
        let now = scene(n as usize % 4, f64::from(n));
        let gain = psnr(&show(&mut with, n, &now), &now) - psnr(&show(&mut without, n, &now), &now);
        assert!(gain > if n % 4 == 0 { 3.0 } else { -0.1 }, "{gain} dB at frame {n}");
    }
}

#[test]
fn tiles_of_a_later_anchor_leave_the_rest_as_it_was_shown() {
    let [mut with, _] = decoders();
    let now = scene(0, 2.0);
    let before = show(&mut with, 1, &now);
    let mut some = TileMap::empty(LOW);
    some.set(0, 0);
    give(&mut with, 1, &now, &some);
    let after = with.picture_at(1).expect("it is remembered").y.clone();
    for y in 0..SIZE.1 {
        let from = if y < 128 { 128 } else { 0 };
        for (a, b) in after.row(y)[from..].iter().zip(&before.row(y)[from..]) {
            assert!(a.abs_diff(*b) <= 1, "row {y}");
        }
    }
    // And they are carried from there.
    let next = scene(0, 4.0);
    assert!(psnr(&show(&mut with, 2, &next), &next) > 33.0);
}

#[test]
fn what_is_older_than_all_references_is_too_old_though_its_frame_is_remembered() {
    let [mut d, _] = decoders();
    for n in 1..=MAX_REFERENCES as u32 + 2 {
        show(&mut d, n, &scene(0, f64::from(n)));
    }
    for n in (3..).take(MAX_REFERENCES) {
        let outcome = give(&mut d, n, &scene(0, f64::from(n)), &all());
        assert!(matches!(outcome, AnchorOutcome::Applied { .. }), "{outcome:?}");
    }
    assert_eq!(give(&mut d, 1, &scene(0, 1.0), &all()), AnchorOutcome::TooOld);
}

#[test]
fn the_publishers_own_pixels_are_taken_however_many_references_are_younger() {
    let late = MAX_REFERENCES as u32 + 1;
    let picture = |captured: bool| {
        let mut d = HybridDecoder::new(HybridConfig { learning: false, ..HybridConfig::default() });
        for n in 0..=late {
            show(&mut d, n, &scene(0, f64::from(n) * 0.5));
        }
        // What was made of the low pictures here is no better than they are.
        for n in 1..=late {
            let low = box_half(&scene(0, f64::from(n) * 0.5));
            let made = Plane::from_samples(SIZE.0, SIZE.1, doubled(&low)).expect("the count");
            give(&mut d, n, &made, &all());
        }
        if captured {
            let own = scene(0, 0.0);
            let outcome = give_from(AnchorSource::Captured, &mut d, 0, &own, &all());
            assert_eq!(outcome, AnchorOutcome::Applied { frames_late: late });
        }
        psnr(d.picture_at(late).map(|p| &p.y).expect("shown"), &scene(0, f64::from(late) * 0.5))
    };
    let gain = picture(true) - picture(false);
    assert!(gain > 1.0, "{gain} dB");
}

#[test]
fn less_thorough_searches_still_follow_and_the_picture_on_display_changes_with_them() {
    let [mut with, mut without] = decoders();
    with.set_effort(Effort::Little);
    for n in 1..6 {
        let now = scene(0, f64::from(n) * 2.6);
        let little = show(&mut with, n, &now);
        let gain = psnr(&little, &now) - psnr(&show(&mut without, n, &now), &now);
        assert!(gain > 2.0, "{gain} dB at frame {n}");
        if n == 5 {
            with.set_effort(Effort::Full);
            let full = with.picture_at(n).expect("shown").y.clone();
            assert!(psnr(&full, &now) > psnr(&little, &now));
        }
    }
}

/// Each sample four times.
fn doubled(low: &Plane) -> Vec<u8> {
    (0..SIZE.0 * SIZE.1).map(|i| low.row(i / SIZE.0 / 2)[i % SIZE.0 / 2]).collect()
}

#[test]
fn a_picture_that_stands_still_is_the_one_made_anew() {
    let mut both = [(); 2].map(|()| HybridDecoder::new(HybridConfig::default()));
    both[1] = HybridDecoder::new(HybridConfig::default()).making_all_anew();
    // It stands, moves, stands; anchors come for the frame on display, for one before, and for none.
    for (n, moved) in [0.0, 0.0, 0.0, 3.0, 3.0, 3.0, 0.0, 0.0].into_iter().enumerate() {
        let at = n as u32;
        let shown = both.each_mut().map(|d| show(d, at, &scene(0, moved)));
        assert!(shown[0] == shown[1], "frame {n}");
        if n % 3 == 1 {
            let of = if n == 4 { (3, 3.0) } else { (at, moved) };
            let given = both.each_mut().map(|d| give(d, of.0, &scene(0, of.1), &all()));
            assert_eq!(given[0], given[1]);
            let shown = both.each_mut().map(|d| d.picture_at(at).expect("shown").y.clone());
            assert!(shown[0] == shown[1], "frame {n} with its anchor");
        }
    }
}

#[test]
fn filters_that_one_scene_taught_are_not_used_in_the_next() {
    let [mut taught, mut untaught] = decoders();
    let outcome = give_from(AnchorSource::Captured, &mut taught, 0, &scene(0, 0.0), &all());
    assert_eq!(outcome, AnchorOutcome::Applied { frames_late: 0 });
    let mut dark = scene(1, 0.0);
    dark.samples_mut().iter_mut().for_each(|v| *v /= 3);
    assert_eq!(show(&mut taught, 1, &dark), show(&mut untaught, 1, &dark));
}

#[test]
fn what_the_publisher_gave_is_lost_where_it_no_longer_fits() {
    let [mut none, _] = decoders();
    assert_eq!(none.lost(0), Some(vec![1.0; 4]), "what networks made is not the publisher's");
    assert_eq!(none.lost(1), None);
    let outcome = give_from(AnchorSource::Captured, &mut none, 0, &scene(0, 0.0), &all());
    assert_eq!(outcome, AnchorOutcome::Applied { frames_late: 0 });
    let mut lost = |n: u32, picture: &Plane| {
        show(&mut none, n, picture);
        let lost = none.lost(n).expect("it is remembered");
        lost.iter().sum::<f64>() / lost.len() as f64
    };
    let moved = lost(1, &scene(0, 6.0));
    assert!(moved < 0.4, "{moved} of a scene that moves is lost");
    let cut = lost(2, &scene(1, 0.0));
    assert!(cut > 0.9, "{cut} of another scene is lost");
}
