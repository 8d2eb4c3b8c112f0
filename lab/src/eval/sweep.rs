//! A sweep's rows as curves: methods against a reference, and plots.
//!
//! A curve is the quality of a method over the bitrates of the low layer, with one way of making anchors. `best` is
//! the hull over all ways. Rates are of video and anchors together.

use std::path::Path;

use anyhow::{Context, Result};

use super::bd::{self, Difference, Point, hull};
use super::row::{MEAN, Row};
use super::stats::mean;
use crate::plot::{Curve, Plot};

/// The metrics that curves are drawn of: the row's key, and the axis' title.
pub(super) const METRICS: [(&str, &str); 3] =
    [("psnr_y_db", "PSNR-Y (dB)"), ("vmaf", "VMAF"), ("vmaf_neg", "VMAF-NEG")];

/// Name of the way of making anchors that stands for the best one at each rate.
const BEST: &str = "best";

fn metric(row: &Row, key: &str) -> Option<f64> {
    match key {
        "psnr_y_db" => Some(row.quality.psnr_y_db),
        "vmaf" => row.quality.vmaf,
        _ => row.quality.vmaf_neg,
    }
}

fn points<'a>(rows: impl Iterator<Item = &'a Row>, key: &str) -> Vec<Point> {
    rows.filter_map(|row| Some(Point { kbps: row.total_kbps, quality: metric(row, key)? }))
        .collect()
}

/// The different values in the order of their first appearance.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// Every method and way of making anchors against `reference`, clip by clip; the mean over the
/// clips at the end.
pub(super) fn differences(rows: &[Row], reference: &str) -> Vec<Difference> {
    let clips = distinct(rows.iter().map(|row| row.clip.as_str()).filter(|&clip| clip != MEAN));
    let mut all: Vec<Difference> = Vec::new();
    for clip in &clips {
        let of_clip: Vec<&Row> = rows.iter().filter(|row| row.clip == *clip).collect();
        for method in distinct(of_clip.iter().map(|row| row.method.as_str())) {
            if method == reference {
                continue;
            }
            let of_method = of_clip.iter().filter(|row| row.method == method);
            let ways = distinct(of_method.clone().filter_map(|row| Some(row.key.as_ref()?.name())));
            let best = match ways.len() {
                0 => vec![String::new()],
                1 => vec![],
                _ => vec![BEST.to_owned()],
            };
            for way in best.into_iter().chain(ways) {
                for (key, _) in METRICS {
                    let chosen = of_method.clone().filter(|row| {
                        way.is_empty()
                            || way == BEST
                            || row.key.as_ref().is_some_and(|k| k.name() == way)
                    });
                    let test = points(chosen.copied(), key);
                    let test = if way == BEST { hull(&test) } else { test };
                    let base =
                        points(of_clip.iter().filter(|r| r.method == reference).copied(), key);
                    if test.is_empty() || base.is_empty() {
                        continue;
                    }
                    all.push(Difference {
                        clip: (*clip).to_owned(),
                        method: method.to_owned(),
                        anchors: way.clone(),
                        metric: key,
                        reference: reference.to_owned(),
                        bd_rate_percent: bd::bd_rate(&base, &test),
                        bd_quality: bd::bd_quality(&base, &test),
                    });
                }
            }
        }
    }
    if clips.len() > 1 {
        let means = over_clips(&all, clips.len());
        all.extend(means);
    }
    all
}

/// Means of the same difference over all clips; `None` where a clip has none.
fn over_clips(all: &[Difference], clips: usize) -> Vec<Difference> {
    let same = |a: &Difference, b: &Difference| {
        (&a.method, &a.anchors, a.metric) == (&b.method, &b.anchors, b.metric)
    };
    let mut means: Vec<Difference> = Vec::new();
    for one in all {
        if means.iter().any(|mean| same(mean, one)) {
            continue;
        }
        let group: Vec<&Difference> = all.iter().filter(|other| same(other, one)).collect();
        if group.len() < clips {
            continue;
        }
        let of = |value: &dyn Fn(&Difference) -> Option<f64>| {
            mean(group.iter().map(|d| value(d)).collect::<Option<Vec<f64>>>()?)
        };
        means.push(Difference {
            clip: MEAN.to_owned(),
            bd_rate_percent: of(&|d| d.bd_rate_percent),
            bd_quality: of(&|d| d.bd_quality),
            ..one.clone()
        });
    }
    means
}

/// Writes one rate-quality plot for each clip (the mean is one) and metric; returns their names.
pub(super) fn write_plots(rows: &[Row], folder: &Path) -> Result<Vec<String>> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("making the folder {}", folder.display()))?;
    let mut names = Vec::new();
    for (name, plot) in plots(rows) {
        std::fs::write(folder.join(&name), plot.svg())
            .with_context(|| format!("writing {}", folder.join(&name).display()))?;
        names.push(name);
    }
    Ok(names)
}

