//! A row of the report: one method on one clip at one uplink with one setting of anchors.

use serde::Serialize;

use super::decay::{self, Bucket};
use super::score::Scores;
use super::stats::{self, LOW_PERCENTILE, mean, percentile};

/// Name of the clip in rows that hold means over all clips.
pub(crate) const MEAN: &str = "mean";

/// The setting of anchors of a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(clippy::struct_field_names, reason = "they are keys of the report")]
pub(crate) struct AnchorKey {
    /// Share of frames that may be anchors, 0 to 1.
    pub anchor_fraction: f64,
    /// Quality of the anchors, 1 to 100, where one was given.
    pub anchor_quality: Option<u8>,
    /// Maximum size of each anchor in bytes, where one was given.
    pub anchor_budget_bytes: Option<usize>,
}

impl AnchorKey {
    /// The setting as text, `0.033 q85` or `0.033 1500B`.
    pub(crate) fn name(&self) -> String {
        match (self.anchor_quality, self.anchor_budget_bytes) {
            (_, Some(bytes)) => format!("{} {bytes}B", self.anchor_fraction),
            (Some(quality), None) => format!("{} q{quality}", self.anchor_fraction),
            (None, None) => String::new(),
        }
    }
}

/// The quality of a run of frames.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Quality {
    /// Mean PSNR of luma, in dB.
    pub psnr_y_db: f64,
    /// 5th percentile of the PSNR of luma over the frames, in dB.
    pub psnr_y_p5_db: f64,
    /// Mean SSIM of luma.
    pub ssim: Option<f64>,
    /// 5th percentile of the SSIM of luma.
    pub ssim_p5: Option<f64>,
    /// Mean VMAF (`vmaf_v0.6.1`).
    pub vmaf: Option<f64>,
    /// 5th percentile of VMAF.
    pub vmaf_p5: Option<f64>,
    /// Mean VMAF-NEG (`vmaf_v0.6.1neg`).
    pub vmaf_neg: Option<f64>,
    /// 5th percentile of VMAF-NEG.
    pub vmaf_neg_p5: Option<f64>,
    /// Least difference of a frame's PSNR from that of bicubic, in dB: the figure of the guard against drift.
    pub worst_vs_bicubic_db: f64,
    /// The frame with the least difference from bicubic.
    pub worst_vs_bicubic_frame: Option<usize>,
    /// Least difference of a frame's PSNR from that of Lanczos, in dB.
    pub worst_vs_lanczos_db: f64,
}

impl Quality {
    /// The quality from the scores of all frames, with those of bicubic and Lanczos (PSNR in dB).
    pub(crate) fn of(scores: &Scores, bicubic_db: &[f64], lanczos_db: &[f64]) -> Quality {
        let against =
            |base: &[f64]| stats::least(scores.psnr_y_db.iter().zip(base).map(|(a, b)| a - b));
        let average = |series: Option<&Vec<f64>>| series.and_then(|s| mean(s.iter().copied()));
        let low = |series: Option<&Vec<f64>>| series.and_then(|s| percentile(s, LOW_PERCENTILE));
        let psnr = Some(&scores.psnr_y_db);
        let (ssim, vmaf, neg) =
            (scores.ssim.as_ref(), scores.vmaf.as_ref(), scores.vmaf_neg.as_ref());
        let worst = against(bicubic_db);
        Quality {
            psnr_y_db: average(psnr).unwrap_or_default(),
            psnr_y_p5_db: low(psnr).unwrap_or_default(),
            ssim: average(ssim),
            ssim_p5: low(ssim),
            vmaf: average(vmaf),
            vmaf_p5: low(vmaf),
            vmaf_neg: average(neg),
            vmaf_neg_p5: low(neg),
            worst_vs_bicubic_db: worst.map_or(0.0, |(_, db)| db),
            worst_vs_bicubic_frame: worst.map(|(frame, _)| frame),
            worst_vs_lanczos_db: against(lanczos_db).map_or(0.0, |(_, db)| db),
        }
    }
}

