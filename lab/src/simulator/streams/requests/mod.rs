//! Plays the accelerators' queue alone, under load that no scheduler holds back.
//!
//! Source: PrefillOnly §5.4: requests of few kinds that have something in common to load, at rates relative to *x*,
//! what is served by second when all come at once. There it is a prefix's cache that is loaded or not, here a network;
//! there a request's own tokens, here pixels. In: a [`RequestScenario`]. Out: a [`RequestReport`]: each order at each
//! load, and how much more load the calibrated order bears at no greater mean and 99th percentile of latency. The queue
//! and its model are the server's ([`AcceleratorQueue`](windlass_scheduler::queue::AcceleratorQueue),
//! [`JobTimes`](windlass_scheduler::job_time::JobTimes)); networks have been profiled before the first request, as the
//! paper's are. Deterministic: equal scenarios give equal reports.

mod play;
mod scenario;

use serde::Serialize;

use super::scenario::{OrderName, ScenarioError};
use crate::latencies::Latencies;
use play::{Outcome, Round};
pub(crate) use scenario::RequestScenario;

/// Number of rates that are tried for each doubling of the rate, to find the load that an order bears.
const STEPS: u32 = 16;
/// Lowest rate that is tried, as a share of the least load.
const MIN_RATE: f64 = 1.0 / 16.0;

/// The results of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RequestReport {
    /// What the scenario shows.
    pub about: String,
    /// What a paper reports of a like case, and why this may differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<String>,
    /// Seed of all that is random.
    pub seed: u64,
    /// Number of rounds that were played.
    pub rounds: u64,
    /// Number of requests of a round.
    pub requests: u64,
    /// The paper's *x*: requests served in a second in the calibrated order, when all come at once.
    pub at_once_per_s: f64,
    /// The rows by order: all requests at once, then by load.
    pub rows: Vec<RequestRow>,
    /// The rows of the calibrated order by λ.
    pub lambdas: Vec<RequestRow>,
}

/// An order at a load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RequestRow {
    /// The order in which accelerators took their jobs.
    pub order: OrderName,
    /// Weight λ of a second of waiting, in seconds of work.
    pub lambda: f64,
    /// Offered load over `at_once_per_s`; `None`: all at once.
    pub load: Option<f64>,
    /// Requests that were served in a second.
    pub throughput_per_s: f64,
    /// Mean time from a request's coming until it was done, in milliseconds.
    pub mean_ms: f64,
    /// Median time from a request's coming until it was done, in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of the time from a request's coming until it was done, in milliseconds.
    pub p99_ms: f64,
    /// Longest time from coming to done, in milliseconds.
    pub max_ms: f64,
    /// Number of times that a network was loaded, over the number of requests.
    pub loads: f64,
    /// Share of the time that accelerators worked.
    pub utilisation: f64,
    /// Load of the calibrated order over the greatest load of first-come-first-served, at no greater mean and 99th
    /// percentile. `None` where first-come-first-served does not reach them at a sixteenth of the least load.
    pub x_fifo: Option<f64>,
    /// Load of the calibrated order over the greatest load of shortest-expected-first, at no greater mean and 99th
    /// percentile.
    pub x_shortest: Option<f64>,
    /// Every hundredth of the latencies, the shortest first, in milliseconds.
    #[serde(skip)]
    pub percentiles_ms: Vec<f64>,
}

