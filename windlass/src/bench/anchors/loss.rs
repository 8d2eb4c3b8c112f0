//! What lost anchors cost: quality of the pictures shown, with and without loss, and the bytes of
//! what mends it.
//!
//! The server learns of a loss in time for the anchor after the next one, as a sender of a message
//! channel with a limited lifetime does at the latest.

use anyhow::Result;
use windlass_enhancer::encode::{Prediction, StreamEncoder};
use windlass_hybrid::anchor::codec::{AnchorCodec, ResidualJpeg};
use windlass_hybrid::anchor::stream::StreamDecoder;
use windlass_hybrid::anchor::tiles::TileMap;
use windlass_hybrid::detail::Detail;

use super::args::AnchorsArgs;
use super::material::{Material, SCALE, Subscriber, add, db, plane_mse, subtract};
use super::quality::stream_config;
use super::report::Point;

/// Runs with other anchors lost.
const SEEDS: u32 = 4;
const QUALITY: u8 = 75;
const QUANTISER: u8 = 36;

/// What goes over the network and how loss is mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Stills,
    /// A chain, mended by a key anchor.
    ChainKey,
    /// A chain, mended by an anchor from the last key anchor.
    ChainFromKey,
    Star,
    /// The difference to what the server believes to be shown; nobody tells it of losses.
    Closed,
}

const WAYS: [(Way, &str); 5] = [
    (Way::Stills, "jpeg"),
    (Way::ChainKey, "vp9-stream, mended by key"),
    (Way::ChainFromKey, "vp9-stream, mended from key"),
    (Way::Star, "vp9-stream-from-key"),
    (Way::Closed, "jpeg-closed-loop"),
];

/// One point for each way without loss, and one with.
pub fn measure(material: &Material, args: &AnchorsArgs) -> Result<Vec<Point>> {
    let mut points = Vec::new();
    for (way, name) in WAYS {
        let none = vec![false; material.anchors.len()];
        let (whole, bytes) = play(material, args, way, &none)?;
        points.push(Point::new(name, 0.0, &bytes, db(whole)));
        let (mut error, mut all) = (0.0, Vec::new());
        for seed in 1..=SEEDS {
            let lost = losses(material.anchors.len(), args.lost, seed);
            let (mse, bytes) = play(material, args, way, &lost)?;
            error += mse / f64::from(SEEDS);
            all.extend(bytes);
        }
        points.push(Point::new(name, args.lost, &all, db(error)));
    }
    Ok(points)
}

/// Which anchors are lost; the first never is, and at least one is.
fn losses(count: usize, share: f64, seed: u32) -> Vec<bool> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        f64::from(state) / f64::from(u32::MAX)
    };
    let mut lost: Vec<bool> = (0..count).map(|n| n > 0 && random() < share).collect();
    if count > 1 && share > 0.0 && !lost.contains(&true) {
        let at = 1 + (random() * (count - 1) as f64) as usize;
        lost[at.min(count - 1)] = true;
    }
    lost
}

/// Mean squared error of all pictures shown against the original, and the bytes of every anchor.
fn play(
    material: &Material,
    args: &AnchorsArgs,
    way: Way,
    lost: &[bool],
) -> Result<(f64, Vec<usize>)> {
    let (width, height) = material.size;
    let mut viewer = Subscriber::new(material.size);
    let mut twin = (way == Way::Closed).then(|| Subscriber::new(material.size));
    let mut encoder = StreamEncoder::new(stream_config(material, args, QUANTISER))?;
    let mut decoder = StreamDecoder::new(width as u16, height as u16);
    let tiles = TileMap::full(width / SCALE, height / SCALE);
    let (mut error, mut bytes) = (0.0, Vec::new());
    let mut anchors = material.anchors.iter().peekable();
    for (n, data) in material.frames.iter().enumerate() {
        viewer.frame(n, data)?;
        if let Some(twin) = &mut twin {
            twin.frame(n, data)?;
        }
        if let Some((_, low, wanted)) = anchors.next_if(|(frame, _, _)| *frame == n) {
            let i = bytes.len();
            // Known by now: what happened to the anchor before the last.
            let mend = i >= 2 && lost[i - 2];
            let arrived = !lost[i];
            let back: Option<Detail> = match way {
                Way::Stills => {
                    let payload = ResidualJpeg.encode(wanted, QUALITY)?;
                    bytes.push(payload.len());
                    arrived.then(|| still(&payload, material)).transpose()?
                }
                Way::ChainKey | Way::ChainFromKey | Way::Star => {
                    let prediction = match way {
                        Way::ChainKey if mend => Prediction::Key,
                        Way::ChainFromKey if mend => Prediction::FromKey,
                        Way::Star => Prediction::FromKey,
                        _ => Prediction::FromLast,
                    };
                    let anchor = encoder.encode(wanted, &tiles, SCALE, None, prediction)?;
                    bytes.push(anchor.payload.len());
                    if arrived { decoder.decode(&anchor.payload).ok().cloned() } else { None }
                }
                Way::Closed => {
                    let believed = match &twin {
                        Some(twin) => twin.shown(low)?,
                        None => Detail::zero(width, height),
                    };
                    let payload = ResidualJpeg.encode(&subtract(wanted, &believed), QUALITY)?;
                    bytes.push(payload.len());
                    let change = still(&payload, material)?;
                    if let Some(twin) = &mut twin {
                        twin.anchor(n, &add(&believed, &change))?;
                    }
                    arrived
                        .then(|| Ok::<_, anyhow::Error>(add(&viewer.shown(low)?, &change)))
                        .transpose()?
                }
            };
            if let Some(back) = back {
                viewer.anchor(n, &back)?;
            }
        }
        error += plane_mse(&material.originals[n], viewer.luma()?);
    }
    Ok((error / material.frames.len().max(1) as f64, bytes))
}

fn still(payload: &[u8], material: &Material) -> Result<Detail> {
    let (width, height) = material.size;
    Ok(ResidualJpeg.decode(payload, width as u16, height as u16)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_anchor_is_lost_but_never_the_first() {
        for seed in 1..20 {
            let lost = losses(12, 0.05, seed);
            assert!(lost.contains(&true) && !lost[0]);
        }
        assert!(!losses(12, 0.0, 3).contains(&true));
    }
}
