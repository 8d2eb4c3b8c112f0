//! What enhanced anchors are worth, as the server estimates it and as it is: the figures behind
//! `scheduler/src/worth/estimate.rs`.
//!
//! `cargo run --release -p windlass-lab --example anchor_worth -- size=640x360 kbps=150 < HR.i420 >
//! FIGURES.csv` codes the box-scaled frames as a browser does, makes an anchor of every few and plays them through two
//! decoders: of a viewer with the anchors, and of one without. A line for each anchor but the first: mean squares in
//! grey levels, then dB of luma against the source.
//!
//! - `seen`, `made`, `new`: error of what viewers see without anchors on the anchor's frame, of what the network makes
//!   of it, and the difference of the two;
//! - `square`, `product`: what the anchor before changes there, and its mean product with what the network does;
//! - `own_db`: what the network raises its frame by; `coded_db`: what is left of it as viewers show it; `last_db`: what
//!   the anchor before raises this frame by;
//! - `mean_db`: what the anchor before was worth over all its frames; `estimate_db`: the server's estimate of that
//!   without the source, at this frame; `measured_db`: the same once the source of the frames before was seen.
//!
//! Further settings, with their defaults: `fps=30 scale=2 screen=0 every=30 quality=0` (of the anchors' coding; 0: the
//! server's) and `model=FILE`.

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufWriter, Read, Write};
use std::sync::Arc;

use windlass_enhancer::EnhancerConfig;
use windlass_enhancer::twin::Twin;
use windlass_hybrid::anchor::codec::{Htj2k, detail_of};
use windlass_hybrid::anchor::prior::Prior;
use windlass_hybrid::resample::box_down;
use windlass_hybrid::{HybridConfig, HybridDecoder};
use windlass_scheduler::worth::{Belief, Change, Truth};
use windlass_sr::{
    CpuEngine, Engine, Model, Residual, embedded_model, infer_tiles, infer_tiles_fused,
};
use windlass_types::message::HTJ2K;
use windlass_types::message::{AnchorHeader, ReassembledAnchor};
use windlass_types::tiles::TileMap;
use windlass_types::{AnchorSource, Size};
use windlass_vp9::simd::Isa;
use windlass_vp9::{Decoder, Picture, Plane, Samples};
use windlass_vpx::{Encoder, EncoderConfig};

type Failure = Box<dyn Error>;

/// RTP ticks of a frame; the rate of the clip does not matter to the decoder.
const TICKS: u32 = 3000;

/// Header of the CSV that is written: the columns described above.
const HEADER: &str = "frame,bytes,seen,made,new,square,product,own_db,coded_db,last_db,mean_db,estimate_db,measured_db";

