//! Compares the controller with other ways to set the knobs, from the runs of a scene.
//!
//! Quality is VMAF, on a shared screen VMAF-NEG (PSNR-Y in dB without either), the objective that less `λ` times the
//! share of the uplink. *Exhaustive* takes in every interval the run that is best in it, from runs with fixed settings
//! side by side: it knows the interval before it begins, and switches free of charge, which no player can. *By change*
//! is the best that can be had: the setting that is best from one change to the next, known beforehand, and really
//! played, key frames included. *Plain* is what a server sets that adapts bitrates alone. A change is the beginning,
//! another clip, or another uplink; the controller has converged at the first interval from which on it stays within
//! [`NEAR`] of exhaustive search until the next change, on average.

use serde::Serialize;

use super::play::{Interval, Run};
use super::setting::{PLAIN, Setting};
use crate::eval::stats::mean;

/// Maximum rate of a run over its uplink. A run that sends more could not be had, and is left out of every
/// comparison.
const MAX_OVER: f64 = 1.1;
/// Minimum gain over plain, in the objective's unit, of which a share is computed.
const MIN_GAIN: f64 = 0.25;
/// Distance from exhaustive search that counts as converged, in VMAF.
const NEAR: f64 = 2.0;

/// All runs of one scene at one uplink.
#[derive(Debug)]
pub(super) struct Cell {
    /// The scene's name.
    pub scene: String,
    /// The uplink's name.
    pub uplink: String,
    /// The run of every fixed setting.
    pub fixed: Vec<(Setting, Run)>,
    /// The controller's run.
    pub controller: Run,
    /// The best fixed setting from each change to the next, played.
    pub by_change: Run,
    /// CPU time of controller and measuring, in percent of a core.
    pub core_percent: f64,
    /// The intervals that begin with a change.
    pub changes: Vec<usize>,
    /// Price of the whole uplink, in VMAF.
    pub lambda: f64,
}

/// A line of the report.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Line {
    /// The scene's name.
    pub clip: String,
    /// The uplink's bitrate in kbit/s, or its steps.
    pub uplink_kbps: String,
    /// `controller`, `exhaustive`, or a fixed setting's name.
    pub method: String,
    /// Mean VMAF over the intervals.
    pub vmaf: Option<f64>,
    /// Mean VMAF-NEG over the intervals.
    pub vmaf_neg: Option<f64>,
    /// Mean PSNR of luma over the intervals, in dB.
    pub psnr_y_db: f64,
    /// Bitrate of all that was sent, in kbit/s.
    pub total_kbps: f64,
    /// Figures that only the controller has.
    #[serde(flatten)]
    pub controller: Option<Verdict>,
}

/// The controller against the others.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Verdict {
    /// CPU time of the controller, in percent of a core.
    pub core_percent: f64,
    /// Mean number of intervals from a change until converged; `None` where it never converged.
    pub intervals_to_converge: Option<f64>,
    /// Gain of the controller in the objective over plain, in percent of the gain of exhaustive search.
    pub gain_share_percent: Option<f64>,
    /// Gain of the controller in the objective over plain, in percent of the gain of the best settings by change.
    pub by_change_share_percent: Option<f64>,
    /// VMAF of the controller less that of the best fixed setting of this scene and uplink.
    pub over_best_fixed: f64,
    /// The best fixed setting of this scene and uplink.
    pub best_fixed: String,
    /// Bits saved at equal VMAF against the one fixed setting that is best over all scenes and uplinks of the run.
    pub saving_percent: Option<f64>,
    /// Bits saved at equal VMAF against the best fixed setting of this scene and uplink.
    pub saving_own_percent: Option<f64>,
    /// The knobs, rates and qualities, interval by interval.
    pub intervals: Vec<Interval>,
}

/// The quality of an interval: VMAF of a camera; of a shared screen VMAF-NEG, as VMAF is as high for blurred text.
fn quality(interval: &Interval) -> f64 {
    let vmaf = if interval.screen { interval.vmaf_neg } else { interval.vmaf };
    vmaf.unwrap_or(interval.psnr_y_db)
}

/// Whether the uplink carries what a run sends: at the coarsest quantiser some settings send more.
fn fits(run: &Run) -> bool {
    let uplink = mean(run.intervals.iter().map(|i| i.uplink_kbps)).unwrap_or_default();
    mean_kbps(run) <= MAX_OVER * uplink
}

fn mean_quality(run: &Run) -> f64 {
    mean(run.intervals.iter().map(quality)).unwrap_or_default()
}

fn mean_kbps(run: &Run) -> f64 {
    mean(run.intervals.iter().map(|i| i.kbps)).unwrap_or_default()
}

/// The setting that is best from each change to the next, among those that the uplink carries; by interval.
pub(super) fn best_by_change(
    fixed: &[(Setting, Run)],
    changes: &[usize],
    count: usize,
    lambda: f64,
) -> Vec<Setting> {
    let ends = changes.iter().skip(1).copied().chain([count]);
    let spans = changes.iter().zip(ends).flat_map(|(&from, to)| {
        let worth = |run: &Run| {
            let own = run.intervals.get(from..to).unwrap_or_default();
            mean(own.iter().map(|i| objective(i, lambda))).unwrap_or(f64::MIN)
        };
        let possible = fixed.iter().filter(|(_, run)| fits(run));
        let best = possible.max_by(|a, b| worth(&a.1).total_cmp(&worth(&b.1)));
        let setting = best.map_or(PLAIN, |(setting, _)| *setting);
        std::iter::repeat_n(setting, to.saturating_sub(from))
    });
    spans.collect()
}

