//! The twin: the decoder of a subscriber that has all of the publisher's own detail, run in the server.
//!
//! Source: design.md *Two sources of anchors*. It is fed with the frames that the tap decodes anyway and with the publisher's
//! own detail, so its pictures are those that subscribers would see if no network had ever added anything, bit for bit (all
//! kernels agree everywhere). Super-resolution starts from them instead of from the low picture alone, and what they show as
//! well is not sent. Enhanced anchors are left out: a network that sees its own additions adds them again
//! (`models/fused-xs-x2.md`), and whoever has lost one needs the next.
//!
//! Following a frame keeps its low picture, and nothing is painted: a picture is made, and flow searched for, only of a frame that becomes an anchor.

use parking_lot::Mutex;
use windlass_hybrid::anchor::codec::detail_of;
use windlass_hybrid::anchor::message::{AnchorOrigin, ReassembledAnchor};
use windlass_hybrid::anchor::payload;
use windlass_hybrid::anchor::tiles::TileMap;
use windlass_hybrid::resample::Samples;
use windlass_hybrid::vp9::DecodedFrame;
use windlass_hybrid::{AnchorOutcome, Detail, HybridConfig, HybridDecoder, Plane};

use crate::schedule::energy_by_tile;
use crate::schedule::promise::USUAL_ERROR;

/// Frames that pass between two measurements of what coding loses.
const MEASURE_EVERY: u32 = 8;

/// The part of what a network changes that brings the picture nearer to the original; the rest is guessed wrong.
const RIGHT: f64 = 0.5;

/// The twin of one stream and epoch.
pub struct Twin {
    decoder: Mutex<HybridDecoder>,
    loss: Mutex<Loss>,
    gain: Mutex<Option<f64>>,
    /// The decoder of a subscriber that has all anchors, where somebody has asked what it sees.
    all: Mutex<Option<HybridDecoder>>,
    scale: usize,
}

/// What the codec leaves of the detail that it is given.
#[derive(Debug, Default)]
struct Loss {
    /// Mean error of coded anchors in square grey levels, once measured.
    error: Option<f64>,
    since: u32,
}

impl std::fmt::Debug for Twin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Twin").field("scale", &self.scale).finish_non_exhaustive()
    }
}

impl Twin {
    /// The twin of subscribers who have had nothing.
    pub fn new(scale: usize) -> Twin {
        let config = HybridConfig { scale, ..HybridConfig::default() };
        Twin {
            decoder: Mutex::new(HybridDecoder::new(config)),
            loss: Mutex::default(),
            gain: Mutex::default(),
            all: Mutex::default(),
            scale,
        }
    }

    /// Width of its pictures over that of the low layer's.
    pub fn scale(&self) -> usize {
        self.scale
    }

    /// Takes what was decoded of a chunk.
    pub fn follow(&self, rtp_timestamp: u32, frames: &[DecodedFrame]) {
        self.decoder.lock().push_decoded(rtp_timestamp, frames);
        if let Some(all) = &mut *self.all.lock() {
            all.push_decoded(rtp_timestamp, frames);
        }
    }

    /// Frames are missing.
    pub fn reset(&self) {
        self.decoder.lock().reset();
        if let Some(all) = &mut *self.all.lock() {
            all.reset();
        }
    }

    /// Takes a captured anchor that subscribers are given.
    pub fn give(&self, anchor: &ReassembledAnchor) -> AnchorOutcome {
        self.show_all(anchor);
        self.decoder.lock().push_anchor(anchor)
    }

    fn show_all(&self, anchor: &ReassembledAnchor) {
        if let Some(all) = &mut *self.all.lock() {
            all.push_anchor(anchor);
        }
    }

