//! What the tests build a pipeline of: decoders, engines and a clock that they control, and what they wait for.

use std::sync::atomic::{AtomicU32, AtomicU64};

use bytes::Bytes;
use crossbeam_channel::Sender;
use windlass_sr::{Architecture, InferError, Input, Model, SwapError};
use windlass_types::{
    Anchor, AnchorPolicy, CapturedFrame, Epoch, Owner, StreamId, TapFrame, TapInput,
};
use windlass_vp9::{DecodeError, DecodedFrame, FrameBuffer, FrameInfo, FrameKind};

use super::super::*;

pub(in crate::pipeline) const SECOND: Duration = Duration::from_secs(1);
pub(in crate::pipeline) const MS: Duration = Duration::from_millis(1);
pub(in crate::pipeline) const FRAME: Duration = Duration::from_millis(33);
/// Between two selections, where a test does not say otherwise.
pub(in crate::pipeline) const INTERVAL: Duration = Duration::from_millis(20);
/// For another thread; a busy machine may take long.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What a chunk's first byte means to the test decoder.
pub(in crate::pipeline) const KEY: u8 = b'K';
pub(in crate::pipeline) const DELTA: u8 = b'D';
pub(in crate::pipeline) const BROKEN: u8 = b'B';
pub(in crate::pipeline) const PANIC: u8 = b'P';
/// A key frame of twice the size.
pub(in crate::pipeline) const HIGH: u8 = b'H';

/// A clock that stands still until time is let pass: by the test, or by a part that it makes slow.
#[derive(Clone)]
pub(in crate::pipeline) struct Hand {
    begin: Instant,
    passed: Arc<AtomicU64>,
}

impl Hand {
    pub(in crate::pipeline) fn new() -> Hand {
        Hand { begin: Instant::now(), passed: Arc::default() }
    }

    pub(in crate::pipeline) fn clock(&self) -> Clock {
        let hand = self.clone();
        Clock::new(move || hand.begin + hand.passed())
    }

    /// Since it was made.
    pub(in crate::pipeline) fn passed(&self) -> Duration {
        Duration::from_nanos(self.passed.load(Ordering::SeqCst))
    }

    pub(in crate::pipeline) fn pass(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).expect("a test is short");
        self.passed.fetch_add(nanos, Ordering::SeqCst);
    }

    /// [`frame`], which comes now.
    pub(in crate::pipeline) fn frame(&self, stream: u32, timestamp: u32, kind: u8) -> TapInput {
        self.frame_of(self.passed(), stream, timestamp, kind)
    }

    /// [`frame`], which came when so much had passed.
    pub(in crate::pipeline) fn frame_of(
        &self,
        passed: Duration,
        stream: u32,
        timestamp: u32,
        kind: u8,
    ) -> TapInput {
        let arrival = self.begin + passed;
        let TapInput::Frame(frame) = frame(stream, timestamp, kind) else { unreachable!() };
        TapInput::Frame(TapFrame { arrival, ..frame })
    }

    /// [`captured`], which comes now.
    pub(in crate::pipeline) fn captured(&self, stream: u32, timestamp: u32, kind: u8) -> TapInput {
        let arrival = self.begin + self.passed();
        let captured = captured(stream, Some(timestamp), kind);
        let TapInput::Captured(frame) = captured else { unreachable!() };
        TapInput::Captured(CapturedFrame { arrival, ..frame })
    }

    /// Lets an interval pass once decoders have done, so that a selection of all frames follows, and waits for what
    /// that brings about.
    pub(in crate::pipeline) fn select(
        &self,
        enhancer: &Enhancer,
        interval: Duration,
        what: &str,
        condition: impl Fn() -> bool,
    ) {
        eventually("all frames are here", || {
            unaccounted(enhancer, 0)[0] <= 0 && enhancer.stats().slots.running == 0
        });
        self.pass(interval);
        assert!(comes(condition), "never: {what}, {:?}", enhancer.stats());
    }

    /// The anchor of a selection.
    pub(in crate::pipeline) fn anchor(&self, enhancer: &Enhancer) -> Anchor {
        self.select(enhancer, INTERVAL, "an anchor", || !enhancer.output.is_empty());
        let anchor = anchor(enhancer);
        eventually("its slot is free", || enhancer.stats().slots.running == 0);
        anchor
    }
}

/// Decoders that take no time.
pub(in crate::pipeline) fn decoders() -> DecoderFactory {
    decoders_that(|| {})
}

/// Decoders that wait until the other end is dropped.
pub(in crate::pipeline) fn held_decoders() -> (Sender<()>, DecoderFactory) {
    let (release, held) = bounded(0);
    let wait = move || {
        let _ = held.recv();
    };
    (release, decoders_that(wait))
}

