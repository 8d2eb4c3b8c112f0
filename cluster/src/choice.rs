//! Which worker a stream goes to: of those that work, the one with the least to do; and when it should go to another.
//!
//! Workers are named in the configuration, or come and go by their leases. A lease that is not renewed takes a worker's new
//! streams, never those that it has: it is judged by its answers ([`crate::judge`]), and what the cluster's bucket says may be old.
//!
//! Source: NeuroScaler §4.2 (load balance over instances). Pure: every time is an argument.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::lease::{HOLDS, Lease};

/// How long a worker that failed is left alone, while there are others.
const AVOIDED: Duration = Duration::from_secs(2);
/// A worker with so much to do gives streams to others...
const HIGH: f64 = 0.85;
/// ...that have so much less.
const LESS: f64 = 0.3;
/// One stream for each such time: what it changes must show first.
const SETTLE: Duration = Duration::from_secs(3);
/// Workers that are known at the most; no more leases are read.
const MOST: usize = 1_024;

/// A worker's name: its address in the configuration, or its lease's.
pub type Name = Arc<str>;

/// Whether a worker is there.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Standing {
    /// By the configuration.
    Named,
    /// By a lease, which was last renewed then.
    Leased(Instant),
    /// No longer.
    Gone,
}

/// What is known of one worker.
#[derive(Debug, Clone)]
struct Known {
    address: Arc<str>,
    standing: Standing,
    /// Streams of ours that it has.
    ours: usize,
    capacity: f64,
    /// The share of its accelerators' time that is taken, as it says; with all that others give it.
    load: f64,
    /// As its lease names them.
    devices: Arc<[String]>,
    full: bool,
    draining: bool,
    avoided: Option<Instant>,
}

impl Known {
    fn new(address: &str, standing: Standing) -> Self {
        Known {
            address: address.into(),
            standing,
            ours: 0,
            capacity: 1.0,
            load: 0.0,
            devices: Arc::default(),
            full: false,
            draining: false,
            avoided: None,
        }
    }

    fn takes(&self, now: Instant) -> bool {
        let works = self.avoided.is_none_or(|until| until <= now);
        self.standing != Standing::Gone && works && !self.draining && !self.full
    }

    /// What orders workers: what was just given to one is not in what it says yet.
    fn order(&self) -> (f64, f64) {
        ((self.load * 10.0).round(), self.ours as f64 / self.capacity)
    }
}

/// A worker, for whoever counts.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerState {
    /// Where it is.
    pub address: Arc<str>,
    /// Whether it may be given streams, as far as its lease and itself say.
    pub there: bool,
    /// Streams of ours that it has.
    pub ours: usize,
    /// The share of its time that is taken.
    pub load: f64,
    /// GPUs, or the slice of one, on which it works, as its lease says.
    pub devices: Arc<[String]>,
}

/// The workers.
#[derive(Debug, Clone, Default)]
pub struct Workers {
    known: BTreeMap<Name, Known>,
    /// When a stream was last taken from one with much to do.
    balanced: Option<Instant>,
}

impl Workers {
    /// Those of the configuration, of which nothing else is known.
    pub fn named<'a>(addresses: impl Iterator<Item = &'a str>) -> Self {
        let known = |address: &str| (address.into(), Known::new(address, Standing::Named));
        Workers { known: addresses.map(known).collect(), balanced: None }
    }

    /// A worker says by its lease that it is there. Whether there is room for it.
    pub fn renewed(&mut self, name: &str, lease: &Lease, now: Instant) -> bool {
        let room = self.known.len() < MOST;
        if !room && !self.known.contains_key(name) {
            return false;
        }
        let known = self.known.entry(name.into());
        let known = known.or_insert_with(|| Known::new(&lease.address, Standing::Gone));
        known.standing = Standing::Leased(now);
        known.capacity = lease.capacity.max(0.01);
        known.load = lease.load.min(1.0);
        if *known.devices != *lease.devices {
            known.devices = lease.devices.as_slice().into();
        }
        known.draining = lease.draining;
        known.full = lease.streams >= lease.most_streams;
        true
    }

    /// A worker has given up its lease.
    pub fn given_up(&mut self, name: &str) {
        if let Some(known) = self.known.get_mut(name) {
            known.standing = Standing::Gone;
        }
        self.forget();
    }

    /// Leases that were not renewed end, while leases can be read: since `since` without a break.
    pub fn expire(&mut self, since: Instant, now: Instant) {
        for known in self.known.values_mut() {
            if let Standing::Leased(renewed) = known.standing
                && now.saturating_duration_since(renewed.max(since)) > HOLDS
            {
                known.standing = Standing::Gone;
            }
        }
        self.forget();
    }

    fn forget(&mut self) {
        self.known.retain(|_, known| known.standing != Standing::Gone || known.ours > 0);
    }

    /// Takes a worker for a stream: of those that work, the one with the least load, and of equals the one with the fewest streams for its
    /// capacity. `None`: none works.
    pub fn take(&mut self, now: Instant) -> Option<(Name, Arc<str>)> {
        let all = self.known.iter().filter(|(_, known)| known.takes(now));
        let least = all.min_by(|(_, a), (_, b)| {
            let (a, b) = (a.order(), b.order());
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let name = least?.0.clone();
        let known = self.known.get_mut(&name)?;
        known.ours += 1;
        Some((name, known.address.clone()))
    }

    /// Whether a stream should leave a worker that answers: it ends soon, or has much more to do than another. Of the latter,
    /// one stream for each time that its going takes to show.
    pub fn should_leave(&mut self, name: &str, now: Instant) -> bool {
        let Some(of) = self.known.get(name) else { return false };
        let others =
            self.known.iter().filter(|(other, known)| &***other != name && known.takes(now));
        let least = others.map(|(_, known)| known.load).min_by(f64::total_cmp);
        let Some(least) = least else { return false };
        if of.draining {
            return true;
        }
        let settled = self.balanced.is_none_or(|at| now.saturating_duration_since(at) >= SETTLE);
        let unbalanced = of.load >= HIGH && of.load - least >= LESS && settled;
        if unbalanced {
            self.balanced = Some(now);
        }
        unbalanced
    }

    /// A stream has left a worker.
    pub fn leave(&mut self, name: &str) {
        if let Some(known) = self.known.get_mut(name) {
            known.ours = known.ours.saturating_sub(1);
        }
        self.forget();
    }

    /// A worker says what it has to do, and whether it ends soon; it works.
    pub fn says(&mut self, name: &str, load: f64, draining: bool) {
        if let Some(known) = self.known.get_mut(name) {
            known.load = if load.is_finite() { load.clamp(0.0, 1.0) } else { 1.0 };
            known.draining = draining;
            known.avoided = None;
        }
    }

    /// A worker failed.
    pub fn failed(&mut self, name: &str, now: Instant) {
        if let Some(known) = self.known.get_mut(name) {
            known.avoided = Some(now + AVOIDED);
        }
    }

    /// All that are known.
    pub fn states(&self) -> impl Iterator<Item = WorkerState> {
        self.known.values().map(|known| WorkerState {
            address: known.address.clone(),
            there: known.standing != Standing::Gone && !known.draining,
            ours: known.ours,
            load: known.load,
            devices: known.devices.clone(),
        })
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
