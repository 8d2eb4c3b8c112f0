//! Lessons of a publisher with all layers, and own weights on their way to subscribers.

use bytes::Bytes;
use windlass_types::weights::{OWN, OwnWeights, WeightsMessage};
use windlass_types::{
    EnhancerOutput, FrameNetwork, LessonFrame, Rung, Size, StreamId, TapInput, Weights,
};

use super::harness::*;
use super::view::View;
use super::*;
use crate::api::{JoinOptions, NetworkReport, TrackId, TrackReport};

/// A tile that shows the quarter layer four times enlarged.
const TILE: View = View { size: Size::new(1280, 720), pinned: false };
/// A subscriber of the full layer, for whom the publisher sends it.
const OTHER: ParticipantId = ParticipantId(3);
const THIRD: ParticipantId = ParticipantId(4);
const SECOND: Duration = Duration::from_secs(1);

/// Lets subscribers who run `xs` report once a second for so long.
fn report(harness: &mut Harness, track: TrackId, viewers: &[ParticipantId], seconds: u32) {
    let network = NetworkReport { network: FrameNetwork::Xs, absence: None };
    for _ in 0..seconds {
        for &id in viewers {
            let report = TrackReport { network, ..TrackReport::default() };
            harness.core.report(harness.now, id, track, report).expect("it watches");
        }
        harness.run(SECOND);
    }
}

/// Lets a subscriber watch the quarter layer, up to this rung.
fn watch(harness: &mut Harness, id: ParticipantId, track: TrackId, max: Rung) {
    harness.core.set_max_rung(harness.now, id, track, max);
    harness.core.set_view(harness.now, id, track, TILE);
}

/// A call whose first subscriber is taught, and that subscriber's client.
fn lessons() -> (Harness, TrackId, usize) {
    let (mut harness, track, at) = call();
    harness.core.join(harness.now, "room", OTHER, JoinOptions::default()).expect("joined");
    harness.subscribe(OTHER, track);
    harness.core.set_view(harness.now, OTHER, track, TILE);
    watch(&mut harness, SUBSCRIBER, track, Rung::Q);
    report(&mut harness, track, &[SUBSCRIBER], 12);
    harness.clients[at].messages.clear();
    (harness, track, at)
}

/// The frames of lessons since they were taken last.
fn taken(harness: &mut Harness) -> Vec<LessonFrame> {
    let taken = std::mem::take(&mut harness.taps).into_iter();
    let lesson = |input| if let TapInput::Lesson(frame) = input { Some(frame) } else { None };
    taken.filter_map(lesson).collect()
}

/// The enhancer sends own weights of this many bytes; 0: it takes them back.
fn learn(harness: &mut Harness, stream: StreamId, bytes: usize) {
    let own = (bytes > 0).then(|| OwnWeights {
        size: Size::new(320, 180),
        hash: 1,
        scene: [2; 24],
        difference: Bytes::from(vec![3; bytes]),
    });
    let weights = EnhancerOutput::Weights(Weights { stream, network: OWN, own });
    harness.core.on_enhancer_output(harness.now, weights);
}

/// The lengths of the differences that a client was sent; `None`: weights were taken back.
fn got(harness: &Harness, at: usize) -> Vec<Option<usize>> {
    let messages = harness.clients[at].messages.iter();
    let messages = messages.filter_map(|message| WeightsMessage::parse(message).ok());
    messages.map(|message| message.own.map(|own| own.difference.len())).collect()
}

#[test]
fn both_layers_go_to_the_enhancer_for_viewers_without_anchors_who_run_the_network() {
    let (mut harness, track, _) = lessons();
    taken(&mut harness);
    report(&mut harness, track, &[SUBSCRIBER], 2);
    let frames = taken(&mut harness);
    for large in [false, true] {
        let layer: Vec<_> = frames.iter().filter(|frame| frame.large == large).collect();
        assert!(layer.len() > 20, "{} frames", layer.len());
        assert!(layer.windows(2).all(|pair| pair[0].number + 1 == pair[1].number));
    }
    let lows: Vec<_> = frames.iter().filter(|f| !f.large).filter_map(|f| f.low_timestamp).collect();
    let pairs =
        frames.iter().filter(|f| f.large && f.low_timestamp.is_some_and(|at| lows.contains(&at)));
    assert!(pairs.count() > 15, "the layers are of the same moments");
    assert_eq!(harness.core.stats().taps, 0, "no anchors are made");
}

