//! The network that runs on every frame, if the viewer has one. It changes only the displayed picture.
//!
//! References, filters and measurements use the rebuilt picture without the network. So the network may start, stop and
//! change between any two frames, and the server's twin does not need to know it.

use std::sync::Arc;

use windlass_network::{Changed, Network, Runner, Tier};
use windlass_vp9::simd::Isa;
use windlass_vp9::{FrameBuffer, Picture, Plane, Samples};

use crate::cells::CELL;

/// The networks of a decoder, and the picture that they made last.
pub(super) struct FrameNetworks {
    networks: &'static [Arc<Network>],
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
        let (networks, shown) = (of(tier), Picture::default());
        Self {
            networks,
            runner: Runner::new(isa),
            shown,
            best: Vec::new(),
            changed: Vec::new(),
            current: false,
        }
    }

    /// Uses the networks of another tier from the next picture on, or none.
    pub(super) fn set(&mut self, tier: Option<Tier>) {
        (self.networks, self.current) = (of(tier), false);
    }

    /// Makes the picture to show from a rebuilt one, if there is a network for the scale. `changed` has a flag for
    /// each cell: whether it has changed since the last call. `best` says where no network makes the picture better.
    pub(super) fn run(
        &mut self,
        scale: usize,
        low: &FrameBuffer,
        high: &Picture,
        changed: &[bool],
        best: impl FnOnce() -> Vec<bool>,
    ) {
        let Some(network) = self.networks.iter().find(|n| n.scale() == scale) else {
            self.current = false;
            return;
        };
        let best = best();
        if self.shown.size() != high.size() {
            self.shown = Picture::grey(high.width(), high.height());
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

/// The networks of a tier, by scale.
fn of(tier: Option<Tier>) -> &'static [Arc<Network>] {
    tier.map_or(&[], Tier::networks)
}

fn copy(from: &Plane, to: &mut Plane) {
    to.samples_mut().copy_from_slice(from.samples());
}
