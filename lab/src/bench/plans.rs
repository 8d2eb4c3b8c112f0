//! What planning for streams with a promised quality costs (`windlass-lab bench schedule`): ARISE takes 0.8 ms each 200
//! ms.
//!
//! In: clients like those of `lab/scenarios/clients.yaml`, on one accelerator for each 40 of them, as many again as
//! fit. Every plan is carried out as it says, and what decays changes, so that some are refused and others come back.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::Serialize;
use windlass_scheduler::promise::admission::{Admission, EVERY};
use windlass_scheduler::promise::{BatchCost, Client, Decay};
use windlass_types::StreamId;

use crate::eval::cpu_clock::thread_time;
use crate::eval::stats::percentile;

const MS: Duration = Duration::from_millis(1);

/// The time of a plan for a number of clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct PlanRow {
    /// Number of clients that want the promise.
    pub clients: u32,
    /// Number of clients that are served, in the mean.
    pub served: f64,
    /// Median CPU time of a plan, in milliseconds.
    pub plan_ms: f64,
    /// 99th percentile of the CPU time of a plan, in milliseconds.
    pub p99_ms: f64,
}

/// Measures `plans` plans for `count` clients.
pub(super) fn measure(count: NonZeroU32, plans: u32) -> PlanRow {
    let mut clients: Vec<Client> = (0..count.get()).map(client).collect();
    let devices = clients.len().div_ceil(40);
    let mut admission = Admission::default();
    let (mut times, mut served) = (Vec::new(), 0);
    for plan in 0..plans + 25 {
        let now = Duration::from_secs(100) + EVERY * plan;
        for (n, client) in (0u32..).zip(&mut clients) {
            // Decay goes slowly up and down, for each client at a time of its own.
            let turn = f64::from(plan) / 40.0 + f64::from(n);
            client.decay = Decay::line(0.006 + 0.003 * turn.sin());
        }
        let before = thread_time();
        admission.plan(now, &clients, &vec![now; devices]);
        let took = thread_time().saturating_sub(before);
        for planned in admission.planned().iter().filter(|planned| planned.begins < now + EVERY) {
            clients[admission.served()[planned.client]].last = Some(planned.anchored);
        }
        if plan >= 25 {
            times.push(1e3 * took.as_secs_f64());
            served += admission.served().len();
        }
    }
    PlanRow {
        clients: count.get(),
        served: served as f64 / times.len().max(1) as f64,
        plan_ms: percentile(&times, 50.0).unwrap_or_default(),
        p99_ms: percentile(&times, 99.0).unwrap_or_default(),
    }
}

fn client(id: u32) -> Client {
    Client {
        id: StreamId(id),
        decay: Decay::line(0.006),
        promise: 0.04,
        frame: Duration::from_secs(1) / 60,
        cost: BatchCost { fixed: 10 * MS, each: 4 * MS, max: 8 },
        shape: 0,
        up_delay: 8 * MS,
        down_delay: 8 * MS,
        fraction: 1.0,
        last: None,
        phase: Duration::from_micros(370) * id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_served_and_a_plan_takes_time() {
        let row = measure(NonZeroU32::new(40).expect("not zero"), 20);
        assert!(row.served > 10.0 && row.plan_ms > 0.0 && row.p99_ms >= row.plan_ms, "{row:?}");
    }
}
