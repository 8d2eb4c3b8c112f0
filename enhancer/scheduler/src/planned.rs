//! Plans for streams of the policy `quality-sla`: see [`promise`](crate::promise).

use std::time::Duration;

use windlass_types::{DecayReport, Refusal, Size, StreamId};

use crate::policy::Selection;
use crate::promise::{Accelerators, ClientStream, PromisedStreams, time_of};
use crate::scheduler::Scheduler;

/// A stream without frames for this time is not planned for.
const SILENT: Duration = Duration::from_secs(1);

impl Scheduler {
    /// Takes a viewer's report of how its picture gets worse with each frame after an anchor. Ignores numbers that make
    /// no sense, and a viewer that reported within the last second.
    pub fn report_decay(
        &mut self,
        stream: StreamId,
        viewer: u64,
        now: Duration,
        decay: DecayReport,
    ) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.promised.report(viewer, now, decay);
        }
    }

    /// Streams that are refused enhancement since the last call, with the reason, or no longer (`None`).
    pub fn take_refusals(&mut self) -> std::vec::Drain<'_, (StreamId, Option<Refusal>)> {
        self.promises.take_told()
    }

    /// The streams with the promise, by the last plan.
    pub fn promised(&self) -> PromisedStreams {
        self.promises.standing()
    }

    /// Makes another plan where it is time.
    pub(crate) fn plan(&mut self, now: Duration) {
        if !self.promises.is_due(now) {
            return;
        }
        let (config, networks) = (&self.config, &self.networks);
        let cap = config.capacity_s(Duration::from_secs(1)) / f64::from(config.devices.max(1));
        let accelerators = Accelerators {
            count: if cap > 0.0 { config.devices as usize } else { 0 },
            busy: time_of(self.compute.backlog_s(config.devices)),
            cap,
        };
        let streams = self.streams.iter_mut().filter_map(|(id, stream)| {
            // A silent stream needs nothing.
            let active =
                now.saturating_sub(stream.last_seen) < SILENT && stream.size != Size::default();
            if stream.policy.selection() != Selection::ByPlan || !active {
                return None;
            }
            let cost = networks.costs().get(stream.network.index())?.predict(stream.size);
            let fraction = stream.quota.fraction();
            Some(ClientStream { id, cost, fraction, known: &mut stream.promised })
        });
        self.promises.plan(now, config.terms, accelerators, streams);
    }
}
