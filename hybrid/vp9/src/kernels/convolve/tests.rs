//! Every form of motion compensation against the scalar one, and that one against `vp9dec`.

use super::*;
use crate::random::Random;

/// A whole picture of this size, predicted without an average.
fn block(dst: &mut [u8], width: usize, height: usize) -> Block<'_> {
    Block { dst, stride: width, width, height, average: false }
}

type Form = fn(Filters, Reference<'_>, Block<'_>);

/// Every form that this machine can run: by instruction set, and the one over vectors of one lane.
fn forms() -> Vec<(&'static str, Form)> {
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let mut forms: Vec<(&'static str, Form)> =
        vec![("detected", |f, r, b| dispatch(Isa::detect(), f, r, b))];
    #[cfg(target_arch = "x86_64")]
    if Isa::detect() != Isa::SCALAR {
        #[target_feature(enable = "avx2")]
        unsafe fn one_lane(f: Filters, r: Reference<'_>, b: Block<'_>) {
            unsafe { simd::predict::<crate::simd::vector::x86::X128>(f, r, b) }
        }
        // SAFETY: AVX2 is there, the test leaves slack.
        forms.push(("one lane", |f, r, b| unsafe { one_lane(f, r, b) }));
    }
    forms
}

const SIDES: [usize; 5] = [4, 8, 16, 32, 64];

#[test]
fn sums_of_tap_groups_fit_sixteen_bits_in_every_order() {
    for filter in SUBPEL_FILTERS.iter().flatten() {
        assert_eq!(filter.iter().sum::<i16>(), 128);
        for group in [[0, 1, 4, 5], [2, 3, 6, 7]] {
            let sum = |sign: i32| -> i32 {
                group.iter().map(|&k| (i32::from(filter[k]) * sign).max(0) * 255 * sign).sum()
            };
            assert!(sum(1) + 64 <= 32767 && sum(-1) >= -32768, "{filter:?}");
        }
        for pair in filter.chunks_exact(2) {
            assert!(pair.iter().map(|&f| i32::from(f.max(0)) * 255).sum::<i32>() <= 32767);
        }
    }
}

#[test]
fn every_form_equals_the_scalar_one_for_all_sizes_and_filters() {
    let mut random = Random(1);
    for (name, form) in forms() {
        for width in SIDES {
            for height in [4, 8, 12, 16, 32, 64] {
                for case in 0..80 {
                    let filter = case % 4;
                    let set = &SUBPEL_FILTERS[filter];
                    let mut fraction = |zero: bool| {
                        let f = random.below(15) + 1;
                        if zero { None } else { Some(&set[f]) }
                    };
                    let filters = Filters {
                        across: fraction(case / 4 % 4 % 2 == 0),
                        down: fraction(case / 4 % 4 < 2),
                        two_taps: filter == 3,
                    };
                    let stride = 72 + random.below(20);
                    let samples = random.samples(stride * 72 + 8);
                    let offset = 3 * stride + 3 + random.below(stride - 71);
                    let reference = Reference { samples: &samples, offset, stride };
                    let dst_stride = width + random.below(9);
                    let before = random.samples(height * dst_stride);
                    let average = case / 16 % 2 == 1;
                    let run = |form: Form| {
                        let mut dst = before.clone();
                        let block =
                            Block { dst: &mut dst, stride: dst_stride, width, height, average };
                        form(filters, reference, block);
                        dst
                    };
                    assert_eq!(run(form), run(scalar::predict), "{name} {width}x{height} {case}");
                }
            }
        }
    }
}

#[test]
fn a_reference_may_end_right_after_the_samples_that_count() {
    let mut random = Random(2);
    for isa in Isa::available() {
        for width in SIDES {
            for (fx, fy) in [(5, 0), (0, 5), (9, 9), (0, 0)] {
                let around = |f: u8| if f == 0 { 0 } else { 7 };
                let stride = width + around(fx);
                let samples = random.samples(stride * (8 + around(fy)));
                let offset = if fy == 0 { 0 } else { 3 * stride } + if fx == 0 { 0 } else { 3 };
                let reference = Reference { samples: &samples, offset, stride };
                let run = |isa| {
                    let mut dst = vec![0; width * 8];
                    predict(isa, 2, fx, fy, reference, block(&mut dst, width, 8));
                    dst
                };
                assert_eq!(run(*isa), run(Isa::SCALAR), "{isa:?} {width} {fx} {fy}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "begins too late")]
fn a_reference_without_samples_before_the_block_is_refused() {
    let reference = Reference { samples: &[0; 4096], offset: 2, stride: 64 };
    predict(Isa::detect(), 0, 1, 0, reference, block(&mut [0; 64], 8, 8));
}

#[test]
fn every_form_for_scaled_references_equals_the_scalar_one() {
    let mut random = Random(3);
    for isa in Isa::available() {
        for case in 0..600 {
            let (width, height) = (SIDES[case % 5], SIDES[case / 5 % 5]);
            let mut step = || [32, 24, 80, random.below(80) + 1][random.below(4)];
            let (step_x, step_y) = (step(), step());
            let (fx, fy) = (random.below(16), random.below(16));
            let steps = Steps { fx, fy, step_x, step_y };
            let rows = ((15 + (height - 1) * step_y) >> 4) + 8;
            let stride = ((15 + (width - 1) * step_x) >> 4) + 8;
            let samples = random.samples(rows * stride);
            let reference = Reference { samples: &samples, offset: 3 * stride + 3, stride };
            let before = random.samples(width * height);
            let run = |isa| {
                let mut dst = before.clone();
                let mut block = block(&mut dst, width, height);
                block.average = case % 2 == 1;
                predict_scaled(isa, (case % 4) as u8, steps, reference, block);
                dst
            };
            assert_eq!(run(*isa), run(Isa::SCALAR), "{isa:?} {width}x{height} {steps:?}");
        }
    }
}

#[test]
fn a_step_of_one_sample_is_the_unscaled_prediction() {
    let mut random = Random(4);
    let samples = random.samples(80 * 80);
    let reference = Reference { samples: &samples, offset: 4 * 80 + 4, stride: 80 };
    for fraction in 0..16 {
        let (mut own, mut scaled) = ([0; 64 * 64], [0; 64 * 64]);
        predict(Isa::detect(), 0, fraction, 7, reference, block(&mut own, 64, 64));
        let steps = Steps { fx: usize::from(fraction), fy: 7, step_x: 16, step_y: 16 };
        predict_scaled(Isa::detect(), 0, steps, reference, block(&mut scaled, 64, 64));
        assert!(own == scaled, "{fraction}");
    }
}

/// `vp9dec`'s prediction of a chroma block at (64, 64) by the vectors, in sixteenths.
fn by_vp9dec(
    planes: &[vp9dec::framebuffer::Plane],
    own_side: u32,
    filter: u8,
    vectors: [[i32; 2]; 2],
    width: usize,
    height: usize,
) -> Vec<u8> {
    use vp9dec::predict::{InterPredictParams, RefPlaneView, predict_inter};
    let views: Vec<_> = planes
        .iter()
        .map(|plane| RefPlaneView {
            plane,
            width: plane.width as u32 * 2,
            height: plane.height as u32 * 2,
        })
        .collect();
    let compound = views.len() > 1;
    let parameters = InterPredictParams {
        ref_frame: [1, u8::from(compound) * 2],
        block_mvs: &[[vectors[0]; 4], [vectors[1]; 4]],
        interp_filter: filter,
        mi_row: 16,
        mi_col: 16,
        mi_size: 12,
        mi_rows: own_side / 8,
        mi_cols: own_side / 8,
        subsampling_x: 1,
        subsampling_y: 1,
        frame_width: own_side,
        frame_height: own_side,
        bit_depth: 8,
        refs: [Some(&views[0]), views.get(1)],
    };
    let mut dst = vp9dec::framebuffer::Plane::new(256, 256);
    predict_inter(&mut dst, 1, 64, 64, width, height, 0, &parameters);
    (0..width * height).map(|i| dst.get(64 + i % width, 64 + i / width) as u8).collect()
}

fn plane(side: usize, samples: &[u8]) -> vp9dec::framebuffer::Plane {
    let mut plane = vp9dec::framebuffer::Plane::new(side, side);
    for (i, &v) in samples.iter().enumerate() {
        plane.set(i % side, i / side, u16::from(v));
    }
    plane
}

#[test]
fn predictions_equal_those_of_vp9dec() {
    let mut random = Random(5);
    for case in 0..200 {
        let (width, height) = (SIDES[case % 5], SIDES[case / 5 % 5].min(32));
        let width = width.min(32);
        let samples = [random.samples(256 * 256), random.samples(256 * 256)];
        let planes = [plane(256, &samples[0]), plane(256, &samples[1])];
        let used = 1 + case / 25 % 2;
        let vectors: [[i32; 2]; 2] =
            core::array::from_fn(|_| [random.below(64) as i32, random.below(64) as i32]);
        let filter = (case / 50 % 4) as u8;
        let expected = by_vp9dec(&planes[..used], 512, filter, vectors, width, height);
        let mut dst = vec![0; width * height];
        for i in 0..used {
            let [y, x] = vectors[i].map(|v| v as usize);
            let offset = (64 + y / 16) * 256 + 64 + x / 16;
            let reference = Reference { samples: &samples[i], offset, stride: 256 };
            let (fx, fy) = (x as u8 % 16, y as u8 % 16);
            let mut block = block(&mut dst, width, height);
            block.average = i == 1;
            predict(Isa::SCALAR, filter, fx, fy, reference, block);
        }
        assert_eq!(dst, expected, "case {case}");
    }
}

#[test]
fn predictions_from_twice_the_size_equal_those_of_vp9dec() {
    let mut random = Random(6);
    for case in 0..40 {
        let samples = random.samples(512 * 512);
        let planes = [plane(512, &samples)];
        let vector = [random.below(64) as i32, random.below(64) as i32];
        let filter = (case % 4) as u8;
        let expected = by_vp9dec(&planes, 512, filter, [vector; 2], 32, 32);
        // Twice the size: 2048 sixteenths for the position, two for each one of the vector.
        let [y, x] = vector.map(|v| 2048 + 2 * v as usize);
        let reference =
            Reference { samples: &samples, offset: (y / 16) * 512 + x / 16, stride: 512 };
        let steps = Steps { fx: x % 16, fy: y % 16, step_x: 32, step_y: 32 };
        let mut dst = vec![0; 32 * 32];
        predict_scaled(Isa::SCALAR, filter, steps, reference, block(&mut dst, 32, 32));
        assert_eq!(dst, expected, "case {case} {vector:?}");
    }
}
