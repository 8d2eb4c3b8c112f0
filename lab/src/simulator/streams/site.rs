//! One selector with its streams and accelerators.

use std::collections::HashMap;
use std::time::Duration;

use windlass_types::AnchorPolicy;

use super::best::BestOf;
use super::events::{Device, Random};
use super::frames::{Frame, Source};
use super::pace::Paces;
use super::policy::PlayedPolicy;
use super::report::Tally;
use super::scenario::Link;
use super::scenario::{Accelerator, Scenario};
use windlass_scheduler::job_time::JobTimes;
use windlass_scheduler::promise::PromisedStreams;
use windlass_scheduler::queue::{AcceleratorQueue, Shape};
use windlass_scheduler::{Candidate, Chosen, Scheduler, SchedulerCounters, Tier};

/// Maximum number of jobs that wait for each device. Time bounds them before: the scheduler lets no more wait than
/// can be in time, 800 ms of work by the most patient policy.
const JOBS_PER_DEVICE: usize = 256;

/// A chosen frame that waits for its anchor.
#[derive(Debug, Clone, Copy)]
struct Job {
    chosen: Chosen,
    arrival: Duration,
    /// Index of the frame's stream among the sources.
    source: usize,
    group: usize,
    /// Place of the frame in its stream, for the worth of its anchor.
    place: f64,
    /// The frame's number in its stream.
    number: u64,
    /// Known worth of the frame's anchor, over that of any frame.
    worth: Option<f64>,
}

/// The state of the policy that chooses by the results of inference.
#[derive(Debug, Clone, Default)]
struct Gate {
    best: BestOf,
    /// Number of frames that have come.
    came: u64,
    /// The number of the last frame that was inferred.
    asked: u64,
}

/// One scheduler with its streams and accelerators.
pub(super) struct Site {
    scheduler: Scheduler,
    job_times: JobTimes,
    paces: Paces,
    queue: AcceleratorQueue<Job>,
    devices: Vec<Device>,
    sources: Vec<Source>,
    /// The policies, by group.
    policies: Vec<PlayedPolicy>,
    /// The paths to viewers, by group.
    downlinks: Vec<Link>,
    /// Seconds for each pixel by each network, on a device of speed 1.
    costs: Vec<f64>,
    min_scale: usize,
    /// The operator's deadline, which no policy goes below.
    deadline: Duration,
    anchor_fraction: f64,
    /// The gates, by source.
    best: Vec<Gate>,
    /// Candidates that are not decided yet.
    candidates: HashMap<u64, Job>,
    chosen: Vec<Chosen>,
    out: Vec<Job>,
}

impl Site {
    pub(super) fn new(
        scenario: &Scenario,
        accelerators: &[Accelerator],
        sources: Vec<Source>,
    ) -> Site {
        let config = scenario.scheduler(accelerators);
        let networks = config.networks.clone();
        let (deadline, anchor_fraction) = (config.deadline, config.anchor_fraction);
        let mut scheduler = Scheduler::new(config);
        let policies: Vec<PlayedPolicy> =
            scenario.streams.iter().map(|group| group.policy).collect();
        for source in &sources {
            scheduler.set_policy_by(source.id, policies[source.group].of(), Duration::ZERO);
        }
        Site {
            scheduler,
            job_times: JobTimes::new(&networks),
            paces: Paces::new(accelerators.len()),
            queue: AcceleratorQueue::new(
                scenario.order(),
                JOBS_PER_DEVICE * accelerators.len().max(1),
            ),
            devices: accelerators.iter().map(Device::new).collect(),
            best: vec![Gate::default(); sources.len()],
            deadline,
            anchor_fraction,
            sources,
            policies,
            downlinks: scenario.streams.iter().map(|group| group.downlink).collect(),
            costs: scenario.networks.iter().map(|n| 1e-9 * n.ns_by_pixel).collect(),
            min_scale: networks[0].scale,
            candidates: HashMap::new(),
            chosen: Vec::new(),
            out: Vec::new(),
        }
    }

    pub(super) fn counters(&self) -> SchedulerCounters {
        self.scheduler.counters()
    }

    /// The streams with the promise.
    pub(super) fn promised(&self) -> PromisedStreams {
        self.scheduler.promised()
    }

