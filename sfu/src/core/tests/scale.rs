//! Streams that the enhancer enlarges by more than the least.

use crate::api::JoinOptions;
use windlass_types::EnhancerOutput;
use windlass_types::{Layer, Rung, Size};

use super::harness::*;
use crate::core::subscriber::view::View;
use crate::core::*;

/// A tile that shows the smallest layer four times enlarged.
const LARGE: View = View { size: Size::new(1280, 720), pinned: false };

/// A call whose publisher sends these layers, watched at `q+` or as near to it as there is, in a large tile.
fn watched(layers: &[Layer]) -> Harness {
    watched_in(Some(LARGE), layers)
}

/// A call watched in a tile that the client tells of, or (`None`) does not.
fn watched_in(view: Option<View>, layers: &[Layer]) -> Harness {
    let mut harness = Harness::new(config());
    harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = harness.publish();
    harness.camera.layers = layers.to_vec();
    harness.offer_stills();
    harness.run(Duration::from_secs(2));
    harness.core.join(harness.now, "room", SUBSCRIBER, JoinOptions::default()).expect("joined");
    harness.subscribe(SUBSCRIBER, track);
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::QPlus);
    if let Some(view) = view {
        harness.core.set_view(harness.now, SUBSCRIBER, track, view);
    }
    harness.run(Duration::from_secs(3));
    harness
}

/// The enhancer enlarges what it was last given by `scale`.
fn enlarge(harness: &mut Harness, scale: u16) {
    let windlass_types::TapFrame { stream, epoch, .. } = harness.last_tapped();
    harness.core.on_enhancer_output(harness.now, EnhancerOutput::Scale { stream, epoch, scale });
    harness.run(Duration::from_secs(1));
}

/// The scales that the subscriber was told.
fn told(harness: &Harness) -> Vec<u16> {
    let events = harness.events.get(&SUBSCRIBER).into_iter().flatten();
    let scales = events.filter_map(|e| match e {
        SfuEvent::RungChanged { rung: Rung::QPlus, scale, .. } => Some(*scale),
        _ => None,
    });
    scales.collect()
}

#[test]
fn subscribers_are_told_a_new_scale_and_get_a_key_anchor() {
    let mut harness = watched(&[Layer::Q]);
    assert_eq!(told(&harness), [2]);
    let whole =
        |harness: &Harness| harness.requests.iter().filter(|r| is_key_anchor_request(r)).count();
    let before = whole(&harness);
    enlarge(&mut harness, 4);
    assert_eq!(told(&harness), [2, 4]);
    assert_eq!(whole(&harness), before + 1);
    enlarge(&mut harness, 4);
    assert_eq!(told(&harness), [2, 4], "once");
}

#[test]
fn the_publisher_is_asked_for_stills_of_the_size_that_is_shown() {
    let mut harness = watched(&[Layer::Q]);
    for (id, scale) in [(1, 2), (2, 4)] {
        enlarge(&mut harness, scale);
        let stream = harness.last_tapped().stream;
        let tiles = bytes::Bytes::from_static(&[1, 0]);
        let want =
            EnhancerOutput::WantRegions { stream, size: Size::new(320, 180), tiles, bytes: 3000 };
        harness.core.on_enhancer_output(harness.now, want);
        harness.run(Duration::from_millis(10));
        let asked = harness.events[&PUBLISHER].iter().filter_map(|e| match e {
            SfuEvent::Regions { request, .. } => Some((request.id, request.scale)),
            _ => None,
        });
        assert_eq!(asked.max(), Some((id, scale)));
    }
}

#[test]
fn pictures_may_be_enlarged_to_the_cameras_size_whatever_layers_are_sent() {
    let all = [&[Layer::Q][..], &[Layer::Q, Layer::H], &[Layer::Q, Layer::F], &Layer::ALL];
    for layers in all {
        assert_eq!(watched(layers).last_tapped().max_scale, 4, "{layers:?}");
    }
}

#[test]
fn pictures_are_enlarged_no_further_than_they_are_watched() {
    let half = View { size: Size::new(640, 360), pinned: false };
    for (view, layers, max) in [
        (Some(half), &[Layer::Q][..], 2),
        (Some(half), &Layer::ALL, 2),
        // What is larger than the tile is made smaller by whoever shows it: the publisher's own pixels are worth that.
        (Some(half), &[Layer::Q, Layer::F], 4),
        (None, &[Layer::Q], 2),
    ] {
        assert_eq!(watched_in(view, layers).last_tapped().max_scale, max, "{view:?} {layers:?}");
    }
}

#[test]
fn a_tile_that_grows_has_larger_pictures_made_without_a_key_frame() {
    let half = View { size: Size::new(640, 360), pinned: false };
    let mut harness = watched_in(Some(half), &[Layer::Q]);
    let track = harness.core.tracks.iter().next().map(|t| t.info.track).expect("it is published");
    let former = harness.last_tapped();
    harness.core.set_view(harness.now, SUBSCRIBER, track, LARGE);
    harness.run(Duration::from_secs(1));
    let frame = harness.last_tapped();
    assert_eq!((former.max_scale, frame.max_scale), (2, 4));
    assert_eq!(frame.epoch, former.epoch);
}

#[test]
fn a_new_epoch_begins_with_the_smallest_scale() {
    let mut harness = watched(&[Layer::Q]);
    let former = harness.last_tapped();
    enlarge(&mut harness, 4);
    harness.core.set_enhancement(harness.now, false);
    harness.run(Duration::from_secs(1));
    harness.core.set_enhancement(harness.now, true);
    harness.run(Duration::from_secs(2));
    assert_ne!(harness.last_tapped().epoch, former.epoch);
    assert_eq!(told(&harness), [2, 4, 2]);
    let (stream, epoch) = (former.stream, former.epoch);
    harness.core.on_enhancer_output(harness.now, EnhancerOutput::Scale { stream, epoch, scale: 4 });
    harness.run(Duration::from_secs(1));
    assert_eq!(told(&harness), [2, 4, 2], "said of a span that is gone");
}

#[test]
fn the_largest_layer_that_is_sent_is_copied_even_if_anchors_are_larger() {
    for (layers, copied) in [(&[Layer::Q, Layer::H][..], Layer::H), (&Layer::ALL, Layer::F)] {
        let mut harness = watched(layers);
        enlarge(&mut harness, 4);
        let track = harness.core.tracks.iter().next().expect("it is published");
        assert_eq!(track.taps.layers().nth(1), Some(copied), "{layers:?}");
    }
}
