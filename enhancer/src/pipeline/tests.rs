//! The threads and queues, with decoders, engines and a clock that tests control.
//!
//! Nothing here waits for time to pass. Where time decides, it is the test's ([`Hand`](parts::Hand)).

use std::collections::HashMap;

use bytes::Bytes;
use crossbeam_channel::RecvTimeoutError;
use windlass_hybrid::anchor::codec;
use windlass_sr::{Architecture, InferError, Input, Model, SwapError};
use windlass_types::{
    Anchor, AnchorSource, EnhancerRequest, Epoch, Size, StreamId, TapFrame, TapInput,
};

use super::*;
use parts::{
    BROKEN, DELTA, FRAME, HIGH, Hand, INTERVAL, KEY, MS, PANIC, SECOND, TestEngine, anchor,
    captured, config, decoded, decoders, decoders_that, engines, eventually, frame, held_decoders,
    held_engines, network, output, panicking_engines, start, start_by, start_parts, unaccounted,
};

#[test]
fn a_key_frame_comes_out_as_an_anchor_with_its_own_names() {
    let enhancer = start(config());
    enhancer.input().push(frame(7, 90_000, KEY));
    let anchor = anchor(&enhancer);
    assert_eq!((anchor.stream, anchor.rtp_timestamp), (StreamId(7), 90_000));
    assert_eq!((anchor.size, anchor.codec), (Size::new(320, 180), 2));
    assert!(!anchor.payload.is_empty());
    eventually("its latency recorded", || enhancer.stats().latency.total.count() == 1);
    let stats = enhancer.stats();
    assert_eq!((stats.counters.anchors, stats.streams, stats.backend), (1, 1, "test"));
}

#[test]
fn what_subscribers_see_without_it_does_not_become_an_anchor() {
    let nothing = TestEngine { added: 0.0, ..TestEngine::default() };
    let enhancer = start_parts(config(), &[network("idle", nothing)], decoders());
    enhancer.input().push(frame(1, 0, KEY));
    // The first is for whoever has nothing.
    anchor(&enhancer);
    enhancer.input().push(frame(1, 3000, DELTA));
    eventually("found out", || enhancer.stats().counters.known == 1);
    let counters = enhancer.stats().counters;
    assert_eq!((counters.anchors, counters.tiles_known), (1, 6));
}

#[test]
fn anchors_are_coded_at_the_size_of_the_enlarged_picture() {
    let enhancer = start(config());
    enhancer.input().push(frame(1, 0, KEY));
    let anchor = anchor(&enhancer);
    let detail = codec::decode(anchor.codec, &anchor.payload, anchor.size);
    assert_eq!(detail.map(|d| (d.width(), d.height())), Ok((320, 180)));
}

#[test]
fn an_anchor_of_all_tiles_comes_when_it_is_asked_for() {
    let hand = Hand::new();
    let enhancer = start_by(&hand, config(), &engines(), decoders());
    enhancer.input().push(hand.frame(1, 0, KEY));
    assert!(!hand.anchor(&enhancer).tiled);
    for _ in 0..1001 {
        enhancer.input().request(StreamId(1), EnhancerRequest::KeyAnchor);
    }
    let made = || {
        let counters = enhancer.stats().counters;
        (counters.key_anchors, counters.anchors + counters.known + counters.unchanged)
    };
    // One in two seconds.
    for (n, whole) in [(2, 1), (3, 2)] {
        hand.pass(Duration::from_millis(1_500));
        enhancer.input().push(hand.frame(1, n * 3000, DELTA));
        hand.select(&enhancer, INTERVAL, "it is dealt with", || made().1 == u64::from(n));
        assert_eq!(made().0, whole);
    }
    let counters = enhancer.stats().counters;
    assert_eq!((counters.key_anchor_requests, counters.dropped_decode_queue), (1001, 0));
}

