//! Identities, rooms and commands.

use super::*;

const ONE: ParticipantId = ParticipantId(1);
const TWO: ParticipantId = ParticipantId(2);
const THREE: ParticipantId = ParticipantId(3);

fn ana() -> ParticipantInfo {
    ParticipantInfo { name: "Ana".into(), identity: Some("ana".into()), ..Default::default() }
}

fn guest() -> ParticipantInfo {
    ParticipantInfo { name: "Ana".into(), identity: None, ..Default::default() }
}

fn enter(directory: &Directory, id: ParticipantId, room: &str, who: ParticipantInfo) -> Registered {
    let seat = directory.enter(id, room, who, Grants::participant(), 5, no_seats).unwrap();
    directory.entered(id);
    seat
}

/// Seats by an admission control that counts nobody.
#[expect(clippy::unnecessary_wraps, reason = "seats may be refused")]
fn no_seats(_begins: bool) -> Result<Slots, Refused> {
    Ok(Slots::default())
}

#[test]
fn an_identity_that_comes_again_takes_the_seat_of_the_first() {
    let directory = Directory::default();
    let first = enter(&directory, ONE, "tea", ana());
    assert_eq!(first.former, None);
    assert_eq!(enter(&directory, TWO, "coffee", ana()).former, None);
    assert_eq!(enter(&directory, THREE, "tea", ana()).former, Some(ONE));
    assert_eq!(first.commands.borrow().end, Some(End::Replaced));
    // The first one's leaving takes nothing from the second.
    directory.leave(ONE);
    assert_eq!(directory.get(THREE), ana());
    assert_eq!(enter(&directory, ONE, "tea", ana()).former, Some(THREE));
}

#[test]
fn people_without_identity_replace_nobody() {
    let directory = Directory::default();
    let first = enter(&directory, ONE, "tea", guest());
    assert_eq!(enter(&directory, TWO, "tea", guest()).former, None);
    assert_eq!(first.commands.borrow().end, None);
    directory.leave(ONE);
    assert_eq!(directory.get(ONE), ParticipantInfo::someone());
}

#[test]
fn a_room_is_there_while_somebody_is_in_it_or_it_is_kept() {
    let directory = Directory::default();
    enter(&directory, ONE, "tea", guest());
    assert_eq!(directory.room("tea").unwrap().present[0].since, 5);
    directory.leave(ONE);
    assert!(directory.room("tea").is_none() && directory.rooms().is_empty());
    let kept = RoomSettings { kept: true, ..RoomSettings::default() };
    assert!(directory.configure("tea", kept));
    enter(&directory, ONE, "tea", guest());
    directory.leave(ONE);
    assert_eq!(directory.rooms().len(), 1);
    assert!(directory.configure("tea", RoomSettings::default()));
    assert!(directory.rooms().is_empty());
}

#[test]
fn a_limited_room_takes_no_more_but_the_same_identity_again() {
    let directory = Directory::default();
    let settings =
        RoomSettings { max_participants: Some(1), kept: true, ..RoomSettings::default() };
    directory.configure("tea", settings);
    enter(&directory, ONE, "tea", ana());
    let refused = directory.enter(TWO, "tea", guest(), Grants::participant(), 5, no_seats);
    assert_eq!(refused.unwrap_err(), JoinError::RoomFull.into());
    assert_eq!(enter(&directory, THREE, "tea", ana()).former, Some(ONE));
}

#[test]
fn rooms_with_settings_have_a_bound() {
    let directory = Directory::default();
    let kept = || RoomSettings { kept: true, ..RoomSettings::default() };
    assert!((0..MAX_KEPT_ROOMS).all(|n| directory.configure(&format!("r{n}"), kept())));
    assert!(!directory.configure("one-more", kept()));
    assert!(directory.configure("r7", kept()), "one that is there already can be changed");
}

