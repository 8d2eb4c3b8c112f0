//! A scenario of streams, as a file has it.

use std::time::Duration;

use super::policy::PlayedPolicy;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use windlass_scheduler::queue::{LAMBDA, Order};
use windlass_scheduler::{NetworkCost, SchedulerConfig};

/// A scenario of streams. Times are in seconds unless their names say otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// A description in a sentence.
    pub about: String,
    /// What a paper reports of a like case, and why this may differ.
    #[serde(default)]
    pub paper: Option<String>,
    /// Length of the scenario.
    pub seconds: f64,
    /// Seed of all that is random.
    #[serde(default = "one")]
    pub seed: u64,
    /// The scheduler's interval (T_intv), in milliseconds.
    #[serde(default = "interval")]
    pub interval_ms: f64,
    /// Maximum time from a frame's arrival until its anchor is encoded, in milliseconds.
    #[serde(default = "deadline")]
    pub deadline_ms: f64,
    /// Maximum share of frames that become anchors.
    #[serde(default = "fraction")]
    pub anchor_fraction: f64,
    /// The order in which accelerators take jobs: `fifo`, `shortest`, or `calibrated`.
    #[serde(default)]
    pub order: OrderName,
    /// Weight λ of a second of waiting, in seconds of work.
    #[serde(default = "lambda")]
    pub lambda: f64,
    /// Whether any accelerator may make any anchor, or each stream has one of its own.
    #[serde(default)]
    pub placement: PlacementUnit,
    /// Networks, by scale, then the cheapest first.
    pub networks: Vec<NetworkSpec>,
    /// The accelerators that run the networks.
    pub accelerators: Vec<Accelerator>,
    /// Groups of streams that are alike.
    pub streams: Vec<Group>,
}

/// What is placed on accelerators one by one (NeuroScaler §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PlacementUnit {
    /// Anchors: one selector for all streams, and each anchor on whatever accelerator is free.
    #[default]
    Anchor,
    /// Streams: dealt out to accelerators in turn, each with a selector of its own.
    Stream,
}

/// An order by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OrderName {
    /// The job that came first.
    Fifo,
    /// The job that was expected to be shortest when it came.
    Shortest,
    /// The job that is expected to be shortest now.
    #[default]
    Calibrated,
}

/// A network and its cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NetworkSpec {
    /// HR size over LR size.
    #[serde(default = "two")]
    pub scale: usize,
    /// Time of inference and encoding on an accelerator of speed 1, in ns for each LR pixel.
    pub ns_by_pixel: f64,
}

/// An accelerator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accelerator {
    /// How much faster the accelerator is than the networks' costs say.
    #[serde(default = "unit")]
    pub speed: f64,
    /// Standard deviation of the time of jobs, over its mean.
    #[serde(default = "spread")]
    pub spread: f64,
    /// Time to load another network, in milliseconds.
    #[serde(default)]
    pub load_ms: f64,
    /// Number of networks that stay loaded. The one that was used least lately makes room for another.
    #[serde(default = "one_network")]
    pub keeps: usize,
    /// When the accelerator is lost.
    #[serde(default)]
    pub fails_at_s: Option<f64>,
    /// When the accelerator is back.
    #[serde(default)]
    pub returns_at_s: Option<f64>,
}

/// Streams that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    /// The group's name in the report.
    pub name: String,
    /// Number of streams.
    pub count: u32,
    /// Width of the LR pictures.
    pub width: u16,
    /// Height of the LR pictures.
    pub height: u16,
    /// Frames per second.
    #[serde(default = "thirty")]
    pub fps: f64,
    /// Bitrate of the low layer, in kbit/s.
    #[serde(default = "low_rate")]
    pub kbps: f64,
    /// Number of frames from one key frame to the next; 0: only the first is one.
    #[serde(default)]
    pub keys_every: u64,
    /// When the first stream joins.
    #[serde(default)]
    pub joins_at_s: f64,
    /// Time over which the streams join.
    #[serde(default)]
    pub joins_over_s: f64,
    /// When the streams leave.
    #[serde(default)]
    pub leaves_at_s: Option<f64>,
    /// Maximum scale by which the pictures may be enlarged.
    #[serde(default = "two")]
    pub max_scale: usize,
    /// The policy by which the streams' anchors are chosen.
    #[serde(default)]
    pub policy: PlayedPolicy,
    /// Time from a frame's arrival until it is shown, in milliseconds: nothing in calls, seconds in broadcasts.
    #[serde(default)]
    pub watched_after_ms: f64,
    /// Gain of an anchor on its own frame, in dB.
    #[serde(default = "best")]
    pub best_db: f64,
    /// Number of frames after which half of the gain is left.
    #[serde(default = "ten")]
    pub half_life: f64,
    /// A recorded trace whose frames the streams send, from the scenario's folder; then `fps` and `kbps` are the
    /// trace's.
    #[serde(default)]
    pub trace: Option<String>,
    /// The path from the publisher to the server.
    #[serde(default)]
    pub uplink: Link,
    /// The path from the server to those who watch.
    #[serde(default)]
    pub downlink: Link,
}

