//! The network that runs on every frame, where the viewer has one: what is shown is made of the rebuilt picture, and
//! nothing else is.
//!
//! References, filters and what is measured rest on the rebuilt picture alone. So a network may come, go and change
//! between any two frames, and the server's twin need not know of it.

use std::sync::Arc;

use windlass_network::{Changed, Network, Runner, Tier};
use windlass_vp9::simd::Isa;
use windlass_vp9::{FrameBuffer, Picture, Plane, Samples};

use super::own_weights::{OwnNetworks, WeightsOutcome};
use crate::cells::CELL;

/// The networks of a decoder, and the picture that they made last.
pub(super) struct FrameNetworks {
    tier: Option<Tier>,
    own: OwnNetworks,
    /// The network of the stream's own that made `shown`; `None`: a built-in one did.
    own_made: Option<Arc<Network>>,
    runner: Runner,
    shown: Picture,
    /// For each cell, whether `shown` is the rebuilt picture there, as no network makes it better.
    best: Vec<bool>,
    changed: Vec<bool>,
    /// Whether `shown` was made of the last rebuilt picture, by the present network.
    current: bool,
}

impl FrameNetworks {
    pub(super) fn new(isa: Isa, tier: Option<Tier>) -> Self {
        Self {
            tier,
            own: OwnNetworks::default(),
            own_made: None,
            runner: Runner::new(isa),
            shown: Picture::default(),
            best: Vec::new(),
            changed: Vec::new(),
            current: false,
        }
    }

    /// Uses the networks of another tier from the next picture on, or none.
    pub(super) fn set(&mut self, tier: Option<Tier>) {
        (self.tier, self.current) = (tier, false);
    }

    /// Takes a weights message; its effect comes with the next picture.
    pub(super) fn take_weights(&mut self, message: &[u8]) -> WeightsOutcome {
        self.own.take(message)
    }

    /// Forgets the stream's own weights from the next picture on.
    pub(super) fn forget_weights(&mut self) {
        self.own.clear();
    }

    /// Whether the picture to show was made by weights of the stream's own.
    pub(super) fn runs_own(&self) -> bool {
        self.current && self.own_made.is_some()
    }

    /// Makes the picture to show from a rebuilt one, if there is a network for the scale. `changed` has a flag for
    /// each cell: whether it has changed since the last call. `anchored`: anchors have a part in the rebuilt picture.
    /// `best` says where no network makes the picture better.
    pub(super) fn run(
        &mut self,
        scale: usize,
        low: &FrameBuffer,
        high: &Picture,
        changed: &[bool],
        anchored: bool,
        best: impl FnOnce() -> Vec<bool>,
    ) {
        let built_in = self.tier.and_then(|tier| {
            let network = tier.networks().iter().find(|n| n.scale() == scale)?;
            Some((tier, network))
        });
        let Some((tier, built_in)) = built_in else {
            self.current = false;
            return;
        };
        // The stream's own weights were proved on pictures without anchors.
        let own = (!anchored).then(|| self.own.of(tier, scale, Samples::from(&low.planes()[0])));
        let own = own.flatten();
        if own.as_ref().map(Arc::as_ptr) != self.own_made.as_ref().map(Arc::as_ptr) {
            // Another network makes all of the picture anew.
            (self.own_made, self.current) = (own, false);
        }
        let best = best();
        let size = (high.width(), high.height());
        if (self.shown.width(), self.shown.height()) != size {
            self.shown = Picture::grey(size.0, size.1);
            self.current = false;
        }
        let (low, luma) = (Samples::from(&low.planes()[0]), Samples::from(&high.y));
        let changed = if self.current && self.best.len() == best.len() {
            self.changed.clear();
            let differs = self.best.iter().zip(&best).map(|(was, is)| was != is);
            self.changed
                .extend(changed.iter().zip(differs).map(|(&changed, differs)| changed | differs));
            Changed::Cells { changed: &self.changed, side: CELL }
        } else {
            Changed::All
        };
        let network = self.own_made.as_ref().unwrap_or(built_in);
        self.runner.run(network, low, luma, changed, &mut self.shown.y);
        self.best = best;
        self.keep(scale, low, luma);
        copy(&high.u, &mut self.shown.u);
        copy(&high.v, &mut self.shown.v);
        self.current = true;
    }

    /// Takes the cells that no network makes better from the rebuilt picture.
    fn keep(&mut self, scale: usize, low: Samples<'_>, high: Samples<'_>) {
        let (columns, side) = (low.width.div_ceil(CELL), CELL * scale);
        let width = high.width;
        for (i, _) in self.best.iter().enumerate().filter(|(_, best)| **best) {
            let span = i % columns * side..(i % columns * side + side).min(width);
            let top = i / columns * side;
            for y in top..(top + side).min(high.height) {
                let to = &mut self.shown.y.samples_mut()[y * width..][span.clone()];
                to.copy_from_slice(&high.row(y)[span.clone()]);
            }
        }
    }

    /// The picture to show, if a network has made one of the last rebuilt picture.
    pub(super) fn shown(&self) -> Option<&Picture> {
        self.current.then_some(&self.shown)
    }
}

fn copy(from: &Plane, to: &mut Plane) {
    to.samples_mut().copy_from_slice(from.samples());
}
