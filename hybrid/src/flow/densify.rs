//! Makes one vector for each cell from the vectors of overlapping patches: their mean, each weighed by how well it
//! fits there.

use super::FlowVector;
use super::grid::Grid;
use super::patch::{CELL, CELLS};

/// Maximum weight of a vector. A cell has at most sixteen patches, so that sums of weighted vectors and their doubles
/// fit 32 bits.
const MAX_WEIGHT: i32 = 1 << 10;

/// Mean square error at which a vector has a quarter of the maximum weight, in 1/256 square grey level.
const QUARTER: i32 = 16 * 256;

/// The weight of a vector with this sum of squared errors in a cell, in 1/256 square grey level.
pub(super) fn weight(squares: i32) -> u16 {
    let root = MAX_WEIGHT * QUARTER / (squares / (CELL * CELL) as i32 + QUARTER);
    (root * root / MAX_WEIGHT).max(1) as u16
}

/// Sums over the patches of a cell: of weights, and of weighted vectors.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    weight: i32,
    x: i32,
    y: i32,
}

/// The sums of all cells: working memory that grows to what the largest picture needs.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums(Vec<Sum>);

impl Sums {
    /// Writes the vector of each cell to `out`, row by row. The grid's patches cover all cells.
    pub(super) fn densify(&mut self, grid: &Grid, columns: usize, out: &mut [FlowVector]) {
        if columns == 0 {
            return;
        }
        let step = grid.stride() / CELL;
        // Patches may hang over.
        let line = (grid.columns() - 1) * step + CELLS;
        self.0.clear();
        self.0.resize(line * ((grid.rows() - 1) * step + CELLS), Sum::default());
        for row in 0..grid.rows() {
            for column in 0..grid.columns() {
                let found = grid.at(column, row);
                let (x, y) = (i32::from(found.vector.x), i32::from(found.vector.y));
                let lines = self.0[row * step * line + column * step..].chunks_mut(line);
                for (cells, weights) in lines.zip(found.weights.chunks_exact(CELLS)) {
                    for (sum, &weight) in cells[..CELLS].iter_mut().zip(weights) {
                        let weight = i32::from(weight);
                        sum.weight += weight;
                        sum.x += weight * x;
                        sum.y += weight * y;
                    }
                }
            }
        }
        for (out, sums) in out.chunks_exact_mut(columns).zip(self.0.chunks_exact(line)) {
            for (vector, sum) in out.iter_mut().zip(sums) {
                *vector = FlowVector { x: mean(sum.x, sum.weight), y: mean(sum.y, sum.weight) };
            }
        }
    }
}

/// A weighted mean: the sum over the total weight, which is at least 1, rounded.
fn mean(sum: i32, weight: i32) -> i16 {
    (2 * sum + weight).div_euclid(2 * weight) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_rounded_to_the_nearest_and_extremes_fit() {
        assert_eq!([mean(7, 2), mean(-7, 2), mean(9, 4), mean(-9, 4)], [4, -3, 2, -2]);
        let (all, low) = (16 * MAX_WEIGHT, i32::from(i16::MIN));
        assert_eq!(mean(all * low, all), i16::MIN);
        assert_eq!(mean(all * i32::from(i16::MAX), all), i16::MAX);
    }

    #[test]
    fn what_fits_is_worth_more() {
        assert_eq!(i32::from(weight(0)), MAX_WEIGHT);
        assert_eq!(i32::from(weight(4 * QUARTER)), MAX_WEIGHT / 4);
        assert_eq!(weight(4 * 4080 * 4080), 1);
    }
}
