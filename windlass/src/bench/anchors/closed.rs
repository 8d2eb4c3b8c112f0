//! The closed loop, an experiment: an anchor carries the difference to what the subscriber shows.
//!
//! The server runs the subscriber's own decoder; the difference goes as a still image. Nothing of
//! the product does this: it needs a twin for every subscriber who lost another anchor.

use anyhow::Result;
use windlass_hybrid::anchor::codec::{AnchorCodec, ResidualJpeg};

use super::material::{Material, Subscriber, add, db, mse, subtract};
use super::report::Point;
use crate::eval::cpu_clock::CpuClock;

/// Codes every anchor as JPEG of its difference.
pub fn by_difference(material: &Material, quality: u8) -> Result<Point> {
    let mut twin = Subscriber::new(material.size);
    let mut clock = CpuClock::default();
    let (mut error, mut bytes) = (0.0, Vec::new());
    let (width, height) = (material.size.0 as u16, material.size.1 as u16);
    let mut anchors = material.anchors.iter().peekable();
    for (n, data) in material.frames.iter().enumerate() {
        twin.frame(n, data)?;
        let Some((_, low, wanted)) = anchors.next_if(|(frame, _, _)| *frame == n) else { continue };
        let shown = twin.shown(low)?;
        let difference = subtract(wanted, &shown);
        let payload = clock.measure(|| ResidualJpeg.encode(&difference, quality))?;
        let back = add(&shown, &ResidualJpeg.decode(&payload, width, height)?);
        error += mse(wanted, &back);
        bytes.push(payload.len());
        twin.anchor(n, &back)?;
    }
    let psnr = db(error / bytes.len().max(1) as f64);
    let mut point = Point::new("jpeg-closed-loop", quality.into(), &bytes, psnr);
    point.encode_ms = clock.mean_run_ms();
    Ok(point)
}
