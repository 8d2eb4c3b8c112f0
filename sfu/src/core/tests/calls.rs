//! Calls through the core: rungs, taps, anchors, limits, and what is malformed.

use crate::api::{JoinError, JoinOptions, TrackKind};
use str0m::media::{Direction, KeyframeRequestKind, MediaKind, Rid};
use str0m::rtp::RtpWrite;
use windlass_types::Rung;
use windlass_types::message::AnchorHeader;
use windlass_types::{
    Anchor, AnchorSource, EnhancerOutput, Epoch, Layer, Size, StageTimes, TapInput,
};

use super::harness::*;
use crate::api::{Offer, OfferError, Publish, Subscribe, TrackId};
use crate::core::*;

#[test]
fn a_subscriber_gets_one_continuous_stream_over_layer_switches() {
    let (mut harness, track, at) = call();
    assert!(!harness.clients[at].received.is_empty(), "{:?}", harness.core.stats());
    for max in [Rung::Q, Rung::F, Rung::H] {
        harness.core.set_max_rung(harness.now, SUBSCRIBER, track, max);
        harness.run(Duration::from_secs(2));
    }
    assert_continuous(&harness.clients[at].received);
    let told = harness.rungs(SUBSCRIBER);
    let plain: Vec<_> = told.iter().map(|t| (t.0.layer(), t.2)).collect();
    assert_eq!(plain, [(Layer::F, 1280), (Layer::Q, 320), (Layer::F, 1280), (Layer::H, 640)]);
    assert!(told.windows(2).all(|w| w[0].1 + 1 == w[1].1), "each switch begins an epoch");
    let last = harness.clients[at].received.last().expect("packet");
    assert_eq!(last.payload.last(), Some(&(Layer::H as u8)));
    assert_eq!(harness.core.stats().counters.layer_switches, 4);
}

#[test]
fn a_subscriptions_cap_holds_from_its_first_packet_on() {
    let (mut harness, track, _) = call();
    let third = ParticipantId(3);
    harness.core.join(harness.now, "room", third, JoinOptions::default()).expect("joined");
    let at = harness.subscribe_at_most(third, track, Some(Rung::Q));
    harness.run(Duration::from_secs(2));
    let layers: Vec<_> = harness.rungs(third).iter().map(|told| told.0.layer()).collect();
    assert_eq!(layers, [Layer::Q]);
    assert!(!harness.clients[at].received.is_empty());
    // An offer that says nothing of it leaves the cap as it is: clients offer again for other tracks.
    let mid = harness.core.peers.get(third).expect("it is there").slots[0].mid.to_string();
    let mut api = harness.clients[at].rtc.sdp_api();
    api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
    let (sdp, pending) = api.apply().expect("offer");
    let subscribe = vec![Subscribe { mid, track, max: None }];
    let offer = Offer { sdp: sdp.to_sdp_string(), publish: Vec::new(), subscribe };
    harness.exchange(at, third, &offer, pending);
    harness.run(Duration::from_secs(1));
    assert_eq!(harness.rungs(third).len(), 1, "{:?}", harness.rungs(third));
}

#[test]
fn key_frames_are_asked_for_until_they_come_and_not_more_often() {
    let (mut harness, track, _) = call();
    let before = harness.clients[0].key_frame_requests;
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::Q);
    harness.run(Duration::from_secs(2));
    assert_eq!(harness.clients[0].key_frame_requests, before + 1);
}

#[test]
fn a_subscribers_request_for_a_key_frame_reaches_the_publisher() {
    let (mut harness, _, at) = call();
    let before = harness.clients[0].key_frame_requests;
    let ssrc = harness.clients[at].received[0].header.ssrc;
    for _ in 0..5 {
        let mut api = harness.clients[at].rtc.direct_api();
        api.stream_rx(&ssrc).expect("stream").request_keyframe(KeyframeRequestKind::Pli);
        harness.clients[at].due = harness.now;
        harness.run(Duration::from_millis(20));
    }
    harness.run(Duration::from_millis(300));
    let asked = harness.clients[0].key_frame_requests - before;
    assert!((1..=2).contains(&asked), "{asked} requests for five times in 100 ms");
    assert!(harness.core.stats().counters.keyframe_requests_in >= 1);
}

#[test]
fn what_the_path_loses_is_sent_again() {
    let (mut harness, _, at) = call();
    let before = harness.clients[at].received.len();
    harness.clients[at].loss = 10;
    harness.run(Duration::from_secs(3));
    harness.clients[at].loss = 0;
    harness.run(Duration::from_secs(1));
    assert!(harness.clients[at].received.len() > before + 150);
    assert_continuous(&harness.clients[at].received);
}

pub(crate) fn anchor_of(frame: &windlass_types::TapFrame, now: Instant) -> EnhancerOutput {
    assert!(now >= frame.arrival);
    EnhancerOutput::Anchor(Anchor {
        stream: frame.stream,
        epoch: frame.epoch,
        rtp_timestamp: frame.rtp_timestamp,
        arrival: frame.arrival,
        source: AnchorSource::Enhanced,
        codec: 1,
        tiled: false,
        size: Size::new(1280, 720),
        beyond_prior: true,
        payload: vec![9; 20_000].into(),
        times: StageTimes::default(),
    })
}

