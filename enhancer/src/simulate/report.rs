//! What came of a scenario.

use std::time::Duration;

use serde::Serialize;

use super::events::Device;
use super::scenario::Scenario;
use crate::schedule::SchedulerCounters;

/// What came of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What the scenario shows.
    pub about: String,
    /// Of chance.
    pub seed: u64,
    /// Simulated.
    pub seconds: f64,
    /// All streams together.
    pub all: GroupReport,
    /// By group.
    pub groups: Vec<GroupReport>,
    /// By accelerator: share of the time that it worked.
    pub utilisation: Vec<f64>,
    /// Jobs that a lost accelerator gave back.
    pub given_back: u64,
    /// Frames that were not chosen, by reason.
    pub passed_over: Vec<(&'static str, u64)>,
}

/// What came of some streams.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupReport {
    /// Their name.
    pub name: String,
    /// How many.
    pub streams: u64,
    /// Frames that arrived.
    pub frames: u64,
    /// Anchors within the deadline.
    pub anchors: u64,
    /// Anchors by frame.
    pub fraction: f64,
    /// Chosen frames whose anchor came too late, though it had been begun.
    pub missed: u64,
    /// Chosen frames that were dropped before: too late to begin, or no room.
    pub dropped: u64,
    /// Missed and dropped of all chosen.
    pub miss_rate: f64,
    /// From a frame's arrival to its anchor: percentiles in milliseconds.
    pub p50_ms: f64,
    /// 95 % were no longer.
    pub p95_ms: f64,
    /// 99 % were no longer.
    pub p99_ms: f64,
}

#[derive(Debug, Clone, Default)]
struct Sums {
    frames: u64,
    missed: u64,
    dropped: u64,
    latencies_ms: Vec<f32>,
}

/// Counts while a scenario is played.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    groups: Vec<Sums>,
    frames: u64,
    pub given_back: u64,
}

impl Tally {
    pub fn new(scenario: &Scenario) -> Self {
        Tally { groups: vec![Sums::default(); scenario.streams.len()], frames: 0, given_back: 0 }
    }

    /// Another frame; its name.
    pub fn frame(&mut self, group: usize) -> u64 {
        self.groups[group].frames += 1;
        self.frames += 1;
        self.frames
    }

    pub fn anchor(&mut self, group: usize, latency: Duration, missed: bool) {
        if missed {
            self.groups[group].missed += 1;
        } else {
            self.groups[group].latencies_ms.push(1e3 * latency.as_secs_f32());
        }
    }

    pub fn late(&mut self, group: usize) {
        self.groups[group].dropped += 1;
    }

    pub fn refused(&mut self, group: usize) {
        self.groups[group].dropped += 1;
    }

    pub fn report(
        self,
        scenario: &Scenario,
        devices: &[Device],
        counters: SchedulerCounters,
    ) -> Report {
        let mut all = Sums::default();
        let mut groups = Vec::new();
        let mut streams = 0;
        for (group, sums) in scenario.streams.iter().zip(self.groups) {
            all.frames += sums.frames;
            all.missed += sums.missed;
            all.dropped += sums.dropped;
            all.latencies_ms.extend(&sums.latencies_ms);
            streams += u64::from(group.count);
            groups.push(sums.report(&group.name, group.count.into()));
        }
        let passed_over = vec![
            ("over_fraction", counters.over_fraction),
            ("over_capacity", counters.over_capacity),
            ("unchanged", counters.unchanged),
            ("lost_causes", counters.lost_causes),
            ("overflowed", counters.overflowed),
        ];
        Report {
            about: scenario.about.clone(),
            seed: scenario.seed,
            seconds: scenario.seconds,
            all: all.report("all", streams),
            groups,
            utilisation: devices.iter().map(|d| d.busy.as_secs_f64() / scenario.seconds).collect(),
            given_back: self.given_back,
            passed_over,
        }
    }
}

impl Sums {
    fn report(mut self, name: &str, streams: u64) -> GroupReport {
        self.latencies_ms.sort_by(f32::total_cmp);
        let anchors = self.latencies_ms.len();
        let percentile = |share: f64| {
            let at = ((anchors as f64 * share) as usize).min(anchors.saturating_sub(1));
            self.latencies_ms.get(at).map_or(0.0, |&ms| f64::from(ms))
        };
        let chosen = anchors as u64 + self.missed + self.dropped;
        GroupReport {
            name: name.to_owned(),
            streams,
            frames: self.frames,
            anchors: anchors as u64,
            fraction: anchors as f64 / self.frames.max(1) as f64,
            missed: self.missed,
            dropped: self.dropped,
            miss_rate: (self.missed + self.dropped) as f64 / chosen.max(1) as f64,
            p50_ms: percentile(0.5),
            p95_ms: percentile(0.95),
            p99_ms: percentile(0.99),
        }
    }
}
