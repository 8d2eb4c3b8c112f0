//! A scenario of ARISE, as a file has it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use windlass_scheduler::promise::BatchCost;

use super::super::scenario::ScenarioError;

/// Clients that come and go, one accelerator, and a promise to each. Times are in milliseconds unless their names say
/// otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientsScenario {
    /// A description in a sentence.
    pub about: String,
    /// What the paper reports of a like case, and why this may differ.
    #[serde(default)]
    pub paper: Option<String>,
    /// Length of the scenario, in seconds.
    pub seconds: f64,
    /// Seed of all that is random.
    #[serde(default = "one")]
    pub seed: u64,
    /// The clients that come.
    pub clients: Clients,
    /// Fixed time of an accelerator for a batch, in milliseconds.
    pub batch_ms: f64,
    /// Additional time of a batch for each of its pictures, in milliseconds.
    pub picture_ms: f64,
    /// Standard deviation of the time of batches, over its mean.
    #[serde(default)]
    pub spread: f64,
    /// Maximum number of pictures of a batch.
    pub max_batch: usize,
    /// How much clients may lack beyond an accelerator of their own. Each promise is played by itself. Two values are
    /// a range, from which each client has its own.
    pub promises: Vec<Vec<f64>>,
}

/// Clients, each with a network and content of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Clients {
    /// Number of clients that come each second; those that are not served are sent elsewhere.
    pub by_second: f64,
    /// Mean stay of a client, in seconds.
    pub stay_s: f64,
    /// Frames per second.
    pub fps: f64,
    /// Minimum and maximum mean decay: the loss of a picture with each frame.
    pub decay: (f64, f64),
    /// How much decay varies about its mean within a client, as a share of it.
    pub varies: f64,
    /// Time from capture to the accelerator, in milliseconds.
    pub up_ms: f64,
    /// Time from the accelerator back to the client, in milliseconds.
    pub down_ms: f64,
    /// Standard deviation of `up_ms` and of `down_ms`, in milliseconds.
    pub jitter_ms: f64,
}

impl ClientsScenario {
    /// Time that the accelerator takes for a batch.
    pub(super) fn cost(&self) -> BatchCost {
        let [fixed, each] = [self.batch_ms, self.picture_ms].map(|ms| seconds(ms / 1e3));
        BatchCost { fixed, each, max: self.max_batch }
    }

    /// Fails if a value is out of its range.
    pub(crate) fn check(&self) -> Result<(), ScenarioError> {
        let value = |value: f64, least: f64, most: f64, name: &'static str, range: &'static str| {
            let fine = value.is_finite() && (least..=most).contains(&value);
            if fine { Ok(()) } else { Err(ScenarioError::Value { name, range }) }
        };
        let of = &self.clients;
        value(self.seconds, 1.0, 3_600.0, "seconds", "from 1 to 3600")?;
        value(self.batch_ms, 0.0, 1_000.0, "batch_ms", "from 0 to 1000")?;
        value(self.picture_ms, 0.1, 1_000.0, "picture_ms", "from 0.1 to 1000")?;
        value(self.spread, 0.0, 1.0, "spread", "from 0 to 1")?;
        value(self.max_batch as f64, 1.0, 64.0, "max_batch", "from 1 to 64")?;
        value(of.by_second, 0.01, 1_000.0, "clients: by_second", "from 0.01 to 1000")?;
        value(of.stay_s, 0.1, 3_600.0, "clients: stay_s", "from 0.1 to 3600")?;
        value(of.fps, 1.0, 240.0, "clients: fps", "from 1 to 240")?;
        value(of.decay.0, 0.0, 1e6, "clients: decay", "from 0 to 1000000, the least first")?;
        value(of.decay.1, of.decay.0, 1e6, "clients: decay", "from 0 to 1000000, the least first")?;
        value(of.varies, 0.0, 1.0, "clients: varies", "from 0 to 1")?;
        for time in [of.up_ms, of.down_ms, of.jitter_ms] {
            value(time, 0.0, 1_000.0, "clients: up_ms, down_ms, jitter_ms", "from 0 to 1000")?;
        }
        let promises =
            !self.promises.is_empty() && self.promises.iter().all(|p| (1..=2).contains(&p.len()));
        let all = self.promises.iter().flatten().all(|p| p.is_finite() && *p >= 0.0);
        value(
            f64::from(u8::from(promises && all)),
            1.0,
            1.0,
            "promises",
            "one value, or two, each at least 0",
        )
    }
}

/// A span of this many seconds, for the scheduler; zero for less than zero.
pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.max(0.0))
}

fn one() -> u64 {
    1
}
