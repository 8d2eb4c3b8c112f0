//! Figures by name, from what commands printed with `--json`.
//!
//! A cell's `{links/3g/utilisation:0%}` is, of `figures/links.json`, `utilisation` of the only row that has this key
//! and a value `3g`, written by its [format](super::number). `~VALUE` may be a part of the row's, `NAME=NUMBER` is a
//! number. Before the key, `least ` or `most ` takes all rows that match. Besides: `{display/CLIP/SIZES/STILLS/seen}`,
//! the four differences of `eval --display`; `{A >= 1.2 && B <= 6}`, whether a goal is met; `{clips}`, how many clips
//! were shown.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

use super::display;
use super::files::{files, json, stem};
use super::number::written;
use crate::eval::row::MEAN;

/// Name of the report of `eval --display`.
const DISPLAY: &str = "display";
/// Numbers as words, for `{clips}`; larger ones are written in digits.
const NUMBERS: [&str; 10] =
    ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
/// The figures of `seen`: measure, key, format.
const SEEN: [(&str, &str, &str); 4] = [
    ("psnr_y_db", "bd_quality", "+2"),
    ("vmaf_neg", "bd_quality", "+1"),
    ("ssimulacra2", "bd_quality", "+1"),
    ("vmaf_neg", "bd_rate_percent", "+0"),
];

/// Reports of commands, by name.
#[derive(Debug, Default)]
pub(super) struct Figures {
    reports: BTreeMap<String, Value>,
}

impl Figures {
    /// Reads `figures/*.json`, and `display/*.json` as one report of all clips.
    pub(super) fn read(results: &Path) -> Result<Figures> {
        let read = |folder: &str| -> Result<BTreeMap<String, Value>> {
            let all = files(&results.join(folder), "json")?;
            all.iter().map(|file| Ok((stem(file), json(file)?))).collect()
        };
        let mut reports = read("figures")?;
        reports.insert(DISPLAY.into(), display::join(&read(DISPLAY)?)?);
        Ok(Figures { reports })
    }

    /// The clips of `eval --display`, in their order.
    pub(super) fn clips(&self) -> Vec<&str> {
        let mut clips = Vec::new();
        for row in self.reports.get(DISPLAY).into_iter().flat_map(rows) {
            let clip = row.get("clip").and_then(Value::as_str).filter(|&clip| clip != MEAN);
            clips.extend(clip.filter(|clip| !clips.contains(clip)));
        }
        clips
    }

    /// Fills the figures into a cell.
    pub(super) fn fill(&self, cell: &str) -> Result<String> {
        let (mut out, mut rest) = (String::new(), cell);
        while let Some((before, after)) = rest.split_once('{') {
            let (name, behind) =
                after.split_once('}').with_context(|| format!("`{cell}` has no }}"))?;
            out.push_str(before);
            out.push_str(&self.named(name).with_context(|| format!("of {{{name}}}"))?);
            rest = behind;
        }
        Ok(out + rest)
    }

    fn named(&self, name: &str) -> Result<String> {
        if name == "clips" {
            let count = self.clips().len();
            return Ok(NUMBERS.get(count).map_or_else(|| count.to_string(), ToString::to_string));
        }
        if name.contains(" >= ") || name.contains(" <= ") {
            let met =
                name.split(" && ").map(|goal| self.meets(goal)).collect::<Result<Vec<_>>>()?;
            return Ok(if met.iter().all(|&met| met) { "met" } else { "**not met**" }.into());
        }
        if let Some(of) = name.strip_suffix("/seen") {
            let four = SEEN.map(|(metric, key, format)| {
                written(self.value(&format!("{of}/{metric}/{key}"))?, format)
            });
            let [psnr, vmaf, ssimulacra, bits] = four;
            return Ok(format!("{} / {} / {}, {} %", psnr?, vmaf?, ssimulacra?, bits?));
        }
        let (path, format) = name.rsplit_once(':').context("a figure has a format, as `:1`")?;
        written(self.value(path)?, format)
    }

    fn meets(&self, goal: &str) -> Result<bool> {
        let (path, least, goal) = match (goal.split_once(" >= "), goal.split_once(" <= ")) {
            (Some((path, goal)), None) => (path, true, goal),
            (None, Some((path, goal))) => (path, false, goal),
            _ => bail!("`{goal}` is no goal, as `A >= 1`"),
        };
        let goal: f64 = goal.parse().with_context(|| format!("`{goal}` is no number"))?;
        let value = self.value(path)?.context("was not measured")?;
        Ok(if least { value >= goal } else { value <= goal })
    }

