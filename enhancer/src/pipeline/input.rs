//! Where the SFU hands in what it tapped: routes frames to their stream's decoder.
//!
//! [`EnhancerInput::push`] never waits. A stream's queue is bounded; when it is full, the frame is
//! dropped and everything up to the next key frame with it, because it could not be decoded.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Sender, TrySendError, bounded};
use parking_lot::Mutex;
use windlass_media::{EnhancerOutput, StreamId, TapInput};

use super::decode::{Decoded, DecoderFactory, Packet, StreamDecoder};
use super::{EnhancerConfig, Timing, priority};
use crate::stats::{Stats, count};

/// One stream's decoding thread, seen from outside.
struct Stream {
    packets: Sender<Packet>,
    stop: Arc<AtomicBool>,
    /// Read by the decoder at its next frame.
    whole_wanted: Arc<AtomicBool>,
    /// A frame was lost on the way in; the decoder must hear of it before anything else.
    broken: bool,
    thread: JoinHandle<()>,
}

/// The streams, and what new ones need. Gone after the shutdown.
struct Registry {
    streams: HashMap<StreamId, Stream>,
    /// Threads told to stop that may still be in their last frame.
    retired: Vec<JoinHandle<()>>,
    frames: Sender<Decoded>,
    output: Sender<EnhancerOutput>,
}

/// What the input shares with the pipeline.
pub(super) struct Intake {
    config: Arc<EnhancerConfig>,
    timing: Timing,
    stats: Arc<Stats>,
    decoders: DecoderFactory,
    pub enabled: Arc<AtomicBool>,
    registry: Mutex<Option<Registry>>,
}

/// The enhancer's entry, cheap to clone.
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
}

impl Intake {
    pub fn new(
        config: Arc<EnhancerConfig>,
        enabled: Arc<AtomicBool>,
        stats: Arc<Stats>,
        decoders: DecoderFactory,
        frames: Sender<Decoded>,
        output: Sender<EnhancerOutput>,
    ) -> Self {
        let streams = HashMap::new();
        let registry = Registry { streams, retired: Vec::new(), frames, output };
        Intake {
            timing: config.timing(),
            config,
            stats,
            decoders,
            enabled,
            registry: Mutex::new(Some(registry)),
        }
    }

    /// Streams that have a decoder now.
    pub fn streams(&self) -> usize {
        self.registry.lock().as_ref().map_or(0, |r| r.streams.len())
    }

    /// Stops all decoders; their memory goes when their last frame is through.
    pub fn clear(&self) {
        if let Some(registry) = &mut *self.registry.lock() {
            let ids: Vec<StreamId> = registry.streams.keys().copied().collect();
            for id in ids {
                registry.retire(id);
            }
        }
    }

    /// Stops all decoders, waits for them, and takes nothing any more.
    pub fn close(&self) {
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
            TapInput::Stop { stream } => registry.retire(stream),
            TapInput::Gap { stream } => {
                count(&counters.gaps);
                if let Some(stream) = registry.streams.get_mut(&stream) {
                    stream.broken = true;
                    stream.mend();
                }
            }
            TapInput::WholeAnchor { stream } => {
                count(&counters.whole_anchor_requests);
                // A stream without a decoder begins with a whole anchor anyway. However many ask, no frame has to give way.
                if let Some(stream) = registry.streams.get(&stream) {
                    stream.whole_wanted.store(true, Ordering::Relaxed);
                }
            }
            TapInput::Frame(frame) => {
                count(&counters.frames_in);
                if !self.enabled.load(Ordering::Relaxed) {
                    return count(&counters.dropped_disabled);
                }
                let id = frame.stream;
                if !registry.streams.contains_key(&id) && !self.open_stream(registry, id) {
                    return count(&counters.dropped_stream_limit);
                }
                let Some(stream) = registry.streams.get_mut(&id) else { return };
                match stream.send(Packet::Frame(frame)) {
                    Sent::Taken => {}
                    Sent::Full => count(&counters.dropped_decode_queue),
                    // Its thread is gone, which nothing but a fault explains: begin anew with the
                    // next frame.
                    Sent::Gone => registry.retire(id),
                }
            }
        }
    }

    /// Starts a decoding thread; false when there are too many or the system has no more.
    fn open_stream(&self, registry: &mut Registry, id: StreamId) -> bool {
        let (done, running): (Vec<_>, Vec<_>) =
            registry.retired.drain(..).partition(JoinHandle::is_finished);
        registry.retired = running;
        for thread in done {
            join(thread, &self.stats);
        }
        if registry.streams.len() + registry.retired.len() >= self.config.max_streams {
            return false;
        }
        let (packets, queue) = bounded(self.config.decode_queue.max(2));
        let stop = Arc::new(AtomicBool::new(false));
        let whole_wanted = Arc::new(AtomicBool::new(false));
        let decoder = StreamDecoder {
            stream: id,
            packets: queue,
            stop: Arc::clone(&stop),
            whole_wanted: Arc::clone(&whole_wanted),
            frames: registry.frames.clone(),
            output: registry.output.clone(),
            timing: self.timing,
            stats: Arc::clone(&self.stats),
            factory: Arc::clone(&self.decoders),
        };
        let nice = self.config.nice;
        let spawned = Builder::new().name(format!("decode-{}", id.0)).spawn(move || {
            priority::lower(nice);
            decoder.run();
        });
        match spawned {
            Ok(thread) => {
                registry
                    .streams
                    .insert(id, Stream { packets, stop, whole_wanted, broken: false, thread });
                true
            }
            Err(error) => {
                tracing::warn!(%error, "no thread for another stream");
                false
            }
        }
    }
}

impl Registry {
    fn retire(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.remove(&id) {
            stream.stop.store(true, Ordering::Relaxed);
            self.retired.push(stream.thread);
        }
    }
}

enum Sent {
    Taken,
    Full,
    Gone,
}

impl Stream {
    /// Tells the decoder of a loss as soon as its queue has room.
    fn mend(&mut self) {
        if self.broken && self.packets.try_send(Packet::Gap).is_ok() {
            self.broken = false;
        }
    }

    fn send(&mut self, packet: Packet) -> Sent {
        self.mend();
        if self.broken {
            return if self.thread.is_finished() { Sent::Gone } else { Sent::Full };
        }
        match self.packets.try_send(packet) {
            Ok(()) => Sent::Taken,
            Err(TrySendError::Full(_)) => {
                self.broken = true;
                Sent::Full
            }
            Err(TrySendError::Disconnected(_)) => Sent::Gone,
        }
    }
}

/// Waits for a thread; a panic that it did not catch itself is counted.
pub(super) fn join(thread: JoinHandle<()>, stats: &Stats) {
    if thread.join().is_err() {
        count(&stats.counters.panics);
    }
}
