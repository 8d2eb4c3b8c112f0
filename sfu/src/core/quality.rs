//! Predicted quality of a rung in the tile that shows it, in points of VMAF-NEG.
//!
//! A rung loses quality in two ways: by enlargement (octaves of the tile over the layer; receivers' filters are counted in), and by
//! quantisation, which more bits reduce. Captured anchors give back a part of the first loss. The model is for the usual face at
//! 25 to 30 frames a second:
//!
//! `quality = a₀ + a₁ × octaves + a₂ × octaves² + a₃ × bits^NOISE_POWER + anchors`,
//! `bits = video bit/s / REFERENCE_BPS × (REFERENCE_PIXELS / pixels)^BITS_POWER`.
//!
//! The coefficients are fitted by least squares to `fixtures/quality.csv`, which `windlass-lab eval` measured (`lab/notes/rungs.md`);
//! a test repeats the fit. Mean absolute error: 3.5 points; 5.3 for a clip that was not fitted to, and 3.8 without that clip's mean.
//! The last one counts: rungs of one camera are compared, never two cameras.

use super::anchor_costs::AnchorCosts;

/// The coefficients a₀ to a₃ of the model.
const COEFFICIENTS: [f64; 4] = [98.9, -7.0, -6.1, -25.9];
/// Bitrate at which `bits` is 1 for a layer of [`REFERENCE_PIXELS`], in bit/s.
const REFERENCE_BPS: f64 = 100_000.0;
/// Pixels of a frame that needs [`REFERENCE_BPS`] for `bits` = 1.
const REFERENCE_PIXELS: f64 = 640.0 * 360.0;
/// Bits that a frame needs grow with its pixels by this power. Of thirty pairs with [`NOISE_POWER`], the one with the least error.
const BITS_POWER: f64 = 0.75;
/// The loss by quantisation falls with bits by this power.
const NOISE_POWER: f64 = -1.2;
/// Least value of `bits`, as nothing below was measured. There the frame rate falls rather than the quality, as of a shared screen.
const MIN_BITS: f64 = 0.7;
/// Points that captured anchors give back with all the bits that they can use, by octaves³. The mean of three people: one gains 16
/// points at the quarter layer, one gains 1 (error 5 points there, 0.8 at the half layer).
const CAPTURED_GAIN: f64 = 1.0;
/// Share of the video's bits with which captured anchors reach 63 % (1 − 1/e) of their gain.
const CAPTURED_SHARE: f64 = 0.05;
/// Points that enhanced anchors give at most. Measured were 0.1 to 0.4 (`lab/notes/enhanced-anchors.md`).
const ENHANCED_GAIN: f64 = 0.3;
/// Bitrate with which enhanced anchors reach 63 % of their gain, in bit/s: one anchor a second.
const ENHANCED_BPS: f64 = 20_000.0;
/// Points for a rung with anchors, so that it wins against an equal one without.
const TIE_BREAK: f64 = 0.05;

/// Predicts the quality of a layer with or without anchors. `layer` and `tile` are width and height, the tile's in device pixels.
pub(super) fn predict(
    layer: (u16, u16),
    video_bps: u64,
    anchors: Option<AnchorCosts>,
    tile: (u16, u16),
) -> f64 {
    let features = features(layer, video_bps, tile);
    let plain: f64 = COEFFICIENTS.iter().zip(features).map(|(by, feature)| by * feature).sum();
    let gain = anchors.map_or(0.0, |anchors| {
        let saturated = |share: f64| 1.0 - (-share).exp();
        let share = anchors.captured_bps as f64 / video_bps.max(1) as f64;
        let octaves = features[1].min(f64::from(anchors.captured_octaves));
        let captured = CAPTURED_GAIN * octaves.powi(3) * saturated(share / CAPTURED_SHARE);
        let enhanced = ENHANCED_GAIN * saturated(anchors.enhanced_bps as f64 / ENHANCED_BPS);
        TIE_BREAK + captured + enhanced
    });
    plain + gain
}

