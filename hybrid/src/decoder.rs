//! The hybrid decoder of one subscribed track: low layer and anchors in, HR pictures out.
//!
//! Source: NeuroScaler §6.1 (hybrid decoding), design.md *Reconstruction*. Frames come in decoding order and
//! anchors whenever they arrive: before their frame, with it, or late. An anchor makes its frame a reference, all of
//! it or by tiles. Every frame after it takes what fits from that picture, by dense flow straight from the reference.
//! So a late anchor has the effect of a timely one. The next frame, or [`HybridDecoder::refresh`] where none comes
//! soon, shows the effect.
//!
//! Without anchors pictures already have the detail that built-in filters predict: the first step of
//! every enhanced track, which costs the server nothing.
//!
//! An anchor passes through three files: `early` keeps it until its frame comes, `contents` decodes it, and
//! `reconstruction` makes references and filters of it.
//!
//! Bounds: [`HybridConfig::history`] frames are kept for late anchors; [`MAX_EARLY`] anchors, or parts of them, of
//! [`MAX_EARLY_BYTES`] wait for their frame; six references are held, each a high luma and a low picture; a network has
//! another high picture and a few rows. Nothing else grows, and between anchors nothing is allocated once all buffers
//! have their size.

mod contents;
mod early;
mod frame_network;
mod outcome;
mod reconstruction;

use crate::anchor::codec::MAX_AREA;
use crate::decay::DecaySum;
use crate::history::{Entry, History};
use crate::reconstruct::Rebuilder;
use crate::reconstruct::carry::effort::Effort;
use crate::reconstruct::carry::reference::MAX_REFERENCES;
use contents::AnchorReader;
use early::{EarlyAnchors, may_come};
pub use early::{MAX_EARLY, MAX_EARLY_BYTES};
use frame_network::FrameNetworks;
pub use outcome::{AnchorOutcome, FrameOutcome, HybridStats, KeptCells};
use reconstruction::Reconstruction;
use std::sync::Arc;
use windlass_network::Tier;
use windlass_types::message::ReassembledAnchor;
use windlass_types::{AnchorSource, SCALES};
use windlass_vp9::simd::Isa;
use windlass_vp9::{
    DecodeError, DecodedFrame, Decoder, FrameBuffer, FrameKind, Picture, PlaneSize, SizeLimit,
};

/// Maximum number of frames that [`HybridConfig::history`] may ask for.
pub const MAX_HISTORY: usize = 64;
/// Number of low pictures that are held outside of the history and VP9's own reference frames: those of the
/// references, that on display, and one that is being decoded.
const MAX_LENT: usize = MAX_REFERENCES + 4;

/// The settings of a [`HybridDecoder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HybridConfig {
    /// HR size over LR size, one of [`SCALES`].
    pub scale: usize,
    /// Number of frames kept for late anchors, 1 to [`MAX_HISTORY`]; beyond 16 only as many as fit into 16 MB. A
    /// captured anchor takes a second and more on a slow uplink.
    pub history: usize,
    /// Whether the built-in filters are used before anchors have taught any.
    pub prior: bool,
    /// Whether filters learn from captured anchors.
    pub learning: bool,
    /// The built-in network to run on every picture, at the scales that it is made for. No other result of the
    /// decoder depends on it.
    pub network: Option<Tier>,
    /// The SIMD instruction set to use.
    pub isa: Isa,
}

impl Default for HybridConfig {
    fn default() -> Self {
        Self {
            scale: 2,
            history: 48,
            prior: true,
            learning: true,
            network: None,
            isa: Isa::detect(),
        }
    }
}

