//! The report: a table for people, or one JSON object.

use std::fmt::Write as _;
use std::num::NonZeroU32;

use serde::Serialize;

use super::best::Best;
use super::native::Facts;
use super::streams::Stream;
use crate::eval::report::Machine;

/// One way to decode one stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// `native` or `wasm`.
    pub target: &'static str,
    /// Name of the stream.
    pub stream: String,
    /// `decode` or `decode+info` (a visitor is shown blocks and residuals).
    pub variant: &'static str,
    /// Size of the stream's pictures, as `640x360`.
    pub size: String,
    /// Bitrate of the stream, in kbit/s.
    pub video_kbps: f64,
    /// Number of frames.
    pub frames: usize,
    /// Mean time of a frame, in ms.
    pub frame_ms: Option<f64>,
    /// The time that one frame in a hundred exceeds, in ms.
    pub p99_ms: Option<f64>,
    /// Mean time of a key frame, in ms.
    pub key_ms: Option<f64>,
    /// Time of the first frame after the module was loaded, in ms; `wasm` only.
    pub first_ms: Option<f64>,
    /// The longest time of the next frames (those of three seconds), in ms; `wasm` only.
    pub stall_ms: Option<f64>,
    /// Mean time of libvpx's native decoder with one thread in the same run, in ms.
    pub libvpx_ms: Option<f64>,
    /// How many times faster the decoder is than libvpx.
    pub x_libvpx: Option<f64>,
    /// How many times faster the variant is than `decode`.
    pub x_decode: Option<f64>,
}

impl Row {
    /// A row without figures.
    pub(super) fn new(
        target: &'static str,
        stream: &Stream,
        facts: &Facts,
        variant: &'static str,
    ) -> Row {
        Row {
            target,
            stream: stream.name.clone(),
            variant,
            size: format!("{}x{}", facts.size.0, facts.size.1),
            video_kbps: stream.kbps,
            frames: stream.chunks.len(),
            frame_ms: None,
            p99_ms: None,
            key_ms: None,
            first_ms: None,
            stall_ms: None,
            libvpx_ms: None,
            x_libvpx: None,
            x_decode: None,
        }
    }

    /// Fills in times; `keys` tells which frames are key frames.
    pub(super) fn time(&mut self, ours: &Best, libvpx: &Best, keys: &[bool]) {
        self.frame_ms = ours.mean();
        self.p99_ms = ours.p99();
        self.key_ms = ours.mean_of(keys);
        self.libvpx_ms = libvpx.mean();
        self.x_libvpx = ours.speed_up(libvpx);
    }
}

/// All results of one run of the command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Report {
    /// The command: `bench vp9`.
    pub command: &'static str,
    /// The machine that the bench ran on.
    pub machine: Machine,
    /// How often every decoder decoded every stream.
    pub passes: NonZeroU32,
    /// The rows, by stream, target and variant.
    pub rows: Vec<Row>,
}

impl Report {
    /// The report as a table, one block for each stream.
    pub(super) fn table(&self) -> String {
        let mut out = String::new();
        let Machine { cpu, threads, platform } = &self.machine;
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{cpu}, {threads} threads, {platform}; one thread, least of {} passes by frame",
            self.passes
        );
        let mut block = None;
        for row in &self.rows {
            if block != Some(&row.stream) {
                block = Some(&row.stream);
                heading(&mut out, row);
            }
            line(&mut out, row);
        }
        out
    }
}

fn heading(out: &mut String, row: &Row) {
    let _ = writeln!(
        out,
        "\n{} · {} · {:.0} kbit/s · {} frames · libvpx {} ms",
        row.stream,
        row.size,
        row.video_kbps,
        row.frames,
        or_dash(row.libvpx_ms, 3)
    );
    let _ = writeln!(
        out,
        "{:<7} {:<12} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}",
        "target",
        "variant",
        "frame ms",
        "p99 ms",
        "key ms",
        "x libvpx",
        "x decode",
        "first ms",
        "stall ms"
    );
}

fn line(out: &mut String, row: &Row) {
    let _ = writeln!(
        out,
        "{:<7} {:<12} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}",
        row.target,
        row.variant,
        or_dash(row.frame_ms, 3),
        or_dash(row.p99_ms, 3),
        or_dash(row.key_ms, 3),
        or_dash(row.x_libvpx, 2),
        or_dash(row.x_decode, 2),
        or_dash(row.first_ms, 1),
        or_dash(row.stall_ms, 1),
    );
}

fn or_dash(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".into(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::vp9::streams::tests::drawn;
    use crate::output::json;

    fn report() -> Report {
        let facts = Facts { size: (96, 64), keys: vec![true, false] };
        let (mut ours, mut libvpx) = (Best::default(), Best::default());
        ours.record_all(&[3.0, 1.0]);
        libvpx.record_all(&[4.0, 2.0]);
        let mut row = Row::new("native", &drawn(2), &facts, "decode");
        row.time(&ours, &libvpx, &facts.keys);
        Report {
            command: "bench vp9",
            machine: Machine { cpu: "a cpu".into(), threads: 2, platform: "linux x86_64".into() },
            passes: NonZeroU32::MIN,
            rows: vec![row.clone(), Row { variant: "decode+info", x_decode: Some(4.5), ..row }],
        }
    }

    #[test]
    fn the_table_has_a_heading_for_each_stream() {
        let table = report().table();
        assert_eq!(table.matches("drawn · 96x64").count(), 1);
        assert!(table.contains("libvpx 3.000 ms") && table.contains("1.50") && table.contains('–'));
    }

    #[test]
    fn json_has_the_keys_that_the_design_promises() {
        let value: serde_json::Value =
            serde_json::from_str(&json(&report(), None).unwrap()).unwrap();
        assert_eq!(value["command"], "bench vp9");
        assert!(value["machine"].is_object());
        let row = &value["rows"][1];
        for (key, expected) in
            [("frame_ms", 2.0), ("key_ms", 3.0), ("x_libvpx", 1.5), ("x_decode", 4.5)]
        {
            assert_eq!(row[key], expected, "{key}");
        }
        assert_eq!((&row["target"], &row["stream"]), (&"native".into(), &"drawn".into()));
        assert!(row["first_ms"].is_null());
    }
}
