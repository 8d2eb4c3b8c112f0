//! Applies anchors to the references and filters from which HR pictures are made.

use std::sync::Arc;

use windlass_types::AnchorSource;
use windlass_vp9::{FrameBuffer, Samples};

use super::HybridConfig;
use super::contents::AnchorContents;
use crate::cells::Cells;
use crate::decay::DecayMeter;
use crate::reconstruct::Rebuilder;
use crate::reconstruct::carry::picture::CarriedPicture;
use crate::reconstruct::carry::reference::{AnchorPicture, Reference};
use crate::reconstruct::carry::searches::Searches;
use crate::reconstruct::learned;
use crate::reconstruct::sources::Sources;

/// The references and filters of one track, with what keeps them up to date.
pub(super) struct Reconstruction {
    /// The decoder's settings, at the present scale.
    config: HybridConfig,
    pub sources: Sources,
    pub searches: Searches,
    /// Makes pictures that are not displayed.
    pub painter: Rebuilder,
    pub decay: DecayMeter,
    scratch: learned::Scratch,
}

impl Reconstruction {
    pub(super) fn new(config: &HybridConfig) -> Self {
        Self {
            config: *config,
            sources: Sources::new(config.scale, config.prior),
            searches: Searches::default(),
            painter: Rebuilder::new(config.isa, config.scale),
            decay: DecayMeter::default(),
            scratch: learned::Scratch::default(),
        }
    }

    /// Forgets all references, as after a gap: the filters stay.
    pub(super) fn forget_references(&mut self) {
        self.sources.forget_references();
        self.decay.interrupt();
    }

    /// Forgets what anchors have taught the filters.
    pub(super) fn forget_filters(&mut self) {
        self.sources.forget_filters(self.config.scale);
    }

    /// Makes HR pictures of another scale from now on, and drops all references and filters of the former scale.
    pub(super) fn rescale(&mut self, scale: usize) {
        self.config.scale = scale;
        self.painter.rescale(scale);
        self.forget_references();
        self.forget_filters();
    }

    /// For each tile of a frame, the share of captured detail that no longer fits: 0 to 1, and 1 where there is none.
    pub(super) fn lost(&mut self, id: u64, low: &FrameBuffer) -> Vec<f64> {
        self.painter.lost(id, low, &self.sources, &mut self.searches)
    }

    /// Makes the frame `id` a reference, or adds an anchor's tiles to it if it is a reference already.
    pub(super) fn add(&mut self, id: u64, low: &Arc<FrameBuffer>, anchor: AnchorContents) {
        let before = self.picture_before(id, low, &anchor);
        let AnchorContents { source, tiles, mut detail, colour } = anchor;
        let captured = source == AnchorSource::Captured;
        let (isa, luma) = (self.config.isa, Samples::from(&low.planes()[0]));
        let mut mask = Vec::new();
        let cells = Cells::of_tiles(&tiles, low.width(), low.height(), &mut mask);
        // A still of some tiles teaches the filters too: by its new tiles alone, and older examples fade by their
        // share.
        if self.config.learning && captured {
            self.sources.learned.learn_from(isa, luma, &detail, cells, &mut self.scratch);
            self.sources.set_taught();
        }
        self.sources.learned.take_out(isa, luma, &mut detail, cells, &mut self.scratch);
        let base = self.painter.base(low, &self.sources.learned, None);
        let high = self.painter.base(low, &self.sources.learned, Some(&detail));
        let picture =
            AnchorPicture { high: &high, base: &base, colour, tiles: &tiles, captured, before };
        self.sources.references.add(id, low, picture, self.config.scale);
        self.update_after(id);
        self.sources.references.trim();
        self.sources.generation += 1;
    }

    /// The frame's picture before an anchor, where the reference needs it or the decay is measured.
    fn picture_before(
        &mut self,
        id: u64,
        low: &FrameBuffer,
        anchor: &AnchorContents,
    ) -> Option<CarriedPicture> {
        let references = &self.sources.references;
        let is_new = references.get(id).is_none();
        let (interval, captured_fits) = match anchor.source {
            AnchorSource::Captured => (None, false),
            AnchorSource::Enhanced => {
                (self.decay.interval(id), references.before(id).iter().any(Reference::has_captured))
            }
        };
        let needed = interval.is_some() || captured_fits || is_new && !anchor.tiles.is_full();
        let before = needed.then(|| self.carried_picture(id, low));
        if let (Some(interval), Some(before)) = (interval, &before) {
            let (luma, scale) = (Samples::from(&low.planes()[0]), self.config.scale);
            let AnchorContents { detail, tiles, .. } = anchor;
            self.decay.compare(interval, &before.luma, luma, detail, tiles, scale);
        }
        before
    }

    /// The picture of a frame, made from the references before it.
    fn carried_picture(&mut self, id: u64, low: &FrameBuffer) -> CarriedPicture {
        self.painter.carried_picture(id, low, &self.sources, &mut self.searches)
    }

    /// Carries a frame's new pixels on to the references after it, except where a better anchor gave their pixels.
    fn update_after(&mut self, id: u64) {
        let mut last = id;
        while let Some(next) = self.sources.references.next_after(last) {
            last = next.id;
            let before = self.sources.references.before(last);
            if next.is_settled(before.iter().any(Reference::has_captured)) {
                continue;
            }
            let low = next.low.clone();
            let carried = self.carried_picture(last, &low);
            let base = self.painter.base(&low, &self.sources.learned, None);
            if let Some(next) = self.sources.references.get_mut(last) {
                next.update(&carried, &base, self.config.scale);
            }
        }
    }
}
