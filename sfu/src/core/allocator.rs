//! Allocates one subscriber's bandwidth among its tracks: each gets a rung, or is paused.
//!
//! A *rung* is a quality level (LiveKit's `VideoQuality`, libwebrtc's target layer): a simulcast layer, or (`+`) a layer with anchors. The
//! rungs are q, q+, h, h+ and f. A track's *ladder* has those whose layer is sent, up to the client's maximum, without rungs that a
//! cheaper one equals in quality. Quality in the tile is predicted ([`quality`]); bitrates of anchors are measured
//! ([`anchor_costs`](super::anchor_costs)).
//!
//! 1. Each track gets its lowest rung, by descending weight, while the budget lasts. The others are paused; the first never is.
//! 2. Tracks rise by the step with the greatest weight × gain of quality / additional bitrate that fits, until none fits.
//!
//! Hysteresis: a rise needs more room than a held rung, waits for [`RISE_DELAY`] after a fall, and a held step counts more.

use std::time::{Duration, Instant};

use windlass_types::{Layer, Rung};

use super::anchor_costs::AnchorCosts;
use super::quality;

/// Time after a fall in which no rung rises, so that the estimate can settle.
const RISE_DELAY: Duration = Duration::from_secs(3);
/// Time for which the estimate may be too low before a rung falls: on a busy machine it dips for moments. Congestion lowers rungs at once.
const FALL_DELAY: Duration = Duration::from_millis(1500);
/// Share of the estimate that the sum of rungs may use after a rise.
const RISE_SHARE: f64 = 0.9;
/// Share of the estimate that held rungs may use: measured bitrates swing.
const HOLD_SHARE: f64 = 1.1;
/// Factor of the weight of what a subscriber has already.
const HELD_FACTOR: f64 = 4.0;
/// Points of quality by which another layer must be better than the held one, unless it is cheaper: a change costs a key frame.
const HELD_BONUS: f64 = 2.0;
/// Factor of the bitrate to probe for above the next rung's need, as room for swings.
const PROBE_MARGIN: f64 = 1.15;

/// All rungs, lowest first.
const LADDER: [Rung; 5] = [Rung::Q, Rung::QPlus, Rung::H, Rung::HPlus, Rung::F];

/// The demand of one track.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand {
    /// Maximum rung, from the client and its tile.
    pub max: Rung,
    /// Bitrate of each layer that is sent, in bit/s, smallest first.
    pub rates: [Option<u64>; 3],
    /// Width and height of each layer.
    pub sizes: [(u16, u16); 3],
    /// Expected anchor bitrates of each layer; `None`: the subscriber can get none.
    pub anchors: [Option<AnchorCosts>; 3],
    /// Size of the tile in device pixels.
    pub tile: (u16, u16),
    /// The rung that is held now.
    pub current: Option<Rung>,
    /// Weight among the subscriber's tracks.
    pub weight: f64,
}

/// The estimate that one track needs, in bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BitrateNeeds {
    /// For the held rung.
    pub held: u64,
    /// For the next better rung; `None`: there is none.
    pub next: Option<u64>,
    /// For the best rung.
    pub best: u64,
}

/// The result for one track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grant {
    /// A rung.
    Rung(Rung),
    /// Paused, as the bandwidth does not suffice.
    Paused,
    /// Unchanged, as its publisher sends no layer.
    Silent,
}

/// A rung of a ladder, its bitrate in bit/s, and its quality in points.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    rung: Rung,
    bps: u64,
    quality: f64,
}

impl Demand {
    fn step(&self, rung: Rung) -> Option<Step> {
        let layer = rung.layer();
        let anchors =
            if rung.enhanced() { self.anchors[layer as usize]? } else { AnchorCosts::default() };
        if rung > self.max {
            return None;
        }
        let video_bps = self.rates[layer as usize]?;
        let quality = quality::predict(
            self.sizes[layer as usize],
            video_bps,
            rung.enhanced().then_some(anchors),
            self.tile,
        );
        Some(Step { rung, bps: video_bps + anchors.bps(), quality })
    }

