//! The hybrid decoder of one subscribed track: low layer and anchors in, HR pictures out.
//!
//! Source: NeuroScaler §4 and §6 (hybrid decoding), design.md *Reconstruction*. Frames come in
//! decoding order and anchors whenever they arrive: before their frame, with it, or late. An anchor
//! makes its frame a reference, all of it or by tiles: every frame after it takes from its picture what fits, by dense
//! flow straight from there, so that a late anchor ends where one in time would have. The picture on display is
//! left to the next frame, or to [`HybridDecoder::refresh`] where none comes soon.
//!
//! Without anchors pictures already have the detail that built-in filters expect: the first step of
//! every enhanced track, which costs the server nothing.
//!
//! Bounds: [`HybridConfig::history`] frames are kept for late anchors; [`MAX_EARLY`] anchors, or parts of them,
//! of [`MAX_EARLY_BYTES`] wait for their frame; six references are held, each a high luma and a low picture. Nothing
//! else grows, and between anchors nothing is allocated once all buffers have their size.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::anchor::codec::{AnchorCodecError, MAX_AREA};
use crate::anchor::colour::{decode as decode_colour, split};
use crate::anchor::payload;
use crate::anchor::prior::Prior;
use crate::decay::DecayMeter;
use crate::detail::Detail;
use crate::history::{Entry, Given, History};
use crate::reconstruct::carry::colour::Colour;
use crate::reconstruct::carry::effort::Effort;
use crate::reconstruct::carry::plan::Painted;
use crate::reconstruct::carry::reference::{Given as Gift, MOST, Reference, References};
use crate::reconstruct::carry::searches::Searches;
use crate::reconstruct::learned::{self, Learned};
use crate::reconstruct::{CELL, Known, Rebuilder};
use crate::resample::{Shrink, shrink_detail};
use crate::threads::Join;
use windlass_types::message::{AnchorHeader, MAX_ANCHOR, ReassembledAnchor};
use windlass_types::tiles::{TILE, TileMap};
use windlass_types::{AnchorSource, SCALES};
use windlass_vp9::simd::Isa;
use windlass_vp9::{
    DecodeError, DecodedFrame, Decoder, FrameBuffer, FrameKind, Picture, Samples, SizeLimit,
};

/// Most anchors that wait for a frame not decoded yet, each part counted; the oldest is dropped for one more.
pub const MAX_EARLY: usize = 16;
/// Most payload bytes that they may have; the oldest are dropped for more.
pub const MAX_EARLY_BYTES: usize = 2 * MAX_ANCHOR;
/// Most frames that [`HybridConfig::history`] may ask for.
pub const MAX_HISTORY: usize = 64;
/// An anchor this far ahead of the last frame (10 s at 90 kHz) is not early but astray.
const MAX_LEAD: u32 = 900_000;

/// How a [`HybridDecoder`] behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HybridConfig {
    /// Linear size of HR over LR, one of [`SCALES`].
    pub scale: usize,
    /// Frames kept for late anchors, 1 to [`MAX_HISTORY`]; beyond 16 only as many as fit into 16 MB. A publisher's own
    /// picture takes a second and more on a slow uplink.
    pub history: usize,
    /// Whether the built-in filters are used before anchors have taught any.
    pub prior: bool,
    /// Whether filters learn from captured anchors.
    pub learning: bool,
    /// The instructions to use.
    pub isa: Isa,
}

