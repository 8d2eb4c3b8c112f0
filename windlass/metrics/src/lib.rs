//! Metrics of the program at `/metrics`, beside those of the SFU and signalling: the enhancer and the process.
//!
//! [`families()`] is the table of all metrics, from which the help texts and `docs/metrics.md` come.
//!
//! ```
//! // The page has the figures; the table says what each of them means.
//! let (figures, families) = (windlass_metrics::of_process(0), windlass_metrics::families());
//! let cpu = figures.iter().find(|figure| figure.name == "process_cpu_seconds_total");
//! assert!(cpu.is_some());
//! let is_described = |name: &str| families.iter().any(|family| family.name == name && !family.help.is_empty());
//! assert!(figures.iter().all(|figure| is_described(figure.name)));
//! ```

mod families;

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windlass_enhancer::{Enhancer, EnhancerStats, SlotStats, StageLatencies};
use windlass_signaling::{Metric, Value};
use windlass_sr::cuda::{self, GpuStats};

pub use self::families::all as families;

/// Time at which the process began to serve, in seconds since 1970.
static STARTED: OnceLock<f64> = OnceLock::new();

/// Notes the start of the server, at the first call; returns it in seconds since 1970.
pub fn start() -> f64 {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64());
    *STARTED.get_or_init(now)
}

/// Metrics of the program and its process, with the names that Prometheus's own libraries use. `lost` is the number of
/// dropped log lines.
pub fn of_process(lost: u64) -> Vec<Metric> {
    let mut metrics = vec![
        Metric::new("windlass_build_info", 1u64).label("version", env!("CARGO_PKG_VERSION")),
        Metric::new("process_start_time_seconds", start()),
        Metric::new("process_cpu_seconds_total", cpu_time()),
        Metric::new("windlass_log_lines_lost_total", lost),
    ];
    // Elsewhere than on Linux there are none of these.
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    if let Some(pages) = statm.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok()) {
        let bytes = pages.saturating_mul(rustix::param::page_size() as u64);
        metrics.push(Metric::new("process_resident_memory_bytes", bytes));
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        metrics.push(Metric::new("process_open_fds", open.count()));
    }
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        metrics.push(Metric::new("windlass_tasks", runtime.metrics().num_alive_tasks()));
    }
    metrics
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Metrics of the enhancer.
pub fn of_enhancer(enhancer: &Enhancer) -> Vec<Metric> {
    let stats = enhancer.stats();
    let mut metrics = vec![
        Metric::new("windlass_enhancer_enabled", stats.enabled),
        Metric::new("windlass_enhancer_streams", stats.streams),
        Metric::new("windlass_enhancer_excluded_streams", stats.refused),
        Metric::new("windlass_enhancer_memory_counted_bytes", stats.memory),
        Metric::new("windlass_enhancer_memory_bound_bytes", stats.max_memory),
        Metric::new("windlass_enhancer_cpu_demand", stats.slots_demand),
        Metric::new("windlass_enhancer_learning_seconds_total", stats.learning),
    ];
    let mut by_scale = BTreeMap::<usize, usize>::new();
    for network in &stats.networks {
        let of = |name, value: Value| Metric::new(name, value).label("network", &*network.name);
        metrics.extend([
            of("windlass_enhancer_network_streams", network.streams.into()),
            of("windlass_enhancer_network_seconds_per_pixel", network.per_pixel.into()),
            of("windlass_enhancer_network_anchors_total", network.anchors.into()),
        ]);
        *by_scale.entry(network.scale).or_default() += network.streams;
    }
    metrics.extend(by_scale.into_iter().map(|(scale, streams)| {
        Metric::new("windlass_enhancer_scale_streams", streams).label("scale", scale.to_string())
    }));
    let counters = stats.counters.entries().into_iter();
    metrics.extend(counters.map(|(name, value)| Metric::new(name, value)));
    let s = stats.scheduler;
    metrics.extend([
        Metric::new("windlass_enhancer_schedule_considered_total", s.considered),
        Metric::new("windlass_enhancer_schedule_chosen_total", s.chosen),
        Metric::new("windlass_enhancer_schedule_over_fraction_total", s.over_fraction),
        Metric::new("windlass_enhancer_schedule_over_capacity_total", s.over_capacity),
        Metric::new("windlass_enhancer_schedule_lost_causes_total", s.lost_causes),
        Metric::new("windlass_enhancer_schedule_unchanged_total", s.unchanged),
        Metric::new("windlass_enhancer_schedule_overflowed_total", s.overflowed),
        Metric::new("windlass_enhancer_schedule_not_planned_total", s.not_planned),
        Metric::new("windlass_enhancer_schedule_refused_total", s.refused),
        Metric::new("windlass_enhancer_schedule_worthless_total", s.worthless),
    ]);
    metrics.extend(slot_metrics(&stats.slots));
    metrics.extend(stage_metrics(&stats.latency));
    metrics.extend(capacity_metrics(&stats));
    metrics.extend(cuda::gpus().iter().flat_map(gpu_metrics));
    metrics
}

