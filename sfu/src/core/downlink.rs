//! What a subscriber's downlink carries: the stack's estimate, bounded by what can be seen to get through.
//!
//! The stack's congestion control (GoogCC, over transport-wide feedback) finds bandwidth well and loses it slowly: where a link becomes
//! narrower and its buffer is short, delay stops growing before it has been noticed, and the estimate falls by losses alone, for seconds in
//! which the queue stays full. So a full queue (a round trip that is much longer than the shortest of late, or losses with it) bounds the
//! estimate at once by what arrives, until it has drained.
//!
//! Anchors go by the data channel, which feedback does not cover: what the estimate leaves them is theirs already (`anchors`).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How often the stack is asked what it sees.
pub const LOOK: Duration = Duration::from_millis(100);
/// How long the shortest round trip is remembered: so long a path that became longer is taken for a queue.
const MEMORY: Duration = Duration::from_secs(10);
/// A round trip longer than the shortest by this much is a queue,
const QUEUE: Duration = Duration::from_millis(120);
/// by this much no longer one.
const DRAINED: Duration = Duration::from_millis(50);
/// Above this less is sent, down to this share less at a full queue.
const EASY: Duration = Duration::from_millis(35);
const EASE: f64 = 0.2;
/// Losses that say the same at once with such a queue, with half of it, and by themselves. (Air loses some of its packets in bursts.)
const LOSS_QUEUED: f32 = 0.08;
const LOSS_HALF: f32 = 0.2;
const LOSS_ALONE: f32 = 0.35;
/// What is sent of what arrives, so that the queue drains: a tenth of that are headers, which nobody counts here.
const DRAIN: f64 = 0.68;
/// What arrived then is what the link carries, without headers, and with some room.
const CARRIES: f64 = 0.85;
/// A fall shows after as long; until then nothing falls further.
const HOLD: Duration = Duration::from_millis(500);
/// What rates are of, as losses are.
const WINDOW: Duration = Duration::from_secs(1);
/// By how much the bound rises with each look after that, up to what the link carried.
const RECOVER: f64 = 1.1;
/// Nobody is taken for narrower.
const LEAST_BPS: u64 = 30_000;
/// Between two probes for more.
const PROBE: Duration = Duration::from_secs(1);
/// An estimate that has risen by so much at once was found by a probe: padding holds it for as long, until rungs have taken its place. What is not
/// held is lost with the next swing, as estimates fall to what is really sent.
const FOUND: f64 = 1.25;
const HOLD_FOUND: Duration = Duration::from_secs(2);
/// A queue shorter than this, with fewer losses than that, speaks for what is being sent.
const QUIET: Duration = Duration::from_millis(40);
const QUIET_LOSS: f32 = 0.05;
/// A fall below this share of an estimate that was quiet a moment ago is taken back.
const SPURIOUS: f64 = 0.8;
const GOOD_FOR: Duration = Duration::from_secs(2);
/// Where nothing queues and probes change nothing, the stack begins anew after this time, then after twice as long each time.
const STUCK: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(8));
/// What a second carried without a full queue, the next will: an estimate of less than this share of it is one of a lull.
const PROVEN: f64 = 0.55;
/// And of this where next to nothing queues.
const PROVEN_QUIET: f64 = 0.75;
/// Between two new beginnings.
const ANEW: Duration = Duration::from_millis(300);
/// The share of it that padding fills up.
const FILL: f64 = 0.95;
/// Packets leave as they come where everything wanted is carried and nothing has queued for as long; else the stack's pacer spreads them.
const FLOWS: Duration = Duration::from_secs(2);
/// After congestion none for as long.
const CALM: Duration = Duration::from_secs(2);

/// What the stack saw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Its estimate as it is just now, in bits per second. (What it tells as an event is a mean of three seconds' changes.)
    pub estimate_bps: Option<u64>,
    /// Round trip of the latest packet that the client reported.
    pub rtt: Option<Duration>,
    /// Share of the last second's packets that it reported missing, 0 to 1.
    pub loss: Option<f32>,
    /// Bytes of all datagrams sent to it so far.
    pub sent: u64,
}

