//! Lessons of a publisher with all layers, and own weights on their way to subscribers.

use bytes::Bytes;
use windlass_types::weights::{OWN, OwnWeights, WeightsMessage};
use windlass_types::{
    EnhancerOutput, FrameNetwork, LessonFrame, Rung, Size, StreamId, TapInput, Weights,
};

use super::view::View;
use super::world::*;
use super::*;
use crate::api::{JoinOptions, NetworkReport, TrackId, TrackReport};

/// A tile that shows the quarter layer four times enlarged.
const TILE: View = View { width: 1280, height: 720, pinned: false };
/// A subscriber of the full layer, for whom the publisher sends it.
const OTHER: ParticipantId = ParticipantId(3);
const THIRD: ParticipantId = ParticipantId(4);
const SECOND: Duration = Duration::from_secs(1);

/// Lets subscribers who run `xs` report once a second for so long.
fn report(world: &mut World, track: TrackId, viewers: &[ParticipantId], seconds: u32) {
    let network = NetworkReport { network: FrameNetwork::Xs, absence: None };
    for _ in 0..seconds {
        for &id in viewers {
            let report = TrackReport { network, ..TrackReport::default() };
            world.core.report(world.now, id, track, report).expect("it watches");
        }
        world.run(SECOND);
    }
}

/// Lets a subscriber watch the quarter layer, up to this rung.
fn watch(world: &mut World, id: ParticipantId, track: TrackId, max: Rung) {
    world.core.set_max_rung(world.now, id, track, max);
    world.core.set_view(world.now, id, track, TILE);
}

/// A call whose first subscriber is taught, and that subscriber's client.
fn lessons() -> (World, TrackId, usize) {
    let (mut world, track, at) = call();
    world.core.join(world.now, "room", OTHER, JoinOptions::default()).expect("joined");
    world.subscribe(OTHER, track);
    world.core.set_view(world.now, OTHER, track, TILE);
    watch(&mut world, SUBSCRIBER, track, Rung::Q);
    report(&mut world, track, &[SUBSCRIBER], 12);
    world.clients[at].messages.clear();
    (world, track, at)
}

/// The frames of lessons since they were taken last.
fn taken(world: &mut World) -> Vec<LessonFrame> {
    let taken = std::mem::take(&mut world.taps).into_iter();
    let lesson = |input| if let TapInput::Lesson(frame) = input { Some(frame) } else { None };
    taken.filter_map(lesson).collect()
}

/// The enhancer sends own weights of this many bytes; 0: it takes them back.
fn learn(world: &mut World, stream: StreamId, bytes: usize) {
    let own = (bytes > 0).then(|| OwnWeights {
        size: Size::new(320, 180),
        hash: 1,
        scene: [2; 24],
        difference: Bytes::from(vec![3; bytes]),
    });
    let weights = EnhancerOutput::Weights(Weights { stream, network: OWN, own });
    world.core.on_enhancer_output(world.now, weights);
}

/// The lengths of the differences that a client was sent; `None`: weights were taken back.
fn got(world: &World, at: usize) -> Vec<Option<usize>> {
    let messages = world.clients[at].messages.iter();
    let messages = messages.filter_map(|message| WeightsMessage::parse(message).ok());
    messages.map(|message| message.own.map(|own| own.difference.len())).collect()
}

#[test]
fn both_layers_go_to_the_enhancer_for_viewers_without_anchors_who_run_the_network() {
    let (mut world, track, _) = lessons();
    taken(&mut world);
    report(&mut world, track, &[SUBSCRIBER], 2);
    let frames = taken(&mut world);
    for large in [false, true] {
        let layer: Vec<_> = frames.iter().filter(|frame| frame.large == large).collect();
        assert!(layer.len() > 20, "{} frames", layer.len());
        assert!(layer.windows(2).all(|pair| pair[0].number + 1 == pair[1].number));
    }
    let lows: Vec<_> = frames.iter().filter(|f| !f.large).filter_map(|f| f.low_timestamp).collect();
    let pairs =
        frames.iter().filter(|f| f.large && f.low_timestamp.is_some_and(|at| lows.contains(&at)));
    assert!(pairs.count() > 15, "the layers are of the same moments");
    assert_eq!(world.core.stats().taps, 0, "no anchors are made");
}

