//! The figures, as a table for people or as one JSON object.

use std::fmt::Write as _;

use serde::Serialize;

use crate::eval::report::Machine;

/// What the rows of one condition share.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    /// Name of the clip.
    pub clip: &'a str,
    /// Bit rate of its low layer.
    pub uplink_kbps: Option<u32>,
    /// `sr` or `original`.
    pub detail: &'static str,
    /// Anchors per second.
    pub rate: f64,
    /// Size of HR.
    pub size: (usize, usize),
}

/// One codec at one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The codec.
    pub codec: &'static str,
    /// Quality, quantiser, bytes or share lost.
    pub setting: f64,
    /// Anchors coded.
    pub anchors: usize,
    /// Mean bytes of an anchor.
    pub bytes: f64,
    /// PSNR of the detail, or with loss of the pictures shown.
    pub psnr_y_db: f64,
    /// Mean processor time to code one.
    pub encode_ms: Option<f64>,
    /// Mean processor time to decode one.
    pub decode_ms: Option<f64>,
    /// Bytes of JPEG at this quality over these.
    pub x_jpeg: Option<f64>,
    /// Processor time of encoding all frames over that of the anchors.
    pub x_reencode: Option<f64>,
    /// Mean encodes of an anchor with a budget.
    pub encodes: Option<f64>,
    /// Share of anchors within +0/−5 % of their budget.
    pub budget_hit: Option<f64>,
    /// Least share of the budget that an anchor took.
    pub worst_fill: Option<f64>,
}

impl Point {
    /// A point without times.
    pub fn new(codec: &'static str, setting: f64, bytes: &[usize], psnr_y_db: f64) -> Point {
        Point {
            codec,
            setting,
            anchors: bytes.len(),
            bytes: bytes.iter().sum::<usize>() as f64 / bytes.len().max(1) as f64,
            psnr_y_db,
            encode_ms: None,
            decode_ms: None,
            x_jpeg: None,
            x_reencode: None,
            encodes: None,
            budget_hit: None,
            worst_fill: None,
        }
    }

    /// The row of a report.
    pub fn row(self, labels: &Labels<'_>) -> Row {
        Row {
            clip: labels.clip.to_owned(),
            size: format!("{}x{}", labels.size.0, labels.size.1),
            uplink_kbps: labels.uplink_kbps,
            detail: labels.detail,
            anchors_per_s: labels.rate,
            codec: self.codec,
            setting: self.setting,
            anchors: self.anchors,
            bytes: self.bytes,
            psnr_y_db: self.psnr_y_db,
            encode_ms: self.encode_ms,
            decode_ms: self.decode_ms,
            x_jpeg: self.x_jpeg,
            x_reencode: self.x_reencode,
            encodes: self.encodes,
            budget_hit: self.budget_hit,
            worst_fill: self.worst_fill,
        }
    }
}

/// One row: see [`Labels`] and [`Point`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Row {
    pub clip: String,
    pub size: String,
    pub uplink_kbps: Option<u32>,
    pub detail: &'static str,
    pub anchors_per_s: f64,
    pub codec: &'static str,
    pub setting: f64,
    pub anchors: usize,
    pub bytes: f64,
    pub psnr_y_db: f64,
    pub encode_ms: Option<f64>,
    pub decode_ms: Option<f64>,
    pub x_jpeg: Option<f64>,
    pub x_reencode: Option<f64>,
    pub encodes: Option<f64>,
    pub budget_hit: Option<f64>,
    pub worst_fill: Option<f64>,
}

/// Everything that one run of the command found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// `bench anchors`.
    pub command: &'static str,
    /// Where it ran.
    pub machine: Machine,
    /// By clip, uplink, detail, rate, codec and setting.
    pub rows: Vec<Row>,
}

impl Report {
    /// The report as one line of JSON.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// The report as a table, one block for each condition.
    pub fn table(&self) -> String {
        let Machine { cpu, threads, platform } = &self.machine;
        let mut out = format!("{cpu}, {threads} threads, {platform}; one thread, processor time\n");
        let mut block = None;
        for row in &self.rows {
            let condition = (&row.clip, row.uplink_kbps, row.detail, row.anchors_per_s.to_bits());
            if block != Some(condition) {
                block = Some(condition);
                heading(&mut out, row);
            }
            line(&mut out, row);
        }
        out
    }
}

fn heading(out: &mut String, row: &Row) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "\n{} · {} · low layer {} kbit/s · {:.2} anchors/s of {}",
        row.clip,
        row.size,
        row.uplink_kbps.map_or_else(|| "–".into(), |k| k.to_string()),
        row.anchors_per_s,
        row.detail
    );
    let _ = writeln!(
        out,
        "{:<28} {:>8} {:>9} {:>8} {:>9} {:>9} {:>7} {:>10} {:>7} {:>6} {:>6}",
        "codec",
        "setting",
        "bytes",
        "psnr dB",
        "enc ms",
        "dec ms",
        "x jpeg",
        "x reencode",
        "encodes",
        "hit",
        "worst"
    );
}

fn line(out: &mut String, row: &Row) {
    let _ = writeln!(
        out,
        "{:<28} {:>8} {:>9.0} {:>8.2} {:>9} {:>9} {:>7} {:>10} {:>7} {:>6} {:>6}",
        row.codec,
        row.setting,
        row.bytes,
        row.psnr_y_db,
        or_dash(row.encode_ms),
        or_dash(row.decode_ms),
        or_dash(row.x_jpeg),
        or_dash(row.x_reencode),
        or_dash(row.encodes),
        or_dash(row.budget_hit),
        or_dash(row.worst_fill),
    );
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |value| format!("{value:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_keys_that_the_design_promises() {
        let labels = Labels {
            clip: "a.mp4",
            uplink_kbps: Some(150),
            detail: "sr",
            rate: 2.0,
            size: (640, 360),
        };
        let point = Point {
            encode_ms: Some(2.0),
            decode_ms: Some(1.0),
            x_reencode: Some(90.0),
            ..Point::new("jpeg", 75.0, &[1000, 2000], 40.0)
        };
        let report = Report {
            command: "bench anchors",
            machine: Machine { cpu: "a cpu".into(), threads: 2, platform: "linux".into() },
            rows: vec![point.row(&labels)],
        };
        let value: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        let row = &value["rows"][0];
        for (key, expected) in [
            ("encode_ms", 2.0),
            ("decode_ms", 1.0),
            ("bytes", 1500.0),
            ("psnr_y_db", 40.0),
            ("x_reencode", 90.0),
        ] {
            assert_eq!(row[key], expected, "{key}");
        }
        assert_eq!(row["codec"], "jpeg");
        assert!(report.table().contains("low layer 150 kbit/s"));
    }
}
