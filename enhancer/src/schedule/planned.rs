//! The part of the scheduler that plans beforehand, for streams of the policy `quality-sla`: see [`super::promise`].

use std::time::Duration;

use windlass_types::{Refusal, StreamId};

use super::Scheduler;

impl Scheduler {
    /// Somebody who watches a stream says by how much its picture got worse with each of so many frames after an anchor, in
    /// square grey levels of luma (`d ÷ L` and `L`, ARISE §4.3). What are no such numbers is left alone, and so is who has said
    /// something within the last second.
    pub fn report_decay(
        &mut self,
        stream: StreamId,
        viewer: u64,
        now: Duration,
        decay: (f64, f64),
    ) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.promised.report(viewer, now.as_secs_f64(), decay);
        }
    }

    /// Streams that are refused enhancement since the last time, with the reason, or are no longer.
    pub fn take_refusals(&mut self) -> std::vec::Drain<'_, (StreamId, Option<Refusal>)> {
        self.promises.take_told()
    }

    /// How many streams have the promise, and how many were refused it, by the last plan.
    pub fn promised(&self) -> (usize, usize) {
        self.promises.standing()
    }

    /// Makes another plan where it is time.
    pub(super) fn plan(&mut self, now: Duration) {
        let seconds = now.as_secs_f64();
        if !self.promises.is_due(seconds) {
            return;
        }
        let cap =
            self.config.capacity_s(Duration::from_secs(1)) / f64::from(self.config.devices.max(1));
        let busy = self.outstanding_s / f64::from(self.config.devices.max(1));
        let (costs, terms) = (&self.costs, self.config.terms);
        let mut costliest = 0.0f64;
        let streams = self.streams.iter_mut().filter_map(|(&id, stream)| {
            // A silent stream needs nothing.
            let there = now.saturating_sub(stream.last_seen) < SILENT && stream.size != (0, 0);
            if !stream.policy.plans() || !there {
                return None;
            }
            let (width, height) = stream.size;
            let cost = costs.get(stream.network)?.predict(width, height).as_secs_f64();
            costliest = costliest.max(cost);
            // Of a device that may work for a part of the time an anchor takes as much longer.
            Some((id, cost / cap.max(1e-6), stream.most, &mut stream.promised))
        });
        let devices = if cap > 0.0 { self.config.devices as usize } else { 0 };
        self.promises.plan(seconds, terms, (devices, busy), streams);
        self.costliest_planned = costliest;
    }
}

/// A stream without frames for so long is not planned for.
const SILENT: Duration = Duration::from_secs(1);
