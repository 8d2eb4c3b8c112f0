//! Writes the conformance streams as IVF files: seeds for fuzzing, inputs for other tools.
//!
//! `cargo run --release -p windlass-tests --example vp9_corpus -- FOLDER [PART OF A NAME]`

use std::path::PathBuf;
use std::process::ExitCode;

use windlass_tests::vp9::corpus;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        eprintln!("usage: vp9_corpus FOLDER [PART OF A NAME]");
        return ExitCode::from(2);
    };
    let part = arguments.next().unwrap_or_default();
    let (mut written, mut failed) = (0, 0);
    for case in corpus::all().filter(|case| case.name.contains(&part)) {
        let path = folder.join(case.file_name());
        let done = case
            .make()
            .and_then(|stream| std::fs::write(&path, stream.to_ivf()).map_err(|e| e.to_string()));
        match done {
            Ok(()) => written += 1,
            Err(why) => {
                println!("{}: {why}", path.display());
                failed += 1;
            }
        }
    }
    println!("{written} streams written, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
