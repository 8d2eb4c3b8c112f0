//! Many streams without pictures: the scheduler and the accelerators' queue, driven by events.
//!
//! In: a [`Scenario`] and a seed. Out: a [`Report`]. The same code decides as in the server (`Scheduler`,
//! `AcceleratorQueue`, `JobTimes`). Frames are made up: of random sizes about a bitrate, or of a recorded [`Trace`].
//! Made up too are the network, the times of inference (the network's cost over the device's speed, with noise), and
//! when devices fail. Deterministic: equal seeds give equal reports.

mod best;
mod camera;
pub(crate) mod clients;
mod course;
mod events;
mod frames;
mod network;
mod pace;
mod policy;
mod quality;
mod report;
mod requests;
mod scenario;
mod site;
mod stages;
mod trace;

pub(crate) use course::Second;
pub(crate) use policy::PlayedPolicy;
pub(crate) use report::{GroupReport, Report};
pub(crate) use requests::{RequestReport, RequestRow, RequestScenario, run_requests};
pub(crate) use scenario::{OrderName, PlacementUnit, Scenario, ScenarioError};
pub(crate) use stages::{StageReport, StageRow, StageScenario, TaskScheduling, run_stages};
pub(crate) use trace::{Trace, TraceFrame, Traces};

use std::time::Duration;

use events::Random;
use report::Tally;
use site::Site;
use windlass_scheduler::SchedulerCounters;

/// Plays a scenario with the traces that it names.
pub(crate) fn run(scenario: &Scenario, traces: &Traces) -> Result<Report, ScenarioError> {
    scenario.check()?;
    if let Some(name) = scenario.traces().find(|name| !traces.contains_key(*name)) {
        return Err(ScenarioError::Trace(name.to_owned()));
    }
    let mut random = Random::new(scenario.seed);
    let sources = frames::sources(scenario, traces, &mut random);
    let mut tally = Tally::new(scenario);
    let accelerators = &scenario.accelerators;
    let mut sites: Vec<Site> = match scenario.placement {
        PlacementUnit::Anchor => vec![Site::new(scenario, accelerators, sources)],
        PlacementUnit::Stream => {
            let mut shares = vec![Vec::new(); accelerators.len()];
            for (stream, source) in sources.into_iter().enumerate() {
                shares[stream % accelerators.len()].push(source);
            }
            let own = accelerators.iter().zip(shares);
            own.map(|(a, share)| Site::new(scenario, std::slice::from_ref(a), share)).collect()
        }
    };
    let interval = Duration::from_secs_f64(scenario.interval_ms / 1e3);
    let (end, mut now) = (scenario.length(), Duration::ZERO);
    while now < end {
        now += interval;
        for site in &mut sites {
            site.interval(now, &mut tally, &mut random);
        }
        let wanted = sites.iter().map(Site::devices_wanted).sum();
        tally.devices_wanted = tally.devices_wanted.max(wanted);
        tally.demand_s = sites.iter().map(Site::demand).sum();
    }
    let mut counters = SchedulerCounters::default();
    for site in &sites {
        counters += site.counters();
    }
    let used = sites.iter().flat_map(Site::busy).map(|busy| busy.as_secs_f64() / scenario.seconds);
    let mut report = tally.report(scenario, used.collect(), counters);
    for promised in sites.iter().map(Site::promised) {
        report.promised.0 += promised.kept;
        report.promised.1 += promised.refused;
    }
    Ok(report)
}

#[cfg(test)]
mod tests;