#[test]
fn who_is_still_entering_is_not_seen() {
    let directory = Directory::default();
    directory.enter(ONE, "tea", guest(), Grants::participant(), 5, no_seats).unwrap();
    assert!(directory.room("tea").unwrap().present.is_empty());
    directory.entered(ONE);
    assert_eq!(directory.room("tea").unwrap().present.len(), 1);
}

#[test]
fn somebody_is_removed_from_their_own_room_only() {
    let directory = Directory::default();
    let seat = enter(&directory, ONE, "tea", guest());
    assert!(!directory.remove("coffee", ONE));
    assert_eq!(seat.commands.borrow().end, None);
    assert!(directory.remove("tea", ONE));
    assert_eq!(seat.commands.borrow().end, Some(End::Removed));
}

#[test]
fn everybody_of_a_room_is_sent_away_and_nobody_else() {
    let directory = Directory::default();
    let seats = [enter(&directory, ONE, "tea", guest()), enter(&directory, TWO, "coffee", guest())];
    assert_eq!(directory.occupied(), [("coffee".to_owned(), 1), ("tea".to_owned(), 1)]);
    assert_eq!((directory.count("tea"), directory.count("cocoa")), (1, 0));
    assert!(directory.send_away("tea", "wss://b/ws", true));
    assert!(!directory.send_away("tea", "wss://b/ws", true), "it is no news");
    let ends = seats.map(|seat| seat.commands.borrow().end.clone());
    assert_eq!(ends, [Some(End::Moved { url: "wss://b/ws".to_owned(), must: true }), None]);
}

#[test]
fn who_was_sent_away_stays_until_all_of_the_room_have_arrived_or_left() {
    let directory = Directory::default();
    let three = ParticipantId(3);
    let seats = [ONE, TWO, three].map(|id| enter(&directory, id, "tea", guest()));
    let ends = || seats.each_ref().map(|seat| seat.commands.borrow().end.clone());
    directory.arrived(ONE);
    assert_eq!(ends(), [None, None, None], "nobody was sent anywhere");
    directory.send_away("tea", "wss://b/ws", true);
    let sent = Some(End::Moved { url: "wss://b/ws".to_owned(), must: true });
    directory.arrived(ONE);
    directory.arrived(TWO);
    assert_eq!(ends(), [sent.clone(), sent.clone(), sent]);
    directory.leave(three);
    assert_eq!(ends()[..2], [Some(End::AllMoved), Some(End::AllMoved)]);
}

#[test]
fn who_was_sent_away_is_not_replaced_by_itself_on_the_other_server() {
    let directory = Directory::default();
    let seat = enter(&directory, ONE, "tea", ana());
    directory.send_away("tea", "wss://b/ws", true);
    let itself = ParticipantInfo { was: Some(ONE.to_string()), ..ana() };
    directory.remote_joined(TWO, "tea", itself, u64::MAX);
    assert_eq!(
        seat.commands.borrow().end,
        Some(End::Moved { url: "wss://b/ws".to_owned(), must: true })
    );
    directory.remote_joined(ParticipantId(3), "tea", ana(), u64::MAX);
    assert_eq!(seat.commands.borrow().end, Some(End::Replaced), "but by another");
}

#[test]
fn who_comes_back_takes_its_own_place_also_without_an_identity() {
    let directory = Directory::default();
    let first = enter(&directory, ONE, "tea", guest());
    let back = |was: ParticipantId| ParticipantInfo { was: Some(was.to_string()), ..guest() };
    assert_eq!(enter(&directory, TWO, "coffee", back(ONE)).former, None, "it is another room");
    assert_eq!(enter(&directory, THREE, "tea", back(ONE)).former, Some(ONE));
    assert_eq!(first.commands.borrow().end, Some(End::Replaced));
}

#[test]
fn who_comes_back_at_another_server_leaves_this_one() {
    let directory = Directory::default();
    let first = enter(&directory, ONE, "tea", guest());
    let back = ParticipantInfo { was: Some(ONE.to_string()), ..guest() };
    directory.remote_joined(TWO, "coffee", back.clone(), 0);
    assert_eq!(first.commands.borrow().end, None, "it is another room");
    directory.remote_joined(THREE, "tea", back, 0);
    assert_eq!(first.commands.borrow().end, Some(End::Replaced));
}

