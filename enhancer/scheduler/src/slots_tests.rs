use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn config(cap: usize, order: TaskOrder) -> SlotConfig {
    SlotConfig { cap, order, ..SlotConfig::default() }
}

impl<T> SlotQueue<T> {
    /// What a task that must run waits at the most if none runs longer than `longest` and no more than `tasks` such
    /// tasks, with it, wait at once (by [`TaskOrder::Fifo`]: than `tasks` of any kind).
    fn longest_wait(&self, longest: Duration, tasks: usize) -> Duration {
        let rounds = u32::try_from(tasks.div_ceil(self.config.cap)).unwrap_or(u32::MAX);
        longest.saturating_mul(rounds)
    }
}

/// A task that may be refused, with its deadline and what it takes in milliseconds.
fn task(key: u64, deadline: u32, expected: u32) -> Task {
    Task { deadline: deadline * MS, expected: expected * MS, must_run: false, key }
}

fn must(key: u64, deadline: u32, expected: u32) -> Task {
    Task { must_run: true, ..task(key, deadline, expected) }
}

/// What gets slots one after the other at `now`, and what is lost.
fn served(queue: &mut SlotQueue<u64>, now: Duration) -> (Vec<u64>, Vec<u64>) {
    let (mut order, mut lost) = (Vec::new(), Vec::new());
    while let Some(next) = queue.pop(now, &mut lost) {
        order.push(next.of);
        queue.done();
    }
    lost.sort_unstable();
    (order, lost)
}

fn queue(order: TaskOrder, tasks: &[Task]) -> SlotQueue<u64> {
    let mut queue = SlotQueue::new(config(1, order));
    for (n, &task) in (0..).zip(tasks) {
        assert_eq!(queue.push(n * MS, task, task.key), None);
    }
    queue
}

#[test]
fn the_first_that_came_or_the_nearest_deadline_is_next() {
    let tasks = [task(1, 300, 5), task(2, 100, 5), task(3, 200, 5)];
    assert_eq!(served(&mut queue(TaskOrder::Fifo, &tasks), 5 * MS).0, [1, 2, 3]);
    assert_eq!(served(&mut queue(TaskOrder::Edf, &tasks), 5 * MS).0, [2, 3, 1]);
}

#[test]
fn a_task_runs_at_once_while_a_slot_is_free_and_nobody_waits() {
    let mut queue = SlotQueue::new(config(2, TaskOrder::Edf));
    let runs = Offer::Runs { late: false };
    let offers = [1, 2, 3].map(|key| queue.offer(MS, &task(key, 100, 5)));
    assert_eq!(offers, [runs, runs, Offer::Waits]);
    assert_eq!(queue.push(MS, task(3, 100, 5), 3), None);
    queue.done();
    assert_eq!(queue.offer(MS, &task(4, 50, 5)), Offer::Waits, "somebody waits for that slot");
    assert_eq!(queue.pop(MS, &mut Vec::new()), Some(NextTask { of: 3, late: false }));
    assert_eq!((queue.running(), queue.waiting()), (2, 0));
}

#[test]
fn a_lost_cause_is_refused_and_those_that_must_run_come_first_however_late() {
    let tasks = [task(1, 30, 20), must(2, 30, 20), task(3, 200, 20), must(4, 300, 20)];
    let (order, lost) = served(&mut queue(TaskOrder::Edf, &tasks), 11 * MS);
    assert_eq!((order, lost), (vec![2, 4, 3], vec![1]));
    let (order, lost) = served(&mut queue(TaskOrder::Fifo, &tasks), 11 * MS);
    assert_eq!((order, lost), (vec![1, 2, 3, 4], vec![]));
}

#[test]
fn the_threshold_says_by_how_much_a_deadline_may_be_missed() {
    let late = task(1, 100, 10);
    let at = |threshold: Duration, now: Duration| {
        let config = SlotConfig { lost_cause_threshold: threshold, ..config(1, TaskOrder::Edf) };
        SlotQueue::<u64>::new(config).offer(now, &late)
    };
    let runs = Offer::Runs { late: false };
    assert_eq!(at(Duration::ZERO, 90 * MS), runs);
    assert_eq!(at(Duration::ZERO, 91 * MS), Offer::Lost);
    assert_eq!(at(50 * MS, 140 * MS), runs);
    assert_eq!(at(50 * MS, 141 * MS), Offer::Lost);
    let queue = SlotQueue::<u64>::new(config(1, TaskOrder::Edf));
    assert_eq!(queue.begin_by(&late), Some(90 * MS));
}

