//! Compares one side's best with the other's, for equal bits.
//!
//! A side's curve is the hull over all its configurations of the sizes in question: what one gets who may choose.

use serde::Serialize;

use super::ours::StillsFrom;
use super::row::{Row, ShownBy, Side};
use crate::eval::bd::{self, Point};
use crate::eval::row::MEAN;
use crate::eval::stats::mean;

/// The measures that are compared: the row's key and its axis' title.
pub(super) const METRICS: [(&str, &str); 3] =
    [("vmaf_neg", "VMAF-NEG"), ("ssimulacra2", "SSIMULACRA2"), ("psnr_y_db", "PSNR-Y (dB)")];

/// Which rows of the two sides are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    /// The sizes that may be encoded: `q`, `h` or `any`.
    pub sizes: &'static str,
    /// The source of the stills.
    pub stills_from: StillsFrom,
}

impl Case {
    /// The case of these sizes and this source of stills.
    pub(super) const fn new(sizes: &'static str, stills_from: StillsFrom) -> Case {
        Case { sizes, stills_from }
    }
}

/// The cases: a viewer that is held to a layer, a publisher that is, and a publisher that may send any size.
pub(super) const CASES: [Case; 5] = [
    Case::new("q", StillsFrom::F),
    Case::new("h", StillsFrom::F),
    Case::new("q", StillsFrom::Publisher),
    Case::new("h", StillsFrom::Publisher),
    ANY_SIZE,
];
/// The case of a publisher that may send any size.
pub(super) const ANY_SIZE: Case = Case::new("any", StillsFrom::Publisher);
/// Maximum share of `h`'s bits that may be used to get from `q` to `h`.
const MAX_BITS: f64 = 0.45;

/// Windlass against plain video.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Comparison {
    /// The clip, or `mean`.
    pub clip: String,
    /// The sizes that may be encoded: `q`, `h` or `any`.
    pub sizes: &'static str,
    /// Where stills come from: `f` where a viewer is held to those sizes, `publisher` where the publisher is.
    pub stills_from: StillsFrom,
    /// The row's key of the metric.
    pub metric: &'static str,
    /// Mean difference of bits at equal quality; negative: Windlass needs fewer. `None` without common quality.
    pub bd_rate_percent: Option<f64>,
    /// Mean difference of quality at equal bits; positive: Windlass is better. `None` without common rates.
    pub bd_quality: Option<f64>,
}

/// How much of the way from `q` to `h`, both sharpened and at Chromium's rates, is closed from `q`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Gap {
    /// The clip, or `mean`.
    pub clip: String,
    /// The row's key of the metric.
    pub metric: &'static str,
    /// Share of the difference in quality that is closed, in percent; more than 100 is better than `h`.
    pub closed_percent: f64,
    /// All bits of the row over those of `h`, in percent.
    pub bits_percent: f64,
}

/// The value of a row by a metric.
pub(super) fn value(row: &Row, metric: &str) -> Option<f64> {
    match metric {
        "vmaf_neg" => row.quality.vmaf_neg,
        "ssimulacra2" => Some(row.quality.ssimulacra2),
        _ => Some(row.quality.psnr_y_db),
    }
}

/// The points of one side in one of the [`CASES`].
pub(super) fn points(rows: &[Row], clip: &str, side: Side, case: Case, metric: &str) -> Vec<Point> {
    rows.iter()
        .filter(|row| row.clip == clip && row.side == side)
        .filter(|row| case.sizes == "any" || row.layer == case.sizes)
        .filter(|row| row.stills_from.is_none_or(|from| from == case.stills_from))
        .filter_map(|row| Some(Point { kbps: row.total_kbps, quality: value(row, metric)? }))
        .collect()
}

/// The clips, in the order of the rows.
pub(super) fn clips(rows: &[Row]) -> Vec<String> {
    let mut clips: Vec<String> = rows.iter().map(|row| row.clip.clone()).collect();
    clips.dedup();
    clips
}

/// The comparisons of every clip by every metric, and the means over the clips where each has a figure.
pub(super) fn compare(rows: &[Row]) -> Vec<Comparison> {
    let clips = clips(rows);
    let mut all = Vec::new();
    for case in CASES {
        let Case { sizes, stills_from } = case;
        for (metric, _) in METRICS {
            let start = all.len();
            for clip in &clips {
                let hull = |side| bd::hull(&points(rows, clip, side, case, metric));
                let (plain, ours) = (hull(Side::Plain), hull(Side::Windlass));
                if plain.is_empty() || ours.is_empty() {
                    continue;
                }
                all.push(Comparison {
                    clip: clip.clone(),
                    sizes,
                    stills_from,
                    metric,
                    bd_rate_percent: bd::bd_rate(&plain, &ours),
                    bd_quality: bd::bd_quality(&plain, &ours),
                });
            }
            let of_all: &[Comparison] = &all[start..];
            if of_all.len() > 1 {
                let of = |value: fn(&Comparison) -> Option<f64>| {
                    mean(of_all.iter().map(value).collect::<Option<Vec<f64>>>()?)
                };
                all.push(Comparison {
                    clip: MEAN.to_owned(),
                    sizes,
                    stills_from,
                    metric,
                    bd_rate_percent: of(|one| one.bd_rate_percent),
                    bd_quality: of(|one| one.bd_quality),
                });
            }
        }
    }
    all
}

