//! Slots for the stages that run on the CPU: [`SlotQueue`] behind a lock.
//!
//! Decoders and coders take a slot before they begin and give it back when they are done, even in a panic. A thread
//! that finds a free slot and nobody waiting pays only for a lock. The time that a stage takes per unit of work is
//! learned by a linear fit: PrefillOnly §5.3.3, as for accelerators. ZARN has no estimates.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread::panicking;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::clock::Clock;
use crate::stats::{SlotStats, StageSlots, count};
use windlass_scheduler::NetworkCost;
use windlass_scheduler::job_time::JobTimes;
use windlass_scheduler::slots::{NextTask, Offer, SlotConfig, SlotQueue, Task};
use windlass_types::SharedLatencies;

/// Stages that run on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A frame of a low layer is decoded, however late, as later frames depend on it. Work: pixels of the picture.
    Decode,
    /// A frame at HR size, for captured anchors, is decoded, however late, as later frames depend on it. Work: pixels
    /// of the picture.
    Capture,
    /// An anchor is encoded, unless it would be late. Work: HR samples that are encoded.
    Encode,
    /// An anchor is super-resolved on the CPU and encoded, unless it would be late.
    Infer,
}

impl Stage {
    /// All stages.
    pub const ALL: [Stage; 4] = [Stage::Decode, Stage::Capture, Stage::Encode, Stage::Infer];

    /// The stage's name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Decode => "decode",
            Stage::Capture => "capture",
            Stage::Encode => "encode",
            Stage::Infer => "infer",
        }
    }

    fn must_run(self) -> bool {
        matches!(self, Stage::Decode | Stage::Capture)
    }

    /// Assumed time for one unit of the stage's work, before anything has been measured.
    fn first_guess(self) -> Duration {
        match self {
            Stage::Decode | Stage::Capture => Duration::from_nanos(10),
            Stage::Encode | Stage::Infer => Duration::from_nanos(15),
        }
    }
}

/// The CPU slots of one machine (see the module's head).
pub struct Slots {
    inner: Mutex<Inner>,
    cap: usize,
    clock: Clock,
    stages: [Counts; Stage::ALL.len()],
}

struct Inner {
    queue: SlotQueue<Arc<Waiter>>,
    times: JobTimes,
    lost: Vec<Arc<Waiter>>,
}

#[derive(Default)]
struct Counts {
    wait: SharedLatencies,
    refused: AtomicU64,
    late: AtomicU64,
    busy_nanos: AtomicU64,
}

/// A thread that waits for a slot.
#[derive(Default)]
struct Waiter {
    ready: Condvar,
    /// Verdict on the task, written under the lock.
    verdict: AtomicU8,
    /// Time at which the thread got its slot, in nanoseconds since the origin. A busy CPU may wake the thread up later.
    given: AtomicU64,
}

/// Verdict on a waiting task: it has a slot, in time.
const RUNS: u8 = 1;
/// Verdict on a waiting task: it has a slot, though it will be late.
const RUNS_LATE: u8 = 2;
/// Verdict on a waiting task: it is a lost cause, and refused.
const LOST: u8 = 3;

impl Waiter {
    fn report(&self, verdict: u8) {
        self.verdict.store(verdict, Ordering::Relaxed);
        self.ready.notify_one();
    }

    fn give(&self, verdict: u8, now: Duration) {
        self.given.store(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.report(verdict);
    }
}

/// A slot, until it is dropped.
#[must_use]
pub struct Slot<'a> {
    slots: &'a Slots,
    stage: Stage,
    work: u64,
    /// Time at which the slot was given. The time until the thread wakes up counts, as no other thread has the slot
    /// meanwhile.
    given: Instant,
}

impl Slots {
    /// Creates slots that are all free, with the machine's clock.
    pub fn new(config: SlotConfig) -> Self {
        Slots::by(config, Clock::default())
    }

    /// Creates slots that are all free, with the given clock.
    pub(super) fn by(config: SlotConfig, clock: Clock) -> Self {
        let first = |stage: Stage| NetworkCost { scale: 1, per_pixel: stage.first_guess() };
        let times = JobTimes::new(&Stage::ALL.map(first));
        let inner = Inner { queue: SlotQueue::new(config), times, lost: Vec::new() };
        Slots {
            inner: Mutex::new(inner),
            cap: config.cap.max(1),
            clock,
            stages: Default::default(),
        }
    }

