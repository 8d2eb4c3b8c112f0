use proptest::prelude::*;

use super::*;

fn lease(url: &str, participants: u32) -> Vec<u8> {
    let lease = NodeLease { url: url.to_owned(), relay: None, participants, draining: false };
    serde_json::to_vec(&lease).unwrap()
}

fn alone(node: &str) -> Claim {
    Claim { node: node.to_owned(), with: Vec::new() }
}

fn of(node: &str, with: &[&str]) -> Claim {
    Claim { node: node.to_owned(), with: with.iter().map(ToString::to_string).collect() }
}

/// So many here, where three are enough.
fn crowd(here: usize) -> Crowd<'static> {
    static NONE: std::sync::LazyLock<HashMap<Arc<str>, usize>> =
        std::sync::LazyLock::new(HashMap::new);
    Crowd { here, most: 3, afar: &NONE }
}

/// A node, which knows of `a`, `b` and `c`, all of it read; they share rooms.
fn three(me: &str, now: Instant) -> Rooms {
    let mut rooms = Rooms::new(me);
    rooms.readable(Some(now));
    for (node, participants) in [("a", 3), ("b", 7), ("c", 5)] {
        let lease = NodeLease {
            url: format!("ws://{node}"),
            relay: Some(format!("http://{node}")),
            participants,
            draining: false,
        };
        rooms.renewed(node, &serde_json::to_vec(&lease).unwrap(), now).unwrap();
    }
    rooms
}

fn claim(node: &str) -> Vec<u8> {
    serde_json::to_vec(&alone(node)).unwrap()
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
    assert_eq!(rooms.place("r", &crowd(0), now), Place::Claim(0));
    rooms.claimed("r", &claim("a"), 4, now).unwrap();
    assert_eq!(rooms.place("r", &crowd(0), now), Place::Here);
    rooms.claimed("s", &claim("b"), 5, now).unwrap();
    assert_eq!(rooms.place("s", &crowd(0), now), Place::At("ws://b".into()));
    rooms.released("s", 6);
    assert_eq!(rooms.place("s", &crowd(0), now), Place::Claim(0));
}

#[test]
fn news_that_come_late_change_nothing() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.claimed("r", &claim("b"), 9, now).unwrap();
    rooms.claimed("r", &claim("a"), 8, now).unwrap();
    rooms.released("r", 7);
    assert_eq!(rooms.place("r", &crowd(0), now), Place::At("ws://b".into()));
}

#[test]
fn the_rooms_of_a_node_that_is_lost_may_be_claimed_once_its_lease_has_ended() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.claimed("r", &claim("b"), 9, now).unwrap();
    let doubtful = now + Duration::from_secs(1);
    assert_eq!(rooms.place("r", &crowd(0), doubtful), Place::Wait(now + HOLDS));
    let later = now + HOLDS;
    let wait = Place::Wait(later + RENEW / 3);
    assert_eq!(rooms.place("r", &crowd(0), later), wait, "its own is not heard either");
    rooms.renewed("a", &lease("ws://a", 3), later).unwrap();
    assert_eq!(rooms.place("r", &crowd(0), later), Place::Claim(9));
    rooms.given_up("b");
    assert_eq!(rooms.place("r", &crowd(0), later), Place::Claim(9), "it said so itself");
}

#[test]
fn where_nothing_can_be_read_rooms_are_served_where_they_are_asked_for() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.claimed("r", &claim("b"), 9, now).unwrap();
    rooms.readable(None);
    assert_eq!(rooms.place("r", &crowd(0), now + HOLDS * 9), Place::Here);
    let back = now + HOLDS * 10;
    rooms.readable(Some(back));
    assert_eq!(
        rooms.place("r", &crowd(0), back),
        Place::At("ws://b".into()),
        "its lease could not be read"
    );
    assert_eq!(rooms.place("r", &crowd(1), back), Place::Here, "participants are here");
    let local = HashSet::from(["r".to_owned(), "s".to_owned()]);
    let tidy = rooms.tidy(&local, back);
    assert_eq!(tidy.moved, [("r".to_owned(), "ws://b".into())]);
    assert_eq!(tidy.claim, [("s".to_owned(), 0, alone("a"))]);
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
    rooms.renewed("a", &lease("ws://a", 3), later).unwrap();
    assert_eq!(rooms.place("r", &crowd(0), later), Place::Claim(0), "it must be claimed anew");
}

