//! The raw data of a run: the server's metrics and the clients' totals at both ends, and processes' use in between.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::balance::Balance;
use super::course::Course;
use super::process::Usage;
use super::scrape::Figures;
use super::tally::Totals;

/// All samples from the beginning of the measured time on.
pub(super) struct Measurement {
    /// The server's metrics and the clients' totals at the beginning.
    pub before: (Figures, Totals),
    /// The latest metrics and totals.
    pub after: (Figures, Totals),
    begun: Instant,
    ended: Instant,
    /// The server's process before the first client joined.
    pub server_empty: Option<Usage>,
    /// The server's process, once a second.
    pub server: Vec<Usage>,
    /// This process, with the CPU time of its child processes added, once a second.
    pub clients: Vec<Usage>,
    /// The longest time by which this machine was late, the time before the measurement included.
    pub stall_max: Duration,
    /// The longest sampled length of each queue of the server, by metric name.
    pub queues: BTreeMap<String, f64>,
    /// The figures of every second.
    pub course: Course,
}

impl Measurement {
    /// A measurement that begins with a first sample; `subscribers` are those of a room.
    pub(super) fn new(
        figures: Figures,
        totals: Totals,
        server_empty: Option<Usage>,
        subscribers: usize,
    ) -> Measurement {
        let now = Instant::now();
        Measurement {
            before: (figures.clone(), totals.clone()),
            after: (figures, totals),
            begun: now,
            ended: now,
            server_empty,
            server: Vec::new(),
            clients: Vec::new(),
            stall_max: Duration::ZERO,
            queues: BTreeMap::new(),
            course: Course::new(subscribers),
        }
    }

    /// Adds a sample; `children` are the processes of subscribers.
    pub(super) fn sample(
        &mut self,
        figures: &Figures,
        totals: &Totals,
        server: Option<Usage>,
        children: &[Usage],
    ) {
        self.ended = Instant::now();
        self.server.extend(server);
        let own = Usage::of(std::process::id());
        let clients = own.map(|own| Usage {
            cpu_s: own.cpu_s + children.iter().map(|child| child.cpu_s).sum::<f64>(),
            ..own
        });
        self.clients.extend(clients);
        self.course.sample(figures, totals, server, clients);
        for (name, depth) in figures.beginning("enhancer_queue_length") {
            let max = self.queues.entry(name.to_owned()).or_default();
            *max = max.max(depth);
        }
        self.after = (figures.clone(), totals.clone());
    }

    /// Adds to `balance` how the server's process changed; `now` is after the last client left.
    pub(super) fn add_process_to(&self, balance: &mut Balance, now: Option<Usage>) {
        balance.of_process(self.server_empty, now, &self.server);
    }

    /// Length of the measured time in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.ended.saturating_duration_since(self.begun).as_secs_f64()
    }
}
