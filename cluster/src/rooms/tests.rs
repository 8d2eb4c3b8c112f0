use proptest::prelude::*;

use super::*;

fn lease(url: &str, participants: u32) -> Vec<u8> {
    let lease = NodeLease { url: url.to_owned(), relay: None, participants, draining: false };
    serde_json::to_vec(&lease).unwrap()
}

/// A write of the claim to `room` in place of that revision.
fn write(room: &str, replaces: u64, claim: Claim) -> ClaimWrite {
    ClaimWrite { room: room.to_owned(), replaces, claim }
}

fn of(node: &str, with: &[&str]) -> Claim {
    Claim { node: node.to_owned(), with: with.iter().map(ToString::to_string).collect() }
}

/// That many participants on this server, of at most three, and none on others.
fn load(here: usize) -> Load<'static> {
    static NONE: std::sync::LazyLock<HashMap<Arc<str>, usize>> =
        std::sync::LazyLock::new(HashMap::new);
    Load { local: here, max: 3, remote: &NONE }
}

/// A node, which knows of `a`, `b` and `c`, all of it read; they share rooms.
fn three(me: &str, now: Instant) -> Rooms {
    let mut rooms = Rooms::new(me);
    rooms.set_readable(Some(now));
    for (node, participants) in [("a", 3), ("b", 7), ("c", 5)] {
        let lease = NodeLease {
            url: format!("ws://{node}"),
            relay: Some(format!("http://{node}")),
            participants,
            draining: false,
        };
        rooms.on_lease(node, &serde_json::to_vec(&lease).unwrap(), now).unwrap();
    }
    rooms
}

fn claim(node: &str) -> Vec<u8> {
    serde_json::to_vec(&Claim::sole(node)).unwrap()
}

/// Node `a`, which knows of `a` and `b`, all of it read.
fn two(now: Instant) -> Rooms {
    let mut rooms = Rooms::new("a");
    rooms.set_readable(Some(now));
    rooms.on_lease("a", &lease("ws://a", 3), now).unwrap();
    rooms.on_lease("b", &lease("ws://b", 7), now).unwrap();
    rooms
}

#[test]
fn a_room_that_nobody_has_may_be_claimed_and_is_then_its_owners() {
    let now = Instant::now();
    let mut rooms = two(now);
    assert_eq!(rooms.place("r", &load(0), now), Placement::Claim(0));
    rooms.on_claim("r", &claim("a"), 4, now).unwrap();
    assert_eq!(rooms.place("r", &load(0), now), Placement::Local);
    rooms.on_claim("s", &claim("b"), 5, now).unwrap();
    assert_eq!(rooms.place("s", &load(0), now), Placement::Redirect("ws://b".into()));
    rooms.on_claim_released("s", 6);
    assert_eq!(rooms.place("s", &load(0), now), Placement::Claim(0));
}

#[test]
fn news_that_come_late_change_nothing() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.on_claim("r", &claim("b"), 9, now).unwrap();
    rooms.on_claim("r", &claim("a"), 8, now).unwrap();
    rooms.on_claim_released("r", 7);
    assert_eq!(rooms.place("r", &load(0), now), Placement::Redirect("ws://b".into()));
}

#[test]
fn the_rooms_of_a_node_that_is_lost_may_be_claimed_once_its_lease_has_ended() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.on_claim("r", &claim("b"), 9, now).unwrap();
    let doubtful = now + Duration::from_secs(1);
    assert_eq!(rooms.place("r", &load(0), doubtful), Placement::RetryAt(now + LEASE_TIMEOUT));
    let later = now + LEASE_TIMEOUT;
    let wait = Placement::RetryAt(later + RENEW_INTERVAL / 3);
    assert_eq!(rooms.place("r", &load(0), later), wait, "its own is not heard either");
    rooms.on_lease("a", &lease("ws://a", 3), later).unwrap();
    assert_eq!(rooms.place("r", &load(0), later), Placement::Claim(9));
    rooms.on_lease_released("b");
    assert_eq!(rooms.place("r", &load(0), later), Placement::Claim(9), "it said so itself");
}