#[test]
fn a_node_that_ends_soon_sends_new_rooms_to_the_one_with_the_fewest_participants() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.renewed("c", &lease("ws://c", 2), now).unwrap();
    rooms.drain();
    assert_eq!(rooms.place("r", &crowd(0), now), Place::At("ws://c".into()));
    assert_eq!(rooms.place("r", &crowd(1), now), Place::Here);
    assert_eq!(rooms.others(now), ["ws://c".into(), "ws://b".into()]);
    rooms.given_up("b");
    rooms.given_up("c");
    assert_eq!(rooms.place("r", &crowd(0), now), Place::Claim(0), "there is no other");
}

#[test]
fn a_node_claims_nothing_before_its_lease_is_there_and_its_claims_may_be_known_before() {
    let now = Instant::now();
    let mut rooms = Rooms::new("a");
    rooms.readable(Some(now));
    assert_eq!(rooms.place("r", &crowd(0), now), Place::Wait(now + RENEW / 3));
    rooms.renewed("a", &lease("ws://a", 0), now).unwrap();
    rooms.claimed("r", &claim("new"), 9, now).unwrap();
    assert_eq!(rooms.place("r", &crowd(0), now), Place::Wait(now + HOLDS));
    rooms.renewed("a", &lease("ws://a", 0), now + HOLDS).unwrap();
    assert_eq!(rooms.place("r", &crowd(0), now + HOLDS), Place::Claim(9));
}

#[test]
fn a_node_that_ends_gives_each_room_to_one_of_the_others_in_turn() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.renewed("c", &lease("ws://c", 2), now).unwrap();
    rooms.claimed("r", &claim("a"), 9, now).unwrap();
    let local = HashSet::from(["r".to_owned(), "s".to_owned(), "t".to_owned()]);
    let given = rooms.hand_over(&local, now);
    let of = |node: &str| given.iter().filter(|given| *given.claim.node == *node).count();
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
            rooms.place("r", &crowd(0), now) == Place::Here
        });
        assert_eq!(here.iter().filter(|&&here| here).count(), 1);
    }
}

#[test]
fn the_owner_of_a_full_room_has_another_take_whoever_comes() {
    let now = Instant::now();
    let mut rooms = three("a", now);
    rooms.claimed_by("r", &alone("a"), 4, now);
    assert_eq!(rooms.place("r", &crowd(2), now), Place::Here);
    let Place::Spread(given) = rooms.place("r", &crowd(3), now) else { panic!("full") };
    assert_eq!((given.revision, &*given.url, given.claim), (4, "ws://c", of("a", &["c"])));
    rooms.claimed_by("r", &of("a", &["c"]), 5, now);
    assert_eq!(rooms.place("r", &crowd(3), now), Place::At("ws://c".into()));
    assert_eq!(rooms.place("r", &crowd(2), now), Place::Here, "somebody has left");
    let afar = HashMap::from([("c".into(), 3)]);
    let full = Crowd { here: 3, most: 3, afar: &afar };
    let Place::Spread(given) = rooms.place("r", &full, now) else { panic!("both are full") };
    assert_eq!(given.claim, of("a", &["c", "b"]));
    rooms.claimed_by("r", &of("a", &["c", "b"]), 6, now);
    let afar = HashMap::from([("c".into(), 3), ("b".into(), 3)]);
    let full = Crowd { here: 3, most: 3, afar: &afar };
    assert_eq!(rooms.place("r", &full, now), Place::Here, "there are no others");
}

