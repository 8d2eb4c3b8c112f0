//! Whom the CPU has time for, and that what is dropped is counted, once.

use windlass_types::Refusal;

use super::*;

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
fn the_newest_streams_are_refused_where_the_processor_cannot_decode_all() {
    let config = EnhancerConfig { cpu_tasks: 1, anchor_fraction: 0.0, ..config() };
    // Each takes six tenths of the only slot.
    let slow = decoders(Duration::from_millis(20));
    let enhancer = Enhancer::start_parts(config, &engines(Duration::ZERO, 0), slow).unwrap();
    let (input, mut told) = (enhancer.input(), Vec::new());
    let enough = |stats: EnhancerStats| stats.refused == 3 && stats.counters.dropped_processor > 50;
    // A while longer, as that must stay so.
    let mut more = 0..30;
    for n in 0..600 {
        if enough(enhancer.stats()) && more.next().is_none() {
            break;
        }
        for stream in 0..4 {
            input.push(frame(stream, 3000 * n, if n == 0 { KEY } else { DELTA }));
        }
        told.extend(refusals(&enhancer));
        std::thread::sleep(FRAME);
    }
    // The last counts before it is told.
    eventually("three have given up", || enhancer.stats().counters.given_up == 3);
    told.extend(refusals(&enhancer));
    let stats = enhancer.stats();
    assert_eq!((stats.streams, stats.refused), (1, 3), "{stats:?}");
    assert!(stats.counters.dropped_processor > 50, "{stats:?}");
    told.sort_unstable();
    assert_eq!(told, [1, 2, 3].map(|stream| (stream, Some(Refusal::Processor))));
    let decoded = stats.counters.decoded;
    eventually("the oldest goes on", || {
        input.push(frame(0, 0, KEY));
        enhancer.stats().counters.decoded > decoded
    });
}

/// Frames of four streams, some broken, faster than they can be decoded, and anchors that cannot all be made in time.
fn hard_times() -> Enhancer {
    let config = EnhancerConfig {
        budget: Duration::from_millis(260),
        cpu_tasks: 2,
        decode_queue: 4,
        output_queue: 8,
        max_streams: 3,
        ..config()
    };
    let engines = engines(Duration::from_millis(12), 2);
    let slow = decoders(Duration::from_millis(4));
    let enhancer = Enhancer::start_parts(config, &engines, slow).unwrap();
    let input = enhancer.input();
    for n in 0..150u32 {
        for stream in 0..4 {
            let kind = match (n + 7 * stream) % 40 {
                _ if (n, stream) == (1, 0) => PANIC,
                0 | 20 | 21 => KEY,
                10 => BROKEN,
                _ => DELTA,
            };
            input.push(frame(stream, 3000 * n, kind));
        }
        if n % 50 == 49 {
            enhancer.set_enabled(n == 99);
            input.push(TapInput::Stop { stream: StreamId(n / 50) });
        }
        if n % 8 == 0 {
            enhancer.output.try_iter().for_each(drop);
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    for stream in 0..4 {
        input.push(TapInput::Stop { stream: StreamId(stream) });
    }
    enhancer
}

#[test]
fn every_frame_is_counted_once_whatever_becomes_of_it() {
    let enhancer = hard_times();
    let unaccounted = || {
        let EnhancerStats { counters: c, scheduler: s, .. } = enhancer.stats();
        let before_decoding = c.dropped_disabled
            + c.dropped_stream_limit
            + c.dropped_processor
            + c.dropped_decode_queue
            + c.dropped_stopped
            + c.dropped_waiting_key;
        // Two of the panics are the engine's.
        let tried = c.decoded + c.decode_errors + (c.panics - 2);
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
            + 2;
        [
            c.frames_in as i64 - (before_decoding + tried) as i64,
            c.decoded as i64 - decoded as i64,
            s.considered as i64 - (s.chosen + passed_over) as i64,
            s.chosen as i64 - (c.anchors + given_up) as i64,
        ]
    };
    let deadline = Instant::now() + 10 * SECOND;
    while unaccounted() != [0; 4] && Instant::now() < deadline {
        std::thread::sleep(FRAME);
    }
    assert_eq!(unaccounted(), [0; 4], "{:?}", enhancer.stats());
    let c = enhancer.stats().counters;
    let some = [c.anchors, c.dropped_decode_queue, c.dropped_waiting_key, c.dropped_disabled];
    assert!(some.iter().all(|&count| count > 0), "the case is too easy: {c:?}");
    assert!(c.late_infer + c.late_encode + c.dropped_anchors > 0 && c.panics > 2, "{c:?}");
}
