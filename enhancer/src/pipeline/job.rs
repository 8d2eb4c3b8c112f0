//! A chosen frame on its way to a worker, and what became of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_scheduler::Chosen;
use windlass_types::CAPTURED_WITHIN;
use windlass_vp9::FrameBuffer;

use super::anchors::Choice;
use super::decode::Decoded;

/// A chosen frame on its way to a worker.
#[derive(Debug)]
pub(super) struct Job {
    pub frame: Decoded,
    pub chosen: Chosen,
    pub chosen_at: Instant,
    pub choice: Choice,
    /// The publisher's own picture of the frame: then there is nothing to infer.
    pub captured: Option<Arc<FrameBuffer>>,
}

impl Job {
    /// Takes the publisher's own picture if it has come since: on a busy processor a picture at HR size is decoded
    /// after its low frame was chosen, and to infer then what is here would make it busier.
    pub(super) fn look_again(&mut self) {
        if self.captured.is_none() {
            self.captured = self.frame.captures.get(self.frame.rtp_timestamp);
        }
    }

    /// Maximum time from the frame's arrival to its anchor encoded.
    pub(super) fn within(&self) -> Duration {
        within(self.chosen.deadline, self.captured.is_some())
    }
}

/// The deadline of an anchor: the publisher's own pictures may come later than enhanced ones.
pub(super) fn within(deadline: Duration, captured: bool) -> Duration {
    if captured { deadline.max(CAPTURED_WITHIN) } else { deadline }
}

/// What a worker did with a job; `took` is `None` when it was dropped before it ran, or the engine panicked.
#[derive(Debug)]
pub(super) struct Finished {
    pub chosen: Chosen,
    pub took: Option<Duration>,
    /// Whether its network ran.
    pub inferred: bool,
    /// Whether the job was given up because it was late.
    pub late: bool,
    /// What its enhanced anchor is worth, where that was measured, in dB.
    pub worth: Option<f64>,
}
