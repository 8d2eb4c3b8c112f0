//! Players that ask for a rendition, and a renderer that answers in VP8.

use std::sync::Arc;

use windlass_types::recording::RecordInput;
use windlass_types::relay::RelayedPacket;
use windlass_types::rendition::{RendererAnswer, RendererInput};
use windlass_types::{Layer, NodeId, VideoCodec};

use super::harness::*;
use crate::api::{JoinOptions, Offer, OfferError, Permissions, RenditionError, Subscribe, TrackId};
use crate::config::{Limits, RenditionLimits, Tuning};
use crate::core::subscriber::rewriter::PacketIn;
use crate::core::*;
use crate::relay::Relayed;

const SECOND: Duration = Duration::from_secs(1);
const THIRD: ParticipantId = ParticipantId(3);

/// A room in which somebody publishes and another one has come, of a server that makes one rendition.
fn room() -> (Harness, TrackId) {
    let mut config = config();
    config.renditions = RenditionLimits { max: 1, pixels: 1280 * 720 };
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

/// Sends a frame of a rendition, of one packet: a key frame where one was asked for.
fn send(harness: &mut Harness, rendition: TrackId, number: u32) {
    let key = key_frames_asked(harness) > 0;
    harness.relayed.clear();
    let mut payload = vec![0x10, if key { 0x10 } else { 0x11 }, 2, 0];
    payload.extend([0x9d, 1, 0x2a, 0x80, 2, 0x68, 1]);
    payload.extend([8; 300]);
    let packet = RelayedPacket {
        track: rendition,
        layer: Some(Layer::F),
        seq: number.into(),
        timestamp: number * 3000,
        marker: true,
        level: None,
        voice: None,
        blocks: None,
        codec: VideoCodec::Vp8,
        frame: None,
        payload: Arc::from(payload),
    };
    harness.core.on_rendered(harness.now, RendererAnswer::Packet(packet));
}

fn key_frames_asked(harness: &Harness) -> usize {
    let asked = harness.relayed.iter().filter(|(node, _, message)| {
        *node == NodeId::RENDERER && matches!(message, Relayed::KeyFrame { .. })
    });
    asked.count()
}

fn media(harness: &Harness) -> Vec<&RecordInput> {
    let media = harness.rendered.iter().filter_map(|input| match input {
        RendererInput::Media(media) => Some(media),
        RendererInput::Begin { .. } | RendererInput::KeyFrame(_) => None,
    });
    media.collect()
}

#[test]
fn a_player_gets_the_renderers_packets_and_nobody_else_hears_of_them() {
    let (mut harness, track) = room();
    let rendition = harness.core.render(harness.now, SUBSCRIBER, track).expect("rendered");
    let at = harness.subscribe(SUBSCRIBER, rendition);
    harness.run(SECOND);
    let begin = &harness.rendered[0];
    assert!(
        matches!(begin, RendererInput::Begin { track: of, rendition: id } if (*of, *id) == (track, rendition)),
        "{begin:?}"
    );
    assert!(matches!(media(&harness)[0], RecordInput::Video(frame) if frame.key));
    assert_eq!(harness.core.stats().taps, 1, "anchors are made though nobody else watches");
    for number in 0..30 {
        send(&mut harness, rendition, number);
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
        send(&mut harness, first, 99);
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
    assert_eq!(render(&mut harness, ParticipantId(8), track), Err(RenditionError::NotJoined));
    assert_eq!(render(&mut harness, SUBSCRIBER, TrackId(77)), Err(RenditionError::Plain));
    let elsewhere = ParticipantId(9);
    harness.core.join(harness.now, "other", elsewhere, JoinOptions::default()).expect("joined");
    assert_eq!(render(&mut harness, elsewhere, track), Err(RenditionError::Plain));
    let rendition = render(&mut harness, SUBSCRIBER, track).expect("rendered");
    assert_eq!(render(&mut harness, SUBSCRIBER, rendition), Err(RenditionError::Plain));
    harness.core.config.renditions.max = 0;
    assert_eq!(render(&mut harness, THIRD, track), Err(RenditionError::Off));
}

#[test]
fn a_publisher_that_sends_as_large_a_picture_itself_has_no_rendition() {
    let (mut harness, track) = room();
    harness.core.config.renditions.pixels = 320 * 180;
    let now = harness.now;
    assert_eq!(harness.core.render(now, SUBSCRIBER, track), Err(RenditionError::Plain));
    harness.core.config.renditions.pixels += 1;
    assert!(harness.core.render(now, SUBSCRIBER, track).is_ok());
}

#[test]
fn the_renderer_gets_no_layer_as_large_as_its_pictures_and_asks_for_none() {
    let (mut harness, track) = room();
    harness.core.config.renditions.pixels = 640 * 360;
    harness.core.render(harness.now, SUBSCRIBER, track).expect("rendered");
    harness.camera.layers = Layer::ALL.into();
    harness.run(9 * SECOND);
    let layers: Vec<Layer> = media(&harness)
        .into_iter()
        .filter_map(|input| match input {
            RecordInput::Video(frame) => Some(frame.layer),
            _ => None,
        })
        .collect();
    assert!(layers.len() > 200 && layers.iter().all(|layer| *layer == Layer::Q), "{layers:?}");
    let paused = harness.layers_told().concat();
    assert!(paused.contains(&(Layer::F, false)), "{paused:?}");
}

#[test]
fn there_are_no_more_renditions_than_the_server_makes_and_of_one_owner_a_share() {
    let (mut harness, track) = room();
    harness.core.render(harness.now, SUBSCRIBER, track).expect("rendered");
    let (now, other) = (harness.now, camera());
    let second = harness.core.add_track(PUBLISHER, &other);
    assert_eq!(harness.core.render(now, THIRD, second), Err(RenditionError::Full));
    harness.core.config.renditions.max = 4;
    assert!(harness.core.render(now, THIRD, second).is_ok());
    let third = harness.core.add_track(PUBLISHER, &other);
    assert_eq!(harness.core.render(now, THIRD, third), Err(RenditionError::Full), "a quarter");
    harness.core.leave(now, THIRD);
    harness.core.leave(now, SUBSCRIBER);
    let max = harness.core.config.renditions.max;
    assert_eq!(
        (0..5).filter(|_| harness.core.tracks.add_rendition(track, max).is_some()).count(),
        4
    );
}

#[test]
fn who_may_not_have_what_is_enhanced_loses_it_and_others_keep_theirs() {
    let (mut harness, track) = room();
    let now = harness.now;
    let rendition = harness.core.render(now, SUBSCRIBER, track).expect("rendered");
    let at = harness.subscribe(SUBSCRIBER, rendition);
    harness.core.render(now, THIRD, track).expect("rendered");
    let without = Permissions { enhance: false, ..Permissions::default() };
    harness.core.set_permissions(now, SUBSCRIBER, without);
    harness.run(SECOND);
    for number in 0..10 {
        send(&mut harness, rendition, number);
        harness.run(Duration::from_millis(35));
    }
    assert_eq!(harness.clients[at].received.len(), 0);
    let told = SfuEvent::TrackRemoved { track: rendition };
    assert!(harness.events[&SUBSCRIBER].contains(&told));
    assert_eq!(harness.core.render(now, SUBSCRIBER, track), Err(RenditionError::NotAllowed));
    assert_eq!(harness.core.render(now, THIRD, track), Ok(rendition));
    harness.core.set_permissions(now, THIRD, without);
    assert!(harness.core.tracks.get(rendition).is_none());
}

#[test]
fn a_rendition_ends_where_its_source_has_another_codec_or_the_renderer_cannot_go_on() {
    let (mut harness, track) = room();
    let rendition = harness.core.render(harness.now, SUBSCRIBER, track).expect("rendered");
    harness.core.on_rendered(harness.now, RendererAnswer::Failed(rendition));
    assert!(harness.core.tracks.get(rendition).is_none());
    let rendition = harness.core.render(harness.now, SUBSCRIBER, track).expect("rendered");
    let layers = &mut harness.core.tracks.get_mut(track).expect("there").layers;
    let packet = PacketIn { codec: VideoCodec::Vp8, ..PacketIn::alone(0, harness.now) };
    layers.count(Layer::Q, &packet, 100, None);
    harness.core.end_unreadable_renditions();
    assert!(harness.core.tracks.get(rendition).is_none());
    assert_eq!(harness.core.render(harness.now, SUBSCRIBER, track), Err(RenditionError::Plain));
}

#[test]
fn new_limits_keep_the_renditions() {
    let (mut harness, track) = room();
    let tuning = Tuning { limits: Limits::default(), policy: AnchorPolicy::default() };
    harness.core.retune(harness.now, tuning);
    assert!(harness.core.render(harness.now, SUBSCRIBER, track).is_ok());
}

#[test]
fn a_muted_source_is_a_muted_rendition() {
    let (mut harness, track) = room();
    let rendition = harness.core.render(harness.now, SUBSCRIBER, track).expect("rendered");
    let at = harness.subscribe(SUBSCRIBER, rendition);
    harness.run(SECOND);
    let mut numbers = 0..;
    let mut play = |harness: &mut Harness| {
        let before = harness.clients[at].received.len();
        for number in numbers.by_ref().take(20) {
            send(harness, rendition, number);
            harness.run(Duration::from_millis(35));
        }
        harness.clients[at].received.len() - before
    };
    assert!(play(&mut harness) > 10);
    harness.core.set_muted(harness.now, PUBLISHER, track, true);
    assert_eq!(play(&mut harness), 0);
    harness.core.set_muted(harness.now, PUBLISHER, track, false);
    assert!(play(&mut harness) > 10);
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
