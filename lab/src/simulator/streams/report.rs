//! The report of a scenario.

use std::time::Duration;

use serde::Serialize;

use super::course::{Course, Second};
use super::quality::Chunk;
use super::scenario::Scenario;
use crate::eval::stats::percentile;
use crate::latencies::Latencies;
use crate::simulator::mean::Mean;
use windlass_scheduler::SchedulerCounters;

/// The results of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// What the scenario shows.
    pub about: String,
    /// What a paper reports of a like case, and why this may differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<String>,
    /// Seed of all that is random.
    pub seed: u64,
    /// Length of the scenario in simulated seconds.
    pub seconds: f64,
    /// The figures of all streams together.
    pub all: GroupReport,
    /// The figures by group.
    pub groups: Vec<GroupReport>,
    /// For each accelerator, the share of the time that it worked.
    pub utilisation: Vec<f64>,
    /// Number of jobs that a lost accelerator gave back.
    pub given_back: u64,
    /// Number of streams that had the promise of `quality-sla` at the end, and that were refused it.
    pub promised: (usize, usize),
    /// For each network, the number of anchors that it made.
    pub by_network: Vec<u64>,
    /// Number of times that an accelerator loaded a network.
    pub loads: u64,
    /// Maximum number of accelerators that would have given every stream its fraction.
    pub devices_wanted: u32,
    /// Compute demand at the end: seconds of accelerators of speed 1 in a second.
    pub compute_demand: f64,
    /// Number of frames that were not chosen, by reason.
    pub passed_over: Vec<(&'static str, u64)>,
    /// Every hundredth of all anchors' latencies, the shortest first, in milliseconds.
    #[serde(skip)]
    pub percentiles_ms: Vec<f64>,
    /// The figures of every second.
    #[serde(skip)]
    pub course: Vec<Second>,
}

/// The figures of a group of streams.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct GroupReport {
    /// The group's name.
    pub name: String,
    /// The number of streams.
    pub streams: u64,
    /// Number of frames that arrived.
    pub frames: u64,
    /// Number of frames that were lost on the way, or referenced one that was.
    pub lost: u64,
    /// Number of anchors within the deadline.
    pub anchors: u64,
    /// Number of `anchors` that were lost on the way to viewers.
    pub anchors_lost: u64,
    /// Number of anchors over number of frames.
    pub fraction: f64,
    /// Number of chosen frames whose anchor came too late, though it had been begun.
    pub missed: u64,
    /// Number of chosen frames that were dropped before: too late to begin, or no room.
    pub dropped: u64,
    /// Missed and dropped frames over all chosen ones.
    pub miss_rate: f64,
    /// Median time from a frame's arrival to its anchor, in milliseconds.
    pub p50_ms: f64,
    /// 95th percentile of the time from a frame's arrival to its anchor, in milliseconds.
    pub p95_ms: f64,
    /// 99th percentile of the time from a frame's arrival to its anchor, in milliseconds.
    pub p99_ms: f64,
    /// Predicted gain over no anchors in dB: the mean of all seconds of all streams.
    pub gain_db: f64,
    /// How much worse than super-resolution of every frame a second of a stream is predicted to be, in dB: 95th
    /// percentile.
    pub lacks_p95_db: f64,
    /// Measured worth of the anchors, over that of as many random frames; of traces that have it.
    pub worth: Option<f64>,
}

#[derive(Debug, Clone, Default)]
struct Sums {
    frames: u64,
    lost: u64,
    anchors_lost: u64,
    /// The anchors' known worths.
    worth: Mean,
    missed: u64,
    dropped: u64,
    latencies_ms: Latencies,
    gain_db: f64,
    lacks_db: Vec<f64>,
}

/// Counts while a scenario is played.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    groups: Vec<Sums>,
    course: Course,
    frames: u64,
    by_network: Vec<u64>,
    loads: u64,
    pub given_back: u64,
    /// Number of frames that were inferred and not sent.
    pub not_best: u64,
    pub devices_wanted: u32,
    pub demand_s: f64,
}