#[test]
fn where_too_many_wait_a_lost_cause_goes_before_the_farthest_deadline() {
    let full = SlotConfig { max_waiting: 2, ..config(1, TaskOrder::Edf) };
    let mut queue = SlotQueue::new(full);
    for (key, deadline) in [(1, 30), (2, 300)] {
        assert_eq!(queue.push(Duration::ZERO, task(key, deadline, 20), key), None);
    }
    assert_eq!(queue.push(20 * MS, task(3, 400, 20), 3), Some(1));
    assert_eq!(queue.push(20 * MS, task(4, 200, 20), 4), Some(3));
    assert_eq!(queue.push(20 * MS, must(5, 500, 20), 5), None);
}

#[test]
fn the_least_and_the_longest_time_are_contained() {
    let runs = Offer::Runs { late: false };
    for (expected, offer) in [(Duration::ZERO, runs), (Duration::MAX, Offer::Lost)] {
        let mut queue = SlotQueue::<u64>::new(config(1, TaskOrder::Edf));
        let odd = Task { expected, ..task(1, 100, 0) };
        assert_eq!(queue.offer(MS, &odd), offer, "{expected:?}");
        let endless = Task { deadline: Duration::MAX, ..odd };
        assert_eq!(SlotQueue::<u64>::new(config(1, TaskOrder::Edf)).offer(MS, &endless), runs);
    }
    let mut no_slots = SlotQueue::<u64>::new(config(0, TaskOrder::Fifo));
    assert_eq!(no_slots.offer(MS, &task(1, 100, 1)), runs, "there is always one");
}

prop_compose! {
    fn any_task()(
        key in 0..1_000u64,
        deadline in 0..400u32,
        expected in prop_oneof![
            8 => (0..50_000u64).prop_map(Duration::from_micros),
            1 => Just(Duration::MAX),
            1 => Just(Duration::ZERO),
        ],
        must_run: bool,
    ) -> Task {
        Task { deadline: deadline * MS, expected, must_run, key }
    }
}

fn any_order() -> impl Strategy<Value = TaskOrder> {
    prop_oneof![Just(TaskOrder::Fifo), Just(TaskOrder::Edf)]
}

/// What slots do over time: who comes when, and how long each runs. Out: when each began, by number.
fn simulate(
    config: SlotConfig,
    tasks: &[(Duration, Task, Duration)],
) -> (BTreeMap<usize, Duration>, SlotQueue<usize>) {
    let mut queue = SlotQueue::new(config);
    let mut began = BTreeMap::new();
    let (mut ends, mut lost, mut next): (Vec<Duration>, Vec<usize>, usize) = Default::default();
    let mut now = Duration::ZERO;
    loop {
        while let Some(&(_, task, _)) = tasks.get(next).filter(|t| t.0 <= now) {
            queue.push(now, task, next);
            next += 1;
        }
        let before = ends.len();
        ends.retain(|end| *end > now);
        (ends.len()..before).for_each(|_| queue.done());
        while let Some(NextTask { of: n, .. }) = queue.pop(now, &mut lost) {
            began.insert(n, now);
            ends.push(now + tasks[n].2);
        }
        assert!(ends.len() <= config.cap && queue.running() == ends.len());
        let coming = tasks.get(next).map(|t| t.0);
        let Some(then) = ends.iter().copied().chain(coming).min() else {
            return (began, queue);
        };
        now = then;
    }
}