#[test]
fn a_stream_that_begins_without_a_key_frame_asks_for_one() {
    let enhancer = start(config());
    enhancer.input().push(frame(3, 1, DELTA));
    assert!(matches!(output(&enhancer), EnhancerOutput::NeedKeyFrame { stream: StreamId(3) }));
    enhancer.input().push(frame(3, 2, KEY));
    assert_eq!(anchor(&enhancer).rtp_timestamp, 2);
    assert_eq!(enhancer.stats().counters.dropped_waiting_key, 1);
}

#[test]
fn after_a_gap_nothing_is_decoded_before_the_next_key_frame() {
    let enhancer = start(config());
    let input = enhancer.input();
    input.push(frame(1, 1, KEY));
    assert_eq!(anchor(&enhancer).rtp_timestamp, 1);
    input.push(TapInput::Gap { stream: StreamId(1) });
    input.push(frame(1, 2, DELTA));
    assert!(matches!(output(&enhancer), EnhancerOutput::NeedKeyFrame { stream: StreamId(1) }));
    input.push(frame(1, 3, KEY));
    assert_eq!(anchor(&enhancer).rtp_timestamp, 3);
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
        (0..2).map(|_| anchor(&enhancer)).map(|a| (a.stream.0, a.rtp_timestamp)).collect();
    got.sort_unstable();
    assert_eq!(got, [(1, 3), (2, 1)]);
    assert_eq!(enhancer.stats().counters.panics, 1);
}

#[test]
fn an_engine_that_panics_costs_one_anchor() {
    let enhancer = start_parts(config(), &[network("panics", panicking_engines(1))], decoders());
    enhancer.input().push(frame(1, 1, KEY));
    eventually("the panic", || enhancer.stats().counters.panics == 1);
    enhancer.input().push(frame(1, 2, KEY));
    assert_eq!(anchor(&enhancer).rtp_timestamp, 2);
}

#[test]
fn a_slow_engine_drops_frames_and_what_comes_out_is_in_time() {
    const TAKES: Duration = Duration::from_millis(60);
    let config = EnhancerConfig {
        budget: Duration::from_millis(400),
        threads: 1,
        decode_queue: 64,
        // To decode takes no time, but what the engine takes seems to be a decoder's at times.
        cpu_tasks: 64,
        ..config()
    };
    let hand = Hand::new();
    let first = Arc::new({
        let hand = hand.clone();
        move || hand.pass(TAKES)
    });
    let engine = TestEngine { first, on_cpu: false, says: TAKES, ..TestEngine::default() };
    let slow = network("slow", engine);
    let enhancer = start_by(&hand, config.clone(), &[slow], decoders());
    // Four streams of 100 frames a second: twenty times what 60 ms an anchor can do.
    for n in 0..150 {
        let due = 10 * MS * n;
        if hand.passed() < due {
            // The engine has nothing to do.
            eventually("all is done", || {
                let [decoding, _, _, chosen] = unaccounted(&enhancer, 0);
                (decoding, chosen) == (0, 0)
            });
            hand.pass(due.saturating_sub(hand.passed()));
        }
        for stream in 0..4 {
            enhancer.input().push(hand.frame_of(due, stream, n, KEY));
        }
    }
    decoded(&enhancer, 600, 0);
    hand.select(&enhancer, config.budget, "every frame is decided", || {
        unaccounted(&enhancer, 0) == [0; 4]
    });
    let stats = enhancer.stats();
    let output = enhancer.output();
    let taken = output.try_iter().filter_map(|o| match o {
        EnhancerOutput::Anchor(Anchor { times: t, .. }) => {
            Some(t.decode + t.schedule + t.infer + t.encode)
        }
        _ => None,
    });
    let taken: Vec<Duration> = taken.collect();
    let anchors = taken.len() as u64;
    assert_eq!(anchors, stats.counters.anchors);
    assert!((5..60).contains(&anchors), "{stats:?}");
    let deadline = Duration::from_millis(340);
    assert!(taken.iter().all(|took| *took <= deadline), "{taken:?}");
    let s = stats.scheduler;
    assert!(s.over_capacity + s.lost_causes + s.over_fraction + s.overflowed > 300, "{stats:?}");
    // The capacity keeps the workers' queue short: hardly anything chosen comes too late.
    assert!(stats.counters.late_infer + stats.counters.late_encode <= anchors / 2 + 4, "{stats:?}");
}

