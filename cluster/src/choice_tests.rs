use super::*;
use crate::lease::tests::lease;

fn named(names: &[&str]) -> Workers {
    Workers::named(names.iter().copied())
}

fn take(workers: &mut Workers, now: Instant) -> String {
    workers.take(now).map_or_else(|| "none".to_owned(), |(name, _)| name.to_string())
}

fn ours(workers: &Workers) -> Vec<usize> {
    workers.states().map(|state| state.ours).collect()
}

#[test]
fn streams_are_spread_and_go_where_least_is_to_do() {
    let (mut workers, now) = (named(&["a", "b", "c"]), Instant::now());
    let taken: Vec<_> = (0..6).map(|_| take(&mut workers, now)).collect();
    assert_eq!(taken, ["a", "b", "c", "a", "b", "c"]);
    workers.says("a", 0.9, false);
    workers.says("b", 0.5, false);
    workers.says("c", 0.52, false);
    workers.leave("c");
    assert_eq!(take(&mut workers, now), "c", "as much load, and fewer streams");
    assert_eq!(ours(&workers), [2, 2, 2]);
}

#[test]
fn who_has_more_capacity_gets_more_streams() {
    let (mut workers, now) = (Workers::default(), Instant::now());
    workers.renewed("small", &lease("http://small"), now);
    workers.renewed("large", &Lease { capacity: 3.0, ..lease("http://large") }, now);
    (0..8).for_each(|_| drop(workers.take(now)));
    let states: Vec<_> = workers.states().map(|s| (s.address.to_string(), s.ours)).collect();
    assert_eq!(states, [("http://large".to_owned(), 6), ("http://small".to_owned(), 2)]);
}

#[test]
fn one_that_failed_is_left_alone_for_a_while_or_until_it_says_something() {
    let (mut workers, now) = (named(&["a", "b"]), Instant::now());
    workers.failed("a", now);
    assert_eq!([take(&mut workers, now), take(&mut workers, now)], ["b", "b"]);
    workers.failed("b", now);
    assert_eq!(workers.take(now), None);
    workers.says("a", 0.0, false);
    assert_eq!(take(&mut workers, now), "a");
    assert_eq!(take(&mut workers, now + AVOIDED), "a", "both work again, and it has fewer");
}

#[test]
fn a_lease_that_is_not_renewed_takes_new_streams_and_leaves_those_that_there_are() {
    let (mut workers, start) = (Workers::default(), Instant::now());
    workers.renewed("a", &lease("http://a"), start);
    assert_eq!(take(&mut workers, start), "a");
    let now = start + HOLDS * 2;
    workers.expire(now, now);
    assert_eq!(take(&mut workers, now), "a", "leases could not be read until now");
    workers.expire(start, now);
    assert_eq!(workers.take(now), None);
    assert!(!workers.should_leave("a", now));
    assert_eq!(ours(&workers), [2]);
    workers.renewed("a", &lease("http://a"), now);
    assert_eq!(take(&mut workers, now), "a", "it is back");
    workers.given_up("a");
    (0..3).for_each(|_| workers.leave("a"));
    assert_eq!(ours(&workers), [0; 0], "nobody needs to know of it any more");
}

#[test]
fn streams_leave_one_that_ends_soon_if_there_is_another() {
    let (mut workers, now) = (Workers::default(), Instant::now());
    workers.renewed("a", &lease("http://a"), now);
    (0..3).for_each(|_| drop(workers.take(now)));
    let draining = Lease { draining: true, ..lease("http://a") };
    workers.renewed("a", &draining, now);
    assert!(!workers.should_leave("a", now), "there is no other");
    assert_eq!(workers.take(now), None, "and it takes none");
    workers.renewed("b", &lease("http://b"), now);
    assert!((0..3).all(|_| workers.should_leave("a", now)));
    assert!(!workers.should_leave("b", now));
}

#[test]
fn one_stream_at_a_time_leaves_where_much_is_to_do_for_where_less_is() {
    let (mut workers, now) = (named(&["a", "b"]), Instant::now());
    workers.says("a", 0.95, false);
    workers.says("b", 0.8, false);
    assert!(!workers.should_leave("a", now), "it would not be better there");
    workers.says("b", 0.4, false);
    assert!(workers.should_leave("a", now));
    assert!(!workers.should_leave("a", now + SETTLE / 2));
    assert!(workers.should_leave("a", now + SETTLE));
    assert!(!workers.should_leave("b", now + SETTLE * 2));
}

#[test]
fn a_full_one_gets_no_more() {
    let (mut workers, now) = (Workers::default(), Instant::now());
    workers.renewed("a", &Lease { streams: 4, most_streams: 4, ..lease("http://a") }, now);
    assert_eq!(workers.take(now), None);
}

#[test]
fn leases_are_bounded() {
    let (mut workers, now) = (Workers::default(), Instant::now());
    for n in 0..=MOST {
        assert_eq!(workers.renewed(&format!("{n}"), &lease("http://a"), now), n < MOST);
    }
    assert!(workers.renewed("7", &lease("http://a"), now));
}

#[test]
fn what_a_worker_says_may_make_no_sense() {
    let (mut workers, now) = (named(&["a", "b"]), Instant::now());
    workers.says("a", f64::NAN, false);
    workers.says("z", 0.1, true);
    workers.failed("z", now);
    workers.leave("z");
    workers.leave("b");
    assert!(!workers.should_leave("z", now));
    assert_eq!(take(&mut workers, now), "b");
}
