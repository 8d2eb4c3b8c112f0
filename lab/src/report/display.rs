//! Several reports of `eval --display`, a clip or more each, as one of all clips.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

use crate::eval::row::MEAN;
use crate::eval::stats::mean;

type Row = Map<String, Value>;

/// All clips' rows, and their comparisons and gaps with their means over the clips; what single reports say of means is
/// left out.
pub(super) fn join(reports: &BTreeMap<String, Value>) -> Result<Value> {
    let mut whole = Map::new();
    for list in ["comparisons", "gaps"] {
        let mut all: Vec<(&str, &Row)> = Vec::new();
        for (name, report) in reports {
            let rows = report[list].as_array();
            let rows = rows.with_context(|| format!("{name} is not of `eval --display`"))?;
            for row in rows.iter().filter_map(Value::as_object).filter(|row| clip(row) != MEAN) {
                let other = all.iter().find(|(of, other)| of != name && clip(other) == clip(row));
                if let Some((other, _)) = other {
                    ensure!(false, "{other} and {name} both have the clip {}", clip(row));
                }
                all.push((name, row));
            }
        }
        let rows: Vec<&Row> = all.into_iter().map(|(_, row)| row).collect();
        let means = means(&rows).into_iter().map(Value::Object);
        let rows = rows.iter().map(|&row| Value::Object(row.clone())).chain(means).collect();
        whole.insert(list.into(), Value::Array(rows));
    }
    let points = reports.values().filter_map(|report| report["rows"].as_array());
    whole.insert("rows".into(), Value::Array(points.flatten().cloned().collect()));
    Ok(Value::Object(whole))
}

fn clip(row: &Row) -> &str {
    row.get("clip").and_then(Value::as_str).unwrap_or_default()
}

/// Rows that differ in their clip alone, as one of their mean; a figure that a clip lacks, or whose row it lacks, is
/// null.
fn means(rows: &[&Row]) -> Vec<Row> {
    let mut groups: BTreeMap<Vec<&str>, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        let texts = row.iter().filter(|(key, _)| *key != "clip").filter_map(|(_, v)| v.as_str());
        groups.entry(texts.collect()).or_default().push(row);
    }
    let clips = rows.iter().map(|row| clip(row)).collect::<BTreeSet<_>>().len();
    let of = |group: &[&Row]| {
        let mut row = Row::new();
        for (key, value) in group.first().into_iter().copied().flatten() {
            let value = if value.is_string() {
                value.clone()
            } else {
                let figures: Option<Vec<f64>> =
                    group.iter().map(|row| row.get(key).and_then(Value::as_f64)).collect();
                figures.filter(|figures| figures.len() == clips).and_then(mean).into()
            };
            row.insert(key.clone(), value);
        }
        row.insert("clip".into(), MEAN.into());
        row
    };
    groups.values().map(|group| of(group)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(clip: &str, quality: f64, bits: Option<f64>) -> Value {
        json!({
            "comparisons": [
                {"clip": clip, "sizes": "q", "metric": "vmaf_neg", "bd_quality": quality, "bd_rate_percent": bits},
                {"clip": clip, "sizes": "h", "metric": "vmaf_neg", "bd_quality": 0.0, "bd_rate_percent": 0.0},
                {"clip": "mean", "sizes": "q", "metric": "vmaf_neg", "bd_quality": 99.0, "bd_rate_percent": 0.0},
            ],
            "gaps": [{"clip": clip, "metric": "vmaf_neg", "closed_percent": quality, "bits_percent": 42.0}],
        })
    }

    #[test]
    fn means_are_over_the_clips_of_all_reports() {
        let reports = [("x", report("a", 2.0, Some(-20.0))), ("y", report("b", 4.0, None))];
        let whole = join(&reports.map(|(name, report)| (name.to_owned(), report)).into()).unwrap();
        let comparisons = whole["comparisons"].as_array().unwrap();
        assert_eq!(comparisons.len(), 6, "{comparisons:?}");
        let q =
            comparisons.iter().find(|row| row["clip"] == "mean" && row["sizes"] == "q").unwrap();
        assert_eq!(q["bd_quality"], 3.0);
        assert!(q["bd_rate_percent"].is_null(), "one clip has none: {q}");
        assert_eq!(whole["gaps"][2]["closed_percent"], 3.0);
    }

    #[test]
    fn there_is_no_mean_of_rows_that_a_clip_lacks() {
        let mut other = report("b", 4.0, None);
        other["comparisons"].as_array_mut().unwrap().remove(1);
        let reports = [("x".to_owned(), report("a", 2.0, None)), ("y".to_owned(), other)];
        let whole = join(&reports.into()).unwrap();
        let rows = whole["comparisons"].as_array().unwrap();
        let h = rows.iter().find(|row| row["clip"] == "mean" && row["sizes"] == "h").unwrap();
        assert!(h["bd_quality"].is_null(), "{h}");
    }

    #[test]
    fn a_clip_is_in_one_report_alone() {
        let reports = ["x", "y"].map(|name| (name.to_owned(), report("a", 2.0, None)));
        let error = join(&reports.into()).unwrap_err().to_string();
        assert_eq!(error, "x and y both have the clip a");
        assert!(join(&[("x".to_owned(), json!({"rows": []}))].into()).is_err());
    }
}