#[test]
fn a_full_decode_queue_drops_up_to_the_next_key_frame() {
    let config = EnhancerConfig { decode_queue: 4, ..config() };
    let (release, held) = held_decoders();
    let enhancer = start_parts(config, &engines(), held);
    // Goes before the enhancer, which waits for its decoder, also where the test fails.
    let release = release;
    let input = enhancer.input();
    input.push(frame(1, 0, KEY));
    eventually("the decoder has it", || enhancer.stats().queues.decode == 0);
    for n in 1..40 {
        input.push(frame(1, n, DELTA));
    }
    assert_eq!(enhancer.stats().counters.dropped_decode_queue, 35);
    drop(release);
    eventually("room again", || enhancer.stats().counters.decoded == 5);
    // The decoder first learns of the loss.
    input.push(frame(1, 100, DELTA));
    eventually("the frame skipped", || enhancer.stats().counters.dropped_waiting_key == 1);
    input.push(frame(1, 101, KEY));
    while anchor(&enhancer).rtp_timestamp != 101 {}
}

#[test]
fn frames_that_arrive_late_are_decoded_but_never_become_anchors() {
    let enhancer = start(config());
    let TapInput::Frame(mut old) = frame(1, 1, KEY) else { unreachable!() };
    old.arrival = Instant::now().checked_sub(config().timing().deadline() + MS).unwrap();
    enhancer.input().push(TapInput::Frame(old));
    eventually("it was decoded", || enhancer.stats().counters.decoded == 1);
    eventually("it was too late", || enhancer.stats().counters.late_decode == 1);
    enhancer.input().push(frame(2, 2, KEY));
    assert_eq!(anchor(&enhancer).stream, StreamId(2));
    eventually("the selection has ended", || enhancer.stats().scheduler.considered > 0);
    let stats = enhancer.stats();
    assert_eq!((stats.scheduler.considered, enhancer.output().len()), (1, 0), "{stats:?}");
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
    while anchor(&enhancer).epoch != Epoch(1) {}
}

#[test]
fn streams_beyond_the_limit_are_refused_until_one_stops() {
    let hand = Hand::new();
    let config = EnhancerConfig { max_streams: 2, ..config() };
    let enhancer = start_by(&hand, config, &engines(), decoders());
    let input = enhancer.input();
    for stream in 0..3 {
        input.push(hand.frame(stream, 1, KEY));
    }
    assert_eq!(enhancer.stats().counters.dropped_stream_limit, 1);
    decoded(&enhancer, 2, 0);
    input.push(TapInput::Stop { stream: StreamId(0) });
    assert_eq!(enhancer.stats().streams, 1);
    eventually("the third stream gets in", || {
        hand.pass(FRAME);
        input.push(hand.frame(2, 2, KEY));
        enhancer.stats().streams == 2
    });
}

#[test]
fn the_kill_switch_stops_anchors_and_lets_them_begin_again() {
    let enhancer = start(config());
    let input = enhancer.input();
    input.push(frame(1, 1, KEY));
    anchor(&enhancer);
    enhancer.set_enabled(false);
    assert_eq!(enhancer.stats().streams, 0);
    for n in 2..6 {
        input.push(frame(1, n, KEY));
    }
    assert!(enhancer.output().try_recv().is_err());
    assert_eq!(enhancer.stats().counters.dropped_disabled, 4);
    enhancer.set_enabled(true);
    input.push(frame(1, 6, DELTA));
    assert!(matches!(output(&enhancer), EnhancerOutput::NeedKeyFrame { .. }));
    input.push(frame(1, 7, KEY));
    assert_eq!(anchor(&enhancer).rtp_timestamp, 7);
}

