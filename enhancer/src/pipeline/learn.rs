//! Learns weights of streams' networks from captured pictures.
//!
//! The learner has a thread at the lowest priority of all, and engines of its own. Workers hand it the pictures of
//! captured anchors and never wait for it. Samples for which there is no time or room are dropped and counted. After a
//! panic, the stream's network restarts its learning.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use rustix::time::{ClockId, clock_gettime};
use windlass_hybrid::Detail;
use windlass_hybrid::anchor::prior::Prior;
use windlass_hybrid::cells::Cells;
use windlass_hybrid::resample::{Scratch, lanczos, to_plane};
use windlass_sr::{Engine, InferError, Input, Luma, Model};
use windlass_types::Size;
use windlass_vp9::simd::Isa;
use windlass_vp9::{FrameBuffer, Plane, Samples};

use super::MAX_SCALE;
use super::Network;
use super::clock::Clock;
use super::job::Job;
use crate::learn::{Of, Progress, Report, TimeBudget, Trainer, Waiting, truth_of};
use crate::stats::{Stats, count};

/// Share of one core that learning may take, for all streams together.
const SHARE: f64 = 0.1;
/// Time over which [`SHARE`] is averaged.
const SPAN: Duration = Duration::from_secs(5);
/// Samples queued between workers and learner. Each holds three pictures.
pub(super) const QUEUE: usize = 4;
/// Maximum samples that wait for their turn.
const MAX_WAITING: usize = 8;
/// Maximum networks of streams that learn at a time. The sums of each take 0.4 MB, those of the largest built-in
/// network 1.4 MB.
const MAX_TRAINERS: usize = 32;
/// Time without a sample after which a network's sums may be evicted; its weights stay in use.
const IDLE: Duration = Duration::from_secs(60);
/// Pause of a stream's learning after its weights were given up.
const REST: Duration = Duration::from_secs(10);
/// Number of first samples of a network that also measure its worth. Each measurement takes one more inference.
const FIRST_MEASURED: u32 = 2;
/// After the first samples, one sample of this many measures the network's worth.
const MEASURE_EVERY: u32 = 4;
/// Maximum low pixels of pictures that are learned from: an HR picture of 1920×1080. The working memory is up to nine
/// planes of f32 at HR size.
const MAX_SAMPLES: usize = 960 * 540;
/// Interval of checks for streams that have ended.
const SWEEP: Duration = Duration::from_secs(2);

/// A training sample: a picture with known HR luma.
pub(super) struct Sample {
    progress: Weak<Progress>,
    of: Of,
    low: Arc<FrameBuffer>,
    /// Luma that subscribers saw of the picture before they were given its captured detail, for networks that take it.
    seen: Option<Plane>,
    high: Arc<FrameBuffer>,
}

/// The workers' end of the sample queue.
#[derive(Clone)]
pub(super) struct SampleQueue {
    pub samples: Sender<Sample>,
    pub clock: Clock,
    pub stats: Arc<Stats>,
}

impl SampleQueue {
    /// Hands in the job's captured picture of HR size, if its stream's network is to learn from it. To be called before
    /// the twin gets the anchor.
    pub(super) fn submit(&self, job: &Job, network: &Network) {
        let (Some(high), Some(model)) = (&job.captured, &network.model) else { return };
        let frame = &job.frame;
        if !frame.progress.due(self.clock.now()) {
            return;
        }
        let of = of(job);
        if of.size.pixels() as usize > MAX_SAMPLES || self.samples.is_full() {
            return count(&self.stats.counters.dropped_lessons);
        }
        let (low, high) = (frame.picture.clone(), high.clone());
        let seen = if model.architecture().has_twin() {
            let seen = frame.twin.start(frame.rtp_timestamp);
            // Forgotten, or the stream's scale has just changed.
            if seen.as_ref().map(Plane::size) != Some(high.size()) {
                return;
            }
            seen
        } else {
            None
        };
        let sample = Sample { progress: Arc::downgrade(&frame.progress), of, low, seen, high };
        if self.samples.try_send(sample).is_err() {
            count(&self.stats.counters.dropped_lessons);
        }
    }
}

/// Key of the weights that a job uses.
pub(super) fn of(job: &Job) -> Of {
    let picture = &job.frame.picture;
    Of { network: job.chosen.network, size: Size::saturating(picture.width(), picture.height()) }
}

/// Gives the engine the learned weights of the job's stream, or the generic ones if there are none. Returns whether
/// they are learned.
pub(super) fn equip(
    engine: &mut dyn Engine,
    network: &Network,
    job: &Job,
) -> Result<bool, InferError> {
    let Some(generic) = &network.model else { return Ok(false) };
    if let Some(own) = job.frame.progress.weights(of(job))
        && engine.swap(&own).is_ok()
    {
        return Ok(true);
    }
    let swapped = engine.swap(generic);
    swapped.map_err(|error| InferError::Device(error.to_string()))?;
    Ok(false)
}

