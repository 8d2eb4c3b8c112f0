//! Measures one network at one size on every instruction set: CPU time for each picture, by turns with what the
//! instruction set can do at most; time to change weights; and the difference from the result of plain code.

use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use windlass_sr::{CpuEngine, Engine, Input, Model, Residual, Simd};

use super::args::{Case, EngineArgs};
use super::report::Row;
use crate::bench::networks::{Weights, weights};
use crate::bench::pictures::Pictures;
use crate::eval::frames::Size;

/// Number of pictures that take turns.
const PICTURES: usize = 4;
/// Number of measured changes of weights.
const SWAPS: usize = 20;
/// Number of rounds of multiplications when a peak is measured: some milliseconds.
const ROUNDS: usize = 500_000;

/// The maximum rate of an instruction set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Peak {
    pub backend: &'static str,
    /// The type of number.
    pub number: &'static str,
    /// Operations in a second of one thread, in 10⁹: the greatest rate of any pass.
    pub gflops: f64,
}

/// The maximum rates of all measured instruction sets.
#[derive(Debug, Default)]
pub(super) struct Peaks(pub Vec<Peak>);

impl Peaks {
    /// The maximum rate of an instruction set, in 10⁹ operations a second; NaN before it was measured.
    pub(super) fn of(&self, simd: Simd) -> f64 {
        let found = self.0.iter().find(|peak| peak.backend == simd.name());
        found.map_or(f64::NAN, |peak| peak.gflops)
    }

    /// Measures the maximum rate of one instruction set.
    fn measure(&mut self, simd: Simd) {
        self.add(simd.name(), simd.number(), || simd.multiply(black_box(ROUNDS)));
    }

    #[cfg(target_arch = "x86_64")]
    fn measure_bytes(&mut self) {
        self.add("cpu-avx512-vnni", "int8", || super::bytes::multiply(black_box(ROUNDS)));
    }

    fn add(
        &mut self,
        backend: &'static str,
        number: &'static str,
        multiply: impl Fn() -> Option<u64>,
    ) {
        let began = thread_ms();
        let Some(products) = multiply() else { return };
        let gflops = 2e-6 * products as f64 / (thread_ms() - began);
        match self.0.iter_mut().find(|peak| peak.backend == backend) {
            Some(peak) => peak.gflops = peak.gflops.max(gflops),
            None => self.0.push(Peak { backend, number, gflops }),
        }
    }
}

/// The times for each picture in a pass of one backend.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// CPU time of the threads for each picture, in ms.
    pub cpu_ms: f64,
    /// Time for a picture of one of the threads by the clock, in ms.
    pub wall_ms: f64,
}

/// Median times in which an engine changes its weights, in ms.
#[derive(Debug, Clone, Copy)]
pub(super) struct SwapTimes {
    /// Time for weights that are new to the process, in ms.
    pub first_ms: f64,
    /// Time for weights that an engine of the process had before, in ms.
    pub again_ms: f64,
}

/// Measures a case on every instruction set, with the built-in weights where there are some.
pub(super) fn rows(case: &Case, args: &EngineArgs, peaks: &mut Peaks) -> Result<Vec<Row>> {
    rows_with(&weights(case.network)?, &args.forms(), case, args, peaks)
}

/// Measures a case with these weights on these instruction sets.
pub(super) fn rows_with(
    Weights { model, trained }: &Weights,
    forms: &[Simd],
    case: &Case,
    args: &EngineArgs,
    peaks: &mut Peaks,
) -> Result<Vec<Row>> {
    let pictures = Pictures::new(case.network, case.size);
    let inputs = pictures.inputs(PICTURES)?;
    anyhow::ensure!(!forms.is_empty(), "the CPU has none of the backends that were named");
    let mut times: Vec<Vec<Times>> = vec![Vec::new(); forms.len()];
    for pass in 0..args.passes.get() as usize {
        #[cfg(target_arch = "x86_64")]
        peaks.measure_bytes();
        for turn in 0..forms.len() {
            let at = (pass + turn) % forms.len();
            peaks.measure(forms[at]);
            times[at].push(pass_of(forms[at], model, &inputs, case.threads, args.seconds)?);
        }
    }
    let rows = forms.iter().zip(&times).map(|(&simd, times)| {
        let swap = swap(simd, model)?;
        let psnr = psnr_to_plain(simd, model)?;
        Ok(Row::new(case, *trained, simd, times, peaks.of(simd), swap, psnr))
    });
    rows.collect()
}