/// Latencies of the enhancer's stages, and from a frame to its anchor.
fn stage_metrics(l: &StageLatencies) -> Vec<Metric> {
    let stages =
        [("decode", l.decode), ("schedule", l.schedule), ("infer", l.infer), ("encode", l.encode)];
    let stages = stages.map(|(stage, latencies)| {
        Metric::new("windlass_enhancer_stage_seconds", latencies).label("stage", stage)
    });
    let total = Metric::new("windlass_enhancer_anchor_seconds", l.total);
    stages.into_iter().chain([total]).collect()
}

/// Metrics of inference time, of its limit, and of what waits.
fn capacity_metrics(stats: &EnhancerStats) -> Vec<Metric> {
    let q = stats.queues;
    let queues =
        [("decode", q.decode), ("schedule", q.schedule), ("infer", q.infer), ("output", q.output)];
    let queues = queues.map(|(queue, length)| {
        Metric::new("windlass_enhancer_queue_length", length).label("queue", queue)
    });
    let compute = [
        Metric::new("windlass_enhancer_compute_seconds", stats.compute),
        Metric::new("windlass_enhancer_compute_capacity", stats.compute_capacity),
        Metric::new("windlass_enhancer_compute_demand", stats.compute_demand),
        Metric::new("windlass_enhancer_devices_wanted", stats.devices_wanted),
        Metric::new("windlass_enhancer_promised_streams", stats.promised),
        Metric::new("windlass_enhancer_refused_streams", stats.promise_refused),
        Metric::new("windlass_enhancer_held_back_streams", stats.held_back),
    ];
    let worth = stats.worth_db.map(|db| Metric::new("windlass_enhancer_anchor_worth_db", db));
    compute.into_iter().chain(worth).chain(queues).collect()
}

/// Metrics of a GPU.
fn gpu_metrics(gpu: &GpuStats) -> [Metric; 8] {
    let of = |name, value: Value| {
        let metric = Metric::new(name, value).label("gpu", gpu.ordinal.to_string());
        metric.label("name", &gpu.name).label("uuid", &gpu.uuid)
    };
    [
        of("windlass_enhancer_gpu_working", gpu.failed.is_none().into()),
        of("windlass_enhancer_gpu_engines", gpu.engines.into()),
        of("windlass_enhancer_gpu_weights", gpu.resident.into()),
        of("windlass_enhancer_gpu_waiting_pictures", gpu.waiting.into()),
        of("windlass_enhancer_gpu_launches_total", gpu.launches.into()),
        of("windlass_enhancer_gpu_pictures_total", gpu.pictures.into()),
        of("windlass_enhancer_gpu_busy_seconds_total", gpu.busy.into()),
        of("windlass_enhancer_gpu_full_total", gpu.full.into()),
    ]
}

fn slot_metrics(slots: &SlotStats) -> Vec<Metric> {
    let mut metrics = vec![
        Metric::new("windlass_enhancer_cpu_slots", slots.cap),
        Metric::new("windlass_enhancer_cpu_tasks_running", slots.running),
        Metric::new("windlass_enhancer_cpu_tasks_waiting", slots.waiting),
    ];
    for stage in &slots.stages {
        let of = |name, value: Value| Metric::new(name, value).label("stage", stage.stage);
        metrics.extend([
            of("windlass_enhancer_cpu_wait_seconds", stage.wait.into()),
            of("windlass_enhancer_cpu_tasks_refused_total", stage.refused.into()),
            of("windlass_enhancer_cpu_tasks_late_total", stage.late.into()),
        ]);
    }
    metrics
}