proptest! {
    #[test]
    fn never_more_run_than_there_are_slots(
        cap in 0..5usize,
        order in any_order(),
        steps in prop::collection::vec((any_task(), 0..3u8), 1..80),
    ) {
        let mut queue = SlotQueue::new(SlotConfig { max_waiting: 8, ..config(cap, order) });
        let (mut now, mut lost, mut must) = (Duration::ZERO, Vec::new(), 0);
        for (task, act) in steps {
            now += 7 * MS;
            match act {
                0 => queue.done(),
                1 => drop(queue.pop(now, &mut lost)),
                _ => {
                    if queue.offer(now, &task) == Offer::Waits {
                        must += usize::from(task.must_run);
                        let refused = queue.push(now, task, task);
                        prop_assert!(refused.is_none_or(|r: Task| !r.must_run));
                    }
                }
            }
            prop_assert!(queue.running() <= cap.max(1));
            prop_assert!(queue.waiting() <= 8 + must);
            prop_assert!(lost.iter().all(|t| !t.must_run), "what must run is never refused");
        }
    }

    #[test]
    fn of_those_that_may_be_refused_the_nearest_deadline_is_next_or_has_time_to_spare(
        tasks in prop::collection::vec(any_task(), 1..40),
        now in 0..300u32,
    ) {
        let mut queue = SlotQueue::new(config(1, TaskOrder::Edf));
        // Nobody has waited for long.
        for (at, task) in tasks.iter().enumerate() {
            queue.push(now * MS, *task, at);
        }
        let (mut lost, mut behind) = (Vec::new(), false);
        let mut waiting: Vec<(usize, Task)> = tasks.into_iter().enumerate().collect();
        while let Some(NextTask { of: at, late }) = queue.pop(now * MS, &mut lost) {
            queue.done();
            let place = waiting.iter().position(|(n, _)| *n == at).expect("it was given");
            let (_, task) = waiting.swap_remove(place);
            prop_assert!(!late || task.must_run);
            prop_assert!(!(behind && task.must_run), "one that must run after one that may be refused");
            behind |= !task.must_run;
            if task.must_run {
                continue;
            }
            let waiting: Vec<Task> = waiting.iter().map(|(_, task)| *task).collect();
            let in_time = |t: &&Task| now * MS + t.takes() <= t.deadline;
            for other in waiting.iter().filter(in_time) {
                let nearer = other.deadline < task.deadline;
                let spare = other.deadline.saturating_sub(now * MS).saturating_sub(other.takes());
                // A few of its own times, and the short one is far shorter: a slot given away costs it no deadline.
                let with_ease = spare >= 20 * MS && spare >= other.takes() * 3
                    && task.takes() <= other.takes();
                let as_near = |t: &&Task| t.deadline <= other.deadline;
                // Of those alike any may be the first.
                let nearest = waiting.iter().filter(in_time).filter(as_near).count() == 1;
                prop_assert!(!nearer || !nearest || with_ease, "{task:?} before {other:?}");
            }
        }
    }

    #[test]
    fn who_is_named_first_of_those_that_come_at_once_changes_nothing(
        tasks in prop::collection::vec(any_task(), 1..24),
        order in any_order(),
        seed: u64,
        max in 1..24usize,
    ) {
        let config = SlotConfig { max_waiting: max, ..config(1, order) };
        // Two with the same key and all else are the same task.
        let tasks: Vec<Task> = (0..).zip(tasks).map(|(key, t)| Task { key, ..t }).collect();
        let mut other = tasks.clone();
        let mut state = seed;
        for n in (1..other.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            other.swap(n, (state >> 33) as usize % (n + 1));
        }
        let all = |tasks: &[Task]| {
            let mut queue = SlotQueue::new(config);
            let mut refused: Vec<u64> =
                tasks.iter().filter_map(|&t| queue.push(10 * MS, t, t.key)).collect();
            refused.sort_unstable();
            (refused, served(&mut queue, 30 * MS))
        };
        prop_assert_eq!(all(&tasks), all(&other));
    }

    #[test]
    fn whoever_must_run_waits_no_longer_than_the_bound(
        cap in 1..4usize,
        order in any_order(),
        // When, with which deadline after, for how long, and whether it must run.
        tasks in prop::collection::vec((0..500u32, 0..300u32, 1..40u32, any::<bool>()), 1..120),
    ) {
        let mut tasks: Vec<_> = (0..).zip(tasks).map(|(key, (came, deadline, runs, must_run))| {
            let task = Task { must_run, ..task(key, came + deadline, runs) };
            (came * MS, task, runs * MS)
        }).collect();
        tasks.sort_by_key(|t| t.0);
        let (began, left) = simulate(config(cap, order), &tasks);
        prop_assert_eq!(left.waiting(), 0);
        let longest = tasks.iter().map(|t| t.2).max().unwrap_or_default();
        // Those that wait while a task comes or waits, at any moment.
        let waits = |n: usize, at: Duration| {
            tasks[n].0 <= at && began.get(&n).is_some_and(|began| *began >= at)
        };
        let counted = |n: usize| order == TaskOrder::Fifo || tasks[n].1.must_run;
        let moments = tasks.iter().map(|t| t.0);
        let max = moments.map(|at| (0..tasks.len()).filter(|&n| counted(n) && waits(n, at)).count());
        let bound = left.longest_wait(longest, max.max().unwrap_or_default());
        for (n, (came, task, _)) in tasks.iter().enumerate().filter(|(_, t)| t.1.must_run) {
            let began = began.get(&n);
            prop_assert!(began.is_some(), "{task:?} never ran");
            prop_assert!(began.is_some_and(|b| b.saturating_sub(*came) <= bound), "{task:?} over {bound:?}");
        }
    }
}

