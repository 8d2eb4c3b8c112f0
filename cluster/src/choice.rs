//! Which worker a stream goes to (the one with the lowest load), and when it should move to another.
//!
//! Workers are named in the configuration, or found by their leases. A worker whose lease has ended gets no new
//! streams, but keeps those that it has. Its answers decide whether it works ([`crate::liveness`]), since leases may be
//! out of date.
//!
//! Source: NeuroScaler §5.2 (load balance over instances). Pure: every time is an argument.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::lease::{LEASE_TIMEOUT, Lease};

/// Time for which a worker gets no streams after it failed.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// Load (0 to 1) from which on a worker's streams move to others.
const OVERLOADED: f64 = 0.85;
/// Difference in load (0 to 1) that makes a move worth its key frame.
const MIN_LOAD_DIFFERENCE: f64 = 0.3;
/// Time between two moves because of load, so that the first one shows in the loads.
const SETTLE_TIME: Duration = Duration::from_secs(3);
/// Maximum number of workers that are known. Leases of further ones are refused.
const MAX_WORKERS: usize = 1_024;

/// A worker's name: its address in the configuration, or the name of its lease.
pub type Name = Arc<str>;

/// How an SFU knows a worker.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Standing {
    /// The configuration names the worker.
    Named,
    /// The worker has a lease, which was last renewed at this time.
    Leased(Instant),
    /// The worker's lease has ended, but the worker still has streams of this SFU.
    Gone,
}

/// A worker that an SFU knows.
#[derive(Debug, Clone)]
struct Known {
    address: Arc<str>,
    standing: Standing,
    /// Number of this SFU's streams on the worker.
    own_streams: usize,
    capacity: f64,
    /// Share of the worker's capacity in use by all SFUs together, as the worker reports it.
    load: f64,
    /// The worker's GPUs, as in [`Lease::devices`].
    devices: Arc<[String]>,
    full: bool,
    draining: bool,
    avoided_until: Option<Instant>,
}

impl Known {
    fn new(address: &str, standing: Standing) -> Self {
        Known {
            address: address.into(),
            standing,
            own_streams: 0,
            capacity: 1.0,
            load: 0.0,
            devices: Arc::default(),
            full: false,
            draining: false,
            avoided_until: None,
        }
    }

    fn takes(&self, now: Instant) -> bool {
        let works = self.avoided_until.is_none_or(|until| until <= now);
        self.standing != Standing::Gone && works && !self.draining && !self.full
    }

    /// Sort key of workers: load in steps of a tenth, then own streams by capacity. The load does not yet include the
    /// streams placed last.
    fn order(&self) -> (f64, f64) {
        ((self.load * 10.0).round(), self.own_streams as f64 / self.capacity)
    }
}

/// State of a worker, for metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerState {
    /// gRPC address of the worker.
    pub address: Arc<str>,
    /// Whether the worker is known and not draining.
    pub available: bool,
    /// Number of this SFU's streams on the worker.
    pub own_streams: usize,
    /// Share of the worker's capacity in use, 0 to 1.
    pub load: f64,
    /// The worker's GPUs, as in [`Lease::devices`].
    pub devices: Arc<[String]>,
}

/// All workers that an SFU knows.
///
/// ```
/// use std::time::Instant;
/// use windlass_cluster::choice::Workers;
///
/// let now = Instant::now();
/// let mut workers = Workers::named(["http://a:7900", "http://b:7900"].into_iter());
/// let (first, _) = workers.assign(now).expect("two workers are free");
/// // It reports how much it has to do, so that the next stream goes to the other worker.
/// workers.on_answer(&first, 0.5, false);
/// let (second, _) = workers.assign(now).expect("one worker is free");
/// assert_ne!(first, second);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Workers {
    known: BTreeMap<Name, Known>,
    /// When a stream was last moved because of load.
    balanced_at: Option<Instant>,
}

