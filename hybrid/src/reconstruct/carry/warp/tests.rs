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
        (w, h) in (1usize..60, 1usize..40), scale in 2usize..=4, column in 0usize..8, row in 0usize..5,
        x in -1200i32..1200, y in -1200i32..1200, apart in 0..40i32,
        shares: [[u16; 3]; 3], fill: i16, extreme: bool,
    ) {
        let shares = shares.map(|row| row.map(|share| (share >> 1) as i16));
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
        let stride = area.width + 5;
        let steps = [0, apart, 2 * apart, -apart].map(|more| Step { x: x + more, y: y - more / 2 });
        let run = |isa| {
            let (mut out, mut scratch) = (vec![fill; stride * area.height], Scratch::default());
            let target = Target { samples: &mut out, stride };
            blend(isa, &from, area, Quarters { steps, side: 2 * scale }, &shares, target, &mut scratch);
            let quarters = Quarters { steps, side: 2 };
            let (now, then) = ((&a).into(), (&b).into());
            let misfits = [
                misfit(isa, now, then, low, steps[0], &mut scratch),
                misfit_of_quarters(isa, now, then, low, quarters, &mut scratch),
            ];
            (out, misfits)
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
        let quarters = Quarters { steps: [Step::default(); 4], side: 8 };
        let scratch = &mut Scratch::default();
        blend(
            isa,
            &from,
            area,
            quarters,
            &[[WHOLE; 3]; 3],
            Target { samples: &mut out, stride: 16 },
            scratch,
        );
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
        let quarters = Quarters { steps: [Step { x: 37, y: -51 }; 4], side: 4 };
        let mut out = vec![0; 64];
        let scratch = &mut Scratch::default();
        blend(
            Isa::SCALAR,
            &flat,
            area,
            quarters,
            &[[WHOLE; 3]; 3],
            Target { samples: &mut out, stride: 8 },
            scratch,
        );
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
    let area = Area { x: 8, y: 8, width: 4, height: 4 };
    for &isa in Isa::available() {
        let step = Step { x: 2 * UNIT, y: 0 };
        let scratch = &mut Scratch::default();
        assert_eq!(misfit(isa, (&make(2)).into(), (&make(0)).into(), area, step, scratch), 0);
    }
}

#[test]
fn the_misfit_of_quarters_is_that_of_what_each_takes() {
    // Dark here; there too, but for a light stripe that the vector of one quarter leads to.
    let now = Plane::filled(48, 32, 40);
    let stripe = |i: usize| if (20..24).contains(&(i % 48)) { 210 } else { 40 };
    let then = Plane::from_samples(48, 32, (0..48 * 32).map(stripe).collect()).expect("so many");
    let area = Area { x: 8, y: 8, width: 4, height: 4 };
    let to_stripe = Step { x: 13 * UNIT, y: 0 };
    for &isa in Isa::available() {
        let steps = [to_stripe, Step::default(), Step::default(), Step::default()];
        let (quarters, scratch) = (Quarters { steps, side: 2 }, &mut Scratch::default());
        let (now, then) = ((&now).into(), (&then).into());
        assert_eq!(
            misfit_of_quarters(isa, now, then, area, quarters, scratch),
            (170 * 16u32).pow(2) / 4
        );
    }
}

#[test]
fn shares_of_cells_side_by_side_meet_at_their_edge() {
    // What the samples of a row take, where cells with these shares stand side by side.
    let row = |part: usize, shares: [i16; 4]| -> Vec<i16> {
        let (side, white) = (2 * part, Plane::filled(64, 64, 255));
        let cell = |at: usize| {
            let around = [shares[at.saturating_sub(1)], shares[at], shares[(at + 1).min(3)]];
            let mut out = vec![0; side * side];
            let area = Area { x: 0, y: 0, width: side, height: side };
            let steps = Quarters { steps: [Step::default(); 4], side: part };
            let scratch = &mut Scratch::default();
            blend(
                Isa::SCALAR,
                &white,
                area,
                steps,
                &[around; 3],
                Target { samples: &mut out, stride: side },
                scratch,
            );
            out[..side].to_vec()
        };
        (0..4).flat_map(cell).collect()
    };
    for part in [4, 6, 8] {
        let row = row(part, [0, 0, WHOLE, WHOLE]);
        let most = 255 * 16 / (2 * part as i16) + 1;
        assert!(row.windows(2).all(|pair| (0..=most).contains(&(pair[1] - pair[0]))), "{row:?}");
        assert_eq!((row[0], row.last()), (0, Some(&(255 * 16))));
    }
}

#[test]
fn every_quarter_of_a_cell_comes_from_its_own_place() {
    let samples = (0..64 * 64).map(|i| (i % 64) as u8);
    let from = Plane::from_samples(64, 64, samples.collect()).expect("the count is right");
    let area = Area { x: 16, y: 16, width: 8, height: 8 };
    let steps = [0, 1, 2, 3].map(|x| Step { x: x * UNIT, y: 0 });
    let mut out = vec![0; 64];
    let scratch = &mut Scratch::default();
    blend(
        Isa::detect(),
        &from,
        area,
        Quarters { steps, side: 4 },
        &[[WHOLE; 3]; 3],
        Target { samples: &mut out, stride: 8 },
        scratch,
    );
    for (i, o) in out.iter().enumerate() {
        let (x, y) = (i % 8, i / 8);
        assert_eq!((o + 8) >> 4, (16 + x + x / 4 + 2 * (y / 4)) as i16, "{x} {y}");
    }
}
