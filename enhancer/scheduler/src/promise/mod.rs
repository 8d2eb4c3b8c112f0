//! Quality SLA per stream, with admission: ARISE, §4.
//!
//! Between two anchors a picture gets worse with each frame. Viewers report this [`Decay`]: how much the next anchor
//! changes, divided by the frames since the last one, `d ÷ L`. A frame's loss then follows from its staleness: the
//! number of frames since its anchor's frame. The **promise**: on average no stream loses more than
//! [`Client::promise`] compared with an accelerator of its own (the *reference*).
//!
//! Step 1 ([`settings`]) finds each stream's interval of anchors and batch size, as if all other streams were like it.
//! Step 2 ([`plan`]) packs the anchors of the next second into batches. It moves their frames to the start of a batch,
//! so that nothing queues. [`admission`] refuses streams whose anchors would break the promise to others.
//!
//! Worth: keeps the promise to 1.2 to 4.5 times as many streams as four baselines of the paper, in simulation. A plan
//! takes 0.18 ms for 40 streams (`lab/notes/scheduler.md`, *A promised quality*). The gain for viewers of a real call
//! was not measured.
//!
//! Pure: times are spans since one origin of the caller.

pub mod admission;
pub mod decay;
pub mod plan;
pub mod settings;
mod streams;
mod viewers;

use std::time::Duration;

use windlass_types::StreamId;

pub use admission::{Admission, Verdict};
pub use decay::Decay;
pub use plan::{Packing, Planned};
pub use settings::Setting;
pub(crate) use streams::{Accelerators, ClientStream, Promised, Promises};
pub use streams::{PromisedStreams, Terms, USUAL_ERROR, promise_of_db};

/// Time that a plan covers (§4.2).
pub const HORIZON: Duration = Duration::from_secs(1);
/// Minimum time of a batch, so that a ratio of times is always a number.
const MIN_BATCH: Duration = Duration::from_micros(1);
/// Part of a frame that counts as rounding where a number of frames becomes a whole one.
const ROUNDING: f64 = 1e-6;

/// Time that an accelerator takes for a batch of pictures of one shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchCost {
    /// Time for a batch, whatever its size.
    pub fixed: Duration,
    /// Time for each picture of a batch, beyond `fixed`.
    pub each: Duration,
    /// Maximum pictures of a batch.
    pub max: usize,
}

impl BatchCost {
    /// Time for a batch of this many pictures; always above zero.
    pub fn time(&self, pictures: usize) -> Duration {
        let pictures = u32::try_from(pictures).unwrap_or(u32::MAX);
        self.fixed.saturating_add(self.each.saturating_mul(pictures)).max(MIN_BATCH)
    }
}

/// A span of this many seconds; zero for a number that is no span, and at most the longest span.
pub(crate) fn time_of(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

/// A span multiplied by a factor.
fn scaled(time: Duration, by: f64) -> Duration {
    time_of(time.as_secs_f64() * by)
}

/// A stream that asks for the promise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Client {
    /// The client's stream.
    pub id: StreamId,
    /// Decay of the client's pictures after an anchor.
    pub decay: Decay,
    /// Maximum mean loss beyond the reference, in the same unit.
    pub promise: f64,
    /// Time from one frame to the next.
    pub frame: Duration,
    /// Time that an accelerator takes for the client's anchors.
    pub cost: BatchCost,
    /// Number of the shape of its pictures. A batch holds pictures of one shape only.
    pub shape: u32,
    /// Time from a frame's capture to the accelerator.
    pub up_delay: Duration,
    /// Time from the accelerator to the viewer.
    pub down_delay: Duration,
    /// Maximum anchors per frame.
    pub fraction: f64,
    /// The newest anchor of the stream; `None` before the first.
    pub last: Option<Anchored>,
    /// Capture time of one of its frames. All others are whole frames away.
    pub phase: Duration,
}

#[cfg(test)]
const MS: Duration = Duration::from_millis(1);

/// Any span of time, the longest one too.
#[cfg(test)]
fn any_time() -> impl proptest::strategy::Strategy<Value = Duration> {
    use proptest::prelude::*;
    prop_oneof![
        1 => Just(Duration::MAX),
        4 => (0u64..10_000_000_000).prop_map(Duration::from_nanos),
        4 => any::<u64>().prop_map(Duration::from_secs),
    ]
}

/// One at 60 frames a second whose pictures take 12 ms alone, and 5 ms of a large batch.
#[cfg(test)]
fn client(id: u32, decay: f64) -> Client {
    Client {
        id: StreamId(id),
        decay: Decay::line(decay),
        promise: 0.04,
        frame: time_of(1.0 / 60.0),
        cost: BatchCost { fixed: 8 * MS, each: 4 * MS, max: 8 },
        shape: 0,
        up_delay: 7 * MS,
        down_delay: 7 * MS,
        fraction: 1.0,
        last: None,
        phase: MS * id,
    }
}

/// An anchor that was made or will be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anchored {
    /// Capture time of the anchor's frame.
    pub captured: Duration,
    /// Time at which viewers have the anchor.
    pub shown: Duration,
}

impl Client {
    /// Mean loss with an accelerator of its own: an anchor as soon as the last one is made.
    pub fn reference(&self) -> f64 {
        let alone = self.frames(self.cost.time(1));
        let apart = (alone - ROUNDING).ceil().max(1.0 / self.fraction.clamp(1e-3, 1.0));
        self.decay.mean(self.end_to_end(1), apart)
    }

    /// Frames from an anchor's frame to its use, where nothing queues.
    fn end_to_end(&self, batch: usize) -> f64 {
        let time = self.cost.time(batch).saturating_add(self.up_delay);
        self.frames(time.saturating_add(self.down_delay))
    }

    /// Number of frames in a span of time.
    fn frames(&self, time: Duration) -> f64 {
        time.div_duration_f64(self.frame)
    }

    /// Mean loss beyond the reference at a setting. A picture waits `waits` frames for its batch, and nothing else
    /// queues.
    pub fn lacks(&self, setting: Setting, waits: f64) -> f64 {
        let late = self.end_to_end(setting.batch) + waits;
        self.decay.mean(late, f64::from(setting.interval)) - self.reference()
    }

    /// Loss beyond the reference as a share of the client's promise. Less than a hundredth of one frame's loss counts
    /// as zero.
    fn part(&self, lacks: f64) -> f64 {
        let promise = if self.promise.is_finite() { self.promise.max(0.0) } else { 0.0 };
        let nothing = self.decay.over(1.0, 2.0) / 100.0;
        (lacks - nothing).max(0.0) / promise.max(nothing).max(1e-9)
    }
}