#[test]
fn a_frame_whose_picture_is_here_becomes_a_captured_anchor() {
    let hand = Hand::new();
    let enhancer = start_by(&hand, config(), &engines(), decoders());
    let input = enhancer.input();
    input.push(hand.frame(1, 1, KEY));
    assert_eq!(hand.anchor(&enhancer).source, AnchorSource::Enhanced);
    // The chosen one is the key frame; the other one is what the publisher's picture is of.
    input.push(hand.frame(1, 2, DELTA));
    input.push(hand.frame(1, 3, KEY));
    input.push(hand.captured(1, 2, HIGH));
    decoded(&enhancer, 3, 1);
    let next = hand.anchor(&enhancer);
    assert_eq!((next.source, next.rtp_timestamp), (AnchorSource::Captured, 2));
    assert_eq!(next.size, Size::new(320, 180));
    eventually("it was counted", || enhancer.stats().counters.captured_anchors == 1);
}

#[test]
fn a_picture_that_comes_while_its_frame_waits_for_a_worker_becomes_a_captured_anchor() {
    // The only worker has the first for as long as the test wants.
    let (release, held) = held_engines();
    let enhancer = start_parts(config(), &held, decoders());
    // Goes before the enhancer, which waits for its worker, also where the test fails.
    let release = release;
    let input = enhancer.input();
    input.push(frame(1, 1, KEY));
    input.push(frame(2, 2, KEY));
    eventually("one waits", || enhancer.stats().queues.infer == 1);
    input.push(captured(2, Some(2), HIGH));
    eventually("the picture is here", || enhancer.stats().counters.captured_decoded == 1);
    drop(release);
    let mut came = [(); 2].map(|()| anchor(&enhancer));
    came.sort_by_key(|anchor| anchor.stream);
    let came = came.map(|anchor| (anchor.stream.0, anchor.source));
    assert_eq!(came, [(1, AnchorSource::Enhanced), (2, AnchorSource::Captured)]);
}

#[test]
fn a_frame_waits_for_its_picture_while_there_is_time_and_one_may_come() {
    let hand = Hand::new();
    let enhancer = start_by(&hand, config(), &engines(), decoders());
    let input = enhancer.input();
    let next = || {
        let anchor = hand.anchor(&enhancer);
        (anchor.rtp_timestamp, anchor.source)
    };
    // A frame that is chosen, the `n`-th of all, and then waits for so long.
    let waits = |timestamp: u32, n: u64, time: Duration| {
        input.push(hand.frame(1, timestamp, KEY));
        decoded(&enhancer, n, n - 1);
        let chosen = || enhancer.stats().scheduler.chosen == n;
        hand.select(&enhancer, INTERVAL, "it is chosen", chosen);
        hand.pass(time);
        assert!(enhancer.output().is_empty());
    };
    input.push(hand.frame(1, 1, KEY));
    assert_eq!(next(), (1, AnchorSource::Enhanced), "there is no such layer");
    input.push(hand.captured(1, 1, HIGH));
    decoded(&enhancer, 1, 1);
    waits(2, 2, Duration::from_millis(200));
    input.push(hand.captured(1, 2, HIGH));
    decoded(&enhancer, 2, 2);
    assert_eq!(next(), (2, AnchorSource::Captured));
    waits(3, 3, Duration::from_millis(50));
    input.push(hand.captured(1, 4, HIGH));
    decoded(&enhancer, 3, 3);
    assert_eq!(next(), (3, AnchorSource::Enhanced), "its own is not among them");
    waits(5, 4, Duration::from_millis(50));
    input.push(TapInput::CapturedGap { stream: StreamId(1) });
    eventually("the gap is known", || enhancer.stats().counters.key_requests == 1);
    let asked = output(&enhancer);
    assert!(matches!(asked, EnhancerOutput::NeedCapturedKeyFrame { .. }), "{asked:?}");
    assert_eq!(next(), (5, AnchorSource::Enhanced), "none can be decoded");
    assert_eq!(beyond_a_second(&enhancer), 0, "nothing waited to the end");
}

