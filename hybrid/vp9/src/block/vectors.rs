//! Prediction of motion vectors from neighbours and the previous frame (specification §6.4.22, §6.5).

use super::BlockSize;
use crate::info::{Block, FrameInfo, MotionVector};

/// How far candidate vectors may point out of the frame, in 1/8 sample (`MV_BORDER`).
const CANDIDATE_BORDER: i32 = 16 << 3;
/// How far predicted vectors may point out of the frame, in 1/8 sample (`(BORDERINPIXELS - INTERP_EXTEND) << 3`).
const PREDICTION_BORDER: i32 = (160 - 4) << 3;
/// Components from which on 1/8 precision is not used, in whole samples (`COMPANDED_MVREF_THRESH`).
const HIGH_PRECISION_BELOW: i32 = 8;

/// Places of neighbours by block size, as rows and columns of 8×8 units from the block (`mv_ref_blocks`, §6.5.1).
static NEIGHBOURS: [[(i8, i8); 8]; 13] = [
    [(-1, 0), (0, -1), (-1, -1), (-2, 0), (0, -2), (-2, -1), (-1, -2), (-2, -2)],
    [(-1, 0), (0, -1), (-1, -1), (-2, 0), (0, -2), (-2, -1), (-1, -2), (-2, -2)],
    [(-1, 0), (0, -1), (-1, -1), (-2, 0), (0, -2), (-2, -1), (-1, -2), (-2, -2)],
    [(-1, 0), (0, -1), (-1, -1), (-2, 0), (0, -2), (-2, -1), (-1, -2), (-2, -2)],
    [(0, -1), (-1, 0), (1, -1), (-1, -1), (0, -2), (-2, 0), (-2, -1), (-1, -2)],
    [(-1, 0), (0, -1), (-1, 1), (-1, -1), (-2, 0), (0, -2), (-1, -2), (-2, -1)],
    [(-1, 0), (0, -1), (-1, 1), (1, -1), (-1, -1), (-3, 0), (0, -3), (-3, -3)],
    [(0, -1), (-1, 0), (2, -1), (-1, -1), (-1, 1), (0, -3), (-3, 0), (-3, -3)],
    [(-1, 0), (0, -1), (-1, 2), (-1, -1), (1, -1), (-3, 0), (0, -3), (-3, -3)],
    [(-1, 1), (1, -1), (-1, 2), (2, -1), (-1, -1), (-3, 0), (0, -3), (-3, -3)],
    [(0, -1), (-1, 0), (4, -1), (-1, 2), (-1, -1), (0, -3), (-3, 0), (2, -1)],
    [(-1, 0), (0, -1), (-1, 4), (2, -1), (-1, -1), (-3, 0), (0, -3), (-1, 2)],
    [(-1, 3), (3, -1), (-1, 4), (4, -1), (-1, -1), (-1, 0), (0, -1), (-1, 6)],
];

/// The mode context for a sum of two neighbours' modes (`counter_to_context`, §6.5.1). Sums that cannot occur give 0.
static CONTEXTS: [u8; 19] = [2, 3, 4, 1, 3, 0, 0, 0, 0, 5, 5, 0, 5, 0, 0, 0, 0, 0, 6];

/// The columns of a tile, in 8×8 units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TileColumns {
    pub(crate) first: usize,
    /// The column behind the last.
    pub(crate) end: usize,
}

/// The place of a block, and the bounds of its neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) mi_row: usize,
    pub(crate) mi_col: usize,
    pub(crate) size: BlockSize,
    pub(crate) mi_rows: usize,
    pub(crate) mi_cols: usize,
    pub(crate) tile: TileColumns,
}

impl Place {
    /// Distances to the frame's edges, in 1/8 sample: left, right, top, bottom.
    fn edges(&self) -> [i32; 4] {
        let to = |all: usize, at: usize, own: usize| (all as i32 - own as i32 - at as i32) * 64;
        [
            -(self.mi_col as i32 * 64),
            to(self.mi_cols, self.mi_col, self.size.width8()),
            -(self.mi_row as i32 * 64),
            to(self.mi_rows, self.mi_row, self.size.height8()),
        ]
    }

