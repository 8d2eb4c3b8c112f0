//! What a run found, as one JSON object; for people it is a [`table`](super::table).

use std::collections::BTreeMap;

use serde::Serialize;
use windlass_types::Rung;

use super::args::LoadtestArgs;
use super::balance::Balance;
use super::process::Usage;
use super::recording::Recording;
use super::scrape::Figures;
use super::tally::Totals;
use crate::eval::report::Machine;

/// What the server counts of anchors that were chosen, and not sent because the budget was over or would have been.
const GIVEN_UP: [&str; 2] = ["enhancer_late_infer_total", "enhancer_late_encode_total"];
/// The same of what was made, for each subscriber.
const DROPPED: &str = "sfu_anchors_dropped_late_total";
/// The stages of an anchor in the server.
const STAGES: [&str; 5] = ["decode", "schedule", "infer", "encode", "total"];
const MIB: f64 = (1 << 20) as f64;

/// Everything that was seen from the beginning of the measurement on.
pub struct Seen {
    before: (Figures, Totals),
    after: (Figures, Totals),
    begun: std::time::Instant,
    ended: std::time::Instant,
    /// The server before the first client.
    empty: Option<Usage>,
    usage: Vec<Usage>,
    /// Of the clients' processes, of which one is this.
    own: Vec<Usage>,
    /// The most that each queue of the server held at a look.
    queues: BTreeMap<String, f64>,
}

impl Seen {
    /// The beginning.
    pub fn new(figures: Figures, totals: Totals, empty: Option<Usage>) -> Seen {
        let now = std::time::Instant::now();
        Seen {
            before: (figures.clone(), totals.clone()),
            after: (figures, totals),
            begun: now,
            ended: now,
            empty,
            usage: Vec::new(),
            own: Vec::new(),
            queues: BTreeMap::new(),
        }
    }

    /// Adds what the system knows of the server's process after the end.
    pub fn end(&self, now: Option<Usage>, balance: &mut Balance) {
        balance.of_process(self.empty, now, &self.usage);
    }

    /// Another look.
    pub fn second(
        &mut self,
        figures: &Figures,
        totals: &Totals,
        usage: Option<Usage>,
        children: &[Usage],
    ) {
        self.ended = std::time::Instant::now();
        self.usage.extend(usage);
        let own = Usage::of(std::process::id());
        self.own.extend(own.map(|own| Usage {
            cpu_s: own.cpu_s + children.iter().map(|child| child.cpu_s).sum::<f64>(),
            ..own
        }));
        for (name, depth) in figures.beginning("enhancer_queue_length") {
            let most = self.queues.entry(name.to_owned()).or_default();
            *most = most.max(depth);
        }
        self.after = (figures.clone(), totals.clone());
    }
}

