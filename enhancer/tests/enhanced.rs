//! Enhanced anchors are better than none: the embedded network, the codecs and the viewer's decoder on a drawn scene,
//! the same on every machine.

use windlass_enhancer::EnhancerConfig;
use windlass_hybrid::anchor::codec::Htj2k;
use windlass_hybrid::anchor::prior::Prior;
use windlass_hybrid::resample::box_half;
use windlass_hybrid::{HybridConfig, HybridDecoder};
use windlass_sr::{CpuEngine, Engine, Residual, embedded_model, infer_tiles, infer_tiles_fused};
use windlass_types::message::HTJ2K;
use windlass_types::message::{AnchorHeader, ReassembledAnchor};
use windlass_types::tiles::TileMap;
use windlass_types::{AnchorSource, Size};
use windlass_vp9::simd::Isa;
use windlass_vp9::{Picture, Plane, Samples};
use windlass_vpx::{Encoder, EncoderConfig};

const HIGH: (usize, usize) = (640, 360);
const TICKS: u32 = 3_000;
/// Two seconds, with an anchor in each, which comes 130 ms after its frame.
const FRAMES: usize = 60;
const EVERY: usize = 30;
const LATE: usize = 4;

/// Shapes with sharp edges that drift and turn slowly over a soft background.
fn scene(n: usize) -> Picture {
    let mut picture = Picture::grey(HIGH.0, HIGH.1);
    let (time, (sin, cos)) = (n as f32, (0.0004 * n as f32).sin_cos());
    for (i, v) in picture.y.samples_mut().iter_mut().enumerate() {
        let (x, y) = ((i % HIGH.0) as f32 - 320.0, (i / HIGH.0) as f32 - 180.0);
        let (u, w) = (cos * x - sin * y + 0.2 * time, sin * x + cos * y + 0.1 * time);
        let shapes = (u / 13.0).sin() + (w / 17.0).sin() + (u / 23.0 + w / 31.0).sin();
        *v = (120.0 + 30.0 * (x / 150.0).sin() + 45.0 * (12.0 * shapes).tanh()) as u8;
    }
    picture
}

fn psnr(a: &Plane, b: &Plane) -> f64 {
    let pairs = a.samples().iter().zip(b.samples());
    let sum: u64 = pairs.map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum();
    10.0 * (255.0 * 255.0 * a.samples().len() as f64 / sum.max(1) as f64).log10()
}

/// An anchor of a frame as the server makes it by its defaults; `seen`: what viewers see of the frame without enhanced
/// anchors.
fn anchor(engine: &mut CpuEngine, n: usize, low: Samples<'_>, seen: &Plane) -> ReassembledAnchor {
    let (config, tiles) =
        (EnhancerConfig::default(), TileMap::full(Size::saturating(low.width, low.height)));
    let mut residual = Residual::default();
    let made = if engine.architecture().has_twin() {
        infer_tiles_fused(engine, low, seen.into(), &tiles, &mut residual)
    } else {
        infer_tiles(engine, low, &tiles, &mut residual)
    };
    let mut detail = made.expect("the network runs").0;
    Prior::new(Isa::detect(), 2).take_out(low, &mut detail);
    let size = Size::new(HIGH.0 as u16, HIGH.1 as u16);
    let header = AnchorHeader {
        beyond_prior: true,
        stream: 1,
        ..AnchorHeader::new(HTJ2K, AnchorSource::Enhanced, n as u32 * TICKS, size)
    };
    let payload = Htj2k::encode(&detail, config.anchor_quality).expect("it can be coded");
    ReassembledAnchor { header, payload }
}

#[test]
fn one_enhanced_anchor_a_second_is_better_than_none() {
    let mut low = Encoder::new(EncoderConfig {
        width: HIGH.0 / 2,
        height: HIGH.1 / 2,
        fps: 30.0,
        kbps: 400,
        screen: false,
        cpu_used: None,
    })
    .expect("it starts");
    let mut engine = CpuEngine::new(embedded_model().expect("it is built in"));
    let decoder = || HybridDecoder::new(HybridConfig { scale: 2, ..HybridConfig::default() });
    let (mut without, mut with) = (decoder(), decoder());
    let (mut coming, mut gains) = (None, Vec::new());
    for n in 0..FRAMES {
        let high = scene(n);
        let [y, u, v] = high.planes().map(box_half);
        let data = low.encode(&Picture { y, u, v }).expect("it can be coded");
        for decoder in [&mut without, &mut with] {
            decoder.push_frame(n as u32 * TICKS, &data).expect("our own");
        }
        let seen = &without.hr().expect("a picture").y;
        if n.is_multiple_of(EVERY) {
            let low = Samples::from(&without.lr().expect("a picture").planes()[0]);
            coming = Some((n + LATE, anchor(&mut engine, n, low, seen)));
        }
        gains.push(psnr(&with.hr().expect("a picture").y, &high.y) - psnr(seen, &high.y));
        if let Some((_, anchor)) = coming.take_if(|(at, _)| *at == n) {
            with.push_anchor(&anchor);
        }
    }
    let mean = gains.iter().sum::<f64>() / gains.len() as f64;
    let min = gains.iter().copied().fold(f64::INFINITY, f64::min);
    println!("mean gain {mean:.3} dB, least {min:.3}");
    assert!(mean > MARGIN_DB, "{mean}");
    assert!(min > -0.1, "{min}");
}

/// What enhanced anchors must be worth here.
const MARGIN_DB: f64 = 0.2;