fn objective(interval: &Interval, lambda: f64) -> f64 {
    // A key frame's burst does not count against a setting: rate control compensates for it.
    let share = (interval.kbps / interval.uplink_kbps).min(1.0);
    quality(interval) - lambda * share
}

impl Cell {
    fn objective(&self, interval: &Interval) -> f64 {
        objective(interval, self.lambda)
    }

    fn total(&self, run: &Run) -> f64 {
        mean(run.intervals.iter().map(|i| self.objective(i))).unwrap_or_default()
    }

    /// A run made of the best interval of all fixed runs, one by one.
    fn exhaustive(&self) -> Run {
        let count = self.controller.intervals.len();
        let best = |n: usize| {
            let all = self.possible().filter_map(|(_, run)| run.intervals.get(n));
            all.max_by(|a, b| self.objective(a).total_cmp(&self.objective(b))).cloned()
        };
        Run { intervals: (0..count).filter_map(best).collect(), metering_ms_per_s: 0.0 }
    }

    /// The fixed settings that the uplink carries.
    fn possible(&self) -> impl Iterator<Item = &(Setting, Run)> {
        self.fixed.iter().filter(|(_, run)| fits(run))
    }

    fn best_fixed(&self) -> Option<&(Setting, Run)> {
        self.possible().max_by(|a, b| mean_quality(&a.1).total_cmp(&mean_quality(&b.1)))
    }

    fn intervals_to_converge(&self, exhaustive: &Run) -> Option<f64> {
        let pairs = self.controller.intervals.iter().zip(&exhaustive.intervals);
        let gaps: Vec<f64> =
            pairs.map(|(own, best)| self.objective(best) - self.objective(own)).collect();
        let ends = self.changes[1..].iter().copied().chain([gaps.len()]);
        let spans = self.changes.iter().zip(ends).filter_map(|(&from, to)| gaps.get(from..to));
        let one = |span: &[f64]| {
            (0..span.len()).find(|&n| mean(span[n..].iter().copied()).is_some_and(|g| g <= NEAR))
        };
        let found: Option<Vec<f64>> =
            spans.map(|span| one(span).map(|intervals| intervals as f64)).collect();
        mean(found?)
    }

    fn line(&self, method: String, run: &Run, controller: Option<Verdict>) -> Line {
        let of = |value: fn(&Interval) -> Option<f64>| {
            let values: Option<Vec<f64>> = run.intervals.iter().map(value).collect();
            values.and_then(mean)
        };
        Line {
            clip: self.scene.clone(),
            uplink_kbps: self.uplink.clone(),
            method,
            vmaf: of(|i| i.vmaf),
            vmaf_neg: of(|i| i.vmaf_neg),
            psnr_y_db: of(|i| Some(i.psnr_y_db)).unwrap_or_default(),
            total_kbps: mean_kbps(run),
            controller,
        }
    }
}

/// The report's lines. For each cell: the controller, exhaustive search, and the fixed settings from best to worst.
pub(super) fn lines(cells: &[Cell]) -> Vec<Line> {
    let overall = best_overall(cells);
    let mut lines = Vec::new();
    for cell in cells {
        let exhaustive = cell.exhaustive();
        let plain = cell.fixed.iter().find(|(setting, _)| *setting == PLAIN);
        let gain = |run: &Run| Some(cell.total(run) - cell.total(&plain?.1));
        let share = |of: &Run| {
            let possible = gain(of).filter(|&gain| gain > MIN_GAIN)?;
            Some(100.0 * gain(&cell.controller)? / possible)
        };
        let best = cell.best_fixed();
        let verdict = Verdict {
            core_percent: cell.core_percent,
            intervals_to_converge: cell.intervals_to_converge(&exhaustive),
            gain_share_percent: share(&exhaustive),
            by_change_share_percent: share(&cell.by_change),
            over_best_fixed: best
                .map_or(0.0, |(_, run)| mean_quality(&cell.controller) - mean_quality(run)),
            best_fixed: best.map_or_else(String::new, |(setting, _)| setting.to_string()),
            saving_percent: overall.and_then(|setting| saving(cells, cell, setting)),
            saving_own_percent: best.and_then(|(setting, _)| saving(cells, cell, *setting)),
            intervals: cell.controller.intervals.clone(),
        };
        lines.push(cell.line("controller".into(), &cell.controller, Some(verdict)));
        lines.push(cell.line("exhaustive".into(), &exhaustive, None));
        lines.push(cell.line("by change".into(), &cell.by_change, None));
        let mut fixed: Vec<&(Setting, Run)> = cell.possible().collect();
        fixed.sort_by(|a, b| mean_quality(&b.1).total_cmp(&mean_quality(&a.1)));
        lines.extend(fixed.iter().map(|(setting, run)| cell.line(setting.to_string(), run, None)));
    }
    lines
}