/// Plays a scenario.
pub(crate) fn run_requests(scenario: &RequestScenario) -> Result<RequestReport, ScenarioError> {
    scenario.check()?;
    let rounds: Vec<Round> = (0..scenario.rounds).map(|n| Round::new(scenario, n)).collect();
    let all = |name: OrderName, lambda: f64, every: f64| {
        let order = RequestScenario::order(name, lambda);
        rounds.iter().fold(Outcome::default(), |mut all, round| {
            all.add(round.play(scenario, order, every));
            all
        })
    };
    let requests = (scenario.count() * scenario.rounds) as f64;
    let at_once = requests / all(OrderName::Calibrated, scenario.lambda, 0.0).end.max(1e-9);
    let row = |name: OrderName, lambda: f64, load: Option<f64>| {
        let every = load.map_or(0.0, |load| 1.0 / (load * at_once));
        RequestRow::new(scenario, name, lambda, load, &all(name, lambda, every))
    };
    let mut rows = Vec::new();
    for &name in &scenario.orders {
        rows.push(row(name, scenario.lambda, None));
        rows.extend(scenario.loads.iter().map(|&load| row(name, scenario.lambda, Some(load))));
    }
    let curve = |name: OrderName| -> Vec<(f64, f64, f64)> {
        if !scenario.orders.contains(&name) || !scenario.orders.contains(&OrderName::Calibrated) {
            return Vec::new();
        }
        let points = rates(&scenario.loads).into_iter().map(|load| {
            let row = row(name, scenario.lambda, Some(load));
            (load, row.mean_ms, row.p99_ms)
        });
        points.collect()
    };
    let (fifo, shortest) = (curve(OrderName::Fifo), curve(OrderName::Shortest));
    for row in rows.iter_mut().filter(|row| row.order == OrderName::Calibrated) {
        let Some(load) = row.load else { continue };
        (row.x_fifo, row.x_shortest) = (more(load, row, &fifo), more(load, row, &shortest));
    }
    let by_lambda = |&lambda: &f64| row(OrderName::Calibrated, lambda, Some(scenario.lambdas_at));
    Ok(RequestReport {
        about: scenario.about.clone(),
        paper: scenario.paper.clone(),
        seed: scenario.seed,
        rounds: scenario.rounds,
        requests: scenario.count(),
        at_once_per_s: at_once,
        lambdas: scenario.lambdas.iter().map(by_lambda).collect(),
        rows,
    })
}

/// The rates that an order is tried at.
fn rates(loads: &[f64]) -> Vec<f64> {
    let (least, most) = loads.iter().fold((f64::MAX, 0.0f64), |(l, m), &x| (l.min(x), m.max(x)));
    let rates = (0..).map(|n| least * MIN_RATE * 2f64.powf(f64::from(n) / f64::from(STEPS)));
    rates.take_while(|&rate| rate <= most * 1.0001).collect()
}

/// A load, over the greatest load of a curve at which neither mean nor 99th percentile is greater than the row's.
fn more(load: f64, row: &RequestRow, curve: &[(f64, f64, f64)]) -> Option<f64> {
    let bears = |&&(_, mean, p99): &&(f64, f64, f64)| mean <= row.mean_ms && p99 <= row.p99_ms;
    curve.iter().rev().find(bears).map(|&(rate, ..)| load / rate)
}

impl RequestRow {
    fn new(
        scenario: &RequestScenario,
        order: OrderName,
        lambda: f64,
        load: Option<f64>,
        outcome: &Outcome,
    ) -> RequestRow {
        let took_ms = || outcome.latencies.iter().map(|s| 1e3 * s);
        let latencies: Latencies = took_ms().collect();
        let count = latencies.count().max(1) as f64;
        RequestRow {
            order,
            lambda: if order == OrderName::Fifo { 0.0 } else { lambda },
            load,
            throughput_per_s: count / outcome.end.max(1e-9),
            mean_ms: took_ms().sum::<f64>() / count,
            p50_ms: latencies.percentile_or_zero(50.0),
            p99_ms: latencies.percentile_or_zero(99.0),
            max_ms: latencies.percentile_or_zero(100.0),
            loads: outcome.loads as f64 / count,
            utilisation: outcome.busy
                / (outcome.end.max(1e-9) * scenario.accelerators.len() as f64),
            x_fifo: None,
            x_shortest: None,
            percentiles_ms: latencies.hundred(),
        }
    }
}

#[cfg(test)]
mod tests;