#[test]
fn the_other_nodes_of_a_room_take_their_own_and_ask_its_owner_when_full() {
    let now = Instant::now();
    let mut rooms = three("c", now);
    rooms.claimed_by("r", &of("a", &["c"]), 5, now);
    assert_eq!(rooms.place("r", &crowd(0), now), Place::Here);
    assert_eq!(rooms.place("r", &crowd(3), now), Place::At("ws://a".into()));
    let shared: Vec<_> = rooms.shared().map(|(r, with)| (r, with.len())).collect();
    assert_eq!(shared, [("r", 1)]);
    assert_eq!(rooms.tidy(&HashSet::from(["r".to_owned()]), now), Tidy::default());
    assert_eq!(rooms.relay("a"), Some("http://a".into()));
    // To a node that has nothing of it, the room is its owner's.
    let mut rooms = three("b", now);
    rooms.claimed_by("r", &of("a", &["c"]), 5, now);
    assert_eq!(rooms.place("r", &crowd(0), now), Place::At("ws://a".into()));
    assert_eq!(rooms.shared().count(), 0);
}

#[test]
fn a_node_without_a_link_for_others_keeps_its_rooms_to_itself() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.claimed_by("r", &alone("a"), 4, now);
    assert_eq!(rooms.place("r", &crowd(9), now), Place::Here);
}

#[test]
fn where_the_owner_of_a_room_is_lost_one_of_its_other_nodes_has_it() {
    let now = Instant::now();
    let later = now + HOLDS;
    let local = HashSet::from(["r".to_owned()]);
    let mut rooms = three("c", now);
    rooms.claimed_by("r", &of("a", &["c", "b"]), 5, now);
    rooms.linked("a", true, now);
    rooms.linked("b", true, now);
    assert_eq!(rooms.tidy(&local, later), Tidy::default(), "its lease alone says little");
    rooms.linked("a", false, now);
    assert_eq!(rooms.tidy(&local, later), Tidy::default(), "nor does it, unless its own is heard");
    rooms.renewed("c", &lease("ws://c", 5), later).unwrap();
    let tidy = rooms.tidy(&local, later);
    assert_eq!(tidy.claim, [("r".to_owned(), 5, of("c", &["b"]))]);
    // Whoever comes by another node is sent to one that has the room.
    let mut rooms = three("d", now);
    rooms.renewed("d", &lease("ws://d", 0), now).unwrap();
    rooms.claimed_by("r", &of("a", &["c", "b"]), 5, now);
    rooms.given_up("a");
    rooms.owners.get_mut("r").unwrap().since = now.checked_sub(HOLDS).unwrap();
    assert_eq!(rooms.place("r", &crowd(0), now), Place::At("ws://c".into()));
}

#[test]
fn what_claims_said_of_a_shared_room_is_written_again_when_they_are_lost() {
    let now = Instant::now();
    let mut rooms = three("c", now);
    rooms.claimed_by("r", &of("a", &["c", "b"]), 5, now);
    rooms.forget_claims();
    assert_eq!(rooms.shared().count(), 1, "links stay");
    let tidy = rooms.tidy(&HashSet::from(["r".to_owned()]), now);
    assert_eq!(tidy.claim, [("r".to_owned(), 0, of("c", &["a", "b"]))]);
}

#[test]
fn a_node_that_ends_or_is_left_by_all_gives_a_shared_room_to_those_that_have_it() {
    let now = Instant::now();
    let local = HashSet::from(["r".to_owned()]);
    let mut rooms = three("a", now);
    rooms.claimed_by("r", &of("a", &["b", "c"]), 5, now);
    let given = rooms.hand_over(&local, now);
    // Itself as well, until those who are on it are on another.
    assert_eq!((&given[0].claim, &*given[0].url), (&of("b", &["c", "a"]), "ws://b"));
    let tidy = rooms.tidy(&HashSet::new(), now + ENTERING / 10);
    assert_eq!(tidy, Tidy::default());
    let later = now + ENTERING;
    for (node, participants) in [("a", 3), ("b", 7), ("c", 5)] {
        rooms.renewed(node, &lease(&format!("ws://{node}"), participants), later).unwrap();
    }
    let tidy = rooms.tidy(&HashSet::new(), later);
    assert_eq!(tidy.claim, [("r".to_owned(), 5, of("b", &["c"]))]);
    // One of the others goes to its owner.
    let mut rooms = three("c", now);
    rooms.claimed_by("r", &of("a", &["b", "c"]), 5, now);
    rooms.drain();
    let given = rooms.hand_over(&local, now);
    assert_eq!((&given[0].claim, &*given[0].url), (&of("a", &["b", "c"]), "ws://a"));
    // Whoever came meanwhile goes there too.
    assert_eq!(rooms.tidy(&local, now).moved, [("r".to_owned(), "ws://a".into())]);
}