/// The figures, all of the measured time; ratios are null where there is nothing to divide by.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    /// Rooms.
    pub rooms: usize,
    /// Publishers whose media flowed in the end.
    pub publishers: usize,
    /// Publishers that there should be.
    pub publishers_wanted: usize,
    /// Subscribers whose media flowed in the end.
    pub subscribers: usize,
    /// Tracks that they took.
    pub subscriptions: usize,
    /// Of these, the ones with an enhanced rung in the end.
    pub enhanced: usize,
    /// Clients that ended by an error.
    pub failed: u64,
    /// Length of the measurement.
    pub seconds: f64,
    /// The layers that were sent.
    pub layers: String,
    /// The budget.
    pub budget_ms: u32,
    /// RTP packets sent.
    pub sent: u64,
    /// Frames sent, one a layer.
    pub frames_sent: u64,
    /// Pictures sent.
    pub pictures_sent: u64,
    /// Pictures that the clients were too late for.
    pub pictures_skipped: u64,
    /// All publishers' bit rate.
    pub sent_kbps: f64,
    /// Frames that came whole.
    pub frames: u64,
    /// By subscription.
    pub received_fps: Option<f64>,
    /// Frames that could be shown, by subscription: whole, and all that they rest on.
    pub shown_fps: Option<f64>,
    /// Freezes as Chromium counts them, by subscription and minute; what is paused is not frozen.
    pub freezes: Option<f64>,
    /// Share of the time that subscriptions stood still.
    pub frozen: Option<f64>,
    /// The longest time from one shown frame of a subscription to the next, before the measured time too.
    pub gap_most_ms: f64,
    /// Shares of the frames that came whole, by the rung that the server said.
    pub rungs: BTreeMap<Rung, f64>,
    /// Changes of rung, by subscription and minute.
    pub rung_changes: Option<f64>,
    /// Packets that never came.
    pub lost: u64,
    /// Their share.
    pub loss_rate: Option<f64>,
    /// All subscribers' bit rate of video.
    pub video_kbps: f64,
    /// What subscribers' emulated links could carry together.
    pub link_kbps: Option<f64>,
    /// The share of it that video and anchors took, with the video's headers.
    pub link_used: Option<f64>,
    /// The share of it that was carried: padding, probes and repairs too.
    pub link_carried: Option<f64>,
    /// Share of the datagrams that found their queue full.
    pub link_full: Option<f64>,
    /// Wait before the bottleneck, its transmission included.
    pub wait_p50_ms: Option<f64>,
    /// The same.
    pub wait_p95_ms: Option<f64>,
    /// The same.
    pub wait_p99_ms: Option<f64>,
    /// From a link's beginning until 85 % of its rate was carried: the longest.
    pub first_s: Option<f64>,
    /// The longest that a change of a link's rate took to be followed ([`Following`](crate::viewer::Following)).
    pub converged_s: Option<f64>,
    /// Requests for key frames, to publishers.
    pub key_requests: u64,
    /// Requests for key frames, by subscribers.
    pub key_requests_made: u64,
    /// Anchors that came.
    pub anchors: u64,
    /// Of the publisher's own pixels.
    pub anchors_captured: u64,
    /// All subscribers'.
    pub anchors_per_s: f64,
    /// By frame that came on an enhanced rung.
    pub anchor_fraction: Option<f64>,
    /// Bit rate of anchors.
    pub anchor_kbps: f64,
    /// Anchors of which something was missing or wrong.
    pub anchors_broken: u64,
    /// From the frame to its anchor, at the subscriber.
    pub anchor_p50_ms: Option<f64>,
    /// The same.
    pub anchor_p95_ms: Option<f64>,
    /// The same.
    pub anchor_p99_ms: Option<f64>,
    /// The longest.
    pub anchor_most_ms: Option<f64>,
    /// From the frame's arrival at the server to its anchor being sent.
    pub age_p50_ms: Option<f64>,
    /// The same.
    pub age_p95_ms: Option<f64>,
    /// The same.
    pub age_p99_ms: Option<f64>,
    /// Anchors that came after the budget.
    pub anchors_late: u64,
    /// Anchors that the server gave up after choosing them, because of the budget.
    pub anchors_given_up: u64,
    /// The share of both in all that were chosen.
    pub budget_miss_rate: Option<f64>,
    /// What inference took of what it may take.
    pub compute_load: Option<f64>,
    /// Processors that the server took.
    pub cpu_cores: Option<f64>,
    /// Processors that all clients together took.
    pub clients_cpu_cores: Option<f64>,
    /// The server's processor time by packet that it received or sent.
    pub cpu_us_per_packet: Option<f64>,
    /// Packets that subscribers received.
    pub forwarded: u64,
    /// The server's processor time, all of it, by packet that subscribers received.
    pub cpu_us_per_forwarded: Option<f64>,
    /// From a packet's sending by its publisher to its arrival at a subscriber, where packets carry stamps.
    pub transit_p50_ms: Option<f64>,
    /// The same.
    pub transit_p95_ms: Option<f64>,
    /// The same.
    pub transit_p99_ms: Option<f64>,
    /// From a packet's arrival at the server's kernel to the call that sends it on, since the server's start.
    pub forwarding_p50_ms: Option<f64>,
    /// The same.
    pub forwarding_p95_ms: Option<f64>,
    /// The same.
    pub forwarding_p99_ms: Option<f64>,
    /// Resident memory before the first client came.
    pub resident_empty_mib: Option<f64>,
    /// What each client added to it, publishers and subscribers, in the last tenth of the time.
    pub resident_kib_per_client: Option<f64>,
    /// Resident memory in the first tenth of the time.
    pub resident_first_mib: Option<f64>,
    /// In the last tenth.
    pub resident_last_mib: Option<f64>,
    /// The most that each queue held.
    pub queues: BTreeMap<String, f64>,
    /// The server's stages: mean of the measured time, and percentiles since its start.
    pub stages: Vec<Stage>,
    /// The server's counters that grew.
    pub server: BTreeMap<String, f64>,
    /// What was left in the end, and whether what the server counted adds up, where clients came and went.
    pub balance: Option<Balance>,
}

