//! Counters of what the enhancer did, and latencies of its stages.
//!
//! Counters and histograms are atomics that any thread adds to; [`EnhancerStats`] is a snapshot.
//! Every place that drops something has a counter of its own, named by stage.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use windlass_scheduler::SchedulerCounters;
use windlass_types::{Latencies, SharedLatencies};

/// The metric of a counter.
macro_rules! metric {
    ($name:ident) => {
        concat!("windlass_enhancer_", stringify!($name), "_total")
    };
}

/// Defines the counters once: as atomics to add to, and as plain numbers to read.
macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Counters of the pipeline since its start.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct PipelineCounters {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl PipelineCounters {
            /// What each counter counts, by its metric.
            pub fn help() -> Vec<(&'static str, &'static str)> {
                vec![$((metric!($name), concat!($($doc),+).trim_ascii()),)+]
            }

            /// Every counter with its metric.
            pub fn entries(&self) -> Vec<(&'static str, u64)> {
                vec![$((metric!($name), self.$name),)+]
            }
        }

        /// The counters that threads add to.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub $name: AtomicU64,)+
        }

        impl Counters {
            fn snapshot(&self) -> PipelineCounters {
                PipelineCounters { $($name: self.$name.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

counters! {
    /// Frames that the tap handed over.
    frames_in,
    /// Frames ignored because enhancement was switched off.
    dropped_disabled,
    /// Frames of streams beyond the limit on streams.
    dropped_stream_limit,
    /// Frames of streams that the CPU has no time to decode.
    dropped_cpu,
    /// Frames of streams that do not fit into the memory.
    dropped_memory,
    /// Frames of streams whose pictures are larger than those that are enhanced.
    dropped_size,
    /// Times that a stream's enhancement was ended to free time, memory or a place.
    given_up,
    /// Frames dropped because their decoder's queue was full.
    dropped_decode_queue,
    /// Frames that waited for their decoder when it was stopped.
    dropped_stopped,
    /// Gaps that the tap reported.
    gaps,
    /// Frames skipped while waiting for a key frame.
    dropped_waiting_key,
    /// Frames decoded.
    decoded,
    /// Frames that could not be decoded.
    decode_errors,
    /// Key frames requested.
    key_requests,
    /// Decoded frames too old to become anchors.
    late_decode,
    /// Decoded frames dropped because the scheduler's queue was full.
    dropped_schedule_queue,
    /// Chosen frames that became no anchors, as no tile was worth sending again.
    unchanged,
    /// Frames super-resolved to measure whether their streams' anchors gain quality again.
    probes,
    /// Chosen frames that became no anchors, as their streams' anchors gain nothing. These are most probes, and frames
    /// whose publisher's own picture did not come.
    worthless,
    /// Chosen frames dropped because the workers' queue was full.
    dropped_infer_queue,
    /// Chosen frames that came too late for inference.
    late_infer,
    /// Pictures that the engine refused.
    infer_errors,
    /// Tiles left out of anchors because subscribers' pictures show them equally well without.
    tiles_known,
    /// Frames that became no anchors because subscribers' pictures showed all their chosen tiles equally well without.
    known,
    /// Anchors that could not be encoded, or came out too large to send.
    encode_errors,
    /// Anchors that were finished too late to be sent.
    late_encode,
    /// Anchors that the GPU encoded.
    gpu_coded,
    /// Anchors that a GPU super-resolved and encoded without copying the picture to the CPU.
    gpu_held,
    /// Anchors that the CPU had to encode in the GPU's place.
    gpu_not_coded,
    /// Anchors dropped because nobody took them.
    dropped_anchors,
    /// Other outputs dropped because nobody took them.
    dropped_output_queue,
    /// Requests for key anchors, which need no other anchor. One anchor answers many requests.
    key_anchor_requests,
    /// Frames at HR size that the tap handed over, for captured anchors.
    captured_in,
    /// Gaps in the frames at HR size that the tap handed over.
    captured_gaps,
    /// Frames at HR size dropped because their decoder's queue was full.
    dropped_capture_queue,
    /// Frames at HR size decoded.
    captured_decoded,
    /// Frames at HR size that could not be decoded.
    captured_decode_errors,
    /// Stills of publishers that the SFU passed to subscribers without the enhancer.
    given,
    /// Changes of the layers, bitrates and frame rates that publishers are asked to send.
    knobs,
    /// Changes of the factor by which streams are enlarged.
    rescales,
    /// Requests to publishers for stills of regions.
    region_requests,
    /// Anchors handed to the SFU.
    anchors,
    /// Captured anchors handed to the SFU: made of the publisher's own pixels.
    captured_anchors,
    /// Key anchors handed to the SFU: they give all tiles and rest on no other.
    key_anchors,
    /// Bytes of all anchors handed to the SFU.
    anchor_bytes,
    /// Captured pictures that the networks of their streams learned from.
    lessons,
    /// Captured pictures that networks did not learn from, as the queue was full or the picture too large.
    dropped_lessons,
    /// Times that learned weights were put into use.
    learned,
    /// Times that learned weights were given up because they made a new picture worse.
    learned_given_up,
    /// Anchors made by learned weights.
    learned_anchors,
    /// Panics caught, of any thread.
    panics,
}

/// Latencies of the anchors that were handed over, by stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StageLatencies {
    /// Arrival to decoded (every decoded frame).
    pub decode: Latencies,
    /// Decoded to chosen.
    pub schedule: Latencies,
    /// Chosen to super-resolved, queueing included.
    pub infer: Latencies,
    /// Super-resolved to encoded.
    pub encode: Latencies,
    /// Arrival to handed over.
    pub total: Latencies,
}

/// A network that makes anchors, and its statistics.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkStats {
    /// Name of the network.
    pub name: Arc<str>,
    /// Scale of the network: HR width over LR width.
    pub scale: usize,
    /// Time per LR pixel for inference and encoding, as measured at the start.
    pub per_pixel: Duration,
    /// Streams whose anchors this network makes.
    pub streams: usize,
    /// Anchors of this network that were handed to the SFU.
    pub anchors: u64,
}

/// Waiting times and refusals of a stage that runs on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StageSlots {
    /// Name of the stage.
    pub stage: &'static str,
    /// Time that the stage's tasks waited for a slot.
    pub wait: Latencies,
    /// Tasks refused as lost causes.
    pub refused: u64,
    /// Tasks that began too late to end in time, and had to run.
    pub late: u64,
}

/// State of the CPU's slots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlotStats {
    /// Number of slots.
    pub cap: usize,
    /// Tasks that have a slot now.
    pub running: usize,
    /// Tasks that wait for a slot now.
    pub waiting: usize,
    /// The stages that run in slots, each with its waiting times.
    pub stages: Vec<StageSlots>,
}