#[test]
fn tracks_are_held_in_their_own_room_and_forgotten_with_their_offer() {
    let directory = Directory::default();
    let seat = enter(&directory, ONE, "tea", guest());
    let track = TrackId(7);
    let camera = || Agreed {
        published: vec![Published { track, kind: TrackKind::Video, name: "camera".to_owned() }],
        ..Agreed::default()
    };
    directory.negotiated(ONE, camera());
    assert_eq!(directory.hold("coffee", track, true), None);
    assert!(directory.hold("tea", track, true).is_some_and(|own| own.held && own.muted));
    assert_eq!(seat.commands.borrow().held, [track].into());
    // Another offer with the same track changes nothing of it.
    directory.negotiated(ONE, camera());
    assert!(directory.room("tea").unwrap().present[0].tracks[&track].held);
    assert!(directory.hold("tea", track, false).is_some_and(|own| !own.held));
    assert!(seat.commands.borrow().held.is_empty());
    directory.negotiated(ONE, Agreed::default());
    assert_eq!(directory.hold("tea", track, true), None);
}

#[test]
fn rungs_are_seen_until_their_track_or_subscription_ends() {
    let directory = Directory::default();
    enter(&directory, ONE, "tea", guest());
    let given = GivenRung { rung: Rung::HPlus, size: Size::new(640, 360) };
    for track in [TrackId(7), TrackId(8), TrackId(9)] {
        directory.set_rung(ONE, track, Some(given));
    }
    directory.set_rung(ONE, TrackId(7), None);
    let subscribed = [TrackId(7), TrackId(9)].into();
    directory.negotiated(ONE, Agreed { subscribed, ..Agreed::default() });
    let room = directory.room("tea").unwrap();
    assert_eq!(room.present[0].rungs, [(TrackId(9), given)].into());
}

#[test]
fn attributes_and_names_change_here_and_on_other_servers() {
    let directory = Directory::default();
    let _seat = enter(&directory, ONE, "tea", guest());
    let up: Attributes = [("hand".to_owned(), "up".to_owned())].into();
    directory.set_attributes(ONE, None, up.clone());
    let changed = ParticipantInfo { attributes: up.clone(), ..guest() };
    assert_eq!(directory.find(ONE), Some(changed));
    directory.set_attributes(ONE, Some("Anna".into()), Attributes::new());
    assert_eq!(directory.find(ONE), Some(ParticipantInfo { name: "Anna".into(), ..guest() }));
    directory.remote_joined(TWO, "tea", guest(), 0);
    directory.remote_changed(TWO, "Bo".into(), up.clone());
    let changed = ParticipantInfo { name: "Bo".into(), attributes: up.clone(), ..guest() };
    assert_eq!(directory.find(TWO), Some(changed));
    directory.remote_left(TWO);
    directory.remote_changed(TWO, "Bo".into(), up);
    assert_eq!(directory.find(TWO), None);
}

#[test]
fn the_place_of_a_participant_is_taken_once() {
    let directory = Directory::default();
    let four = ParticipantId(4);
    let back = || ParticipantInfo { was: Some("p9".into()), ..guest() };
    assert_eq!(enter(&directory, ONE, "tea", back()).former, None);
    assert_eq!(enter(&directory, TWO, "coffee", back()).former, None, "another room");
    assert_eq!(enter(&directory, THREE, "tea", back()).former, Some(ONE));
    assert_eq!(directory.get(THREE).was, Some("p9".into()));
    directory.leave(THREE);
    directory.remote_joined(ONE, "tea", back(), 5);
    assert_eq!(enter(&directory, four, "tea", back()).former, None);
    assert_eq!(directory.get(four).was, None, "who is on another server has it");
}
