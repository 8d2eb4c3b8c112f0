//! The report as tables for people.

use std::fmt::Write as _;

use super::bd::Difference;
use super::decay::Bucket;
use super::report::Report;
use super::row::Row;
use super::rungs::Rung;

// Writing to a String cannot fail.
impl Report {
    /// The report as text. It has one block for each clip and uplink: a line for each method, then the decay of those
    /// with anchors. In a sweep, the methods against the reference follow.
    pub(crate) fn table(&self) -> String {
        let mut out = String::new();
        for block in self.rows.chunk_by(|a, b| (&a.clip, a.uplink_kbps) == (&b.clip, b.uplink_kbps))
        {
            if !out.is_empty() {
                out.push('\n');
            }
            heading(&mut out, &block[0]);
            let width = names(block).map(|name| name.chars().count()).max().unwrap_or(0).max(13);
            columns(&mut out, width);
            for (row, name) in block.iter().zip(names(block)) {
                line(&mut out, width, row, &name);
            }
            decays(&mut out, width, block);
        }
        between(&mut out, &self.rungs);
        differences(&mut out, &self.bd);
        out
    }
}

/// Names of a block's rows: the method, and the way of making anchors where there are several.
fn names(block: &[Row]) -> impl Iterator<Item = String> {
    let mut keys = block.iter().filter_map(|row| row.key.as_ref());
    let first = keys.next();
    let several = keys.any(|key| Some(key) != first);
    block.iter().map(move |row| match &row.key {
        Some(key) if several => format!("{} {}", row.method, key.name()),
        _ => row.method.clone(),
    })
}

fn heading(out: &mut String, row: &Row) {
    let _ = writeln!(
        out,
        "{} · {} · {:.0} fps · {} frames · uplink {} kbit/s",
        row.clip, row.size, row.fps, row.frames, row.uplink_kbps
    );
}

fn columns(out: &mut String, width: usize) {
    for line in [
        [
            "method", "PSNR-Y", "p5", "worst", "SSIM", "VMAF", "p5", "NEG", "p5", "video",
            "anchors", "total", "number", "bytes", "SR", "encode", "decode", "rebuild", "infer",
            "code",
        ],
        [
            "", "dB", "dB", "dB", "", "", "", "", "", "kbit/s", "kbit/s", "kbit/s", "", "", "%",
            "ms", "ms", "ms", "ms", "ms",
        ],
    ] {
        let [name, psnr, psnr5, worst, ssim, vmaf, vmaf5, neg, neg5, rest @ ..] = line;
        let _ = write!(
            out,
            "{name:<width$} {psnr:>6} {psnr5:>6} {worst:>6} {ssim:>6} {vmaf:>5} {vmaf5:>5} {neg:>5} {neg5:>5}"
        );
        for column in rest {
            let _ = write!(out, " {column:>7}");
        }
        out.push('\n');
    }
}

fn line(out: &mut String, width: usize, row: &Row, name: &str) {
    let or_dash =
        |v: Option<f64>, digits: usize| v.map_or("–".into(), |v| format!("{v:.digits$}"));
    let (q, t) = (&row.quality, &row.times);
    let _ = write!(
        out,
        "{name:<width$} {:>6.2} {:>6.2} {:>+6.2} {:>6} {:>5} {:>5} {:>5} {:>5}",
        q.psnr_y_db,
        q.psnr_y_p5_db,
        q.worst_vs_bicubic_db,
        or_dash(q.ssim, 4),
        or_dash(q.vmaf, 1),
        or_dash(q.vmaf_p5, 1),
        or_dash(q.vmaf_neg, 1),
        or_dash(q.vmaf_neg_p5, 1),
    );
    let _ = writeln!(
        out,
        " {:>7.0} {:>7.0} {:>7.0} {:>7} {:>7} {:>7.1} {:>7} {:>7} {:>7} {:>7} {:>7}",
        row.video_kbps,
        row.anchor_kbps,
        row.total_kbps,
        row.anchors,
        row.anchor_bytes,
        100.0 * row.sr_share,
        or_dash(t.encode_ms, 1),
        or_dash(t.decode_ms, 1),
        or_dash(t.reconstruct_ms, 1),
        or_dash(t.infer_ms, 1),
        or_dash(t.anchor_encode_ms, 1),
    );
}

/// Adds the gain over Lanczos and VMAF by distance from the last anchor.
fn decays(out: &mut String, width: usize, block: &[Row]) {
    let mut buckets: Vec<&Bucket> = block.iter().flat_map(|row| &row.decay).collect();
    buckets.sort_by_key(|bucket| bucket.from_frames);
    buckets.dedup_by_key(|bucket| bucket.from_frames);
    if buckets.is_empty() {
        return;
    }
    let _ = write!(out, "{:<width$}", "decay");
    for bucket in &buckets {
        let _ = write!(out, " {:>12}", bucket.name());
    }
    let _ = writeln!(out, "   frames since the anchor: dB over Lanczos, VMAF");
    for (row, name) in block.iter().zip(names(block)).filter(|(row, _)| !row.decay.is_empty()) {
        let _ = write!(out, "{name:<width$}");
        for bucket in &buckets {
            let found = row.decay.iter().find(|b| b.from_frames == bucket.from_frames);
            let cell = found.map_or("–".to_owned(), |b| {
                let vmaf = b.vmaf.map_or("–".to_owned(), |vmaf| format!("{vmaf:.1}"));
                format!("{:+.2} {vmaf:>5}", b.gain_db)
            });
            let _ = write!(out, " {cell:>12}");
        }
        out.push('\n');
    }
}

