//! The luma residual of a frame, collected while it is decoded, and its bilinear enlargement.

use windlass_hybrid::detail::Detail;
use windlass_vp9::{Block, PictureRows, Visitor};

/// The residual of one frame in grey levels; zero where the stream has none, and in intra blocks.
#[derive(Debug, Default)]
pub(super) struct Residuals {
    /// Transform blocks in the order of decoding: left edge, upper edge, side, index of the first sample.
    blocks: Vec<(usize, usize, usize, usize)>,
    samples: Vec<i16>,
    /// Number of `blocks` that belong to blocks that are complete.
    kept: usize,
}

impl Visitor for Residuals {
    const RESIDUAL: bool = true;

    fn residual(&mut self, plane: usize, x: usize, y: usize, side: usize, residual: &[i16]) {
        if plane == 0 {
            self.blocks.push((x, y, side, self.samples.len()));
            self.samples.extend_from_slice(residual);
        }
    }

    fn block(&mut self, block: &Block, _picture: &PictureRows<'_>) {
        // What intra blocks add belongs to a prediction that HR does not follow.
        if block.is_intra() {
            self.blocks.truncate(self.kept);
        }
        self.kept = self.blocks.len();
    }
}

impl Residuals {
    /// Clears the residuals for the next frame.
    pub(super) fn clear(&mut self) {
        self.blocks.clear();
        self.samples.clear();
        self.kept = 0;
    }

    /// The residual of a low picture of the given size, enlarged.
    pub(super) fn enlarged(&self, width: usize, height: usize, scale: usize) -> Detail {
        let mut low = Detail::zero(width, height);
        for &(x, y, side, start) in &self.blocks {
            let columns = side.min(width.saturating_sub(x));
            for row in 0..side.min(height.saturating_sub(y)) {
                let source = &self.samples[start + row * side..][..columns];
                low.row_mut(y + row)[x..x + columns].copy_from_slice(source);
            }
        }
        bilinear(&low, scale)
    }
}

/// Enlarges a plane by bilinear interpolation, centre-aligned: HR sample `x` lies at `(x + ½) / S − ½`. Edges repeat.
fn bilinear(low: &Detail, scale: usize) -> Detail {
    let mut high = Detail::zero(low.width() * scale, low.height() * scale);
    // Place and weight of the second of two neighbours, in 1 / (2 · S).
    let place = |at: usize, len: usize| {
        let position = (2 * at + 1) as isize - scale as isize;
        let whole = position.div_euclid(2 * scale as isize);
        let inside = |i: isize| i.clamp(0, len as isize - 1) as usize;
        (inside(whole), inside(whole + 1), position.rem_euclid(2 * scale as isize) as i32)
    };
    let unit = 2 * scale as i32;
    let columns: Vec<_> = (0..high.width()).map(|x| place(x, low.width())).collect();
    for y in 0..high.height() {
        let (above, below, down) = place(y, low.height());
        let (upper, lower) = (low.row(above), low.row(below));
        for (o, &(a, b, across)) in high.row_mut(y).iter_mut().zip(&columns) {
            let mix =
                |row: &[i16]| i32::from(row[a]) * (unit - across) + i32::from(row[b]) * across;
            let sum = mix(upper) * (unit - down) + mix(lower) * down;
            *o = (sum + unit * unit / 2).div_euclid(unit * unit) as i16;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_residuals_stay_flat_and_ramps_are_followed() {
        for scale in [2, 3, 4] {
            let flat = Detail::from_samples(3, 2, vec![-7; 6]).unwrap();
            assert!(bilinear(&flat, scale).samples().iter().all(|&v| v == -7));
        }
        let ramp = Detail::from_samples(3, 1, vec![0, 8, 16]).unwrap();
        assert_eq!(bilinear(&ramp, 2).row(0), [0, 2, 6, 10, 14, 16]);
        assert_eq!(bilinear(&ramp, 3).row(1), [0, 0, 3, 5, 8, 11, 13, 16, 16]);
    }

    #[test]
    fn blocks_that_reach_beyond_the_picture_are_cut() {
        let mut residuals = Residuals::default();
        residuals.residual(0, 4, 0, 4, &[5; 16]);
        residuals.residual(1, 0, 0, 4, &[9; 16]);
        let high = residuals.enlarged(6, 2, 2);
        assert_eq!(high.row(0), [0, 0, 0, 0, 0, 0, 0, 1, 4, 5, 5, 5]);
    }
}
