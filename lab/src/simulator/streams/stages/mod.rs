//! The CPU's slots, under requests whose stages take turns on the CPU and at inference.
//!
//! Source: ZARN §3–4. In: a [`StageScenario`]. Out: a [`StageReport`] with missed deadlines. They are counted for
//! `threads`, for slots in the order of arrival, and for slots by the nearest deadline, at each cap. With `threads`,
//! all tasks that are ready run, the operating system shares the cores among them, and its switching costs. The
//! server's own code decides who gets a slot ([`SlotQueue`](windlass_scheduler::slots::SlotQueue)). Requests, the
//! times of stages, and the CPU are made up. Running tasks share its cores equally, and each task more than there are
//! cores slows all down by a share. Deterministic: equal scenarios give equal reports.

mod play;
mod scenario;

use std::time::Duration;

use serde::Serialize;

use super::scenario::ScenarioError;
use crate::latencies::Latencies;
use play::{Outcome, Round};
pub(crate) use scenario::StageScenario;
use windlass_scheduler::slots::{SlotConfig, TaskOrder};

/// How tasks are scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TaskScheduling {
    /// All tasks at once, as the operating system schedules them.
    Threads,
    /// In slots, in the order of arrival.
    Fifo,
    /// In slots, the nearest deadline first.
    Edf,
}

impl TaskScheduling {
    /// All of them, in the order of reports.
    pub(crate) const ALL: [TaskScheduling; 3] =
        [TaskScheduling::Threads, TaskScheduling::Fifo, TaskScheduling::Edf];

    /// Name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TaskScheduling::Threads => "threads",
            TaskScheduling::Fifo => "fifo",
            TaskScheduling::Edf => "edf",
        }
    }
}

/// The results of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct StageReport {
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
    pub requests: u32,
    /// The rows, by way and cap.
    pub rows: Vec<StageRow>,
}

/// A way at a cap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct StageRow {
    /// How tasks were scheduled.
    pub way: TaskScheduling,
    /// The number of slots, `cpu_tasks_cap`; `None` for `threads`.
    pub cap: Option<usize>,
    /// Number of requests of the first round that took too long or were given up.
    pub missed_first: u64,
    /// Mean number of requests of a round that took too long or were given up.
    pub missed: f64,
    /// Mean number of requests of a round that were given up.
    pub given_up: f64,
    /// Mean time from a request's coming until it was done, in milliseconds.
    pub mean_ms: f64,
    /// Median time from a request's coming until it was done, in milliseconds.
    pub p50_ms: f64,
    /// 95th percentile of the time from a request's coming until it was done, in milliseconds.
    pub p95_ms: f64,
    /// Mean time that a request waited for slots, in milliseconds.
    pub waited_ms: f64,
}

/// Plays a scenario.
pub(crate) fn run_stages(scenario: &StageScenario) -> Result<StageReport, ScenarioError> {
    scenario.check()?;
    let rounds: Vec<Round> = (0..scenario.rounds).map(|n| Round::new(scenario, n)).collect();
    let ms = |ms: f64| Duration::from_secs_f64(1e-3 * ms);
    let play = |way: TaskScheduling, cap: Option<usize>| {
        let config = SlotConfig {
            cap: cap.unwrap_or(usize::MAX),
            order: if way == TaskScheduling::Edf { TaskOrder::Edf } else { TaskOrder::Fifo },
            lost_cause_threshold: ms(scenario.lost_cause_threshold_ms),
            max_waiting: usize::MAX,
        };
        let outcomes: Vec<Outcome> = rounds.iter().map(|r| r.play(scenario, config)).collect();
        StageRow::new(way, cap, &outcomes)
    };
    let mut rows = vec![play(TaskScheduling::Threads, None)];
    for way in [TaskScheduling::Fifo, TaskScheduling::Edf] {
        rows.extend(scenario.caps.iter().map(|&cap| play(way, Some(cap))));
    }
    Ok(StageReport {
        about: scenario.about.clone(),
        paper: scenario.paper.clone(),
        seed: scenario.seed,
        rounds: scenario.rounds,
        requests: scenario.count,
        rows,
    })
}

impl StageRow {
    fn new(way: TaskScheduling, cap: Option<usize>, outcomes: &[Outcome]) -> StageRow {
        let took_ms = || outcomes.iter().flat_map(|o| &o.latencies).map(|s| 1e3 * s);
        let latencies: Latencies = took_ms().collect();
        let mean = |of: &dyn Fn(&Outcome) -> f64| {
            outcomes.iter().map(of).sum::<f64>() / outcomes.len().max(1) as f64
        };
        let done = latencies.count().max(1) as f64;
        StageRow {
            way,
            cap,
            missed_first: outcomes.first().map_or(0, |o| o.missed),
            missed: mean(&|o| o.missed as f64),
            given_up: mean(&|o| o.given_up as f64),
            mean_ms: took_ms().sum::<f64>() / done,
            p50_ms: latencies.percentile_or_zero(50.0),
            p95_ms: latencies.percentile_or_zero(95.0),
            waited_ms: 1e3 * outcomes.iter().map(|o| o.waited_s).sum::<f64>() / done,
        }
    }
}

#[cfg(test)]
mod tests;
