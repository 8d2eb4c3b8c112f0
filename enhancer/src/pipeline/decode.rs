//! One thread per tapped stream: VP9 frames in, decoded candidates out.
//!
//! After a gap, an error or a change of epoch without a key frame, frames are skipped until the next key frame, and key
//! frames are asked for. A panic of the decoder counts as an error. Every frame is decoded, however late: those after
//! it depend on it, unless there is a gap after it. What is too late to become an anchor ends here. Where the CPU is
//! busy, frames that can still become one are decoded first ([`Slots`]).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use windlass_hybrid::AnchorOutcome;
use windlass_types::tiles::TileMap;
use windlass_types::{
    Anchor, AnchorPolicy, EnhancerOutput, Epoch, Owner, PublisherUplink, StreamId, TapFrame,
};
use windlass_vp9::{
    DecodeError, DecodedFrame, FrameBuffer, FrameInfo, FrameKind, Reference, Samples, SizeLimit,
};

use super::Timing;
use super::adapt::{Adaptation, Operator};
use super::anchors::{Anchors, arrived};
use super::captures::Captures;
use super::clock::Clock;
use super::slot_time::SlotTime;
use super::slots::{Slot, Slots, Stage};
use crate::learn::Progress;
use crate::stats::{Stats, count};
use crate::tiles::{Subjects, TileEnergy};
use crate::twin::{GivenAnchor, Twin};
use windlass_scheduler::Tier;

/// Interval of key frame requests while a stream waits for one (the SFU throttles further).
pub(super) const ASK_EVERY: Duration = Duration::from_millis(500);

/// Interval of the search for faces and text, where the publisher can be asked for regions.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Assumed pixels of a stream's pictures before the first one is decoded: 320 × 180.
pub(super) const FIRST_PIXELS: u64 = 57_600;

/// Frames whose residual is remembered, because their captured detail may still be under way.
const REMEMBERED: usize = 64;

/// Decodes one chunk. It is a boxed function, so that tests can do without VP9.
pub(super) type DecodeFn = Box<dyn FnMut(&[u8]) -> Result<Vec<DecodedFrame>, DecodeError> + Send>;
/// Makes a decoder without state. The decoder refuses pictures beyond a limit before it allocates memory for them.
pub(super) type DecoderFactory = Arc<dyn Fn(SizeLimit) -> DecodeFn + Send + Sync>;

/// Size limits of the low layer's pictures, and of the publisher's own larger ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub low: SizeLimit,
    pub larger: SizeLimit,
}

impl Sizes {
    /// Limits low pictures to `low_pixels` pixels. The larger ones may be twice as wide and high.
    pub(super) fn new(low_pixels: u32) -> Sizes {
        let of = |area| SizeLimit { area, ..SizeLimit::default() };
        Sizes { low: of(low_pixels.into()), larger: of(4 * u64::from(low_pixels)) }
    }
}

/// Entry of the queue to a stream's decoder.
#[derive(Debug)]
pub(super) enum Packet {
    Frame(TapFrame),
    Gap,
    /// Subscribers have been given a still of the publisher.
    Given(Anchor),
    /// The publisher's uplink: what it can send.
    Uplink(PublisherUplink),
}

/// A decoded frame on its way to the scheduler.
#[derive(Debug)]
pub(super) struct Decoded {
    pub stream: StreamId,
    pub owner: Owner,
    pub epoch: Epoch,
    pub rtp_timestamp: u32,
    pub arrival: Instant,
    pub ready_at: Instant,
    pub tier: Tier,
    pub bytes: u32,
    pub picture: Arc<FrameBuffer>,
    /// Residual of the stream's tiles up to and with the frame.
    pub energy: TileEnergy,
    /// State of the anchors that the stream's subscribers have.
    pub anchors: Arc<Anchors>,
    /// Copy of the subscribers' decoder, which has the pictures that they see.
    pub twin: Arc<Twin>,
    /// The publisher's own pictures of the stream.
    pub captures: Arc<Captures>,
    /// Maximum scale of the stream's pictures.
    pub max_scale: usize,
    /// Policy by which the stream's anchors are chosen.
    pub policy: AnchorPolicy,
    /// Scale that the scheduler wants for the stream's next pictures.
    pub wanted_scale: Arc<AtomicUsize>,
    /// What the stream's networks have learned.
    pub progress: Arc<Progress>,
}

