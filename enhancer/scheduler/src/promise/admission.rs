//! Admission to the quality SLA: the most streams for which it can be kept (ARISE §4.4.2, *Verify* and *Apply*).
//!
//! Every [`EVERY`] all clients are ordered: served ones first, and of each kind those that take the smallest
//! share of an accelerator. The longest prefix of this order whose plan keeps every promise is served. The others are
//! refused, with nothing planned for them.
//!
//! The paper removes *one client* and adds *one more*, and does not say which. Here the client that takes most is
//! removed, because its anchors break the promise to others; so most clients are kept. No client is removed for a new
//! one, nor for a single late anchor, but only when [`MAX_BROKEN`] plans in a row were broken. The client that takes
//! least is served in any case. A refused client waits for [`WAIT`] before it is tried again, twice as long each
//! time.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_types::StreamId;

use super::plan::{Packing, Planned};
use super::settings::{setting, share};
use super::{Client, Setting};

/// Time between two plans.
pub const EVERY: Duration = Duration::from_millis(200);
/// Time before a refused stream is tried again.
const WAIT: Duration = Duration::from_secs(2);
/// Maximum doublings of [`WAIT`].
const MAX_DOUBLINGS: u32 = 5;
/// Plans in a row that may break a promise before a stream is refused.
const MAX_BROKEN: u32 = 1;
/// Time served after which former refusals are forgotten.
const FORGIVEN: Duration = Duration::from_secs(30);
/// Share of a promise that a plan may use; the rest is for scene changes.
const STAYS: f64 = 0.95;
/// Share of a promise that a plan with a new stream may use, so that the stream is not refused soon after.
const ROOM: f64 = 0.9;

/// Verdict on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The stream is in the plan: its promise is kept.
    Served,
    /// Serving the stream would break the promise to others.
    Refused,
}

#[derive(Debug, Clone, Copy)]
struct Standing {
    verdict: Verdict,
    since: Duration,
    falls: u32,
    /// Number of the last plan that considered the client. Clients of earlier plans are forgotten.
    plan: u64,
}

/// Plans the anchors of each second, and decides which clients get the promise.
#[derive(Debug, Default)]
pub struct Admission {
    standings: BTreeMap<StreamId, Standing>,
    /// Clients of the present plan in the order in which they are served. Each has its share of an accelerator, whether
    /// it was served before, and its index among the clients.
    order: Vec<(f64, bool, usize)>,
    /// The setting of each client, in the order of the plan's clients.
    settings: Vec<Setting>,
    chosen: Vec<(Client, Setting)>,
    packing: Packing,
    /// Plans in a row that broke a promise.
    broken: u32,
    served: Vec<usize>,
    /// Whether each client is in `served`, in the order of the plan's clients.
    is_served: Vec<bool>,
    /// Number of plans made so far.
    plans: u64,
    changes: Vec<(StreamId, Verdict)>,
}

impl Admission {
    /// Plans the second from `now` on. `free` has the time at which each accelerator is free.
    pub fn plan(&mut self, now: Duration, clients: &[Client], free: &[Duration]) {
        self.changes.clear();
        self.order.clear();
        self.settings.clear();
        self.settings.extend(clients.iter().map(setting));
        for (at, client) in clients.iter().enumerate() {
            let standing = self.standings.get(&client.id);
            let served = standing.is_some_and(|s| s.verdict == Verdict::Served);
            let waits = standing.is_some_and(|s| {
                s.verdict == Verdict::Refused
                    && now.saturating_sub(s.since) < WAIT * (1 << s.falls.min(MAX_DOUBLINGS))
            });
            if !waits {
                let takes = share(client, self.settings[at]);
                self.order.push((takes, served, at));
            }
        }
        let id = |at: usize| clients[at].id;
        self.order.sort_unstable_by(|a, b| {
            b.1.cmp(&a.1).then(a.0.total_cmp(&b.0)).then(id(a.2).cmp(&id(b.2)))
        });
        let max = self.longest(now, clients, free);
        self.pack(now, max, clients, free);
        self.served.clear();
        self.served.extend(self.order[..max].iter().map(|&(.., at)| at));
        self.is_served.clear();
        self.is_served.resize(clients.len(), false);
        for &at in &self.served {
            self.is_served[at] = true;
        }
        self.plans += 1;
        for (at, client) in clients.iter().enumerate() {
            self.report(now, client.id, self.is_served[at]);
        }
        let plans = self.plans;
        self.standings.retain(|_, standing| standing.plan == plans);
    }

