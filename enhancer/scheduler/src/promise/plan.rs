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

use windlass_types::StreamId;

use super::{Anchored, Client, HORIZON, Setting};

/// Maximum time by which a request may come earlier, as a share of its interval.
pub const EARLY: f64 = 0.5;
/// Time that a batch keeps its accelerator beyond what is expected, as a share of that: the paper's *grace period*.
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
    /// Start of the anchor's batch, in seconds.
    pub begins: f64,
    /// Index of the anchor's batch.
    pub batch: u32,
}

/// Time at which a client's next anchor is due.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Due {
    at: f64,
    id: StreamId,
    client: usize,
}

impl Eq for Due {}

impl Ord for Due {
    /// Orders clients for the heap: the one that is due first is the greatest.
    fn cmp(&self, other: &Due) -> Ordering {
        other
            .at
            .total_cmp(&self.at)
            .then(other.id.cmp(&self.id))
            .then(other.client.cmp(&self.client))
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
    free: Vec<f64>,
    /// Capture time of the newest anchored frame of each client, so far.
    newest: Vec<f64>,
    /// State of each client while the plan is verified: time span seen, present anchor, and loss × seconds.
    seen: Vec<Seen>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    from: f64,
    until: f64,
    captured: f64,
    sum: f64,
}

impl Packing {
    /// Plans the second from `now` on. `free` has the time at which each accelerator is free.
    pub fn pack(&mut self, now: f64, clients: &[(Client, Setting)], free: &[f64]) {
        self.simulate(now, clients);
        self.adjust(now, clients, free);
    }

    /// The anchors of the plan, in the order of their batches.
    pub fn planned(&self) -> &[Planned] {
        &self.planned
    }

    fn simulate(&mut self, now: f64, clients: &[(Client, Setting)]) {
        self.dues.clear();
        self.dues.extend(clients.iter().enumerate().map(|(at, (client, setting))| {
            let next = client
                .last
                .map_or(now, |last| last.captured + client.up_delay + apart(client, *setting));
            Due { at: next.max(now), id: client.id, client: at }
        }));
    }

    fn adjust(&mut self, now: f64, clients: &[(Client, Setting)], free: &[f64]) {
        let Packing { dues, planned, free: until, newest, .. } = self;
        planned.clear();
        until.clear();
        until.extend(free.iter().map(|&free| free.max(now)));
        newest.clear();
        let before = |(client, _): &(Client, Setting)| client.last.map_or(f64::MIN, |l| l.captured);
        newest.extend(clients.iter().map(before));
        let early = |due: &Due| {
            let (client, setting) = &clients[due.client];
            (due.at - EARLY * apart(client, *setting)).max(now)
        };
        let max_planned = MAX_PLANNED * clients.len();
        for batch in 0..u32::try_from(2 * max_planned).unwrap_or(u32::MAX) {
            let Some(first) = dues.peek() else { return };
            let Some(device) = until.iter_mut().min_by(|a, b| a.total_cmp(b)) else { return };
            let begins = device.max(early(first));
            // Written so that what is no number ends it as well.
            let within = begins < now + HORIZON && planned.len() < max_planned;
            if !within {
                return;
            }
            let shape = clients[first.client].0.shape;
            let (mut max, mut fixed, mut each) = (usize::MAX, 0.0f64, 0.0);
            let from = planned.len();
            while let Some(&due) = dues.peek() {
                let (client, setting) = &clients[due.client];
                let taken = planned.len() - from;
                let fits = client.shape == shape && taken < max.min(setting.batch);
                if !fits || (taken > 0 && early(&due) > begins) {
                    break;
                }
                dues.pop();
                let captured = client.newest_frame(begins - client.up_delay);
                if captured <= newest[due.client] + client.frame / 2.0 {
                    // It has an anchor of that frame.
                    dues.push(Due { at: due.at.max(begins) + client.frame, ..due });
                    break;
                }
                newest[due.client] = captured;
                max = max.min(setting.batch);
                fixed = fixed.max(client.cost.seconds(0));
                each += client.cost.seconds(1) - client.cost.seconds(0);
                let anchored = Anchored { captured, shown: 0.0 };
                planned.push(Planned { client: due.client, anchored, begins, batch });
            }
            let took = fixed + each;
            for anchor in &mut planned[from..] {
                let (client, setting) = &clients[anchor.client];
                anchor.anchored.shown = begins + took + client.down_delay;
                let at = anchor.anchored.captured + client.up_delay + apart(client, *setting);
                dues.push(Due { at: at.max(begins), id: client.id, client: anchor.client });
            }
            if planned.len() > from {
                *device = begins + took * (1.0 + GRACE);
            }
        }
    }

    /// Greatest share of its promise that any client takes up by the plan. Above 1, a promise is broken.
    pub fn worst(&mut self, now: f64, clients: &[(Client, Setting)]) -> f64 {
        self.watch(now, clients);
        let parts = clients.iter().zip(&self.seen).map(|((client, _), seen)| {
            seen.mean().map_or(f64::MAX, |lost| client.part(lost - client.reference()))
        });
        parts.fold(0.0, f64::max)
    }

