//! A network's row: what it costs, and what it gains on each clip at each uplink.

use serde::Serialize;
use windlass_sr::Architecture;

use crate::bench::engine::report::Row as Speed;
use crate::eval::networks::{BICUBIC, LANCZOS, SHARPENED};
use crate::eval::row::Row as Scored;

/// A network's costs and gains.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// Name of the network's file without its ending.
    pub network: String,
    /// Shape of the network.
    pub model: String,
    pub scale: usize,
    /// Whether the network takes the viewer's picture too. Here that is the picture without anchors.
    pub twin: bool,
    /// Multiplications with addition for each sample of the low picture.
    pub macs: u64,
    /// Size of the low picture that the network was timed on.
    pub input: String,
    pub backend: &'static str,
    pub number: &'static str,
    /// CPU time of a thread for each picture, in ms.
    pub frame_ms: f64,
    pub gflops: f64,
    /// Maximum rate of multiplications and additions in registers alone, in 10⁹ a second.
    pub peak_gflops: f64,
    pub peak_share: f64,
    /// The gains by clip and uplink.
    pub quality: Vec<Gain>,
}

/// The gain of a network, or of a method that needs none, on a clip at an uplink.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Gain {
    pub clip: String,
    pub uplink_kbps: u32,
    /// Size of the picture that was shown.
    pub size: String,
    pub psnr_y_db: f64,
    pub over_bicubic_db: f64,
    pub over_lanczos_db: f64,
    pub ssim: Option<f64>,
    pub vmaf: Option<f64>,
    pub vmaf_neg: Option<f64>,
    /// Gain in VMAF over `lanczos@0.3`: beyond what sharpening alone gives.
    pub over_sharpened_vmaf: Option<f64>,
    pub over_sharpened_vmaf_neg: Option<f64>,
}

/// A method that needs no network, at one scale.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Plain {
    pub method: String,
    pub scale: usize,
    pub quality: Vec<Gain>,
}

impl Row {
    /// Makes a network's row from its times and its gains.
    pub(super) fn new(
        network: &str,
        shape: Architecture,
        speed: &Speed,
        quality: Vec<Gain>,
    ) -> Row {
        Row {
            network: network.to_owned(),
            model: shape.to_string(),
            scale: shape.scale,
            twin: shape.has_twin(),
            macs: shape.macs(),
            input: speed.input.clone(),
            backend: speed.backend,
            number: speed.number,
            frame_ms: speed.frame_ms,
            gflops: speed.gflops,
            peak_gflops: speed.peak_gflops,
            peak_share: speed.peak_share,
            quality,
        }
    }
}

/// The gains of `method` over the others in the same calls, call by call.
pub(super) fn gains(rows: &[Scored], method: &str) -> Vec<Gain> {
    let own = rows.iter().filter(|row| row.method == method);
    own.filter_map(|row| {
        let beside = |name: &str| {
            let same = |other: &&Scored| {
                (&other.clip, other.uplink_kbps) == (&row.clip, row.uplink_kbps)
                    && other.method == name
            };
            rows.iter().find(same).map(|other| &other.quality)
        };
        let (bicubic, lanczos, sharp) = (beside(BICUBIC)?, beside(LANCZOS)?, beside(SHARPENED)?);
        let own = &row.quality;
        let over = |own: Option<f64>, other: Option<f64>| Some(own? - other?);
        Some(Gain {
            clip: row.clip.clone(),
            uplink_kbps: row.uplink_kbps,
            size: row.size.clone(),
            psnr_y_db: own.psnr_y_db,
            over_bicubic_db: own.psnr_y_db - bicubic.psnr_y_db,
            over_lanczos_db: own.psnr_y_db - lanczos.psnr_y_db,
            ssim: own.ssim,
            vmaf: own.vmaf,
            vmaf_neg: own.vmaf_neg,
            over_sharpened_vmaf: over(own.vmaf, sharp.vmaf),
            over_sharpened_vmaf_neg: over(own.vmaf_neg, sharp.vmaf_neg),
        })
    })
    .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::eval::row::sample;

    /// Two clips, one of them with VMAF.
    pub(crate) fn scored() -> Vec<Scored> {
        let mut rows = Vec::new();
        for (clip, add) in [("a", 0.0), ("b", 1.0)] {
            for (method, db) in
                [(BICUBIC, 36.0), (LANCZOS, 36.25), (SHARPENED, 36.5), ("xs-x2", 37.0)]
            {
                let mut row = sample(clip, method, 150, db + add);
                if clip == "a" {
                    row.quality.vmaf = Some(2.0 * db);
                    row.quality.vmaf_neg = Some(2.0 * db - 1.5);
                }
                rows.push(row);
            }
        }
        rows
    }

    #[test]
    fn gains_are_over_the_same_clip_and_vmaf_is_over_what_is_sharpened() {
        let gains = gains(&scored(), "xs-x2");
        let [a, b] = &gains[..] else { panic!("{gains:?}") };
        assert_eq!((a.clip.as_str(), b.clip.as_str(), a.uplink_kbps), ("a", "b", 150));
        for gain in [a, b] {
            assert!((gain.over_bicubic_db - 1.0).abs() < 1e-9, "{gain:?}");
            assert!((gain.over_lanczos_db - 0.75).abs() < 1e-9, "{gain:?}");
        }
        assert_eq!((a.over_sharpened_vmaf, a.over_sharpened_vmaf_neg), (Some(1.0), Some(1.0)));
        assert_eq!((b.vmaf, b.over_sharpened_vmaf), (None, None));
        assert!(super::gains(&scored(), "no-such").is_empty());
    }
}
