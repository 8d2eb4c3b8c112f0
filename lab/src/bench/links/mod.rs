//! `windlass-lab bench links`: how well a viewer's bandwidth is found and used, over named links, in simulated time.
//!
//! In: the SFU's own core, WebRTC clients on both ends (str0m), the links of `windlass-netem`; publishers whose layers
//! have the rates that our SDK gives them and no pictures, and anchors of fixed size. Out: by link, what of it was
//! used, how long datagrams waited before it, how soon a change was followed, freezes, changes of rung. A seed decides
//! links and cameras; the stack draws its identifiers itself, so that figures of two runs differ a little.

mod call;
mod measure;

use std::fmt::Write as _;
use std::num::NonZeroU32;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use windlass_netem::Profile;

use self::measure::measure;
use crate::eval::report::Machine;
use crate::output::Output;
use crate::page::Contents;
use crate::progress::Progress;

/// Send calls to a viewer behind named links, in simulated time.
#[derive(Debug, Clone, Args)]
pub(super) struct LinksArgs {
    /// The links: 3g, lte, wifi-lossy, dsl, step-down, step-up, bursty, or rates in kbit/s (300k).
    #[arg(long, value_delimiter = ',', value_name = "LINK,…", default_values_t = Profile::ALL)]
    pub links: Vec<Profile>,

    /// Publishers, of whom the viewer takes all.
    #[arg(long, default_value = "4", value_name = "N")]
    pub publishers: NonZeroU32,

    /// Simulated seconds.
    #[arg(long, default_value = "60", value_name = "S")]
    pub seconds: NonZeroU32,

    /// Seeds, each a run of its own; figures are means, and the worst of `converged`.
    #[arg(long, value_delimiter = ',', default_value = "1", value_name = "N,…")]
    pub seeds: Vec<u64>,

    /// Without enhancement.
    #[arg(long)]
    pub no_anchors: bool,

    /// Print each second of each run: what was carried, waited and held.
    #[arg(long)]
    pub trace: bool,

    /// What is printed and written.
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Report {
    command: &'static str,
    machine: Machine,
    publishers: u32,
    seconds: u32,
    seeds: Vec<u64>,
    rows: Vec<Row>,
}

/// The figures of one link.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Row {
    /// Name of the link.
    pub link: String,
    /// What the link could carry after the first ten seconds, in kbit/s in the mean.
    pub capacity_kbps: f64,
    /// Video and anchors that the viewer could use, over the link's capacity.
    pub utilisation: f64,
    /// All that the link carried over its capacity: with headers, repairs, probes and padding.
    pub carried: f64,
    /// Time from the beginning until the link carried 85 % of its rate, in seconds.
    pub first_s: f64,
    /// The longest time until traffic followed a step of the rate, in seconds
    /// ([`Following`](crate::viewer::Following)).
    pub converged_s: Option<f64>,
    /// Median delay at the bottleneck (queue and transmission), in ms.
    pub wait_p50_ms: f64,
    /// 95th percentile of the delay at the bottleneck (queue and transmission), in ms.
    pub wait_p95_ms: f64,
    /// Share of datagrams that found the link's queue full.
    pub overflow: f64,
    /// Number of freezes of all tracks together in a minute.
    pub freezes: f64,
    /// Share of the time that a track stood still.
    pub frozen: f64,
    /// Share of the time that a track was paused for want of bandwidth.
    pub paused: f64,
    /// Frames of a track that the viewer saw in a second.
    pub fps: f64,
    /// Number of changes of rung of a track in a minute.
    pub changes: f64,
    /// Number of key frames in a minute that the viewer asked for because frames were lost.
    pub asks: f64,
    /// 95th percentile of the time from a frame's arrival at the SFU to its anchor's last message at the viewer, in
    /// ms, if there are any.
    pub anchor_age_p95_ms: Option<f64>,
}

/// Runs the bench and prints its report.
pub(super) fn run(args: &LinksArgs) -> Result<()> {
    let mut rows = Vec::new();
    let progress = Progress::new(args.links.len(), "links");
    for &link in &args.links {
        if progress.begin(link).is_err() {
            break;
        }
        rows.push(measure(link, args));
        progress.done();
    }
    let report = Report {
        command: "bench links",
        machine: Machine::here(),
        publishers: args.publishers.get(),
        seconds: args.seconds.get(),
        seeds: args.seeds.clone(),
        rows,
    };
    args.output.put(&report, progress.interrupted(), &report.table(), Contents::default)
}

impl Report {
    fn table(&self) -> String {
        let mut out = format!(
            "{} publishers, {} s, seeds {:?}\n\n| link | kbit/s | used | carried | first, s | converged, s | wait p50, ms | p95 | overflow | freezes/min | frozen | paused | fps | changes/min | asks/min |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
            self.publishers, self.seconds, self.seeds,
        );
        for r in &self.rows {
            let converged = r.converged_s.map_or("–".to_owned(), |s| format!("{s:.1}"));
            let _ = writeln!(
                out,
                "| {} | {:.0} | {:.0} % | {:.0} % | {:.1} | {converged} | {:.0} | {:.0} | {:.2} % | {:.1} | {:.2} % | {:.1} % | {:.1} | {:.1} | {:.1} |",
                r.link,
                r.capacity_kbps,
                100.0 * r.utilisation,
                100.0 * r.carried,
                r.first_s,
                r.wait_p50_ms,
                r.wait_p95_ms,
                100.0 * r.overflow,
                r.freezes,
                100.0 * r.frozen,
                100.0 * r.paused,
                r.fps,
                r.changes,
                r.asks,
            );
        }
        out
    }
}
