//! Queue of the chosen frames that wait for a worker: [`AcceleratorQueue`] behind a lock.
//!
//! Workers wait for jobs; handing one in never waits. Captured pictures, for which no network runs, are a kind of their
//! own in the queue: they are only encoded, which takes less time.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::clock::Clock;
use super::job::Job;
use windlass_scheduler::NetworkCost;
use windlass_scheduler::job_time::JobTimes;
use windlass_scheduler::queue::{AcceleratorQueue, Order, Shape};

/// The chosen frames that wait for a worker, in the order of [`AcceleratorQueue`].
pub(super) struct Jobs {
    inner: Mutex<Inner>,
    ready: Condvar,
    clock: Clock,
    /// Index of captured pictures in the queue, in place of a network's index.
    captured: usize,
    /// Shortest deadline of any job, counted from its frame's arrival.
    deadline: Duration,
}

struct Inner {
    queue: AcceleratorQueue<Job>,
    job_times: JobTimes,
    closed: bool,
    out: Vec<Job>,
}

/// Entry of the queue. When it is dropped, workers finish the waiting jobs and end.
pub(super) struct JobsIn(Arc<Jobs>);

impl Jobs {
    /// Creates a queue for at most `max` jobs, whose deadlines are at least `deadline` after their frames' arrival.
    pub(super) fn new(
        networks: &[NetworkCost],
        max: usize,
        deadline: Duration,
        clock: Clock,
    ) -> (JobsIn, Arc<Jobs>) {
        let coding = networks.iter().map(|n| n.per_pixel).min().unwrap_or_default() / 2;
        let coding = NetworkCost { scale: 2, per_pixel: coding };
        let costs: Vec<NetworkCost> = networks.iter().copied().chain([coding]).collect();
        let inner = Inner {
            queue: AcceleratorQueue::new(Order::default(), max),
            job_times: JobTimes::new(&costs),
            closed: false,
            out: Vec::new(),
        };
        let jobs = Arc::new(Jobs {
            inner: Mutex::new(inner),
            ready: Condvar::new(),
            clock,
            captured: networks.len(),
            deadline,
        });
        (JobsIn(jobs.clone()), jobs)
    }

    /// Number of waiting jobs.
    pub(super) fn len(&self) -> usize {
        self.inner.lock().queue.len()
    }

    /// Shape of a job in the queue.
    fn shape(&self, job: &Job) -> Shape {
        let network = if job.captured.is_some() { self.captured } else { job.chosen.network };
        Shape { network, size: job.chosen.size }
    }

    /// Takes the next job for a worker that ran `last` before, with the job's present shape. Waits for one; `None` when
    /// there will be no more.
    pub(super) fn take(&self, last: Option<Shape>) -> Option<(Shape, Job)> {
        let mut inner = self.inner.lock();
        loop {
            let now = self.clock.elapsed();
            let Inner { queue, job_times, closed, out } = &mut *inner;
            if queue.pop(now, last.map(|l| l.network).as_slice(), 1, job_times, out).is_some() {
                return out.pop().map(|mut job| {
                    job.look_again();
                    (self.shape(&job), job)
                });
            }
            if *closed {
                return None;
            }
            self.ready.wait(&mut inner);
        }
    }

    /// Notes that a worker that ran `last` before has done a job of the given shape.
    pub(super) fn done(&self, shape: Shape, last: Option<Shape>, took: Duration) {
        let resident = last.is_none_or(|last| last.network == shape.network);
        self.inner.lock().job_times.observe(shape.network, shape.pixels(), resident, took);
    }
}

impl JobsIn {
    /// Hands in a job. If the queue is full, returns the job that has to give way.
    pub(super) fn push(&self, job: Job) -> Option<Job> {
        let Jobs { inner, ready, clock, .. } = &*self.0;
        let shape = self.0.shape(&job);
        // A job with a later deadline starts to wait later.
        let arrived = clock.span_to(job.frame.arrival);
        let since = arrived + job.within().saturating_sub(self.0.deadline);
        let mut inner = inner.lock();
        let Inner { queue, job_times, .. } = &mut *inner;
        let refused = queue.push(since, shape, job, job_times);
        drop(inner);
        ready.notify_one();
        refused
    }
}

impl Drop for JobsIn {
    fn drop(&mut self) {
        self.0.inner.lock().closed = true;
        self.0.ready.notify_all();
    }
}
