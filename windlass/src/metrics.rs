//! Figures of the enhancer and of the process for `/metrics`.

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windlass_enhancer::{
    Enhancer, EnhancerStats, LatencySummary, PipelineCounters, SlotStats, StageLatencies,
    StageSlots,
};
use windlass_signaling::Metric;
use windlass_sr::cuda::{self, GpuStats};

use crate::logging;

/// What the figures mean, by name, where their counter does not say it itself.
const HELP: &[(&str, &str)] = &[
    ("enhancer_enabled", "Whether the enhancer is switched on."),
    ("enhancer_streams", "Publishers whose low layer is decoded now."),
    (
        "enhancer_excluded_streams",
        "Publishers without anchors because there is no time, memory or place for them beside others with the fairer claim, or their pictures are too large.",
    ),
    (
        "enhancer_memory_counted_bytes",
        "What enhanced publishers take, as counted by the sizes of their pictures.",
    ),
    ("enhancer_memory_bound_bytes", "What they may take."),
    (
        "enhancer_cpu_demand",
        "What decoding and coding need of the processor tasks that may run, as a share.",
    ),
    ("enhancer_network_streams", "Publishers that have the network now."),
    (
        "enhancer_network_seconds_per_pixel",
        "What the network takes of one low-layer pixel, in seconds.",
    ),
    ("enhancer_network_anchors", "Anchors that the network made."),
    ("enhancer_scale_streams", "Publishers whose pictures are enlarged by this factor now."),
    ("enhancer_learning_seconds", "Processor time of learning from captured pictures, in seconds."),
    (
        "enhancer_latency_seconds",
        "From a frame's arrival at the server to the end of a stage, of all since the start.",
    ),
    ("enhancer_stage_runs", "Times that a stage has run."),
    ("enhancer_stage_seconds", "Time of all these runs together, in seconds."),
    ("enhancer_queue_length", "What waits in a queue now."),
    ("enhancer_compute_seconds", "Time of inference, in seconds."),
    ("enhancer_compute_capacity", "Seconds that inference may take in one second."),
    (
        "enhancer_devices_wanted",
        "Inferences side by side that would give every publisher its fraction of anchors.",
    ),
    (
        "enhancer_compute_demand",
        "Seconds of inference in one second that would do so; to be added up over servers.",
    ),
    (
        "enhancer_promised_streams",
        "Publishers that the policy quality-sla has promised its quality to.",
    ),
    ("enhancer_refused_streams", "Publishers that the policy quality-sla refuses anchors."),
    (
        "enhancer_held_back_streams",
        "Publishers whose enhanced anchors are worth nothing: none are made but a probe now and then.",
    ),
    (
        "enhancer_anchor_worth_db",
        "What enhanced anchors are worth lately in dB of PSNR-Y, by estimate: the mean over the time that they are shown, and over publishers.",
    ),
    ("enhancer_card_working", "Whether the GPU is used; 0 after it has failed."),
    ("enhancer_card_engines", "Networks of workers that use the GPU."),
    ("enhancer_card_weights", "Sets of networks' weights that are on the GPU."),
    ("enhancer_card_waiting_pictures", "Pictures that wait for the GPU now."),
    ("enhancer_card_launches", "Times that the GPU was given pictures, of one or several at once."),
    ("enhancer_card_pictures", "Pictures that the GPU super-resolved."),
    ("enhancer_card_busy_seconds", "Time that the GPU was at work, copies included, in seconds."),
    ("enhancer_card_full", "Times that the GPU had no memory for what it was given at once."),
    ("enhancer_cpu_slots", "Processor tasks that may run at once."),
    ("enhancer_cpu_tasks_running", "Processor tasks that run now."),
    ("enhancer_cpu_tasks_waiting", "Processor tasks that wait now."),
    ("enhancer_cpu_tasks", "Processor tasks that have had a slot."),
    ("enhancer_cpu_tasks_refused", "Processor tasks that were lost causes and did not run."),
    (
        "enhancer_cpu_tasks_demoted",
        "Processor tasks that were lost causes and ran behind all others.",
    ),
    ("enhancer_cpu_wait_seconds", "How long processor tasks waited for a slot."),
];

/// When the process began to serve, in seconds since 1970.
static STARTED: OnceLock<f64> = OnceLock::new();

/// The metric with what it means.
fn helped(metric: Metric) -> Metric {
    let name = metric.name.strip_suffix("_total").unwrap_or(&metric.name);
    match HELP.iter().find(|(of, _)| *of == name) {
        Some((_, help)) => metric.help(help),
        None => metric,
    }
}

/// Notes when the server starts, and gives that.
pub(crate) fn start() -> f64 {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64());
    *STARTED.get_or_init(now)
}

