//! What a day is, as a file says it, and what came of it.

use rand::Rng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use crate::simulator::servers::scaling::Scaling;

/// What is played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DayScenario {
    /// In a line.
    pub about: String,
    /// What a paper reports of the like, and why this may differ.
    #[serde(default)]
    pub paper: Option<String>,
    /// Decides what is left to chance.
    #[serde(default = "one")]
    pub seed: u64,
    /// Publishers by the hour, from midnight on, as shares of the peak; between two hours it changes evenly.
    pub hours: Vec<f64>,
    /// Publishers at a time at a share of 1.
    pub peak: f64,
    /// More than the hour says.
    #[serde(default)]
    pub bursts: Vec<Burst>,
    /// How long a publisher stays, on average, in seconds.
    pub stay_s: f64,
    /// Servers that they come to.
    pub servers: usize,
    /// Kinds of them.
    pub streams: Vec<Kind>,
    /// What enhances them.
    pub worker: WorkerKind,
    /// How many there are of these.
    #[serde(default)]
    pub scaling: Scaling,
}

/// Publishers who come at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Burst {
    /// When it begins.
    pub at_h: f64,
    /// How long more come than usual, in minutes.
    pub minutes: f64,
    /// How often as many there are then.
    pub times: f64,
}

/// Publishers that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kind {
    /// What they are called.
    pub name: String,
    /// Their share of all.
    pub share: f64,
    /// Width of the low layer.
    pub width: u16,
    /// Height of the low layer.
    pub height: u16,
    /// Frames a second.
    pub fps: f64,
    /// Inference and coding, by pixel of the low layer.
    pub ns_by_pixel: f64,
    /// Most anchors by frame.
    pub anchor_fraction: f64,
}

/// A machine that enhances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkerKind {
    /// Accelerators of speed 1 that work side by side.
    pub devices: f64,
    /// Publishers that it takes.
    pub max_streams: usize,
    /// From its order to its first stream.
    pub boot_s: u64,
    /// Streams have so long to leave it.
    pub drain_s: u64,
    /// What it costs an hour; 0: not known.
    #[serde(default)]
    pub price: f64,
}

fn one() -> u64 {
    1
}

/// How many workers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// As the autoscaler says.
    Scaled,
    /// So many from the beginning to the end.
    Fixed(u32),
    /// None: what would be wanted is counted alone.
    Counted,
}

/// What came of a day.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct DayReport {
    /// Publishers that came.
    pub streams: u64,
    /// Publishers at a time, at the most.
    pub max_streams: usize,
    /// Hours that workers were paid for, those that they take to start included.
    pub machine_hours: f64,
    /// Workers at a time, at the most.
    pub max_machines: u32,
    /// What the scheduler's rule would have wanted at the most, of all publishers.
    pub max_wanted: u32,
    /// Machine hours of as many as the rule wanted, had they come and gone at once.
    pub wanted_hours: f64,
    /// Workers that were ordered.
    pub started: u64,
    /// Share of publishers' time without a worker.
    pub without_share: f64,
    /// The longest that one was without, in seconds.
    pub max_without_s: u64,
    /// Minutes of the day in which anybody was.
    pub minutes_without: u64,
    /// Share of the anchors that were due which nobody had the compute for, of those without a worker included.
    pub missed_share: f64,
    /// Streams that went to another worker, at the cost of a key frame.
    pub moves: u64,
    /// Accelerators' time given out over what was there, in the mean of the day.
    pub utilisation: f64,
}

impl DayScenario {
    /// Publishers that there would be at a second, on average, once those who are there are as usual for it.
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

/// A number with this mean, at random.
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
