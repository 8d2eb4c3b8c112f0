//! The hybrid decoder of one subscribed track: low layer and anchors in, HR pictures out.
//!
//! Source: seed 000 §4 and §6 (hybrid decoding), design.md *Reconstruction*. Frames come in
//! decoding order and anchors whenever they arrive: before their frame, with it, or late. An anchor
//! replaces the detail of its frame; a late one is carried forward through the motion of the frames
//! after it (catch-up), so that every reference that descends from its frame gains by it.
//!
//! Bounds: [`HybridConfig::history`] frames are kept for catch-up, [`MAX_EARLY`] anchors wait for
//! their frame. Nothing else grows.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::anchor::codec::{self, AnchorCodecError};
use crate::anchor::message::ReassembledAnchor;
use crate::detail::Detail;
use crate::picture::{Picture, Plane};
use crate::reconstruct::{Reconstruction, Twin, propagate};
use crate::resample::{lanczos2x_q4, to_plane, with_luma};
use crate::vp9::{DecodeError, DecodedFrame, Decoder, FrameInfo, FrameKind};

/// Most anchors that wait for a frame not decoded yet; the oldest is dropped for a fifth.
pub const MAX_EARLY: usize = 4;
/// Most frames that [`HybridConfig::history`] may ask for.
pub const MAX_HISTORY: usize = 64;
/// Linear size of HR over LR.
pub const SCALE: usize = 2;
/// An anchor this far ahead of the last frame (10 s at 90 kHz) is not early but astray.
const MAX_LEAD: u32 = 900_000;

/// How a [`HybridDecoder`] behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HybridConfig {
    /// Frames kept for late anchors, 1 to [`MAX_HISTORY`].
    pub history: usize,
    /// How detail is carried from frame to frame.
    pub reconstruction: Reconstruction,
}

impl Default for HybridConfig {
    fn default() -> Self {
        Self { history: 16, reconstruction: Reconstruction::default() }
    }
}

/// What became of a chunk of the low layer.
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
    /// Whether the displayed picture has detail anywhere beyond its upsampled low layer.
    pub enhanced: bool,
}

/// What became of an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnchorOutcome {
    /// Its frame has its detail now, and so have those after it.
    Applied {
        /// How many frames had been displayed after it.
        frames_late: u32,
    },
    /// Its frame is no longer in the history.
    TooOld,
    /// Its frame has not been decoded yet; it is kept for it.
    Early,
    /// Its payload is not an anchor.
    Malformed,
    /// It is for a picture of another size.
    WrongSize,
}

/// Counters of a [`HybridDecoder`] since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HybridStats {
    /// Chunks decoded.
    pub frames: u64,
    /// Chunks that failed to decode.
    pub errors: u64,
    /// Displayed pictures that had detail.
    pub enhanced: u64,
    /// Anchors applied, late or not.
    pub applied: u64,
    /// Anchors applied after their frame had been displayed and another after it.
    pub late: u64,
    /// Anchors whose frame was gone.
    pub too_old: u64,
    /// Anchors that came before their frame.
    pub early: u64,
    /// Anchors whose payload or size was wrong.
    pub malformed: u64,
    /// `frames_late` of the last anchor applied.
    pub last_frames_late: u32,
}

/// A frame in the history.
struct Entry {
    timestamp: u32,
    shown: bool,
    anchored: bool,
    info: FrameInfo,
    references: [Option<Arc<Twin>>; 3],
    twin: Arc<Twin>,
}

/// Decodes one track: see the module's text.
pub struct HybridDecoder {
    config: HybridConfig,
    decoder: Decoder,
    history: VecDeque<Entry>,
    slots: [Option<Arc<Twin>>; 8],
    next_id: u64,
    early: VecDeque<ReassembledAnchor>,
    current: Option<Arc<Twin>>,
    high: Option<Picture>,
    last_timestamp: Option<u32>,
    stats: HybridStats,
}

impl HybridDecoder {
    /// A decoder that waits for a key frame.
    pub fn new(config: HybridConfig) -> Self {
        Self {
            config,
            decoder: Decoder::new(),
            history: VecDeque::new(),
            slots: Default::default(),
            next_id: 0,
            early: VecDeque::new(),
            current: None,
            high: None,
            last_timestamp: None,
            stats: HybridStats::default(),
        }
    }

