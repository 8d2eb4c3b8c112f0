//! What the operator allows, and how the selection looks ahead.

use std::time::Duration;

use crate::networks::NetworkCost;
use crate::promise::Terms;

/// Limits of the selection.
#[derive(Debug, Clone, PartialEq)]
pub struct SchedulerConfig {
    /// T_intv: time between two ticks. A shorter interval serves frames sooner; a longer one chooses better.
    pub interval: Duration,
    /// Number of inferences that run side by side.
    pub devices: u32,
    /// Share of the devices' time that inference may take, 0 to 1.
    pub compute_cap: f64,
    /// Maximum anchors per frame of a stream, 0 to 1: anchors cost bytes on every subscriber's link.
    pub anchor_fraction: f64,
    /// Residual since the last anchor, in bytes per LR pixel, below which a frame is unchanged and gets no anchor.
    pub min_residual: f64,
    /// From a frame's arrival to its anchor encoded; a frame that cannot meet it is a lost cause.
    pub deadline: Duration,
    /// Frames after the interval for which an anchor is expected to last when no key frame is in sight. A call has no
    /// periodic key frames.
    pub horizon: u32,
    /// Maximum candidates kept per stream and interval; beyond it the oldest goes.
    pub frames_per_stream: usize,
    /// The networks that can make anchors, by scale, then the cheapest and worst first. At least one.
    pub networks: Vec<NetworkCost>,
    /// Maximum pixels of an HR picture, beyond the smallest scale: browsers make all of them.
    pub max_pixels: u64,
    /// A stream without frames for this time is forgotten.
    pub forget_after: Duration,
    /// The promise to streams of the policy `quality-sla`.
    pub terms: Terms,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        SchedulerConfig {
            interval: Duration::from_millis(66),
            devices: 1,
            compute_cap: 1.0,
            anchor_fraction: 0.033,
            min_residual: 1.0 / 64.0,
            deadline: Duration::from_millis(140),
            horizon: 30,
            frames_per_stream: 16,
            networks: vec![NetworkCost { scale: 2, per_pixel: Duration::from_nanos(300) }],
            max_pixels: 1280 * 720,
            forget_after: Duration::from_secs(10),
            terms: Terms::default(),
        }
    }
}

impl SchedulerConfig {
    /// Inference time that a span of time offers on all devices, in seconds.
    pub(crate) fn capacity_s(&self, elapsed: Duration) -> f64 {
        let cap = if self.compute_cap.is_finite() { self.compute_cap.clamp(0.0, 1.0) } else { 0.0 };
        elapsed.as_secs_f64() * f64::from(self.devices) * cap
    }
}
