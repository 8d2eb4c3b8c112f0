//! The detail of a picture that the publisher's browser coded, and how far to believe it.
//!
//! The picture's luma less the upsampled low picture is detail with the coding noise of both in it. A picture coded
//! coarser than the low layer would make things worse where it is believed whole, so each cell's detail is weighed by
//! Wiener's rule: what of its energy is more than its quantiser's noise. Fine and coarse detail are weighed apart: the
//! low layer has the coarse part (the mean of each low sample, as the publisher's box filter makes it) from a stream
//! of its own, whose frames are many, while of the fine part there is nothing but an expectation.

use crate::anchor::pictures::CodedPicture;
use crate::anchor::tiles::{TILE, TileMap};
use crate::detail::{Detail, ONE};
use crate::reconstruct::CELL;
use crate::reconstruct::carry::warp::WHOLE;
use crate::resample::{self, Samples, lanczos};
use crate::simd::Isa;

/// What the noise of even rounding counts for against the fine part of detail, in 1/32: most blocks are coded better
/// than their quantiser promises. Measured in `docs/reconstruction.md`.
const FINE: u64 = 2;
/// The same against its coarse part.
const COARSE: u64 = 4;
/// Detail teaches where its energy is so many times that noise.
const TEACHES: u64 = 64;

/// Working memory, used again.
#[derive(Debug, Default)]
pub(crate) struct Weigher {
    /// By cell: the quantiser's noise in 1/256 square grey level.
    noise: Vec<u32>,
    /// Means of detail by low sample.
    means: Vec<i16>,
    /// Weights by cell, fine and coarse.
    weights: Vec<[i16; 2]>,
    strip: Vec<i16>,
    row: Vec<i32>,
    resample: resample::Scratch,
}

impl Weigher {
    /// The detail of a coded picture over a low one in some tiles, 0 elsewhere. A picture of some tiles is their
    /// mosaic.
    ///
    /// # Panics
    ///
    /// Where the picture is smaller than the tiles ask for.
    pub fn detail(
        &mut self,
        isa: Isa,
        low: Samples<'_>,
        coded: &CodedPicture,
        tiles: &TileMap,
        scale: usize,
    ) -> Detail {
        let (width, height) = (scale * low.width, scale * low.height);
        let (columns, side) = (low.width.div_ceil(CELL), TILE * scale);
        let luma = &coded.picture().planes()[0];
        let mut detail = Detail::zero(width, height);
        self.noise.clear();
        self.noise.resize(columns * low.height.div_ceil(CELL), 0);
        let mut made = None;
        for ((column, row), (from_x, from_y)) in tiles.places(scale) {
            let rows = row * TILE..((row + 1) * TILE).min(low.height);
            if made != Some(row) {
                self.strip.resize(width * scale * rows.len(), 0);
                lanczos(isa, low, scale, rows.clone(), &mut self.strip, &mut self.resample);
                made = Some(row);
            }
            let x = column * side;
            let wide = side.min(width - x);
            for (line, base) in self.strip.chunks_exact(width).enumerate() {
                let out = &mut detail.row_mut(row * side + line)[x..x + wide];
                let luma = &luma.row(from_y + line)[from_x..from_x + wide];
                for ((d, &v), &b) in out.iter_mut().zip(luma).zip(&base[x..x + wide]) {
                    *d = i16::from(v) * ONE - b;
                }
            }
            let cells = TILE / CELL;
            for y in row * cells..rows.end.div_ceil(CELL) {
                for x in column * cells..((column + 1) * cells).min(columns) {
                    let at = |low: usize, tile: usize, from: usize| {
                        from + (low - tile * cells) * CELL * scale
                    };
                    let (x0, y0) = (at(x, column, from_x), at(y, row, from_y));
                    self.noise[y * columns + x] = noise(coded, (x0, y0), CELL * scale);
                }
            }
        }
        detail
    }