#[test]
fn where_nothing_can_be_read_rooms_are_served_where_they_are_asked_for() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.on_claim("r", &claim("b"), 9, now).unwrap();
    rooms.set_readable(None);
    assert_eq!(rooms.place("r", &load(0), now + LEASE_TIMEOUT * 9), Placement::Local);
    let back = now + LEASE_TIMEOUT * 10;
    rooms.set_readable(Some(back));
    assert_eq!(
        rooms.place("r", &load(0), back),
        Placement::Redirect("ws://b".into()),
        "its lease could not be read"
    );
    assert_eq!(rooms.place("r", &load(1), back), Placement::Local, "participants are here");
    let local = HashSet::from(["r".to_owned(), "s".to_owned()]);
    let actions = rooms.reconcile(&local, back);
    assert_eq!(actions.must_move, [("r".to_owned(), "ws://b".into())]);
    assert_eq!(actions.claim, [write("s", 0, Claim::sole("a"))]);
    assert_eq!(rooms.reconcile(&local, back + LEASE_TIMEOUT).must_move, []);
}

#[test]
fn claims_of_rooms_that_have_ended_are_given_up_but_not_before_they_were_entered() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.on_claim("r", &claim("a"), 9, now).unwrap();
    assert_eq!(rooms.reconcile(&HashSet::new(), now), ReconcileActions::default());
    let later = now + JOIN_GRACE;
    assert_eq!(
        rooms.reconcile(&HashSet::from(["r".to_owned()]), later),
        ReconcileActions::default()
    );
    assert_eq!(rooms.reconcile(&HashSet::new(), later).release, [("r".to_owned(), 9)]);
    rooms.on_lease("a", &lease("ws://a", 3), later).unwrap();
    assert_eq!(rooms.place("r", &load(0), later), Placement::Claim(0), "it must be claimed anew");
}

#[test]
fn a_node_that_ends_soon_sends_new_rooms_to_the_one_with_the_fewest_participants() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.on_lease("c", &lease("ws://c", 2), now).unwrap();
    rooms.drain();
    assert_eq!(rooms.place("r", &load(0), now), Placement::Redirect("ws://c".into()));
    assert_eq!(rooms.place("r", &load(1), now), Placement::Local);
    assert_eq!(rooms.others(now), ["ws://c".into(), "ws://b".into()]);
    rooms.on_lease_released("b");
    rooms.on_lease_released("c");
    assert_eq!(rooms.place("r", &load(0), now), Placement::Claim(0), "there is no other");
}

#[test]
fn a_node_claims_nothing_before_its_lease_is_there_and_its_claims_may_be_known_before() {
    let now = Instant::now();
    let mut rooms = Rooms::new("a");
    rooms.set_readable(Some(now));
    assert_eq!(rooms.place("r", &load(0), now), Placement::RetryAt(now + RENEW_INTERVAL / 3));
    rooms.on_lease("a", &lease("ws://a", 0), now).unwrap();
    rooms.on_claim("r", &claim("new"), 9, now).unwrap();
    assert_eq!(rooms.place("r", &load(0), now), Placement::RetryAt(now + LEASE_TIMEOUT));
    rooms.on_lease("a", &lease("ws://a", 0), now + LEASE_TIMEOUT).unwrap();
    assert_eq!(rooms.place("r", &load(0), now + LEASE_TIMEOUT), Placement::Claim(9));
}

