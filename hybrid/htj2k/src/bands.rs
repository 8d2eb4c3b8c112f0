//! Where the bands of a transformed plane lie, and how precincts and blocks divide them
//! (ITU-T T.800, B.5 to B.7, with the picture's origin at 0).

use crate::wavelet::{Rows, low_length};

/// A rectangle of coefficients: its columns in the plane, its rows in a band.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// One band of a resolution.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Band {
    /// The band's index among all bands, in the order of quantisers.
    pub(crate) index: usize,
    /// The band's columns in the plane, and the number of its rows.
    pub(crate) area: Area,
    /// The band's rows in the plane.
    pub(crate) rows: Rows,
    /// The band's level, from 1; the low band shares the last, or has 0 without a transform.
    pub(crate) level: u8,
    /// Number of directions in which the band is a high one, which are the bits of its nominal gain.
    pub(crate) highs: u8,
}

/// The bands of a resolution: the low one, or those that double it.
pub(crate) fn bands(
    width: usize,
    height: usize,
    levels: u8,
    resolution: u8,
) -> impl Iterator<Item = Band> + Clone {
    let count = if resolution == 0 { 1 } else { 3 };
    (0..count).map(move |i| {
        if resolution == 0 {
            let (width, height) = (low_length(width, levels), low_length(height, levels));
            let area = Area { x: 0, y: 0, width, height };
            let rows = Rows::new(levels, false);
            return Band { index: 0, area, rows, level: levels, highs: 0 };
        }
        let level = levels - resolution + 1;
        let (low_w, low_h) = (low_length(width, level), low_length(height, level));
        let high_w = low_length(width, level - 1) - low_w;
        let high_h = low_length(height, level - 1) - low_h;
        let (area, highs) = match i {
            0 => (Area { x: low_w, y: 0, width: high_w, height: low_h }, 1),
            1 => (Area { x: 0, y: 0, width: low_w, height: high_h }, 1),
            _ => (Area { x: low_w, y: 0, width: high_w, height: high_h }, 2),
        };
        let rows = Rows::new(level, i > 0);
        Band { index: 3 * usize::from(resolution - 1) + 1 + i, area, rows, level, highs }
    })
}

/// Binary logarithms of the sides of a cell of a regular division.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogSides {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl LogSides {
    pub(crate) const fn square(side: u32) -> Self {
        Self { width: side, height: side }
    }
}

/// The part of a length that a cell of a regular division covers: where it starts, and its length.
fn cell(length: usize, log_side: u32, at: usize) -> (usize, usize) {
    let start = (at << log_side).min(length);
    (start, (1 << log_side).min(length - start))
}

/// The part of a band that a cell of a division in both directions covers.
pub(crate) fn cell_of(area: Area, log_sides: LogSides, column: usize, row: usize) -> Area {
    let (x, width) = cell(area.width, log_sides.width, column);
    let (y, height) = cell(area.height, log_sides.height, row);
    Area { x: area.x + x, y: area.y + y, width, height }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_cover_the_plane_once() {
        for (width, height, levels) in [(1, 1, 5), (7, 5, 2), (640, 360, 5), (3, 200, 4), (9, 9, 0)]
        {
            let mut seen = vec![0; width * height];
            for band in (0..=levels).flat_map(|r| bands(width, height, levels, r)) {
                for y in band.area.y..band.area.y + band.area.height {
                    for x in band.area.x..band.area.x + band.area.width {
                        seen[band.rows.at(y) * width + x] += 1;
                    }
                }
            }
            assert!(seen.iter().all(|&n| n == 1), "{width}x{height} {levels}");
        }
    }
}