#[test]
fn a_rung_with_anchors_costs_what_they_take() {
    let (mut harness, track, _) = call();
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::HPlus);
    harness.run(Duration::from_secs(2));
    // 20 kB in four seconds are 40 kbit/s.
    for _ in 0..10 {
        let frame = harness.last_tapped();
        harness.core.on_enhancer_output(harness.now, anchor_of(&frame, harness.now));
        harness.run(Duration::from_secs(4));
    }
    let costs = harness.core.tracks.get(track).expect("it is there").anchor_costs.expected(2);
    assert!((25_000..60_000).contains(&costs.enhanced.as_bps()), "{costs:?}");
    assert!(costs.captured.as_bps() < 1000, "none came of the publisher's pixels: {costs:?}");
}

/// Whether the publisher was told that its quarter layer is needed, each time that it was told of it.
fn told_that_q_is_needed(harness: &Harness) -> Vec<bool> {
    let told = harness.knobs_of_layers().into_iter().flatten();
    told.filter(|(layer, _)| *layer == Layer::Q).map(|(_, knobs)| knobs.needed).collect()
}

#[test]
fn a_quarter_layer_that_does_not_come_is_needed_while_somebody_is_held_to_it() {
    let (mut harness, track, _) = call();
    harness.camera.layers = vec![Layer::H];
    harness.run(Duration::from_secs(4));
    assert_eq!(harness.rungs(SUBSCRIBER).last().map(|r| r.0.layer()), Some(Layer::H));
    assert!(!told_that_q_is_needed(&harness).contains(&true));
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::Q);
    harness.run(Duration::from_secs(1));
    assert_eq!(told_that_q_is_needed(&harness).last(), Some(&true));
    let times = told_that_q_is_needed(&harness).len();
    harness.camera.layers = vec![Layer::Q];
    harness.run(Duration::from_secs(10));
    assert_eq!(harness.rungs(SUBSCRIBER).last().map(|r| r.0), Some(Rung::Q));
    assert_eq!(told_that_q_is_needed(&harness).len(), times, "once, and it stays so");
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::F);
    harness.run(Duration::from_secs(1));
    assert_eq!(told_that_q_is_needed(&harness)[times..], [false]);
}

#[test]
fn a_quarter_layer_that_comes_need_not_be_asked_for() {
    let (mut harness, track, _) = call();
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::Q);
    harness.run(Duration::from_secs(10));
    assert_eq!(harness.rungs(SUBSCRIBER).last().map(|r| r.0), Some(Rung::Q));
    assert!(!told_that_q_is_needed(&harness).contains(&true));
}

#[test]
fn how_long_it_takes_to_connect_is_counted_once_for_each_participant() {
    let (mut harness, _, _) = call();
    harness.run(Duration::from_secs(2));
    let connects = harness.core.stats().counters.connects;
    assert_eq!(connects.count(), 2);
    let took = connects.sum();
    assert!(took > Duration::ZERO && took < Duration::from_secs(4), "{took:?}");
}

#[test]
fn an_anchor_arrives_with_the_timestamp_of_its_frame() {
    let (mut harness, track, at) = call();
    let mut ages = 0;
    for max in [Rung::QPlus, Rung::HPlus] {
        harness.core.set_max_rung(harness.now, SUBSCRIBER, track, max);
        harness.run(Duration::from_secs(2));
        assert_eq!(harness.rungs(SUBSCRIBER).last().map(|r| r.0), Some(max));
        harness.clients[at].messages.clear();
        let frame = harness.last_tapped();
        assert_eq!(frame.data.last(), Some(&(max.layer() as u8)), "the tap follows the rung");
        harness.core.on_enhancer_output(
            harness.now + Duration::from_millis(40),
            anchor_of(&frame, harness.now),
        );
        harness.run(Duration::from_millis(100));
        let messages = &harness.clients[at].messages;
        assert_eq!(messages.len(), 2, "{:?}", harness.core.stats());
        let (header, _) = AnchorHeader::parse(&messages[0]).expect("anchor message");
        ages += u128::from(header.age_ms);
        assert_eq!(header.stream, frame.stream.0);
        assert_eq!(Some(header.epoch), harness.rungs(SUBSCRIBER).last().map(|r| r.1));
        let name = |data: &[u8]| data[data.len() - 5..].to_vec();
        let packets = harness.clients[at]
            .received
            .iter()
            .filter(|p| p.header.timestamp == header.rtp_timestamp);
        let names: Vec<_> = packets.map(|p| name(&p.payload)).collect();
        assert_eq!(
            names,
            [name(&frame.data), name(&frame.data)],
            "both packets of the anchor's frame"
        );
    }
    let counters = harness.core.stats().counters;
    let sent = counters.anchor_ages;
    assert_eq!((counters.anchors_out, sent.count(), sent.sum().as_millis()), (2, 2, ages));
}

