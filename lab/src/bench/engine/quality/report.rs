//! The report: Markdown for people and pages, or one JSON object.

use std::fmt::Write as _;

use serde::Serialize;

use super::row::{Gain, Plain, Row};
use crate::eval::report::Machine;

/// All results of one run of the command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Report {
    /// The command: `bench engine --quality`.
    pub command: &'static str,
    /// The machine that the bench ran on.
    pub machine: Machine,
    /// Seconds of each clip.
    pub clip_seconds: f64,
    /// Number of passes whose median the times are.
    pub passes: u32,
    /// The rows, one for each network.
    pub rows: Vec<Row>,
    /// The methods that need no network, by scale and method.
    pub plain: Vec<Plain>,
}

impl Report {
    /// The report as Markdown tables.
    pub(super) fn markdown(&self) -> String {
        let Machine { cpu, threads, platform } = &self.machine;
        let seconds = self.clip_seconds;
        let passes = match self.passes {
            1 => "one pass".to_owned(),
            passes => format!("the median of {passes} passes"),
        };
        let mut out = format!(
            "{cpu}, {threads} threads, {platform}. ms: CPU time of one thread for a low picture of that size, \
             {passes}; share: of what the instruction set does in registers alone, measured in the same passes. \
             Clips: the first {seconds} s, every frame, by name and kbit/s of the low layer: PSNR-Y over bicubic / over Lanczos \
             in dB; VMAF / VMAF-NEG over lanczos@0.3.\n\n"
        );
        let calls = self.calls();
        let fixed = ["network", "MAC/px", "LR size", "number", "ms", "GFLOP/s", "share"];
        head(&mut out, fixed.iter().map(ToString::to_string).chain(calls.iter().map(call)));
        for row in &self.rows {
            let cells = [
                format!("`{}`{}", row.network, if row.twin { " ¹" } else { "" }),
                grouped(row.macs),
                row.input.replace('x', "×"),
                row.number.to_owned(),
                format!("{:.2}", row.frame_ms),
                format!("{:.0}", row.gflops),
                format!("{:.0} %", 100.0 * row.peak_share),
            ];
            let gains = calls.iter().map(|call| cell(&row.quality, call, gain));
            line(&mut out, cells.into_iter().chain(gains));
        }
        if self.rows.iter().any(|row| row.twin) {
            out.push_str("\n¹ starts from what a viewer without anchors sees.\n");
        }
        out.push_str("\nWhat that is over: PSNR-Y in dB; VMAF / VMAF-NEG.\n\n");
        let fixed = ["method", "scale"].iter().map(ToString::to_string);
        head(&mut out, fixed.chain(calls.iter().map(call)));
        for plain in &self.plain {
            let cells = [plain.method.clone(), format!("×{}", plain.scale)];
            let found = calls.iter().map(|call| cell(&plain.quality, call, absolute));
            line(&mut out, cells.into_iter().chain(found));
        }
        let all = self.plain.iter().flat_map(|plain| &plain.quality);
        if all.clone().any(|gain| gain.vmaf.is_none()) {
            out.push_str(
                "\nVMAF was not measured: no ffmpeg with libvmaf was found (name one with --ffmpeg or WINDLASS_FFMPEG).\n",
            );
        }
        out
    }

    /// All clips with their uplinks, in the order in which they were played.
    fn calls(&self) -> Vec<(&str, u32)> {
        let mut calls = Vec::new();
        for gain in self.plain.iter().flat_map(|plain| &plain.quality) {
            let call = (gain.clip.as_str(), gain.uplink_kbps);
            if !calls.contains(&call) {
                calls.push(call);
            }
        }
        calls
    }
}

fn call((clip, kbps): &(&str, u32)) -> String {
    format!("{clip}, {kbps}")
}

fn cell(gains: &[Gain], (clip, kbps): &(&str, u32), show: fn(&Gain) -> String) -> String {
    let found = gains.iter().find(|gain| (gain.clip.as_str(), gain.uplink_kbps) == (*clip, *kbps));
    found.map_or_else(|| "–".to_owned(), show)
}

