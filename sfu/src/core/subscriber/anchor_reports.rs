//! Subscribers' reports on their anchors, bounded by what was sent to them.
//!
//! A report is about one subscription, once a second. It counts at most the anchors that were sent on that subscription
//! since the last report, so that metrics and alerts made of reports cannot be forged.

use std::time::{Duration, Instant};

use crate::api::{AnchorReport, ReportError, TakenReport};

/// Mean time between two reports on a subscription.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time by which a report may be early: a delayed report arrives together with the next.
const MAX_EARLY: Duration = Duration::from_secs(2);

/// Number of anchors of one subscription that may still be reported on, and the time of the next report.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ReportQuota {
    /// Anchors that were sent, whole or in part, and that no report has covered yet.
    unreported: u64,
    /// When the next report is due.
    due: Option<Instant>,
}

impl ReportQuota {
    /// Counts an anchor that was sent.
    pub(crate) fn on_sent(&mut self) {
        self.unreported += 1;
    }

    /// Takes a report, unless it is too early.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        report: AnchorReport,
    ) -> Result<TakenReport, ReportError> {
        let due = self.due.unwrap_or(now);
        if now + MAX_EARLY < due {
            return Err(ReportError::TooSoon);
        }
        self.due = Some(due.max(now) + INTERVAL);
        let mut left = self.unreported;
        let mut bounded = |reported: u32| {
            let counted = u64::from(reported).min(left);
            left -= counted;
            counted as u32
        };
        let used = bounded(report.used);
        let counted = AnchorReport {
            used,
            late: report.late.min(used),
            lost: bounded(report.lost),
            duplicate: bounded(report.duplicate),
            former_epoch: bounded(report.former_epoch),
        };
        self.unreported = left;
        Ok(TakenReport { excess: report.all() - counted.all(), counted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{ParticipantId, TrackId, TrackReport};

    const SECOND: Duration = Duration::from_secs(1);

    fn sent(count: u64) -> ReportQuota {
        ReportQuota { unreported: count, due: None }
    }

    #[test]
    fn what_was_sent_is_counted_and_nothing_beyond_it() {
        let (mut quota, now) = (sent(10), Instant::now());
        let counts = AnchorReport { used: 6, late: 2, lost: 1, ..AnchorReport::default() };
        assert_eq!(quota.take(now, counts), Ok(TakenReport { counted: counts, excess: 0 }));
        let all = AnchorReport {
            used: u32::MAX,
            late: u32::MAX,
            lost: 5,
            duplicate: 0,
            former_epoch: u32::MAX,
        };
        let taken = quota.take(now + SECOND, all).unwrap();
        let counted = AnchorReport { used: 3, late: 3, ..AnchorReport::default() };
        assert_eq!(taken.counted, counted);
        assert_eq!(taken.excess, 3 * u64::from(u32::MAX) + 5 - 6);
        quota.on_sent();
        let late = AnchorReport { late: 9, ..AnchorReport::default() };
        let taken = quota.take(now + 2 * SECOND, late).unwrap();
        assert_eq!(taken.counted, AnchorReport::default(), "what is late was used");
    }

    #[test]
    fn reports_come_once_a_second_and_two_may_be_early() {
        let (mut quota, start) = (sent(0), Instant::now());
        let mut at = |ms: u64| {
            quota.take(start + Duration::from_millis(ms), AnchorReport::default()).is_ok()
        };
        assert!(at(0) && at(10) && at(20));
        assert!(!at(30) && !at(900));
        assert!(at(1000) && !at(1900) && at(2000));
    }

    #[test]
    fn a_report_on_a_track_without_a_subscription_is_refused() {
        let (mut harness, track, _) = crate::core::tests::harness::call();
        let anchors = AnchorReport { used: 1, ..AnchorReport::default() };
        let (now, counts) = (harness.now, TrackReport { anchors, ..TrackReport::default() });
        let mut report = |id, track| harness.core.report(now, id, track, counts);
        let publisher = ParticipantId(1);
        for (id, track) in [(publisher, track), (ParticipantId(99), track)] {
            assert_eq!(report(id, track), Err(ReportError::NotWatched));
        }
        let subscriber = crate::core::tests::harness::SUBSCRIBER;
        assert_eq!(report(subscriber, TrackId(99)), Err(ReportError::NotWatched));
        let taken = report(subscriber, track).unwrap();
        assert_eq!((taken.counted.used, taken.excess), (0, 1), "no anchor was sent");
    }
}
