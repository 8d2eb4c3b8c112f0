//! Chosen frames whose publisher's own picture is on its way: they wait for it as long as the budget leaves time for both.
//!
//! A browser codes the layer at HR size after the low one, and here it takes longer to decode. With a short budget there is no time for
//! it; with a long one, on a busy machine, every frame would be super-resolved for nothing and keep the processor from its picture.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use windlass_media::StreamId;

use super::select::Job;

/// Jobs that wait at once, at most: what is beyond goes without its picture.
const MOST: usize = 256;

/// See the module.
#[derive(Default)]
pub(super) struct Coming {
    /// In the order in which they were chosen.
    jobs: Vec<Job>,
}

impl Coming {
    /// Takes a job whose picture may be on its way.
    pub fn push(&mut self, job: Job) {
        self.jobs.push(job);
    }

    /// The jobs that wait no longer at `now`, in their order, and those of a stream in decoding order; the next look is an `interval` later.
    pub fn release(&mut self, now: Instant, interval: Duration) -> Vec<Job> {
        let mut behind: HashSet<StreamId> = HashSet::new();
        let most = self.jobs.len().saturating_sub(MOST);
        let mut seen = 0;
        let released = self.jobs.extract_if(.., |job| {
            seen += 1;
            job.look_again();
            let age = now.saturating_duration_since(job.frame.arrival);
            let waits = job.captured.is_none()
                && job.frame.captures.comes(job.frame.rtp_timestamp)
                && has_time(age + interval, job.chosen.cost, job.chosen.deadline);
            if seen > most && (waits || behind.contains(&job.frame.stream)) {
                behind.insert(job.frame.stream);
                return false;
            }
            job.chosen_at = now;
            true
        });
        released.collect()
    }

    /// All that wait.
    pub fn take(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.jobs)
    }
}

/// Whether a frame of this age can still be super-resolved at this cost within its deadline, if its picture does not come: half of the
/// deadline is for decoding, the rest for what follows.
fn has_time(age: Duration, cost: Duration, deadline: Duration) -> bool {
    age <= deadline / 2 && age + cost <= deadline
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn with_the_budget_of_calls_there_is_no_time_to_wait_and_with_longer_ones_there_is() {
        let next = 66 * MS + 10 * MS;
        assert!(!has_time(next, 80 * MS, 140 * MS));
        assert!(has_time(next, 80 * MS, 340 * MS));
        assert!(!has_time(4 * next, 80 * MS, 340 * MS));
        assert!(!has_time(next, 300 * MS, 340 * MS), "its network would be late");
    }
}
