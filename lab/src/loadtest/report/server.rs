//! The server under load: latency, CPU, memory and the stages of its enhancer.

use serde::Serialize;

use super::span::{Span, share};
use crate::loadtest::measurement::Measurement;
use crate::loadtest::process::Usage;
use crate::loadtest::scrape::Series;

/// The series of the enhancer's stages; the last one is from a frame to its anchor.
const STAGES: [(&str, Series<'_>); 5] = [
    ("decode", Series { name: "enhancer_stage_seconds", label: "stage=\"decode\"" }),
    ("schedule", Series { name: "enhancer_stage_seconds", label: "stage=\"schedule\"" }),
    ("infer", Series { name: "enhancer_stage_seconds", label: "stage=\"infer\"" }),
    ("encode", Series { name: "enhancer_stage_seconds", label: "stage=\"encode\"" }),
    ("total", Series { name: "enhancer_anchor_seconds", label: "" }),
];
/// From a packet's arrival in the server's kernel to the call that sends it on.
const FORWARDING: Series<'_> = Series { name: "sfu_forwarding_seconds", label: "" };
/// Bytes in a MiB.
const MIB: f64 = (1 << 20) as f64;

/// Latency of RTP packets.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(clippy::struct_field_names, reason = "they are keys of the report")]
pub(crate) struct Latency {
    /// Median time from a publisher's sending to a subscriber's receiving, ms; null unless packets carry timestamps.
    pub transit_p50_ms: Option<f64>,
    /// 95th percentile of the time from publisher to subscriber, ms.
    pub transit_p95_ms: Option<f64>,
    /// 99th percentile of the time from publisher to subscriber, ms.
    pub transit_p99_ms: Option<f64>,
    /// Median time from the kernel's receive timestamp to the server's send call, by the bounds of its histogram, ms.
    pub forwarding_p50_ms: Option<f64>,
    /// 95th percentile of the time from receive timestamp to send call, by the bounds of its histogram, ms.
    pub forwarding_p95_ms: Option<f64>,
    /// 99th percentile of the time from receive timestamp to send call, by the bounds of its histogram, ms.
    pub forwarding_p99_ms: Option<f64>,
}

impl Latency {
    pub(super) fn of(span: &Span<'_>) -> Latency {
        let transits = span.now.transit.since(&span.before.transit);
        let forwarding = span.latencies(&FORWARDING);
        Latency {
            transit_p50_ms: transits.percentile(50.0),
            transit_p95_ms: transits.percentile(95.0),
            transit_p99_ms: transits.percentile(99.0),
            forwarding_p50_ms: forwarding.percentile(50.0),
            forwarding_p95_ms: forwarding.percentile(95.0),
            forwarding_p99_ms: forwarding.percentile(99.0),
        }
    }
}

/// CPU time of server and clients; null where the system does not report it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct CpuTime {
    /// Busy time of inference over its capacity, 0 to 1.
    pub compute_load: Option<f64>,
    /// Number of CPU cores that the server used.
    pub cpu_cores: Option<f64>,
    /// Number of CPU cores that all clients used.
    pub clients_cpu_cores: Option<f64>,
    /// The server's CPU time over the RTP packets that it received and sent, in µs.
    pub cpu_us_per_packet: Option<f64>,
    /// The server's CPU time over the RTP packets that subscribers received, in µs.
    pub cpu_us_per_forwarded: Option<f64>,
}

impl CpuTime {
    /// Computes the CPU times; `forwarded` is the number of packets that reached subscribers.
    pub(super) fn of(span: &Span<'_>, measurement: &Measurement, forwarded: u64) -> CpuTime {
        let cpu_cores = cores(&measurement.server);
        let us_per = |n: f64| cpu_cores.and_then(|cores| share(cores * span.seconds * 1e6, n));
        let packets = span.grown("sfu_rtp_in_total") + span.grown("sfu_rtp_out_total");
        let capacity = span.figures.get("enhancer_compute_capacity") * span.seconds;
        CpuTime {
            compute_load: share(span.grown("enhancer_compute_seconds_sum"), capacity),
            cpu_cores,
            clients_cpu_cores: cores(&measurement.clients),
            cpu_us_per_packet: us_per(packets),
            cpu_us_per_forwarded: us_per(forwarded as f64),
        }
    }
}