/// The features that [`COEFFICIENTS`] multiply.
fn features(layer: (u16, u16), video_bps: u64, tile: (u16, u16)) -> [f64; 4] {
    let (width, height) = (f64::from(layer.0.max(1)), f64::from(layer.1.max(1)));
    // A frame is shown whole, so the side with less room bounds it.
    let enlargement = (f64::from(tile.0) / width).min(f64::from(tile.1) / height);
    let octaves = enlargement.max(1.0).log2();
    // A frame larger than its tile is scaled down: the pixels shown have the bits of all.
    let pixels = (width * height * enlargement.min(1.0).powi(2)).max(1.0);
    let bits = video_bps as f64 / REFERENCE_BPS * (REFERENCE_PIXELS / pixels).powf(BITS_POWER);
    [1.0, octaves, octaves * octaves, bits.max(MIN_BITS).powf(NOISE_POWER)]
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row {
        clip: &'static str,
        tile: (u16, u16),
        size: (u16, u16),
        video_bps: u64,
        stills_bps: u64,
        vmaf_neg: f64,
    }

    impl Row {
        fn predicted(&self) -> f64 {
            let stills =
                AnchorCosts { captured_bps: self.stills_bps, captured_octaves: 2, enhanced_bps: 0 };
            let anchors = (self.stills_bps > 0).then_some(stills);
            predict(self.size, self.video_bps, anchors, self.tile)
        }
    }

    fn rows() -> Vec<Row> {
        let lines = include_str!("fixtures/quality.csv").lines().skip(1);
        let row = |line: &'static str| {
            let fields: Vec<&str> = line.split(',').collect();
            let number = |at: usize| fields[at].parse::<f64>().expect("a number");
            let size = |at: usize| (number(at) as u16, number(at + 1) as u16);
            let bps = |at: usize| (number(at) * 1000.0) as u64;
            let (video_bps, stills_bps) = (bps(5), bps(6));
            Row {
                clip: fields[0],
                tile: size(1),
                size: size(3),
                video_bps,
                stills_bps,
                vmaf_neg: number(7),
            }
        };
        lines.map(row).collect()
    }

    /// Least squares by the normal equations.
    fn fit(rows: &[&Row]) -> [f64; 4] {
        let mut system = [[0.0; 5]; 4];
        for row in rows {
            let x = features(row.size, row.video_bps, row.tile);
            for i in 0..4 {
                for j in 0..4 {
                    system[i][j] += x[i] * x[j];
                }
                system[i][4] += x[i] * row.vmaf_neg;
            }
        }
        for pivot in 0..4 {
            let by = system[pivot];
            for (_, line) in system.iter_mut().enumerate().filter(|(i, _)| *i != pivot) {
                let part = line[pivot] / by[pivot];
                line.iter_mut().zip(by).for_each(|(to, from)| *to -= part * from);
            }
        }
        std::array::from_fn(|i| system[i][4] / system[i][i])
    }

    fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
        values.clone().sum::<f64>() / values.count() as f64
    }

    #[test]
    fn the_coefficients_are_those_of_the_rows_that_were_measured() {
        let rows = rows();
        let plain: Vec<&Row> = rows.iter().filter(|row| row.stills_bps == 0).collect();
        let fitted = fit(&plain);
        assert!(fitted.iter().zip(COEFFICIENTS).all(|(a, b)| (a - b).abs() < 0.06), "{fitted:?}");
    }

    /// What the module says of its error: a clip by the others' fit, as it is and with the clip's own mean taken out, which is what rungs are compared by.
    #[test]
    fn of_a_clip_not_fitted_to_the_error_is_under_six_points_and_four_between_its_own_rungs() {
        let rows = rows();
        let plain: Vec<&Row> = rows.iter().filter(|row| row.stills_bps == 0).collect();
        let (mut errors, mut between) = (Vec::new(), Vec::new());
        let mut clips: Vec<&str> = plain.iter().map(|row| row.clip).collect();
        clips.sort_unstable();
        clips.dedup();
        for clip in clips {
            let (own, others): (Vec<&Row>, Vec<&Row>) =
                plain.iter().partition(|row| row.clip == clip);
            let fitted = fit(&others);
            let error = |row: &&Row| {
                let x = features(row.size, row.video_bps, row.tile);
                fitted.iter().zip(x).map(|(by, x)| by * x).sum::<f64>() - row.vmaf_neg
            };
            let own: Vec<f64> = own.iter().map(error).collect();
            let offset = mean(own.iter().copied());
            errors.extend(own.iter().map(|error| error.abs()));
            between.extend(own.iter().map(|error| (error - offset).abs()));
        }
        let (error, between) = (mean(errors.iter().copied()), mean(between.iter().copied()));
        assert!((4.8..5.8).contains(&error), "{error}");
        assert!((3.3..4.3).contains(&between), "{between}");
    }

    #[test]
    fn stills_give_what_was_measured_of_them_within_five_points() {
        let rows = rows();
        let mut with = rows.iter().filter(|row| row.stills_bps > 0).peekable();
        assert!(with.peek().is_some());
        let gain = |row: &Row| {
            let same = |other: &&Row| {
                (other.clip, other.size, other.video_bps, other.stills_bps)
                    == (row.clip, row.size, row.video_bps, 0)
            };
            let without = rows.iter().find(same).expect("the same without stills");
            (row.vmaf_neg - without.vmaf_neg, row.predicted() - without.predicted())
        };
        let errors: Vec<f64> = with.map(gain).map(|(seen, said)| (seen - said).abs()).collect();
        assert!(mean(errors.iter().copied()) < 5.0, "{errors:?}");
    }

    #[test]
    fn bits_and_pixels_never_make_it_worse_and_neither_do_anchors() {
        let q = |bps| predict((320, 180), bps, None, (1280, 720));
        assert!(q(30_000) < q(80_000) && q(80_000) < q(150_000));
        let h = predict((640, 360), 500_000, None, (1280, 720));
        let f = predict((1280, 720), 1_500_000, None, (1280, 720));
        assert!(q(150_000) < h && h < f);
        let stills = AnchorCosts { captured_bps: 30_000, captured_octaves: 2, enhanced_bps: 0 };
        let plus = predict((320, 180), 150_000, Some(stills), (1280, 720));
        assert!(q(150_000) + 3.0 < plus && plus < h, "{plus}");
    }

    #[test]
    fn stills_of_a_layer_never_look_better_than_that_layer() {
        let stills = AnchorCosts { captured_bps: 60_000, captured_octaves: 1, enhanced_bps: 0 };
        for tile in [(640, 360), (1280, 720), (1920, 1080)] {
            let of = |size, bps, anchors| predict(size, bps, anchors, tile);
            for (low, above) in [((160, 90), (320, 180)), ((320, 180), (640, 360))] {
                let (plus, plain) = (of(low, 110_000, Some(stills)), of(above, 350_000, None));
                assert!(plus < plain, "{plus} at {low:?}, {plain} at {above:?} in {tile:?}");
            }
        }
    }

    #[test]
    fn in_a_small_tile_a_small_layer_is_nearly_as_good() {
        let gain = |tile| {
            predict((640, 360), 500_000, None, tile) - predict((320, 180), 150_000, None, tile)
        };
        assert!(gain((320, 180)) < 6.0 && gain((640, 360)) > 8.0 && gain((1280, 720)) > 20.0);
    }

    #[test]
    fn nothing_is_divided_by_a_layer_without_a_size() {
        assert!(predict((0, 0), 0, Some(AnchorCosts::default()), (0, 0)).is_finite());
    }
}
