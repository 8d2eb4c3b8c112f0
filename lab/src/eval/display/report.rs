//! The report of the comparison.

use std::fmt::Write as _;

use serde::Serialize;

use super::compare::{Comparison, Gap};
use super::ours::StillsFrom;
use super::row::Row;
use crate::eval::report::Machine;

/// All results of one run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The command that made the report.
    pub command: &'static str,
    /// The machine on which it ran.
    pub machine: Machine,
    /// The size shown.
    pub display: String,
    /// All rows, clip by clip.
    pub rows: Vec<Row>,
    /// Name of the network that ran on every picture of the product's side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_network: Option<String>,
    /// The two sides of every clip.
    pub comparisons: Vec<Comparison>,
    /// The gaps between the layers.
    pub gaps: Vec<Gap>,
}

impl Report {
    /// The report for people: the comparisons, then all rows.
    pub(super) fn table(&self) -> String {
        let or_dash =
            |v: Option<f64>, digits: usize| v.map_or("–".into(), |v| format!("{v:.digits$}"));
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "Windlass against plain VP9, sharpened or not, at {}, hull against hull\n\
             {:<16} {:<6} {:<12} {:<12} {:>10} {:>12}",
            self.display, "clip", "sizes", "stills from", "metric", "BD-rate %", "BD-quality"
        );
        for one in &self.comparisons {
            let _ = writeln!(
                out,
                "{:<16} {:<6} {:<12} {:<12} {:>10} {:>12}",
                one.clip,
                one.sizes,
                named(one.stills_from),
                one.metric,
                or_dash(one.bd_rate_percent, 1),
                or_dash(one.bd_quality, 2)
            );
        }
        let _ = writeln!(
            out,
            "\n{:<16} {:<12} {:>10} {:>10}   from q to h, both sharpened",
            "clip", "metric", "closed %", "% of h"
        );
        for gap in &self.gaps {
            let _ = writeln!(
                out,
                "{:<16} {:<12} {:>10.0} {:>10.0}",
                gap.clip, gap.metric, gap.closed_percent, gap.bits_percent
            );
        }
        let _ = writeln!(
            out,
            "\n{:<16} {:<9} {:>9} {:<17} {:>7} {:>7} {:>7} {:>6} {:>7} {:>6} {:>6} {:>7}",
            "clip",
            "side",
            "size",
            "shown by",
            "video",
            "stills",
            "total",
            "count",
            "PSNR-Y",
            "VMAF",
            "NEG",
            "SSIMU2"
        );
        for row in &self.rows {
            let q = &row.quality;
            let _ = writeln!(
                out,
                "{:<16} {:<9} {:>9} {:<10} {:>7.0} {:>7.0} {:>7.0} {:>6} {:>7.2} {:>6} {:>6} {:>7.1}",
                row.clip,
                format!("{:?}", row.side).to_lowercase(),
                row.size,
                match row.stills_from {
                    Some(from) => format!("stills, {}", named(from)),
                    None => format!("{:?}", row.shown_by).to_lowercase(),
                },
                row.video_kbps,
                row.still_kbps,
                row.total_kbps,
                row.stills,
                q.psnr_y_db,
                or_dash(q.vmaf, 1),
                or_dash(q.vmaf_neg, 1),
                q.ssimulacra2
            );
        }
        out
    }
}

fn named(from: StillsFrom) -> &'static str {
    match from {
        StillsFrom::F => "f",
        StillsFrom::Publisher => "publisher",
    }
}