/// Decodes one track: frames of the low layer and anchors in, HR pictures out.
///
/// ```
/// use windlass_hybrid::anchor::codec::Htj2k;
/// use windlass_hybrid::anchor::payload::{self, Packed};
/// use windlass_hybrid::{AnchorOutcome, Detail, HybridConfig, HybridDecoder};
/// use windlass_types::message::{AnchorHeader, HTJ2K, ReassembledAnchor};
/// use windlass_types::tiles::TileMap;
/// use windlass_types::{AnchorSource, Size};
///
/// // The first frame of an IVF file: a low picture of 161 × 91 samples.
/// let ivf = include_bytes!("../vp9/tests/fixtures/realtime.ivf");
/// let size = u32::from_le_bytes(ivf[32..36].try_into()?) as usize;
/// let mut decoder = HybridDecoder::new(HybridConfig { scale: 2, ..HybridConfig::default() });
/// let outcome = decoder.push_frame(3000, &ivf[44..44 + size])?;
/// assert!(outcome.key && !outcome.enhanced);
/// let filtered = decoder.hr().ok_or("no picture")?.clone();
/// assert_eq!((filtered.width(), filtered.height()), (322, 182));
///
/// // An anchor of this frame: all tiles of it are two grey levels lighter (detail is in sixteenths).
/// let detail = Detail::from_samples(322, 182, vec![32; 322 * 182]).ok_or("another number")?;
/// let tiles = TileMap::full(Size::new(161, 91));
/// let Packed { payload, tiled } = payload::pack(&tiles, Htj2k::encode(&detail, 90)?);
/// let header = AnchorHeader::new(HTJ2K, AnchorSource::Enhanced, 3000, Size::new(322, 182));
/// let anchor = ReassembledAnchor { header: AnchorHeader { tiled, ..header }, payload };
/// assert!(matches!(decoder.push_anchor(&anchor), AnchorOutcome::Applied { .. }));
/// assert!(decoder.refresh());
/// assert_ne!(decoder.hr(), Some(&filtered));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HybridDecoder {
    config: HybridConfig,
    /// The caller's limit for the size of low pictures.
    limit: SizeLimit,
    decoder: Decoder,
    history: History,
    early: EarlyAnchors,
    reader: AnchorReader,
    reconstruction: Reconstruction,
    /// Makes the picture on display.
    rebuilder: Rebuilder,
    /// The picture on display, before a network sees it.
    high: Picture,
    networks: FrameNetworks,
    /// Whether there is a picture on display.
    displayed: bool,
    /// The generation of the references and filters that `high` was made with.
    displayed_generation: u64,
    /// The epoch of the last anchor.
    epoch: Option<u16>,
    /// Size of the last low picture shown.
    size: Option<PlaneSize>,
    last_timestamp: Option<u32>,
    stats: HybridStats,
}

impl HybridDecoder {
    /// A decoder that waits for a key frame. A scale or history out of range is clamped.
    pub fn new(config: HybridConfig) -> Self {
        let scale = config.scale.clamp(*SCALES.start(), *SCALES.end());
        let history = config.history.clamp(1, MAX_HISTORY);
        let config = HybridConfig { scale, history, ..config };
        let lent = config.history + MAX_LENT;
        let limit = SizeLimit::default();
        let decoder = Decoder::with_isa(config.isa).lending(lent).limited(within(limit, scale));
        Self {
            config,
            limit,
            decoder,
            history: History::new(config.history),
            early: EarlyAnchors::default(),
            reader: AnchorReader::new(config.isa),
            reconstruction: Reconstruction::new(&config),
            rebuilder: Rebuilder::new(config.isa, config.scale),
            high: Picture::default(),
            networks: FrameNetworks::new(config.isa, config.network),
            displayed: false,
            displayed_generation: 0,
            epoch: None,
            size: None,
            last_timestamp: None,
            stats: HybridStats::default(),
        }
    }

    /// Makes the decoder refuse low pictures beyond `limit`.
    #[must_use]
    pub fn limited(mut self, limit: SizeLimit) -> Self {
        self.limit = limit;
        self.decoder.limit(within(limit, self.config.scale));
        self
    }

    /// Computes every picture completely, also where nothing has changed. The pictures stay the same: tests, fuzzing
    /// and the laboratory compare by it.
    #[must_use]
    pub fn making_all_anew(mut self) -> Self {
        self.rebuilder.always = true;
        self
    }

    /// Decodes one complete VP9 frame or superframe and rebuilds its HR picture.
    ///
    /// The caller must detect gaps: after one it must [`reset`](Self::reset) and wait for a key frame. After an error
    /// the decoder waits for a key frame by itself.
    ///
    /// # Errors
    ///
    /// Fails if the VP9 decoder refuses the frame ([`Decoder::decode`]).
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

    /// Takes the picture that another decoder made of a frame of the low layer, and rebuilds its HR picture: for codecs
    /// other than VP9. After a gap or an error of that decoder the caller must [`reset`](Self::reset).
    ///
    /// # Errors
    ///
    /// Fails with [`DecodeError::Size`] if the picture is larger than the limit.
    pub fn push_picture(
        &mut self,
        rtp_timestamp: u32,
        low: &Arc<FrameBuffer>,
    ) -> Result<FrameOutcome, DecodeError> {
        let (width, height) = (low.width() as u32, low.height() as u32);
        if !within(self.limit, self.config.scale).allows(width, height) {
            self.stats.errors += 1;
            self.forget();
            return Err(DecodeError::Size { width, height });
        }
        self.history.show(rtp_timestamp, low);
        self.follow(rtp_timestamp);
        let enhanced = self.display();
        self.stats.enhanced += u64::from(enhanced);
        Ok(FrameOutcome { shown: true, key: false, lr_width: width, lr_height: height, enhanced })
    }

