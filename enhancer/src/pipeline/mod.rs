//! The enhancer's threads and the bounded queues between them.
//!
//! ```text
//! push ─▶ [queue] ─▶ decode (one thread a stream) ─▶ [queue] ─▶ select (one thread, every T_intv)
//!                        │ NeedKeyFrame                              │ chosen frames
//!                        ▼                                           ▼
//!                    [output] ◀── infer + encode (a pool of workers) ◀── [queue]
//!                                         │ captured pictures   ▲ weights
//!                                         ▼                     │
//!                                      [queue] ─▶ learn (one thread)
//! ```
//!
//! Decoding and encoding take a [slot](Slots) of the CPU first, so that no more of them run at once than it has cores.
//!
//! No queue is ever waited on when it is full: the frame is dropped and counted in
//! [`PipelineCounters`](crate::PipelineCounters). No thread's panic reaches another.
//! An anchor that cannot leave within [`EnhancerConfig::budget`] less
//! [`EnhancerConfig::delivery_allowance`] of its frame's arrival is dropped as early as that is known.

mod adapt;
mod anchors;
mod awaited;
mod capture;
mod captures;
mod clock;
mod decode;
mod enhance;
mod gpu_picture;
mod input;
mod job;
mod jobs;
mod key_anchor_throttle;
mod learn;
mod priority;
mod select;
mod slot_time;
mod slots;
mod stills;
#[cfg(test)]
mod tests;
mod tuning;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle, available_parallelism};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};
use thiserror::Error;
use windlass_sr::cuda::coder::Encoding;
use windlass_sr::{
    Engine, EngineChoice, InferError, Input, Luma, Model, NetworkChoice, NetworkError, Residual,
};
use windlass_types::tiles::TileMap;
use windlass_types::{EnhancerOutput, MAX_LR_PIXELS, Size};
use windlass_vp9::{Decoder, FrameBuffer, Picture};

use crate::stats::{EnhancerStats, NetworkStats, QueueLengths, Stats};
use crate::tiles::{RegionConfig, TileConfig};
use anchors::{Content, CpuStills, encode};
use clock::Clock;
use decode::DecoderFactory;
use input::{Intake, IntakeParts, join};
use jobs::Jobs;
use learn::Learner;
use select::Selector;
use windlass_scheduler::promise::promise_of_db;
use windlass_scheduler::slots::SlotConfig;
use windlass_scheduler::{NetworkCost, SchedulerConfig, Terms};
use worker::Worker;

pub use decode::tier_of;
pub use input::EnhancerInput;
pub use slots::{Slot, Slots, Stage};
use tuning::Live;
pub use tuning::Tuning;

/// Makes an engine for a worker, when it first needs one and after a panic.
pub type EngineFactory = Arc<dyn Fn() -> Box<dyn Engine> + Send + Sync>;

/// A network that can make anchors.
#[derive(Clone)]
pub struct Network {
    /// Name of the network: that of its model card in `models/`, or of its file.
    pub name: Arc<str>,
    /// Makes the engines that run the network.
    pub engines: EngineFactory,
    /// Generic weights of the network, with which learning begins. Without them nothing is learned.
    pub model: Option<Arc<Model>>,
}

/// Maximum scale of all networks.
const MAX_SCALE: usize = *windlass_types::SCALES.end();
/// Maximum decoded frames that wait for the scheduler's thread.
const SCHEDULE_QUEUE: usize = 256;
/// Assumed cost per LR pixel of a network that cannot be measured.
const GUESS: Duration = Duration::from_nanos(300);
/// Maximum chosen frames that wait, per worker. It is rarely reached: a frame that cannot meet its deadline is not
/// chosen.
const JOBS_PER_WORKER: usize = 32;
/// Workers per shared accelerator, unless the operator asks for more. This many pictures fill the accelerator's
/// launches while others are encoded.
const WORKERS_BY_ACCELERATOR: usize = 16;
/// Nice value of the learner's thread, added to that of the other threads.
const LEARN_LATER: u8 = 8;