    pub(super) fn busy(&self) -> impl Iterator<Item = Duration> + '_ {
        self.devices.iter().map(|device| device.busy)
    }

    pub(super) fn devices_wanted(&self) -> u32 {
        self.scheduler.devices_wanted()
    }

    /// Seconds of accelerators that all streams would take in a second.
    pub(super) fn demand(&self) -> f64 {
        self.scheduler.demand()
    }

    /// An interval that ends at `tick`: devices work on what waits, frames come, and anchors are chosen.
    pub(super) fn interval(&mut self, tick: Duration, tally: &mut Tally, random: &mut Random) {
        self.serve(tick, tally, random);
        for source in &mut self.sources {
            // All anchors of this time are known.
            let group = source.group;
            source.seen.show(tick, |chunk| tally.chunk(group, tick, chunk));
        }
        for (at, source) in self.sources.iter_mut().enumerate() {
            let (group, id) = (source.group, source.id);
            let scale = self.scheduler.scale(id).unwrap_or(self.min_scale);
            while let Some(frame) = source.next(tick, random) {
                let Frame::Whole(frame, worth) = frame else {
                    tally.lost_frame(group);
                    continue;
                };
                let (arrival, key) = (frame.arrival, frame.tier == Tier::Key);
                let place = source.seen.frame(arrival, frame.bytes, key);
                let name = tally.frame(group, arrival);
                self.best[at].came += 1;
                let number = self.best[at].came;
                let chosen = Chosen {
                    id: name,
                    stream: id,
                    size: frame.size,
                    network: 0,
                    cost: Duration::ZERO,
                    deadline: Duration::ZERO,
                    probe: false,
                };
                self.candidates
                    .insert(name, Job { chosen, arrival, source: at, group, place, number, worth });
                // A silent stream is forgotten, with its policy.
                self.scheduler.set_policy_by(id, self.policies[group].of(), arrival);
                if self.policies[group] == PlayedPolicy::Product(AnchorPolicy::QualitySla) && key {
                    // The pace of made-up content does not change.
                    self.scheduler.report_decay(id, 0, arrival, source.seen.decay());
                }
                if let Some(gone) = self.scheduler.push(Candidate { id: name, scale, ..frame }) {
                    self.candidates.remove(&gone.id);
                }
            }
        }
        let there = self.devices.iter().filter(|device| device.works_at(tick)).count();
        self.scheduler.set_devices(u32::try_from(there).unwrap_or(u32::MAX));
        self.chosen.clear();
        self.scheduler.tick(tick, &mut self.chosen);
        for &chosen in &self.chosen {
            let Some(job) = self.candidates.remove(&chosen.id) else { continue };
            let shape = Shape { network: chosen.network, size: chosen.size };
            let job = Job { chosen, ..job };
            if let Some(refused) =
                self.queue.push(self.waits_since(&job), shape, job, &self.job_times)
            {
                self.scheduler.finished(&refused.chosen, None);
                tally.dropped(refused.group, tick);
            }
        }
        let scheduler = &self.scheduler;
        self.candidates.retain(|&id, job| scheduler.holds(job.chosen.stream, id));
    }

    /// From when on a job counts as waiting: a job that may be later has not begun to.
    fn waits_since(&self, job: &Job) -> Duration {
        job.arrival + job.chosen.deadline.saturating_sub(self.deadline)
    }

    /// Lets devices work until a time, always the one that is free first.
    fn serve(&mut self, until: Duration, tally: &mut Tally, random: &mut Random) {
        loop {
            self.devices.iter_mut().for_each(Device::settle);
            let free = self.devices.iter().enumerate().filter(|(_, d)| d.works_at(d.free));
            let Some((at, _)) = free.min_by_key(|(_, d)| d.free) else { return };
            let free = self.devices[at].free;
            if free >= until {
                return;
            }
            let Site { devices, queue, job_times, paces, out, .. } = self;
            let device = &devices[at];
            let there = |n: usize| devices[n].works_at(free);
            // A job that this device cannot finish in time is left to faster ones, if any could.
            let suits = |shape: Shape, job: &Job| {
                let expected =
                    job_times.predict(shape.network, shape.pixels(), device.has(shape.network));
                let left = (job.arrival + job.chosen.deadline).saturating_sub(free);
                paces.on(at, expected) <= left || paces.at_best(expected, there) > left
            };
            let Some(shape) = queue.pop_fitting(free, &device.resident, 1, job_times, suits, out)
            else {
                // Nothing waits for the device: the next jobs come at the tick.
                self.devices[at].free = until;
                continue;
            };
            while let Some(job) = self.out.pop() {
                self.make(at, shape, job, tally, random);
            }
        }
    }

    /// Lets a device make an anchor, if it can be in time.
    fn make(&mut self, at: usize, shape: Shape, job: Job, tally: &mut Tally, random: &mut Random) {
        let since = self.waits_since(&job);
        let device = &mut self.devices[at];
        let (begun, is_resident) = (device.free, device.has(shape.network));
        let mean = self.job_times.predict(shape.network, shape.pixels(), is_resident);
        let expected = self.paces.on(at, mean);
        let deadline = job.chosen.deadline;
        if begun + expected > job.arrival + deadline {
            self.scheduler.finished(&job.chosen, None);
            return tally.dropped(job.group, begun);
        }
        let work = self.costs[shape.network] * shape.pixels() as f64;
        let took = device.takes(work, shape.network, 0.0, random);
        if let Some(failure) = device.fails_between(begun, begun + took) {
            // The device's job goes back; another device takes it in the same interval.
            device.fail(failure);
            tally.given_back += 1;
            if let Some(refused) = self.queue.push(since, shape, job, &self.job_times) {
                self.scheduler.finished(&refused.chosen, None);
                tally.dropped(refused.group, begun);
            }
            return;
        }
        device.work(took, shape.network);
        tally.work(begun, took, shape.network, is_resident);
        let by_mean = self.paces.observe(at, mean, took);
        self.job_times.observe(shape.network, shape.pixels(), is_resident, by_mean);
        self.scheduler.finished(&job.chosen, Some(took));
        if self.policies[job.group] == PlayedPolicy::Nemo {
            let gain = self.sources[job.source].seen.stale(job.place);
            let gate = &mut self.best[job.source];
            let frames = job.number.saturating_sub(gate.asked).max(1);
            gate.asked = job.number;
            if !gate.best.passes(gain, self.anchor_fraction, frames) {
                tally.not_best += 1;
                return;
            }
        }
        let latency = (begun + took).saturating_sub(job.arrival);
        let missed = latency > deadline;
        tally.anchor(job.group, begun + took, latency, missed);
        if !missed {
            tally.worth(job.group, job.worth);
            match self.downlinks[job.group].carry(begun + took, random) {
                Some(there) => self.sources[job.source].seen.anchor(there, job.place),
                None => tally.lost_anchor(job.group),
            }
        }
    }
}