/// Number of entries in the pipeline's queues now. Each queue is bounded; what does not fit is dropped and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueLengths {
    /// Encoded frames that wait for their decoders, over all streams.
    pub decode: usize,
    /// Decoded frames that wait for the selection's thread.
    pub schedule: usize,
    /// Chosen frames that wait for the inference threads.
    pub infer: usize,
    /// Anchors and requests that wait for the SFU.
    pub output: usize,
}

/// A snapshot of what the enhancer did so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EnhancerStats {
    /// Whether enhancement is switched on.
    pub enabled: bool,
    /// Backend that runs the networks, such as `cpu-avx512`.
    pub backend: &'static str,
    /// Streams with a decoder now.
    pub streams: usize,
    /// Streams that are refused now, because time, memory or places go to streams with fairer claims.
    pub refused: usize,
    /// Bytes of memory that streams take, as they are counted.
    pub memory: u64,
    /// Maximum of `memory`.
    pub max_memory: u64,
    /// Load of decoding and encoding on the CPU's slots. It may exceed 1; beyond 0.6 new streams are refused.
    pub slots_demand: f64,
    /// The networks, by scale, then the cheapest first.
    pub networks: Vec<NetworkStats>,
    /// Counters of the pipeline.
    pub counters: PipelineCounters,
    /// Counters of the scheduler's decisions.
    pub scheduler: SchedulerCounters,
    /// Number of inferences side by side that would give all streams the anchors that their fractions allow:
    /// NeuroScaler §5.2's signal for autoscaling.
    pub devices_wanted: u64,
    /// Seconds of accelerators per second that would give all streams the anchors that their fractions allow:
    /// `devices_wanted` before rounding, and without its cap.
    pub compute_demand: f64,
    /// Number of streams whose promised quality is kept.
    pub promised: u64,
    /// Number of streams that were refused the promise.
    pub promise_refused: u64,
    /// Number of streams that make no enhanced anchors but probes, because they were worth nothing lately.
    pub held_back: u64,
    /// Mean worth of enhanced anchors lately in dB, over the time that they are shown and over streams.
    pub worth_db: Option<f64>,
    /// Latencies by stage.
    pub latency: StageLatencies,
    /// State of the CPU's slots.
    pub slots: SlotStats,
    /// Lengths of the queues now.
    pub queues: QueueLengths,
    /// Time that inference threads worked on each picture.
    pub compute: Latencies,
    /// Time that inference threads may work in one second: threads × cap, in seconds.
    pub compute_capacity: f64,
    /// Time that learning took: CPU time, or time by the clock for a network on a GPU.
    pub learning: Duration,
}