/// The operator's configuration of the enhancer.
#[derive(Debug, Clone, PartialEq)]
pub struct EnhancerConfig {
    /// Maximum time from a frame's arrival at the SFU until its anchor is usable in the browser.
    pub budget: Duration,
    /// Part of the budget that is kept for pacing, network and browser.
    pub delivery_allowance: Duration,
    /// Choice of CPU or GPUs for the networks.
    pub engine: EngineChoice,
    /// Networks that may make anchors.
    pub network: NetworkChoice,
    /// Number of inference threads. With GPUs there are at least [`WORKERS_BY_ACCELERATOR`] for each, which mostly
    /// wait.
    pub threads: usize,
    /// Share of the inference threads' time that inference may take, 0 to 1.
    pub compute_cap: f64,
    /// T_intv: time between two selections of anchors.
    pub interval: Duration,
    /// Maximum anchors per frame of a stream, 0 to 1.
    pub anchor_fraction: f64,
    /// Limit of the policy `quality-sla`: maximum mean quality loss of a stream due to sharing accelerators, in dB.
    pub promise_db: f64,
    /// Quality of the encoded anchors, 1 to 100.
    pub anchor_quality: u8,
    /// Settings of which tiles of a chosen frame are worth sending.
    pub tiles: TileConfig,
    /// Settings of the requests for regions to publishers.
    pub regions: RegionConfig,
    /// Maximum streams decoded at once, each on its own thread.
    pub max_streams: usize,
    /// Bytes that all streams together may take, as [`windlass_scheduler::memory`] counts them.
    pub memory: u64,
    /// Maximum pixels of a low picture.
    pub max_pixels: u32,
    /// Maximum frames that wait for a stream's decoder.
    pub decode_queue: usize,
    /// Maximum outputs that wait for the SFU.
    pub output_queue: usize,
    /// Maximum frames and anchors that are decoded and encoded at once; 0 for the number of the machine's cores.
    pub cpu_tasks: usize,
    /// Whether networks learn from captured pictures, for enhanced anchors of the same stream.
    pub learn: bool,
    /// Nice value of all threads (Linux): on a busy machine, forwarding goes first.
    pub nice: u8,
}

impl Default for EnhancerConfig {
    fn default() -> Self {
        EnhancerConfig {
            budget: Duration::from_millis(200),
            delivery_allowance: Duration::from_millis(60),
            engine: EngineChoice::default(),
            network: NetworkChoice::default(),
            threads: available_parallelism().map_or(1, |n| (n.get() / 2).max(1)),
            compute_cap: 1.0,
            interval: Duration::from_millis(66),
            anchor_fraction: 0.033,
            promise_db: 0.5,
            anchor_quality: 85,
            tiles: TileConfig::default(),
            regions: RegionConfig::default(),
            max_streams: 64,
            memory: 1 << 30,
            max_pixels: MAX_LR_PIXELS,
            decode_queue: 16,
            output_queue: 128,
            cpu_tasks: 0,
            learn: true,
            nice: 2,
        }
    }
}

impl EnhancerConfig {
    fn timing(&self) -> Timing {
        Timing { budget: self.budget, delivery: self.delivery_allowance }
    }

    /// Raises the number of workers to what the accelerators need.
    fn with_workers_for(self, accelerators: Option<usize>) -> Self {
        let needed = WORKERS_BY_ACCELERATOR * accelerators.unwrap_or(0);
        EnhancerConfig { threads: self.threads.max(needed), ..self }
    }

    fn slots(&self) -> SlotConfig {
        let cores = available_parallelism().map_or(1, std::num::NonZero::get);
        SlotConfig {
            cap: if self.cpu_tasks == 0 { cores } else { self.cpu_tasks },
            // A thread waits for one at a time.
            max_waiting: self.threads,
            ..SlotConfig::default()
        }
    }