fn engine(simd: Simd, model: &Arc<Model>) -> Result<CpuEngine> {
    CpuEngine::with_simd(model.clone(), simd).context("the CPU lacks the instruction set")
}

/// Runs a number of engines at once for some time.
fn pass_of(
    simd: Simd,
    model: &Arc<Model>,
    inputs: &[Input<'_>],
    threads: usize,
    seconds: f64,
) -> Result<Times> {
    let start = Barrier::new(threads);
    let run = || -> Result<Times> {
        let mut engine = engine(simd, model)?;
        let mut out = [Residual::default()];
        engine.infer_batch(&inputs[..1], &mut out)?;
        start.wait();
        let (began, began_ms, mut done) = (Instant::now(), thread_ms(), 0);
        while done == 0 || began.elapsed().as_secs_f64() < seconds {
            let at = done % inputs.len();
            engine.infer_batch(&inputs[at..=at], &mut out)?;
            black_box(&out);
            done += 1;
        }
        Ok(Times {
            cpu_ms: (thread_ms() - began_ms) / done as f64,
            wall_ms: 1e3 * began.elapsed().as_secs_f64() / done as f64,
        })
    };
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Times>>| {
            thread.join().map_err(|_| anyhow!("an engine panicked"))?
        };
        threads.into_iter().map(join).collect::<Result<Vec<Times>>>()
    })?;
    let mean = |of: fn(&Times) -> f64| times.iter().map(of).sum::<f64>() / times.len() as f64;
    Ok(Times { cpu_ms: mean(|t| t.cpu_ms), wall_ms: mean(|t| t.wall_ms) })
}

fn swap(simd: Simd, model: &Arc<Model>) -> Result<SwapTimes> {
    let mut engine = engine(simd, model)?;
    let mut timed = |model: &Arc<Model>| -> Result<f64> {
        let began = Instant::now();
        engine.swap(model)?;
        Ok(1e3 * began.elapsed().as_secs_f64())
    };
    let (mut first, mut again) = (Vec::new(), Vec::new());
    for n in 0..SWAPS {
        let other = Arc::new(Model::random(model.architecture(), n as u64)?);
        first.push(timed(&other)?);
        timed(model)?;
        again.push(timed(&other)?);
    }
    Ok(SwapTimes { first_ms: median(&mut first), again_ms: median(&mut again) })
}

/// PSNR between the residuals of an instruction set and of plain code on a small picture, in dB; `None` where they are
/// equal.
fn psnr_to_plain(simd: Simd, model: &Arc<Model>) -> Result<Option<f64>> {
    let pictures = Pictures::new(model.architecture(), Size::new(96, 64));
    let inputs = pictures.inputs(1)?;
    let (mut plain, mut other) = ([Residual::default()], [Residual::default()]);
    engine(Simd::Scalar, model)?.infer_batch(&inputs, &mut plain)?;
    engine(simd, model)?.infer_batch(&inputs, &mut other)?;
    let pairs = plain[0].data.iter().zip(&other[0].data);
    let sum: f64 = pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum();
    let psnr = 10.0 * (255.0 * 255.0 / (sum / plain[0].data.len() as f64)).log10();
    Ok(psnr.is_finite().then_some(psnr))
}

/// The median of the values.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// CPU time of the calling thread, in ms.
fn thread_ms() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_sr::Architecture;

    #[test]
    fn every_instruction_set_is_measured_and_close_to_plain_code() {
        let args = EngineArgs::parsed(&["--passes", "1", "--seconds", "0"]).unwrap();
        let network = Architecture::blocks(2, 8, 1).with_twin();
        let case = Case { network, size: Size::new(16, 8), threads: 2 };
        let mut peaks = Peaks::default();
        let rows = rows(&case, &args, &mut peaks).unwrap();
        assert_eq!(rows.len(), Simd::available().len());
        for row in rows {
            assert!(row.frame_ms > 0.0 && row.gflops > 0.0 && row.peak_share > 0.0, "{row:?}");
            assert!(row.psnr_to_plain_db.is_none_or(|psnr| psnr > 50.0), "{row:?}");
        }
        assert!(Simd::available().into_iter().all(|simd| peaks.of(simd) > 0.0));
    }
}
