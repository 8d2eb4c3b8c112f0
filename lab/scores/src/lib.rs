//! The similarity of a picture and the original: PSNR and SSIM of luma, SSIMULACRA2 in colour.
//!
//! SSIM is Wang et al. 2004: an 11×11 Gaussian window (σ = 1.5), K1 = 0.01, K2 = 0.03, valid windows
//! only. In: two 8-bit planes, or pictures, of one size. Out: dB, 0…1, and at most 100.

use ssimulacra2::{
    ColorPrimaries, Rgb, Ssimulacra2Error, TransferCharacteristic, compute_frame_ssimulacra2,
};
use windlass_vp9::{Picture, Plane, psnr};

/// Maximum PSNR that is reported for one picture, in dB (that of identical pictures would be infinite).
pub const PSNR_CAP_DB: f64 = 100.0;

/// Peak signal-to-noise ratio in dB, at most [`PSNR_CAP_DB`]. The planes must be of one size.
///
/// # Examples
///
/// ```
/// use windlass_scores::{PSNR_CAP_DB, psnr_db, ssim};
/// use windlass_vp9::Plane;
///
/// let (grey, lighter) = (Plane::filled(32, 32, 128), Plane::filled(32, 32, 129));
/// assert_eq!(psnr_db(&grey, &grey), PSNR_CAP_DB);
/// assert_eq!(psnr_db(&grey, &lighter).round(), 48.0); // One step of 255.
/// assert!(ssim(&grey, &lighter).is_some_and(|ssim| ssim > 0.99));
/// ```
pub fn psnr_db(a: &Plane, b: &Plane) -> f64 {
    assert_eq!(size(a), size(b), "pictures are compared at one size");
    psnr(a, b).min(PSNR_CAP_DB)
}

fn size(plane: &Plane) -> (usize, usize) {
    (plane.width(), plane.height())
}

/// Side of the Gaussian window of SSIM, in samples (Wang et al. 2004).
const TAPS: usize = 11;
/// Standard deviation of the Gaussian window of SSIM, in samples (Wang et al. 2004).
const SIGMA: f64 = 1.5;
/// Constant of SSIM for the means: (K1 · 255)² with K1 = 0.01 (Wang et al. 2004).
const C1: f32 = (0.01 * 255.0) * (0.01 * 255.0);
/// Constant of SSIM for the variances: (K2 · 255)² with K2 = 0.03 (Wang et al. 2004).
const C2: f32 = (0.03 * 255.0) * (0.03 * 255.0);

/// Number of windowed moments of a picture pair: x, y, x², y², xy.
const MOMENTS: usize = 5;

/// Mean structural similarity; `None` when the picture is smaller than one window.
pub fn ssim(a: &Plane, b: &Plane) -> Option<f64> {
    assert_eq!(size(a), size(b), "pictures are compared at one size");
    if a.width() < TAPS || a.height() < TAPS {
        return None;
    }
    let window = gaussian();
    let across = a.width() - TAPS + 1;
    // The last TAPS rows, filtered along the row, as a ring; then each output row is filtered down it.
    let mut ring = vec![vec![[0f32; MOMENTS]; across]; TAPS];
    let mut products = vec![[0f32; MOMENTS]; a.width()];
    let mut total = 0f64;
    for y in 0..a.height() {
        for ((out, &p), &q) in products.iter_mut().zip(a.row(y)).zip(b.row(y)) {
            let (p, q) = (f32::from(p), f32::from(q));
            *out = [p, q, p * p, q * q, p * q];
        }
        for (out, span) in ring[y % TAPS].iter_mut().zip(products.windows(TAPS)) {
            *out = weighted(&window, span.iter());
        }
        if y + 1 < TAPS {
            continue;
        }
        let first = y + 1 - TAPS;
        let row: f64 = (0..across)
            .map(|x| {
                let column = (first..=y).map(|r| &ring[r % TAPS][x]);
                f64::from(similarity(weighted(&window, column)))
            })
            .sum();
        total += row;
    }
    Some(total / (across * (a.height() - TAPS + 1)) as f64)
}

/// SSIMULACRA2: 100 is the original, 90 cannot be told from it.
///
/// # Errors
///
/// Where the pictures are of different sizes, or smaller than 8×8 samples.
pub fn ssimulacra2(original: &Picture, picture: &Picture) -> Result<f64, Ssimulacra2Error> {
    let [original, picture] = [original, picture].map(in_floats);
    compute_frame_ssimulacra2(original?, picture?)
}

fn in_floats(picture: &Picture) -> Result<Rgb, Ssimulacra2Error> {
    let bytes = rgb(picture);
    let pixels = bytes.as_chunks::<3>().0.iter().map(|p| p.map(|c| f32::from(c) / 255.0)).collect();
    let (transfer, primaries) = (TransferCharacteristic::SRGB, ColorPrimaries::BT709);
    Rgb::new(pixels, picture.width(), picture.height(), transfer, primaries)
        .map_err(|_| Ssimulacra2Error::InvalidImageSize)
}

