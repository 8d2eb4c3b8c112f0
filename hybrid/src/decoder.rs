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
use crate::anchor::message::{AnchorOrigin, ReassembledAnchor};
use crate::detail::Detail;
use crate::picture::{Picture, Plane};
use crate::reconstruct::learned::Learned;
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

/// What an anchor differs from its prediction by less than this, in 1/16 grey level, is taken for
/// coding noise.
const NOISE: i16 = 8;

/// How a [`HybridDecoder`] behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HybridConfig {
    /// Frames kept for late anchors, 1 to [`MAX_HISTORY`].
    pub history: usize,
    /// How the detail of super-resolved anchors is carried from frame to frame.
    pub enhanced: Reconstruction,
    /// The same for anchors that the publisher captured.
    pub captured: Reconstruction,
}

impl Default for HybridConfig {
    fn default() -> Self {
        Self { history: 16, enhanced: Reconstruction::ENHANCED, captured: Reconstruction::CAPTURED }
    }
}

impl HybridConfig {
    fn reconstruction(&self, source: AnchorOrigin) -> &Reconstruction {
        match source {
            AnchorOrigin::Enhanced => &self.enhanced,
            AnchorOrigin::Captured => &self.captured,
        }
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
    info: Arc<FrameInfo>,
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
    /// Source of the last anchor applied: its weights hold for all detail.
    source: AnchorOrigin,
    /// What anchors have taught about the detail that follows from low pictures.
    learned: Learned,
    current: Option<Arc<Twin>>,
    /// The Lanczos base of the picture on display.
    base: Detail,
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
            source: AnchorOrigin::Enhanced,
            learned: Learned::default(),
            current: None,
            base: Detail::default(),
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
        let frames = match self.decoder.decode(data) {
            Ok(frames) => frames.to_vec(),
            Err(error) => {
                self.stats.errors += 1;
                self.forget();
                return Err(error);
            }
        };
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
        if outcome.shown
            && let Some(twin) = &self.current
        {
            self.base = lanczos2x_q4(&twin.low.y);
            let y = luma(&self.base, twin, &self.learned);
            self.high = Some(with_luma(&twin.low, y));
            outcome.enhanced = twin.detail.is_some() || !self.learned.is_empty();
            self.stats.enhanced += u64::from(outcome.enhanced);
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
        let picture = Arc::new(picture.to_picture());
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
        let size = |p: &Picture| (p.width(), p.height());
        if self.current.as_ref().is_some_and(|t| size(&t.low) != size(&picture)) {
            // Another size is another camera or another rung: its pictures look different.
            self.learned = Learned::default();
        }
        let how = self.config.reconstruction(self.source);
        let detail = propagate(&info, &picture.y, &references, how);
        let twin = Arc::new(Twin { id: self.next_id, low: picture, detail });
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
        let low = &self.history[at].twin.low;
        let size = (SCALE * low.width(), SCALE * low.height());
        if size != (header.width.into(), header.height.into()) {
            return AnchorOutcome::WrongSize;
        }
        match codec::decode(header.codec, &anchor.payload, header.width, header.height) {
            Ok(detail) => {
                self.source = header.source;
                AnchorOutcome::Applied { frames_late: self.rebase(at, detail) }
            }
            Err(AnchorCodecError::WrongSize) => AnchorOutcome::WrongSize,
            Err(_) => AnchorOutcome::Malformed,
        }
    }

    /// Gives the frame at `at` new detail and carries it forward. Returns how many frames were
    /// displayed after it.
    fn rebase(&mut self, at: usize, mut detail: Detail) -> u32 {
        let size = (detail.width(), detail.height());
        let low = self.history[at].twin.low.clone();
        if self
            .current
            .as_ref()
            .is_some_and(|t| (t.low.width(), t.low.height()) == (low.width(), low.height()))
        {
            self.learned.learn(&low.y, &detail);
            take_out_predicted(&mut detail, &low.y, &self.learned);
        }
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
            let how = self.config.reconstruction(self.source);
            let detail = propagate(&entry.info, &twin.low.y, &entry.references, how);
            self.replace(i, detail);
            changed.push(self.history[i].twin.clone());
        }
        if let Some(twin) = &self.current
            && let Some(high) = &mut self.high
            && (high.width(), high.height()) == size
        {
            high.y = luma(&self.base, twin, &self.learned);
        }
        self.history.iter().skip(at + 1).filter(|e| e.shown).count() as u32
    }

