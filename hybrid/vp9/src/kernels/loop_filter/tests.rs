//! Every form equals the scalar one.

use super::*;
use crate::random::Random;

const STRIDE: usize = 96;
const ROWS: usize = 80;

/// Content of many kinds: flat with steps at multiples of 8, ramps, noise, extremes.
fn picture(random: &mut Random, kind: u64) -> Vec<u8> {
    let cells: Vec<i32> = (0..512).map(|_| random.below(256) as i32).collect();
    let reach = [2, 8, 30, 120, 255][random.below(5)];
    let noise = [1, 2, 3, 12][random.below(4)];
    (0..STRIDE * ROWS)
        .map(|i| {
            let (y, x) = (i / STRIDE, i % STRIDE);
            let cell = cells[(y / 8 * 16 + x / 8) % 512];
            let value = match kind {
                0 => 128 + cell % (reach + 1) - reach / 2 + random.below(noise) as i32,
                1 => (x as i32 + 2 * y as i32) / 3 + cell % 3 + random.below(noise) as i32,
                2 => random.below(256) as i32,
                3 => [0, 255, 1, 254][cell as usize % 4],
                _ => [0, 255][random.below(8) / 7] + cell % 2,
            };
            value.clamp(0, 255) as u8
        })
        .collect()
}

fn random_masks(random: &mut Random) -> EdgeMasks {
    let sparse = random.below(4);
    let mut bits = || (0..sparse).fold(random.next(), |all, _| all & random.next());
    let (wide, medium, narrow, inner) = (bits(), bits(), bits(), bits());
    EdgeMasks { wide, medium: medium & !wide, narrow: narrow & !(wide | medium), inner }
}

#[test]
fn every_form_equals_the_scalar_one_on_any_content() {
    let mut random = Random(21);
    let mut changed = 0;
    for case in 0..4000 {
        let before = picture(&mut random, case % 5);
        let masks = random_masks(&mut random);
        let limits = Limits::new(random.below(8) as u8);
        let one = random.below(64) as u64 * 0x0101_0101_0101_0101;
        let mixed = case % 3 == 0;
        let levels =
            std::array::from_fn(|_| if mixed { random.next() & (0x3f * EACH) } else { one });
        let units = if case % 2 == 0 { 8 } else { 4 };
        let direction = [Direction::Vertical, Direction::Horizontal][random.below(2)];
        let run = |isa| {
            let mut samples = before.clone();
            let mut area =
                Area { samples: &mut samples, offset: 8 * STRIDE + 8, stride: STRIDE, units };
            filter_edges(isa, direction, &masks, &levels, &limits, &mut area);
            samples
        };
        let expected = run(Isa::SCALAR);
        changed += usize::from(expected != before);
        for &isa in Isa::available() {
            assert!(run(isa) == expected, "{isa:?} {direction:?} case {case}: {masks:x?}");
        }
    }
    assert!(changed > 1000, "only {changed} cases change a sample");
}

const EACH: u64 = 0x0101_0101_0101_0101;

/// The one-lane form is otherwise run only on machines with 128-bit vectors.
#[cfg(target_arch = "x86_64")]
#[test]
fn one_lane_alone_equals_the_scalar_form() {
    #[target_feature(enable = "avx2")]
    unsafe fn one_lane(edges: Edges, plane: simd::Plane) {
        use crate::simd::vector::x86::X128;
        let Edges { direction, masks, levels, limits } = edges;
        // SAFETY: as the caller's.
        unsafe { simd::filter_edges::<X128, X128>(direction, masks, levels, limits, plane) }
    }
    if !is_x86_feature_detected!("avx2") {
        return windlass_skips::skip("this CPU has no AVX2");
    }
    let mut random = Random(5);
    for case in 0..1000 {
        let before = picture(&mut random, case % 5);
        let masks = random_masks(&mut random);
        let limits = Limits::new(random.below(8) as u8);
        let levels = std::array::from_fn(|_| random.next() & (0x3f * EACH));
        let direction = [Direction::Vertical, Direction::Horizontal][random.below(2)];
        let (mut a, mut b) = (before.clone(), before);
        let offset = 8 * STRIDE + 8;
        let mut area = Area { samples: &mut a, offset, stride: STRIDE, units: 8 };
        filter_edges(Isa::SCALAR, direction, &masks, &levels, &limits, &mut area);
        let mut area = Area { samples: &mut b, offset, stride: STRIDE, units: 8 };
        let edges = Edges { direction, masks: &masks, levels: &levels, limits: &limits };
        // SAFETY: AVX2 is available; the area and 8 samples around it are in the slice.
        unsafe { one_lane(edges, simd::Plane::of(&mut area)) };
        assert!(a == b, "{direction:?} case {case}: {masks:x?}");
    }
}

#[test]
fn limits_follow_level_and_sharpness() {
    for (sharpness, level, limit, blimit, thresh) in [
        (0, 0, 1, 5, 0),
        (0, 63, 63, 193, 3),
        (1, 63, 8, 138, 3),
        (4, 32, 5, 73, 2),
        (5, 32, 4, 72, 2),
        (7, 3, 1, 11, 0),
        (7, 63, 2, 132, 3),
    ] {
        let got = Limits::new(sharpness).get(level);
        assert_eq!((got.step, got.blimit, got.thresh), (limit, blimit, thresh));
    }
}

#[test]
#[should_panic(expected = "offset")]
fn an_edge_at_the_start_of_the_slice_is_refused() {
    let masks = EdgeMasks { narrow: 1, ..EdgeMasks::default() };
    let mut area = Area { samples: &mut vec![0; 64 * 64], offset: 0, stride: 64, units: 8 };
    filter_edges(Isa::detect(), Direction::Vertical, &masks, &[0; 8], &Limits::new(0), &mut area);
}
