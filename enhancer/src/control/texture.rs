//! Measures how much there is to see in an octave of a picture.
//!
//! Source: visual information fidelity (Sheikh and Bovik 2006), the largest part of VMAF: a block whose signal has the
//! variance `s` tells `log2(1 + s/2)`, where 2 is the eye's own noise. Octaves are what the full size has beyond the
//! half, the half beyond the quarter, and so on.

/// Number of bins of the histogram. Each spans a factor of two in variance; the first begins at [`MIN`].
const BINS: usize = 18;
/// Lower bound of the first bin, in square grey levels. Smaller variances count in that bin.
const MIN: f64 = 0.25;
/// Noise of the eye itself, in square grey levels: VIF's σ².
const EYE: f64 = 2.0;

/// Histogram of the variances of a band's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Texture {
    shares: [f32; BINS],
    blocks: u32,
}

impl Texture {
    /// Adds a block with the given variance, in square grey levels.
    pub fn add(&mut self, variance: f64) {
        let octave = (variance.max(MIN) / MIN).log2();
        let bin = (octave as usize).min(BINS - 1);
        self.shares[bin] += 1.0;
        self.blocks += 1;
    }

    /// Whether no block has been added.
    pub fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    /// Visible information of the band, in bits per block.
    pub fn bits(&self) -> f64 {
        self.sum(|s| (1.0 + s / EYE).log2()) / f64::from(self.blocks.max(1))
    }

    fn sum(&self, of: impl Fn(f64) -> f64) -> f64 {
        let shares = self.shares.iter().enumerate();
        // The middle of each octave; the lowest holds all that is less, which nobody sees.
        shares.map(|(bin, &n)| f64::from(n) * of(MIN * 1.5 * f64::from(1u32 << bin))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texture(variances: &[f64]) -> Texture {
        let mut texture = Texture::default();
        for &variance in variances {
            texture.add(variance);
        }
        texture
    }

    #[test]
    fn more_variance_can_be_seen_better_and_little_of_it_hardly() {
        let bits: Vec<f64> = [0.0, 1.0, 8.0, 64.0, 1e9].map(|v| texture(&[v]).bits()).into();
        assert!(bits.windows(2).all(|pair| pair[0] < pair[1]) && bits[0] < 0.3, "{bits:?}");
        assert!(Texture::default().bits().abs() < 1e-12 && Texture::default().is_empty());
    }

    #[test]
    fn the_bits_of_several_blocks_are_their_mean() {
        let mean = f64::midpoint(texture(&[6.0]).bits(), texture(&[300.0]).bits());
        assert!((texture(&[6.0, 300.0]).bits() - mean).abs() < 1e-9);
    }
}
