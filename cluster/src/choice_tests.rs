use super::*;
use crate::lease::tests::lease;

fn named(names: &[&str]) -> Workers {
    Workers::named(names.iter().copied())
}

fn take(workers: &mut Workers, now: Instant) -> String {
    workers.assign(now).map_or_else(|| "none".to_owned(), |(name, _)| name.to_string())
}

fn ours(workers: &Workers) -> Vec<usize> {
    workers.states().map(|state| state.own_streams).collect()
}

#[test]
fn streams_are_spread_and_go_where_least_is_to_do() {
    let (mut workers, now) = (named(&["a", "b", "c"]), Instant::now());
    let taken: Vec<_> = (0..6).map(|_| take(&mut workers, now)).collect();
    assert_eq!(taken, ["a", "b", "c", "a", "b", "c"]);
    workers.on_answer("a", 0.9, false);
    workers.on_answer("b", 0.5, false);
    workers.on_answer("c", 0.52, false);
    workers.unassign("c");
    assert_eq!(take(&mut workers, now), "c", "as much load, and fewer streams");
    assert_eq!(ours(&workers), [2, 2, 2]);
}

#[test]
fn who_has_more_capacity_gets_more_streams() {
    let (mut workers, now) = (Workers::default(), Instant::now());
    workers.on_lease("small", &lease("http://small"), now);
    workers.on_lease("large", &Lease { capacity: 3.0, ..lease("http://large") }, now);
    (0..8).for_each(|_| drop(workers.assign(now)));
    let states: Vec<_> = workers.states().map(|s| (s.address.to_string(), s.own_streams)).collect();
    assert_eq!(states, [("http://large".to_owned(), 6), ("http://small".to_owned(), 2)]);
}

#[test]
fn one_that_failed_is_left_alone_for_a_while_or_until_it_says_something() {
    let (mut workers, now) = (named(&["a", "b"]), Instant::now());
    workers.on_failure("a", now);
    assert_eq!([take(&mut workers, now), take(&mut workers, now)], ["b", "b"]);
    workers.on_failure("b", now);
    assert_eq!(workers.assign(now), None);
    workers.on_answer("a", 0.0, false);
    assert_eq!(take(&mut workers, now), "a");
    assert_eq!(take(&mut workers, now + RETRY_AFTER), "a", "both work again, and it has fewer");
}

#[test]
fn a_lease_that_is_not_renewed_takes_new_streams_and_leaves_those_that_there_are() {
    let (mut workers, start) = (Workers::default(), Instant::now());
    workers.on_lease("a", &lease("http://a"), start);
    assert_eq!(take(&mut workers, start), "a");
    let now = start + LEASE_TIMEOUT * 2;
    workers.expire(now, now);
    assert_eq!(take(&mut workers, now), "a", "leases could not be read until now");
    workers.expire(start, now);
    assert_eq!(workers.assign(now), None);
    assert!(!workers.should_move("a", now));
    assert_eq!(ours(&workers), [2]);
    workers.on_lease("a", &lease("http://a"), now);
    assert_eq!(take(&mut workers, now), "a", "it is back");
    workers.on_lease_released("a");
    (0..3).for_each(|_| workers.unassign("a"));
    assert_eq!(ours(&workers), [0; 0], "nobody needs to know of it any more");
}

#[test]
fn streams_leave_one_that_ends_soon_if_there_is_another() {
    let (mut workers, now) = (Workers::default(), Instant::now());
    workers.on_lease("a", &lease("http://a"), now);
    (0..3).for_each(|_| drop(workers.assign(now)));
    let draining = Lease { draining: true, ..lease("http://a") };
    workers.on_lease("a", &draining, now);
    assert!(!workers.should_move("a", now), "there is no other");
    assert_eq!(workers.assign(now), None, "and it takes none");
    workers.on_lease("b", &lease("http://b"), now);
    assert!((0..3).all(|_| workers.should_move("a", now)));
    assert!(!workers.should_move("b", now));
}

#[test]
fn one_stream_at_a_time_leaves_where_much_is_to_do_for_where_less_is() {
    let (mut workers, now) = (named(&["a", "b"]), Instant::now());
    workers.on_answer("a", 0.95, false);
    workers.on_answer("b", 0.8, false);
    assert!(!workers.should_move("a", now), "it would not be better there");
    workers.on_answer("b", 0.4, false);
    assert!(workers.should_move("a", now));
    assert!(!workers.should_move("a", now + SETTLE_TIME / 2));
    assert!(workers.should_move("a", now + SETTLE_TIME));
    assert!(!workers.should_move("b", now + SETTLE_TIME * 2));
}

#[test]
fn a_full_one_gets_no_more() {
    let (mut workers, now) = (Workers::default(), Instant::now());
    workers.on_lease("a", &Lease { streams: 4, max_streams: 4, ..lease("http://a") }, now);
    assert_eq!(workers.assign(now), None);
}

#[test]
fn leases_are_bounded() {
    let (mut workers, now) = (Workers::default(), Instant::now());
    for n in 0..=MAX_WORKERS {
        assert_eq!(workers.on_lease(&format!("{n}"), &lease("http://a"), now), n < MAX_WORKERS);
    }
    assert!(workers.on_lease("7", &lease("http://a"), now));
}

#[test]
fn what_a_worker_says_may_make_no_sense() {
    let (mut workers, now) = (named(&["a", "b"]), Instant::now());
    workers.on_answer("a", f64::NAN, false);
    workers.on_answer("z", 0.1, true);
    workers.on_failure("z", now);
    workers.unassign("z");
    workers.unassign("b");
    assert!(!workers.should_move("z", now));
    assert_eq!(take(&mut workers, now), "b");
}