#[test]
fn lessons_end_with_the_network_or_the_large_layer_or_when_anchors_begin() {
    type Change = fn(&mut World, TrackId);
    let changes: [Change; 3] = [
        |world, track| report(world, track, &[], 7),
        |world, track| {
            world.core.set_max_rung(world.now, OTHER, track, Rung::H);
            report(world, track, &[SUBSCRIBER], 20);
        },
        |world, track| {
            world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::QPlus);
            report(world, track, &[SUBSCRIBER], 3);
        },
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let (mut world, track, _) = lessons();
        change(&mut world, track);
        taken(&mut world);
        report(&mut world, track, if n == 0 { &[] } else { &[SUBSCRIBER] }, 1);
        assert!(taken(&mut world).is_empty(), "change {n}");
    }
}

#[test]
fn the_enhancer_gets_key_frames_of_both_layers_where_it_needs_them() {
    let (mut world, track, _) = lessons();
    let stream = taken(&mut world)[0].stream;
    // Not as soon as it was asked for last.
    report(&mut world, track, &[SUBSCRIBER], 5);
    taken(&mut world);
    world.core.on_enhancer_output(world.now, EnhancerOutput::NeedLessonKeyFrames { stream });
    report(&mut world, track, &[SUBSCRIBER], 3);
    let frames = taken(&mut world);
    for large in [false, true] {
        let first = frames.iter().find(|frame| frame.large == large);
        assert!(first.is_some_and(|frame| frame.key), "large: {large}");
    }
}

#[test]
fn weights_reach_who_is_taught_once_and_newcomers_get_the_newest() {
    let (mut world, track, at) = lessons();
    let stream = taken(&mut world)[0].stream;
    for bytes in [100, 101] {
        learn(&mut world, stream, bytes);
        report(&mut world, track, &[SUBSCRIBER], 2);
    }
    assert_eq!(got(&world, at), [Some(100), Some(101)], "{:?}", world.core.stats().counters);
    let message = WeightsMessage::parse(&world.clients[at].messages[0]).expect("parsed");
    assert_eq!(message.stream, stream.0);
    assert_eq!(Some(message.epoch), world.rungs(SUBSCRIBER).last().map(|rung| rung.1));
    world.core.join(world.now, "room", THIRD, JoinOptions::default()).expect("joined");
    let late = world.subscribe(THIRD, track);
    watch(&mut world, THIRD, track, Rung::Q);
    report(&mut world, track, &[SUBSCRIBER, THIRD], 13);
    assert_eq!(got(&world, late), [Some(101)]);
}

#[test]
fn weights_are_taken_back_from_those_who_have_them() {
    let (mut world, track, at) = lessons();
    let stream = taken(&mut world)[0].stream;
    learn(&mut world, stream, 0);
    report(&mut world, track, &[SUBSCRIBER], 1);
    assert!(got(&world, at).is_empty(), "nobody has any");
    learn(&mut world, stream, 100);
    report(&mut world, track, &[SUBSCRIBER], 1);
    learn(&mut world, stream, 0);
    report(&mut world, track, &[SUBSCRIBER], 1);
    assert_eq!(got(&world, at), [Some(100), None]);
    assert_eq!(world.core.stats().counters.weights_out_taken_back, 1);
}

#[test]
fn viewers_with_anchors_or_another_scale_get_no_weights() {
    let (mut world, track, at) = lessons();
    let stream = taken(&mut world)[0].stream;
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::QPlus);
    report(&mut world, track, &[SUBSCRIBER], 3);
    learn(&mut world, stream, 100);
    report(&mut world, track, &[SUBSCRIBER], 2);
    assert!(got(&world, at).is_empty(), "it has anchors");
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::Q);
    let view = View { width: 640, height: 360, ..TILE };
    world.core.set_view(world.now, SUBSCRIBER, track, view);
    report(&mut world, track, &[SUBSCRIBER], 3);
    assert!(got(&world, at).is_empty(), "it shows another scale");
}

#[test]
fn weights_take_sixteen_kbits_a_second_at_most() {
    let (mut world, track, at) = lessons();
    let stream = taken(&mut world)[0].stream;
    let begin = world.now;
    for n in 0..40 {
        learn(&mut world, stream, 1000);
        if n % 4 == 0 {
            let network = NetworkReport { network: FrameNetwork::Xs, absence: None };
            let said = TrackReport { network, ..TrackReport::default() };
            world.core.report(world.now, SUBSCRIBER, track, said).expect("it watches");
        }
        world.run(Duration::from_millis(250));
    }
    let sent = world.core.stats().counters.weights_out_bytes as f64;
    let seconds = (world.now - begin).as_secs_f64();
    // One message may come before its time is paid for.
    assert!(8.0 * (sent - 1044.0) <= 16_000.0 * seconds, "{sent} bytes in {seconds} s");
    assert!(8.0 * sent > 8_000.0 * seconds, "{sent} bytes in {seconds} s");
    assert!(got(&world, at).len() > 4);
}