    /// The estimate that the track needs while it holds `current`.
    pub(super) fn bitrate_needs(&self, current: Option<Rung>) -> BitrateNeeds {
        let needs = |bps: u64| (bps as f64 / RISE_SHARE * PROBE_MARGIN) as u64;
        let ladder = self.ladder();
        let held = current.and_then(|rung| self.step(rung)).map_or(0, |step| needs(step.bps));
        let next = ladder.iter().map(|step| needs(step.bps)).filter(|bps| *bps > held).min();
        let best = ladder.iter().map(|step| needs(step.bps)).max().unwrap_or(0);
        BitrateNeeds { held, next, best }
    }

    /// The ladder, each rung with more bitrate and quality than the one before. If no layer up to the maximum is sent, the smallest layer
    /// that is sent.
    fn ladder(&self) -> Vec<Step> {
        let mut ladder: Vec<_> = LADDER.into_iter().filter_map(|rung| self.step(rung)).collect();
        if ladder.is_empty() {
            let sent = Layer::ALL.into_iter().find(|&layer| self.rates[layer as usize].is_some());
            let unlimited = Demand { max: Rung::F, ..*self };
            return sent.and_then(|layer| unlimited.step(Rung::plain(layer))).into_iter().collect();
        }
        let held = self.current.map(Rung::layer);
        for step in ladder.iter_mut().filter(|step| Some(step.rung.layer()) == held) {
            step.quality += HELD_BONUS;
        }
        ladder.sort_by(|a, b| a.bps.cmp(&b.bps).then(b.quality.total_cmp(&a.quality)));
        let mut best = f64::NEG_INFINITY;
        ladder.retain(|step| {
            let better = step.quality > best;
            best = best.max(step.quality);
            better
        });
        ladder
    }

    /// Whether a step takes no more than the held rung.
    fn holds(&self, step: &Step) -> bool {
        let Some(current) = self.current else { return false };
        self.step(current).map_or(step.rung <= current, |current| step.bps <= current.bps)
    }

    /// Whether a grant lowers quality for less bitrate. (Other falls are the publisher's or the client's.)
    fn falls_to(&self, grant: Grant) -> bool {
        let Some(current) = self.current.and_then(|rung| self.step(rung)) else { return false };
        match grant {
            Grant::Rung(rung) => self
                .step(rung)
                .is_some_and(|step| step.quality < current.quality && step.bps < current.bps),
            Grant::Paused => true,
            Grant::Silent => false,
        }
    }
}

/// The allocator of one subscriber.
#[derive(Debug, Default)]
pub(super) struct Allocator {
    last_fall: Option<Instant>,
    /// Since when the estimate is too low for the held rungs.
    short_since: Option<Instant>,
}

/// The bandwidth that one allocation shares out.
struct Budget {
    spent_bps: u64,
    /// `None`: unlimited.
    available_bps: Option<u64>,
    /// Share of it for held rungs.
    hold_share: f64,
    may_rise: bool,
}

impl Budget {
    /// Whether `more_bps` fit, for a held rung or a new one.
    fn fits(&self, more_bps: u64, held: bool) -> bool {
        let Some(available) = self.available_bps else { return true };
        let share = if held { self.hold_share } else { RISE_SHARE };
        (held || self.may_rise) && (self.spent_bps + more_bps) as f64 <= available as f64 * share
    }
}

impl Allocator {
    /// Grants each demand its rung. `available_bps` is for video and anchors; `None` means no limit. `congested`: rungs fall at once,
    /// without [`FALL_DELAY`].
    pub(super) fn allocate(
        &mut self,
        now: Instant,
        available_bps: Option<u64>,
        congested: bool,
        demands: &[Demand],
    ) -> Vec<Grant> {
        let available_bps =
            available_bps.map(|bps| if congested { bps } else { self.smoothed(now, bps, demands) });
        let may_rise =
            self.last_fall.is_none_or(|at| now.saturating_duration_since(at) >= RISE_DELAY);
        let hold_share = if congested { 1.0 } else { HOLD_SHARE };
        let mut budget = Budget { spent_bps: 0, available_bps, hold_share, may_rise };
        let ladders: Vec<_> = demands.iter().map(Demand::ladder).collect();
        let steps = lowest_steps(demands, &ladders, &mut budget);
        let steps = raise_steps(demands, &ladders, steps, &mut budget);
        let grants: Vec<_> = steps
            .iter()
            .zip(&ladders)
            .map(|(step, ladder)| match step {
                _ if ladder.is_empty() => Grant::Silent,
                Some(step) => Grant::Rung(ladder[*step].rung),
                None => Grant::Paused,
            })
            .collect();
        let fell = demands.iter().zip(&grants).any(|(demand, grant)| demand.falls_to(*grant));
        if fell {
            self.last_fall = Some(now);
        }
        grants
    }