/// One rate-quality plot for each clip (the mean is one) and metric, with the name of its file.
pub(super) fn plots(rows: &[Row]) -> Vec<(String, Plot)> {
    let mut plots = Vec::new();
    for clip in distinct(rows.iter().map(|row| row.clip.as_str())) {
        for (key, title) in METRICS {
            let curves = curves(rows, clip, key);
            if curves.iter().all(|curve| curve.dots.is_empty()) {
                continue;
            }
            let size = rows.iter().find(|row| row.clip == clip).map_or("", |row| row.size.as_str());
            let plot = Plot {
                title: format!("{clip} ({size})"),
                x_title: "video and anchors (kbit/s)".to_owned(),
                x_log: true,
                y_title: title.to_owned(),
                curves,
            };
            plots.push((format!("{}_{key}.svg", file_stem(clip)), plot));
        }
    }
    plots
}

/// The curves of a clip: a line along the hull of every method, and a dot for each of its points.
fn curves(rows: &[Row], clip: &str, key: &str) -> Vec<Curve> {
    // Colours belong to methods, so they are numbered over all clips.
    let methods = distinct(rows.iter().map(|row| row.method.as_str()));
    methods
        .iter()
        .map(|method| {
            let own = rows.iter().filter(|row| row.clip == clip && row.method == *method);
            let dots = points(own, key);
            let places =
                |points: &[Point]| points.iter().map(|p| (p.kbps, p.quality)).collect::<Vec<_>>();
            Curve { name: (*method).to_owned(), line: places(&hull(&dots)), dots: places(&dots) }
        })
        .collect()
}

/// A clip's name without the characters that a file name should not have.
fn file_stem(clip: &str) -> String {
    let stem = Path::new(clip).with_extension("");
    let clean = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    stem.to_string_lossy().chars().map(clean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::row::{self, sample};

    /// Lanczos and a hybrid that has the same quality at 80 % of the rate, on two clips.
    fn rows() -> Vec<Row> {
        let mut rows = Vec::new();
        for (clip, offset) in [("a.mp4", 0.0), ("b.mp4", 3.0)] {
            for (uplink, db) in [(100, 34.0), (200, 36.5), (400, 38.0), (800, 39.0)] {
                rows.push(sample(clip, "lanczos", uplink, db + offset));
                let mut hybrid = sample(clip, "hybrid", uplink, db + offset);
                hybrid.total_kbps *= 0.8;
                rows.push(hybrid);
            }
        }
        let means = row::means(&rows);
        rows.extend(means);
        rows
    }

    #[test]
    fn methods_are_compared_clip_by_clip_and_over_all() {
        let found = differences(&rows(), "lanczos");
        let seen: Vec<_> = found.iter().map(|d| (d.clip.as_str(), d.anchors.as_str())).collect();
        assert_eq!(seen, [("a.mp4", "0.033 q85"), ("b.mp4", "0.033 q85"), ("mean", "0.033 q85")]);
        for one in &found {
            assert!((one.bd_rate_percent.unwrap() + 20.0).abs() < 1e-9, "{one:?}");
        }
    }

    #[test]
    fn several_ways_of_making_anchors_have_a_best_one() {
        let mut rows = rows();
        let mut worse: Vec<Row> = rows.iter().filter(|r| r.method == "hybrid").cloned().collect();
        for row in &mut worse {
            row.key.as_mut().unwrap().anchor_quality = Some(40);
            row.quality.psnr_y_db -= 1.0;
        }
        rows.extend(worse);
        // Ways that cost more and give a little more than the next cheaper point of the best one.
        let mut dearer: Vec<Row> =
            rows.iter().filter(|r| r.method == "hybrid").take(8).cloned().collect();
        for row in &mut dearer {
            row.key.as_mut().unwrap().anchor_quality = Some(95);
            row.quality.psnr_y_db += 0.01;
            row.total_kbps *= 1.5;
        }
        rows.extend(dearer.into_iter().filter(|row| row.uplink_kbps < 800));
        let found = differences(&rows, "lanczos");
        let best = found.iter().find(|d| d.anchors == BEST).unwrap();
        assert!((best.bd_rate_percent.unwrap() + 20.0).abs() < 1e-9);
        let q40 = found.iter().find(|d| d.anchors == "0.033 q40").unwrap();
        assert!(q40.bd_rate_percent > best.bd_rate_percent);
    }

    #[test]
    fn every_clip_and_the_mean_have_a_plot_of_each_metric_that_was_measured() {
        let folder = tempfile::tempdir().unwrap();
        let names = write_plots(&rows(), folder.path()).unwrap();
        assert_eq!(names, ["a_psnr_y_db.svg", "b_psnr_y_db.svg", "mean_psnr_y_db.svg"]);
        assert!(names.iter().all(|name| folder.path().join(name).is_file()));
    }
}