    /// Mean square grey levels by which a frame's detail in these tiles differs from what subscribers see of it who have had all anchors. Known from
    /// the first frame on that comes after it was asked for; until then, and where the frame is not remembered, without bound.
    pub fn changes(
        &self,
        rtp_timestamp: u32,
        low: Samples<'_>,
        detail: &Detail,
        tiles: &TileMap,
    ) -> f64 {
        let mut all = self.all.lock();
        let config = HybridConfig { scale: self.scale, ..HybridConfig::default() };
        let all = all.get_or_insert_with(|| HybridDecoder::new(config));
        let seen =
            all.picture_at(rtp_timestamp).and_then(|seen| detail_of(&seen.y, low, self.scale).ok());
        let whole = TileMap::full(low.width, low.height).count().max(1) as f64;
        let differences = seen.and_then(|seen| self.difference(detail, &seen, tiles));
        differences.map_or(f64::MAX, |all| all.iter().map(|(_, e)| e).sum::<f64>() / whole)
    }

    /// A timestamp before those of all remembered frames: of anchors that only later ones need.
    pub fn long_ago(&self) -> u32 {
        self.decoder.lock().long_ago()
    }

    /// Takes an anchor that has just left; `wanted` is what it was coded from, where the loss by that is to be measured.
    pub fn sent(&self, anchor: &ReassembledAnchor, wanted: Option<&Detail>) {
        if anchor.header.source == AnchorOrigin::Captured {
            self.give(anchor);
        } else {
            self.show_all(anchor);
        }
        let Some(wanted) = wanted else { return };
        if let Ok((left, tiles)) = payload::decode(anchor, self.scale)
            && let Some(error) = self.difference(wanted, &left, &tiles)
        {
            let error = error.iter().map(|(_, e)| e).sum::<f64>() / tiles.count().max(1) as f64;
            let known = &mut self.loss.lock().error;
            *known = Some(known.map_or(error, |known| known + 0.25 * (error - known)));
        }
    }

    /// The luma that subscribers see of a frame without enhanced anchors; `None` where it is no longer remembered.
    pub fn start(&self, rtp_timestamp: u32) -> Option<Plane> {
        self.decoder.lock().picture_at(rtp_timestamp).map(|seen| seen.y.clone())
    }

    /// By how many dB enhanced anchors have raised their frames lately, as far as that can be known without the original.
    pub fn gain_db(&self) -> Option<f64> {
        *self.gain.lock()
    }

    /// Those of the `tiles` in which subscribers would gain by the detail `wanted`, where they have `known`: it must differ
    /// by more than its code would.
    pub fn worthwhile(&self, wanted: &Detail, known: &Detail, tiles: &TileMap) -> TileMap {
        match self.difference(wanted, known, tiles) {
            Some(differences) => self.worthwhile_by(&differences, tiles),
            None => tiles.clone(),
        }
    }

    /// The same where the mean square difference of each of the `tiles` is known, in grey levels.
    pub fn worthwhile_by(&self, differences: &[((usize, usize), f64)], tiles: &TileMap) -> TileMap {
        let error = self.loss.lock().error;
        let mean = differences.iter().map(|(_, e)| e).sum::<f64>() / tiles.count().max(1) as f64;
        let db = 10.0 * (1.0 + RIGHT * mean / USUAL_ERROR).log10();
        let gain = &mut *self.gain.lock();
        *gain = Some(gain.map_or(db, |gain| gain + 0.25 * (db - gain)));
        let mut vain = tiles.without(tiles);
        if let Some(error) = error {
            for &((column, row), _) in differences.iter().filter(|&&(_, e)| e <= error) {
                vain.set(column, row);
            }
        }
        tiles.without(&vain)
    }

    /// Whether what coding loses is to be measured by this anchor.
    pub fn measures(&self) -> bool {
        let mut loss = self.loss.lock();
        loss.since = if loss.error.is_none() { 0 } else { (loss.since + 1) % MEASURE_EVERY };
        loss.since == 0
    }

