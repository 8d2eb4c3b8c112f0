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
        "Lines of the log that were lost because standard error was not read.",
    ),
    Family::gauge("process_start_time_seconds", "When the server started, in seconds since 1970."),
    Family::counter("process_cpu_seconds_total", "CPU time of all threads, in seconds."),
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
        "Packets of recorded audio that arrived after later packets had been written.",
    )
    .with(RECORD),
    Family::counter(
        "windlass_recorder_untold_total",
        "Recordings whose end was not announced to the room, as signalling was too slow.",
    )
    .with(RECORD),
    Family::gauge(
        "windlass_recordings_unstored_bytes",
        "Bytes of ended recordings that the store does not have yet.",
    )
    .with(RECORD),
    Family::counter(
        "windlass_recordings_store_failures_total",
        "Attempts to store a recording that failed. They are repeated.",
    )
    .with(RECORD),
    Family::counter(
        "windlass_recorder_anchors_dropped_total",
        "Anchors of recorded video dropped: the disk was too slow, or their frames were not recorded.",
    )
    .with(RECORD),
    Family::gauge(
        "windlass_recordings_unrendered",
        "Files of ended recordings whose enhanced pictures are still to be made.",
    )
    .with(RECORD),
    Family::counter(
        "windlass_recordings_render_failures_total",
        "Attempts to make the enhanced pictures of a file that failed.",
    )
    .with(RECORD),
];

/// Condition of metrics that only servers with an enhancer, or its workers, have.
const RENDER: &str = "an enhancer";

/// Metrics of the renderer.
const RENDERER: &[Family] = &[
    Family::gauge("windlass_renditions", "Enhanced pictures that are made for players now.")
        .with(RENDER),
    Family::counter("windlass_rendition_pictures_total", "Pictures encoded for players.")
        .with(RENDER),
    Family::counter(
        "windlass_rendition_late_total",
        "Pictures left out for players because the server was short of CPU time.",
    )
    .with(RENDER),
    Family::counter(
        "windlass_rendition_failed_total",
        "Pictures for players that could not be decoded or encoded.",
    )
    .with(RENDER),
    Family::counter(
        "windlass_rendition_faults_total",
        "Panics of the renderer. Each ends the pictures of one track until its next key frame.",
    )
    .with(RENDER),
    Family::counter(
        "windlass_rendition_dropped_total",
        "Packets of the renderer, and its requests for key frames, dropped because the media thread was busy.",
    )
    .with(RENDER),
];

/// Metrics of the enhancer, except its plain counters: those carry their own help texts.
const ENHANCER: &[Family] = &[
    Family::gauge("windlass_enhancer_enabled", "Whether the enhancer is switched on."),
    Family::gauge("windlass_enhancer_streams", "Publishers whose low layer is decoded now."),
    Family::gauge(
        "windlass_enhancer_excluded_streams",
        "Publishers without anchors, as their pictures are too large, or time, memory or places go to publishers with smaller claims.",
    ),
    Family::gauge(
        "windlass_enhancer_memory_counted_bytes",
        "Memory that enhanced publishers take, estimated from the sizes of their pictures.",
    ),
    Family::gauge("windlass_enhancer_memory_bound_bytes", "Maximum memory that enhanced publishers may take, counted in the same way."),
    Family::gauge(
        "windlass_enhancer_cpu_demand",
        "Share of the CPU tasks that may run at once which decoding and encoding need.",
    ),
    Family::gauge(
        "windlass_enhancer_network_streams",
        "Publishers for which the network runs now.",
    )
    .by(&["network"]),
    Family::gauge(
        "windlass_enhancer_network_seconds_per_pixel",
        "Time that the network takes for one low-layer pixel, in seconds.",
    )
    .by(&["network"]),
    Family::counter("windlass_enhancer_network_anchors_total", "Anchors made by the network.")
        .by(&["network"]),
    Family::gauge(
        "windlass_enhancer_scale_streams",
        "Publishers whose pictures are enlarged by this factor now.",
    )
    .by(&["scale"]),
    Family::counter(
        "windlass_enhancer_learning_seconds_total",
        "CPU time of learning from captured pictures, in seconds.",
    ),
    Family::histogram(
        "windlass_enhancer_anchor_seconds",
        "Time from a frame's arrival at the server until its anchor is ready to be sent.",
    ),
    Family::histogram(
        "windlass_enhancer_stage_seconds",
        "Time of each stage of an anchor: frame's arrival to decoded, to chosen, to super-resolved (waiting included), to encoded.",
    )
    .by(&["stage"]),
    Family::histogram(
        "windlass_enhancer_compute_seconds",
        "Time that an accelerator takes for a picture. In a second, the sum grows by at most the capacity.",
    ),
    Family::gauge(
        "windlass_enhancer_compute_capacity",
        "Seconds that inference may take in one second.",
    ),
    Family::gauge(
        "windlass_enhancer_compute_demand",
        "Seconds of inference in one second that would give every publisher its fraction of anchors. Sum it over servers.",
    ),
    Family::gauge(
        "windlass_enhancer_devices_wanted",
        "Number of parallel inferences that would give every publisher its fraction of anchors.",
    ),
    Family::gauge("windlass_enhancer_queue_length", "Items that wait in a queue now.").by(&["queue"]),
    Family::gauge(
        "windlass_enhancer_promised_streams",
        "Publishers that the policy quality-sla has promised its quality to.",
    ),
    Family::gauge(
        "windlass_enhancer_refused_streams",
        "Publishers to which the policy quality-sla gives no anchors.",
    ),
    Family::gauge(
        "windlass_enhancer_held_back_streams",
        "Publishers whose enhanced anchors gain nothing. Only a probe is made from time to time.",
    ),
    Family::gauge(
        "windlass_enhancer_anchor_worth_db",
        "Estimated recent gain of enhanced anchors in dB of PSNR-Y: the mean over the time that they are shown, and over publishers.",
    )
    .with("an enhanced publisher"),
    Family::counter(
        "windlass_enhancer_schedule_considered_total",
        "Decoded frames that the scheduler considered.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_chosen_total",
        "Frames chosen to become anchors.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_over_fraction_total",
        "Frames not chosen, as their publisher had its fraction of anchors.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_over_capacity_total",
        "Frames not chosen for lack of compute.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_lost_causes_total",
        "Frames not chosen, as their anchors could not be ready in time.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_unchanged_total",
        "Frames not chosen, as nothing had changed in them.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_overflowed_total",
        "Frames not chosen because too many waited.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_not_planned_total",
        "Frames not chosen, as they are not in the plan of the policy quality-sla.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_refused_total",
        "Frames not chosen, as the policy quality-sla refuses their publisher.",
    ),
    Family::counter(
        "windlass_enhancer_schedule_worthless_total",
        "Anchors not made, as their publisher's recent anchors gained nothing.",
    ),
    Family::gauge("windlass_enhancer_cpu_slots", "CPU tasks that may run at once."),
    Family::gauge("windlass_enhancer_cpu_tasks_running", "CPU tasks that run now."),
    Family::gauge("windlass_enhancer_cpu_tasks_waiting", "CPU tasks that wait now."),
    Family::counter(
        "windlass_enhancer_cpu_tasks_refused_total",
        "CPU tasks that could not end in time and were not run.",
    )
    .by(&["stage"]),
    Family::counter(
        "windlass_enhancer_cpu_tasks_late_total",
        "CPU tasks that began too late to end in time, and had to run.",
    )
    .by(&["stage"]),
    Family::histogram(
        "windlass_enhancer_cpu_wait_seconds",
        "Time that CPU tasks waited for a slot.",
    )
    .by(&["stage"]),
];

