//! A low layer's frames without their pictures, as `windlass-lab simulate` plays them.

use std::time::Duration;

use crate::simulator::streams::{Trace, TraceFrame};
use anyhow::{Context, Result};

use super::frame_worth::FrameWorth;
use super::low_layer::Coded;

/// The trace of a low layer: times, sizes and tiers, and gains where they were measured.
pub(super) fn of(low: &Coded, fps: f64, frame_worths: &[FrameWorth]) -> Result<Trace> {
    let frames = low.frames.iter().enumerate().map(|(n, frame)| TraceFrame {
        at: Duration::from_secs_f64(n as f64 / fps),
        bytes: u32::try_from(frame.data.len()).unwrap_or(u32::MAX),
        tier: frame.tier,
        gain_db: frame_worths.iter().find(|d| d.frame == n).map(|d| d.gain),
    });
    Trace::new(frames.collect()).context("the low layer makes no trace")
}

#[cfg(test)]
mod tests {
    use windlass_scheduler::Tier;

    use super::super::synthetic;
    use super::*;

    #[test]
    fn a_trace_has_every_frame_and_begins_with_the_key_frame() {
        let clip = synthetic::panning(10);
        let low = synthetic::low_layer(&clip, 300);
        let trace = of(&low, clip.fps, &[]).unwrap();
        assert_eq!(trace.frames().len(), low.frames.len());
        assert_eq!(trace.frames()[0].tier, Tier::Key);
        assert_eq!(trace.frames()[3].bytes as usize, low.frames[3].data.len());
        assert_eq!(Trace::parse(&trace.csv("a clip")).unwrap().frames().len(), low.frames.len());
    }
}