#[test]
fn a_node_of_a_room_that_cannot_be_reached_takes_nobody() {
    let now = Instant::now();
    let mut rooms = three("a", now);
    rooms.claimed_by("r", &of("a", &["c"]), 5, now);
    assert_eq!(rooms.place("r", &crowd(3), now), Place::At("ws://c".into()), "it may be soon");
    let later = now + LINKED_BY;
    for (node, participants) in [("a", 3), ("b", 7), ("c", 5)] {
        let relay = Some(format!("http://{node}"));
        let url = format!("ws://{node}");
        let lease = NodeLease { url, relay, participants, draining: false };
        rooms.renewed(node, &serde_json::to_vec(&lease).unwrap(), later).unwrap();
    }
    let Place::Spread(given) = rooms.place("r", &crowd(3), later) else { panic!("full") };
    assert_eq!(given.claim, of("a", &["c", "b"]));
    rooms.linked("c", true, later);
    assert_eq!(rooms.place("r", &crowd(3), later), Place::At("ws://c".into()));
    // One to which there was a link, and is none, is lost.
    rooms.claimed_by("t", &of("a", &["c"]), 7, later);
    rooms.linked("c", false, later);
    let Place::Spread(given) = rooms.place("t", &crowd(3), later) else { panic!("full") };
    assert_eq!(given.claim, of("a", &["c", "b"]));
    // Nor does it send its own back to an owner whom it does not reach.
    rooms.claimed_by("s", &of("b", &["a"]), 6, now);
    assert_eq!(rooms.place("s", &crowd(3), later), Place::Here);
}

#[test]
fn nodes_that_are_lost_are_forgotten_unless_it_was_not_to_be_heard() {
    let now = Instant::now();
    let mut rooms = two(now);
    let later = now + FORGOTTEN;
    rooms.renewed("a", &lease("ws://a", 3), later).unwrap();
    rooms.readable(Some(later));
    rooms.tidy(&HashSet::new(), later);
    assert_eq!(rooms.nodes.len(), 2, "it could not be read until now");
    rooms.readable(Some(now));
    rooms.tidy(&HashSet::new(), later);
    assert_eq!(rooms.nodes.len(), 1);
}

#[test]
fn a_claim_is_written_again_before_it_ends_and_forgotten_after() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.claimed("r", &claim("a"), 9, now).unwrap();
    let local = HashSet::from(["r".to_owned()]);
    let tidy = rooms.tidy(&local, now + REFRESH);
    assert_eq!(tidy.claim, [("r".to_owned(), 9, alone("a"))]);
    rooms.tidy(&HashSet::new(), now + CLAIM_KNOWN);
    assert!(rooms.owners.is_empty());
}

#[test]
fn a_node_that_ends_keeps_no_room_that_it_does_not_serve() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.claimed("r", &claim("a"), 9, now).unwrap();
    rooms.drain();
    assert_eq!(rooms.tidy(&HashSet::new(), now).release, [("r".to_owned(), 9)]);
}

#[test]
fn a_claim_of_too_many_nodes_is_refused() {
    let now = Instant::now();
    let mut rooms = three("a", now);
    let many = Claim { node: "a".into(), with: vec!["b".into(); MOST_WITH + 1] };
    let refused = rooms.claimed("r", &serde_json::to_vec(&many).unwrap(), 1, now);
    assert!(matches!(refused, Err(BadNode::Many(32))));
}

