//! Anchors that a stream's subscribers have, and the state of their encoding.
//!
//! Shared by the stream's decoder, the scheduler and the workers. Each epoch has a state of its own. A *key* anchor
//! gives all tiles and depends on no other anchor. The first anchor is one, and one answers all subscribers that asked
//! ([`KeyAnchorThrottle`]).

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec::Htj2k;
use windlass_hybrid::anchor::payload::{self, Packed};
use windlass_sr::EnergyOfTile;
use windlass_sr::cuda::coder::Encoding;
use windlass_types::message::ReassembledAnchor;
use windlass_types::tiles::TileMap;
use windlass_types::{Anchor, Size};

use super::key_anchor_throttle::KeyAnchorThrottle;
use crate::tiles::{
    RegionConfig, RegionLedger, Request, TileConfig, TileEnergy, TileLedger, stakes,
};

/// The anchors of one stream and epoch.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    sent: Mutex<Sent>,
    asked: Mutex<Asked>,
    limits: Mutex<Limits>,
    budget: Mutex<ByteBudget>,
}

/// Limits that a controller sets on anchors, within what the operator allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Maximum anchors per thousand frames.
    pub per_mille: u16,
    /// Maximum bytes of each anchor.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { per_mille: 1000, bytes: usize::MAX }
    }
}

/// Byte budget of captured anchors on subscribers' links: a fixed part for each anchor, and what was saved while little
/// was sent.
///
/// On faces, stills of 2 to 8 kB are worth their bits, once in one to four seconds (`lab/notes/what-a-viewer-sees.md`).
/// The first still may take more, and so may a screen that shows another page after a while.
#[derive(Debug)]
struct ByteBudget {
    bytes: f64,
    at: Option<Instant>,
}

/// Bytes that every captured anchor may have, whatever was saved: the upper end of what pays on faces.
const EACH: f64 = 8_000.0;
/// Bytes that a stream saves per second for captured anchors.
const SAVED_PER_S: f64 = 8_000.0;
/// Maximum bytes saved: those of six seconds.
const MAX_SAVED: f64 = 48_000.0;

impl Default for ByteBudget {
    fn default() -> Self {
        ByteBudget { bytes: MAX_SAVED, at: None }
    }
}

impl ByteBudget {
    /// Maximum bytes of an anchor at `now`.
    fn max(&mut self, now: Instant) -> usize {
        let since = self.at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.at = Some(self.at.map_or(now, |at| at.max(now)));
        self.bytes = (self.bytes + since.as_secs_f64() * SAVED_PER_S).min(MAX_SAVED);
        self.bytes.max(EACH) as usize
    }

    /// Takes the bytes of an anchor off the budget.
    fn take(&mut self, bytes: usize) {
        self.bytes = (self.bytes - bytes as f64).max(0.0);
    }
}

/// State of the requests for regions to the publisher.
#[derive(Debug, Default)]
struct Asked {
    ledger: RegionLedger,
    /// For each tile, the energy that super-resolution last added to plain upsampling, in square grey levels per
    /// sample.
    uncertainty: Vec<f64>,
    /// For each tile, its weight by what people look at.
    subjects: Vec<f64>,
    last: Option<Duration>,
    /// Time of the last check for captured detail that is lost.
    looked: Option<Duration>,
}

/// Time between two checks for captured detail that is lost.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
struct Sent {
    ledger: TileLedger,
    key: KeyAnchorThrottle,
}

/// Why a detail was not encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum EncodeError {
    #[error("the anchor cannot be encoded")]
    Failed,
    /// The anchor would be late: there is no time to encode it.
    #[error("the anchor would be late")]
    Late,
}

/// Encodes an image of detail.
pub(super) trait Stills {
    fn encode(&mut self, image: Detail, coding: Encoding) -> Result<Vec<u8>, EncodeError>;
}

/// Encodes stills on the CPU.
pub(super) struct CpuStills;

impl Stills for CpuStills {
    fn encode(&mut self, image: Detail, coding: Encoding) -> Result<Vec<u8>, EncodeError> {
        encode_still(&image, None, coding)
    }
}

