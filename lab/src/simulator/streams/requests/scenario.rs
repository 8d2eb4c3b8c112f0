//! A scenario of requests to the accelerators' queue, as a file has it.

use serde::{Deserialize, Serialize};

use super::super::scenario::{
    self, Accelerator, OrderName, PlacementUnit, ScenarioError, value, within,
};
use windlass_scheduler::queue::Order;

/// Requests that no scheduler holds back, to the queue alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestScenario {
    /// A description in a sentence.
    pub about: String,
    /// What a paper reports of a like case, and why this may differ.
    #[serde(default)]
    pub paper: Option<String>,
    /// Seed of all that is random.
    #[serde(default = "scenario::one")]
    pub seed: u64,
    /// Number of rounds, each with other random numbers; figures are of all together.
    #[serde(default = "scenario::one")]
    pub rounds: u64,
    /// The orders that are compared.
    #[serde(default = "all_orders")]
    pub orders: Vec<OrderName>,
    /// Weight λ of a second of waiting, in seconds of work.
    #[serde(default = "scenario::lambda")]
    pub lambda: f64,
    /// Other values of λ to compare.
    #[serde(default)]
    pub lambdas: Vec<f64>,
    /// The load at which they are compared.
    #[serde(default = "unit")]
    pub lambdas_at: f64,
    /// Requests offered in a second, over those served in a second when all come at once.
    #[serde(default = "loads")]
    pub loads: Vec<f64>,
    /// Whether all accelerators have one queue, or each has its own, to which networks are dealt out.
    #[serde(default)]
    pub placement: PlacementUnit,
    /// The accelerators; their `load_ms` is added to the networks'.
    pub accelerators: Vec<Accelerator>,
    /// Time of inference on an accelerator of speed 1, in ns for each LR pixel.
    pub ns_by_pixel: f64,
    /// Groups of requests that are alike. Calls come in random order, at random times (a Poisson process).
    pub requests: Vec<RequestGroup>,
}

/// Requests that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestGroup {
    /// Number of networks.
    pub networks: u32,
    /// Number of requests for each network.
    pub each: u32,
    /// Number of requests for a network that come together, by one call.
    #[serde(default = "one")]
    pub together: u32,
    /// Time over which the requests of a call come, in seconds.
    #[serde(default)]
    pub over_s: f64,
    /// Mean time to load a network, in milliseconds.
    #[serde(default)]
    pub load_ms: f64,
    /// Standard deviation of the time to load between networks, over its mean.
    #[serde(default)]
    pub load_spread: f64,
    /// Minimum and maximum number of LR pixels of a request.
    pub pixels: (u16, u16),
}

/// Maximum number of requests of a scenario, in all rounds together.
const MAX_REQUESTS: u64 = 1_000_000;

impl RequestScenario {
    /// Fails if a value is out of its range.
    pub(crate) fn check(&self) -> Result<(), ScenarioError> {
        value((1..=1000).contains(&self.rounds), "rounds", "from 1 to 1000")?;
        value(!self.orders.is_empty() && self.orders.len() <= 8, "orders", "from 1 to 8")?;
        let lambdas = [self.lambda].into_iter().chain(self.lambdas.iter().copied());
        value(
            lambdas.clone().all(|l| within(l, 0.0, 1e6)),
            "lambda, lambdas",
            "from 0 to 1000000",
        )?;
        let loads = self.loads.iter().chain([&self.lambdas_at]);
        value(
            loads.clone().all(|&l| within(l, 0.01, 100.0)),
            "loads, lambdas_at",
            "from 0.01 to 100",
        )?;
        value((1..=64).contains(&self.loads.len()), "loads", "from 1 to 64")?;
        value(lambdas.count() <= 64, "lambdas", "at most 63")?;
        value((1..=1000).contains(&self.accelerators.len()), "accelerators", "from 1 to 1000")?;
        self.accelerators.iter().try_for_each(Accelerator::check)?;
        let whole = self.accelerators.iter().all(|a| a.fails_at_s.is_none());
        value(
            whole,
            "accelerators: fails_at_s",
            "left out where requests come to the queue alone",
        )?;
        value(within(self.ns_by_pixel, 0.001, 1e9), "ns_by_pixel", "from 0.001 to 1000000000")?;
        for group in &self.requests {
            value((1..=1000).contains(&group.networks), "requests: networks", "from 1 to 1000")?;
            value(
                (1..=group.each).contains(&group.together),
                "requests: together",
                "from 1 to each",
            )?;
            value(within(group.over_s, 0.0, 86_400.0), "requests: over_s", "from 0 to 86400")?;
            value(within(group.load_ms, 0.0, 60_000.0), "requests: load_ms", "from 0 to 60000")?;
            value(within(group.load_spread, 0.0, 1.0), "requests: load_spread", "from 0 to 1")?;
            let (min, max) = group.pixels;
            value(1 <= min && min <= max, "requests: pixels", "[least, most], from 1 to 65535")?;
        }
        let networks: u64 = self.requests.iter().map(|g| u64::from(g.networks)).sum();
        value(networks <= 1000, "requests: networks", "at most 1000 together")?;
        let count = self.count().saturating_mul(self.rounds);
        value(
            (1..=MAX_REQUESTS).contains(&count),
            "requests: each",
            "so that 1 to 1000000 come in all rounds",
        )
    }

    /// Number of requests of a round.
    pub(crate) fn count(&self) -> u64 {
        self.requests.iter().map(|g| u64::from(g.networks) * u64::from(g.each)).sum()
    }

    pub(super) fn order(name: OrderName, lambda: f64) -> Order {
        match name {
            OrderName::Fifo => Order::Fifo,
            OrderName::Shortest => Order::Shortest { lambda },
            OrderName::Calibrated => Order::Calibrated { lambda },
        }
    }
}

fn all_orders() -> Vec<OrderName> {
    vec![OrderName::Fifo, OrderName::Shortest, OrderName::Calibrated]
}

/// The loads of PrefillOnly §5.4.2.
fn loads() -> Vec<f64> {
    vec![0.25, 0.5, 1.0, 2.0, 3.0, 4.0]
}

fn unit() -> f64 {
    1.0
}

fn one() -> u32 {
    1
}