#[test]
fn a_node_that_ends_gives_each_room_to_one_of_the_others_in_turn() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.on_lease("c", &lease("ws://c", 2), now).unwrap();
    rooms.on_claim("r", &claim("a"), 9, now).unwrap();
    let local = HashSet::from(["r".to_owned(), "s".to_owned(), "t".to_owned()]);
    let handoffs = rooms.handoffs(&local, now);
    let of = |node: &str| handoffs.iter().filter(|h| *h.write.claim.node == *node).count();
    assert_eq!((of("a"), of("b"), of("c")), (0, 1, 2));
    for Handoff { write, .. } in &handoffs {
        assert_eq!(write.replaces, if write.room == "r" { 9 } else { 0 });
    }
    rooms.set_readable(None);
    assert_eq!(rooms.handoffs(&local, now), []);
}

#[test]
fn of_nodes_that_know_the_same_one_has_a_room() {
    let now = Instant::now();
    for owner in ["a", "b", "c"] {
        let here = ["a", "b", "c"].map(|me| {
            let mut rooms = Rooms::new(me);
            rooms.set_readable(Some(now));
            for node in ["a", "b", "c"] {
                rooms.on_lease(node, &lease(&format!("ws://{node}"), 0), now).unwrap();
            }
            rooms.on_claim("r", &claim(owner), 1, now).unwrap();
            rooms.place("r", &load(0), now) == Placement::Local
        });
        assert_eq!(here.iter().filter(|&&here| here).count(), 1);
    }
}

#[test]
fn the_owner_of_a_full_room_has_another_take_whoever_comes() {
    let now = Instant::now();
    let mut rooms = three("a", now);
    rooms.apply_claim("r", &Claim::sole("a"), 4, now);
    assert_eq!(rooms.place("r", &load(2), now), Placement::Local);
    let Placement::AddNode(handoff) = rooms.place("r", &load(3), now) else { panic!("full") };
    assert_eq!((&*handoff.url, handoff.write), ("ws://c", write("r", 4, of("a", &["c"]))));
    rooms.apply_claim("r", &of("a", &["c"]), 5, now);
    assert_eq!(rooms.place("r", &load(3), now), Placement::Redirect("ws://c".into()));
    assert_eq!(rooms.place("r", &load(2), now), Placement::Local, "somebody has left");
    let remote = HashMap::from([("c".into(), 3)]);
    let full = Load { local: 3, max: 3, remote: &remote };
    let Placement::AddNode(handoff) = rooms.place("r", &full, now) else { panic!("both are full") };
    assert_eq!(handoff.write.claim, of("a", &["c", "b"]));
    rooms.apply_claim("r", &of("a", &["c", "b"]), 6, now);
    let remote = HashMap::from([("c".into(), 3), ("b".into(), 3)]);
    let full = Load { local: 3, max: 3, remote: &remote };
    assert_eq!(rooms.place("r", &full, now), Placement::Local, "there are no others");
}

#[test]
fn the_other_nodes_of_a_room_take_their_own_and_ask_its_owner_when_full() {
    let now = Instant::now();
    let mut rooms = three("c", now);
    rooms.apply_claim("r", &of("a", &["c"]), 5, now);
    assert_eq!(rooms.place("r", &load(0), now), Placement::Local);
    assert_eq!(rooms.place("r", &load(3), now), Placement::Redirect("ws://a".into()));
    let shared: Vec<_> = rooms.shared().map(|(r, with)| (r, with.len())).collect();
    assert_eq!(shared, [("r", 1)]);
    assert_eq!(rooms.reconcile(&HashSet::from(["r".to_owned()]), now), ReconcileActions::default());
    assert_eq!(rooms.relay_address("a"), Some("http://a".into()));
    // To a node that has nothing of it, the room is its owner's.
    let mut rooms = three("b", now);
    rooms.apply_claim("r", &of("a", &["c"]), 5, now);
    assert_eq!(rooms.place("r", &load(0), now), Placement::Redirect("ws://a".into()));
    assert_eq!(rooms.shared().count(), 0);
}

#[test]
fn a_node_without_a_link_for_others_keeps_its_rooms_to_itself() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.apply_claim("r", &Claim::sole("a"), 4, now);
    assert_eq!(rooms.place("r", &load(9), now), Placement::Local);
}