/// Decoders that do something before each chunk.
pub(in crate::pipeline) fn decoders_that(
    first: impl Fn() + Send + Sync + Clone + 'static,
) -> DecoderFactory {
    Arc::new(move |_| {
        let first = first.clone();
        Box::new(move |chunk: &[u8]| {
            first();
            let kind = match chunk.first() {
                Some(&KEY | &HIGH) => FrameKind::Key,
                Some(&DELTA) => FrameKind::Inter,
                Some(&PANIC) => panic!("a decoder that panics, as the test asks"),
                _ => return Err(DecodeError::Header),
            };
            let mut info = FrameInfo::default();
            info.kind = kind;
            info.shown = true;
            info.encoded_bytes = chunk.len();
            let scale = if chunk[0] == HIGH { 2 } else { 1 };
            (info.width, info.height) = (scale * 160, scale * 90);
            let (width, height) = (info.width as usize, info.height as usize);
            let picture = Arc::new(FrameBuffer::grey(width, height));
            Ok(vec![DecodedFrame { picture, info: Arc::new(info) }])
        })
    })
}

/// Low pixels of the test decoder's pictures.
const PIXELS: u32 = 160 * 90;
/// What the test engine adds, in grey levels: nothing that a decoder would know by itself.
const ADDED: f32 = 12.0;

/// An engine that panics at its first frames, and does what a test wants before it gives the others.
#[derive(Clone)]
pub(in crate::pipeline) struct TestEngine {
    pub scale: usize,
    pub added: f32,
    pub panics: Arc<AtomicU32>,
    /// On a worker's thread.
    pub first: Arc<dyn Fn() + Send + Sync>,
    pub on_cpu: bool,
    /// What it says that a picture of the test decoder takes, however much time a test lets pass meanwhile.
    pub says: Duration,
    /// The part of `says` that was not asked for yet.
    pub took: Duration,
}

impl Engine for TestEngine {
    fn backend(&self) -> &'static str {
        "test"
    }

    fn on_cpu(&self) -> bool {
        self.on_cpu
    }

    fn take_time(&mut self) -> Option<Duration> {
        Some(std::mem::take(&mut self.took))
    }

    fn architecture(&self) -> Architecture {
        Architecture::chain(self.scale, 16, 5)
    }

    fn reach(&self) -> usize {
        0
    }

    fn infer_batch(
        &mut self,
        inputs: &[Input<'_>],
        out: &mut [Residual],
    ) -> Result<(), InferError> {
        // The measurement at the start, on the test's own thread, neither fails nor waits.
        if std::thread::current().name().is_some_and(|name| name.starts_with("infer")) {
            let left = self
                .panics
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
            assert!(left.is_err(), "an engine that panics, as the test asks");
            (self.first)();
        }
        for (input, out) in inputs.iter().zip(out) {
            let pixels = input.low.width() * input.low.height();
            self.took += self.says * pixels as u32 / PIXELS;
            out.resize(self.scale * input.low.width(), self.scale * input.low.height());
            out.data.fill(self.added);
        }
        Ok(())
    }

    fn swap(&mut self, _: &Arc<Model>) -> Result<(), SwapError> {
        Ok(())
    }
}

impl Default for TestEngine {
    /// One that takes no time and never panics.
    fn default() -> Self {
        TestEngine {
            scale: 2,
            added: ADDED,
            panics: Arc::default(),
            first: Arc::new(|| {}),
            on_cpu: true,
            says: Duration::ZERO,
            took: Duration::ZERO,
        }
    }
}

/// A network that copies of this engine run.
pub(in crate::pipeline) fn network(name: &str, engine: TestEngine) -> Network {
    let engines: EngineFactory = Arc::new(move || Box::new(engine.clone()));
    Network { name: name.into(), engines, model: None }
}

/// The usual network.
pub(in crate::pipeline) fn engines() -> [Network; 1] {
    [network("test", TestEngine::default())]
}

/// Engines whose first frames panic.
pub(in crate::pipeline) fn panicking_engines(frames: u32) -> TestEngine {
    TestEngine { panics: Arc::new(AtomicU32::new(frames)), ..TestEngine::default() }
}

/// Engines whose workers wait until the other end is dropped.
pub(in crate::pipeline) fn held_engines() -> (Sender<()>, [Network; 1]) {
    let (release, held) = bounded(0);
    let first = Arc::new(move || {
        let _: Result<(), _> = held.recv();
    });
    (release, [network("held", TestEngine { first, ..TestEngine::default() })])
}

/// Generous in time, so that a busy machine does not make anchors late.
pub(in crate::pipeline) fn config() -> EnhancerConfig {
    EnhancerConfig {
        budget: 60 * SECOND,
        delivery_allowance: Duration::from_millis(60),
        threads: 1,
        interval: INTERVAL,
        anchor_fraction: 1.0,
        // The test decoder codes no residual.
        tiles: TileConfig { threshold: 0.0, ..TileConfig::default() },
        ..EnhancerConfig::default()
    }
}

