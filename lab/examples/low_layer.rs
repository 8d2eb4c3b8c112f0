//! Writes a fixture: eight frames of a low layer of 96×64, each behind its length (u16, big endian).
//!
//! ```sh
//! cargo run --release -p windlass-lab --example low_layer -- hybrid/tests/fixtures/low_layer.bin
//! ```

use std::error::Error;

use windlass_hybrid::resample::box_half;
use windlass_vp9::Picture;
use windlass_vpx::{Encoder, EncoderConfig};

/// Number of frames in the fixture.
const FRAMES: usize = 8;
/// Width and height of the HR pictures; the low layer has half of each.
const HIGH: (usize, usize) = (192, 128);

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
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend(u16::try_from(part.len())?.to_be_bytes());
        bytes.extend(part);
    }
    Ok(std::fs::write(path, bytes)?)
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
