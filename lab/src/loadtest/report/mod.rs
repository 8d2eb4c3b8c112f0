//! The result of a run as one JSON object; [`table`](super::table) prints it for people.

mod anchors;
mod links;
mod media;
mod repairs;
mod server;
mod span;

use std::collections::BTreeMap;

use serde::Serialize;

use self::anchors::AnchorDelivery;
use self::links::Links;
use self::media::{Reception, Traffic};
pub(super) use self::repairs::Repairs;
use self::server::{CpuTime, Latency, Memory, Stage};
use self::span::Span;
use super::args::{LoadtestArgs, Stack};
use super::balance::Balance;
use super::measurement::Measurement;
use super::recording::Recording;
use crate::eval::report::Machine;

/// All results of the measured time. Ratios are null where the divisor is zero.
///
/// In JSON all groups are one flat object.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Row {
    /// Rooms and clients.
    #[serde(flatten)]
    pub setup: Setup,
    /// Traffic of the publishers.
    #[serde(flatten)]
    pub sent: Traffic,
    /// Video at the subscribers.
    #[serde(flatten)]
    pub received: Reception,
    /// Use of emulated downlinks.
    #[serde(flatten)]
    pub links: Links,
    /// Retransmissions and reports at the clients.
    #[serde(flatten)]
    pub repairs: Repairs,
    /// Anchors at the subscribers.
    #[serde(flatten)]
    pub anchors: AnchorDelivery,
    /// Latency of packets.
    #[serde(flatten)]
    pub latency: Latency,
    /// CPU time of server and clients.
    #[serde(flatten)]
    pub cpu: CpuTime,
    /// Memory of the server.
    #[serde(flatten)]
    pub memory: Memory,
    /// The longest sampled length of each queue of the server, in items, by metric name.
    pub queues: BTreeMap<String, f64>,
    /// Latency of the enhancer's stages.
    pub stages: Vec<Stage>,
    /// The server's counters that grew, and by how much, by metric name.
    pub server: BTreeMap<String, f64>,
    /// What remained in the server after the last client left, where clients come and go (`--stay`).
    pub balance: Option<Balance>,
}

/// Rooms and clients of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Setup {
    /// Number of rooms.
    pub rooms: usize,
    /// Number of publishers that are connected at the end.
    pub publishers: usize,
    /// Number of publishers that were asked for.
    pub publishers_wanted: usize,
    /// Number of subscribers that are connected at the end.
    pub subscribers: usize,
    /// Number of subscribed tracks at the end.
    pub subscriptions: usize,
    /// Number of subscriptions with an enhanced rung at the end.
    pub enhanced: usize,
    /// Number of clients that ended with an error.
    pub failed: u64,
    /// Length of the measured time, in s.
    pub seconds: f64,
    /// Codec that publishers sent.
    pub codec: String,
    /// RIDs of the layers that publishers sent, joined by commas.
    pub layers: String,
    /// Latency budget of an anchor, ms.
    pub budget_ms: u32,
    /// Longest time by which a sleeping thread of this program woke up too late, ms; includes the time before the
    /// measurement.
    pub stall_max_ms: f64,
}

impl Setup {
    fn of(span: &Span<'_>, args: &LoadtestArgs, recording: &Recording) -> Setup {
        let layers: Vec<_> = recording.layers().map(windlass_types::Layer::rid).collect();
        Setup {
            rooms: args.rooms.count(),
            publishers: span.now.clients.publishers,
            publishers_wanted: args.rooms.publishers.get(),
            subscribers: span.now.clients.subscribers,
            subscriptions: span.now.subscriptions.all,
            enhanced: span.now.subscriptions.enhanced,
            failed: span.now.clients.failed,
            seconds: span.seconds,
            codec: recording.codec.name().to_owned(),
            layers: layers.join(","),
            budget_ms: args.report.budget_ms.get(),
            stall_max_ms: span.stall_max.as_secs_f64() * 1000.0,
        }
    }
}

/// The printed JSON object.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    command: &'static str,
    machine: Machine,
    /// The results; an array of one row in JSON.
    #[serde(rename = "rows", serialize_with = "one")]
    pub row: Row,
    /// Error of the first client that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

