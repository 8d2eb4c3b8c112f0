//! Allocates one subscriber's bandwidth among its tracks: each gets a rung, or is paused.
//!
//! A *rung* is a quality level (LiveKit's `VideoQuality`, libwebrtc's target layer): a simulcast layer, or (`+`) a
//! layer with anchors. The rungs are q, q+, h, h+ and f. Those that a track can be given are its *ladder*
//! ([`demand`](mod@super::demand)).
//!
//! 1. Each track gets its lowest rung, by descending weight, while the budget lasts. The others are paused; the first
//!    never is.
//! 2. Tracks rise by the step with the greatest weight × gain of quality / additional bitrate that fits, until none
//!    fits.
//!
//! Hysteresis: a rise needs more room than a held rung, waits for [`RISE_DELAY`] after a fall, and a held step counts
//! more.

use std::time::{Duration, Instant};

use windlass_types::{Bitrate, Layer};

use super::demand::{Demand, Grant, HELD_FACTOR, RISE_SHARE, Step};
use crate::core::publisher::layers::ThinnedShares;

/// Time after a fall in which no rung rises, so that the bandwidth estimate can settle.
const RISE_DELAY: Duration = Duration::from_secs(3);
/// Time for which the bandwidth estimate may be too low before a rung falls: on a busy machine it dips for moments.
/// Congestion lowers rungs at once.
const FALL_DELAY: Duration = Duration::from_millis(1500);
/// Share of the bandwidth estimate that held rungs may use. It is above 1 as measured bitrates swing.
const HOLD_SHARE: f64 = 1.1;

/// The allocator of one subscriber.
#[derive(Debug, Default)]
pub(crate) struct Allocator {
    last_fall: Option<Instant>,
    /// Since when the estimate is too low for the held rungs.
    short_since: Option<Instant>,
}

/// The bandwidth that one allocation shares out.
struct Budget {
    spent: Bitrate,
    /// The bandwidth to share out; `None`: unlimited.
    available: Option<Bitrate>,
    /// Share of `available` that held rungs may use together.
    hold_share: f64,
    may_rise: bool,
}

impl Budget {
    /// Whether `more` bits per second fit, for a held rung or a new one.
    fn fits(&self, more: Bitrate, held: bool) -> bool {
        let Some(available) = self.available else { return true };
        let share = if held { self.hold_share } else { RISE_SHARE };
        (held || self.may_rise) && (self.spent + more) <= available.mul_f64(share)
    }
}

impl Allocator {
    /// Grants each demand its rung. `available` is for video and anchors; `None` means no limit. `congested`: rungs
    /// fall at once, without [`FALL_DELAY`].
    pub(crate) fn allocate(
        &mut self,
        now: Instant,
        available: Option<Bitrate>,
        congested: bool,
        demands: &[Demand],
    ) -> Vec<Grant> {
        let smoothed = |rate| if congested { rate } else { self.smoothed(now, rate, demands) };
        let available = available.map(smoothed);
        let may_rise =
            self.last_fall.is_none_or(|at| now.saturating_duration_since(at) >= RISE_DELAY);
        let hold_share = if congested { 1.0 } else { HOLD_SHARE };
        let mut budget = Budget { spent: Bitrate::ZERO, available, hold_share, may_rise };
        let ladders: Vec<_> = demands.iter().map(Demand::ladder).collect();
        let steps = lowest_steps(demands, &ladders, &mut budget);
        let steps = raise_steps(demands, &ladders, steps, &mut budget);
        let grants: Vec<_> = steps
            .iter()
            .zip(&ladders)
            .map(|(step, ladder)| match step {
                _ if ladder.is_empty() => Grant::Silent,
                Some(step) => ladder[*step].grant(),
                None => Grant::Paused,
            })
            .collect();
        let fell = demands.iter().zip(&grants).any(|(demand, grant)| demand.falls_to(*grant));
        if fell {
            self.last_fall = Some(now);
        }
        grants
    }