#[test]
fn a_rooms_policy_goes_with_its_frames_and_lets_anchors_be_as_much_later() {
    use windlass_types::AnchorPolicy::{CostEffective, LatencySensitive, QualitySla};
    let (mut harness, track, at) = call();
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::QPlus);
    let of = |harness: &mut Harness, room, policy| {
        assert!(harness.core.set_policy(harness.now, room, policy));
        harness.run(Duration::from_secs(1));
        harness.last_tapped().policy
    };
    assert_eq!(of(&mut harness, Some("other"), Some(QualitySla)), LatencySensitive);
    assert_eq!(of(&mut harness, Some("room"), Some(CostEffective)), CostEffective);
    assert_eq!(of(&mut harness, None, Some(QualitySla)), CostEffective, "its own goes before");
    let frame = harness.last_tapped();
    harness.core.on_enhancer_output(
        harness.now + Duration::from_millis(800),
        anchor_of(&frame, harness.now),
    );
    harness.run(Duration::from_millis(100));
    assert!(!harness.clients[at].messages.is_empty());
    assert_eq!(harness.core.stats().counters.anchors_dropped_late, 0);
    assert_eq!(of(&mut harness, Some("room"), None), QualitySla);
}

#[test]
fn policies_of_rooms_are_bounded() {
    let (mut harness, ..) = call();
    let policy = Some(windlass_types::AnchorPolicy::QualitySla);
    let max = crate::Limits::default().rooms;
    for n in 0..max {
        assert!(harness.core.set_policy(harness.now, Some(&n.to_string()), policy));
    }
    assert!(!harness.core.set_policy(harness.now, Some("one more"), policy));
    assert!(harness.core.set_policy(harness.now, Some("0"), policy), "a known one is set anew");
}

#[test]
fn an_anchor_that_is_late_or_of_an_unknown_frame_is_dropped_and_counted() {
    let (mut harness, track, at) = call();
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::QPlus);
    harness.run(Duration::from_secs(2));
    let frame = harness.last_tapped();
    harness
        .core
        .on_enhancer_output(harness.now + Duration::from_secs(1), anchor_of(&frame, harness.now));
    let strange = windlass_types::TapFrame { rtp_timestamp: 1, ..frame.clone() };
    harness.core.on_enhancer_output(harness.now, anchor_of(&strange, harness.now));
    let gone = windlass_types::TapFrame { epoch: Epoch(999), ..frame };
    harness.core.on_enhancer_output(harness.now, anchor_of(&gone, harness.now));
    harness.run(Duration::from_millis(100));
    assert!(harness.clients[at].messages.is_empty());
    let counters = harness.core.stats().counters;
    assert_eq!((counters.anchors_dropped_late, counters.anchors_dropped_unmapped), (1, 2));
}

#[test]
fn a_captured_picture_is_sent_after_the_budget_and_not_much_later() {
    let (mut harness, track, at) = call();
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::QPlus);
    harness.run(Duration::from_secs(2));
    let frame = harness.last_tapped();
    let made = anchor_of(&frame, harness.now);
    let windlass_types::EnhancerOutput::Anchor(mut captured) = made else { panic!("{made:?}") };
    captured.source = windlass_types::AnchorSource::Captured;
    let captured = windlass_types::EnhancerOutput::Anchor(captured);
    let soon = harness.now + Duration::from_millis(900);
    let never = harness.now + Duration::from_millis(1100);
    harness.core.on_enhancer_output(soon, captured.clone());
    harness.run(Duration::from_millis(100));
    assert!(!harness.clients[at].messages.is_empty());
    assert_eq!(harness.core.stats().counters.anchors_dropped_late, 0);
    harness.core.on_enhancer_output(never, captured);
    assert_eq!(harness.core.stats().counters.anchors_dropped_late, 1);
}

#[test]
fn a_tap_runs_while_somebody_holds_an_enhanced_rung_and_no_longer() {
    let (mut harness, track, _) = call();
    assert_eq!(harness.core.stats().taps, 0, "the full layer has no anchors");
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::HPlus);
    harness.run(Duration::from_secs(1));
    assert_eq!(harness.core.stats().taps, 1);
    let frames = harness.taps.iter().filter(|t| matches!(t, TapInput::Frame(_))).count();
    assert!(frames > 10, "{frames}");
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::H);
    harness.run(Duration::from_secs(1));
    assert_eq!(harness.core.stats().taps, 0);
    assert!(matches!(harness.taps.last(), Some(TapInput::Stop { .. })));
}

#[test]
fn a_publisher_that_leaves_takes_its_tracks_along() {
    let (mut harness, track, at) = call();
    harness.core.leave(harness.now, PUBLISHER);
    harness.deliver();
    let events = &harness.events[&SUBSCRIBER];
    let tail: Vec<_> = events.iter().rev().take(2).collect();
    assert_eq!(*tail[1], SfuEvent::TrackRemoved { track });
    assert_eq!(*tail[0], SfuEvent::ParticipantLeft { participant: PUBLISHER });
    let received = harness.clients[at].received.len();
    harness.camera.mid = None;
    harness.run(Duration::from_secs(1));
    assert_eq!(harness.clients[at].received.len(), received);
    assert_eq!(harness.core.stats().tracks, 0);
    harness.core.leave(harness.now, SUBSCRIBER);
    let stats = harness.core.stats();
    assert_eq!((stats.rooms, stats.participants, harness.core.routes.addresses().len()), (0, 0, 0));
}

