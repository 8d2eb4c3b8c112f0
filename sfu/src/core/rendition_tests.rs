//! Players that ask for a rendition, and a renderer that answers in VP8.

use std::sync::Arc;

use windlass_types::recording::RecordInput;
use windlass_types::relay::RelayedPacket;
use windlass_types::rendition::{RenderInput, Rendered};
use windlass_types::{Layer, NodeId, VideoCodec};

use super::harness::*;
use super::*;
use crate::api::{JoinOptions, Offer, OfferError, RenderError, Subscribe, TrackId};
use crate::relay::Relayed;

const SECOND: Duration = Duration::from_secs(1);
const THIRD: ParticipantId = ParticipantId(3);

/// A room in which somebody publishes and another one has come, of a server that makes one rendition.
fn room() -> (Harness, TrackId) {
    let mut config = config();
    config.limits.renditions = 1;
    let mut harness = Harness::new(config);
    for id in [PUBLISHER, SUBSCRIBER, THIRD] {
        harness.core.join(harness.now, "room", id, JoinOptions::default()).expect("joined");
    }
    let track = harness.publish();
    harness.camera.layers = vec![Layer::Q];
    harness.run(2 * SECOND);
    harness.codecs = &[VideoCodec::Vp8];
    (harness, track)
}

/// Sends a frame of the rendition of a track, of one packet: a key frame where one was asked for.
fn send(harness: &mut Harness, track: TrackId, number: u32) {
    let key = key_frames_asked(harness) > 0;
    harness.relayed.clear();
    let mut payload = vec![0x10, if key { 0x10 } else { 0x11 }, 2, 0];
    payload.extend([0x9d, 1, 0x2a, 0x80, 2, 0x68, 1]);
    payload.extend([8; 300]);
    let packet = RelayedPacket {
        track,
        layer: Some(Layer::F),
        seq: number.into(),
        timestamp: number * 3000,
        marker: true,
        level: None,
        voice: None,
        blocks: None,
        codec: VideoCodec::Vp8,
        payload: Arc::from(payload),
    };
    harness.core.on_rendered(harness.now, Rendered::Packet(packet));
}

fn key_frames_asked(harness: &Harness) -> usize {
    let asked = harness.relayed.iter().filter(|(node, _, message)| {
        *node == NodeId::RENDERER && matches!(message, Relayed::KeyFrame { .. })
    });
    asked.count()
}

fn media(harness: &Harness) -> Vec<&RecordInput> {
    let media = harness.rendered.iter().filter_map(|input| match input {
        RenderInput::Media(media) => Some(media),
        RenderInput::KeyFrame(_) => None,
    });
    media.collect()
}

#[test]
fn a_player_gets_the_renderers_packets_and_nobody_else_hears_of_them() {
    let (mut harness, track) = room();
    let rendition = harness.core.render(harness.now, SUBSCRIBER, track).expect("rendered");
    let at = harness.subscribe(SUBSCRIBER, rendition);
    harness.run(SECOND);
    assert!(matches!(media(&harness)[0], RecordInput::Begin(begin) if begin.track == track));
    assert!(matches!(media(&harness)[1], RecordInput::Video(frame) if frame.key));
    assert_eq!(harness.core.stats().taps, 1, "anchors are made though nobody else watches");
    for number in 0..30 {
        send(&mut harness, track, number);
        harness.run(Duration::from_millis(35));
    }
    let got = harness.clients[at].received.len();
    assert!(got >= 25, "{got}");
    assert_eq!(harness.core.counters.rendered_packets, 30);
    let heard = |id| harness.events.get(&id).into_iter().flatten();
    let of =
        |event: &&SfuEvent| matches!(event, SfuEvent::TrackAdded(info) if info.track == rendition);
    assert_eq!([PUBLISHER, SUBSCRIBER, THIRD].map(|id| heard(id).filter(of).count()), [0; 3]);
    let (_, tracks) = harness
        .core
        .join(harness.now, "room", ParticipantId(9), JoinOptions::default())
        .expect("joined");
    assert_eq!(tracks.iter().map(|info| info.track).collect::<Vec<_>>(), [track]);
}

#[test]
fn who_has_not_asked_for_a_rendition_cannot_subscribe_to_it() {
    let (mut harness, track) = room();
    let rendition = harness.core.render(harness.now, SUBSCRIBER, track).expect("rendered");
    let at = harness.client(THIRD);
    let mut api = harness.clients[at].rtc.sdp_api();
    let video = str0m::media::MediaKind::Video;
    let mid = api.add_media(video, str0m::media::Direction::RecvOnly, None, None, None);
    let (sdp, _) = api.apply().expect("offer");
    let subscribe = vec![Subscribe { mid: mid.to_string(), track: rendition, max: None }];
    let offer = Offer { sdp: sdp.to_sdp_string(), publish: Vec::new(), subscribe };
    let refused = harness.core.offer(harness.now, THIRD, &offer);
    assert!(matches!(refused, Err(OfferError::UnknownTrack { .. })), "{refused:?}");
    assert_eq!(harness.core.render(harness.now, THIRD, track), Ok(rendition), "all share one");
    harness.core.offer(harness.now, THIRD, &offer).expect("answer");
}

