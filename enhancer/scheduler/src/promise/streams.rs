//! The scheduler's streams as clients of the quality SLA: the state of each, and the frames that the plan chooses.
//!
//! Source: ARISE §4.2–4.4, for frames that are at the server already. In the paper the server tells clients which frame
//! to send. Here all frames arrive, and a batch uses the newest frame at the tick of its start. Engines run one picture
//! at a time, so that a batch has one picture.

use std::collections::VecDeque;
use std::time::Duration;

use windlass_types::{Refusal, StreamId};

use super::admission::{Admission, EVERY, Verdict};
use super::decay::REBUILT;
use super::viewers::Viewers;
use super::{Anchored, BatchCost, Client, Decay, scaled, time_of};

/// Assumed frames per second of a stream before two of its frames have come.
const USUAL_FPS: f64 = 30.0;

/// State of one stream under the promise.
#[derive(Debug, Clone)]
pub(crate) struct Promised {
    /// Viewers' reports of the loss after one frame.
    viewers: Viewers,
    /// Mean time between two frames, in seconds.
    frame: f64,
    arrived: Option<Duration>,
    last: Option<Anchored>,
    /// Start times of planned anchors whose frames are not chosen yet.
    planned: VecDeque<Duration>,
}

impl Default for Promised {
    fn default() -> Self {
        Promised {
            viewers: Viewers::default(),
            frame: 1.0 / USUAL_FPS,
            arrived: None,
            last: None,
            planned: VecDeque::new(),
        }
    }
}

impl Promised {
    /// Updates the frame interval with a frame's arrival.
    pub(crate) fn saw(&mut self, arrival: Duration) {
        if let Some(before) = self.arrived.replace(arrival) {
            let apart = arrival.saturating_sub(before).as_secs_f64().clamp(1.0 / 240.0, 1.0);
            self.frame += 0.1 * (apart - self.frame);
        }
    }

    /// Takes a viewer's report.
    pub(crate) fn report(&mut self, viewer: u64, now: Duration, seen: windlass_types::DecayReport) {
        let windlass_types::DecayReport { per_frame, frames } = seen;
        if per_frame.is_finite() && per_frame >= 0.0 && frames >= 1.0 {
            self.viewers.report(viewer, now, Decay::rebuilt(per_frame, frames).first);
        }
    }

    /// Notes that a frame becomes an anchor. `shown` is the time at which viewers are expected to have it.
    pub(crate) fn chosen(&mut self, arrival: Duration, shown: Duration) {
        self.last = Some(Anchored { captured: arrival, shown });
    }

    /// Takes the planned anchors that begin before `until`, and returns their number.
    pub(crate) fn take_wanted(&mut self, until: Duration) -> usize {
        let wanted = self.planned.iter().take_while(|begins| **begins < until).count();
        self.planned.drain(..wanted).count()
    }

    /// Forgets the plan and the last anchor.
    fn clear(&mut self) {
        self.planned.clear();
        self.last = None;
    }

    /// Describes the stream as a client of the plan. `each` is an accelerator's time for an anchor.
    fn client(
        &self,
        id: StreamId,
        now: Duration,
        each: Duration,
        fraction: f64,
        terms: Terms,
    ) -> Client {
        let usual = terms.usual_decay;
        Client {
            id,
            decay: self.viewers.lost(now, usual.first).map_or(usual, Decay::of_rebuilt),
            promise: terms.promise,
            frame: time_of(self.frame),
            cost: BatchCost { fixed: Duration::ZERO, each, max: 1 },
            shape: 0,
            up_delay: Duration::ZERO,
            down_delay: terms.delay,
            fraction,
            last: self.last,
            phase: self.arrived.unwrap_or_default(),
        }
    }
}

/// Terms of the promise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// Maximum mean quality loss of a stream due to sharing accelerators, in square grey levels.
    pub promise: f64,
    /// Decay of a stream before viewers have reported theirs.
    pub usual_decay: Decay,
    /// Mean time from an anchor made to its use, with the wait for a tick.
    pub delay: Duration,
}

impl Default for Terms {
    fn default() -> Self {
        Terms {
            promise: promise_of_db(0.5),
            usual_decay: Decay { first: 1.2, power: REBUILT },
            delay: Duration::from_millis(70),
        }
    }
}

/// Usual mean square error of enhanced pictures of faces, in square grey levels: a PSNR of 40 dB.
pub const USUAL_ERROR: f64 = 6.5;

/// Loss in square grey levels that lowers a picture of 40 dB by `db` dB.
pub fn promise_of_db(db: f64) -> f64 {
    let db = if db.is_finite() { db.clamp(0.0, 20.0) } else { 0.5 };
    USUAL_ERROR * (10f64.powf(db / 10.0) - 1.0)
}

/// The accelerators that a plan is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accelerators {
    /// Number of accelerators.
    pub count: usize,
    /// Time until already chosen work is done.
    pub busy: Duration,
    /// Share of its time that each accelerator may work, 0 to 1.
    pub cap: f64,
}

