//! One round of requests through the queue.

use std::time::Duration;

use super::super::events::{Device, Random};
use super::super::scenario::PlacementUnit;
use super::scenario::RequestScenario;
use windlass_scheduler::NetworkCost;
use windlass_scheduler::job_time::JobTimes;
use windlass_scheduler::queue::{AcceleratorQueue, Order, Shape};
use windlass_types::Size;

/// How often each network has been run and loaded before the first request: PrefillOnly §5.3.3 profiles beforehand.
const PROFILED: usize = 8;

/// The requests of a round.
#[derive(Debug, Clone)]
pub(super) struct Round {
    shapes: Vec<Shape>,
    /// For each request: when its call came, in mean times between two requests, and how many seconds later the
    /// request came.
    came: Vec<(f64, f64)>,
    /// Seconds to load each network.
    loads: Vec<f64>,
    seed: u64,
}

/// The results of a round.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    /// Times from a request's coming until it was done, in seconds.
    pub latencies: Vec<f64>,
    /// Number of times that a network was loaded.
    pub loads: u64,
    /// Seconds until the last request was done.
    pub end: f64,
    /// Seconds of work of all accelerators.
    pub busy: f64,
}

impl Outcome {
    pub(super) fn add(&mut self, other: Outcome) {
        self.latencies.extend(other.latencies);
        self.loads += other.loads;
        self.end += other.end;
        self.busy += other.busy;
    }
}

impl Round {
    pub(super) fn new(scenario: &RequestScenario, number: u64) -> Round {
        let seed = scenario.seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(number);
        let mut random = Random::new(seed);
        let (mut calls, mut loads) = (Vec::new(), Vec::new());
        for group in &scenario.requests {
            for _ in 0..group.networks {
                let network = loads.len();
                loads.push(group.load_ms / 1e3 * random.about_one(group.load_spread));
                let (min, max) = group.pixels;
                let mut left = group.each;
                while left > 0 {
                    let count = left.min(group.together);
                    left -= count;
                    // Only the number of pixels counts, so they lie in one line.
                    let size = |random: &mut Random| {
                        let more = (f64::from(max - min) + 1.0) * random.share();
                        Size::new(min + (more as u16).min(max - min), 1)
                    };
                    let shapes = (0..count).map(|_| Shape { network, size: size(&mut random) });
                    calls.push((shapes.collect::<Vec<_>>(), group.over_s));
                }
            }
        }
        for n in (1..calls.len()).rev() {
            calls.swap(n, (random.share() * (n + 1) as f64) as usize);
        }
        let (mut shapes, mut came, mut now) = (Vec::new(), Vec::new(), 0.0);
        for (call, over_s) in calls {
            // A Poisson process of calls.
            now -= call.len() as f64 * (1.0 - random.share()).ln();
            came.extend(call.iter().map(|_| (now, over_s * random.share())));
            shapes.extend(call);
        }
        Round { shapes, came, loads, seed }
    }

    /// Plays the round, with a mean of `every` seconds between two requests; 0: all come at once.
    pub(super) fn play(&self, scenario: &RequestScenario, order: Order, every: f64) -> Outcome {
        let mut random = Random::new(!self.seed);
        let mut sites = Site::all(scenario, order, self);
        let mut out = Outcome::default();
        for site in &mut sites {
            site.play(self, every, &mut random, &mut out);
        }
        out
    }

