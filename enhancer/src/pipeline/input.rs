//! Entry of what the SFU tapped: routes frames to their stream's decoder.
//!
//! [`EnhancerInput::push`] never waits. A stream's queue is bounded; when it is full, the frame is
//! dropped and everything up to the next key frame with it, because it could not be decoded.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Sender, TrySendError, bounded};
use parking_lot::Mutex;
use windlass_types::key_frame::key_frame_size;
use windlass_types::{
    CapturedFrame, DecayReport, EnhancerOutput, EnhancerRequest, Owner, Refusal, StreamId,
    TapFrame, TapInput,
};

use super::adapt::Operator;
use super::capture::{CaptureDecoder, CapturePacket};
use super::captures::Captures;
use super::clock::Clock;
use super::decode::{Decoded, DecoderFactory, Packet, Sizes, StreamDecoder};
use super::slot_time::SlotTime;
use super::slots::{Slots, Stage};
use super::tuning::Live;
use super::{EnhancerConfig, Timing, priority};
use crate::stats::{Stats, count};
use windlass_scheduler::admission::{Admission, Bounds};
use windlass_scheduler::memory;

/// Handle of a decoding thread. `P` is the type of its queue's entries.
struct Feed<P> {
    packets: Sender<P>,
    stop: Arc<AtomicBool>,
    /// Whether a frame was lost on the way in. The gap must then be queued before anything else.
    broken: bool,
    /// Number of gaps in the queue.
    gaps: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

/// Decoding threads of a stream.
struct Stream {
    low: Feed<Packet>,
    /// Whether a key anchor is wanted; the decoder reads it at its next frame.
    key_wanted: Arc<AtomicBool>,
    captures: Arc<Captures>,
    /// Decoder of pictures at HR size, if there are any.
    high: Option<Feed<CapturePacket>>,
    slot_time: Arc<SlotTime>,
}

/// All streams, and what new ones need. It is dropped at shutdown.
struct Registry {
    streams: HashMap<StreamId, Stream>,
    /// Streams without a decoder yet whose publisher can be asked for regions.
    with_regions: HashSet<StreamId>,
    /// Decides which streams are enhanced.
    admission: Admission,
    /// Streams that are refused because their pictures are too large.
    too_large: HashSet<StreamId>,
    /// Refusals that were sent to the SFU.
    refused: HashMap<StreamId, Refusal>,
    /// Encoding time of all anchors up to the last check.
    coded: Duration,
    /// Threads that were stopped and may still decode their last frame.
    retired: Vec<JoinHandle<()>>,
    frames: Sender<Decoded>,
    output: Sender<EnhancerOutput>,
}

/// Reports of picture decay on their way to the scheduler: the last one of each viewer of a stream.
pub(super) type Decays = Mutex<HashMap<(StreamId, u64), DecayReport>>;

/// Maximum number of waiting reports. They wait for at most one interval.
const MAX_DECAYS: usize = 4096;

/// Maximum streams without a decoder whose requests are kept. A request that came after its stream's stop would stay
/// for ever.
const MAX_WITH_REGIONS: usize = 4096;

/// Load and refusals of the admission.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Standing {
    /// Number of refused streams.
    pub refused: usize,
    /// Load of the admitted streams on the CPU's slots, as a share.
    pub load: f64,
    /// Bytes of memory of the admitted streams, as they are counted.
    pub memory: u64,
}

/// State that the input shares with the pipeline.
pub(super) struct Intake {
    config: Arc<EnhancerConfig>,
    live: Live,
    timing: Timing,
    /// Smallest scale of HR pictures.
    min_scale: usize,
    /// Largest scale of HR pictures.
    max_scale: usize,
    /// Number of inferences that run side by side.
    devices: usize,
    clock: Clock,
    stats: Arc<Stats>,
    slots: Arc<Slots>,
    decoders: DecoderFactory,
    sizes: Sizes,
    pub enabled: Arc<AtomicBool>,
    /// Last decay report of each viewer of a known stream.
    pub decays: Arc<Decays>,
    registry: Mutex<Option<Registry>>,
}

/// Entry of the enhancer, cheap to clone.
#[derive(Clone)]
pub struct EnhancerInput {
    intake: Arc<Intake>,
}

impl EnhancerInput {
    pub(super) fn new(intake: Arc<Intake>) -> Self {
        EnhancerInput { intake }
    }

