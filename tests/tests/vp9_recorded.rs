//! The VP9 decoder equals libvpx on streams that others made: Chromium's, kept here, and the test
//! vectors that crates of the registry ship.
//!
//! Vectors are read from cargo's own copy of the crates, never copied. `vp9-parser` is a dependency
//! for its vectors alone; those of the other crates are checked where cargo has them, or `vp9dec`'s
//! script has fetched the official ones into its folder.

use std::fs;
use std::path::{Path, PathBuf};

use windlass_tests::vp9::compare::{self, Tally};
use windlass_tests::vp9::coverage::Probe;
use windlass_tests::vp9::{Coverage, FrameDecoder, Libvpx, Stream, decoders};

/// Files of a crate that hold VP9 in profile 0, by folder.
const CRATES: [(&str, &str); 3] =
    [("vp9-parser-", "tests/data"), ("vp9dec-", "tests/vectors"), ("rusty_vp9-", "src/testdata")];

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    files.sort();
    files
}

/// The vectors that cargo has on this machine.
fn vectors() -> Vec<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map_or_else(
        || Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        PathBuf::from,
    );
    let crates =
        files(&home.join("registry/src")).into_iter().flat_map(|registry| files(&registry));
    let folders = crates.filter_map(|path| {
        let name = path.file_name()?.to_str()?;
        let (_, folder) = CRATES.iter().find(|(start, _)| name.starts_with(start))?;
        Some(path.join(folder))
    });
    folders
        .flat_map(|folder| files(&folder))
        .filter(|path| path.extension().is_some_and(|e| e == "ivf" || e == "vp9"))
        .collect()
}

/// An IVF file, or a lone frame.
fn stream(path: &Path) -> Stream {
    let name = path.display().to_string();
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{name}: {e}"));
    if path.extension().is_some_and(|e| e == "vp9") {
        return Stream { name, chunks: vec![bytes] };
    }
    Stream::read(name.as_str(), &bytes).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn check(stream: &Stream, coverage: &mut Coverage) -> Tally {
    let mut probe = Probe::new();
    let result = compare::stream(stream, &mut [decoders::under_test(), Box::new(&mut probe)]);
    coverage.add(probe.coverage());
    result.unwrap_or_else(|mismatch| panic!("{mismatch}"))
}

/// From the two bits after the frame marker of the first frame.
fn profile(stream: &Stream) -> u8 {
    let first = stream.chunks[0][0];
    (first >> 5 & 1) | (first >> 4 & 1) << 1
}

#[test]
fn streams_of_chromium_decode_as_in_libvpx() {
    let folder = Path::new("fixtures/vp9");
    let (mut tally, mut coverage) = (Tally::default(), Coverage::default());
    for path in files(folder).iter().filter(|p| p.extension().is_some_and(|e| e == "ivf")) {
        tally.add(check(&stream(path), &mut coverage));
    }
    println!("Chromium: {} streams, {} pictures equal", tally.streams, tally.pictures);
    let missing = coverage.missing(["block from scaled reference", "resized without key frame"]);
    assert!(tally.streams >= 4 && missing.is_empty(), "{tally:?} {missing:?}");
}

#[test]
fn vectors_of_profile_0_in_the_registry_decode_as_in_libvpx() {
    let (mut tally, mut coverage) = (Tally::default(), Coverage::default());
    for stream in vectors().iter().map(|path| stream(path)).filter(|s| profile(s) == 0) {
        let one = check(&stream, &mut coverage);
        println!("{}: {} pictures equal", stream.name, one.pictures);
        tally.add(one);
    }
    if tally.streams == 0 {
        windlass_skips::skip("no crate in CARGO_HOME has test vectors (`cargo fetch` brings them)");
    }
}

#[test]
fn vectors_of_other_profiles_in_the_registry_are_refused() {
    let mut refused = 0;
    for stream in vectors().iter().map(|path| stream(path)).filter(|s| profile(s) != 0) {
        for chunk in &stream.chunks {
            let error = decoders::under_test().decode(chunk).expect_err(&stream.name);
            assert!(!error.is_empty());
        }
        refused += 1;
    }
    if refused == 0 {
        windlass_skips::skip("no crate in CARGO_HOME has vectors of profiles 1 to 3");
    }
}

#[test]
fn a_decoder_after_garbage_is_ready_for_the_next_key_frame() {
    let path = Path::new("fixtures/vp9/chromium-l1t1.ivf");
    let stream = stream(path);
    let mut decoder = decoders::under_test();
    for garbage in [&[][..], &[0], &[0x82; 40], &stream.chunks[1]] {
        let _ = decoder.decode(garbage);
    }
    let (found, expected) =
        (decoder.decode(&stream.chunks[0]), Libvpx::new().decode(&stream.chunks[0]));
    assert_eq!(found, expected);
}
