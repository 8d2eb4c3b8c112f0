//! Predicted quality of a rung in the tile that shows it, in points of VMAF-NEG.
//!
//! A rung loses quality in two ways: by enlargement (octaves of the tile over the layer; receivers' filters are counted
//! in), and by quantisation, which more bits reduce. Captured anchors give back a part of the first loss, and so does a
//! network that the viewer runs on every frame ([`network_gain`]). The model is for the usual face at 25 to 30 frames a
//! second:
//!
//! `quality = a₀ + a₁ × octaves + a₂ × octaves² + a₃ × bits^NOISE_POWER + anchors + network`,
//! `bits = video bit/s / REFERENCE_BPS × (REFERENCE_PIXELS / pixels)^BITS_POWER`.
//!
//! The coefficients are fitted by least squares to `fixtures/quality.csv`, which `windlass-lab eval` measured
//! (`lab/notes/rungs.md`); a test repeats the fit. Mean absolute error: 3.5 points; 5.3 for a clip that was not fitted
//! to, and 3.8 without that clip's mean. The last one counts: rungs of one camera are compared, never two cameras.

use windlass_types::{Bitrate, FrameNetwork, Size};

use super::anchor_costs::AnchorCosts;
use super::network_gain::{self, NetworkGain};
use crate::core::subscriber::view;

/// The coefficients a₀ to a₃ of the model.
const COEFFICIENTS: [f64; 4] = [98.9, -7.0, -6.1, -25.9];
/// Bitrate at which `bits` is 1 for a layer of [`REFERENCE_PIXELS`], in bit/s.
const REFERENCE_BPS: f64 = 100_000.0;
/// Pixels of a frame that needs [`REFERENCE_BPS`] for `bits` = 1.
const REFERENCE_PIXELS: f64 = 640.0 * 360.0;
/// Power of a frame's pixels with which the bits that it needs grow. Of thirty pairs with [`NOISE_POWER`], this pair
/// has the least error.
const BITS_POWER: f64 = 0.75;
/// Power of the bits with which the loss by quantisation falls. Fitted together with [`BITS_POWER`].
const NOISE_POWER: f64 = -1.2;
/// Minimum value of `bits`, as nothing below was measured. With fewer bits the frame rate falls rather than the
/// quality, for example of a shared screen.
const MIN_BITS: f64 = 0.7;
/// Points per octaves³ that captured anchors give back with all the bits that they can use. The mean of three people:
/// one gains 16 points at the quarter layer, one gains 1 (error 5 points there, 0.8 at the half layer).
const CAPTURED_GAIN: f64 = 1.0;
/// Share of the video's bits with which captured anchors reach 63 % (1 − 1/e) of their gain.
const CAPTURED_SHARE: f64 = 0.05;
/// Maximum points that enhanced anchors give. Measured were 0.1 to 0.4 (`lab/notes/enhanced-anchors.md`).
const ENHANCED_GAIN: f64 = 0.3;
/// Bitrate with which enhanced anchors reach 63 % of their gain, in bit/s: one anchor a second.
const ENHANCED_BPS: f64 = 20_000.0;
/// Points for a rung with anchors, so that it wins against an equal one without.
const TIE_BREAK: f64 = 0.05;

/// Points below which anchors are not worth their bytes beside a network that costs none. The value is the most that
/// enhanced anchors give.
const MIN_BESIDE_NETWORK: f64 = ENHANCED_GAIN;

/// How a subscriber shows a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Size of the tile in device pixels.
    pub tile: Size,
    /// The network that runs on every frame where there is one for the scale.
    pub network: FrameNetwork,
}

impl Shown {
    /// Gain of the network on a layer; none where the layer fills the tile as it is.
    fn network_gain(self, layer: Size) -> NetworkGain {
        match view::rebuilt_scale(self.tile, layer) {
            Some(scale) => network_gain::gain(self.network, scale, self.octaves(layer)),
            None => NetworkGain::NONE,
        }
    }

    /// Number of octaves by which the tile is larger than a layer.
    fn octaves(self, layer: Size) -> f64 {
        view::enlargement(self.tile, layer).max(1.0).log2()
    }
}

/// Predicts the quality of a layer with or without anchors, as it is shown.
pub(crate) fn predict(
    layer: Size,
    video: Bitrate,
    anchors: Option<AnchorCosts>,
    shown: Shown,
) -> f64 {
    let features = features(layer, video, shown.tile);
    let plain: f64 = COEFFICIENTS.iter().zip(features).map(|(by, feature)| by * feature).sum();
    let network = shown.network_gain(layer);
    let gain = anchors.map_or(0.0, |anchors| {
        let saturated = |share: f64| 1.0 - (-share).exp();
        let share = anchors.captured.as_bps() as f64 / video.as_bps().max(1) as f64;
        let captured = captured_gain(anchors, features[1]) * saturated(share / CAPTURED_SHARE);
        let enhanced = ENHANCED_GAIN * saturated(anchors.enhanced.as_bps() as f64 / ENHANCED_BPS);
        TIE_BREAK + captured * network.captured_left + enhanced * network.enhanced_left
    });
    plain + network.points + gain
}

