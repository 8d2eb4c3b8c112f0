//! Every form of intra prediction against the scalar one, and that one against `vp9dec`.

use super::*;
use crate::random::Random;

const SIDES: [usize; 4] = [4, 8, 16, 32];

fn run(isa: Isa, mode: IntraMode, side: usize, edges: Edges<'_>, stride: usize) -> Vec<u8> {
    let mut dst = vec![7; (side - 1) * stride + side];
    predict_intra(isa, mode, side, edges, &mut dst, stride);
    dst
}

#[test]
fn every_form_equals_the_scalar_one_for_all_modes_and_sides() {
    let mut random = Random(1);
    for isa in Isa::available() {
        for mode in IntraMode::ALL {
            for side in SIDES {
                for case in 0..50 {
                    let (above, left) = (random.samples(2 * side + 1), random.samples(side));
                    let (have_left, have_above) = (case & 1 != 0, case & 2 != 0);
                    let edges = Edges { above: &above, left: &left, have_left, have_above };
                    let stride = side + random.below(5);
                    assert_eq!(
                        run(*isa, mode, side, edges, stride),
                        run(Isa::SCALAR, mode, side, edges, stride),
                        "{isa:?} {mode:?} {side} case {case}"
                    );
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn blocks_of_32_by_one_lane_equal_the_scalar_ones() {
    use crate::simd::vector::x86::X128;
    #[target_feature(enable = "avx2")]
    unsafe fn one_lane(mode: IntraMode, edges: Edges<'_>, to: simd::To) {
        unsafe { by_side::<X128, X128>(mode, 32, edges, to) }
    }
    if !is_x86_feature_detected!("avx2") {
        return windlass_skips::skip("this CPU has no AVX2");
    }
    let mut random = Random(2);
    for mode in IntraMode::ALL {
        let (above, left) = (random.samples(65), random.samples(32));
        let edges = Edges { above: &above, left: &left, have_left: true, have_above: true };
        let mut dst = vec![7; 32 * 32];
        let to = simd::To { at: dst.as_mut_ptr(), stride: 32 };
        // SAFETY: AVX2 is there, all slices are long enough.
        unsafe { one_lane(mode, edges, to) };
        let expected = run(Isa::SCALAR, mode, 32, edges, 32);
        assert_eq!(dst, expected, "{mode:?}");
    }
}

#[test]
fn predictions_equal_those_of_vp9dec() {
    let mut random = Random(3);
    for mode in IntraMode::ALL {
        for (size, side) in SIDES.into_iter().enumerate() {
            for case in 0..20 {
                let (have_left, have_above, right) = (case & 1 != 0, case & 2 != 0, case & 4 != 0);
                let samples = random.samples(128 * 128);
                let mut plane = vp9dec::framebuffer::Plane::new(128, 128);
                for (i, &v) in samples.iter().enumerate() {
                    plane.set(i % 128, i / 128, u16::from(v));
                }
                // The edges by the rules of availability, as vp9dec has them.
                let sample = |x: usize, y: usize| samples[y * 128 + x];
                let (x, y) = (32, 32);
                let last = if right && side == 4 { 2 * side - 1 } else { side - 1 };
                let mut above = vec![match (have_left, have_above) {
                    (true, true) => sample(x - 1, y - 1),
                    (false, true) => 129,
                    _ => 127,
                }];
                above.extend(
                    (0..2 * side)
                        .map(|i| if have_above { sample(x + i.min(last), y - 1) } else { 127 }),
                );
                let left: Vec<u8> =
                    (0..side).map(|i| if have_left { sample(x - 1, y + i) } else { 129 }).collect();
                vp9dec::predict::predict_intra(
                    &mut plane, x, y, have_left, have_above, right, size as u8, mode as u8, 127,
                    127, 8,
                );
                let expected: Vec<u8> =
                    (0..side * side).map(|i| plane.get(x + i % side, y + i / side) as u8).collect();
                let edges = Edges { above: &above, left: &left, have_left, have_above };
                assert_eq!(
                    run(Isa::SCALAR, mode, side, edges, side),
                    expected,
                    "{mode:?} {side} case {case}"
                );
            }
        }
    }
}