    /// By cell, whether detail is too noisy to learn from.
    pub fn too_noisy<'a>(
        &'a self,
        detail: &'a Detail,
        scale: usize,
    ) -> impl Iterator<Item = bool> + 'a {
        let columns = (detail.width() / scale).div_ceil(CELL);
        self.noise.iter().enumerate().map(move |(i, &noise)| {
            let (column, row) = (i % columns, i / columns);
            let (energy, _) = energy(detail, (column, row), CELL * scale);
            u64::from(energy) < TEACHES * u64::from(noise)
        })
    }

    /// Weighs the detail of the last picture, of which the expected may have been taken out, in all cells but those to
    /// `skip`.
    pub fn weigh(&mut self, detail: &mut Detail, skip: Option<&[bool]>, scale: usize) {
        let (width, height) = (detail.width() / scale, detail.height() / scale);
        let columns = width.div_ceil(CELL);
        self.means(detail, (width, height), scale);
        self.weights.clear();
        for (i, &noise) in self.noise.iter().enumerate() {
            if skip.is_some_and(|skip| skip[i]) {
                self.weights.push([WHOLE; 2]);
                continue;
            }
            let (column, row) = (i % columns, i / columns);
            let (all, _) = energy(detail, (column, row), CELL * scale);
            let coarse = self.coarse_energy((column, row), (width, height));
            let fine = kept(all.saturating_sub(coarse), FINE * u64::from(noise) / 32);
            self.weights.push([fine, kept(coarse, COARSE * u64::from(noise) / 32)]);
        }
        self.blend(detail, (width, height), scale);
    }

    /// By cell, whether anything of what was weighed last is left.
    pub fn believed(&self) -> impl Iterator<Item = bool> + '_ {
        self.weights.iter().map(|&[fine, coarse]| fine > 0 || coarse > 0)
    }

    /// Means of detail by low sample.
    fn means(&mut self, detail: &Detail, (width, height): (usize, usize), scale: usize) {
        self.means.clear();
        let area = (scale * scale) as i32;
        for y in 0..height {
            self.row.clear();
            self.row.resize(width, 0);
            for line in scale * y..scale * (y + 1) {
                for (sum, part) in self.row.iter_mut().zip(detail.row(line).chunks_exact(scale)) {
                    *sum += part.iter().map(|&v| i32::from(v)).sum::<i32>();
                }
            }
            self.means.extend(self.row.iter().map(|sum| (sum / area) as i16));
        }
    }

    /// Mean energy of the means in a cell.
    fn coarse_energy(&self, (column, row): (usize, usize), (width, height): (usize, usize)) -> u32 {
        let (x, y) = (column * CELL, row * CELL);
        let wide = CELL.min(width - x);
        let lines = self.means.chunks_exact(width).skip(y).take(CELL.min(height - y));
        let count = (wide * lines.len()) as u64;
        let squares = |line: &[i16]| -> u64 {
            line[x..x + wide].iter().map(|&m| i64::from(m).pow(2) as u64).sum()
        };
        (lines.map(squares).sum::<u64>() / count.max(1)).min(u32::MAX.into()) as u32
    }

    /// Fine detail by its weight and coarse detail by its own. The coarse part is the means, bilinear.
    fn blend(&mut self, detail: &mut Detail, (width, height): (usize, usize), scale: usize) {
        let columns = width.div_ceil(CELL);
        for y in 0..detail.height() {
            let (at, other, weight) = neighbour(y, height, scale);
            let all = 2 * scale as i32;
            let (own, beside) = (&self.means[at * width..], &self.means[other * width..]);
            self.row.clear();
            self.row.extend(
                own.iter()
                    .zip(beside)
                    .take(width)
                    .map(|(&a, &b)| i32::from(a) * (all - weight) + i32::from(b) * weight),
            );
            let weights = &self.weights[y / scale / CELL * columns..][..columns];
            let line = detail.row_mut(y);
            for (column, &[fine, coarse]) in weights.iter().enumerate() {
                if (fine, coarse) == (WHOLE, WHOLE) {
                    continue;
                }
                let span = column * CELL * scale..((column + 1) * CELL * scale).min(line.len());
                for (x, d) in span.clone().zip(&mut line[span]) {
                    let (at, other, weight) = neighbour(x, width, scale);
                    let mean = self.row[at] * (all - weight) + self.row[other] * weight;
                    let mean = mean / (all * all);
                    let rest = i32::from(*d) - mean;
                    let sum =
                        i64::from(rest) * i64::from(fine) + i64::from(mean) * i64::from(coarse);
                    *d = ((sum + 0x4000) >> 15) as i16;
                }
            }
        }
    }
}

