//! Chosen frames that await their publisher's own picture, which is on its way.
//!
//! A browser encodes the layer at HR size after the low one, and here it takes longer to decode. The picture may come
//! late ([`CAPTURED_WITHIN`]): carried by flow, it is worth several times what super-resolution gives in time.
//! Super-resolution would also keep the CPU from decoding it. If pictures have ceased to come, no frame waits.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use windlass_types::{CAPTURED_WITHIN, StreamId};

use super::job::Job;

/// Maximum jobs that wait for their picture; others go without it.
const MAX_WAITING: usize = 256;

/// Maximum time for which a frame waits for its picture. The rest of [`CAPTURED_WITHIN`] is for encoding and transport.
const MAX_WAIT: Duration = CAPTURED_WITHIN.saturating_sub(Duration::from_millis(300));

/// The chosen frames that wait for the publisher's own picture, in the order in which they were chosen.
#[derive(Default)]
pub(super) struct Awaited {
    /// The jobs that wait, in the order in which their frames were chosen.
    jobs: Vec<Job>,
}

impl Awaited {
    /// Adds a job whose picture may be on its way.
    pub(super) fn push(&mut self, job: Job) {
        self.jobs.push(job);
    }

    /// Takes the jobs that need not wait longer at `now`, in their order; those of one stream come in decoding order.
    /// The next look is an `interval` later.
    pub(super) fn release(&mut self, now: Instant, interval: Duration) -> Vec<Job> {
        let mut behind: HashSet<StreamId> = HashSet::new();
        let max = self.jobs.len().saturating_sub(MAX_WAITING);
        let mut seen = 0;
        let released = self.jobs.extract_if(.., |job| {
            seen += 1;
            job.look_again();
            let age = now.saturating_duration_since(job.frame.arrival);
            let waits = job.captured.is_none()
                && age + interval <= MAX_WAIT
                && job.frame.captures.comes(job.frame.rtp_timestamp, now);
            if seen > max && (waits || behind.contains(&job.frame.stream)) {
                behind.insert(job.frame.stream);
                return false;
            }
            job.chosen_at = now;
            true
        });
        released.collect()
    }

    /// Takes all waiting jobs.
    pub(super) fn take(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.jobs)
    }
}
