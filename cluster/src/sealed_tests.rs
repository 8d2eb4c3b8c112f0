use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

const NOW: BusTime = BusTime(1_700_000_000_000);

const ROOM: Scope<'static> = Scope { bucket: "windlass-rooms", key: "r1" };

fn stored(at: BusTime, revision: u64) -> Stored {
    Stored { at, revision }
}

fn later(ms: u64) -> BusTime {
    BusTime(NOW.0 + ms)
}

static KEY: LazyLock<SealKey> =
    LazyLock::new(|| SealKey::of(&"a-cluster-of-these-tests".parse().unwrap()));

fn seals() -> Seals {
    Seals::new(KEY.clone(), "windlass-rooms")
}

#[test]
fn what_was_sealed_is_opened_by_who_has_the_same_token_only() {
    let sealed = seals().seal("r1", b"mine", NOW);
    assert_eq!(seals().open("r1", &sealed, stored(NOW, 1)), Ok(&b"mine"[..]));
    let other = SealKey::of(&"another-cluster-of-these".parse().unwrap());
    let other = Seals::new(other, "windlass-rooms");
    assert_eq!(other.open("r1", &sealed, stored(NOW, 1)), Err(SealError::Forged));
}

#[test]
fn a_seal_holds_for_its_bucket_key_time_and_content_alone() {
    let sealed = seals().seal("r1", b"mine", NOW);
    let elsewhere = Seals::new(KEY.clone(), "windlass-nodes");
    assert_eq!(elsewhere.open("r1", &sealed, stored(NOW, 1)), Err(SealError::Forged));
    assert_eq!(seals().open("r2", &sealed, stored(NOW, 1)), Err(SealError::Forged));
    // Nothing can be moved from one part to the next.
    let moved = KEY.seal(Scope { bucket: "windlass-room", key: "sr1" }, NOW, b"mine");
    assert_eq!(KEY.open(ROOM, &moved), Err(SealError::Forged));
    for at in 1..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        assert_eq!(
            seals().open("r1", &changed, stored(NOW, 1)),
            Err(SealError::Forged),
            "byte {at}"
        );
    }
}

#[test]
fn what_has_no_seal_is_refused() {
    for bytes in [&b""[..], b"{\"node\":\"evil\"}", &[b'{'; 200]] {
        assert_eq!(seals().open("r1", bytes, stored(NOW, 1)), Err(SealError::Unsealed));
    }
}

#[test]
fn what_is_written_again_later_is_refused() {
    let sealed = seals().seal("r1", b"mine", NOW);
    // By whoever has just begun, and knows nothing of the key.
    assert_eq!(seals().open("r1", &sealed, stored(later(10_001), 9)), Err(SealError::Replayed));
    // It may be read long after it was written.
    assert!(seals().open("r1", &sealed, stored(later(300), 2)).is_ok());
}

#[test]
fn of_a_key_nothing_older_than_what_is_known_is_taken() {
    let seals = seals();
    let [first, second] = [0, 300].map(|ms| seals.seal("r1", b"mine", later(ms)));
    assert!(seals.open("r1", &first, stored(later(5), 1)).is_ok());
    // The same message may be told twice.
    assert!(seals.open("r1", &first, stored(later(5), 1)).is_ok());
    assert!(seals.open("r1", &second, stored(later(305), 2)).is_ok());
    for again in [&first, &second] {
        assert_eq!(seals.open("r1", again, stored(later(900), 3)), Err(SealError::Replayed));
    }
    // Another key has times of its own.
    let other = seals.seal("r2", b"mine", NOW);
    assert!(seals.open("r2", &other, stored(later(1), 4)).is_ok());
}

#[test]
fn whoever_writes_in_the_place_of_another_is_newer_however_its_clock_stands() {
    let (ours, theirs) = (seals(), seals());
    let sealed = theirs.seal("r1", b"theirs", later(40));
    assert!(ours.open("r1", &sealed, stored(later(40), 1)).is_ok());
    // This one's estimate of the bus's time is somewhat behind.
    let sealed = ours.seal("r1", b"ours", NOW);
    assert!(ours.open("r1", &sealed, stored(later(45), 2)).is_ok());
}

#[test]
fn when_the_clock_of_the_bus_goes_back_what_was_known_does_not_count() {
    let seals = seals();
    let ahead = seals.seal("r1", b"mine", later(40 * 3_600_000));
    assert!(seals.open("r1", &ahead, stored(later(40 * 3_600_000), 1)).is_ok());
    let back = seals.seal("r1", b"mine", NOW);
    assert!(seals.open("r1", &back, stored(NOW, 2)).is_ok());
}

#[test]
fn the_clock_of_the_bus_goes_on_by_itself() {
    let (mut clock, begun) = (BusClock::default(), Instant::now());
    assert_eq!(clock.now(begun), None);
    clock.sync(NOW, begun);
    assert_eq!(clock.now(begun + Duration::from_millis(700)), Some(later(700)));
    assert_eq!(clock.age(begun + Duration::from_secs(1)), Some(Duration::from_secs(1)));
}

#[test]
fn of_two_seals_the_second_is_later_unless_the_clock_of_the_bus_has_gone_back_far() {
    let (mut clock, begun) = (BusClock::default(), Instant::now());
    clock.sync(later(5), begun);
    assert_eq!(clock.next(begun), Some(later(5)));
    clock.sync(NOW, begun);
    assert_eq!([clock.next(begun), clock.next(begun)], [Some(later(6)), Some(later(7))]);
    let back = BusTime(NOW.0 - 3_600_000);
    clock.sync(back, begun);
    assert_eq!(clock.next(begun), Some(back));
}

proptest! {
    #[test]
    fn any_bytes_are_opened_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(KEY.open(ROOM, &bytes).is_err());
    }
}
