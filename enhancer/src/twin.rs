//! The twin: the decoder of a subscriber that has all of the publisher's own detail, run in the server.
//!
//! Source: design.md *Two sources of anchors*. The twin gets the frames that the tap decodes anyway and the publisher's
//! own detail. So its pictures equal, bit for bit, those of subscribers without any enhanced anchor (all kernels agree
//! everywhere). Super-resolution starts from them instead of from the low picture alone, and detail that they already
//! show is not sent. Enhanced anchors are left out: a network that sees its own additions adds them again
//! (`models/fused-xs-x2.md`), and a subscriber that lost one needs the next.
//!
//! A second decoder is that of a subscriber that has the enhanced anchors as well. The difference of both decoders is
//! the change by enhanced anchors in a frame ([`Twin::change`]).
//!
//! For most frames only the low picture is kept. Only a frame that becomes an anchor gets an HR picture and a flow
//! search.

use parking_lot::Mutex;
use windlass_hybrid::anchor::codec::detail_of;
use windlass_hybrid::anchor::payload;
use windlass_hybrid::detail::ONE;
use windlass_hybrid::{AnchorOutcome, Detail, HybridConfig, HybridDecoder};
use windlass_sr::{EnergyOfTile, energy_by_tile};
use windlass_types::AnchorSource;
use windlass_types::message::ReassembledAnchor;
use windlass_types::tiles::{TILE, TileMap};
use windlass_vp9::{DecodedFrame, Plane, Samples};

use windlass_scheduler::worth::{Change, Old};

/// Number of anchors from one measurement of the encoding loss to the next.
const MEASURE_EVERY: u32 = 8;

/// Minimum time between two measurements of what enhanced anchors change, in RTP ticks: half a second.
const WEIGH_EVERY: u32 = 45_000;
/// Age from which on an enhanced anchor is no longer what viewers see, in RTP ticks: three seconds.
const OLD: u32 = 270_000;

/// The twin of one stream and epoch.
pub struct Twin {
    decoder: Mutex<HybridDecoder>,
    loss: Mutex<Loss>,
    gain: Mutex<Option<f64>>,
    /// Decoder of a subscriber that has all anchors, made once somebody asks what it sees.
    all: Mutex<Option<HybridDecoder>>,
    marks: Mutex<Marks>,
    scale: usize,
}

/// What became of a captured anchor that subscribers are given.
#[derive(Debug, Clone, Copy)]
pub struct GivenAnchor {
    /// The outcome in the twin's decoder.
    pub outcome: AnchorOutcome,
    /// By how many dB enhanced anchors had raised the anchor's frame; `None` unless the anchor is of a whole frame in
    /// which they were seen.
    pub raised_db: Option<f64>,
}

/// RTP timestamps of some last frames.
#[derive(Debug, Default)]
struct Marks {
    /// Last frame whose anchor's change was measured.
    weighed: Option<u32>,
    /// Last frame whose enhanced anchor the decoder with all anchors took.
    enhanced: Option<u32>,
}

/// Loss of encoding anchors, as measured so far.
#[derive(Debug, Default)]
struct Loss {
    /// Mean square error of encoded anchors in square grey levels; `None` before it was measured.
    error: Option<f64>,
    since: u32,
}

impl std::fmt::Debug for Twin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Twin").field("scale", &self.scale).finish_non_exhaustive()
    }
}

impl Twin {
    /// Creates the twin of subscribers who have received nothing.
    pub fn new(scale: usize) -> Twin {
        let config = HybridConfig { scale, ..HybridConfig::default() };
        Twin {
            decoder: Mutex::new(HybridDecoder::new(config)),
            loss: Mutex::default(),
            gain: Mutex::default(),
            all: Mutex::default(),
            marks: Mutex::default(),
            scale,
        }
    }

    /// Scale of the twin's pictures: HR width over LR width.
    pub fn scale(&self) -> usize {
        self.scale
    }

    /// Takes the decoded frames of a chunk.
    pub fn follow(&self, rtp_timestamp: u32, frames: &[DecodedFrame]) {
        self.decoder.lock().push_decoded(rtp_timestamp, frames);
        if let Some(all) = &mut *self.all.lock() {
            all.push_decoded(rtp_timestamp, frames);
        }
    }

