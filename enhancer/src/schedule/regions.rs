//! Which tiles the publisher is asked for: where its own pixels would pay most.
//!
//! Source: seed 001 §3.1 (DDS) has the server choose regions by what its network finds in the low stream. Here a tile is worth what is
//! missing there: its *uncertainty* (the energy of what super-resolution, or the built-in filters, would add: where
//! they add much there is much to know) times the share of its captured detail that is lost. Detail is lost as the low layer codes
//! residual over it, and with age. Tiles that people look at ([`Subjects`](super::Subjects)) count for more. DDS forgets; this remembers, so that what is known is not asked for again.
//!
//! Pure: time is an argument. In: the residual by tile so far ([`TileEnergy`]), what is at stake by tile if known. Out: tiles
//! within a cap on area and one on bytes.

use std::time::Duration;

use windlass_hybrid::anchor::tiles::{TILE, TileMap};
use windlass_hybrid::detail::{Detail, ONE};

use super::tiles::TileEnergy;

/// What one request may ask for, and when a tile is due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegionConfig {
    /// Most of the picture's tiles, as a share; one tile is always allowed.
    pub area: f64,
    /// Most bytes that the answer should take.
    pub bytes: usize,
    /// Residual, in square grey levels by sample, that half of a tile's detail is lost to.
    pub half_loss: f64,
    /// Detail of this age counts as lost.
    pub lifetime: Duration,
    /// Least worth of a tile that is asked for, in square grey levels by sample.
    pub least: f64,
    /// A tile that was asked for is not asked for again before this has passed.
    pub patience: Duration,
}

impl Default for RegionConfig {
    fn default() -> Self {
        Self {
            area: 0.25,
            bytes: 6000,
            half_loss: 4.0,
            lifetime: Duration::from_secs(20),
            least: 0.25,
            patience: Duration::from_secs(1),
        }
    }
}

/// What the publisher is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The tiles.
    pub tiles: TileMap,
    /// Most bytes of the answer.
    pub bytes: usize,
}

/// Some tiles of a detail, row by row, each with its mean energy in square grey levels by sample. Where super-resolution adds
/// much there is much to know; where two details differ much, one has what the other has not.
pub fn energy_by_tile<'a>(
    detail: &'a Detail,
    tiles: &'a TileMap,
    scale: usize,
) -> impl Iterator<Item = ((usize, usize), f64)> + 'a {
    let side = TILE * scale;
    tiles.iter().map(move |(column, row)| {
        let (x, y) = (column * side, row * side);
        let columns = x.min(detail.width())..(x + side).min(detail.width());
        let rows = y.min(detail.height())..(y + side).min(detail.height());
        let area = (columns.len() * rows.len()).max(1);
        let sum: i64 = rows
            .flat_map(|y| &detail.row(y)[columns.clone()])
            .map(|&d| i64::from(d) * i64::from(d))
            .sum();
        let unit = f64::from(ONE) * f64::from(ONE);
        ((column, row), sum as f64 / unit / area as f64)
    })
}

/// What is at stake in each tile: its uncertainty (square grey levels by sample; where none is known, 1) times what it counts for
/// by what people look at. `None` where neither is known.
pub fn stakes(uncertainty: &[f64], subjects: &[f64]) -> Option<Vec<f64>> {
    let tiles = uncertainty.len().max(subjects.len());
    let of = |known: &[f64], i: usize| known.get(i).copied().unwrap_or(1.0);
    (tiles > 0).then(|| (0..tiles).map(|i| of(uncertainty, i) * of(subjects, i)).collect())
}

/// What is known of one tile.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// The total and the time at its last captured detail.
    captured: Option<(u64, Duration)>,
    asked: Option<Duration>,
}

/// What is known of the tiles of one stream.
#[derive(Debug, Clone, Default)]
pub struct RegionLedger {
    size: (usize, usize),
    tiles: Vec<Known>,
    /// Bytes of a tile in the answers so far.
    tile_bytes: Option<f64>,
}

impl RegionLedger {
    /// The tiles of a frame with these totals that are worth most at `now`, which then count as asked for; `None` where
    /// none is worth it. `stakes`: what each tile lacks while nothing is known of it, as of [`stakes`]; without, all are alike.
    pub fn choose(
        &mut self,
        energy: &TileEnergy,
        stakes: Option<&[f64]>,
        now: Duration,
        config: &RegionConfig,
    ) -> Option<Request> {
        self.follow(energy);
        let mut map = TileMap::empty(self.size.0, self.size.1);
        let columns = map.columns().max(1);
        let mut worth: Vec<(f64, usize)> = (0..self.tiles.len())
            .filter(|&i| {
                self.tiles[i].asked.is_none_or(|at| now.saturating_sub(at) >= config.patience)
            })
            .map(|i| {
                let stake = stakes.and_then(|s| s.get(i)).map_or(1.0, |&s| s.max(0.0));
                (stake * self.lost(i, energy, now, config), i)
            })
            .filter(|&(worth, _)| worth >= config.least)
            .collect();
        worth.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let by_area = (config.area * self.tiles.len() as f64) as usize;
        let by_bytes =
            self.tile_bytes.map_or(usize::MAX, |each| (config.bytes as f64 / each) as usize);
        for &(_, i) in worth.iter().take(by_area.min(by_bytes).max(1)) {
            self.tiles[i].asked = Some(now);
            map.set(i % columns, i / columns);
        }
        (map.count() > 0).then_some(Request { tiles: map, bytes: config.bytes })
    }