/// Resident memory of the server; null where the system does not report it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(clippy::struct_field_names, reason = "they are keys of the report")]
pub(crate) struct Memory {
    /// Resident memory before the first client joined, MiB.
    pub resident_empty_mib: Option<f64>,
    /// Growth until the last tenth of the measured time over the number of publishers and subscribers, in KiB.
    pub resident_kib_per_client: Option<f64>,
    /// Mean resident memory in the first tenth of the measured time, in MiB.
    pub resident_first_mib: Option<f64>,
    /// Mean resident memory in the last tenth of the measured time, in MiB.
    pub resident_last_mib: Option<f64>,
}

impl Memory {
    /// Computes the memory; `clients` is the number of publishers and subscribers.
    pub(super) fn of(measurement: &Measurement, clients: usize) -> Memory {
        let mib = |usage: &Usage| usage.resident as f64 / MIB;
        let resident: Vec<f64> = measurement.server.iter().map(mib).collect();
        let (first, last) = tenths(&resident).unzip();
        let empty = measurement.server_empty.as_ref().map(mib);
        Memory {
            resident_empty_mib: empty,
            resident_kib_per_client: empty
                .zip(last)
                .and_then(|(empty, last)| share((last - empty) * 1024.0, clients as f64)),
            resident_first_mib: first,
            resident_last_mib: last,
        }
    }
}

/// Latency of one stage of the enhancer.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Stage {
    /// The stage's name; `total` is from a frame's arrival to its anchor.
    #[serde(rename = "stage")]
    pub name: &'static str,
    /// Number of runs in the measured time.
    pub count: u64,
    /// Mean latency over the measured time, in ms.
    pub mean_ms: Option<f64>,
    /// Median latency over the measured time, by the bounds of the histogram, in ms.
    pub p50_ms: f64,
    /// 95th percentile of the latency over the measured time, in ms.
    pub p95_ms: f64,
    /// 99th percentile of the latency over the measured time, in ms.
    pub p99_ms: f64,
}

impl Stage {
    /// All stages, in the order of the pipeline.
    pub(super) fn all(span: &Span<'_>) -> Vec<Stage> {
        STAGES.into_iter().map(|(name, series)| Stage::of(span, name, &series)).collect()
    }

    fn of(span: &Span<'_>, name: &'static str, series: &Series<'_>) -> Stage {
        let count = span.grown(&series.of("_count", ""));
        let sum = span.grown(&series.of("_sum", ""));
        let latencies = span.latencies(series);
        Stage {
            name,
            count: count as u64,
            mean_ms: share(1000.0 * sum, count),
            p50_ms: latencies.percentile_or_zero(50.0),
            p95_ms: latencies.percentile_or_zero(95.0),
            p99_ms: latencies.percentile_or_zero(99.0),
        }
    }
}

/// Means of the first and the last tenth of the values.
fn tenths(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len().div_ceil(10);
    let mean = |part: &[f64]| share(part.iter().sum(), part.len() as f64);
    Some((mean(values.get(..n)?)?, mean(values.get(values.len() - n..)?)?))
}

/// Number of CPU cores that a process used, from its first sample to its last.
fn cores(usage: &[Usage]) -> Option<f64> {
    let (from, to) = usage.first().zip(usage.last())?;
    share(to.cpu_s - from.cpu_s, to.at.saturating_duration_since(from.at).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenths_are_means_of_the_ends() {
        let values: Vec<f64> = (0..20).map(f64::from).collect();
        assert_eq!(tenths(&values), Some((0.5, 18.5)));
        assert_eq!(tenths(&[3.0]), Some((3.0, 3.0)));
        assert_eq!(tenths(&[]), None);
    }
}