#[test]
fn a_muted_track_is_silent_and_comes_back_with_a_key_frame() {
    let (mut harness, track, at) = call();
    harness.core.set_muted(harness.now, PUBLISHER, track, true);
    harness.run(Duration::from_millis(100));
    let received = harness.clients[at].received.len();
    harness.run(Duration::from_secs(1));
    assert_eq!(harness.clients[at].received.len(), received);
    assert!(harness.events[&SUBSCRIBER].contains(&SfuEvent::TrackMuted { track, muted: true }));
    harness.core.set_muted(harness.now, PUBLISHER, track, false);
    harness.run(Duration::from_secs(1));
    assert!(harness.clients[at].received.len() > received + 20);
    assert_eq!(
        harness.clients[at].received[received].payload[0] & 0x48,
        8,
        "a key frame begins here"
    );
    assert_continuous(&harness.clients[at].received);
}

#[test]
fn somebody_else_cannot_mute_a_track() {
    let (mut harness, track, _) = call();
    harness.core.set_muted(harness.now, SUBSCRIBER, track, true);
    assert!(!harness.core.tracks.get(track).expect("it is there").info.muted);
}

#[test]
fn rooms_and_participants_beyond_the_limits_are_refused() {
    let limits = crate::Limits {
        rooms: 2,
        participants: 3,
        participants_per_room: 2,
        ..crate::Limits::default()
    };
    let mut harness = Harness::new(SfuConfig { limits, ..config() });
    let now = harness.now;
    let mut join = |room: &str, id, loopback| {
        harness
            .core
            .join(now, room, ParticipantId(id), JoinOptions { loopback, ..JoinOptions::default() })
            .err()
    };
    assert_eq!(join("a", 1, false), None);
    assert_eq!(join("a", 1, false), Some(JoinError::AlreadyJoined));
    assert_eq!(join("a", 2, false), None);
    assert_eq!(join("a", 3, false), Some(JoinError::RoomFull));
    assert_eq!(join("b", 3, true), None);
    assert_eq!(join("b", 4, false), Some(JoinError::ServerFull));
    harness.core.leave(now, ParticipantId(2));
    let mut join = |room: &str, id, loopback| {
        harness
            .core
            .join(now, room, ParticipantId(id), JoinOptions { loopback, ..JoinOptions::default() })
            .err()
    };
    assert_eq!(join("b", 4, false), Some(JoinError::RoomFull), "a loopback room is for one");
    assert_eq!(join("c", 4, false), None, "which takes no other room's place");
    harness.core.leave(now, ParticipantId(4));
    harness.core.leave(now, ParticipantId(1));
    let limits = crate::Limits { rooms: 1, ..crate::Limits::default() };
    let mut harness = Harness::new(SfuConfig { limits, ..config() });
    let mut join = |room: &str, id, loopback| {
        let options = JoinOptions { loopback, ..JoinOptions::default() };
        harness.core.join(now, room, ParticipantId(id), options).err()
    };
    assert_eq!([join("a", 1, true), join("b", 2, false)], [None, None]);
    let full = Some(JoinError::ServerFull);
    assert_eq!([join("c", 3, true), join("d", 4, false)], [full, full], "each kind has its own");
}

#[test]
fn limits_change_for_those_who_come_and_nobody_has_to_leave() {
    let mut harness = Harness::new(config());
    let now = harness.now;
    let join = |harness: &mut Harness, id| {
        harness.core.join(now, "a", ParticipantId(id), JoinOptions::default()).err()
    };
    assert_eq!((join(&mut harness, 1), join(&mut harness, 2)), (None, None));
    let limits = crate::Limits { participants_per_room: 1, ..config().limits };
    let policy = AnchorPolicy::default();
    harness.core.retune(now, crate::Tuning { limits, policy });
    assert_eq!(join(&mut harness, 3), Some(JoinError::RoomFull));
    assert_eq!(harness.core.stats().participants, 2);
    let limits = crate::Limits { participants_per_room: 3, ..limits };
    harness.core.retune(now, crate::Tuning { limits, policy });
    assert_eq!(join(&mut harness, 3), None);
}

#[test]
fn a_room_has_so_many_tracks_and_who_publishes_nothing_more_is_not_refused() {
    let (mut harness, _, _) = call();
    let (now, late) = (harness.now, ParticipantId(7));
    let limits = crate::Limits { tracks_per_room: 1, ..config().limits };
    harness.core.retune(now, crate::Tuning { limits, policy: AnchorPolicy::default() });
    harness.core.join(now, "room", late, JoinOptions::default()).expect("joined");
    let at = harness.client(late);
    let mut api = harness.clients[at].rtc.sdp_api();
    let mid = api.add_media(MediaKind::Audio, Direction::SendOnly, None, None, None);
    let (sdp, _pending) = api.apply().expect("offer");
    let publish = Publish {
        mid: mid.to_string(),
        kind: TrackKind::Audio,
        name: "microphone".into(),
        max: None,
        encrypted: false,
        backup_of: None,
    };
    let offer = |publish| Offer { sdp: sdp.to_sdp_string(), publish, subscribe: Vec::new() };
    let refused = harness.core.offer(now, late, &offer(vec![publish])).expect_err("one too many");
    assert_eq!(refused, OfferError::TooManyTracks);
    assert_eq!(harness.core.counters.offers_refused_room_tracks, 1);
    assert!(harness.core.offer(now, late, &offer(Vec::new())).is_ok());
}

