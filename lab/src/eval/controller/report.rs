//! The comparison as a table for people and as one JSON object.

use std::fmt::Write as _;

use serde::Serialize;

use super::summary::Line;
use crate::eval::report::Machine;

/// Number of fixed settings that the table shows for each cell, besides the product's plain one.
const SHOWN: usize = 3;

/// All results of a run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The command: `eval`.
    pub command: &'static str,
    /// The machine that the run was on.
    pub machine: Machine,
    /// The settings that all lines share.
    pub settings: Settings,
    /// The lines of the report.
    pub rows: Vec<Line>,
}

/// The settings that all lines were made with.
#[derive(Debug, Serialize)]
pub(super) struct Settings {
    /// Always `true`: the key tells this report from that of the methods.
    pub controller: bool,
    /// How long knobs stay, in ms.
    pub interval_ms: u32,
    /// Price of the whole uplink, in VMAF (λ).
    pub lambda: f64,
    /// The fixed setting that is best over all scenes and uplinks.
    pub best_fixed: Option<String>,
}

impl Report {
    // Writing to a String cannot fail.
    /// The table: a block for each scene and uplink.
    pub(super) fn table(&self, plain: &str) -> String {
        let mut out = String::new();
        let cells =
            self.rows.chunk_by(|a, b| (&a.clip, &a.uplink_kbps) == (&b.clip, &b.uplink_kbps));
        for cell in cells {
            let _ = writeln!(out, "{} · uplink {} kbit/s", cell[0].clip, cell[0].uplink_kbps);
            let _ = writeln!(
                out,
                "{:<12} {:>6} {:>6} {:>6} {:>7}",
                "method", "VMAF", "NEG", "PSNR-Y", "kbit/s"
            );
            for (n, line) in cell.iter().enumerate() {
                if n < 3 + SHOWN || line.method == plain {
                    let _ = writeln!(out, "{}", row(line));
                }
            }
            let _ = writeln!(out, "{}\n", verdict(&cell[0]));
        }
        if let Some(best) = &self.settings.best_fixed {
            let _ = writeln!(out, "best fixed setting over all of these: {best}");
        }
        out
    }
}

fn or_dash(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |v| format!("{v:.digits$}"))
}

fn row(line: &Line) -> String {
    format!(
        "{:<12} {:>6} {:>6} {:>6.2} {:>7.1}",
        line.method,
        or_dash(line.vmaf, 2),
        or_dash(line.vmaf_neg, 2),
        line.psnr_y_db,
        line.total_kbps
    )
}

fn verdict(line: &Line) -> String {
    let Some(v) = &line.controller else { return String::new() };
    format!(
        "  controller: {} % of the exhaustive gain ({} % of that by change, played), {:+.2} over the best \
         fixed ({}), {} intervals to converge, \
         {} % of bits saved at equal quality ({} % against {}), {:.2} % of a core",
        or_dash(v.gain_share_percent, 0),
        or_dash(v.by_change_share_percent, 0),
        v.over_best_fixed,
        v.best_fixed,
        or_dash(v.intervals_to_converge, 1),
        or_dash(v.saving_percent, 0),
        or_dash(v.saving_own_percent, 0),
        v.best_fixed,
        v.core_percent
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::controller::summary::Verdict;
    use crate::output::json;

    fn report() -> Report {
        let verdict = Verdict {
            core_percent: 0.4,
            intervals_to_converge: Some(2.5),
            gain_share_percent: Some(91.0),
            by_change_share_percent: None,
            over_best_fixed: -0.25,
            best_fixed: "f/1".into(),
            saving_percent: Some(20.0),
            saving_own_percent: None,
            intervals: Vec::new(),
        };
        let line = |method: &str, controller| Line {
            clip: "d13".into(),
            uplink_kbps: "150".into(),
            method: method.into(),
            vmaf: Some(80.0),
            vmaf_neg: None,
            psnr_y_db: 37.0,
            total_kbps: 149.0,
            controller,
        };
        Report {
            command: "eval",
            machine: Machine { cpu: "a cpu".into(), threads: 2, platform: "linux".into() },
            settings: Settings {
                controller: true,
                interval_ms: 1000,
                lambda: 1.0,
                best_fixed: Some("h/1".into()),
            },
            rows: vec![line("controller", Some(verdict)), line("exhaustive", None)],
        }
    }

    #[test]
    fn json_rows_have_the_keys_of_other_reports_and_the_verdict_beside_them() {
        let value: serde_json::Value =
            serde_json::from_str(&json(&report(), None).unwrap()).unwrap();
        for key in ["clip", "method", "uplink_kbps", "vmaf", "psnr_y_db", "total_kbps"] {
            assert!(value["rows"][1].get(key).is_some(), "{key}");
        }
        assert_eq!(value["rows"][0]["gain_share_percent"], 91.0);
        assert!(value["rows"][1].get("gain_share_percent").is_none());
    }

    #[test]
    fn the_table_says_what_was_not_measured_by_a_dash() {
        let table = report().table("h/1");
        assert!(
            table.contains(
                "91 % of the exhaustive gain (– % of that by change, played), -0.25 over"
            )
        );
        assert!(table.contains("– % against f/1") && table.contains("best fixed setting"));
    }
}