    /// The bandwidth estimate, or what the held rungs need while the estimate has been too low for less than
    /// [`FALL_DELAY`].
    fn smoothed(&mut self, now: Instant, available: Bitrate, demands: &[Demand]) -> Bitrate {
        let held: Bitrate = demands.iter().filter_map(|d| Some(d.held()?.rate)).sum();
        let needed = Bitrate::bps((held.as_bps() as f64 / HOLD_SHARE).ceil() as u64);
        if available >= needed {
            self.short_since = None;
            return available;
        }
        let since = *self.short_since.get_or_insert(now);
        let lasting = now.saturating_duration_since(since) >= FALL_DELAY;
        if lasting { available } else { needed }
    }
}

/// The place of the track that is never paused, and what the others take together, where no track gets more than its
/// smallest layer. Anchors do not count, as they yield. `None` also where temporal layers can be left out instead.
pub(crate) fn smallest_first(demands: &[Demand], grants: &[Grant]) -> Option<(usize, Bitrate)> {
    let steps = demands.iter().zip(grants).enumerate();
    let steps =
        steps.filter_map(|(at, (demand, grant))| Some((at, demand, demand.granted(*grant)?)));
    let steps: Vec<_> = steps.collect();
    let first = steps.iter().min_by(|(_, a, _), (_, b, _)| b.rank().total_cmp(&a.rank()));
    let &(first, demand, _) = first?;
    let small = steps.iter().all(|(.., step)| step.rung.layer() == Layer::Q);
    if !small || demand.thinned[Layer::Q as usize] != ThinnedShares::default() {
        return None;
    }
    let others = steps.iter().filter(|(at, ..)| *at != first);
    let video = |(_, demand, step): &(usize, &Demand, Step)| match step.max_temporal {
        Some(_) => step.rate,
        None => demand.rates[Layer::Q as usize].unwrap_or_default(),
    };
    Some((first, others.map(video).sum()))
}

/// Gives each track its lowest step, by descending weight; `None` where that does not fit.
fn lowest_steps(
    demands: &[Demand],
    ladders: &[Vec<Step>],
    budget: &mut Budget,
) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..demands.len()).filter(|&i| !ladders[i].is_empty()).collect();
    order.sort_by(|&a, &b| demands[b].rank().total_cmp(&demands[a].rank()));
    let mut steps = vec![None; demands.len()];
    for (place, i) in order.into_iter().enumerate() {
        let rate = ladders[i][0].rate;
        if place == 0 || budget.fits(rate, demands[i].current.is_some()) {
            steps[i] = Some(0);
            budget.spent += rate;
        }
    }
    steps
}