    /// The figure at `REPORT/VALUE…/KEY`; `None` where it is null.
    fn value(&self, path: &str) -> Result<Option<f64>> {
        let mut parts: Vec<&str> = path.split('/').collect();
        let key = parts.pop().unwrap_or_default();
        let (which, key) = match key.split_once(' ') {
            Some((which @ ("least" | "most"), key)) => (Some(which), key),
            _ => (None, key),
        };
        let found: Vec<&Value> = self.rows(&parts)?.filter_map(|row| row.get(key)).collect();
        ensure!(
            !found.is_empty() && (which.is_some() || found.len() == 1),
            "{} rows have this key and these values",
            found.len()
        );
        for value in &found {
            ensure!(value.is_number() || value.is_null(), "{value} is no number");
        }
        let found = found.into_iter().filter_map(Value::as_f64);
        Ok(if which == Some("least") { found.reduce(f64::min) } else { found.reduce(f64::max) })
    }

    /// The figures `x` and `y` of each row at `REPORT/VALUE…` that has both.
    pub(super) fn points(&self, path: &str, x: &str, y: &str) -> Result<Vec<(f64, f64)>> {
        let parts: Vec<&str> = path.split('/').collect();
        let number = |row: &Map<String, Value>, key: &str| row.get(key).and_then(Value::as_f64);
        Ok(self.rows(&parts)?.filter_map(|row| Some((number(row, x)?, number(row, y)?))).collect())
    }

    /// The rows of the report `parts[0]` that have all other parts.
    fn rows(&self, parts: &[&str]) -> Result<impl Iterator<Item = &Map<String, Value>>> {
        let report = parts.first().and_then(|&name| self.reports.get(name));
        let report = report.context("there is no such report in lab/results/figures")?;
        let rest = parts.get(1..).unwrap_or_default();
        Ok(rows(report).filter(move |row| rest.iter().all(|part| has(row, part))))
    }
}

/// The rows in all lists of a report.
fn rows(report: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    let lists = report.as_object().into_iter().flat_map(Map::values).filter_map(Value::as_array);
    lists.flatten().filter_map(Value::as_object)
}

fn has(row: &Map<String, Value>, part: &str) -> bool {
    if let Some((key, number)) = part.split_once('=') {
        let number = number.parse::<Value>().ok();
        return number.is_some() && row.get(key) == number.as_ref();
    }
    let mut texts = row.values().filter_map(Value::as_str);
    match part.strip_prefix('~') {
        Some(part) => texts.any(|text| text.contains(part)),
        None => texts.any(|text| text == part),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A report of two links, and one of a shown clip with its mean.
    pub(crate) fn figures() -> Figures {
        let comparison = |clip: &str, metric: &str, quality: f64, bits: Option<f64>| {
            json!({"clip": clip, "sizes": "q", "stills_from": "f", "metric": metric,
                   "bd_quality": quality, "bd_rate_percent": bits})
        };
        let shown: Vec<Value> = ["a", "b", MEAN]
            .into_iter()
            .flat_map(|clip| {
                [
                    comparison(clip, "vmaf_neg", 7.54, Some(-34.6)),
                    comparison(clip, "ssimulacra2", -0.26, None),
                    comparison(clip, "psnr_y_db", 1.344, None),
                ]
            })
            .collect();
        let links = json!({"command": "bench links", "rows": [
            {"link": "3g", "utilisation": 0.7, "converged_s": null, "publishers": 4},
            {"link": "a lte", "utilisation": 0.78, "converged_s": 1.5, "publishers": 4},
        ]});
        let display = json!({"comparisons": shown});
        Figures { reports: [("links".into(), links), (DISPLAY.into(), display)].into() }
    }

    #[test]
    fn a_cell_takes_the_figure_of_the_only_row_that_fits() {
        let cell = "{links/3g/utilisation:0%} of {links/~lte/converged_s:1} s";
        assert_eq!(figures().fill(cell).unwrap(), "70 % of 1.5 s");
        assert_eq!(figures().fill("{links/3g/converged_s:1}").unwrap(), "–");
        assert_eq!(figures().fill("{links/publishers=4/most utilisation:2}").unwrap(), "0.78");
        for wrong in [
            "{links/publishers=4/utilisation:1}",
            "{links/dsl/utilisation:1}",
            "{no/x:1}",
            "{clips",
        ] {
            assert!(figures().fill(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_seen_of_a_clip_is_four_figures() {
        let text = figures().fill("{display/mean/q/f/seen} of {clips}").unwrap();
        assert_eq!(text, "+1.34 / +7.5 / −0.3, −35 % of two");
    }

    #[test]
    fn a_goal_is_met_if_all_of_it_is() {
        let vmaf = "display/mean/q/f/vmaf_neg/bd_quality >= 6";
        let bits = |goal: i32| format!("display/mean/q/f/vmaf_neg/bd_rate_percent <= {goal}");
        let of = |goal: String| figures().fill(&goal).unwrap();
        assert_eq!(of(format!("{{{vmaf} && {}}}", bits(-30))), "met");
        assert_eq!(of(format!("{{{vmaf} && {}}}", bits(-40))), "**not met**");
    }
}
