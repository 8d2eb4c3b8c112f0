//! Makes the stills that the server asks for.
//!
//! [`Source::Dds`] is DDS's own way. Regions are chosen in each looked-at frame of the low stream alone. They are at
//! most 4 % of the picture, have an objectness above 0.5, and overlap the tiles that the low stream already answers
//! by at most 30 %. They are sent of *that* frame, at a fixed fine quality. Instead of a detector's objectness, the
//! uncertainty of super-resolution is used here: `u / (u + 1)`, with `u` the energy of what it adds (square grey
//! levels by sample). Tiles where that is below 0.3 are answered. Nothing is remembered. [`Source::Regions`] is the
//! product's way: by the scores of the live server (`enhancer/tiles/regions`), of the camera's *next* frame, within a
//! cap on area and bytes. In both, HTJ2K encodes the detail that the receivers' filters do not predict.

use std::time::Duration;

use anyhow::{Context, Result};
use windlass_enhancer::tiles::{RegionConfig, RegionLedger, Subjects, stakes};
use windlass_enhancer::twin::Twin;
use windlass_hybrid::anchor::codec::{Htj2k, detail_of};
use windlass_hybrid::anchor::colour;
use windlass_hybrid::anchor::payload::{self as payloads, Packed};
use windlass_hybrid::anchor::prior::Prior;
use windlass_sr::energy_by_tile;
use windlass_types::tiles::{TILE, TileMap};
use windlass_types::{Bitrate, Size};
use windlass_vp9::simd::Isa;
use windlass_vp9::{Decoder, Plane};

use super::{CapturedSettings, Sender, Source, StillPath, transmission};
use crate::eval::anchors::{AnchorTrack, rtp_timestamp, shown_at};
use crate::eval::clip::Clip;
use crate::eval::low_layer::Coded;
use crate::eval::scale::Scale;
use crate::eval::sr::Upscaler;
use crate::interrupt;

/// Maximum size of a region of DDS, as a share of the picture.
const MAX_SHARE: f64 = 0.04;
/// Minimum objectness of a region of DDS.
const OBJECTNESS: f64 = 0.5;
/// Objectness below which DDS takes the low stream's answer.
const ANSWERED: f64 = 0.3;
/// Maximum overlap (intersection over union) of a region with what is answered.
const OVERLAP: f64 = 0.3;
/// The fine quality of DDS as a quality of HTJ2K, near QP 26 of H.264.
const DDS_QUALITY: u8 = 85;