#[test]
fn a_short_task_goes_first_while_the_nearest_deadline_has_time_to_spare() {
    let mut queue = SlotQueue::new(SlotConfig { cap: 1, ..SlotConfig::default() });
    let ms = Duration::from_millis;
    let task = |deadline, takes| Task {
        deadline: ms(deadline),
        expected: ms(takes),
        must_run: false,
        key: 0,
    };
    for (now, first) in [(0, 'b'), (65, 'a')] {
        assert_eq!(queue.push(ms(now), task(100, 9), 'a'), None);
        assert_eq!(queue.push(ms(now), task(140, 1), 'b'), None);
        let mut lost = Vec::new();
        assert_eq!(
            queue.pop(ms(now), &mut lost),
            Some(NextTask { of: first, late: false }),
            "at {now} ms"
        );
        queue.done();
        assert!(queue.pop(ms(now), &mut lost).is_some() && lost.is_empty());
        queue.done();
    }
}

/// Frames of `streams` for three seconds, 30 a second each, and an anchor of every tenth 50 ms later. Both are due
/// 140 ms after the frame came. Times are those of `windlass-lab bench stages`: 0.9 ms for a frame, 8.9 ms for an
/// anchor.
fn stages(streams: u64, seed: u64) -> Vec<(Duration, Task, Duration)> {
    let us = Duration::from_micros;
    let mut tasks = Vec::new();
    let mut state = seed;
    for (stream, frame) in (0..90).flat_map(|frame| (0..streams).map(move |s| (s, frame))) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let jitter = us((state >> 33) % 20_000);
        let came = us(33_333 * frame + 33_333 * stream / streams) + jitter;
        let of = |expected, must_run| Task {
            deadline: came + 140 * MS,
            expected,
            must_run,
            key: stream,
        };
        tasks.push((came, of(us(900), true), us(900)));
        if (frame + stream) % 10 == 0 {
            tasks.push((came + 50 * MS, of(us(8_900), false), us(8_900)));
        }
    }
    tasks.sort_by_key(|t| t.0);
    tasks
}

/// When each task ends if all run at once on `cores`, which they share equally.
fn threads(cores: f64, tasks: &[(Duration, Task, Duration)]) -> Vec<Duration> {
    let mut ends = vec![Duration::MAX; tasks.len()];
    let (mut running, mut now, mut next): (Vec<(usize, f64)>, f64, usize) = Default::default();
    while next < tasks.len() || !running.is_empty() {
        let speed = (cores / running.len().max(1) as f64).min(1.0);
        let first = running.iter().map(|r| r.1).fold(f64::INFINITY, f64::min) / speed;
        let comes = tasks.get(next).map_or(f64::INFINITY, |t| t.0.as_secs_f64());
        let then = (now + first).min(comes);
        for task in &mut running {
            task.1 -= (then - now) * speed;
        }
        now = then;
        running.retain(|&(n, left)| {
            if left <= 1e-9 {
                ends[n] = Duration::from_secs_f64(now);
            }
            left > 1e-9
        });
        while let Some(&(_, _, takes)) = tasks.get(next).filter(|t| t.0.as_secs_f64() <= now) {
            running.push((next, takes.as_secs_f64()));
            next += 1;
        }
    }
    ends
}

#[test]
fn no_frame_is_late_beside_anchors_and_no_fewer_anchors_are_in_time_than_by_threads() {
    for (streams, seed) in [19, 26, 34, 40, 48, 60].into_iter().flat_map(|n| [(n, 1), (n, 2)]) {
        let tasks = stages(streams, seed);
        let (began, _) = simulate(config(2, TaskOrder::Edf), &tasks);
        let in_time = |ends: &dyn Fn(usize) -> Option<Duration>, frames: bool| {
            let of = tasks.iter().enumerate().filter(|(_, t)| t.1.must_run == frames);
            of.filter(|(n, t)| ends(*n).is_some_and(|end| end <= t.1.deadline)).count()
        };
        let shared = threads(2.0, &tasks);
        let by_threads = |n: usize| Some(shared[n]);
        let by_slots = |n: usize| Some(*began.get(&n)? + tasks[n].2);
        let frames = tasks.iter().filter(|t| t.1.must_run).count();
        assert_eq!(in_time(&by_slots, true), frames, "{streams} streams");
        let [threads, slots] = [in_time(&by_threads, false), in_time(&by_slots, false)];
        assert!(
            slots >= threads,
            "{streams} streams: {slots} anchors in time, {threads} by threads"
        );
    }
}