/// The thread that trains streams' networks on the publishers' own pictures.
pub(super) struct Learner {
    pub samples: Receiver<Sample>,
    pub networks: Vec<Network>,
    pub enabled: Arc<AtomicBool>,
    pub clock: Clock,
    pub stats: Arc<Stats>,
}

/// The trainer of one stream's network at one size.
struct Place {
    progress: Weak<Progress>,
    of: Of,
    trainer: Trainer,
    trained: Instant,
    samples: u32,
}

/// The learner's state.
struct State {
    engines: Vec<Option<Box<dyn Engine>>>,
    places: Vec<Place>,
    /// The built-in filters by scale, made when they are first needed.
    priors: [Option<Prior>; MAX_SCALE + 1],
}

impl State {
    /// Whether a network runs on the learner's thread. It then costs the thread's CPU time, however long it waits for
    /// other threads. For a device, only the time by the clock is known.
    fn on_cpu(&self, network: usize) -> bool {
        let engine = self.engines.get(network).and_then(Option::as_ref);
        engine.is_some_and(|engine| engine.backend().starts_with("cpu"))
    }
}

/// CPU time that the calling thread has used so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

impl Learner {
    /// Runs until the workers are gone.
    pub(super) fn run(self) {
        let engines = self.networks.iter().map(|_| None).collect();
        let mut state = State { engines, places: Vec::new(), priors: Default::default() };
        let mut budget = TimeBudget::new(SHARE, SPAN, self.clock.now());
        let mut waiting = Waiting::new(MAX_WAITING);
        loop {
            let now = self.clock.now();
            let mut until = now + SWEEP;
            if !waiting.is_empty() {
                until = until.min(budget.ready_at(now));
            }
            match self.samples.recv_timeout(self.clock.until(until)) {
                Ok(sample) => {
                    if !waiting.put(sample.progress.as_ptr(), sample) {
                        count(&self.stats.counters.dropped_lessons);
                    }
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            state.places.retain(|place| place.progress.strong_count() > 0);
            let enabled = self.enabled.load(Ordering::Relaxed);
            waiting.retain(|sample: &Sample| enabled && sample.progress.strong_count() > 0);
            let started = self.clock.now();
            if budget.ready_at(started) > started {
                continue;
            }
            let trained = |sample: &Sample| sample.progress.upgrade().and_then(|p| p.trained());
            let Some(sample) = waiting.take(trained) else { continue };
            let before = cpu_time();
            self.turn(&mut state, &sample);
            let now = self.clock.now();
            let took = if state.on_cpu(sample.of.network) {
                cpu_time().saturating_sub(before)
            } else {
                now.saturating_duration_since(started)
            };
            budget.spend(now, took);
            *self.stats.learning.lock() += took;
        }
    }

    /// Trains a network with one sample.
    fn turn(&self, state: &mut State, sample: &Sample) {
        let Some(progress) = sample.progress.upgrade() else { return };
        if !progress.train(self.clock.now()) {
            return count(&self.stats.counters.dropped_lessons);
        }
        let trained = catch_unwind(AssertUnwindSafe(|| self.train(state, sample, &progress)));
        match trained {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(%error, "training sample refused");
                count(&self.stats.counters.infer_errors);
            }
            Err(_) => {
                count(&self.stats.counters.panics);
                state.engines[sample.of.network] = None;
                state.priors = Default::default();
                state.places.retain(|place| !place.is(sample));
                progress.put(sample.of, None);
                progress.rest(self.clock.now() + REST);
            }
        }
    }

    fn train(
        &self,
        state: &mut State,
        sample: &Sample,
        progress: &Arc<Progress>,
    ) -> Result<(), InferError> {
        let counters = &self.stats.counters;
        let network = &self.networks[sample.of.network];
        let Some(model) = &network.model else { return Ok(()) };
        let now = self.clock.now();
        let Some(place) = place(&mut state.places, sample, progress, model, now) else {
            count(&counters.dropped_lessons);
            return Ok(());
        };
        place.trained = now;
        let measures = place.samples < FIRST_MEASURED || place.samples % MEASURE_EVERY == 0;
        place.samples = place.samples.wrapping_add(1);
        let engine =
            state.engines[sample.of.network].get_or_insert_with(|| (network.engines)()).as_mut();
        let low = &sample.low.planes()[0];
        let low = Luma::new(low.samples(), low.width(), low.height(), low.stride())?;
        let high = &sample.high.planes()[0];
        let high = Luma::new(high.samples(), high.width(), high.height(), high.stride())?;
        let plain = (measures || sample.seen.is_some()).then(|| {
            let scale = model.architecture().scale;
            let prior = &mut state.priors[scale.min(MAX_SCALE)];
            let prior = prior.get_or_insert_with(|| Prior::new(Isa::detect(), scale));
            without_anchors(low.samples(), scale, prior)
        });
        let mut views = Vec::with_capacity(2);
        // Where the larger layer has ended, the twin soon shows nothing of it any more.
        for twin in sample.seen.iter().chain(plain.iter().filter(|_| sample.seen.is_some())) {
            let (width, height) = (twin.width(), twin.height());
            let twin = Luma::new(twin.samples(), width, height, twin.stride())?;
            views.push(Input { low, twin: Some(twin) });
        }
        if views.is_empty() {
            views.push(Input { low, twin: None });
        }
        // Before it is learned from: enhanced anchors are of pictures that nothing was learned from.
        if let Some(plain) = plain.as_ref().filter(|_| measures) {
            let used = progress.weights(sample.of);
            let used = used.as_ref().unwrap_or(model);
            let truth = truth_of(engine, used, model, views.last(), plain, high)?;
            if let Some(truth) = truth {
                progress.belief(sample.of, |belief| belief.learn(&truth));
            }
        }
        let report = place.trainer.train(engine, &views, high)?;
        count(&counters.lessons);
        match report {
            Report::Same => {}
            Report::Use(weights) => {
                count(&counters.learned);
                progress.put(sample.of, Some(weights));
            }
            Report::GivenUp => {
                count(&counters.learned_given_up);
                progress.put(sample.of, None);
                progress.rest(self.clock.now() + REST);
            }
        }
        Ok(())
    }
}

impl Place {
    fn is(&self, sample: &Sample) -> bool {
        self.progress.ptr_eq(&sample.progress) && self.of == sample.of
    }
}

/// Trainer for the sample's network; `None` if too many networks learn.
fn place<'a>(
    places: &'a mut Vec<Place>,
    sample: &Sample,
    progress: &Arc<Progress>,
    generic: &Arc<Model>,
    now: Instant,
) -> Option<&'a mut Place> {
    let known = places.iter().position(|place| place.is(sample));
    let n = if let Some(n) = known {
        n
    } else {
        if places.len() >= MAX_TRAINERS {
            let oldest = places.iter().enumerate().min_by_key(|(_, place)| place.trained);
            let (n, _) = oldest.filter(|(_, oldest)| now >= oldest.trained + IDLE)?;
            places.swap_remove(n);
        }
        let trainer = Trainer::new(generic.clone(), progress.weights(sample.of));
        places.push(Place {
            progress: sample.progress.clone(),
            of: sample.of,
            trainer,
            trained: now,
            samples: 0,
        });
        places.len() - 1
    };
    places.get_mut(n)
}