impl Default for HybridConfig {
    fn default() -> Self {
        Self { scale: 2, history: 48, prior: true, learning: true, isa: Isa::detect() }
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
    /// Its frame has its detail now, and so have those after it; pictures show it from the next one on.
    Applied {
        /// How many frames had been displayed after it.
        frames_late: u32,
    },
    /// Its frame is no longer in the history: it is too long ago, of a size that is no longer shown, or never was; or it was made
    /// of the low picture, and all references that are kept are younger.
    TooOld,
    /// Its frame has not been decoded yet; it is kept for it.
    Early,
    /// Its frame has all the tiles that it gives.
    Duplicate,
    /// It belongs to an epoch before that of the last anchor.
    FormerEpoch,
    /// Its payload is not an anchor.
    Malformed,
    /// It is for a picture of another size: of another low layer, or of a smaller scale than is shown.
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
    /// What the caller lets low pictures be.
    given: SizeLimit,
    decoder: Decoder,
    history: History,
    early: VecDeque<ReassembledAnchor>,
    references: References,
    searches: Searches,
    /// What is known of the detail that follows from low pictures.
    learned: Learned,
    /// What anchors do not say, once there was one that did not, at their scale.
    prior: Option<Prior>,
    /// Whether anchors have taught it.
    taught: bool,
    /// Counts changes of `references` and `learned`.
    generation: u64,
    /// That of the picture on display.
    painted: u64,
    epoch: Option<u16>,
    rebuilder: Rebuilder,
    /// Makes pictures that are not displayed.
    painter: Rebuilder,
    scratch: learned::Scratch,
    decay: DecayMeter,
    high: Picture,
    displayed: bool,
    /// Width and height of the last low picture shown.
    size: Option<(usize, usize)>,
    last_timestamp: Option<u32>,
    stats: HybridStats,
}

impl HybridDecoder {
    /// A decoder that waits for a key frame. A scale or history out of range is taken for the nearest.
    pub fn new(config: HybridConfig) -> Self {
        let scale = config.scale.clamp(*SCALES.start(), *SCALES.end());
        let history = config.history.clamp(1, MAX_HISTORY);
        let config = HybridConfig { scale, history, ..config };
        let lent = config.history + MAX_LENT;
        Self {
            config,
            given: SizeLimit::default(),
            decoder: Decoder::with_isa(config.isa)
                .lending(lent)
                .limited(within(SizeLimit::default(), scale)),
            history: History::new(config.history),
            early: VecDeque::new(),
            references: References::default(),
            searches: Searches::default(),
            learned: fresh(&config),
            prior: None,
            taught: false,
            generation: 0,
            painted: 0,
            epoch: None,
            rebuilder: Rebuilder::new(config.isa, config.scale),
            painter: Rebuilder::new(config.isa, config.scale),
            scratch: learned::Scratch::default(),
            decay: DecayMeter::default(),
            high: Picture::default(),
            displayed: false,
            size: None,
            last_timestamp: None,
            stats: HybridStats::default(),
        }
    }

    /// The same decoder, refusing low pictures beyond `limit`.
    #[must_use]
    pub fn limited(mut self, limit: SizeLimit) -> Self {
        self.given = limit;
        self.decoder.limit(within(limit, self.config.scale));
        self
    }

    /// The same decoder, making HR pictures in so many parts, which `threads` of the caller's may run at the same
    /// time; the pictures are the same.
    #[must_use]
    pub fn with_threads(mut self, threads: Arc<dyn Join>, parts: usize) -> Self {
        self.rebuilder.with_threads(threads.clone(), parts);
        self.painter.with_threads(threads, parts);
        self
    }

    /// The same decoder, making every picture anew where others leave alone what has not changed:
    /// for comparisons, as the pictures are the same.
    #[must_use]
    pub fn making_all_anew(mut self) -> Self {
        self.rebuilder.always = true;
        self
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
        match self.decoder.decode(data) {
            Ok(frames) => {
                for frame in frames {
                    outcome.key |= frame.info.kind == FrameKind::Key;
                    outcome.shown |= frame.info.shown;
                    outcome.lr_width = frame.info.width;
                    outcome.lr_height = frame.info.height;
                    self.history.push(rtp_timestamp, frame);
                }
            }
            Err(error) => {
                self.stats.errors += 1;
                self.forget();
                return Err(error);
            }
        }
        self.follow(rtp_timestamp);
        if outcome.shown {
            outcome.enhanced = self.display();
            self.stats.enhanced += u64::from(outcome.enhanced);
        }
        Ok(outcome)
    }

    /// Takes what another decoder made of a chunk of the low layer, and displays nothing: for a server that decodes the layer
    /// anyway and wants to know what its subscribers see. After a gap or an error, [`reset`](Self::reset).
    pub fn push_decoded(&mut self, rtp_timestamp: u32, frames: &[DecodedFrame]) {
        for frame in frames {
            self.history.push(rtp_timestamp, frame);
        }
        self.follow(rtp_timestamp);
    }

    /// The HR picture of a remembered frame, with all that is known of it by now; `None` for others. It takes the place of
    /// the picture on display.
    pub fn picture_at(&mut self, rtp_timestamp: u32) -> Option<&Picture> {
        let at = self.history.find(rtp_timestamp)?;
        self.paint(Some(at))?;
        Some(&self.high)
    }