    /// Loss of each client beyond its reference by the plan, in the unit of its promise; `None` for one that gets
    /// nothing.
    pub fn lacks(&mut self, now: f64, clients: &[(Client, Setting)]) -> Vec<Option<f64>> {
        self.watch(now, clients);
        let each = clients.iter().zip(&self.seen);
        each.map(|((client, _), seen)| Some(seen.mean()? - client.reference())).collect()
    }

    /// Adds up what each client loses over its present cycle and the plan's second.
    fn watch(&mut self, now: f64, clients: &[(Client, Setting)]) {
        let Packing { planned, seen, .. } = self;
        seen.clear();
        seen.extend(clients.iter().map(|(client, setting)| match client.last {
            Some(last) => {
                let from = last.shown.max(now - apart(client, *setting)).min(now);
                Seen { from, until: from, captured: last.captured, sum: 0.0 }
            }
            None => Seen { from: f64::NAN, until: f64::NAN, captured: f64::NAN, sum: 0.0 },
        }));
        for anchor in planned.iter() {
            seen[anchor.client].have(&clients[anchor.client].0, anchor.anchored, now + HORIZON);
        }
        for ((client, _), seen) in clients.iter().zip(seen) {
            seen.pass(client, now + HORIZON);
        }
    }
}

/// Seconds between two anchors of a client.
fn apart(client: &Client, setting: Setting) -> f64 {
    f64::from(setting.interval) * client.frame
}

impl Seen {
    fn have(&mut self, client: &Client, anchor: Anchored, end: f64) {
        if anchor.shown >= end {
            return;
        }
        if self.from.is_nan() {
            (self.from, self.until) = (anchor.shown, anchor.shown);
        }
        self.pass(client, anchor.shown);
        self.captured = anchor.captured;
    }

    fn pass(&mut self, client: &Client, until: f64) {
        if until > self.until {
            let stale = |at: f64| (at - self.captured) / client.frame;
            self.sum += client.decay.over(stale(self.until), stale(until)) * client.frame;
            self.until = until;
        }
    }

    /// Mean loss of the client's frames; `None` before any was counted.
    fn mean(&self) -> Option<f64> {
        let span = self.until - self.from;
        (span > 0.0).then(|| self.sum / span)
    }
}

impl Client {
    /// Capture time of the client's newest frame at time `at`, in seconds.
    pub fn newest_frame(&self, at: f64) -> f64 {
        let frames = ((at - self.phase) / self.frame + 1e-6).floor();
        self.phase + frames * self.frame
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::settings::setting;
    use super::super::{BatchCost, client};
    use super::*;

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
        packing.pack(10.0, &clients, &[10.0]);
        let of = |batch| packing.planned().iter().filter(|p| p.batch == batch).count();
        assert_eq!((of(0), of(1)), (2, max.min(4)));
    }

    #[test]
    fn frames_are_the_newest_when_their_batch_begins() {
        let clients = clients(&[0.006, 0.004, 0.01, 0.02]);
        let mut packing = Packing::default();
        packing.pack(10.0, &clients, &[10.0]);
        for planned in packing.planned() {
            let waited = planned.begins - planned.anchored.captured - 0.007;
            assert!((-1e-6..1.0 / 60.0).contains(&waited), "{planned:?}");
        }
    }

    #[test]
    fn two_accelerators_keep_more_promises() {
        let max = |devices: usize| {
            let kept = |n: &usize| {
                let clients = clients(&vec![0.01; *n]);
                let mut packing = Packing::default();
                packing.pack(10.0, &clients, &vec![10.0; devices]);
                packing.worst(10.0, &clients) <= 1.0
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
        packing.pack(10.0, &clients, &[10.0]);
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
            packing.pack(5.0, &clients, &vec![5.0; devices]);
            let mut batches: Vec<(f64, f64, u32)> = Vec::new();
            for p in packing.planned() {
                prop_assert!(p.begins >= 5.0 && p.begins < 5.0 + HORIZON);
                let ends = p.anchored.shown - 0.007;
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
            decay in proptest::num::f64::ANY, fixed in proptest::num::f64::ANY, each in proptest::num::f64::ANY,
            captured in proptest::num::f64::ANY, shown in proptest::num::f64::ANY, phase in proptest::num::f64::ANY,
        ) {
            let mut odd = client(1, decay);
            odd.cost = BatchCost { fixed, each, max: 8 };
            odd.last = Some(Anchored { captured, shown });
            odd.phase = phase;
            let clients = [(odd, setting(&odd)), (client(2, 0.01), setting(&client(2, 0.01)))];
            let mut packing = Packing::default();
            packing.pack(10.0, &clients, &[10.0]);
            prop_assert!(packing.planned().len() <= 2 * MAX_PLANNED);
            prop_assert!(!packing.worst(10.0, &clients).is_nan());
        }
    }
}
