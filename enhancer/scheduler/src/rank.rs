//! The order of all candidates of a tick: streams within their fair share first, then by tier, then by gain.

use std::cmp::Reverse;
use std::time::Duration;

use crate::candidate::{Candidate, Tier};

/// Time after which an unchanged picture gets an anchor all the same, because the last one may have been lost.
const REFRESH: Duration = Duration::from_secs(5);
/// Resolution of fairness: streams that are ahead of their fair share, or behind it, by this many anchors rank alike.
const ANCHORS_PER_STEP: f64 = 2.0;

/// One candidate among those of all streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranked {
    pub candidate: Candidate,
    /// Steps by which its stream would be ahead of its fair share, or behind it.
    pub ahead: i32,
    pub tier: Tier,
    pub gain: u64,
    pub network: usize,
    /// Expected cost of its anchor.
    pub cost: Duration,
    pub last_chosen: Duration,
    /// Residual accumulated up to and with the frame, in bytes.
    pub residual: u64,
    pub position: usize,
    /// Whether a plan wants the candidate as an anchor.
    pub planned: bool,
}

impl Ranked {
    /// Sort key of the candidate among those of all streams. The smallest goes first.
    pub(crate) fn rank(&self) -> impl Ord + use<> {
        let Ranked { ahead, tier, last_chosen, position, planned, .. } = *self;
        let Candidate { id, stream, .. } = self.candidate;
        (!planned, ahead, tier, Reverse(self.gain), last_chosen, stream, position, id)
    }

    /// Whether hardly anything has changed since the last anchor.
    pub(crate) fn is_unchanged(&self, now: Duration, min_residual: f64) -> bool {
        let c = &self.candidate;
        let min = f64::from(c.size.pixels()) * min_residual;
        c.tier != Tier::Key
            && (self.residual as f64) < min
            && now.saturating_sub(self.last_chosen) < REFRESH
    }
}

/// Sorts one stream's candidates and sets for each how far ahead of its fair share the stream would be. The stream has
/// spent `spent_s` of `fair_s` inference seconds.
pub(crate) fn order_stream(own: &mut [Ranked], mut spent_s: f64, fair_s: f64) {
    own.sort_unstable_by_key(Ranked::rank);
    for ranked in own {
        let cost = ranked.cost.as_secs_f64();
        let ahead = (spent_s - fair_s) / (ANCHORS_PER_STEP * cost).max(1e-9);
        // The cast makes 0 of what is not a number.
        ranked.ahead = ahead.round() as i32;
        spent_s += cost;
    }
}

/// Whether two candidates rank alike but for the names of streams and frames.
#[cfg(test)]
pub(crate) fn ties(a: &Ranked, b: &Ranked) -> bool {
    let rank = |r: &Ranked| (r.tier, r.gain, r.last_chosen);
    rank(a) == rank(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::candidate;

    fn ranked(stream: u32, tier: Tier, gain: u64) -> Ranked {
        Ranked {
            candidate: candidate(u64::from(stream), stream, tier, 10, Duration::ZERO),
            ahead: 0,
            tier,
            gain,
            network: 0,
            cost: Duration::from_millis(10),
            last_chosen: Duration::ZERO,
            residual: 10,
            position: 0,
            planned: false,
        }
    }

    #[test]
    fn plans_come_first_then_fairness_then_tiers_then_gains() {
        let mut all = [
            ranked(1, Tier::Normal, 10),
            ranked(2, Tier::Normal, 20),
            ranked(3, Tier::Key, 0),
            Ranked { ahead: -1, ..ranked(4, Tier::Normal, 0) },
            Ranked { planned: true, ahead: 9, ..ranked(5, Tier::Normal, 0) },
        ];
        all.sort_unstable_by_key(Ranked::rank);
        assert_eq!(all.map(|ranked| ranked.candidate.stream.0), [5, 4, 3, 2, 1]);
    }

    #[test]
    fn each_further_anchor_brings_a_stream_further_ahead() {
        let mut own =
            [ranked(1, Tier::Normal, 1), ranked(1, Tier::Key, 0), ranked(1, Tier::Normal, 9)];
        order_stream(&mut own, 0.061, 0.02);
        assert_eq!(own.map(|ranked| (ranked.gain, ranked.ahead)), [(0, 2), (9, 3), (1, 3)]);
    }
}
