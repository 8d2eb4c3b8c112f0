//! A call that teaches its network: real VP9 through the whole enhancer, in real time.
//!
//! Frames come as a camera sends them: a lesson a second, and a share of the CPU's time for all of them, are what
//! is learned with.
//!
//! The publisher sends its larger layer for a while, then the low one alone. Both are made by `ffmpeg` with libvpx as
//! Chromium sets it, from a drawn pattern, and from a clip where there is one (`WINDLASS_CLIPS`). Without such an
//! `ffmpeg` the tests are skipped.

mod chromium;
mod common;

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chromium::three_seconds;
use windlass_enhancer::{Enhancer, EnhancerConfig, PipelineCounters};
use windlass_files::clip;
use windlass_sr::NetworkChoice;
use windlass_types::{
    AnchorPolicy, AnchorSource, CapturedFrame, EnhancerOutput, Epoch, Owner, StreamId, TapFrame,
    TapInput,
};

const FRAME: Duration = Duration::from_nanos(33_333_333);
/// One frame at 30 fps on RTP's 90 kHz clock.
const TICKS: u32 = 3_000;
const STREAM: StreamId = StreamId(5);

const CLIP: &str = "LivePortrait__d13.mp4";

/// What a call shows.
#[derive(Clone, Copy, PartialEq)]
enum Scene {
    /// A face; not on every machine.
    Clip,
    /// A drawn pattern, whose larger layer is lighter: that can be learned, whatever the network.
    Drawn,
}

/// Three seconds of a scene, of so many lines and kbit/s, the first frame a key frame.
fn encode(scene: Scene, lines: usize, kbps: u32) -> Option<Vec<Bytes>> {
    let width = 16 * lines / 9;
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]);
    if scene == Scene::Clip {
        let crop = format!("crop=720:405:0:300,scale={width}:{lines}");
        command.arg("-i").arg(clip(CLIP)).args(["-vf", &crop]);
    } else {
        let pattern = "mandelbrot=size=640x360:rate=30:start_scale=0.5:end_scale=0.02:end_pts=300";
        let light = if lines > 180 { ",lutyuv=y=val+8" } else { "" };
        let shown = format!("scale={width}:{lines}{light}");
        command.args(["-f", "lavfi", "-i", pattern, "-vf", &shown]);
    }
    three_seconds(&mut command, kbps)
}

/// A publisher in real time; its clip begins anew, with a key frame, when it is over.
struct Publisher<'a> {
    enhancer: &'a Enhancer,
    low: &'a [Bytes],
    high: &'a [Bytes],
    begin: Instant,
    sent: usize,
}

impl Publisher<'_> {
    /// Sends one frame when it is time, of the larger layer as well if `both`; the anchors so far are taken.
    fn frame(&mut self, both: bool) -> (usize, usize) {
        let (n, at) = (self.sent % self.low.len(), self.sent as u32 * TICKS);
        let due = self.begin + FRAME * self.sent as u32;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        self.sent += 1;
        let (key, arrival) = (n == 0, Instant::now());
        let (epoch, data) = (Epoch(0), self.low[n].clone());
        let low = TapFrame {
            stream: STREAM,
            owner: Owner::alone(STREAM),
            epoch,
            rtp_timestamp: at,
            arrival,
            key,
            max_scale: 2,
            policy: AnchorPolicy::default(),
            data,
        };
        self.enhancer.input().push(TapInput::Frame(low));
        // A capture begins with a stream that is there.
        if both {
            let data = self.high[n].clone();
            self.enhancer.input().push(TapInput::Captured(CapturedFrame {
                stream: STREAM,
                low_timestamp: Some(at),
                arrival,
                key,
                data,
            }));
        }
        let (mut captured, mut enhanced) = (0, 0);
        for output in self.enhancer.output().try_iter() {
            if let EnhancerOutput::Anchor(anchor) = output {
                match anchor.source {
                    AnchorSource::Captured => captured += 1,
                    AnchorSource::Enhanced => enhanced += 1,
                }
            }
        }
        (captured, enhanced)
    }

    fn counters(&self) -> PipelineCounters {
        self.enhancer.stats().counters
    }
}

