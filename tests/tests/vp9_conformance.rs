//! The VP9 decoder equals libvpx, sample for sample, on streams of every kind.
//!
//! Each group also runs `vp9dec` as a second oracle, and counts the tools of the format that its
//! streams contain, so that a group cannot lose what it is there for without a test failing.
//!
//! `cargo test -p windlass-tests --test vp9_conformance -- --ignored` adds the full square of sizes.

use std::sync::Mutex;
use std::time::Instant;

use windlass_tests::vp9::compare::{self, Tally};
use windlass_tests::vp9::corpus::{self, Case};
use windlass_tests::vp9::coverage::Probe;
use windlass_tests::vp9::noise::Noise;
use windlass_tests::vp9::{Coverage, Stream, decoders};

/// Makes and compares all streams of a group; every departure is told, then the test fails.
fn check(group: &str, cases: impl IntoIterator<Item = Case>) -> Coverage {
    let mut failures = Vec::new();
    let streams = cases.into_iter().map(|case| match case.make() {
        Ok(stream) => stream,
        Err(why) => panic!("{group}: the encoder refuses {why}"),
    });
    let (tally, coverage) = compare_all(streams, &mut failures);
    println!("{group}: {} streams, {} pictures equal", tally.streams, tally.pictures);
    assert!(failures.is_empty(), "{group}:\n{}", failures.join("\n"));
    coverage
}

fn compare_all(
    streams: impl IntoIterator<Item = Stream>,
    failures: &mut Vec<String>,
) -> (Tally, Coverage) {
    let (mut tally, mut coverage) = (Tally::default(), Coverage::default());
    for stream in streams {
        let start = Instant::now();
        let mut probe = Probe::new();
        let result = compare::stream(&stream, &mut [decoders::under_test(), Box::new(&mut probe)]);
        coverage.add(probe.coverage());
        if std::env::var_os("WINDLASS_VP9_TIMES").is_some() {
            println!("{:6.2} s  {}", start.elapsed().as_secs_f64(), stream.name);
        }
        match result {
            Ok(one) => tally.add(one),
            Err(mismatch) => {
                failures.push(format!("{mismatch}{}", keep(&stream)));
            }
        }
    }
    (tally, coverage)
}

/// Writes a stream that decoders disagree about into `WINDLASS_VP9_KEEP`, if that is set.
fn keep(stream: &Stream) -> String {
    static ONE: Mutex<()> = Mutex::new(());
    let Some(folder) = std::env::var_os("WINDLASS_VP9_KEEP") else { return String::new() };
    let _guard = ONE.lock();
    let name: String =
        stream.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let path = std::path::Path::new(&folder).join(name + ".ivf");
    match std::fs::write(&path, stream.to_ivf()) {
        Ok(()) => format!(" (kept as {})", path.display()),
        Err(e) => format!(" (not kept: {e})"),
    }
}

fn assert_covers(coverage: &Coverage, tools: &[&str]) {
    let missing = coverage.missing(tools.iter().copied());
    assert!(missing.is_empty(), "the streams no longer contain {missing:?}; they have\n{coverage}");
}

#[test]
fn every_width_and_height_up_to_66_decodes_as_in_libvpx() {
    let coverage = check("sizes", corpus::sizes());
    assert_covers(&coverage, &["block 4x4", "split vectors below 8x8", "vector beyond the frame"]);
}

#[test]
fn odd_sizes_up_to_1080p_decode_as_in_libvpx() {
    let coverage = check("large sizes", corpus::sizes_large());
    assert_covers(&coverage, &["block 64x64", "segmentation", "4 tile columns"]);
}

#[test]
fn every_speed_of_the_encoder_decodes_as_in_libvpx() {
    let coverage = check("speeds", corpus::speeds());
    assert_covers(&coverage, &["error-resilient frame", "adapted frame", "segment map kept"]);
}

#[test]
fn every_setting_of_the_encoder_decodes_as_in_libvpx() {
    let coverage = check("settings", corpus::settings());
    assert_covers(
        &coverage,
        &[
            "lossless frame",
            "quantiser 1 to 20",
            "quantiser 235 to 255",
            "chroma quantiser offset",
            "loop filter off",
            "segmentation",
            "segment feature: quantiser",
            "segment feature: loop filter",
            "segment feature: skip",
            "vector of 64 samples or more",
        ],
    );
}

#[test]
fn hidden_references_and_compound_prediction_decode_as_in_libvpx() {
    let coverage = check("hidden references", corpus::hidden_references());
    assert_covers(
        &coverage,
        &["hidden frame", "superframe", "compound block", "references: select"],
    );
}

#[test]
fn sizes_that_change_in_mid_stream_decode_as_in_libvpx() {
    let coverage = check("resizes", corpus::resizes());
    assert_covers(
        &coverage,
        &[
            "resized without key frame",
            "reference scaled down",
            "reference scaled up",
            "block from scaled reference",
        ],
    );
}

#[test]
fn layers_and_intra_only_frames_decode_as_in_libvpx() {
    let coverage = check("layers", corpus::layers());
    assert_covers(&coverage, &["intra-only frame", "superframe", "block from scaled reference"]);
}

#[test]
fn tiles_of_pictures_up_to_4160_wide_decode_as_in_libvpx() {
    let coverage = check("tiles", corpus::tiles());
    assert_covers(
        &coverage,
        &["1 tile column", "2 tile columns", "4 tile columns", "8 tile columns", "16 tile columns"],
    );
    assert_covers(&coverage, &["1 tile row", "2 tile rows", "4 tile rows"]);
}

#[test]
fn slots_shown_again_and_rewritten_headers_decode_as_in_libvpx() {
    let coverage = check("changed streams", corpus::changed());
    assert_covers(
        &coverage,
        &[
            "show-existing frame",
            "superframe",
            "frame filter: regular",
            "frame filter: smooth",
            "frame filter: sharp",
            "frame filter: bilinear",
            "loop filter deltas",
            "loop filter sharpness",
            "luma DC quantiser offset",
            "segment values absolute",
            "render size differs",
        ],
    );
}

#[test]
fn random_bits_under_sound_headers_decode_as_in_libvpx() {
    let coverage = check("noise", corpus::noise(0..40));
    // One tile only, no quantisers that overflow, no superframes; all else.
    let elsewhere = |tool: &&str| {
        !tool.contains("tile") && !["superframe", "quantiser 235 to 255"].contains(tool)
    };
    let tools: Vec<&str> = Coverage::all().filter(elsewhere).collect();
    assert_covers(&coverage, &tools);
}

#[test]
fn oracles_dispute_next_to_no_noise() {
    let (mut frames, mut disputed) = (0, 0);
    for seed in 100..120 {
        let noise = Noise { seed, frames: 30, largest: (90, 90), resizes: seed % 2 == 0 };
        let made = noise.make();
        frames += made.stream.chunks.len();
        disputed += made.disputed.len();
    }
    // Where they do, a coefficient exceeds 16 bits.
    assert!(disputed * 200 <= frames, "{disputed} of {frames}");
}

#[test]
#[ignore = "4356 sizes: minutes"]
fn all_sizes_of_the_square_of_66_decode_as_in_libvpx() {
    check("square of sizes", corpus::sizes_all());
}

#[test]
#[ignore = "1000 streams: minutes"]
fn much_noise_decodes_as_in_libvpx() {
    check("much noise", corpus::noise(1000..2000));
}