    /// By tile of a remembered frame, the share of the publisher's own detail that no longer fits it: 0 to 1, and 1 where
    /// there is none. `None` for other frames.
    pub fn lost(&mut self, rtp_timestamp: u32) -> Option<Vec<f64>> {
        let entry = self.history.entry(self.history.find(rtp_timestamp)?)?;
        let mut known = Known {
            references: &self.references,
            searches: &mut self.searches,
            learned: &self.learned,
            generation: self.generation,
        };
        Some(self.painter.lost(entry.id(), &entry.low, &mut known))
    }

    /// Draws the consequences of a new frame.
    fn follow(&mut self, rtp_timestamp: u32) {
        self.stats.frames += 1;
        self.last_timestamp = Some(rtp_timestamp);
        let size = self.history.current().map(Entry::size);
        if size.is_some() && self.size.is_some() && size != self.size {
            // Another size is another camera or another rung: its pictures look different.
            self.learned = fresh(&self.config);
            self.taught = false;
            self.references.clear();
            self.decay.interrupt();
            self.history.forget_other_sizes();
            self.generation += 1;
        } else if self.taught && self.history.is_cut() {
            // The scene before may come back: its references are kept, and left alone while they do not fit.
            self.learned = fresh(&self.config);
            self.taught = false;
            self.generation += 1;
        }
        self.size = size.or(self.size);
        self.apply_early(rtp_timestamp);
    }

    /// Takes a complete anchor: its frame is a reference from now on. The picture on display stays until the next frame or [`refresh`](Self::refresh).
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

    /// Makes the picture on display anew where anchors have come since it was made; whether it did. A frame
    /// that follows does so by itself: this is for when none is to be expected soon.
    pub fn refresh(&mut self) -> bool {
        let stale = self.is_stale();
        if stale {
            self.display();
        }
        stale
    }

