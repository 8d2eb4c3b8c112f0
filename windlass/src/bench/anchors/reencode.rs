//! The paper's work (seed 000 §8.2): 720p60 to 2160p60, 7.5 % of the frames anchors, against
//! encoding every 2160p frame by libvpx at the settings of appendix B.
//!
//! There is no 2160p source here: the clip's pictures and the detail of their anchors are mirrored
//! and repeated side by side to 3840×2160, sharp as they are. The paper does not say which `-speed`
//! it took; ours is given on the command line. Decoding, inference and reading are left out on both
//! sides. One thread, processor time, one run.

use anyhow::{Result, ensure};
use windlass_enhancer::encode::vpx::{Encoder, ReencodeConfig};
use windlass_enhancer::encode::{Prediction, StreamConfig, StreamEncoder};
use windlass_hybrid::anchor::codec::detail_of;
use windlass_hybrid::anchor::stream::StreamDecoder;
use windlass_hybrid::anchor::tiles::TileMap;
use windlass_hybrid::detail::Detail;
use windlass_hybrid::picture::Picture;

use super::args::AnchorsArgs;
use super::material::{SCALE, db, mse, tile_detail, tile_picture};
use super::quality::stills;
use super::report::{Labels, Point, Row};
use crate::eval::clip::Clip;
use crate::eval::cpu_clock::CpuClock;
use crate::eval::scale::Scale;

const SIZE: (usize, usize) = (3840, 2160);
const FPS: f64 = 60.0;
const KBPS: u32 = 35_500;
/// Share of the frames that are anchors.
const FRACTION: f64 = 0.075;
/// Qualities of the still codecs: coarse, the product's, and the paper's for this share of anchors.
const QUALITIES: [u8; 3] = [50, 75, 90];

/// One row for the re-encoding and one for each codec and setting.
pub fn measure(name: &str, clip: &Clip, args: &AnchorsArgs) -> Result<Vec<Row>> {
    let count = clip.frames.len().min(FPS as usize);
    let interval = (1.0 / FRACTION).round() as usize;
    let mut details = Vec::new();
    let mut whole = Encoder::reencoder(ReencodeConfig {
        width: SIZE.0,
        height: SIZE.1,
        fps: FPS,
        kbps: KBPS,
        cpu_used: args.reencode_speed,
    })?;
    let mut clock = CpuClock::default();
    let mut bytes = 0;
    for (n, picture) in clip.frames.frames()?.take(count).enumerate() {
        let picture: Picture = picture?;
        if n % interval == 0 {
            let low = Scale::TWO.shrink(&picture);
            details.push(tile_detail(&detail_of(&picture.y, &low.y, 2)?, SIZE.0, SIZE.1));
        }
        let large = tile_picture(&picture, SIZE.0, SIZE.1);
        bytes += clock.measure(|| whole.push(&large))?.len();
        if n % 10 == 9 {
            eprintln!("{name}: {} of {count} frames encoded", n + 1);
        }
    }
    bytes += clock.measure(|| whole.finish())?.len();
    drop(whole);
    ensure!(details.len() > 1, "{name} is too short");
    // What a second of video costs.
    let second = clock.mean_ms(count).unwrap_or_default() * FPS;
    let labels = Labels {
        clip: name,
        uplink_kbps: None,
        detail: "original",
        rate: FPS * FRACTION,
        size: SIZE,
    };
    let mut rows = Vec::new();
    let mut all =
        Point::new("libvpx, every frame", args.reencode_speed.into(), &[bytes / count], f64::NAN);
    all.encode_ms = Some(second / FPS);
    all.anchors = count;
    rows.push(all.row(&labels));
    let finish = |mut point: Point, encode: &CpuClock, decode: &CpuClock| {
        point.encode_ms = encode.mean_run_ms();
        point.decode_ms = decode.mean_run_ms();
        point.x_reencode = point.encode_ms.map(|ms| second / (ms * FPS * FRACTION));
        point.row(&labels)
    };
    for (codec, still) in stills() {
        for quality in QUALITIES {
            let (mut encode, mut decode) = (CpuClock::default(), CpuClock::default());
            let (mut error, mut bytes) = (0.0, Vec::new());
            for detail in &details {
                let payload = encode.measure(|| still.encode(detail, quality))?;
                let back =
                    decode.measure(|| still.decode(&payload, SIZE.0 as u16, SIZE.1 as u16))?;
                error += mse(detail, &back);
                bytes.push(payload.len());
            }
            let point = Point::new(codec, quality.into(), &bytes, db(error / bytes.len() as f64));
            rows.push(finish(point, &encode, &decode));
        }
    }
    for (speed, budgeted) in [(args.speed, false), (5, false), (9, false), (args.speed, true)] {
        let (encode, decode, point) = by_stream(&details, speed, budgeted)?;
        rows.push(finish(point, &encode, &decode));
    }
    Ok(rows)
}

fn by_stream(details: &[Detail], speed: u8, budgeted: bool) -> Result<(CpuClock, CpuClock, Point)> {
    let (mut encode, mut decode) = (CpuClock::default(), CpuClock::default());
    let (mut error, mut bytes, mut encodes) = (0.0, Vec::new(), 0);
    let mut encoder =
        StreamEncoder::new(StreamConfig { speed, ..StreamConfig::new(SIZE.0, SIZE.1) })?;
    let mut decoder = StreamDecoder::new(SIZE.0 as u16, SIZE.1 as u16);
    let tiles = TileMap::full(SIZE.0 / SCALE, SIZE.1 / SCALE);
    for (n, detail) in details.iter().enumerate() {
        // The key anchor takes what it takes; the others about as much as without a budget.
        let budget = (budgeted && n > 0).then_some(BUDGET);
        let code = || encoder.encode(detail, &tiles, SCALE, budget, Prediction::FromLast);
        let anchor = encode.measure(code)?;
        let back = decode.measure(|| decoder.decode(&anchor.payload))?;
        error += mse(detail, back);
        bytes.push(anchor.payload.len());
        encodes += anchor.encodes;
    }
    let codec = if budgeted { "vp9-stream, with a budget" } else { "vp9-stream" };
    let mut point = Point::new(codec, speed.into(), &bytes, db(error / bytes.len() as f64));
    point.encodes = Some(f64::from(encodes) / bytes.len() as f64);
    Ok((encode, decode, point))
}

/// Bytes of an anchor with a budget: 35.5 Mbit/s of the paper at 60 frames/s is 74 kB a frame.
const BUDGET: usize = 74_000;