    /// Decodes one complete VP9 frame or superframe and rebuilds its HR picture.
    ///
    /// Gaps are the caller's to detect: after one it must [`reset`](Self::reset) and wait for a
    /// key frame. After an error the decoder waits for one by itself.
    pub fn push_frame(
        &mut self,
        rtp_timestamp: u32,
        data: &[u8],
    ) -> Result<FrameOutcome, DecodeError> {
        let frames = self.decoder.decode(data).inspect_err(|_| {
            self.stats.errors += 1;
            self.forget();
        })?;
        let mut outcome =
            FrameOutcome { shown: false, key: false, lr_width: 0, lr_height: 0, enhanced: false };
        for frame in frames {
            outcome.key |= frame.info.kind == FrameKind::Key;
            outcome.shown |= frame.info.shown;
            outcome.lr_width = frame.info.width;
            outcome.lr_height = frame.info.height;
            self.take_frame(rtp_timestamp, frame);
        }
        self.stats.frames += 1;
        self.last_timestamp = Some(rtp_timestamp);
        self.apply_early(rtp_timestamp);
        if outcome.shown {
            if let Some(twin) = &self.current {
                self.high = Some(with_luma(&twin.low, luma(twin)));
                outcome.enhanced = twin.detail.is_some();
                self.stats.enhanced += u64::from(outcome.enhanced);
            }
        }
        Ok(outcome)
    }

    /// Takes a complete anchor: applies it to its frame and, when it is late, carries it forward
    /// to the picture on display.
    pub fn push_anchor(&mut self, anchor: &ReassembledAnchor) -> AnchorOutcome {
        let outcome = self.try_anchor(anchor);
        match outcome {
            AnchorOutcome::Applied { frames_late } => {
                self.stats.applied += 1;
                self.stats.late += u64::from(frames_late > 0);
                self.stats.last_frames_late = frames_late;
            }
            AnchorOutcome::TooOld => self.stats.too_old += 1,
            AnchorOutcome::Early => self.stats.early += 1,
            AnchorOutcome::Malformed | AnchorOutcome::WrongSize => self.stats.malformed += 1,
        }
        outcome
    }

    /// The HR picture on display, if any frame was shown yet.
    pub fn hr(&self) -> Option<&Picture> {
        self.high.as_ref()
    }

    /// The low picture on display, bit-exact.
    pub fn lr(&self) -> Option<&Picture> {
        self.current.as_ref().map(|t| t.low.as_ref())
    }

    /// The counters.
    pub fn stats(&self) -> HybridStats {
        self.stats
    }

    /// Forgets all frames and anchors; a key frame must come next. The last picture stays on
    /// display, and the counters go on.
    pub fn reset(&mut self) {
        self.decoder.reset();
        self.forget();
    }

    fn forget(&mut self) {
        self.history.clear();
        self.slots = Default::default();
        self.early.clear();
        self.last_timestamp = None;
    }

    fn take_frame(&mut self, timestamp: u32, frame: DecodedFrame) {
        let DecodedFrame { picture, info } = frame;
        if let FrameKind::ShowExisting { slot } = info.kind {
            let Some(twin) = self.slots[usize::from(slot & 7)].clone() else {
                return;
            };
            // An anchor for what is shown now is one for the frame that the slot holds.
            if let Some(entry) = self.history.iter_mut().find(|e| e.twin.id == twin.id) {
                entry.timestamp = timestamp;
                entry.shown = true;
            }
            self.current = Some(twin);
            return;
        }
        let references = if info.is_intra() {
            Default::default()
        } else {
            info.reference_slots.map(|slot| self.slots[usize::from(slot & 7)].clone())
        };
        let base = Arc::new(lanczos2x_q4(&picture.y));
        let detail = propagate(&info, &picture, &base, &references, &self.config.reconstruction);
        let twin = Arc::new(Twin { id: self.next_id, low: picture, base, detail });
        self.next_id += 1;
        for (i, slot) in self.slots.iter_mut().enumerate() {
            if info.refresh_mask >> i & 1 == 1 {
                *slot = Some(twin.clone());
            }
        }
        if info.shown {
            self.current = Some(twin.clone());
        }
        while self.history.len() >= self.config.history.clamp(1, MAX_HISTORY) {
            self.history.pop_front();
        }
        self.history.push_back(Entry {
            timestamp,
            shown: info.shown,
            anchored: false,
            info,
            references,
            twin,
        });
    }

