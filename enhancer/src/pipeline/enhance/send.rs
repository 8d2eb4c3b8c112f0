//! Sends an anchor to the SFU, and counts it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use windlass_types::message::{HTJ2K, ReassembledAnchor};
use windlass_types::{Anchor, AnchorSource, EnhancerOutput, Size, StageTimes};

use super::super::anchors::arrived;
use super::super::worker::Worker;
use super::{PreparedJob, Unmade};
use crate::stats::count;

/// Maximum payload of an anchor in bytes: the most that messages to the browser can carry.
const MAX_PAYLOAD: usize = 1 << 20;

/// An encoded anchor.
pub(super) struct Outgoing {
    pub payload: Vec<u8>,
    /// Whether the payload begins with a map of its tiles.
    pub tiled: bool,
    /// Size of the HR picture.
    pub size: Size,
    /// Whether weights that the stream has learned made the anchor.
    pub learned: bool,
    /// Time at which the anchor's picture was made.
    pub inferred: Instant,
}

impl Worker {
    /// Sends an anchor, and returns it as subscribers will have it.
    pub(super) fn send(
        &self,
        prepared: &PreparedJob<'_>,
        outgoing: Outgoing,
    ) -> Result<ReassembledAnchor, Unmade> {
        let encoded = self.clock.now();
        let age = encoded.saturating_duration_since(prepared.job.frame.arrival);
        if age > prepared.within || !self.enabled.load(Ordering::Relaxed) {
            return Err(Unmade::LateEncode);
        }
        if outgoing.payload.len() > MAX_PAYLOAD {
            return Err(Unmade::TooLarge);
        }
        let learned = outgoing.learned;
        let anchor = anchor(prepared, outgoing, encoded);
        let sent = self.output.try_send(EnhancerOutput::Anchor(anchor.clone()));
        sent.map_err(|_| Unmade::QueueFull)?;
        prepared.job.frame.anchors.took(anchor.payload.len());
        self.count_anchor(prepared, &anchor, learned, age);
        Ok(arrived(&anchor))
    }

    fn count_anchor(
        &self,
        prepared: &PreparedJob<'_>,
        anchor: &Anchor,
        learned: bool,
        age: Duration,
    ) {
        let (stats, counters) = (&self.stats, &self.stats.counters);
        stats.schedule.record(anchor.times.schedule);
        stats.infer.record(anchor.times.infer);
        stats.encode.record(anchor.times.encode);
        stats.total.record(age);
        count(&counters.anchors);
        match anchor.source {
            AnchorSource::Captured => count(&counters.captured_anchors),
            AnchorSource::Enhanced => {
                if let Some(network) = stats.networks.lock().get_mut(prepared.job.chosen.network) {
                    network.anchors += 1;
                }
            }
        }
        counters.learned_anchors.fetch_add(u64::from(learned), Ordering::Relaxed);
        counters.key_anchors.fetch_add(u64::from(prepared.job.choice.key), Ordering::Relaxed);
        counters.anchor_bytes.fetch_add(anchor.payload.len() as u64, Ordering::Relaxed);
    }
}

fn anchor(prepared: &PreparedJob<'_>, outgoing: Outgoing, encoded: Instant) -> Anchor {
    let (job, frame) = (prepared.job, &prepared.job.frame);
    Anchor {
        stream: frame.stream,
        epoch: frame.epoch,
        rtp_timestamp: frame.rtp_timestamp,
        arrival: frame.arrival,
        source: prepared.source,
        codec: HTJ2K,
        tiled: outgoing.tiled,
        size: outgoing.size,
        beyond_prior: true,
        payload: Bytes::from(outgoing.payload),
        times: StageTimes {
            decode: frame.ready_at.saturating_duration_since(frame.arrival),
            schedule: job.chosen_at.saturating_duration_since(frame.ready_at),
            infer: outgoing.inferred.saturating_duration_since(job.chosen_at),
            encode: encoded.saturating_duration_since(outgoing.inferred),
        },
    }
}
