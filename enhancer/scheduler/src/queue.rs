//! Which of the chosen frames an accelerator takes next.
//!
//! Source: PrefillOnly §5.3, Algorithm 1: shortest remaining job first, less λ × the time that the job has waited. The
//! completion time is estimated again each time that a device is free, because a network that the device has loaded
//! makes its jobs shorter. [`Order::Fifo`] and [`Order::Shortest`], which estimates once, are the baselines.
//!
//! **No starvation.** Let J be the largest estimate and λ > 0. A job that came later by Δ goes first only if its score
//! is smaller: jct' − λ(T − Δ) < jct − λT, so Δ < (jct − jct') / λ ≤ J / λ. A job that comes more than J / λ later
//! never overtakes. So a job waits for no more than what was there before it and what comes within J / λ. The paper
//! states λ and no bound; a test holds this one.
//!
//! Jobs of one shape are expected to take the same time, so that the oldest of them is always the next: a choice looks
//! at one job per shape, however many wait.
//!
//! Pure: times are since one origin of the caller. Bounded: a full queue refuses the job with the largest score.

use std::collections::VecDeque;
use std::time::Duration;

use windlass_types::Size;

use crate::job_time::JobTimes;

/// Default λ: a job that has waited as long as another takes goes first.
pub const LAMBDA: f64 = 1.0;

/// What decides how long a job takes: its network and the size of its picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Which network is to run.
    pub network: usize,
    /// Size of the LR picture.
    pub size: Size,
}

impl Shape {
    /// LR pixels of a picture.
    pub fn pixels(self) -> u64 {
        u64::from(self.size.pixels())
    }
}

/// How the next job is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order {
    /// Jobs run in order of arrival.
    Fifo,
    /// The shortest by the estimate at arrival, less λ × waiting.
    Shortest {
        /// λ: seconds of work that a second of waiting counts for.
        lambda: f64,
    },
    /// The shortest by an estimate made now, for this device, less λ × waiting.
    Calibrated {
        /// λ: seconds of work that a second of waiting counts for.
        lambda: f64,
    },
}

impl Default for Order {
    fn default() -> Self {
        Order::Calibrated { lambda: LAMBDA }
    }
}

