//! Measures the loss of a rebuilt picture with each frame after an anchor: ARISE §4.3, *accuracy drop estimator*.
//!
//! When an anchor comes, there are two pictures of its frame: the one rebuilt from the anchors before it, and the
//! anchor's own. Their mean square difference `d`, over the frames `L` since the last anchor's frame, is the slope
//! `d ÷ L`. Tiles that the anchor leaves out have hardly changed and count as equal. What an anchor's code and network
//! do differently each time is in `d` as well.
//!
//! Making the older picture takes as long as a frame, so only some anchors are looked at.

use crate::anchor::codec::detail_of;
use crate::detail::{Detail, ONE};
use windlass_types::tiles::TileMap;
use windlass_vp9::{Plane, Samples};

/// One anchor in this many is measured: to make the older picture takes as long as a frame.
const EVERY: u32 = 4;
/// Maximum distance of two anchors that are compared, in frames. Beyond it their difference is no longer decay.
const MAX_INTERVAL: u64 = 300;

/// The decay that was measured so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DecaySum {
    /// Sum of the mean square differences of luma, in square grey levels.
    pub lost: f64,
    /// Number of frames over which `lost` came about.
    pub frames: u64,
}

/// Sums up the decay of rebuilt pictures, frame by frame.
#[derive(Default)]
pub(crate) struct DecayMeter {
    /// The number of the last anchor's frame.
    last: Option<u64>,
    anchors: u32,
    sum: DecaySum,
}

impl DecayMeter {
    /// Forgets which anchor was the last.
    pub(crate) fn interrupt(&mut self) {
        self.last = None;
    }

    /// The decay that was measured so far.
    pub(crate) fn sum(&self) -> DecaySum {
        self.sum
    }

    /// Notes an enhanced anchor of the frame `id`. Returns the frames since the last anchor if this anchor is to be
    /// [compared](Self::compare) with the picture before it.
    pub(crate) fn interval(&mut self, id: u64) -> Option<u64> {
        let last = self.last.replace(id)?;
        // A late anchor is older than the one before: the interval is 0, and nothing is measured.
        let interval = id.saturating_sub(last);
        self.last = Some(id.max(last));
        self.anchors += 1;
        let measures =
            (1..=MAX_INTERVAL).contains(&interval) && (self.anchors - 1).is_multiple_of(EVERY);
        measures.then_some(interval)
    }

    /// Compares the frame's picture before the anchor with the anchor's detail, in the anchor's tiles.
    pub(crate) fn compare(
        &mut self,
        interval: u64,
        before: &Plane,
        low: Samples<'_>,
        detail: &Detail,
        tiles: &TileMap,
        scale: usize,
    ) {
        let Ok(before) = detail_of(before, low, scale) else { return };
        if before.size() == detail.size() {
            self.sum.lost += mean_square(&before, detail, tiles, scale);
            self.sum.frames += interval;
        }
    }
}

/// Mean square difference over the whole picture, in square grey levels. Outside the tiles the two are taken as
/// equal.
fn mean_square(a: &Detail, b: &Detail, tiles: &TileMap, scale: usize) -> f64 {
    let side = windlass_types::tiles::TILE * scale;
    let mut sum = 0.0;
    for y in 0..a.height() {
        for (n, (a, b)) in a.row(y).chunks(side).zip(b.row(y).chunks(side)).enumerate() {
            if tiles.contains(n, y / side) {
                let square =
                    |(&a, &b): (&i16, &i16)| f64::from(i32::from(a) - i32::from(b)).powi(2);
                sum += a.iter().zip(b).map(square).sum::<f64>();
            }
        }
    }
    sum / f64::from(ONE).powi(2) / (a.width() * a.height()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_types::Size;

    #[test]
    fn only_the_tiles_that_are_given_count() {
        let low = Size::new(128, 64);
        let (a, mut b) = (Detail::zero(256, 128), Detail::zero(256, 128));
        b.samples_mut().fill(2 * ONE);
        assert!((mean_square(&a, &b, &TileMap::full(low), 2) - 4.0).abs() < 1e-9);
        let mut half = TileMap::empty(low);
        half.set(1, 0);
        assert!((mean_square(&a, &b, &half, 2) - 2.0).abs() < 1e-9);
    }
}