    /// Exchanges the twin of a frame wherever it is held.
    fn replace(&mut self, at: usize, detail: Option<Detail>) {
        let old = &self.history[at].twin;
        let new = Arc::new(Twin { id: old.id, low: old.low.clone(), detail });
        for held in self.slots.iter_mut().chain([&mut self.current]).flatten() {
            if held.id == new.id {
                *held = new.clone();
            }
        }
        self.history[at].twin = new;
    }
}

/// Leaves of an anchor's detail what its low picture does not let expect.
fn take_out_predicted(detail: &mut Detail, low: &Plane, learned: &Learned) {
    let Some(predicted) = learned.predict(low) else {
        return;
    };
    for (d, &p) in detail.samples_mut().iter_mut().zip(predicted.samples()) {
        let rest = d.saturating_sub(p);
        *d = rest.signum() * rest.saturating_abs().saturating_sub(NOISE).max(0);
    }
}

/// The luma of the Lanczos base in 1/16 grey level with the detail predicted and carried.
fn luma(base: &Detail, twin: &Twin, learned: &Learned) -> Plane {
    let predicted = learned.predict(&twin.low.y);
    let mut sum = base.clone();
    for part in [&predicted, &twin.detail].into_iter().flatten() {
        for (s, &d) in sum.samples_mut().iter_mut().zip(part.samples()) {
            *s = s.saturating_add(d);
        }
    }
    to_plane(&sum)
}

#[cfg(all(test, feature = "encode"))]
mod tests {
    use super::*;
    use crate::anchor::codec::{AnchorCodec, ResidualJpeg};
    use crate::anchor::{AnchorHeader, AnchorOrigin};

    const REALTIME: &[u8] = include_bytes!("../tests/fixtures/realtime.ivf");
    const ALTREF: &[u8] = include_bytes!("../tests/fixtures/altref.ivf");