    /// Whether [`refresh`](Self::refresh) would make the picture on display anew.
    pub fn is_stale(&self) -> bool {
        self.displayed && self.painted != self.generation && self.history.current().is_some()
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

    /// What pictures have lost after anchors, in mean square grey levels of luma, and in how many frames, as far as it was looked at:
    /// sums since the decoder was made (ARISE §4.3).
    pub fn decay(&self) -> (f64, u64) {
        self.decay.total()
    }

    /// Forgets all frames and anchors; a key frame must come next. The last picture stays on
    /// display, and the counters go on.
    pub fn reset(&mut self) {
        self.decoder.reset();
        self.forget();
    }

    /// Makes HR pictures of another size from now on: `scale`, taken for the nearest of [`SCALES`], times the low layer's. The
    /// low layer goes on without a key frame; what anchors and filters knew of the former size is forgotten, and anchors of this
    /// scale or a larger one are taken from now on. The picture on display stays until the next frame or [`refresh`](Self::refresh).
    pub fn rescale(&mut self, scale: usize) {
        let scale = scale.clamp(*SCALES.start(), *SCALES.end());
        if scale == self.config.scale {
            return;
        }
        self.config.scale = scale;
        self.decoder.limit(within(self.given, scale));
        self.history.without_detail();
        self.references.clear();
        self.learned = fresh(&self.config);
        self.taught = false;
        self.rebuilder.rescale(scale);
        self.painter.rescale(scale);
        self.decay.interrupt();
        self.generation += 1;
    }

    /// Searches so thoroughly for what pictures take from anchors, from the next picture on.
    pub fn set_effort(&mut self, effort: Effort) {
        if effort != self.searches.effort() {
            self.searches.set_effort(effort);
            self.rebuilder.forget();
        }
    }

    /// Size of HR pictures over that of the low layer.
    pub fn scale(&self) -> usize {
        self.config.scale
    }

    fn forget(&mut self) {
        self.history.clear();
        self.decay.interrupt();
        self.references.clear();
        self.generation += 1;
        self.early.clear();
        self.last_timestamp = None;
    }

    /// Makes the picture of the current frame; whether anchors have a part in it.
    fn display(&mut self) -> bool {
        self.paint(None).is_some_and(|carried| carried || self.taught)
    }

    /// Makes the picture of a frame in the history, or of the current one: whether references have a part in it;
    /// `None` where there is no such frame.
    fn paint(&mut self, at: Option<usize>) -> Option<bool> {
        let entry = match at {
            Some(at) => self.history.entry(at),
            None => self.history.current(),
        }?;
        let mut known = Known {
            references: &self.references,
            searches: &mut self.searches,
            learned: &self.learned,
            generation: self.generation,
        };
        let carried = self.rebuilder.rebuild(entry.id(), &entry.low, &mut known, &mut self.high);
        self.displayed = true;
        self.painted = self.generation;
        Some(carried)
    }

    fn apply_early(&mut self, timestamp: u32) {
        if self.early.is_empty() {
            return;
        }
        let mut waiting = std::mem::take(&mut self.early);
        waiting.retain(|anchor| {
            let ahead = anchor.header.rtp_timestamp.wrapping_sub(timestamp);
            let here = self.history.find(anchor.header.rtp_timestamp).is_some();
            if here {
                self.push_anchor(anchor);
            } else if ahead > MAX_LEAD {
                self.stats.too_old += 1;
            }
            // A frame in several chunks is not here before it is shown.
            !here && ahead <= MAX_LEAD
        });
        self.early = waiting;
    }

    fn wait(&mut self, anchor: &ReassembledAnchor) {
        let bytes = |early: &VecDeque<ReassembledAnchor>| -> usize {
            early.iter().map(|a| a.payload.len()).sum()
        };
        self.early.push_back(anchor.clone());
        while self.early.len() > MAX_EARLY || bytes(&self.early) > MAX_EARLY_BYTES {
            self.early.pop_front();
            self.stats.too_old += 1;
        }
    }

    fn try_anchor(&mut self, anchor: &ReassembledAnchor) -> AnchorOutcome {
        let header = &anchor.header;
        if self.epoch.is_some_and(|last| (header.epoch.wrapping_sub(last) as i16) < 0) {
            return AnchorOutcome::FormerEpoch;
        }
        let found = self.history.find(header.rtp_timestamp);
        let ahead = self.last_timestamp.map(|last| header.rtp_timestamp.wrapping_sub(last));
        if found.is_none() && ahead.is_none_or(|ahead| ahead <= MAX_LEAD) {
            self.wait(anchor);
            return AnchorOutcome::Early;
        }
        let Some(at) = found else { return AnchorOutcome::TooOld };
        let Some(entry) = self.history.entry(at) else { return AnchorOutcome::TooOld };
        // What was made of the low picture is of no use before six younger references. The publisher's own pixels are: those
        // after them take them over.
        let own = header.source == AnchorSource::Captured;
        if !own && self.references.are_beyond(entry.id()) {
            return AnchorOutcome::TooOld;
        }
        let (width, height) = entry.size();
        let Some(made) = header.scale_over((width, height)) else {
            return AnchorOutcome::WrongSize;
        };
        // It may be for viewers of larger pictures too.
        let shrink = Shrink::new(made, self.config.scale);
        if made != self.config.scale && shrink.is_none() {
            return AnchorOutcome::WrongSize;
        }
        let Ok((tiles, coded)) = payload::unpack(anchor, made) else {
            return AnchorOutcome::Malformed;
        };
        // The publisher's own pixels replace what was made of the low picture.
        let new = match &entry.given {
            Some(given) if own => tiles.without(&given.captured),
            Some(given) => tiles.without(&given.tiles),
            None => tiles.clone(),
        };
        if new.count() == 0 {
            return AnchorOutcome::Duplicate;
        }
        let mut colour = None;
        let (coded, of_colour) = split(header.codec, coded);
        let detail = payload::decode_image(header, &tiles, coded, made);
        if let Some(code) = of_colour.filter(|_| own) {
            let decoded = decode_colour(code, entry.low.samples(), &tiles, made);
            let Ok(decoded) = decoded else { return AnchorOutcome::Malformed };
            let show = |colour: &mut Colour| colour.show(decoded);
            let scales = (made, self.config.scale);
            colour = Some(self.references.colour((width, height), scales, show));
        }
        let mut detail = match detail {
            Ok(detail) => detail,
            Err(AnchorCodecError::WrongSize) => return AnchorOutcome::WrongSize,
            Err(_) => return AnchorOutcome::Malformed,
        };
        let low = Samples::from(&entry.low.planes()[0]);
        let skip = outside(&new, width, height);
        if header.beyond_prior {
            let prior = match &mut self.prior {
                Some(prior) if prior.scale() == made => prior,
                none => none.insert(Prior::new(self.config.isa, made)),
            };
            prior.put_back(low, &mut detail, skip.as_deref());
        }
        if let Some(shrink) = shrink {
            let cells = (skip.as_deref(), CELL);
            detail = shrink_detail(self.config.isa, low, &detail, shrink, cells);
        }
        self.epoch = Some(header.epoch);
        self.apply(at, detail, colour, &new, header);
        AnchorOutcome::Applied { frames_late: self.history.shown_after(at) }
    }

    /// Gives the frame at `at` new detail in some tiles, with all that was not coded of it: it is a reference from now on.
    fn apply(
        &mut self,
        at: usize,
        mut detail: Detail,
        colour: Option<Colour>,
        tiles: &TileMap,
        header: &AnchorHeader,
    ) {
        let Some(entry) = self.history.entry(at) else { return };
        let captured = header.source == AnchorSource::Captured;
        let (id, low) = (entry.id(), entry.low.clone());
        let (isa, scale) = (self.config.isa, self.config.scale);
        let luma = Samples::from(&low.planes()[0]);
        let skip = outside(tiles, low.width(), low.height());
        let skip = skip.as_deref();
        let looked =
            if header.source == AnchorSource::Enhanced { self.decay.anchor(id) } else { None };
        let begins = self.references.get(id).is_none();
        let fits = !captured && self.references.before(id).iter().any(Reference::has_captured);
        let shows = looked.is_some() || fits || begins && !tiles.is_full();
        let painted = shows.then(|| self.show(id, &low));
        if let (Some(apart), Some(painted)) = (looked, &painted) {
            self.decay.compare(apart, &painted.luma, luma, &detail, (tiles, scale));
        }
        if self.config.learning && captured {
            // What a network made of the low picture teaches less than the filters know.
            self.learned.learn_from(isa, luma, &detail, skip, &mut self.scratch);
            self.taught = true;
        }
        self.learned.take_out(isa, luma, &mut detail, skip, &mut self.scratch);
        let base = self.painter.base(&low, &self.learned, None);
        let high = self.painter.base(&low, &self.learned, Some(&detail));
        let given = Gift { high: &high, base: &base, colour, tiles, captured, painted };
        self.references.give(id, &low, given, scale);
        if let Some(entry) = self.history.entry_mut(at) {
            let none = || TileMap::empty(low.width(), low.height());
            let given =
                entry.given.get_or_insert_with(|| Given { tiles: none(), captured: none() });
            given.tiles = given.tiles.with(tiles);
            if captured {
                given.captured = given.captured.with(tiles);
            }
        }
        self.pass_on(id);
        self.references.trim();
        self.generation += 1;
    }

    /// What the references before a frame show in it.
    fn show(&mut self, id: u64, low: &FrameBuffer) -> Painted {
        let mut known = Known {
            references: &self.references,
            searches: &mut self.searches,
            learned: &self.learned,
            generation: self.generation,
        };
        self.painter.painted(id, low, &mut known)
    }

    /// Lets the references after a frame show what it has been given where they were not given anything themselves.
    fn pass_on(&mut self, id: u64) {
        let mut last = id;
        while let Some(next) = self.references.next_after(last) {
            last = next.id;
            let captured = self.references.before(last).iter().any(Reference::has_captured);
            if next.is_settled(captured) {
                continue;
            }
            let low = next.low.clone();
            let painted = self.show(last, &low);
            let base = self.painter.base(&low, &self.learned, None);
            if let Some(next) = self.references.get_mut(last) {
                next.repaint(&painted, &base, self.config.scale);
            }
        }
    }
}

/// Pictures that others than the history and VP9's own references hold: those of references, of the
/// picture on display, and one that is being decoded.
const MAX_LENT: usize = MOST + 4;

/// By cell, whether it lies outside the given tiles; `None` where all are given.
fn outside(tiles: &TileMap, width: usize, height: usize) -> Option<Vec<bool>> {
    let cells = |y: usize| {
        (0..width.div_ceil(CELL)).map(move |x| !tiles.contains(x * CELL / TILE, y * CELL / TILE))
    };
    (!tiles.is_full()).then(|| (0..height.div_ceil(CELL)).flat_map(cells).collect())
}

/// The limit of low pictures, so that no HR picture is larger than the largest anchor.
fn within(limit: SizeLimit, scale: usize) -> SizeLimit {
    let area = u64::from(MAX_AREA) / (scale * scale) as u64;
    SizeLimit { area: limit.area.min(area), ..limit }
}

/// The filters of a stream that has had no anchor.
fn fresh(config: &HybridConfig) -> Learned {
    if config.prior { Learned::with_prior(config.scale) } else { Learned::new(config.scale) }
}

#[cfg(test)]
mod carry_tests;
#[cfg(test)]
mod decay_tests;
#[cfg(test)]
mod rescale_tests;
#[cfg(test)]
mod still_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin_tests;