/// A stage of an anchor's way in the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Stage {
    /// Its name.
    #[serde(rename = "stage")]
    pub name: &'static str,
    /// How often it ran while we measured.
    pub count: u64,
    /// Mean of these.
    pub mean_ms: Option<f64>,
    /// Since the server's start.
    pub p50_ms: f64,
    /// The same.
    pub p95_ms: f64,
    /// The same.
    pub p99_ms: f64,
}

/// Everything, as it is printed.
#[derive(Debug, Serialize)]
pub struct Report {
    command: &'static str,
    machine: Machine,
    #[serde(rename = "rows", serialize_with = "one")]
    /// The only row.
    pub row: Row,
    /// Why the first client failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

fn one<S: serde::Serializer>(row: &Row, to: S) -> Result<S::Ok, S::Error> {
    [row].serialize(to)
}

fn share(part: f64, of: f64) -> Option<f64> {
    (of > 0.0).then(|| part / of)
}

/// Means of the first and the last tenth.
fn tenths(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len().div_ceil(10);
    let mean = |part: &[f64]| share(part.iter().sum(), part.len() as f64);
    Some((mean(values.get(..n)?)?, mean(values.get(values.len() - n..)?)?))
}

/// Processors that a process took.
fn cores(usage: &[Usage]) -> Option<f64> {
    let (from, to) = usage.first().zip(usage.last())?;
    share(to.cpu_s - from.cpu_s, to.at.saturating_duration_since(from.at).as_secs_f64())
}

impl Row {
    fn new(
        args: &LoadtestArgs,
        recording: &Recording,
        seen: &Seen,
        balance: Option<Balance>,
    ) -> Row {
        let (figures, now) = &seen.after;
        let (figures_before, before) = &seen.before;
        let seconds = seen.ended.saturating_duration_since(seen.begun).as_secs_f64();
        let kbps = |bytes: u64| share(bytes as f64 * 8.0 / 1000.0, seconds).unwrap_or_default();
        let server = figures.grown_since(figures_before);
        let grown = |name: &str| server.get(name).copied().unwrap_or_default();
        let frames = now.frames - before.frames;
        let lost = now.lost.saturating_sub(before.lost);
        let anchors = now.anchors - before.anchors;
        // What the enhancer gives up, each subscriber goes without.
        let each = args.subscribers.max(1) as f64;
        let given_up: f64 =
            GIVEN_UP.iter().map(|name| each * grown(name)).sum::<f64>() + grown(DROPPED);
        let late = now.anchors_late - before.anchors_late;
        let (lags, ages) = (now.lag.since(&before.lag), now.age.since(&before.age));
        let transits = now.transit.0.since(&before.transit.0);
        let lag = |percent| lags.percentile(percent);
        let age = |percent| ages.percentile(percent);
        let transit = |percent| transits.percentile(percent);
        let forwarding = |q: &str| {
            let quantile = format!("sfu_forwarding_seconds{{quantile=\"{q}\"}}");
            figures.has(&quantile).then(|| 1000.0 * figures.get(&quantile))
        };
        let by_minute = |n: f64| share(60.0 * n, seconds * now.subscriptions as f64);
        let rungs = now.frames_by_rung.iter().filter_map(|(&rung, &n)| {
            let n = n - before.frames_by_rung.get(&rung).copied().unwrap_or_default();
            (n > 0).then(|| (rung, n as f64 / frames as f64))
        });
        let (links, earlier) = (&now.downlinks, &before.downlinks);
        let capacity_bytes = (links.capacity_bytes - earlier.capacity_bytes) as f64;
        let carried = (links.carried_bytes - earlier.carried_bytes) as f64;
        let (media, waits) =
            (now.media_bytes - before.media_bytes, links.waits.since(&earlier.waits));
        let full = (links.overflowed - earlier.overflowed) as f64;
        let forwarded = now.packets - before.packets;
        let cpu = cores(&seen.usage);
        let resident: Vec<f64> = seen.usage.iter().map(|u| u.resident as f64 / MIB).collect();
        let resident = tenths(&resident);
        let packets = grown("sfu_rtp_in_total") + grown("sfu_rtp_out_total");
        let capacity = figures.get("enhancer_compute_capacity") * seconds;
        let stages = STAGES.into_iter().map(|stage| {
            let labels = |rest: &str| format!("{{stage=\"{stage}\"{rest}}}");
            let ms = |q: &str| {
                let labels = labels(&format!(",quantile=\"{q}\""));
                1000.0 * figures.get(&format!("enhancer_latency_seconds{labels}"))
            };
            let count = grown(&format!("enhancer_stage_runs_total{}", labels("")));
            let sum = grown(&format!("enhancer_stage_seconds_total{}", labels("")));
            Stage {
                name: stage,
                count: count as u64,
                mean_ms: share(1000.0 * sum, count),
                p50_ms: ms("0.5"),
                p95_ms: ms("0.95"),
                p99_ms: ms("0.99"),
            }
        });
        Row {
            rooms: args.rooms(),
            publishers: now.publishers,
            publishers_wanted: args.publishers.get(),
            subscribers: now.subscribers,
            subscriptions: now.subscriptions,
            enhanced: now.enhanced,
            failed: now.failed,
            seconds,
            layers: recording
                .layers()
                .map(windlass_types::Layer::rid)
                .collect::<Vec<_>>()
                .join(","),
            budget_ms: args.budget_ms.get(),
            sent: now.packets_sent - before.packets_sent,
            frames_sent: now.frames_sent - before.frames_sent,
            pictures_sent: now.pictures_sent - before.pictures_sent,
            pictures_skipped: now.pictures_skipped - before.pictures_skipped,
            sent_kbps: kbps(now.bytes_sent - before.bytes_sent),
            frames,
            received_fps: share(frames as f64, seconds * now.subscriptions as f64),
            shown_fps: share((now.shown - before.shown) as f64, seconds * now.subscriptions as f64),
            gap_most_ms: now.gap_most_ms,
            freezes: by_minute((now.freezes - before.freezes) as f64),
            frozen: by_minute((now.frozen_ms - before.frozen_ms) / 60_000.0),
            rungs: rungs.collect(),
            rung_changes: by_minute((now.rung_changes - before.rung_changes) as f64),
            link_kbps: share(capacity_bytes * 8.0 / 1000.0, seconds).filter(|kbps| *kbps > 0.0),
            link_used: share(media as f64, capacity_bytes),
            link_carried: share(carried, capacity_bytes),
            link_full: share(full, (links.datagrams - earlier.datagrams) as f64),
            wait_p50_ms: waits.percentile(50.0),
            wait_p95_ms: waits.percentile(95.0),
            wait_p99_ms: waits.percentile(99.0),
            first_s: links.first_s,
            converged_s: links.converged_s,
            lost,
            loss_rate: share(lost as f64, (now.expected - before.expected) as f64),
            video_kbps: kbps(now.bytes - before.bytes),
            key_requests: now.key_requests - before.key_requests,
            key_requests_made: now.key_requests_made - before.key_requests_made,
            anchors,
            anchors_captured: now.anchors_captured - before.anchors_captured,
            anchors_per_s: share(anchors as f64, seconds).unwrap_or_default(),
            anchor_fraction: share(
                anchors as f64,
                (now.frames_enhanced - before.frames_enhanced) as f64,
            ),
            anchor_kbps: kbps(now.anchor_bytes - before.anchor_bytes),
            anchors_broken: now.anchors_broken - before.anchors_broken,
            anchor_p50_ms: lag(50.0),
            anchor_p95_ms: lag(95.0),
            anchor_p99_ms: lag(99.0),
            anchor_most_ms: lag(100.0),
            age_p50_ms: age(50.0),
            age_p95_ms: age(95.0),
            age_p99_ms: age(99.0),
            anchors_late: late,
            anchors_given_up: given_up as u64,
            budget_miss_rate: share(late as f64 + given_up, ages.count() as f64 + given_up),
            compute_load: share(grown("enhancer_compute_seconds_total"), capacity),
            cpu_cores: cpu,
            clients_cpu_cores: cores(&seen.own),
            cpu_us_per_packet: cpu.and_then(|cores| share(cores * seconds * 1e6, packets)),
            cpu_us_per_forwarded: cpu
                .and_then(|cores| share(cores * seconds * 1e6, forwarded as f64)),
            forwarded,
            transit_p50_ms: transit(50.0),
            transit_p95_ms: transit(95.0),
            transit_p99_ms: transit(99.0),
            forwarding_p50_ms: forwarding("0.5"),
            forwarding_p95_ms: forwarding("0.95"),
            forwarding_p99_ms: forwarding("0.99"),
            resident_empty_mib: seen.empty.map(|u| u.resident as f64 / MIB),
            resident_kib_per_client: seen.empty.zip(resident).and_then(|(empty, (_, last))| {
                let grown = (last - empty.resident as f64 / MIB) * 1024.0;
                share(grown, (now.publishers + now.subscribers) as f64)
            }),
            resident_first_mib: resident.map(|(first, _)| first),
            resident_last_mib: resident.map(|(_, last)| last),
            queues: seen.queues.clone(),
            stages: stages.collect(),
            server,
            balance,
        }
    }
}

impl Report {
    /// What was seen.
    pub fn new(
        args: &LoadtestArgs,
        recording: &Recording,
        seen: &Seen,
        balance: Option<Balance>,
    ) -> Report {
        Report {
            command: "loadtest",
            machine: Machine::here(),
            row: Row::new(args, recording, seen, balance),
            failure: seen.after.1.failure.clone(),
        }
    }