    fn came(&self, request: usize, every: f64) -> Duration {
        let (call, later) = self.came[request];
        let seconds = if every > 0.0 { call * every + later } else { 0.0 };
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// A queue with its accelerators, and the requests that come to it.
struct Site<'a> {
    queue: AcceleratorQueue<usize>,
    job_times: JobTimes,
    devices: Vec<Device>,
    requests: Vec<usize>,
    scenario: &'a RequestScenario,
}

impl<'a> Site<'a> {
    fn all(scenario: &'a RequestScenario, order: Order, round: &Round) -> Vec<Site<'a>> {
        let accelerators = &scenario.accelerators;
        let sites = match scenario.placement {
            PlacementUnit::Anchor => 1,
            PlacementUnit::Stream => accelerators.len(),
        };
        let job_times = profiled(scenario, round);
        let site = |number: usize| {
            let mine = |n: &usize| n % sites == number;
            let devices =
                (0..accelerators.len()).filter(mine).map(|n| Device::new(&accelerators[n]));
            let requests = (0..round.shapes.len()).filter(|&n| mine(&round.shapes[n].network));
            Site {
                queue: AcceleratorQueue::new(order, round.shapes.len()),
                job_times: job_times.clone(),
                devices: devices.collect(),
                requests: requests.collect(),
                scenario,
            }
        };
        (0..sites).map(site).collect()
    }

    fn play(&mut self, round: &Round, every: f64, random: &mut Random, out: &mut Outcome) {
        self.requests.sort_by_key(|&request| round.came(request, every));
        let (mut next, mut served, mut jobs) = (0, 0, Vec::new());
        while served < self.requests.len() {
            let free = self.devices.iter().enumerate().min_by_key(|(_, device)| device.free);
            let Some((at, now)) = free.map(|(at, device)| (at, device.free)) else { return };
            while let Some(&request) = self.requests.get(next) {
                let came = round.came(request, every);
                if came > now {
                    break;
                }
                // There is room for all.
                let _ = self.queue.push(came, round.shapes[request], request, &self.job_times);
                next += 1;
            }
            let device = &mut self.devices[at];
            let Some(shape) = self.queue.pop(now, &device.resident, 1, &self.job_times, &mut jobs)
            else {
                // Nothing waits: all free accelerators wait for the next request.
                let Some(&request) = self.requests.get(next) else {
                    device.free = Duration::MAX;
                    continue;
                };
                let came = round.came(request, every);
                self.devices.iter_mut().for_each(|device| device.free = device.free.max(came));
                continue;
            };
            let is_resident = device.has(shape.network);
            let work = 1e-9 * self.scenario.ns_by_pixel * shape.pixels() as f64;
            let took = device.takes(work, shape.network, round.loads[shape.network], random);
            device.work(took, shape.network);
            self.job_times.observe(shape.network, shape.pixels(), is_resident, took);
            out.loads += u64::from(!is_resident);
            out.busy += took.as_secs_f64();
            out.end = out.end.max(device.free.as_secs_f64());
            for &request in &jobs {
                let latency = device.free.saturating_sub(round.came(request, every));
                out.latencies.push(latency.as_secs_f64());
                served += 1;
            }
        }
    }
}

/// The times of jobs, as they were measured before the first request.
fn profiled(scenario: &RequestScenario, round: &Round) -> JobTimes {
    let per_pixel = Duration::from_secs_f64(1e-9 * scenario.ns_by_pixel);
    let mut job_times =
        JobTimes::new(&vec![NetworkCost { scale: 2, per_pixel }; round.loads.len()]);
    let speeds: f64 = scenario.accelerators.iter().map(|a| a.speed).sum();
    let loads: f64 = scenario.accelerators.iter().map(|a| a.load_ms / 1e3).sum();
    let devices = scenario.accelerators.len() as f64;
    for _ in 0..PROFILED {
        for shape in &round.shapes {
            let pixels = shape.pixels();
            let seconds = 1e-9 * scenario.ns_by_pixel * pixels as f64 * devices / speeds;
            let took = |seconds: f64| Duration::from_secs_f64(seconds.clamp(0.0, 3_600.0));
            job_times.observe(shape.network, pixels, true, took(seconds));
        }
        for (network, load) in round.loads.iter().enumerate() {
            let Some(shape) = round.shapes.iter().find(|s| s.network == network) else { continue };
            let alone = job_times.predict(network, shape.pixels(), true).as_secs_f64();
            let all = Duration::from_secs_f64((alone + load + loads / devices).clamp(0.0, 3_600.0));
            job_times.observe(network, shape.pixels(), false, all);
        }
    }
    job_times
}
