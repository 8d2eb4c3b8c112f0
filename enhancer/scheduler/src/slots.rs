//! Which CPU task runs next: slots, and the order of the tasks that wait for one.
//!
//! Source: ZARN §3.2. At most `cpu_tasks_cap` tasks run at once; the others wait until one yields, and nothing is
//! preempted. The next task is the first one (FIFO) or the one with the nearest deadline (EDF), which "can be past but
//! no more than `lost_cause_threshold`".
//!
//! **Lost causes.** The paper gives a task up when its deadline is past by more than the threshold. Here the expected
//! time counts as well: a task is lost when now + expected > deadline + threshold. An anchor that will be late is of no
//! use before it is encoded either. As in the paper, only EDF has lost causes.
//!
//! **Tasks that must run.** A lost cause is refused, unless later tasks depend on it, as VP9 frames do. Such a task
//! goes before all that may be refused. So a frame waits for no longer than the tasks that run already, and the frames
//! before it.
//!
//! In any time L, the longest that a task runs, each slot is given back at least once. With at most M tasks that must
//! run waiting, each waits for no more than L × ⌈M / cap⌉. A test holds this.
//!
//! **Short tasks.** Encoding an anchor takes nine milliseconds, and super-resolving one on the CPU many times as long.
//! So the task with the nearest deadline lets the shortest task go first while it has time to spare: at least [`EASE`]
//! and three times its own time. Under overload the nearest deadline decides alone.
//!
//! Pure: times are since one origin of the caller. Bounded: at most [`SlotConfig::max_waiting`] tasks that may be
//! refused wait, and the last of the order is given back where there are more. Tasks that must run are one per stream,
//! and bounded with the streams.

use std::time::Duration;

/// Maximum expected time of a task.
const MAX_EXPECTED: Duration = Duration::from_secs(3_600);

/// Minimum time to spare with which a task lets shorter ones go first; at least three times its own time as well.
const EASE: Duration = Duration::from_millis(20);

/// Which task gets the next slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TaskOrder {
    /// The first task. There are no lost causes.
    Fifo,
    /// The tasks that must run, the first of them first. Then the nearest deadline, and shorter tasks before one that
    /// has time to spare.
    #[default]
    Edf,
}

/// Limits and order of the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotConfig {
    /// `cpu_tasks_cap`: tasks that run at once, at least one.
    pub cap: usize,
    /// Which task gets the next slot.
    pub order: TaskOrder,
    /// Time by which a task may miss its deadline before it is given up.
    pub lost_cause_threshold: Duration,
    /// Maximum tasks that wait, of those that may be refused.
    pub max_waiting: usize,
}

impl Default for SlotConfig {
    fn default() -> Self {
        SlotConfig {
            cap: 1,
            order: TaskOrder::default(),
            // What is late is not sent: there is nothing to be had from a missed deadline.
            lost_cause_threshold: Duration::ZERO,
            max_waiting: 256,
        }
    }
}

/// A CPU task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Task {
    /// Time by which the task should be done.
    pub deadline: Duration,
    /// Expected run time.
    pub expected: Duration,
    /// Whether other tasks depend on it, so that it is never refused.
    pub must_run: bool,
    /// Order of tasks that are otherwise alike: the smaller key goes first.
    pub key: u64,
}

impl Task {
    /// Expected run time, of at most [`MAX_EXPECTED`].
    fn takes(&self) -> Duration {
        self.expected.min(MAX_EXPECTED)
    }
}

/// Answer to a new task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// The task has a slot: it runs, and gives the slot back.
    Runs {
        /// Whether the task will be late.
        late: bool,
    },
    /// The task is a lost cause, and refused.
    Lost,
    /// The task has to wait ([`SlotQueue::push`]).
    Waits,
}

#[derive(Debug, Clone)]
struct Waiting<T> {
    of: T,
    task: Task,
    came: Duration,
    /// Order of arrival, among tasks that are otherwise alike.
    number: u64,
}

/// Place of a waiting task: the smallest goes first, compared field by field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Whether the task goes behind those that must run.
    behind: bool,
    /// Deadline of a task that may be refused; arrival of the others, or where arrival is the order.
    by: Duration,
    /// [`Task::key`] of the task.
    key: u64,
    /// Order of arrival.
    number: u64,
}

/// A task that gets a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextTask<T> {
    /// What was [pushed](SlotQueue::push) with the task.
    pub of: T,
    /// Whether the task will be late.
    pub late: bool,
}

