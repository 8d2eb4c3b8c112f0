//! Compares methods with the rungs of the ladder: how much of the gap between `h` and `f` a method closes, for which
//! share of `f`'s bits.

use serde::Serialize;

use super::method::Method;
use super::row::{MEAN, Row};

/// A method between two rungs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Rung {
    /// The clip's file name, or `mean`.
    pub clip: String,
    /// The method that made the HR pictures.
    pub method: String,
    /// Bitrate that a subscriber gets of it, in kbit/s.
    pub total_kbps: f64,
    /// Mean PSNR of luma, in dB.
    pub psnr_y_db: f64,
    /// Mean VMAF.
    pub vmaf: Option<f64>,
    /// Share of the gap in VMAF between the lower and the upper rung that the method closes, in percent.
    pub gap_closed_percent: Option<f64>,
    /// Share of the gap in PSNR of luma between the lower and the upper rung that the method closes, in percent.
    pub gap_closed_psnr_percent: Option<f64>,
    /// Bits over those of the upper rung, in percent.
    pub full_percent: f64,
}

/// Every row between the rungs `h` (the low layer by Lanczos) and `f` of its clip, then means of all clips. The gap
/// of a mean is that of the means.
pub(super) fn rungs(rows: &[Row]) -> Vec<Rung> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.clip != MEAN).collect();
    let mut found = Vec::new();
    for clip in rows.chunk_by(|a, b| (&a.clip, a.uplink_kbps) == (&b.clip, b.uplink_kbps)) {
        let figures: Vec<Rung> = clip.iter().map(|row| figures(row)).collect();
        found.extend(between(figures));
    }
    let mut clips: Vec<&str> = found.iter().map(|rung| rung.clip.as_str()).collect();
    clips.dedup();
    if clips.len() > 1 {
        let mut methods: Vec<&str> = Vec::new();
        for rung in &found {
            if !methods.contains(&rung.method.as_str()) {
                methods.push(&rung.method);
            }
        }
        let means = methods.iter().map(|method| {
            let of: Vec<&Rung> = found.iter().filter(|rung| rung.method == *method).collect();
            mean(&of)
        });
        let means: Vec<Rung> = means.collect();
        found.extend(between(means));
    }
    found
}

fn figures(row: &Row) -> Rung {
    Rung {
        clip: row.clip.clone(),
        method: row.method.clone(),
        total_kbps: row.total_kbps,
        psnr_y_db: row.quality.psnr_y_db,
        vmaf: row.quality.vmaf,
        gap_closed_percent: None,
        gap_closed_psnr_percent: None,
        full_percent: 0.0,
    }
}

fn mean(of: &[&Rung]) -> Rung {
    let count = of.len().max(1) as f64;
    let all = |value: &dyn Fn(&Rung) -> f64| of.iter().map(|r| value(r)).sum::<f64>() / count;
    let vmaf = of.iter().all(|r| r.vmaf.is_some());
    Rung {
        clip: MEAN.to_owned(),
        method: of.first().map_or_else(String::new, |r| r.method.clone()),
        total_kbps: all(&|r| r.total_kbps),
        psnr_y_db: all(&|r| r.psnr_y_db),
        vmaf: vmaf.then(|| all(&|r| r.vmaf.unwrap_or_default())),
        gap_closed_percent: None,
        gap_closed_psnr_percent: None,
        full_percent: 0.0,
    }
}

/// Fills in the figures that depend on the two rungs; without both, there are none.
fn between(mut rungs: Vec<Rung>) -> Vec<Rung> {
    let of = |method: Method| rungs.iter().find(|r| r.method == method.to_string()).cloned();
    let (Some(low), Some(full)) = (of(Method::Lanczos), of(Method::Full)) else {
        return Vec::new();
    };
    let share = |value: f64, low: f64, full: f64| {
        ((full - low).abs() > 1e-9).then(|| 100.0 * (value - low) / (full - low))
    };
    for rung in &mut rungs {
        rung.full_percent = 100.0 * rung.total_kbps / full.total_kbps.max(1e-9);
        rung.gap_closed_psnr_percent = share(rung.psnr_y_db, low.psnr_y_db, full.psnr_y_db);
        let vmaf = rung.vmaf.zip(low.vmaf).zip(full.vmaf);
        rung.gap_closed_percent = vmaf.and_then(|((v, low), full)| share(v, low, full));
    }
    rungs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::row::sample;

    #[test]
    fn the_gap_is_between_lanczos_and_the_full_layer_of_a_clip() {
        let rows = |clip: &str| {
            let of = |method: &str, db: f64, kbps: f64| {
                let mut row = sample(clip, method, 420, db);
                (row.quality.vmaf, row.total_kbps) = (Some(2.0 * db), kbps);
                row
            };
            [of("lanczos", 30.0, 400.0), of("captured@f", 36.0, 500.0), of("f", 40.0, 1600.0)]
        };
        let found = rungs(&[rows("a"), rows("b")].concat());
        assert_eq!(found.len(), 9);
        let last = found.iter().rfind(|r| r.method == "captured@f").unwrap();
        assert_eq!((last.clip.as_str(), last.full_percent), (MEAN, 31.25));
        assert!((last.gap_closed_percent.unwrap() - 60.0).abs() < 1e-9);
        assert!((last.gap_closed_psnr_percent.unwrap() - 60.0).abs() < 1e-9);
    }

    #[test]
    fn without_a_full_layer_there_is_no_gap() {
        assert!(rungs(&[sample("a", "lanczos", 150, 30.0)]).is_empty());
    }
}