#[test]
fn strangers_who_send_too_much_are_not_looked_at_and_a_call_goes_on() {
    let (mut harness, _, _) = call();
    let now = harness.now;
    let limits = crate::Limits { unauthenticated_per_second: 10, ..config().limits };
    harness.core.retune(now, crate::Tuning { limits, policy: AnchorPolicy::default() });
    let before = harness.core.counters;
    for n in 0..100 {
        harness.core.datagram(now, SocketAddr::from(([198, 51, 100, 7], 1000 + n)), &[0, 1, 0, 0]);
    }
    let after = harness.core.counters;
    assert_eq!(after.strangers_limited - before.strangers_limited, 90);
    let rtp = after.rtp_out;
    harness.run(Duration::from_millis(500));
    assert!(harness.core.counters.rtp_out > rtp);
}

#[test]
fn while_it_drains_rooms_go_on_and_none_begins() {
    let mut harness = Harness::new(config());
    let now = harness.now;
    let join = |harness: &mut Harness, room: &str, id| {
        harness.core.join(now, room, ParticipantId(id), JoinOptions::default()).err()
    };
    assert_eq!(join(&mut harness, "a", 1), None);
    harness.core.drain();
    assert_eq!(join(&mut harness, "b", 2), Some(JoinError::Draining));
    assert_eq!(join(&mut harness, "a", 2), None);
}

#[test]
fn offers_that_do_not_fit_are_refused_by_type_and_change_nothing() {
    let (mut harness, track, _) = call();
    let now = harness.now;
    let mut refused =
        |offer: Offer| harness.core.offer(now, SUBSCRIBER, &offer).expect_err("refused");
    let sdp = |text: &str| Offer { sdp: text.into(), ..Offer::default() };
    assert!(matches!(refused(sdp("v=0")), OfferError::BadSdp(_)));
    assert!(matches!(refused(sdp("")), OfferError::BadSdp(_)));
    assert_eq!(refused(sdp(&"x".repeat(300_000))), OfferError::TooLarge);
    let subscribe = vec![Subscribe { mid: "0".into(), track: TrackId(77), max: None }];
    assert_eq!(
        refused(Offer { subscribe, ..Offer::default() }),
        OfferError::UnknownTrack { track: TrackId(77) }
    );
    let subscribe = vec![Subscribe { mid: "nowhere".into(), track, max: None }];
    assert_eq!(
        refused(Offer { subscribe, ..Offer::default() }),
        OfferError::BadMid { mid: "nowhere".into() }
    );
    let h264 =
        super::offers::sdp(&[("video 9 UDP/TLS/RTP/SAVPF 96", "recvonly|rtpmap:96 H264/90000")]);
    let subscribe = vec![Subscribe { mid: "0".into(), track, max: None }];
    assert_eq!(refused(Offer { subscribe, ..sdp(&h264) }), OfferError::NoCodec { mid: "0".into() });
    assert_eq!(
        harness.core.offer(now, ParticipantId(9), &Offer::default()),
        Err(OfferError::NotJoined)
    );
    let received = harness.clients[1].received.len();
    harness.run(Duration::from_secs(1));
    assert!(harness.clients[1].received.len() > received + 20);
}

#[test]
fn garbage_on_the_wire_is_counted_and_hurts_nobody() {
    let (mut harness, _, at) = call();
    let own = harness.clients[0].address;
    let mut seed = 7u32;
    for i in 0..3000usize {
        let data: Vec<u8> = (0..i % 120)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            })
            .collect();
        let from = if i % 2 == 0 { own } else { "203.0.113.5:99".parse().expect("address") };
        harness.core.datagram(harness.now, from, &data);
        // The same with a first byte of each protocol.
        if let Some((first, rest)) = data.split_first() {
            let head = [0, 22, 128, 144][usize::from(*first) % 4];
            harness.core.datagram(harness.now, from, &[&[head], rest].concat());
        }
    }
    let received = harness.clients[at].received.len();
    harness.run(Duration::from_secs(1));
    assert!(harness.clients[at].received.len() > received + 20);
    let counters = harness.core.stats().counters;
    assert!(counters.datagrams_malformed > 0 && counters.datagrams_unknown > 0);
    assert_eq!(harness.core.stats().connected, 2);
}