    /// Forgets all frames and anchors, because frames are missing; a key frame must come next.
    pub fn reset(&self) {
        self.decoder.lock().reset();
        if let Some(all) = &mut *self.all.lock() {
            all.reset();
        }
        self.marks.lock().enhanced = None;
    }

    /// Takes a captured anchor that subscribers are given.
    pub fn give(&self, anchor: &ReassembledAnchor) -> GivenAnchor {
        let at = anchor.header.rtp_timestamp;
        let whole = !anchor.header.tiled;
        let seen = whole.then(|| self.carried(at).zip(self.start(at))).flatten();
        self.show_all(anchor);
        let outcome = self.decoder.lock().push_anchor(anchor);
        let applied = matches!(outcome, AnchorOutcome::Applied { .. });
        let raised_db = seen.filter(|_| applied).and_then(|(with, without)| {
            let own = self.start(at)?;
            let error = |seen: &Plane| {
                let pairs = seen.samples().iter().zip(own.samples());
                pairs.map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2)).sum::<f64>().max(1.0)
            };
            Some(10.0 * (error(&without) / error(&with)).log10())
        });
        GivenAnchor { outcome, raised_db }
    }

    fn show_all(&self, anchor: &ReassembledAnchor) {
        let Some(all) = &mut *self.all.lock() else { return };
        let outcome = all.push_anchor(anchor);
        if anchor.header.source == AnchorSource::Enhanced
            && matches!(outcome, AnchorOutcome::Applied { .. })
        {
            self.marks.lock().enhanced = Some(anchor.header.rtp_timestamp);
        }
    }

    /// Whether the change by a frame's anchor is to be measured now, which costs a picture. At most twice a second.
    pub fn weighs(&self, rtp_timestamp: u32) -> bool {
        let weighed = &mut self.marks.lock().weighed;
        let due = weighed.is_none_or(|last| rtp_timestamp.wrapping_sub(last) >= WEIGH_EVERY);
        if due {
            *weighed = Some(rtp_timestamp);
        }
        due
    }

    /// Measures what a frame's anchor changes, by the detail `wanted` in these tiles, and what the earlier enhanced
    /// anchors change in the frame. `known` is the detail that subscribers have without enhanced anchors. Tiles that
    /// were not inferred count as before. `None` if the details do not fit each other.
    pub fn change(
        &self,
        rtp_timestamp: u32,
        low: Samples<'_>,
        wanted: &Detail,
        known: &Detail,
        tiles: &TileMap,
    ) -> Option<Change> {
        let size = |detail: &Detail| (detail.width(), detail.height());
        let carried = self.carried(rtp_timestamp);
        let carried =
            carried.and_then(|seen| detail_of(Samples::from(&seen), low, self.scale).ok());
        let carried = carried.filter(|carried| size(carried) == size(known));
        if size(wanted) != size(known) {
            return None;
        }
        let side = TILE * self.scale;
        let (mut new, mut square, mut product) = (0i64, 0i64, 0i64);
        for y in 0..known.height() {
            let rows =
                (wanted.row(y), known.row(y), carried.as_ref().map(|carried| carried.row(y)));
            for x in 0..known.width() {
                let of = |row: &[i16]| i64::from(row[x]) - i64::from(rows.1[x]);
                let old = rows.2.map(of);
                let inferred = tiles.contains(x / side, y / side);
                let now = if inferred { of(rows.0) } else { old.unwrap_or(0) };
                let old = old.unwrap_or(0);
                new += now * now;
                square += old * old;
                product += now * old;
            }
        }
        let unit = f64::from(ONE) * f64::from(ONE) * (known.width() * known.height()) as f64;
        let mean = |sum: i64| sum as f64 / unit;
        let old = carried.is_some().then(|| Old { square: mean(square), product: mean(product) });
        Some(Change { new: mean(new), old })
    }

    /// Luma of a frame as subscribers with all anchors see it; `None` if they had no enhanced anchor lately.
    fn carried(&self, rtp_timestamp: u32) -> Option<Plane> {
        let mut all = self.all.lock();
        let config = HybridConfig { scale: self.scale, ..HybridConfig::default() };
        let all = all.get_or_insert_with(|| HybridDecoder::new(config));
        let enhanced = self.marks.lock().enhanced;
        enhanced.filter(|&at| rtp_timestamp.wrapping_sub(at) <= OLD)?;
        all.picture_at(rtp_timestamp).map(|seen| seen.y.clone())
    }

    /// Takes an anchor that has just left. `wanted` is the detail that was encoded, if the loss of encoding is to be
    /// measured.
    pub fn sent(&self, anchor: &ReassembledAnchor, wanted: Option<&Detail>) {
        if anchor.header.source == AnchorSource::Captured {
            self.give(anchor);
        } else {
            self.show_all(anchor);
        }
        let Some(wanted) = wanted else { return };
        if let Ok((left, tiles)) = payload::decode(anchor, self.scale)
            && let Some(error) = self.difference(wanted, &left, &tiles)
        {
            let sum = error.iter().map(|tile| tile.energy).sum::<f64>();
            let error = sum / tiles.count().max(1) as f64;
            let known = &mut self.loss.lock().error;
            *known = Some(known.map_or(error, |known| known + 0.25 * (error - known)));
        }
    }

    /// Luma of a frame as subscribers see it without enhanced anchors; `None` if the frame is no longer remembered.
    pub fn start(&self, rtp_timestamp: u32) -> Option<Plane> {
        self.decoder.lock().picture_at(rtp_timestamp).map(|seen| seen.y.clone())
    }

    /// For each tile of a frame, the share of the publisher's own detail that subscribers can no longer use. `None` if
    /// the frame is no longer remembered.
    pub fn lost(&self, rtp_timestamp: u32) -> Option<Vec<f64>> {
        self.decoder.lock().lost(rtp_timestamp)
    }

    /// Mean gain of enhanced anchors on their frames lately, in dB, as far as it can be known without the original.
    pub fn gain_db(&self) -> Option<f64> {
        *self.gain.lock()
    }

    /// Adds the gain of an enhanced anchor on its frame, in dB, to the mean.
    pub fn raised(&self, db: f64) {
        let gain = &mut *self.gain.lock();
        *gain = Some(gain.map_or(db, |gain| gain + 0.25 * (db - gain)));
    }

    /// Selects the `tiles` in which subscribers gain by the detail `wanted` over `known`: the two must differ by more
    /// than the loss of encoding.
    pub fn worthwhile(&self, wanted: &Detail, known: &Detail, tiles: &TileMap) -> TileMap {
        match self.difference(wanted, known, tiles) {
            Some(differences) => self.worthwhile_by(&differences, tiles),
            None => tiles.clone(),
        }
    }

    /// Selects tiles as [`worthwhile`](Self::worthwhile) does, by the mean square difference of each of the `tiles` in
    /// square grey levels.
    pub fn worthwhile_by(&self, differences: &[EnergyOfTile], tiles: &TileMap) -> TileMap {
        let error = self.loss.lock().error;
        let mut vain = tiles.without(tiles);
        if let Some(error) = error {
            for tile in differences.iter().filter(|tile| tile.energy <= error) {
                vain.set(tile.column, tile.row);
            }
        }
        tiles.without(&vain)
    }

    /// Whether the loss of encoding is to be measured with this anchor.
    pub fn measures(&self) -> bool {
        let mut loss = self.loss.lock();
        loss.since = if loss.error.is_none() { 0 } else { (loss.since + 1) % MEASURE_EVERY };
        loss.since == 0
    }

    /// Mean square difference of each tile; `None` if the details do not fit each other.
    fn difference(&self, a: &Detail, b: &Detail, tiles: &TileMap) -> Option<Vec<EnergyOfTile>> {
        if a.size() != b.size() {
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

    use windlass_hybrid::anchor::codec::Htj2k;
    use windlass_types::Size;
    use windlass_types::message::AnchorHeader;
    use windlass_types::message::HTJ2K;
    use windlass_vp9::{FrameBuffer, FrameInfo, FrameKind};

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
        let header = AnchorHeader {
            stream: 1,
            ..AnchorHeader::new(HTJ2K, AnchorSource::Enhanced, 0, Size::new(192, 128))
        };
        ReassembledAnchor { header, payload: Htj2k::encode(detail, 90).expect("it can be coded") }
    }

    fn shown() -> DecodedFrame {
        let mut info = FrameInfo::default();
        (info.kind, info.shown) = (FrameKind::Key, true);
        (info.width, info.height) = (96, 64);
        DecodedFrame { picture: Arc::new(FrameBuffer::grey(96, 64)), info: Arc::new(info) }
    }

    #[test]
    fn all_is_worthwhile_until_the_loss_is_known_and_then_what_differs() {
        let (twin, all) = (Twin::new(2), TileMap::full(Size::new(96, 64)));
        let (wanted, nothing) = (detail(true), Detail::zero(192, 128));
        assert!(twin.worthwhile(&nothing, &nothing, &all).is_full());
        assert!(twin.measures());
        twin.follow(0, &[shown()]);
        twin.sent(&anchor(&wanted), Some(&wanted));
        assert!(!twin.measures(), "it was measured just now");
        assert_eq!(twin.worthwhile(&wanted, &wanted, &all).count(), 0);
        let gains = twin.worthwhile(&wanted, &nothing, &all);
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
        own.header.source = AnchorSource::Captured;
        twin.sent(&own, None);
        let changed = luma(&twin).expect("it is remembered");
        assert!(changed.iter().zip(&plain).any(|(a, b)| a.abs_diff(*b) >= 7));
        assert!(twin.start(3000).is_none());
        twin.reset();
        assert!(twin.start(0).is_none());
    }
    #[test]
    fn what_enhanced_anchors_change_is_known_on_their_frame_and_as_they_are_carried_on() {
        let (twin, all, grey) =
            (Twin::new(2), TileMap::full(Size::new(96, 64)), FrameBuffer::grey(96, 64));
        let (wanted, nothing) = (detail(true), Detail::zero(192, 128));
        let low = Samples::from(&grey.planes()[0]);
        let change = |at: u32, wanted: &Detail| {
            twin.change(at, low, wanted, &nothing, &all).expect("they fit each other")
        };
        twin.follow(0, &[shown()]);
        assert!(twin.weighs(0) && !twin.weighs(3000), "twice a second");
        assert_eq!(change(0, &wanted).old, None, "there was none before");
        twin.follow(45_000, &[shown()]);
        let mut sent = anchor(&wanted);
        sent.header.rtp_timestamp = 45_000;
        twin.sent(&sent, None);
        twin.follow(90_000, &[shown()]);
        assert!(twin.weighs(90_000));
        let Change { new, old } = change(90_000, &wanted);
        let old = old.expect("it was carried on");
        // Two thirds of the picture by nine grey levels.
        assert!((50.0..56.0).contains(&new), "{new}");
        assert!(old.square > 0.7 * new && old.product > 0.8 * new, "{old:?} of {new}");
        let elsewhere = change(90_000, &detail(false)).old.expect("it was carried on");
        assert!(elsewhere.product.abs() < 0.1 * old.product, "{elsewhere:?}");
        twin.reset();
        assert_eq!(change(90_000, &wanted).old, None);
    }
    #[test]
    fn a_picture_of_the_publishers_own_says_what_enhanced_anchors_have_given() {
        let given = |wanted: &Detail| {
            let twin = Twin::new(2);
            let grey = FrameBuffer::grey(96, 64);
            let nothing = Detail::zero(192, 128);
            let low = Samples::from(&grey.planes()[0]);
            let all = TileMap::full(Size::new(96, 64));
            let _ = twin.change(0, low, &nothing, &nothing, &all);
            twin.follow(0, &[shown()]);
            twin.sent(&anchor(wanted), None);
            twin.follow(3000, &[shown()]);
            let mut own = anchor(&detail(true));
            (own.header.source, own.header.rtp_timestamp) = (AnchorSource::Captured, 3000);
            twin.give(&own).raised_db.expect("enhanced anchors were seen")
        };
        assert!(given(&detail(true)) > 3.0, "they have given the same");
        assert!(given(&detail(false)) < -1.0, "they have given something else");
    }
}
