//! What a recorder gets of a room.

use std::time::Duration;

use windlass_types::Layer;
use windlass_types::recording::RecordInput;

use super::recorded::Recorded;
use super::world::*;
use super::*;
use crate::api::{JoinOptions, TrackId};

const SECOND: Duration = Duration::from_secs(1);

/// A room with somebody who publishes.
fn room() -> (World, TrackId) {
    let mut world = World::new(config());
    world.core.join(world.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = world.publish();
    (world, track)
}

fn frames(world: &World) -> Vec<(Layer, bool)> {
    let frame = |input: &RecordInput| match input {
        RecordInput::Video(frame) => Some((frame.layer, frame.key)),
        _ => None,
    };
    world.recorded.iter().filter_map(frame).collect()
}

#[test]
fn a_recorder_gets_the_largest_layer_from_a_key_frame_on_though_nobody_watches() {
    let (mut world, track) = room();
    world.run(2 * SECOND);
    assert!(world.recorded.is_empty(), "nothing is recorded that was not ordered");
    world.core.set_recorded(world.now, "room", Some(Recorded::All));
    world.run(10 * SECOND);
    let Some(RecordInput::Begin(begin)) = world.recorded.first() else { panic!("not begun") };
    assert_eq!((begin.track, begin.participant, &*begin.room), (track, PUBLISHER, "room"));
    let frames = frames(&world);
    assert!(frames.first().is_some_and(|(_, key)| *key), "{:?}", frames.first());
    let largest = frames.iter().filter(|(layer, _)| *layer == Layer::F).count();
    assert!(largest > 200, "{largest} of {}", frames.len());
    assert_eq!(frames.last().map(|(layer, _)| *layer), Some(Layer::F));
    assert!(!world.layers_told().iter().flatten().any(|(_, on)| !on), "no layer is paused");
}

#[test]
fn a_recording_ends_with_the_order_and_with_the_track() {
    let (mut world, track) = room();
    world.core.set_recorded(world.now, "room", Some(Recorded::All));
    world.run(3 * SECOND);
    world.core.set_recorded(world.now, "room", None);
    world.run(SECOND);
    let last = world.recorded.last();
    assert!(matches!(last, Some(RecordInput::End(ended)) if *ended == track), "{last:?}");
    world.core.set_recorded(world.now, "room", Some(Recorded::All));
    world.run(SECOND);
    world.core.leave(world.now, PUBLISHER);
    world.run(SECOND);
    assert!(matches!(world.recorded.last(), Some(RecordInput::End(ended)) if *ended == track));
}

#[test]
fn only_those_are_recorded_who_are_meant() {
    let (mut world, _) = room();
    let other = Some(Recorded::Only(vec![ParticipantId(99)]));
    world.core.set_recorded(world.now, "room", other);
    world.run(SECOND);
    assert!(world.recorded.is_empty());
    let meant = Some(Recorded::Only(vec![PUBLISHER]));
    world.core.set_recorded(world.now, "room", meant);
    world.run(SECOND);
    assert!(!frames(&world).is_empty());
}

#[test]
fn a_lost_frame_is_told_and_a_key_frame_follows() {
    let (mut world, track) = room();
    world.core.set_recorded(world.now, "room", Some(Recorded::All));
    world.run(3 * SECOND);
    world.recorded.clear();
    world.core.on_record_key_frame(world.now, track, true);
    assert_eq!(world.core.counters.record_overflows, 1);
    world.run(3 * SECOND);
    let gap = world.recorded.iter().position(|input| matches!(input, RecordInput::Gap(_)));
    let after = gap.map_or(0, |gap| gap + 1);
    let next = world.recorded[after..].iter().find(|i| matches!(i, RecordInput::Video(_)));
    assert!(matches!(next, Some(RecordInput::Video(frame)) if frame.key), "{next:?}");
}