/// A whole picture as RGB, three bytes a pixel.
pub fn rgb(picture: &Picture) -> Vec<u8> {
    let places = (0..picture.height()).flat_map(|y| (0..picture.width()).map(move |x| (x, y)));
    places.flat_map(|(x, y)| colour(picture, x, y)).collect()
}

/// The RGB colour of a sample, from limited-range BT.709.
pub fn colour(picture: &Picture, x: usize, y: usize) -> [u8; 3] {
    let luma = 1.164 * (f32::from(picture.y.row(y)[x]) - 16.0);
    let u = f32::from(picture.u.row(y / 2)[x / 2]) - 128.0;
    let v = f32::from(picture.v.row(y / 2)[x / 2]) - 128.0;
    [luma + 1.793 * v, luma - 0.213 * u - 0.533 * v, luma + 2.112 * u]
        .map(|c| c.round().clamp(0.0, 255.0) as u8)
}

fn weighted<'a>(
    window: &[f32; TAPS],
    values: impl Iterator<Item = &'a [f32; MOMENTS]>,
) -> [f32; MOMENTS] {
    let mut sum = [0f32; MOMENTS];
    for (w, value) in window.iter().zip(values) {
        for (s, v) in sum.iter_mut().zip(value) {
            *s += w * v;
        }
    }
    sum
}

fn similarity([x, y, xx, yy, xy]: [f32; MOMENTS]) -> f32 {
    let (var_x, var_y, covariance) = (xx - x * x, yy - y * y, xy - x * y);
    ((2.0 * x * y + C1) * (2.0 * covariance + C2)) / ((x * x + y * y + C1) * (var_x + var_y + C2))
}

fn gaussian() -> [f32; TAPS] {
    let middle = (TAPS / 2) as f64;
    let raw: [f64; TAPS] =
        std::array::from_fn(|i| (-(i as f64 - middle).powi(2) / (2.0 * SIGMA * SIGMA)).exp());
    let sum: f64 = raw.iter().sum();
    raw.map(|v| (v / sum) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const W: usize = 32;
    const H: usize = 24;

    fn luma(data: &[u8]) -> Plane {
        Plane::from_samples(W, H, data.to_vec()).unwrap()
    }

    /// The pattern that the reference values below were computed on.
    fn pattern() -> Vec<u8> {
        (0..W * H).map(|i| ((i % W) * 7 + (i / W) * 11 + (i % W) * (i / W)) as u8).collect()
    }

    #[test]
    fn an_error_of_one_everywhere_is_48_13_db() {
        let a = pattern();
        let b: Vec<u8> = a.iter().map(|&v| if v == 255 { 254 } else { v + 1 }).collect();
        assert!((psnr_db(&luma(&a), &luma(&b)) - 48.1308).abs() < 1e-3);
    }

    #[test]
    fn identical_pictures_reach_the_cap_and_ssim_one() {
        let a = pattern();
        assert!((psnr_db(&luma(&a), &luma(&a)) - PSNR_CAP_DB).abs() < 1e-9);
        assert!((ssim(&luma(&a), &luma(&a)).unwrap() - 1.0).abs() < 1e-5);
    }

    #[test]
    fn ssim_of_flat_pictures_is_the_luminance_term() {
        let (a, b) = (vec![100u8; W * H], vec![120u8; W * H]);
        let c1 = f64::from(C1);
        let expected = (2.0 * 100.0 * 120.0 + c1) / (100.0f64.powi(2) + 120.0f64.powi(2) + c1);
        assert!((ssim(&luma(&a), &luma(&b)).unwrap() - expected).abs() < 1e-3);
    }

    #[test]
    fn ssim_agrees_with_a_reference_computed_in_double_precision() {
        let a = pattern();
        let b: Vec<u8> =
            a.iter().enumerate().map(|(i, &v)| v.saturating_add((i % 13) as u8)).collect();
        assert!((ssim(&luma(&a), &luma(&b)).unwrap() - SSIM_REFERENCE).abs() < 1e-4);
        assert!((psnr_db(&luma(&a), &luma(&b)) - PSNR_REFERENCE).abs() < 1e-4);
    }

    // By numpy in float64: Gaussian window of 11, σ 1.5, valid convolution.
    const SSIM_REFERENCE: f64 = 0.996_795;
    const PSNR_REFERENCE: f64 = 31.275_369;

    #[test]
    fn a_picture_smaller_than_the_window_has_no_ssim() {
        let small = Plane::filled(10, 10, 0);
        assert_eq!(ssim(&small, &small), None);
    }
}