    /// Takes note of captured detail of a frame with these totals, from `at`: whole frames and regions.
    pub fn captured(&mut self, tiles: &TileMap, energy: &TileEnergy, at: Duration) {
        self.follow(energy);
        let (_, totals) = energy.totals();
        for (column, row) in tiles.iter() {
            let i = row * tiles.columns() + column;
            if let (Some(known), Some(&total)) = (self.tiles.get_mut(i), totals.get(i)) {
                *known = Known { captured: Some((total, at)), asked: None };
            }
        }
    }

    /// Takes note of how large an answer of so many tiles was.
    pub fn answered(&mut self, tiles: usize, bytes: usize) {
        let each = bytes as f64 / tiles.max(1) as f64;
        let smooth = self.tile_bytes.map_or(each, |known| known + (each - known) / 4.0);
        self.tile_bytes = Some(smooth.max(1.0));
    }

    /// The share of a tile's captured detail that is lost.
    fn lost(&self, i: usize, energy: &TileEnergy, now: Duration, config: &RegionConfig) -> f64 {
        let Some((then, at)) = self.tiles[i].captured else { return 1.0 };
        let (_, totals) = energy.totals();
        let area = energy.area(i).max(1) as f64;
        let residual = totals.get(i).map_or(0.0, |total| (total - then) as f64 / area);
        let age = now.saturating_sub(at).as_secs_f64() / config.lifetime.as_secs_f64().max(0.001);
        let kept = (1.0 - age).max(0.0) * config.half_loss / (config.half_loss + residual);
        1.0 - kept
    }

    /// Begins anew where the stream did.
    fn follow(&mut self, energy: &TileEnergy) {
        let (size, totals) = energy.totals();
        let before =
            |known: &Known, total: u64| known.captured.is_some_and(|(then, _)| then > total);
        if self.size != size || self.tiles.iter().zip(totals).any(|(known, &t)| before(known, t)) {
            self.size = size;
            self.tiles.clear();
            self.tiles.resize(totals.len(), Known::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A stream of 4 × 2 tiles in which residual was coded over tile `over`.
    fn energy(over: usize, by_sample: u64) -> TileEnergy {
        let mut totals = vec![0; 8];
        totals[over] = 4096 * by_sample;
        TileEnergy::with_totals((256, 128), totals)
    }

    fn config() -> RegionConfig {
        RegionConfig { area: 0.5, ..RegionConfig::default() }
    }

    fn chosen(request: Option<Request>) -> Vec<(usize, usize)> {
        request.map_or_else(Vec::new, |request| request.tiles.iter().collect())
    }

    #[test]
    fn tiles_that_were_never_captured_come_first_by_their_uncertainty_within_the_area() {
        let mut ledger = RegionLedger::default();
        let uncertainty = [0.0, 9.0, 1.0, 8.0, 7.0, 0.1, 6.0, 5.0];
        let energy = energy(0, 0);
        let request = ledger.choose(&energy, Some(&uncertainty), SECOND, &config());
        assert_eq!(chosen(request), [(1, 0), (3, 0), (0, 1), (2, 1)]);
        // Those are on their way; what is worth nothing is not asked for.
        let request = ledger.choose(&energy, Some(&uncertainty), SECOND, &config());
        assert_eq!(chosen(request), [(2, 0), (3, 1)]);
        assert_eq!(ledger.choose(&energy, Some(&uncertainty), SECOND, &config()), None);
        let request = ledger.choose(&energy, Some(&uncertainty), 3 * SECOND, &config());
        assert_eq!(chosen(request).len(), 4, "no answer came");
    }

    #[test]
    fn of_equally_uncertain_tiles_those_that_people_look_at_come_first() {
        assert_eq!(stakes(&[], &[]), None);
        assert_eq!(stakes(&[4.0, 2.0], &[1.0, 3.0, 2.0]), Some(vec![4.0, 6.0, 2.0]));
        let mut ledger = RegionLedger::default();
        let at_stake = stakes(&[2.0; 8], &[1.0, 1.0, 3.0, 1.0, 1.0, 2.0, 1.0, 1.0]);
        let few = RegionConfig { area: 0.25, ..config() };
        let request = ledger.choose(&energy(0, 0), at_stake.as_deref(), SECOND, &few);
        assert_eq!(chosen(request), [(2, 0), (1, 1)]);
    }

    #[test]
    fn captured_detail_is_asked_for_again_once_residual_or_age_has_spent_it() {
        let mut ledger = RegionLedger::default();
        ledger.captured(&TileMap::full(256, 128), &energy(0, 0), SECOND);
        assert_eq!(ledger.choose(&energy(0, 0), None, 2 * SECOND, &config()), None);
        let request = ledger.choose(&energy(5, 4), None, 2 * SECOND, &config());
        assert_eq!(chosen(request), [(1, 1)]);
        let request = ledger.choose(&energy(5, 4), None, 22 * SECOND, &config());
        assert_eq!(chosen(request).len(), 4);
    }

    #[test]
    fn a_cap_on_bytes_holds_by_what_answers_took() {
        let mut ledger = RegionLedger::default();
        ledger.answered(2, 6000);
        let config = RegionConfig { bytes: 6500, ..config() };
        assert_eq!(chosen(ledger.choose(&energy(0, 0), None, SECOND, &config)).len(), 2);
        let tight = RegionConfig { bytes: 10, ..config };
        let one = ledger.choose(&energy(0, 0), None, 9 * SECOND, &tight);
        assert_eq!(one.map(|r| (r.tiles.count(), r.bytes)), Some((1, 10)), "one tile always");
    }

    #[test]
    fn a_stream_that_begins_anew_is_not_known() {
        let mut ledger = RegionLedger::default();
        ledger.captured(&TileMap::full(256, 128), &energy(2, 9), SECOND);
        let request = ledger.choose(&energy(0, 0), None, SECOND, &config());
        assert_eq!(chosen(request).len(), 4);
    }
}
