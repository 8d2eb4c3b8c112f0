//! Learns own weights for viewers' frame networks from two layers of each publisher.
//!
//! The SFU gives the frames of both layers of streams with viewers to be taught. One thread at the lowest priority
//! decodes them. About once a second it takes a low picture and the large one of the same moment as a lesson for the
//! stream's [`OwnWeightsTrainer`]. The low picture is rebuilt as viewers without anchors rebuild it.
//!
//! Bounds: decoding and lessons together take at most [`SHARE`] of one core. When that is used up, all streams rest for
//! [`REST`] and then go on at their next key frames. At most [`MAX_STREAMS`] streams learn at a time. A frame that
//! finds the queue full is dropped. Frames are numbered, so a stream with a missing one waits for a key frame.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use windlass_hybrid::enlarge;
use windlass_network::{Runner, Tier};
use windlass_types::weights::{OWN, OwnWeights, SCALE};
use windlass_types::{EnhancerOutput, LessonFrame, StreamId, Weights};
use windlass_vp9::simd::Isa;
use windlass_vp9::{FrameBuffer, Samples, SizeLimit};

use super::clock::Clock;
use super::decode::{DecodeFn, DecoderFactory};
use super::learn::cpu_time;
use crate::learn::TimeBudget;
use crate::learn::own_weights::{Lesson, OwnWeightsTrainer, Verdict};
use crate::stats::{Stats, count};

/// Share of one core that decoding and lessons may take, for all streams together.
const SHARE: f64 = 0.1;
/// Time over which [`SHARE`] is averaged: many frames are decoded before there is something to learn.
const SPAN: Duration = Duration::from_secs(60);
/// Time without lessons after the share was used up.
const REST: Duration = Duration::from_secs(30);
/// Maximum streams that learn at a time. Each has two decoders, some pictures, and 0.4 MB of sums.
const MAX_STREAMS: usize = 4;
/// Time without a frame after which a stream is forgotten, with all that was learned of it.
const IDLE: Duration = Duration::from_secs(10);
/// Minimum time between two lessons of a stream.
const LESSON_EVERY: Duration = Duration::from_millis(900);
/// Minimum time between two requests for key frames of a stream.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// Maximum frames in the queue: one second of both layers of two streams.
pub(super) const QUEUE: usize = 128;
/// Low pictures that wait for the large ones of their moments.
const KEPT: usize = 16;
/// Maximum pixels of the large pictures: viewers rebuild none that are larger.
const MAX_PIXELS: u64 = 1280 * 736;

/// The scale, as a factor of widths.
const BY: usize = SCALE as usize;

/// The thread that learns own weights.
pub(super) struct Teacher {
    pub frames: Receiver<LessonFrame>,
    pub output: Sender<EnhancerOutput>,
    pub decoders: DecoderFactory,
    pub enabled: Arc<AtomicBool>,
    pub clock: Clock,
    pub stats: Arc<Stats>,
}

/// One layer of a stream.
struct LayerDecoder {
    decode: DecodeFn,
    /// Number of the next frame; `None`: nothing can be decoded before a key frame.
    next: Option<u32>,
}

/// A stream from which weights are learned.
struct Publisher {
    stream: StreamId,
    /// The low layer and the large one.
    layers: [LayerDecoder; 2],
    /// Low pictures by RTP timestamp, the oldest first.
    lows: VecDeque<(u32, Arc<FrameBuffer>)>,
    /// A large picture whose low one has not come.
    large: Option<(u32, Arc<FrameBuffer>)>,
    trainer: OwnWeightsTrainer,
    /// Size of the low pictures that the trainer has learned from.
    size: (usize, usize),
    taught: Option<Instant>,
    asked: Option<Instant>,
    last_frame: Instant,
}

/// The state of the thread.
struct State {
    publishers: Vec<Publisher>,
    runner: Runner,
    budget: TimeBudget,
    /// Until when nothing is decoded, as the share of a core was used up.
    rests_until: Option<Instant>,
}