    fn validate(&self) -> Result<(), StartError> {
        let share = |v: f64| (0.0..=1.0).contains(&v);
        let faults = [
            (self.delivery_allowance >= self.budget, "the delivery allowance exceeds the budget"),
            (self.threads == 0, "there must be at least one inference thread"),
            (!share(self.compute_cap), "the compute cap must lie between 0 and 1"),
            (!share(self.anchor_fraction), "the anchor fraction must lie between 0 and 1"),
            (
                !(0.0..=20.0).contains(&self.promise_db),
                "the promised quality must lie between 0 and 20 dB",
            ),
            (self.interval.is_zero(), "the interval must be longer than zero"),
            (
                self.tiles.threshold.is_nan() || self.tiles.threshold < 0.0,
                "the tile threshold must not be below zero",
            ),
            (self.tiles.refresh.is_zero(), "the tiles' refresh must be longer than zero"),
            (self.output_queue == 0, "the output queue must hold something"),
        ];
        match faults.into_iter().find(|(fault, _)| *fault) {
            Some((_, reason)) => Err(StartError::Config(reason)),
            None => Ok(()),
        }
    }

    fn networks(&self) -> Result<Vec<Network>, NetworkError> {
        let choice = self.engine;
        let networks = self.network.models()?.into_iter().map(|(name, model)| {
            let weights = Some(model.clone());
            let engines: EngineFactory = Arc::new(move || choice.engine(model.clone()));
            Network { name, engines, model: weights }
        });
        Ok(networks.collect())
    }

    /// Measures what the networks cost on this machine, as a start of the enhancer does.
    ///
    /// # Errors
    ///
    /// Fails if a network cannot be read, or no engine runs it.
    pub fn calibrate(&self) -> Result<Vec<NetworkStats>, StartError> {
        let networks = self.networks()?;
        let Measured { costs, .. } = calibrate(&networks, self.anchor_quality, &Clock::default())?;
        Ok(named(&networks, &costs))
    }

    /// Configuration of the scheduler, for networks of the given costs.
    pub fn scheduler(&self, networks: Vec<NetworkCost>) -> SchedulerConfig {
        SchedulerConfig {
            interval: self.interval,
            devices: u32::try_from(self.threads).unwrap_or(u32::MAX),
            compute_cap: self.compute_cap,
            anchor_fraction: self.anchor_fraction,
            deadline: self.timing().deadline(),
            networks,
            terms: Terms { promise: promise_of_db(self.promise_db), ..Terms::default() },
            ..SchedulerConfig::default()
        }
    }
}

/// When a frame is too old to become an anchor.
#[derive(Debug, Clone, Copy)]
struct Timing {
    budget: Duration,
    delivery: Duration,
}

impl Timing {
    /// Maximum time from a frame's arrival to its anchor handed to the SFU.
    fn deadline(self) -> Duration {
        self.budget.saturating_sub(self.delivery)
    }

    /// Time by which the anchor of a frame that came at `arrival` must be handed over.
    fn deadline_of(self, arrival: Instant) -> Instant {
        arrival + self.deadline().min(Duration::from_secs(3_600))
    }
}

