//! Our streams in other people's decoders, theirs in ours.

mod common;
mod formats;
mod peers;

use common::picture;
use formats::formats;
use peers::openjph::Parameters;
use peers::{openjpeg, openjph};
use proptest::prelude::*;
use windlass_htj2k::{Encoder, Format, Limits, Picture, decode, encode_lossless};

const LIMITS: Limits = Limits { max_side: 4096, max_area: 1 << 22 };
const SIZES: [(u32, u32); 7] =
    [(1, 1), (2, 3), (17, 1), (63, 65), (200, 150), (321, 130), (640, 360)];

/// Whether the samples are the same, or within 1 by the 9/7 transform, which runs in floating point.
fn assert_near(ours: &Picture, theirs: Option<Picture>, exact: bool, of: &str) {
    let theirs = theirs.unwrap_or_else(|| panic!("{of}: refused"));
    assert_eq!(ours.format, theirs.format, "{of}");
    assert_eq!(ours.samples.len(), theirs.samples.len(), "{of}");
    let pairs = ours.samples.iter().zip(&theirs.samples);
    let far = pairs.map(|(&a, &b)| (i32::from(a) - i32::from(b)).abs()).max();
    assert!(far.unwrap_or(0) <= i32::from(!exact), "{of}: up to {far:?} apart");
}

/// Has all decoders decode a stream, which stands for these samples if it is exact.
fn assert_all_agree(coded: &[u8], samples: &[i16], exact: bool, of: &str) {
    let ours = decode(coded, LIMITS).unwrap_or_else(|e| panic!("{of}: {e}"));
    if exact {
        assert_eq!(ours.samples, samples, "{of}");
    }
    if exact || ours.format.bits <= openjpeg::EXACT_BITS {
        assert_near(&ours, openjpeg::decode(coded), exact, &format!("{of}, OpenJPEG"));
    }
    // OpenJPH's port decodes a sample wrongly in some one-bit pictures of many levels that both others decode as they
    // were (158×65, 6 levels, amplitude 0.74713945, seed 226496435).
    if !exact || ours.format.bits > 1 {
        assert_near(&ours, Some(openjph::decode(coded)), exact, &format!("{of}, OpenJPH"));
    }
}

/// Codes a picture at a step, or without loss, and has it decoded.
fn assert_others_decode(samples: &[i16], format: Format, levels: u8, step: Option<f32>) {
    let coded = match step {
        Some(step) => Encoder::new(samples, format, levels).map(|encoder| encoder.encode(step)),
        None => encode_lossless(samples, format, levels),
    };
    let of = format!("{format:?}, {levels} levels at {step:?}");
    assert_all_agree(&coded.expect("a legal picture"), samples, step.is_none(), &of);
}

#[test]
fn others_decode_our_streams() {
    let kinds = [(13, true, 5), (8, false, 4), (12, false, 4), (16, true, 8), (1, false, 0)];
    let steps = [0.5, 1.0, 7.0, 20.0, 90.0, 333.0].map(Some);
    for (width, height) in SIZES {
        for (bits, signed, levels) in kinds {
            let format = Format { width, height, bits, signed };
            let samples = picture(format, 0.5, width);
            for step in steps.into_iter().chain([None]) {
                assert_others_decode(&samples, format, levels, step);
            }
        }
    }
}

#[test]
fn others_decode_our_streams_of_flat_pictures() {
    for (width, height) in SIZES {
        for (bits, signed) in [(13, true), (8, false)] {
            let format = Format { width, height, bits, signed };
            let (least, greatest) = format.range();
            // The first has nothing to code: every block is empty.
            for value in [format.level(), least, greatest] {
                let samples = vec![value as i16; format.area()];
                for step in [Some(1.0), Some(64.0), None] {
                    assert_others_decode(&samples, format, 5, step);
                }
            }
        }
    }
}

