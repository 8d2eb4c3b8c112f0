//! `windlass/plan/gains.json` is made of `lab/results/figures/budget-*.json`, what `eval` printed, and nothing else.

use std::path::{Path, PathBuf};

use serde_json::Value;
use windlass_plan::{Content, DetailSource, Gain, Gains, Spread};

/// The command that made the figures.
const COMMAND: &str = "windlass-lab eval d13@crop=720:405:0:300 s18 soft-d13 soft-s18 notebook@screen terminal@screen \
    --height 360 --seconds 3 --uplink 150 --delay-ms BUDGET --no-times --methods lanczos@0.3,no-anchors,hybrid,captured@regions";
/// The day of the measurement.
const MEASURED: &str = "2026-11-27";
/// Latency budgets of anchors that were measured, in ms.
const BUDGETS_MS: [u32; 3] = [100, 200, 500];
/// The method that every way is compared with.
const REFERENCE: &str = "lanczos@0.3";
/// The ways to make a picture, with the methods of `eval` that measure them.
const WAYS: [(DetailSource, &str); 3] = [
    (DetailSource::Filters, "no-anchors"),
    (DetailSource::Anchors, "hybrid"),
    (DetailSource::Stills, "captured@regions"),
];

fn clips(content: Content) -> [&'static str; 2] {
    match content {
        Content::Person => ["d13", "s18"],
        Content::Text => ["notebook", "terminal"],
        Content::Soft => ["soft-d13", "soft-s18"],
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A clip's figure `key` by a method.
fn figure(report: &Value, clip: &str, method: &str, key: &str) -> Option<f64> {
    let rows = report["rows"].as_array()?;
    let row = rows.iter().find(|row| row["clip"] == clip && row["method"] == method)?;
    row[key].as_f64()
}

/// The spread of all clips' values; `None` where a clip has none.
fn spread(values: impl Iterator<Item = Option<f64>>) -> Option<Spread> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    let fold = |of: fn(f64, f64) -> f64| values.iter().copied().reduce(of);
    let round = |value: f64| (value * 1e3).round() / 1e3;
    Some(Spread {
        mean: round(values.iter().sum::<f64>() / values.len() as f64),
        least: round(fold(f64::min)?),
        most: round(fold(f64::max)?),
    })
}

fn gain(
    report: &Value,
    budget_ms: u32,
    content: Content,
    way: DetailSource,
    method: &str,
) -> Option<Gain> {
    let clips = clips(content);
    let over = |key: &'static str| {
        spread(clips.iter().map(|clip| {
            Some(figure(report, clip, method, key)? - figure(report, clip, REFERENCE, key)?)
        }))
    };
    Some(Gain {
        content,
        way,
        budget_ms,
        clips: clips.map(str::to_owned).into(),
        psnr_y_db: over("psnr_y_db")?,
        vmaf_neg: over("vmaf_neg"),
        kbps: spread(clips.iter().map(|clip| figure(report, clip, method, "anchor_kbps")))?,
    })
}

fn measured() -> Gains {
    let mut gains = Vec::new();
    for budget_ms in BUDGETS_MS {
        let path = root().join(format!("lab/results/figures/budget-{budget_ms}.json"));
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let report: Value = serde_json::from_str(&text).unwrap();
        for content in Content::ALL {
            gains.extend(
                WAYS.iter()
                    .filter_map(|&(way, method)| gain(&report, budget_ms, content, way, method)),
            );
        }
    }
    Gains { command: COMMAND.to_owned(), measured: MEASURED.to_owned(), gains }
}

#[test]
fn what_plans_say_of_gains_is_what_eval_measured() {
    let path = root().join("windlass/plan/gains.json");
    let made = serde_json::to_string_pretty(&measured()).unwrap() + "\n";
    windlass_files::hold(path, made);
}