    /// For programs.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use windlass_types::Layer;

    use super::*;
    use crate::loadtest::recording::Frame;
    use crate::loadtest::table::table;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: LoadtestArgs,
    }

    /// A second in which so many anchors were in time, late, and given up.
    fn report(in_time: u64, late: u64, given_up: u64) -> Report {
        let args = Cli::parse_from(["loadtest", "--publishers", "3"]).args;
        let frame = Frame::new(vec![0x82, 0]);
        let recording = Recording::new(30.0, vec![(Layer::Q, vec![frame])]).unwrap();
        let figures = |n: u64| {
            Figures::parse(&format!(
                "windlass_enhancer_late_infer_total {n}\nwindlass_enhancer_compute_seconds_total {n}\n\
                 windlass_enhancer_compute_capacity 2\nwindlass_enhancer_queue_length{{queue=\"infer\"}} {n}"
            ))
        };
        let mut totals = Totals { anchors: 7, frames: 100, publishers: 3, ..Totals::default() };
        let mut seen = Seen::new(figures(5), totals.clone(), None);
        totals.anchors += in_time + late;
        totals.anchors_late += late;
        totals.frames += 50;
        totals.frames_enhanced += 50;
        (0..in_time + late).for_each(|_| totals.age.record(80.0));
        seen.second(&figures(5 + given_up), &totals, None, &[]);
        Report::new(&args, &recording, &seen, None)
    }