    /// Takes what a tap hands over. Never waits; what does not fit is dropped and counted.
    pub fn push(&self, input: TapInput) {
        self.intake.push(input);
    }

    /// Takes a request to a stream's enhancement, or a report. Never waits; what does not fit is dropped. A request
    /// before the stream's first frame is kept if the stream cannot begin without it. Requests must not overtake a
    /// [`TapInput::Stop`] that was sent before them: the stop ends all that is known of the stream.
    pub fn request(&self, stream: StreamId, request: EnhancerRequest) {
        self.intake.request(stream, request);
    }
}

/// Parts that the input is made from.
pub(super) struct IntakeParts {
    pub config: Arc<EnhancerConfig>,
    pub live: Live,
    pub min_scale: usize,
    pub max_scale: usize,
    pub devices: usize,
    pub clock: Clock,
    pub stats: Arc<Stats>,
    pub slots: Arc<Slots>,
    pub decoders: DecoderFactory,
    pub enabled: Arc<AtomicBool>,
    pub frames: Sender<Decoded>,
    pub output: Sender<EnhancerOutput>,
}

impl Intake {
    pub(super) fn new(parts: IntakeParts) -> Self {
        let IntakeParts { config, live, stats, slots, enabled, .. } = parts;
        let registry = Registry {
            streams: HashMap::new(),
            with_regions: HashSet::new(),
            admission: Admission::new(Bounds {
                slots: config.slots().cap,
                memory: config.memory,
                streams: config.max_streams,
            }),
            too_large: HashSet::new(),
            refused: HashMap::new(),
            coded: Duration::ZERO,
            retired: Vec::new(),
            frames: parts.frames,
            output: parts.output,
        };
        Intake {
            timing: config.timing(),
            sizes: Sizes::new(config.max_pixels),
            min_scale: parts.min_scale,
            max_scale: parts.max_scale,
            devices: parts.devices,
            clock: parts.clock,
            config,
            live,
            stats,
            slots,
            decoders: parts.decoders,
            enabled,
            decays: Arc::default(),
            registry: Mutex::new(Some(registry)),
        }
    }

    /// Number of frames that wait for decoders of low layers, and of decoded ones that wait for the selection.
    pub(super) fn queued(&self) -> (usize, usize) {
        self.registry.lock().as_ref().map_or((0, 0), |r| {
            (r.streams.values().map(|s| s.low.packets.len()).sum(), r.frames.len())
        })
    }

    /// Seconds of inference that one second allows.
    pub(super) fn compute_capacity(&self) -> f64 {
        self.devices as f64 * self.live.get().compute_cap
    }

    /// Number of streams that have a decoder now.
    pub(super) fn streams(&self) -> usize {
        self.registry.lock().as_ref().map_or(0, |r| r.streams.len())
    }

    /// Load and refusals now.
    pub(super) fn standing(&self) -> Standing {
        let registry = self.registry.lock();
        registry.as_ref().map_or(Standing::default(), |r| Standing {
            refused: r.admission.refused() + r.too_large.len(),
            load: r.admission.load(),
            memory: r.admission.memory(),
        })
    }

    /// Stops all decoders. Their memory is freed when their last frame is through.
    pub(super) fn clear(&self) {
        if let Some(registry) = &mut *self.registry.lock() {
            let ids: Vec<StreamId> = registry.streams.keys().copied().collect();
            for id in ids {
                registry.retire(id);
            }
        }
    }

    /// Stops all decoders, waits for them, and takes no more input.
    pub(super) fn close(&self) {
        self.clear();
        let registry = self.registry.lock().take();
        for thread in registry.into_iter().flat_map(|r| r.retired) {
            join(thread, &self.stats);
        }
    }

    fn push(&self, input: TapInput) {
        let counters = &self.stats.counters;
        let mut guard = self.registry.lock();
        let Some(registry) = &mut *guard else { return };
        match input {
            TapInput::Frame(frame) => self.frame(registry, frame),
            TapInput::Gap { stream } => {
                count(&counters.gaps);
                if let Some(stream) = registry.streams.get_mut(&stream) {
                    stream.low.break_off();
                }
            }
            TapInput::Captured(frame) => self.captured(registry, frame),
            TapInput::CapturedGap { stream } => {
                count(&counters.captured_gaps);
                let stream = registry.streams.get_mut(&stream);
                if let Some(high) = stream.and_then(|s| s.high.as_mut()) {
                    high.break_off();
                }
            }
            TapInput::CaptureStop { stream } => registry.end_capture(stream),
            TapInput::Stop { stream } => registry.forget(stream),
        }
    }

