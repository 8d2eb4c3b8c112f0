//! Checks the server after the last client has gone: what it still holds, and whether its counters add up.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::process::Usage;
use super::scrape::Figures;
use super::tally::{ClientTotals, Totals};

/// Maximum time for a server to notice that clients have gone without a goodbye, and to end what it did for them.
pub(super) const TIMEOUT: Duration = Duration::from_secs(90);

/// Metrics that must be zero when nobody is there.
const NOBODY: [&str; 9] = [
    "sfu_participants",
    "sfu_rooms",
    "sfu_connected",
    "sfu_tracks",
    "sfu_subscriptions",
    "sfu_taps",
    "enhancer_streams",
    "enhancer_cpu_tasks_running",
    "enhancer_cpu_tasks_waiting",
];
/// Metrics that must be as they were before the first client.
const AS_BEFORE: [&str; 2] = ["signaling_sockets_open", "tasks"];

/// Sums: a metric of what goes in, and the metrics of all that may become of it. Names stand for all of their labels.
const SUMS: [(&str, &[&str]); 9] = [
    ("sfu_joins_total", &["sfu_leaves_total", "sfu_participants"]),
    (
        "sfu_datagrams_in_total",
        &[
            "sfu_datagrams_taken_total",
            "sfu_datagrams_malformed_total",
            "sfu_datagrams_costly_total",
            "sfu_datagrams_unknown_total",
            "sfu_strangers_limited_total",
        ],
    ),
    (
        "sfu_anchors_due_total",
        &[
            "sfu_anchors_out_total",
            "sfu_anchors_dropped_late_total",
            "sfu_anchors_dropped_full_total",
            "sfu_anchors_dropped_unmapped_total",
            "sfu_anchors_dropped_malformed_total",
            "sfu_anchors_dropped_left_total",
        ],
    ),
    (
        "enhancer_frames_in_total",
        &[
            "enhancer_dropped_disabled_total",
            "enhancer_dropped_stream_limit_total",
            "enhancer_dropped_cpu_total",
            "enhancer_dropped_memory_total",
            "enhancer_dropped_size_total",
            "enhancer_dropped_decode_queue_total",
            "enhancer_dropped_stopped_total",
            "enhancer_dropped_waiting_key_total",
            "enhancer_decoded_total",
            "enhancer_decode_errors_total",
        ],
    ),
    (
        "enhancer_decoded_total",
        &[
            "enhancer_late_decode_total",
            "enhancer_dropped_schedule_queue_total",
            "enhancer_schedule_considered_total",
        ],
    ),
    (
        "enhancer_schedule_considered_total",
        &[
            "enhancer_schedule_chosen_total",
            "enhancer_schedule_over_fraction_total",
            "enhancer_schedule_unchanged_total",
            "enhancer_schedule_over_capacity_total",
            "enhancer_schedule_lost_causes_total",
            "enhancer_schedule_overflowed_total",
            "enhancer_schedule_not_planned_total",
            "enhancer_schedule_refused_total",
            "enhancer_schedule_worthless_total",
        ],
    ),
    (
        "enhancer_schedule_chosen_total",
        &[
            "enhancer_anchors_total",
            "enhancer_unchanged_total",
            "enhancer_dropped_infer_queue_total",
            "enhancer_late_infer_total",
            "enhancer_infer_errors_total",
            "enhancer_known_total",
            "enhancer_worthless_total",
            "enhancer_late_encode_total",
            "enhancer_encode_errors_total",
            "enhancer_dropped_anchors_total",
        ],
    ),
    ("enhancer_anchors_total", &["sfu_anchors_in_total", "sfu_anchors_in_overflows_total"]),
    ("sfu_tap_frames_total", &["enhancer_frames_in_total", "sfu_tap_overflows_total"]),
];

