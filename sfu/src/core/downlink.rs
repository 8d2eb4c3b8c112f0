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
pub const LOOK: Duration = Duration::from_millis(200);
/// How long the shortest round trip is remembered.
const MEMORY: Duration = Duration::from_secs(30);
/// A round trip longer than the shortest by this much is a queue,
const QUEUE: Duration = Duration::from_millis(120);
/// by this much no longer one.
const DRAINED: Duration = Duration::from_millis(50);
/// Losses with half of such a queue, or by themselves, that are congestion.
const LOSS_QUEUED: f32 = 0.08;
const LOSS_ALONE: f32 = 0.3;
/// What is sent of what arrives, so that the queue drains.
const DRAIN: f64 = 0.75;
/// What arrived then is what the link carries, with some room.
const CARRIES: f64 = 0.85;
/// A fall shows after as long; until then nothing falls further.
const HOLD: Duration = Duration::from_millis(500);
/// What rates are of, as losses are.
const WINDOW: Duration = Duration::from_secs(1);
/// By how much the bound rises with each look after that.
const RECOVER: f64 = 1.15;
/// Nobody is taken for narrower.
const LEAST_BPS: u64 = 30_000;
/// Between two probes for more.
const PROBE: Duration = Duration::from_millis(1500);
/// After congestion none for as long.
const CALM: Duration = Duration::from_secs(2);

/// What the stack saw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
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
    /// What arrived at most while the queue was full, in bits per second.
    arrived_bps: u64,
    /// What the stack is to begin anew with.
    anew: Option<u64>,
    probed: Option<Instant>,
    told: Option<Search>,
}

impl Downlink {
    /// The stack has another estimate.
    pub fn estimated(&mut self, bps: u64) {
        self.estimate_bps = Some(bps);
    }

