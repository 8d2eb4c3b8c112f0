//! Report of a plan, for people and for programs.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use windlass_types::Size;

use crate::constants::{Constants, Machine, ms};
use crate::gains::{Content, DetailSource, Gain, Gains, Spread};
use crate::model::{Answer, Demand};

/// Latency budgets for which the report compares the demand.
const CURVE: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(200), Duration::from_millis(500)];
/// Layer with which the gains were measured.
const GAINED: Size = Size::new(320, 180);
/// Default maximum of enhanced publishers of a server.
const MAX_ENHANCED: u32 = 64;
/// Default maximum of participants of a server.
const MAX_PARTICIPANTS: u64 = 1000;

/// Contents of a report.
#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
    pub command: &'static str,
    pub demand: Demand,
    pub answer: Answer,
    pub cost: Option<Cost>,
    /// Results for the same demand under other budgets.
    pub curve: Vec<Point>,
    /// Gains under the budget that was asked for.
    pub gains: Vec<&'a Gain>,
    pub constants: Source<'a>,
    pub notes: Vec<String>,
    #[serde(skip)]
    pub measured: &'a Gains,
}

/// Cost of the cores, with the cheapest network and with the dearest.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "they are keys of the report")]
pub(crate) struct Cost {
    pub euro_core_hour: f64,
    pub euro_hour: [f64; 2],
    pub euro_publisher_hour: [f64; 2],
}

/// Result under one budget.
#[derive(Debug, Serialize)]
pub(crate) struct Point {
    pub budget_ms: f64,
    pub anchors_per_s: f64,
    pub missed: f64,
    pub cores: [f64; 2],
}

/// Origin of the constants that were used.
#[derive(Debug, Serialize)]
pub(crate) struct Source<'a> {
    pub from: String,
    pub machine: &'a Machine,
    pub measured: &'a str,
}

impl<'a> Report<'a> {
    pub(crate) fn new(
        constants: &'a Constants,
        from: String,
        gains: &'a Gains,
        demand: Demand,
        euro_core_hour: Option<f64>,
    ) -> Report<'a> {
        let answer = Answer::new(constants, &demand);
        let cores = |answer: &Answer| [answer.cores.min(), answer.cores.max()];
        let curve = CURVE.map(|budget| {
            let answer = Answer::new(constants, &Demand { budget, ..demand });
            let budget_ms = ms(budget);
            let (anchors_per_s, missed) = (answer.anchors_per_s, answer.missed);
            Point { budget_ms, anchors_per_s, missed, cores: cores(&answer) }
        });
        let cost = euro_core_hour.map(|euro_core_hour| Cost {
            euro_core_hour,
            euro_hour: cores(&answer).map(|cores| cores * euro_core_hour),
            euro_publisher_hour: cores(&answer)
                .map(|cores| cores * euro_core_hour / f64::from(demand.publishers)),
        });
        let ways = [DetailSource::Filters, DetailSource::Anchors, DetailSource::Stills];
        let pairs = Content::ALL.into_iter().flat_map(|c| ways.map(|way| (c, way)));
        Report {
            command: "plan",
            demand,
            cost,
            curve: curve.into(),
            gains: pairs.filter_map(|(c, way)| gains.of(c, way, demand.budget)).collect(),
            notes: notes(constants, &demand),
            answer,
            constants: Source { from, machine: &constants.machine, measured: &constants.measured },
            measured: gains,
        }
    }

    /// The report as text for people.
    pub(crate) fn text(&self) -> String {
        let Demand { publishers, viewers, layer, budget } = &self.demand;
        let Answer { cores, mib, kbps, anchors_per_s, missed } = &self.answer;
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{publishers} publishers of {layer}, {viewers} viewers of each, budget {} ms\n",
            ms(*budget)
        );
        let by_network: Vec<String> =
            cores.anchors.iter().map(|(name, cores)| format!("{cores:.2} by {name}")).collect();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(out, "{name:<18} {value}");
        };
        line("cores", format!("{:.2} to {:.2}", cores.min(), cores.max()));
        line("  forwarding", format!("{:.2}", cores.forwarding));
        line("  decoding", format!("{:.2}", cores.decoding));
        line("  anchors", by_network.join(", "));
        if let Some(Cost { euro_core_hour, euro_hour, euro_publisher_hour }) = &self.cost {
            let [least, most] = euro_hour;
            let [each, at_most] = euro_publisher_hour;
            line(
                "euro an hour",
                format!(
                    "{least:.3} to {most:.3}; of a publisher {each:.5} to {at_most:.5} (a core: {euro_core_hour})"
                ),
            );
        }
        line("memory", format!("{mib:.0} MiB"));
        line("a publisher sends", format!("{:.0} kbit/s", kbps.publisher));
        line("server in, out", format!("{:.0}, {:.0} kbit/s", kbps.server_in, kbps.server_out));
        line("a viewer receives", format!("{:.0} kbit/s of each publisher", kbps.viewer));
        line(
            "anchors",
            format!("{anchors_per_s:.2} a second; {:.1} % miss the budget", 100.0 * missed),
        );
        self.write_curve(&mut out);
        self.write_gains(&mut out);
        let Source { from, machine, measured } = &self.constants;
        let Machine { cpu, threads, platform, build, load_average } = machine;
        let _ = writeln!(
            out,
            "\nconstants: {from}, measured {measured} on {cpu}, {threads} threads, {platform}, {build} build, load average {load_average}"
        );
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        out
    }

    fn write_curve(&self, out: &mut String) {
        let _ =
            writeln!(out, "\n{:<10} {:>13} {:>8} {:>15}", "budget", "anchors/s", "missed", "cores");
        for Point { budget_ms, anchors_per_s, missed, cores: [least, most] } in &self.curve {
            let _ = writeln!(
                out,
                "{:<10} {anchors_per_s:>13.2} {:>6.1} % {:>15}",
                format!("{budget_ms} ms"),
                100.0 * missed,
                format!("{least:.2} to {most:.2}")
            );
        }
    }

    /// Writes what each content gains under each budget of the curve, with the spread over clips.
    fn write_gains(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "\ngain over the same video, sharpened: VMAF-NEG (least to most of the clips), and kbit/s more\n{:<15} {:<8} {:>22} {:>22} {:>22}",
            "content", "by", "100 ms", "200 ms", "500 ms"
        );
        for content in Content::ALL {
            for (way, name) in [
                (DetailSource::Filters, "filters"),
                (DetailSource::Anchors, "anchors"),
                (DetailSource::Stills, "stills"),
            ] {
                let cells = CURVE.map(|budget| {
                    let found = self.measured.of(content, way, budget);
                    found.map_or_else(|| "not measured".to_owned(), cell)
                });
                let [one, two, five] = cells;
                let _ = writeln!(
                    out,
                    "{:<15} {name:<8} {one:>22} {two:>22} {five:>22}",
                    content.name()
                );
            }
        }
    }
}