/// Why the enhancer could not start. The SFU then forwards without it.
#[derive(Debug, Error)]
pub enum StartError {
    /// The configuration contradicts itself, or a value is out of its range.
    #[error("the enhancer's settings cannot be used: {0}")]
    Config(&'static str),
    /// A network is not usable.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The system gives no more threads.
    #[error("the enhancer's threads cannot start: {0}; check the limits of threads and memory")]
    Thread(#[from] std::io::Error),
}

/// The running enhancer. Dropping it shuts it down.
///
/// ```
/// use std::time::Duration;
/// use windlass_enhancer::{Enhancer, EnhancerConfig, StartError};
///
/// let config = EnhancerConfig { threads: 1, ..EnhancerConfig::default() };
/// let enhancer = Enhancer::start(config.clone())?;
/// // The cost of each network on this machine was measured.
/// let stats = enhancer.stats();
/// assert!(stats.networks.iter().all(|network| network.per_pixel > Duration::ZERO));
/// assert!(stats.enabled && stats.streams == 0);
/// enhancer.set_enabled(false);
/// assert!(!enhancer.stats().enabled);
///
/// let hasty = EnhancerConfig { budget: config.delivery_allowance, ..config };
/// assert!(matches!(Enhancer::start(hasty), Err(StartError::Config(_))));
/// # Ok::<(), StartError>(())
/// ```
pub struct Enhancer {
    config: Arc<EnhancerConfig>,
    live: Live,
    intake: Arc<Intake>,
    output: Receiver<EnhancerOutput>,
    enabled: Arc<AtomicBool>,
    stats: Arc<Stats>,
    slots: Arc<Slots>,
    jobs: Arc<Jobs>,
    backend: &'static str,
    scale: usize,
    threads: Vec<JoinHandle<()>>,
}

impl Enhancer {
    /// Starts with the networks of the configuration, on the devices of the machine.
    ///
    /// # Errors
    ///
    /// Fails if the configuration contradicts itself, a network cannot be read or run, or the system gives no more
    /// threads.
    pub fn start(config: EnhancerConfig) -> Result<Self, StartError> {
        let networks = config.networks()?;
        Enhancer::start_with(config, &networks)
    }

    /// Starts with networks of the caller's choice, sorted by scale, then the cheapest and worst first.
    ///
    /// # Errors
    ///
    /// Fails if the configuration contradicts itself, the networks are none, not in this order or cannot be run, or the
    /// system gives no more threads.
    pub fn start_with(config: EnhancerConfig, networks: &[Network]) -> Result<Self, StartError> {
        let decoders: DecoderFactory = Arc::new(|limit| {
            let mut decoder = Decoder::with_limit(limit);
            Box::new(move |chunk| decoder.decode(chunk).map(<[_]>::to_vec))
        });
        Enhancer::start_parts(config, networks, decoders, Clock::default())
    }

    fn start_parts(
        config: EnhancerConfig,
        networks: &[Network],
        decoders: DecoderFactory,
        clock: Clock,
    ) -> Result<Self, StartError> {
        config.validate()?;
        let Measured { backend, costs, accelerators } =
            calibrate(networks, config.anchor_quality, &clock)?;
        let gpu = accelerators.and_then(|_| stills::on_gpu());
        let devices = accelerators.unwrap_or(config.threads);
        let config = Arc::new(config.with_workers_for(accelerators));
        let live = Live::new(&config);
        let of = |network: Option<&NetworkCost>| network.map_or(2, |network| network.scale);
        let (min_scale, max_scale) = (of(costs.first()), of(costs.last()));
        let stats = Arc::new(Stats::default());
        *stats.networks.lock() = named(networks, &costs);
        let slots = Arc::new(Slots::by(config.slots(), clock.clone()));
        let enabled = Arc::new(AtomicBool::new(true));
        let (frames_in, frames) = bounded(SCHEDULE_QUEUE);
        let (output_in, output) = bounded(config.output_queue);
        let max = JOBS_PER_WORKER * config.threads;
        let (jobs_in, jobs) = Jobs::new(&costs, max, config.timing().deadline(), clock.clone());
        let (finished_in, finished) = bounded((JOBS_PER_WORKER + 1) * config.threads);
        let intake = Arc::new(Intake::new(IntakeParts {
            config: config.clone(),
            live: live.clone(),
            min_scale,
            max_scale,
            devices,
            clock: clock.clone(),
            stats: stats.clone(),
            slots: slots.clone(),
            decoders,
            enabled: enabled.clone(),
            frames: frames_in,
            output: output_in.clone(),
        }));
        let mut enhancer = Enhancer {
            config: config.clone(),
            live: live.clone(),
            intake,
            output,
            enabled: enabled.clone(),
            stats: stats.clone(),
            slots: slots.clone(),
            jobs: jobs.clone(),
            backend,
            scale: min_scale,
            threads: Vec::new(),
        };
        let selector = Selector {
            config: SchedulerConfig {
                devices: u32::try_from(devices).unwrap_or(u32::MAX),
                ..config.scheduler(costs.clone())
            },
            live: live.clone(),
            regions: config.regions,
            clock: clock.clone(),
            output: output_in.clone(),
            frames,
            finished,
            jobs: jobs_in,
            decays: enhancer.intake.decays.clone(),
            enabled: enabled.clone(),
            stats: stats.clone(),
        };
        enhancer.spawn("select".to_owned(), config.nice, move || selector.run())?;
        let (samples_in, samples) = bounded(learn::QUEUE);
        let sample_queue =
            learn::SampleQueue { samples: samples_in, clock: clock.clone(), stats: stats.clone() };
        let sample_queue = config.learn.then_some(sample_queue);
        for n in 0..config.threads {
            let worker = Worker {
                jobs: jobs.clone(),
                finished: finished_in.clone(),
                output: output_in.clone(),
                enabled: enabled.clone(),
                gpu: gpu.clone(),
                live: live.clone(),
                clock: clock.clone(),
                stats: stats.clone(),
                slots: slots.clone(),
                networks: networks.to_vec(),
                samples: sample_queue.clone(),
            };
            enhancer.spawn(format!("infer-{n}"), config.nice, move || worker.run())?;
        }
        if config.learn {
            let (networks, enabled, stats) = (networks.to_vec(), enabled.clone(), stats.clone());
            let learner = Learner { samples, networks, enabled, clock, stats };
            let nice = config.nice.saturating_add(LEARN_LATER);
            enhancer.spawn("learn".to_owned(), nice, move || learner.run())?;
        }
        tracing::info!(backend, threads = config.threads, accelerators, "enhancer started");
        log_costs(networks, &costs);
        Ok(enhancer)
    }

    fn spawn(
        &mut self,
        name: String,
        nice: u8,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), StartError> {
        let thread = Builder::new().name(name).spawn(move || {
            priority::lower(nice);
            run();
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Smallest scale of anchors: HR width over LR width. With networks of several scales, [`EnhancerOutput::Scale`]
    /// tells which streams have a larger one.
    pub fn scale(&self) -> usize {
        self.scale
    }

    /// Entry for the frames of taps.
    pub fn input(&self) -> EnhancerInput {
        EnhancerInput::new(self.intake.clone())
    }

    /// Queue of anchors and key frame requests. Clones share it; each output goes to one of them.
    pub fn output(&self) -> Receiver<EnhancerOutput> {
        self.output.clone()
    }

    /// Snapshot of what the enhancer has done so far.
    pub fn stats(&self) -> EnhancerStats {
        let standing = self.intake.standing();
        EnhancerStats {
            enabled: self.enabled.load(Ordering::Relaxed),
            backend: self.backend,
            streams: self.intake.streams(),
            refused: standing.refused,
            slots_demand: standing.load,
            memory: standing.memory,
            max_memory: self.config.memory,
            slots: self.slots.stats(),
            queues: self.queues(),
            compute_capacity: self.intake.compute_capacity(),
            ..self.stats.snapshot()
        }
    }

    fn queues(&self) -> QueueLengths {
        let (decode, schedule) = self.intake.queued();
        QueueLengths { decode, schedule, infer: self.jobs.len(), output: self.output.len() }
    }

    /// Switches enhancement on or off. Off: decoders stop, waiting work is dropped, and nothing comes out any more. On
    /// again: streams go on at their next key frame, which is asked for.
    pub fn set_enabled(&self, enabled: bool) {
        self.enabled.store(enabled, Ordering::Relaxed);
        if !enabled {
            self.intake.clear();
        }
    }

    /// Applies another tuning from now on, unless it is invalid.
    ///
    /// # Errors
    ///
    /// Fails if the configuration with this tuning contradicts itself; the former one then stays.
    pub fn tune(&self, tuning: Tuning) -> Result<(), StartError> {
        self.live.set(&self.config, tuning)
    }

    /// Stops all threads and waits for them. Inputs that are still held take nothing any more.
    pub fn shutdown(self) {
        drop(self);
    }
}

impl Drop for Enhancer {
    fn drop(&mut self) {
        self.enabled.store(false, Ordering::Relaxed);
        self.intake.close();
        for thread in self.threads.drain(..) {
            join(thread, &self.stats);
        }
    }
}

/// Measurements of the networks on this machine, before any stream has come.
struct Measured {
    backend: &'static str,
    costs: Vec<NetworkCost>,
    /// Number of accelerators that all workers share; `None` if they share none.
    accelerators: Option<usize>,
}

fn named(networks: &[Network], costs: &[NetworkCost]) -> Vec<NetworkStats> {
    let pairs = networks.iter().zip(costs);
    let named = pairs.map(|(network, &NetworkCost { scale, per_pixel })| {
        let name = network.name.clone();
        NetworkStats { name, scale, per_pixel, ..NetworkStats::default() }
    });
    named.collect()
}

fn log_costs(networks: &[Network], costs: &[NetworkCost]) {
    for (network, &NetworkCost { scale, per_pixel }) in networks.iter().zip(costs) {
        let ns_per_pixel = per_pixel.as_nanos() as u64;
        tracing::info!(network = &*network.name, scale, ns_per_pixel, "network measured");
    }
}

/// Measures each network by a few runs, in far less than a second altogether.
fn calibrate(networks: &[Network], quality: u8, clock: &Clock) -> Result<Measured, StartError> {
    let (mut backend, mut accelerators) = (None, None);
    let mut costs: Vec<NetworkCost> = Vec::new();
    for network in networks {
        let mut engine = (network.engines)();
        backend = backend.or(Some(engine.backend()));
        let scale = engine.scale();
        if costs.last().is_some_and(|last| scale < last.scale) {
            return Err(StartError::Config("networks must come by scale, the least first"));
        }
        accelerators = accelerators.max(engine.accelerators());
        let per_pixel = if engine.on_cpu() {
            measure(engine.as_mut(), quality, clock)
        } else {
            measure_accelerator(engine.as_mut(), clock)
        };
        costs.push(NetworkCost { scale, per_pixel });
    }
    let backend = backend.ok_or(StartError::Config("there must be a network"))?;
    Ok(Measured { backend, costs, accelerators })
}

/// Measures inference and encoding time per LR pixel on this machine: a first guess for the scheduler.
fn measure(engine: &mut dyn Engine, quality: u8, clock: &Clock) -> Duration {
    let (low, scale) = (FrameBuffer::grey(160, 90), engine.scale());
    let seen = Picture::grey(scale * 160, scale * 90).y;
    let tiles = TileMap::full(Size::new(160, 90));
    let mut residual = Residual::default();
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let started = clock.now();
        let detail = enhance::super_resolve(&low, &seen, &tiles, engine, &mut residual);
        let coded = detail.ok().and_then(|detail| {
            let coding = Encoding { quality, max_bytes: usize::MAX };
            let content = Content { detail, colour: None };
            encode(coding, content, &tiles, scale, &mut CpuStills).ok()
        });
        if coded.is_some() {
            best = best.min(clock.since(started));
        }
    }
    if best == Duration::MAX {
        return GUESS;
    }
    best / (160 * 90)
}

/// Measures accelerator time per LR pixel, with many pictures at once. Encoding does not count: it is the CPU's. An
/// accelerator that takes long for a few small pictures gets no larger ones.
fn measure_accelerator(engine: &mut dyn Engine, clock: &Clock) -> Duration {
    /// Number of pictures that are inferred at once.
    const PICTURES: usize = 16;
    /// Time for the small pictures beyond which the larger ones are not tried.
    const LONG: Duration = Duration::from_millis(20);
    let mut best = GUESS;
    for (width, height) in [(64, 36), (320, 180)] {
        let low = vec![128; width * height];
        let high = Picture::grey(engine.scale() * width, engine.scale() * height).y;
        let input = (|| {
            let twin = Luma::packed(high.samples(), high.width(), high.height())?;
            let twin = engine.architecture().has_twin().then_some(twin);
            Ok::<_, InferError>(Input { low: Luma::packed(&low, width, height)?, twin })
        })();
        let Ok(input) = input else { break };
        let mut out = vec![Residual::default(); PICTURES];
        let mut min = Duration::MAX;
        for _ in 0..3 {
            let started = clock.now();
            if engine.infer_batch(&[input; PICTURES], &mut out).is_err() {
                return best;
            }
            min = min.min(engine.take_time().unwrap_or_else(|| clock.since(started)));
            if min > LONG {
                break;
            }
        }
        best = min / (PICTURES * width * height) as u32;
        if min > LONG {
            break;
        }
    }
    best
}
