//! Measures a GPU as a server uses it: many workers with one picture each. The GPU's threads join the waiting
//! pictures to launches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use windlass_sr::cuda::gpus;
use windlass_sr::{Architecture, CudaEngine, Model};

use super::args::GpuArgs;
use super::report::SharedRow;
use crate::bench::networks::weights;
use crate::bench::pictures::Pictures;
use crate::eval::frames::Size;
use crate::latencies::Latencies;

/// Measures a network at a size, run by workers.
pub(super) fn row(network: Architecture, size: Size, args: &GpuArgs) -> Result<SharedRow> {
    let workers = usize::from(args.workers);
    eprintln!("{network}, {size}, {workers} workers");
    measure(&weights(network)?.model, size, workers, args.seconds)
}

/// Lets `workers` infer one picture after the other for `seconds`.
fn measure(model: &Arc<Model>, size: Size, workers: usize, seconds: f64) -> Result<SharedRow> {
    let pictures = Pictures::new(model.architecture(), size);
    let inputs = pictures.inputs(1)?;
    let launches = || gpus().iter().map(|gpu| gpu.launches).sum::<u64>();
    let engines = (0..workers).map(|_| CudaEngine::new(model));
    let mut engines: Vec<CudaEngine> = engines.collect::<Result<_, _>>()?;
    for engine in &mut engines {
        engine.infer_each(&inputs, |_, _| ())?;
    }
    let (before, began, checksum) = (launches(), Instant::now(), AtomicUsize::new(0));
    let until = began + Duration::from_secs_f64(seconds);
    let took = scope(|scope| {
        let running = engines.iter_mut().map(|engine| {
            scope.spawn(|| {
                let mut took = Vec::new();
                while took.is_empty() || Instant::now() < until {
                    let began = Instant::now();
                    engine.infer_each(&inputs, |_, samples| {
                        let some = usize::from(samples[samples.len() / 2].unsigned_abs());
                        checksum.fetch_add(some, Ordering::Relaxed);
                    })?;
                    took.push(1e3 * began.elapsed().as_secs_f64());
                }
                Ok::<_, anyhow::Error>(took)
            })
        });
        let running: Vec<_> = running.collect();
        let all = running.into_iter().map(|one| one.join().map_err(|_| anyhow!("a worker failed")));
        all.collect::<Result<Result<Vec<_>>>>()?
    })?;
    let elapsed_ms = 1e3 * began.elapsed().as_secs_f64();
    let latencies: Latencies = took.iter().flatten().collect();
    let made = latencies.count() as f64;
    Ok(SharedRow {
        model: model.architecture().to_string(),
        input: size.to_string(),
        workers,
        frame_ms: elapsed_ms / made,
        p50_ms: latencies.percentile_or_zero(50.0),
        p99_ms: latencies.percentile_or_zero(99.0),
        together: made / (launches() - before).max(1) as f64,
    })
}
