//! Streams whose enhanced anchors are worth something, and streams whose are not: real VP9 through the whole enhancer,
//! in real time.
//!
//! Frames come as a camera sends them: the worth of anchors is measured, and given up, by the time that passes between
//! them.
//!
//! All are made of a clip (`WINDLASS_CLIPS`) by `ffmpeg` with libvpx as Chromium sets it. Without either the tests are
//! skipped.

mod chromium;
mod common;

use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chromium::three_seconds;
use windlass_enhancer::pipeline::{EngineFactory, Network};
use windlass_enhancer::{Enhancer, EnhancerConfig, EnhancerStats};
use windlass_files::clip;
use windlass_sr::{
    Architecture, Engine, InferError, Input, Model, NetworkChoice, Residual, SwapError,
};
use windlass_types::{
    AnchorPolicy, AnchorSource, CapturedFrame, EnhancerOutput, Epoch, Owner, StreamId, TapFrame,
    TapInput,
};

const FRAME: Duration = Duration::from_nanos(33_333_333);
/// One frame at 30 fps on RTP's 90 kHz clock.
const TICKS: u32 = 3_000;
const STREAM: StreamId = StreamId(5);

/// Three seconds of a face of so many lines and kbit/s, the first frame a key frame; `soft`: without any detail, as
/// from a camera out of focus.
fn encode(lines: usize, kbps: u32, soft: bool) -> Option<Vec<Bytes>> {
    let clip = clip("LivePortrait__d13.mp4");
    if !clip.exists() {
        windlass_skips::skip(format!("no {}; set WINDLASS_CLIPS", clip.display()));
        return None;
    }
    let width = 16 * lines / 9;
    let blur = if soft { "scale=80:45:flags=area,scale=640:360:flags=bicubic," } else { "" };
    let shown = format!("crop=720:405:0:300,{blur}scale={width}:{lines}:flags=area");
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).arg("-i").arg(clip).args(["-vf", &shown]);
    three_seconds(&mut command, kbps)
}

fn config() -> EnhancerConfig {
    EnhancerConfig {
        threads: 1,
        nice: 0,
        // Generous: the tests shall hold on a machine that is busy with others.
        budget: Duration::from_secs(2),
        network: NetworkChoice::Xs,
        decode_queue: 64,
        anchor_fraction: 0.1,
        ..EnhancerConfig::default()
    }
}

/// A publisher in real time; its clip begins anew, with a key frame, when it is over.
struct Publisher<'a> {
    enhancer: &'a Enhancer,
    low: Vec<Bytes>,
    high: Vec<Bytes>,
    begin: Instant,
    sent: u32,
}

impl Publisher<'_> {
    fn new(enhancer: &Enhancer, low: Vec<Bytes>, high: Vec<Bytes>) -> Publisher<'_> {
        Publisher { enhancer, low, high, begin: Instant::now(), sent: 0 }
    }

    /// Sends frames for so many seconds, of the larger layer as well if `both`; how many anchors of super-resolution
    /// came meanwhile.
    fn send(&mut self, seconds: u32, both: bool) -> usize {
        let mut enhanced = 0;
        for _ in 0..30 * seconds {
            let due = self.begin + FRAME * self.sent;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let (n, at) = (self.sent as usize % self.low.len(), self.sent * TICKS);
            self.sent += 1;
            let (key, arrival) = (n == 0, Instant::now());
            self.enhancer.input().push(TapInput::Frame(TapFrame {
                stream: STREAM,
                owner: Owner::alone(STREAM),
                epoch: Epoch(0),
                rtp_timestamp: at,
                arrival,
                key,
                max_scale: 2,
                policy: AnchorPolicy::default(),
                data: self.low[n].clone(),
            }));
            if both {
                self.enhancer.input().push(TapInput::Captured(CapturedFrame {
                    stream: STREAM,
                    low_timestamp: Some(at),
                    arrival,
                    key,
                    data: self.high[n].clone(),
                }));
            }
            for output in self.enhancer.output().try_iter() {
                let EnhancerOutput::Anchor(anchor) = output else { continue };
                enhanced += usize::from(anchor.source == AnchorSource::Enhanced);
            }
        }
        enhanced
    }

    /// What the enhancer did, none of which went wrong.
    fn stats(&self) -> EnhancerStats {
        let stats = self.enhancer.stats();
        let c = stats.counters;
        println!(
            "{:?} dB, {} held back, {c:?} {:?}",
            stats.worth_db, stats.held_back, stats.scheduler
        );
        assert_eq!((c.panics, c.infer_errors, c.decode_errors), (0, 0, 0));
        stats
    }
}

