//! CPU time of the calling thread: the cost of a stage, whatever else the machine does.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Sums up the CPU time of repeated work.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuClock {
    total: Duration,
    runs: u32,
}

impl CpuClock {
    /// Runs `work` and counts its CPU time.
    pub(crate) fn measure<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = thread_time();
        let result = work();
        self.total += thread_time().saturating_sub(start);
        self.runs += 1;
        result
    }

    /// Mean time for each of `count` units of work, in milliseconds; `None` when there were none.
    pub(crate) fn mean_ms(&self, count: usize) -> Option<f64> {
        (count > 0 && self.runs > 0).then(|| self.total.as_secs_f64() * 1000.0 / count as f64)
    }

    /// Mean time of a run in milliseconds; `None` before the first.
    pub(crate) fn mean_run_ms(&self) -> Option<f64> {
        self.mean_ms(self.runs as usize)
    }
}

/// CPU time of the calling thread so far.
pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes 50 ms of the calling thread's CPU time.
    fn work() {
        let end = thread_time() + Duration::from_millis(50);
        while thread_time() < end {}
    }

    #[test]
    fn waiting_for_another_thread_costs_no_cpu_time_but_work_does() {
        let mut clock = CpuClock::default();
        assert_eq!(clock.mean_run_ms(), None);
        clock.measure(|| std::thread::spawn(work).join().unwrap());
        assert!(clock.mean_run_ms().unwrap() < 20.0);
        clock.measure(work);
        assert!(clock.mean_run_ms().unwrap() >= 25.0);
    }
}