/// The decoder of one stream, and the ends of its queues.
pub(super) struct StreamDecoder {
    pub stream: StreamId,
    pub packets: Receiver<Packet>,
    pub stop: Arc<AtomicBool>,
    /// Number of gaps that are still to come in the queue.
    pub gaps: Arc<AtomicUsize>,
    /// Whether a subscriber has no anchors yet, so that a key anchor is due.
    pub key_wanted: Arc<AtomicBool>,
    pub captures: Arc<Captures>,
    pub progress: Arc<Progress>,
    pub frames: Sender<Decoded>,
    pub output: Sender<EnhancerOutput>,
    pub timing: Timing,
    pub operator: Operator,
    /// Whether there are networks of a larger scale than the smallest.
    pub several_scales: bool,
    pub clock: Clock,
    pub stats: Arc<Stats>,
    pub slots: Arc<Slots>,
    pub slot_time: Arc<SlotTime>,
    pub factory: DecoderFactory,
    pub sizes: Sizes,
}

/// State of the decoder after the last frame.
struct State {
    decode: DecodeFn,
    epoch: Option<Epoch>,
    /// Whether nothing can be decoded before the next key frame.
    waiting: bool,
    asked: Option<Instant>,
    /// Pixels of the last picture.
    pixels: u64,
    energy: TileEnergy,
    /// Residual by tile up to each of the last frames, with the frame's RTP timestamp.
    energies: VecDeque<(u32, TileEnergy)>,
    anchors: Arc<Anchors>,
    twin: Arc<Twin>,
    /// Scale for the next pictures, set by the scheduler.
    wanted_scale: Arc<AtomicUsize>,
    /// Whether nothing was handed on since the scale changed in the middle of an epoch.
    fresh: bool,
    /// Scale last sent to the SFU, with its epoch.
    reported: Option<(Epoch, usize)>,
    /// Controller of what the publisher sends; `None` until the publisher has reported its uplink.
    adaptation: Option<Adaptation>,
    /// Detector of faces and text, and the time of its last search.
    subjects: Option<(Subjects, Instant)>,
}

impl State {
    /// Begins without anchors at a scale, for the pictures that follow.
    fn begin_anew(&mut self, scale: usize) {
        self.anchors = Arc::default();
        if scale != self.twin.scale()
            && let Some(adaptation) = &mut self.adaptation
        {
            adaptation.rescale(scale);
        }
        if let Some(adaptation) = &self.adaptation {
            self.anchors.limit(adaptation.limits());
        }
        self.twin = Arc::new(Twin::new(scale));
        self.wanted_scale = Arc::new(AtomicUsize::new(scale));
    }
}

impl StreamDecoder {
    /// Runs until the stream is stopped.
    pub(super) fn run(self) {
        let mut state = State {
            decode: (self.factory)(self.sizes.low),
            epoch: None,
            waiting: true,
            asked: None,
            pixels: FIRST_PIXELS,
            energy: TileEnergy::default(),
            energies: VecDeque::new(),
            anchors: Arc::default(),
            twin: Arc::new(Twin::new(self.operator.scale)),
            wanted_scale: Arc::new(AtomicUsize::new(self.operator.scale)),
            fresh: false,
            reported: None,
            adaptation: None,
            subjects: None,
        };
        for packet in &self.packets {
            if self.stop.load(Ordering::Relaxed) {
                let left = std::iter::once(packet).chain(self.packets.try_iter());
                let frames = left.filter(|packet| matches!(packet, Packet::Frame(_)));
                let dropped = &self.stats.counters.dropped_stopped;
                dropped.fetch_add(frames.count() as u64, Ordering::Relaxed);
                return;
            }
            let step = AssertUnwindSafe(|| self.step(&mut state, packet));
            if catch_unwind(step).is_err() {
                count(&self.stats.counters.panics);
                state.decode = (self.factory)(self.sizes.low);
                self.wait_for_key(&mut state);
            }
        }
    }