/// Encodes an image, and its colour where there is one, on the CPU.
pub(super) fn encode_still(
    image: &Detail,
    colour: Option<&Detail>,
    Encoding { quality, max_bytes }: Encoding,
) -> Result<Vec<u8>, EncodeError> {
    let coded = match colour {
        Some(colour) => Htj2k::encode_in_colour(image, colour, quality),
        None => Htj2k::encode(image, quality),
    };
    match coded {
        Ok(coded) if coded.len() > max_bytes => Htj2k::fill(image, colour, max_bytes),
        coded => coded,
    }
    .map_err(|_| EncodeError::Failed)
}

/// A decision on the anchor of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// Tiles that the anchor is to have.
    pub tiles: TileMap,
    /// Whether it is a key anchor.
    pub key: bool,
}

impl Anchors {
    /// Sets the limits on the stream's anchors from now on.
    pub(super) fn limit(&self, limits: Limits) {
        *self.limits.lock() = limits;
    }

    /// The limits that the stream's anchors must keep.
    pub(super) fn limits(&self) -> Limits {
        *self.limits.lock()
    }

    /// Maximum bytes of an anchor of the publisher's own pixels that is encoded at `now`.
    pub(super) fn max_bytes(&self, now: Instant) -> usize {
        self.budget.lock().max(now).min(self.limits().bytes)
    }

    /// Notes that an anchor of `bytes` bytes has left.
    pub(super) fn took(&self, bytes: usize) {
        self.budget.lock().take(bytes);
    }

    /// Notes that a subscriber has no anchors, so that a key anchor is due.
    pub(super) fn want_key_anchor(&self) {
        self.sent.lock().key.request();
    }

    /// Decides which tiles of a frame become an anchor at `now`, and counts them as sent. `None` if no tile is worth
    /// it.
    pub(super) fn choose(
        &self,
        energy: &TileEnergy,
        now: Duration,
        config: &TileConfig,
    ) -> Option<Choice> {
        let mut sent = self.sent.lock();
        let key = sent.key.take(now);
        if key {
            sent.ledger = TileLedger::default();
        }
        let tiles = sent.ledger.choose(energy, now, config)?;
        Some(Choice { tiles, key })
    }

    /// Notes that subscribers have the publisher's own detail of some tiles of a frame. `energy` has the frame's
    /// totals, `tiles` the bits of the tile map (`None`: all tiles).
    pub(super) fn given(&self, energy: &TileEnergy, tiles: Option<&[u8]>, now: Duration) {
        let map = match tiles {
            None => TileMap::full(energy.size()),
            Some(bits) => match TileMap::parse(energy.size(), bits) {
                Some(map) => map,
                None => return,
            },
        };
        self.sent.lock().ledger.captured(&map, energy, now);
        self.asked.lock().ledger.captured(&map, now);
    }

    /// Chooses the regions to ask the publisher for, if it is time. `lost` gives, for each tile of the low picture, the
    /// share of captured detail that no longer fits; it costs a search.
    pub(super) fn regions(
        &self,
        low: Size,
        now: Duration,
        config: &RegionConfig,
        lost: impl FnOnce() -> Option<Vec<f64>>,
    ) -> Option<Request> {
        let mut asked = self.asked.lock();
        let Asked { ledger, uncertainty, subjects, last, looked } = &mut *asked;
        let passed = |since: Option<Duration>, interval| {
            since.is_none_or(|since| now.saturating_sub(since) >= interval)
        };
        let due = passed(*last, config.min_interval) && passed(*looked, POLL_INTERVAL);
        if !due {
            return None;
        }
        *looked = Some(now);
        let lost = lost()?;
        if !passed(*last, config.interval) && !ledger.outdated(&lost, now, config) {
            return None;
        }
        let stakes = stakes(uncertainty, subjects);
        let tiles = ledger.choose(low, &lost, stakes.as_deref(), now, config)?;
        let bytes = config.bytes(last.map(|last| now.saturating_sub(last)));
        *last = Some(now);
        Some(Request { tiles, bytes })
    }

