//! How much a rebuilt picture loses with each frame after an anchor: ARISE §4.3, *accuracy drop estimator*.
//!
//! When an anchor comes, there are two pictures of its frame: the one rebuilt from the anchors before it, and the anchor's own. Their
//! mean square difference `d`, over the frames `L` since the last anchor's frame, is the slope `d ÷ L`. Tiles that the anchor leaves
//! out have hardly changed and count as equal. What an anchor's code and network do differently each time is in `d` as well.
//!
//! Making the older picture takes as long as a frame, so only some anchors are looked at.

use crate::anchor::codec::detail_of;
use crate::detail::{Detail, ONE};
use windlass_types::tiles::TileMap;
use windlass_vp9::{Plane, Samples};

/// One anchor of so many is looked at.
const EVERY: u32 = 4;
/// Further apart, what anchors differ by is no longer what a picture loses.
const MOST_APART: u64 = 300;

/// See the module.
#[derive(Default)]
pub(crate) struct DecayMeter {
    /// The frame of the last anchor.
    last: Option<u64>,
    anchors: u32,
    /// Square grey levels, and the frames that they came with.
    lost: f64,
    frames: u64,
}

impl DecayMeter {
    /// Forgets which anchor was the last.
    pub fn interrupt(&mut self) {
        self.last = None;
    }

    /// What was lost so far, in mean square grey levels of luma, and in how many frames.
    pub fn total(&self) -> (f64, u64) {
        (self.lost, self.frames)
    }

    /// An anchor gives the frame `id`: over how many frames there is something to be learned from what that showed
    /// before, if it is to be looked at.
    pub fn anchor(&mut self, id: u64) -> Option<u64> {
        let last = self.last.replace(id)?;
        // One that came late says nothing of the one before.
        let apart = id.saturating_sub(last);
        self.last = Some(id.max(last));
        self.anchors += 1;
        let looks = (1..=MOST_APART).contains(&apart) && (self.anchors - 1).is_multiple_of(EVERY);
        looks.then_some(apart)
    }

    /// Compares what a frame showed with what the anchor gives it in these tiles.
    pub fn compare(
        &mut self,
        apart: u64,
        seen: &Plane,
        low: Samples<'_>,
        detail: &Detail,
        (tiles, scale): (&TileMap, usize),
    ) {
        let Ok(before) = detail_of(seen, low, scale) else { return };
        if (before.width(), before.height()) == (detail.width(), detail.height()) {
            self.lost += mean_square(&before, detail, tiles, scale);
            self.frames += apart;
        }
    }
}

/// Over the whole picture; outside of the tiles nothing differs.
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

    #[test]
    fn only_the_tiles_that_are_given_count() {
        let (a, mut b) = (Detail::zero(256, 128), Detail::zero(256, 128));
        b.samples_mut().fill(2 * ONE);
        assert!((mean_square(&a, &b, &TileMap::full(128, 64), 2) - 4.0).abs() < 1e-9);
        let mut half = TileMap::empty(128, 64);
        half.set(1, 0);
        assert!((mean_square(&a, &b, &half, 2) - 2.0).abs() < 1e-9);
    }
}
