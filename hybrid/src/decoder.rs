//! The hybrid decoder of one subscribed track: low layer and anchors in, HR pictures out.
//!
//! Source: seed 000 §4 and §6 (hybrid decoding), design.md *Reconstruction*. Frames come in
//! decoding order and anchors whenever they arrive: before their frame, with it, or late. An anchor
//! gives its frame detail, all of it or by tiles; the fields of the frames since are traced anew
//! (catch-up), so that every reference that descends from its frame gains by it.
//!
//! Without anchors pictures already have the detail that built-in filters expect: the first step of
//! every enhanced track, which costs the server nothing.
//!
//! Bounds: [`HybridConfig::history`] frames are kept for late anchors, [`MAX_EARLY`] anchors wait for
//! their frame, four anchors' detail is held. Nothing else grows, and without anchors nothing
//! is allocated once all buffers have their size.

use std::collections::VecDeque;

use crate::anchor::codec::AnchorCodecError;
use crate::anchor::message::ReassembledAnchor;
use crate::anchor::payload;
use crate::anchor::tiles::{TILE, TileMap};
use crate::detail::Detail;
use crate::history::History;
use crate::picture::Picture;
use crate::reconstruct::Rebuilder;
use crate::reconstruct::field::CELL;
use crate::reconstruct::learned::{self, Learned, NOISE};
use crate::reconstruct::source::Sources;
use crate::simd::Isa;
use crate::vp9::{DecodeError, Decoder, FrameBuffer, FrameKind};

/// Most anchors that wait for a frame not decoded yet; the oldest is dropped for a fifth.
pub const MAX_EARLY: usize = 4;
/// Most frames that [`HybridConfig::history`] may ask for.
pub const MAX_HISTORY: usize = 64;
/// Linear sizes of HR over LR that there are.
pub const SCALES: std::ops::RangeInclusive<usize> = 2..=4;
/// An anchor this far ahead of the last frame (10 s at 90 kHz) is not early but astray.
const MAX_LEAD: u32 = 900_000;

/// How a [`HybridDecoder`] behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HybridConfig {
    /// Linear size of HR over LR, one of [`SCALES`].
    pub scale: usize,
    /// Frames kept for late anchors, 1 to [`MAX_HISTORY`].
    pub history: usize,
    /// Whether the built-in filters are used before anchors have taught any.
    pub prior: bool,
    /// Whether filters learn from anchors.
    pub learning: bool,
    /// The instructions to use.
    pub isa: Isa,
}

