//! Rate and quality of every codec on the same anchors.

use anyhow::Result;
use windlass_enhancer::encode::{Gain, Prediction, StreamConfig, StreamEncoder};
use windlass_hybrid::anchor::codec::{self, AnchorCodec};
use windlass_hybrid::anchor::stream::StreamDecoder;
use windlass_hybrid::anchor::tiles::TileMap;

use super::args::AnchorsArgs;
use super::closed;
use super::material::{Material, SCALE, db, mse};
use super::report::Point;
use crate::eval::cpu_clock::CpuClock;

/// Qualities of still codecs.
pub const QUALITIES: [u8; 6] = [30, 50, 65, 75, 85, 92];
/// Quantisers of the stream.
const QUANTISERS: [u8; 7] = [18, 24, 30, 36, 42, 48, 54];

/// The still codecs by name.
pub fn stills() -> impl Iterator<Item = (&'static str, &'static dyn AnchorCodec)> {
    codec::ALL.into_iter().map(|still| (still.name(), still))
}

/// How the stream's anchors are predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From the anchor before: a chain.
    Chain,
    /// From the key anchor: a star.
    Star,
    /// Not at all.
    Keys,
}

impl Order {
    /// All of them, the product's first.
    pub const ALL: [Order; 3] = [Order::Chain, Order::Star, Order::Keys];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chain => "vp9-stream",
            Self::Star => "vp9-stream-from-key",
            Self::Keys => "vp9-stream-all-key",
        }
    }

    /// What anchors after the first are predicted from.
    pub fn prediction(self) -> Prediction {
        match self {
            Self::Chain => Prediction::FromLast,
            Self::Star => Prediction::FromKey,
            Self::Keys => Prediction::Key,
        }
    }
}

/// The stream's settings for material.
pub fn stream_config(material: &Material, args: &AnchorsArgs, quantiser: u8) -> StreamConfig {
    StreamConfig {
        speed: args.speed,
        screen: args.screen,
        quantiser,
        gain: args.gain.and_then(Gain::from_shift),
        ..StreamConfig::new(material.size.0, material.size.1)
    }
}

/// All points of one condition, `x_jpeg` filled in.
pub fn measure(material: &Material, args: &AnchorsArgs) -> Result<Vec<Point>> {
    let mut points = Vec::new();
    if args.budget.is_empty() {
        for (name, still) in stills() {
            for quality in QUALITIES {
                points.push(by_still(material, name, still, quality)?);
            }
        }
        for order in Order::ALL {
            for quantiser in QUANTISERS {
                points.push(by_stream(material, args, order, quantiser, None)?);
            }
        }
        for quality in QUALITIES {
            points.push(closed::by_difference(material, quality)?);
        }
        compare(&mut points);
    }
    for &budget in &args.budget {
        points.push(by_stream(material, args, Order::Chain, 40, Some(budget))?);
    }
    Ok(points)
}

fn by_still(
    material: &Material,
    name: &'static str,
    still: &dyn AnchorCodec,
    quality: u8,
) -> Result<Point> {
    let (mut encode, mut decode) = (CpuClock::default(), CpuClock::default());
    let (mut error, mut bytes) = (0.0, Vec::new());
    let (width, height) = (material.size.0 as u16, material.size.1 as u16);
    for detail in material.details() {
        let payload = encode.measure(|| still.encode(detail, quality))?;
        let back = decode.measure(|| still.decode(&payload, width, height))?;
        error += mse(detail, &back);
        bytes.push(payload.len());
    }
    let mut point = Point::new(name, quality.into(), &bytes, db(error / bytes.len() as f64));
    point.encode_ms = encode.mean_run_ms();
    point.decode_ms = decode.mean_run_ms();
    Ok(point)
}

fn by_stream(
    material: &Material,
    args: &AnchorsArgs,
    order: Order,
    quantiser: u8,
    budget: Option<usize>,
) -> Result<Point> {
    let (mut encode, mut decode) = (CpuClock::default(), CpuClock::default());
    let (mut error, mut bytes, mut encodes) = (0.0, Vec::new(), 0);
    let (width, height) = material.size;
    let mut encoder = StreamEncoder::new(stream_config(material, args, quantiser))?;
    let mut decoder = StreamDecoder::new(width as u16, height as u16);
    let tiles = TileMap::full(width / SCALE, height / SCALE);
    for detail in material.details() {
        let anchor =
            encode.measure(|| encoder.encode(detail, &tiles, SCALE, budget, order.prediction()))?;
        let back = decode.measure(|| decoder.decode(&anchor.payload))?;
        error += mse(detail, back);
        bytes.push(anchor.payload.len());
        encodes += anchor.encodes;
    }
    let setting = budget.map_or(f64::from(quantiser), |b| b as f64);
    let mut point = Point::new(order.name(), setting, &bytes, db(error / bytes.len() as f64));
    point.encode_ms = encode.mean_run_ms();
    point.decode_ms = decode.mean_run_ms();
    if let Some(budget) = budget {
        point.encodes = Some(f64::from(encodes) / bytes.len() as f64);
        let hits = bytes.iter().filter(|&&b| b <= budget && b * 100 >= budget * 95).count();
        point.budget_hit = Some(hits as f64 / bytes.len() as f64);
        point.worst_fill = bytes.iter().min().map(|&b| b as f64 / budget as f64);
    }
    Ok(point)
}

/// Fills in how many times fewer bytes than JPEG each point takes at its own quality.
fn compare(points: &mut [Point]) {
    let jpeg: Vec<(f64, f64)> = curve(points, "jpeg");
    for point in points {
        point.x_jpeg = bytes_at(&jpeg, point.psnr_y_db).map(|b| b / point.bytes);
    }
}

/// A codec's (PSNR, bytes) by rising PSNR.
fn curve(points: &[Point], codec: &str) -> Vec<(f64, f64)> {
    let mut curve: Vec<(f64, f64)> =
        points.iter().filter(|p| p.codec == codec).map(|p| (p.psnr_y_db, p.bytes)).collect();
    curve.sort_by(|a, b| a.0.total_cmp(&b.0));
    curve
}

/// Bytes at a PSNR, on straight lines in the logarithm of bytes; `None` outside the curve.
fn bytes_at(curve: &[(f64, f64)], psnr: f64) -> Option<f64> {
    let pair = curve.windows(2).find(|w| w[0].0 <= psnr && psnr <= w[1].0)?;
    let ((p0, b0), (p1, b1)) = (pair[0], pair[1]);
    let part = if p1 > p0 { (psnr - p0) / (p1 - p0) } else { 0.0 };
    Some((b0.ln() + (b1.ln() - b0.ln()) * part).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_at_a_psnr_lie_on_the_curve() {
        let curve = [(30.0, 1000.0), (40.0, 4000.0)];
        assert!((bytes_at(&curve, 35.0).unwrap() - 2000.0).abs() < 1e-6);
        assert_eq!(bytes_at(&curve, 41.0), None);
    }

    #[test]
    fn half_the_bytes_at_equal_quality_are_a_factor_of_two() {
        let point = |codec, bytes, psnr| Point::new(codec, 1.0, &[bytes], psnr);
        let mut points =
            [point("jpeg", 1000, 30.0), point("jpeg", 4000, 40.0), point("vp9-stream", 1000, 35.0)];
        compare(&mut points);
        assert!((points[2].x_jpeg.unwrap() - 2.0).abs() < 1e-6);
    }
}