/// Mean CPU times in milliseconds; `None` where nothing was measured, or times are not wanted.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[expect(clippy::struct_field_names, reason = "they are keys of the report")]
pub(crate) struct Times {
    /// Mean CPU time to encode a frame of the video, in ms.
    pub encode_ms: Option<f64>,
    /// Mean CPU time to decode a frame, in ms.
    pub decode_ms: Option<f64>,
    /// Mean CPU time to make the HR picture of a decoded frame, anchors included, in ms.
    pub reconstruct_ms: Option<f64>,
    /// Mean CPU time of one super-resolution, in ms.
    pub infer_ms: Option<f64>,
    /// Mean CPU time to encode one anchor, in ms.
    pub anchor_encode_ms: Option<f64>,
}

/// One method on one clip at one uplink.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    /// The clip's file name.
    pub clip: String,
    /// Size of the HR picture, as `640x360`.
    pub size: String,
    /// Frames per second.
    pub fps: f64,
    /// Target bitrate of the low layer, in kbit/s.
    pub uplink_kbps: u32,
    /// The method that made the HR pictures.
    pub method: String,
    /// How the method's anchors were made; `None` where it has none.
    #[serde(flatten)]
    pub key: Option<AnchorKey>,
    /// The quality of the pictures.
    #[serde(flatten)]
    pub quality: Quality,
    /// Bitrate of the video, in kbit/s.
    pub video_kbps: f64,
    /// Bitrate of the anchors in kbit/s; zero where the method has none.
    pub anchor_kbps: f64,
    /// Bitrate of video and anchors, in kbit/s.
    pub total_kbps: f64,
    /// Bitrate that the publisher sends for the method, in kbit/s.
    pub publisher_kbps: f64,
    /// Length of all anchors, in bytes.
    pub anchor_bytes: usize,
    /// Number of frames that were compared.
    pub frames: usize,
    /// Number of anchors that were used.
    pub anchors: usize,
    /// Number of anchors that were lost on their way.
    pub anchors_lost: usize,
    /// Low samples that went through the network, as a share of all.
    pub sr_share: f64,
    /// The CPU times of the method.
    #[serde(flatten)]
    pub times: Times,
    /// Quality by distance from the last anchor.
    pub decay: Vec<Bucket>,
}

impl Row {
    /// Whether two rows are of the same method, uplink and way of making anchors.
    fn matches(&self, other: &Row) -> bool {
        (self.uplink_kbps, &self.method, &self.key)
            == (other.uplink_kbps, &other.method, &other.key)
    }
}

/// One row for each method, uplink and way of making anchors that all clips have. It has means over the clips, sums
/// of frames, anchors and their bytes, and the worst difference of any clip.
pub(crate) fn means(rows: &[Row]) -> Vec<Row> {
    let mut clips: Vec<&str> = rows.iter().map(|row| row.clip.as_str()).collect();
    clips.dedup();
    if clips.len() < 2 {
        return Vec::new();
    }
    let first = rows.iter().filter(|row| row.clip == clips[0]);
    first
        .filter_map(|row| {
            let same: Vec<&Row> = rows.iter().filter(|other| other.matches(row)).collect();
            (same.len() == clips.len()).then(|| mean_of(&same))
        })
        .collect()
}

fn mean_of(rows: &[&Row]) -> Row {
    let some = |of: &dyn Fn(&Row) -> Option<f64>| -> Option<f64> {
        mean(rows.iter().map(|row| of(row)).collect::<Option<Vec<f64>>>()?)
    };
    let all = |of: &dyn Fn(&Row) -> f64| some(&|row| Some(of(row))).unwrap_or_default();
    let least = |of: &dyn Fn(&Row) -> f64| rows.iter().map(|r| of(r)).fold(f64::INFINITY, f64::min);
    let sum = |of: &dyn Fn(&Row) -> usize| rows.iter().map(|row| of(row)).sum::<usize>();
    let tables: Vec<&[Bucket]> = rows.iter().map(|row| row.decay.as_slice()).collect();
    Row {
        clip: MEAN.to_owned(),
        size: format!("{} clips", rows.len()),
        fps: all(&|row| row.fps),
        uplink_kbps: rows[0].uplink_kbps,
        method: rows[0].method.clone(),
        key: rows[0].key.clone(),
        quality: Quality {
            psnr_y_db: all(&|row| row.quality.psnr_y_db),
            psnr_y_p5_db: all(&|row| row.quality.psnr_y_p5_db),
            ssim: some(&|row| row.quality.ssim),
            ssim_p5: some(&|row| row.quality.ssim_p5),
            vmaf: some(&|row| row.quality.vmaf),
            vmaf_p5: some(&|row| row.quality.vmaf_p5),
            vmaf_neg: some(&|row| row.quality.vmaf_neg),
            vmaf_neg_p5: some(&|row| row.quality.vmaf_neg_p5),
            worst_vs_bicubic_db: least(&|row| row.quality.worst_vs_bicubic_db),
            worst_vs_bicubic_frame: None,
            worst_vs_lanczos_db: least(&|row| row.quality.worst_vs_lanczos_db),
        },
        video_kbps: all(&|row| row.video_kbps),
        anchor_kbps: all(&|row| row.anchor_kbps),
        total_kbps: all(&|row| row.total_kbps),
        publisher_kbps: all(&|row| row.publisher_kbps),
        anchor_bytes: sum(&|row| row.anchor_bytes),
        frames: sum(&|row| row.frames),
        anchors: sum(&|row| row.anchors),
        anchors_lost: sum(&|row| row.anchors_lost),
        sr_share: all(&|row| row.sr_share),
        times: Times {
            encode_ms: some(&|row| row.times.encode_ms),
            decode_ms: some(&|row| row.times.decode_ms),
            reconstruct_ms: some(&|row| row.times.reconstruct_ms),
            infer_ms: some(&|row| row.times.infer_ms),
            anchor_encode_ms: some(&|row| row.times.anchor_encode_ms),
        },
        decay: decay::pooled(&tables),
    }
}

