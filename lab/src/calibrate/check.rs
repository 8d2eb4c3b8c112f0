//! Holds what constants predict against load tests that none was fitted to.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Serialize;
use windlass_plan::{Answer, Constants, Demand, HEADER_BYTES};

use super::runs::{CHECKED, Run, Taken};
use crate::interrupt;
use crate::progress::Progress;

/// Maximum difference between prediction and measurement, in percent of the measurement.
const MAX_OFF_PERCENT: f64 = 20.0;

#[derive(Debug, Serialize)]
struct Report<'a> {
    command: &'static str,
    machine: &'a windlass_plan::Machine,
    rows: Vec<Row>,
}

/// One figure of one load test, predicted and measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    run: String,
    figure: &'static str,
    predicted: f64,
    measured: f64,
    off_percent: f64,
}

/// Runs the load tests, and says how far the predictions are off. Fails if one is off by more than
/// [`MAX_OFF_PERCENT`].
pub(super) fn run(constants: &Constants, seconds: u32, json: bool) -> Result<()> {
    let progress = Progress::new(CHECKED.len(), "load tests");
    let mut rows = Vec::new();
    for run in CHECKED {
        if progress.begin(run.to_string()).is_err() {
            break;
        }
        let Some(taken) = interrupt::kept(run.play(seconds))? else { break };
        rows.extend(of_run(constants, run, &taken));
        progress.done();
    }
    let interrupted = progress.interrupted();
    drop(progress);
    let report = Report { command: "calibrate --check", machine: &constants.machine, rows };
    if json {
        println!("{}", crate::output::json(&report, interrupted)?);
    } else {
        print!("{}", table(&report.rows));
    }
    judge(&report.rows)
}

fn judge(rows: &[Row]) -> Result<()> {
    let far = rows.iter().filter(|row| row.is_far()).count();
    ensure!(
        far == 0,
        "{far} of {} predictions are off by more than {MAX_OFF_PERCENT} %: measure the constants of this machine, while \
         nothing else runs (`windlass-lab calibrate FILE`)",
        rows.len()
    );
    Ok(())
}

impl Row {
    fn is_far(&self) -> bool {
        // A figure that is no number is far, too.
        self.off_percent.is_nan() || self.off_percent.abs() > MAX_OFF_PERCENT
    }
}

fn of_run(constants: &Constants, run: Run, taken: &Taken) -> Vec<Row> {
    let demand = Demand {
        publishers: run.publishers,
        viewers: run.viewers,
        layer: run.size(),
        budget: Duration::from_millis(run.budget_ms.unwrap_or(200).into()),
    };
    let answer = Answer::new(constants, &demand);
    let headers = |packets: f64| packets * HEADER_BYTES * 8.0 / 1e3;
    let figures = [
        ("cores", answer.cores.min(), taken.cores),
        ("memory, MiB", answer.mib, taken.mib),
        ("server in, kbit/s", answer.kbps.server_in, taken.sent_kbps + headers(taken.packets_in)),
        (
            "server out, kbit/s",
            answer.kbps.server_out,
            taken.video_kbps + taken.anchor_kbps + headers(taken.packets_out),
        ),
        ("anchors/s of each", answer.anchors_per_s, taken.anchors_per_s),
    ];
    let row = |(figure, predicted, measured): (&'static str, f64, f64)| Row {
        run: run.to_string(),
        figure,
        predicted,
        measured,
        off_percent: 100.0 * (predicted / measured - 1.0),
    };
    figures.map(row).into()
}

fn table(rows: &[Row]) -> String {
    let mut out = String::new();
    let mut last = "";
    for row in rows {
        // Writing to a String cannot fail.
        if row.run != last {
            let _ = writeln!(
                out,
                "{}{}\n{:<20} {:>10} {:>10} {:>8}",
                if last.is_empty() { "" } else { "\n" },
                row.run,
                "",
                "predicted",
                "measured",
                "off"
            );
            last = &row.run;
        }
        let far =
            if row.is_far() { format!("   more than {MAX_OFF_PERCENT} %") } else { String::new() };
        let _ = writeln!(
            out,
            "{:<20} {:>10.2} {:>10.2} {:>+6.0} %{far}",
            row.figure, row.predicted, row.measured, row.off_percent
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(figure: &'static str, off_percent: f64) -> Row {
        Row { run: "a run".to_owned(), figure, predicted: 1.0, measured: 1.0, off_percent }
    }

    #[test]
    fn what_is_far_off_is_marked() {
        let table = table(&[row("cores", -19.0), row("memory, MiB", 31.0)]);
        assert_eq!(table.matches("a run").count(), 1);
        assert_eq!(table.matches("more than 20 %").count(), 1, "{table}");
        assert!(table.contains("+31 %   more"), "{table}");
    }

    #[test]
    fn predictions_that_are_far_off_fail() {
        assert!(judge(&[row("cores", -19.0), row("memory, MiB", 20.0)]).is_ok());
        let why = judge(&[row("cores", -19.0), row("memory, MiB", 31.0)]).unwrap_err().to_string();
        assert!(why.starts_with("1 of 2 predictions"), "{why}");
        assert!(judge(&[row("anchors/s of each", f64::NAN)]).is_err());
    }
}