impl Workers {
    /// Workers named in the configuration.
    pub fn named<'a>(addresses: impl Iterator<Item = &'a str>) -> Self {
        let known = |address: &str| (address.into(), Known::new(address, Standing::Named));
        Workers { known: addresses.map(known).collect(), balanced_at: None }
    }

    /// Takes a lease that a worker has written. Returns `false` if too many workers are known.
    pub fn on_lease(&mut self, name: &str, lease: &Lease, now: Instant) -> bool {
        let room = self.known.len() < MAX_WORKERS;
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
        known.full = lease.streams >= lease.max_streams;
        true
    }

    /// Notes that a worker has released its lease.
    pub fn on_lease_released(&mut self, name: &str) {
        if let Some(known) = self.known.get_mut(name) {
            known.standing = Standing::Gone;
        }
        self.forget();
    }

    /// Ends leases that were not renewed. Leases have been readable since `since` without interruption.
    pub fn expire(&mut self, since: Instant, now: Instant) {
        for known in self.known.values_mut() {
            if let Standing::Leased(renewed) = known.standing
                && now.saturating_duration_since(renewed.max(since)) > LEASE_TIMEOUT
            {
                known.standing = Standing::Gone;
            }
        }
        self.forget();
    }

    fn forget(&mut self) {
        self.known.retain(|_, known| known.standing != Standing::Gone || known.own_streams > 0);
    }

    /// Chooses a worker for a stream: lowest load, then fewest own streams for its capacity. Returns name and address;
    /// `None`: no worker is available.
    pub fn assign(&mut self, now: Instant) -> Option<(Name, Arc<str>)> {
        let all = self.known.iter().filter(|(_, known)| known.takes(now));
        let lowest = all.min_by(|(_, a), (_, b)| {
            let (a, b) = (a.order(), b.order());
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let name = lowest?.0.clone();
        let known = self.known.get_mut(&name)?;
        known.own_streams += 1;
        Some((name, known.address.clone()))
    }

    /// Whether a stream should move away from a working worker: the worker is draining, or has a much higher load than
    /// another. The second reason holds for one stream in each `SETTLE_TIME`.
    pub fn should_move(&mut self, name: &str, now: Instant) -> bool {
        let Some(worker) = self.known.get(name) else { return false };
        let others =
            self.known.iter().filter(|(other, known)| &***other != name && known.takes(now));
        let min = others.map(|(_, known)| known.load).min_by(f64::total_cmp);
        let Some(min) = min else { return false };
        if worker.draining {
            return true;
        }
        let is_settled =
            self.balanced_at.is_none_or(|at| now.saturating_duration_since(at) >= SETTLE_TIME);
        let is_unbalanced =
            worker.load >= OVERLOADED && worker.load - min >= MIN_LOAD_DIFFERENCE && is_settled;
        if is_unbalanced {
            self.balanced_at = Some(now);
        }
        is_unbalanced
    }

    /// Notes that a stream has left a worker.
    pub fn unassign(&mut self, name: &str) {
        if let Some(known) = self.known.get_mut(name) {
            known.own_streams = known.own_streams.saturating_sub(1);
        }
        self.forget();
    }

    /// Takes a worker's answer to a ping, with its load.
    pub fn on_answer(&mut self, name: &str, load: f64, draining: bool) {
        if let Some(known) = self.known.get_mut(name) {
            known.load = if load.is_finite() { load.clamp(0.0, 1.0) } else { 1.0 };
            known.draining = draining;
            known.avoided_until = None;
        }
    }

    /// Notes that a worker failed: it gets no streams for `RETRY_AFTER`.
    pub fn on_failure(&mut self, name: &str, now: Instant) {
        if let Some(known) = self.known.get_mut(name) {
            known.avoided_until = Some(now + RETRY_AFTER);
        }
    }

    /// All workers that are known.
    pub fn states(&self) -> impl Iterator<Item = WorkerState> {
        self.known.values().map(|known| WorkerState {
            address: known.address.clone(),
            available: known.standing != Standing::Gone && !known.draining,
            own_streams: known.own_streams,
            load: known.load,
            devices: known.devices.clone(),
        })
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