fn one<S: serde::Serializer>(row: &Row, to: S) -> Result<S::Ok, S::Error> {
    [row].serialize(to)
}

impl Row {
    fn new(
        args: &LoadtestArgs,
        recording: &Recording,
        measurement: &Measurement,
        balance: Option<Balance>,
    ) -> Row {
        let span = Span::of(measurement);
        let received = Reception::of(&span);
        Row {
            setup: Setup::of(&span, args, recording),
            sent: Traffic::of(&span),
            links: Links::of(&span),
            repairs: Repairs::of(&span, args.load.client == Stack::WebrtcRs),
            anchors: AnchorDelivery::of(&span, args.rooms.subscribers),
            latency: Latency::of(&span),
            cpu: CpuTime::of(&span, measurement, received.forwarded),
            memory: Memory::of(
                measurement,
                span.now.clients.publishers + span.now.clients.subscribers,
            ),
            received,
            queues: measurement.queues.clone(),
            stages: Stage::all(&span),
            server: span.counters,
            balance,
        }
    }
}

impl Report {
    /// Computes the results of a run.
    pub(super) fn new(
        args: &LoadtestArgs,
        recording: &Recording,
        measurement: &Measurement,
        balance: Option<Balance>,
    ) -> Report {
        Report {
            command: "loadtest",
            machine: Machine::here(),
            row: Row::new(args, recording, measurement, balance),
            failure: measurement.after.1.clients.failure.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use windlass_types::{Layer, VideoCodec};

    use super::*;
    use crate::loadtest::recording::Frame;
    use crate::loadtest::scrape::Figures;
    use crate::loadtest::table::table;
    use crate::loadtest::tally::Totals;
    use crate::output::json;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: LoadtestArgs,
    }

    /// A run with so many anchors in time, late, and given up.
    fn report(in_time: u64, late: u64, given_up: u64) -> Report {
        let args = Cli::parse_from(["loadtest", "--publishers", "3"]).args;
        let frame = Frame::new(VideoCodec::Vp9, vec![0x82, 0]);
        let recording =
            Recording::new(VideoCodec::Vp9, 30.0, vec![(Layer::Q, vec![frame])]).unwrap();
        let figures = |n: u64| {
            Figures::parse(&format!(
                "windlass_enhancer_late_infer_total {n}\nwindlass_enhancer_compute_seconds_sum {n}\n\
                 windlass_enhancer_compute_capacity 2\nwindlass_enhancer_queue_length{{queue=\"infer\"}} {n}"
            ))
        };
        let mut totals = Totals::default();
        (totals.anchors.whole, totals.received.frames, totals.clients.publishers) = (7, 100, 3);
        let mut measurement = Measurement::new(figures(5), totals.clone(), None, 1);
        totals.anchors.whole += in_time + late;
        totals.anchors.late += late;
        totals.received.frames += 50;
        totals.received.frames_enhanced += 50;
        (0..in_time + late).for_each(|_| totals.anchors.age.record(80.0));
        measurement.sample(&figures(5 + given_up), &totals, None, &[]);
        Report::new(&args, &recording, &measurement, None)
    }

    #[test]
    fn what_came_late_and_what_was_given_up_missed_the_budget() {
        let row = report(6, 1, 1).row;
        let anchors = &row.anchors;
        assert_eq!((anchors.anchors, anchors.anchors_late, anchors.anchors_given_up), (7, 1, 1));
        assert_eq!(anchors.budget_miss_rate, Some(0.25));
        assert_eq!(anchors.anchor_fraction, Some(7.0 / 50.0));
        assert_eq!(row.received.frames, 50, "what was before does not count");
        assert_eq!(row.queues.values().copied().collect::<Vec<_>>(), [6.0]);
    }

    #[test]
    fn nothing_to_divide_by_gives_null_and_a_dash() {
        let report = report(0, 0, 0);
        assert_eq!(report.row.anchors.budget_miss_rate, None);
        let json: serde_json::Value = serde_json::from_str(&json(&report, None).unwrap()).unwrap();
        assert!(json["rows"][0]["anchor_p50_ms"].is_null() && json["machine"].is_object());
        let table = table(&report);
        assert!(table.contains("past the budget            – (0 came"), "{table}");
    }
}