/// What to have the stack look for, in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// To which padding fills up.
    pub fill_bps: u64,
    /// What probes are for.
    pub probe_bps: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Downlink {
    estimate_bps: Option<u64>,
    bound_bps: Option<u64>,
    /// Shortest first among those that nothing later undercuts.
    rtts: VecDeque<(Instant, Duration)>,
    /// Bytes sent so far, at each look of the last second.
    sent: VecDeque<(Instant, u64)>,
    /// Looks in a row that saw a queue.
    queued: u32,
    queue: Duration,
    congested: Option<Instant>,
    fell: Option<Instant>,
    /// What arrived when the queue was full last, in bits per second.
    arrived_bps: u64,
    /// What the stack is to begin anew with.
    anew: Option<u64>,
    probed: Option<Instant>,
    found: Option<Instant>,
    /// The best estimate under which nothing queued of late.
    good: Option<(Instant, u64)>,
    /// Since when nothing has queued.
    flows: Option<Instant>,
    /// Whether there is a rung for which there was no room.
    lacks: bool,
    /// Since when nothing has been found although it was looked for, with what there was, and how long that may last.
    stuck: Option<(Instant, u64)>,
    patience: Duration,
    /// When it began anew last.
    begun: Option<Instant>,
    told: Option<Search>,
}

impl Downlink {
    /// What the stack saw at `now`. Whether there is less than a moment ago, so that rungs should be chosen at once.
    pub fn look(&mut self, now: Instant, look: Look) -> bool {
        if let Some(bps) = look.estimate_bps {
            if self.estimate_bps.is_some_and(|before| bps as f64 > before as f64 * FOUND) {
                self.found = Some(now);
            }
            self.estimate_bps = Some(bps);
        }
        let sent_bps = self.sent_bps(now, look.sent);
        let queue = look.rtt.map_or(Duration::ZERO, |rtt| self.queue(now, rtt));
        let falling = queue < std::mem::replace(&mut self.queue, queue).mul_f64(0.85);
        let loss = look.loss.unwrap_or(0.0);
        let quiet = queue < QUIET && loss < QUIET_LOSS;
        let full = queue > QUEUE || (queue > QUEUE / 2 && loss > LOSS_HALF) || loss > LOSS_ALONE;
        self.queued = if full { self.queued + 1 } else { 0 };
        let arrives = (sent_bps as f64 * f64::from(1.0 - loss)) as u64;
        self.flows = quiet.then(|| self.flows.unwrap_or(now));
        self.hold(now, quiet, (!full).then_some(arrives));
        let clear = queue > QUEUE && loss > LOSS_QUEUED;
        if full && (self.queued >= 3 || clear) {
            self.congested = Some(now);
            let held = self.fell.is_some_and(|fell| now.saturating_duration_since(fell) < HOLD);
            let before = self.found_bps().unwrap_or(u64::MAX);
            let bound = ((arrives as f64 * DRAIN) as u64).max(LEAST_BPS);
            if !falling {
                // The longer it is full, the less of the time before is in it.
                self.arrived_bps = arrives.min(before);
            }
            // Losses beside a full queue: far too much. What gets through will be known when the second before has passed.
            let first = self.bound_bps.is_none() && clear;
            let bound = if first { bound.min(before / 2) } else { bound };
            if falling || held || bound >= before {
                // It drains, or will: what was bound stays.
                self.bound_bps.get_or_insert(before);
                return false;
            }
            (self.fell, self.bound_bps) = (Some(now), Some(bound));
            return true;
        }
        if let Some(bound) = self.bound_bps.filter(|_| !full && queue < DRAINED) {
            // The stack may have lost much more than the link did: it had counted what the full queue dropped.
            let carries = (self.arrived_bps as f64 * CARRIES) as u64;
            if self.estimate_bps.is_some_and(|bps| bps < carries / 2) {
                (self.estimate_bps, self.anew) = (Some(carries), Some(carries));
            }
            let risen = (bound as f64 * RECOVER) as u64;
            self.bound_bps =
                (!self.calm(now) || risen < carries).then_some(risen.min(carries.max(bound)));
        }
        false
    }