/// Formats a gain and its spread: VMAF-NEG, or PSNR if that was not measured.
fn cell(gain: &Gain) -> String {
    let (Spread { mean, least, most }, unit) =
        gain.vmaf_neg.map_or((gain.psnr_y_db, " dB"), |vmaf_neg| (vmaf_neg, ""));
    format!("{mean:+.1}{unit} ({least:+.1} to {most:+.1}); {:.0}", gain.kbps.mean)
}

/// Notes on what the figures do not show by themselves.
fn notes(constants: &Constants, demand: &Demand) -> Vec<String> {
    let mut notes = Vec::new();
    let Demand { publishers, viewers, layer, budget } = *demand;
    if publishers > MAX_ENHANCED {
        notes.push(format!(
            "a server enhances {MAX_ENHANCED} publishers unless --max-enhanced {publishers} allows more"
        ));
    }
    let participants = u64::from(publishers) * (1 + u64::from(viewers));
    if participants > MAX_PARTICIPANTS {
        notes.push(format!(
            "a server takes {MAX_PARTICIPANTS} participants unless --max-total-participants {participants} allows more"
        ));
    }
    if layer != GAINED {
        notes.push(format!("the gains are of a layer of {GAINED}: a larger one gains less"));
    }
    let pixels = f64::from(layer.pixels());
    let sizes: Vec<f64> = constants.layers.iter().map(crate::LayerCost::pixels).collect();
    let between = |values: &[f64], x: f64| {
        values.first().is_some_and(|v| x >= *v) && values.last().is_some_and(|v| x <= *v)
    };
    if !between(&sizes, pixels) {
        notes.push(format!("{layer} is smaller or larger than what was measured: it is guessed from the nearest sizes"));
    }
    let budgets: Vec<f64> = constants.budgets.iter().map(|b| b.budget_ms).collect();
    let budget = ms(budget);
    if !between(&budgets, budget) {
        notes.push(format!("{budget} ms was not measured: the nearest budget stands for it"));
    }
    notes
}
