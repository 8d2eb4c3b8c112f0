//! What a subscriber asks of one track: the *ladder* of rungs that it can be given, with bitrates and qualities.
//!
//! A ladder has the rungs whose layer is sent, up to the client's maximum. It leaves out rungs that a cheaper one
//! equals in quality, and anchors that are not worth their bytes beside the viewer's own network. Quality in the tile
//! is predicted ([`quality`]); bitrates of anchors are measured ([`anchor_costs`](super::anchor_costs)).
//!
//! A layer can have several temporal layers. Below the lowest rung then stands the same with fewer of them: a lower
//! frame rate comes before a pause.

use windlass_types::{Bitrate, Layer, Rung, Size};

use super::anchor_costs::AnchorCosts;
use super::quality::{self, Shown};
use crate::core::publisher::layers::ThinnedShares;

/// Share of the bandwidth estimate that the sum of rungs may use after a rise.
pub(super) const RISE_SHARE: f64 = 0.9;
/// Factor of the weight of rungs that a subscriber holds already. Above 1, so that rungs change seldom.
pub(super) const HELD_FACTOR: f64 = 4.0;
/// Points of quality by which another layer must be better than the held one, unless it is cheaper: a change costs a
/// key frame.
pub(super) const HELD_BONUS: f64 = 2.0;
/// Factor of the bitrate to probe for above the next rung's need, as room for swings.
const PROBE_MARGIN: f64 = 1.15;

/// Points that a track loses without all frames above temporal layer 0, and above 1. Not measured: they are above the
/// step from a quarter to a half layer, so that every track moves smoothly before any gets a better picture.
const THINNED_LOSS: [f64; 2] = [60.0, 30.0];

/// All rungs, lowest first.
const LADDER: [Rung; 5] = [Rung::Q, Rung::QPlus, Rung::H, Rung::HPlus, Rung::F];

/// The demand of one track.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    /// Maximum rung, from the client and its tile.
    pub max: Rung,
    /// Bitrate of each layer that is sent, smallest first.
    pub rates: [Option<Bitrate>; 3],
    /// Shares of each layer's bitrate up to its temporal layers.
    pub thinned: [ThinnedShares; 3],
    /// Size of each layer.
    pub sizes: [Size; 3],
    /// Expected anchor bitrates of each layer; `None`: the subscriber can get none.
    pub anchors: [Option<AnchorCosts>; 3],
    /// How the client shows the track.
    pub shown: Shown,
    /// The rung that is held now.
    pub current: Option<Rung>,
    /// Highest temporal layer of the held rung that is sent; `None`: all.
    pub max_temporal: Option<u8>,
    /// Bitrate of the smallest layer without its limit; `None`: it has none.
    pub unlimited: Option<Bitrate>,
    /// Weight among the subscriber's tracks.
    pub weight: f64,
}

/// Bandwidth estimates that one track needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BitrateNeeds {
    /// Bandwidth estimate that the held rung needs.
    pub held: Bitrate,
    /// Bandwidth estimate that the next better rung needs; `None`: there is none.
    pub next: Option<Bitrate>,
    /// Bandwidth estimate that the best rung needs.
    pub best: Bitrate,
}

/// The result for one track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// A rung.
    Rung(Rung),
    /// A rung up to a temporal layer, as the bandwidth does not suffice for all frames.
    Thinned(Rung, u8),
    /// Paused, as the bandwidth does not suffice.
    Paused,
    /// The track's rung stays as it is, as its publisher sends no layer.
    Silent,
}

/// A rung of a ladder, its bitrate, and its quality in points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub rung: Rung,
    /// Highest temporal layer; `None`: all.
    pub max_temporal: Option<u8>,
    pub rate: Bitrate,
    pub quality: f64,
}

impl Step {
    pub(super) fn grant(&self) -> Grant {
        match self.max_temporal {
            Some(layer) => Grant::Thinned(self.rung, layer),
            None => Grant::Rung(self.rung),
        }
    }
}

impl Demand {
    pub(super) fn step(&self, rung: Rung) -> Option<Step> {
        let layer = rung.layer();
        let anchors =
            if rung.enhanced() { self.anchors[layer as usize]? } else { AnchorCosts::default() };
        if rung > self.max || rung.enhanced() && !self.anchors_pay(layer) {
            return None;
        }
        let video = self.rates[layer as usize]?;
        let quality = quality::predict(
            self.sizes[layer as usize],
            video,
            rung.enhanced().then_some(anchors),
            self.shown,
        );
        Some(Step { rung, max_temporal: None, rate: video + anchors.sum(), quality })
    }

    /// A step without anchors and up to a temporal layer, if that takes less.
    fn thinned(&self, step: &Step, layer: u8) -> Option<Step> {
        let of = step.rung.layer() as usize;
        let share = *self.thinned[of].0.get(usize::from(layer))?;
        let rate = self.rates[of]?.mul_f64(share.into());
        let quality = step.quality - THINNED_LOSS.get(usize::from(layer))?;
        let rung = Rung::plain(step.rung.layer());
        (share < 1.0).then_some(Step { rung, max_temporal: Some(layer), rate, quality })
    }