    /// Takes the frames that another decoder made of a chunk of the low layer, and displays nothing: for a server's
    /// twin, where the layer is decoded anyway. After a gap or an error the caller must [`reset`](Self::reset).
    pub fn push_decoded(&mut self, rtp_timestamp: u32, frames: &[DecodedFrame]) {
        for frame in frames {
            self.history.push(rtp_timestamp, frame);
        }
        self.follow(rtp_timestamp);
    }

    /// The HR picture of a remembered frame, with all anchors so far; `None` for other frames. It replaces the picture
    /// on display.
    pub fn picture_at(&mut self, rtp_timestamp: u32) -> Option<&Picture> {
        let at = self.history.find(rtp_timestamp)?;
        self.rebuild(Some(at))?;
        self.hr()
    }

    /// For each tile of a remembered frame, row by row, the share of captured detail that no longer fits: 0 to 1, and
    /// 1 where there is none. `None` for other frames.
    pub fn lost(&mut self, rtp_timestamp: u32) -> Option<Vec<f64>> {
        let entry = self.history.entry(self.history.find(rtp_timestamp)?)?;
        Some(self.reconstruction.lost(entry.id(), &entry.low))
    }

    /// Brings all state up to a new frame.
    fn follow(&mut self, rtp_timestamp: u32) {
        self.stats.frames += 1;
        self.last_timestamp = Some(rtp_timestamp);
        let size = self.history.current().map(Entry::size);
        if size.is_some() && self.size.is_some() && size != self.size {
            // Another size is another camera or another rung: its pictures look different.
            self.reconstruction.forget_filters();
            self.reconstruction.forget_references();
            self.history.forget_other_sizes();
        } else if self.reconstruction.sources.is_taught() && self.history.is_cut() {
            // The former scene may come back: its references are kept, and not used while they do not fit.
            self.reconstruction.forget_filters();
        }
        self.size = size.or(self.size);
        let due = self.early.take_due(rtp_timestamp, |at| self.history.find(at).is_some());
        self.stats.too_old += due.dropped;
        for anchor in &due.anchors {
            self.push_anchor(anchor);
        }
    }

    /// Takes a complete anchor and makes its frame a reference. The picture on display stays until the next frame or
    /// [`refresh`](Self::refresh).
    pub fn push_anchor(&mut self, anchor: &ReassembledAnchor) -> AnchorOutcome {
        let outcome = match self.try_anchor(anchor) {
            Ok(frames_late) => AnchorOutcome::Applied { frames_late },
            Err(refused) => refused,
        };
        self.stats.count(outcome);
        outcome
    }

    /// Updates the picture on display where anchors have come since it was made, and returns whether it did. The
    /// next frame has the same effect: this is for when none is expected soon.
    pub fn refresh(&mut self) -> bool {
        let stale = self.is_stale();
        if stale {
            self.display();
        }
        stale
    }

    /// Whether [`refresh`](Self::refresh) would update the picture on display.
    pub fn is_stale(&self) -> bool {
        let generation = self.reconstruction.sources.generation;
        self.displayed
            && self.displayed_generation != generation
            && self.history.current().is_some()
    }

    /// The HR picture on display, if any frame was shown yet.
    pub fn hr(&self) -> Option<&Picture> {
        self.displayed.then(|| self.networks.shown().unwrap_or(&self.high))
    }

    /// Runs another built-in network on every picture from the next on, or none.
    pub fn set_network(&mut self, network: Option<Tier>) {
        if network != self.config.network {
            self.config.network = network;
            self.networks.set(network);
        }
    }

    /// The cells of the picture on display that no network makes better. A caller that runs a network of its own
    /// needs them.
    pub fn kept(&self) -> KeptCells {
        if !self.displayed {
            KeptCells::NoPicture
        } else if self.is_stale() {
            KeptCells::Stale
        } else {
            KeptCells::Flags(self.rebuilder.is_best(&self.reconstruction.sources))
        }
    }

    /// The low picture on display, bit-exact, while it is remembered.
    pub fn lr(&self) -> Option<&FrameBuffer> {
        self.history.current().map(|e| e.low.as_ref())
    }

    /// The counters since the decoder was made.
    pub fn stats(&self) -> HybridStats {
        self.stats
    }

    /// The decay that was measured so far (ARISE §4.3).
    pub fn decay(&self) -> DecaySum {
        self.reconstruction.decay.sum()
    }