/// Luma that subscribers see of a low picture if the stream has had no anchors.
fn without_anchors(low: Samples<'_>, scale: usize, prior: &mut Prior) -> Plane {
    let mut seen = Detail::zero(scale * low.width, scale * low.height);
    let rows = 0..low.height;
    lanczos(Isa::detect(), low, scale, rows, seen.samples_mut(), &mut Scratch::default());
    prior.put_back(low, &mut seen, Cells::All);
    to_plane(&seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_sr::Architecture;

    fn model() -> Arc<Model> {
        Arc::new(Model::random(Architecture::chain(2, 8, 2), 1).expect("it runs"))
    }

    fn sample(progress: &Arc<Progress>, width: usize) -> Sample {
        let of = Of { network: 0, size: Size::saturating(width, 90) };
        let (low, high) =
            (Arc::new(FrameBuffer::grey(width, 90)), Arc::new(FrameBuffer::grey(2 * width, 180)));
        Sample { progress: Arc::downgrade(progress), of, low, seen: None, high }
    }

    #[test]
    fn only_so_many_networks_learn_at_a_time_and_idle_ones_make_room() {
        let (generic, start) = (model(), Instant::now());
        let streams: Vec<_> = (0..=MAX_TRAINERS).map(|_| Arc::<Progress>::default()).collect();
        let mut places = Vec::new();
        let mut sit = |stream: usize, now: Instant| {
            let sample = sample(&streams[stream], 160);
            let place = place(&mut places, &sample, &streams[stream], &generic, now);
            let seated = place.map(|place| place.trained = now).is_some();
            (seated, places.len())
        };
        for stream in 0..MAX_TRAINERS {
            let later = start + Duration::from_millis(stream as u64);
            assert_eq!(sit(stream, later), (true, stream + 1));
        }
        assert_eq!(sit(MAX_TRAINERS, start + IDLE / 2), (false, MAX_TRAINERS));
        assert_eq!(sit(1, start + IDLE / 2), (true, MAX_TRAINERS), "it has a place already");
        assert_eq!(
            sit(MAX_TRAINERS, start + IDLE),
            (true, MAX_TRAINERS),
            "the first has been idle"
        );
        assert_eq!(sit(0, start + IDLE), (false, MAX_TRAINERS));
    }

    #[test]
    fn another_size_begins_anew_and_all_goes_with_the_stream() {
        let (generic, now) = (model(), Instant::now());
        let (progress, mut places) = (Arc::<Progress>::default(), Vec::new());
        for (width, count) in [(160, 1), (320, 2), (160, 2)] {
            place(&mut places, &sample(&progress, width), &progress, &generic, now).unwrap();
            assert_eq!(places.len(), count);
        }
        drop(progress);
        places.retain(|place| place.progress.strong_count() > 0);
        assert!(places.is_empty(), "what a stream has learned goes with it");
    }
}
