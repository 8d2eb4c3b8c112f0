//! Windlass's engines beside inference libraries: the same weights, the same pictures, one process, by turns.
//!
//! What the figures say: `lab/notes/cpu-engine.md`; how to
//! run it: the README beside this crate.

mod args;
mod bytes;
mod calibrate;
mod engines;
mod measure;
mod onnx;
mod pictures;
mod quality;
mod report;

use anyhow::Result;
use clap::Parser;

use crate::args::{Args, Maker};
use crate::engines::Kind;
use crate::measure::{Case, rows, weights};
use crate::report::{Report, load};

fn main() -> Result<()> {
    let args = Args::parse();
    // candle asks for this at every product of matrices. Its convolutions are shared out by tiles already, and sharing
    // out each tile's product once more would only slow it down.
    if std::env::var_os("RAYON_NUM_THREADS").is_none() {
        // SAFETY: no other thread runs yet that could read the environment.
        unsafe { std::env::set_var("RAYON_NUM_THREADS", "1") };
    }
    let makers = if args.engines.is_empty() { &Maker::ALL[..] } else { &args.engines };
    let kinds = Kind::of(makers);
    let before = load();
    let mut all = Vec::new();
    for &network in &args.networks {
        let model = weights(network)?;
        for &size in &args.sizes {
            for &threads in &args.threads {
                let case = Case { network: network.0, size, threads: usize::from(threads) };
                eprintln!("{}, {}x{}, {threads} threads", case.network, size.width, size.height);
                all.extend(rows(&case, &model, &kinds, &args)?);
            }
        }
    }
    let report = Report::new(args.rounds.get(), [before, load()], all);
    if args.json {
        println!("{}", report.json()?);
    } else {
        print!("{}", report.table());
    }
    Ok(())
}
