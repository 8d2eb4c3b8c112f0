//! The streams: their publishers' frames, as they reach the server.

use std::sync::Arc;
use std::time::Duration;

use windlass_types::{Size, StreamId};

use super::camera::{Camera, Coded};
use super::events::Random;
use super::network::{Arrival, Uplink};
use super::quality::Watching;
use super::scenario::Scenario;
use super::trace::{Trace, Traces};
use windlass_scheduler::Candidate;

/// One stream.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub group: usize,
    pub id: StreamId,
    pub seen: Watching,
    camera: Camera,
    uplink: Uplink,
    end: Duration,
    /// The frame that is encoded and not there yet.
    coming: Option<(Coded, Arrival)>,
    size: Size,
    max_scale: usize,
}

/// An encoded frame, as it reaches the server.
#[derive(Debug, Clone, Copy)]
pub(super) enum Frame {
    /// A frame that can be decoded, with the known worth of its anchor. The caller gives it its name.
    Whole(Candidate, Option<f64>),
    /// A frame that was lost, or references one that was.
    Lost,
}

/// All streams, with phases of their own.
pub(super) fn sources(scenario: &Scenario, traces: &Traces, random: &mut Random) -> Vec<Source> {
    let mut sources = Vec::new();
    for (number, group) in scenario.streams.iter().enumerate() {
        let trace = group.trace.as_ref().and_then(|name| traces.get(name)).cloned().map(Arc::new);
        for _ in 0..group.count {
            sources.push(source(scenario, number, trace.as_ref(), sources.len(), random));
        }
    }
    sources
}

fn source(
    scenario: &Scenario,
    number: usize,
    trace: Option<&Arc<Trace>>,
    id: usize,
    random: &mut Random,
) -> Source {
    let group = &scenario.streams[number];
    let joins = Duration::from_secs_f64(group.joins_at_s + group.joins_over_s * random.share());
    let camera = Camera::new(group, trace, joins, random);
    // Frames go the way to viewers too, without jitter: viewers' buffers make up for it.
    let shown_ms = group.watched_after_ms + group.downlink.delay_ms;
    Source {
        group: number,
        id: StreamId(u32::try_from(id).unwrap_or(u32::MAX)),
        seen: Watching::new(
            group.best_db,
            group.half_life,
            camera.mean_bytes(),
            Duration::from_secs_f64(shown_ms / 1e3),
        ),
        camera,
        uplink: Uplink::new(&group.uplink),
        end: group.leaves_at_s.map_or(Duration::MAX, Duration::from_secs_f64),
        coming: None,
        size: Size::new(group.width, group.height),
        max_scale: group.max_scale,
    }
}

impl Source {
    /// The next frame that has arrived by `now`, or would have if it were not lost.
    pub(super) fn next(&mut self, now: Duration, random: &mut Random) -> Option<Frame> {
        if self.coming.is_none() {
            let at = self.camera.next_at();
            if at > now || at >= self.end {
                return None;
            }
            if self.uplink.key_wanted(at) {
                self.camera.want_key();
            }
            let coded = self.camera.code(random);
            let arrival = self.uplink.send(&coded, random);
            self.coming = Some((coded, arrival));
        }
        let (coded, arrival) = self.coming.take_if(|(_, arrival)| arrival.at() <= now)?;
        let Arrival::Whole(arrival) = arrival else { return Some(Frame::Lost) };
        let candidate = Candidate {
            id: 0,
            stream: self.id,
            tier: coded.tier,
            bytes: coded.bytes,
            size: self.size,
            arrival,
            per_mille: 1000,
            scale: 2,
            max_scale: self.max_scale,
        };
        Some(Frame::Whole(candidate, coded.worth))
    }
}