#[test]
fn malformed_vp9_of_a_publisher_is_counted_and_not_forwarded() {
    let (mut harness, _, at) = call();
    let mid = harness.camera.mid.expect("camera");
    let rtc = &mut harness.clients[0].rtc;
    let pt = rtc.codec_config().find(|p| p.spec().format.profile_id == Some(0)).expect("VP9").pt();
    let seq = 70 + harness.camera.seq[2];
    harness.camera.seq[2] += 1;
    let mut api = rtc.direct_api();
    let stream = api.stream_tx_by_mid(mid, Some(Rid::from("f"))).expect("stream");
    stream.write_rtp(RtpWrite::new(pt, seq.into(), 5, harness.now, vec![0x90u8]).marker(true));
    harness.clients[0].due = harness.now;
    harness.run(Duration::from_secs(1));
    assert_eq!(harness.core.stats().counters.video_malformed, 1);
    assert!(harness.clients[at].received.iter().all(|p| p.payload.len() > 1));
}

#[test]
fn a_connection_that_never_comes_is_given_up() {
    let mut harness = Harness::new(config());
    harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    harness.publish();
    harness.clients.clear();
    harness.camera.mid = None;
    harness.run(Duration::from_secs(40));
    assert_eq!(harness.core.stats().participants, 0);
    let last = harness.events[&PUBLISHER].last();
    assert_eq!(last, Some(&SfuEvent::Disconnected(DisconnectReason::NeverConnected)));
    let counters = harness.core.stats().counters;
    assert_eq!(counters.peers_unconnected + counters.peers_failed, 1);
}

#[test]
fn a_client_that_vanishes_is_removed() {
    let (mut harness, track, _) = call();
    harness.clients.remove(0);
    harness.camera.mid = None;
    harness.run(Duration::from_secs(25));
    assert!(harness.events[&SUBSCRIBER].contains(&SfuEvent::TrackRemoved { track }));
    let last = harness.events[&PUBLISHER].last();
    assert_eq!(last, Some(&SfuEvent::Disconnected(DisconnectReason::Lost)));
    assert_eq!(harness.core.stats().participants, 1);
}

#[test]
fn a_layer_that_ends_is_replaced_and_not_asked_for_key_frames() {
    let (mut harness, _, at) = call();
    harness.camera.layers = vec![Layer::Q];
    harness.run(Duration::from_secs(3));
    assert_eq!(harness.rungs(SUBSCRIBER).last().map(|r| r.0), Some(Rung::QPlus));
    assert_continuous(&harness.clients[at].received);
    let asked = harness.core.stats().counters.keyframe_requests_out;
    harness.run(Duration::from_secs(5));
    assert_eq!(harness.core.stats().counters.keyframe_requests_out, asked);
}

#[test]
fn an_only_encoding_that_grows_goes_on_under_its_new_name_and_leaves_its_tap() {
    let (mut harness, track, at) = call();
    harness.camera.layers = vec![Layer::Q];
    harness.run(Duration::from_secs(3));
    assert_eq!(harness.rungs(SUBSCRIBER).last().map(|r| r.0), Some(Rung::QPlus));
    // From now on what was its quarter layer is its full one.
    harness.camera.layers = Vec::new();
    let seq = harness
        .core
        .tracks
        .get(track)
        .expect("it is there")
        .recent
        .after(Layer::Q, 0)
        .last()
        .map(|(p, _)| p.seq);
    harness.core.rename_layer(track, Layer::Q, Layer::F, harness.now);
    let key = [&[0x0c][..], &key_header(1280, 720)].concat();
    let packet = subscriber::rewriter::PacketIn {
        timestamp: 1 << 30,
        ..subscriber::rewriter::PacketIn::alone(seq.unwrap_or_default() + 1, harness.now)
    };
    let before = harness.clients[at].received.len();
    harness.core.forward_video(track, Layer::F, packet, None, &key.into());
    harness.run(Duration::from_millis(100));
    assert!(harness.clients[at].received.len() > before, "it is forwarded at once");
    assert_eq!(harness.rungs(SUBSCRIBER).last().map(|r| r.0), Some(Rung::F));
    assert!(harness.taps.iter().any(|input| matches!(input, TapInput::Stop { .. })));
}

#[test]
fn layers_larger_than_are_enhanced_are_not_tapped_and_viewers_are_told() {
    let mut harness = Harness::new(SfuConfig { tap_pixels: 320 * 180 - 1, ..config() });
    harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = harness.publish();
    harness.camera.layers = vec![Layer::Q];
    harness.run(Duration::from_secs(2));
    harness.core.join(harness.now, "room", SUBSCRIBER, JoinOptions::default()).expect("joined");
    harness.subscribe(SUBSCRIBER, track);
    harness.run(Duration::from_secs(4));
    assert!(
        !harness.taps.iter().any(|input| matches!(input, TapInput::Frame(_))),
        "nothing is tapped"
    );
    assert_eq!(harness.rungs(SUBSCRIBER).last().map(|r| r.0), Some(Rung::Q));
    let stats = harness.events[&SUBSCRIBER].iter().rev().find_map(|event| match event {
        SfuEvent::TrackStats(stats) => stats.first().map(|stats| stats.refused),
        _ => None,
    });
    assert_eq!(stats, Some(Some(windlass_types::Refusal::Size)));
}