    /// Takes back what the stack lost although nothing queues, and has it begin anew where it finds nothing for long. `arrives_bps`: what the last
    /// second carried, unless the queue is full.
    fn hold(&mut self, now: Instant, quiet: bool, arrives_bps: Option<u64>) {
        let Some(estimate) = self.estimate_bps else { return };
        let Some(arrives) = arrives_bps.filter(|_| self.calm(now)) else {
            (self.good, self.stuck) = (None, None);
            return;
        };
        let good = self.good.filter(|(at, _)| now.saturating_duration_since(*at) < GOOD_FOR);
        let held = good.filter(|(_, bps)| quiet && (estimate as f64) < *bps as f64 * SPURIOUS);
        // A little less each time: what is wrong ends in a queue, or is let go.
        let held = held.map_or(0, |(_, bps)| (bps as f64 * 0.9) as u64);
        let proven = if quiet { PROVEN_QUIET } else { PROVEN };
        let anew = held.max((arrives as f64 * proven) as u64);
        if (estimate as f64) < anew as f64 * 0.9 {
            if self.begun.is_none_or(|at| now.saturating_duration_since(at) >= ANEW) {
                (self.estimate_bps, self.anew, self.good) = (Some(anew), Some(anew), None);
                self.begun = Some(now);
            }
            return;
        }
        if !quiet {
            self.stuck = None;
            return;
        }
        if good.is_none_or(|(_, bps)| estimate >= bps) {
            self.good = Some((now, estimate));
        }
        let wants = self.told.is_some_and(|told| told.fill_bps > 0);
        let patience = self.patience.max(STUCK.0);
        let (since, before) = *self.stuck.get_or_insert((now, estimate));
        if !wants || estimate as f64 > before as f64 * 1.1 {
            self.stuck = Some((now, estimate));
            self.patience = STUCK.0;
        } else if now.saturating_duration_since(since) >= patience {
            self.stuck = Some((now, estimate));
            self.patience = (patience * 2).min(STUCK.1);
            self.anew = Some(estimate);
        }
    }

    /// What the stack is to begin anew with, in bits per second, where it has lost track.
    pub fn take_anew(&mut self) -> Option<u64> {
        self.anew.take()
    }

    /// Bits per second sent within the last second.
    fn sent_bps(&mut self, now: Instant, sent: u64) -> u64 {
        self.sent.push_back((now, sent));
        while self.sent.len() > 2 && now.saturating_duration_since(self.sent[1].0) >= WINDOW {
            self.sent.pop_front();
        }
        let (at, before) = self.sent[0];
        let seconds = now.saturating_duration_since(at).as_secs_f64().max(0.001);
        (sent.saturating_sub(before) as f64 * 8.0 / seconds) as u64
    }

    /// What video and anchors may take, in bits per second of payload; `None` before anything is known. Less than what gets through while
    /// something queues, so that it drains before it is felt.
    pub fn available_bps(&self) -> Option<u64> {
        let bps = self.found_bps()?;
        let over = self.queue.saturating_sub(EASY).as_secs_f64()
            / QUEUE.saturating_sub(EASY).as_secs_f64();
        Some((bps as f64 * (1.0 - EASE * over.min(1.0))) as u64)
    }

    fn found_bps(&self) -> Option<u64> {
        match (self.estimate_bps, self.bound_bps) {
            (Some(estimate), Some(bound)) => Some(estimate.min(bound)),
            (estimate, bound) => estimate.or(bound),
        }
    }

    /// Whether there has been no congestion for a while.
    fn calm(&self, now: Instant) -> bool {
        self.congested.is_none_or(|at| now.saturating_duration_since(at) >= CALM)
    }

    /// Whether a queue is being drained.
    pub fn congested(&self) -> bool {
        self.bound_bps.is_some()
    }