fn config(scene: Scene, learn: bool) -> EnhancerConfig {
    let plain = PathBuf::from("../models/xs-x2.safetensors");
    EnhancerConfig {
        threads: 1,
        nice: 0,
        learn,
        // Generous: the test shall hold on a machine that is busy with others.
        budget: Duration::from_secs(2),
        // One that sees low pictures alone has nothing to tell it of the light that it lacks.
        network: match scene {
            Scene::Clip => NetworkChoice::Xs,
            Scene::Drawn => NetworkChoice::Files(vec![plain]),
        },
        decode_queue: 64,
        anchor_fraction: 0.2,
        ..EnhancerConfig::default()
    }
}

/// Sends both layers for as long as `go_on` says, then the low one for four seconds, and until an enhanced anchor
/// comes. What viewers have of the larger layer leaves little that is worth one: on a slow CPU none in four seconds.
fn call(
    scene: Scene,
    learn: bool,
    go_on: impl Fn(Duration, &PipelineCounters) -> bool,
) -> Option<[PipelineCounters; 2]> {
    // Calls in real time must not take each other's cores.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (low, high) = (encode(scene, 180, 150)?, encode(scene, 360, 900)?);
    let enhancer = Enhancer::start(config(scene, learn)).expect("it starts");
    let begin = Instant::now();
    let mut publisher = Publisher { enhancer: &enhancer, low: &low, high: &high, begin, sent: 0 };
    while go_on(begin.elapsed(), &publisher.counters()) {
        publisher.frame(true);
    }
    enhancer.input().push(TapInput::CaptureStop { stream: STREAM });
    let before = publisher.counters();
    let (until, mut enhanced) = (publisher.sent + 120, 0);
    while publisher.sent < until || enhanced == 0 && publisher.sent < until + 600 {
        enhanced += publisher.frame(false).1;
    }
    let after = publisher.counters();
    let stats = enhancer.stats();
    println!(
        "{enhanced} enhanced anchors at the end; {before:#?} {after:#?}; {:?}",
        stats.learning
    );
    assert_eq!((after.panics, after.infer_errors, after.decode_errors), (0, 0, 0));
    assert!(enhanced > 0, "{after:?}");
    let max = 0.1 * (begin.elapsed().as_secs_f64() + 5.0) + 2.0;
    assert!(stats.learning.as_secs_f64() < max, "learning took {:?}", stats.learning);
    Some([before, after])
}

/// Teaches until new weights have come into use twice, and goes on without the larger layer.
fn learns(scene: Scene) {
    let patience = Duration::from_secs(60);
    let go_on = |elapsed, counters: &PipelineCounters| elapsed < patience && counters.learned < 2;
    let Some([before, after]) = call(scene, true, go_on) else { return };
    assert!(before.learned >= 2 && before.lessons >= 4, "{before:?}");
    assert_eq!(before.learned_given_up, 0, "the same scene over and over");
    let enhanced = |counters: &PipelineCounters| counters.anchors - counters.captured_anchors;
    let enhanced = enhanced(&after) - enhanced(&before);
    let learned = after.learned_anchors - before.learned_anchors;
    // One may have been under way already.
    assert!(learned > 0 && learned + 1 >= enhanced, "{learned} of {enhanced}: {after:?}");
}

#[test]
fn what_was_learned_from_the_larger_layer_makes_anchors_once_it_has_ended() {
    learns(Scene::Drawn);
}

#[test]
fn what_was_learned_makes_anchors_of_a_face_by_the_network_that_sees_what_viewers_see() {
    if clip(CLIP).exists() {
        learns(Scene::Clip);
    } else {
        windlass_skips::skip(format!("no {}; set WINDLASS_CLIPS", clip(CLIP).display()));
    }
}

#[test]
fn without_learning_all_anchors_are_made_by_generic_weights() {
    let go_on = |elapsed: Duration, _: &PipelineCounters| elapsed < Duration::from_secs(4);
    let Some([_, after]) = call(Scene::Drawn, false, go_on) else { return };
    assert!(after.captured_anchors > 0, "{after:?}");
    let learning = [after.lessons, after.dropped_lessons, after.learned, after.learned_anchors];
    assert_eq!(learning, [0; 4]);
}
