//! Many streams without pictures: the scheduler and the accelerators' queue, driven by events.
//!
//! Source: issue 7, *`windlass simulate`*. In: a [`Scenario`] and a seed. Out: a [`Report`]. The same code decides as in the server
//! ([`Scheduler`], [`AcceleratorQueue`], [`JctModel`]); made up are frames (sizes at random about a bit rate), what inference takes
//! (the network's cost over the device's speed, with noise), and when devices fail. Deterministic: equal seeds give equal reports.

mod events;
mod frames;
mod report;
mod scenario;

pub use report::{GroupReport, Report};
pub use scenario::{Accelerator, Group, NetworkSpec, OrderName, Scenario, ScenarioError};

use std::collections::HashMap;
use std::time::Duration;

use windlass_media::StreamId;

use crate::schedule::jct::JctModel;
use crate::schedule::queue::{AcceleratorQueue, Shape};
use crate::schedule::{Candidate, Chosen, Scheduler};
use events::{Device, Random};
use frames::Source;
use report::Tally;

/// A chosen frame on its way.
#[derive(Debug, Clone, Copy)]
struct Job {
    chosen: Chosen,
    arrival: Duration,
    group: usize,
}

/// Plays a scenario.
pub fn run(scenario: &Scenario) -> Result<Report, ScenarioError> {
    scenario.check()?;
    let mut random = Random::new(scenario.seed);
    let config = scenario.scheduler();
    let networks = config.networks.clone();
    let costs: Vec<f64> = scenario.networks.iter().map(|n| 1e-9 * n.ns_by_pixel).collect();
    let (interval, deadline) = (config.interval, config.deadline);
    let mut scheduler = Scheduler::new(config);
    let mut jct = JctModel::new(&networks);
    let most = 32 * scenario.accelerators.len().max(1);
    let mut queue = AcceleratorQueue::new(scenario.order(), most);
    let mut devices: Vec<Device> = scenario.accelerators.iter().map(Device::new).collect();
    let mut sources: Vec<Source> = frames::sources(scenario, &mut random);
    let mut tally = Tally::new(scenario);
    let mut arrivals: HashMap<u64, (Duration, usize)> = HashMap::new();
    let (mut chosen, mut out, mut now) = (Vec::new(), Vec::new(), Duration::ZERO);
    let end = scenario.length();
    while now < end {
        let tick = now + interval;
        // Devices work on what waits until the tick.
        serve(&mut Service {
            until: tick,
            deadline,
            queue: &mut queue,
            devices: &mut devices,
            jct: &mut jct,
            scheduler: &mut scheduler,
            tally: &mut tally,
            random: &mut random,
            costs: &costs,
            out: &mut out,
        });
        now = tick;
        arrivals.clear();
        for (stream, source) in sources.iter_mut().enumerate() {
            let group = source.group;
            let id = StreamId(u32::try_from(stream).unwrap_or(u32::MAX));
            let scale = scheduler.scale(id).unwrap_or(networks[0].scale);
            while let Some(frame) = source.next(now, &mut random) {
                let name = tally.frame(group);
                arrivals.insert(name, (frame.arrival, group));
                scheduler.push(Candidate { id: name, stream: id, scale, ..frame });
            }
        }
        let there = devices.iter().filter(|device| device.works_at(now)).count();
        scheduler.set_devices(u32::try_from(there).unwrap_or(u32::MAX));
        chosen.clear();
        scheduler.tick(now, &mut chosen);
        for &chosen in &chosen {
            let Some(&(arrival, group)) = arrivals.get(&chosen.id) else { continue };
            let shape = Shape { network: chosen.network, size: (chosen.width, chosen.height) };
            if let Some(refused) = queue.push(now, shape, Job { chosen, arrival, group }, &jct) {
                scheduler.finished(&refused.chosen, None);
                tally.refused(refused.group);
            }
        }
    }
    Ok(tally.report(scenario, &devices, scheduler.counters()))
}

/// What devices need to work.
struct Service<'a> {
    until: Duration,
    deadline: Duration,
    queue: &'a mut AcceleratorQueue<Job>,
    devices: &'a mut [Device],
    jct: &'a mut JctModel,
    scheduler: &'a mut Scheduler,
    tally: &'a mut Tally,
    random: &'a mut Random,
    /// Seconds by pixel of each network on a device of speed 1.
    costs: &'a [f64],
    out: &'a mut Vec<Job>,
}

/// Lets devices work until a time, the one that is free first at a time.
fn serve(service: &mut Service<'_>) {
    loop {
        service.devices.iter_mut().for_each(Device::settle);
        let free = service.devices.iter().enumerate().filter(|(_, d)| d.works_at(d.free));
        let Some((at, _)) = free.min_by_key(|(_, d)| d.free) else { return };
        let (free, resident) = (service.devices[at].free, service.devices[at].resident);
        if free >= service.until {
            return;
        }
        let popped = service.queue.pop(free, resident, 1, service.jct, service.out);
        let Some(shape) = popped else {
            // Nothing waits: whatever comes, comes at the tick.
            for device in service.devices.iter_mut().filter(|d| d.free < service.until) {
                device.free = service.until;
            }
            return;
        };
        let is_resident = resident == Some(shape.network);
        for job in service.out.drain(..) {
            let device = &mut service.devices[at];
            let begun = device.free;
            let expected = service.jct.predict(shape.network, shape.pixels(), is_resident);
            if begun + expected > job.arrival + service.deadline {
                service.scheduler.finished(&job.chosen, None);
                service.tally.late(job.group);
                continue;
            }
            let work = service.costs[shape.network] * shape.pixels() as f64;
            let took = device.takes(work, is_resident, service.random);
            if let Some(failure) = device.fails_between(begun, begun + took) {
                // Its jobs go back; another device takes them in the same interval.
                device.fail(failure);
                let again = service.queue.push(begun, shape, job, service.jct);
                service.tally.given_back += 1;
                if let Some(refused) = again {
                    service.scheduler.finished(&refused.chosen, None);
                    service.tally.refused(refused.group);
                }
                continue;
            }
            device.work(took, shape.network);
            service.jct.observe(shape.network, shape.pixels(), is_resident, took);
            service.scheduler.finished(&job.chosen, Some(took));
            let latency = (begun + took).saturating_sub(job.arrival);
            service.tally.anchor(job.group, latency, latency > service.deadline);
        }
    }
}

#[cfg(test)]
mod tests;