/// Bytes in a MiB.
const MIB: f64 = 1_048_576.0;
/// Memory in MiB that a server may keep of what its clients took, when they have gone.
const KEPT_MIB: f64 = 64.0;
/// Share of its clients' memory that a server may keep when they have gone. The busiest hour must not decide for
/// ever.
const KEPT_SHARE: f64 = 0.5;

/// One sum of the server's counters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Sum {
    /// Name of the metric of what went in.
    pub of: &'static str,
    /// Value of the metric of what went in.
    pub total: f64,
    /// Sum of the metrics of all that became of it.
    pub parts: f64,
}

/// The state of the server after the last client.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Balance {
    /// Number of visits: clients that came and went.
    pub visits: u64,
    /// Number of visits that ended without a goodbye.
    pub vanished: u64,
    /// Metrics that are not as they should be, with how much more there is.
    pub left_over: Vec<(String, f64)>,
    /// All sums of counters.
    pub sums: Vec<Sum>,
    /// Number of the server's file descriptors beyond that before the first client.
    pub descriptors: Option<i64>,
    /// Number of the server's threads beyond that before the first client.
    pub threads: Option<i64>,
    /// Resident memory when all had gone, in MiB.
    pub resident_mib: Option<f64>,
    /// Resident memory when all had gone, less that before the first client, in MiB.
    pub kept_mib: Option<f64>,
    /// Greatest resident memory, less that before the first client, in MiB.
    pub took_mib: Option<f64>,
    /// Growth of resident memory in the second half of the time, in MiB an hour.
    pub resident_mib_per_hour: Option<f64>,
}

impl Balance {
    /// The balance from the metrics `now`; `before` is from when nobody had come yet.
    pub(super) fn of(before: &Figures, now: &Figures, totals: &Totals) -> Balance {
        let left = |name: &str, base: f64| (name.to_owned(), now.sum(name) - base);
        let nobody = NOBODY.iter().map(|name| left(name, 0.0));
        let as_before = AS_BEFORE.iter().map(|name| left(name, before.sum(name)));
        let left_over = nobody.chain(as_before).filter(|(_, more)| *more > 0.0).collect();
        let grown = |name: &str| now.sum(name) - before.sum(name);
        let mut sums: Vec<Sum> = SUMS
            .iter()
            .map(|(of, parts)| Sum {
                of,
                total: grown(of),
                parts: parts.iter().map(|part| grown(part)).sum(),
            })
            .collect();
        let [down, up] = totals.datagrams.links;
        for (of, stats) in [("links down", down), ("links up", up)] {
            let parts = stats.arrived + stats.overflowed + stats.lost + stats.underway;
            sums.push(Sum { of, total: stats.sent as f64, parts: parts as f64 });
        }
        sums.push(Sum {
            of: "datagrams that clients sent",
            total: totals.datagrams.out as f64,
            parts: grown("sfu_datagrams_in_total"),
        });
        let ClientTotals { visits, vanished, .. } = totals.clients;
        Balance { visits, vanished, left_over, sums, ..Balance::default() }
    }

    /// Adds what the system reports of the server's process.
    pub(super) fn of_process(&mut self, before: Option<Usage>, now: Option<Usage>, seen: &[Usage]) {
        let more = |of: fn(&Usage) -> u64| {
            Some(of(now.as_ref()?).cast_signed() - of(before.as_ref()?).cast_signed())
        };
        self.descriptors = more(|u| u.descriptors);
        self.threads = more(|u| u.threads);
        self.resident_mib = now.map(|u| u.resident as f64 / MIB);
        let beyond = |u: &Usage| Some((u.resident as f64 - before?.resident as f64) / MIB);
        self.kept_mib = now.as_ref().and_then(beyond);
        self.took_mib = seen.iter().filter_map(beyond).reduce(f64::max);
        self.resident_mib_per_hour = slope(&seen[seen.len() / 2..]);
    }

    /// Whether nothing is left that will not go by itself.
    pub(super) fn empty(&self) -> bool {
        self.left_over.is_empty()
    }