    fn frames(ivf: &'static [u8]) -> Vec<&'static [u8]> {
        let (mut out, mut rest) = (Vec::new(), &ivf[32..]);
        while let Some((head, tail)) = rest.split_first_chunk::<12>() {
            let size = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
            out.push(&tail[..size]);
            rest = &tail[size..];
        }
        out
    }

    /// A timeline that wraps around at its sixth frame.
    fn at(frame: usize) -> u32 {
        (frame as u32).wrapping_mul(3000).wrapping_sub(15_000)
    }

    fn anchor(frame: usize, width: u16, height: u16) -> ReassembledAnchor {
        let (w, h) = (usize::from(width), usize::from(height));
        let samples = (0..w * h).map(|i| ((i % w * 7 + i / w * 3) % 41) as i16 * 12 - 240);
        let detail = Detail::from_samples(w, h, samples.collect()).expect("the count is right");
        ReassembledAnchor {
            header: AnchorHeader {
                codec: ResidualJpeg.id(),
                source: AnchorOrigin::Enhanced,
                stream: 1,
                epoch: 0,
                chunk_index: 0,
                chunk_count: 1,
                age_ms: 0,
                rtp_timestamp: at(frame),
                width,
                height,
            },
            payload: ResidualJpeg.encode(&detail, 70).expect("a legal size"),
        }
    }

    #[test]
    fn without_anchors_the_picture_is_the_upsampled_low_layer() {
        let mut d = HybridDecoder::new(HybridConfig::default());
        for (i, data) in frames(REALTIME).into_iter().enumerate() {
            let outcome = d.push_frame(at(i), data).expect("a sound stream");
            assert!(outcome.shown && !outcome.enhanced);
            let low = d.lr().expect("shown");
            assert_eq!((low.width(), low.height()), (161, 91));
            assert_eq!(d.hr(), Some(&crate::resample::upsample(low)));
        }
    }

    #[test]
    fn a_late_anchor_ends_where_a_timely_one_would_have() {
        for (stream, (w, h)) in [(REALTIME, (322, 182)), (ALTREF, (320, 192))] {
            let all = frames(stream);
            let mut timely = HybridDecoder::new(HybridConfig::default());
            let mut late = HybridDecoder::new(HybridConfig::default());
            for (i, data) in all.iter().enumerate().take(20) {
                timely.push_frame(at(i), data).expect("sound");
                late.push_frame(at(i), data).expect("sound");
                if i == 4 || i == 9 {
                    let outcome = timely.push_anchor(&anchor(i, w, h));
                    assert_eq!(outcome, AnchorOutcome::Applied { frames_late: 0 });
                }
                if i == 8 || i == 15 {
                    let of = if i == 8 { 4 } else { 9 };
                    let outcome = late.push_anchor(&anchor(of, w, h));
                    assert!(matches!(outcome, AnchorOutcome::Applied { frames_late: 4.. }));
                }
                if i == 8 || i >= 15 {
                    assert_eq!(timely.hr(), late.hr(), "at frame {i}");
                }
            }
            assert_eq!(late.stats().late, 2);
            assert!(timely.stats().enhanced > 10);
        }
    }

    #[test]
    fn an_early_anchor_waits_for_its_frame_across_the_wrap() {
        let all = frames(REALTIME);
        let mut early = HybridDecoder::new(HybridConfig::default());
        let mut timely = HybridDecoder::new(HybridConfig::default());
        for (i, data) in all.iter().enumerate().take(8) {
            if i == 4 {
                assert_eq!(early.push_anchor(&anchor(6, 322, 182)), AnchorOutcome::Early);
            }
            early.push_frame(at(i), data).expect("sound");
            timely.push_frame(at(i), data).expect("sound");
        }
        timely.push_anchor(&anchor(6, 322, 182));
        assert_eq!(early.hr(), timely.hr());
        assert_eq!(early.stats().applied, 1);
    }

    #[test]
    fn a_fifth_early_anchor_drops_the_first() {
        let mut d = HybridDecoder::new(HybridConfig::default());
        d.push_frame(at(0), frames(REALTIME)[0]).expect("sound");
        for i in 1..=5 {
            assert_eq!(d.push_anchor(&anchor(i, 322, 182)), AnchorOutcome::Early);
        }
        assert_eq!(d.early.len(), MAX_EARLY);
        assert_eq!(d.stats().too_old, 1);
    }

    #[test]
    fn anchors_beyond_the_history_are_too_old() {
        let mut d = HybridDecoder::new(HybridConfig { history: 4, ..HybridConfig::default() });
        for (i, data) in frames(REALTIME).into_iter().enumerate().take(9) {
            d.push_frame(at(i), data).expect("sound");
            assert!(d.history.len() <= 4);
        }
        assert_eq!(d.push_anchor(&anchor(4, 322, 182)), AnchorOutcome::TooOld);
        let applied = d.push_anchor(&anchor(5, 322, 182));
        assert_eq!(applied, AnchorOutcome::Applied { frames_late: 3 });
    }

    #[test]
    fn wrong_and_malformed_anchors_change_nothing() {
        let mut d = HybridDecoder::new(HybridConfig::default());
        d.push_frame(at(0), frames(REALTIME)[0]).expect("sound");
        let before = d.hr().cloned();
        assert_eq!(d.push_anchor(&anchor(0, 320, 182)), AnchorOutcome::WrongSize);
        let mut lying = anchor(0, 320, 182);
        lying.header.width = 322;
        assert_eq!(d.push_anchor(&lying), AnchorOutcome::WrongSize);
        let mut broken = anchor(0, 322, 182);
        broken.payload.truncate(40);
        assert_eq!(d.push_anchor(&broken), AnchorOutcome::Malformed);
        broken.header.codec = 77;
        assert_eq!(d.push_anchor(&broken), AnchorOutcome::Malformed);
        assert_eq!((d.hr().cloned(), d.stats().malformed), (before, 4));
    }

    #[test]
    fn a_key_frame_of_another_size_begins_without_detail() {
        let mut d = HybridDecoder::new(HybridConfig::default());
        d.push_frame(at(0), frames(REALTIME)[0]).expect("sound");
        d.push_anchor(&anchor(0, 322, 182));
        let outcome = d.push_frame(at(1), frames(ALTREF)[0]).expect("a key frame");
        assert!(outcome.key && !outcome.enhanced);
        assert_eq!(d.hr().map(Picture::width), Some(320));
        // The former frame's anchor still has its place, but must not touch the new picture.
        let shown = d.hr().cloned();
        d.push_anchor(&anchor(0, 322, 182));
        assert_eq!(d.hr().cloned(), shown);
    }

    #[test]
    fn after_a_reset_or_an_error_only_a_key_frame_goes_on() {
        let all = frames(REALTIME);
        let mut d = HybridDecoder::new(HybridConfig::default());
        d.push_frame(at(0), all[0]).expect("sound");
        d.reset();
        assert_eq!(d.push_frame(at(1), all[1]), Err(DecodeError::NeedKeyFrame));
        assert!(d.hr().is_some());
        assert!(d.push_frame(at(2), all[0]).expect("a key frame").key);
        assert_eq!(d.push_anchor(&anchor(0, 322, 182)), AnchorOutcome::TooOld);
    }
}