impl Order {
    fn lambda(self) -> f64 {
        match self {
            Order::Fifo => 0.0,
            Order::Shortest { lambda } | Order::Calibrated { lambda } => {
                if lambda.is_finite() {
                    lambda.max(0.0)
                } else {
                    LAMBDA
                }
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Waiting<T> {
    job: T,
    shape: Shape,
    came: Duration,
    /// Order of arrival: of equal jobs the first goes first.
    number: u64,
    /// Estimate at arrival, for a device that has another network loaded.
    at_first: Duration,
}

/// The jobs that wait for a device.
#[derive(Debug, Clone)]
pub struct AcceleratorQueue<T> {
    order: Order,
    max: usize,
    /// The waiting jobs by shape, in order of arrival. No lane is empty.
    lanes: Vec<VecDeque<Waiting<T>>>,
    waiting: usize,
    numbers: u64,
}

/// The place of a waiting job.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Index of the lane.
    lane: usize,
    /// Index of the job in its lane.
    at: usize,
}

impl<T> AcceleratorQueue<T> {
    /// An empty queue of at most `max` jobs.
    pub fn new(order: Order, max: usize) -> Self {
        AcceleratorQueue { order, max: max.max(1), lanes: Vec::new(), waiting: 0, numbers: 0 }
    }

    /// Number of waiting jobs.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Adds a job that counts as waiting since `came`. Where there is no room, gives back the job that would be served
    /// last.
    ///
    /// PrefillOnly counts from when a request is queued. Jobs with a deadline count from a fixed time before it, even
    /// if that is still to come: of two that take the same, the one with the nearer deadline goes first.
    pub fn push(
        &mut self,
        came: Duration,
        shape: Shape,
        job: T,
        job_times: &JobTimes,
    ) -> Option<T> {
        let at_first = job_times.predict(shape.network, shape.pixels(), false);
        let waiting = Waiting { job, shape, came, number: self.numbers, at_first };
        match self.lanes.iter_mut().find(|lane| lane.front().is_some_and(|w| w.shape == shape)) {
            Some(lane) => {
                let first_in_line = matches!(self.order, Order::Fifo);
                let place = |w: &Waiting<T>| first_in_line || w.came <= came;
                lane.insert(lane.partition_point(place), waiting);
            }
            None => self.lanes.push(VecDeque::from([waiting])),
        }
        self.numbers += 1;
        self.waiting += 1;
        if self.waiting <= self.max {
            return None;
        }
        let scores = self.candidates(|lane| lane.len() - 1);
        let scores = scores.map(|(at, w)| (at, self.score(w, came, &[], job_times)));
        let (worst, _) = scores.max_by(|a, b| a.1.partial_cmp(&b.1).unwrap_or(EQUAL))?;
        self.remove(worst).map(|w| w.job)
    }

    /// The next job of a device that is free at `now` and has loaded the networks `resident`; with it up to `batch` − 1
    /// others of its shape, the next ones of them. `out` is emptied first.
    pub fn pop(
        &mut self,
        now: Duration,
        resident: &[usize],
        batch: usize,
        job_times: &JobTimes,
        out: &mut Vec<T>,
    ) -> Option<Shape> {
        self.pop_fitting(now, resident, batch, job_times, |_, _| true, out)
    }

    /// [`pop`](Self::pop) among the jobs that suit this device: the first job of a shape decides for all behind it.
    pub fn pop_fitting(
        &mut self,
        now: Duration,
        resident: &[usize],
        batch: usize,
        job_times: &JobTimes,
        suits: impl Fn(Shape, &T) -> bool,
        out: &mut Vec<T>,
    ) -> Option<Shape> {
        out.clear();
        let best = |queue: &Self, of: Option<Shape>| {
            let fits =
                |w: &Waiting<T>| of.is_none_or(|shape| w.shape == shape) && suits(w.shape, &w.job);
            let some = queue.candidates(|_| 0).filter(|(_, w)| fits(w));
            let scores = some.map(|(at, w)| (at, queue.score(w, now, resident, job_times)));
            scores.min_by(|a, b| a.1.partial_cmp(&b.1).unwrap_or(EQUAL)).map(|(at, _)| at)
        };
        let first = best(self, None)?;
        let Waiting { job, shape, .. } = self.remove(first)?;
        out.push(job);
        while out.len() < batch
            && let Some(next) = best(self, Some(shape)).and_then(|next| self.remove(next))
        {
            out.push(next.job);
        }
        Some(shape)
    }

    /// The jobs that can be the first or the last of all, with their places: `end` of each lane. Estimates at arrival
    /// differ within a lane, so that all its jobs count.
    fn candidates(
        &self,
        end: impl Fn(&VecDeque<Waiting<T>>) -> usize,
    ) -> impl Iterator<Item = (Place, &Waiting<T>)> {
        let all = matches!(self.order, Order::Shortest { .. });
        self.lanes.iter().enumerate().flat_map(move |(lane, waiting)| {
            let places = if all { 0..waiting.len() } else { end(waiting)..end(waiting) + 1 };
            places.filter_map(move |at| Some((Place { lane, at }, waiting.get(at)?)))
        })
    }

    fn remove(&mut self, Place { lane, at }: Place) -> Option<Waiting<T>> {
        let waiting = self.lanes.get_mut(lane)?;
        let removed = waiting.remove(at)?;
        if waiting.is_empty() {
            self.lanes.swap_remove(lane);
        }
        self.waiting -= 1;
        Some(removed)
    }

    /// Removes all waiting jobs, for a device that is lost.
    pub fn drain(&mut self) -> impl Iterator<Item = (Shape, T)> {
        self.waiting = 0;
        self.lanes.drain(..).flatten().map(|w| (w.shape, w.job))
    }

    /// Score of a job and its order of arrival. The smallest goes first.
    fn score(
        &self,
        waiting: &Waiting<T>,
        now: Duration,
        resident: &[usize],
        job_times: &JobTimes,
    ) -> (f64, u64) {
        let Waiting { shape, came, number, at_first, .. } = waiting;
        let expected = match self.order {
            Order::Fifo => Duration::ZERO,
            Order::Shortest { .. } => *at_first,
            Order::Calibrated { .. } => {
                job_times.predict(shape.network, shape.pixels(), resident.contains(&shape.network))
            }
        };
        let waited = now.as_secs_f64() - came.as_secs_f64();
        (expected.as_secs_f64() - self.order.lambda() * waited, *number)
    }
}

/// Short name for an equal comparison.
const EQUAL: std::cmp::Ordering = std::cmp::Ordering::Equal;

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
