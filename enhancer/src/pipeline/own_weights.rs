//! Weights for viewers: what streams' frame networks learn, from the learner's samples to the SFU.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use windlass_network::{Runner, Tier};
use windlass_types::weights::{NetworkId, OwnWeights};
use windlass_types::{EnhancerOutput, Epoch, Weights};
use windlass_vp9::simd::Isa;
use windlass_vp9::{Plane, Samples};

use super::learn::Sample;
use crate::learn::Progress;
use crate::learn::own_weights::{OwnWeightsTrainer, Verdict, View};
use crate::stats::{Stats, count};

/// Maximum streams whose networks learn at a time: the sums of each take 0.8 MB.
const MAX_STREAMS: usize = 32;
/// Time without a sample after which a stream's sums may be evicted.
const IDLE: Duration = Duration::from_secs(60);

/// The networks of one stream, of one size and scale.
struct Place {
    progress: Weak<Progress>,
    epoch: Epoch,
    size: (usize, usize),
    trainers: Vec<(NetworkId, OwnWeightsTrainer)>,
    taught: Instant,
}

/// Trains frame networks of all tiers, each stream's for itself.
pub(super) struct OwnWeightsLearner {
    runner: Runner,
    places: Vec<Place>,
    output: Sender<EnhancerOutput>,
    stats: Arc<Stats>,
}

impl OwnWeightsLearner {
    /// A learner that hands weights to `output`.
    pub(super) fn new(output: Sender<EnhancerOutput>, stats: Arc<Stats>) -> Self {
        Self { runner: Runner::new(Isa::detect()), places: Vec::new(), output, stats }
    }

    /// Forgets streams that have ended.
    pub(super) fn sweep(&mut self) {
        self.places.retain(|place| place.progress.strong_count() > 0);
    }

    /// Forgets what the sample's stream has learned, and takes it back from viewers.
    pub(super) fn give_up(&mut self, sample: &Sample) {
        let Some(at) = self.places.iter().position(|place| place.is(sample)) else { return };
        for (id, _) in self.places.swap_remove(at).trainers {
            self.send(sample, id, None);
        }
        self.runner = Runner::new(Isa::detect());
    }

    /// Trains with one sample. `plain`: what viewers see of it who have had no anchors.
    pub(super) fn lesson(&mut self, now: Instant, sample: &Sample, scale: usize, plain: &Plane) {
        let Some(at) = self.place(now, sample, scale) else { return };
        let low = Samples::from(&sample.low.planes()[0]);
        let wanted = Samples::from(&sample.high.planes()[0]);
        let seen = View { rebuilt: (&sample.seen.luma).into(), kept: Some(&sample.seen.kept) };
        let views = [seen, View { rebuilt: plain.into(), kept: None }];
        let differs = sample.seen.luma.samples() != plain.samples();
        let views = if differs { &views[..] } else { &views[1..] };
        let mut verdicts = Vec::new();
        for (id, trainer) in &mut self.places[at].trainers {
            verdicts.push((*id, trainer.lesson(now, &mut self.runner, low, views, wanted)));
        }
        for (id, verdict) in verdicts {
            match verdict {
                Verdict::Same => {}
                Verdict::Send(own) => self.send(sample, id, Some(own)),
                Verdict::TakeBack => self.send(sample, id, None),
            }
        }
    }

    /// Hands an update to the SFU. One that is dropped is made up for by the next.
    fn send(&self, sample: &Sample, network: NetworkId, own: Option<OwnWeights>) {
        let counters = &self.stats.counters;
        let counter = match own {
            Some(_) => &counters.own_weights,
            None => &counters.own_weights_taken_back,
        };
        let (stream, epoch) = (sample.stream, sample.epoch);
        let weights = Weights { stream, epoch, network, own };
        match self.output.try_send(EnhancerOutput::Weights(weights)) {
            Ok(()) => count(counter),
            Err(_) => count(&counters.dropped_output_queue),
        }
    }

    /// Where the sample's networks learn; `None` where there are none, or too many streams learn.
    fn place(&mut self, now: Instant, sample: &Sample, scale: usize) -> Option<usize> {
        // Another span is of another layer or size.
        self.places.retain(|place| {
            !place.progress.ptr_eq(&sample.progress) || place.is(sample) && place.scale() == Some(scale)
        });
        let known = self.places.iter().position(|place| place.is(sample));
        if let Some(at) = known {
            self.places[at].taught = now;
            return known;
        }
        if self.places.len() >= MAX_STREAMS {
            let oldest = self.places.iter().enumerate().min_by_key(|(_, place)| place.taught);
            let (at, _) = oldest.filter(|(_, oldest)| now >= oldest.taught + IDLE)?;
            self.places.swap_remove(at);
        }
        let trainers = networks_of(scale);
        if trainers.is_empty() {
            return None;
        }
        self.places.push(Place {
            progress: sample.progress.clone(),
            epoch: sample.epoch,
            size: sample.of.size,
            trainers,
            taught: now,
        });
        Some(self.places.len() - 1)
    }
}

impl Place {
    fn is(&self, sample: &Sample) -> bool {
        self.progress.ptr_eq(&sample.progress)
            && (self.epoch, self.size) == (sample.epoch, sample.of.size)
    }

    fn scale(&self) -> Option<usize> {
        self.trainers.first().map(|(id, _)| id.scale.into())
    }
}

/// Trainers of the built-in networks of a scale.
fn networks_of(scale: usize) -> Vec<(NetworkId, OwnWeightsTrainer)> {
    let tiers = Tier::ALL.into_iter().zip(0..);
    let networks = tiers.filter_map(|(tier, number)| {
        let network = tier.networks().iter().find(|network| network.scale() == scale)?;
        let id = NetworkId { tier: number, scale: u8::try_from(scale).ok()? };
        Some((id, OwnWeightsTrainer::new(network.clone())))
    });
    networks.collect()
}
