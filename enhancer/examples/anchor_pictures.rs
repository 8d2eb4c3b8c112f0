//! Writes the fixture of codec 4: a low layer of 96×64, four frames of its detail stream, and a region.
//!
//! ```sh
//! cargo run --release -p windlass-enhancer --example anchor_pictures -- hybrid/tests/fixtures/anchor_pictures.bin
//! ```
//!
//! Each part is behind its length (u16, big endian): eight frames of the low layer; the payloads of the detail stream for
//! frames 0, 2, 4 and 6, the first a key frame; a region of frame 7, its second tile, as a tiled payload.

use std::error::Error;

use windlass_enhancer::encode::vpx::{Encoder, EncoderConfig, FrameUse, SequenceConfig};
use windlass_enhancer::encode::{Gain, Prediction};
use windlass_hybrid::Plane;
use windlass_hybrid::anchor::payload;
use windlass_hybrid::anchor::stream::StreamHeader;
use windlass_hybrid::anchor::tiles::TileMap;
use windlass_hybrid::picture::Picture;
use windlass_hybrid::resample::box_half;

const FRAMES: usize = 8;
const HIGH: (usize, usize) = (192, 128);
/// The region begins here, in HR samples, and lies half outside.
const REGION: usize = 128;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("name the file to write")?;
    let mut parts: Vec<Vec<u8>> = Vec::new();
    let camera = EncoderConfig {
        width: HIGH.0 / 2,
        height: HIGH.1 / 2,
        fps: 30.0,
        kbps: 60,
        screen: false,
        cpu_used: None,
    };
    let mut low = Encoder::new(camera)?;
    for n in 0..FRAMES {
        let picture = high(n);
        let [y, u, v] = picture.planes().map(box_half);
        parts.push(low.encode(&Picture { y, u, v })?);
    }
    let mut detail = Encoder::sequence(SequenceConfig {
        width: HIGH.0,
        height: HIGH.1,
        cpu_used: 7,
        screen: false,
        error_resilient: false,
    })?;
    detail.set_quantiser(20)?;
    for n in 0..4 {
        let used = if n == 0 { FrameUse::Key } else { FrameUse::FromLast };
        let frame = detail.encode_as(&high(2 * n), used)?;
        parts.push(packed(n as u16, &frame));
    }
    let side = HIGH.0 - REGION;
    let mut region = Encoder::sequence(SequenceConfig {
        width: HIGH.1,
        height: HIGH.1,
        cpu_used: 7,
        screen: false,
        error_resilient: false,
    })?;
    region.set_quantiser(20)?;
    let whole = high(FRAMES - 1);
    let cropped = |plane: &Plane, size: usize, first: usize, side: usize| {
        let samples =
            (0..size * size).map(|i| plane.row(i / size)[first + (i % size).min(side - 1)]);
        Plane::from_samples(size, size, samples.collect()).ok_or("a wrong count")
    };
    let y = cropped(&whole.y, HIGH.1, REGION, side)?;
    let chroma = |plane| cropped(plane, HIGH.1 / 2, REGION / 2, side / 2);
    let picture = Picture { y, u: chroma(&whole.u)?, v: chroma(&whole.v)? };
    let frame = region.encode_as(&picture, FrameUse::Key)?;
    let mut tiles = TileMap::empty(HIGH.0 / 2, HIGH.1 / 2);
    tiles.set(1, 0);
    parts.push(payload::pack(&tiles, packed(0, &frame)).0);
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend(u16::try_from(part.len())?.to_be_bytes());
        bytes.extend(part);
    }
    Ok(std::fs::write(path, bytes)?)
}

/// A frame as the payload of anchor `n`, a key anchor where that is 0.
fn packed(n: u16, frame: &[u8]) -> Vec<u8> {
    let (prediction, refers_to) =
        if n == 0 { (Prediction::Key, 0) } else { (Prediction::FromLast, n - 1) };
    let header = StreamHeader { prediction, gain: Gain::ONE, sequence: n, refers_to, run: 5 };
    [&header.to_bytes()[..], frame].concat()
}

/// Waves that move over others that stand, and waves of one colour that stand.
fn high(n: usize) -> Picture {
    let mut picture = Picture::grey(HIGH.0, HIGH.1);
    for (i, v) in picture.y.samples_mut().iter_mut().enumerate() {
        let (x, y) = ((i % HIGH.0) as f32, (i / HIGH.0) as f32);
        let moving = ((x + 2.0 * n as f32) * 1.3).sin() * (y * 1.1).cos();
        *v = (128.0 + 30.0 * moving + 40.0 * (x * 0.05 + y * 0.08).sin()) as u8;
    }
    for (i, v) in picture.u.samples_mut().iter_mut().enumerate() {
        let (x, y) = ((i % (HIGH.0 / 2)) as f32, (i / (HIGH.0 / 2)) as f32);
        *v = (128.0 + 40.0 * (x * 1.7).sin() * (y * 1.5).cos()) as u8;
    }
    picture
}
