//! What subscribers say became of their anchors, taken for as much as can be true: nobody can have more than was sent to it.
//!
//! A report is about a subscription, once a second. What it says of anchors is bounded by those that went out on that
//! subscription and of which nothing was said yet, so that figures and alerts that are made of reports cannot be forged.

use std::time::{Duration, Instant};

use super::Core;
use crate::api::{AnchorReport, ParticipantId, ReportError, TakenReport, TrackId};

/// Between two reports, in the mean.
const PACE: Duration = Duration::from_secs(1);
/// By so much one may come early: what was delayed on its way comes at once with what follows.
const EARLY: Duration = Duration::from_secs(2);

/// What a subscription may still be told of.
#[derive(Debug, Default, Clone, Copy)]
pub struct Claims {
    /// Anchors that went out, whole or in part, of which nothing was said yet.
    unsaid: u64,
    /// When a report would be neither early nor late.
    due: Option<Instant>,
}

impl Claims {
    /// One more went out.
    pub fn sent(&mut self) {
        self.unsaid += 1;
    }

    /// Takes a report, unless it comes too early.
    fn take(&mut self, now: Instant, said: AnchorReport) -> Result<TakenReport, ReportError> {
        let due = self.due.unwrap_or(now);
        if now + EARLY < due {
            return Err(ReportError::TooSoon);
        }
        self.due = Some(due.max(now) + PACE);
        let mut left = self.unsaid;
        let mut most = |said: u32| {
            let counted = u64::from(said).min(left);
            left -= counted;
            counted as u32
        };
        let used = most(said.used);
        let counted = AnchorReport {
            used,
            late: said.late.min(used),
            lost: most(said.lost),
            duplicate: most(said.duplicate),
            former_epoch: most(said.former_epoch),
        };
        self.unsaid = left;
        Ok(TakenReport { excess: said.all() - counted.all(), counted })
    }
}

impl Core {
    /// Somebody who watches a track says what became of its anchors, and by how much its picture got worse with each of so many
    /// frames after one.
    pub fn report(
        &mut self,
        now: Instant,
        id: ParticipantId,
        track: TrackId,
        said: AnchorReport,
        decay: Option<(f64, f64)>,
    ) -> Result<TakenReport, ReportError> {
        let peer = self.peers.get_mut(&id).ok_or(ReportError::NotWatched)?;
        let slot = peer.slots.iter_mut().find(|slot| slot.track == Some(track));
        let slot = slot.ok_or(ReportError::NotWatched)?;
        let taken = slot.sent.claims.take(now, said)?;
        // Without anchors nothing can be known of how long they last.
        if let Some(decay) = decay.filter(|_| slot.sent.anchors > 0) {
            self.decay(id, track, decay);
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn sent(count: u64) -> Claims {
        Claims { unsaid: count, due: None }
    }

    #[test]
    fn what_was_sent_is_counted_and_nothing_beyond_it() {
        let (mut claims, now) = (sent(10), Instant::now());
        let said = AnchorReport { used: 6, late: 2, lost: 1, ..AnchorReport::default() };
        assert_eq!(claims.take(now, said), Ok(TakenReport { counted: said, excess: 0 }));
        let all = AnchorReport {
            used: u32::MAX,
            late: u32::MAX,
            lost: 5,
            duplicate: 0,
            former_epoch: u32::MAX,
        };
        let taken = claims.take(now + SECOND, all).unwrap();
        let counted = AnchorReport { used: 3, late: 3, ..AnchorReport::default() };
        assert_eq!(taken.counted, counted);
        assert_eq!(taken.excess, 3 * u64::from(u32::MAX) + 5 - 6);
        claims.sent();
        let late = AnchorReport { late: 9, ..AnchorReport::default() };
        let taken = claims.take(now + 2 * SECOND, late).unwrap();
        assert_eq!(taken.counted, AnchorReport::default(), "what is late was used");
    }

    #[test]
    fn reports_come_once_a_second_and_two_may_be_early() {
        let (mut claims, start) = (sent(0), Instant::now());
        let mut at = |ms: u64| {
            claims.take(start + Duration::from_millis(ms), AnchorReport::default()).is_ok()
        };
        assert!(at(0) && at(10) && at(20));
        assert!(!at(30) && !at(900));
        assert!(at(1000) && !at(1900) && at(2000));
    }

    #[test]
    fn nobody_reports_of_what_it_does_not_watch() {
        let (mut world, track, _) = super::super::world::call();
        let (now, said) = (world.now, AnchorReport { used: 1, ..AnchorReport::default() });
        let mut report = |id, track| world.core.report(now, id, track, said, None);
        let publisher = ParticipantId(1);
        for (id, track) in [(publisher, track), (ParticipantId(99), track)] {
            assert_eq!(report(id, track), Err(ReportError::NotWatched));
        }
        let subscriber = super::super::world::SUBSCRIBER;
        assert_eq!(report(subscriber, TrackId(99)), Err(ReportError::NotWatched));
        let taken = report(subscriber, track).unwrap();
        assert_eq!((taken.counted.used, taken.excess), (0, 1), "no anchor was sent");
    }
}
