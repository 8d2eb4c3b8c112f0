//! The outcomes of frames, anchors and weights, and their counters.

use super::own_weights::WeightsOutcome;

/// The outcome of a chunk of the low layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameOutcome {
    /// Whether there is a new picture to display.
    pub shown: bool,
    /// Whether the chunk holds a key frame.
    pub key: bool,
    /// Width of the low picture.
    pub lr_width: u32,
    /// Height of the low picture.
    pub lr_height: u32,
    /// Whether anchors have had a part in the displayed picture.
    pub enhanced: bool,
}

/// The outcome of an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnchorOutcome {
    /// The anchor's frame has its detail now, and so have the frames after it; the next picture shows it.
    Applied {
        /// How many frames had been displayed after the anchor's frame.
        frames_late: u32,
    },
    /// The anchor's frame is not in the history: it is too old, has another size or was never shown. Or the anchor is
    /// enhanced, and all references that are kept are younger.
    TooOld,
    /// The anchor's frame has not been decoded yet; the anchor is kept for it.
    Early,
    /// The anchor's frame has all the tiles that the anchor gives.
    Duplicate,
    /// The anchor belongs to an epoch before that of the last anchor.
    FormerEpoch,
    /// The anchor's payload cannot be decoded.
    Malformed,
    /// The anchor is for a picture of another size: of another low layer, or of a smaller scale than is shown.
    WrongSize,
}

/// Counters of a [`HybridDecoder`](super::HybridDecoder) since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HybridStats {
    /// Number of chunks of the low layer that were decoded.
    pub frames: u64,
    /// Number of chunks of the low layer that failed to decode.
    pub errors: u64,
    /// Displayed pictures in which anchors had a part.
    pub enhanced: u64,
    /// Anchors applied, late or not.
    pub applied: u64,
    /// Anchors applied after their frame had been displayed and another after it.
    pub late: u64,
    /// Anchors whose frame was gone.
    pub too_old: u64,
    /// Anchors that came before their frame.
    pub early: u64,
    /// Anchors that gave nothing new.
    pub duplicate: u64,
    /// Anchors of a former epoch.
    pub former_epoch: u64,
    /// Anchors whose payload or size was wrong.
    pub malformed: u64,
    /// `frames_late` of the last anchor applied.
    pub last_frames_late: u32,
    /// Weights of the stream's own that were taken.
    pub weights_taken: u64,
    /// Messages with weights that were wrong.
    pub weights_refused: u64,
}

impl HybridStats {
    /// Counts a weights message.
    pub(super) fn count_weights(&mut self, outcome: WeightsOutcome) {
        self.weights_taken += u64::from(outcome == WeightsOutcome::Taken);
        self.weights_refused += u64::from(matches!(outcome, WeightsOutcome::Refused(_)));
    }

    /// Counts an anchor.
    pub(super) fn count(&mut self, outcome: AnchorOutcome) {
        match outcome {
            AnchorOutcome::Applied { frames_late } => {
                self.applied += 1;
                self.late += u64::from(frames_late > 0);
                self.last_frames_late = frames_late;
            }
            AnchorOutcome::TooOld => self.too_old += 1,
            AnchorOutcome::Early => self.early += 1,
            AnchorOutcome::Duplicate => self.duplicate += 1,
            AnchorOutcome::FormerEpoch => self.former_epoch += 1,
            AnchorOutcome::Malformed | AnchorOutcome::WrongSize => self.malformed += 1,
        }
    }
}

/// The cells of the picture on display that no network makes better.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptCells {
    /// There is no picture yet.
    NoPicture,
    /// An anchor has changed the picture, and [`refresh`](super::HybridDecoder::refresh) would make another.
    Stale,
    /// A flag for each cell of 8 × 8 low samples, row by row: whether no network makes it better.
    Flags(Vec<bool>),
}
