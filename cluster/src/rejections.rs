//! Counts bucket entries that were rejected because their seal is not the cluster's, and limits how often that is
//! logged.
//!
//! Pure: every time is an argument.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::sealed::SealError;

/// Interval between two log lines for one bucket and reason.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Rejected entries by bucket and reason.
#[derive(Debug, Default)]
pub(crate) struct Rejections(BTreeMap<(&'static str, &'static str), Counted>);

/// Number of entries of a bucket that were rejected for a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejected {
    /// The bucket in NATS.
    pub bucket: &'static str,
    /// Reason for which the entries' seals were rejected, as in metrics.
    pub reason: &'static str,
    /// Number of rejected entries so far.
    pub count: u64,
}

#[derive(Debug, Default)]
struct Counted {
    count: u64,
    /// Time of the last log line, and the count then.
    logged: Option<(Instant, u64)>,
}

impl Rejections {
    /// Begins the counts of a bucket that is read from now on. They appear in [`Rejections::counts`], even at 0.
    pub(crate) fn watch(&mut self, bucket: &'static str) {
        for why in SealError::ALL {
            self.0.entry((bucket, why.name())).or_default();
        }
    }

    /// Counts a rejected entry. Returns the number since the last log line, if a log line is due.
    pub(crate) fn rejected(
        &mut self,
        bucket: &'static str,
        why: SealError,
        now: Instant,
    ) -> Option<u64> {
        let rejected = self.0.entry((bucket, why.name())).or_default();
        rejected.count += 1;
        let before = match rejected.logged {
            Some((at, _)) if now.saturating_duration_since(at) < LOG_INTERVAL => return None,
            logged => logged.map_or(0, |(_, count)| count),
        };
        rejected.logged = Some((now, rejected.count));
        Some(rejected.count - before)
    }

    /// Rejected entries by bucket and reason.
    pub(crate) fn counts(&self) -> Vec<Rejected> {
        let of = |(&(bucket, reason), counted): (&(_, _), &Counted)| Rejected {
            bucket,
            reason,
            count: counted.count,
        };
        self.0.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_whole_and_said_once_a_minute() {
        let (mut rejections, now) = (Rejections::default(), Instant::now());
        assert_eq!(rejections.rejected("b", SealError::Forged, now), Some(1));
        for ms in 0..5_000 {
            let at = now + Duration::from_millis(ms);
            assert_eq!(rejections.rejected("b", SealError::Forged, at), None);
        }
        // Another reason is other news.
        assert_eq!(rejections.rejected("b", SealError::Replayed, now), Some(1));
        let minute = now + LOG_INTERVAL;
        assert_eq!(rejections.rejected("b", SealError::Forged, minute), Some(5_001));
        let of = |reason, count| Rejected { bucket: "b", reason, count };
        assert_eq!(rejections.counts(), [of("forged", 5_002), of("replayed", 1)]);
    }
}
