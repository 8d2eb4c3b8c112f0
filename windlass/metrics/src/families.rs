//! The table of all metrics: `/metrics` and `docs/metrics.md` are made from it.

use windlass_enhancer::PipelineCounters;
use windlass_signaling::{Family, families};

/// Condition of metrics that only servers with `node-url` have.
const CLUSTER: &str = "`node-url`";
/// Condition of metrics that only processes with a GPU have.
const GPU: &str = "a GPU";
/// Condition of metrics that only processes with `nats` have.
const NATS: &str = "`nats`";
/// Condition of metrics that only servers with `node-listen` have.
const RELAY: &str = "`node-listen`";
/// Condition of metrics that only servers with remote workers have.
const WORKERS: &str = "`workers` or `nats`";

/// Metrics of the program and its process, with the names that Prometheus's own libraries use, and of the
/// configuration.
const PROGRAM: &[Family] = &[
    Family::gauge("windlass_build_info", "The version that runs.").by(&["version"]),
    Family::gauge("windlass_tasks", "Tasks that run or wait now."),
    Family::counter(
        "windlass_log_lines_lost_total",
        "Lines of the log that nobody took: standard error was not read.",
    ),
    Family::gauge("process_start_time_seconds", "When the server started, in seconds since 1970."),
    Family::counter("process_cpu_seconds_total", "Processor time of all threads, in seconds."),
    Family::gauge("process_resident_memory_bytes", "Memory that is resident, in bytes.")
        .with("Linux"),
    Family::gauge("process_open_fds", "Open file descriptors.").with("Linux"),
    Family::counter(
        "windlass_config_reloads_total",
        "Times that a changed configuration was put into use.",
    ),
    Family::counter(
        "windlass_config_reload_failures_total",
        "Times that a configuration or certificate could not be used.",
    ),
    Family::gauge(
        "windlass_config_options_waiting_for_restart",
        "Changed options that need a restart.",
    ),
    Family::gauge(
        "windlass_config_read_timestamp_seconds",
        "When the configuration in use was read, in seconds since 1970.",
    ),
];

/// Condition of metrics that only servers with `record-to` have.
const RECORD: &str = "`record-to`";

/// Metrics of the recorder.
const RECORDER: &[Family] = &[
    Family::gauge("windlass_recordings", "Recordings that run now.").with(RECORD),
    Family::counter(
        "windlass_recordings_failed_total",
        "Recordings that ended because a file could not be written.",
    )
    .with(RECORD),
    Family::counter("windlass_recorded_bytes_total", "Bytes of recorded media.").with(RECORD),
    Family::counter(
        "windlass_recorder_dropped_total",
        "Frames and packets dropped because the disk was too slow.",
    )
    .with(RECORD),
    Family::counter(
        "windlass_recorder_gaps_total",
        "Gaps in recorded video, each up to the next key frame.",
    )
    .with(RECORD),
    Family::counter(
        "windlass_recorder_late_total",
        "Packets of recorded audio that came after those behind them were written.",
    )
    .with(RECORD),
    Family::counter(
        "windlass_recorder_untold_total",
        "Recordings whose end the room was not told, as signalling was too slow.",
    )
    .with(RECORD),
];

