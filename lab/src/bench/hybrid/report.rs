//! The figures, as a table for people or as one JSON object.

use std::fmt::Write as _;

use serde::Serialize;

use super::args::Case;
use super::measure::{Late, Times};
use crate::eval::report::Machine;

/// A case, or the anchors of a case that come late.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// `360p-720p`, or `360p-720p, anchor 4 late`.
    pub case: String,
    /// Mean CPU time of a frame, anchors included; of late anchors, over these alone.
    pub frame_ms: Option<f64>,
    /// What one frame in a hundred exceeds.
    pub p99_ms: Option<f64>,
    /// Decoding the low layer alone.
    pub low_ms: Option<f64>,
    /// The longest frame after the first: that in which a late anchor came.
    pub max_ms: Option<f64>,
    /// Mean of libvpx with one thread, of pictures as large as HR, in the same run.
    pub libvpx_ms: Option<f64>,
    /// How many times faster than libvpx.
    pub x_libvpx: Option<f64>,
    /// Decoding the image of a late anchor, which is part of `frame_ms`.
    pub anchor_decode_ms: Option<f64>,
    /// What a late anchor costs, without decoding its image, in frames: the mean time to make all of an HR
    /// picture anew.
    pub anchor_frames: Option<f64>,
}

/// The row of a whole stream.
pub(super) fn steady(case: Case, times: &Times) -> Row {
    Row {
        case: case.name().into(),
        frame_ms: times.hybrid.mean(),
        p99_ms: times.hybrid.p99(),
        low_ms: times.low.mean(),
        max_ms: times.hybrid.max_after_first(),
        libvpx_ms: times.libvpx.mean(),
        x_libvpx: times.hybrid.speed_up(&times.libvpx),
        anchor_decode_ms: None,
        anchor_frames: None,
    }
}

/// The row of anchors that are `k` frames late.
pub(super) fn late(case: Case, k: usize, late: &Late, times: &Times) -> Row {
    let anew = times.anew.mean().zip(times.low.mean()).map(|(all, low)| all - low);
    let rest = late.anchor.mean().zip(late.image.mean()).map(|(all, image)| all - image);
    Row {
        case: format!("{}, anchor {k} late", case.name()),
        frame_ms: late.anchor.mean(),
        p99_ms: late.anchor.p99(),
        low_ms: None,
        max_ms: None,
        libvpx_ms: None,
        x_libvpx: None,
        anchor_decode_ms: late.image.mean(),
        anchor_frames: rest.zip(anew).map(|(rest, anew)| rest / anew),
    }
}

/// Everything that one run of the command found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Report {
    /// `bench hybrid`.
    pub command: &'static str,
    /// Where it ran.
    pub machine: Machine,
    /// By case; late anchors behind their case.
    pub rows: Vec<Row>,
}

impl Report {
    /// The report as a table.
    pub(super) fn table(&self) -> String {
        let mut out = String::new();
        let Machine { cpu, threads, platform } = &self.machine;
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{cpu}, {threads} threads, {platform}; one thread\n");
        let _ = writeln!(
            out,
            "{:<26} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8} {:>9} {:>9}",
            "case",
            "frame ms",
            "p99 ms",
            "most ms",
            "low ms",
            "libvpx ms",
            "x libvpx",
            "image ms",
            "in frames"
        );
        for row in &self.rows {
            let cell = |v: Option<f64>| v.map_or_else(|| "–".into(), |v| format!("{v:.2}"));
            let _ = writeln!(
                out,
                "{:<26} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8} {:>9} {:>9}",
                row.case,
                cell(row.frame_ms),
                cell(row.p99_ms),
                cell(row.max_ms),
                cell(row.low_ms),
                cell(row.libvpx_ms),
                cell(row.x_libvpx),
                cell(row.anchor_decode_ms),
                cell(row.anchor_frames),
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::json;

    #[test]
    fn json_has_the_keys_that_the_design_promises() {
        let mut times = Times::default();
        times.hybrid.record_all(&[3.0, 1.0]);
        times.anew.record_all(&[4.0, 4.0]);
        times.low.record_all(&[1.0, 1.0]);
        times.libvpx.record_all(&[6.0, 6.0]);
        let mut found = Late::default();
        found.anchor.record_all(&[7.0]);
        found.image.record_all(&[1.0]);
        let rows = vec![steady(Case::To720, &times), late(Case::To720, 4, &found, &times)];
        let machine = Machine { cpu: "a cpu".into(), threads: 2, platform: "linux x86_64".into() };
        let report = Report { command: "bench hybrid", machine, rows };
        let value: serde_json::Value = serde_json::from_str(&json(&report, None).unwrap()).unwrap();
        let row = &value["rows"][0];
        assert_eq!((&row["case"], &row["x_libvpx"]), (&"360p-720p".into(), &3.0.into()));
        assert_eq!((&row["frame_ms"], &row["p99_ms"]), (&2.0.into(), &3.0.into()));
        assert_eq!(value["rows"][1]["anchor_frames"], 2.0);
        assert_eq!(report.table().matches("360p-720p").count(), 2);
    }
}
