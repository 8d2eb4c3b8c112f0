//! Which rung each track of one subscriber gets.
//!
//! The ladder is q < q+ < h < h+ < f, cut to the layers that the publisher really sends and to the best rung that
//! the client asked for. Every track gets its lowest rung; then all are raised in turn, step by step, while the
//! sum, anchors included, fits the bandwidth. To rise needs more room than to stay, and not just after a fall.

use std::time::{Duration, Instant};

use windlass_media::{Layer, Rung};

/// What anchors are assumed to take before they have been measured, in bits per second.
pub const ANCHORS_ASSUMED_BPS: u64 = 120_000;
/// What an enhanced rung needs for anchors at most: where they would take more, pacing thins them out.
const ANCHORS_NEEDED_BPS: u64 = 150_000;
/// How long after a fall nothing rises.
const AFTER_FALL: Duration = Duration::from_secs(3);
/// How long the estimate may be short before anything falls: on a busy machine it dips for a moment at a time. A fall
/// by more than half is believed at once.
const PATIENCE: Duration = Duration::from_millis(1500);
/// To rise, a sum must fit this share of the estimate.
const TO_RISE: f64 = 0.85;
/// To stay, this share will do: measured rates swing.
const TO_STAY: f64 = 1.1;

/// Room for the next swing when looking for bandwidth.
const MARGIN: f64 = 1.2;

const LADDER: [Rung; 5] = [Rung::Q, Rung::QPlus, Rung::H, Rung::HPlus, Rung::F];

/// What one track could be given.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    /// The best rung that the client wants.
    pub max: Rung,
    /// Bits per second of each layer that is being sent, smallest first.
    pub rates: [Option<u64>; 3],
    /// Whether anchors can reach the subscriber.
    pub anchors: bool,
    /// What the track's anchors take, in bits per second.
    pub anchor_bps: u64,
    /// What it has now.
    pub current: Option<Rung>,
}

impl Demand {
    fn cost(&self, rung: Rung) -> Option<u64> {
        if rung > self.max || rung.enhanced() && !self.anchors {
            return None;
        }
        let video = self.rates[rung.layer() as usize]?;
        Some(video + if rung.enhanced() { self.anchor_bps.min(ANCHORS_NEEDED_BPS) } else { 0 })
    }

    /// What an estimate must reach for the next rung above `rung`, and for the best one, in bits per second;
    /// zero for a next one where there is none.
    pub fn wishes(&self, rung: Option<Rung>) -> (u64, u64) {
        let needs = |bps: u64| (bps as f64 / TO_RISE * MARGIN) as u64;
        let ladder = self.ladder();
        let next =
            ladder.iter().filter(|r| rung.is_none_or(|rung| r.0 > rung)).map(|r| needs(r.1)).min();
        let best = ladder.iter().map(|r| needs(r.1)).max();
        (next.unwrap_or(0), best.unwrap_or(0))
    }

    /// The rungs that can be had with their costs; where the publisher sends nothing below the wanted rung, the
    /// smallest that it does send.
    fn ladder(&self) -> Vec<(Rung, u64)> {
        let ladder: Vec<_> = LADDER.into_iter().filter_map(|r| Some((r, self.cost(r)?))).collect();
        if !ladder.is_empty() {
            return ladder;
        }
        let smallest =
            Layer::ALL.into_iter().find_map(|l| Some((Rung::plain(l), self.rates[l as usize]?)));
        smallest.into_iter().collect()
    }
}

/// Allocates for one subscriber.
#[derive(Debug, Default)]
pub struct Allocator {
    fell: Option<Instant>,
    short_since: Option<Instant>,
}

impl Allocator {
    /// Gives each demand its rung; `None` where nothing is being sent. `available_bps` is what video and anchors
    /// may take; `None` means that only the client's wishes count.
    pub fn allocate(
        &mut self,
        now: Instant,
        available_bps: Option<u64>,
        demands: &[Demand],
    ) -> Vec<Option<Rung>> {
        let available_bps = available_bps.map(|bps| self.forgive(now, bps, demands));
        let may_rise =
            self.fell.is_none_or(|fell| now.saturating_duration_since(fell) >= AFTER_FALL);
        let ladders: Vec<_> = demands.iter().map(Demand::ladder).collect();
        let mut steps: Vec<usize> = vec![0; demands.len()];
        let cost = |i: usize, step: usize| ladders[i].get(step).map_or(0, |r| r.1);
        let mut total: u64 = (0..demands.len()).map(|i| cost(i, 0)).sum();
        let mut raised = true;
        while raised {
            raised = false;
            for (i, demand) in demands.iter().enumerate() {
                // A step may not fit where the next one does: a costly anchor, a cheap layer.
                for (next, &(rung, bps)) in ladders[i].iter().enumerate().skip(steps[i] + 1) {
                    let sum = total - cost(i, steps[i]) + bps;
                    let rises = demand.current.is_none_or(|current| rung > current);
                    let fits = available_bps.is_none_or(|available| {
                        let share = if rises { TO_RISE } else { TO_STAY };
                        sum as f64 <= available as f64 * share
                    });
                    if fits && (may_rise || !rises || available_bps.is_none()) {
                        steps[i] = next;
                        total = sum;
                        raised = true;
                        break;
                    }
                }
            }
        }
        let rungs: Vec<_> =
            steps.iter().zip(&ladders).map(|(&s, l)| l.get(s).map(|r| r.0)).collect();
        let fell = demands.iter().zip(&rungs).any(|(d, r)| {
            // Only a fall for want of bandwidth counts, not one that the publisher or the client caused.
            d.current.is_some_and(|c| r.is_some_and(|r| r < c) && d.cost(c).is_some())
        });
        if fell {
            self.fell = Some(now);
        }
        rungs
    }