/// A row with some figures, for the tests of what reads rows.
#[cfg(test)]
pub(crate) fn sample(clip: &str, method: &str, uplink_kbps: u32, psnr_y_db: f64) -> Row {
    Row {
        clip: clip.into(),
        size: "640x360".into(),
        fps: 30.0,
        uplink_kbps,
        method: method.into(),
        key: (method == "hybrid").then_some(AnchorKey {
            anchor_fraction: 0.033,
            anchor_quality: Some(85),
            anchor_budget_bytes: None,
        }),
        quality: Quality { psnr_y_db, ssim: Some(0.9), ..Quality::default() },
        video_kbps: f64::from(uplink_kbps),
        anchor_kbps: 0.0,
        total_kbps: f64::from(uplink_kbps),
        publisher_kbps: f64::from(uplink_kbps),
        anchor_bytes: 100,
        frames: 150,
        anchors: 5,
        anchors_lost: 0,
        sr_share: 0.0,
        times: Times { decode_ms: Some(2.0), ..Times::default() },
        decay: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_has_means_percentiles_and_the_worst_frame() {
        let psnr: Vec<f64> = (0..=100).map(|n| 30.0 + f64::from(n) / 10.0).collect();
        let mut bicubic = vec![20.0; 101];
        bicubic[7] = 31.0;
        let scores = Scores { psnr_y_db: psnr, ..Scores::default() };
        let quality = Quality::of(&scores, &bicubic, &[30.0; 101]);
        assert!((quality.psnr_y_db - 35.0).abs() < 1e-9);
        assert!((quality.psnr_y_p5_db - 30.5).abs() < 1e-9);
        assert!((quality.worst_vs_bicubic_db + 0.3).abs() < 1e-9);
        assert_eq!((quality.worst_vs_bicubic_frame, quality.vmaf), (Some(7), None));
        assert!(quality.worst_vs_lanczos_db.abs() < 1e-9);
    }

    #[test]
    fn means_are_over_clips_and_only_where_every_clip_has_the_row() {
        let mut rows = vec![
            sample("a", "lanczos", 150, 36.0),
            sample("a", "hybrid", 150, 37.0),
            sample("b", "lanczos", 150, 40.0),
        ];
        rows[2].quality.worst_vs_bicubic_db = -0.4;
        rows[2].times.decode_ms = None;
        let means = means(&rows);
        assert_eq!(means.len(), 1);
        let mean = &means[0];
        assert_eq!((mean.clip.as_str(), mean.method.as_str()), (MEAN, "lanczos"));
        assert!((mean.quality.psnr_y_db - 38.0).abs() < 1e-12);
        assert!((mean.quality.worst_vs_bicubic_db + 0.4).abs() < 1e-12);
        assert_eq!((mean.frames, mean.anchor_bytes, mean.times.decode_ms), (300, 200, None));
    }

    #[test]
    fn one_clip_needs_no_mean() {
        assert!(means(&[sample("a", "lanczos", 150, 36.0)]).is_empty());
    }
}