/// A path, as a scenario gives it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Link {
    /// Delay in one direction, in milliseconds.
    #[serde(default)]
    pub delay_ms: f64,
    /// Maximum random time beyond the delay, in milliseconds.
    #[serde(default)]
    pub jitter_ms: f64,
    /// Share that is lost for good: of packets from publishers, of anchors to viewers.
    #[serde(default)]
    pub loss: f64,
}

impl Link {
    fn check(&self) -> Result<(), ScenarioError> {
        let times = within(self.delay_ms, 0.0, 10_000.0) && within(self.jitter_ms, 0.0, 10_000.0);
        value(times, "streams: delay_ms, jitter_ms", "from 0 to 10000")?;
        value(within(self.loss, 0.0, 1.0), "streams: loss", "from 0 to 1")
    }
}

/// Why a scenario cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ScenarioError {
    /// A value is out of its range.
    #[error("{name} must be {range}")]
    Value {
        /// The value's name.
        name: &'static str,
        /// The range that the value may have.
        range: &'static str,
    },
    /// The named trace does not exist.
    #[error("streams: there is no trace {0}")]
    Trace(String),
}

/// Maximum number of streams of a scenario.
const MAX_STREAMS: u64 = 1_000_000;

pub(super) fn within(value: f64, least: f64, most: f64) -> bool {
    value.is_finite() && (least..=most).contains(&value)
}

/// An error that names the value and its range, unless it is fine.
pub(super) fn value(
    fine: bool,
    name: &'static str,
    range: &'static str,
) -> Result<(), ScenarioError> {
    if fine { Ok(()) } else { Err(ScenarioError::Value { name, range }) }
}

impl Accelerator {
    /// Fails if a value is out of its range.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        let device = self;
        value(within(device.speed, 1e-6, 1e6), "accelerators: speed", "from 0.000001 to 1000000")?;
        value(within(device.spread, 0.0, 1.0), "accelerators: spread", "from 0 to 1")?;
        value(within(device.load_ms, 0.0, 60_000.0), "accelerators: load_ms", "from 0 to 60000")?;
        value((1..=1000).contains(&device.keeps), "accelerators: keeps", "from 1 to 1000")?;
        let both = device.fails_at_s.zip(device.returns_at_s);
        let ordered = both.is_none_or(|(fails, returns)| returns > fails);
        value(ordered, "accelerators: returns_at_s", "later than fails_at_s")?;
        let times = [device.fails_at_s, device.returns_at_s];
        value(
            times.into_iter().flatten().all(|s| within(s, 0.0, 864_000.0)),
            "accelerators: fails_at_s, returns_at_s",
            "from 0 to 864000",
        )
    }
}