/// Metrics of the enhancer, except its plain counters: those carry their own help texts.
const ENHANCER: &[Family] = &[
    Family::gauge("windlass_enhancer_enabled", "Whether the enhancer is switched on."),
    Family::gauge("windlass_enhancer_streams", "Publishers whose low layer is decoded now."),
    Family::gauge(
        "windlass_enhancer_excluded_streams",
        "Publishers without anchors because there is no time, memory or place for them beside others with the fairer claim, or their pictures are too large.",
    ),
    Family::gauge(
        "windlass_enhancer_memory_counted_bytes",
        "What enhanced publishers take, as counted by the sizes of their pictures.",
    ),
    Family::gauge("windlass_enhancer_memory_bound_bytes", "What they may take."),
    Family::gauge(
        "windlass_enhancer_cpu_demand",
        "What decoding and coding need of the processor tasks that may run, as a share.",
    ),
    Family::gauge(
        "windlass_enhancer_network_streams",
        "Publishers that have the network now.",
    )
    .by(&["network"]),
    Family::gauge(
        "windlass_enhancer_network_seconds_per_pixel",
        "What the network takes of one low-layer pixel, in seconds.",
    )
    .by(&["network"]),
    Family::counter("windlass_enhancer_network_anchors_total", "Anchors that the network made.")
        .by(&["network"]),
    Family::gauge(
        "windlass_enhancer_scale_streams",
        "Publishers whose pictures are enlarged by this factor now.",
    )
    .by(&["scale"]),
    Family::counter(
        "windlass_enhancer_learning_seconds_total",
        "Processor time of learning from captured pictures, in seconds.",
    ),
    Family::histogram(
        "windlass_enhancer_anchor_seconds",
        "From a frame's arrival at the server to its anchor, ready to be sent.",
    ),
    Family::histogram(
        "windlass_enhancer_stage_seconds",
        "What each stage of an anchor takes: from its frame's arrival to decoded, to chosen, to super-resolved (waiting included), to encoded.",
    )
    .by(&["stage"]),
    Family::histogram(
        "windlass_enhancer_compute_seconds",
        "What an accelerator takes for a picture; the sum grows by the capacity in a second at most.",
    ),
    Family::gauge(
        "windlass_enhancer_compute_capacity",
        "Seconds that inference may take in one second.",
    ),
    Family::gauge(
        "windlass_enhancer_compute_demand",
        "Seconds of inference in one second that would give every publisher its fraction of anchors; to be added up over servers.",
    ),
    Family::gauge(
        "windlass_enhancer_devices_wanted",
        "Inferences side by side that would do so.",
    ),
    Family::gauge("windlass_enhancer_queue_length", "What waits in a queue now.").by(&["queue"]),
    Family::gauge(
        "windlass_enhancer_promised_streams",
        "Publishers that the policy quality-sla has promised its quality to.",
    ),
    Family::gauge(
        "windlass_enhancer_refused_streams",
        "Publishers that the policy quality-sla refuses anchors.",
    ),
    Family::gauge(
        "windlass_enhancer_held_back_streams",
        "Publishers whose enhanced anchors are worth nothing: none are made but a probe now and then.",
    ),
    Family::gauge(
        "windlass_enhancer_anchor_worth_db",
        "What enhanced anchors are worth lately in dB of PSNR-Y, by estimate: the mean over the time that they are shown, and over publishers.",
    )
    .with("an enhanced publisher"),
    Family::counter(
        "windlass_enhancer_schedule_considered_total",
        "Decoded frames that the scheduler looked at.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_chosen_total",
        "Frames chosen to become anchors.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_over_fraction_total",
        "Frames passed over: their publisher had its fraction of anchors.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_over_capacity_total",
        "Frames passed over for lack of compute.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_lost_causes_total",
        "Frames passed over that could not be ready in time.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_unchanged_total",
        "Frames passed over in which nothing had changed.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_overflowed_total",
        "Frames passed over because too many waited.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_not_planned_total",
        "Frames that the plan of quality-sla leaves out.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_refused_total",
        "Frames of publishers that quality-sla refuses.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_worthless_total",
        "Anchors not made because their publisher's were worth nothing lately.",
    ),
    Family::gauge("windlass_enhancer_cpu_slots", "Processor tasks that may run at once."),
    Family::gauge("windlass_enhancer_cpu_tasks_running", "Processor tasks that run now."),
    Family::gauge("windlass_enhancer_cpu_tasks_waiting", "Processor tasks that wait now."),
    Family::counter(
        "windlass_enhancer_cpu_tasks_refused_total",
        "Processor tasks that were lost causes and did not run.",
    )
    .by(&["stage"]),
    Family::counter(
        "windlass_enhancer_cpu_tasks_demoted_total",
        "Processor tasks that were lost causes and ran behind all others.",
    )
    .by(&["stage"]),
    Family::histogram(
        "windlass_enhancer_cpu_wait_seconds",
        "How long processor tasks waited for a slot.",
    )
    .by(&["stage"]),
];

