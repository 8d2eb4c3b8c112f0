//! Unsharp masking, as players and browsers sharpen.

use windlass_vp9::Plane;

/// The taps of the blur of ffmpeg's `unsharp=5:5`.
pub(super) const BINOMIAL: [f32; 5] = [1.0 / 16.0, 4.0 / 16.0, 6.0 / 16.0, 4.0 / 16.0, 1.0 / 16.0];

/// The taps of a Gaussian blur; `sigma` is in samples.
pub(super) fn gaussian(sigma: f32) -> Vec<f32> {
    let reach = (2.5 * sigma).ceil();
    let raw = (0..=2 * reach as usize)
        .map(|i| (-(i as f32 - reach).powi(2) / (2.0 * sigma * sigma)).exp());
    let sum: f32 = raw.clone().sum();
    raw.map(|tap| tap / sum).collect()
}

/// Sharpens a plane: `y + amount · (y − blur(y))`. The blur has an odd number of taps along rows and columns; edges
/// repeat.
pub(super) fn unsharp(plane: &Plane, taps: &[f32], amount: f32) -> Plane {
    let (width, height) = (plane.width(), plane.height());
    let reach = taps.len() / 2;
    let mut across = vec![0f32; width * height];
    let mut padded = vec![0f32; width + 2 * reach];
    for y in 0..height {
        let row = plane.row(y);
        for (x, out) in padded.iter_mut().enumerate() {
            *out = f32::from(row[x.saturating_sub(reach).min(width - 1)]);
        }
        for (out, near) in across[y * width..][..width].iter_mut().zip(padded.windows(taps.len())) {
            *out = taps.iter().zip(near).map(|(t, v)| t * v).sum();
        }
    }
    let mut sharp = plane.clone();
    let mut blur = vec![0f32; width];
    for (y, row) in sharp.samples_mut().chunks_exact_mut(width).enumerate() {
        blur.fill(0.0);
        for (i, t) in taps.iter().enumerate() {
            let near = (y + i).saturating_sub(reach).min(height - 1);
            for (sum, v) in blur.iter_mut().zip(&across[near * width..][..width]) {
                *sum += t * v;
            }
        }
        for (sample, blur) in row.iter_mut().zip(&blur) {
            let value = f32::from(*sample);
            *sample = (value + amount * (value - blur)).round().clamp(0.0, 255.0) as u8;
        }
    }
    sharp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharpening_leaves_flat_areas_alone_and_steepens_edges() {
        let flat = Plane::filled(7, 5, 90);
        assert_eq!(unsharp(&flat, &BINOMIAL, 0.3), flat);
        let edge: Vec<u8> = (0..8 * 4).map(|i| if i % 8 < 4 { 50 } else { 150 }).collect();
        let sharp = unsharp(&Plane::from_samples(8, 4, edge).unwrap(), &BINOMIAL, 0.3);
        assert!(sharp.row(1)[3] < 50 && sharp.row(1)[4] > 150, "{:?}", sharp.row(1));
        assert_eq!((sharp.row(1)[0], sharp.row(1)[7]), (50, 150));
    }

    #[test]
    fn a_wider_blur_does_the_same_further_out() {
        let taps = gaussian(1.5);
        let flat = Plane::filled(33, 17, 90);
        assert_eq!(unsharp(&flat, &taps, 0.3), flat);
        let edge: Vec<u8> = (0..32 * 8).map(|i| if i % 32 < 16 { 50 } else { 150 }).collect();
        let sharp = unsharp(&Plane::from_samples(32, 8, edge).unwrap(), &taps, 0.3);
        assert!(sharp.row(1)[15] < 50 && sharp.row(1)[16] > 150, "{:?}", sharp.row(1));
        assert_eq!((sharp.row(1)[0], sharp.row(1)[31]), (50, 150));
    }
}
