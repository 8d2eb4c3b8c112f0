//! Any picture comes back, and damaged streams are refused or decoded, never worse.

mod common;
mod formats;

use common::picture;
use formats::formats;
use proptest::prelude::*;
use windlass_htj2k::{Encoder, Error, Format, Limits, decode, encode_lossless};

const LIMITS: Limits = Limits { max_side: 4096, max_area: 1 << 20 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn without_loss_every_sample_comes_back(
        format in formats(), levels in 0u8..9, amplitude in 0.0f32..2.0, seed: u32,
    ) {
        let samples = picture(format, amplitude, seed);
        let coded = encode_lossless(&samples, format, levels).expect("a legal picture");
        let back = decode(&coded, LIMITS).expect("our own stream");
        prop_assert_eq!(back.format, format);
        prop_assert_eq!(back.samples, samples);
    }

    #[test]
    fn the_error_is_a_few_steps_at_most(
        format in formats(), levels in 0u8..9, amplitude in 0.0f32..2.0, seed: u32, step in 0.01f32..50.0,
    ) {
        let samples = picture(format, amplitude, seed);
        let encoder = Encoder::new(&samples, format, levels).expect("a legal picture");
        let back = decode(&encoder.encode(step), LIMITS).expect("our own stream");
        prop_assert_eq!(back.format, format);
        for (a, b) in back.samples.iter().zip(&samples) {
            let error = (i32::from(*a) - i32::from(*b)).abs() as f32;
            prop_assert!(error <= 8.0 * step + 1.0, "{} against {}", a, b);
        }
    }

    #[test]
    fn damaged_streams_never_panic(
        format in formats(), lossless: bool, seed: u32,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        keep in any::<prop::sample::Index>(), cut: bool,
    ) {
        let samples = picture(format, 1.0, seed);
        let mut coded = if lossless {
            encode_lossless(&samples, format, 4).expect("a legal picture")
        } else {
            Encoder::new(&samples, format, 4).expect("a legal picture").encode(3.0)
        };
        for (at, value) in edits {
            *at.get_mut(&mut coded) = value;
        }
        if cut {
            coded.truncate(keep.index(coded.len()));
        }
        if let Ok(back) = decode(&coded, LIMITS) {
            prop_assert_eq!(back.samples.len() as u32, back.format.width * back.format.height);
        }
    }

    #[test]
    fn any_bytes_decode_or_fail_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(decode(&bytes, LIMITS).is_err());
    }
}

#[test]
fn pictures_larger_than_the_limits_are_refused() {
    let format = Format { width: 64, height: 8, bits: 8, signed: true };
    let coded = encode_lossless(&[0; 512], format, 3).expect("a legal picture");
    for limits in [Limits { max_side: 63, max_area: 512 }, Limits { max_side: 64, max_area: 511 }] {
        assert_eq!(decode(&coded, limits), Err(Error::TooLarge { width: 64, height: 8 }));
    }
    assert!(decode(&coded, Limits { max_side: 64, max_area: 512 }).is_ok());
}

#[test]
fn pictures_that_are_none_are_refused() {
    let format = Format { width: 4, height: 4, bits: 12, signed: true };
    let wrong = [
        (Format { width: 0, ..format }, 0),
        (format, 15),
        (Format { bits: 0, ..format }, 16),
        (Format { bits: 17, ..format }, 16),
        (Format { bits: 16, signed: false, ..format }, 16),
    ];
    for (format, samples) in wrong {
        let samples = vec![0; samples];
        assert_eq!(encode_lossless(&samples, format, 3), Err(Error::Format));
        assert_eq!(Encoder::new(&samples, format, 3).map(|_| ()), Err(Error::Format));
    }
}

#[test]
fn a_flat_picture_costs_its_headers_alone() {
    let format = Format { width: 640, height: 360, bits: 13, signed: true };
    let encoder = Encoder::new(&vec![0; 640 * 360], format, 5).expect("a legal picture");
    assert!(encoder.encode(16.0).len() < 160);
}
