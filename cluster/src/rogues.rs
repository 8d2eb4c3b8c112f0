//! How often what lies in buckets was not the cluster's own, and when that is said in the log.
//!
//! Pure: every time is an argument.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::sealed::Rogue;

/// Of one bucket, and for one reason, it is said once in so long.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// What was refused so far, by bucket and reason.
#[derive(Debug, Default)]
pub struct Rogues(BTreeMap<(&'static str, &'static str), Refused>);

#[derive(Debug, Default)]
struct Refused {
    count: u64,
    told: Option<(Instant, u64)>,
}

impl Rogues {
    /// A bucket is read from now on: where nothing is refused, that is said too.
    pub fn reads(&mut self, bucket: &'static str) {
        for why in Rogue::ALL {
            self.0.entry((bucket, why.name())).or_default();
        }
    }

    /// Something was refused. How often since that was said last, if it is to be said now.
    pub fn refused(&mut self, bucket: &'static str, why: Rogue, now: Instant) -> Option<u64> {
        let refused = self.0.entry((bucket, why.name())).or_default();
        refused.count += 1;
        let before = match refused.told {
            Some((at, _)) if now.saturating_duration_since(at) < TELL_EVERY => return None,
            told => told.map_or(0, |(_, count)| count),
        };
        refused.told = Some((now, refused.count));
        Some(refused.count - before)
    }

    /// How often, by bucket and reason.
    pub fn counts(&self) -> Vec<(&'static str, &'static str, u64)> {
        self.0.iter().map(|((bucket, why), refused)| (*bucket, *why, refused.count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_whole_and_said_once_a_minute() {
        let (mut rogues, now) = (Rogues::default(), Instant::now());
        assert_eq!(rogues.refused("b", Rogue::Forged, now), Some(1));
        for ms in 0..5_000 {
            let at = now + Duration::from_millis(ms);
            assert_eq!(rogues.refused("b", Rogue::Forged, at), None);
        }
        // Another reason is other news.
        assert_eq!(rogues.refused("b", Rogue::Replayed, now), Some(1));
        let minute = now + TELL_EVERY;
        assert_eq!(rogues.refused("b", Rogue::Forged, minute), Some(5_001));
        assert_eq!(rogues.counts(), [("b", "forged", 5_002), ("b", "replayed", 1)]);
    }
}