    fn step(&self, state: &mut State, packet: Packet) {
        let counters = &self.stats.counters;
        let frame = match packet {
            Packet::Frame(frame) => frame,
            Packet::Gap => {
                self.gaps.fetch_sub(1, Ordering::Relaxed);
                return self.wait_for_key(state);
            }
            Packet::Given(anchor) => return self.given(state, &anchor),
            Packet::Uplink(uplink) => return self.adapt(state, &uplink),
        };
        let holds = frame.policy.holds();
        self.captures.held.store(!holds.is_zero(), Ordering::Relaxed);
        let deadline = self.timing.deadline_of(frame.arrival) + holds;
        if leads_nowhere(&self.gaps, deadline, self.clock.now()) {
            count(&counters.dropped_waiting_key);
            return self.wait_for_key(state);
        }
        if state.epoch != Some(frame.epoch) {
            state.epoch = Some(frame.epoch);
            state.waiting = true;
            // Another span begins without anchors.
            state.energy = TileEnergy::default();
            state.energies.clear();
            // As before, until the scheduler says otherwise.
            let scale = state.wanted_scale.load(Ordering::Relaxed);
            state.begin_anew(scale);
        }
        self.rescale(state, &frame);
        if self.key_wanted.swap(false, Ordering::Relaxed) {
            state.anchors.want_key_anchor();
        }
        if state.waiting && !frame.key {
            count(&counters.dropped_waiting_key);
            return self.wait_for_key(state);
        }
        // Held to the end.
        let by = decode_by(self.timing, frame.arrival) + holds / 2;
        let mut slot = self.slots.take(Stage::Decode, state.pixels, by, self.stream.0.into());
        let _done = self.slot_time.low(&self.clock, slot.as_ref().map(Slot::given));
        match (state.decode)(&frame.data) {
            Ok(decoded) => {
                count(&counters.decoded);
                state.waiting = false;
                state.asked = None;
                if let Some((last, slot)) = decoded.last().zip(slot.as_mut()) {
                    state.pixels = pixels_of(&last.info);
                    slot.did(state.pixels);
                }
                for frame in &decoded {
                    self.slot_time.decoded_low(pixels_of(&frame.info));
                }
                for frame in &decoded {
                    state.energy.add(&frame.info);
                    if let Some(adaptation) = &mut state.adaptation {
                        adaptation.low(frame);
                    }
                }
                if state.energies.len() == REMEMBERED {
                    state.energies.pop_front();
                }
                state.energies.push_back((frame.rtp_timestamp, state.energy.clone()));
                state.twin.follow(frame.rtp_timestamp, &decoded);
                self.hand_on(&frame, &decoded, state);
                self.look(&decoded, state);
            }
            Err(error) => {
                tracing::debug!(stream = self.stream.0, %error, "frame not decoded");
                count(&counters.decode_errors);
                self.wait_for_key(state);
            }
        }
    }

    /// Changes the scale of a frame and those after it as the scheduler wants, and tells the SFU. The low layer goes
    /// on: no key frame is needed.
    fn rescale(&self, state: &mut State, frame: &TapFrame) {
        if !self.several_scales {
            return;
        }
        let (base, max) = (self.operator.scale, usize::from(frame.max_scale));
        let scale = Some(state.wanted_scale.load(Ordering::Relaxed)).filter(|&s| s <= max);
        let scale = scale.unwrap_or(base);
        if scale != state.twin.scale() {
            count(&self.stats.counters.rescales);
            state.begin_anew(scale);
            state.fresh = true;
        }
        let news = (frame.epoch, scale);
        if state.reported != Some(news) {
            let (stream, epoch) = (self.stream, frame.epoch);
            let scale = u16::try_from(scale).unwrap_or(u16::MAX);
            match self.output.try_send(EnhancerOutput::Scale { stream, epoch, scale }) {
                Ok(()) => state.reported = Some(news),
                // Told with the next frame.
                Err(_) => count(&self.stats.counters.dropped_output_queue),
            }
        }
    }

    /// Notes the publisher's uplink, and tells the publisher what to send.
    fn adapt(&self, state: &mut State, uplink: &PublisherUplink) {
        let now = self.clock.elapsed();
        let gain = state.twin.gain_db();
        let operator = Operator { scale: state.twin.scale(), ..self.operator };
        let adaptation =
            state.adaptation.get_or_insert_with(|| Adaptation::new(now, uplink, operator));
        let Some(knobs) = adaptation.observe(now, uplink, gain) else { return };
        state.anchors.limit(adaptation.limits());
        match self.output.try_send(EnhancerOutput::Knobs { stream: self.stream, knobs }) {
            Ok(()) => count(&self.stats.counters.knobs),
            Err(_) => count(&self.stats.counters.dropped_output_queue),
        }
    }

    /// Notes captured detail that subscribers were given of a frame. A frame that is not remembered counts as the
    /// oldest one that is: its detail may have been lost since.
    fn given(&self, state: &mut State, anchor: &Anchor) {
        let at = anchor.rtp_timestamp;
        let GivenAnchor { outcome, raised_db } = state.twin.give(&arrived(anchor));
        if let Some(db) = raised_db {
            self.progress.saw(db);
        }
        match outcome {
            AnchorOutcome::Applied { .. } | AnchorOutcome::Early => {}
            outcome => {
                tracing::debug!(stream = self.stream.0, ?outcome, "detail of no use to the twin");
                // Subscribers were not given it either.
                if matches!(outcome, AnchorOutcome::WrongSize | AnchorOutcome::Malformed) {
                    return;
                }
            }
        }
        let known = state.energies.iter().find(|(timestamp, _)| *timestamp == at);
        let Some((_, energy)) = known.or(state.energies.front()) else { return };
        let bits = anchor.payload.get(..TileMap::wire_bytes(energy.size()));
        let tiles = anchor.tiled.then_some(bits.unwrap_or_default());
        let now = self.clock.elapsed();
        state.anchors.given(energy, tiles, now);
    }

