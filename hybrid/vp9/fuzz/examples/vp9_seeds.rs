//! Makes the seeds of the fuzz target: `examples/vp9_seeds FILES_OR_FOLDERS`.
//!
//! IVF files of VP9 are cut into windows of a few chunks, each after the stream's first key frame.
//! Seeds go to `corpus/decode/`.
//!
//! It is linked as a fuzz target, without which nothing that counts coverage can be, and ends before the first input.

#![no_main]
#![allow(missing_docs)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use windlass_vp9_fuzz::container::join;
use windlass_vp9_fuzz::streams::{MAX_BYTES, files, name, windows};

fuzz_target!(init: make_and_end(), |_data: &[u8]| {});

fn make_and_end() {
    make().expect("seeds can be written");
    std::process::exit(0);
}

fn make() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/decode");
    fs::create_dir_all(&folder)?;
    let mut count = 0;
    for path in files(std::env::args_os().skip(1).map(PathBuf::from))? {
        let bytes = fs::read(&path)?;
        for (n, (start, chunks)) in windows(&bytes).into_iter().enumerate() {
            let seed = join(n as u8 * 3, &chunks, MAX_BYTES);
            if seed.len() > 1 {
                fs::write(folder.join(format!("{}-{start}", name(&path))), &seed)?;
                count += 1;
            }
        }
    }
    println!("{count} seeds of VP9");
    Ok(())
}
