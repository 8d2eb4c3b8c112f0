//! Which rung each track of one subscriber gets.
//!
//! A track's ladder is made of q, q+, h, h+ and f: of the layers that the publisher really sends, up to the best rung that
//! the client asked for, and without those that another is as good as for fewer bits. How good each is at the size shown is predicted ([`quality`](super::quality));
//! what its anchors take is measured ([`costs`](super::costs)).
//! The tracks share what the downlink carries, anchors included, in the order of their weight: first each
//! its lowest rung, as far as that goes (the others are paused; the first never is), then step by step whatever shows most for its bits.
//! To rise needs more room than to stay, and not just after a fall; what is held is worth more than what is not.

use std::time::{Duration, Instant};

use windlass_types::{Layer, Rung};

use super::costs::AnchorCosts;
use super::quality;

/// How long after a fall nothing rises.
const AFTER_FALL: Duration = Duration::from_secs(3);
/// How long the estimate may be short before anything falls: on a busy machine it dips for a moment at a time. What is sure is believed
/// at once.
const PATIENCE: Duration = Duration::from_millis(1500);
/// To rise, a sum must fit this share of the estimate.
const TO_RISE: f64 = 0.9;
/// To stay, this share will do: measured rates swing.
const TO_STAY: f64 = 1.1;
/// What is held counts so many times as much as what is not.
const HELD: f64 = 4.0;
/// Another layer must be better than that of the rung that is held by so many points, or cheaper: measured rates swing, and a change is a key frame.
const BETTER: f64 = 2.0;
/// Room for the next swing when looking for bandwidth.
const MARGIN: f64 = 1.15;

const LADDER: [Rung; 5] = [Rung::Q, Rung::QPlus, Rung::H, Rung::HPlus, Rung::F];

/// What one track could be given.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    /// The best rung that the client wants.
    pub max: Rung,
    /// Bits per second of each layer that is being sent, smallest first.
    pub rates: [Option<u64>; 3],
    /// Sizes of the layers' pictures.
    pub sizes: [(u16, u16); 3],
    /// What the anchors of each layer take; `None`: none can reach the subscriber.
    pub anchors: [Option<AnchorCosts>; 3],
    /// The size at which the client shows it, in pixels of the device.
    pub shown: (u16, u16),
    /// What it has now.
    pub current: Option<Rung>,
    /// How much it matters to the viewer, beside the others.
    pub weight: f64,
}

/// What an estimate must reach for a track, in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wishes {
    /// To hold what it has.
    pub held: u64,
    /// For the next rung; `None`: there is none.
    pub next: Option<u64>,
    /// For the best one.
    pub best: u64,
}

/// What a track is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// This rung.
    Rung(Rung),
    /// Nothing, for want of bandwidth.
    Paused,
    /// Nothing: its publisher sends nothing.
    Silent,
}

/// A rung that can be had, what it costs in bits per second, and how good it looks.
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
        let quality = quality::predicted(
            self.sizes[layer as usize],
            video_bps,
            rung.enhanced().then_some(anchors),
            self.shown,
        );
        Some(Step { rung, bps: video_bps + anchors.bps(), quality })
    }

    /// What an estimate must reach, beside a rung that is held.
    pub fn wishes(&self, current: Option<Rung>) -> Wishes {
        let needs = |bps: u64| (bps as f64 / TO_RISE * MARGIN) as u64;
        let ladder = self.ladder();
        let held = current.and_then(|rung| self.step(rung)).map_or(0, |step| needs(step.bps));
        let next = ladder.iter().map(|step| needs(step.bps)).filter(|bps| *bps > held).min();
        let best = ladder.iter().map(|step| needs(step.bps)).max().unwrap_or(0);
        Wishes { held, next, best }
    }

    /// The rungs worth having, each better and dearer than the one before; where the publisher sends nothing below the wanted rung, the
    /// smallest that it does send.
    fn ladder(&self) -> Vec<Step> {
        let mut ladder: Vec<_> = LADDER.into_iter().filter_map(|rung| self.step(rung)).collect();
        if ladder.is_empty() {
            let sent = Layer::ALL.into_iter().find(|&layer| self.rates[layer as usize].is_some());
            let whatever = Demand { max: Rung::F, ..*self };
            return sent.and_then(|layer| whatever.step(Rung::plain(layer))).into_iter().collect();
        }
        let held = self.current.map(Rung::layer);
        for step in ladder.iter_mut().filter(|step| Some(step.rung.layer()) == held) {
            step.quality += BETTER;
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

    /// Whether a step is no more than what the track has now.
    fn holds(&self, step: &Step) -> bool {
        let Some(current) = self.current else { return false };
        self.step(current).map_or(step.rung <= current, |current| step.bps <= current.bps)
    }

    /// Whether this would be a fall for want of bandwidth: not one that the publisher or the client causes.
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

/// Allocates for one subscriber.
#[derive(Debug, Default)]
pub struct Allocator {
    fell: Option<Instant>,
    short_since: Option<Instant>,
}

/// The sum so far, and what it may be.
struct Purse {
    spent: u64,
    available_bps: Option<u64>,
    /// What is held may be this much of it.
    to_stay: f64,
    may_rise: bool,
}

impl Purse {
    /// Whether so much more fits, of something that is held already or would be new.
    fn fits(&self, more: u64, held: bool) -> bool {
        let Some(available) = self.available_bps else { return true };
        let share = if held { self.to_stay } else { TO_RISE };
        (held || self.may_rise) && (self.spent + more) as f64 <= available as f64 * share
    }
}

impl Allocator {
    /// Gives each demand its rung. `available_bps` is what video and anchors may take; `None` means that only the
    /// client's wishes count. `sure`: it has been seen that no more gets through, so nothing is waited for.
    pub fn allocate(
        &mut self,
        now: Instant,
        available_bps: Option<u64>,
        sure: bool,
        demands: &[Demand],
    ) -> Vec<Grant> {
        let available_bps =
            available_bps.map(|bps| if sure { bps } else { self.forgive(now, bps, demands) });
        let may_rise =
            self.fell.is_none_or(|fell| now.saturating_duration_since(fell) >= AFTER_FALL);
        let to_stay = if sure { 1.0 } else { TO_STAY };
        let mut purse = Purse { spent: 0, available_bps, to_stay, may_rise };
        let ladders: Vec<_> = demands.iter().map(Demand::ladder).collect();
        let steps = lowest(demands, &ladders, &mut purse);
        let steps = raised(demands, &ladders, steps, &mut purse);
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
            self.fell = Some(now);
        }
        grants
    }

    /// The estimate, or for a moment what the current rungs need, where it has only just become too small for them.
    fn forgive(&mut self, now: Instant, available_bps: u64, demands: &[Demand]) -> u64 {
        let held: u64 = demands.iter().filter_map(|d| Some(d.step(d.current?)?.bps)).sum();
        let needed = (held as f64 / TO_STAY).ceil() as u64;
        if available_bps >= needed {
            self.short_since = None;
            return available_bps;
        }
        let since = *self.short_since.get_or_insert(now);
        let lasting = now.saturating_duration_since(since) >= PATIENCE;
        if lasting { available_bps } else { needed }
    }
}

/// The lowest rung for each, the weightiest first; `None` where that does not fit.
fn lowest(demands: &[Demand], ladders: &[Vec<Step>], purse: &mut Purse) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..demands.len()).filter(|&i| !ladders[i].is_empty()).collect();
    // What is shown already comes before what would have to begin.
    let rank = |i: usize| demands[i].weight * if demands[i].current.is_some() { HELD } else { 1.0 };
    order.sort_by(|&a, &b| rank(b).total_cmp(&rank(a)));
    let mut steps = vec![None; demands.len()];
    for (place, i) in order.into_iter().enumerate() {
        let bps = ladders[i][0].bps;
        if place == 0 || purse.fits(bps, demands[i].current.is_some()) {
            steps[i] = Some(0);
            purse.spent += bps;
        }
    }
    steps
}