/// Makes the stills of a clip's regions, as anchors.
pub(crate) fn make(
    clip: &Clip,
    low: &Coded,
    scale: Scale,
    source: Source,
    settings: &CapturedSettings,
    path: &StillPath,
    upscaler: &mut Upscaler,
) -> Result<AnchorTrack> {
    let step = ((clip.fps / settings.stills_fps).round() as usize).max(1);
    let bitrate = Bitrate::kbps(settings.stills_kbps.into());
    let config = RegionConfig { area: settings.area, bitrate, ..RegionConfig::default() };
    let between = Duration::from_secs_f64(step as f64 / clip.fps);
    let mut prior = Prior::new(Isa::detect(), scale.factor());
    // A request takes as long as its answer takes on the way back.
    let back = (path.delay.as_secs_f64() * clip.fps).ceil() as usize;
    let mut asked: Vec<(usize, TileMap)> = Vec::new();
    let mut ledger = RegionLedger::default();
    let mut subjects = Subjects::new();
    let mut sender = Sender::new(clip.frames.size());
    let (twin, mut decoder) = (Twin::new(scale.factor()), Decoder::new());
    for (n, (original, picture)) in clip.frames.frames()?.zip(low.pictures.frames()?).enumerate() {
        interrupt::check()?;
        let (original, picture) = (original?, picture?);
        if source == Source::Regions {
            twin.follow(rtp_timestamp(n, clip.fps), decoder.decode(&low.frames[n].data)?);
        }
        if n % step == 0 {
            let size = Size::saturating(picture.width(), picture.height());
            let (detail, all) = (upscaler.detail(&picture.y)?, TileMap::full(size));
            let energies = energy_by_tile(&detail, &all, scale.factor());
            let uncertainty: Vec<f64> = energies.map(|tile| tile.energy).collect();
            let tiles = if source == Source::Dds {
                dds(&uncertainty, &picture.y)
            } else {
                let (now, at) = (shown_at(n, clip.fps), rtp_timestamp(n, clip.fps));
                let stakes = stakes(&uncertainty, &subjects.weigh((&picture.y).into()));
                let lost = twin.lost(at).with_context(|| format!("the twin has no frame {n}"))?;
                ledger.choose(size, &lost, stakes.as_deref(), now, &config)
            };
            // DDS sends the frame that the server looked at, which the camera has kept.
            let frame = if source == Source::Dds { n } else { n + if n == 0 { 0 } else { back } };
            asked.extend(tiles.map(|tiles| (frame, tiles)));
        }
        let Some(at) = asked.iter().position(|(frame, _)| *frame == n) else { continue };
        let (_, tiles) = asked.swap_remove(at);
        let mut detail = detail_of(&original.y, &picture.y, scale.factor())?;
        prior.take_out((&picture.y).into(), &mut detail);
        let image = payloads::image(detail, &tiles, scale.factor());
        let coded = if source == Source::Dds {
            Htj2k::encode(&image, DDS_QUALITY)?
        } else {
            let [_, u, v] = original.samples();
            let colour = colour::image([u, v], picture.samples(), &tiles, scale.factor());
            Htj2k::fill(&image, Some(&colour), config.bytes(Some(between)))?
        };
        let Packed { payload, tiled } = payloads::pack(&tiles, coded);
        let asking = if source == Source::Dds { path.delay } else { Duration::ZERO };
        let took = asking + path.delay + transmission(payload.len(), path.uplink_kbps);
        let at = shown_at(n, clip.fps);
        if source == Source::Regions {
            ledger.captured(&tiles, at);
        }
        sender.send(n, rtp_timestamp(n, clip.fps), at + took, &payload, tiled)?;
        if let (Source::Regions, Some(sent)) = (source, sender.anchors.last()) {
            twin.give(&sent.anchor);
        }
    }
    // The decoder takes them in the order in which they are ready.
    sender.anchors.sort_by_key(|anchor| anchor.ready_at);
    Ok(AnchorTrack {
        kbps: windlass_vpx::kbps(sender.bytes, clip.frames.len(), clip.fps),
        anchors: sender.anchors,
        lost: 0,
        bytes: sender.bytes,
        sr_share: 0.0,
        infer_ms: None,
        encode_ms: None,
    })
}

/// The regions that DDS requests of one frame; `None` where there are none.
fn dds(uncertainty: &[f64], low: &Plane) -> Option<TileMap> {
    let mut map = TileMap::empty(Size::saturating(low.width(), low.height()));
    let (columns, rows) = (map.columns(), map.rows());
    let objectness: Vec<f64> = uncertainty.iter().map(|u| u / (u + 1.0)).collect();
    let max = ((MAX_SHARE * (low.width() * low.height()) as f64) as usize / (TILE * TILE)).max(1);
    for (wide, high) in [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (1, 3)] {
        if wide * high > max {
            continue;
        }
        for row in 0..rows.saturating_sub(high - 1) {
            for column in 0..columns.saturating_sub(wide - 1) {
                let tiles = || {
                    (row..row + high)
                        .flat_map(move |r| (column..column + wide).map(move |c| (c, r)))
                };
                let of = |(c, r): (usize, usize)| objectness[r * columns + c];
                let mean = tiles().map(of).sum::<f64>() / (wide * high) as f64;
                let answered = tiles().filter(|&tile| of(tile) < ANSWERED).count();
                let overlap = answered as f64 / (wide * high) as f64;
                if mean > OBJECTNESS && overlap <= OVERLAP {
                    tiles().for_each(|(c, r)| map.set(c, r));
                }
            }
        }
    }
    (map.count() > 0).then_some(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dds_takes_small_uncertain_regions_and_leaves_what_is_answered() {
        let low = Plane::filled(640, 360, 0);
        let mut uncertainty = vec![0.1; 60];
        assert_eq!(dds(&uncertainty, &low), None);
        (uncertainty[0], uncertainty[13]) = (9.0, 4.0);
        let map = dds(&uncertainty, &low).unwrap();
        assert_eq!(map.iter().collect::<Vec<_>>(), [(0, 0), (3, 1)]);
    }
}
