//! The GPU's coder of anchors, on machines without one: its kernels' own source on the CPU, thread by thread (see
//! `tests/cuda/`), against the CPU's coder, byte for byte. It needs a C++ compiler; without one these tests say so
//! and pass.

#![cfg(target_os = "linux")]

#[path = "cuda/emulated.rs"]
mod emulated;

use emulated::on_emulated_device;
use windlass_htj2k::{Encoder, Format};
use windlass_sr::CudaError;
use windlass_sr::cuda::coder::{CoderError, CudaCoder, compile_coder_for};

/// The format of anchors: ±255 grey levels in sixteenths, five levels.
fn format(width: u32, height: u32) -> Format {
    Format { width, height, bits: 13, signed: true }
}

const LEVELS: u8 = 5;

/// What a picture shows.
#[derive(Debug, Clone, Copy)]
enum Of {
    Nothing,
    /// Waves and an edge.
    Waves,
    Noise,
    /// The greatest and least samples, side by side and in stripes.
    Extremes,
    /// A few single samples on nothing.
    Dots,
}

fn picture(format: Format, of: Of, seed: u32) -> Vec<i16> {
    let (min, max) = format.range();
    let middle = f64::from(min + max) / 2.0;
    let half = f64::from(max - min) / 2.0;
    let mut state = seed.wrapping_mul(747_796_405).wrapping_add(1);
    let sample = |i: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (x, y) = (i % format.width, i / format.width);
        let noise = f64::from(state >> 8) / f64::from(1 << 23) - 1.0;
        let wave = (f64::from(x) * 0.31 + f64::from(y) * 0.17).sin();
        let edge = if 2 * x > 3 * y { 0.2 } else { -0.1 };
        let stripes = x / 7 % 2 == y / 3 % 2;
        let share = match of {
            Of::Nothing => 0.0,
            Of::Waves => 0.3 * wave + edge,
            Of::Noise => noise,
            Of::Extremes => {
                if stripes == (state >> 31 == 1) {
                    1.0
                } else {
                    -1.0
                }
            }
            Of::Dots => {
                if state >> 22 == 0 {
                    noise
                } else {
                    0.0
                }
            }
        };
        (middle + share * half).round() as i16
    };
    (0..format.width * format.height).map(sample).collect()
}

/// Codes a picture on both at some steps.
fn same(coder: &mut CudaCoder, format: Format, levels: u8, samples: &[i16], steps: &[f32]) {
    let processors = Encoder::new(samples, format, levels).expect("a picture");
    coder.transform(&[samples], format, levels).expect("a picture");
    let jobs: Vec<_> = steps.iter().map(|&step| (0, step)).collect();
    let coded = coder.encode(&jobs).expect("codestreams");
    for (coded, &step) in coded.iter().zip(steps) {
        let wanted = processors.encode(step);
        let (ours, theirs) = (coded.len(), wanted.len());
        let first = coded.iter().zip(&wanted).position(|(a, b)| a != b);
        assert!(
            *coded == wanted,
            "{format:?}, step {step}: {ours} bytes for {theirs}, from {first:?}"
        );
    }
}

#[test]
fn codestreams_are_those_of_the_cpu() {
    on_emulated_device("codestreams_are_those_of_the_cpu", &[], || {
        let mut coder = CudaCoder::new().expect("a coder");
        for (width, height) in [(1, 1), (1, 9), (6, 1), (2, 3), (64, 64), (65, 63), (33, 130)] {
            let format = format(width, height);
            for of in [Of::Nothing, Of::Waves, Of::Noise, Of::Extremes, Of::Dots] {
                let samples = picture(format, of, width + height);
                same(&mut coder, format, LEVELS, &samples, &[0.001, 3.0, 40.0, 700.0]);
            }
        }
    });
}

/// Several tiles of the transform and blocks in each direction.
#[test]
fn larger_pictures_are_coded_alike() {
    on_emulated_device("larger_pictures_are_coded_alike", &[], || {
        let mut coder = CudaCoder::new().expect("a coder");
        for (of, steps) in [(Of::Waves, [2.0, 128.0]), (Of::Noise, [16.0, 500.0])] {
            let format = format(200, 150);
            same(&mut coder, format, LEVELS, &picture(format, of, 9), &steps);
        }
        let wide = format(700, 5);
        same(&mut coder, wide, LEVELS, &picture(wide, Of::Noise, 5), &[30.0]);
    });
}

#[test]
fn other_formats_and_depths_are_coded_alike() {
    on_emulated_device("other_formats_and_depths_are_coded_alike", &[], || {
        let mut coder = CudaCoder::new().expect("a coder");
        for (bits, signed) in [(8, false), (15, false), (16, true), (1, false)] {
            for levels in [1, 2, 9] {
                let format = Format { bits, signed, ..format(71, 50) };
                let samples = picture(format, Of::Waves, levels.into());
                same(&mut coder, format, levels, &samples, &[0.5, 6.0]);
            }
        }
        // Samples that the format does not have are clamped.
        let format = Format { bits: 8, signed: true, ..format(40, 9) };
        let samples: Vec<i16> = (0..360).map(|i| (i * 181 % 65_536 - 32_768) as i16).collect();
        same(&mut coder, format, LEVELS, &samples, &[1.0]);
    });
}