/// Calls in real time must not take each other's cores.
fn alone<T>(test: impl FnOnce() -> T) -> T {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    test()
}

#[test]
fn a_face_goes_on_with_enhanced_anchors() {
    alone(|| {
        let Some(low) = encode(180, 150, false) else { return };
        let enhancer = Enhancer::start(config()).expect("it starts");
        let mut publisher = Publisher::new(&enhancer, low, Vec::new());
        publisher.send(6, false);
        let later = publisher.send(6, false);
        let stats = publisher.stats();
        assert!(later > 9, "{later}");
        assert_eq!((stats.held_back, stats.counters.probes), (0, 0));
        assert!(stats.worth_db.is_some_and(|db| (0.1..1.0).contains(&db)));
    });
}

#[test]
fn a_soft_picture_to_which_the_network_adds_nothing_is_held_back() {
    alone(|| {
        let Some(low) = encode(180, 150, true) else { return };
        let enhancer = Enhancer::start(config()).expect("it starts");
        let mut publisher = Publisher::new(&enhancer, low, Vec::new());
        publisher.send(6, false);
        let later = publisher.send(6, false);
        let stats = publisher.stats();
        assert_eq!((later, stats.held_back), (0, 1));
        assert!(stats.worth_db.is_some_and(|db| db < 0.05));
        assert!(stats.scheduler.worthless > 10);
    });
}

/// Adds noise.
struct Noise;

impl Engine for Noise {
    fn backend(&self) -> &'static str {
        "noise"
    }

    fn architecture(&self) -> Architecture {
        Architecture::chain(2, 8, 2)
    }

    fn infer_batch(
        &mut self,
        inputs: &[Input<'_>],
        out: &mut [Residual],
    ) -> Result<(), InferError> {
        for (input, out) in inputs.iter().zip(out) {
            out.resize(2 * input.low.width(), 2 * input.low.height());
            let mut state = 1u32;
            for sample in &mut out.data {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *sample = (state >> 24) as f32 / 32.0 - 4.0;
            }
        }
        Ok(())
    }

    fn swap(&mut self, _: &Arc<Model>) -> Result<(), SwapError> {
        Ok(())
    }
}

#[test]
fn a_network_that_harms_is_found_out_by_the_publishers_own_pictures() {
    alone(|| {
        let (Some(low), Some(high)) = (encode(180, 150, false), encode(360, 900, false)) else {
            return;
        };
        let model = Model::random(Architecture::chain(2, 8, 2), 1).expect("it runs");
        let engines: EngineFactory = Arc::new(|| Box::new(Noise));
        let network = Network { name: "noise".into(), engines, model: Some(Arc::new(model)) };
        let enhancer = Enhancer::start_with(config(), &[network]).expect("it starts");
        let mut publisher = Publisher::new(&enhancer, low, high);
        publisher.send(6, true);
        let before = publisher.stats().counters;
        assert!(before.captured_anchors > 0 && before.lessons > 0);
        enhancer.input().push(TapInput::CaptureStop { stream: STREAM });
        publisher.send(5, false);
        let later = publisher.send(4, false);
        let stats = publisher.stats();
        assert_eq!((later, stats.held_back), (0, 1));
        assert!(stats.worth_db.is_some_and(|db| db < -0.5));
    });
}
