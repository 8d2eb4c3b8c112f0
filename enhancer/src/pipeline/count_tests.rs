//! Whom the CPU has time for, and that what is dropped is counted, once.

use parking_lot::RwLock;
use windlass_types::Refusal;

use super::*;
use parts::comes;

/// Refusals sent to the SFU.
fn refusals(enhancer: &Enhancer) -> Vec<(u32, Option<Refusal>)> {
    let outputs = enhancer.output.try_iter();
    let refusals = outputs.filter_map(|output| match output {
        EnhancerOutput::Refused { stream, reason } => Some((stream.0, reason)),
        _ => None,
    });
    refusals.collect()
}

#[test]
fn the_newest_streams_are_refused_where_the_cpu_cannot_decode_all() {
    let config = EnhancerConfig { cpu_tasks: 1, anchor_fraction: 0.0, ..config() };
    // Each takes six tenths of the only slot.
    let hand = Hand::new();
    let slow = decoders_that({
        let hand = hand.clone();
        move || hand.pass(Duration::from_millis(20))
    });
    let enhancer = start_by(&hand, config, &engines(), slow);
    let (input, mut told) = (enhancer.input(), Vec::new());
    let enough = |stats: EnhancerStats| stats.refused == 3 && stats.counters.dropped_cpu > 50;
    // A while longer, as that must stay so.
    let mut more = 0..30;
    for n in 0..600 {
        if enough(enhancer.stats()) && more.next().is_none() {
            break;
        }
        // Nothing is half done when the streams' load is looked at; by the clock, they are late by then.
        eventually("all decoded", || {
            unaccounted(&enhancer, 0)[0] == 0 && enhancer.stats().slots.running == 0
        });
        hand.pass((FRAME * n).saturating_sub(hand.passed()));
        for stream in 0..4 {
            input.push(hand.frame(stream, 3000 * n, if n == 0 { KEY } else { DELTA }));
        }
        told.extend(refusals(&enhancer));
    }
    // The last counts before it is told.
    eventually("three have given up", || enhancer.stats().counters.given_up == 3);
    told.extend(refusals(&enhancer));
    let stats = enhancer.stats();
    assert_eq!((stats.streams, stats.refused), (1, 3), "{stats:?}");
    assert!(stats.counters.dropped_cpu > 50, "{stats:?}");
    told.sort_unstable();
    assert_eq!(told, [1, 2, 3].map(|stream| (stream, Some(Refusal::Cpu))));
    let decoded = stats.counters.decoded;
    eventually("the oldest goes on", || {
        input.push(hand.frame(0, 0, KEY));
        enhancer.stats().counters.decoded > decoded
    });
}

/// The panics of the engine in [`hard_times`].
const PANICS: u64 = 2;

/// Frames of four streams, some broken, faster than they can be decoded, and anchors that cannot all be made in time.
fn hard_times(hand: &Hand) -> Enhancer {
    let config = EnhancerConfig {
        budget: Duration::from_millis(260),
        cpu_tasks: 2,
        decode_queue: 4,
        output_queue: 8,
        max_streams: 3,
        ..config()
    };
    let passes = |time: Duration| {
        let hand = hand.clone();
        move || hand.pass(time)
    };
    let first = Arc::new(passes(12 * MS));
    let engine = TestEngine { first, says: 12 * MS, ..panicking_engines(PANICS as u32) };
    // No decoder gets on while there is a writer.
    let gate = Arc::new(RwLock::new(()));
    let slow = decoders_that({
        let (gate, decode) = (gate.clone(), passes(4 * MS));
        move || {
            drop(gate.read());
            decode();
        }
    });
    let enhancer = start_by(hand, config, &[network("slow", engine)], slow);
    let input = enhancer.input();
    let all_tried =
        |panics: u64| unaccounted(&enhancer, panics)[0] == 0 && enhancer.stats().slots.running == 0;
    // At first each step is waited for, until the SFU's queue is full.
    let mut steps = 0;
    while enhancer.stats().counters.dropped_anchors == 0 {
        let before = PANICS.min(steps);
        steps += 1;
        assert!(steps < 100, "{:?}", enhancer.stats());
        input.push(hand.frame(0, 0, KEY));
        eventually("it is decoded", || all_tried(before));
        let done = || unaccounted(&enhancer, PANICS.min(steps)) == [0; 4];
        hand.select(&enhancer, INTERVAL, "it is made", done);
    }
    let mut burst = None;
    for n in 0..150u32 {
        if n % 8 == 0 {
            enhancer.output.try_iter().for_each(drop);
            burst = Some(gate.write());
        }
        for stream in 0..4 {
            let kind = match (n + 7 * stream) % 40 {
                _ if (n, stream) == (1, 0) => PANIC,
                0 | 20 | 21 => KEY,
                10 => BROKEN,
                _ => DELTA,
            };
            input.push(hand.frame(stream, 3000 * n, kind));
        }
        if n % 50 == 49 {
            enhancer.set_enabled(n == 99);
            input.push(TapInput::Stop { stream: StreamId(n / 50) });
        }
        if n % 8 == 7 {
            burst = None;
            eventually("all decoded", || all_tried(PANICS));
        }
        hand.pass(3 * MS);
    }
    drop(burst);
    for stream in 0..4 {
        input.push(TapInput::Stop { stream: StreamId(stream) });
    }
    enhancer
}

#[test]
fn every_frame_is_counted_once_whatever_becomes_of_it() {
    let hand = Hand::new();
    let enhancer = hard_times(&hand);
    comes(|| {
        hand.pass(INTERVAL);
        unaccounted(&enhancer, PANICS) == [0; 4]
    });
    assert_eq!(unaccounted(&enhancer, PANICS), [0; 4], "{:?}", enhancer.stats());
    let c = enhancer.stats().counters;
    let some = [c.anchors, c.dropped_decode_queue, c.dropped_waiting_key, c.dropped_disabled];
    assert!(some.iter().all(|&count| count > 0), "the case is too easy: {c:?}");
    assert!(c.late_infer + c.late_encode + c.dropped_anchors > 0 && c.panics > PANICS, "{c:?}");
}
