//! `windlass-lab bench vp9`: our VP9 decoder against libvpx, frame by frame.
//!
//! Streams as Chromium makes them ([`streams`])
//! → checked once against libvpx, then timed in turn with it ([`native`]) → the WebAssembly module in
//! Node ([`wasm`]) → report ([`report`]).
//!
//! Made for busy machines: decoders take turns pass by pass, every frame counts with its least time
//! ([`best`]), and that is CPU time where the system tells it, so that what else runs matters
//! little.

pub(super) mod args;
pub(super) mod best;
pub(super) mod native;
mod report;
pub(super) mod streams;
mod wasm;

pub(super) use args::Vp9Args;

use anyhow::{Context, Result};

use self::native::Variant;
use self::report::{Report, Row};
use self::streams::Stream;
use crate::eval::report::Machine;
use crate::interrupt;
use crate::page::Contents;
use crate::progress::Progress;

/// Runs the bench and prints its report.
pub(super) fn run(args: &Vp9Args) -> Result<()> {
    let streams = streams::collect(args)?;
    let progress = Progress::new(args.files.len().max(args.streams.len()), "streams");
    let module = args.wasm.then(|| wasm::Runner::new(args)).transpose()?;
    let mut rows = Vec::new();
    for stream in streams {
        if interrupt::pressed() {
            break;
        }
        let stream = stream?;
        let named = || format!("measuring {}", stream.name);
        measure(&stream, args, module.as_ref(), &progress, &mut rows).with_context(named)?;
        progress.done();
    }
    let report =
        Report { command: "bench vp9", machine: Machine::here(), passes: args.passes, rows };
    args.output.put(&report, progress.interrupted(), &report.table(), Contents::default)
}

/// All rows of one stream.
fn measure(
    stream: &Stream,
    args: &Vp9Args,
    module: Option<&wasm::Runner>,
    progress: &Progress,
    rows: &mut Vec<Row>,
) -> Result<()> {
    progress.say(format!("{}: comparing our pictures with libvpx's", stream.name));
    let facts = native::check(stream)?;
    progress.say(format!("{}: {} passes", stream.name, args.passes));
    let times = native::measure(stream, args.passes)?;
    let row = |target, variant: Variant| Row::new(target, stream, &facts, variant.name());
    for variant in [Variant::Decode, Variant::DecodeInfo] {
        let mut row = row("native", variant);
        row.time(times.of(variant), times.of(Variant::Libvpx), &facts.keys);
        if variant != Variant::Decode {
            row.x_decode = times.of(variant).speed_up(times.of(Variant::Decode));
        }
        rows.push(row);
    }
    if let Some(module) = module {
        progress.say(format!("{}: WebAssembly in Node", stream.name));
        let found = module.measure(stream, args.passes)?;
        let mut row = row("wasm", Variant::Decode);
        row.time(&found.steady, times.of(Variant::Libvpx), &facts.keys);
        row.first_ms = found.cold.first();
        row.stall_ms = found.cold.max_after_first();
        rows.push(row);
    }
    Ok(())
}
