//! The threads and queues, with decoders and engines that tests control.

use std::collections::HashMap;
use std::sync::atomic::AtomicU32;

use bytes::Bytes;
use crossbeam_channel::Sender;
use windlass_hybrid::anchor::codec;
use windlass_sr::{Architecture, InferError, Input, Model, SwapError};
use windlass_types::{
    Anchor, AnchorSource, CapturedFrame, EnhancerRequest, Epoch, Owner, StreamId, TapFrame,
    TapInput,
};
use windlass_vp9::{DecodeError, DecodedFrame, FrameBuffer, FrameInfo, FrameKind};

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const FRAME: Duration = Duration::from_millis(33);

/// What a chunk's first byte means to the test decoder.
const KEY: u8 = b'K';
const DELTA: u8 = b'D';
const BROKEN: u8 = b'B';
const PANIC: u8 = b'P';
/// A key frame of twice the size.
const HIGH: u8 = b'H';

fn decoders(time: Duration) -> DecoderFactory {
    Arc::new(move |_| {
        Box::new(move |chunk: &[u8]| {
            std::thread::sleep(time);
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

/// What the test engine adds, in grey levels: nothing that a decoder would know by itself.
const ADDED: f32 = 12.0;

/// An engine that takes its time, and panics at its first frames.
struct TestEngine {
    scale: usize,
    time: Duration,
    added: f32,
    panics: Arc<AtomicU32>,
    /// Where there is one, nothing comes out before its other end is gone.
    held: Option<Receiver<()>>,
}

impl Engine for TestEngine {
    fn backend(&self) -> &'static str {
        "test"
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
        std::thread::sleep(self.time);
        // The measurement at the start, on the test's own thread, does not fail.
        if std::thread::current().name().is_some_and(|name| name.starts_with("infer")) {
            let left = self
                .panics
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
            assert!(left.is_err(), "an engine that panics, as the test asks");
            if let Some(held) = &self.held {
                let _ = held.recv();
            }
        }
        for (input, out) in inputs.iter().zip(out) {
            out.resize(self.scale * input.low.width(), self.scale * input.low.height());
            out.data.fill(self.added);
        }
        Ok(())
    }

    fn swap(&mut self, _: &Arc<Model>) -> Result<(), SwapError> {
        Ok(())
    }
}

/// One that takes no time and never panics.
fn quick() -> TestEngine {
    let panics = Arc::new(AtomicU32::new(0));
    TestEngine { scale: 2, time: Duration::ZERO, added: ADDED, panics, held: None }
}

fn network(name: &str, engine: impl Fn() -> TestEngine + Send + Sync + 'static) -> [Network; 1] {
    let engines: EngineFactory = Arc::new(move || Box::new(engine()));
    [Network { name: name.into(), engines, model: None }]
}

fn engines(time: Duration, panics: u32) -> [Network; 1] {
    let panics = Arc::new(AtomicU32::new(panics));
    network("test", move || TestEngine { time, panics: panics.clone(), ..quick() })
}

/// Engines that have nothing to add.
fn idle_engines() -> [Network; 1] {
    network("idle", || TestEngine { added: 0.0, ..quick() })
}

/// Engines whose workers wait until the other end is dropped.
fn held_engines() -> (Sender<()>, [Network; 1]) {
    let (release, held) = bounded(0);
    (release, network("held", move || TestEngine { held: Some(held.clone()), ..quick() }))
}

/// Generous in time, so that a busy machine does not make anchors late.
fn config() -> EnhancerConfig {
    EnhancerConfig {
        budget: 5 * SECOND,
        delivery_allowance: Duration::from_millis(60),
        threads: 1,
        interval: Duration::from_millis(20),
        anchor_fraction: 1.0,
        // The test decoder codes no residual.
        tiles: TileConfig { threshold: 0.0, ..TileConfig::default() },
        ..EnhancerConfig::default()
    }
}

fn start(config: EnhancerConfig) -> Enhancer {
    Enhancer::start_parts(config, &engines(Duration::ZERO, 0), decoders(Duration::ZERO)).unwrap()
}

fn frame(stream: u32, timestamp: u32, kind: u8) -> TapInput {
    TapInput::Frame(TapFrame {
        stream: StreamId(stream),
        owner: Owner::alone(StreamId(stream)),
        epoch: Epoch(0),
        rtp_timestamp: timestamp,
        arrival: Instant::now(),
        key: kind != DELTA,
        max_scale: 4,
        policy: windlass_types::AnchorPolicy::default(),
        data: Bytes::from(vec![kind; 500]),
    })
}

/// A picture at HR size of the low frame of `timestamp`.
fn captured(stream: u32, timestamp: Option<u32>, kind: u8) -> TapInput {
    TapInput::Captured(CapturedFrame {
        stream: StreamId(stream),
        low_timestamp: timestamp,
        arrival: Instant::now(),
        key: kind != DELTA,
        data: Bytes::from(vec![kind; 500]),
    })
}

fn anchor(enhancer: &Enhancer) -> Option<Anchor> {
    let deadline = Instant::now() + 5 * SECOND;
    loop {
        match enhancer.output.recv_deadline(deadline).ok()? {
            EnhancerOutput::Anchor(anchor) => return Some(anchor),
            EnhancerOutput::NeedKeyFrame { .. }
            | EnhancerOutput::NeedCapturedKeyFrame { .. }
            | EnhancerOutput::Refused { .. }
            | EnhancerOutput::WantRegions { .. }
            | EnhancerOutput::Scale { .. }
            | EnhancerOutput::Knobs { .. } => {}
        }
    }
}

/// Waits for something that another thread does.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + 10 * SECOND;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_key_frame_comes_out_as_an_anchor_with_its_own_names() {
    let enhancer = start(config());
    enhancer.input().push(frame(7, 90_000, KEY));
    let anchor = anchor(&enhancer).unwrap();
    assert_eq!((anchor.stream, anchor.rtp_timestamp), (StreamId(7), 90_000));
    assert_eq!((anchor.width, anchor.height, anchor.codec), (320, 180, 2));
    assert!(!anchor.payload.is_empty());
    eventually("its latency recorded", || enhancer.stats().latency.total.count == 1);
    let stats = enhancer.stats();
    assert_eq!((stats.counters.anchors, stats.streams, stats.backend), (1, 1, "test"));
}

#[test]
fn what_subscribers_see_without_it_does_not_become_an_anchor() {
    let enhancer =
        Enhancer::start_parts(config(), &idle_engines(), decoders(Duration::ZERO)).unwrap();
    enhancer.input().push(frame(1, 0, KEY));
    assert!(anchor(&enhancer).is_some(), "the first is for whoever has nothing");
    enhancer.input().push(frame(1, 3000, DELTA));
    eventually("found out", || enhancer.stats().counters.known == 1);
    let counters = enhancer.stats().counters;
    assert_eq!((counters.anchors, counters.tiles_known), (1, 6));
}

#[test]
fn anchors_are_coded_at_the_size_of_the_enlarged_picture() {
    let enhancer = start(config());
    enhancer.input().push(frame(1, 0, KEY));
    let anchor = anchor(&enhancer).expect("an anchor");
    let (width, height) = (anchor.width, anchor.height);
    let detail = codec::decode(anchor.codec, &anchor.payload, width, height);
    assert_eq!(detail.map(|d| (d.width(), d.height())), Ok((320, 180)));
}

#[test]
fn an_anchor_of_all_tiles_comes_when_it_is_asked_for() {
    let enhancer = start(config());
    enhancer.input().push(frame(1, 0, KEY));
    assert!(anchor(&enhancer).is_some_and(|first| !first.tiled));
    for _ in 0..1001 {
        enhancer.input().push(EnhancerRequest::WholeAnchor.of(StreamId(1)));
    }
    // One in two seconds.
    for n in 1..300 {
        if enhancer.stats().counters.whole_anchors == 2 {
            break;
        }
        enhancer.input().push(frame(1, n * 3000, DELTA));
        std::thread::sleep(FRAME);
    }
    assert_eq!(enhancer.stats().counters.whole_anchors, 2);
    let counters = enhancer.stats().counters;
    assert_eq!((counters.whole_anchor_requests, counters.dropped_decode_queue), (1001, 0));
}

#[test]
fn a_stream_that_begins_without_a_key_frame_asks_for_one() {
    let enhancer = start(config());
    enhancer.input().push(frame(3, 1, DELTA));
    let output = enhancer.output().recv_timeout(5 * SECOND).unwrap();
    assert!(matches!(output, EnhancerOutput::NeedKeyFrame { stream: StreamId(3) }));
    enhancer.input().push(frame(3, 2, KEY));
    assert_eq!(anchor(&enhancer).unwrap().rtp_timestamp, 2);
    assert_eq!(enhancer.stats().counters.dropped_waiting_key, 1);
}

#[test]
fn after_a_gap_nothing_is_decoded_before_the_next_key_frame() {
    let enhancer = start(config());
    let input = enhancer.input();
    input.push(frame(1, 1, KEY));
    assert_eq!(anchor(&enhancer).unwrap().rtp_timestamp, 1);
    input.push(TapInput::Gap { stream: StreamId(1) });
    input.push(frame(1, 2, DELTA));
    let output = enhancer.output().recv_timeout(5 * SECOND).unwrap();
    assert!(matches!(output, EnhancerOutput::NeedKeyFrame { stream: StreamId(1) }));
    input.push(frame(1, 3, KEY));
    assert_eq!(anchor(&enhancer).unwrap().rtp_timestamp, 3);
    let counters = enhancer.stats().counters;
    assert_eq!((counters.gaps, counters.decoded, counters.dropped_waiting_key), (1, 2, 1));
}

#[test]
fn a_malformed_frame_is_like_a_gap() {
    let enhancer = start(config());
    let input = enhancer.input();
    input.push(frame(1, 1, KEY));
    input.push(frame(1, 2, BROKEN));
    input.push(frame(1, 3, DELTA));
    input.push(frame(1, 4, KEY));
    eventually("both key frames decoded", || enhancer.stats().counters.decoded == 2);
    let counters = enhancer.stats().counters;
    assert_eq!((counters.decode_errors, counters.dropped_waiting_key), (1, 1));
}

#[test]
fn a_decoder_that_panics_restarts_at_the_next_key_frame_and_others_go_on() {
    let enhancer = start(config());
    let input = enhancer.input();
    input.push(frame(1, 1, PANIC));
    input.push(frame(2, 1, KEY));
    input.push(frame(1, 2, DELTA));
    input.push(frame(1, 3, KEY));
    let mut got: Vec<_> =
        (0..2).map(|_| anchor(&enhancer).unwrap()).map(|a| (a.stream.0, a.rtp_timestamp)).collect();
    got.sort_unstable();
    assert_eq!(got, [(1, 3), (2, 1)]);
    assert_eq!(enhancer.stats().counters.panics, 1);
}

#[test]
fn an_engine_that_panics_costs_one_anchor() {
    let parts = (engines(Duration::ZERO, 1), decoders(Duration::ZERO));
    let enhancer = Enhancer::start_parts(config(), &parts.0, parts.1).unwrap();
    enhancer.input().push(frame(1, 1, KEY));
    eventually("the panic", || enhancer.stats().counters.panics == 1);
    enhancer.input().push(frame(1, 2, KEY));
    assert_eq!(anchor(&enhancer).unwrap().rtp_timestamp, 2);
}

#[test]
fn a_slow_engine_drops_frames_and_what_comes_out_is_in_time() {
    let config = EnhancerConfig {
        budget: Duration::from_millis(400),
        threads: 1,
        decode_queue: 64,
        ..config()
    };
    let slow = engines(Duration::from_millis(60), 0);
    let enhancer = Enhancer::start_parts(config.clone(), &slow, decoders(Duration::ZERO)).unwrap();
    // Four streams of 100 frames a second: twenty times what 60 ms an anchor can do.
    for n in 0..150 {
        for stream in 0..4 {
            enhancer.input().push(frame(stream, n, KEY));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(config.budget);
    let stats = enhancer.stats();
    let output = enhancer.output();
    let anchors = output.try_iter().filter(|o| matches!(o, EnhancerOutput::Anchor(_)));
    let anchors = anchors.count() as u64;
    assert_eq!(anchors, stats.counters.anchors);
    assert!((5..60).contains(&anchors), "{stats:?}");
    let deadline = Duration::from_millis(340);
    assert!(stats.latency.total.p99 <= deadline + deadline / 16, "{:?}", stats.latency.total);
    let s = stats.scheduler;
    assert!(s.over_capacity + s.lost_causes + s.over_fraction + s.overflowed > 300, "{stats:?}");
    // The capacity keeps the workers' queue short: hardly anything chosen comes too late.
    assert!(stats.counters.late_infer + stats.counters.late_encode <= anchors / 2 + 4, "{stats:?}");
}

#[test]
fn a_full_decode_queue_drops_up_to_the_next_key_frame() {
    let config = EnhancerConfig { decode_queue: 4, ..config() };
    let slow = decoders(Duration::from_millis(30));
    let enhancer =
        Enhancer::start_parts(config.clone(), &engines(Duration::ZERO, 0), slow).unwrap();
    let input = enhancer.input();
    input.push(frame(1, 0, KEY));
    for n in 1..40 {
        input.push(frame(1, n, DELTA));
    }
    let dropped = enhancer.stats().counters.dropped_decode_queue;
    assert!(dropped >= 30, "{dropped}");
    let whole = || enhancer.stats().counters;
    eventually("room again", || whole().decoded + whole().dropped_decode_queue == 40);
    // The decoder first learns of the loss.
    input.push(frame(1, 100, DELTA));
    eventually("the frame skipped", || enhancer.stats().counters.dropped_waiting_key == 1);
    input.push(frame(1, 101, KEY));
    eventually("the key frame's anchor", || {
        anchor(&enhancer).is_some_and(|a| a.rtp_timestamp == 101)
    });
}

#[test]
fn frames_that_arrive_late_are_decoded_but_never_become_anchors() {
    let enhancer = start(EnhancerConfig { budget: Duration::from_millis(200), ..config() });
    let TapInput::Frame(mut old) = frame(1, 1, KEY) else { unreachable!() };
    old.arrival = Instant::now().checked_sub(Duration::from_millis(141)).unwrap();
    enhancer.input().push(TapInput::Frame(old));
    eventually("it was decoded", || enhancer.stats().counters.decoded == 1);
    eventually("it was too late", || enhancer.stats().counters.late_decode == 1);
    assert!(enhancer.output().recv_timeout(Duration::from_millis(100)).is_err());
}

#[test]
fn a_new_epoch_begins_with_a_key_frame() {
    let enhancer = start(config());
    let input = enhancer.input();
    input.push(frame(1, 1, KEY));
    let TapInput::Frame(mut next) = frame(1, 2, DELTA) else { unreachable!() };
    next.epoch = Epoch(1);
    input.push(TapInput::Frame(next.clone()));
    next.data = Bytes::from_static(&[KEY; 8]);
    (next.key, next.rtp_timestamp) = (true, 3);
    input.push(TapInput::Frame(next));
    eventually("two frames decoded", || enhancer.stats().counters.decoded == 2);
    assert_eq!(enhancer.stats().counters.dropped_waiting_key, 1);
    eventually("an anchor of the new epoch", || anchor(&enhancer).unwrap().epoch == Epoch(1));
}

#[test]
fn streams_beyond_the_limit_are_refused_until_one_stops() {
    let enhancer = start(EnhancerConfig { max_streams: 2, ..config() });
    let input = enhancer.input();
    for stream in 0..3 {
        input.push(frame(stream, 1, KEY));
    }
    assert_eq!(enhancer.stats().counters.dropped_stream_limit, 1);
    input.push(TapInput::Stop { stream: StreamId(0) });
    assert_eq!(enhancer.stats().streams, 1);
    eventually("the third stream gets in", || {
        input.push(frame(2, 2, KEY));
        enhancer.stats().streams == 2
    });
}

#[test]
fn the_kill_switch_stops_anchors_and_lets_them_begin_again() {
    let enhancer = start(config());
    let input = enhancer.input();
    input.push(frame(1, 1, KEY));
    anchor(&enhancer).unwrap();
    enhancer.set_enabled(false);
    assert_eq!(enhancer.stats().streams, 0);
    for n in 2..6 {
        input.push(frame(1, n, KEY));
        std::thread::sleep(FRAME);
    }
    assert!(enhancer.output().try_recv().is_err());
    assert_eq!(enhancer.stats().counters.dropped_disabled, 4);
    enhancer.set_enabled(true);
    input.push(frame(1, 6, DELTA));
    let output = enhancer.output().recv_timeout(5 * SECOND).unwrap();
    assert!(matches!(output, EnhancerOutput::NeedKeyFrame { .. }));
    input.push(frame(1, 7, KEY));
    assert_eq!(anchor(&enhancer).unwrap().rtp_timestamp, 7);
}

#[test]
fn a_frame_whose_picture_is_here_becomes_a_captured_anchor() {
    let enhancer = start(EnhancerConfig { interval: Duration::from_millis(200), ..config() });
    let input = enhancer.input();
    input.push(frame(1, 1, KEY));
    assert_eq!(anchor(&enhancer).unwrap().source, AnchorSource::Enhanced);
    // The chosen one is the key frame; the other one is what the publisher's picture is of.
    input.push(frame(1, 2, DELTA));
    input.push(frame(1, 3, KEY));
    input.push(captured(1, Some(2), HIGH));
    let next = anchor(&enhancer).unwrap();
    assert_eq!((next.source, next.rtp_timestamp), (AnchorSource::Captured, 2));
    assert_eq!((next.width, next.height), (320, 180));
    eventually("it was counted", || enhancer.stats().counters.captured_anchors == 1);
}

#[test]
fn a_picture_that_comes_while_its_frame_waits_for_a_worker_becomes_a_captured_anchor() {
    // The only worker has the first for as long as the test wants.
    let (release, held) = held_engines();
    let enhancer = Enhancer::start_parts(config(), &held, decoders(Duration::ZERO)).unwrap();
    // Goes before the enhancer, which waits for its worker, also where the test fails.
    let release = release;
    let input = enhancer.input();
    input.push(frame(1, 1, KEY));
    input.push(frame(2, 2, KEY));
    eventually("one waits", || enhancer.stats().queues.infer == 1);
    input.push(captured(2, Some(2), HIGH));
    eventually("the picture is here", || enhancer.stats().counters.captured_decoded == 1);
    drop(release);
    let mut came = [(); 2].map(|()| anchor(&enhancer).unwrap());
    came.sort_by_key(|anchor| anchor.stream);
    let came = came.map(|anchor| (anchor.stream.0, anchor.source));
    assert_eq!(came, [(1, AnchorSource::Enhanced), (2, AnchorSource::Captured)]);
}

#[test]
fn a_frame_waits_for_its_picture_while_there_is_time_and_one_may_come() {
    let enhancer = start(config());
    let input = enhancer.input();
    let next = || anchor(&enhancer).map(|anchor| (anchor.rtp_timestamp, anchor.source)).unwrap();
    input.push(frame(1, 1, KEY));
    assert_eq!(next(), (1, AnchorSource::Enhanced), "there is no such layer");
    input.push(captured(1, Some(1), HIGH));
    eventually("a picture decoded", || enhancer.stats().counters.captured_decoded == 1);
    input.push(frame(1, 2, KEY));
    std::thread::sleep(Duration::from_millis(200));
    input.push(captured(1, Some(2), HIGH));
    assert_eq!(next(), (2, AnchorSource::Captured));
    input.push(frame(1, 3, KEY));
    std::thread::sleep(Duration::from_millis(50));
    input.push(captured(1, Some(4), HIGH));
    assert_eq!(next(), (3, AnchorSource::Enhanced), "its own is not among them");
    input.push(frame(1, 5, KEY));
    std::thread::sleep(Duration::from_millis(50));
    input.push(TapInput::CapturedGap { stream: StreamId(1) });
    assert_eq!(next(), (5, AnchorSource::Enhanced), "none can be decoded");
    assert!(enhancer.stats().latency.total.p99 < SECOND, "nothing waited to the end");
}

#[test]
fn pictures_without_a_low_frame_or_of_another_size_leave_enhanced_anchors() {
    let enhancer = start(EnhancerConfig { interval: Duration::from_millis(200), ..config() });
    let input = enhancer.input();
    input.push(frame(1, 1, KEY));
    input.push(captured(1, None, HIGH));
    assert_eq!(anchor(&enhancer).unwrap().source, AnchorSource::Enhanced);
    input.push(frame(1, 2, KEY));
    input.push(captured(1, Some(2), KEY));
    assert_eq!(anchor(&enhancer).unwrap().source, AnchorSource::Enhanced);
    assert_eq!(enhancer.stats().counters.captured_decoded, 2);
}

#[test]
fn a_capture_that_is_broken_asks_for_its_own_key_frame_and_leaves_the_stream_alone() {
    let enhancer = start(config());
    let input = enhancer.input();
    input.push(frame(1, 1, KEY));
    anchor(&enhancer).unwrap();
    for broken in
        [captured(1, Some(1), DELTA), captured(1, Some(1), BROKEN), captured(1, None, PANIC)]
    {
        input.push(broken);
    }
    let output = enhancer.output().recv_timeout(5 * SECOND).unwrap();
    assert!(matches!(output, EnhancerOutput::NeedCapturedKeyFrame { stream: StreamId(1) }));
    eventually("the panic", || enhancer.stats().counters.panics == 1);
    input.push(TapInput::CapturedGap { stream: StreamId(1) });
    input.push(frame(1, 2, DELTA));
    assert_eq!(anchor(&enhancer).unwrap().rtp_timestamp, 2);
    let counters = enhancer.stats().counters;
    assert_eq!((counters.captured_decode_errors, counters.captured_gaps), (1, 1));
}

#[test]
fn captures_stop_by_themselves_or_with_their_stream() {
    let enhancer = start(config());
    let input = enhancer.input();
    input.push(captured(1, Some(1), HIGH));
    assert_eq!(enhancer.stats().counters.captured_decoded, 0, "there is no such stream");
    input.push(frame(1, 1, KEY));
    input.push(captured(1, Some(1), HIGH));
    eventually("a picture decoded", || enhancer.stats().counters.captured_decoded == 1);
    input.push(TapInput::CaptureStop { stream: StreamId(1) });
    input.push(captured(1, Some(2), HIGH));
    eventually("it began anew", || enhancer.stats().counters.captured_decoded == 2);
    input.push(TapInput::Stop { stream: StreamId(1) });
    assert_eq!(enhancer.stats().streams, 0);
}

#[test]
fn an_output_that_nobody_takes_stays_bounded() {
    let enhancer = start(EnhancerConfig { output_queue: 3, ..config() });
    let input = enhancer.input();
    eventually("the queue overflows", || {
        input.push(frame(1, 1, KEY));
        std::thread::sleep(FRAME);
        enhancer.stats().counters.dropped_anchors > 0
    });
    assert_eq!(enhancer.output().len(), 3);
}

#[test]
fn a_shutdown_ends_all_threads_and_inputs_left_over_take_nothing() {
    let enhancer = start(config());
    let (input, output) = (enhancer.input(), enhancer.output());
    input.push(frame(1, 1, KEY));
    enhancer.shutdown();
    input.push(frame(1, 2, KEY));
    // Disconnected: every thread that could send is gone.
    assert!(output.iter().count() <= 1);
}

/// How a stage fared.
fn stage(enhancer: &Enhancer, stage: Stage) -> crate::stats::StageSlots {
    enhancer.stats().slots.stages[stage as usize]
}

#[test]
fn every_frame_and_every_anchor_takes_a_slot_and_gives_it_back() {
    let enhancer = start(EnhancerConfig { cpu_tasks: 1, ..config() });
    let input = enhancer.input();
    for kind in [KEY, PANIC, BROKEN, KEY] {
        input.push(frame(1, 3000 * u32::from(kind), kind));
    }
    input.push(captured(1, Some(7), HIGH));
    assert!(anchor(&enhancer).is_some());
    eventually("all decoded", || {
        let counts = [Stage::Decode, Stage::Capture].map(|s| stage(&enhancer, s).wait.count);
        counts == [4, 1] && enhancer.stats().slots.running == 0
    });
    let slots = enhancer.stats().slots;
    assert_eq!((slots.cap, slots.waiting), (1, 0));
    // Those of the publisher's own pixels are only encoded.
    let made = [Stage::Infer, Stage::Encode].map(|s| stage(&enhancer, s));
    assert!(made.iter().map(|m| m.wait.count).sum::<u64>() >= 1);
    assert!(made.iter().all(|m| m.refused == 0));
}

#[test]
fn frames_that_wait_for_a_slot_are_decoded_however_late() {
    let config = EnhancerConfig {
        budget: Duration::from_millis(120),
        cpu_tasks: 1,
        anchor_fraction: 0.0,
        ..config()
    };
    let slow = decoders(Duration::from_millis(30));
    let enhancer = Enhancer::start_parts(config, &engines(Duration::ZERO, 0), slow).unwrap();
    for n in 0..8 {
        enhancer.input().push(frame(n, 0, KEY));
    }
    eventually("all decoded", || enhancer.stats().counters.decoded == 8);
    let decoded = stage(&enhancer, Stage::Decode);
    assert!(decoded.demoted >= 4 && decoded.refused == 0, "{decoded:?}");
    assert!(enhancer.stats().counters.late_decode >= 4);
}

#[test]
fn late_frames_before_a_gap_are_not_decoded() {
    let config = EnhancerConfig {
        budget: Duration::from_millis(360),
        decode_queue: 4,
        anchor_fraction: 0.0,
        ..config()
    };
    let slow = decoders(Duration::from_millis(400));
    let enhancer = Enhancer::start_parts(config, &engines(Duration::ZERO, 0), slow).unwrap();
    let input = enhancer.input();
    input.push(frame(1, 0, KEY));
    for n in 1..8 {
        input.push(frame(1, 3000 * n, DELTA));
    }
    eventually("all skipped", || enhancer.stats().counters.dropped_waiting_key >= 3);
    let counters = enhancer.stats().counters;
    assert!(counters.dropped_decode_queue >= 1 && counters.key_requests >= 1);
    assert_eq!(counters.decoded, 1, "{counters:?}");
    input.push(frame(1, 0, KEY));
    eventually("on again", || enhancer.stats().counters.decoded == 2);
}

#[test]
fn configurations_that_contradict_themselves_are_refused() {
    for wrong in [
        EnhancerConfig { budget: Duration::from_millis(60), ..config() },
        EnhancerConfig { threads: 0, ..config() },
        EnhancerConfig { compute_cap: f64::NAN, ..config() },
        EnhancerConfig { anchor_fraction: 1.5, ..config() },
        EnhancerConfig { interval: Duration::ZERO, ..config() },
        EnhancerConfig { output_queue: 0, ..config() },
    ] {
        let parts = (engines(Duration::ZERO, 0), decoders(Duration::ZERO));
        let refused = Enhancer::start_parts(wrong.clone(), &parts.0, parts.1);
        assert!(matches!(refused.map(|_| ()), Err(StartError::Config(_))), "{wrong:?}");
    }
}

#[test]
fn a_stream_gets_the_better_network_once_it_is_known_to_fit() {
    let [cheap] = engines(Duration::ZERO, 0);
    let [better] = engines(Duration::from_millis(2), 0);
    let networks = [cheap, Network { name: "better".into(), ..better }];
    let decoders = decoders(Duration::ZERO);
    let enhancer = Enhancer::start_parts(config(), &networks, decoders).unwrap();
    let input = enhancer.input();
    let by_network = || enhancer.stats().networks.iter().map(|n| n.anchors).collect::<Vec<_>>();
    let (mut timestamp, deadline) = (0, Instant::now() + 20 * SECOND);
    while by_network()[1] == 0 {
        assert!(Instant::now() < deadline, "never: {:?}", enhancer.stats().networks);
        timestamp += 3000;
        input.push(frame(1, timestamp, KEY));
        while enhancer.output.try_recv().is_ok() {}
        std::thread::sleep(Duration::from_millis(30));
    }
    let networks = enhancer.stats().networks;
    assert!(networks[0].anchors > 0, "the first was made at once");
    assert_eq!(networks.iter().map(|n| n.streams).collect::<Vec<_>>(), [0, 1]);
    assert!(networks[0].per_pixel < networks[1].per_pixel);
}

/// Networks that enlarge by two and by four.
fn of_two_scales() -> [Network; 2] {
    [2, 4].map(|scale| {
        let [network] = network(&format!("by {scale}"), move || TestEngine { scale, ..quick() });
        network
    })
}

#[test]
fn a_stream_is_enlarged_by_more_where_it_may_and_the_sfu_is_told() {
    let decoders = decoders(Duration::ZERO);
    let enhancer = Enhancer::start_parts(config(), &of_two_scales(), decoders).unwrap();
    assert_eq!(enhancer.scale(), 2);
    let input = enhancer.input();
    let (mut timestamp, deadline) = (0, Instant::now() + 20 * SECOND);
    // By stream: what the SFU was told, and the widths of the anchors since.
    let mut told: HashMap<u32, (u16, Vec<u16>)> = HashMap::new();
    let done = |told: &HashMap<u32, (u16, Vec<u16>)>| {
        let has = |stream: u32, scale: u16| {
            told.get(&stream).is_some_and(|(s, widths)| *s == scale && widths.len() > 1)
        };
        has(1, 4) && has(2, 2)
    };
    while !done(&told) {
        assert!(Instant::now() < deadline, "never: {told:?}");
        timestamp += 3000;
        for (stream, max_scale) in [(1, 4), (2, 2)] {
            let TapInput::Frame(frame) = frame(stream, timestamp, KEY) else { unreachable!() };
            input.push(TapInput::Frame(TapFrame { max_scale, ..frame }));
        }
        while let Ok(output) = enhancer.output.try_recv() {
            match output {
                EnhancerOutput::Scale { stream, scale, .. } => {
                    told.insert(stream.0, (scale, Vec::new()));
                }
                EnhancerOutput::Anchor(anchor) => {
                    let (scale, widths) = told.get_mut(&anchor.stream.0).expect("told before");
                    // One may have been under way at the change.
                    let fits = anchor.width == *scale * 160;
                    assert!(fits || widths.is_empty(), "{} after {scale}", anchor.width);
                    widths.extend(fits.then_some(anchor.width));
                }
                _ => {}
            }
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    let stats = enhancer.stats();
    assert_eq!(
        stats.networks.iter().map(|n| (n.scale, n.streams)).collect::<Vec<_>>(),
        [(2, 1), (4, 1)]
    );
    assert_eq!(stats.counters.rescales, 1);
    assert_eq!((stats.counters.panics, stats.counters.infer_errors), (0, 0));
}

#[test]
fn no_networks_and_networks_out_of_order_are_refused() {
    let [two, four] = of_two_scales();
    for networks in [&[four, two][..], &[]] {
        let refused = Enhancer::start_parts(config(), networks, decoders(Duration::ZERO));
        assert!(matches!(refused, Err(StartError::Config(_))));
    }
}

/// Pushes frames of which the publisher's own pictures are here until `done`.
fn push_captured(enhancer: &Enhancer, streams: u32, done: impl Fn(&EnhancerStats) -> bool) {
    let (mut timestamp, deadline) = (0, Instant::now() + 20 * SECOND);
    while !done(&enhancer.stats()) {
        assert!(Instant::now() < deadline, "never: {:?}", enhancer.stats());
        timestamp += 3000;
        for stream in 0..streams {
            enhancer.input().push(frame(stream, timestamp, KEY));
            enhancer.input().push(captured(stream, Some(timestamp), HIGH));
        }
        while enhancer.output.try_recv().is_ok() {}
        std::thread::sleep(FRAME);
    }
}

/// An engine that does what it is told where it learns, and adds nothing.
struct Sample(fn());

impl Engine for Sample {
    fn backend(&self) -> &'static str {
        "lesson"
    }

    fn architecture(&self) -> Architecture {
        Architecture::chain(2, 8, 2)
    }

    fn infer_batch(
        &mut self,
        inputs: &[Input<'_>],
        out: &mut [Residual],
    ) -> Result<(), InferError> {
        if std::thread::current().name() == Some("learn") {
            self.0();
        }
        for (input, out) in inputs.iter().zip(out) {
            out.resize(2 * input.low.width(), 2 * input.low.height());
            out.data.fill(0.0);
        }
        Ok(())
    }

    fn swap(&mut self, _: &Arc<Model>) -> Result<(), SwapError> {
        Ok(())
    }
}

fn learning(what: fn()) -> Enhancer {
    let model = Model::random(Architecture::chain(2, 8, 2), 1).expect("it runs");
    let engines: EngineFactory = Arc::new(move || Box::new(Sample(what)));
    let network = Network { name: "learns".into(), engines, model: Some(Arc::new(model)) };
    Enhancer::start_parts(config(), &[network], decoders(Duration::ZERO)).unwrap()
}

#[test]
fn a_learner_that_panics_costs_no_anchor() {
    let enhancer = learning(|| panic!("a learner that panics, as the test asks"));
    push_captured(&enhancer, 1, |stats| stats.counters.panics > 0);
    let before = enhancer.stats().counters;
    push_captured(&enhancer, 1, |s| s.counters.captured_anchors > before.captured_anchors + 3);
    let counters = enhancer.stats().counters;
    assert_eq!((counters.lessons, counters.learned, counters.panics), (0, 0, 1), "it rests");
}

#[test]
fn lessons_for_which_there_is_no_time_are_dropped_and_workers_wait_for_none() {
    // One inference alone takes all that is allowed in ten seconds.
    let enhancer = learning(|| std::thread::sleep(SECOND));
    let begin = Instant::now();
    push_captured(&enhancer, 3, |_| begin.elapsed() > 5 * SECOND);
    let stats = enhancer.stats();
    assert!(stats.counters.lessons <= 1 && stats.counters.dropped_lessons > 0, "{stats:?}");
    assert!(stats.counters.captured_anchors > 20, "{stats:?}");
    assert!(stats.latency.total.p95 < SECOND, "{:?}", stats.latency);
    // Streams that have ended leave nothing to learn for.
    for stream in 0..3 {
        enhancer.input().push(TapInput::Stop { stream: StreamId(stream) });
    }
}

#[path = "count_tests.rs"]
mod count;
