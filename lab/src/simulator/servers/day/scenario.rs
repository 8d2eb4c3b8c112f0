//! A day's scenario, as a file has it, and the report on it.

use rand::Rng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use crate::simulator::servers::scaling::Scaling;

/// A day on workers that come and go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DayScenario {
    /// A description in a line.
    pub about: String,
    /// What a paper reports of a like case, and why this may differ.
    #[serde(default)]
    pub paper: Option<String>,
    /// Seed of all that is random.
    #[serde(default = "one")]
    pub seed: u64,
    /// Publishers by the hour from midnight on, as shares of the peak. Between two hours the share changes evenly.
    pub hours: Vec<f64>,
    /// Number of publishers at a time at a share of 1.
    pub peak: f64,
    /// Bursts: times with more publishers than the hour says.
    #[serde(default)]
    pub bursts: Vec<Burst>,
    /// Mean stay of a publisher, in seconds.
    pub stay_s: f64,
    /// Number of servers that the publishers come to.
    pub servers: usize,
    /// The kinds of publishers.
    pub streams: Vec<Kind>,
    /// The machine that enhances streams.
    pub worker: WorkerKind,
    /// The rule for the number of workers.
    #[serde(default)]
    pub scaling: Scaling,
}

/// A burst of publishers who come at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Burst {
    /// The hour at which the burst begins.
    pub at_h: f64,
    /// How long the burst lasts, in minutes.
    pub minutes: f64,
    /// Factor by which more publishers come during the burst.
    pub times: f64,
}

/// Publishers that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kind {
    /// The kind's name.
    pub name: String,
    /// The kind's share of all publishers.
    pub share: f64,
    /// Width of the low layer, in pixels.
    pub width: u16,
    /// Height of the low layer, in pixels.
    pub height: u16,
    /// Frames per second.
    pub fps: f64,
    /// Time for inference and encoding, in ns for each pixel of the low layer.
    pub ns_by_pixel: f64,
    /// Maximum share of frames that become anchors.
    pub anchor_fraction: f64,
}

/// A machine that enhances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkerKind {
    /// Number of accelerators of speed 1 that work side by side.
    pub devices: f64,
    /// Maximum number of publishers.
    pub max_streams: usize,
    /// Time from the machine's order to its first stream, in seconds.
    pub boot_s: u64,
    /// Time that streams have to leave the machine when it drains, in seconds.
    pub drain_s: u64,
    /// Price of an hour; 0: not known.
    #[serde(default)]
    pub price: f64,
}

fn one() -> u64 {
    1
}

/// How many workers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerCount {
    /// The number that the autoscaler orders.
    Scaled,
    /// A fixed number of workers from the beginning to the end.
    Fixed(u32),
    /// No workers: only the number that would be wanted is counted.
    Counted,
}

/// The results of a day.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct DayReport {
    /// Number of publishers that came.
    pub streams: u64,
    /// Maximum number of publishers at a time.
    pub max_streams: usize,
    /// Hours that workers were paid for, with those that they take to start.
    pub machine_hours: f64,
    /// Maximum number of workers at a time.
    pub max_machines: u32,
    /// Maximum number of workers that the scheduler's rule would have wanted for all publishers.
    pub max_wanted: u32,
    /// Machine hours of as many workers as the rule wanted, had they come and gone at once.
    pub wanted_hours: f64,
    /// Number of workers that were ordered.
    pub started: u64,
    /// Share of publishers' time without a worker.
    pub without_share: f64,
    /// Longest time that a publisher was without a worker, in seconds.
    pub max_without_s: u64,
    /// Number of minutes of the day in which any publisher was without a worker.
    pub minutes_without: u64,
    /// Share of the due anchors that nobody had the compute for, with those of publishers without a worker.
    pub missed_share: f64,
    /// Number of streams that moved to another worker, at the cost of a key frame each.
    pub moves: u64,
    /// Accelerators' time that was given out over all of it, in the mean of the day.
    pub utilisation: f64,
}

impl DayScenario {
    /// Mean number of publishers at a second, once as many are there as is usual for it.
    pub(super) fn at(&self, now: u64) -> f64 {
        let hour = now as f64 / 3_600.0;
        let at = |n: usize| self.hours.get(n % self.hours.len().max(1)).copied().unwrap_or(0.0);
        let (whole, part) = (hour.floor() as usize, hour.fract());
        let usual = at(whole) + (at(whole + 1) - at(whole)) * part;
        let of = |burst: &Burst| (0.0..burst.minutes / 60.0).contains(&(hour - burst.at_h));
        let times: f64 = self.bursts.iter().filter(|b| of(b)).map(|b| b.times).product();
        (usual * self.peak * times).max(0.0)
    }
}

/// A random number with this mean, from a Poisson distribution.
pub(super) fn poisson(mean: f64, random: &mut StdRng) -> u32 {
    let (floor, mut product, mut count) = ((-mean).exp(), 1.0, 0);
    loop {
        product *= random.random::<f64>();
        if product <= floor || count > 10_000 {
            return count;
        }
        count += 1;
    }
}