/// Metrics of GPUs.
const CARDS: &[Family] = &[
    Family::gauge(
        "windlass_enhancer_card_working",
        "Whether the GPU is used; 0 after it has failed.",
    ),
    Family::gauge("windlass_enhancer_card_engines", "Networks of workers that use the GPU."),
    Family::gauge(
        "windlass_enhancer_card_weights",
        "Sets of networks' weights that are on the GPU.",
    ),
    Family::gauge("windlass_enhancer_card_waiting_pictures", "Pictures that wait for the GPU now."),
    Family::counter(
        "windlass_enhancer_card_launches_total",
        "Times that the GPU was given pictures, of one or several at once.",
    ),
    Family::counter(
        "windlass_enhancer_card_pictures_total",
        "Pictures that the GPU super-resolved.",
    ),
    Family::counter(
        "windlass_enhancer_card_busy_seconds_total",
        "Time that the GPU was at work, copies included, in seconds.",
    ),
    Family::counter(
        "windlass_enhancer_card_full_total",
        "Times that the GPU had no memory for what it was given at once.",
    ),
];

/// Metrics of workers on other machines, as a server sees them.
const WORKER: &[Family] = &[
    Family::counter(
        "windlass_worker_frames_dropped_total",
        "Frames that found a worker's stream full.",
    ),
    Family::counter(
        "windlass_worker_frames_skipped_total",
        "Frames left out while a key frame was waited for.",
    ),
    Family::counter("windlass_worker_anchors_total", "Anchors of workers that came in time."),
    Family::counter("windlass_worker_anchors_late_total", "Anchors of workers that came too late."),
    Family::counter(
        "windlass_worker_moves_total",
        "Streams that left a worker that failed or was silent.",
    ),
    Family::counter(
        "windlass_worker_balanced_total",
        "Streams that went to a worker with less to do.",
    ),
    Family::counter("windlass_worker_leases_refused_total", "Workers' leases that made no sense."),
    Family::counter("windlass_worker_malformed_total", "Messages of workers that made no sense."),
    Family::gauge("windlass_worker_streams", "Streams that the worker has.").by(&["worker"]),
    Family::gauge("windlass_worker_load", "Share of its time that is taken, as it says.")
        .by(&["worker"]),
    Family::gauge("windlass_worker_up", "Whether it may be given streams.").by(&["worker"]),
    Family::gauge(
        "windlass_worker_device",
        "A GPU, or a slice of one, that the worker's lease names.",
    )
    .by(&["worker", "device"]),
];

/// Metrics of other servers of a cluster.
const NODES: &[Family] = &[
    Family::gauge("windlass_cluster_nats_connected", "Whether a NATS server answers.").with(NATS),
    Family::counter(
        "windlass_cluster_rogues_total",
        "Entries of NATS buckets that were rejected: without a valid seal of this cluster, or replayed.",
    )
    .by(&["bucket", "reason"])
    .with(NATS),
    Family::gauge(
        "windlass_cluster_certificate_not_after_timestamp_seconds",
        "When this machine's certificate of the cluster ends, in seconds since 1970.",
    )
    .with("`cluster-tls`"),
    Family::counter(
        "windlass_cluster_connections_refused_total",
        "Connections of machines that had no certificate of the cluster, or another role's.",
    )
    .with("`cluster-tls`"),
    Family::gauge(
        "windlass_cluster_nodes",
        "Servers of the cluster that live, this one included.",
    )
    .with(CLUSTER),
    Family::gauge(
        "windlass_cluster_rooms",
        "Rooms that a server of the cluster has claimed.",
    )
    .with(CLUSTER),
    Family::gauge(
        "windlass_cluster_rooms_shared",
        "Rooms that are on this server and on others.",
    )
    .with(CLUSTER),
    Family::counter(
        "windlass_cluster_refused_total",
        "Malformed leases and claims of other servers.",
    )
    .with(CLUSTER),
    Family::counter(
        "windlass_cluster_tickets_refused_total",
        "Participants that moved here with a ticket that was refused.",
    )
    .with(CLUSTER),
    Family::counter(
        "windlass_cluster_rooms_moved_total",
        "Rooms whose participants were sent to another server.",
    )
    .with(CLUSTER),
    Family::counter(
        "windlass_cluster_rooms_spread_total",
        "Servers that were added to a room of this server because it was full.",
    )
    .with(CLUSTER),
    Family::counter(
        "windlass_cluster_rules_refused_total",
        "Malformed bans and other rules of other servers.",
    )
    .with(CLUSTER),
    Family::gauge(
        "windlass_relay_links",
        "Servers to which there is a link, for rooms that both have.",
    )
    .with(RELAY),
    Family::counter("windlass_relay_sent_total", "Messages put into the queues of links.")
        .with(RELAY),
    Family::counter(
        "windlass_relay_dropped_total",
        "Packets and anchors dropped because the queue of a link was full.",
    )
    .with(RELAY),
    Family::counter(
        "windlass_relay_stale_total",
        "Packets and anchors dropped because they had waited too long for a link.",
    )
    .with(RELAY),
    Family::counter("windlass_relay_cut_total", "Links closed because their queue was full.")
        .with(RELAY),
    Family::counter(
        "windlass_relay_malformed_total",
        "Malformed messages of other servers; each closed its link.",
    )
    .with(RELAY),
];