    /// The estimate, or what the held rungs need while it has been too low for less than [`FALL_DELAY`].
    fn smoothed(&mut self, now: Instant, available_bps: u64, demands: &[Demand]) -> u64 {
        let held: u64 = demands.iter().filter_map(|d| Some(d.step(d.current?)?.bps)).sum();
        let needed = (held as f64 / HOLD_SHARE).ceil() as u64;
        if available_bps >= needed {
            self.short_since = None;
            return available_bps;
        }
        let since = *self.short_since.get_or_insert(now);
        let lasting = now.saturating_duration_since(since) >= FALL_DELAY;
        if lasting { available_bps } else { needed }
    }
}

/// Gives each track its lowest step, by descending weight; `None` where that does not fit.
fn lowest_steps(
    demands: &[Demand],
    ladders: &[Vec<Step>],
    budget: &mut Budget,
) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..demands.len()).filter(|&i| !ladders[i].is_empty()).collect();
    // Tracks that are shown come before new ones.
    let rank =
        |i: usize| demands[i].weight * if demands[i].current.is_some() { HELD_FACTOR } else { 1.0 };
    order.sort_by(|&a, &b| rank(b).total_cmp(&rank(a)));
    let mut steps = vec![None; demands.len()];
    for (place, i) in order.into_iter().enumerate() {
        let bps = ladders[i][0].bps;
        if place == 0 || budget.fits(bps, demands[i].current.is_some()) {
            steps[i] = Some(0);
            budget.spent_bps += bps;
        }
    }
    steps
}