    /// Notes the energy that super-resolution adds to some of a picture's tiles, in mean square grey levels.
    pub(super) fn note_uncertainty(
        &self,
        tiles: &TileMap,
        energies: impl Iterator<Item = EnergyOfTile>,
    ) {
        let known = &mut self.asked.lock().uncertainty;
        known.resize(tiles.columns() * tiles.rows(), 1.0);
        for EnergyOfTile { column, row, energy } in energies {
            known[row * tiles.columns() + column] = energy;
        }
    }

    /// Notes the weight of each tile, by what people look at.
    pub(super) fn note_subjects(&self, weights: Vec<f64>) {
        self.asked.lock().subjects = weights;
    }

    /// Undoes [`Anchors::choose`], because the anchor was not made.
    pub(super) fn forget(&self, choice: &Choice) {
        let mut sent = self.sent.lock();
        sent.ledger.forget(&choice.tiles);
        if choice.key {
            sent.key.failed();
        }
    }
}

/// Detail, and perhaps colour, that an anchor is encoded from.
pub(super) struct Content {
    pub detail: Detail,
    /// Detail of the [colour](windlass_hybrid::anchor::colour); `None` for luma only.
    pub colour: Option<Detail>,
}

/// Encodes some tiles to a payload. Content without colour is encoded by `stills`.
pub(super) fn encode(
    coding: Encoding,
    content: Content,
    tiles: &TileMap,
    scale: usize,
    stills: &mut dyn Stills,
) -> Result<Packed, EncodeError> {
    let image = payload::image(content.detail, tiles, scale);
    let coded = match &content.colour {
        colour @ Some(_) => encode_still(&image, colour.as_ref(), coding)?,
        None => stills.encode(image, coding)?,
    };
    Ok(payload::pack(tiles, coded))
}

/// The anchor as subscribers have it after its arrival, except for their own timeline and epoch.
pub(super) fn arrived(anchor: &Anchor) -> ReassembledAnchor {
    ReassembledAnchor { header: anchor.header(), payload: anchor.payload.to_vec() }
}

#[cfg(test)]
mod tests {
    use windlass_hybrid::detail::ONE;
    use windlass_vp9::FrameInfo;

    use super::*;
    use windlass_sr::energy_by_tile;

    const SIZE: Size = Size::new(96, 64);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A texture, of pictures of 192 × 128.
    fn detail() -> Detail {
        let samples = (0..192 * 128)
            .map(|i| ((f64::from(i % 192) * 0.7).sin() * f64::from(i / 192).cos() * 130.0) as i16);
        Detail::from_samples(192, 128, samples.collect()).expect("the count is right")
    }

    fn content() -> Content {
        Content { detail: detail(), colour: None }
    }

    /// The account of a stream of 96 × 64.
    fn energy() -> TileEnergy {
        let (mut energy, mut info) = (TileEnergy::default(), FrameInfo::default());
        (info.width, info.height) = (96, 64);
        energy.add(&info);
        energy
    }

    #[test]
    fn the_first_anchor_is_a_key_anchor_and_so_is_one_for_those_who_have_nothing() {
        let anchors = Anchors::default();
        let (energy, config) = (energy(), TileConfig::default());
        let key = |seconds| anchors.choose(&energy, at(seconds), &config).map(|c| c.key);
        assert_eq!(key(0), Some(true));
        assert_eq!(key(1), None, "nothing has changed");
        anchors.want_key_anchor();
        anchors.want_key_anchor();
        assert_eq!(key(1), None, "too soon after the first");
        assert_eq!(key(3), Some(true));
        assert_eq!(key(6), None);
    }

    #[test]
    fn a_key_anchor_that_was_dropped_is_due_at_once() {
        let anchors = Anchors::default();
        let (energy, config) = (energy(), TileConfig::default());
        let first = anchors.choose(&energy, at(5), &config).expect("the first");
        anchors.forget(&first);
        assert_eq!(anchors.choose(&energy, at(5), &config), Some(first));
    }