    /// Clamps a vector to `border` beyond the frame's edges (`clamp_mv_ref` and similar, §6.5.3).
    fn clamp(&self, v: MotionVector, border: i32) -> MotionVector {
        let [left, right, top, bottom] = self.edges();
        let clamp =
            |v: i16, low: i32, high: i32| i32::from(v).max(low - border).min(high + border) as i16;
        MotionVector { x: clamp(v.x, left, right), y: clamp(v.y, top, bottom) }
    }
}

/// The inputs of the search for candidate vectors.
pub(crate) struct Candidates<'a> {
    pub(crate) info: &'a FrameInfo,
    /// The previous frame, where its vectors may be used.
    pub(crate) previous: Option<&'a FrameInfo>,
    pub(crate) sign_bias: [bool; 4],
    pub(crate) place: Place,
}

/// A list of candidate vectors: at most two, which differ from each other.
#[derive(Debug, Clone, Copy, Default)]
struct List {
    vectors: [MotionVector; 2],
    count: usize,
}

impl List {
    /// Adds a vector if it is new (`add_mv_ref_list`). Returns whether the list is full now.
    #[inline]
    fn add(&mut self, v: MotionVector) -> bool {
        if self.count == 0 {
            self.vectors[0] = v;
            self.count = 1;
        } else if v != self.vectors[0] {
            self.vectors[1] = v;
            self.count = 2;
            return true;
        }
        false
    }
}

impl<'a> Candidates<'a> {
    #[inline]
    fn neighbour(&self, down: i8, right: i8) -> Option<&'a Block> {
        let row = self.place.mi_row as isize + isize::from(down);
        let col = self.place.mi_col as isize + isize::from(right);
        let tile = self.place.tile;
        let inside = row >= 0
            && row < self.place.mi_rows as isize
            && col >= tile.first as isize
            && col < tile.end as isize;
        if !inside {
            return None;
        }
        let index = *self.info.grid.get(row as usize * self.info.grid_stride + col as usize)?;
        self.info.blocks.get(index as usize)
    }

    /// Context of `inter_mode`, from the modes of the two nearest neighbours.
    pub(crate) fn mode_context(&self) -> usize {
        let sum: usize = NEIGHBOURS[self.place.size.index()][..2]
            .iter()
            .filter_map(|&(down, right)| self.neighbour(down, right))
            // `mode_2_counter`: intra 9, nearest 0, near 0, zero 3, new 1.
            .map(|b| [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 3, 1][b.mode as usize])
            .sum();
        usize::from(CONTEXTS[sum.min(18)])
    }

    /// The candidate vectors for `reference`: up to two, and zero vectors for missing ones (`find_mv_refs`, §6.5.1).
    /// `quarter` is set for a part of an 8×8 square.
    pub(crate) fn find(&self, reference: u8, quarter: Option<usize>) -> [MotionVector; 2] {
        let mut list = List::default();
        self.fill(&mut list, reference, quarter);
        list.vectors.map(|v| self.place.clamp(v, CANDIDATE_BORDER))
    }

    fn fill(&self, list: &mut List, reference: u8, quarter: Option<usize>) {
        let neighbours = &NEIGHBOURS[self.place.size.index()];
        let mut any = false;
        for (i, &(down, right)) in neighbours.iter().enumerate() {
            let Some(block) = self.neighbour(down, right) else { continue };
            any = true;
            let Some(which) = same_reference(block, reference) else { continue };
            let part = match quarter {
                Some(q) if i < 2 => beside(q, right == 0),
                _ => 3,
            };
            if list.add(block.vectors[part][which]) {
                return;
            }
        }
        let before = self.previous.and_then(|p| {
            let at = self.place.mi_row * p.grid_stride + self.place.mi_col;
            p.blocks.get(*p.grid.get(at)? as usize)
        });
        if let Some(block) = before
            && let Some(which) = same_reference(block, reference)
            && list.add(block.vectors[3][which])
        {
            return;
        }
        if any {
            for &(down, right) in neighbours {
                let Some(block) = self.neighbour(down, right) else { continue };
                if self.add_different(list, block, reference) {
                    return;
                }
            }
        }
        if let Some(block) = before {
            self.add_different(list, block, reference);
        }
    }

    /// Adds a block's vectors to other references (`if_diff_ref_frame_add_mv`). They are turned round where the sign
    /// bias of the other reference differs.
    fn add_different(&self, list: &mut List, block: &Block, reference: u8) -> bool {
        let [first, second] = block.references;
        let vectors = block.vectors[3];
        let turned = |of: u8, v: MotionVector| {
            if self.sign_bias[usize::from(of & 3)] == self.sign_bias[usize::from(reference & 3)] {
                v
            } else {
                MotionVector { x: v.x.wrapping_neg(), y: v.y.wrapping_neg() }
            }
        };
        if first != 0 && first != reference && list.add(turned(first, vectors[0])) {
            return true;
        }
        second != 0
            && second != reference
            && vectors[1] != vectors[0]
            && list.add(turned(second, vectors[1]))
    }

    /// The best vectors, from those that [`Candidates::find`] returned (`find_best_ref_mvs`, §6.5.12).
    pub(crate) fn best(&self, found: [MotionVector; 2], high_precision: bool) -> [MotionVector; 2] {
        found.map(|v| {
            let v = if high_precision && uses_high_precision(v) {
                v
            } else {
                MotionVector { x: to_quarter(v.x), y: to_quarter(v.y) }
            };
            self.place.clamp(v, PREDICTION_BORDER)
        })
    }

    /// The nearest and near vectors of a quarter, given the vectors of the quarters before it (`append_sub8x8_mvs`,
    /// §6.4.22).
    pub(crate) fn quarter(
        &self,
        reference: u8,
        which: usize,
        quarter: usize,
        before: &[[MotionVector; 2]; 4],
    ) -> [MotionVector; 2] {
        let found = self.find(reference, Some(quarter));
        let before = |q: usize| before[q][which];
        let near = |nearest: MotionVector, candidates: &[MotionVector]| {
            candidates.iter().copied().find(|&v| v != nearest).unwrap_or_default()
        };
        match quarter {
            0 => found,
            1 | 2 => [before(0), near(before(0), &found)],
            _ => {
                let candidates = [before(1), before(0), found[0], found[1]];
                [before(2), near(before(2), &candidates)]
            }
        }
    }
}