pub(in crate::pipeline) fn start(config: EnhancerConfig) -> Enhancer {
    start_parts(config, &engines(), decoders())
}

pub(in crate::pipeline) fn start_parts(
    config: EnhancerConfig,
    networks: &[Network],
    decoders: DecoderFactory,
) -> Enhancer {
    Enhancer::start_parts(config, networks, decoders, Clock::default()).expect("it starts")
}

/// One that goes by the clock of a hand.
pub(in crate::pipeline) fn start_by(
    hand: &Hand,
    config: EnhancerConfig,
    networks: &[Network],
    decoders: DecoderFactory,
) -> Enhancer {
    Enhancer::start_parts(config, networks, decoders, hand.clock()).expect("it starts")
}

pub(in crate::pipeline) fn frame(stream: u32, timestamp: u32, kind: u8) -> TapInput {
    TapInput::Frame(TapFrame {
        stream: StreamId(stream),
        owner: Owner::alone(StreamId(stream)),
        epoch: Epoch(0),
        rtp_timestamp: timestamp,
        arrival: Instant::now(),
        key: kind != DELTA,
        max_scale: 4,
        policy: AnchorPolicy::default(),
        data: Bytes::from(vec![kind; 500]),
    })
}

/// A picture at HR size of the low frame of `timestamp`.
pub(in crate::pipeline) fn captured(stream: u32, timestamp: Option<u32>, kind: u8) -> TapInput {
    TapInput::Captured(CapturedFrame {
        stream: StreamId(stream),
        low_timestamp: timestamp,
        arrival: Instant::now(),
        key: kind != DELTA,
        data: Bytes::from(vec![kind; 500]),
    })
}

/// The next anchor.
pub(in crate::pipeline) fn anchor(enhancer: &Enhancer) -> Anchor {
    loop {
        match output(enhancer) {
            EnhancerOutput::Anchor(anchor) => return anchor,
            EnhancerOutput::NeedKeyFrame { .. }
            | EnhancerOutput::NeedCapturedKeyFrame { .. }
            | EnhancerOutput::Refused { .. }
            | EnhancerOutput::WantRegions { .. }
            | EnhancerOutput::Scale { .. }
            | EnhancerOutput::Knobs { .. } => {}
        }
    }
}

/// The next output of any kind.
pub(in crate::pipeline) fn output(enhancer: &Enhancer) -> EnhancerOutput {
    let output = enhancer.output.recv_timeout(TIMEOUT);
    output.unwrap_or_else(|error| panic!("no output: {error}, {:?}", enhancer.stats()))
}

/// Waits for something that another thread does.
pub(in crate::pipeline) fn eventually(what: &str, condition: impl FnMut() -> bool) {
    assert!(comes(condition), "never: {what}");
}

/// Waits for something that another thread does; whether it did. Most conditions are counters, slots and lengths of
/// queues. The pipeline tells nobody that these have changed, so the test looks again and again, and waits no longer
/// than it must.
pub(in crate::pipeline) fn comes(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Waits until decoders have done with so many frames and so many pictures at HR size, and handed them on.
pub(in crate::pipeline) fn decoded(enhancer: &Enhancer, frames: u64, pictures: u64) {
    eventually("all decoded", || {
        let counters = enhancer.stats().counters;
        (counters.decoded, counters.captured_decoded) == (frames, pictures)
            // Until it has handed on what it made, a decoder has its slot.
            && enhancer.stats().slots.running == 0
    });
}

/// What became of frames: how many are not counted yet, at each of four stages, where `panics` were no decoder's.
pub(in crate::pipeline) fn unaccounted(enhancer: &Enhancer, panics: u64) -> [i64; 4] {
    let EnhancerStats { counters: c, scheduler: s, .. } = enhancer.stats();
    let before_decoding = c.dropped_disabled
        + c.dropped_stream_limit
        + c.dropped_cpu
        + c.dropped_decode_queue
        + c.dropped_stopped
        + c.dropped_waiting_key;
    let tried = c.decoded + c.decode_errors + c.panics.saturating_sub(panics);
    let decoded = c.late_decode + c.dropped_schedule_queue + s.considered;
    let passed_over = s.over_fraction
        + s.unchanged
        + s.over_capacity
        + s.lost_causes
        + s.overflowed
        + s.not_planned
        + s.refused;
    let given_up = c.unchanged
        + c.dropped_infer_queue
        + c.late_infer
        + c.infer_errors
        + c.known
        + c.late_encode
        + c.encode_errors
        + c.dropped_anchors
        + panics;
    [
        c.frames_in as i64 - (before_decoding + tried) as i64,
        c.decoded as i64 - decoded as i64,
        s.considered as i64 - (s.chosen + passed_over) as i64,
        s.chosen as i64 - (c.anchors + given_up) as i64,
    ]
}