impl Scenario {
    /// Fails if a value is out of its range.
    pub(crate) fn check(&self) -> Result<(), ScenarioError> {
        value(within(self.seconds, 0.1, 864_000.0), "seconds", "from 0.1 to 864000")?;
        value(within(self.interval_ms, 1.0, 10_000.0), "interval_ms", "from 1 to 10000")?;
        value(within(self.deadline_ms, 1.0, 60_000.0), "deadline_ms", "from 1 to 60000")?;
        value(within(self.anchor_fraction, 0.0, 1.0), "anchor_fraction", "from 0 to 1")?;
        value(within(self.lambda, 0.0, 1e6), "lambda", "from 0 to 1000000")?;
        value(!self.networks.is_empty(), "networks", "at least one")?;
        value(
            !self.accelerators.is_empty() && self.accelerators.len() <= 10_000,
            "accelerators",
            "from 1 to 10000",
        )?;
        let scales = self.networks.iter().map(|n| n.scale);
        value(
            scales.clone().all(|s| (2..=4).contains(&s)) && scales.is_sorted(),
            "networks: scale",
            "from 2 to 4, the least first",
        )?;
        let costs = self.networks.iter().all(|n| within(n.ns_by_pixel, 0.001, 1e9));
        value(costs, "networks: ns_by_pixel", "from 0.001 to 1000000000")?;
        self.accelerators.iter().try_for_each(Accelerator::check)?;
        let count: u64 = self.streams.iter().map(|g| u64::from(g.count)).sum();
        value((1..=MAX_STREAMS).contains(&count), "streams: count", "from 1 to 1000000 together")?;
        for group in &self.streams {
            value(
                (1..=8192).contains(&group.width) && (1..=8192).contains(&group.height),
                "streams: width, height",
                "from 1 to 8192",
            )?;
            value(within(group.fps, 0.1, 240.0), "streams: fps", "from 0.1 to 240")?;
            value(within(group.kbps, 1.0, 100_000.0), "streams: kbps", "from 1 to 100000")?;
            value(
                within(group.best_db, 0.0, 100.0) && within(group.half_life, 0.01, 1e6),
                "streams: best_db, half_life",
                "from 0 to 100, and from 0.01 to 1000000",
            )?;
            value(
                within(group.watched_after_ms, 0.0, 60_000.0),
                "streams: watched_after_ms",
                "from 0 to 60000",
            )?;
            group.uplink.check()?;
            group.downlink.check()?;
            let times = [Some(group.joins_at_s), Some(group.joins_over_s), group.leaves_at_s];
            value(
                times.into_iter().flatten().all(|s| within(s, 0.0, 864_000.0)),
                "streams: joins_at_s, joins_over_s, leaves_at_s",
                "from 0 to 864000",
            )?;
        }
        Ok(())
    }

    /// The traces that the scenario needs, by name.
    pub(crate) fn traces(&self) -> impl Iterator<Item = &str> {
        self.streams.iter().filter_map(|group| group.trace.as_deref())
    }

    /// The length of the scenario.
    pub(crate) fn length(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// The order in which accelerators take jobs.
    pub(crate) fn order(&self) -> Order {
        match self.order {
            OrderName::Fifo => Order::Fifo,
            OrderName::Shortest => Order::Shortest { lambda: self.lambda },
            OrderName::Calibrated => Order::Calibrated { lambda: self.lambda },
        }
    }

    /// The limits of a scheduler of these accelerators. They count by their speeds, rounded down to whole devices.
    pub(crate) fn scheduler(&self, accelerators: &[Accelerator]) -> SchedulerConfig {
        let speeds: f64 = accelerators.iter().map(|a| a.speed).sum();
        let devices = accelerators.len() as f64;
        let network = |n: &NetworkSpec| NetworkCost {
            scale: n.scale,
            // Of a device as they are in the mean.
            per_pixel: Duration::from_secs_f64(n.ns_by_pixel * 1e-9 * devices / speeds),
        };
        SchedulerConfig {
            interval: Duration::from_secs_f64(self.interval_ms / 1e3),
            deadline: Duration::from_secs_f64(self.deadline_ms / 1e3),
            devices: u32::try_from(accelerators.len()).unwrap_or(u32::MAX),
            anchor_fraction: self.anchor_fraction,
            networks: self.networks.iter().map(network).collect(),
            ..SchedulerConfig::default()
        }
    }
}

fn best() -> f64 {
    5.0
}
fn ten() -> f64 {
    10.0
}
pub(super) fn one() -> u64 {
    1
}
fn two() -> usize {
    2
}
fn unit() -> f64 {
    1.0
}
fn interval() -> f64 {
    66.0
}
fn deadline() -> f64 {
    140.0
}
fn fraction() -> f64 {
    0.033
}
pub(super) fn lambda() -> f64 {
    LAMBDA
}
fn spread() -> f64 {
    0.1
}
fn one_network() -> usize {
    1
}
fn thirty() -> f64 {
    30.0
}
fn low_rate() -> f64 {
    150.0
}