#[test]
fn where_the_owner_of_a_room_is_lost_one_of_its_other_nodes_has_it() {
    let now = Instant::now();
    let later = now + LEASE_TIMEOUT;
    let local = HashSet::from(["r".to_owned()]);
    let mut rooms = three("c", now);
    rooms.apply_claim("r", &of("a", &["c", "b"]), 5, now);
    rooms.on_link("a", true, now);
    rooms.on_link("b", true, now);
    assert_eq!(
        rooms.reconcile(&local, later),
        ReconcileActions::default(),
        "its lease alone says little"
    );
    rooms.on_link("a", false, now);
    assert_eq!(
        rooms.reconcile(&local, later),
        ReconcileActions::default(),
        "nor does it, unless its own is heard"
    );
    rooms.on_lease("c", &lease("ws://c", 5), later).unwrap();
    let actions = rooms.reconcile(&local, later);
    assert_eq!(actions.claim, [write("r", 5, of("c", &["b"]))]);
    // Whoever comes by another node is sent to one that has the room.
    let mut rooms = three("d", now);
    rooms.on_lease("d", &lease("ws://d", 0), now).unwrap();
    rooms.apply_claim("r", &of("a", &["c", "b"]), 5, now);
    rooms.on_lease_released("a");
    rooms.claims.get_mut("r").unwrap().since = now.checked_sub(LEASE_TIMEOUT).unwrap();
    assert_eq!(rooms.place("r", &load(0), now), Placement::Redirect("ws://c".into()));
}

#[test]
fn what_claims_said_of_a_shared_room_is_written_again_when_they_are_lost() {
    let now = Instant::now();
    let mut rooms = three("c", now);
    rooms.apply_claim("r", &of("a", &["c", "b"]), 5, now);
    rooms.forget_claims();
    assert_eq!(rooms.shared().count(), 1, "links stay");
    let actions = rooms.reconcile(&HashSet::from(["r".to_owned()]), now);
    assert_eq!(actions.claim, [write("r", 0, of("c", &["a", "b"]))]);
}

#[test]
fn a_node_that_ends_or_is_left_by_all_gives_a_shared_room_to_those_that_have_it() {
    let now = Instant::now();
    let local = HashSet::from(["r".to_owned()]);
    let mut rooms = three("a", now);
    rooms.apply_claim("r", &of("a", &["b", "c"]), 5, now);
    let handoffs = rooms.handoffs(&local, now);
    // Itself as well, until those who are on it are on another.
    assert_eq!((&handoffs[0].write.claim, &*handoffs[0].url), (&of("b", &["c", "a"]), "ws://b"));
    let actions = rooms.reconcile(&HashSet::new(), now + JOIN_GRACE / 10);
    assert_eq!(actions, ReconcileActions::default());
    let later = now + JOIN_GRACE;
    for (node, participants) in [("a", 3), ("b", 7), ("c", 5)] {
        rooms.on_lease(node, &lease(&format!("ws://{node}"), participants), later).unwrap();
    }
    let actions = rooms.reconcile(&HashSet::new(), later);
    assert_eq!(actions.claim, [write("r", 5, of("b", &["c"]))]);
    // One of the others goes to its owner.
    let mut rooms = three("c", now);
    rooms.apply_claim("r", &of("a", &["b", "c"]), 5, now);
    rooms.drain();
    let handoffs = rooms.handoffs(&local, now);
    assert_eq!((&handoffs[0].write.claim, &*handoffs[0].url), (&of("a", &["b", "c"]), "ws://a"));
    // Whoever came meanwhile goes there too.
    assert_eq!(rooms.reconcile(&local, now).must_move, [("r".to_owned(), "ws://a".into())]);
}