    /// Hands the shown picture of a chunk to the scheduler, if it can still become an anchor.
    fn hand_on(&self, frame: &TapFrame, decoded: &[DecodedFrame], state: &mut State) {
        let now = self.clock.now();
        let age = now.saturating_duration_since(frame.arrival);
        self.stats.decode.record(age);
        let Some(shown) = decoded.iter().rev().find(|d| d.info.shown) else { return };
        if age > self.timing.deadline() + frame.policy.holds() {
            return count(&self.stats.counters.late_decode);
        }
        let tier = decoded.iter().map(|d| tier_of(&d.info)).min().unwrap_or(Tier::Normal);
        // No subscriber has an anchor of this size.
        let tier = if state.fresh { Tier::Key } else { tier };
        let sent = self.frames.try_send(Decoded {
            stream: self.stream,
            owner: frame.owner,
            epoch: frame.epoch,
            rtp_timestamp: frame.rtp_timestamp,
            arrival: frame.arrival,
            ready_at: now,
            tier,
            bytes: u32::try_from(frame.data.len()).unwrap_or(u32::MAX),
            picture: shown.picture.clone(),
            energy: state.energy.clone(),
            anchors: state.anchors.clone(),
            twin: state.twin.clone(),
            captures: self.captures.clone(),
            max_scale: usize::from(frame.max_scale),
            policy: frame.policy,
            wanted_scale: state.wanted_scale.clone(),
            progress: self.progress.clone(),
        });
        match sent {
            Ok(()) => state.fresh = false,
            Err(_) => count(&self.stats.counters.dropped_schedule_queue),
        }
    }

    /// Searches for faces and text, if they matter. The frame has already been handed on; the next one waits.
    fn look(&self, decoded: &[DecodedFrame], state: &mut State) {
        if !self.captures.regions.load(Ordering::Relaxed) {
            state.subjects = None;
            return;
        }
        let now = self.clock.now();
        if state
            .subjects
            .as_ref()
            .is_some_and(|(_, last)| now.duration_since(*last) < POLL_INTERVAL)
        {
            return;
        }
        let Some(shown) = decoded.iter().rev().find(|d| d.info.shown) else { return };
        let (subjects, last) = state.subjects.get_or_insert_with(|| (Subjects::new(), now));
        *last = now;
        state.anchors.note_subjects(subjects.weigh(Samples::from(&shown.picture.planes()[0])));
    }

    fn wait_for_key(&self, state: &mut State) {
        if !state.waiting {
            state.twin.reset();
        }
        state.waiting = true;
        let now = self.clock.now();
        if state.asked.is_some_and(|asked| now.saturating_duration_since(asked) < ASK_EVERY) {
            return;
        }
        state.asked = Some(now);
        match self.output.try_send(EnhancerOutput::NeedKeyFrame { stream: self.stream }) {
            Ok(()) => count(&self.stats.counters.key_requests),
            Err(_) => count(&self.stats.counters.dropped_output_queue),
        }
    }
}

/// Time by which a frame that came at `arrival` should be decoded: half of its time. The other half is for choosing,
/// inference and encoding. Otherwise a busy CPU would decode in time what is too late to become an anchor.
pub(super) fn decode_by(timing: Timing, arrival: Instant) -> Instant {
    arrival + (timing.deadline() / 2).min(Duration::from_secs(3_600))
}

/// Whether a frame is of no use any more: it is late, and the queue has overflowed, so that nothing after it can be
/// decoded before a key frame. Without this, a busy CPU would decode useless frames before it asks for that key frame.
pub(super) fn leads_nowhere(gaps: &AtomicUsize, deadline: Instant, now: Instant) -> bool {
    gaps.load(Ordering::Relaxed) > 0 && now > deadline
}

/// Pixels of a decoded frame's picture.
pub(super) fn pixels_of(info: &FrameInfo) -> u64 {
    u64::from(info.width) * u64::from(info.height)
}

/// How strongly later frames depend on a frame. A golden frame refreshes a slot besides that of the last frame, to be
/// referred to for long.
pub fn tier_of(info: &FrameInfo) -> Tier {
    let last = 1u8.checked_shl(u32::from(info.reference_slots[Reference::Last.index()]));
    match info.kind {
        FrameKind::Key => Tier::Key,
        FrameKind::IntraOnly => Tier::Golden,
        FrameKind::Inter if info.refresh_mask & !last.unwrap_or(0) != 0 => Tier::Golden,
        FrameKind::Inter | FrameKind::ShowExisting { .. } => Tier::Normal,
    }
}