#[test]
fn pictures_without_a_low_frame_or_of_another_size_leave_enhanced_anchors() {
    let hand = Hand::new();
    let enhancer = start_by(&hand, config(), &engines(), decoders());
    let input = enhancer.input();
    for (n, picture) in [(1, captured(1, None, HIGH)), (2, captured(1, Some(2), KEY))] {
        input.push(hand.frame(1, n, KEY));
        input.push(picture);
        decoded(&enhancer, n.into(), n.into());
        assert_eq!(hand.anchor(&enhancer).source, AnchorSource::Enhanced);
    }
}

#[test]
fn a_capture_that_is_broken_asks_for_its_own_key_frame_and_leaves_the_stream_alone() {
    let enhancer = start(config());
    let input = enhancer.input();
    input.push(frame(1, 1, KEY));
    anchor(&enhancer);
    for broken in
        [captured(1, Some(1), DELTA), captured(1, Some(1), BROKEN), captured(1, None, PANIC)]
    {
        input.push(broken);
    }
    assert!(matches!(
        output(&enhancer),
        EnhancerOutput::NeedCapturedKeyFrame { stream: StreamId(1) }
    ));
    eventually("the panic", || enhancer.stats().counters.panics == 1);
    input.push(TapInput::CapturedGap { stream: StreamId(1) });
    input.push(frame(1, 2, DELTA));
    assert_eq!(anchor(&enhancer).rtp_timestamp, 2);
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
/// Anchors that took longer than a second.
fn beyond_a_second(enhancer: &Enhancer) -> u64 {
    let latencies = enhancer.stats().latency.total;
    latencies.buckets().filter(|(most, _)| *most > 1.0).map(|(_, count)| count).sum()
}

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
    anchor(&enhancer);
    eventually("all decoded", || {
        let counts = [Stage::Decode, Stage::Capture].map(|s| stage(&enhancer, s).wait.count());
        counts == [4, 1] && enhancer.stats().slots.running == 0
    });
    let slots = enhancer.stats().slots;
    assert_eq!((slots.cap, slots.waiting), (1, 0));
    // Those of the publisher's own pixels are only encoded.
    let made = [Stage::Infer, Stage::Encode].map(|s| stage(&enhancer, s));
    assert!(made.iter().map(|m| m.wait.count()).sum::<u64>() >= 1);
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
    let hand = Hand::new();
    let slow = decoders_that({
        let hand = hand.clone();
        move || hand.pass(Duration::from_millis(30))
    });
    let enhancer = start_by(&hand, config, &engines(), slow);
    for n in 0..8 {
        enhancer.input().push(hand.frame_of(Duration::ZERO, n, 0, KEY));
    }
    eventually("all decoded", || enhancer.stats().counters.decoded == 8);
    let decoded = stage(&enhancer, Stage::Decode);
    assert!(decoded.late >= 4 && decoded.refused == 0, "{decoded:?}");
    // All but the two that have 60 ms together.
    eventually("all looked at", || enhancer.stats().counters.late_decode == 6);
}

#[test]
fn late_frames_before_a_gap_are_not_decoded() {
    let config = EnhancerConfig {
        budget: Duration::from_millis(360),
        decode_queue: 4,
        anchor_fraction: 0.0,
        ..config()
    };
    let (hand, (release, held)) = (Hand::new(), held_decoders());
    let enhancer = start_by(&hand, config, &engines(), held);
    // Goes before the enhancer, which waits for its decoder, also where the test fails.
    let release = release;
    let input = enhancer.input();
    input.push(hand.frame(1, 0, KEY));
    eventually("the decoder has it", || enhancer.stats().queues.decode == 0);
    for n in 1..8 {
        input.push(hand.frame(1, 3000 * n, DELTA));
    }
    hand.pass(Duration::from_millis(400));
    drop(release);
    eventually("all skipped", || enhancer.stats().counters.dropped_waiting_key == 4);
    let counters = enhancer.stats().counters;
    assert!(counters.dropped_decode_queue == 3 && counters.key_requests >= 1, "{counters:?}");
    assert_eq!(counters.decoded, 1, "{counters:?}");
    input.push(hand.frame(1, 0, KEY));
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
        let clock = Clock::default();
        let refused = Enhancer::start_parts(wrong.clone(), &engines(), decoders(), clock);
        assert!(matches!(refused.map(|_| ()), Err(StartError::Config(_))), "{wrong:?}");
    }
}