/// Raises tracks by the step with the greatest gain for its bitrate, until none fits. Of the tracks that are shown only one rises at a
/// time: each rise is a key frame, and several at once would fill the queue.
fn raise_steps(
    demands: &[Demand],
    ladders: &[Vec<Step>],
    mut steps: Vec<Option<usize>>,
    budget: &mut Budget,
) -> Vec<Option<usize>> {
    let mut riser = None;
    loop {
        let mut best: Option<(f64, usize, usize, u64)> = None;
        for (i, demand) in demands.iter().enumerate() {
            let Some(step) = steps[i] else { continue };
            let from = ladders[i][step];
            // All steps that fit: a small gain must not hide a large one.
            for (next, to) in ladders[i].iter().enumerate().skip(step + 1) {
                let held = demand.holds(to);
                let more = to.bps - from.bps;
                let waits = !held && demand.current.is_some() && riser.is_some_and(|r| r != i);
                if waits || !budget.fits(more, held) {
                    break;
                }
                let worth = demand.weight * (to.quality - from.quality) / more.max(1) as f64
                    * if held { HELD_FACTOR } else { 1.0 };
                if best.is_none_or(|best| worth > best.0) {
                    best = Some((worth, i, next, more));
                }
            }
        }
        let Some((_, i, next, more)) = best else { return steps };
        steps[i] = Some(next);
        budget.spent_bps += more;
        if demands[i].current.is_some() && !demands[i].holds(&ladders[i][next]) {
            riser = Some(i);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STILLS: Option<AnchorCosts> =
        Some(AnchorCosts { captured_bps: 100_000, captured_octaves: 2, enhanced_bps: 0 });
    const ALL: Demand = Demand {
        max: Rung::F,
        rates: [Some(150_000), Some(500_000), Some(1_500_000)],
        sizes: [(320, 180), (640, 360), (1280, 720)],
        anchors: [STILLS, STILLS, None],
        tile: (1280, 720),
        current: None,
        weight: 1.0,
    };

    fn rung(grant: Grant) -> Option<Rung> {
        if let Grant::Rung(rung) = grant { Some(rung) } else { None }
    }

    fn one(available: Option<u64>, demand: Demand) -> Option<Rung> {
        rung(Allocator::default().allocate(Instant::now(), available, false, &[demand])[0])
    }

    #[test]
    fn the_best_rung_that_fits_is_given() {
        assert_eq!(one(Some(3_000_000), ALL), Some(Rung::F));
        assert_eq!(one(Some(1_000_000), ALL), Some(Rung::HPlus));
        assert_eq!(one(Some(650_000), ALL), Some(Rung::H));
        assert_eq!(one(Some(400_000), ALL), Some(Rung::QPlus));
        assert_eq!(one(Some(10_000), ALL), Some(Rung::Q));
    }

    /// Stills of a fifth of the quarter layer's bits.
    const USUAL: Option<AnchorCosts> =
        Some(AnchorCosts { captured_bps: 30_000, captured_octaves: 2, enhanced_bps: 0 });

    #[test]
    fn of_the_same_bits_the_rung_is_given_that_looks_better_at_the_size_shown() {
        let rung = |h_bps: u64, tile: (u16, u16)| {
            let rates = [Some(150_000), Some(h_bps), None];
            let anchors = [USUAL, None, None];
            let bps = 185_000.0 / RISE_SHARE;
            one(Some(bps as u64), Demand { rates, anchors, tile, ..ALL })
        };
        assert_eq!(rung(180_000, (1280, 720)), Some(Rung::H), "a half layer that has its bits");
        assert_eq!(rung(60_000, (1280, 720)), Some(Rung::QPlus), "one that has not");
        assert_eq!(rung(100_000, (640, 360)), Some(Rung::QPlus), "where it is not enlarged");
    }

    #[test]
    fn a_rung_that_a_cheaper_one_is_as_good_as_is_never_given() {
        let starved = [Some(150_000), Some(400_000), Some(160_000)];
        let demand = Demand { rates: starved, anchors: [None; 3], ..ALL };
        assert_eq!(one(None, demand), Some(Rung::H));
        assert_eq!(one(None, Demand { current: Some(Rung::F), ..demand }), Some(Rung::H));
    }

    #[test]
    fn a_layer_that_is_held_is_not_left_for_one_that_looks_hardly_better() {
        let near =
            Demand { rates: [None, Some(500_000), Some(620_000)], anchors: [None; 3], ..ALL };
        let better = |demand: &Demand| {
            let quality = |rung| demand.step(rung).expect("sent").quality;
            quality(Rung::F) - quality(Rung::H)
        };
        let bps = (400_000..900_000).step_by(5000).find(|&bps| {
            better(&Demand { rates: [None, Some(500_000), Some(bps)], ..near }) > HELD_BONUS / 2.0
        });
        let near = Demand { rates: [None, Some(500_000), bps], ..near };
        assert!(better(&near) < HELD_BONUS, "{near:?}");
        assert_eq!(one(None, near), Some(Rung::F));
        assert_eq!(one(None, Demand { current: Some(Rung::H), ..near }), Some(Rung::H));
    }

    #[test]
    fn anchors_that_cost_nothing_are_taken() {
        let free = Some(AnchorCosts::default());
        let demand = Demand { rates: [Some(150_000), None, None], anchors: [free; 3], ..ALL };
        assert_eq!(one(Some(170_000), demand), Some(Rung::QPlus));
    }

    #[test]
    fn what_is_not_sent_cannot_be_given() {
        assert_eq!(
            one(None, Demand { rates: [Some(150_000), None, None], ..ALL }),
            Some(Rung::QPlus)
        );
        assert_eq!(one(None, Demand { rates: [None, None, None], ..ALL }), None);
        assert_eq!(
            one(None, Demand { anchors: [None; 3], rates: [Some(1), Some(1), None], ..ALL }),
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
        let needs = ALL.bitrate_needs(Some(Rung::Q));
        assert!((300_000..400_000).contains(&needs.next.expect("q+")), "{needs:?}");
        assert!(needs.best > 1_900_000 && needs.held < 200_000, "{needs:?}");
        assert_eq!(ALL.bitrate_needs(Some(Rung::F)).next, None);
        assert_eq!(ALL.bitrate_needs(None).held, 0);
    }

    #[test]
    fn bandwidth_is_shared_among_tracks() {
        let now = Instant::now();
        let rungs = Allocator::default().allocate(now, Some(1_500_000), false, &[ALL, ALL]);
        assert_eq!(rungs, [Grant::Rung(Rung::HPlus); 2]);
    }

    #[test]
    fn the_weightiest_is_raised_first_and_paused_last() {
        let heavy = Demand { weight: 4.0, ..ALL };
        let give = |available, demands: &[Demand]| {
            let grants =
                Allocator::default().allocate(Instant::now(), Some(available), false, demands);
            grants.into_iter().map(rung).collect::<Vec<_>>()
        };
        let (q, q_plus, h) = (Some(Rung::Q), Some(Rung::QPlus), Some(Rung::H));
        assert_eq!(give(750_000, &[ALL, heavy]), [q, h]);
        // Stills show more on a small layer, by more than the weight.
        assert_eq!(give(900_000, &[ALL, heavy]), [q_plus, h]);
        assert_eq!(give(350_000, &[ALL, heavy]), [q, q]);
        assert_eq!(give(250_000, &[ALL, heavy]), [None, q]);
        assert_eq!(give(10_000, &[ALL, heavy]), [None, q], "the first is never paused");
    }

    #[test]
    fn one_rises_at_a_time() {
        let held = Demand { current: Some(Rung::Q), ..ALL };
        let grants =
            Allocator::default().allocate(Instant::now(), Some(9_000_000), false, &[held, held]);
        assert_eq!(grants, [Grant::Rung(Rung::F), Grant::Rung(Rung::Q)]);
    }

    #[test]
    fn what_is_shown_goes_on_before_others_begin() {
        let held = Demand { current: Some(Rung::Q), ..ALL };
        let grants = Allocator::default().allocate(
            Instant::now(),
            Some(250_000),
            true,
            &[Demand { weight: 1.2, ..ALL }, held],
        );
        assert_eq!(grants, [Grant::Paused, Grant::Rung(Rung::Q)]);
    }

    #[test]
    fn equal_tracks_do_not_take_turns() {
        let now = Instant::now();
        let mut allocator = Allocator::default();
        let held = |current| Demand { current: Some(current), ..ALL };
        let demands = [held(Rung::Q), held(Rung::H)];
        for (ms, bps) in [(0, 680_000), (200, 700_000), (400, 670_000)] {
            let at = now + Duration::from_millis(ms);
            let grants = allocator.allocate(at, Some(bps), false, &demands);
            assert_eq!(grants, [Grant::Rung(Rung::Q), Grant::Rung(Rung::H)]);
        }
    }

    #[test]
    fn a_short_dip_is_forgiven() {
        let now = Instant::now();
        let held = Demand { current: Some(Rung::HPlus), ..ALL };
        let mut allocator = Allocator::default();
        let mut at = |ms, bps| {
            rung(allocator.allocate(now + Duration::from_millis(ms), Some(bps), false, &[held])[0])
        };
        assert_eq!(at(0, 400_000), Some(Rung::HPlus));
        assert_eq!(at(1000, 700_000), Some(Rung::HPlus));
        assert_eq!(at(2000, 400_000), Some(Rung::HPlus), "the dip before was over");
        assert_eq!(at(3600, 200_000), Some(Rung::Q));
    }

    #[test]
    fn a_small_swing_changes_nothing_and_a_fall_lasts() {
        let now = Instant::now();
        let mut allocator = Allocator::default();
        let mut at = |ms, bps, current| {
            let demand = Demand { current: Some(current), ..ALL };
            let at = now + Duration::from_millis(ms);
            rung(allocator.allocate(at, Some(bps), false, &[demand])[0])
        };
        assert_eq!(at(0, 480_000, Rung::H), Some(Rung::H));
        assert_eq!(at(0, 300_000, Rung::H), Some(Rung::H));
        let patience = FALL_DELAY.as_millis() as u64;
        assert_eq!(at(patience, 300_000, Rung::H), Some(Rung::QPlus));
        assert_eq!(at(patience, 2_000_000, Rung::QPlus), Some(Rung::QPlus));
        let later = patience + RISE_DELAY.as_millis() as u64;
        assert_eq!(at(later, 2_000_000, Rung::QPlus), Some(Rung::F));
    }

    #[test]
    fn what_is_sure_is_not_waited_for() {
        let held = Demand { current: Some(Rung::HPlus), ..ALL };
        let grants = Allocator::default().allocate(Instant::now(), Some(400_000), true, &[held]);
        assert_eq!(grants, [Grant::Rung(Rung::QPlus)]);
    }
}
