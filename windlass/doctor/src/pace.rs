//! Measures how much enhancement this machine's CPU can do.

use std::time::{Duration, Instant};

use windlass_sr::{CpuEngine, Engine, Luma, Residual, Simd, fused_model};

use crate::finding::Finding;

/// Name of this check in findings.
const CHECK: &str = "cpu";
/// Width and height of the picture on which the network is tried: the size of most publishers' low layer.
const SIZE: (usize, usize) = (320, 180);
/// Duration of the measurement.
const TRIED: Duration = Duration::from_millis(300);

/// Runs the cheapest network for a third of a second. `threads` is the number of inference threads.
pub fn pace(threads: usize) -> Finding {
    let form = Simd::available().last().copied().unwrap_or(Simd::Scalar);
    match anchors_per_second() {
        None => Finding::fault(
            CHECK,
            "the built-in network does not run",
            "--device off, and report it with the CPU's name",
        ),
        Some(pace) => finding(form, pace, threads),
    }
}

fn finding(form: Simd, pace: f64, threads: usize) -> Finding {
    let all = pace * threads as f64;
    let found = format!(
        "kernels {form:?}: a thread makes {pace:.0} anchors of {}×{} a second; by {threads} of them inference for {all:.0} publishers with one a second",
        SIZE.0, SIZE.1
    );
    if form == Simd::Scalar {
        return Finding::warning(
            CHECK,
            found,
            "a CPU with AVX2 or NEON is many times faster; unset WINDLASS_MAX_ISA if it is set",
        );
    }
    Finding::ok(CHECK, found)
}

fn anchors_per_second() -> Option<f64> {
    let (width, height) = SIZE;
    let mut engine = CpuEngine::new(fused_model().ok()?);
    // A ramp: flat pictures might take a shorter way.
    let low: Vec<u8> = (0..width * height).map(|i| (i % 251) as u8).collect();
    let twin: Vec<u8> = (0..4 * width * height).map(|i| (i % 241) as u8).collect();
    let low = Luma::packed(&low, width, height).ok()?;
    let twin = Luma::packed(&twin, 2 * width, 2 * height).ok()?;
    let mut residual = Residual::default();
    // The first one allocates.
    engine.infer_fused(low, twin, &mut residual).ok()?;
    let (begun, mut count) = (Instant::now(), 0.0);
    while begun.elapsed() < TRIED {
        engine.infer_fused(low, twin, &mut residual).ok()?;
        count += 1.0;
    }
    Some(count / begun.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    #[test]
    fn the_built_in_network_is_tried() {
        let found = pace(2);
        assert!(found.found.contains("publishers with one a second"), "{found:?}");
    }

    #[test]
    fn plain_code_is_a_warning() {
        assert_eq!(finding(Simd::Scalar, 3.0, 4).level, Level::Warning);
    }
}