    /// Waits for a slot for `work` of a stage that should be done by `deadline`; `None` if it is a lost cause. Of two
    /// tasks that are otherwise alike, the smaller `key` goes first.
    pub fn take(&self, stage: Stage, work: u64, deadline: Instant, key: u64) -> Option<Slot<'_>> {
        let expected = self.inner.lock().times.predict(stage as usize, work, true);
        let taken = self.take_for(stage, work, expected, deadline, key);
        if taken.is_none() && self.clock.now() < deadline {
            self.inner.lock().times.doubt(stage as usize);
        }
        taken
    }

    /// [`take`](Self::take) for work that is expected to take the time `expected`.
    pub fn take_for(
        &self,
        stage: Stage,
        work: u64,
        expected: Duration,
        deadline: Instant,
        key: u64,
    ) -> Option<Slot<'_>> {
        let came = self.clock.now();
        let mut inner = self.inner.lock();
        let task = Task {
            deadline: self.clock.span_to(deadline),
            expected,
            must_run: stage.must_run(),
            key,
        };
        let mut given = came;
        let verdict = match inner.queue.offer(self.clock.span_to(came), &task) {
            Offer::Runs { late: false } => RUNS,
            Offer::Runs { late: true } => RUNS_LATE,
            Offer::Lost => LOST,
            Offer::Waits => {
                let waiter = Arc::new(Waiter::default());
                let until = inner.queue.begin_by(&task).filter(|_| !task.must_run);
                if let Some(last) = inner.queue.push(self.clock.span_to(came), task, waiter.clone())
                {
                    last.report(LOST);
                }
                loop {
                    let verdict = waiter.verdict.load(Ordering::Relaxed);
                    if verdict != 0 {
                        let since = Duration::from_nanos(waiter.given.load(Ordering::Relaxed));
                        given = came.max(self.clock.after(since).unwrap_or(came));
                        break verdict;
                    }
                    let Some(until) = until.and_then(|until| self.clock.after(until)) else {
                        waiter.ready.wait(&mut inner);
                        continue;
                    };
                    let left = self.clock.until(until);
                    if waiter.ready.wait_for(&mut inner, left).timed_out() {
                        let now = self.clock.now();
                        if now < until {
                            continue;
                        }
                        // Just after the last moment to begin.
                        let now = self.clock.span_to(now) + Duration::from_nanos(1);
                        let Inner { queue, lost, .. } = &mut *inner;
                        queue.give_up(now, lost);
                        lost.drain(..).for_each(|waiter| waiter.report(LOST));
                    }
                }
            }
        };
        drop(inner);
        let counts = &self.stages[stage as usize];
        counts.wait.record(self.clock.since(came));
        if verdict == LOST {
            count(&counts.refused);
            return None;
        }
        if verdict == RUNS_LATE {
            count(&counts.late);
        }
        Some(Slot { slots: self, stage, work, given })
    }

    /// Statistics of all tasks so far.
    pub fn stats(&self) -> SlotStats {
        let (running, waiting) = {
            let inner = self.inner.lock();
            (inner.queue.running(), inner.queue.waiting())
        };
        let stages = Stage::ALL.map(|stage| {
            let counts = &self.stages[stage as usize];
            StageSlots {
                stage: stage.name(),
                wait: counts.wait.read(),
                refused: counts.refused.load(Ordering::Relaxed),
                late: counts.late.load(Ordering::Relaxed),
            }
        });
        SlotStats { cap: self.cap, running, waiting, stages: stages.to_vec() }
    }

    /// Total time for which tasks of a stage have had slots.
    pub fn busy(&self, stage: Stage) -> Duration {
        Duration::from_nanos(self.stages[stage as usize].busy_nanos.load(Ordering::Relaxed))
    }
}

