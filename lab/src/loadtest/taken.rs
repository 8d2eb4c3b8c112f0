//! The resources that a run took of the server, for `windlass-lab calibrate`.

use anyhow::{Context, Result, ensure};

use super::run::Outcome;

/// Figures of a run. Rates are of all publishers or viewers together, unless they say otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Taken {
    /// Number of pictures a second of one publisher.
    pub fps: f64,
    /// Number of CPU cores that the server used.
    pub cores: f64,
    /// Memory of the server before the first client, in MiB.
    pub empty_mib: f64,
    /// Memory of the server in the last tenth of the time, in MiB.
    pub mib: f64,
    /// Number of RTP packets a second that publishers sent.
    pub packets_in: f64,
    /// Number of RTP packets a second that viewers got.
    pub packets_out: f64,
    /// Bitrate of the payloads that publishers sent, in kbit/s.
    pub sent_kbps: f64,
    /// Bitrate of the video that viewers got, in kbit/s.
    pub video_kbps: f64,
    /// Bitrate of the anchors that viewers got, in kbit/s.
    pub anchor_kbps: f64,
    /// Number of anchors a second that a viewer got of one publisher.
    pub anchors_per_s: f64,
    /// Mean length of an anchor, in bytes.
    pub anchor_bytes: f64,
    /// Share of chosen anchors that missed the budget, 0 to 1.
    pub missed: f64,
}

impl Outcome {
    /// The figures of the run.
    pub(crate) fn taken(&self) -> Result<Taken> {
        let row = &self.report.row;
        let (seconds, views) = (row.setup.seconds, row.setup.subscriptions as f64);
        ensure!(row.setup.failed == 0, "{} clients failed", row.setup.failed);
        ensure!(
            row.setup.publishers == row.setup.publishers_wanted && views > 0.0 && seconds > 0.0,
            "{} of {} publishers came",
            row.setup.publishers,
            row.setup.publishers_wanted
        );
        let anchors = &row.anchors;
        let kb = anchors.anchor_kbps / 8.0;
        let told = "this system does not tell what a process takes";
        Ok(Taken {
            fps: row.sent.pictures_sent as f64 / seconds / row.setup.publishers as f64,
            cores: row.cpu.cpu_cores.context(told)?,
            empty_mib: row.memory.resident_empty_mib.context(told)?,
            mib: row.memory.resident_last_mib.context(told)?,
            packets_in: row.sent.sent as f64 / seconds,
            packets_out: row.received.forwarded as f64 / seconds,
            sent_kbps: row.sent.sent_kbps,
            video_kbps: row.received.video_kbps,
            anchor_kbps: anchors.anchor_kbps,
            anchors_per_s: anchors.anchors_per_s / views,
            anchor_bytes: if anchors.anchors > 0 { 1e3 * kb / anchors.anchors_per_s } else { 0.0 },
            missed: anchors.budget_miss_rate.unwrap_or(1.0),
        })
    }
}