#[test]
fn an_encrypted_track_is_forwarded_but_neither_tapped_nor_recorded_and_viewers_are_told() {
    let mut harness = Harness { encrypted: true, ..Harness::new(config()) };
    for id in [PUBLISHER, SUBSCRIBER] {
        harness.core.join(harness.now, "room", id, JoinOptions::default()).expect("joined");
    }
    let everybody = Recorded { whom: RecordedWho::All, anchors: true };
    harness.core.set_recorded(harness.now, "room", Some(everybody));
    let track = harness.publish();
    harness.run(Duration::from_secs(2));
    let at = harness.subscribe_at_most(SUBSCRIBER, track, Some(Rung::HPlus));
    harness.run(Duration::from_secs(4));
    assert!(harness.clients[at].received.len() > 100, "{}", harness.clients[at].received.len());
    assert!(harness.taps.is_empty() && harness.recorded.is_empty());
    assert!(harness.rungs(SUBSCRIBER).iter().all(|r| !r.0.enhanced()));
    let news = harness.events[&SUBSCRIBER].iter();
    assert!(
        news.clone().any(|event| matches!(event, SfuEvent::TrackAdded(info) if info.encrypted))
    );
    let refused = news.rev().find_map(|event| match event {
        SfuEvent::TrackStats(stats) => stats.first().map(|stats| stats.refused),
        _ => None,
    });
    assert_eq!(refused, Some(Some(windlass_types::Refusal::Encrypted)));
}

/// The first bytes of a key frame of this size.
pub(crate) fn key_header(width: u16, height: u16) -> [u8; 9] {
    let (w, h) = (width - 1, height - 1);
    [
        0x82,
        0x49,
        0x83,
        0x42,
        0x20 | (w >> 12) as u8,
        (w >> 4) as u8,
        (w << 4) as u8 | (h >> 12) as u8,
        (h >> 4) as u8,
        (h << 4) as u8,
    ]
}

#[test]
fn a_loopback_room_gives_back_ones_own_track() {
    let mut harness = Harness::new(config());
    harness
        .core
        .join(
            harness.now,
            "mirror",
            PUBLISHER,
            JoinOptions { loopback: true, ..JoinOptions::default() },
        )
        .expect("joined");
    let track = harness.publish();
    harness.run(Duration::from_secs(1));
    assert!(
        matches!(&harness.events[&PUBLISHER][0], SfuEvent::TrackAdded(info) if info.track == track)
    );
    let mid = harness.camera.mid.expect("camera").to_string();
    let mut api = harness.clients[0].rtc.sdp_api();
    let receiving = api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
    let (sdp, pending) = api.apply().expect("offer");
    let publish = vec![Publish {
        mid,
        kind: TrackKind::Video,
        name: "camera".into(),
        max: None,
        encrypted: false,
        backup_of: None,
    }];
    let subscribe = vec![Subscribe { mid: receiving.to_string(), track, max: None }];
    let offer = Offer { sdp: sdp.to_sdp_string(), publish, subscribe };
    let answer = harness.exchange(0, PUBLISHER, &offer, pending);
    assert_eq!(answer.tracks[0].1, track, "the track stays the same over a new offer");
    harness.run(Duration::from_secs(2));
    assert!(harness.clients[0].received.len() > 50);
    assert_continuous(&harness.clients[0].received);
}

#[test]
fn the_payload_of_other_subscribers_is_not_touched_by_rewriting() {
    let (mut harness, track, at) = call();
    let third = ParticipantId(3);
    harness.core.join(harness.now, "room", third, JoinOptions::default()).expect("joined");
    let late = harness.subscribe(third, track);
    harness.run(Duration::from_secs(2));
    assert_continuous(&harness.clients[at].received);
    assert_continuous(&harness.clients[late].received);
    let ids = |at: usize| -> Vec<u16> {
        let frames = harness.clients[at].received.iter().filter(|p| p.header.marker);
        frames.map(|p| u16::from_be_bytes([p.payload[1], p.payload[2]]) & 0x7fff).collect()
    };
    for at in [at, late] {
        assert!(ids(at).windows(2).all(|w| w[1] == w[0] + 1), "{:?}", ids(at));
    }
}

#[test]
fn a_subscriber_that_cannot_decode_the_anchors_gets_plain_rungs_and_is_counted() {
    let mut harness = Harness::new(config());
    let without = JoinOptions { decodes_anchors: false, ..JoinOptions::default() };
    harness.core.join(harness.now, "room", PUBLISHER, without).expect("joined");
    let track = harness.publish();
    harness.run(Duration::from_millis(500));
    let third = ParticipantId(3);
    harness.core.join(harness.now, "room", SUBSCRIBER, without).expect("joined");
    harness.core.join(harness.now, "room", third, JoinOptions::default()).expect("joined");
    for id in [SUBSCRIBER, third] {
        harness.subscribe(id, track);
        harness.core.set_max_rung(harness.now, id, track, Rung::HPlus);
    }
    harness.run(Duration::from_secs(2));
    assert_eq!(harness.rungs(SUBSCRIBER).last().expect("told").0, Rung::H);
    assert_eq!(harness.rungs(third).last().expect("told").0, Rung::HPlus);
    assert_eq!(harness.core.counters.joins_without_codec, 2, "publisher and first subscriber");
}