    /// Takes a frame of a low layer.
    fn frame(&self, registry: &mut Registry, frame: TapFrame) {
        let counters = &self.stats.counters;
        count(&counters.frames_in);
        if !self.enabled.load(Ordering::Relaxed) {
            return count(&counters.dropped_disabled);
        }
        let id = frame.stream;
        let now = self.clock.elapsed();
        self.look(registry, now);
        if let Some(why) = self.refuses(registry, now, &frame) {
            count(match why {
                // Servers tap no other codec, and nothing encrypted.
                Refusal::Size | Refusal::Codec | Refusal::Encrypted => &counters.dropped_size,
                Refusal::Memory => &counters.dropped_memory,
                Refusal::Full => &counters.dropped_stream_limit,
                Refusal::Cpu | Refusal::Promise | Refusal::Slow => &counters.dropped_cpu,
            });
            return self.notify(registry, id, Some(why));
        }
        if !registry.streams.contains_key(&id) && !self.open_stream(registry, id) {
            registry.admission.forget(id);
            return count(&counters.dropped_stream_limit);
        }
        self.notify(registry, id, None);
        let Some(stream) = registry.streams.get_mut(&id) else { return };
        match stream.low.send(Packet::Frame(frame)) {
            Sent::Taken => {}
            Sent::Full => count(&counters.dropped_decode_queue),
            // Its thread is gone, which nothing but a fault explains: begin anew with the next frame.
            Sent::Gone => {
                count(&counters.dropped_stopped);
                registry.retire(id);
            }
        }
    }

    /// Takes a frame at HR size.
    fn captured(&self, registry: &mut Registry, frame: CapturedFrame) {
        let counters = &self.stats.counters;
        count(&counters.captured_in);
        if !self.enabled.load(Ordering::Relaxed) {
            return count(&counters.dropped_disabled);
        }
        let id = frame.stream;
        if !self.open_capture(registry, id) {
            return count(&counters.dropped_stream_limit);
        }
        // Without a low layer's decoder there is nothing to make anchors for.
        let stream = registry.streams.get_mut(&id);
        let Some(high) = stream.and_then(|s| s.high.as_mut()) else { return };
        match high.send(CapturePacket::Frame(frame)) {
            Sent::Taken => {}
            Sent::Full => count(&counters.dropped_capture_queue),
            Sent::Gone => registry.end_capture(id),
        }
    }

    /// Takes a request or a report. Requests never push out frames.
    fn request(&self, id: StreamId, request: EnhancerRequest) {
        let counters = &self.stats.counters;
        let mut guard = self.registry.lock();
        let Some(registry) = &mut *guard else { return };
        let stream = registry.streams.get(&id);
        match request {
            EnhancerRequest::KeyAnchor => {
                count(&counters.key_anchor_requests);
                // A stream without a decoder begins with a key anchor anyway.
                if let Some(stream) = stream {
                    stream.key_wanted.store(true, Ordering::Relaxed);
                }
            }
            EnhancerRequest::Regions(possible) => {
                if let Some(stream) = stream {
                    stream.captures.regions.store(possible, Ordering::Relaxed);
                } else if !possible {
                    registry.with_regions.remove(&id);
                } else if registry.with_regions.len() < MAX_WITH_REGIONS {
                    registry.with_regions.insert(id);
                }
            }
            EnhancerRequest::Uplink(uplink) => {
                if let Some(stream) = stream {
                    let _ = stream.low.packets.try_send(Packet::Uplink(uplink));
                }
            }
            EnhancerRequest::Decay { viewer, decay } => {
                let mut decays = self.decays.lock();
                if stream.is_some() && decays.len() < MAX_DECAYS {
                    decays.insert((id, viewer), decay);
                }
            }
            EnhancerRequest::Given(anchor) => {
                count(&counters.given);
                // Where its queue has no room, the same is made again at worst.
                if let Some(stream) = stream {
                    let _ = stream.low.packets.try_send(Packet::Given(anchor));
                }
            }
        }
    }