/// The slots, and the tasks that wait for one.
#[derive(Debug, Clone)]
pub struct SlotQueue<T> {
    config: SlotConfig,
    running: usize,
    waiting: Vec<Waiting<T>>,
    numbers: u64,
}

impl<T> SlotQueue<T> {
    /// Creates a queue whose slots are all free.
    pub fn new(config: SlotConfig) -> Self {
        let config = SlotConfig { cap: config.cap.max(1), ..config };
        SlotQueue { config, running: 0, waiting: Vec::new(), numbers: 0 }
    }

    /// Number of tasks that have a slot.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Number of tasks that wait for a slot.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Gives a task a slot at once, if one is free and nobody waits.
    pub fn offer(&mut self, now: Duration, task: &Task) -> Offer {
        let late = self.lost(now, task);
        if late && !task.must_run {
            return Offer::Lost;
        }
        if self.running >= self.config.cap || !self.waiting.is_empty() {
            return Offer::Waits;
        }
        self.running += 1;
        Offer::Runs { late }
    }

    /// Adds a waiting task. Where there is no room, gives back the last of those that may be refused.
    pub fn push(&mut self, now: Duration, task: Task, of: T) -> Option<T> {
        self.waiting.push(Waiting { of, task, came: now, number: self.numbers });
        self.numbers += 1;
        let may_be_refused = self.waiting.iter().enumerate().filter(|(_, w)| !w.task.must_run);
        if may_be_refused.clone().count() <= self.config.max_waiting {
            return None;
        }
        let last = may_be_refused.max_by_key(|(_, w)| (self.lost(now, &w.task), self.rank(w)));
        let (last, _) = last?;
        Some(self.waiting.swap_remove(last).of)
    }

    /// The next task, if a slot is free. Lost causes are appended to `lost` before.
    pub fn pop(&mut self, now: Duration, lost: &mut Vec<T>) -> Option<NextTask<T>> {
        self.give_up(now, lost);
        if self.running >= self.config.cap {
            return None;
        }
        let all = self.waiting.iter().enumerate();
        let (next, first) = all.min_by_key(|(_, w)| self.rank(w))?;
        let next = self.shorter(now, first).unwrap_or(next);
        self.running += 1;
        let Waiting { of, task, .. } = self.waiting.swap_remove(next);
        Some(NextTask { of, late: self.lost(now, &task) })
    }

    /// The shortest task, if the first one has time to spare for it.
    fn shorter(&self, now: Duration, first: &Waiting<T>) -> Option<usize> {
        if self.config.order == TaskOrder::Fifo || first.task.must_run {
            return None;
        }
        let takes = first.task.takes();
        let to_spare = first.task.deadline.saturating_sub(now).saturating_sub(takes);
        if to_spare < EASE.max(takes * 3) {
            return None;
        }
        let some = self.waiting.iter().enumerate();
        let short = some.filter(|(_, w)| w.task.takes() <= takes / 2);
        short.min_by_key(|(_, w)| (w.task.takes(), self.rank(w))).map(|(at, _)| at)
    }

    /// Removes lost causes from the queue and appends them to `lost`.
    pub fn give_up(&mut self, now: Duration, lost: &mut Vec<T>) {
        let mut at = 0;
        while let Some(w) = self.waiting.get(at) {
            if !w.task.must_run && self.lost(now, &w.task) {
                lost.push(self.waiting.swap_remove(at).of);
            } else {
                at += 1;
            }
        }
    }

    /// Gives a slot back.
    pub fn done(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// The last moment to begin a task, if there is one: after it, it is a lost cause.
    pub fn begin_by(&self, task: &Task) -> Option<Duration> {
        let until = task.deadline.saturating_add(self.config.lost_cause_threshold);
        (self.config.order == TaskOrder::Edf).then(|| until.saturating_sub(task.takes()))
    }

    fn lost(&self, now: Duration, task: &Task) -> bool {
        let until = task.deadline.saturating_add(self.config.lost_cause_threshold);
        self.config.order == TaskOrder::Edf && now.saturating_add(task.takes()) > until
    }

    /// Rank of a waiting task. The smallest goes first.
    fn rank(&self, waiting: &Waiting<T>) -> Rank {
        let Waiting { task, came, number, .. } = waiting;
        let (behind, by) = match self.config.order {
            TaskOrder::Fifo => (false, *came),
            TaskOrder::Edf if task.must_run => (false, *came),
            TaskOrder::Edf => (true, task.deadline),
        };
        Rank { behind, by, key: task.key, number: *number }
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