/// Every picture of a batch at steps of its own, some of them twice, in any order; warps run backwards.
#[test]
fn batches_are_coded_as_if_alone() {
    on_emulated_device("batches_are_coded_as_if_alone", &[("EMULATED_BACKWARDS", "1")], || {
        let format = format(97, 66);
        let kinds = [Of::Waves, Of::Nothing, Of::Noise, Of::Dots, Of::Extremes];
        let pictures: Vec<_> = (1..).zip(kinds).map(|(n, of)| picture(format, of, n)).collect();
        let samples: Vec<&[i16]> = pictures.iter().map(Vec::as_slice).collect();
        let mut coder = CudaCoder::new().expect("a coder");
        let jobs = [(2, 90.0), (0, 12.0), (4, 33.0), (1, 1.0), (3, 8.0), (0, 120.0), (2, 700.0)];
        let wanted: Vec<Vec<u8>> = jobs
            .iter()
            .map(|&(n, step)| Encoder::new(samples[n], format, LEVELS).expect("one").encode(step))
            .collect();
        coder.transform(&samples, format, LEVELS).expect("pictures");
        assert_eq!(coder.encode(&jobs).as_ref(), Ok(&wanted));
        // The same again, without anything made anew.
        coder.transform(&samples, format, LEVELS).expect("pictures");
        assert_eq!(coder.encode(&jobs), Ok(wanted));
        // More jobs than go at once.
        let many: Vec<_> = (0..70).map(|n| (n % 5, 2000.0)).collect();
        let coded = coder.encode(&many).expect("codestreams");
        assert!(coded.len() == 70 && (5..70).all(|n| coded[n] == coded[n % 5]));
    });
}

/// Streams that end in all ways that there are: with a byte that is dropped, one that serves two, one that is stuffed.
#[test]
fn many_small_blocks_are_coded_alike() {
    on_emulated_device("many_small_blocks_are_coded_alike", &[], || {
        let format = format(22, 20);
        let pictures: Vec<_> = (0..600).map(|n| picture(format, Of::Noise, n)).collect();
        let samples: Vec<&[i16]> = pictures.iter().map(Vec::as_slice).collect();
        let step = |n: usize| 20.0 * 1.5f32.powi(n as i32 % 12);
        let jobs: Vec<_> = (0..600).map(|n| (n, step(n))).collect();
        let mut coder = CudaCoder::new().expect("a coder");
        coder.transform(&samples, format, 1).expect("pictures");
        for (n, coded) in coder.encode(&jobs).expect("codestreams").iter().enumerate() {
            let wanted = Encoder::new(samples[n], format, 1).expect("one").encode(step(n));
            assert!(*coded == wanted, "picture {n}");
        }
    });
}

#[test]
fn pictures_that_are_none_are_refused() {
    on_emulated_device("pictures_that_are_none_are_refused", &[], || {
        let mut coder = CudaCoder::new().expect("a coder");
        let refused = Err(CoderError::Pictures);
        assert_eq!(coder.encode(&[(0, 1.0)]).map(|_| ()), refused);
        assert_eq!(coder.transform(&[], format(4, 4), LEVELS), refused);
        assert_eq!(coder.transform(&[&[0; 15]], format(4, 4), LEVELS), refused);
        assert_eq!(coder.transform(&[&[]], format(0, 4), LEVELS), refused);
        assert_eq!(coder.transform(&[&[0; 16]], format(4, 4), 0), refused);
        coder.transform(&[&[0; 16]], format(4, 4), LEVELS).expect("a picture");
        assert_eq!(coder.encode(&[(1, 1.0)]).map(|_| ()), refused);
        assert_eq!(coder.encode(&[(0, 1.0)]).map(|coded| coded.len()), Ok(1));
        assert_eq!(coder.encode(&[]), Ok(vec![]));
    });
}

#[test]
fn a_device_without_memory_says_so() {
    on_emulated_device("a_device_without_memory_says_so", &[("EMULATED_MEMORY", "60000")], || {
        let mut coder = CudaCoder::new().expect("the tables fit");
        let large = format(200, 100);
        let samples = picture(large, Of::Noise, 3);
        let refused = coder.transform(&[&samples], large, LEVELS).expect_err("no room");
        assert!(matches!(refused, CoderError::Device(_)), "{refused}");
        assert!(refused.to_string().contains("memory"), "{refused}");
        assert_eq!(coder.encode(&[(0, 1.0)]), Err(CoderError::Pictures));
        // A smaller picture still has room.
        let small = format(40, 30);
        same(&mut coder, small, LEVELS, &samples[..1200], &[9.0]);
    });
}

#[test]
fn a_device_that_is_lost_says_so() {
    on_emulated_device("a_device_that_is_lost_says_so", &[], || {
        let mut coder = CudaCoder::new().expect("a coder");
        let format = format(20, 20);
        let samples = picture(format, Of::Waves, 3);
        coder.transform(&[&samples], format, LEVELS).expect("a picture");
        std::fs::write(std::env::var_os("EMULATED_LOST").expect("its name"), "").expect("a file");
        let lost = coder.encode(&[(0, 4.0)]).expect_err("the device is lost");
        assert!(lost.to_string().contains("illegal"), "{lost}");
        assert!(matches!(coder.transform(&[&samples], format, LEVELS), Err(CoderError::Device(_))));
        assert!(CudaCoder::new().is_err());
    });
}

/// Needs NVRTC itself, and no GPU: see `tests/cuda.rs`.
#[test]
fn the_coders_kernels_compile_for_every_architecture() {
    for arch in [75, 80, 90, 100] {
        match compile_coder_for(arch) {
            Err(CudaError::NoCompiler) => {
                windlass_skips::skip(
                    "libnvrtc is not found (LD_LIBRARY_PATH; `cargo xtask gpu` fetches it)",
                );
                return;
            }
            Err(CudaError::OldDevice(_)) => {
                windlass_skips::skip(format!("this NVRTC makes no code for {arch}"));
            }
            made => assert!(made.expect("kernels").len() > 1_000, "{arch}"),
        }
    }
}