/// The program and its process, by the names that Prometheus's own libraries use.
pub(crate) fn of_process() -> Vec<Metric> {
    let started = start();
    let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
    let mut metrics = vec![
        Metric::gauge("build_info", 1.0).labelled(version).help("The version that runs."),
        Metric::gauge("process_start_time_seconds", started)
            .help("When the server started, in seconds since 1970."),
        seconds("process_cpu_seconds", cpu_time())
            .help("Processor time of all threads, in seconds."),
    ];
    // Elsewhere than on Linux there are none of these.
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    if let Some(pages) = statm.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok()) {
        let bytes = pages.saturating_mul(rustix::param::page_size() as u64);
        let metric = Metric::gauge("process_resident_memory_bytes", bytes as f64);
        metrics.push(metric.help("Memory that is resident, in bytes."));
    }
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        let tasks = runtime.metrics().num_alive_tasks();
        metrics.push(Metric::gauge("tasks", tasks as f64).help("Tasks that run or wait now."));
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        let metric = Metric::gauge("process_open_fds", open.count() as f64);
        metrics.push(metric.help("Open file descriptors."));
    }
    let lost = Metric::counter("log_lines_lost", logging::lost());
    metrics.push(lost.help("Lines of the log that nobody took: standard error was not read."));
    metrics
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// What the enhancer counts.
pub(crate) fn of_enhancer(enhancer: &Enhancer) -> Vec<Metric> {
    let stats = enhancer.stats();
    let mut metrics = vec![
        Metric::gauge("enhancer_enabled", f64::from(u8::from(stats.enabled))),
        Metric::gauge("enhancer_streams", stats.streams as f64),
        Metric::gauge("enhancer_excluded_streams", stats.refused as f64),
        Metric::gauge("enhancer_memory_counted_bytes", stats.memory.0 as f64),
        Metric::gauge("enhancer_memory_bound_bytes", stats.memory.1 as f64),
        Metric::gauge("enhancer_cpu_demand", stats.slots_demand),
    ];
    for network in &stats.networks {
        let labels = format!("network=\"{}\"", network.name);
        let labelled = |metric: Metric| metric.labelled(labels.clone());
        let per_pixel = network.per_pixel.as_secs_f64();
        metrics.extend([
            labelled(Metric::gauge("enhancer_network_streams", network.streams as f64)),
            labelled(Metric::gauge("enhancer_network_seconds_per_pixel", per_pixel)),
            labelled(Metric::counter("enhancer_network_anchors", network.anchors)),
        ]);
    }
    let mut by_scale = BTreeMap::<usize, usize>::new();
    for network in &stats.networks {
        *by_scale.entry(network.scale).or_default() += network.streams;
    }
    for (scale, streams) in by_scale {
        let metric = Metric::gauge("enhancer_scale_streams", streams as f64);
        metrics.push(metric.labelled(format!("scale=\"{scale}\"")));
    }
    let help: BTreeMap<_, _> = PipelineCounters::help().into_iter().collect();
    for (name, value) in stats.counters.entries() {
        let metric = Metric::counter(&format!("enhancer_{name}"), value);
        metrics.push(metric.help(help.get(name).copied().unwrap_or_default()));
    }
    metrics.push(seconds("enhancer_learning_seconds", stats.learning));
    let s = stats.scheduler;
    let schedule = [
        ("considered", s.considered, "Decoded frames that the scheduler looked at."),
        ("chosen", s.chosen, "Frames chosen to become anchors."),
        (
            "over_fraction",
            s.over_fraction,
            "Frames passed over: their publisher had its fraction of anchors.",
        ),
        ("over_capacity", s.over_capacity, "Frames passed over for lack of compute."),
        ("lost_causes", s.lost_causes, "Frames passed over that could not be ready in time."),
        ("unchanged", s.unchanged, "Frames passed over in which nothing had changed."),
        ("overflowed", s.overflowed, "Frames passed over because too many waited."),
        ("not_planned", s.not_planned, "Frames that the plan of quality-sla leaves out."),
        ("refused", s.refused, "Frames of publishers that quality-sla refuses."),
        (
            "worthless",
            s.worthless,
            "Anchors not made because their publisher's were worth nothing lately.",
        ),
    ];
    for (name, value, help) in schedule {
        metrics.push(Metric::counter(&format!("enhancer_schedule_{name}"), value).help(help));
    }
    metrics.extend(slot_metrics(&stats.slots));
    metrics.extend(stage_metrics(&stats.latency));
    metrics.extend(capacity_metrics(&stats));
    metrics.extend(card_metrics(&cuda::gpus()));
    metrics.into_iter().map(helped).collect()
}