/// Metrics of GPUs.
const GPUS: &[Family] = &[
    Family::gauge(
        "windlass_enhancer_gpu_working",
        "Whether the GPU is used; 0 after it has failed.",
    ),
    Family::gauge("windlass_enhancer_gpu_engines", "Networks of workers that use the GPU."),
    Family::gauge(
        "windlass_enhancer_gpu_weights",
        "Sets of networks' weights that are on the GPU.",
    ),
    Family::gauge("windlass_enhancer_gpu_waiting_pictures", "Pictures that wait for the GPU now."),
    Family::counter(
        "windlass_enhancer_gpu_launches_total",
        "Launches on the GPU, each with one or several pictures.",
    ),
    Family::counter(
        "windlass_enhancer_gpu_pictures_total",
        "Pictures that the GPU super-resolved.",
    ),
    Family::counter(
        "windlass_enhancer_gpu_busy_seconds_total",
        "Time that the GPU was busy, copies included, in seconds.",
    ),
    Family::counter(
        "windlass_enhancer_gpu_full_total",
        "Times that the GPU had no memory for the pictures of a launch.",
    ),
];

/// Metrics of workers on other machines, as a server sees them.
const WORKER: &[Family] = &[
    Family::counter(
        "windlass_worker_frames_dropped_total",
        "Frames dropped because a worker's stream was full.",
    ),
    Family::counter(
        "windlass_worker_frames_skipped_total",
        "Frames not sent to a worker while waiting for a key frame.",
    ),
    Family::counter("windlass_worker_anchors_total", "Anchors of workers that arrived in time."),
    Family::counter(
        "windlass_worker_anchors_late_total",
        "Anchors of workers that arrived too late.",
    ),
    Family::counter(
        "windlass_worker_moves_total",
        "Streams that left a worker that failed or was silent.",
    ),
    Family::counter(
        "windlass_worker_balanced_total",
        "Streams that were moved to a worker with less load.",
    ),
    Family::counter("windlass_worker_leases_refused_total", "Malformed leases of workers."),
    Family::counter("windlass_worker_malformed_total", "Malformed messages of workers."),
    Family::gauge("windlass_worker_streams", "Streams that the worker has.").by(&["worker"]),
    Family::gauge(
        "windlass_worker_load",
        "Share of the worker's time that is used, as it reports.",
    )
    .by(&["worker"]),
    Family::gauge("windlass_worker_up", "Whether the worker may be given streams.").by(&["worker"]),
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
        "windlass_cluster_rejected_entries_total",
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
    let gpus = GPUS.iter().map(|family| family.by(&["gpu", "name", "uuid"]).with(GPU));
    let workers = WORKER.iter().map(|family| family.with(WORKERS));
    let program = PROGRAM.iter().chain(RECORDER).chain(RENDERER).copied().chain(families());
    program.chain(enhancer).chain(gpus).chain(workers).chain(NODES.iter().copied()).collect()
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
             The metrics of `GET /metrics`. Sums, counts and buckets of histograms have the endings that Prometheus gives them: \
             `histogram_quantile(0.95, sum by (le) (rate(windlass_enhancer_anchor_seconds_bucket[5m])))` is the 95th percentile of \
             all servers together. The last column names what a server must have to report the metric. Where it is empty, all \
             servers report it.\n\n\
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
        windlass_files::hold("../../docs/metrics.md", tables());
    }

    #[test]
    fn each_metric_is_there_once() {
        let names: Vec<_> = all().iter().map(|family| family.name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    }
}
