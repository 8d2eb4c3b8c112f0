//! Behaviour of a session, one each.

mod data;

use windlass_protocol::{IceServers, Moderate};
use windlass_sfu::{DisconnectReason, JoinError, JoinOptions, TrackInfo, TrackKind, TrackStats};
use windlass_types::{Bitrate, Rung, Size, Way, WayReason};

use super::*;
use crate::access::{AccessError, Grants};
use crate::rights::{Denied, Entry};

const JOIN: &str = r#"{"type":"join","version":1,"room":"tea","name":"Ana"}"#;

fn drain(session: &mut Session) -> Vec<Action> {
    std::iter::from_fn(|| session.poll()).collect()
}

fn errors(actions: &[Action]) -> Vec<(ErrorCode, Option<u32>)> {
    let error = |a: &Action| match a {
        Action::Send(ServerMessage::Error(e)) => Some((e.code, e.id)),
        _ => None,
    };
    actions.iter().filter_map(error).collect()
}

fn outside() -> (Session, Instant) {
    let now = Instant::now();
    (Session::new(SessionConfig::default(), now), now)
}

fn camera(track: u64) -> TrackInfo {
    TrackInfo {
        track: TrackId(track),
        participant: ParticipantId(1),
        kind: TrackKind::Video,
        name: "camera".into(),
        encrypted: false,
        muted: false,
        stream: Some(windlass_types::StreamId(5)),
    }
}

fn inside() -> (Session, Instant) {
    let (mut session, now) = outside();
    session.text(now, JOIN);
    session.joined(Ok(entered(Grants::participant())));
    drain(&mut session);
    (session, now)
}

fn entered(grants: Grants) -> Entered {
    let bo = ParticipantInfo {
        name: "Bo".into(),
        identity: Some("bo".into()),
        attributes: [("pen".into(), "red".into())].into(),
        ..ParticipantInfo::default()
    };
    Entered {
        id: ParticipantId(2),
        identity: None,
        name_is_fixed: false,
        attributes: Attributes::new(),
        ruling: Ruling {
            denied: None,
            grants,
            entry: Entry::default(),
            recording: false,
            waiting: std::sync::Arc::default(),
        },
        seat: Some("p2.1.x".into()),
        participants: vec![(ParticipantId(1), bo)],
        tracks: vec![camera(9)],
        ice: IceServers::default(),
        others: vec!["wss://b/ws".into()],
    }
}

fn someone(_: ParticipantId) -> Option<ParticipantInfo> {
    None
}