    /// Number of clients at the head of the order that can be served together.
    fn longest(&mut self, now: Duration, clients: &[Client], free: &[Duration]) -> usize {
        // Most times nothing has changed: those who were served are again, and nobody else fits.
        let all = self.order.len();
        let before = self.order.iter().filter(|(_, served, _)| *served).count();
        let (mut min, mut max) = (all.min(1).min(free.len()), all);
        let (mut next, mut step) = (all, 1);
        if before > 0 {
            let kept = self.fits(now, before, clients, free);
            self.broken = if kept { 0 } else { self.broken + 1 };
            if !kept && self.broken <= MAX_BROKEN && !free.is_empty() {
                return before;
            }
            match (before > min, kept) {
                (false, _) => next = before,
                (true, true) => (min, next, step) = (before, before + 1, 2),
                (true, false) => {
                    max = before - 1;
                    next = usize::midpoint(min, max);
                }
            }
        }
        while min < max {
            next = next.clamp(min + 1, max);
            if self.fits(now, next, clients, free) {
                min = next;
                next = min + step;
                step *= 2;
            } else {
                max = next - 1;
                next = usize::midpoint(min, max);
            }
        }
        min
    }

    fn fits(&mut self, now: Duration, count: usize, clients: &[Client], free: &[Duration]) -> bool {
        // More than there is cannot be packed: no plan needs to be made.
        let newcomers = self.order[..count].iter().any(|(_, served, _)| !served);
        let takes: f64 = self.order[..count].iter().map(|&(takes, ..)| takes).sum();
        if takes > 2.0 * free.len() as f64 {
            return false;
        }
        self.pack(now, count, clients, free);
        let worst = self.packing.worst(now, &self.chosen);
        worst <= if newcomers { ROOM } else { STAYS }
    }

    fn pack(&mut self, now: Duration, count: usize, clients: &[Client], free: &[Duration]) {
        self.chosen.clear();
        let some = self.order[..count].iter().map(|&(.., at)| (clients[at], self.settings[at]));
        self.chosen.extend(some);
        self.packing.pack(now, &self.chosen, free);
    }

    fn report(&mut self, now: Duration, id: StreamId, served: bool) {
        let verdict = if served { Verdict::Served } else { Verdict::Refused };
        let plan = self.plans;
        let standing = self.standings.get(&id).copied();
        let Some(before) = standing else {
            self.standings.insert(id, Standing { verdict, since: now, falls: 0, plan });
            self.changes.push((id, verdict));
            return;
        };
        let Standing { since, falls, .. } = before;
        let before = Standing { plan, ..before };
        let after = match (before.verdict, verdict) {
            (Verdict::Served, Verdict::Served) if now.saturating_sub(since) > FORGIVEN => {
                Standing { falls: 0, ..before }
            }
            (Verdict::Served, Verdict::Refused) => {
                Standing { verdict, since: now, falls: falls.saturating_add(1), plan }
            }
            (Verdict::Refused, Verdict::Served) => Standing { verdict, since: now, falls, plan },
            _ => before,
        };
        if after.verdict != before.verdict {
            self.changes.push((id, verdict));
        }
        self.standings.insert(id, after);
    }

    /// The anchors of the plan; [`Planned::client`] is the place in [`served`](Self::served).
    pub fn planned(&self) -> &[Planned] {
        self.packing.planned()
    }

    /// Indices of the clients that are in the plan.
    pub fn served(&self) -> &[usize] {
        &self.served
    }

    /// Verdicts of the last plan that differ from those before it.
    pub fn changes(&self) -> &[(StreamId, Verdict)] {
        &self.changes
    }

    /// Last verdict on a stream; `None` if it is not known.
    pub fn verdict(&self, id: StreamId) -> Option<Verdict> {
        self.standings.get(&id).map(|standing| standing.verdict)
    }

    /// Loss of each served client beyond its reference by the plan, in the unit of its promise.
    pub fn lacks(&mut self, now: Duration) -> Vec<Option<f64>> {
        self.packing.lacks(now, &self.chosen)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Decay, MS, client};
    use super::*;

    const NOW: Duration = Duration::from_secs(10);