/// All metrics that a server or a worker may have.
pub fn all() -> Vec<Family> {
    let counters =
        PipelineCounters::help().into_iter().map(|(name, help)| Family::counter(name, help));
    let enhancer = ENHANCER.iter().copied().chain(counters).map(|family| match family.with {
        "" => family.with("an enhancer"),
        _ => family,
    });
    let cards = CARDS.iter().map(|family| family.by(&["card", "name", "uuid"]).with(GPU));
    let workers = WORKER.iter().map(|family| family.with(WORKERS));
    let program = PROGRAM.iter().chain(RECORDER).copied().chain(families());
    program.chain(enhancer).chain(cards).chain(workers).chain(NODES.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write;

    use super::*;

    /// The tables of `docs/metrics.md`, one for each part of the program.
    fn tables() -> String {
        let mut text = String::from(
            "# Metrics\n\n\
             What `GET /metrics` tells. Sums, counts and buckets of histograms have the endings that Prometheus gives them: \
             `histogram_quantile(0.95, sum by (le) (rate(windlass_enhancer_anchor_seconds_bucket[5m])))` is the 95th percentile of \
             all servers together. Servers that have what the last column names tell the metric; where it names nothing, all do.\n\n\
             This file is made of the program's declarations: `UPDATE_EXPECT=1 cargo test -p windlass-metrics` writes it.\n",
        );
        let part = |family: &Family| {
            let name = family.name.strip_prefix("windlass_").unwrap_or(family.name);
            let part = name.split('_').next().unwrap_or_default();
            if ["build", "draining", "log", "tasks"].contains(&part) { "process" } else { part }
        };
        let families = all();
        for heading in families.iter().map(part).collect::<BTreeSet<_>>() {
            let _ = write!(
                text,
                "\n## {heading}\n\n| metric | type | unit | labels | what it is | with |\n\
                 | --- | --- | --- | --- | --- | --- |\n",
            );
            for family in families.iter().filter(|family| part(family) == heading) {
                let Family { name, kind, labels, help, with } = family;
                let (kind, unit) = (kind.name(), family.name_and_unit().1.unwrap_or_default());
                let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
                let labels = labels.join(", ");
                let _ =
                    writeln!(text, "| `{name}` | {kind} | {unit} | {labels} | {help} | {with} |");
            }
        }
        text
    }

    #[test]
    fn the_metrics_of_the_documents_are_those_of_the_program() {
        let file = "../../docs/metrics.md";
        let tables = tables();
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(file, &tables).unwrap();
        }
        let written = std::fs::read_to_string(file).unwrap_or_default();
        assert!(
            written == tables,
            "docs/metrics.md is stale; UPDATE_EXPECT=1 writes it:\n{tables}"
        );
    }

    #[test]
    fn each_metric_is_there_once() {
        let names: Vec<_> = all().iter().map(|family| family.name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    }
}
