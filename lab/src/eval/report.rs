//! The results of one run as one JSON object. The table for people is in [`table`](super::table).

use serde::Serialize;

use super::bd::Difference;
use super::row::Row;
use super::rungs::Rung;

/// The machine that the figures were measured on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Machine {
    /// The CPU's own name.
    pub cpu: String,
    /// Number of threads that the CPU runs at once.
    pub threads: usize,
    /// Operating system and instruction set.
    pub platform: String,
}

impl Machine {
    /// This machine.
    pub(crate) fn here() -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Machine {
            cpu: name.map_or("unknown", |(_, name)| name).to_owned(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

/// All results of one run of the command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// The command: `eval`.
    pub command: &'static str,
    /// The machine that the run was on.
    pub machine: Machine,
    /// The settings that the rows share.
    pub settings: Settings,
    /// A row for each clip, uplink, method and way of making anchors; means over the clips at the end.
    pub rows: Vec<Row>,
    /// The methods between the rungs `h` and `f`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rungs: Vec<Rung>,
    /// The methods against the reference, in a sweep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bd: Vec<Difference>,
}

/// The settings that every row was made with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Settings {
    /// HR size over LR size.
    pub scale: usize,
    /// The source of the anchors' detail: `enhanced` or, with `--oracle`, `captured`.
    pub anchor_source: &'static str,
    /// Time from a frame's arrival until its anchor can be used, in ms.
    pub delay_ms: u32,
    /// Share of anchor messages that are lost, 0 to 1.
    pub anchor_loss: f64,
    /// Seed of the losses.
    pub seed: u64,
    /// Name of the backend that runs the network.
    pub backend: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::row::sample;
    use crate::output::json;

    #[test]
    fn json_has_the_keys_that_the_design_promises_and_null_where_nothing_was_measured() {
        let report = Report {
            command: "eval",
            machine: Machine { cpu: "a cpu".into(), threads: 2, platform: "linux x86_64".into() },
            settings: Settings {
                scale: 2,
                anchor_source: "enhanced",
                delay_ms: 130,
                anchor_loss: 0.0,
                seed: 1,
                backend: "cpu".into(),
            },
            rows: vec![
                sample("d13.mp4", "hybrid", 150, 37.0),
                sample("d13.mp4", "lanczos", 150, 36.0),
            ],
            rungs: Vec::new(),
            bd: Vec::new(),
        };
        let value: serde_json::Value = serde_json::from_str(&json(&report, None).unwrap()).unwrap();
        assert_eq!(value["command"], "eval");
        assert!(value["machine"].is_object() && value.get("bd").is_none());
        let row = &value["rows"][0];
        for key in [
            "clip",
            "method",
            "psnr_y_db",
            "psnr_y_p5_db",
            "ssim",
            "vmaf",
            "vmaf_p5",
            "vmaf_neg",
            "worst_vs_bicubic_db",
            "worst_vs_lanczos_db",
            "video_kbps",
            "anchor_kbps",
            "total_kbps",
            "anchor_bytes",
            "anchor_fraction",
            "anchor_quality",
            "frames",
            "decay",
            "encode_ms",
            "decode_ms",
            "reconstruct_ms",
        ] {
            assert!(row.get(key).is_some(), "{key}");
        }
        assert!(row["vmaf"].is_null() && value["rows"][1].get("anchor_quality").is_none());
    }
}