    /// Forgets all frames and anchors; a key frame must come next. The last picture stays on
    /// display, and the counters go on.
    pub fn reset(&mut self) {
        self.decoder.reset();
        self.forget();
    }

    /// Makes HR pictures of another scale from now on, the nearest of [`SCALES`]. The low layer goes on without a key
    /// frame. References and filters of the former scale are forgotten, and anchors of this scale or a larger one are
    /// taken from now on. The picture on display stays until the next frame or [`refresh`](Self::refresh).
    pub fn rescale(&mut self, scale: usize) {
        let scale = scale.clamp(*SCALES.start(), *SCALES.end());
        if scale == self.config.scale {
            return;
        }
        self.config.scale = scale;
        self.decoder.limit(within(self.limit, scale));
        self.history.forget_anchors();
        self.rebuilder.rescale(scale);
        self.reconstruction.rescale(scale);
    }

    /// Sets how thoroughly motion from references is searched for, from the next picture on.
    pub fn set_effort(&mut self, effort: Effort) {
        let searches = &mut self.reconstruction.searches;
        if effort != searches.effort() {
            searches.set_effort(effort);
            self.rebuilder.forget();
        }
    }

    /// HR size over LR size: 2, 3 or 4.
    pub fn scale(&self) -> usize {
        self.config.scale
    }

    /// Forgets all frames and anchors.
    fn forget(&mut self) {
        self.history.clear();
        self.reconstruction.forget_references();
        self.early.clear();
        self.last_timestamp = None;
    }

    /// Makes the picture of the current frame, and returns whether anchors have a part in it.
    fn display(&mut self) -> bool {
        self.rebuild(None).is_some_and(|carried| carried || self.reconstruction.sources.is_taught())
    }

    /// Makes the picture of a frame in the history, or of the current one. Returns whether references have a part in
    /// it; `None` where there is no such frame.
    fn rebuild(&mut self, at: Option<usize>) -> Option<bool> {
        let entry = match at {
            Some(at) => self.history.entry(at),
            None => self.history.current(),
        }?;
        let Reconstruction { sources, searches, .. } = &mut self.reconstruction;
        let high = &mut self.high;
        let carried = self.rebuilder.rebuild(entry.id(), &entry.low, sources, searches, high);
        let (changed, best) = (self.rebuilder.changed(), || self.rebuilder.is_best(sources));
        self.networks.run(self.config.scale, &entry.low, high, changed, best);
        self.displayed = true;
        self.displayed_generation = sources.generation;
        Some(carried)
    }

    /// Applies an anchor. Returns how many frames had been displayed after the anchor's frame, or why it is not
    /// applied.
    fn try_anchor(&mut self, anchor: &ReassembledAnchor) -> Result<u32, AnchorOutcome> {
        let header = &anchor.header;
        if self.epoch.is_some_and(|last| (header.epoch.wrapping_sub(last) as i16) < 0) {
            return Err(AnchorOutcome::FormerEpoch);
        }
        let Some(at) = self.history.find(header.rtp_timestamp) else {
            if !may_come(header.rtp_timestamp, self.last_timestamp) {
                return Err(AnchorOutcome::TooOld);
            }
            self.stats.too_old += self.early.push(anchor);
            return Err(AnchorOutcome::Early);
        };
        let entry = self.history.entry_mut(at).ok_or(AnchorOutcome::TooOld)?;
        let references = &mut self.reconstruction.sources.references;
        // An enhanced anchor is of no use before six younger references. Those after a captured one take over its
        // pixels.
        if header.source == AnchorSource::Enhanced && references.are_beyond(entry.id()) {
            return Err(AnchorOutcome::TooOld);
        }
        let contents = self.reader.read(anchor, entry, self.config.scale, references)?;
        self.epoch = Some(header.epoch);
        entry.add_tiles(&contents.tiles, contents.source);
        self.reconstruction.add(entry.id(), &entry.low, contents);
        Ok(self.history.shown_after(at))
    }
}

/// The limit for low pictures with which no HR picture is larger than the largest anchor.
fn within(limit: SizeLimit, scale: usize) -> SizeLimit {
    let area = u64::from(MAX_AREA) / (scale * scale) as u64;
    SizeLimit { area: limit.area.min(area), ..limit }
}

#[cfg(test)]
mod carry_tests;
#[cfg(test)]
mod decay_tests;
#[cfg(test)]
mod frame_network_tests;
#[cfg(test)]
mod rescale_tests;
#[cfg(test)]
mod still_tests;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod twin_tests;
