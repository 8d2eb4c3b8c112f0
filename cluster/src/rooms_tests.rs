use proptest::prelude::*;

use super::*;

fn lease(url: &str, participants: u32) -> Vec<u8> {
    let lease = NodeLease { url: url.to_owned(), participants, draining: false };
    serde_json::to_vec(&lease).unwrap()
}

fn claim(node: &str) -> Vec<u8> {
    serde_json::to_vec(&Claim { node: node.to_owned() }).unwrap()
}

/// Node `a`, which knows of `a` and `b`, all of it read.
fn two(now: Instant) -> Rooms {
    let mut rooms = Rooms::new("a");
    rooms.readable(Some(now));
    rooms.renewed("a", &lease("ws://a", 3), now).unwrap();
    rooms.renewed("b", &lease("ws://b", 7), now).unwrap();
    rooms
}

#[test]
fn a_room_that_nobody_has_may_be_claimed_and_is_then_its_owners() {
    let now = Instant::now();
    let mut rooms = two(now);
    assert_eq!(rooms.place("r", false, now), Place::Claim(0));
    rooms.claimed("r", &claim("a"), 4, now).unwrap();
    assert_eq!(rooms.place("r", false, now), Place::Here);
    rooms.claimed("s", &claim("b"), 5, now).unwrap();
    assert_eq!(rooms.place("s", false, now), Place::At("ws://b".into()));
    rooms.released("s", 6);
    assert_eq!(rooms.place("s", false, now), Place::Claim(0));
}

#[test]
fn news_that_come_late_change_nothing() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.claimed("r", &claim("b"), 9, now).unwrap();
    rooms.claimed("r", &claim("a"), 8, now).unwrap();
    rooms.released("r", 7);
    assert_eq!(rooms.place("r", false, now), Place::At("ws://b".into()));
}

#[test]
fn the_rooms_of_a_node_that_is_lost_may_be_claimed_once_its_lease_has_ended() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.claimed("r", &claim("b"), 9, now).unwrap();
    let doubtful = now + Duration::from_secs(1);
    assert_eq!(rooms.place("r", false, doubtful), Place::Wait(now + HOLDS));
    assert_eq!(rooms.place("r", false, now + HOLDS), Place::Claim(9));
    rooms.given_up("b");
    let later = now + HOLDS;
    rooms.renewed("a", &lease("ws://a", 3), later).unwrap();
    assert_eq!(rooms.place("r", false, later), Place::Claim(9), "it said so itself");
}

#[test]
fn where_nothing_can_be_read_rooms_are_served_where_they_are_asked_for() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.claimed("r", &claim("b"), 9, now).unwrap();
    rooms.readable(None);
    assert_eq!(rooms.place("r", false, now + HOLDS * 9), Place::Here);
    let back = now + HOLDS * 10;
    rooms.readable(Some(back));
    assert_eq!(
        rooms.place("r", false, back),
        Place::At("ws://b".into()),
        "its lease could not be read"
    );
    assert_eq!(rooms.place("r", true, back), Place::Here, "participants are here");
    let local = HashSet::from(["r".to_owned(), "s".to_owned()]);
    let tidy = rooms.tidy(&local, back);
    assert_eq!(tidy.moved, [("r".to_owned(), "ws://b".into())]);
    assert_eq!(tidy.claim, [("s".to_owned(), 0)]);
    assert_eq!(rooms.tidy(&local, back + HOLDS).moved, []);
}

#[test]
fn claims_of_rooms_that_have_ended_are_given_up_but_not_before_they_were_entered() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.claimed("r", &claim("a"), 9, now).unwrap();
    assert_eq!(rooms.tidy(&HashSet::new(), now), Tidy::default());
    let later = now + ENTERING;
    assert_eq!(rooms.tidy(&HashSet::from(["r".to_owned()]), later), Tidy::default());
    assert_eq!(rooms.tidy(&HashSet::new(), later).release, [("r".to_owned(), 9)]);
    assert_eq!(rooms.place("r", false, later), Place::Claim(0), "it must be claimed anew");
}

#[test]
fn a_node_that_ends_soon_sends_new_rooms_to_the_one_with_the_fewest_participants() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.renewed("c", &lease("ws://c", 2), now).unwrap();
    rooms.drain();
    assert_eq!(rooms.place("r", false, now), Place::At("ws://c".into()));
    assert_eq!(rooms.place("r", true, now), Place::Here);
    assert_eq!(rooms.others(now), ["ws://c".into(), "ws://b".into()]);
    rooms.given_up("b");
    rooms.given_up("c");
    assert_eq!(rooms.place("r", false, now), Place::Claim(0), "there is no other");
}

#[test]
fn a_node_claims_nothing_before_its_lease_is_there_and_its_claims_may_be_known_before() {
    let now = Instant::now();
    let mut rooms = Rooms::new("a");
    rooms.readable(Some(now));
    assert_eq!(rooms.place("r", false, now), Place::Wait(now + RENEW / 3));
    rooms.renewed("a", &lease("ws://a", 0), now).unwrap();
    rooms.claimed("r", &claim("new"), 9, now).unwrap();
    assert_eq!(rooms.place("r", false, now), Place::Wait(now + HOLDS));
    assert_eq!(rooms.place("r", false, now + HOLDS), Place::Claim(9));
}

#[test]
fn a_node_that_ends_gives_each_room_to_one_of_the_others_in_turn() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.renewed("c", &lease("ws://c", 2), now).unwrap();
    rooms.claimed("r", &claim("a"), 9, now).unwrap();
    let local = HashSet::from(["r".to_owned(), "s".to_owned(), "t".to_owned()]);
    let given = rooms.hand_over(&local, now);
    let of = |node: &str| given.iter().filter(|given| *given.node == *node).count();
    assert_eq!((of("a"), of("b"), of("c")), (0, 1, 2));
    for Given { room, revision, .. } in &given {
        assert_eq!(*revision, if room == "r" { 9 } else { 0 });
    }
    rooms.readable(None);
    assert_eq!(rooms.hand_over(&local, now), []);
}

#[test]
fn of_nodes_that_know_the_same_one_has_a_room() {
    let now = Instant::now();
    for owner in ["a", "b", "c"] {
        let here = ["a", "b", "c"].map(|me| {
            let mut rooms = Rooms::new(me);
            rooms.readable(Some(now));
            for node in ["a", "b", "c"] {
                rooms.renewed(node, &lease(&format!("ws://{node}"), 0), now).unwrap();
            }
            rooms.claimed("r", &claim(owner), 1, now).unwrap();
            rooms.place("r", false, now) == Place::Here
        });
        assert_eq!(here.iter().filter(|&&here| here).count(), 1);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (mut rooms, now) = (Rooms::new("a"), Instant::now());
        let _ = rooms.renewed("b", &bytes, now);
        let _ = rooms.claimed("r", &bytes, 1, now);
    }
}
