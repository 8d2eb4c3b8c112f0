//! Checks IVF files: every shown picture of the decoder under test, and of `vp9dec`, against libvpx.
//!
//! `cargo run --release -p windlass-tests --example vp9_conformance -- [--fast] FILE.ivf...`
//!
//! `--fast` leaves `vp9dec` (ten times slower than libvpx) and with it the coverage out. Exit code 1
//! when any picture differs.

use std::process::ExitCode;
use std::time::Instant;

use windlass_tests::vp9::compare::{self, Tally};
use windlass_tests::vp9::coverage::Probe;
use windlass_tests::vp9::{Coverage, FrameDecoder, Stream, decoders};

fn main() -> ExitCode {
    let (options, files): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with("--"));
    if files.is_empty() || options.iter().any(|o| o != "--fast") {
        eprintln!("usage: vp9_conformance [--fast] FILE.ivf...");
        return ExitCode::from(2);
    }
    let mut coverage = Coverage::default();
    let (mut tally, mut failed) = (Tally::default(), 0);
    for (n, file) in files.iter().enumerate() {
        let start = Instant::now();
        let stream = std::fs::read(file)
            .map_err(|e| e.to_string())
            .and_then(|bytes| Stream::read(file.as_str(), &bytes).map_err(|e| e.to_string()));
        let stream = match stream {
            Ok(stream) => stream,
            Err(why) => {
                println!("[{}/{}] {file}: {why}", n + 1, files.len());
                failed += 1;
                continue;
            }
        };
        let mut probe = Probe::new();
        let mut all: Vec<Box<dyn FrameDecoder + '_>> = vec![decoders::under_test()];
        if options.is_empty() {
            all.push(Box::new(&mut probe));
        }
        let result = compare::stream(&stream, &mut all);
        drop(all);
        coverage.add(probe.coverage());
        match result {
            Ok(one) => {
                let seconds = start.elapsed().as_secs_f64();
                println!(
                    "[{}/{}] {file}: {} pictures equal ({seconds:.1} s)",
                    n + 1,
                    files.len(),
                    one.pictures
                );
                tally.add(one);
            }
            Err(mismatch) => {
                println!("[{}/{}] MISMATCH {mismatch}", n + 1, files.len());
                failed += 1;
            }
        }
    }
    if options.is_empty() {
        println!("\nCoverage (frames or blocks):\n{coverage}");
    }
    println!(
        "{} streams, {} pictures equal, {failed} streams differ",
        tally.streams, tally.pictures
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
