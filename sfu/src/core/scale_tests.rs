//! Streams that the enhancer enlarges by more than the least.

use crate::api::JoinOptions;
use windlass_types::EnhancerOutput;
use windlass_types::{Layer, Rung, Size};

use super::view::View;
use super::world::*;
use super::*;

/// A tile that shows the smallest layer four times enlarged.
const LARGE: View = View { size: Size::new(1280, 720), pinned: false };

/// A call whose publisher sends these layers, watched at `q+` or as near to it as there is, in a large tile.
fn watched(layers: &[Layer]) -> World {
    watched_in(Some(LARGE), layers)
}

/// A call watched in a tile that the client tells of, or (`None`) does not.
fn watched_in(view: Option<View>, layers: &[Layer]) -> World {
    let mut world = World::new(config());
    world.core.join(world.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = world.publish();
    world.camera.layers = layers.to_vec();
    world.offer_stills();
    world.run(Duration::from_secs(2));
    world.core.join(world.now, "room", SUBSCRIBER, JoinOptions::default()).expect("joined");
    world.subscribe(SUBSCRIBER, track);
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::QPlus);
    if let Some(view) = view {
        world.core.set_view(world.now, SUBSCRIBER, track, view);
    }
    world.run(Duration::from_secs(3));
    world
}

/// The enhancer enlarges what it was last given by `scale`.
fn enlarge(world: &mut World, scale: u16) {
    let windlass_types::TapFrame { stream, epoch, .. } = world.last_tapped();
    world.core.on_enhancer_output(world.now, EnhancerOutput::Scale { stream, epoch, scale });
    world.run(Duration::from_secs(1));
}

/// The scales that the subscriber was told.
fn told(world: &World) -> Vec<u16> {
    let events = world.events.get(&SUBSCRIBER).into_iter().flatten();
    let scales = events.filter_map(|e| match e {
        SfuEvent::RungChanged { rung: Rung::QPlus, scale, .. } => Some(*scale),
        _ => None,
    });
    scales.collect()
}

#[test]
fn subscribers_are_told_a_new_scale_and_get_a_key_anchor() {
    let mut world = watched(&[Layer::Q]);
    assert_eq!(told(&world), [2]);
    let whole = |world: &World| world.requests.iter().filter(|r| is_key_anchor_request(r)).count();
    let before = whole(&world);
    enlarge(&mut world, 4);
    assert_eq!(told(&world), [2, 4]);
    assert_eq!(whole(&world), before + 1);
    enlarge(&mut world, 4);
    assert_eq!(told(&world), [2, 4], "once");
}

#[test]
fn the_publisher_is_asked_for_stills_of_the_size_that_is_shown() {
    let mut world = watched(&[Layer::Q]);
    for (id, scale) in [(1, 2), (2, 4)] {
        enlarge(&mut world, scale);
        let stream = world.last_tapped().stream;
        let tiles = bytes::Bytes::from_static(&[1, 0]);
        let want =
            EnhancerOutput::WantRegions { stream, size: Size::new(320, 180), tiles, bytes: 3000 };
        world.core.on_enhancer_output(world.now, want);
        world.run(Duration::from_millis(10));
        let asked = world.events[&PUBLISHER].iter().filter_map(|e| match e {
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
    let mut world = watched_in(Some(half), &[Layer::Q]);
    let track = world.core.tracks.iter().next().map(|t| t.info.track).expect("it is published");
    let former = world.last_tapped();
    world.core.set_view(world.now, SUBSCRIBER, track, LARGE);
    world.run(Duration::from_secs(1));
    let frame = world.last_tapped();
    assert_eq!((former.max_scale, frame.max_scale), (2, 4));
    assert_eq!(frame.epoch, former.epoch);
}

#[test]
fn a_new_epoch_begins_with_the_smallest_scale() {
    let mut world = watched(&[Layer::Q]);
    let former = world.last_tapped();
    enlarge(&mut world, 4);
    world.core.set_enhancement(world.now, false);
    world.run(Duration::from_secs(1));
    world.core.set_enhancement(world.now, true);
    world.run(Duration::from_secs(2));
    assert_ne!(world.last_tapped().epoch, former.epoch);
    assert_eq!(told(&world), [2, 4, 2]);
    let (stream, epoch) = (former.stream, former.epoch);
    world.core.on_enhancer_output(world.now, EnhancerOutput::Scale { stream, epoch, scale: 4 });
    world.run(Duration::from_secs(1));
    assert_eq!(told(&world), [2, 4, 2], "said of a span that is gone");
}

#[test]
fn the_largest_layer_that_is_sent_is_copied_even_if_anchors_are_larger() {
    for (layers, copied) in [(&[Layer::Q, Layer::H][..], Layer::H), (&Layer::ALL, Layer::F)] {
        let mut world = watched(layers);
        enlarge(&mut world, 4);
        let track = world.core.tracks.iter().next().expect("it is published");
        assert_eq!(track.taps.layers().nth(1), Some(copied), "{layers:?}");
    }
}