    #[test]
    fn as_many_are_served_as_fit_and_the_others_are_refused() {
        let all: Vec<Client> = (0..60).map(|id| client(id, 0.01)).collect();
        let mut admission = Admission::default();
        admission.plan(NOW, &all, &[NOW]);
        let served = admission.served().len();
        assert!((4..40).contains(&served), "{served}");
        assert_eq!(admission.changes().len(), 60);
        let lacks = admission.lacks(NOW);
        assert!(lacks.iter().all(|l| l.is_some_and(|l| l <= 0.04 + 1e-4)), "{lacks:?}");
    }

    #[test]
    fn the_one_that_takes_most_makes_room_for_the_others() {
        let mut all: Vec<Client> = (0..8).map(|id| client(id, 0.004)).collect();
        let mut admission = Admission::default();
        admission.plan(NOW, &all, &[NOW]);
        assert_eq!(admission.served().len(), 8);
        all[3].decay = Decay::line(0.4);
        for plan in 0..=MAX_BROKEN {
            assert_eq!(admission.verdict(StreamId(3)), Some(Verdict::Served), "{plan}");
            let now = NOW + EVERY * (plan + 1);
            admission.plan(now, &all, &[now]);
        }
        assert_eq!(admission.verdict(StreamId(3)), Some(Verdict::Refused));
        assert_eq!(admission.changes(), [(StreamId(3), Verdict::Refused)]);
    }

    #[test]
    fn who_is_refused_comes_back_when_it_takes_less_but_not_at_once() {
        let mut all: Vec<Client> = (0..8).map(|id| client(id, 0.004)).collect();
        all[3].decay = Decay::line(0.4);
        let mut admission = Admission::default();
        admission.plan(NOW, &all, &[NOW]);
        assert_eq!(admission.verdict(StreamId(3)), Some(Verdict::Refused));
        all[3].decay = Decay::line(0.004);
        admission.plan(NOW + 200 * MS, &all, &[NOW + 200 * MS]);
        assert_eq!(admission.verdict(StreamId(3)), Some(Verdict::Refused));
        admission.plan(NOW + 2_200 * MS, &all, &[NOW + 2_200 * MS]);
        assert_eq!(admission.verdict(StreamId(3)), Some(Verdict::Served));
    }

    #[test]
    fn who_has_gone_is_forgotten() {
        let all: Vec<Client> = (0..3).map(|id| client(id, 0.004)).collect();
        let mut admission = Admission::default();
        admission.plan(NOW, &all, &[NOW]);
        admission.plan(NOW + 200 * MS, &all[..1], &[NOW + 200 * MS]);
        assert_eq!(admission.verdict(StreamId(2)), None);
        admission.plan(NOW + 400 * MS, &[], &[NOW + 400 * MS]);
        assert!(admission.planned().is_empty() && admission.served().is_empty());
    }

    proptest! {
        #[test]
        fn the_order_in_which_streams_are_given_changes_nothing(
            decays in proptest::collection::vec(1e-3f64..0.05, 1..30), turn in 0usize..30,
        ) {
            let all: Vec<Client> = (0..).zip(&decays).map(|(id, &decay)| client(id, decay)).collect();
            let mut turned = all.clone();
            turned.rotate_left(turn % all.len());
            let verdicts = |all: &[Client]| {
                let mut admission = Admission::default();
                admission.plan(NOW, all, &[NOW]);
                all.iter().map(|c| (c.id, admission.verdict(c.id))).collect::<BTreeMap<_, _>>()
            };
            prop_assert_eq!(verdicts(&all), verdicts(&turned));
        }

        #[test]
        fn nobody_who_is_served_lacks_more_than_was_promised(
            decays in proptest::collection::vec(1e-3f64..0.05, 1..40), devices in 1usize..4,
        ) {
            let all: Vec<Client> = (0..).zip(&decays).map(|(id, &decay)| client(id, decay)).collect();
            let mut admission = Admission::default();
            admission.plan(NOW, &all, &vec![NOW; devices]);
            prop_assert!(!admission.served().is_empty());
            // Whoever is alone may have more promised than there is.
            if admission.served().len() == 1 {
                return Ok(());
            }
            for (lacks, &at) in admission.lacks(NOW).iter().zip(admission.served().to_vec().iter()) {
                let lacks = lacks.expect("it has an anchor in its first second");
                prop_assert!(lacks <= all[at].promise + all[at].decay.first * 2e-2, "{lacks}");
            }
        }
    }
}
