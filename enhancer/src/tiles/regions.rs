//! Decides when the publisher is asked for a still, and of which tiles: those where its own pixels gain most.
//!
//! In DDS the server chooses regions from what its network finds in the low stream. Here a tile's weight is its
//! *uncertainty* times the share of its captured detail that is lost. Uncertainty is the energy that super-resolution,
//! or the built-in filters, would add. Detail is lost with age, and where it no longer fits the picture that flow
//! carries it to; the subscribers' twin shows where. Tiles that people look at ([`Subjects`](super::Subjects)) weigh
//! more. Unlike DDS, this keeps state across requests, so that known detail is not requested again.
//!
//! A still is requested from time to time, and sooner when most captured detail is lost: at a scene cut, or when
//! somebody turns round. Its size is limited to the bytes saved since the last one, so that the bitrate does not depend
//! on how often stills are requested.
//!
//! Worth: stills of regions give +8.2 dB PSNR-Y over Lanczos on a shared notebook and +4.3 dB on a terminal, at 50
//! kbit/s for the low layer; 2.2 dB more than DDS of the same bytes on the notebook, about equal elsewhere
//! (`lab/notes/captured-anchors.md`, *Shared screens*, *Regions*).
//!
//! Pure: time is an argument. In: what is lost by tile, what is at stake by tile if known. Out: tiles within a cap on
//! area, and bytes.

use std::time::Duration;

use windlass_types::tiles::TileMap;
use windlass_types::{Bitrate, Size};

/// Limits of a request, and the times of tiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegionConfig {
    /// Maximum share of the picture's tiles in a request. One tile is always allowed.
    pub area: f64,
    /// Bitrate of the publisher's answers.
    pub bitrate: Bitrate,
    /// Time between two requests while captured detail is still of use.
    pub interval: Duration,
    /// Time between two requests if most of the captured detail is lost.
    pub min_interval: Duration,
    /// Maximum time for which bytes are saved for a request.
    pub max_saving: Duration,
    /// Age from which captured detail counts as lost.
    pub lifetime: Duration,
    /// Minimum worth of a tile that is asked for, in square grey levels per sample.
    pub min_worth: f64,
    /// Minimum time between two requests for a tile.
    pub ask_again_after: Duration,
}

impl Default for RegionConfig {
    fn default() -> Self {
        Self {
            area: 1.0,
            bitrate: Bitrate::bps(48_000),
            interval: Duration::from_secs(2),
            min_interval: Duration::from_secs(1),
            max_saving: Duration::from_secs(4),
            lifetime: Duration::from_secs(20),
            min_worth: 0.25,
            ask_again_after: Duration::from_secs(1),
        }
    }
}

impl RegionConfig {
    /// Maximum bytes of an answer, `since` the last request. The first request gets those of the usual interval.
    pub fn bytes(&self, since: Option<Duration>) -> usize {
        let saved = since.unwrap_or(self.interval).min(self.max_saving);
        (self.bitrate.as_bps() as f64 / 8.0 * saved.as_secs_f64()) as usize
    }
}

/// Share of lost captured detail from which on the next request does not wait for the usual interval.
const MAX_LOST: f64 = 0.5;

/// A request to the publisher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The tiles that the publisher is to send.
    pub tiles: TileMap,
    /// Maximum bytes of the answer.
    pub bytes: usize,
}

/// Stake of each tile: its uncertainty (square grey levels per sample; 1 if unknown) times its weight by what people
/// look at. `None` if neither is known.
pub fn stakes(uncertainty: &[f64], subjects: &[f64]) -> Option<Vec<f64>> {
    let tiles = uncertainty.len().max(subjects.len());
    let of = |known: &[f64], i: usize| known.get(i).copied().unwrap_or(1.0);
    (tiles > 0).then(|| (0..tiles).map(|i| of(uncertainty, i) * of(subjects, i)).collect())
}

/// State of one tile.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    captured: Option<Duration>,
    asked: Option<Duration>,
}

/// State of the tiles of one stream, for choosing regions.
#[derive(Debug, Clone, Default)]
pub struct RegionLedger {
    tiles: Vec<Known>,
}

impl RegionLedger {
    /// Chooses the tiles of a low picture that are worth most at `now`; they then count as asked for. `None` if none is
    /// worth it. `lost` is the share of each tile's captured detail that no longer fits. `stakes` is what each tile
    /// lacks while nothing is known of it, as from [`stakes`]; without it all tiles are alike.
    pub fn choose(
        &mut self,
        low: Size,
        lost: &[f64],
        stakes: Option<&[f64]>,
        now: Duration,
        config: &RegionConfig,
    ) -> Option<TileMap> {
        let mut map = TileMap::empty(low);
        self.tiles.resize(map.columns() * map.rows(), Known::default());
        let columns = map.columns().max(1);
        let mut worth: Vec<(f64, usize)> = (0..self.tiles.len())
            .filter(|&i| {
                self.tiles[i]
                    .asked
                    .is_none_or(|at| now.saturating_sub(at) >= config.ask_again_after)
            })
            .map(|i| {
                let stake = stakes.and_then(|s| s.get(i)).map_or(1.0, |&s| s.max(0.0));
                (stake * self.lost(i, lost, now, config), i)
            })
            .filter(|&(worth, _)| worth >= config.min_worth)
            .collect();
        worth.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let by_area = (config.area * self.tiles.len() as f64) as usize;
        for &(_, i) in worth.iter().take(by_area.max(1)) {
            self.tiles[i].asked = Some(now);
            map.set(i % columns, i / columns);
        }
        (map.count() > 0).then_some(map)
    }