    /// Reason for which a frame is not to be decoded; `None` if it is.
    fn refuses(&self, registry: &mut Registry, now: Duration, frame: &TapFrame) -> Option<Refusal> {
        let id = frame.stream;
        let size = if frame.key { key_frame_size(&frame.data) } else { None };
        let pixels = size.map(|size| u64::from(size.pixels()));
        match pixels {
            Some(pixels) if pixels > self.sizes.low.area => {
                registry.retire(id);
                registry.admission.forget(id);
                registry.too_large.insert(id);
            }
            Some(_) => _ = registry.too_large.remove(&id),
            None => {}
        }
        if registry.too_large.contains(&id) {
            return Some(Refusal::Size);
        }
        registry.admission.set_max_streams(self.live.get().max_streams);
        // An SFU of an older version names no owners.
        let owner = Some(frame.owner).filter(|&owner| owner != Owner { room: 0, publisher: 0 });
        let owner = owner.unwrap_or(Owner::alone(id));
        let memory = pixels.map(|pixels| memory::of(pixels, 0));
        registry.admission.frame(now, id, owner, memory)
    }

    /// Stops the decoders of streams that are refused from now on, if a check is due.
    fn look(&self, registry: &mut Registry, now: Duration) {
        if !registry.admission.is_due(now) {
            return;
        }
        let coded = self.slots.busy(Stage::Encode);
        let coding = coded.saturating_sub(std::mem::replace(&mut registry.coded, coded));
        let Registry { admission, streams, .. } = registry;
        let work = |id| streams.get(&id).map_or_else(Default::default, |s| s.slot_time.take());
        let mut gone = Vec::new();
        admission.look(now, work, coding, &mut gone);
        for id in gone {
            count(&self.stats.counters.given_up);
            registry.retire(id);
        }
    }

    /// Tells the SFU whether a stream is refused, if that has changed. If the queue is full, a later frame tells it.
    fn notify(&self, registry: &mut Registry, stream: StreamId, reason: Option<Refusal>) {
        if registry.refused.get(&stream).copied() == reason {
            return;
        }
        if registry.output.try_send(EnhancerOutput::Refused { stream, reason }).is_err() {
            return count(&self.stats.counters.dropped_output_queue);
        }
        match reason {
            Some(reason) => _ = registry.refused.insert(stream, reason),
            None => _ = registry.refused.remove(&stream),
        }
    }

    /// Starts a decoding thread. Returns false if too many are still ending or the system gives no more.
    fn open_stream(&self, registry: &mut Registry, id: StreamId) -> bool {
        let max = self.live.get().max_streams.max(registry.streams.len() + 1);
        if registry.streams.len() + self.reap(registry) >= max {
            return false;
        }
        let (packets, queue) = bounded(self.config.decode_queue.max(2));
        let stop = Arc::new(AtomicBool::new(false));
        let gaps = Arc::new(AtomicUsize::new(0));
        let key_wanted = Arc::new(AtomicBool::new(false));
        let captures = Arc::<Captures>::default();
        let slot_time = Arc::<SlotTime>::default();
        captures.regions.store(registry.with_regions.remove(&id), Ordering::Relaxed);
        let decoder = StreamDecoder {
            stream: id,
            packets: queue,
            stop: Arc::clone(&stop),
            gaps: Arc::clone(&gaps),
            key_wanted: Arc::clone(&key_wanted),
            captures: Arc::clone(&captures),
            progress: Arc::default(),
            frames: registry.frames.clone(),
            output: registry.output.clone(),
            timing: self.timing,
            operator: Operator {
                anchor_fraction: self.live.get().anchor_fraction,
                scale: self.min_scale,
            },
            several_scales: self.min_scale < self.max_scale,
            clock: self.clock.clone(),
            stats: Arc::clone(&self.stats),
            slots: Arc::clone(&self.slots),
            slot_time: Arc::clone(&slot_time),
            factory: Arc::clone(&self.decoders),
            sizes: self.sizes,
        };
        let thread = self.spawn(format!("decode-{}", id.0), move || decoder.run());
        let low = thread.map(|thread| Feed { packets, stop, broken: false, gaps, thread });
        if let Some(low) = low {
            let stream = Stream { low, key_wanted, captures, high: None, slot_time };
            registry.streams.insert(id, stream);
            return true;
        }
        false
    }