proptest! {
    #[test]
    fn a_room_is_read_from_its_key(name in ".{0,40}", other in ".{0,20}") {
        prop_assert_eq!(room(&key(&name)), Some(name));
        let _ = room(&other);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (mut rooms, now) = (Rooms::new("a"), Instant::now());
        let _ = rooms.renewed("b", &bytes, now);
        let _ = rooms.claimed("r", &bytes, 1, now);
    }
}

#[test]
fn whoever_is_cut_off_from_the_rest_of_a_room_may_go_to_its_owner() {
    let begin = Instant::now();
    let local = HashSet::from(["r".to_owned()]);
    let renew = |rooms: &mut Rooms, now| {
        for node in ["a", "b", "c"] {
            rooms.renewed(node, &lease(&format!("ws://{node}"), 1), now).unwrap();
        }
    };
    let better = |me: &str, cut: &str, now: Instant| {
        let mut rooms = three(me, begin);
        rooms.claimed_by("r", &of("a", &["b", "c"]), 5, begin);
        for node in ["a", "b", "c"] {
            rooms.linked(node, true, begin);
        }
        rooms.linked(cut, false, begin);
        renew(&mut rooms, now);
        let tidy = rooms.tidy(&local, now);
        assert_eq!(tidy.moved, []);
        !tidy.better.is_empty()
    };
    let later = begin + PARTED;
    assert!(better("b", "a", later), "from its owner");
    assert!(
        !better("b", "a", begin + Duration::from_millis(1_699)),
        "a node that is lost is not taken for cut off"
    );
    assert!(!better("a", "b", later), "the owner stays");
    assert!(better("c", "b", later) && !better("b", "c", later), "of two others one goes");
    // Nobody goes to one that is lost.
    let mut rooms = three("b", begin);
    rooms.claimed_by("r", &of("a", &["b"]), 5, begin);
    rooms.linked("a", true, begin);
    rooms.linked("a", false, begin);
    for node in ["b", "c"] {
        rooms.renewed(node, &lease(&format!("ws://{node}"), 1), begin + HOLDS).unwrap();
    }
    let tidy = rooms.tidy(&local, begin + HOLDS);
    assert_eq!(tidy.better, []);
}

#[test]
fn a_claim_that_others_have_written_over_is_written_again() {
    let now = Instant::now();
    let mut rooms = two(now);
    let local = HashSet::from(["r".to_owned()]);
    rooms.claimed("r", &claim("a"), 4, now).unwrap();
    rooms.claimed("s", &claim("b"), 5, now).unwrap();
    assert_eq!(rooms.tidy(&local, now).claim, []);
    rooms.spoilt("r");
    rooms.spoilt("s");
    // It holds all the while.
    assert_eq!(rooms.place("r", &crowd(1), now), Place::Here);
    assert_eq!(rooms.place("s", &crowd(0), now), Place::At("ws://b".into()));
    assert_eq!(rooms.tidy(&local, now).claim, [("r".to_owned(), 4, alone("a"))]);
    rooms.claimed("r", &claim("a"), 7, now).unwrap();
    assert_eq!(rooms.tidy(&local, now).claim, []);
}

#[test]
fn whoever_comes_by_tls_is_sent_to_no_server_without() {
    let now = Instant::now();
    let mut rooms = Rooms::new("a").reached_by("wss://a.example/ws");
    assert!(rooms.renewed("b", &lease("wss://b.example/ws", 0), now).is_ok());
    let plain = rooms.renewed("c", &lease("ws://c.example/ws", 0), now);
    assert!(matches!(plain, Err(BadNode::Address)));
}

#[test]
fn what_is_no_servers_address_is_refused() {
    let now = Instant::now();
    for wrong in ["", "wss://", "wss:///ws", "https://b/ws", "ws://me:secret@b/ws", "ws://b c/ws"] {
        let read = Rooms::new("a").renewed("b", &lease(wrong, 0), now);
        assert!(matches!(read, Err(BadNode::Address)), "{wrong}");
    }
    for fine in ["ws://[::1]:7880/ws", "wss://sfu-1.calls.example/ws?x=1", "ws://10.0.0.1:1"] {
        assert!(Rooms::new("a").renewed("b", &lease(fine, 0), now).is_ok(), "{fine}");
    }
}
