//! Step 2: the anchors of the next second, packed into batches (ARISE §4.4.2, Algorithm 1).
//!
//! *Simulate*: when each stream's next anchor is due by its setting. *Adjust*: the stream that is due next joins the
//! batch of the first free accelerator, if its setting allows this batch size. All streams of a batch take their newest
//! frame when the batch begins, so that nothing waits. *Verify* ([`Packing::worst`]): each stream's mean loss.
//!
//! Where the paper is open: a request moves forward by at most half of its interval ([`EARLY`]), and the stream's next
//! one is due an interval after it. (Algorithm 1 simulates all requests of the second first and moves each by itself.
//! Anchors are then uneven, and the loss grows with the square of their distances: with the same limits that served 11,
//! 22 and 5 clients of `clients.yaml` where this served 13, 31 and 50.) Each batch keeps the accelerator for a tenth
//! longer than expected ([`GRACE`], the paper's *grace period*). Pictures of different shapes are in different batches;
//! several accelerators are filled in turn. A mean over a whole cycle is verified from the last anchor on, not over the
//! second alone, because cycles may be longer.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

use windlass_types::StreamId;

use super::{Anchored, Client, HORIZON, ROUNDING, Setting, scaled, time_of};

/// Maximum time by which a request may come earlier, as a share of its interval.
pub const EARLY: f64 = 0.5;
/// Overrun allowed per batch, as a share of its expected time: the paper's *grace period*.
pub const GRACE: f64 = 0.1;
/// Maximum anchors of a stream in a plan.
const MAX_PLANNED: usize = 256;

/// An anchor of the plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Planned {
    /// Index of the anchor's client.
    pub client: usize,
    /// The anchored frame, and the time at which viewers have the anchor.
    pub anchored: Anchored,
    /// Start of the anchor's batch.
    pub begins: Duration,
    /// Index of the anchor's batch.
    pub batch: u32,
}

/// Time at which a client's next anchor is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Due {
    at: Duration,
    id: StreamId,
    client: usize,
}