fn gain(gain: &Gain) -> String {
    let vmaf = gain.over_sharpened_vmaf.zip(gain.over_sharpened_vmaf_neg);
    let vmaf = vmaf.map_or_else(String::new, |(vmaf, neg)| format!("; {vmaf:+.1} / {neg:+.1}"));
    format!("{:+.2} / {:+.2}{vmaf}", gain.over_bicubic_db, gain.over_lanczos_db)
}

fn absolute(gain: &Gain) -> String {
    let vmaf = gain.vmaf.zip(gain.vmaf_neg);
    let vmaf = vmaf.map_or_else(String::new, |(vmaf, neg)| format!("; {vmaf:.1} / {neg:.1}"));
    format!("{:.2}{vmaf}", gain.psnr_y_db)
}

fn head(out: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.collect();
    let count = cells.len();
    line(out, cells.into_iter());
    let _ = writeln!(out, "|{}", " --- |".repeat(count));
}

fn line(out: &mut String, cells: impl Iterator<Item = String>) {
    out.push('|');
    for cell in cells {
        // A bar would end the cell. Writing to a string does not fail.
        let _ = write!(out, " {} |", cell.replace('|', "/"));
    }
    out.push('\n');
}

/// A number with groups of three digits, as `7,632`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::output::json;
    use windlass_sr::{Architecture, Simd};

    use super::super::row::{gains, tests::scored};
    use super::*;
    use crate::bench::engine::args::Case;
    use crate::bench::engine::measure::{SwapTimes, Times};
    use crate::bench::engine::report::Row as Speed;
    use crate::eval::frames::Size;

    fn report() -> Report {
        let shape = Architecture::chain(2, 16, 5);
        let case = Case { network: shape, size: Size::new(320, 180), threads: 1 };
        let times = [Times { cpu_ms: 5.0, wall_ms: 5.0 }];
        let swap = SwapTimes { first_ms: 0.5, again_ms: 0.1 };
        let speed = Speed::new(&case, true, Simd::Scalar, &times, 351.7, swap, None);
        let plain = |method: &str| Plain {
            method: method.to_owned(),
            scale: 2,
            quality: gains(&scored(), method),
        };
        Report {
            command: "bench engine --quality",
            machine: Machine { cpu: "a cpu".into(), threads: 2, platform: "linux".into() },
            clip_seconds: 4.0,
            passes: 3,
            rows: vec![Row::new("xs-x2", shape, &speed, gains(&scored(), "xs-x2"))],
            plain: ["bicubic", "lanczos", "lanczos@0.3"].map(plain).into(),
        }
    }

    #[test]
    fn a_networks_line_has_cost_speed_and_gains_by_clip() {
        let text = report().markdown();
        let row = "| `xs-x2` | 7,632 | 320×180 | f32 | 5.00 | 176 | 50 % | +1.00 / +0.75; +1.0 / +1.0 | +1.00 / +0.75 |";
        assert!(text.contains(row), "{text}");
        assert!(
            text.contains("| a, 150 | b, 150 |")
                && text.contains("| bicubic | ×2 | 36.00; 72.0 / 70.5 | 37.00 |")
        );
        assert!(text.contains("VMAF was not measured"), "clip b has none: {text}");
        assert!(!text.contains('¹'));
    }

    #[test]
    fn json_has_the_keys_that_the_design_promises() {
        let value: serde_json::Value =
            serde_json::from_str(&json(&report(), None).unwrap()).unwrap();
        assert_eq!(value["command"], "bench engine --quality");
        let row = &value["rows"][0];
        for key in ["network", "model", "macs", "input", "frame_ms", "gflops", "peak_share"] {
            assert!(row.get(key).is_some(), "{key}");
        }
        for key in ["clip", "uplink_kbps", "psnr_y_db", "over_bicubic_db", "over_sharpened_vmaf"] {
            assert!(row["quality"][0].get(key).is_some(), "{key}");
        }
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 7_632, 1_234_567].map(grouped), ["0", "999", "7,632", "1,234,567"]);
    }
}