/// Raises tracks by the step with the greatest gain for its bitrate, until none fits. Of the tracks that are shown only
/// one rises at a time: each rise is a key frame, and several at once would fill the queue.
fn raise_steps(
    demands: &[Demand],
    ladders: &[Vec<Step>],
    mut steps: Vec<Option<usize>>,
    budget: &mut Budget,
) -> Vec<Option<usize>> {
    let mut riser = None;
    loop {
        let mut best: Option<(f64, usize, usize, Bitrate)> = None;
        for (i, demand) in demands.iter().enumerate() {
            let Some(step) = steps[i] else { continue };
            let from = ladders[i][step];
            // All steps that fit: a small gain must not hide a large one.
            for (next, to) in ladders[i].iter().enumerate().skip(step + 1) {
                let held = demand.holds(to);
                let more = to.rate.saturating_sub(from.rate);
                let waits = !held && demand.current.is_some() && riser.is_some_and(|r| r != i);
                if waits || !budget.fits(more, held) {
                    break;
                }
                let worth = demand.weight * (to.quality - from.quality)
                    / more.as_bps().max(1) as f64
                    * if held { HELD_FACTOR } else { 1.0 };
                if best.is_none_or(|best| worth > best.0) {
                    best = Some((worth, i, next, more));
                }
            }
        }
        let Some((_, i, next, more)) = best else { return steps };
        steps[i] = Some(next);
        budget.spent += more;
        if demands[i].current.is_some() && !demands[i].holds(&ladders[i][next]) {
            riser = Some(i);
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_types::{FrameNetwork, Rung, Size};

    use super::*;
    use crate::core::allocation::anchor_costs::AnchorCosts;
    use crate::core::allocation::demand::HELD_BONUS;
    use crate::core::allocation::quality::Shown;

    const STILLS: Option<AnchorCosts> = Some(AnchorCosts {
        captured: Bitrate::bps(100_000),
        captured_octaves: 2,
        enhanced: Bitrate::ZERO,
    });
    const TILE: Size = Size::new(1280, 720);
    const ALL: Demand = Demand {
        max: Rung::F,
        rates: [Some(rate(150_000)), Some(rate(500_000)), Some(rate(1_500_000))],
        thinned: [ThinnedShares([1.0; 2]); 3],
        sizes: [Size::new(320, 180), Size::new(640, 360), TILE],
        anchors: [STILLS, STILLS, None],
        shown: Shown { tile: TILE, network: FrameNetwork::None },
        current: None,
        max_temporal: None,
        unlimited: None,
        weight: 1.0,
    };

    /// A bitrate in bit/s.
    const fn rate(bps: u64) -> Bitrate {
        Bitrate::bps(bps)
    }

    fn rung(grant: Grant) -> Option<Rung> {
        if let Grant::Rung(rung) = grant { Some(rung) } else { None }
    }

    fn one(available: Option<Bitrate>, demand: Demand) -> Option<Rung> {
        rung(Allocator::default().allocate(Instant::now(), available, false, &[demand])[0])
    }

    #[test]
    fn the_best_rung_that_fits_is_given() {
        assert_eq!(one(Some(rate(3_000_000)), ALL), Some(Rung::F));
        assert_eq!(one(Some(rate(1_000_000)), ALL), Some(Rung::HPlus));
        assert_eq!(one(Some(rate(650_000)), ALL), Some(Rung::H));
        assert_eq!(one(Some(rate(400_000)), ALL), Some(Rung::QPlus));
        assert_eq!(one(Some(rate(10_000)), ALL), Some(Rung::Q));
    }

    #[test]
    fn the_smallest_layer_of_the_first_track_is_found_with_what_the_others_take() {
        let smallest = |available, demands: &[Demand]| {
            let available = Some(rate(available));
            let grants = Allocator::default().allocate(Instant::now(), available, false, demands);
            smallest_first(demands, &grants)
        };
        let second = Demand { weight: 2.0, ..ALL };
        assert_eq!(smallest(10_000, &[ALL]), Some((0, Bitrate::ZERO)));
        assert_eq!(smallest(10_000, &[ALL, second]), Some((1, Bitrate::ZERO)), "one is paused");
        assert_eq!(smallest(400_000, &[ALL]), Some((0, Bitrate::ZERO)), "with anchors");
        assert_eq!(smallest(400_000, &[ALL, second]), Some((1, rate(150_000))));
        assert_eq!(smallest(3_000_000, &[ALL]), None);
        let thinned = [ThinnedShares([0.5, 0.7]), ALL.thinned[1], ALL.thinned[2]];
        assert_eq!(smallest(10_000, &[Demand { thinned, ..ALL }]), None);
        assert_eq!(smallest(10_000, &[Demand { rates: [None; 3], ..ALL }]), None);
    }

    #[test]
    fn more_than_a_limit_is_looked_for_though_there_is_no_better_rung() {
        let only = Demand { rates: [Some(rate(30_000)), None, None], anchors: [None; 3], ..ALL };
        let needs = only.bitrate_needs(Grant::Rung(Rung::Q));
        assert_eq!((needs.next, needs.best), (None, needs.held));
        let limited = Demand { unlimited: Some(rate(150_000)), ..only };
        let needs = limited.bitrate_needs(Grant::Rung(Rung::Q));
        assert_eq!(needs.next, Some(needs.best));
        assert!(needs.best > rate(150_000));
    }

    /// Stills of a fifth of the quarter layer's bits.
    const USUAL: Option<AnchorCosts> = Some(AnchorCosts {
        captured: Bitrate::bps(30_000),
        captured_octaves: 2,
        enhanced: Bitrate::ZERO,
    });

    #[test]
    fn of_the_same_bits_the_rung_is_given_that_looks_better_at_the_size_shown() {
        let rung = |h_bps: u64, tile: Size| {
            let rates = [Some(rate(150_000)), Some(rate(h_bps)), None];
            let anchors = [USUAL, None, None];
            let bps = 185_000.0 / RISE_SHARE;
            let shown = Shown { tile, ..ALL.shown };
            one(Some(rate(bps as u64)), Demand { rates, anchors, shown, ..ALL })
        };
        assert_eq!(rung(180_000, TILE), Some(Rung::H), "a half layer that has its bits");
        assert_eq!(rung(60_000, TILE), Some(Rung::QPlus), "one that has not");
        assert_eq!(
            rung(100_000, Size::new(640, 360)),
            Some(Rung::QPlus),
            "where it is not enlarged"
        );
    }

    #[test]
    fn a_rung_that_a_cheaper_one_is_as_good_as_is_never_given() {
        let starved = [Some(rate(150_000)), Some(rate(400_000)), Some(rate(160_000))];
        let demand = Demand { rates: starved, anchors: [None; 3], ..ALL };
        assert_eq!(one(None, demand), Some(Rung::H));
        assert_eq!(one(None, Demand { current: Some(Rung::F), ..demand }), Some(Rung::H));
    }

    #[test]
    fn a_layer_that_is_held_is_not_left_for_one_that_looks_hardly_better() {
        let near = Demand {
            rates: [None, Some(rate(500_000)), Some(rate(620_000))],
            anchors: [None; 3],
            ..ALL
        };
        let better = |demand: &Demand| {
            let quality = |rung| demand.step(rung).expect("sent").quality;
            quality(Rung::F) - quality(Rung::H)
        };
        let bps = (400_000..900_000).step_by(5000).find(|&bps| {
            better(&Demand { rates: [None, Some(rate(500_000)), Some(rate(bps))], ..near })
                > HELD_BONUS / 2.0
        });
        let bps = bps.map(Bitrate::bps);
        let near = Demand { rates: [None, Some(rate(500_000)), bps], ..near };
        assert!(better(&near) < HELD_BONUS, "{near:?}");
        assert_eq!(one(None, near), Some(Rung::F));
        assert_eq!(one(None, Demand { current: Some(Rung::H), ..near }), Some(Rung::H));
    }

    #[test]
    fn anchors_that_cost_nothing_are_taken() {
        let free = Some(AnchorCosts::default());
        let demand = Demand { rates: [Some(rate(150_000)), None, None], anchors: [free; 3], ..ALL };
        assert_eq!(one(Some(rate(170_000)), demand), Some(Rung::QPlus));
    }

    /// What the server makes alone, at the usual bitrate.
    const ENHANCED: Option<AnchorCosts> = Some(AnchorCosts {
        captured: Bitrate::ZERO,
        captured_octaves: 0,
        enhanced: Bitrate::bps(20_000),
    });

    #[test]
    fn a_viewer_with_a_network_gets_the_layer_instead_of_anchors_that_add_nothing_to_it() {
        let rates = [Some(rate(150_000)), Some(rate(500_000)), None];
        let demand = Demand { rates, anchors: [ENHANCED; 3], ..ALL };
        let with = |network| Demand { shown: Shown { network, ..ALL.shown }, ..demand };
        assert_eq!(one(None, with(FrameNetwork::None)), Some(Rung::HPlus));
        assert_eq!(one(None, with(FrameNetwork::Xs)), Some(Rung::H));
        let held = Demand { current: Some(Rung::HPlus), ..with(FrameNetwork::Xs) };
        assert_eq!(one(None, held), Some(Rung::H), "also where it has them");
        let captured = Demand { anchors: [USUAL; 3], ..with(FrameNetwork::Xs) };
        assert_eq!(one(None, captured), Some(Rung::HPlus), "the publisher's own pixels");
    }

    #[test]
    fn a_viewer_that_loses_its_network_gets_anchors_at_once_and_nobody_takes_turns() {
        let (mut allocator, now) = (Allocator::default(), Instant::now());
        let rates = [Some(rate(150_000)), Some(rate(500_000)), None];
        let mut held = Some(Rung::H);
        let mut changes = 0;
        for step in 0..100 {
            // It runs a network for five seconds of ten.
            let network = if step / 25 % 2 == 0 { FrameNetwork::Xs } else { FrameNetwork::None };
            let shown = Shown { network, ..ALL.shown };
            let demand = Demand { rates, anchors: [ENHANCED; 3], shown, current: held, ..ALL };
            let at = now + step * Duration::from_millis(200);
            let given = rung(allocator.allocate(at, Some(rate(900_000)), false, &[demand])[0]);
            assert_eq!(given.map(Rung::enhanced), Some(network == FrameNetwork::None), "{step}");
            changes += u32::from(given != held);
            held = given;
        }
        assert_eq!(changes, 3);
    }

    #[test]
    fn what_is_not_sent_cannot_be_given() {
        assert_eq!(
            one(None, Demand { rates: [Some(rate(150_000)), None, None], ..ALL }),
            Some(Rung::QPlus)
        );
        assert_eq!(one(None, Demand { rates: [None, None, None], ..ALL }), None);
        assert_eq!(
            one(
                None,
                Demand { anchors: [None; 3], rates: [Some(rate(1)), Some(rate(1)), None], ..ALL }
            ),
            Some(Rung::H)
        );
    }

    #[test]
    fn no_rung_above_the_clients_maximum_is_given() {
        assert_eq!(one(None, Demand { max: Rung::HPlus, ..ALL }), Some(Rung::HPlus));
        assert_eq!(one(None, Demand { max: Rung::Q, ..ALL }), Some(Rung::Q));
        assert_eq!(
            one(None, Demand { max: Rung::Q, rates: [None, None, Some(rate(1))], ..ALL }),
            Some(Rung::F)
        );
    }

    #[test]
    fn bitrate_needs_are_those_of_the_held_the_next_and_the_best_rung() {
        let needs = ALL.bitrate_needs(Grant::Rung(Rung::Q));
        let next = needs.next.expect("q+").as_bps();
        assert!((300_000..400_000).contains(&next), "{needs:?}");
        assert!(needs.best.as_bps() > 1_900_000 && needs.held.as_bps() < 200_000, "{needs:?}");
        assert_eq!(ALL.bitrate_needs(Grant::Rung(Rung::F)).next, None);
        assert_eq!(ALL.bitrate_needs(Grant::Paused).held, Bitrate::ZERO);
    }

    #[test]
    fn bandwidth_is_shared_among_tracks() {
        let now = Instant::now();
        let rungs = Allocator::default().allocate(now, Some(rate(1_500_000)), false, &[ALL, ALL]);
        assert_eq!(rungs, [Grant::Rung(Rung::HPlus); 2]);
    }

    #[test]
    fn the_weightiest_is_raised_first_and_paused_last() {
        let heavy = Demand { weight: 4.0, ..ALL };
        let give = |available, demands: &[Demand]| {
            let grants = Allocator::default().allocate(
                Instant::now(),
                Some(rate(available)),
                false,
                demands,
            );
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

    /// Two temporal layers, of which the base takes three fifths.
    const LAYERED: Demand = Demand { thinned: [ThinnedShares([0.6, 1.0]); 3], ..ALL };

    fn grants(bps: u64, congested: bool, demands: &[Demand]) -> Vec<Grant> {
        Allocator::default().allocate(Instant::now(), Some(rate(bps)), congested, demands)
    }

    #[test]
    fn frames_are_left_out_before_a_track_is_paused() {
        let heavy = Demand { weight: 4.0, ..LAYERED };
        let (base, q) = (Grant::Thinned(Rung::Q, 0), Grant::Rung(Rung::Q));
        assert_eq!(grants(350_000, false, &[LAYERED, heavy]), [q, q]);
        assert_eq!(grants(280_000, false, &[LAYERED, heavy]), [base, q]);
        assert_eq!(grants(210_000, false, &[LAYERED, heavy]), [base, base]);
        assert_eq!(grants(150_000, false, &[LAYERED, heavy]), [Grant::Paused, base]);
        assert_eq!(grants(10_000, false, &[LAYERED]), [base], "the first is never paused");
        assert_eq!(grants(10_000, false, &[ALL]), [q], "nor its frames left out without layers");
    }

    #[test]
    fn of_three_temporal_layers_those_are_sent_that_fit() {
        let demand = Demand { thinned: [ThinnedShares([0.5, 0.7]); 3], ..ALL };
        let given = |bps| grants(bps, false, &[demand])[0];
        assert_eq!(given(100_000), Grant::Thinned(Rung::Q, 0));
        assert_eq!(given(120_000), Grant::Thinned(Rung::Q, 1));
        assert_eq!(given(180_000), Grant::Rung(Rung::Q));
    }

    #[test]
    fn all_frames_come_back_before_the_picture_grows() {
        let held = Demand { current: Some(Rung::Q), max_temporal: Some(0), ..LAYERED };
        assert_eq!(
            grants(160_000, false, &[held]),
            [Grant::Thinned(Rung::Q, 0)],
            "no room to rise"
        );
        assert_eq!(grants(180_000, false, &[held]), [Grant::Rung(Rung::Q)]);
        assert_eq!(grants(9_000_000, false, &[held]), [Grant::Rung(Rung::F)]);
        let full = Demand { current: Some(Rung::Q), ..LAYERED };
        assert_eq!(grants(120_000, true, &[full]), [Grant::Thinned(Rung::Q, 0)], "congested");
        let needs = held.bitrate_needs(Grant::Thinned(Rung::Q, 0));
        assert!(needs.held.as_bps() < 120_000 && needs.next < Some(rate(200_000)), "{needs:?}");
    }

    #[test]
    fn one_rises_at_a_time() {
        let held = Demand { current: Some(Rung::Q), ..ALL };
        let grants = Allocator::default().allocate(
            Instant::now(),
            Some(rate(9_000_000)),
            false,
            &[held, held],
        );
        assert_eq!(grants, [Grant::Rung(Rung::F), Grant::Rung(Rung::Q)]);
    }

    #[test]
    fn what_is_shown_goes_on_before_others_begin() {
        let held = Demand { current: Some(Rung::Q), ..ALL };
        let grants = Allocator::default().allocate(
            Instant::now(),
            Some(rate(250_000)),
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
            let grants = allocator.allocate(at, Some(rate(bps)), false, &demands);
            assert_eq!(grants, [Grant::Rung(Rung::Q), Grant::Rung(Rung::H)]);
        }
    }

    #[test]
    fn a_short_dip_is_forgiven() {
        let now = Instant::now();
        let held = Demand { current: Some(Rung::HPlus), ..ALL };
        let mut allocator = Allocator::default();
        let mut at = |ms, bps| {
            rung(
                allocator.allocate(
                    now + Duration::from_millis(ms),
                    Some(rate(bps)),
                    false,
                    &[held],
                )[0],
            )
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
            rung(allocator.allocate(at, Some(rate(bps)), false, &[demand])[0])
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
    fn congestion_lowers_a_rung_at_once() {
        let held = Demand { current: Some(Rung::HPlus), ..ALL };
        let grants =
            Allocator::default().allocate(Instant::now(), Some(rate(400_000)), true, &[held]);
        assert_eq!(grants, [Grant::Rung(Rung::QPlus)]);
    }
}
