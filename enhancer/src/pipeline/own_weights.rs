//! Weights for viewers: what streams' frame networks learn, from the learner's samples to the SFU.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use windlass_network::{Runner, Tier};
use windlass_types::weights::{NetworkId, OwnWeights};
use windlass_types::{EnhancerOutput, Epoch, StreamId, Weights};
use windlass_vp9::Samples;
use windlass_vp9::simd::Isa;

use super::captures::Captures;
use super::learn::Sample;
use crate::learn::Progress;
use crate::learn::own_weights::{Lesson, OwnWeightsTrainer, Verdict};
use crate::stats::{Stats, count};

/// Maximum streams whose networks learn at a time: the sums of each take 0.8 MB.
const MAX_STREAMS: usize = 32;
/// Time without a sample after which a stream's sums may be evicted.
const IDLE: Duration = Duration::from_secs(60);

/// Whose weights they are, and of which span.
#[derive(Clone, Copy)]
struct Span {
    stream: StreamId,
    epoch: Epoch,
}

/// The networks of one stream, of one size and scale.
struct Place {
    progress: Weak<Progress>,
    captures: Weak<Captures>,
    span: Span,
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

    /// Forgets streams that have ended, and takes weights back that nothing can prove as no captured pictures come.
    pub(super) fn sweep(&mut self, now: Instant) {
        self.places.retain(|place| place.progress.strong_count() > 0);
        let mut weights = Vec::new();
        for place in &mut self.places {
            if !place.captures.upgrade().is_some_and(|captures| captures.flow(now)) {
                let back = place.trainers.iter_mut().filter_map(|(id, trainer)| {
                    trainer.take_back().then(|| place.span.weights(*id, None))
                });
                weights.extend(back);
            }
        }
        self.send(weights);
    }

    /// Forgets what the sample's stream has learned, and takes it back from viewers.
    pub(super) fn give_up(&mut self, sample: &Sample) {
        let Some(at) = self.places.iter().position(|place| place.is(sample)) else { return };
        let Place { span, trainers, .. } = self.places.swap_remove(at);
        self.send(trainers.into_iter().map(|(id, _)| span.weights(id, None)).collect());
        self.runner = Runner::new(Isa::detect());
    }

    /// Trains with one sample.
    pub(super) fn lesson(&mut self, now: Instant, sample: &Sample) {
        let scale = sample.seen.luma.width() / sample.of.size.0.max(1);
        let Some(at) = self.place(now, sample, scale) else { return };
        let low = Samples::from(&sample.low.planes()[0]);
        let wanted = Samples::from(&sample.high.planes()[0]);
        let (rebuilt, kept) = ((&sample.seen.luma).into(), &sample.seen.kept[..]);
        let lesson = Lesson { low, rebuilt, kept, wanted };
        let place = &mut self.places[at];
        let mut weights = Vec::new();
        for (id, trainer) in &mut place.trainers {
            match trainer.lesson(now, &mut self.runner, lesson) {
                Verdict::Same => {}
                Verdict::Send(own) => weights.push(place.span.weights(*id, Some(own))),
                Verdict::TakeBack => weights.push(place.span.weights(*id, None)),
            }
        }
        self.send(weights);
    }

    /// Hands updates to the SFU. One that is dropped is made up for by the next.
    fn send(&self, updates: Vec<Weights>) {
        let counters = &self.stats.counters;
        for weights in updates {
            let counter = match weights.own {
                Some(_) => &counters.own_weights,
                None => &counters.own_weights_taken_back,
            };
            match self.output.try_send(EnhancerOutput::Weights(weights)) {
                Ok(()) => count(counter),
                Err(_) => count(&counters.dropped_output_queue),
            }
        }
    }

    /// Where the sample's networks learn; `None` where there are none, or too many streams learn.
    fn place(&mut self, now: Instant, sample: &Sample, scale: usize) -> Option<usize> {
        // Another span is of another layer or size.
        self.places.retain(|place| {
            !place.progress.ptr_eq(&sample.progress)
                || place.is(sample) && place.scale() == Some(scale)
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
            captures: sample.captures.clone(),
            span: Span { stream: sample.stream, epoch: sample.epoch },
            size: sample.of.size,
            trainers,
            taught: now,
        });
        Some(self.places.len() - 1)
    }
}

impl Span {
    fn weights(self, network: NetworkId, own: Option<OwnWeights>) -> Weights {
        Weights { stream: self.stream, epoch: self.epoch, network, own }
    }
}

impl Place {
    fn is(&self, sample: &Sample) -> bool {
        self.progress.ptr_eq(&sample.progress)
            && (self.span.epoch, self.size) == (sample.epoch, sample.of.size)
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