fn main() -> Result<(), Failure> {
    let given: HashMap<String, String> = std::env::args()
        .skip(1)
        .map(|word| word.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())))
        .collect::<Option<_>>()
        .ok_or("settings are KEY=VALUE")?;
    let of = |key: &str, default: &'static str| -> Result<f64, Failure> {
        Ok(given.get(key).map_or(default, String::as_str).parse()?)
    };
    let size = given.get("size").and_then(|s| s.split_once('x')).ok_or("size=WxH is missing")?;
    let (width, height): (usize, usize) = (size.0.parse()?, size.1.parse()?);
    let (scale, every) = (of("scale", "2")? as usize, of("every", "30")? as usize);
    let model = match given.get("model") {
        Some(path) => Arc::new(Model::from_safetensors(&std::fs::read(path)?)?),
        None => embedded_model()?,
    };
    let mut engine = CpuEngine::new(model);
    let config = EnhancerConfig::default();
    let quality = Some(of("quality", "0")? as u8).filter(|&quality| quality > 0);
    let quality = quality.unwrap_or(config.anchor_quality);
    let mut low_encoder = Encoder::new(EncoderConfig {
        width: width / scale,
        height: height / scale,
        fps: of("fps", "30")?,
        kbps: of("kbps", "150")? as u32,
        screen: of("screen", "0")? != 0.0,
        cpu_used: None,
    })?;
    let hybrid = HybridConfig { scale, ..HybridConfig::default() };
    let mut decoder = Decoder::new();
    let (mut plain, mut with) = (HybridDecoder::new(hybrid), HybridDecoder::new(hybrid));
    let (twin, mut prior) = (Twin::new(scale), Prior::new(Isa::detect(), scale));
    let (mut residual, mut output) =
        (Residual::default(), BufWriter::new(std::io::stdout().lock()));
    let mut input = std::io::stdin().lock();
    let mut bytes = vec![0; width * height * 3 / 2];
    let (mut believes, mut knows) = (Belief::default(), Belief::default());
    // Gains in dB of the frames since the last anchor.
    let mut gains: Vec<f64> = Vec::new();
    writeln!(output, "{HEADER}")?;
    for n in 0usize.. {
        if input.read_exact(&mut bytes).is_err() {
            break;
        }
        let at = n as u32 * TICKS;
        let high = Picture::from_i420(width, height, &bytes).ok_or("a size that no picture has")?;
        let [y, u, v] = high.planes().map(|plane| box_down(plane, scale));
        let data = low_encoder.encode(&Picture { y, u, v })?;
        let frames = decoder.decode(&data)?.to_vec();
        let shown = frames.iter().rev().find(|f| f.info.shown).ok_or("a frame shows nothing")?;
        twin.follow(at, &frames);
        plain.push_frame(at, &data)?;
        with.push_frame(at, &data)?;
        let errors = |plain: &HybridDecoder, with: &HybridDecoder| -> Option<(f64, f64)> {
            Some((error(&plain.hr()?.y, &high.y), error(&with.hr()?.y, &high.y)))
        };
        let none = "a frame shows no high picture";
        let (seen, carried) = errors(&plain, &with).ok_or(none)?;
        if !n.is_multiple_of(every) {
            gains.push(db(seen, carried));
            continue;
        }
        let low = Samples::from(&shown.picture.planes()[0]);
        let start = twin.start(at).ok_or("a frame is forgotten at once")?;
        let tiles = TileMap::full(Size::saturating(low.width, low.height));
        let inferred = if engine.architecture().has_twin() {
            infer_tiles_fused(&mut engine, low, (&start).into(), &tiles, &mut residual)
        } else {
            infer_tiles(&mut engine, low, &tiles, &mut residual)
        };
        let (wanted, _) = inferred?;
        let known = detail_of(Samples::from(&start), low, scale)?;
        let change = twin.change(at, low, &wanted, &known, &tiles).ok_or("sizes differ")?;
        let made = made_error(&wanted, low, scale, &high.y);
        // What is believed is of the frames before.
        let estimates = (believes.mean_db(&change), knows.mean_db(&change));
        knows.learn(&Truth { seen, made, change: change.new });
        let mut detail = wanted;
        prior.take_out(low, &mut detail);
        let payload = Htj2k::encode(&detail, quality)?;
        let anchor = anchor(at, Size::saturating(width, height), payload);
        let bytes = anchor.payload.len();
        twin.sent(&anchor, None);
        with.push_anchor(&anchor);
        with.refresh();
        let (_, coded) = errors(&plain, &with).ok_or(none)?;
        if n > 0 {
            let mean = gains.iter().sum::<f64>() / gains.len().max(1) as f64;
            let errors = Errors { seen, made, coded, carried };
            let row = errors.row(&change, mean, estimates);
            writeln!(output, "{n},{bytes},{row}")?;
        }
        gains.clear();
        gains.push(db(seen, coded));
    }
    Ok(output.flush()?)
}

/// Mean square errors, in square grey levels: of what viewers see without an anchor, of the network's picture, of its
/// code, and of the carried picture.
struct Errors {
    seen: f64,
    made: f64,
    coded: f64,
    carried: f64,
}

impl Errors {
    fn row(&self, change: &Change, mean: f64, estimates: (f64, f64)) -> String {
        let (Errors { seen, made, .. }, old) = (self, change.old.unwrap_or_default());
        let [own, coded, last] = [*made, self.coded, self.carried].map(|error| db(*seen, error));
        format!(
            "{seen:.3},{made:.3},{:.3},{:.3},{:.3},{own:.3},{coded:.3},{last:.3},{mean:.3},{:.3},{:.3}",
            change.new, old.square, old.product, estimates.0, estimates.1
        )
    }
}

fn anchor(at: u32, size: Size, payload: Vec<u8>) -> ReassembledAnchor {
    let header = AnchorHeader {
        beyond_prior: true,
        stream: 1,
        ..AnchorHeader::new(HTJ2K, AnchorSource::Enhanced, at, size)
    };
    ReassembledAnchor { header, payload }
}

/// Mean square error between two planes.
fn error(a: &Plane, b: &Plane) -> f64 {
    let pairs = a.samples().iter().zip(b.samples());
    let sum: u64 = pairs.map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum();
    sum as f64 / a.samples().len().max(1) as f64
}

/// Mean square error of a low picture with the given detail.
fn made_error(
    detail: &windlass_hybrid::Detail,
    low: Samples<'_>,
    scale: usize,
    source: &Plane,
) -> f64 {
    use windlass_hybrid::resample::{Scratch, lanczos, to_plane};
    let mut made = windlass_hybrid::Detail::zero(scale * low.width, scale * low.height);
    let rows = 0..low.height;
    lanczos(Isa::detect(), low, scale, rows, made.samples_mut(), &mut Scratch::default());
    for (made, &detail) in made.samples_mut().iter_mut().zip(detail.samples()) {
        *made = made.saturating_add(detail);
    }
    error(&to_plane(&made), source)
}

fn db(before: f64, after: f64) -> f64 {
    10.0 * (before.max(1e-9) / after.max(1e-9)).log10()
}