/// The gaps from `q` to `h` of every clip, and in the mean.
pub(super) fn gaps(rows: &[Row]) -> Vec<Gap> {
    let mut all = Vec::new();
    for (metric, _) in METRICS {
        let start = all.len();
        all.extend(clips(rows).iter().filter_map(|clip| gap(rows, clip, metric)));
        let of_all: &[Gap] = &all[start..];
        if of_all.len() > 1 {
            let closed = mean(of_all.iter().map(|gap| gap.closed_percent));
            let bits = mean(of_all.iter().map(|gap| gap.bits_percent));
            all.extend(closed.zip(bits).map(|(closed_percent, bits_percent)| Gap {
                clip: MEAN.to_owned(),
                metric,
                closed_percent,
                bits_percent,
            }));
        }
    }
    all
}

fn gap(rows: &[Row], clip: &str, metric: &'static str) -> Option<Gap> {
    // The second rate of a layer is Chromium's.
    let usual = |layer: &str| {
        let sharpened = |row: &&Row| {
            row.clip == clip && row.layer == layer && row.shown_by == ShownBy::Sharpened
        };
        let mut rows: Vec<&Row> = rows.iter().filter(sharpened).collect();
        rows.sort_by(|a, b| a.total_kbps.total_cmp(&b.total_kbps));
        rows.get(1).copied()
    };
    let (q, h) = (usual("q")?, usual("h")?);
    let ours = rows
        .iter()
        .filter(|row| row.clip == clip && row.layer == "q" && row.side == Side::Windlass)
        .filter(|row| row.total_kbps <= MAX_BITS * h.total_kbps)
        .filter_map(|row| Some((value(row, metric)?, row.total_kbps)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (low, high) = (value(q, metric)?, value(h, metric)?);
    (high > low).then(|| Gap {
        clip: clip.to_owned(),
        metric,
        closed_percent: 100.0 * (ours.0 - low) / (high - low),
        bits_percent: 100.0 * ours.1 / h.total_kbps,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::eval::display::quality::Quality;

    /// A row whose quality by every measure is `quality`.
    pub(crate) fn row(clip: &str, side: Side, layer: &'static str, kbps: f64, quality: f64) -> Row {
        let shown_by = if side == Side::Plain { ShownBy::Sharpened } else { ShownBy::Stills };
        Row {
            clip: clip.to_owned(),
            side,
            size: layer.to_owned(),
            layer,
            shown_by,
            stills_from: (side == Side::Windlass).then_some(StillsFrom::F),
            video_kbps: kbps,
            still_kbps: 0.0,
            total_kbps: kbps,
            stills: 0,
            quality: Quality {
                psnr_y_db: quality,
                vmaf: None,
                vmaf_neg: Some(quality),
                ssimulacra2: quality,
            },
        }
    }

    /// Two clips whose `q` is better by 2, and 4, of Windlass; `h` is the same.
    pub(crate) fn rows() -> Vec<Row> {
        let mut rows = Vec::new();
        for (clip, better) in [("a", 2.0), ("b", 4.0)] {
            for (kbps, quality) in [(70.0, 30.0), (140.0, 33.0), (210.0, 34.5), (350.0, 36.0)] {
                rows.push(row(clip, Side::Plain, "q", kbps, quality));
                rows.push(row(clip, Side::Windlass, "q", kbps, quality + better));
                rows.push(row(clip, Side::Plain, "h", 3.0 * kbps, quality + 8.0));
                rows.push(row(clip, Side::Windlass, "h", 3.0 * kbps, quality + 8.0));
            }
        }
        rows
    }

    fn found(rows: &[Row], sizes: &str, clip: &str) -> Comparison {
        let all = compare(rows);
        all.into_iter()
            .find(|one| one.sizes == sizes && one.clip == clip && one.metric == "vmaf_neg")
            .unwrap()
    }

    #[test]
    fn a_size_is_compared_with_the_same_size_and_the_mean_is_over_clips() {
        assert!((found(&rows(), "q", "a").bd_quality.unwrap() - 2.0).abs() < 1e-9);
        assert!((found(&rows(), "q", MEAN).bd_quality.unwrap() - 3.0).abs() < 1e-9);
        assert!(found(&rows(), "q", MEAN).bd_rate_percent.unwrap() < -30.0);
        assert!(found(&rows(), "h", MEAN).bd_quality.unwrap().abs() < 1e-9);
    }

    #[test]
    fn where_any_size_may_be_coded_each_side_takes_its_best() {
        let mut rows = rows();
        for row in &mut rows {
            row.stills_from = row.stills_from.and(Some(StillsFrom::Publisher));
        }
        let any = found(&rows, "any", "b").bd_quality.unwrap();
        assert!(any > 0.0 && any < 4.0, "{any}");
    }

    #[test]
    fn the_gap_is_closed_within_the_bits_that_are_allowed() {
        let all = gaps(&rows());
        let of_b = all.iter().find(|gap| gap.clip == "b" && gap.metric == "vmaf_neg").unwrap();
        // From 33 (q) to 41 (h at 420 kbit/s); at most 189 kbit/s give 37.
        assert!((of_b.closed_percent - 50.0).abs() < 1e-9, "{of_b:?}");
        assert!((of_b.bits_percent - 100.0 / 3.0).abs() < 1e-9, "{of_b:?}");
    }
}