    #[test]
    fn what_subscribers_were_given_is_neither_made_nor_asked_for_again() {
        let (anchors, config) = (Anchors::default(), RegionConfig::default());
        let ask = |lost: f64, now| anchors.regions(SIZE, now, &config, || Some(vec![lost; 2]));
        let first = ask(1.0, at(1)).expect("nothing is known yet");
        assert!(first.tiles.is_full());
        assert_eq!(ask(1.0, at(1)), None, "it was asked for just now");
        anchors.given(&energy(), Some(&first.tiles.to_bytes()), at(2));
        assert_eq!(ask(0.0, at(3)), None, "they are known");
        // The first of all, and those for newcomers, are made all the same.
        assert!(anchors.choose(&energy(), at(3), &TileConfig::default()).is_some_and(|c| c.key));
        anchors.given(&energy(), None, at(4));
        assert_eq!(anchors.choose(&energy(), at(4), &TileConfig::default()), None);
        anchors.given(&energy(), Some(&[0xff; 9]), at(4));
    }

    #[test]
    fn the_publisher_is_asked_sooner_where_what_it_gave_is_outdated() {
        let (anchors, config) = (Anchors::default(), RegionConfig::default());
        let ask = |lost: f64, now| anchors.regions(SIZE, now, &config, || Some(vec![lost; 2]));
        ask(1.0, at(1)).expect("nothing is known yet");
        anchors.given(&energy(), None, at(1));
        assert_eq!(ask(0.3, at(2)), None, "most of it is of use");
        assert_eq!(ask(0.9, at(2)), None, "it was looked at just now");
        let request = ask(0.9, at(2) + POLL_INTERVAL).expect("all has changed");
        assert_eq!((request.tiles, request.bytes), (TileMap::full(SIZE), 7500));
    }

    #[test]
    fn where_super_resolution_adds_most_is_asked_for_first() {
        let anchors = Anchors::default();
        let mut detail = Detail::zero(192, 128);
        for y in 0..128 {
            detail.row_mut(y)[128..].fill(5 * ONE);
        }
        let full = TileMap::full(SIZE);
        anchors.note_uncertainty(&full, energy_by_tile(&detail, &full, 2));
        let one = RegionConfig { area: 0.5, ..RegionConfig::default() };
        let request = anchors.regions(SIZE, at(1), &one, || Some(vec![1.0; 2]));
        let request = request.expect("nothing is known yet");
        assert_eq!(request.tiles.iter().collect::<Vec<_>>(), [(1, 0)]);
    }

    #[test]
    fn every_anchor_has_some_bytes_and_what_was_saved() {
        let (anchors, start) = (Anchors::default(), Instant::now());
        assert_eq!(anchors.max_bytes(start), 48_000, "the first may take more");
        anchors.took(36_000);
        assert_eq!(anchors.max_bytes(start), 12_000);
        anchors.took(12_000);
        assert_eq!(anchors.max_bytes(start), 8_000);
        anchors.took(8_000);
        assert_eq!(anchors.max_bytes(start + at(2)), 16_000);
        assert_eq!(anchors.max_bytes(start + at(60)), 48_000);
        anchors.limit(Limits { bytes: 3_000, ..Limits::default() });
        assert_eq!(anchors.max_bytes(start + at(60)), 3_000, "a controller says less");
    }

    #[test]
    fn no_anchor_takes_more_bytes_than_it_may() {
        let tiles = TileMap::full(SIZE);
        let bytes = |max_bytes| {
            let coding = Encoding { quality: 95, max_bytes };
            let coded = encode(coding, content(), &tiles, 2, &mut CpuStills).expect("a code");
            coded.payload.len()
        };
        let free = bytes(usize::MAX);
        let max = free / 3;
        let limited = bytes(max);
        assert!((max * 9 / 10..=max).contains(&limited), "{limited} of {max}, {free} before");
    }

    #[test]
    fn some_tiles_are_coded_with_their_map() {
        let mut tiles = TileMap::empty(SIZE);
        tiles.set(1, 0);
        let coding = Encoding { quality: 75, max_bytes: usize::MAX };
        let coded = encode(coding, content(), &tiles, 2, &mut CpuStills);
        let Packed { payload, tiled } = coded.expect("a code");
        assert!(tiled && payload.starts_with(&tiles.to_bytes()));
    }
}