    /// Mean square differences by tile; `None` of details that do not fit each other.
    fn difference(
        &self,
        a: &Detail,
        b: &Detail,
        tiles: &TileMap,
    ) -> Option<Vec<((usize, usize), f64)>> {
        if (a.width(), a.height()) != (b.width(), b.height()) {
            return None;
        }
        let pairs = a.samples().iter().zip(b.samples());
        let differences = pairs.map(|(&a, &b)| a.saturating_sub(b)).collect();
        let difference = Detail::from_samples(a.width(), a.height(), differences)?;
        Some(energy_by_tile(&difference, tiles, self.scale).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windlass_hybrid::anchor::AnchorHeader;
    use windlass_hybrid::anchor::codec;
    use windlass_hybrid::detail::ONE;
    use windlass_hybrid::vp9::{FrameBuffer, FrameInfo, FrameKind};

    use super::*;

    /// A texture of pictures of 192 × 128, in the left or the right tiles of the low layer alone.
    fn detail(left: bool) -> Detail {
        let mut detail = Detail::zero(192, 128);
        for y in 0..128 {
            let row = detail.row_mut(y);
            let row = if left { &mut row[..128] } else { &mut row[128..] };
            for (x, sample) in row.iter_mut().enumerate() {
                *sample = if (x / 8 + y / 8) % 2 == 0 { 9 * ONE } else { -9 * ONE };
            }
        }
        detail
    }

    fn anchor(detail: &Detail) -> ReassembledAnchor {
        let codec = codec::by_name("htj2k").expect("a codec");
        let header = AnchorHeader {
            stream: 1,
            ..AnchorHeader::new(codec.id(), AnchorOrigin::Enhanced, 0, (192, 128))
        };
        ReassembledAnchor { header, payload: codec.encode(detail, 90).expect("it can be coded") }
    }

    fn shown() -> DecodedFrame {
        let mut info = FrameInfo::default();
        (info.kind, info.shown) = (FrameKind::Key, true);
        (info.width, info.height) = (96, 64);
        DecodedFrame { picture: Arc::new(FrameBuffer::grey(96, 64)), info: Arc::new(info) }
    }

    #[test]
    fn all_is_worthwhile_until_the_loss_is_known_and_then_what_differs() {
        let (twin, all) = (Twin::new(2), TileMap::full(96, 64));
        let (wanted, nothing) = (detail(true), Detail::zero(192, 128));
        assert!(twin.worthwhile(&nothing, &nothing, &all).is_full());
        assert!(twin.measures());
        twin.follow(0, &[shown()]);
        twin.sent(&anchor(&wanted), Some(&wanted));
        assert!(!twin.measures(), "it was measured just now");
        assert_eq!(twin.worthwhile(&wanted, &wanted, &all).count(), 0);
        assert!(twin.gain_db().is_some_and(|gain| gain < 1e-9), "{:?}", twin.gain_db());
        let gains = twin.worthwhile(&wanted, &nothing, &all);
        assert!(twin.gain_db().is_some_and(|gain| gain > 0.5), "{:?}", twin.gain_db());
        assert_eq!(gains.iter().collect::<Vec<_>>(), [(0, 0)]);
        let gains = twin.worthwhile(&detail(false), &nothing, &all);
        assert_eq!(gains.iter().collect::<Vec<_>>(), [(1, 0)]);
    }

    #[test]
    fn its_picture_has_the_publishers_own_detail_and_not_what_networks_added() {
        let twin = Twin::new(2);
        twin.follow(0, &[shown()]);
        let luma = |twin: &Twin| twin.start(0).map(|seen| seen.samples().to_vec());
        let plain = luma(&twin).expect("it is remembered");
        twin.sent(&anchor(&detail(true)), None);
        assert_eq!(luma(&twin), Some(plain.clone()), "networks do not see what networks added");
        let mut own = anchor(&detail(true));
        own.header.source = AnchorOrigin::Captured;
        twin.sent(&own, None);
        let changed = luma(&twin).expect("it is remembered");
        assert!(changed.iter().zip(&plain).any(|(a, b)| a.abs_diff(*b) >= 7));
        assert!(twin.start(3000).is_none());
        twin.reset();
        assert!(twin.start(0).is_none());
    }
}
