//! Which worker a stream goes to: the one that works and has least to do.
//!
//! Pure: every time is an argument.

use std::time::{Duration, Instant};

/// How long a worker that failed is left alone, while there are others.
const AVOIDED: Duration = Duration::from_secs(2);

/// What is known of one worker.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// Streams of ours that it has.
    ours: usize,
    /// The share of its accelerators' time that is taken, as it says; with all that others give it.
    load: f64,
    avoided: Option<Instant>,
}

/// The workers, by their numbers.
#[derive(Debug, Clone, Default)]
pub struct Workers(Vec<Known>);

impl Workers {
    /// So many, of which nothing is known.
    pub fn new(count: usize) -> Self {
        Workers(vec![Known::default(); count])
    }

    /// Takes a worker for a stream: of those that work, the one with the least load, and of equals the one with the fewest streams. `None`: none
    /// works.
    pub fn take(&mut self, now: Instant) -> Option<usize> {
        let works = |known: &Known| known.avoided.is_none_or(|until| until <= now);
        let all = self.0.iter().enumerate().filter(|(_, known)| works(known));
        let least = all.min_by(|(_, a), (_, b)| {
            // What was just given to a worker is not in what it says yet.
            let load = |known: &Known| (known.load * 10.0).round();
            load(a).total_cmp(&load(b)).then(a.ours.cmp(&b.ours))
        });
        let n = least?.0;
        self.0[n].ours += 1;
        Some(n)
    }

    /// A stream has left a worker.
    pub fn leave(&mut self, worker: usize) {
        if let Some(known) = self.0.get_mut(worker) {
            known.ours = known.ours.saturating_sub(1);
        }
    }

    /// A worker says what it has to do; it works.
    pub fn says(&mut self, worker: usize, load: f64) {
        if let Some(known) = self.0.get_mut(worker) {
            known.load = if load.is_finite() { load.clamp(0.0, 1.0) } else { 1.0 };
            known.avoided = None;
        }
    }

    /// A worker failed.
    pub fn failed(&mut self, worker: usize, now: Instant) {
        if let Some(known) = self.0.get_mut(worker) {
            known.avoided = Some(now + AVOIDED);
        }
    }

    /// Streams of ours, by worker.
    pub fn streams(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|known| known.ours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_spread_and_go_where_least_is_to_do() {
        let (mut workers, now) = (Workers::new(3), Instant::now());
        let taken: Vec<_> = (0..6).map(|_| workers.take(now)).collect();
        assert_eq!(taken, [Some(0), Some(1), Some(2), Some(0), Some(1), Some(2)]);
        workers.says(0, 0.9);
        workers.says(1, 0.5);
        workers.says(2, 0.52);
        workers.leave(2);
        assert_eq!(workers.take(now), Some(2), "as much load, and fewer streams");
        assert_eq!(workers.streams().collect::<Vec<_>>(), [2, 2, 2]);
    }

    #[test]
    fn one_that_failed_is_left_alone_for_a_while_or_until_it_says_something() {
        let (mut workers, now) = (Workers::new(2), Instant::now());
        workers.failed(0, now);
        assert_eq!([workers.take(now), workers.take(now)], [Some(1), Some(1)]);
        workers.failed(1, now);
        assert_eq!(workers.take(now), None);
        workers.says(0, 0.0);
        assert_eq!(workers.take(now), Some(0));
        assert_eq!(workers.take(now + AVOIDED), Some(0), "both work again, and it has fewer");
    }

    #[test]
    fn what_a_worker_says_may_make_no_sense() {
        let (mut workers, now) = (Workers::new(2), Instant::now());
        workers.says(0, f64::NAN);
        workers.says(7, 0.1);
        workers.failed(7, now);
        workers.leave(7);
        workers.leave(1);
        assert_eq!(workers.take(now), Some(1));
    }
}
