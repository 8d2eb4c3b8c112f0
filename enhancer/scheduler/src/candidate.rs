//! What goes into the scheduler and what comes out: candidates and chosen frames.

use std::time::Duration;

use windlass_types::{Size, StreamId};

/// How strongly other frames depend on a frame; the first tier is served first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tier {
    /// A key frame: everything after it depends on it.
    Key,
    /// Refreshes the golden or the alternative reference (Chromium's real-time VP9 has no
    /// invisible alternative references; golden refreshes take their place).
    Golden,
    /// Any other frame.
    Normal,
}

/// A decoded frame that may become an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The caller's name for it, given back in [`Chosen`].
    pub id: u64,
    /// The frame's stream.
    pub stream: StreamId,
    /// How strongly other frames depend on this one.
    pub tier: Tier,
    /// Encoded size in bytes: stands for its residual.
    pub bytes: u32,
    /// Size of the LR picture.
    pub size: Size,
    /// Arrival of the frame at the SFU.
    pub arrival: Duration,
    /// Maximum anchors per thousand frames of its stream; the operator's fraction holds as well.
    pub per_mille: u16,
    /// Scale of the anchor's picture: HR width over LR width.
    pub scale: usize,
    /// Maximum scale of its stream's pictures.
    pub max_scale: usize,
}

/// What a publisher gives of its own pictures of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Captured {
    /// The publisher gives nothing of its own pictures.
    #[default]
    No,
    /// Stills, encoded as anchors, sent on request.
    Stills,
    /// Pictures of its frames: anchors are made of them without a network.
    Pictures,
}

/// A frame that the scheduler chose to become an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// The candidate's id.
    pub id: u64,
    /// The frame's stream.
    pub stream: StreamId,
    /// Size of the LR picture.
    pub size: Size,
    /// Index of the network to run, in [`SchedulerConfig::networks`](crate::SchedulerConfig::networks).
    pub network: usize,
    /// Expected cost; hand it back to [`Scheduler::finished`](crate::Scheduler::finished).
    pub cost: Duration,
    /// From the frame's arrival to its anchor encoded: later it is of no use.
    pub deadline: Duration,
    /// A probe of a stream whose recent anchors had no worth: it is sent only if it has some.
    pub probe: bool,
}