    fn apply_early(&mut self, timestamp: u32) {
        let mut waiting = std::mem::take(&mut self.early);
        waiting.retain(|anchor| {
            let ahead = anchor.header.rtp_timestamp.wrapping_sub(timestamp);
            if ahead == 0 {
                self.push_anchor(anchor);
            } else if ahead > MAX_LEAD {
                self.stats.too_old += 1;
            }
            (1..=MAX_LEAD).contains(&ahead)
        });
        self.early = waiting;
    }

    fn try_anchor(&mut self, anchor: &ReassembledAnchor) -> AnchorOutcome {
        let header = &anchor.header;
        let found =
            self.history.iter().rposition(|e| e.shown && e.timestamp == header.rtp_timestamp);
        let Some(at) = found else {
            let ahead = self.last_timestamp.map(|last| header.rtp_timestamp.wrapping_sub(last));
            return match ahead {
                Some(1..=MAX_LEAD) | None => {
                    if self.early.len() >= MAX_EARLY {
                        self.early.pop_front();
                        self.stats.too_old += 1;
                    }
                    self.early.push_back(anchor.clone());
                    AnchorOutcome::Early
                }
                Some(_) => AnchorOutcome::TooOld,
            };
        };
        let base = &self.history[at].twin.base;
        if (base.width(), base.height()) != (header.width.into(), header.height.into()) {
            return AnchorOutcome::WrongSize;
        }
        match codec::decode(header.codec, &anchor.payload, header.width, header.height) {
            Ok(detail) => AnchorOutcome::Applied { frames_late: self.rebase(at, detail) },
            Err(AnchorCodecError::WrongSize) => AnchorOutcome::WrongSize,
            Err(_) => AnchorOutcome::Malformed,
        }
    }

    /// Gives the frame at `at` new detail and carries it forward. Returns how many frames were
    /// displayed after it.
    fn rebase(&mut self, at: usize, detail: Detail) -> u32 {
        self.replace(at, Some(detail));
        self.history[at].anchored = true;
        let mut changed = vec![self.history[at].twin.clone()];
        for i in at + 1..self.history.len() {
            let entry = &mut self.history[i];
            let mut touched = false;
            for reference in entry.references.iter_mut().flatten() {
                if let Some(new) = changed.iter().find(|t| t.id == reference.id) {
                    *reference = new.clone();
                    touched = true;
                }
            }
            // A frame with its own anchor keeps it.
            if !touched || entry.anchored {
                continue;
            }
            let twin = &entry.twin;
            let detail = propagate(
                &entry.info,
                &twin.low,
                &twin.base,
                &entry.references,
                &self.config.reconstruction,
            );
            self.replace(i, detail);
            changed.push(self.history[i].twin.clone());
        }
        if let Some(twin) = &self.current
            && let Some(high) = &mut self.high
            && changed.iter().any(|t| t.id == twin.id)
            && high.width() == twin.base.width()
        {
            high.y = luma(twin);
        }
        self.history.iter().skip(at + 1).filter(|e| e.shown).count() as u32
    }

    /// Exchanges the twin of a frame wherever it is held.
    fn replace(&mut self, at: usize, detail: Option<Detail>) {
        let old = &self.history[at].twin;
        let new =
            Arc::new(Twin { id: old.id, low: old.low.clone(), base: old.base.clone(), detail });
        for held in self.slots.iter_mut().chain([&mut self.current]).flatten() {
            if held.id == new.id {
                *held = new.clone();
            }
        }
        self.history[at].twin = new;
    }
}

fn luma(twin: &Twin) -> Plane {
    let Some(detail) = &twin.detail else {
        return to_plane(&twin.base);
    };
    let mut sum = (*twin.base).clone();
    for (s, &d) in sum.samples_mut().iter_mut().zip(detail.samples()) {
        *s = s.saturating_add(d);
    }
    to_plane(&sum)
}