/// The fixed setting whose mean quality over all cells is highest.
pub(super) fn best_overall(cells: &[Cell]) -> Option<Setting> {
    let runs = |setting: Setting| {
        cells.iter().flat_map(Cell::possible).filter(move |(of, _)| *of == setting)
    };
    let total = |setting: Setting| {
        mean(runs(setting).map(|(_, run)| mean_quality(run))).unwrap_or_default()
    };
    let settings = cells.first()?.fixed.iter().map(|(setting, _)| *setting);
    let everywhere = settings.filter(|setting| runs(*setting).count() == cells.len());
    everywhere.max_by(|a, b| total(*a).total_cmp(&total(*b)))
}

/// Bits that the controller saves in a cell against a fixed setting at the same quality, in percent. They come from
/// that setting's curve over the uplinks; `None` where the curve does not reach that quality.
fn saving(cells: &[Cell], cell: &Cell, setting: Setting) -> Option<f64> {
    let own = cells.iter().filter(|other| other.scene == cell.scene);
    let run = |other: &Cell| {
        let found = other.fixed.iter().find(|(of, _)| *of == setting)?;
        Some((mean_kbps(&found.1).ln(), mean_quality(&found.1)))
    };
    let mut curve: Vec<(f64, f64)> = own.filter_map(run).collect();
    curve.sort_by(|a, b| a.1.total_cmp(&b.1));
    let wanted = mean_quality(&cell.controller);
    let span = curve.windows(2).find(|pair| pair[0].1 <= wanted && wanted <= pair[1].1)?;
    let part = (wanted - span[0].1) / (span[1].1 - span[0].1).max(1e-9);
    let needed = (span[0].0 + part * (span[1].0 - span[0].0)).exp();
    Some(100.0 * (1.0 - mean_kbps(&cell.controller) / needed))
}

#[cfg(test)]
mod tests {
    use windlass_types::Layer;

    use super::*;

    const DIRECT: Setting = Setting { layer: Layer::F, ..PLAIN };

    fn run(values: &[(f64, f64)]) -> Run {
        let interval = |&(vmaf, kbps): &(f64, f64)| Interval {
            uplink_kbps: kbps,
            kbps,
            psnr_y_db: 30.0,
            vmaf: Some(vmaf),
            vmaf_neg: Some(vmaf - 2.0),
            screen: false,
            knobs: String::new(),
        };
        Run { intervals: values.iter().map(interval).collect(), metering_ms_per_s: 0.0 }
    }

    fn cell(uplink: &str, scale: f64) -> Cell {
        let at = |vmaf: f64| (vmaf, 100.0 * scale);
        let gain = 10.0 * scale.log2();
        Cell {
            scene: "a".into(),
            uplink: uplink.into(),
            fixed: vec![
                (PLAIN, run(&[60.0, 60.0, 60.0, 60.0].map(|v| at(v + gain)))),
                (DIRECT, run(&[70.0, 70.0, 50.0, 50.0].map(|v| at(v + gain)))),
            ],
            controller: run(&[60.0, 70.0, 55.0, 59.0].map(|v| at(v + gain))),
            by_change: run(&[70.0, 70.0, 50.0, 60.0].map(|v| at(v + gain))),
            core_percent: 0.5,
            changes: vec![0, 2],
            lambda: 0.0,
        }
    }

    #[test]
    fn exhaustive_search_takes_the_best_of_every_interval() {
        let lines = lines(&[cell("100", 1.0)]);
        assert_eq!(lines[1].method, "exhaustive");
        assert!((lines[1].vmaf.unwrap() - 65.0).abs() < 1e-9);
        let verdict = lines[0].controller.as_ref().unwrap();
        // (61 − 60) of (65 − 60), the best fixed at 60; both changes are answered after one interval.
        assert!((verdict.gain_share_percent.unwrap() - 20.0).abs() < 1e-9);
        assert!((verdict.by_change_share_percent.unwrap() - 40.0).abs() < 1e-9);
        assert!((verdict.over_best_fixed - 1.0).abs() < 1e-9);
        assert_eq!(verdict.intervals_to_converge, Some(1.0));
    }

    #[test]
    fn each_change_has_its_best_setting() {
        let cell = cell("100", 1.0);
        let best = best_by_change(&cell.fixed, &cell.changes, 4, 0.0);
        assert_eq!(best, [DIRECT, DIRECT, PLAIN, PLAIN]);
    }

    #[test]
    fn saved_bits_are_read_off_the_fixed_settings_curve() {
        let cells = [cell("100", 1.0), cell("200", 2.0)];
        let lines = lines(&cells);
        let saved = lines[0].controller.as_ref().unwrap().saving_percent.unwrap();
        // 61 VMAF where plain gives 60, and 10 for each doubling.
        assert!((saved - 100.0 * (1.0 - 2f64.powf(-0.1))).abs() < 1e-9, "{saved}");
        assert_eq!(lines[5].controller.as_ref().unwrap().saving_percent, None, "beyond the curve");
    }
}