/// Of a high sample: its low one, the nearest beside it, and the weight of that in 1/(2 · scale).
fn neighbour(at: usize, size: usize, scale: usize) -> (usize, usize, i32) {
    let (own, phase) = (at / scale, 2 * (at % scale) as i32 + 1 - scale as i32);
    let other = if phase < 0 { own.saturating_sub(1) } else { (own + 1).min(size - 1) };
    (own, other, phase.abs())
}

/// The share of detail to keep, in 1/[`WHOLE`].
fn kept(energy: u32, noise: u64) -> i16 {
    let energy = u64::from(energy);
    (energy.saturating_sub(noise) * WHOLE as u64 / energy.max(1)) as i16
}

/// Mean energy of detail in a cell of so many samples' side, and its mean.
fn energy(detail: &Detail, (column, row): (usize, usize), side: usize) -> (u32, usize) {
    let (x, y) = (column * side, row * side);
    let right = (x + side).min(detail.width());
    let bottom = (y + side).min(detail.height());
    let count = (right - x) * (bottom - y);
    let squares = |y: usize| -> u64 {
        detail.row(y)[x..right].iter().map(|&d| i64::from(d).pow(2) as u64).sum()
    };
    let sum: u64 = (y..bottom).map(squares).sum();
    ((sum / count.max(1) as u64).min(u32::MAX.into()) as u32, count)
}

/// Noise of even rounding in a square of a picture, in 1/256 square grey level.
fn noise(coded: &CodedPicture, (x, y): (usize, usize), side: usize) -> u32 {
    let (width, height) = coded.size();
    let (right, bottom) = ((x + side).min(width), (y + side).min(height));
    let (mut sum, mut count) = (0u64, 0u64);
    for y in (y..bottom).step_by(8) {
        for x in (x..right).step_by(8) {
            // A step of q/8 grey levels: (2q)²/12 in 1/256.
            sum += i64::from(coded.step(x, y)).pow(2) as u64;
            count += 3;
        }
    }
    (sum / count.max(1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fine detail of an amplitude, with a coarse part.
    fn detail(fine: i16, coarse: i16) -> Detail {
        let samples = (0..64 * 48).map(|i| {
            let (x, y) = (i % 64, i / 64);
            coarse + if (x + y) % 2 == 0 { fine } else { -fine }
        });
        Detail::from_samples(64, 48, samples.collect()).expect("the count is right")
    }

    fn weighed(detail: &Detail, noise: u32, skip: Option<&[bool]>) -> Detail {
        let mut weigher = Weigher { noise: vec![noise; 4 * 3], ..Weigher::default() };
        let mut out = detail.clone();
        weigher.weigh(&mut out, skip, 2);
        out
    }

    #[test]
    fn what_is_finely_coded_is_kept_and_what_is_noise_is_dropped() {
        let given = detail(40, 16);
        let kept = weighed(&given, 0, None);
        let error =
            |a: &Detail| a.samples().iter().zip(given.samples()).map(|(a, b)| (a - b).abs()).max();
        assert!(error(&kept) <= Some(1), "{:?}", error(&kept));
        assert!(weighed(&given, 100_000, None).samples().iter().all(|&d| d == 0));
    }

    #[test]
    fn fine_and_coarse_detail_are_weighed_apart() {
        // Its share that counts has the energy of the coarse part, and a 32nd of the fine one.
        let out = weighed(&detail(80, 20), 400 * 8, None);
        assert!(
            out.samples().iter().all(|d| (76..=78).contains(&d.abs())),
            "{:?}",
            &out.samples()[..4]
        );
    }

    #[test]
    fn cells_to_skip_stay_as_they_are() {
        let given = detail(40, 0);
        let mut skip = [true; 12];
        skip[5] = false;
        let out = weighed(&given, 100_000, Some(&skip));
        for (y, x) in (0..48).flat_map(|y| (0..64).map(move |x| (y, x))) {
            let inside = (y / 16, x / 16) == (1, 1);
            assert_eq!(out.row(y)[x], if inside { 0 } else { given.row(y)[x] });
        }
    }

    #[test]
    fn the_neighbour_of_a_high_sample_is_the_nearer_one_and_edges_repeat() {
        assert_eq!(
            [0, 1, 2, 3].map(|at| neighbour(at, 2, 2)),
            [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1)]
        );
        assert_eq!(neighbour(4, 3, 3), (1, 2, 0));
    }
}
