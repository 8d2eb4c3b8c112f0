//! A chosen frame on its way to a worker, and its outcome.

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
    /// The publisher's own picture of the frame. With it, there is nothing to infer.
    pub captured: Option<Arc<FrameBuffer>>,
}

impl Job {
    /// Takes the publisher's own picture if it has come since. On a busy CPU a picture at HR size is decoded after its
    /// low frame was chosen. To infer the frame all the same would make the CPU busier.
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

/// Maximum time from a frame's arrival to its anchor encoded. Captured anchors may come later than enhanced ones.
pub(super) fn within(deadline: Duration, captured: bool) -> Duration {
    if captured { deadline.max(CAPTURED_WITHIN) } else { deadline }
}

/// Outcome of a worker's job. `took` is `None` if the job was dropped before it ran, or the engine panicked.
#[derive(Debug)]
pub(super) struct Finished {
    pub chosen: Chosen,
    pub took: Option<Duration>,
    /// Whether the job's network ran.
    pub inferred: bool,
    /// Whether the job was given up because it was late.
    pub late: bool,
    /// Worth of the job's enhanced anchor in dB, if it was measured.
    pub worth: Option<f64>,
}
