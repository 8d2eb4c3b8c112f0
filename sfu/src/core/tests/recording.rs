//! What a recorder gets of a room.

use std::time::Duration;

use windlass_types::Layer;
use windlass_types::recording::RecordInput;

use super::calls::anchor_of;
use super::harness::*;
use crate::api::{JoinOptions, TrackId};
use crate::core::record::rooms::{Recorded, RecordedWho};
use crate::core::*;

const SECOND: Duration = Duration::from_secs(1);

fn all() -> Recorded {
    Recorded { whom: RecordedWho::All, anchors: false }
}

fn only(participant: u64) -> Recorded {
    let whom = RecordedWho::Only(vec![ParticipantId(participant)]);
    Recorded { whom, anchors: false }
}

/// A room with somebody who publishes.
fn room() -> (Harness, TrackId) {
    let mut harness = Harness::new(config());
    harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = harness.publish();
    (harness, track)
}

fn frames(harness: &Harness) -> Vec<(Layer, bool)> {
    let frame = |input: &RecordInput| match input {
        RecordInput::Video(frame) => Some((frame.layer, frame.key)),
        _ => None,
    };
    harness.recorded.iter().filter_map(frame).collect()
}

#[test]
fn a_recorder_gets_the_largest_layer_from_a_key_frame_on_though_nobody_watches() {
    let (mut harness, track) = room();
    harness.run(2 * SECOND);
    assert!(harness.recorded.is_empty(), "nothing is recorded that was not ordered");
    harness.core.set_recorded(harness.now, "room", Some(all()));
    harness.run(10 * SECOND);
    let Some(RecordInput::Begin(begin)) = harness.recorded.first() else { panic!("not begun") };
    assert_eq!((begin.track, begin.participant, &*begin.room), (track, PUBLISHER, "room"));
    let frames = frames(&harness);
    assert!(frames.first().is_some_and(|(_, key)| *key), "{:?}", frames.first());
    let largest = frames.iter().filter(|(layer, _)| *layer == Layer::F).count();
    assert!(largest > 200, "{largest} of {}", frames.len());
    assert_eq!(frames.last().map(|(layer, _)| *layer), Some(Layer::F));
    assert!(!harness.layers_told().iter().flatten().any(|(_, on)| !on), "no layer is paused");
}

#[test]
fn a_recording_ends_with_the_order_and_with_the_track() {
    let (mut harness, track) = room();
    harness.core.set_recorded(harness.now, "room", Some(all()));
    harness.run(3 * SECOND);
    harness.core.set_recorded(harness.now, "room", None);
    harness.run(SECOND);
    let last = harness.recorded.last();
    assert!(matches!(last, Some(RecordInput::End(ended)) if *ended == track), "{last:?}");
    harness.core.set_recorded(harness.now, "room", Some(all()));
    harness.run(SECOND);
    harness.core.leave(harness.now, PUBLISHER);
    harness.run(SECOND);
    assert!(matches!(harness.recorded.last(), Some(RecordInput::End(ended)) if *ended == track));
}

#[test]
fn only_those_are_recorded_who_are_meant() {
    let (mut harness, _) = room();
    let other = Some(only(99));
    harness.core.set_recorded(harness.now, "room", other);
    harness.run(SECOND);
    assert!(harness.recorded.is_empty());
    let meant = Some(only(PUBLISHER.0));
    harness.core.set_recorded(harness.now, "room", meant);
    harness.run(SECOND);
    assert!(!frames(&harness).is_empty());
}

#[test]
fn a_lost_frame_is_told_and_a_key_frame_follows() {
    let (mut harness, track) = room();
    harness.core.set_recorded(harness.now, "room", Some(all()));
    harness.run(3 * SECOND);
    harness.recorded.clear();
    harness.core.on_record_key_frame(harness.now, track, true);
    assert_eq!(harness.core.counters.record_overflows, 1);
    harness.run(3 * SECOND);
    let gap = harness.recorded.iter().position(|input| matches!(input, RecordInput::Gap(_)));
    let after = gap.map_or(0, |gap| gap + 1);
    let next = harness.recorded[after..].iter().find(|i| matches!(i, RecordInput::Video(_)));
    assert!(matches!(next, Some(RecordInput::Video(frame)) if frame.key), "{next:?}");
}

#[test]
fn a_recording_with_anchors_is_enhanced_as_for_a_subscriber_though_nobody_watches() {
    let (mut harness, track) = room();
    harness.camera.layers = vec![Layer::Q];
    harness.core.set_recorded(harness.now, "room", Some(all()));
    harness.run(5 * SECOND);
    assert_eq!(harness.core.stats().taps, 0, "nobody asked for anchors");
    harness.core.set_recorded(harness.now, "room", None);
    harness.run(SECOND);
    let anchors = Some(Recorded { whom: RecordedWho::All, anchors: true });
    harness.core.set_recorded(harness.now, "room", anchors);
    harness.run(3 * SECOND);
    assert_eq!(harness.core.stats().taps, 1);
    assert_eq!(harness.requests.iter().filter(|r| is_key_anchor_request(r)).count(), 1);
    let frame = harness.last_tapped();
    harness.core.on_enhancer_output(harness.now, anchor_of(&frame, harness.now));
    harness.run(SECOND);
    let anchor = harness.recorded.iter().find_map(|input| match input {
        RecordInput::Anchor(anchor) => Some(anchor),
        _ => None,
    });
    let anchor = anchor.expect("the recorder gets the anchor");
    assert_eq!((anchor.track, anchor.layer), (track, Layer::Q));
    assert!(harness.recorded.iter().any(|input| matches!(input, RecordInput::Video(frame)
        if (frame.layer, frame.time.rtp) == (anchor.layer, anchor.anchor.rtp_timestamp))));
    harness.core.on_record_anchor_lost(track);
    harness.run(SECOND);
    assert_eq!(harness.requests.iter().filter(|r| is_key_anchor_request(r)).count(), 2);
    harness.core.set_recorded(harness.now, "room", None);
    harness.run(SECOND);
    assert_eq!(harness.core.stats().taps, 0, "it ends with the recording");
}
