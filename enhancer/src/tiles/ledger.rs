//! Decides which tiles of a chosen frame become the anchor.
//!
//! Source: NeuroScaler §5.1 chooses frames by accumulated residual; here each tile (a superblock of the low
//! layer) has an account of its own, so that a still background is neither super-resolved nor sent again. What a
//! subscriber holds of a tile stays right while the low layer codes no residual in it: motion alone is
//! followed by the reconstruction. Pure: time is an argument.

use std::time::Duration;

use windlass_types::Size;
use windlass_types::tiles::{TILE, TileMap};
use windlass_vp9::{FrameInfo, FrameKind};

/// Energy per sample that an intra block counts for, in square grey levels: the detail that was there is lost.
const INTRA: u64 = 64;

/// Accumulated residual of a stream's tiles: sums that only grow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TileEnergy {
    size: Size,
    totals: Vec<u64>,
}

impl TileEnergy {
    /// Size of the low picture.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Adds the residual of a frame. A frame of another size resets the ledger.
    pub fn add(&mut self, info: &FrameInfo) {
        if matches!(info.kind, FrameKind::ShowExisting { .. }) {
            return;
        }
        let size = Size::saturating(info.width as usize, info.height as usize);
        let columns = usize::from(size.width).div_ceil(TILE);
        if self.size != size {
            self.size = size;
            self.totals.clear();
            self.totals.resize(columns * usize::from(size.height).div_ceil(TILE), 0);
        }
        for block in &info.blocks {
            let tile = usize::from(block.y) / TILE * columns + usize::from(block.x) / TILE;
            let Some(total) = self.totals.get_mut(tile) else { continue };
            let area = u64::from(block.width) * u64::from(block.height);
            let lost = if block.is_intra() { INTRA * area } else { 0 };
            *total = total.saturating_add(u64::from(block.residual_energy).max(lost));
        }
    }
}

/// State of each tile at the subscribers.
#[derive(Debug, Clone, Default)]
pub struct TileLedger {
    size: Size,
    /// Total and time of each tile at its last anchor; `None` if subscribers have nothing.
    sent: Vec<Option<(u64, Duration)>>,
    /// For each tile, the time of the frame of its last captured detail.
    captured: Vec<Option<Duration>>,
}

/// Settings of when a tile is worth sending again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TileConfig {
    /// Residual since the tile was last sent, in square grey levels per sample, from which on it is sent again.
    pub threshold: f64,
    /// Time after which a tile is sent again in any case, for subscribers who missed it.
    pub refresh: Duration,
    /// Time for which a tile with captured detail is left out, however it changes. What a network adds to it makes
    /// faces worse by 0.1 dB (`lab/notes/quality.md`).
    pub captured: Duration,
}

impl Default for TileConfig {
    fn default() -> Self {
        Self { threshold: 1.0, refresh: Duration::from_secs(10), captured: Duration::from_secs(2) }
    }
}

impl TileLedger {
    /// Tiles of a frame with these totals that are to be sent at `now`; they then count as sent. With a threshold of 0,
    /// all tiles. `None` if nothing is worth sending.
    pub fn choose(
        &mut self,
        energy: &TileEnergy,
        now: Duration,
        config: &TileConfig,
    ) -> Option<TileMap> {
        // A frame from shortly before the last one has a little less; a stream that began anew has next to nothing.
        let restarted = self
            .sent
            .iter()
            .zip(&energy.totals)
            .any(|(s, t)| s.is_some_and(|(then, _)| then / 2 > *t));
        if self.size != energy.size || restarted {
            self.begin(energy);
        }
        let (width, height) = (usize::from(energy.size.width), usize::from(energy.size.height));
        let mut map = TileMap::empty(energy.size);
        let columns = map.columns().max(1);
        let tiles = self.sent.iter_mut().zip(&self.captured).zip(&energy.totals);
        for (i, ((sent, captured), &total)) in tiles.enumerate() {
            let (column, row) = (i % columns, i / columns);
            let area = TILE.min(width - column * TILE) * TILE.min(height - row * TILE);
            let due = sent.is_none_or(|(then, at)| {
                // A frame from before what they have tells nothing new.
                total.saturating_sub(then) as f64 >= config.threshold * area as f64
                    || now.saturating_sub(at) >= config.refresh
            });
            let own = captured.is_some_and(|at| now.saturating_sub(at) < config.captured);
            if due && !own {
                *sent = Some((total, now));
                map.set(column, row);
            }
        }
        (map.count() > 0).then_some(map)
    }
}

impl TileLedger {
    /// Notes that subscribers have the publisher's own detail of some tiles of a frame with these totals.
    pub fn captured(&mut self, tiles: &TileMap, energy: &TileEnergy, at: Duration) {
        if self.size != energy.size {
            self.begin(energy);
        }
        for (column, row) in tiles.iter() {
            let i = row * tiles.columns() + column;
            if let (Some(sent), Some(&total)) = (self.sent.get_mut(i), energy.totals.get(i)) {
                *sent = Some((total, at));
                self.captured[i] = Some(at);
            }
        }
    }

