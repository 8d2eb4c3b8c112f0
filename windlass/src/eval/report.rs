//! The figures, as a table for people or as one JSON object.

use std::fmt::Write as _;

use serde::Serialize;

/// One method on one clip at one uplink.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// File name of the clip.
    pub clip: String,
    /// Size of the HR picture, as `640x360`.
    pub size: String,
    /// Frames per second.
    pub fps: f64,
    /// Target of the low layer in kbit/s.
    pub uplink_kbps: u32,
    /// What made the HR pictures.
    pub method: &'static str,
    /// Mean PSNR of luma.
    pub psnr_y_db: f64,
    /// Mean SSIM of luma.
    pub ssim: Option<f64>,
    /// Mean VMAF (`vmaf_v0.6.1`).
    pub vmaf: Option<f64>,
    /// Mean VMAF (`vmaf_v0.6.1neg`).
    pub vmaf_neg: Option<f64>,
    /// Bit rate of the video.
    pub video_kbps: f64,
    /// Bit rate of the anchors; zero where the method has none.
    pub anchor_kbps: f64,
    /// Frames compared.
    pub frames: usize,
    /// Anchors used.
    pub anchors: usize,
    /// Mean processor time to decode a frame.
    pub decode_ms: f64,
    /// Mean processor time to make the HR picture of a decoded frame, anchors included.
    pub reconstruct_ms: f64,
    /// Mean processor time of one super-resolution.
    pub infer_ms: Option<f64>,
    /// Mean processor time to code one anchor.
    pub anchor_encode_ms: Option<f64>,
}

/// What the figures were measured on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// The processor's own name.
    pub cpu: String,
    /// Threads that run at once.
    pub threads: usize,
    /// Operating system and instruction set.
    pub platform: String,
}

impl Machine {
    /// This machine.
    pub fn here() -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Machine {
            cpu: name.map_or("unknown", |(_, name)| name).to_owned(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

/// Everything that one run of the command found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// `eval`.
    pub command: &'static str,
    /// Where it ran.
    pub machine: Machine,
    /// What the rows share.
    pub settings: Settings,
    /// One for each clip, uplink and method.
    pub rows: Vec<Row>,
}

/// The settings that every row was made with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// Share of frames that may become anchors.
    pub anchor_fraction: f64,
    /// Quality of their code, 1 to 100.
    pub anchor_quality: u8,
    /// How long after its frame an anchor can be used.
    pub delay_ms: u32,
    /// What runs the network.
    pub backend: String,
    /// Whether clips were encoded as shared screens.
    pub screen: bool,
}

impl Report {
    /// The report as one line of JSON.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// The report as a table, one block for each clip and uplink.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let mut block = None;
        for row in &self.rows {
            let this = (&row.clip, row.uplink_kbps);
            if block != Some(this) {
                if block.is_some() {
                    out.push('\n');
                }
                block = Some(this);
                heading(&mut out, row);
            }
            line(&mut out, row);
        }
        out
    }
}

// Writing to a String cannot fail.
fn heading(out: &mut String, row: &Row) {
    let _ = writeln!(
        out,
        "{} · {} · {:.0} fps · {} frames · uplink {} kbit/s",
        row.clip, row.size, row.fps, row.frames, row.uplink_kbps
    );
    let _ = writeln!(
        out,
        "{:<13} {:>7} {:>7} {:>6} {:>8} {:>6} {:>7} {:>7} {:>7} {:>9} {:>7} {:>7}",
        "method",
        "PSNR-Y",
        "SSIM",
        "VMAF",
        "VMAF-NEG",
        "video",
        "anchors",
        "number",
        "decode",
        "rebuild",
        "infer",
        "encode"
    );
    let _ = writeln!(
        out,
        "{:<13} {:>7} {:>7} {:>6} {:>8} {:>6} {:>7} {:>7} {:>7} {:>9} {:>7} {:>7}",
        "", "dB", "", "", "", "kbit/s", "kbit/s", "", "ms", "ms", "ms", "ms"
    );
}

fn line(out: &mut String, row: &Row) {
    let or_dash =
        |v: Option<f64>, digits: usize| v.map_or("–".into(), |v| format!("{v:.digits$}"));
    let _ = writeln!(
        out,
        "{:<13} {:>7.2} {:>7} {:>6} {:>8} {:>6.0} {:>7.0} {:>7} {:>7.1} {:>9.1} {:>7} {:>7}",
        row.method,
        row.psnr_y_db,
        or_dash(row.ssim, 4),
        or_dash(row.vmaf, 1),
        or_dash(row.vmaf_neg, 1),
        row.video_kbps,
        row.anchor_kbps,
        row.anchors,
        row.decode_ms,
        row.reconstruct_ms,
        or_dash(row.infer_ms, 1),
        or_dash(row.anchor_encode_ms, 1),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let row = Row {
            clip: "d13.mp4".into(),
            size: "640x360".into(),
            fps: 30.0,
            uplink_kbps: 150,
            method: "hybrid",
            psnr_y_db: 33.456,
            ssim: Some(0.91),
            vmaf: None,
            vmaf_neg: None,
            video_kbps: 151.2,
            anchor_kbps: 80.4,
            frames: 300,
            anchors: 60,
            decode_ms: 2.0,
            reconstruct_ms: 1.5,
            infer_ms: Some(6.0),
            anchor_encode_ms: Some(0.7),
        };
        let lower = Row { uplink_kbps: 300, ..row.clone() };
        Report {
            command: "eval",
            machine: Machine { cpu: "a cpu".into(), threads: 2, platform: "linux x86_64".into() },
            settings: Settings {
                anchor_fraction: 0.2,
                anchor_quality: 60,
                delay_ms: 130,
                backend: "cpu".into(),
                screen: false,
            },
            rows: vec![row.clone(), Row { method: "lanczos", infer_ms: None, ..row }, lower],
        }
    }

    #[test]
    fn the_table_has_a_heading_for_each_clip_and_uplink() {
        let table = report().table();
        assert_eq!(table.matches("d13.mp4 · 640x360").count(), 2);
        assert!(table.contains("hybrid") && table.contains("33.46") && table.contains('–'));
    }

    #[test]
    fn json_has_the_keys_that_the_design_promises_and_null_where_nothing_was_measured() {
        let value: serde_json::Value = serde_json::from_str(&report().json().unwrap()).unwrap();
        assert_eq!(value["command"], "eval");
        assert!(value["machine"].is_object());
        let row = &value["rows"][0];
        for key in [
            "clip",
            "method",
            "psnr_y_db",
            "ssim",
            "vmaf",
            "vmaf_neg",
            "video_kbps",
            "anchor_kbps",
            "frames",
        ] {
            assert!(row.get(key).is_some(), "{key}");
        }
        assert!(row["vmaf"].is_null());
    }
}