/// A stream to plan for.
#[derive(Debug)]
pub(crate) struct ClientStream<'a> {
    pub id: StreamId,
    /// Time of an accelerator for one of its anchors.
    pub cost: Duration,
    /// Maximum anchors per frame.
    pub fraction: f64,
    pub known: &'a mut Promised,
}

/// Plans for all streams of the policy.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    admission: Admission,
    last_plan: Option<Duration>,
    clients: Vec<Client>,
    free: Vec<Duration>,
    changes: Vec<(StreamId, Option<Refusal>)>,
    served: usize,
    costliest: Duration,
}

impl Promises {
    /// Whether it is time for another plan.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        self.last_plan.is_none_or(|last| now.saturating_sub(last) >= EVERY || now < last)
    }

    /// Plans the next second of all streams.
    pub(crate) fn plan<'a>(
        &mut self,
        now: Duration,
        terms: Terms,
        accelerators: Accelerators,
        streams: impl Iterator<Item = ClientStream<'a>>,
    ) {
        let Accelerators { count, busy, cap } = accelerators;
        self.last_plan = Some(now);
        let mut streams: Vec<_> = streams.collect();
        self.costliest = streams.iter().map(|stream| stream.cost).max().unwrap_or_default();
        self.clients.clear();
        // An accelerator that may work for a part of the time takes as much longer for an anchor.
        let each = |cost: Duration| scaled(cost, 1.0 / cap.max(1e-6));
        self.clients.extend(streams.iter().map(|stream| {
            stream.known.client(stream.id, now, each(stream.cost), stream.fraction, terms)
        }));
        self.free.clear();
        self.free.resize(count, now.saturating_add(busy));
        self.admission.plan(now, &self.clients, &self.free);
        for stream in &mut streams {
            stream.known.planned.clear();
        }
        let served = self.admission.served();
        for planned in self.admission.planned() {
            if let Some(stream) = served.get(planned.client).and_then(|&at| streams.get_mut(at)) {
                stream.known.planned.push_back(planned.begins);
            }
        }
        for stream in &mut streams {
            if self.admission.verdict(stream.id) == Some(Verdict::Refused) {
                stream.known.clear();
            }
        }
        self.served = served.len();
        self.changes.extend(self.admission.changes().iter().map(|&(id, verdict)| match verdict {
            Verdict::Refused => (id, Some(Refusal::Promise)),
            Verdict::Served => (id, None),
        }));
        self.forget_excess();
    }

    /// Time of the costliest anchor that is planned for: between two such anchors compute is saved up.
    pub(crate) fn costliest(&self) -> Duration {
        self.costliest
    }

    /// Queues a refusal, or its end, that no plan has decided.
    pub(crate) fn refuse(&mut self, id: StreamId, reason: Option<Refusal>) {
        self.changes.push((id, reason));
        self.forget_excess();
    }

    /// Drops the oldest queued refusals if nobody takes them.
    fn forget_excess(&mut self) {
        let excess = self.changes.len().saturating_sub(MAX_CHANGES);
        self.changes.drain(..excess);
    }

    /// Whether a stream was refused by the last plan.
    pub(crate) fn refuses(&self, id: StreamId) -> bool {
        self.admission.verdict(id) == Some(Verdict::Refused)
    }

    /// The streams with the promise.
    pub(crate) fn standing(&self) -> PromisedStreams {
        let refused = self.clients.len() - self.served.min(self.clients.len());
        PromisedStreams { kept: self.served, refused }
    }

    /// Refusals, and their ends, since the last call.
    pub(crate) fn take_told(&mut self) -> std::vec::Drain<'_, (StreamId, Option<Refusal>)> {
        self.changes.drain(..)
    }

    /// Forgets a stream that has ended or has another policy.
    pub(crate) fn left(&mut self, id: StreamId) {
        if self.refuses(id) {
            self.changes.push((id, None));
        }
    }
}

/// Numbers of streams with a promised quality.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromisedStreams {
    /// Number of streams that have the promise.
    pub kept: usize,
    /// Number of streams that were refused it.
    pub refused: usize,
}

/// Maximum refusals that wait to be taken.
const MAX_CHANGES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_decibel_of_forty_is_a_ninth_of_its_error() {
        assert!((promise_of_db(0.5) - 0.793).abs() < 1e-3, "{}", promise_of_db(0.5));
        assert!(promise_of_db(0.0).abs() < 1e-12);
        assert!((promise_of_db(f64::NAN) - promise_of_db(0.5)).abs() < 1e-12);
    }

    #[test]
    fn frames_are_wanted_when_their_time_has_come() {
        let planned = [100, 200, 900].map(Duration::from_millis).into();
        let mut known = Promised { planned, ..Promised::default() };
        let wanted = [300, 300, 1_000].map(|ms| known.take_wanted(Duration::from_millis(ms)));
        assert_eq!(wanted, [2, 0, 1]);
    }
}