impl Default for HybridConfig {
    fn default() -> Self {
        Self { scale: 2, history: 16, prior: true, learning: true, isa: Isa::detect() }
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
    /// Whether anchors have had a part in the displayed picture.
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
    /// Its frame has all the tiles that it gives.
    Duplicate,
    /// It belongs to an epoch before that of the last anchor.
    FormerEpoch,
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
}

/// Decodes one track: see the module's text.
pub struct HybridDecoder {
    config: HybridConfig,
    decoder: Decoder,
    history: History,
    early: VecDeque<ReassembledAnchor>,
    sources: Sources,
    /// What is known of the detail that follows from low pictures.
    learned: Learned,
    /// Whether anchors have taught it.
    taught: bool,
    /// Counts changes of `sources` and `learned`.
    generation: u64,
    epoch: Option<u16>,
    rebuilder: Rebuilder,
    scratch: learned::Scratch,
    high: Picture,
    displayed: bool,
    last_timestamp: Option<u32>,
    stats: HybridStats,
}

impl HybridDecoder {
    /// A decoder that waits for a key frame. A scale or history out of range is taken for the nearest.
    pub fn new(config: HybridConfig) -> Self {
        let config = HybridConfig {
            scale: config.scale.clamp(*SCALES.start(), *SCALES.end()),
            history: config.history.clamp(1, MAX_HISTORY),
            ..config
        };
        Self {
            config,
            decoder: Decoder::with_isa(config.isa).lending(config.history + MAX_LENT),
            history: History::new(config.history),
            early: VecDeque::new(),
            sources: Sources::default(),
            learned: fresh(&config),
            taught: false,
            generation: 0,
            epoch: None,
            rebuilder: Rebuilder::new(config.isa, config.scale),
            scratch: learned::Scratch::default(),
            high: Picture::default(),
            displayed: false,
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
        let mut outcome =
            FrameOutcome { shown: false, key: false, lr_width: 0, lr_height: 0, enhanced: false };
        let size = self.history.current().map(|e| (e.low.width(), e.low.height()));
        match self.decoder.decode(data) {
            Ok(frames) => {
                for frame in frames {
                    outcome.key |= frame.info.kind == FrameKind::Key;
                    outcome.shown |= frame.info.shown;
                    outcome.lr_width = frame.info.width;
                    outcome.lr_height = frame.info.height;
                    self.history.push(rtp_timestamp, frame.picture.clone(), frame.info.clone());
                }
            }
            Err(error) => {
                self.stats.errors += 1;
                self.forget();
                return Err(error);
            }
        }
        self.stats.frames += 1;
        self.last_timestamp = Some(rtp_timestamp);
        if size.is_some_and(|s| s != (outcome.lr_width as usize, outcome.lr_height as usize)) {
            // Another size is another camera or another rung: its pictures look different.
            self.learned = fresh(&self.config);
            self.taught = false;
            self.sources.clear();
            self.generation += 1;
        }
        self.apply_early(rtp_timestamp);
        if outcome.shown {
            outcome.enhanced = self.display();
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
            AnchorOutcome::Duplicate => self.stats.duplicate += 1,
            AnchorOutcome::FormerEpoch => self.stats.former_epoch += 1,
            AnchorOutcome::Malformed | AnchorOutcome::WrongSize => self.stats.malformed += 1,
        }
        outcome
    }

    /// The HR picture on display, if any frame was shown yet.
    pub fn hr(&self) -> Option<&Picture> {
        self.displayed.then_some(&self.high)
    }

    /// The low picture on display, bit-exact, while it is remembered.
    pub fn lr(&self) -> Option<&FrameBuffer> {
        self.history.current().map(|e| e.low.as_ref())
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
        self.sources.clear();
        self.generation += 1;
        self.early.clear();
        self.last_timestamp = None;
    }

    /// Makes the picture of the current frame; whether anchors have a part in it.
    fn display(&mut self) -> bool {
        let Some(entry) = self.history.current() else { return false };
        self.rebuilder.rebuild(
            &entry.low,
            &entry.field,
            &self.sources,
            &self.learned,
            self.generation,
            &mut self.high,
        );
        self.displayed = true;
        self.taught || entry.field.any()
    }

    fn apply_early(&mut self, timestamp: u32) {
        if self.early.is_empty() {
            return;
        }
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
        if self.epoch.is_some_and(|last| (header.epoch.wrapping_sub(last) as i16) < 0) {
            return AnchorOutcome::FormerEpoch;
        }
        let Some(at) = self.history.find(header.rtp_timestamp) else {
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
        let Some(entry) = self.history.entry(at) else { return AnchorOutcome::TooOld };
        let (width, height) = (entry.low.width(), entry.low.height());
        let scale = self.config.scale;
        if (scale * width, scale * height) != (header.width.into(), header.height.into()) {
            return AnchorOutcome::WrongSize;
        }
        let Ok((tiles, _)) = payload::unpack(anchor, scale) else {
            return AnchorOutcome::Malformed;
        };
        let new = entry.given.as_ref().map_or_else(|| tiles.clone(), |given| tiles.without(given));
        if new.count() == 0 {
            return AnchorOutcome::Duplicate;
        }
        match payload::decode(anchor, scale) {
            Ok((detail, _)) => {
                self.epoch = Some(header.epoch);
                self.apply(at, detail, &new);
                AnchorOutcome::Applied { frames_late: self.history.shown_after(at) }
            }
            Err(AnchorCodecError::WrongSize) => AnchorOutcome::WrongSize,
            Err(_) => AnchorOutcome::Malformed,
        }
    }

    /// Gives the frame at `at` new detail in some tiles and lets those after it follow.
    fn apply(&mut self, at: usize, mut detail: Detail, tiles: &TileMap) {
        let Some(entry) = self.history.entry(at) else { return };
        let low = entry.low.clone();
        let (isa, luma) = (self.config.isa, (&low.planes()[0]).into());
        let skip = outside(tiles, low.width(), low.height());
        let (skip, scratch) = (skip.as_deref(), &mut self.scratch);
        if self.config.learning
            && self
                .history
                .current()
                .is_none_or(|c| (c.low.width(), c.low.height()) == (low.width(), low.height()))
        {
            self.learned.learn_from(isa, luma, &detail, skip, scratch);
            self.taught = true;
        }
        self.learned.take_out(isa, luma, &mut detail, NOISE, skip, scratch);
        let source =
            self.sources.add(isa, low.clone(), detail, self.config.scale, tiles, &entry.field);
        let given = entry.given.as_ref().map_or_else(|| tiles.clone(), |g| g.with(tiles));
        self.history.rebase(at, source, given);
        self.generation += 1;
        if self.displayed
            && self.history.current().is_some_and(|c| {
                (self.config.scale * c.low.width(), self.config.scale * c.low.height())
                    == (self.high.width(), self.high.height())
            })
        {
            self.display();
        }
    }
}

/// Pictures that others than the history and VP9's own references hold: those of sources, of the
/// picture on display, and one that is being decoded.
const MAX_LENT: usize = crate::reconstruct::source::MOST + 4;

/// By cell, whether it lies outside the given tiles; `None` where all are given.
fn outside(tiles: &TileMap, width: usize, height: usize) -> Option<Vec<bool>> {
    let cells = |y: usize| {
        (0..width.div_ceil(CELL)).map(move |x| !tiles.contains(x * CELL / TILE, y * CELL / TILE))
    };
    (!tiles.is_full()).then(|| (0..height.div_ceil(CELL)).flat_map(cells).collect())
}

/// The filters of a stream that has had no anchor.
fn fresh(config: &HybridConfig) -> Learned {
    if config.prior { Learned::with_prior(config.scale) } else { Learned::new(config.scale) }
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
                tiled: false,
                part: 0,
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
    fn without_anchors_and_prior_the_picture_is_the_upsampled_low_layer() {
        let config = HybridConfig { prior: false, ..HybridConfig::default() };
        let mut d = HybridDecoder::new(config);
        for (i, data) in frames(REALTIME).into_iter().enumerate() {
            let outcome = d.push_frame(at(i), data).expect("a sound stream");
            assert!(outcome.shown && !outcome.enhanced);
            let low = d.lr().expect("shown");
            assert_eq!((low.width(), low.height()), (161, 91));
            assert_eq!(d.hr(), Some(&crate::resample::upsample(&low.to_picture())));
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
