//! What rooms are told of their participants' connections.

use windlass_types::ConnectionQuality::{Fair, Good, Poor};
use windlass_types::{ConnectionQuality, Layer, Size};

use super::world::*;
use super::*;
use crate::api::JoinOptions;
use crate::config::SfuConfig;

const NEWCOMER: ParticipantId = ParticipantId(3);

/// What a participant was told of others and of itself, in order.
fn told(world: &World, to: ParticipantId) -> Vec<(ParticipantId, ConnectionQuality)> {
    let events = world.events.get(&to).into_iter().flatten();
    let qualities = events.filter_map(|event| match event {
        SfuEvent::Quality { participant, quality } => Some((*participant, *quality)),
        _ => None,
    });
    qualities.collect()
}

/// A call in which all is known to be well.
fn good_call() -> World {
    let (mut world, track, _) = call();
    // All layers are wanted.
    let view = View { size: Size::new(1280, 720), pinned: true };
    world.core.set_view(world.now, SUBSCRIBER, track, view);
    world.run(Duration::from_secs(8));
    for to in [PUBLISHER, SUBSCRIBER] {
        let mut told = told(&world, to);
        told.sort_unstable();
        assert_eq!(told, [(PUBLISHER, Good), (SUBSCRIBER, Good)]);
    }
    world.events.clear();
    world
}

#[test]
fn a_publisher_that_sends_fewer_layers_than_before_has_a_worse_connection_until_they_are_back() {
    let mut world = good_call();
    for (layers, quality) in [(1, Poor), (2, Fair), (3, Good)] {
        world.camera.layers = Layer::ALL[..layers].into();
        world.camera.key_wanted = true;
        world.run(Duration::from_secs(10));
        for to in [PUBLISHER, SUBSCRIBER] {
            let told = told(&world, to);
            // Layers that were paused are asked for, one after the other, where a larger one is gone.
            assert_eq!(told.last(), Some(&(PUBLISHER, quality)), "{layers} layers: {told:?}");
            assert!(told.len() <= 2, "{told:?}");
        }
        world.events.clear();
    }
}

#[test]
fn a_muted_camera_is_no_bad_connection() {
    let mut world = good_call();
    let track = world.core.tracks.iter().next().expect("track").info.track;
    world.core.set_muted(world.now, PUBLISHER, track, true);
    world.camera.layers = Vec::new();
    world.run(Duration::from_secs(4));
    assert_eq!(told(&world, SUBSCRIBER), []);
}

#[test]
fn a_downlink_with_losses_is_told_of_who_has_it() {
    // Without congestion control clients report no losses.
    let (mut world, _, at) = call_with(SfuConfig::default());
    world.run(Duration::from_secs(10));
    let before = told(&world, PUBLISHER);
    assert!(before.iter().all(|(_, quality)| *quality == Good), "{before:?}");
    world.clients[at].loss = 5;
    world.run(Duration::from_secs(12));
    let told = told(&world, PUBLISHER);
    let worse = &told[before.len()..];
    assert!(worse.last().is_some_and(|(id, quality)| *id == SUBSCRIBER && *quality > Good));
    assert!(worse.iter().all(|(id, _)| *id == SUBSCRIBER), "{told:?}");
}

#[test]
fn who_comes_later_is_told_what_is_known() {
    let mut world = good_call();
    let joined = world.core.join(world.now, "room", NEWCOMER, JoinOptions::default());
    assert!(joined.is_ok());
    world.deliver();
    let mut told = told(&world, NEWCOMER);
    told.sort_unstable();
    assert_eq!(told, [(PUBLISHER, Good), (SUBSCRIBER, Good)]);
}
