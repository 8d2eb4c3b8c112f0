//! The worth of own weights to viewers who run `xs` at scale 4 without anchors: figures of
//! `lab/notes/frame-networks.md`.
//!
//! `cargo run --release -p windlass-enhancer --example own_weights -- size=960x540 fps=15 < HR.i420` codes the
//! box-scaled frames as a browser does. Two viewers have the same frames. One of them is sent the weights that the
//! server learns, by messages as in a call. A line for each second says by how much its pictures are nearer to the
//! camera's. Further settings, with their defaults:
//!
//! - `kbps=100 screen=0`: of the low layer.
//! - `full=1000`: kbit/s of the full layer, which lessons are made of.
//! - `lessons=15`: frames from one lesson to the next.
//! - `late=4`: frames from a lesson to its update's arrival.
//! - `cuts=N,N,…`: frames that begin another scene. The ten from each on are told apart.

use std::collections::HashMap;
use std::error::Error;
use std::io::Read;
use std::time::{Duration, Instant};

use windlass_enhancer::own_weights::{Lesson, OwnWeightsTrainer, Verdict};
use windlass_hybrid::resample::box_down;
use windlass_hybrid::{HybridConfig, HybridDecoder, enlarge};
use windlass_network::{Runner, Tier};
use windlass_types::weights::{OWN, SCALE, WeightsMessage};
use windlass_vp9::simd::Isa;
use windlass_vp9::{Decoder, FrameBuffer, Picture, Plane, Samples};
use windlass_vpx::{Encoder, EncoderConfig};

type Failure = Box<dyn Error>;

/// The scale.
const BY: usize = SCALE as usize;
/// Frames after a cut that are told apart.
const AFTER_CUT: usize = 10;

struct Settings {
    size: (usize, usize),
    fps: f64,
    kbps: u32,
    full: u32,
    screen: bool,
    lessons: usize,
    late: usize,
    cuts: Vec<usize>,
}

impl Settings {
    fn parse(words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let given: HashMap<String, String> = words
            .map(|word| word.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())))
            .collect::<Option<_>>()
            .ok_or("settings are KEY=VALUE")?;
        let of = |key: &str, default: usize| -> Result<usize, Failure> {
            Ok(given.get(key).map_or(Ok(default), |value| value.parse())?)
        };
        let size =
            given.get("size").and_then(|s| s.split_once('x')).ok_or("size=WxH is missing")?;
        let cuts = given.get("cuts").map(|cuts| cuts.split(',').map(str::parse).collect());
        Ok(Self {
            size: (size.0.parse()?, size.1.parse()?),
            fps: of("fps", 15)? as f64,
            kbps: of("kbps", 100)? as u32,
            full: of("full", 1000)? as u32,
            screen: of("screen", 0)? != 0,
            lessons: of("lessons", 15)?.max(1),
            late: of("late", 4)?,
            cuts: cuts.transpose()?.unwrap_or_default(),
        })
    }

    fn encoder(&self, scale: usize, kbps: u32) -> Result<Encoder, Failure> {
        Ok(Encoder::new(EncoderConfig {
            width: self.size.0 / scale,
            height: self.size.1 / scale,
            fps: self.fps,
            kbps,
            screen: self.screen,
            cpu_used: None,
        })?)
    }

    fn decoder(network: Option<Tier>) -> HybridDecoder {
        HybridDecoder::new(HybridConfig { scale: BY, network, ..HybridConfig::default() })
    }
}

/// The server's part.
struct Server {
    trainer: OwnWeightsTrainer,
    runner: Runner,
    time: Duration,
    lessons: u32,
}

impl Server {
    fn new() -> Result<Self, Failure> {
        let network = Tier::Xs.networks().iter().find(|network| network.scale() == BY);
        Ok(Self {
            trainer: OwnWeightsTrainer::new(network.ok_or("no network has this scale")?.clone()),
            runner: Runner::new(Isa::detect()),
            time: Duration::ZERO,
            lessons: 0,
        })
    }

    /// The message that comes of a lesson, if one does.
    fn lesson(&mut self, now: Instant, low: &FrameBuffer, wanted: &Plane) -> Option<Vec<u8>> {
        let begun = Instant::now();
        let [rebuilt, _, _] = enlarge(low, BY);
        let low = Samples::from(&low.planes()[0]);
        let lesson = Lesson { low, rebuilt: (&rebuilt).into(), wanted: wanted.into() };
        let verdict = self.trainer.lesson(now, &mut self.runner, lesson);
        self.time += begun.elapsed();
        self.lessons += 1;
        let own = match verdict {
            Verdict::Same => return None,
            Verdict::Send(own) => Some(own),
            Verdict::TakeBack => None,
        };
        Some(WeightsMessage { stream: 1, epoch: 0, network: OWN, own }.to_bytes())
    }
}