    fn begin(&mut self, energy: &TileEnergy) {
        self.size = energy.size;
        self.sent.clear();
        self.sent.resize(energy.totals.len(), None);
        self.captured.clear();
        self.captured.resize(energy.totals.len(), None);
    }

    /// Takes back that tiles were sent, because their anchor was dropped.
    pub fn forget(&mut self, tiles: &TileMap) {
        for (column, row) in tiles.iter() {
            if let Some(sent) = self.sent.get_mut(row * tiles.columns() + column) {
                *sent = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_vp9::Decoder;

    use super::*;

    const REALTIME: &[u8] = include_bytes!("../../../hybrid/vp9/tests/fixtures/realtime.ivf");

    /// The energy after each frame of a small real stream.
    fn energies() -> Vec<TileEnergy> {
        let (mut decoder, mut energy) = (Decoder::new(), TileEnergy::default());
        let after = |data: &[u8]| {
            for frame in decoder.decode(data).expect("a sound stream") {
                energy.add(&frame.info);
            }
            energy.clone()
        };
        windlass_files::ivf::frames(REALTIME).into_iter().map(after).collect()
    }

    #[test]
    fn the_first_anchor_gives_all_tiles_and_the_next_only_what_changed() {
        let energies = energies();
        let mut ledger = TileLedger::default();
        let config = TileConfig::default();
        let first = ledger.choose(&energies[0], Duration::ZERO, &config);
        assert_eq!(first, Some(TileMap::full(Size::new(161, 91))));
        assert_eq!(ledger.choose(&energies[0], Duration::from_secs(1), &config), None);
        let never = TileConfig { threshold: 1e9, ..config };
        assert_eq!(ledger.choose(&energies[9], Duration::from_secs(1), &never), None);
        let all = TileConfig { threshold: 0.0, ..config };
        let later = ledger.choose(&energies[9], Duration::from_secs(1), &all);
        assert!(later.is_some_and(|m| m.is_full()));
    }

    #[test]
    fn a_tile_that_nothing_happened_in_is_refreshed_in_time() {
        let energies = energies();
        let mut ledger = TileLedger::default();
        let config =
            TileConfig { threshold: 1e9, refresh: Duration::from_secs(3), ..TileConfig::default() };
        assert!(ledger.choose(&energies[0], Duration::ZERO, &config).is_some());
        assert_eq!(ledger.choose(&energies[5], Duration::from_secs(2), &config), None);
        assert!(ledger.choose(&energies[5], Duration::from_secs(3), &config).is_some());
    }

    #[test]
    fn tiles_of_a_dropped_anchor_are_due_again() {
        let energies = energies();
        let mut ledger = TileLedger::default();
        let config = TileConfig { threshold: 1e9, ..TileConfig::default() };
        let all = ledger.choose(&energies[0], Duration::ZERO, &config).expect("the first");
        let mut one = TileMap::empty(Size::new(161, 91));
        one.set(1, 1);
        ledger.forget(&one);
        assert!(all.is_full());
        assert_eq!(ledger.choose(&energies[3], Duration::ZERO, &config), Some(one));
    }

    #[test]
    fn tiles_whose_captured_detail_is_fresh_are_left_out() {
        let energies = energies();
        let mut ledger = TileLedger::default();
        let config = TileConfig { threshold: 1e9, ..TileConfig::default() };
        let mut left = TileMap::full(Size::new(161, 91));
        let mut own = TileMap::empty(Size::new(161, 91));
        own.set(1, 1);
        ledger.captured(&own, &energies[0], Duration::ZERO);
        left = left.without(&own);
        assert_eq!(ledger.choose(&energies[5], Duration::from_secs(1), &config), Some(left));
        // However they change, for a while.
        let all = TileConfig { threshold: 0.0, ..TileConfig::default() };
        let chosen = ledger.choose(&energies[9], Duration::from_millis(1900), &all);
        assert!(chosen.is_some_and(|map| !map.contains(1, 1)));
        let chosen = ledger.choose(&energies[9], Duration::from_secs(2), &all);
        assert!(chosen.is_some_and(|map| map.contains(1, 1)));
    }

    #[test]
    fn a_frame_from_before_what_subscribers_have_tells_nothing_new() {
        let energies = energies();
        let mut ledger = TileLedger::default();
        let config = TileConfig::default();
        ledger.choose(&energies[9], Duration::ZERO, &config);
        assert_eq!(ledger.choose(&energies[8], Duration::from_millis(100), &config), None);
        let never = TileConfig { threshold: 1e9, ..config };
        assert_eq!(ledger.choose(&energies[9], Duration::from_millis(200), &never), None);
    }

    #[test]
    fn a_stream_that_begins_anew_is_sent_whole() {
        let energies = energies();
        let mut ledger = TileLedger::default();
        let config = TileConfig::default();
        ledger.choose(&energies[9], Duration::ZERO, &config);
        let again = ledger.choose(&energies[0], Duration::from_millis(100), &config);
        assert_eq!(again, Some(TileMap::full(Size::new(161, 91))));
    }
}