/// Whether anchors of a layer are worth their bytes: to a viewer without a network always. Beside a network, with all
/// the bits that they can use they must add [`MIN_BESIDE_NETWORK`]. What they take now does not count: it falls while
/// nobody has them.
pub(crate) fn anchors_pay(layer: Size, anchors: AnchorCosts, shown: Shown) -> bool {
    let network = shown.network_gain(layer);
    let captured = captured_gain(anchors, shown.octaves(layer)) * network.captured_left;
    network == NetworkGain::NONE
        || captured + ENHANCED_GAIN * network.enhanced_left >= MIN_BESIDE_NETWORK
}

/// Points that captured anchors give back with all the bits that they can use.
fn captured_gain(anchors: AnchorCosts, octaves: f64) -> f64 {
    CAPTURED_GAIN * octaves.min(f64::from(anchors.captured_octaves)).powi(3)
}

/// The features that [`COEFFICIENTS`] multiply.
fn features(layer: Size, video: Bitrate, tile: Size) -> [f64; 4] {
    let (width, height) = (f64::from(layer.width.max(1)), f64::from(layer.height.max(1)));
    let enlargement = view::enlargement(tile, layer);
    let octaves = enlargement.max(1.0).log2();
    // A frame larger than its tile is scaled down: the pixels shown have the bits of all.
    let pixels = (width * height * enlargement.min(1.0).powi(2)).max(1.0);
    let bits = video.as_bps() as f64 / REFERENCE_BPS * (REFERENCE_PIXELS / pixels).powf(BITS_POWER);
    [1.0, octaves, octaves * octaves, bits.max(MIN_BITS).powf(NOISE_POWER)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUARTER: Size = Size::new(320, 180);
    const HALF: Size = Size::new(640, 360);
    const TILE: Size = Size::new(1280, 720);

    /// Shown without a network.
    fn plain(tile: Size) -> Shown {
        Shown { tile, network: FrameNetwork::None }
    }

    struct Row {
        clip: &'static str,
        tile: Size,
        size: Size,
        video: Bitrate,
        stills: Bitrate,
        vmaf_neg: f64,
    }

    impl Row {
        fn predicted(&self) -> f64 {
            let stills = stills(self.stills, 2);
            let anchors = (self.stills > Bitrate::ZERO).then_some(stills);
            predict(self.size, self.video, anchors, plain(self.tile))
        }
    }

    /// Anchors that are stills alone.
    fn stills(captured: Bitrate, captured_octaves: u8) -> AnchorCosts {
        AnchorCosts { captured, captured_octaves, enhanced: Bitrate::ZERO }
    }

    fn rows() -> Vec<Row> {
        let lines = include_str!("../fixtures/quality.csv").lines().skip(1);
        let row = |line: &'static str| {
            let fields: Vec<&str> = line.split(',').collect();
            let number = |at: usize| fields[at].parse::<f64>().expect("a number");
            let size = |at: usize| Size::new(number(at) as u16, number(at + 1) as u16);
            Row {
                clip: fields[0],
                tile: size(1),
                size: size(3),
                video: Bitrate::kbps(number(5)),
                stills: Bitrate::kbps(number(6)),
                vmaf_neg: number(7),
            }
        };
        lines.map(row).collect()
    }

    /// Least squares by the normal equations.
    fn fit(rows: &[&Row]) -> [f64; 4] {
        let mut system = [[0.0; 5]; 4];
        for row in rows {
            let x = features(row.size, row.video, row.tile);
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
        let plain: Vec<&Row> = rows.iter().filter(|row| row.stills == Bitrate::ZERO).collect();
        let fitted = fit(&plain);
        assert!(fitted.iter().zip(COEFFICIENTS).all(|(a, b)| (a - b).abs() < 0.06), "{fitted:?}");
    }

    /// What the module says of its error: a clip by the others' fit, as it is and with the clip's own mean taken out,
    /// which is what rungs are compared by.
    #[test]
    fn of_a_clip_not_fitted_to_the_error_is_under_six_points_and_four_between_its_own_rungs() {
        let rows = rows();
        let plain: Vec<&Row> = rows.iter().filter(|row| row.stills == Bitrate::ZERO).collect();
        let (mut errors, mut between) = (Vec::new(), Vec::new());
        let mut clips: Vec<&str> = plain.iter().map(|row| row.clip).collect();
        clips.sort_unstable();
        clips.dedup();
        for clip in clips {
            let (own, others): (Vec<&Row>, Vec<&Row>) =
                plain.iter().partition(|row| row.clip == clip);
            let fitted = fit(&others);
            let error = |row: &&Row| {
                let x = features(row.size, row.video, row.tile);
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
        let mut with = rows.iter().filter(|row| row.stills > Bitrate::ZERO).peekable();
        assert!(with.peek().is_some());
        let gain = |row: &Row| {
            let same = |other: &&Row| {
                (other.clip, other.size, other.video, other.stills)
                    == (row.clip, row.size, row.video, Bitrate::ZERO)
            };
            let without = rows.iter().find(same).expect("the same without stills");
            (row.vmaf_neg - without.vmaf_neg, row.predicted() - without.predicted())
        };
        let errors: Vec<f64> =
            with.map(gain).map(|(seen, predicted)| (seen - predicted).abs()).collect();
        assert!(mean(errors.iter().copied()) < 5.0, "{errors:?}");
    }

    #[test]
    fn bits_and_pixels_never_make_it_worse_and_neither_do_anchors() {
        let of = |size, kbps, anchors| predict(size, Bitrate::kbps(kbps), anchors, plain(TILE));
        let q = |kbps| of(QUARTER, kbps, None);
        assert!(q(30.0) < q(80.0) && q(80.0) < q(150.0));
        let (h, f) = (of(HALF, 500.0, None), of(TILE, 1500.0, None));
        assert!(q(150.0) < h && h < f);
        let plus = of(QUARTER, 150.0, Some(stills(Bitrate::kbps(30.0), 2)));
        assert!(q(150.0) + 3.0 < plus && plus < h, "{plus}");
    }

    #[test]
    fn stills_of_a_layer_never_look_better_than_that_layer() {
        let stills = stills(Bitrate::kbps(60.0), 1);
        for tile in [HALF, TILE, Size::new(1920, 1080)] {
            let of = |size, kbps, anchors| predict(size, Bitrate::kbps(kbps), anchors, plain(tile));
            for (low, above) in [(Size::new(160, 90), QUARTER), (QUARTER, HALF)] {
                let (plus, plain) = (of(low, 110.0, Some(stills)), of(above, 350.0, None));
                assert!(plus < plain, "{plus} at {low}, {plain} at {above} in {tile}");
            }
        }
    }

    #[test]
    fn in_a_small_tile_a_small_layer_is_nearly_as_good() {
        let gain = |tile| {
            let of = |size, kbps| predict(size, Bitrate::kbps(kbps), None, plain(tile));
            of(HALF, 500.0) - of(QUARTER, 150.0)
        };
        assert!(gain(QUARTER) < 6.0 && gain(HALF) > 8.0 && gain(TILE) > 20.0);
    }

    #[test]
    fn nothing_is_divided_by_a_layer_without_a_size() {
        let none = Size::new(0, 0);
        assert!([FrameNetwork::None, FrameNetwork::Xs].into_iter().all(|network| {
            let shown = Shown { tile: none, network };
            predict(none, Bitrate::ZERO, Some(AnchorCosts::default()), shown).is_finite()
        }));
    }

    /// Anchors that the server makes alone.
    const ENHANCED: AnchorCosts = AnchorCosts {
        captured: Bitrate::ZERO,
        captured_octaves: 0,
        enhanced: Bitrate::bps(20_000),
    };

    #[test]
    fn enhanced_anchors_pay_without_a_network_and_not_beside_one() {
        for (network, pays) in [
            (FrameNetwork::None, true),
            (FrameNetwork::Xxs, false),
            (FrameNetwork::Xs, false),
            (FrameNetwork::Other, true),
        ] {
            let shown = Shown { tile: TILE, network };
            assert_eq!(anchors_pay(HALF, ENHANCED, shown), pays, "{network:?}");
        }
        let three = Shown { tile: Size::new(960, 540), network: FrameNetwork::Xxs };
        assert!(anchors_pay(QUARTER, ENHANCED, three), "there is no such network of three");
    }

    #[test]
    fn the_publishers_own_pixels_pay_beside_a_network_too() {
        for (layer, octaves) in [(HALF, 1), (QUARTER, 2), (QUARTER, 1)] {
            let shown = Shown { tile: TILE, network: FrameNetwork::Xs };
            let anchors = stills(Bitrate::ZERO, octaves);
            assert!(anchors_pay(layer, anchors, shown), "{octaves} of {layer}");
        }
        // Where the tile is hardly larger than the layer they have nothing to add.
        let small = Shown { tile: Size::new(420, 236), network: FrameNetwork::Xs };
        assert!(!anchors_pay(QUARTER, stills(Bitrate::ZERO, 2), small));
    }

    #[test]
    fn a_network_makes_a_rung_better_and_never_as_good_as_the_next_layer() {
        let of = |size, kbps, network| {
            predict(size, Bitrate::kbps(kbps), None, Shown { tile: TILE, network })
        };
        for (low, kbps) in [(QUARTER, 150.0), (HALF, 500.0)] {
            let (none, xs) = (FrameNetwork::None, FrameNetwork::Xs);
            assert!(of(low, kbps, none) + 1.0 < of(low, kbps, xs));
        }
        let (xs, none) = (FrameNetwork::Xs, FrameNetwork::None);
        assert!(of(QUARTER, 150.0, xs) < of(HALF, 500.0, none));
        assert!(of(HALF, 500.0, xs) < of(TILE, 1500.0, none));
    }
}