#[test]
fn a_node_of_a_room_that_cannot_be_reached_takes_nobody() {
    let now = Instant::now();
    let mut rooms = three("a", now);
    rooms.apply_claim("r", &of("a", &["c"]), 5, now);
    assert_eq!(
        rooms.place("r", &load(3), now),
        Placement::Redirect("ws://c".into()),
        "it may be soon"
    );
    let later = now + LINK_SETUP_TIMEOUT;
    for (node, participants) in [("a", 3), ("b", 7), ("c", 5)] {
        let relay = Some(format!("http://{node}"));
        let url = format!("ws://{node}");
        let lease = NodeLease { url, relay, participants, draining: false };
        rooms.on_lease(node, &serde_json::to_vec(&lease).unwrap(), later).unwrap();
    }
    let Placement::AddNode(handoff) = rooms.place("r", &load(3), later) else { panic!("full") };
    assert_eq!(handoff.write.claim, of("a", &["c", "b"]));
    rooms.on_link("c", true, later);
    assert_eq!(rooms.place("r", &load(3), later), Placement::Redirect("ws://c".into()));
    // One to which there was a link, and is none, is lost.
    rooms.apply_claim("t", &of("a", &["c"]), 7, later);
    rooms.on_link("c", false, later);
    let Placement::AddNode(handoff) = rooms.place("t", &load(3), later) else { panic!("full") };
    assert_eq!(handoff.write.claim, of("a", &["c", "b"]));
    // Nor does it send its own back to an owner whom it does not reach.
    rooms.apply_claim("s", &of("b", &["a"]), 6, now);
    assert_eq!(rooms.place("s", &load(3), later), Placement::Local);
}

#[test]
fn nodes_that_are_lost_are_forgotten_unless_it_was_not_to_be_heard() {
    let now = Instant::now();
    let mut rooms = two(now);
    let later = now + NODE_FORGET_AFTER;
    rooms.on_lease("a", &lease("ws://a", 3), later).unwrap();
    rooms.set_readable(Some(later));
    rooms.reconcile(&HashSet::new(), later);
    assert_eq!(rooms.nodes.len(), 2, "it could not be read until now");
    rooms.set_readable(Some(now));
    rooms.reconcile(&HashSet::new(), later);
    assert_eq!(rooms.nodes.len(), 1);
}

#[test]
fn a_claim_is_written_again_before_it_ends_and_forgotten_after() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.on_claim("r", &claim("a"), 9, now).unwrap();
    let local = HashSet::from(["r".to_owned()]);
    let actions = rooms.reconcile(&local, now + CLAIM_REFRESH);
    assert_eq!(actions.claim, [write("r", 9, Claim::sole("a"))]);
    rooms.reconcile(&HashSet::new(), now + CLAIM_FORGET_AFTER);
    assert!(rooms.claims.is_empty());
}

#[test]
fn a_node_that_ends_keeps_no_room_that_it_does_not_serve() {
    let now = Instant::now();
    let mut rooms = two(now);
    rooms.on_claim("r", &claim("a"), 9, now).unwrap();
    rooms.drain();
    assert_eq!(rooms.reconcile(&HashSet::new(), now).release, [("r".to_owned(), 9)]);
}

#[test]
fn a_claim_of_too_many_nodes_is_refused() {
    let now = Instant::now();
    let mut rooms = three("a", now);
    let many = Claim { node: "a".into(), with: vec!["b".into(); record::MAX_WITH + 1] };
    let refused = rooms.on_claim("r", &serde_json::to_vec(&many).unwrap(), 1, now);
    assert!(matches!(refused, Err(RecordError::TooManyNodes(32))));
}

proptest! {
    #[test]
    fn a_room_is_read_from_its_key(name in ".{0,40}", other in ".{0,20}") {
        prop_assert_eq!(room_of_key(&room_key(&name)), Some(name));
        let _ = room_of_key(&other);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (mut rooms, now) = (Rooms::new("a"), Instant::now());
        let _ = rooms.on_lease("b", &bytes, now);
        let _ = rooms.on_claim("r", &bytes, 1, now);
    }
}