/// Sums of squared errors of the two viewers.
#[derive(Default)]
struct Errors {
    frames: usize,
    generic: f64,
    own: f64,
    /// Sum and least of the frames' gains in dB.
    gain: f64,
    worst: f64,
    used: usize,
}

impl Errors {
    fn add(&mut self, wanted: &Plane, generic: &Plane, own: &Plane, used: bool) {
        let error = |plane: &Plane| {
            let pairs = plane.samples().iter().zip(wanted.samples());
            let sum = pairs.map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum::<u64>();
            (sum as f64 / wanted.samples().len() as f64).max(1e-3)
        };
        let (generic, own) = (error(generic), error(own));
        let gain = 10.0 * (generic / own).log10();
        self.frames += 1;
        (self.generic, self.own) = (self.generic + psnr(generic), self.own + psnr(own));
        (self.gain, self.worst) = (self.gain + gain, self.worst.min(gain));
        self.used += usize::from(used);
    }

    fn say(&self, what: &str) {
        if self.frames > 0 {
            let n = self.frames as f64;
            let (generic, own, gain) = (self.generic / n, self.own / n, self.gain / n);
            let worst = self.worst;
            println!(
                "{what}: {} frames, {generic:.2} dB, own {own:.2} dB, gain {gain:+.3} (worst {worst:+.2}), used {}",
                self.frames, self.used
            );
        }
    }
}

fn psnr(error: f64) -> f64 {
    10.0 * (255.0 * 255.0 / error).log10()
}

fn main() -> Result<(), Failure> {
    let settings = Settings::parse(std::env::args().skip(1))?;
    let (width, height) = settings.size;
    let mut input = std::io::stdin().lock();
    let (mut low, mut full) =
        (settings.encoder(BY, settings.kbps)?, settings.encoder(1, settings.full)?);
    let mut full_decoder = Decoder::new();
    let mut server = Server::new()?;
    let mut viewers = [Settings::decoder(Some(Tier::Xs)), Settings::decoder(Some(Tier::Xs))];
    let mut messages: Vec<(usize, Vec<u8>)> = Vec::new();
    let (mut all, mut second, mut after) =
        (Errors::default(), Errors::default(), Errors::default());
    let (mut sent, mut bytes_sent, start) = (0, 0, Instant::now());
    let mut bytes = vec![0; width * height * 3 / 2];
    let per_second = settings.fps.round() as usize;
    for n in 0usize.. {
        if input.read_exact(&mut bytes).is_err() {
            break;
        }
        let high = Picture::from_i420(width, height, &bytes).ok_or("a size that no picture has")?;
        let [y, u, v] = high.planes().map(|plane| box_down(plane, BY));
        let data = low.encode(&Picture { y, u, v })?;
        let at = n as u32 * 3000;
        for (_, message) in messages.extract_if(.., |(due, _)| *due <= n) {
            viewers[1].push_weights(&message);
        }
        for viewer in &mut viewers {
            viewer.push_frame(at, &data)?;
        }
        let whole = full.encode(&high)?;
        let frames = full_decoder.decode(&whole)?;
        let whole = frames.last().ok_or("a frame shows nothing")?.picture.to_picture().y;
        if n % settings.lessons == 0 {
            let now = start + Duration::from_secs_f64(n as f64 / settings.fps);
            let low = viewers[0].lr().ok_or("no frame")?;
            if let Some(message) = server.lesson(now, low, &whole) {
                (sent, bytes_sent) = (sent + 1, bytes_sent + message.len());
                println!("frame {n}: an update of {} bytes", message.len());
                messages.push((n + settings.late, message));
            }
        }
        let used = viewers[1].runs_own_weights();
        let [generic, own] = viewers.each_ref().map(|viewer| viewer.hr().map(|seen| &seen.y));
        let (generic, own) = generic.zip(own).ok_or("a frame shows nothing")?;
        all.add(&high.y, generic, own, used);
        second.add(&high.y, generic, own, used);
        if settings.cuts.iter().any(|&cut| (cut..cut + AFTER_CUT).contains(&n)) {
            after.add(&high.y, generic, own, used);
        }
        if second.frames == per_second {
            second.say(&format!("second {}", n / per_second));
            second = Errors::default();
        }
    }
    after.say("after cuts");
    all.say("all");
    let each = server.time.as_secs_f64() * 1000.0 / f64::from(server.lessons.max(1));
    println!("{sent} updates, {bytes_sent} bytes; {} lessons of {each:.1} ms", server.lessons);
    Ok(())
}
