//! Every set of instructions against the definition, and the definition against what it should mean.

use proptest::prelude::*;

use super::*;

fn plane(width: usize, height: usize, seed: usize) -> Plane {
    let samples = (0..width * height).map(|i| ((i * 7919 + i / 13 * seed) % 256) as u8);
    Plane::from_samples(width, height, samples.collect()).expect("the count is right")
}

proptest! {
    #[test]
    fn every_set_of_instructions_fetches_the_same(
        (w, h) in (1usize..60, 1usize..40), scale in 1usize..=4, column in 0usize..8, row in 0usize..5,
        x in -1200i32..1200, y in -1200i32..1200, share in 0..=WHOLE, fill: i16, extreme: bool,
    ) {
        let side = 4;
        let (column, row) = (column % w.div_ceil(side), row % h.div_ceil(side));
        let (left, top) = (column * side, row * side);
        let low = Area { x: left, y: top, width: side.min(w - left), height: side.min(h - top) };
        let area = low.scaled(scale);
        let mut from = plane(w * scale, h * scale, 3);
        if extreme {
            from.samples_mut().iter_mut().for_each(|v| *v = if *v < 128 { 0 } else { 255 });
        }
        let (a, b) = (plane(w, h, 3), plane(w, h, 5));
        let window = Area { x: left, y: top, width: 8.min(w - left), height: 8.min(h - top) };
        let (stride, step) = (area.width + 5, Step { x, y });
        let run = |isa| {
            let mut out = vec![fill; stride * area.height];
            blend(isa, &from, area, step, share, &mut out, stride);
            (out, misfit(isa, (&a).into(), (&b).into(), window, step))
        };
        let defined = run(Isa::SCALAR);
        for &isa in Isa::available() {
            prop_assert_eq!(run(isa), defined.clone());
        }
        prop_assert!(defined.0.iter().enumerate().all(|(i, &v)| i % stride < area.width || v == fill));
    }
}

#[test]
fn a_whole_share_without_motion_is_the_picture_itself() {
    let from = plane(64, 32, 3);
    let area = Area { x: 16, y: 16, width: 16, height: 16 };
    for &isa in Isa::available() {
        let mut out = vec![3000; 256];
        blend(isa, &from, area, Step::default(), WHOLE, &mut out, 16);
        for (j, row) in out.chunks(16).enumerate() {
            for (o, &v) in row.iter().zip(&from.row(16 + j)[16..32]) {
                assert_eq!((o + 8) >> 4, i16::from(v));
            }
        }
    }
}

#[test]
fn taps_leave_flat_areas_flat_and_are_mirror_images() {
    for (p, taps) in TAPS.iter().enumerate() {
        assert_eq!(taps.iter().sum::<i16>(), 128);
        if p > 0 {
            let mirrored = TAPS[UNIT as usize - p];
            assert!(
                taps.iter().zip(mirrored.iter().rev()).all(|(a, b)| a.abs_diff(*b) <= 1),
                "{p}"
            );
        }
    }
    for value in [0, 1, 128, 255] {
        let flat = Plane::filled(40, 40, value);
        let area = Area { x: 8, y: 8, width: 8, height: 8 };
        let step = Step { x: 37, y: -51 };
        let mut out = vec![0; 64];
        blend(Isa::SCALAR, &flat, area, step, WHOLE, &mut out, 8);
        assert!(out.iter().all(|&v| (v + 8) >> 4 == i16::from(value)), "{value}: {out:?}");
    }
}

#[test]
fn the_misfit_of_a_moved_picture_is_nothing() {
    let at = |x: usize, y: usize| ((x * 5 + y * 3) % 251) as u8;
    let make = |dx: usize| {
        let samples = (0..48 * 32).map(|i| at(i % 48 + dx, i / 48)).collect();
        Plane::from_samples(48, 32, samples).expect("the count is right")
    };
    let area = Area { x: 8, y: 8, width: 8, height: 8 };
    for &isa in Isa::available() {
        let step = Step { x: 2 * UNIT, y: 0 };
        assert_eq!(misfit(isa, (&make(2)).into(), (&make(0)).into(), area, step), 0);
    }
}