#[test]
fn we_decode_openjphs_streams() {
    const USUAL: Parameters = Parameters::USUAL;
    let ways = [
        USUAL,
        Parameters { levels: 0, block: (32, 32), ..USUAL },
        Parameters { levels: 3, block: (4, 1024), progression: "LRCP", ..USUAL },
        Parameters { step: Some(0.001), ..USUAL },
        Parameters { step: Some(0.02), levels: 2, block: (1024, 4), ..USUAL },
        Parameters { step: Some(0.1), progression: "CPRL", ..USUAL },
        Parameters { step: Some(0.005), progression: "RLCP", ..USUAL },
        Parameters { step: Some(0.01), levels: 7, block: (8, 8), progression: "PCRL" },
    ];
    for (width, height) in SIZES {
        for bits in [8, 12] {
            let format = Format { width, height, bits, signed: false };
            let samples = picture(format, 0.7, height);
            for way in ways {
                let coded = openjph::encode(&samples, format, way);
                let of = format!("{format:?}, {way:?}");
                assert_all_agree(&coded, &samples, way.step.is_none(), &of);
            }
        }
    }
}

/// The picture of which `fixtures/make.sh` has streams written.
fn picture_of_fixtures(format: Format) -> Vec<i16> {
    let most = (1 << format.bits) - 1;
    let sample = |x: u32, y: u32| {
        let wave = (x * x + 3 * y * y) / 300 % 100;
        most * wave.min(100 - wave) / 60 + if 3 * x > 5 * y { most / 8 } else { 0 }
    };
    let row = |y| (0..format.width).map(move |x| sample(x, y) as i16);
    (0..format.height).flat_map(row).collect()
}

/// By OpenJPH itself, as its port writes a single precinct for each resolution.
#[test]
fn we_decode_openjphs_streams_of_several_precincts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    for (width, height) in [(63, 65), (200, 150), (321, 130)] {
        for bits in [8, 12] {
            let format = Format { width, height, bits, signed: false };
            let samples = picture_of_fixtures(format);
            for way in ["lossy", "exact"] {
                let of = format!("{folder}/{way}-{width}x{height}-{bits}.j2c");
                let coded = std::fs::read(&of).expect("a stream of this repository");
                let ours = decode(&coded, LIMITS).unwrap_or_else(|e| panic!("{of}: {e}"));
                assert_eq!(ours.format, format);
                assert_near(&ours, openjpeg::decode(&coded), way == "exact", &of);
                if way == "exact" {
                    assert_eq!(ours.samples, samples, "{of}");
                }
            }
        }
    }
}

/// Ways in which OpenJPH's port writes streams.
fn ways() -> impl Strategy<Value = Parameters> {
    let step = proptest::option::of(0.0005f32..0.2);
    let block = (2u32..=10).prop_flat_map(|log| (Just(log), 2..=10.min(12 - log)));
    let progression = prop::sample::select(vec!["LRCP", "RLCP", "RPCL", "PCRL", "CPRL"]);
    (step, 0u32..9, block, progression).prop_map(|(step, levels, (width, height), progression)| {
        Parameters { step, levels, block: (1 << width, 1 << height), progression }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn others_decode_our_streams_of_any_picture(
        format in formats(), levels in 0u8..9, amplitude in 0.0f32..2.0, seed: u32,
        step in proptest::option::of(0.01f32..400.0),
    ) {
        assert_others_decode(&picture(format, amplitude, seed), format, levels, step);
    }

    #[test]
    fn we_decode_what_openjph_writes_of_any_picture(
        format in formats(), way in ways(), amplitude in 0.0f32..2.0, seed: u32,
    ) {
        let samples = picture(format, amplitude, seed);
        let coded = openjph::encode(&samples, format, way);
        prop_assume!(is_of(&coded, &samples, way.step));
        assert_all_agree(&coded, &samples, way.step.is_none(), &format!("{way:?}"));
    }
}

/// Whether a stream stands for these samples by OpenJPEG. OpenJPH's port writes others too: a byte too much behind a
/// packet's header that ends near a byte of 0xff, and coefficients that are larger than its headers say.
fn is_of(coded: &[u8], samples: &[i16], step: Option<f32>) -> bool {
    openjpeg::decode(coded).is_some_and(|picture| {
        let step = step.map(|step| step * f32::from(picture.format.bits).exp2());
        let most = step.map_or(0.0, |step| 8.0 * step + 1.0);
        let mut errors =
            picture.samples.iter().zip(samples).map(|(&a, &b)| i32::from(a) - i32::from(b));
        errors.all(|error| error.abs() as f32 <= most)
    })
}

#[path = "../examples/digest.rs"]
mod digest;

#[test]
fn streams_and_samples_are_those_of_all_targets() {
    assert_eq!(format!("{:016x}", digest::digest()), "462cfcdf94417cbd");
}