    /// The step of a grant; `None` where nothing is sent.
    pub(super) fn granted(&self, grant: Grant) -> Option<Step> {
        match grant {
            Grant::Rung(rung) => self.beyond_max().step(rung),
            Grant::Thinned(rung, layer) => {
                let step = self.beyond_max().step(rung)?;
                Some(self.thinned(&step, layer).unwrap_or(step))
            }
            Grant::Paused | Grant::Silent => None,
        }
    }

    /// The step that is held now.
    pub(super) fn held(&self) -> Option<Step> {
        let rung = self.current?;
        self.granted(self.max_temporal.map_or(Grant::Rung(rung), |l| Grant::Thinned(rung, l)))
    }

    /// The demand without the client's maximum, where the publisher sends nothing up to that.
    fn beyond_max(&self) -> Demand {
        let within = LADDER.into_iter().any(|rung| self.step(rung).is_some());
        Demand { max: if within { self.max } else { Rung::F }, ..*self }
    }

    /// The place among the subscriber's tracks: the track of the greatest rank is never paused. Tracks that are shown
    /// come before new ones.
    pub(super) fn rank(&self) -> f64 {
        self.weight * if self.current.is_some() { HELD_FACTOR } else { 1.0 }
    }

    /// Whether a layer has anchors that are worth their bytes.
    pub(crate) fn anchors_pay(&self, layer: Layer) -> bool {
        let anchors = self.anchors[layer as usize];
        let size = self.sizes[layer as usize];
        anchors.is_some_and(|anchors| quality::anchors_pay(size, anchors, self.shown))
    }

    /// The bandwidth estimates that the track needs while it holds what it was granted.
    pub(crate) fn bitrate_needs(&self, grant: Grant) -> BitrateNeeds {
        let needs = |rate: Bitrate| rate.mul_f64(PROBE_MARGIN / RISE_SHARE);
        let granted = self.granted(grant);
        let held = granted.map_or(Bitrate::ZERO, |step| needs(step.rate));
        // Whether the connection carries more than a limit shows only where more is looked for.
        let smallest = granted.is_some_and(|step| step.rung.layer() == Layer::Q);
        let unlimited = self.unlimited.filter(|_| smallest);
        let ladder = self.ladder().into_iter().map(|step| step.rate);
        let rates: Vec<_> = ladder.chain(unlimited).map(needs).collect();
        let next = rates.iter().copied().filter(|rate| *rate > held).min();
        let best = rates.into_iter().max().unwrap_or_default();
        BitrateNeeds { held, next, best }
    }

    /// The ladder, each rung with more bitrate and quality than the one before. If no layer up to the maximum is sent,
    /// the smallest layer that is sent. Before the lowest rung comes the same with fewer temporal layers, where it has
    /// several.
    pub(super) fn ladder(&self) -> Vec<Step> {
        let rungs = self.rungs();
        let Some(lowest) = rungs.first() else { return rungs };
        let thinned = [0, 1].into_iter().filter_map(|layer| self.thinned(lowest, layer));
        thinned.chain(rungs.iter().copied()).collect()
    }

    fn rungs(&self) -> Vec<Step> {
        let mut ladder: Vec<_> = LADDER.into_iter().filter_map(|rung| self.step(rung)).collect();
        if ladder.is_empty() {
            let beyond = self.beyond_max();
            let plain = Layer::ALL.into_iter().find_map(|layer| beyond.step(Rung::plain(layer)));
            return plain.into_iter().collect();
        }
        let held = self.current.map(Rung::layer);
        for step in ladder.iter_mut().filter(|step| Some(step.rung.layer()) == held) {
            step.quality += HELD_BONUS;
        }
        ladder.sort_by(|a, b| a.rate.cmp(&b.rate).then(b.quality.total_cmp(&a.quality)));
        let mut best = f64::NEG_INFINITY;
        ladder.retain(|step| {
            let better = step.quality > best;
            best = best.max(step.quality);
            better
        });
        ladder
    }

    /// Whether a step takes no more than the held rung.
    pub(super) fn holds(&self, step: &Step) -> bool {
        let Some(current) = self.current else { return false };
        self.held().map_or(step.rung <= current, |held| step.rate <= held.rate)
    }

    /// Whether a grant lowers quality for less bitrate. (Other falls are the publisher's or the client's.)
    pub(super) fn falls_to(&self, grant: Grant) -> bool {
        let Some(held) = self.held() else { return false };
        match grant {
            Grant::Silent => false,
            Grant::Paused => true,
            Grant::Rung(_) | Grant::Thinned(..) => self
                .granted(grant)
                .is_some_and(|step| step.quality < held.quality && step.rate < held.rate),
        }
    }
}
