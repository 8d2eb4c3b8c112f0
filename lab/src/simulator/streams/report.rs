//! What came of a scenario.

use std::time::Duration;

use serde::Serialize;

use super::course::{Course, Second};
use super::quality::Chunk;
use super::scenario::Scenario;
use crate::eval::stats::percentile;
use crate::latencies::Latencies;
use windlass_scheduler::SchedulerCounters;

/// What came of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
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
    /// Streams that had the promise of `quality-sla` at the end, and that were refused it.
    pub promised: (usize, usize),
    /// Anchors made by each network.
    pub by_network: Vec<u64>,
    /// How often an accelerator loaded a network.
    pub loads: u64,
    /// Greatest number of accelerators that would have given every stream its fraction.
    pub devices_wanted: u32,
    /// Compute demand at the end: seconds of accelerators of speed 1 in a second.
    pub compute_demand: f64,
    /// Frames that were not chosen, by reason.
    pub passed_over: Vec<(&'static str, u64)>,
    /// Every hundredth of all anchors' latencies, the least first, in milliseconds.
    #[serde(skip)]
    pub percentiles_ms: Vec<f64>,
    /// Second by second.
    #[serde(skip)]
    pub course: Vec<Second>,
}

/// What came of some streams.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct GroupReport {
    /// Their name.
    pub name: String,
    /// How many.
    pub streams: u64,
    /// Frames that arrived.
    pub frames: u64,
    /// Frames that were lost on the way, or rested on one that was.
    pub lost: u64,
    /// Anchors within the deadline.
    pub anchors: u64,
    /// Of those, lost on the way to viewers.
    pub anchors_lost: u64,
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
    /// By how much a second of a stream is predicted to be worse than super-resolution of every frame: 95 % are no
    /// worse, in dB.
    pub lacks_p95_db: f64,
    /// What anchors gave by measurement, over what as many frames taken at random would: of traces that have it.
    pub worth: Option<f64>,
}

#[derive(Debug, Clone, Default)]
struct Sums {
    frames: u64,
    lost: u64,
    anchors_lost: u64,
    /// Sum and number of the known worths of anchors.
    worth: (f64, u64),
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
    /// Inferred and not sent.
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

    /// Another frame; its name.
    pub(super) fn frame(&mut self, group: usize, at: Duration) -> u64 {
        self.course.frame(at);
        self.groups[group].frames += 1;
        self.frames += 1;
        self.frames
    }

    /// An anchor is ready, in time or not.
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

    /// An accelerator made an anchor by a network that it had loaded, or had not.
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
            self.groups[group].worth.0 += worth;
            self.groups[group].worth.1 += 1;
        }
    }

    pub(super) fn chunk(&mut self, group: usize, at: Duration, chunk: Chunk) {
        self.course.gain(at, chunk.gain_db);
        self.groups[group].gain_db += chunk.gain_db;
        self.groups[group].lacks_db.push(chunk.lacks_db);
    }

    /// A chosen frame was given up.
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
            all.worth = (all.worth.0 + sums.worth.0, all.worth.1 + sums.worth.1);
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
            worth: (self.worth.1 > 0).then(|| self.worth.0 / self.worth.1 as f64),
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
