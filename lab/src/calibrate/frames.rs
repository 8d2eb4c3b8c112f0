//! CPU time of a low frame: to decode it, and to follow what viewers see.

use anyhow::{Context, Result};
use windlass_enhancer::twin::Twin;
use windlass_vp9::Decoder;

use super::runs::FITTED;
use crate::eval::cpu_clock::CpuClock;
use crate::interrupt;
use crate::loadtest;

/// Length of the scene that is decoded, in seconds. Load tests send the same scene.
const SECONDS: f64 = 4.0;
/// How often the scene is decoded: the first time only fills caches.
const PASSES: usize = 3;
/// Width of what viewers see, over the layer's.
const SCALE: usize = 2;

/// The costs of a layer's frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FrameCost {
    pub layer: &'static str,
    pub decode_ms: f64,
    pub follow_ms: f64,
}

/// Measures the layers that load tests send.
pub(super) fn measure() -> Result<Vec<FrameCost>> {
    let mut layers: Vec<&str> = FITTED.iter().map(|run| run.layer).collect();
    layers.sort_unstable_by(|a, b| b.cmp(a));
    layers.dedup();
    layers.into_iter().map(of_layer).collect()
}

fn of_layer(layer: &'static str) -> Result<FrameCost> {
    let frames = loadtest::scene_frames(layer, SECONDS)?;
    let (mut decode, mut follow) = (CpuClock::default(), CpuClock::default());
    for pass in 0..PASSES {
        interrupt::check()?;
        let (mut decoder, twin) = (Decoder::new(), Twin::new(SCALE));
        let (mut decoding, mut following) = (CpuClock::default(), CpuClock::default());
        for (n, frame) in (0..).zip(&frames) {
            let decoded = decoding.measure(|| decoder.decode(frame).map(<[_]>::to_vec))?;
            following.measure(|| twin.follow(n, &decoded));
        }
        if pass > 0 {
            (decode, follow) = (decoding, following);
        }
    }
    let mean = |clock: CpuClock| clock.mean_run_ms().context("nothing was decoded");
    Ok(FrameCost { layer, decode_ms: mean(decode)?, follow_ms: mean(follow)? })
}