/// By stage, and all together. Means of a span of time are differences of sums over differences of runs.
fn stage_metrics(l: &StageLatencies) -> Vec<Metric> {
    let stages = [
        ("decode", l.decode),
        ("schedule", l.schedule),
        ("infer", l.infer),
        ("encode", l.encode),
        ("total", l.total),
    ];
    let mut metrics = Vec::new();
    for (stage, LatencySummary { p50, p95, p99, .. }) in stages {
        for (quantile, value) in [("0.5", p50), ("0.95", p95), ("0.99", p99)] {
            let labels = format!("stage=\"{stage}\",quantile=\"{quantile}\"");
            let metric = Metric::summary("enhancer_latency_seconds", value.as_secs_f64());
            metrics.push(metric.labelled(labels));
        }
    }
    for (stage, LatencySummary { count, .. }) in stages {
        let metric = Metric::counter("enhancer_stage_runs", count);
        metrics.push(metric.labelled(format!("stage=\"{stage}\"")));
    }
    for (stage, LatencySummary { sum, .. }) in stages {
        let metric = seconds("enhancer_stage_seconds", sum);
        metrics.push(metric.labelled(format!("stage=\"{stage}\"")));
    }
    metrics
}

/// What inference takes of what it may take, and what waits.
fn capacity_metrics(stats: &EnhancerStats) -> Vec<Metric> {
    let q = stats.queues;
    let queues =
        [("decode", q.decode), ("schedule", q.schedule), ("infer", q.infer), ("output", q.output)];
    let queues = queues.map(|(queue, length)| {
        let metric = Metric::gauge("enhancer_queue_length", length as f64);
        metric.labelled(format!("queue=\"{queue}\""))
    });
    let compute = [
        seconds("enhancer_compute_seconds", stats.compute),
        Metric::gauge("enhancer_compute_capacity", stats.compute_capacity),
        Metric::gauge("enhancer_devices_wanted", stats.devices_wanted as f64),
        Metric::gauge("enhancer_compute_demand", stats.compute_demand),
        Metric::gauge("enhancer_promised_streams", stats.promised.0 as f64),
        Metric::gauge("enhancer_refused_streams", stats.promised.1 as f64),
        Metric::gauge("enhancer_held_back_streams", stats.held_back as f64),
    ];
    let worth = stats.worth_db.map(|db| Metric::gauge("enhancer_anchor_worth_db", db));
    compute.into_iter().chain(worth).chain(queues).collect()
}

/// Metrics of the GPUs, each labelled with its GPU; none on a machine without GPUs.
fn card_metrics(cards: &[GpuStats]) -> Vec<Metric> {
    let of: [fn(&GpuStats) -> Metric; 8] = [
        |c| Metric::gauge("enhancer_card_working", f64::from(u8::from(c.failed.is_none()))),
        |c| Metric::gauge("enhancer_card_engines", c.engines as f64),
        |c| Metric::gauge("enhancer_card_weights", c.resident as f64),
        |c| Metric::gauge("enhancer_card_waiting_pictures", c.waiting as f64),
        |c| Metric::counter("enhancer_card_launches", c.launches),
        |c| Metric::counter("enhancer_card_pictures", c.pictures),
        |c| seconds("enhancer_card_busy_seconds", c.busy),
        |c| Metric::counter("enhancer_card_full", c.full),
    ];
    // All of a name together.
    let metrics = of.iter().flat_map(|metric| {
        cards.iter().map(move |card| {
            let GpuStats { ordinal, name, uuid, .. } = card;
            let name = label_value(name);
            metric(card).labelled(format!("card=\"{ordinal}\",name=\"{name}\",uuid=\"{uuid}\""))
        })
    });
    metrics.collect()
}

/// What others say, without the characters that a label's value cannot have as they are.
pub(crate) fn label_value(said: &str) -> String {
    said.replace(['"', '\\', '\n'], " ")
}

/// A total of time.
fn seconds(name: &str, value: Duration) -> Metric {
    Metric { value: value.as_secs_f64(), ..Metric::counter(name, 0) }
}

fn slot_metrics(slots: &SlotStats) -> Vec<Metric> {
    let mut metrics = vec![
        Metric::gauge("enhancer_cpu_slots", slots.cap as f64),
        Metric::gauge("enhancer_cpu_tasks_running", slots.running as f64),
        Metric::gauge("enhancer_cpu_tasks_waiting", slots.waiting as f64),
    ];
    for (name, of) in [
        ("enhancer_cpu_tasks", (|s| s.wait.count) as fn(&StageSlots) -> u64),
        ("enhancer_cpu_tasks_refused", |s| s.refused),
        ("enhancer_cpu_tasks_demoted", |s| s.demoted),
    ] {
        let metric = |s: &StageSlots| {
            Metric::counter(name, of(s)).labelled(format!("stage=\"{}\"", s.stage))
        };
        metrics.extend(slots.stages.iter().map(metric));
    }
    for StageSlots { stage, wait, .. } in &slots.stages {
        for (quantile, value) in [("0.5", wait.p50), ("0.95", wait.p95), ("0.99", wait.p99)] {
            let labels = format!("stage=\"{stage}\",quantile=\"{quantile}\"");
            let metric = Metric::summary("enhancer_cpu_wait_seconds", value.as_secs_f64());
            metrics.push(metric.labelled(labels));
        }
    }
    metrics
}