    /// Starts the decoder of a stream's pictures at HR size, if it has none. Returns false if there are too many
    /// threads.
    fn open_capture(&self, registry: &mut Registry, id: StreamId) -> bool {
        let Some(stream) = registry.streams.get(&id) else { return true };
        if stream.high.is_some() {
            return true;
        }
        let (captures, slot_time) = (Arc::clone(&stream.captures), Arc::clone(&stream.slot_time));
        let high = registry.streams.values().filter(|s| s.high.is_some()).count();
        if high + self.reap(registry) >= self.live.get().max_streams {
            return false;
        }
        let (packets, queue) = bounded(self.config.decode_queue.max(2));
        let stop = Arc::new(AtomicBool::new(false));
        let gaps = Arc::new(AtomicUsize::new(0));
        let decoder = CaptureDecoder {
            stream: id,
            packets: queue,
            stop: Arc::clone(&stop),
            gaps: Arc::clone(&gaps),
            captures,
            output: registry.output.clone(),
            timing: self.timing,
            clock: self.clock.clone(),
            slots: Arc::clone(&self.slots),
            slot_time,
            stats: Arc::clone(&self.stats),
            factory: Arc::clone(&self.decoders),
            limit: self.sizes.larger,
        };
        let thread = self.spawn(format!("capture-{}", id.0), move || decoder.run());
        let high = thread.map(|thread| Feed { packets, stop, broken: false, gaps, thread });
        let opened = high.is_some();
        if let Some(stream) = registry.streams.get_mut(&id) {
            stream.high = high;
        }
        opened
    }

    /// Joins threads that have ended; returns how many are still ending.
    fn reap(&self, registry: &mut Registry) -> usize {
        let (done, running): (Vec<_>, Vec<_>) =
            registry.retired.drain(..).partition(JoinHandle::is_finished);
        registry.retired = running;
        for thread in done {
            join(thread, &self.stats);
        }
        registry.retired.len()
    }

    fn spawn(&self, name: String, run: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
        let nice = self.config.nice;
        let spawned = Builder::new().name(name).spawn(move || {
            priority::lower(nice);
            run();
        });
        spawned.inspect_err(|error| tracing::warn!(%error, "stream not enhanced: its decoding thread cannot start; check the limits of threads and memory")).ok()
    }
}

impl Registry {
    /// Stops a stream's decoders, and forgets the stream.
    fn forget(&mut self, id: StreamId) {
        self.retire(id);
        self.with_regions.remove(&id);
        self.admission.forget(id);
        self.refused.remove(&id);
        self.too_large.remove(&id);
    }

    /// Stops a stream's decoders. Its next frame may start new ones.
    fn retire(&mut self, id: StreamId) {
        self.end_capture(id);
        if let Some(stream) = self.streams.remove(&id) {
            if stream.captures.regions.load(Ordering::Relaxed) {
                self.with_regions.insert(id);
            }
            self.retired.push(stream.low.end());
        }
    }

    fn end_capture(&mut self, id: StreamId) {
        if let Some(high) = self.streams.get_mut(&id).and_then(|s| s.high.take()) {
            self.retired.push(high.end());
        }
    }
}

enum Sent {
    Taken,
    Full,
    Gone,
}

/// A queue's entry that can stand for a gap.
trait Lossy {
    /// What says that packets before it were lost.
    const GAP: Self;
}

impl Lossy for Packet {
    const GAP: Packet = Packet::Gap;
}

impl Lossy for CapturePacket {
    const GAP: CapturePacket = CapturePacket::Gap;
}

impl<P: Lossy> Feed<P> {
    /// Counts missing frames as a gap, and queues it for the decoder.
    fn break_off(&mut self) {
        self.lose();
        self.mend();
    }

    fn lose(&mut self) {
        if !std::mem::replace(&mut self.broken, true) {
            self.gaps.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Queues the gap for the decoder as soon as there is room.
    fn mend(&mut self) {
        if self.broken && self.packets.try_send(P::GAP).is_ok() {
            self.broken = false;
        }
    }

    fn send(&mut self, packet: P) -> Sent {
        self.mend();
        if self.broken {
            return if self.thread.is_finished() { Sent::Gone } else { Sent::Full };
        }
        match self.packets.try_send(packet) {
            Ok(()) => Sent::Taken,
            Err(TrySendError::Full(_)) => {
                self.lose();
                Sent::Full
            }
            Err(TrySendError::Disconnected(_)) => Sent::Gone,
        }
    }

    fn end(self) -> JoinHandle<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
    }
}

/// Waits for a thread. Counts a panic that the thread did not catch itself.
pub(super) fn join(thread: JoinHandle<()>, stats: &Stats) {
    if thread.join().is_err() {
        count(&stats.counters.panics);
    }
}