    /// Whether packets need not be spread: there is room for everything, publishers spread what they send, and nothing has queued behind
    /// that for a while.
    pub fn flows(&self, now: Instant) -> bool {
        let long = self.flows.is_some_and(|since| now.saturating_duration_since(since) >= FLOWS);
        long && !self.lacks && self.calm(now) && !self.congested()
    }

    /// Whether its queue is full, so that repairs would only make it longer and be lost themselves.
    pub fn full(&self) -> bool {
        self.bound_bps.is_some() && self.queued > 0
    }

    /// What to have the stack look for, where that differs from the last time: `next_bps` is what the next rung needs (0: there is none),
    /// `best_bps` the best.
    pub fn search(&mut self, now: Instant, next_bps: u64, best_bps: u64) -> Option<Search> {
        self.lacks = next_bps > 0;
        let since = |at: Option<Instant>| at.map(|at| now.saturating_duration_since(at));
        let available = self.available_bps().unwrap_or(0);
        let wants = next_bps > 0 && self.calm(now) && !self.congested();
        let search = if wants {
            // An estimate falls to what is really sent just then, so what is not filled up is lost with the next swing.
            let found = since(self.found).is_some_and(|since| since < HOLD_FOUND);
            let fill = if found { best_bps } else { next_bps };
            let fill = fill.min((available as f64 * FILL) as u64);
            Search { fill_bps: fill, probe_bps: best_bps.max(next_bps) }
        } else {
            Search { fill_bps: 0, probe_bps: best_bps.min(available.max(LEAST_BPS)) }
        };
        let due = since(self.probed).is_none_or(|since| since >= PROBE);
        if wants && due && available < search.probe_bps {
            // Only a rise of what is looked for begins a probe: so it is lowered first, and raised with the next call.
            let high = self.told.is_some_and(|told| told.probe_bps > available);
            let probe_bps = if high { available } else { search.probe_bps };
            self.probed = (!high).then_some(now);
            self.told = Some(Search { probe_bps, ..search });
            return self.told;
        }
        let differs = |a: u64, b: u64| a.abs_diff(b) * 10 > b;
        let changed = self.told.is_none_or(|told| {
            differs(search.fill_bps, told.fill_bps)
                || search.probe_bps < told.probe_bps && differs(search.probe_bps, told.probe_bps)
        });
        if !changed {
            return None;
        }
        // What was being probed for stays, or this would begin another probe.
        let probe_bps =
            self.told.map_or(search.probe_bps, |told| told.probe_bps.min(search.probe_bps));
        self.told = Some(Search { probe_bps, ..search });
        self.told
    }

