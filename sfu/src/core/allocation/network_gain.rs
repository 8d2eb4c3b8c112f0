//! Predicted gain of a rung by a network that the viewer runs on every frame, in points of VMAF-NEG in the tile that
//! shows the rung. It also gives the share of their gain that anchors keep beside the network.
//!
//! The figures are means over those rows of `fixtures/network_gain.csv` whose clips were looked at while the networks
//! were trained. Other rows are of people on whom no choice was made: they test the figures (`models/frames`, the
//! networks' model cards; a test repeats both). What enhanced anchors keep beside a network was measured in dB alone
//! (`hybrid@xs` of `windlass-lab eval`).

use windlass_types::FrameNetwork;

/// Gain of a network at one scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NetworkGain {
    /// Points of VMAF-NEG that the network adds.
    pub points: f64,
    /// Share (0 to 1) of their gain that captured anchors keep beside the network.
    pub captured_left: f64,
    /// Share (0 to 1) of their gain that enhanced anchors keep beside the network.
    pub enhanced_left: f64,
}

impl NetworkGain {
    /// The gain without a network: no points, and anchors keep all of theirs.
    pub(crate) const NONE: NetworkGain =
        NetworkGain { points: 0.0, captured_left: 1.0, enhanced_left: 1.0 };
}

/// Share (0 to 1) of their gain that enhanced anchors keep beside a network. At ×2 and 150 kbit/s the clips that were
/// looked at kept 0.21 of their dB (+0.05 of +0.21), seven others 0.35 (+0.07 of +0.20).
const ENHANCED_LEFT: f64 = 0.3;

/// The gain of a network where pictures are shown `scale` times as large as their layer. `octaves` is the enlargement
/// without rounding to a whole scale. A picture that is rebuilt larger and made smaller again shows less of the gain.
pub(crate) fn gain(network: FrameNetwork, scale: u16, octaves: f64) -> NetworkGain {
    let (points, captured_left) = match (network, scale) {
        (FrameNetwork::Xxs, 2) => (1.4, 1.0),
        (FrameNetwork::Xs, 2) => (1.75, 0.95),
        (FrameNetwork::Xs, 3) => (1.95, 0.76),
        (FrameNetwork::Xs, 4) => (3.1, 0.84),
        (FrameNetwork::Xxs, 4) => (1.3, 0.88),
        // No network has this scale, or its gain was not measured.
        _ => return NetworkGain::NONE,
    };
    let shown = (octaves / f64::from(scale).log2()).clamp(0.0, 1.0);
    NetworkGain { points: points * shown, captured_left, enhanced_left: ENHANCED_LEFT }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clip at one bitrate: points of the filters, with stills, and what the network adds to either.
    struct Row {
        clip: &'static str,
        network: FrameNetwork,
        scale: u16,
        points: f64,
        plain: f64,
        stills: f64,
        points_with_stills: f64,
    }

    /// Clips that were looked at while the networks were trained.
    const FITTED: [&str; 2] = ["d13", "s18"];

    fn rows() -> Vec<Row> {
        let lines = include_str!("../fixtures/network_gain.csv").lines().skip(1);
        let row = |line: &'static str| {
            let fields: Vec<&str> = line.split(',').collect();
            let number = |at: usize| fields[at].parse::<f64>().expect("a number");
            let network = if fields[1] == "xs" { FrameNetwork::Xs } else { FrameNetwork::Xxs };
            Row {
                clip: fields[0],
                network,
                scale: number(2) as u16,
                plain: number(4),
                points: number(5),
                stills: number(6),
                points_with_stills: number(7),
            }
        };
        lines.map(row).collect()
    }

    /// Mean points of a network, and the mean share of what stills gain that is left beside it.
    fn measured(network: FrameNetwork, scale: u16, fitted: bool) -> (f64, f64) {
        let rows = rows();
        let of: Vec<&Row> = rows
            .iter()
            .filter(|row| (row.network, row.scale) == (network, scale))
            .filter(|row| FITTED.contains(&row.clip) == fitted)
            .collect();
        assert!(of.len() >= 4);
        let sum = |value: fn(&Row) -> f64| of.iter().map(|row| value(row)).sum::<f64>();
        let stills = sum(|row| row.stills - row.plain);
        let beside = sum(|row| row.stills + row.points_with_stills - row.plain - row.points);
        (sum(|row| row.points) / of.len() as f64, beside / stills)
    }

    const NETWORKS: [(FrameNetwork, u16); 5] = [
        (FrameNetwork::Xxs, 2),
        (FrameNetwork::Xxs, 4),
        (FrameNetwork::Xs, 2),
        (FrameNetwork::Xs, 3),
        (FrameNetwork::Xs, 4),
    ];

    #[test]
    fn the_figures_are_those_of_the_rows_that_they_rest_on() {
        for (network, scale) in NETWORKS {
            let modelled = gain(network, scale, 2.0);
            let (points, left) = measured(network, scale, true);
            assert!((modelled.points - points).abs() < 0.06, "{network:?} ×{scale}: {points}");
            assert!(
                (modelled.captured_left - left.min(1.0)).abs() < 0.06,
                "{network:?} ×{scale}: {left}"
            );
        }
    }

    /// Error of the model for people that are not in its training data.
    #[test]
    fn of_other_people_the_gain_is_known_within_a_point_and_captured_anchors_keep_most_of_theirs() {
        for (network, scale) in NETWORKS {
            let modelled = gain(network, scale, 2.0);
            let (points, left) = measured(network, scale, false);
            assert!((modelled.points - points).abs() < 1.0, "{network:?} ×{scale}: {points}");
            assert!(
                (modelled.captured_left - left.min(1.0)).abs() < 0.25,
                "{network:?} ×{scale}: {left}"
            );
        }
    }

    #[test]
    fn where_there_is_no_network_nothing_changes() {
        for (network, scale) in
            [(FrameNetwork::None, 2), (FrameNetwork::Xxs, 3), (FrameNetwork::Other, 2)]
        {
            assert_eq!(gain(network, scale, 1.0), NetworkGain::NONE);
        }
    }

    #[test]
    fn a_picture_that_is_made_smaller_again_shows_less_of_it() {
        let points = |octaves| gain(FrameNetwork::Xs, 2, octaves).points;
        assert!(points(0.0) < points(0.5) && points(0.5) < points(1.0));
        assert!((points(1.0) - points(1.3)).abs() < 1e-9);
    }
}