    /// Whether most of the captured detail is of no use, given the lost share of each tile.
    pub fn outdated(&self, lost: &[f64], now: Duration, config: &RegionConfig) -> bool {
        let all: f64 = (0..lost.len()).map(|i| self.lost(i, lost, now, config)).sum();
        all > MAX_LOST * lost.len() as f64
    }

    /// Notes captured detail of the time `at`, of whole frames or regions.
    pub fn captured(&mut self, tiles: &TileMap, at: Duration) {
        self.tiles.resize(tiles.columns() * tiles.rows(), Known::default());
        for (column, row) in tiles.iter() {
            if let Some(known) = self.tiles.get_mut(row * tiles.columns() + column) {
                *known = Known { captured: Some(at), asked: None };
            }
        }
    }

    /// Share of a tile's captured detail that is lost, by age as well.
    fn lost(&self, i: usize, lost: &[f64], now: Duration, config: &RegionConfig) -> f64 {
        let age = self.tiles.get(i).and_then(|known| known.captured);
        let age = age.map_or(0.0, |at| now.saturating_sub(at).as_secs_f64());
        let kept = 1.0 - age / config.lifetime.as_secs_f64().max(0.001);
        1.0 - kept.max(0.0) * (1.0 - lost.get(i).copied().unwrap_or(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Low samples of 4 × 2 tiles.
    const SIZE: Size = Size::new(256, 128);
    const ALL: [f64; 8] = [1.0; 8];
    const NONE: [f64; 8] = [0.0; 8];

    fn config() -> RegionConfig {
        RegionConfig { area: 0.5, ..RegionConfig::default() }
    }

    /// All but one tile fit.
    fn one_lost(tile: usize) -> [f64; 8] {
        std::array::from_fn(|i| if i == tile { 0.8 } else { 0.0 })
    }

    fn chosen(tiles: Option<TileMap>) -> Vec<(usize, usize)> {
        tiles.map_or_else(Vec::new, |tiles| tiles.iter().collect())
    }

    #[test]
    fn tiles_that_were_never_captured_come_first_by_their_uncertainty_within_the_area() {
        let mut ledger = RegionLedger::default();
        let uncertainty = [0.0, 9.0, 1.0, 8.0, 7.0, 0.1, 6.0, 5.0];
        let mut choose =
            |now: Duration| ledger.choose(SIZE, &ALL, Some(&uncertainty), now, &config());
        assert_eq!(chosen(choose(SECOND)), [(1, 0), (3, 0), (0, 1), (2, 1)]);
        // Those are on their way; what is worth nothing is not asked for.
        assert_eq!(chosen(choose(SECOND)), [(2, 0), (3, 1)]);
        assert_eq!(choose(SECOND), None);
        assert_eq!(chosen(choose(3 * SECOND)).len(), 4, "no answer came");
    }

    #[test]
    fn of_equally_uncertain_tiles_those_that_people_look_at_come_first() {
        assert_eq!(stakes(&[], &[]), None);
        assert_eq!(stakes(&[4.0, 2.0], &[1.0, 3.0, 2.0]), Some(vec![4.0, 6.0, 2.0]));
        let mut ledger = RegionLedger::default();
        let at_stake = stakes(&[2.0; 8], &[1.0, 1.0, 3.0, 1.0, 1.0, 2.0, 1.0, 1.0]);
        let few = RegionConfig { area: 0.25, ..config() };
        let request = ledger.choose(SIZE, &ALL, at_stake.as_deref(), SECOND, &few);
        assert_eq!(chosen(request), [(2, 0), (1, 1)]);
    }

    #[test]
    fn captured_detail_is_asked_for_again_where_it_no_longer_fits_or_is_old() {
        let mut ledger = RegionLedger::default();
        ledger.captured(&TileMap::full(SIZE), SECOND);
        let mut choose = |lost: &[f64], now| ledger.choose(SIZE, lost, None, now, &config());
        assert_eq!(choose(&NONE, 2 * SECOND), None);
        assert_eq!(chosen(choose(&one_lost(5), 2 * SECOND)), [(1, 1)]);
        assert_eq!(chosen(choose(&NONE, 22 * SECOND)).len(), 4);
    }

    #[test]
    fn one_tile_is_always_allowed() {
        let mut ledger = RegionLedger::default();
        let tight = RegionConfig { area: 0.0, ..config() };
        assert_eq!(chosen(ledger.choose(SIZE, &ALL, None, SECOND, &tight)).len(), 1);
    }

    #[test]
    fn what_was_captured_is_outdated_once_most_of_it_no_longer_fits() {
        let (mut ledger, config) = (RegionLedger::default(), config());
        assert!(ledger.outdated(&ALL, SECOND, &config), "there is nothing yet");
        ledger.captured(&TileMap::full(SIZE), SECOND);
        assert!(!ledger.outdated(&one_lost(2), SECOND, &config), "one tile is not most of it");
        assert!(ledger.outdated(&[0.6; 8], SECOND, &config));
    }

    #[test]
    fn answers_take_what_was_saved_since_the_last() {
        let config = RegionConfig { bitrate: Bitrate::bps(40_000), ..config() };
        let after = |seconds: f64| config.bytes(Some(Duration::from_secs_f64(seconds)));
        assert_eq!([after(1.0), after(2.5), after(60.0)], [5000, 12_500, 20_000]);
        assert_eq!(config.bytes(None), 10_000);
    }
}