/// Waits until no frame is on its way to the selection, or from there to a worker.
fn nothing_waits(enhancer: &Enhancer) {
    eventually("nothing waits", || {
        let queues = enhancer.stats().queues;
        (queues.schedule, queues.infer) == (0, 0)
    });
}

/// A frame of each stream, enlarged by so much at most, 33 ms after the last ones, and time for what follows from them.
fn next_frames(hand: &Hand, enhancer: &Enhancer, n: u32, streams: &[(u32, u16)]) {
    hand.pass(FRAME);
    for &(stream, max_scale) in streams {
        let TapInput::Frame(frame) = hand.frame(stream, 3000 * n, KEY) else { unreachable!() };
        enhancer.input().push(TapInput::Frame(TapFrame { max_scale, ..frame }));
    }
    decoded(enhancer, u64::from(n) * streams.len() as u64, 0);
    nothing_waits(enhancer);
}

#[test]
fn a_stream_gets_the_better_network_once_it_is_known_to_fit() {
    let networks = [("cheap", 100), ("better", 2_000)].map(|(name, micros)| {
        let says = Duration::from_micros(micros);
        network(name, TestEngine { on_cpu: false, says, ..TestEngine::default() })
    });
    let hand = Hand::new();
    let enhancer = start_by(&hand, config(), &networks, decoders());
    let by_network = || enhancer.stats().networks.iter().map(|n| n.anchors).collect::<Vec<_>>();
    for n in 1.. {
        next_frames(&hand, &enhancer, n, &[(1, 4)]);
        while enhancer.output.try_recv().is_ok() {}
        if by_network()[1] > 0 {
            break;
        }
        assert!(n < 600, "never: {:?}", enhancer.stats().networks);
    }
    let networks = enhancer.stats().networks;
    assert!(networks[0].anchors > 0, "the first was made at once");
    assert_eq!(networks.iter().map(|n| n.streams).collect::<Vec<_>>(), [0, 1]);
    assert!(networks[0].per_pixel < networks[1].per_pixel);
}

/// Networks that enlarge by two and by four.
fn of_two_scales() -> [Network; 2] {
    [2, 4]
        .map(|scale| network(&format!("by {scale}"), TestEngine { scale, ..TestEngine::default() }))
}

#[test]
fn a_stream_is_enlarged_by_more_where_it_may_and_the_sfu_is_told() {
    let hand = Hand::new();
    let enhancer = start_by(&hand, config(), &of_two_scales(), decoders());
    assert_eq!(enhancer.scale(), 2);
    // By stream: what the SFU was told, and the widths of the anchors since.
    let mut told: HashMap<u32, (u16, Vec<u16>)> = HashMap::new();
    let done = |told: &HashMap<u32, (u16, Vec<u16>)>| {
        let has = |stream: u32, scale: u16| {
            told.get(&stream).is_some_and(|(s, widths)| *s == scale && widths.len() > 1)
        };
        has(1, 4) && has(2, 2)
    };
    for n in 1.. {
        next_frames(&hand, &enhancer, n, &[(1, 4), (2, 2)]);
        while let Ok(output) = enhancer.output.try_recv() {
            match output {
                EnhancerOutput::Scale { stream, scale, .. } => {
                    told.insert(stream.0, (scale, Vec::new()));
                }
                EnhancerOutput::Anchor(anchor) => {
                    let (scale, widths) = told.get_mut(&anchor.stream.0).expect("told before");
                    // One may have been under way at the change.
                    let fits = anchor.size.width == *scale * 160;
                    assert!(fits || widths.is_empty(), "{} after {scale}", anchor.size);
                    widths.extend(fits.then_some(anchor.size.width));
                }
                _ => {}
            }
        }
        if done(&told) {
            break;
        }
        assert!(n < 600, "never: {told:?}");
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
        let clock = Clock::default();
        let refused = Enhancer::start_parts(config(), networks, decoders(), clock);
        assert!(matches!(refused, Err(StartError::Config(_))));
    }
}