    /// Whether the system has got most of the memory back that clients took, as far as is known.
    pub(super) fn gave_back(&self) -> bool {
        let known = self.kept_mib.zip(self.took_mib);
        known.is_none_or(|(kept, took)| kept <= KEPT_MIB || kept <= KEPT_SHARE * took)
    }

    /// Whether no more changes are to come. Sums may be wrong for an instant: the scheduler publishes its counters
    /// once an interval.
    pub(super) fn settled(&self) -> bool {
        self.empty() && self.gave_back() && self.wrong().next().is_none()
    }

    /// The sums whose parts differ from their total.
    pub(super) fn wrong(&self) -> impl Iterator<Item = &Sum> {
        self.sums.iter().filter(|sum| (sum.total - sum.parts).abs() > 0.5)
    }
}

/// Growth of resident memory in MiB an hour, by least squares.
fn slope(usage: &[Usage]) -> Option<f64> {
    let first: Instant = usage.first()?.at;
    let points: Vec<(f64, f64)> = usage
        .iter()
        .map(|u| {
            let hours = u.at.saturating_duration_since(first).as_secs_f64() / 3600.0;
            (hours, u.resident as f64 / MIB)
        })
        .collect();
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let over: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let under: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    (under > 0.0).then(|| over / under)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(text: &str) -> Figures {
        let lines: Vec<_> = text.lines().map(|line| format!("windlass_{}", line.trim())).collect();
        Figures::parse(&lines.join("\n"))
    }

    #[test]
    fn what_is_left_and_what_is_missing_is_found() {
        let before = figures("sfu_joins_total 3\nsfu_leaves_total 3\ntasks 7");
        let now = figures("sfu_joins_total 9\nsfu_leaves_total 8\ntasks 9\nsfu_rooms 1");
        let balance = Balance::of(&before, &now, &Totals::default());
        let left = [("sfu_rooms".to_owned(), 1.0), ("tasks".to_owned(), 2.0)];
        assert_eq!(balance.left_over, left);
        let wrong: Vec<_> = balance.wrong().collect();
        assert_eq!(wrong, [&Sum { of: "sfu_joins_total", total: 6.0, parts: 5.0 }]);
        let fine = Balance::of(&before, &before, &Totals::default());
        assert!(fine.settled());
    }

    #[test]
    fn a_count_that_is_behind_is_waited_for() {
        let before = figures("sfu_joins_total 3\nsfu_leaves_total 3");
        let now = figures("sfu_joins_total 9\nsfu_leaves_total 8");
        let balance = Balance::of(&before, &now, &Totals::default());
        assert!(balance.empty() && balance.gave_back() && !balance.settled());
    }

    fn usage(at: Instant, mib: u64) -> Usage {
        Usage { at, cpu_s: 0.0, resident: mib << 20, descriptors: 0, threads: 0 }
    }

    #[test]
    fn memory_that_was_not_given_back_is_found() {
        let now = Instant::now();
        let of = |empty, peak, end| {
            let mut balance = Balance::default();
            let seen = [usage(now, 30), usage(now, peak), usage(now, 40)];
            balance.of_process(Some(usage(now, empty)), Some(usage(now, end)), &seen);
            balance.gave_back()
        };
        assert!(of(20, 520, 270) && !of(20, 520, 280));
        // Little is no matter, whatever share it is.
        assert!(of(20, 90, 84) && !of(20, 90, 85));
        assert!(Balance::default().gave_back());
    }

    #[test]
    fn memory_that_grows_has_a_slope() {
        let now = Instant::now();
        let usage: Vec<_> =
            (0..60).map(|n| usage(now + Duration::from_secs(60 * n), 50 + n / 6)).collect();
        let grown = slope(&usage).expect("a slope");
        assert!((9.5..10.5).contains(&grown), "{grown}");
        assert_eq!(slope(&usage[..1]), None);
    }
}
