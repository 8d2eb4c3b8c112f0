//! `windlass-lab bench gpu`: networks on the GPU, beside what the GPU can do.
//!
//! Source: `lab/reports.md`; NeuroScaler §6.2 and §8. The device's own rates are measured first. Then every network
//! runs at every size ([`measure`]), with pictures that differ, and with copies to and from the device. Last, anchors
//! of the sizes that the networks make are encoded ([`coding`]), and the CPU's work for a stream is measured
//! ([`cpu`]). The cost of a stream follows from these ([`cost`]). Weights are the built-in ones where the
//! network is the built-in one, else random: they say nothing about quality, and the same about speed.

mod args;
mod coding;
mod conformance;
mod cost;
mod cpu;
mod measure;
mod report;
mod shared;
mod variant;

pub(super) use args::GpuArgs;

use anyhow::{Context, Result};
use windlass_enhancer::EnhancerConfig;
use windlass_sr::cuda::peaks;

use self::args::Stream;
use self::cost::{CostRow, Measured, Prices};
use self::report::Report;
use crate::bench::networks::Network;
use crate::eval::report::Machine;
use crate::interrupt;
use crate::page::Contents;
use crate::progress::Progress;

/// Number of products in a row of each warp when the tensor cores are measured: some milliseconds.
const ROUNDS: u16 = 20_000;
/// Length of a copy when memory is measured, in bytes: far more than caches hold.
const BYTES: usize = 512 << 20;

/// Runs the bench and prints its report.
pub(super) fn run(args: &GpuArgs) -> Result<()> {
    let (cases, codings) = (args.cases(), args.codings());
    let progress = Progress::new(cases.len() + codings.len() + args.cost.len(), "cases");
    let conforms =
        if args.conformance { conformance::check(&args.variants())? } else { Vec::new() };
    if args.conformance {
        progress.note(&format!("{} codestreams are those of the CPU encoder", coding::check()?));
    }
    let peaks = peaks::measure(ROUNDS, BYTES).context("measuring the GPU")?;
    let (mut rows, mut device) = (Vec::new(), String::new());
    for case in cases {
        if progress.begin(case).is_err() {
            break;
        }
        progress.done();
        let row = measure::row(&case, args, &peaks).with_context(|| case.to_string())?;
        let Some((row, name)) = row else { continue };
        // A run that is killed has not measured in vain.
        progress.note(&row.to_string());
        rows.push(row);
        device = name;
    }
    let mut shared = Vec::new();
    if args.workers > 0 && !interrupt::pressed() {
        for &Network(network) in &args.networks {
            for &size in &args.sizes {
                shared.push(shared::row(network, size, args)?);
            }
        }
    }
    let mut report = Report::new(Machine::here(), device, &peaks, rows, shared);
    report.conformance = conforms;
    let (quality, mut drawn) = (EnhancerConfig::default().anchor_quality, coding::Drawn::default());
    for case in codings {
        if progress.begin(case).is_err() {
            break;
        }
        progress.done();
        let row = coding::row(&case, &mut drawn, args, quality);
        let row = row.with_context(|| case.to_string())?;
        progress.note(&row.to_string());
        report.coding.push(row);
    }
    for stream in &args.cost {
        if progress.begin(format!("cost of {stream}")).is_err() {
            break;
        }
        progress.done();
        match report.on_gpu(stream) {
            Some((infer_ms, code_ms)) => {
                let row = cost_row(stream, infer_ms, code_ms, args);
                report.costs.push(row.with_context(|| stream.to_string())?);
            }
            None => {
                progress
                    .note(&format!("no cost of {stream}: its network and size were not measured"));
            }
        }
    }
    report.prices = prices(args);
    args.output.put(&report, progress.interrupted(), &report.table(), Contents::default)
}

fn prices(args: &GpuArgs) -> Prices {
    Prices { gpu_euro_hour: args.gpu_euro_hour, core_euro_hour: args.core_euro_hour }
}

/// The cost of a stream whose pictures take these times on the GPU.
fn cost_row(stream: &Stream, infer_ms: f64, code_ms: f64, args: &GpuArgs) -> Result<CostRow> {
    let on_cores = cpu::measure(stream, args.seconds, args.reencode_speed)?;
    let measured = Measured {
        fps: stream.fps,
        infer_ms,
        code_ms,
        decode_ms: on_cores.decode,
        follow_ms: on_cores.follow,
        paint_ms: on_cores.paint,
        encode_ms: on_cores.encode,
    };
    let (model, stream) = (stream.network.0.to_string(), stream.to_string());
    Ok(CostRow::new(model, stream, measured, prices(args)))
}