/// The index of `reference` among a block's two references.
#[inline]
fn same_reference(block: &Block, reference: u8) -> Option<usize> {
    block.references.iter().position(|&r| r == reference)
}

/// The quarter of a neighbour that touches this quarter (`idx_n_column_to_subblock`).
fn beside(quarter: usize, same_column: bool) -> usize {
    [[1, 2], [1, 3], [3, 2], [3, 3]][quarter & 3][usize::from(same_column)]
}

/// Whether a vector is small enough for 1/8 precision (`use_mv_hp`).
pub(crate) fn uses_high_precision(v: MotionVector) -> bool {
    let small = |c: i16| i32::from(c).abs() >> 3 < HIGH_PRECISION_BELOW;
    small(v.x) && small(v.y)
}

/// A component in 1/4 sample: an odd one moves towards zero.
fn to_quarter(c: i16) -> i16 {
    if c & 1 == 0 { c } else { c - c.signum() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_components_move_towards_zero() {
        assert_eq!([to_quarter(5), to_quarter(-5), to_quarter(4), to_quarter(0)], [4, -4, 4, 0]);
    }

    #[test]
    fn small_vectors_alone_have_high_precision() {
        assert!(uses_high_precision(MotionVector { x: 63, y: -63 }));
        assert!(!uses_high_precision(MotionVector { x: 64, y: 0 }));
    }

    #[test]
    fn equal_candidates_count_once() {
        let mut list = List::default();
        let v = MotionVector { x: 1, y: 2 };
        assert!(!list.add(v));
        assert!(!list.add(v));
        assert!(list.add(MotionVector::default()));
    }
}