    /// What the stack saw at `now`. Whether there is less than a moment ago, so that rungs should be chosen at once.
    pub fn look(&mut self, now: Instant, look: Look) -> bool {
        let sent_bps = self.sent_bps(now, look.sent);
        let queue = look.rtt.map_or(Duration::ZERO, |rtt| self.queue(now, rtt));
        let falling = queue < std::mem::replace(&mut self.queue, queue).mul_f64(0.85);
        let loss = look.loss.unwrap_or(0.0);
        let full = queue > QUEUE || (queue > QUEUE / 2 && loss > LOSS_QUEUED) || loss > LOSS_ALONE;
        self.queued = if full { self.queued + 1 } else { 0 };
        if full && (self.queued >= 2 || loss > LOSS_QUEUED) {
            self.congested = Some(now);
            let arrives = (sent_bps as f64 * f64::from(1.0 - loss)) as u64;
            let held = self.fell.is_some_and(|fell| now.saturating_duration_since(fell) < HOLD);
            let before = self.available_bps().unwrap_or(u64::MAX);
            let bound = ((arrives as f64 * DRAIN) as u64).max(LEAST_BPS);
            if self.bound_bps.is_none() {
                self.arrived_bps = 0;
            }
            self.arrived_bps = self.arrived_bps.max(arrives.min(before));
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
            if self.estimate_bps.is_some_and(|bps| bps < carries) {
                (self.estimate_bps, self.anew) = (Some(carries), Some(carries));
            }
            let risen = (bound as f64 * RECOVER) as u64;
            self.bound_bps = self.estimate_bps.is_none_or(|bps| risen < bps).then_some(risen);
        }
        false
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

    /// What video and anchors may take, in bits per second of payload; `None` before anything is known.
    pub fn available_bps(&self) -> Option<u64> {
        match (self.estimate_bps, self.bound_bps) {
            (Some(estimate), Some(bound)) => Some(estimate.min(bound)),
            (estimate, bound) => estimate.or(bound),
        }
    }

    /// Whether a queue is being drained.
    pub fn congested(&self) -> bool {
        self.bound_bps.is_some()
    }

    /// What to have the stack look for, where that differs from the last time: `next_bps` is what the next rung needs (0: there is none),
    /// `best_bps` the best, `video_bps` what is sent without padding.
    pub fn search(
        &mut self,
        now: Instant,
        next_bps: u64,
        best_bps: u64,
        video_bps: u64,
    ) -> Option<Search> {
        let since = |at: Option<Instant>| at.map(|at| now.saturating_duration_since(at));
        let calm = since(self.congested).is_none_or(|since| since >= CALM);
        let available = self.available_bps().unwrap_or(0);
        let wants = next_bps > 0 && calm && !self.congested();
        let search = if wants {
            // Padding holds what was found long enough for the next rung to take its place; half of the way needs none, as an
            // estimate grows by itself to half as much again as what is sent.
            let fill = if next_bps * 2 > video_bps * 3 { next_bps.min(available) } else { 0 };
            Search { fill_bps: fill, probe_bps: best_bps.max(next_bps) }
        } else {
            Search { fill_bps: 0, probe_bps: best_bps.min(available.max(LEAST_BPS)) }
        };
        let due = since(self.probed).is_none_or(|since| since >= PROBE);
        if wants && due && available < search.probe_bps {
            self.probed = Some(now);
            // Only a rise of what is looked for begins a probe: so it is lowered first.
            if self.told.is_some_and(|told| told.probe_bps > available) {
                let lowered = Search { probe_bps: available, ..search };
                self.told = Some(lowered);
                self.probed = None;
                return Some(lowered);
            }
            self.told = Some(search);
            return Some(search);
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
        let search = Search { probe_bps, ..search };
        self.told = Some(search);
        Some(search)
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

    /// A downlink on which 1 Mbit/s is sent, looked at every 200 ms with these round trips (in ms) and losses.
    fn looked(at: &[(u64, f32)]) -> (Downlink, Instant) {
        let (mut downlink, mut now) = (Downlink::default(), Instant::now());
        downlink.estimated(1_000_000);
        for (n, &(rtt, loss)) in at.iter().enumerate() {
            now += LOOK;
            let sent = 25_000 * n as u64;
            downlink.look(now, Look { rtt: Some(MS(rtt)), loss: Some(loss), sent });
        }
        (downlink, now)
    }

    #[test]
    fn the_estimate_holds_while_nothing_queues() {
        let (downlink, _) = looked(&[(40, 0.0), (60, 0.03), (50, 0.05), (90, 0.05)]);
        assert_eq!((downlink.available_bps(), downlink.congested()), (Some(1_000_000), false));
    }

    #[test]
    fn a_full_queue_bounds_it_by_what_arrives() {
        let (downlink, _) = looked(&[(40, 0.0), (40, 0.0), (340, 0.3)]);
        let available = downlink.available_bps().expect("known");
        assert!((500_000..540_000).contains(&available), "{available}");
        // Losses of the second before are counted for as long: it does not fall by them again and again.
        let (downlink, _) = looked(&[(40, 0.0), (40, 0.0), (340, 0.3), (340, 0.6), (340, 0.6)]);
        assert_eq!(downlink.available_bps(), Some(available));
    }

    #[test]
    fn one_long_round_trip_is_no_queue() {
        assert!(!looked(&[(40, 0.0), (40, 0.0), (340, 0.0), (40, 0.0)]).0.congested());
        assert!(looked(&[(40, 0.0), (40, 0.0), (340, 0.0), (340, 0.0)]).0.congested());
    }

    #[test]
    fn losses_of_the_air_are_no_queue() {
        assert!(!looked(&[(20, 0.1), (20, 0.2), (25, 0.15), (20, 0.2)]).0.congested());
    }

    #[test]
    fn it_is_free_again_after_the_queue_has_drained() {
        let mut looks = vec![(40, 0.0), (40, 0.0), (340, 0.3), (200, 0.2)];
        looks.extend([(50, 0.0); 10]);
        assert!(!looked(&looks).0.congested());
    }

    #[test]
    fn a_path_that_became_longer_is_believed_in_the_end() {
        let mut looks = vec![(40, 0.0); 5];
        looks.extend([(200, 0.0); 200]);
        assert!(!looked(&looks).0.congested());
    }

    #[test]
    fn more_is_looked_for_again_and_again_but_not_while_it_queues() {
        let (mut downlink, start) = looked(&[(40, 0.0), (40, 0.0)]);
        let mut probes = 0;
        let mut told = 0;
        for tenth in 0..60 {
            let now = start + MS(200) * tenth;
            if let Some(search) = downlink.search(now, 1_400_000, 3_000_000, 500_000) {
                probes += u32::from(search.probe_bps > told && search.probe_bps == 3_000_000);
                told = search.probe_bps;
            }
        }
        assert!((6..=9).contains(&probes), "{probes} in 12 s");
        let (mut downlink, now) = looked(&[(40, 0.0), (40, 0.0), (340, 0.3)]);
        let search = downlink.search(now, 1_400_000, 3_000_000, 500_000).expect("told");
        assert!(search.fill_bps == 0 && search.probe_bps < 1_000_000, "{search:?}");
    }
}