impl Ord for Due {
    /// Orders clients for the heap: the one that is due first is the greatest.
    fn cmp(&self, other: &Due) -> Ordering {
        other.at.cmp(&self.at).then(other.id.cmp(&self.id)).then(other.client.cmp(&self.client))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Packs anchors into a plan, and keeps its working memory from plan to plan.
#[derive(Debug, Clone, Default)]
pub struct Packing {
    dues: BinaryHeap<Due>,
    planned: Vec<Planned>,
    free: Vec<Duration>,
    /// Capture time of the newest anchored frame of each client, so far; `None` before the first.
    newest: Vec<Option<Duration>>,
    /// State of each client while the plan is verified; `None` before its first anchor.
    seen: Vec<Option<Seen>>,
}

/// Span in which a client's pictures are seen, its present anchor's frame, and loss × seconds.
#[derive(Debug, Clone, Copy)]
struct Seen {
    from: Duration,
    until: Duration,
    captured: Duration,
    sum: f64,
}

impl Packing {
    /// Plans the second from `now` on. `free` has the time at which each accelerator is free.
    pub fn pack(&mut self, now: Duration, clients: &[(Client, Setting)], free: &[Duration]) {
        self.simulate(now, clients);
        self.adjust(now, clients, free);
    }

    /// The anchors of the plan, in the order of their batches.
    pub fn planned(&self) -> &[Planned] {
        &self.planned
    }

    fn simulate(&mut self, now: Duration, clients: &[(Client, Setting)]) {
        self.dues.clear();
        self.dues.extend(clients.iter().enumerate().map(|(at, (client, setting))| {
            let next = client.last.map_or(now, |last| client.due(last.captured, *setting));
            Due { at: next.max(now), id: client.id, client: at }
        }));
    }

    fn adjust(&mut self, now: Duration, clients: &[(Client, Setting)], free: &[Duration]) {
        let Packing { dues, planned, free: until, newest, .. } = self;
        planned.clear();
        until.clear();
        until.extend(free.iter().map(|&free| free.max(now)));
        let end = now.saturating_add(HORIZON);
        newest.clear();
        newest.extend(clients.iter().map(|(client, _)| client.last.map(|last| last.captured)));
        let early = |due: &Due| {
            let (client, setting) = &clients[due.client];
            due.at.saturating_sub(scaled(client.apart(*setting), EARLY)).max(now)
        };
        let max_planned = MAX_PLANNED * clients.len();
        for batch in 0..u32::try_from(2 * max_planned).unwrap_or(u32::MAX) {
            let Some(first) = dues.peek() else { return };
            let Some(device) = until.iter_mut().min() else { return };
            let begins = early(first).max(*device);
            if begins >= end || planned.len() >= max_planned {
                return;
            }
            let shape = clients[first.client].0.shape;
            let (mut max, mut fixed, mut each) = (usize::MAX, Duration::ZERO, Duration::ZERO);
            let from = planned.len();
            while let Some(&due) = dues.peek() {
                let (client, setting) = &clients[due.client];
                let taken = planned.len() - from;
                let fits = client.shape == shape && taken < max.min(setting.batch);
                if !fits || (taken > 0 && early(&due) > begins) {
                    break;
                }
                dues.pop();
                let captured = client.newest_frame(begins.saturating_sub(client.up_delay));
                let half = client.frame / 2;
                if newest[due.client].is_some_and(|at| captured <= at.saturating_add(half)) {
                    // It has an anchor of that frame.
                    let at = due.at.max(begins).saturating_add(client.frame);
                    dues.push(Due { at, ..due });
                    break;
                }
                newest[due.client] = Some(captured);
                max = max.min(setting.batch);
                fixed = fixed.max(client.cost.time(0));
                each = each.saturating_add(client.cost.time(1).saturating_sub(client.cost.time(0)));
                let anchored = Anchored { captured, shown: begins };
                planned.push(Planned { client: due.client, anchored, begins, batch });
            }
            let took = fixed.saturating_add(each);
            let made = begins.saturating_add(took);
            for anchor in &mut planned[from..] {
                let (client, setting) = &clients[anchor.client];
                anchor.anchored.shown = made.saturating_add(client.down_delay);
                let at = client.due(anchor.anchored.captured, *setting);
                dues.push(Due { at: at.max(begins), id: client.id, client: anchor.client });
            }
            if planned.len() > from {
                *device = made.saturating_add(scaled(took, GRACE));
            }
        }
    }

    /// Greatest share of its promise that any client takes up by the plan. Above 1, a promise is broken.
    pub fn worst(&mut self, now: Duration, clients: &[(Client, Setting)]) -> f64 {
        self.watch(now, clients);
        let parts = clients.iter().zip(&self.seen).map(|((client, _), seen)| {
            seen.and_then(Seen::mean)
                .map_or(f64::MAX, |lost| client.part(lost - client.reference()))
        });
        parts.fold(0.0, f64::max)
    }

    /// Loss of each client beyond its reference by the plan, in the unit of its promise; `None` for one that gets
    /// nothing.
    pub fn lacks(&mut self, now: Duration, clients: &[(Client, Setting)]) -> Vec<Option<f64>> {
        self.watch(now, clients);
        let each = clients.iter().zip(&self.seen);
        each.map(|((client, _), seen)| Some(seen.and_then(Seen::mean)? - client.reference()))
            .collect()
    }

    /// Adds up what each client loses over its present cycle and the plan's second.
    fn watch(&mut self, now: Duration, clients: &[(Client, Setting)]) {
        let (Packing { planned, seen, .. }, end) = (self, now.saturating_add(HORIZON));
        seen.clear();
        seen.extend(clients.iter().map(|(client, setting)| {
            let last = client.last?;
            let from = last.shown.max(now.saturating_sub(client.apart(*setting))).min(now);
            Some(Seen { from, until: from, captured: last.captured, sum: 0.0 })
        }));
        for Planned { client: at, anchored: Anchored { captured, shown }, .. } in &*planned {
            if *shown < end {
                let first = Seen { from: *shown, until: *shown, captured: *captured, sum: 0.0 };
                let seen = seen[*at].get_or_insert(first);
                seen.pass(&clients[*at].0, *shown);
                seen.captured = *captured;
            }
        }
        for ((client, _), seen) in clients.iter().zip(seen) {
            if let Some(seen) = seen {
                seen.pass(client, end);
            }
        }
    }
}

impl Seen {
    /// Adds what the client loses with its present anchor up to `until`.
    fn pass(&mut self, client: &Client, until: Duration) {
        if until > self.until {
            let stale = |at: Duration| client.frames(at.saturating_sub(self.captured));
            let lost = client.decay.over(stale(self.until), stale(until));
            self.sum += lost * client.frame.as_secs_f64();
            self.until = until;
        }
    }

    /// Mean loss of the client's frames; `None` before any was counted.
    fn mean(self) -> Option<f64> {
        let span = self.until.saturating_sub(self.from);
        (span > Duration::ZERO).then(|| self.sum / span.as_secs_f64())
    }
}

impl Client {
    /// Time between two anchors at a setting.
    fn apart(&self, setting: Setting) -> Duration {
        self.frame.saturating_mul(setting.interval)
    }

    /// Time at which the next anchor after that of a frame is due.
    fn due(&self, captured: Duration, setting: Setting) -> Duration {
        captured.saturating_add(self.up_delay).saturating_add(self.apart(setting))
    }

    /// Capture time of the client's newest frame at time `at`.
    pub fn newest_frame(&self, at: Duration) -> Duration {
        let (phase, frame) = (self.phase.as_secs_f64(), self.frame.as_secs_f64());
        let frames = ((at.as_secs_f64() - phase) / frame + ROUNDING).floor();
        time_of(phase + frames * frame)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::settings::setting;
    use super::super::{BatchCost, MS, any_time, client};
    use super::*;

    const NOW: Duration = Duration::from_secs(10);

    fn clients(decays: &[f64]) -> Vec<(Client, Setting)> {
        let all = (0..).zip(decays).map(|(id, &decay)| client(id, decay));
        all.map(|client| (client, setting(&client))).collect()
    }

    #[test]
    fn those_who_come_together_share_a_batch_as_large_as_each_stands() {
        let mut clients = clients(&[0.006; 6]);
        let max = clients[0].1.batch;
        assert!(max > 2, "{max}");
        clients[1].1.batch = 2;
        let mut packing = Packing::default();
        packing.pack(NOW, &clients, &[NOW]);
        let of = |batch| packing.planned().iter().filter(|p| p.batch == batch).count();
        assert_eq!((of(0), of(1)), (2, max.min(4)));
    }

    #[test]
    fn frames_are_the_newest_when_their_batch_begins() {
        let clients = clients(&[0.006, 0.004, 0.01, 0.02]);
        let mut packing = Packing::default();
        packing.pack(NOW, &clients, &[NOW]);
        for planned in packing.planned() {
            let there = (planned.anchored.captured + 7 * MS).as_secs_f64();
            let waited = planned.begins.as_secs_f64() - there;
            assert!((-1e-6..1.0 / 60.0).contains(&waited), "{planned:?}");
        }
    }

    #[test]
    fn two_accelerators_keep_more_promises() {
        let max = |devices: usize| {
            let kept = |n: &usize| {
                let clients = clients(&vec![0.01; *n]);
                let mut packing = Packing::default();
                packing.pack(NOW, &clients, &vec![NOW; devices]);
                packing.worst(NOW, &clients) <= 1.0
            };
            (1..200).rev().find(kept).unwrap_or(0)
        };
        let (one, two) = (max(1), max(2));
        assert!(one > 2 && 2 * two >= 3 * one, "{one} {two}");
    }

    #[test]
    fn shapes_are_not_mixed() {
        let mut clients = clients(&[0.006; 4]);
        clients[1].0.shape = 1;
        clients[3].0.shape = 1;
        let mut packing = Packing::default();
        packing.pack(NOW, &clients, &[NOW]);
        for planned in packing.planned() {
            let with = packing.planned().iter().filter(|p| p.batch == planned.batch);
            let shapes = with.map(|p| clients[p.client].0.shape);
            assert!(shapes.into_iter().all(|s| s == clients[planned.client].0.shape));
        }
    }

    proptest! {
        #[test]
        fn no_accelerator_makes_two_batches_at_once_and_none_begins_too_early(
            decays in proptest::collection::vec(1e-3f64..0.05, 1..40), devices in 1usize..4,
        ) {
            let clients = clients(&decays);
            let mut packing = Packing::default();
            packing.pack(NOW, &clients, &vec![NOW; devices]);
            let mut batches: Vec<(Duration, Duration, u32)> = Vec::new();
            for p in packing.planned() {
                prop_assert!(p.begins >= NOW && p.begins < NOW + HORIZON);
                let ends = p.anchored.shown.saturating_sub(7 * MS);
                match batches.iter().find(|b| b.2 == p.batch) {
                    Some(b) => prop_assert_eq!((b.0, b.1), (p.begins, ends)),
                    None => batches.push((p.begins, ends, p.batch)),
                }
            }
            for batch in &batches {
                let at_once = batches.iter().filter(|b| b.0 <= batch.0 && batch.0 < b.1).count();
                prop_assert!(at_once <= devices, "{at_once} at once");
            }
        }

        #[test]
        fn absurd_clients_give_a_plan(
            decay in proptest::num::f64::ANY, fixed in any_time(), each in any_time(),
            captured in any_time(), shown in any_time(), phase in any_time(),
        ) {
            let mut odd = client(1, decay);
            odd.cost = BatchCost { fixed, each, max: 8 };
            odd.last = Some(Anchored { captured, shown });
            odd.phase = phase;
            let clients = [(odd, setting(&odd)), (client(2, 0.01), setting(&client(2, 0.01)))];
            let mut packing = Packing::default();
            packing.pack(NOW, &clients, &[NOW]);
            prop_assert!(packing.planned().len() <= 2 * MAX_PLANNED);
            prop_assert!(!packing.worst(NOW, &clients).is_nan());
        }
    }
}