impl Slot<'_> {
    /// Time at which the slot was given.
    pub fn given(&self) -> Instant {
        self.given
    }

    /// Sets how much work it turned out to be.
    pub fn did(&mut self, work: u64) {
        self.work = work;
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let now = self.slots.clock.now();
        let took = now.saturating_duration_since(self.given);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.slots.stages[self.stage as usize].busy_nanos.fetch_add(nanos, Ordering::Relaxed);
        let mut inner = self.slots.inner.lock();
        let Inner { queue, times, lost } = &mut *inner;
        // What panics says nothing of how long it takes.
        if !panicking() {
            times.observe(self.stage as usize, self.work, true, took);
        }
        queue.done();
        let now = self.slots.clock.span_to(now);
        while let Some(NextTask { of, late }) = queue.pop(now, lost) {
            of.give(if late { RUNS_LATE } else { RUNS }, now);
        }
        lost.drain(..).for_each(|waiter| waiter.report(LOST));
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;
    use std::thread::scope;

    use super::super::tests::parts::{MS, eventually};
    use super::*;
    use windlass_scheduler::slots::TaskOrder;

    fn slots(cap: usize, order: TaskOrder) -> Slots {
        Slots::new(SlotConfig { cap, order, ..SlotConfig::default() })
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// Waits until the given number of takers wait.
    fn until_waiting(slots: &Slots, waiting: usize) {
        eventually("they wait", || slots.stats().waiting >= waiting);
    }

    #[test]
    fn no_more_threads_run_than_there_are_slots() {
        for order in [TaskOrder::Fifo, TaskOrder::Edf] {
            let (slots, running, max) = (slots(3, order), AtomicUsize::new(0), AtomicUsize::new(0));
            // The first three meet.
            let (begun, meeting) = (AtomicUsize::new(0), Barrier::new(3));
            scope(|scope| {
                for thread in 0..12 {
                    let (slots, running, max) = (&slots, &running, &max);
                    let (begun, meeting) = (&begun, &meeting);
                    scope.spawn(move || {
                        for _ in 0..20 {
                            let slot = slots.take(Stage::Decode, 1, soon(), thread);
                            max.fetch_max(
                                running.fetch_add(1, Ordering::SeqCst) + 1,
                                Ordering::SeqCst,
                            );
                            if begun.fetch_add(1, Ordering::SeqCst) < 3 {
                                meeting.wait();
                            }
                            std::thread::yield_now();
                            running.fetch_sub(1, Ordering::SeqCst);
                            drop(slot);
                        }
                    });
                }
            });
            assert_eq!(max.into_inner(), 3);
            let stats = slots.stats();
            assert_eq!((stats.running, stats.waiting), (0, 0));
            assert_eq!(stats.stages[0].wait.count(), 12 * 20);
        }
    }

    #[test]
    fn a_stage_that_was_slow_is_tried_again() {
        let slots = slots(1, TaskOrder::Edf);
        slots.inner.lock().times.observe(Stage::Encode as usize, 1_000, true, 400 * MS);
        let slow = slots.inner.lock().times.predict(Stage::Encode as usize, 1_000_000_000, true);
        let deadline = || Instant::now() + slow / 4;
        let tries =
            (0..100).find(|_| slots.take(Stage::Encode, 1_000_000_000, deadline(), 0).is_some());
        assert!(tries.is_some_and(|tries| tries > 10), "{tries:?}");
        assert_eq!(slots.stats().stages[2].refused, tries.unwrap_or_default());
    }

    #[test]
    fn the_nearest_deadline_of_the_waiting_threads_is_next() {
        let (slots, order) = (slots(1, TaskOrder::Edf), Mutex::new(Vec::new()));
        let first = slots.take(Stage::Decode, 1, soon(), 0);
        scope(|scope| {
            for (n, seconds) in [(1, 300), (2, 100), (3, 200)] {
                let (slots, order) = (&slots, &order);
                let deadline = Instant::now() + Duration::from_secs(seconds);
                scope.spawn(move || {
                    let _slot = slots.take(Stage::Encode, 1, deadline, 0);
                    order.lock().push(n);
                });
                until_waiting(slots, n);
            }
            drop(first);
        });
        assert_eq!(*order.lock(), [2, 3, 1]);
    }

    #[test]
    fn a_waiting_anchor_is_told_when_it_is_lost_and_a_frame_is_decoded_all_the_same() {
        let slots = slots(1, TaskOrder::Edf);
        let first = slots.take(Stage::Decode, 1, soon(), 0);
        // How long a thread really waits is what is tested here.
        let asked = Instant::now();
        assert!(slots.take(Stage::Encode, 1, asked + 20 * MS, 1).is_none());
        assert!(asked.elapsed() >= 19 * MS, "it waited as long as there was hope");
        scope(|scope| {
            let decode = scope.spawn(|| slots.take(Stage::Decode, 1, asked, 1).is_some());
            until_waiting(&slots, 1);
            drop(first);
            assert!(decode.join().is_ok_and(|decoded| decoded));
        });
        let stats = slots.stats();
        let of = |stage: Stage| &stats.stages[stage as usize];
        assert_eq!((of(Stage::Encode).refused, of(Stage::Encode).late), (1, 0));
        assert_eq!((of(Stage::Decode).refused, of(Stage::Decode).late), (0, 1));
    }

    #[test]
    fn a_panic_gives_the_slot_back() {
        let slots = slots(1, TaskOrder::Fifo);
        let panics = catch_unwind(AssertUnwindSafe(|| {
            let _slot = slots.take(Stage::Decode, 1, soon(), 0);
            panic!("as a decoder may");
        }));
        assert!(panics.is_err());
        assert!(slots.take(Stage::Decode, 1, soon(), 0).is_some());
    }
}
