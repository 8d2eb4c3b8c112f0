//! Measures one network at one size: throughput with copies, latency of a batch, time to change weights, and the
//! difference from the CPU's result.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use windlass_sr::cuda::peaks::Peaks;
use windlass_sr::{CpuEngine, CudaEngine, Engine, Input, Model, Residual, Simd};

use super::args::{Case, GpuArgs};
use super::report::{Measurement, Refits, Row};
use super::variant::engine;
use crate::bench::networks::{Weights, weights};
use crate::bench::pictures::Pictures;
use crate::eval::frames::Size;

/// Number of batches in a row when throughput is measured.
const IN_A_ROW: usize = 8;
/// Minimum number of batches whose latencies are taken.
const MIN_BATCHES: usize = 40;

/// Measures a case. Returns the row and the device's name.
pub(super) fn row(case: &Case, args: &GpuArgs, peaks: &Peaks) -> Result<Option<(Row, String)>> {
    let &Case { network, size, batch, variant } = case;
    let Weights { model, trained } = weights(network)?;
    let Some(mut engine) = engine(&model, variant)? else { return Ok(None) };
    engine.limit_batch(batch);
    let psnr = psnr_to_cpu(&mut engine, &model)?;

    let pictures = Pictures::new(network, size);
    let one = pictures.inputs(batch)?;
    let mut checksum = 0;
    let mut run = |engine: &mut CudaEngine, inputs: &[Input<'_>]| {
        engine.infer_each(inputs, |_, samples| checksum += i64::from(samples[samples.len() / 2]))
    };
    for _ in 0..3 {
        run(&mut engine, &one)?;
    }
    let mut latencies = Vec::new();
    let began = Instant::now();
    while latencies.len() < MIN_BATCHES || began.elapsed().as_secs_f64() < args.seconds {
        let began = Instant::now();
        run(&mut engine, &one)?;
        latencies.push(1e3 * began.elapsed().as_secs_f64());
    }
    let many = pictures.inputs(IN_A_ROW * batch)?;
    run(&mut engine, &many)?;
    let (began, mut done) = (Instant::now(), 0);
    while done == 0 || began.elapsed().as_secs_f64() < args.seconds {
        run(&mut engine, &many)?;
        done += many.len();
    }
    let frame_ms = 1e3 * began.elapsed().as_secs_f64() / done as f64;

    let other = Model::random(network, 2)?;
    let mut refits = Refits::default();
    for n in 0..MIN_BATCHES {
        // A clone's weights are packed already, but not on the GPU.
        let mut take = |model: &Arc<Model>, times: &mut Vec<f64>| {
            let began = Instant::now();
            engine.swap(model)?;
            times.push(1e3 * began.elapsed().as_secs_f64());
            anyhow::Ok(())
        };
        let new = Arc::new(if n == 0 { other.clone() } else { model.as_ref().clone() });
        take(&new, &mut refits.uploaded)?;
        take(&model, &mut refits.resident)?;
    }
    let device = engine.device();
    let row = Row::new(&Measurement {
        case,
        trained,
        frame_ms,
        latencies: &latencies,
        refits: &refits,
        psnr_to_cpu_db: psnr,
        device: &device,
        peaks,
    });
    Ok(Some((row, device.name)))
}

/// PSNR between the residuals of the GPU and of the CPU on a small picture, in dB.
fn psnr_to_cpu(engine: &mut CudaEngine, model: &Arc<Model>) -> Result<f64> {
    let pictures = Pictures::new(model.architecture(), Size::new(96, 64));
    let inputs = pictures.inputs(1)?;
    let (mut gpu, mut cpu) = ([Residual::default()], [Residual::default()]);
    engine.infer_batch(&inputs, &mut gpu)?;
    let single = CpuEngine::with_simd(model.clone(), Simd::single());
    single.context("the CPU lacks the instruction set")?.infer_batch(&inputs, &mut cpu)?;
    let pairs = gpu[0].data.iter().zip(&cpu[0].data);
    let sum: f64 = pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum();
    Ok(10.0 * (255.0 * 255.0 / (sum / gpu[0].data.len() as f64)).log10())
}