#[test]
fn lessons_end_with_the_network_or_the_large_layer_or_when_anchors_begin() {
    type Change = fn(&mut Harness, TrackId);
    let changes: [Change; 3] = [
        |harness, track| report(harness, track, &[], 7),
        |harness, track| {
            harness.core.set_max_rung(harness.now, OTHER, track, Rung::H);
            report(harness, track, &[SUBSCRIBER], 20);
        },
        |harness, track| {
            harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::QPlus);
            report(harness, track, &[SUBSCRIBER], 3);
        },
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let (mut harness, track, _) = lessons();
        change(&mut harness, track);
        taken(&mut harness);
        report(&mut harness, track, if n == 0 { &[] } else { &[SUBSCRIBER] }, 1);
        assert!(taken(&mut harness).is_empty(), "change {n}");
    }
}

#[test]
fn the_enhancer_gets_key_frames_of_both_layers_where_it_needs_them() {
    let (mut harness, track, _) = lessons();
    let stream = taken(&mut harness)[0].stream;
    // Not as soon as it was asked for last.
    report(&mut harness, track, &[SUBSCRIBER], 5);
    taken(&mut harness);
    harness.core.on_enhancer_output(harness.now, EnhancerOutput::NeedLessonKeyFrames { stream });
    report(&mut harness, track, &[SUBSCRIBER], 3);
    let frames = taken(&mut harness);
    for large in [false, true] {
        let first = frames.iter().find(|frame| frame.large == large);
        assert!(first.is_some_and(|frame| frame.key), "large: {large}");
    }
}

#[test]
fn weights_reach_who_is_taught_once_and_newcomers_get_the_newest() {
    let (mut harness, track, at) = lessons();
    let stream = taken(&mut harness)[0].stream;
    for bytes in [100, 101] {
        learn(&mut harness, stream, bytes);
        report(&mut harness, track, &[SUBSCRIBER], 2);
    }
    assert_eq!(got(&harness, at), [Some(100), Some(101)], "{:?}", harness.core.stats().counters);
    let message = WeightsMessage::parse(&harness.clients[at].messages[0]).expect("parsed");
    assert_eq!(message.stream, stream.0);
    assert_eq!(Some(message.epoch), harness.rungs(SUBSCRIBER).last().map(|rung| rung.1));
    harness.core.join(harness.now, "room", THIRD, JoinOptions::default()).expect("joined");
    let late = harness.subscribe(THIRD, track);
    watch(&mut harness, THIRD, track, Rung::Q);
    report(&mut harness, track, &[SUBSCRIBER, THIRD], 13);
    assert_eq!(got(&harness, late), [Some(101)]);
}

#[test]
fn weights_are_taken_back_from_those_who_have_them() {
    let (mut harness, track, at) = lessons();
    let stream = taken(&mut harness)[0].stream;
    learn(&mut harness, stream, 0);
    report(&mut harness, track, &[SUBSCRIBER], 1);
    assert!(got(&harness, at).is_empty(), "nobody has any");
    learn(&mut harness, stream, 100);
    report(&mut harness, track, &[SUBSCRIBER], 1);
    learn(&mut harness, stream, 0);
    report(&mut harness, track, &[SUBSCRIBER], 1);
    assert_eq!(got(&harness, at), [Some(100), None]);
    assert_eq!(harness.core.stats().counters.weights_out_taken_back, 1);
}

#[test]
fn viewers_with_anchors_or_another_scale_get_no_weights() {
    let (mut harness, track, at) = lessons();
    let stream = taken(&mut harness)[0].stream;
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::QPlus);
    report(&mut harness, track, &[SUBSCRIBER], 3);
    learn(&mut harness, stream, 100);
    report(&mut harness, track, &[SUBSCRIBER], 2);
    assert!(got(&harness, at).is_empty(), "it has anchors");
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::Q);
    let view = View { size: Size::new(640, 360), ..TILE };
    harness.core.set_view(harness.now, SUBSCRIBER, track, view);
    report(&mut harness, track, &[SUBSCRIBER], 3);
    assert!(got(&harness, at).is_empty(), "it shows another scale");
}

#[test]
fn weights_take_sixteen_kbits_a_second_at_most() {
    let (mut harness, track, at) = lessons();
    let stream = taken(&mut harness)[0].stream;
    let begin = harness.now;
    for n in 0..40 {
        learn(&mut harness, stream, 1000);
        if n % 4 == 0 {
            let network = NetworkReport { network: FrameNetwork::Xs, absence: None };
            let said = TrackReport { network, ..TrackReport::default() };
            harness.core.report(harness.now, SUBSCRIBER, track, said).expect("it watches");
        }
        harness.run(Duration::from_millis(250));
    }
    let sent = harness.core.stats().counters.weights_out_bytes as f64;
    let seconds = (harness.now - begin).as_secs_f64();
    // One message may come before its time is paid for.
    assert!(8.0 * (sent - 1044.0) <= 16_000.0 * seconds, "{sent} bytes in {seconds} s");
    assert!(8.0 * sent > 8_000.0 * seconds, "{sent} bytes in {seconds} s");
    assert!(got(&harness, at).len() > 4);
}