    /// The estimate, or for a moment what the current rungs need, where it has only just become too small for them.
    fn forgive(&mut self, now: Instant, available_bps: u64, demands: &[Demand]) -> u64 {
        let held: u64 = demands.iter().filter_map(|d| d.cost(d.current?)).sum();
        let needed = (held as f64 / TO_STAY).ceil() as u64;
        if available_bps >= needed {
            self.short_since = None;
            return available_bps;
        }
        let since = *self.short_since.get_or_insert(now);
        let lasting = now.saturating_duration_since(since) >= PATIENCE;
        if lasting || available_bps < needed / 2 { available_bps } else { needed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Demand = Demand {
        max: Rung::F,
        rates: [Some(150_000), Some(500_000), Some(1_500_000)],
        anchors: true,
        anchor_bps: 100_000,
        current: None,
    };

    fn one(available: Option<u64>, demand: Demand) -> Option<Rung> {
        Allocator::default().allocate(Instant::now(), available, &[demand])[0]
    }

    #[test]
    fn the_best_rung_that_fits_is_given() {
        assert_eq!(one(Some(3_000_000), ALL), Some(Rung::F));
        assert_eq!(one(Some(1_000_000), ALL), Some(Rung::HPlus));
        assert_eq!(one(Some(650_000), ALL), Some(Rung::H));
        assert_eq!(one(Some(400_000), ALL), Some(Rung::QPlus));
        assert_eq!(one(Some(10_000), ALL), Some(Rung::Q));
    }

    #[test]
    fn what_is_not_sent_cannot_be_given() {
        assert_eq!(
            one(None, Demand { rates: [Some(150_000), None, None], ..ALL }),
            Some(Rung::QPlus)
        );
        assert_eq!(one(None, Demand { rates: [None, None, None], ..ALL }), None);
        assert_eq!(
            one(None, Demand { anchors: false, rates: [Some(1), Some(1), None], ..ALL }),
            Some(Rung::H)
        );
    }

    #[test]
    fn the_client_sets_the_upper_end() {
        assert_eq!(one(None, Demand { max: Rung::HPlus, ..ALL }), Some(Rung::HPlus));
        assert_eq!(one(None, Demand { max: Rung::Q, ..ALL }), Some(Rung::Q));
        assert_eq!(
            one(None, Demand { max: Rung::Q, rates: [None, None, Some(1)], ..ALL }),
            Some(Rung::F)
        );
    }

    #[test]
    fn the_next_rung_says_what_to_look_for() {
        let (next, best) = ALL.wishes(Some(Rung::Q));
        assert!((300_000..400_000).contains(&next) && best > 2_000_000, "{next} {best}");
        assert_eq!(ALL.wishes(Some(Rung::F)), (0, best));
    }

    #[test]
    fn costly_anchors_are_thinned_out_rather_than_given_up() {
        let costly = Demand { anchor_bps: 5_000_000, ..ALL };
        assert_eq!(one(Some(1_000_000), costly), Some(Rung::HPlus));
    }

    #[test]
    fn bandwidth_is_shared_among_tracks() {
        let rungs = Allocator::default().allocate(Instant::now(), Some(1_500_000), &[ALL, ALL]);
        assert_eq!(rungs, [Some(Rung::HPlus), Some(Rung::HPlus)]);
    }

    #[test]
    fn a_short_dip_is_forgiven_and_a_collapse_is_not() {
        let now = Instant::now();
        let held = Demand { current: Some(Rung::HPlus), ..ALL };
        let mut allocator = Allocator::default();
        let mut at =
            |ms, bps| allocator.allocate(now + Duration::from_millis(ms), Some(bps), &[held])[0];
        assert_eq!(at(0, 400_000), Some(Rung::HPlus));
        assert_eq!(at(1000, 700_000), Some(Rung::HPlus));
        assert_eq!(at(2000, 400_000), Some(Rung::HPlus), "the dip before was over");
        assert_eq!(at(2200, 200_000), Some(Rung::Q));
    }

    #[test]
    fn a_small_swing_changes_nothing_and_a_fall_lasts() {
        let now = Instant::now();
        let mut allocator = Allocator::default();
        let held = Demand { current: Some(Rung::H), ..ALL };
        assert_eq!(allocator.allocate(now, Some(480_000), &[held]), [Some(Rung::H)]);
        assert_eq!(allocator.allocate(now, Some(300_000), &[held]), [Some(Rung::H)]);
        let now = now + PATIENCE;
        assert_eq!(allocator.allocate(now, Some(300_000), &[held]), [Some(Rung::QPlus)]);
        let fallen = Demand { current: Some(Rung::QPlus), ..ALL };
        assert_eq!(allocator.allocate(now, Some(2_000_000), &[fallen]), [Some(Rung::QPlus)]);
        assert_eq!(
            allocator.allocate(now + AFTER_FALL, Some(2_000_000), &[fallen]),
            [Some(Rung::F)]
        );
    }
}
