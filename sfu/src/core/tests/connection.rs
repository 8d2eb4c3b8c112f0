//! What rooms are told of their participants' connections.

use windlass_types::ConnectionQuality::{Fair, Good, Poor};
use windlass_types::{ConnectionQuality, Layer, Size};

use super::harness::*;
use crate::api::JoinOptions;
use crate::config::SfuConfig;
use crate::core::*;

const NEWCOMER: ParticipantId = ParticipantId(3);

/// What a participant was told of others and of itself, in order.
fn told(harness: &Harness, to: ParticipantId) -> Vec<(ParticipantId, ConnectionQuality)> {
    let events = harness.events.get(&to).into_iter().flatten();
    let qualities = events.filter_map(|event| match event {
        SfuEvent::Quality { participant, quality } => Some((*participant, *quality)),
        _ => None,
    });
    qualities.collect()
}

/// A call in which all is known to be well.
fn good_call() -> Harness {
    let (mut harness, track, _) = call();
    // All layers are wanted.
    let view = View { size: Size::new(1280, 720), pinned: true };
    harness.core.set_view(harness.now, SUBSCRIBER, track, view);
    harness.run(Duration::from_secs(8));
    for to in [PUBLISHER, SUBSCRIBER] {
        let mut told = told(&harness, to);
        told.sort_unstable();
        assert_eq!(told, [(PUBLISHER, Good), (SUBSCRIBER, Good)]);
    }
    harness.events.clear();
    harness
}

#[test]
fn a_publisher_that_sends_fewer_layers_than_before_has_a_worse_connection_until_they_are_back() {
    let mut harness = good_call();
    for (layers, quality) in [(1, Poor), (2, Fair), (3, Good)] {
        harness.camera.layers = Layer::ALL[..layers].into();
        harness.camera.key_wanted = true;
        harness.run(Duration::from_secs(10));
        for to in [PUBLISHER, SUBSCRIBER] {
            let told = told(&harness, to);
            // Layers that were paused are asked for, one after the other, where a larger one is gone.
            assert_eq!(told.last(), Some(&(PUBLISHER, quality)), "{layers} layers: {told:?}");
            assert!(told.len() <= 2, "{told:?}");
        }
        harness.events.clear();
    }
}

#[test]
fn a_muted_camera_is_no_bad_connection() {
    let mut harness = good_call();
    let track = harness.core.tracks.iter().next().expect("track").info.track;
    harness.core.set_muted(harness.now, PUBLISHER, track, true);
    harness.camera.layers = Vec::new();
    harness.run(Duration::from_secs(4));
    assert_eq!(told(&harness, SUBSCRIBER), []);
}

#[test]
fn a_downlink_with_losses_is_told_of_who_has_it() {
    // Without congestion control clients report no losses.
    let (mut harness, _, at) = call_with(SfuConfig::default());
    harness.run(Duration::from_secs(10));
    let before = told(&harness, PUBLISHER);
    assert!(before.iter().all(|(_, quality)| *quality == Good), "{before:?}");
    harness.clients[at].loss = 5;
    harness.run(Duration::from_secs(12));
    let told = told(&harness, PUBLISHER);
    let worse = &told[before.len()..];
    assert!(worse.last().is_some_and(|(id, quality)| *id == SUBSCRIBER && *quality > Good));
    assert!(worse.iter().all(|(id, _)| *id == SUBSCRIBER), "{told:?}");
}

#[test]
fn who_comes_later_is_told_what_is_known() {
    let mut harness = good_call();
    let joined = harness.core.join(harness.now, "room", NEWCOMER, JoinOptions::default());
    assert!(joined.is_ok());
    harness.deliver();
    let mut told = told(&harness, NEWCOMER);
    told.sort_unstable();
    assert_eq!(told, [(PUBLISHER, Good), (SUBSCRIBER, Good)]);
}