#[test]
fn whoever_is_cut_off_from_the_rest_of_a_room_may_go_to_its_owner() {
    let begin = Instant::now();
    let local = HashSet::from(["r".to_owned()]);
    let renew = |rooms: &mut Rooms, now| {
        for node in ["a", "b", "c"] {
            rooms.on_lease(node, &lease(&format!("ws://{node}"), 1), now).unwrap();
        }
    };
    let may_move = |me: &str, cut: &str, now: Instant| {
        let mut rooms = three(me, begin);
        rooms.apply_claim("r", &of("a", &["b", "c"]), 5, begin);
        for node in ["a", "b", "c"] {
            rooms.on_link(node, true, begin);
        }
        rooms.on_link(cut, false, begin);
        renew(&mut rooms, now);
        let actions = rooms.reconcile(&local, now);
        assert_eq!(actions.must_move, []);
        !actions.may_move.is_empty()
    };
    let later = begin + PARTITION_AFTER;
    assert!(may_move("b", "a", later), "from its owner");
    assert!(
        !may_move("b", "a", begin + Duration::from_millis(1_699)),
        "a node that is lost is not taken for cut off"
    );
    assert!(!may_move("a", "b", later), "the owner stays");
    assert!(may_move("c", "b", later) && !may_move("b", "c", later), "of two others one goes");
    // Nobody goes to one that is lost.
    let mut rooms = three("b", begin);
    rooms.apply_claim("r", &of("a", &["b"]), 5, begin);
    rooms.on_link("a", true, begin);
    rooms.on_link("a", false, begin);
    for node in ["b", "c"] {
        rooms.on_lease(node, &lease(&format!("ws://{node}"), 1), begin + LEASE_TIMEOUT).unwrap();
    }
    let actions = rooms.reconcile(&local, begin + LEASE_TIMEOUT);
    assert_eq!(actions.may_move, []);
}

#[test]
fn a_claim_that_others_have_written_over_is_written_again() {
    let now = Instant::now();
    let mut rooms = two(now);
    let local = HashSet::from(["r".to_owned()]);
    rooms.on_claim("r", &claim("a"), 4, now).unwrap();
    rooms.on_claim("s", &claim("b"), 5, now).unwrap();
    assert_eq!(rooms.reconcile(&local, now).claim, []);
    rooms.on_claim_overwritten("r");
    rooms.on_claim_overwritten("s");
    // It holds all the while.
    assert_eq!(rooms.place("r", &load(1), now), Placement::Local);
    assert_eq!(rooms.place("s", &load(0), now), Placement::Redirect("ws://b".into()));
    assert_eq!(rooms.reconcile(&local, now).claim, [write("r", 4, Claim::sole("a"))]);
    rooms.on_claim("r", &claim("a"), 7, now).unwrap();
    assert_eq!(rooms.reconcile(&local, now).claim, []);
}

#[test]
fn whoever_comes_by_tls_is_sent_to_no_server_without() {
    let now = Instant::now();
    let mut rooms = Rooms::new("a").reached_by("wss://a.example/ws");
    assert!(rooms.on_lease("b", &lease("wss://b.example/ws", 0), now).is_ok());
    let plain = rooms.on_lease("c", &lease("ws://c.example/ws", 0), now);
    assert!(matches!(plain, Err(RecordError::Plain)));
}

#[test]
fn what_is_no_servers_address_is_refused() {
    let now = Instant::now();
    for wrong in ["", "wss://", "wss:///ws", "https://b/ws", "ws://me:secret@b/ws", "ws://b c/ws"] {
        let read = Rooms::new("a").on_lease("b", &lease(wrong, 0), now);
        assert!(matches!(read, Err(RecordError::Address)), "{wrong}");
    }
    for fine in ["ws://[::1]:7880/ws", "wss://sfu-1.calls.example/ws?x=1", "ws://10.0.0.1:1"] {
        assert!(Rooms::new("a").on_lease("b", &lease(fine, 0), now).is_ok(), "{fine}");
    }
}