    /// By how much a round trip is longer than the shortest of late.
    fn queue(&mut self, now: Instant, rtt: Duration) -> Duration {
        while self.rtts.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) > MEMORY) {
            self.rtts.pop_front();
        }
        while self.rtts.back().is_some_and(|(_, other)| *other >= rtt) {
            self.rtts.pop_back();
        }
        self.rtts.push_back((now, rtt));
        self.rtts.front().map_or(Duration::ZERO, |(_, least)| rtt.saturating_sub(*least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A downlink that is taken for 1 Mbit/s, on which as much is sent, after two quiet seconds and looks with these round trips (in ms) and losses.
    fn looked(at: &[(u64, f32)]) -> (Downlink, Instant) {
        let (mut downlink, mut now) = (Downlink::default(), Instant::now());
        let quiet = [(40, 0.0); 20];
        for (n, &(rtt, loss)) in quiet.iter().chain(at).enumerate() {
            now += LOOK;
            let (estimate_bps, sent) = (Some(1_000_000), 12_500 * n as u64);
            downlink.look(now, Look { estimate_bps, rtt: Some(MS(rtt)), loss: Some(loss), sent });
        }
        (downlink, now)
    }

    #[test]
    fn packets_leave_as_they_come_once_nothing_has_queued_for_a_while() {
        let flows = |at: &[(u64, f32)]| {
            let (downlink, now) = looked(at);
            downlink.flows(now)
        };
        assert!(!flows(&[]), "19 looks are not yet two seconds");
        assert!(flows(&[(40, 0.0), (70, 0.04)]));
        assert!(!flows(&[(40, 0.0), (90, 0.0)]) && !flows(&[(40, 0.06), (40, 0.0)]));
        let (mut downlink, now) = looked(&[(40, 0.0); 5]);
        downlink.search(now, 700_000, 1_500_000);
        assert!(!downlink.flows(now), "the next rung is looked for");
    }

    #[test]
    fn the_estimate_holds_while_nothing_queues() {
        let (downlink, _) = looked(&[(60, 0.03), (50, 0.05), (70, 0.05)]);
        assert_eq!((downlink.available_bps(), downlink.congested()), (Some(1_000_000), false));
    }

    #[test]
    fn a_little_less_is_sent_while_something_queues() {
        let available = looked(&[(120, 0.0)]).0.available_bps().expect("known");
        assert!((850_000..950_000).contains(&available), "{available}");
    }

    #[test]
    fn a_full_queue_bounds_it_by_what_arrives() {
        let found = looked(&[(340, 0.3)]).0.found_bps().expect("known");
        assert!((450_000..500_000).contains(&found), "{found}");
        // Losses of the second before are counted for as long: it does not fall by them again and again.
        let later = looked(&[(340, 0.3), (340, 0.6), (340, 0.6)]).0.found_bps();
        assert_eq!(later, Some(found));
    }

    #[test]
    fn a_few_long_round_trips_are_no_queue() {
        assert!(!looked(&[(340, 0.0), (340, 0.0), (40, 0.0)]).0.congested());
        assert!(looked(&[(340, 0.0), (340, 0.0), (340, 0.0)]).0.congested());
    }

    #[test]
    fn losses_of_the_air_are_no_queue() {
        assert!(!looked(&[(40, 0.1), (40, 0.2), (45, 0.15), (40, 0.2)]).0.congested());
    }

    #[test]
    fn it_is_free_again_after_the_queue_has_drained() {
        let mut looks = vec![(340, 0.3), (200, 0.2)];
        looks.extend([(50, 0.0); 40]);
        assert!(!looked(&looks).0.congested());
    }

    #[test]
    fn a_path_that_became_longer_is_believed_in_the_end() {
        assert!(!looked(&[(200, 0.0); 200]).0.congested());
    }

    #[test]
    fn an_estimate_that_falls_although_nothing_queues_is_taken_back() {
        let (mut downlink, mut now) = looked(&[]);
        now += LOOK;
        let look = Look {
            estimate_bps: Some(400_000),
            rtt: Some(MS(45)),
            loss: Some(0.0),
            sent: 12_500 * 20,
        };
        downlink.look(now, look);
        assert_eq!(
            (downlink.take_anew(), downlink.available_bps()),
            (Some(900_000), Some(900_000))
        );
        let (mut downlink, now) = looked(&[(340, 0.3)]);
        downlink.look(now + LOOK, Look { rtt: Some(MS(340)), sent: 12_500 * 21, ..look });
        assert_eq!(downlink.take_anew(), None, "the queue is full");
    }

    #[test]
    fn more_is_looked_for_again_and_again_but_not_while_it_queues() {
        let (mut downlink, start) = looked(&[]);
        let (mut probes, mut told) = (0, 0);
        for fifth in 0..60 {
            let now = start + MS(200) * fifth;
            if let Some(search) = downlink.search(now, 1_400_000, 3_000_000) {
                probes += u32::from(search.probe_bps > told && search.probe_bps == 3_000_000);
                told = search.probe_bps;
            }
        }
        assert!((8..=12).contains(&probes), "{probes} in 12 s");
        let (mut downlink, now) = looked(&[(340, 0.3)]);
        let search = downlink.search(now, 1_400_000, 3_000_000).expect("told");
        assert!(search.fill_bps == 0 && search.probe_bps < 1_000_000, "{search:?}");
    }
}