impl Tally {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let groups = vec![Sums::default(); scenario.streams.len()];
        let course = Course::new(scenario.length());
        Tally {
            groups,
            course,
            frames: 0,
            by_network: vec![0; scenario.networks.len()],
            loads: 0,
            given_back: 0,
            not_best: 0,
            devices_wanted: 0,
            demand_s: 0.0,
        }
    }

    /// Counts a frame, and returns its name.
    pub(super) fn frame(&mut self, group: usize, at: Duration) -> u64 {
        self.course.frame(at);
        self.groups[group].frames += 1;
        self.frames += 1;
        self.frames
    }

    /// Counts an anchor that is ready, in time or not.
    pub(super) fn anchor(&mut self, group: usize, at: Duration, latency: Duration, missed: bool) {
        if missed {
            self.groups[group].missed += 1;
            self.course.missed(at);
        } else {
            let latency_ms = 1e3 * latency.as_secs_f64();
            self.groups[group].latencies_ms.record(latency_ms);
            self.course.anchor(at, latency_ms);
        }
    }

    /// Counts the making of an anchor by a network, which the accelerator had loaded or not.
    pub(super) fn work(&mut self, from: Duration, took: Duration, network: usize, loaded: bool) {
        self.course.work(from, took);
        self.by_network[network] += 1;
        self.loads += u64::from(!loaded);
    }

    pub(super) fn lost_frame(&mut self, group: usize) {
        self.groups[group].lost += 1;
    }

    pub(super) fn lost_anchor(&mut self, group: usize) {
        self.groups[group].anchors_lost += 1;
    }

    pub(super) fn worth(&mut self, group: usize, worth: Option<f64>) {
        if let Some(worth) = worth {
            self.groups[group].worth.add(worth);
        }
    }

    pub(super) fn chunk(&mut self, group: usize, at: Duration, chunk: Chunk) {
        self.course.gain(at, chunk.gain_db);
        self.groups[group].gain_db += chunk.gain_db;
        self.groups[group].lacks_db.push(chunk.lacks_db);
    }

    /// Counts a chosen frame that was given up.
    pub(super) fn dropped(&mut self, group: usize, at: Duration) {
        self.groups[group].dropped += 1;
        self.course.missed(at);
    }

    pub(super) fn report(
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
            all.lost += sums.lost;
            all.anchors_lost += sums.anchors_lost;
            all.worth.merge(sums.worth);
            all.missed += sums.missed;
            all.dropped += sums.dropped;
            all.latencies_ms.add(&sums.latencies_ms);
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
            ("not_planned", counters.not_planned),
            ("refused", counters.refused),
            ("not_best", self.not_best),
        ];
        Report {
            about: scenario.about.clone(),
            paper: scenario.paper.clone(),
            seed: scenario.seed,
            seconds: scenario.seconds,
            percentiles_ms: all.latencies_ms.hundred(),
            course: self.course.seconds(utilisation.len()),
            all: all.report("all", streams),
            groups,
            utilisation,
            given_back: self.given_back,
            promised: (0, 0),
            by_network: self.by_network,
            loads: self.loads,
            devices_wanted: self.devices_wanted,
            compute_demand: self.demand_s,
            passed_over,
        }
    }
}

impl Sums {
    fn report(self, name: &str, streams: u64) -> GroupReport {
        let anchors = self.latencies_ms.count();
        let chosen = anchors + self.missed + self.dropped;
        GroupReport {
            name: name.to_owned(),
            streams,
            frames: self.frames,
            lost: self.lost,
            anchors_lost: self.anchors_lost,
            worth: self.worth.get(),
            anchors,
            fraction: anchors as f64 / self.frames.max(1) as f64,
            missed: self.missed,
            dropped: self.dropped,
            miss_rate: (self.missed + self.dropped) as f64 / chosen.max(1) as f64,
            p50_ms: self.latencies_ms.percentile_or_zero(50.0),
            p95_ms: self.latencies_ms.percentile_or_zero(95.0),
            p99_ms: self.latencies_ms.percentile_or_zero(99.0),
            gain_db: self.gain_db / self.lacks_db.len().max(1) as f64,
            lacks_p95_db: percentile(&self.lacks_db, 95.0).unwrap_or_default(),
        }
    }
}