/// Pushes frames of which the publisher's own pictures are here, ten times a second, until `done`.
fn push_captured(
    hand: &Hand,
    enhancer: &Enhancer,
    streams: u32,
    done: impl Fn(&EnhancerStats) -> bool,
) {
    let mut rounds = 0;
    while !done(&enhancer.stats()) {
        rounds += 1;
        assert!(rounds < 1_000, "never: {:?}", enhancer.stats());
        hand.pass(SECOND / 10);
        for stream in 0..streams {
            enhancer.input().push(hand.frame(stream, 3000 * rounds, KEY));
            enhancer.input().push(hand.captured(stream, 3000 * rounds, HIGH));
        }
        let counters = enhancer.stats().counters;
        decoded(enhancer, counters.frames_in, counters.captured_in);
        nothing_waits(enhancer);
        while enhancer.output.try_recv().is_ok() {}
    }
}

/// An engine that does what it is told where it learns, and adds nothing.
#[derive(Clone)]
struct Sample(Arc<dyn Fn() + Send + Sync>);

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

fn learning(hand: &Hand, what: impl Fn() + Send + Sync + 'static) -> Enhancer {
    let model = Model::random(Architecture::chain(2, 8, 2), 1).expect("it runs");
    let engine = Sample(Arc::new(what));
    let engines: EngineFactory = Arc::new(move || Box::new(engine.clone()));
    let network = Network { name: "learns".into(), engines, model: Some(Arc::new(model)) };
    start_by(hand, config(), &[network], decoders())
}

#[test]
fn a_learner_that_panics_costs_no_anchor() {
    let hand = Hand::new();
    let enhancer = learning(&hand, || panic!("a learner that panics, as the test asks"));
    push_captured(&hand, &enhancer, 1, |stats| stats.counters.panics > 0);
    let (before, panicked) = (enhancer.stats().counters, hand.passed());
    push_captured(&hand, &enhancer, 1, |s| {
        let captured = s.counters.captured_anchors - before.captured_anchors;
        captured > 3 && hand.passed() > panicked + 5 * SECOND
    });
    let counters = enhancer.stats().counters;
    assert_eq!((counters.lessons, counters.learned, counters.panics), (0, 0, 1), "it rests");
}

#[test]
fn lessons_for_which_there_is_no_time_are_dropped_and_workers_wait_for_none() {
    // One inference alone takes all that is allowed in ten seconds, and a lesson is several.
    let hand = Hand::new();
    let (release, held) = bounded::<()>(0);
    let enhancer = learning(&hand, {
        let hand = hand.clone();
        move || {
            let end = hand.passed() + SECOND;
            while hand.passed() < end && held.recv_timeout(MS) == Err(RecvTimeoutError::Timeout) {}
        }
    });
    // Goes before the enhancer, which waits for its learner.
    let _release = release;
    push_captured(&hand, &enhancer, 3, |_| hand.passed() > 15 * SECOND);
    let stats = enhancer.stats();
    assert!(stats.counters.lessons <= 1 && stats.counters.dropped_lessons > 0, "{stats:?}");
    assert!(stats.counters.captured_anchors > 20, "{stats:?}");
    let late = beyond_a_second(&enhancer);
    assert!(20 * late <= stats.latency.total.count(), "{late} of {:?}", stats.latency);
    // Streams that have ended leave nothing to learn for.
    for stream in 0..3 {
        enhancer.input().push(TapInput::Stop { stream: StreamId(stream) });
    }
}

#[path = "count_tests.rs"]
mod count;
pub(super) mod parts;