#[test]
fn servers_that_help_are_told_to_those_who_are_inside() {
    let (mut session, now) = outside();
    session.text(now, r#"{"type":"ice_servers"}"#);
    assert!(matches!(&drain(&mut session)[..], [Action::Send(ServerMessage::Error(_))]));
    let (mut session, now) = inside();
    session.text(now, r#"{"type":"ice_servers"}"#);
    assert_eq!(drain(&mut session), [Action::IceServers]);
}

#[test]
fn a_join_asks_the_sfu_and_is_answered_by_welcome() {
    let (mut session, now) = outside();
    session.text(now, JOIN);
    let asked = Action::Join {
        room: "tea".into(),
        name: "Ana".into(),
        token: None,
        ticket: None,
        seat: None,
        attributes: Attributes::new(),
        options: JoinOptions { decodes_anchors: false, ..JoinOptions::default() },
    };
    assert_eq!(drain(&mut session), [asked]);
    session.joined(Ok(entered(Grants::participant())));
    let Some(Action::Send(ServerMessage::Welcome(welcome))) = session.poll() else {
        panic!("no welcome");
    };
    assert_eq!((welcome.participant.as_str(), welcome.room.as_str()), ("p2", "tea"));
    assert_eq!((welcome.budget_ms, welcome.scale), (200, 2));
    assert_eq!(welcome.participants[0].name, "Bo");
    assert_eq!(welcome.participants[0].identity.as_deref(), Some("bo"));
    assert_eq!(welcome.grants, Grant::PARTICIPANT);
    assert_eq!((welcome.tracks[0].id.as_str(), welcome.tracks[0].stream), ("t9", Some(5)));
}

#[test]
fn everything_but_join_and_ping_needs_a_room() {
    let (mut session, now) = outside();
    for text in [
        r#"{"type":"offer","id":1,"sdp":"v=0"}"#,
        r#"{"type":"set_rung","id":1,"track":"t9","max":"f"}"#,
        r#"{"type":"key_anchor","id":1,"track":"t9"}"#,
        r#"{"type":"mute","id":1,"track":"t9","muted":true}"#,
        r#"{"type":"report","id":1,"track":"t9"}"#,
        r#"{"type":"leave","id":1}"#,
    ] {
        session.text(now, text);
        assert_eq!(errors(&drain(&mut session)), [(ErrorCode::NotJoined, Some(1))], "{text}");
    }
    session.text(now, r#"{"type":"ping","time":4.5}"#);
    assert_eq!(drain(&mut session), [Action::Send(ServerMessage::Pong { time: 4.5 })]);
}

#[test]
fn a_second_join_is_refused_and_the_first_one_stands() {
    let (mut session, now) = inside();
    session.text(now, JOIN);
    assert_eq!(errors(&drain(&mut session)), [(ErrorCode::AlreadyJoined, None)]);
    session.text(now, r#"{"type":"set_rung","track":"t9","max":"h+"}"#);
    assert_eq!(drain(&mut session), [Action::SetMaxRung(TrackId(9), Rung::HPlus)]);
}

#[test]
fn a_key_anchor_is_asked_for_unless_its_track_has_gone() {
    let (mut session, now) = inside();
    session.text(now, r#"{"type":"key_anchor","track":"t9"}"#);
    session.text(now, r#"{"type":"key_anchor","track":"t77"}"#);
    assert_eq!(drain(&mut session), [Action::KeyAnchor(TrackId(9))]);
}

#[test]
fn after_leave_the_socket_can_join_again() {
    let (mut session, now) = inside();
    session.text(now, r#"{"type":"leave"}"#);
    assert_eq!(drain(&mut session), [Action::Leave]);
    session.text(now, JOIN);
    assert!(matches!(session.poll(), Some(Action::Join { .. })));
}

#[test]
fn a_full_room_is_told_and_another_room_can_be_tried() {
    let (mut session, now) = outside();
    session.text(now, r#"{"type":"join","id":4,"version":1,"room":"tea","name":"Ana"}"#);
    session.poll();
    session.joined(Err(JoinError::RoomFull.into()));
    assert_eq!(errors(&drain(&mut session)), [(ErrorCode::RoomFull, Some(4))]);
    session.text(now, JOIN);
    assert!(matches!(session.poll(), Some(Action::Join { .. })));
}

#[test]
fn a_stopped_sfu_is_told_as_shutting_down() {
    let (mut session, now) = outside();
    session.text(now, JOIN);
    session.poll();
    session.joined(Err(JoinError::Closed.into()));
    let actions = drain(&mut session);
    assert_eq!(errors(&actions), [(ErrorCode::ShuttingDown, None)]);
    assert!(matches!(actions[1], Action::Close { code: close::RESTART, .. }));
    session.text(now, JOIN);
    assert_eq!(drain(&mut session), []);
}

#[test]
fn a_client_that_never_joins_is_closed_however_often_it_pings() {
    let (mut session, start) = outside();
    for s in 1..30 {
        session.text(start + Duration::from_secs(s), r#"{"type":"ping","time":0}"#);
    }
    drain(&mut session);
    session.tick(start + Duration::from_secs(30));
    assert_eq!(drain(&mut session), [Action::Close { code: close::IDLE, reason: "idle" }]);
}

#[test]
fn an_offer_reaches_the_sfu_and_its_failure_the_client() {
    let (mut session, now) = inside();
    session.text(
        now,
        r#"{"type":"offer","id":7,"sdp":"v=0","publish":[{"mid":"0","kind":"audio","name":"mic"}],
            "subscribe":[{"mid":"1","track":"t9"}]}"#,
    );
    let Some(Action::Offer { id: 7, offer }) = session.poll() else {
        panic!("no offer");
    };
    assert_eq!(offer.publish[0].kind, TrackKind::Audio);
    assert_eq!(offer.subscribe[0].track, TrackId(9));
    for (error, code) in [
        (OfferError::BadSdp("line 3".into()), ErrorCode::BadSdp),
        (OfferError::BadMid { mid: "1".into() }, ErrorCode::BadSdp),
        (OfferError::NoCodec { mid: "1".into() }, ErrorCode::NoCodec),
        (OfferError::UnknownTrack { track: TrackId(9) }, ErrorCode::UnknownTrack),
        (OfferError::TooLarge, ErrorCode::TooLarge),
        (OfferError::PayloadType { pt: 96 }, ErrorCode::BadSdp),
        (OfferError::TooManyLines { name: "rtpmap".into(), max: 128 }, ErrorCode::TooLarge),
        (OfferError::SubscribedTwice { track: TrackId(9) }, ErrorCode::Malformed),
    ] {
        session.answered(7, Err(error));
        assert_eq!(errors(&drain(&mut session)), [(code, Some(7))]);
    }
}

#[test]
fn an_answer_tells_own_tracks_which_can_be_muted_from_then_on() {
    let (mut session, now) = inside();
    let mute = r#"{"type":"mute","track":"t11","muted":true}"#;
    session.text(now, mute);
    assert_eq!(errors(&drain(&mut session)), [(ErrorCode::UnknownTrack, None)]);
    let tracks = vec![("0".to_owned(), TrackId(11))];
    session.answered(7, Ok(Answer { sdp: "v=0".into(), tracks }));
    let tracks = vec![OwnTrack { mid: "0".into(), track: "t11".into() }];
    let answer = ServerMessage::Answer { id: 7, sdp: "v=0".into(), tracks };
    assert_eq!(drain(&mut session), [Action::Send(answer)]);
    session.text(now, mute);
    assert_eq!(drain(&mut session), [Action::SetMuted(TrackId(11), true)]);
}

#[test]
fn tracks_that_nobody_has_are_unknown_but_a_late_report_is_not_an_error() {
    let (mut session, now) = inside();
    for text in [
        r#"{"type":"set_rung","track":"t8","max":"f"}"#,
        r#"{"type":"set_rung","track":"x","max":"f"}"#,
        r#"{"type":"mute","track":"x","muted":true}"#,
        r#"{"type":"offer","id":1,"sdp":"v=0","subscribe":[{"mid":"0","track":"x"}]}"#,
    ] {
        session.text(now, text);
        assert_eq!(errors(&drain(&mut session))[0].0, ErrorCode::UnknownTrack, "{text}");
    }
    session.event(SfuEvent::TrackRemoved { track: TrackId(9) }, someone);
    drain(&mut session);
    session.text(now, r#"{"type":"report","track":"t9"}"#);
    assert_eq!(drain(&mut session), []);
}

#[test]
fn events_of_the_room_become_messages() {
    let (mut session, _) = inside();
    let name = |id: ParticipantId| {
        let name = format!("name of {id}");
        Some(ParticipantInfo { name, ..ParticipantInfo::default() })
    };
    session.event(SfuEvent::ParticipantJoined { participant: ParticipantId(3) }, name);
    session.event(SfuEvent::TrackAdded(camera(10)), name);
    session.event(SfuEvent::TrackMuted { track: TrackId(10), muted: true }, name);
    let (track, rung, epoch) = (TrackId(10), Rung::QPlus, 2);
    let (size, scale, spatial_layers) = (Size::new(320, 180), 2, 1);
    let changed = SfuEvent::RungChanged { track, rung, epoch, size, scale, spatial_layers };
    session.event(changed, name);
    let (way, reason) = (Way::Flow, WayReason::NetworkOff);
    session.event(SfuEvent::Way { track, way, reason }, name);
    let stats = TrackStats {
        track: TrackId(10),
        media_bitrate: Bitrate::bps(150_000),
        anchor_bitrate: Bitrate::bps(60_000),
        anchors_per_s: 4.0,
        anchors_sent: 8,
        anchors_dropped: 1,
        refused: None,
    };
    session.event(SfuEvent::TrackStats(vec![stats]), name);
    session.event(SfuEvent::TrackRemoved { track: TrackId(10) }, name);
    session.event(SfuEvent::ParticipantLeft { participant: ParticipantId(3) }, name);
    let sent: Vec<String> = drain(&mut session)
        .iter()
        .map(|a| match a {
            Action::Send(m) => m.to_json(),
            other => panic!("{other:?}"),
        })
        .collect();
    let kinds = ["participant_joined", "track_added", "track_muted", "rung", "way", "stats"];
    for (text, kind) in sent.iter().zip(kinds.iter().chain(&["track_removed", "participant_left"]))
    {
        assert!(text.starts_with(&format!(r#"{{"type":"{kind}""#)), "{text}");
    }
    assert_eq!(sent.len(), 8);
    assert!(sent[0].contains("name of p3"));
}

#[test]
fn whoever_the_sfu_removes_hears_why() {
    for (why, code, closed) in [
        (DisconnectReason::Fault, ErrorCode::Internal, close::MEDIA_LOST),
        (DisconnectReason::NeverConnected, ErrorCode::NoMedia, close::MEDIA_LOST),
        (DisconnectReason::TooManyChannels, ErrorCode::TooLarge, close::REFUSED),
        (DisconnectReason::Flood, ErrorCode::RateLimited, close::REFUSED),
    ] {
        let (mut session, _) = inside();
        session.event(SfuEvent::Disconnected(why), someone);
        let actions = drain(&mut session);
        assert_eq!(errors(&actions), [(code, None)]);
        let close = Action::Close { code: closed, reason: "see the error message" };
        assert_eq!(actions[1..], [Action::Leave, close]);
    }
}

#[test]
fn a_lost_media_connection_closes_the_socket_once() {
    let (mut session, _) = inside();
    session.event(SfuEvent::Disconnected(DisconnectReason::Lost), someone);
    session.media_ended(DisconnectReason::Lost);
    let actions = drain(&mut session);
    assert_eq!(errors(&actions), [(ErrorCode::Internal, None)]);
    let close = Action::Close { code: close::MEDIA_LOST, reason: "see the error message" };
    assert_eq!(actions[1..], [Action::Leave, close]);
}

#[test]
fn a_flood_is_answered_once_a_second_and_then_cut() {
    let (mut session, now) = inside();
    let config = SessionConfig::default();
    for _ in 0..config.messages.burst + 10 {
        session.text(now, "garbage");
    }
    let codes = errors(&drain(&mut session));
    assert_eq!(codes.iter().filter(|(c, _)| *c == ErrorCode::RateLimited).count(), 1);
    // The join took one message of the burst; the one error of the flood makes up for it.
    assert_eq!(codes.len() as u32, config.messages.burst);
    for _ in 0..=config.max_excess {
        session.text(now, "garbage");
    }
    assert!(drain(&mut session).iter().any(|a| matches!(a, Action::Close { .. })));
}

#[test]
fn new_tracks_have_a_rate_and_those_that_stay_cost_nothing() {
    let (mut session, now) = inside();
    let mut offer = |mids: &[String], later: u64| {
        let one = |mid| format!(r#"{{"mid":"{mid}","kind":"audio","name":"x"}}"#);
        let publish = mids.iter().map(one).collect::<Vec<_>>().join(",");
        let text = format!(
            r#"{{"type":"offer","id":7,"sdp":"v=0","publish":[{publish}],"subscribe":[]}}"#
        );
        session.text(now + Duration::from_secs(later), &text);
        drain(&mut session).iter().any(|action| matches!(action, Action::Offer { .. }))
    };
    let mids: Vec<String> = (0..8).map(|n| n.to_string()).collect();
    assert!(offer(&mids, 0) && offer(&[], 0) && offer(&mids, 0) && offer(&mids, 0));
    assert!(offer(&[], 0) && !offer(&mids, 1) && offer(&[], 1));
    assert!(offer(&mids, 9));
}

#[test]
fn offers_have_a_rate_of_their_own_and_each_one_is_answered() {
    let (mut session, now) = inside();
    let RateLimit { burst, per_second } = SessionConfig::default().offers;
    for _ in 0..burst + 2 {
        session.text(now, r#"{"type":"offer","id":7,"sdp":"v=0","publish":[],"subscribe":[]}"#);
    }
    let actions = drain(&mut session);
    let offers =
        |actions: &[Action]| actions.iter().filter(|a| matches!(a, Action::Offer { .. })).count();
    assert_eq!(offers(&actions), burst as usize);
    assert_eq!(errors(&actions), [(ErrorCode::RateLimited, Some(7)); 2]);
    let later = now + Duration::from_secs(1);
    for _ in 0..=per_second {
        session.text(later, r#"{"type":"offer","id":8,"sdp":"v=0","publish":[],"subscribe":[]}"#);
    }
    assert_eq!(offers(&drain(&mut session)), per_second as usize);
}

#[test]
fn a_silent_client_is_pinged_and_then_closed() {
    let (mut session, start) = inside();
    let at = |s| start + Duration::from_secs(s);
    session.tick(at(9));
    assert_eq!(drain(&mut session), []);
    session.tick(at(10));
    assert_eq!(drain(&mut session), [Action::Ping]);
    session.heard(at(11));
    session.tick(at(40));
    assert_eq!(drain(&mut session), [Action::Ping]);
    session.tick(at(41));
    let close = Action::Close { code: close::IDLE, reason: "idle" };
    assert_eq!(drain(&mut session), [Action::Leave, close]);
}

#[test]
fn shutting_down_is_told_before_the_socket_closes() {
    let (mut session, _) = inside();
    session.shut_down();
    let actions = drain(&mut session);
    assert_eq!(errors(&actions), [(ErrorCode::ShuttingDown, None)]);
    assert!(matches!(actions.last(), Some(Action::Close { code: close::RESTART, .. })));
}

#[test]
fn binary_and_unreadable_messages_are_told_apart() {
    let (mut session, now) = inside();
    session.binary(now);
    assert_eq!(errors(&drain(&mut session)), [(ErrorCode::Malformed, None)]);
    session.unreadable(true);
    let actions = drain(&mut session);
    assert_eq!(errors(&actions), [(ErrorCode::TooLarge, None)]);
    assert!(matches!(actions.last(), Some(Action::Close { code: close::TOO_LARGE, .. })));
}

/// Inside with these grants; what comes of a message.
fn said(grants: &[Grant], text: &str) -> Vec<Action> {
    let (mut session, now) = outside();
    session.text(now, JOIN);
    session.joined(Ok(entered(Grants::new(grants.iter().copied()))));
    drain(&mut session);
    session.text(now, text);
    drain(&mut session)
}

#[test]
fn what_a_token_does_not_grant_is_forbidden() {
    let publish = r#"{"type":"offer","id":7,"sdp":"v=0","publish":[{"mid":"0","kind":"audio","name":"mic"}]}"#;
    let subscribe = r#"{"type":"offer","id":7,"sdp":"v=0","subscribe":[{"mid":"1","track":"t9"}]}"#;
    let whole = r#"{"type":"key_anchor","id":7,"track":"t9"}"#;
    let all = Grant::PARTICIPANT;
    for (text, needed) in
        [(publish, Grant::Publish), (subscribe, Grant::Subscribe), (whole, Grant::Enhance)]
    {
        let without: Vec<_> = all.into_iter().filter(|grant| *grant != needed).collect();
        assert_eq!(errors(&said(&without, text)), [(ErrorCode::Forbidden, Some(7))], "{text}");
        assert_eq!(errors(&said(&all, text)), [], "{text}");
    }
    let neither = r#"{"type":"offer","id":7,"sdp":"v=0"}"#;
    assert!(matches!(said(&[], neither)[..], [Action::Offer { .. }]));
}

#[test]
fn a_token_that_is_refused_can_be_followed_by_a_better_one() {
    for (error, code) in [
        (AccessError::Missing, ErrorCode::Unauthorized),
        (AccessError::Expired, ErrorCode::TokenExpired),
        (AccessError::OtherRoom, ErrorCode::Forbidden),
    ] {
        let (mut session, now) = outside();
        session.text(now, JOIN);
        drain(&mut session);
        session.joined(Err(error.into()));
        assert_eq!(errors(&drain(&mut session)), [(code, None)]);
        session.text(now, JOIN);
        assert!(matches!(session.poll(), Some(Action::Join { .. })));
    }
}

#[test]
fn who_is_replaced_or_removed_is_told_so_and_not_that_media_was_lost() {
    for (end, code, closed) in [
        (End::Replaced, ErrorCode::Replaced, close::REPLACED),
        (End::Removed, ErrorCode::Removed, close::REMOVED),
    ] {
        let (mut session, now) = inside();
        session.commands(now, &Commands { end: Some(end), ..Commands::default() });
        session.event(SfuEvent::Disconnected(DisconnectReason::Lost), someone);
        let actions = drain(&mut session);
        assert_eq!(errors(&actions), [(code, None)]);
        let close = Action::Close { code: closed, reason: "see the error message" };
        assert_eq!(actions[1..], [Action::Leave, close]);
    }
}

#[test]
fn who_asks_for_a_room_of_another_server_is_sent_there_and_so_is_who_is_in_it() {
    let url = "wss://b/ws".to_owned();
    let told = Action::Moved(url.clone());
    let closed = Action::Close { code: close::MOVED, reason: "the room is on another server" };
    let (mut session, now) = outside();
    session.text(now, JOIN);
    drain(&mut session);
    session.redirect(url.clone());
    assert_eq!(drain(&mut session), [told.clone(), closed.clone()]);
    let (mut session, now) = inside();
    let end = Some(End::Moved { url, must: true });
    let ordered = Commands { end, ..Commands::default() };
    session.commands(now, &ordered);
    session.commands(now, &ordered);
    assert_eq!(drain(&mut session), [told]);
    session.commands(now, &Commands { end: Some(End::AllMoved), ..Commands::default() });
    assert_eq!(drain(&mut session), [Action::Leave, closed]);
}

#[test]
fn who_is_sent_away_is_served_until_it_has_arrived_with_the_others_or_for_some_seconds() {
    let arrived = r#"{"type":"arrived"}"#;
    let (mut session, now) = inside();
    session.text(now, arrived);
    assert_eq!(drain(&mut session), [], "nobody sent it anywhere");
    let moved = |must| Commands {
        end: Some(End::Moved { url: "wss://b/ws".to_owned(), must }),
        ..Commands::default()
    };
    session.commands(now, &moved(false));
    drain(&mut session);
    session.text(now, arrived);
    assert_eq!(drain(&mut session), [Action::Arrived]);
    let late = now + SessionConfig::default().moving;
    session.tick(late);
    assert_eq!(drain(&mut session), [], "it may stay");
    let now = late;
    let late = now + SessionConfig::default().moving;
    session.commands(now, &moved(true));
    let told = Action::Moved("wss://b/ws".to_owned());
    assert_eq!(drain(&mut session), [told], "it may have failed, and must go now");
    session.commands(now, &moved(true));
    assert_eq!(drain(&mut session), []);
    session.tick(now + Duration::from_millis(5_999));
    assert_eq!(drain(&mut session), [Action::Ping]);
    session.tick(late);
    let closed = Action::Close { code: close::MOVED, reason: "the room is on another server" };
    assert_eq!(drain(&mut session), [Action::Leave, closed]);
}

#[test]
fn a_track_held_by_an_operator_stays_muted_until_it_is_let_go() {
    let (mut session, now) = inside();
    let tracks = vec![("0".to_owned(), TrackId(11))];
    session.answered(7, Ok(Answer { sdp: "v=0".into(), tracks }));
    drain(&mut session);
    let told = |muted| Action::Send(ServerMessage::TrackMuted { track: "t11".into(), muted });
    let hold = Commands { held: [TrackId(11), TrackId(9)].into(), ..Commands::default() };
    session.commands(now, &hold);
    // Others' tracks are others' to hold.
    assert_eq!(drain(&mut session), [Action::SetMuted(TrackId(11), true), told(true)]);
    session.commands(now, &hold);
    session.text(now, r#"{"type":"mute","track":"t11","muted":true}"#);
    assert_eq!(drain(&mut session), []);
    session.text(now, r#"{"type":"mute","track":"t11","muted":false}"#);
    assert_eq!(errors(&drain(&mut session)), [(ErrorCode::Forbidden, None)]);
    session.commands(now, &Commands::default());
    // As its owner last wanted it.
    assert_eq!(drain(&mut session), [Action::SetMuted(TrackId(11), true), told(true)]);
    session.text(now, r#"{"type":"mute","track":"t11","muted":false}"#);
    assert_eq!(drain(&mut session), [Action::SetMuted(TrackId(11), false)]);
}

fn ruling(grants: &[Grant]) -> Ruling {
    let grants = Grants::new(grants.iter().copied());
    Ruling {
        denied: None,
        grants,
        entry: Entry::default(),
        recording: false,
        waiting: std::sync::Arc::default(),
    }
}

#[test]
fn grants_that_change_are_told_and_hold_from_then_on() {
    let (mut session, now) = inside();
    session.ruling(now, &ruling(&[Grant::Subscribe]));
    let told = ServerMessage::Grants { grants: vec![Grant::Subscribe] };
    assert_eq!(drain(&mut session), [Action::Send(told)]);
    let publish =
        r#"{"type":"offer","id":1,"sdp":"v=0","publish":[{"mid":"0","kind":"video","name":"c"}]}"#;
    session.text(now, publish);
    assert_eq!(errors(&drain(&mut session)), [(ErrorCode::Forbidden, Some(1))]);
    session.ruling(now, &ruling(&Grant::PARTICIPANT));
    session.text(now, publish);
    assert!(matches!(drain(&mut session)[..], [_, Action::Offer { .. }]));
}

#[test]
fn who_is_put_out_hears_why_and_the_socket_is_closed() {
    for (out, code) in [
        (Denied::Removed, ErrorCode::Removed),
        (Denied::Banned, ErrorCode::Banned),
        (Denied::Revoked, ErrorCode::Revoked),
    ] {
        let (mut session, now) = inside();
        session.ruling(now, &Ruling { denied: Some(out), ..ruling(&[]) });
        let actions = drain(&mut session);
        assert_eq!(errors(&actions), [(code, None)]);
        let closes = |a: &Action| matches!(a, Action::Close { code: close::REMOVED, .. });
        assert!(closes(&actions[2]) && actions[1] == Action::Leave);
    }
}

#[test]
fn what_moderators_say_needs_the_grant() {
    let lock = r#"{"type":"moderate","id":7,"action":"lock","locked":true}"#;
    let (mut session, now) = inside();
    session.text(now, lock);
    assert_eq!(errors(&drain(&mut session)), [(ErrorCode::Forbidden, Some(7))]);
    session.ruling(now, &ruling(&[Grant::Moderate]));
    drain(&mut session);
    session.text(now, lock);
    let request = Moderate::Lock { locked: true };
    assert_eq!(drain(&mut session), [Action::Moderate { id: Some(7), request }]);
    session.moderated(Some(7), Ok(()));
    assert_eq!(drain(&mut session), [Action::Send(ServerMessage::Done { id: Some(7) })]);
}

#[test]
fn who_waits_is_told_so_and_may_leave_but_is_not_idle() {
    let (mut session, now) = outside();
    session.text(now, JOIN);
    session.waits();
    let actions = drain(&mut session);
    assert_eq!(actions[1], Action::Send(ServerMessage::Waiting {}));
    let later = now + SessionConfig::default().idle * 3;
    session.heard(later);
    session.tick(later);
    assert!(!drain(&mut session).iter().any(|a| matches!(a, Action::Close { .. })));
    session.text(later, r#"{"type":"leave"}"#);
    assert_eq!(drain(&mut session), [Action::Leave]);
    session.text(later, JOIN);
    session.waits();
    session.joined(Err(Denied::Refused.into()));
    let actions = drain(&mut session);
    assert_eq!(errors(&actions), [(ErrorCode::Refused, None)]);
}