#[test]
fn whoever_begins_to_get_anchors_or_has_lost_one_is_to_get_a_whole_one() {
    let (mut harness, track, _) = call();
    let wanted = |harness: &Harness| {
        harness.requests.iter().filter(|request| is_key_anchor_request(request)).count()
    };
    harness.core.request_key_anchor(harness.now, SUBSCRIBER, track);
    harness.run(Duration::from_millis(100));
    assert_eq!(wanted(&harness), 0, "a plain rung has no anchors");
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::HPlus);
    harness.run(Duration::from_secs(1));
    assert_eq!(wanted(&harness), 1, "it begins to get anchors");
    harness.core.request_key_anchor(harness.now, PUBLISHER, track);
    for _ in 0..100 {
        harness.core.request_key_anchor(harness.now, SUBSCRIBER, track);
    }
    harness.run(Duration::from_millis(100));
    assert_eq!(wanted(&harness), 2, "it lost one, and says so often; the publisher gets none");
    assert_eq!(harness.core.stats().counters.key_anchor_requests_in, 102);
}

#[test]
fn while_enhancement_is_off_nobody_holds_an_enhanced_rung() {
    let (mut harness, track, _) = call();
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::HPlus);
    harness.run(Duration::from_secs(1));
    let last = |harness: &Harness| harness.rungs(SUBSCRIBER).last().map(|r| r.0);
    assert_eq!((last(&harness), harness.core.stats().taps), (Some(Rung::HPlus), 1));
    harness.core.set_enhancement(harness.now, false);
    harness.run(Duration::from_millis(100));
    assert_eq!((last(&harness), harness.core.stats().taps), (Some(Rung::H), 0));
    assert!(matches!(harness.taps.last(), Some(TapInput::Stop { .. })));
    harness.core.set_enhancement(harness.now, true);
    harness.run(Duration::from_secs(1));
    assert_eq!((last(&harness), harness.core.stats().taps), (Some(Rung::HPlus), 1));
    assert!(matches!(harness.taps.last(), Some(TapInput::Frame(_) | TapInput::Captured(_))));
}

#[test]
fn an_enhancer_that_never_gets_on_does_not_cost_the_call_key_frame_after_key_frame() {
    let (mut harness, track, _) = call();
    harness.core.set_max_rung(harness.now, SUBSCRIBER, track, Rung::HPlus);
    harness.run(Duration::from_secs(1));
    let stream = harness.last_tapped().stream;
    let before = harness.core.stats().counters.keyframe_requests_out;
    for _ in 0..300 {
        harness.core.on_enhancer_output(harness.now, EnhancerOutput::NeedKeyFrame { stream });
        harness.run(Duration::from_millis(100));
    }
    let asked = harness.core.stats().counters.keyframe_requests_out - before;
    assert!((2..=10).contains(&asked), "{asked} requests in 30 s");
    // One that has recovered is served at once again.
    harness.run(Duration::from_secs(10));
    let before = harness.core.stats().counters.keyframe_requests_out;
    harness.core.on_enhancer_output(harness.now, EnhancerOutput::NeedKeyFrame { stream });
    harness.run(Duration::from_millis(100));
    assert_eq!(harness.core.stats().counters.keyframe_requests_out, before + 1);
}

#[test]
fn random_loss_does_not_take_the_estimate_below_the_quarter_layer() {
    let mut harness = Harness::new(SfuConfig::default());
    harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = harness.publish();
    harness.run(Duration::from_secs(2));
    harness.core.join(harness.now, "room", SUBSCRIBER, JoinOptions::default()).expect("joined");
    let at = harness.subscribe(SUBSCRIBER, track);
    harness.run(Duration::from_secs(3));
    harness.clients[at].loss = 20;
    let mut lowest = u64::MAX;
    for _ in 0..120 {
        harness.run(Duration::from_secs(1));
        lowest = lowest.min(harness.core.estimate(SUBSCRIBER).expect("estimate").as_bps());
    }
    assert!(lowest > 150_000, "{lowest} bit/s");
}

#[test]
fn offers_full_of_candidates_cost_no_more_each_time() {
    let (mut harness, _, at) = call();
    let mut api = harness.clients[at].rtc.sdp_api();
    api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
    let (sdp, _) = api.apply().expect("offer");
    let sdp = sdp.to_sdp_string();
    let (head, tail) = sdp.split_at(sdp.find("a=mid:").expect("m-line"));
    let mut took = Vec::new();
    for round in 0..20 {
        let candidate = |i: u32| {
            let (high, low) = (i / 250, i % 250);
            format!("a=candidate:{i} 1 udp 2130706431 10.{round}.{high}.{low} 5000 typ host\r\n")
        };
        let sdp = [head, &(0..700).map(candidate).collect::<String>(), tail].concat();
        let offer = Offer { sdp, ..Offer::default() };
        let begun = Instant::now();
        harness.core.offer(harness.now, SUBSCRIBER, &offer).expect("answer");
        took.push(begun.elapsed());
    }
    // The quickest of some: the machine may pause at any of them.
    let (first, last) = (took[..5].iter().min(), took[15..].iter().min());
    assert!(last < first.map(|first| *first * 3).as_ref(), "{took:?}");
}
