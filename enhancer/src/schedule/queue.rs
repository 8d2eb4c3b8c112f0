//! Which of the chosen frames an accelerator takes next.
//!
//! Source: seed 001 §5.3, Algorithm 1 (PrefillOnly): shortest remaining job first, its completion time estimated anew each time a
//! device is free (a network that the device has loaded makes its jobs shorter), less λ × the time that the job has waited.
//! [`Order::Fifo`] and [`Order::Shortest`], which estimates once, are the baselines.
//!
//! **No starvation.** Let J be the greatest estimate and λ > 0. A job that came later by Δ goes first only if its score is less:
//! jct' − λ(T − Δ) < jct − λT, so Δ < (jct − jct') / λ ≤ J / λ. Whoever comes more than J / λ after a job never overtakes it, so
//! it waits for no more than what was there before it and what comes within J / λ ([`AcceleratorQueue::overtaking`]). The paper
//! states λ and no bound; a test holds this one.
//!
//! Pure: times are since one origin that the caller keeps to. Bounded: a full queue refuses the job with the greatest score.

use std::time::Duration;

use super::jct::JctModel;

/// λ unless another is chosen: a job that has waited as long as another takes goes first.
pub const LAMBDA: f64 = 1.0;

/// A job for an accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Which network is to run.
    pub network: usize,
    /// Width and height of the LR picture.
    pub size: (u32, u32),
}

impl Shape {
    /// LR pixels of a picture.
    pub fn pixels(self) -> u64 {
        u64::from(self.size.0) * u64::from(self.size.1)
    }
}

/// By what the next job is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order {
    /// As they came.
    Fifo,
    /// The shortest by what was expected when it came, less λ × waiting.
    Shortest {
        /// What a second of waiting counts for, in seconds of work.
        lambda: f64,
    },
    /// The shortest by what is expected now, on this device, less λ × waiting.
    Calibrated {
        /// What a second of waiting counts for, in seconds of work.
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
    /// Counts those that came: of equals the first goes first.
    number: u64,
    /// What was expected when it came, by a device that has another network loaded.
    at_first: Duration,
}

/// The jobs that wait for a device.
#[derive(Debug, Clone)]
pub struct AcceleratorQueue<T> {
    order: Order,
    most: usize,
    waiting: Vec<Waiting<T>>,
    numbers: u64,
}

impl<T> AcceleratorQueue<T> {
    /// An empty queue of at most `most` jobs.
    pub fn new(order: Order, most: usize) -> Self {
        AcceleratorQueue { order, most: most.max(1), waiting: Vec::new(), numbers: 0 }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes a job. Where there is no room, the one that would be served last is given back.
    pub fn push(&mut self, now: Duration, shape: Shape, job: T, jct: &JctModel) -> Option<T> {
        let at_first = jct.predict(shape.network, shape.pixels(), false);
        self.waiting.push(Waiting { job, shape, came: now, number: self.numbers, at_first });
        self.numbers += 1;
        if self.waiting.len() <= self.most {
            return None;
        }
        let scores = self.waiting.iter().map(|w| self.score(w, now, None, jct));
        let worst = scores.enumerate().max_by(|a, b| a.1.partial_cmp(&b.1).unwrap_or(EQUAL));
        worst.map(|(at, _)| self.waiting.remove(at).job)
    }

    /// The next job of a device that is free at `now` and has loaded the network `resident`; with it up to `batch` − 1
    /// others of its shape, the next ones of them. `out` is emptied first.
    pub fn pop(
        &mut self,
        now: Duration,
        resident: Option<usize>,
        batch: usize,
        jct: &JctModel,
        out: &mut Vec<T>,
    ) -> Option<Shape> {
        out.clear();
        let first = self.best(now, resident, jct, |_| true)?;
        let shape = self.waiting[first].shape;
        out.push(self.waiting.remove(first).job);
        while out.len() < batch
            && let Some(next) = self.best(now, resident, jct, |other| other == shape)
        {
            out.push(self.waiting.remove(next).job);
        }
        Some(shape)
    }

    /// Those that came so long after a job never go before it, if nothing takes longer than `longest`; `None`: whenever they come.
    pub fn overtaking(&self, longest: Duration) -> Option<Duration> {
        match self.order {
            Order::Fifo => Some(Duration::ZERO),
            order if order.lambda() > 0.0 => {
                Duration::try_from_secs_f64(longest.as_secs_f64() / order.lambda()).ok()
            }
            _ => None,
        }
    }

    /// Takes all that wait out, such as those of a device that is lost.
    pub fn drain(&mut self) -> impl Iterator<Item = (Shape, T)> {
        self.waiting.drain(..).map(|w| (w.shape, w.job))
    }

    fn best(
        &self,
        now: Duration,
        resident: Option<usize>,
        jct: &JctModel,
        fits: impl Fn(Shape) -> bool,
    ) -> Option<usize> {
        let some = self.waiting.iter().enumerate().filter(|(_, w)| fits(w.shape));
        let scores = some.map(|(at, w)| (at, self.score(w, now, resident, jct)));
        let best = scores.min_by(|a, b| a.1.partial_cmp(&b.1).unwrap_or(EQUAL));
        best.map(|(at, _)| at)
    }

    /// Who has the least goes first; then who came first.
    fn score(
        &self,
        waiting: &Waiting<T>,
        now: Duration,
        resident: Option<usize>,
        jct: &JctModel,
    ) -> (f64, u64) {
        let Waiting { shape, came, number, at_first, .. } = waiting;
        let expected = match self.order {
            Order::Fifo => Duration::ZERO,
            Order::Shortest { .. } => *at_first,
            Order::Calibrated { .. } => {
                jct.predict(shape.network, shape.pixels(), resident == Some(shape.network))
            }
        };
        let waited = now.saturating_sub(*came).as_secs_f64();
        (expected.as_secs_f64() - self.order.lambda() * waited, *number)
    }
}

const EQUAL: std::cmp::Ordering = std::cmp::Ordering::Equal;

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
