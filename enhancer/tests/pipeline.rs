//! Real VP9 through the whole enhancer: the embedded network, all threads, real time.
//!
//! Calls are paced as cameras pace them: what is tested is that a network keeps up with them, or gives up in time.
//! Nothing else waits for time to pass.
//!
//! The stream is made by `ffmpeg` with libvpx as Chromium sets it, from a clip where there is one
//! (`WINDLASS_CLIPS`), else from a test pattern. Without such an `ffmpeg` the tests are skipped.

mod chromium;
mod common;

use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chromium::three_seconds;
use windlass_enhancer::{Enhancer, EnhancerConfig, EnhancerStats, PipelineCounters};
use windlass_files::clip;
use windlass_hybrid::anchor::payload;
use windlass_sr::NetworkChoice;
use windlass_types::AnchorSource;
use windlass_types::message::{AnchorHeader, ReassembledAnchor};
use windlass_types::{
    Anchor, AnchorPolicy, EnhancerOutput, Epoch, Owner, Size, StreamId, TapFrame, TapInput,
};

const FRAME: Duration = Duration::from_nanos(33_333_333);
/// One frame at 30 fps on RTP's 90 kHz clock.
const TICKS: u32 = 3_000;

/// Tests that run in real time must not take each other's cores.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frames of a 320×180 stream of three seconds, the first a key frame; `None` to skip the test.
fn stream() -> Option<&'static [Bytes]> {
    static STREAM: OnceLock<Option<Vec<Bytes>>> = OnceLock::new();
    let stream = STREAM.get_or_init(encode).as_deref();
    if stream.is_none() {
        windlass_skips::skip(common::NO_ENCODER);
    }
    stream
}

fn encode() -> Option<Vec<Bytes>> {
    let clip = clip("LivePortrait__d13.mp4");
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]);
    if clip.exists() {
        command.arg("-i").arg(clip).args(["-vf", "crop=720:405:0:300,scale=320:180"]);
    } else {
        println!("no clip at {}: a test pattern is used", clip.display());
        command.args(["-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30"]);
    }
    three_seconds(&mut command, 150)
}

fn tap(stream: u32, number: usize, data: &Bytes) -> TapInput {
    TapInput::Frame(TapFrame {
        stream: StreamId(stream),
        owner: Owner::alone(StreamId(stream)),
        epoch: Epoch(0),
        // Starts close to the wrap-around.
        rtp_timestamp: timestamp(number),
        arrival: Instant::now(),
        key: number == 0,
        max_scale: 4,
        policy: AnchorPolicy::default(),
        data: data.clone(),
    })
}

fn timestamp(number: usize) -> u32 {
    (u32::MAX - 30 * TICKS).wrapping_add(number as u32 * TICKS)
}

fn anchors(enhancer: &Enhancer) -> Vec<Anchor> {
    let outputs: Vec<_> = enhancer.output().try_iter().collect();
    let anchors = outputs.into_iter().filter_map(|output| match output {
        EnhancerOutput::Anchor(anchor) => Some(anchor),
        EnhancerOutput::NeedKeyFrame { .. }
        | EnhancerOutput::NeedCapturedKeyFrame { .. }
        | EnhancerOutput::WantRegions { .. }
        | EnhancerOutput::Refused { .. }
        | EnhancerOutput::Scale { .. }
        | EnhancerOutput::Knobs { .. } => None,
    });
    anchors.collect()
}

/// Chosen frames that have become anchors, or will not.
fn made(c: &PipelineCounters) -> u64 {
    let late = c.late_infer + c.late_encode;
    let failed = c.infer_errors + c.encode_errors + c.dropped_anchors + c.dropped_infer_queue;
    c.anchors + late + failed + c.known + c.unchanged + c.worthless
}

/// Waits for something that another thread does.
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn within(config: &EnhancerConfig, anchor: &Anchor) -> bool {
    let t = anchor.times;
    let allowed = config.budget.checked_sub(config.delivery_allowance).unwrap_or_default();
    t.decode + t.schedule + t.infer + t.encode <= allowed
}