    #[test]
    fn what_came_late_and_what_was_given_up_missed_the_budget() {
        let row = report(6, 1, 1).row;
        assert_eq!((row.anchors, row.anchors_late, row.anchors_given_up), (7, 1, 1));
        assert_eq!(row.budget_miss_rate, Some(0.25));
        assert_eq!(row.anchor_fraction, Some(7.0 / 50.0));
        assert_eq!(row.frames, 50, "what was before does not count");
        assert_eq!(row.queues.values().copied().collect::<Vec<_>>(), [6.0]);
    }

    #[test]
    fn nothing_to_divide_by_gives_null_and_a_dash() {
        let report = report(0, 0, 0);
        assert_eq!(report.row.budget_miss_rate, None);
        let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert!(json["rows"][0]["anchor_p50_ms"].is_null() && json["machine"].is_object());
        let table = table(&report);
        assert!(table.contains("past the budget            – (0 came"), "{table}");
    }

    #[test]
    fn tenths_are_means_of_the_ends() {
        let values: Vec<f64> = (0..20).map(f64::from).collect();
        assert_eq!(tenths(&values), Some((0.5, 18.5)));
        assert_eq!(tenths(&[3.0]), Some((3.0, 3.0)));
        assert_eq!(tenths(&[]), None);
    }
}