impl Teacher {
    /// Runs until no more frames can come.
    pub(super) fn run(self) {
        let mut state = self.begin();
        loop {
            match self.frames.recv_timeout(IDLE) {
                Ok(frame) => self.take(&mut state, &frame),
                Err(RecvTimeoutError::Timeout) => self.sweep(&mut state),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn begin(&self) -> State {
        State {
            publishers: Vec::new(),
            runner: Runner::new(Isa::detect()),
            budget: TimeBudget::new(SHARE, SPAN, self.clock.now()),
            rests_until: None,
        }
    }

    /// Forgets streams of which no more frames come, and all of them while enhancement is off.
    fn sweep(&self, state: &mut State) {
        let now = self.clock.now();
        let enabled = self.enabled.load(Ordering::Relaxed);
        state.publishers.retain(|publisher| enabled && now < publisher.last_frame + IDLE);
    }

    /// Takes a frame.
    fn take(&self, state: &mut State, frame: &LessonFrame) {
        self.sweep(state);
        let now = self.clock.now();
        let dropped = || count(&self.stats.counters.dropped_lesson_frames);
        if !self.enabled.load(Ordering::Relaxed) {
            return dropped();
        }
        let State { publishers, runner, budget, rests_until } = state;
        let Some(publisher) = self.publisher(publishers, frame.stream, now) else {
            return dropped();
        };
        publisher.last_frame = now;
        if rests_until.is_some_and(|until| now < until) {
            publisher.wait_for_key();
            return dropped();
        }
        let before = cpu_time();
        let step = AssertUnwindSafe(|| self.step(publisher, runner, now, frame));
        if catch_unwind(step).is_err() {
            count(&self.stats.counters.panics);
            publishers.retain(|publisher| publisher.stream != frame.stream);
            *runner = Runner::new(Isa::detect());
            self.send(frame.stream, None);
        }
        let took = cpu_time().saturating_sub(before);
        *self.stats.teaching.lock() += took;
        budget.spend(now, took);
        *rests_until = (budget.ready_at(now) > now).then_some(now + REST);
    }

    /// The stream's state; `None` if too many streams learn.
    fn publisher<'a>(
        &self,
        publishers: &'a mut Vec<Publisher>,
        stream: StreamId,
        now: Instant,
    ) -> Option<&'a mut Publisher> {
        let known = publishers.iter().position(|p| p.stream == stream);
        if known.is_none() {
            if publishers.len() >= MAX_STREAMS {
                return None;
            }
            let layer = |area| {
                let decode = (self.decoders)(SizeLimit { area, ..SizeLimit::default() });
                LayerDecoder { decode, next: None }
            };
            publishers.push(Publisher {
                stream,
                layers: [layer(MAX_PIXELS / (BY * BY) as u64), layer(MAX_PIXELS)],
                lows: VecDeque::new(),
                large: None,
                trainer: trainer()?,
                size: (0, 0),
                taught: None,
                asked: None,
                last_frame: now,
            });
        }
        match known {
            Some(at) => publishers.get_mut(at),
            None => publishers.last_mut(),
        }
    }

    /// Takes a frame, and gives a lesson if it is time for one.
    fn step(
        &self,
        publisher: &mut Publisher,
        runner: &mut Runner,
        now: Instant,
        frame: &LessonFrame,
    ) {
        let layer = &mut publisher.layers[usize::from(frame.large)];
        if layer.next != Some(frame.number) && !frame.key {
            layer.next = None;
            return self.ask(publisher, now);
        }
        layer.next = Some(frame.number.wrapping_add(1));
        let decoded = match (layer.decode)(&frame.data) {
            Ok(decoded) => decoded,
            Err(error) => {
                tracing::debug!(stream = frame.stream.0, %error, "frame of a lesson not decoded");
                count(&self.stats.counters.lesson_decode_errors);
                layer.next = None;
                return self.ask(publisher, now);
            }
        };
        count(&self.stats.counters.lesson_frames);
        let shown = decoded.iter().rev().find(|decoded| decoded.info.shown);
        let Some((picture, at)) = shown.map(|shown| shown.picture.clone()).zip(frame.low_timestamp)
        else {
            return;
        };
        let Some((low, large)) = publisher.pair(frame.large, at, picture) else { return };
        if publisher.taught.is_some_and(|then| now < then + LESSON_EVERY) {
            return;
        }
        publisher.taught = Some(now);
        self.lesson(publisher, runner, now, &low, &large);
    }

    fn lesson(
        &self,
        publisher: &mut Publisher,
        runner: &mut Runner,
        now: Instant,
        low: &FrameBuffer,
        large: &FrameBuffer,
    ) {
        let size = (low.width(), low.height());
        if (large.width(), large.height()) != (BY * size.0, BY * size.1) {
            return;
        }
        if publisher.size != size {
            let Some(trainer) = trainer() else { return };
            (publisher.trainer, publisher.size) = (trainer, size);
        }
        let [rebuilt, _, _] = enlarge(low, BY);
        let low = Samples::from(&low.planes()[0]);
        let wanted = Samples::from(&large.planes()[0]);
        let lesson = Lesson { low, rebuilt: (&rebuilt).into(), wanted };
        count(&self.stats.counters.own_lessons);
        match publisher.trainer.lesson(now, runner, lesson) {
            Verdict::Same => {}
            Verdict::Send(own) => self.send(publisher.stream, Some(own)),
            Verdict::TakeBack => self.send(publisher.stream, None),
        }
    }

    /// Asks for key frames of both layers.
    fn ask(&self, publisher: &mut Publisher, now: Instant) {
        if publisher.asked.is_some_and(|asked| now < asked + ASK_EVERY) {
            return;
        }
        publisher.asked = Some(now);
        let wanted = EnhancerOutput::NeedLessonKeyFrames { stream: publisher.stream };
        if self.output.try_send(wanted).is_err() {
            count(&self.stats.counters.dropped_output_queue);
        }
    }

    /// Hands an update to the SFU. One that is dropped is made up for by the next.
    fn send(&self, stream: StreamId, own: Option<OwnWeights>) {
        let counters = &self.stats.counters;
        let counter =
            if own.is_some() { &counters.own_weights } else { &counters.own_weights_taken_back };
        let weights = Weights { stream, network: OWN, own };
        match self.output.try_send(EnhancerOutput::Weights(weights)) {
            Ok(()) => count(counter),
            Err(_) => count(&counters.dropped_output_queue),
        }
    }
}

impl Publisher {
    /// Decodes nothing before the next key frames.
    fn wait_for_key(&mut self) {
        self.layers.iter_mut().for_each(|layer| layer.next = None);
        self.lows.clear();
        self.large = None;
    }

    /// Keeps a picture. Returns the low and the large picture of its moment, if both are here.
    fn pair(
        &mut self,
        large: bool,
        at: u32,
        picture: Arc<FrameBuffer>,
    ) -> Option<(Arc<FrameBuffer>, Arc<FrameBuffer>)> {
        if large {
            let low = self.lows.iter().find(|(low, _)| *low == at);
            if let Some((_, low)) = low {
                return Some((low.clone(), picture));
            }
            self.large = Some((at, picture));
            return None;
        }
        if self.lows.len() == KEPT {
            self.lows.pop_front();
        }
        self.lows.push_back((at, picture.clone()));
        let (_, large) = self.large.take_if(|(large, _)| *large == at)?;
        Some((picture, large))
    }
}

/// A trainer of the network that streams have own weights of.
fn trainer() -> Option<OwnWeightsTrainer> {
    let tier = Tier::ALL.get(usize::from(OWN.tier))?;
    let network = tier.networks().iter().find(|network| network.scale() == BY)?;
    Some(OwnWeightsTrainer::new(network.clone()))
}

#[cfg(test)]
#[path = "tests/lessons.rs"]
mod tests;
