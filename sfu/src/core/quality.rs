//! How good a rung is expected to look at the size that it is shown at, on the scale of VMAF-NEG.
//!
//! Two things are lost: octaves, which a picture lacks that is enlarged (every picture is, by the receivers' own filters), and what its quantiser takes,
//! which bits buy back. Anchors of the publisher's own pixels give back a part of the octaves. What is predicted is the usual face
//! at 25 to 30 frames a second.
//!
//! Fitted by least squares to `fixtures/quality.csv`, which `windlass-lab eval` measured (`lab/notes/rungs.md`); a test does it again.
//! Mean absolute error 3.5 points; of a clip that was not fitted to 5.3, and 3.8 once its own mean is taken out: rungs of one camera are compared, never two cameras.

use super::costs::AnchorCosts;

/// The best there is, what an octave costs and what its square does, and the loss by noise at [`USUAL_BPS`].
const FITTED: [f64; 4] = [98.9, -7.0, -6.1, -25.9];
/// Bits a second at [`USUAL_PIXELS`] that others are compared with.
const USUAL_BPS: f64 = 100_000.0;
const USUAL_PIXELS: f64 = 640.0 * 360.0;
/// A picture needs bits by this power of its pixels, and noise falls by this power of them: of some thirty pairs those of the least error, which hardly changes between.
const BITS_POWER: f64 = 0.75;
const NOISE_POWER: f64 = -1.2;
/// Below this part of the usual bits nothing was measured: there pictures stand still rather than get worse, as a shared screen does.
const LEAST_BITS: f64 = 0.7;
/// Stills, by the mean of three people of whom one gains 16 points at the quarter layer and one 1 (error 5 there, 0.8 at the half layer): what they give back where they have all the bits that they can use, by octave cubed as far as they reach, and the share of the video's bits that is nearly two thirds of that.
const STILLS: (f64, f64) = (1.0, 0.05);
/// What enhanced anchors give at the bits of one a second (`lab/notes/enhanced-anchors.md`: 0.1 to 0.4), and those bits.
const ENHANCED: (f64, f64) = (0.3, 20_000.0);
/// For what may come any moment: of equals the rung with anchors is held.
const HOPE: f64 = 0.05;

/// The quality of a layer of this size and bit rate, with `anchors` or without, in a tile of that size.
pub fn predicted(
    (width, height): (u16, u16),
    video_bps: u64,
    anchors: Option<AnchorCosts>,
    tile: (u16, u16),
) -> f64 {
    let features = features((width, height), video_bps, tile);
    let plain: f64 = FITTED.iter().zip(features).map(|(by, feature)| by * feature).sum();
    let given = anchors.map_or(0.0, |anchors| {
        let saturated = |share: f64| 1.0 - (-share).exp();
        let share = anchors.captured_bps as f64 / video_bps.max(1) as f64;
        let octaves = features[1].min(f64::from(anchors.captured_octaves));
        let stills = STILLS.0 * octaves.powi(3) * saturated(share / STILLS.1);
        HOPE + stills + ENHANCED.0 * saturated(anchors.enhanced_bps as f64 / ENHANCED.1)
    });
    plain + given
}

/// What [`FITTED`] is multiplied by.
fn features(
    (width, height): (u16, u16),
    video_bps: u64,
    (tile_width, tile_height): (u16, u16),
) -> [f64; 4] {
    let (width, height) = (f64::from(width.max(1)), f64::from(height.max(1)));
    // The picture is shown whole: the closer side bounds it.
    let enlarged = (f64::from(tile_width) / width).min(f64::from(tile_height) / height);
    let octaves = enlarged.max(1.0).log2();
    // Of a picture larger than its tile, the pixels that are shown have the bits of all.
    let pixels = (width * height * enlarged.min(1.0).powi(2)).max(1.0);
    let bits = video_bps as f64 / USUAL_BPS * (USUAL_PIXELS / pixels).powf(BITS_POWER);
    [1.0, octaves, octaves * octaves, bits.max(LEAST_BITS).powf(NOISE_POWER)]
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
            predicted(self.size, self.video_bps, anchors, self.tile)
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
        assert!(fitted.iter().zip(FITTED).all(|(a, b)| (a - b).abs() < 0.06), "{fitted:?}");
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
        let q = |bps| predicted((320, 180), bps, None, (1280, 720));
        assert!(q(30_000) < q(80_000) && q(80_000) < q(150_000));
        let h = predicted((640, 360), 500_000, None, (1280, 720));
        let f = predicted((1280, 720), 1_500_000, None, (1280, 720));
        assert!(q(150_000) < h && h < f);
        let stills = AnchorCosts { captured_bps: 30_000, captured_octaves: 2, enhanced_bps: 0 };
        let plus = predicted((320, 180), 150_000, Some(stills), (1280, 720));
        assert!(q(150_000) + 3.0 < plus && plus < h, "{plus}");
    }

    #[test]
    fn stills_of_a_layer_never_look_better_than_that_layer() {
        let stills = AnchorCosts { captured_bps: 60_000, captured_octaves: 1, enhanced_bps: 0 };
        for tile in [(640, 360), (1280, 720), (1920, 1080)] {
            let of = |size, bps, anchors| predicted(size, bps, anchors, tile);
            for (low, above) in [((160, 90), (320, 180)), ((320, 180), (640, 360))] {
                let (plus, plain) = (of(low, 110_000, Some(stills)), of(above, 350_000, None));
                assert!(plus < plain, "{plus} at {low:?}, {plain} at {above:?} in {tile:?}");
            }
        }
    }

    #[test]
    fn in_a_small_tile_a_small_layer_is_nearly_as_good() {
        let gain = |tile| {
            predicted((640, 360), 500_000, None, tile) - predicted((320, 180), 150_000, None, tile)
        };
        assert!(gain((320, 180)) < 6.0 && gain((640, 360)) > 8.0 && gain((1280, 720)) > 20.0);
    }

    #[test]
    fn nothing_is_divided_by_a_layer_without_a_size() {
        assert!(predicted((0, 0), 0, Some(AnchorCosts::default()), (0, 0)).is_finite());
    }
}