/// Raises step by step what shows most for its bits. Of the tracks that are being shown only one rises at a time: each rise is a key frame,
/// and several at once would fill the queue that they must fit through.
fn raised(
    demands: &[Demand],
    ladders: &[Vec<Step>],
    mut steps: Vec<Option<usize>>,
    purse: &mut Purse,
) -> Vec<Option<usize>> {
    let mut riser = None;
    loop {
        let mut best: Option<(f64, usize, usize, u64)> = None;
        for (i, demand) in demands.iter().enumerate() {
            let Some(step) = steps[i] else { continue };
            let from = ladders[i][step];
            // All that fit: a small gain must not stand before a large one.
            for (next, to) in ladders[i].iter().enumerate().skip(step + 1) {
                let held = demand.holds(to);
                let more = to.bps - from.bps;
                let waits = !held && demand.current.is_some() && riser.is_some_and(|r| r != i);
                if waits || !purse.fits(more, held) {
                    break;
                }
                let worth = demand.weight * (to.quality - from.quality) / more.max(1) as f64
                    * if held { HELD } else { 1.0 };
                if best.is_none_or(|best| worth > best.0) {
                    best = Some((worth, i, next, more));
                }
            }
        }
        let Some((_, i, next, more)) = best else { return steps };
        steps[i] = Some(next);
        purse.spent += more;
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
        shown: (1280, 720),
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
        let rung = |h_bps: u64, shown: (u16, u16)| {
            let rates = [Some(150_000), Some(h_bps), None];
            let anchors = [USUAL, None, None];
            let bps = 185_000.0 / TO_RISE;
            one(Some(bps as u64), Demand { rates, anchors, shown, ..ALL })
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
            better(&Demand { rates: [None, Some(500_000), Some(bps)], ..near }) > BETTER / 2.0
        });
        let near = Demand { rates: [None, Some(500_000), bps], ..near };
        assert!(better(&near) < BETTER, "{near:?}");
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
        let wishes = ALL.wishes(Some(Rung::Q));
        assert!((300_000..400_000).contains(&wishes.next.expect("q+")), "{wishes:?}");
        assert!(wishes.best > 1_900_000 && wishes.held < 200_000, "{wishes:?}");
        assert_eq!(ALL.wishes(Some(Rung::F)).next, None);
        assert_eq!(ALL.wishes(None).held, 0);
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
        let shown = Demand { current: Some(Rung::Q), ..ALL };
        let grants = Allocator::default().allocate(
            Instant::now(),
            Some(250_000),
            true,
            &[Demand { weight: 1.2, ..ALL }, shown],
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
        let patience = PATIENCE.as_millis() as u64;
        assert_eq!(at(patience, 300_000, Rung::H), Some(Rung::QPlus));
        assert_eq!(at(patience, 2_000_000, Rung::QPlus), Some(Rung::QPlus));
        let later = patience + AFTER_FALL.as_millis() as u64;
        assert_eq!(at(later, 2_000_000, Rung::QPlus), Some(Rung::F));
    }

    #[test]
    fn what_is_sure_is_not_waited_for() {
        let held = Demand { current: Some(Rung::HPlus), ..ALL };
        let grants = Allocator::default().allocate(Instant::now(), Some(400_000), true, &[held]);
        assert_eq!(grants, [Grant::Rung(Rung::QPlus)]);
    }
}