/// Everything that the pipeline's threads record.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub counters: Counters,
    pub decode: SharedLatencies,
    pub schedule: SharedLatencies,
    pub infer: SharedLatencies,
    pub encode: SharedLatencies,
    pub total: SharedLatencies,
    /// Time that inference threads worked on each job.
    pub compute: SharedLatencies,
    /// Counters of the scheduler, as of its last tick.
    pub scheduler: parking_lot::Mutex<SchedulerCounters>,
    /// Number of accelerators that would give all streams the anchors that their fractions allow.
    pub devices_wanted: AtomicU64,
    /// Microseconds of accelerators per second that would give all streams the anchors that their fractions allow.
    pub compute_demand_us: AtomicU64,
    /// Streams whose promised quality is kept.
    pub promised: AtomicU64,
    /// Streams that were refused the promised quality.
    pub refused: AtomicU64,
    /// Streams that make no enhanced anchors but probes.
    pub held_back: AtomicU64,
    /// Mean worth of enhanced anchors lately, in dB.
    pub worth_db: parking_lot::Mutex<Option<f64>>,
    /// Statistics of the networks, as of the scheduler's last tick.
    pub networks: parking_lot::Mutex<Vec<NetworkStats>>,
    /// Time that learning has taken so far.
    pub learning: parking_lot::Mutex<Duration>,
}

impl Stats {
    /// A snapshot of counters and latencies; the pipeline fills in the rest.
    pub(crate) fn snapshot(&self) -> EnhancerStats {
        EnhancerStats {
            counters: self.counters.snapshot(),
            scheduler: *self.scheduler.lock(),
            devices_wanted: self.devices_wanted.load(Ordering::Relaxed),
            compute_demand: self.compute_demand_us.load(Ordering::Relaxed) as f64 * 1e-6,
            promised: self.promised.load(Ordering::Relaxed),
            promise_refused: self.refused.load(Ordering::Relaxed),
            held_back: self.held_back.load(Ordering::Relaxed),
            worth_db: *self.worth_db.lock(),
            networks: self.networks.lock().clone(),
            latency: StageLatencies {
                decode: self.decode.read(),
                schedule: self.schedule.read(),
                infer: self.infer.read(),
                encode: self.encode.read(),
                total: self.total.read(),
            },
            compute: self.compute.read(),
            learning: *self.learning.lock(),
            ..EnhancerStats::default()
        }
    }
}

/// Adds one to a counter.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
