//! What came of a scenario.

use std::time::Duration;

use serde::Serialize;

use super::quality::Chunk;
use super::scenario::Scenario;
use crate::schedule::SchedulerCounters;

/// What came of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What the scenario shows.
    pub about: String,
    /// What a paper reports of the like, and why this may differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<String>,
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
    /// Accelerators that would have given every stream its fraction, at most.
    pub devices_wanted: u32,
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
    /// Predicted gain over no anchors, the mean of all seconds of all streams, in dB.
    pub gain_db: f64,
    /// By how much a second of a stream is predicted to be worse than super-resolution of every frame: 95 % are no worse, in dB.
    pub lacks_p95_db: f64,
}

#[derive(Debug, Clone, Default)]
struct Sums {
    frames: u64,
    missed: u64,
    dropped: u64,
    latencies_ms: Vec<f32>,
    gain_db: f64,
    lacks_db: Vec<f32>,
}

/// Counts while a scenario is played.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    groups: Vec<Sums>,
    frames: u64,
    pub given_back: u64,
    pub devices_wanted: u32,
}

impl Tally {
    pub fn new(scenario: &Scenario) -> Self {
        let groups = vec![Sums::default(); scenario.streams.len()];
        Tally { groups, frames: 0, given_back: 0, devices_wanted: 0 }
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

    pub fn chunk(&mut self, group: usize, chunk: Chunk) {
        self.groups[group].gain_db += chunk.gain_db;
        self.groups[group].lacks_db.push(chunk.lacks_db as f32);
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
        utilisation: Vec<f64>,
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
            all.gain_db += sums.gain_db;
            all.lacks_db.extend(&sums.lacks_db);
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
            paper: scenario.paper.clone(),
            seed: scenario.seed,
            seconds: scenario.seconds,
            all: all.report("all", streams),
            groups,
            utilisation,
            given_back: self.given_back,
            devices_wanted: self.devices_wanted,
            passed_over,
        }
    }
}

impl Sums {
    fn report(mut self, name: &str, streams: u64) -> GroupReport {
        let anchors = self.latencies_ms.len();
        self.latencies_ms.sort_by(f32::total_cmp);
        self.lacks_db.sort_by(f32::total_cmp);
        let of = |sorted: &[f32], share: f64| {
            let at = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
            sorted.get(at).map_or(0.0, |&value| f64::from(value))
        };
        let percentile = |share: f64| of(&self.latencies_ms, share);
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
            gain_db: self.gain_db / self.lacks_db.len().max(1) as f64,
            lacks_p95_db: of(&self.lacks_db, 0.95),
        }
    }
}