#[test]
fn a_call_gets_anchors_in_time_with_the_timestamps_of_their_frames() {
    let Some(frames) = stream() else { return };
    let _turn = alone();
    // Ten times the usual budget: the test shall hold on a machine that is busy with others.
    let budget = Duration::from_secs(2);
    let config = EnhancerConfig {
        threads: 1,
        nice: 0,
        budget,
        anchor_fraction: 0.2,
        // Pictures of one size: twice as large.
        network: NetworkChoice::Xs,
        // A machine that pauses loses none of the call's frames.
        decode_queue: 256,
        ..EnhancerConfig::default()
    };
    let enhancer = Enhancer::start(config.clone()).expect("it starts");
    let input = enhancer.input();
    let begin = Instant::now();
    for (n, data) in frames.iter().enumerate() {
        std::thread::sleep((begin + FRAME * n as u32).saturating_duration_since(Instant::now()));
        input.push(tap(5, n, data));
    }
    until("every frame is decided, and every anchor made", || {
        let EnhancerStats { counters: c, scheduler: s, .. } = enhancer.stats();
        s.considered == frames.len() as u64 && s.chosen == made(&c)
    });
    let stats = enhancer.stats();
    let anchors = anchors(&enhancer);
    println!("{} anchors, {:#?}", anchors.len(), stats.latency);

    assert_eq!(stats.counters.decoded, frames.len() as u64, "{stats:?}");
    assert_eq!(stats.counters.decode_errors + stats.counters.panics, 0);
    // A fifth of 90, one more at the start, and less where the machine was too slow, which is counted.
    assert!((1..=20).contains(&anchors.len()), "{} anchors: {stats:?}", anchors.len());
    let (s, c) = (&stats.scheduler, &stats.counters);
    let no_time = s.over_capacity + s.lost_causes + s.not_planned + c.late_decode;
    let made = anchors.len() as u64 + c.late_infer + c.late_encode;
    assert!(made + no_time >= 6, "{} anchors: {stats:?}", anchors.len());
    let sent: Vec<u32> = (0..frames.len()).map(timestamp).collect();
    for anchor in &anchors {
        assert!(sent.contains(&anchor.rtp_timestamp));
        assert_eq!((anchor.stream, anchor.size), (StreamId(5), Size::new(640, 360)));
        assert!(within(&config, anchor), "{:?}", anchor.times);
        let (detail, tiles) =
            payload::decode(&received(anchor), 2).expect("the browser can decode it");
        assert!(tiles.count() > 0);
        assert!(detail.samples().iter().any(|&d| d != 0), "there is detail in it");
    }
    let mut used: Vec<u32> = anchors.iter().map(|a| a.rtp_timestamp).collect();
    used.dedup();
    assert_eq!(used.len(), anchors.len(), "no frame has two anchors");
}

/// An anchor as a browser has it.
fn received(anchor: &Anchor) -> ReassembledAnchor {
    let header = AnchorHeader {
        tiled: anchor.tiled,
        beyond_prior: true,
        stream: anchor.stream.0,
        epoch: anchor.epoch.0,
        ..AnchorHeader::new(anchor.codec, AnchorSource::Enhanced, anchor.rtp_timestamp, anchor.size)
    };
    ReassembledAnchor { header, payload: anchor.payload.to_vec() }
}

#[test]
fn overload_drops_anchors_and_never_queues_them() {
    let Some(frames) = stream() else { return };
    let _turn = alone();
    let config = EnhancerConfig {
        threads: 1,
        compute_cap: 0.3,
        anchor_fraction: 1.0,
        ..EnhancerConfig::default()
    };
    let enhancer = Enhancer::start(config.clone()).expect("it starts");
    let input = enhancer.input();
    let begin = Instant::now();
    for (n, data) in frames.iter().take(60).enumerate() {
        std::thread::sleep((begin + FRAME * n as u32).saturating_duration_since(Instant::now()));
        for stream in 0..6 {
            input.push(tap(stream, n, data));
        }
    }
    // What comes after the budget would have been queued: only time shows that nothing does.
    std::thread::sleep(config.budget);
    let during = anchors(&enhancer);
    let stats = enhancer.stats();
    std::thread::sleep(config.budget * 2);
    assert!(anchors(&enhancer).is_empty(), "nothing comes out after the budget");
    println!("{} anchors of {} frames: {stats:#?}", during.len(), 6 * 60);
    let (c, s) = (stats.counters, stats.scheduler);
    let dropped = s.over_capacity + s.lost_causes + c.late_decode + c.dropped_decode_queue;
    assert!(dropped > 100, "{stats:?}");
    assert!(during.iter().all(|anchor| within(&config, anchor)));
}

#[test]
fn damaged_frames_cost_their_stream_a_key_frame_and_nobody_else_anything() {
    let Some(frames) = stream() else { return };
    let _turn = alone();
    let config = EnhancerConfig {
        // Nothing is late here, however slow the machine.
        budget: Duration::from_secs(30),
        decode_queue: 256,
        threads: 1,
        ..EnhancerConfig::default()
    };
    let enhancer = Enhancer::start(config).expect("it starts");
    let input = enhancer.input();
    let mut state = 1u32;
    let mut random = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize
    };
    for (n, data) in frames.iter().take(40).enumerate() {
        input.push(tap(1, n, data));
        let mut damaged = data.to_vec();
        damaged.truncate(1 + random() % damaged.len());
        for _ in 0..4 {
            let at = random() % damaged.len();
            damaged[at] ^= random() as u8;
        }
        input.push(tap(2, n, &Bytes::from(damaged)));
    }
    let whole = |a: &Anchor| a.stream == StreamId(2) && a.rtp_timestamp == timestamp(0);
    let (mut healthy, mut mended) = (false, false);
    until("both have anchors", || {
        // The key frame that was asked for; not every frame becomes an anchor.
        if enhancer.stats().queues.decode == 0 {
            input.push(tap(2, 0, &frames[0]));
        }
        for anchor in anchors(&enhancer) {
            healthy |= anchor.stream == StreamId(1);
            mended |= whole(&anchor);
        }
        healthy && mended
    });
    let counters = enhancer.stats().counters;
    assert!(counters.decode_errors > 0, "{counters:?}");
    assert!(counters.key_requests > 0, "{counters:?}");
}