/// Adds one line for each method between two rungs.
fn between(out: &mut String, rungs: &[Rung]) {
    if rungs.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n{:<28} {:<18} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "between h and f", "method", "kbit/s", "% of f", "PSNR-Y", "VMAF", "gap %", "gap dB %"
    );
    let or_dash = |v: Option<f64>| v.map_or("–".to_owned(), |v| format!("{v:.1}"));
    for rung in rungs {
        let clip: String = rung.clip.chars().take(28).collect();
        let _ = writeln!(
            out,
            "{clip:<28} {:<18} {:>8.0} {:>8.1} {:>8.2} {:>8} {:>8} {:>8}",
            rung.method,
            rung.total_kbps,
            rung.full_percent,
            rung.psnr_y_db,
            or_dash(rung.vmaf),
            or_dash(rung.gap_closed_percent),
            or_dash(rung.gap_closed_psnr_percent),
        );
    }
}

/// Adds one line for each clip, method and way of making anchors, with a pair of columns for each metric.
fn differences(out: &mut String, all: &[Difference]) {
    let Some(first) = all.first() else { return };
    let mut metrics: Vec<&str> = Vec::new();
    for one in all {
        if !metrics.contains(&one.metric) {
            metrics.push(one.metric);
        }
    }
    let _ = writeln!(
        out,
        "\nBjøntegaard against {}: bit rate at equal quality in %, quality at equal bit rate",
        first.reference
    );
    let _ = write!(out, "{:<28} {:<26} {:<14}", "clip", "method", "anchors");
    for metric in &metrics {
        let _ = write!(out, " {metric:>17}");
    }
    out.push('\n');
    let row = |d: &Difference| (d.clip.clone(), d.method.clone(), d.anchors.clone());
    let mut seen: Vec<_> = Vec::new();
    for one in all {
        if seen.contains(&row(one)) {
            continue;
        }
        seen.push(row(one));
        let clip: String = one.clip.chars().take(28).collect();
        let _ = write!(out, "{clip:<28} {:<26} {:<14}", one.method, one.anchors);
        for metric in &metrics {
            let found = all.iter().find(|d| d.metric == *metric && row(d) == row(one));
            let cell = |v: Option<f64>, unit: &str| {
                v.map_or("–".to_owned(), |v| format!("{v:+.1}{unit}"))
            };
            let rate = cell(found.and_then(|d| d.bd_rate_percent), " %");
            let quality = found.and_then(|d| d.bd_quality);
            let quality = quality.map_or("–".to_owned(), |v| format!("{v:+.2}"));
            let _ = write!(out, " {rate:>10} {quality:>6}");
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::report::{Machine, Settings};
    use crate::eval::row::sample;

    fn report() -> Report {
        let mut hybrid = sample("d13.mp4", "hybrid", 150, 33.456);
        hybrid.decay.push(Bucket {
            from_frames: 4,
            to_frames: Some(7),
            frames: 12,
            psnr_y_db: 33.0,
            gain_db: 0.625,
            vmaf: Some(80.0),
            vmaf_neg: None,
        });
        let rows = vec![
            hybrid,
            sample("d13.mp4", "lanczos", 150, 32.0),
            sample("d13.mp4", "lanczos", 300, 34.0),
        ];
        Report {
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
            rows,
            rungs: Vec::new(),
            bd: vec![Difference {
                clip: "d13.mp4".into(),
                method: "hybrid".into(),
                anchors: "best".into(),
                metric: "vmaf",
                reference: "lanczos".into(),
                bd_rate_percent: Some(-12.34),
                bd_quality: None,
            }],
        }
    }

    #[test]
    fn the_table_has_a_heading_for_each_clip_and_uplink() {
        let table = report().table();
        assert_eq!(table.matches("d13.mp4 · 640x360").count(), 2);
        assert!(table.contains("hybrid") && table.contains("33.46") && table.contains('–'));
    }

    #[test]
    fn decay_and_bd_rate_follow_the_rows() {
        let table = report().table();
        assert!(table.contains("4–7") && table.contains("+0.62  80.0"), "{table}");
        assert!(table.contains("-12.3 %"), "{table}");
    }

    #[test]
    fn ways_of_making_anchors_are_named_where_there_are_several() {
        let mut report = report();
        assert!(!report.table().contains("q85"));
        let mut other = report.rows[0].clone();
        other.key.as_mut().unwrap().anchor_quality = Some(60);
        report.rows.insert(1, other);
        let table = report.table();
        assert!(table.contains("hybrid 0.033 q85") && table.contains("hybrid 0.033 q60"));
    }
}