#[test]
fn a_rendition_ends_with_the_last_player_and_with_its_source() {
    let (mut harness, track) = room();
    for ends in [SUBSCRIBER, PUBLISHER] {
        let first = harness.core.render(harness.now, SUBSCRIBER, track).expect("rendered");
        harness.core.render(harness.now, THIRD, track).expect("rendered");
        harness.run(SECOND);
        harness.rendered.clear();
        harness.core.leave(harness.now, ends);
        if ends == SUBSCRIBER {
            harness.run(SECOND);
            assert!(media(&harness).iter().all(|input| !matches!(input, RecordInput::End(_))));
            harness.core.leave(harness.now, THIRD);
        }
        harness.run(SECOND);
        let end = media(&harness)
            .last()
            .is_some_and(|input| matches!(input, RecordInput::End(ended) if *ended == track));
        assert!(end, "{:?}", harness.rendered.last());
        send(&mut harness, track, 99);
        let told = SfuEvent::TrackRemoved { track: first };
        let heard = harness.events.get(&THIRD).is_some_and(|events| events.contains(&told));
        assert_eq!(heard, ends == PUBLISHER);
        for id in [SUBSCRIBER, THIRD].into_iter().filter(|_| ends == SUBSCRIBER) {
            harness.core.join(harness.now, "room", id, JoinOptions::default()).expect("joined");
        }
    }
    assert_eq!(harness.core.counters.rendered_packets, 0, "what comes after the end goes nowhere");
}

#[test]
fn what_cannot_be_rendered_is_refused_with_its_reason() {
    let (mut harness, track) = room();
    let render = |harness: &mut Harness, id, track| harness.core.render(harness.now, id, track);
    assert_eq!(render(&mut harness, ParticipantId(8), track), Err(RenderError::NotJoined));
    let none = TrackId(77);
    assert_eq!(render(&mut harness, SUBSCRIBER, none), Err(RenderError::Unreadable));
    let elsewhere = ParticipantId(9);
    harness.core.join(harness.now, "other", elsewhere, JoinOptions::default()).expect("joined");
    assert_eq!(render(&mut harness, elsewhere, track), Err(RenderError::Unreadable));
    let rendition = render(&mut harness, SUBSCRIBER, track).expect("rendered");
    assert_eq!(render(&mut harness, SUBSCRIBER, rendition), Err(RenderError::Unreadable));
    harness.core.config.limits.renditions = 0;
    assert_eq!(render(&mut harness, THIRD, track), Err(RenderError::Off));
}

#[test]
fn there_are_no_more_renditions_than_the_server_makes() {
    let (mut harness, track) = room();
    harness.core.render(harness.now, SUBSCRIBER, track).expect("rendered");
    let max = harness.core.config.limits.renditions;
    assert_eq!(harness.core.tracks.add_rendition(track, max), None);
    harness.core.leave(harness.now, SUBSCRIBER);
    assert!(harness.core.tracks.add_rendition(track, max).is_some());
}

#[test]
fn a_muted_source_is_a_muted_rendition() {
    let (mut harness, track) = room();
    let rendition = harness.core.render(harness.now, SUBSCRIBER, track).expect("rendered");
    let at = harness.subscribe(SUBSCRIBER, rendition);
    harness.run(SECOND);
    harness.core.set_muted(harness.now, PUBLISHER, track, true);
    harness.run(SECOND);
    let before = harness.clients[at].received.len();
    harness.core.set_muted(harness.now, PUBLISHER, track, false);
    for number in 0..10 {
        send(&mut harness, track, number);
        harness.run(Duration::from_millis(35));
    }
    assert!(harness.clients[at].received.len() > before);
}

#[test]
fn a_renderer_that_has_lost_frames_is_given_a_key_frame() {
    let (mut harness, track) = room();
    harness.core.render(harness.now, SUBSCRIBER, track).expect("rendered");
    harness.run(SECOND);
    harness.rendered.clear();
    harness.core.on_render_key_frame(harness.now, track, true);
    assert_eq!(harness.core.counters.render_overflows, 1);
    harness.run(2 * SECOND);
    let after = media(&harness);
    assert!(matches!(after[0], RecordInput::Gap(_)), "{:?}", after[0]);
    let next = after.iter().find(|input| matches!(input, RecordInput::Video(_)));
    assert!(matches!(next, Some(RecordInput::Video(frame)) if frame.key), "{next:?}");
}
