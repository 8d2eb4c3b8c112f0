//! What learning promises, and every SIMD form against the scalar one.

use super::*;
use crate::resample::box_half;

/// Gratings in all directions, and detail that depends on them: a high-pass of the plane.
fn example(width: usize, height: usize, phase: f64) -> (Plane, Detail) {
    let high = (0..4 * width * height).map(|i| {
        let (x, y) = ((i % (2 * width)) as f64, (i / (2 * width)) as f64);
        (128.0 + 60.0 * ((x * x + y * y) * 0.002 + phase).sin()) as u8
    });
    let high = Plane::from_samples(2 * width, 2 * height, high.collect()).expect("the count");
    let low = box_half(&high);
    let mut detail = Detail::zero(2 * width, 2 * height);
    for y in 1..height - 1 {
        for x in 1..width - 1 {
            let v = |x: usize, y: usize| i16::from(low.row(y)[x]);
            let pass = 4 * v(x, y) - v(x - 1, y) - v(x + 1, y) - v(x, y - 1) - v(x, y + 1);
            for k in 0..4 {
                detail.row_mut(2 * y + k / 2)[2 * x + k % 2] = 2 * pass;
            }
        }
    }
    (low, detail)
}

fn energy(detail: &Detail) -> i64 {
    detail.samples().iter().map(|&d| i64::from(d) * i64::from(d)).sum()
}

#[test]
fn nothing_is_predicted_before_anything_is_learned() {
    assert_eq!(Learned::default().predict(&Plane::filled(9, 7, 3)), None);
}

#[test]
fn what_follows_from_the_low_picture_is_predicted_in_pictures_not_seen_before() {
    let mut learned = Learned::default();
    let (low, detail) = example(160, 90, 0.0);
    learned.learn(&low, &detail);
    let (low, detail) = example(160, 90, 2.0);
    let mut rest = learned.predict(&low).expect("it has learned");
    for (r, d) in rest.samples_mut().iter_mut().zip(detail.samples()) {
        *r = d - *r;
    }
    assert!(energy(&rest) * 10 < energy(&detail), "{} {}", energy(&rest), energy(&detail));
}

#[test]
fn an_anchor_of_a_few_cells_fades_what_older_ones_taught_by_its_share_only() {
    let (low, detail) = example(160, 90, 0.0);
    let rest_after = |parts: usize| {
        let mut learned = Learned::default();
        learned.learn(&low, &detail);
        // One flat cell teaches nothing.
        let mut covered = vec![false; 20 * 12];
        covered[7] = true;
        let (flat, none) = (Plane::filled(160, 90, 50), Detail::zero(320, 180));
        for _ in 0..parts {
            let mut scratch = Scratch::default();
            learned.learn_from(
                Isa::SCALAR,
                (&flat).into(),
                &none,
                Cells::Only(&covered),
                &mut scratch,
            );
        }
        let mut rest = detail.clone();
        learned.take_out(
            Isa::SCALAR,
            (&low).into(),
            &mut rest,
            Cells::All,
            &mut Scratch::default(),
        );
        energy(&rest)
    };
    let (fresh, faded) = (rest_after(0), rest_after(60));
    assert!(10 * faded < 11 * fresh, "{fresh} {faded}");
}

#[test]
fn flat_and_tiny_planes_have_no_prediction_but_zero() {
    let mut learned = Learned::default();
    let (low, detail) = example(40, 30, 0.0);
    learned.learn(&low, &detail);
    for (width, height) in [(1, 1), (2, 5), (33, 1)] {
        let flat = learned.predict(&Plane::filled(width, height, 200)).expect("it has learned");
        assert_eq!(flat, Detail::zero(2 * width, 2 * height));
        learned.learn(&Plane::filled(width, height, 9), &flat);
    }
}

#[test]
fn the_wildest_anchors_keep_sums_and_filters_in_range() {
    let mut learned = Learned::default();
    let samples = (0..200 * 300).map(|i: u32| if i.is_multiple_of(2) { 0 } else { 255 });
    let low = Plane::from_samples(200, 300, samples.collect()).expect("the count");
    let wild = vec![i16::MAX; 4 * 200 * 300];
    let detail = Detail::from_samples(400, 600, wild).expect("the count");
    for _ in 0..3 {
        learned.learn(&low, &detail);
    }
    let found = learned.predict(&low).expect("it has learned");
    assert!(found.samples().iter().all(|d| d.abs() <= 1024));
}

/// A plane of noise, gratings and flat areas, and detail of it.
fn mixed(width: usize, height: usize, scale: usize, mut seed: u32) -> (Plane, Detail) {
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 16
    };
    let low = (0..width * height).map(|i| {
        let (x, y) = (i % width, i / width);
        match (x / 24 + y / 16) % 4 {
            0 => 90,
            1 => next() as u8,
            2 => (100 + (x + 2 * y) % 17 * 5) as u8,
            _ => (next() & 1) as u8 * 255,
        }
    });
    let low = Plane::from_samples(width, height, low.collect()).expect("the count");
    let detail = (0..scale * scale * width * height).map(|i| {
        let (x, y) = (i % (scale * width) / scale, i / (scale * width) / scale);
        i16::from(low.row(y)[x]) * 3 - i16::from(low.row(y)[x.saturating_sub(1)]) * 3
            + (next() % 64) as i16
    });
    let detail =
        Detail::from_samples(scale * width, scale * height, detail.collect()).expect("the count");
    (low, detail)
}

#[test]
fn every_form_learns_and_predicts_as_the_scalar_one() {
    for (width, height) in [(150, 61), (37, 20), (5, 9)] {
        for scale in 2..=4 {
            let (low, detail) = mixed(width, height, scale, 7);
            let run = |isa: Isa| {
                let (mut learned, mut scratch) = (Learned::new(scale), Scratch::default());
                learned.learn_from(isa, (&low).into(), &detail, Cells::All, &mut scratch);
                learned.learn_from(isa, (&low).into(), &detail, Cells::All, &mut scratch);
                let mut strip: Vec<i16> = detail.samples().iter().map(|d| d * 7).collect();
                learned.predict_add(
                    isa,
                    (&low).into(),
                    0..height,
                    &mut strip,
                    Cells::All,
                    &mut scratch,
                );
                let mut rest = detail.clone();
                learned.take_out(isa, (&low).into(), &mut rest, Cells::All, &mut scratch);
                (learned.export(), strip, rest)
            };
            let expected = run(Isa::SCALAR);
            for isa in Isa::available() {
                assert!(run(*isa) == expected, "{isa:?} {width}x{height} by {scale}");
            }
        }
    }
}

#[test]
fn filters_at_their_bounds_weigh_alike_in_every_form() {
    let mut seed = 5u32;
    for scale in 2..=4 {
        let table: Vec<u8> = (0..CLASSES * scale * scale * TAPS)
            .flat_map(|i| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let w = if i % 5 == 0 { i16::MIN } else { (seed >> 16) as i16 };
                w.to_le_bytes()
            })
            .collect();
        let learned = Learned::from_table(&table).expect("a legal length");
        let (low, _) = mixed(101, 30, scale, 9);
        let run = |isa: Isa| {
            let mut strip = vec![300; scale * scale * 101 * 30];
            let mut scratch = Scratch::default();
            learned.predict_add(isa, (&low).into(), 0..30, &mut strip, Cells::All, &mut scratch);
            strip
        };
        for isa in Isa::available() {
            assert!(run(*isa) == run(Isa::SCALAR), "{isa:?} by {scale}");
        }
    }
}

#[test]
fn strips_join_to_the_whole_and_other_cells_stay_as_they_are() {
    let (width, height, scale) = (93, 45, 3);
    let (low, detail) = mixed(width, height, scale, 3);
    let mut learned = Learned::new(scale);
    learned.learn(&low, &detail);
    let whole = learned.predict(&low).expect("it has learned");
    let columns = width.div_ceil(CELL);
    let mask: Vec<bool> =
        (0..columns * height.div_ceil(CELL)).map(|i| (i * 7 / 3) % 3 != 0 && i >= 12).collect();
    let cells = Cells::Only(&mask);
    for isa in Isa::available() {
        let mut scratch = Scratch::default();
        let mut first = 0;
        for rows in [3, 8, 1, 20, 13] {
            let wide = scale * width;
            let mut strip = vec![1; wide * scale * rows];
            let rows = first..first + rows;
            learned.predict_add(*isa, (&low).into(), rows.clone(), &mut strip, cells, &mut scratch);
            for (i, v) in strip.into_iter().enumerate() {
                let (x, y) = (i % wide, i / wide + scale * rows.start);
                let cell = x / scale / CELL + y / scale / CELL * columns;
                let added = if mask[cell] { whole.row(y)[x] } else { 0 };
                assert_eq!(v, 1 + added, "{isa:?} {x},{y}");
            }
            first = rows.end;
        }
        let mut rest = detail.clone();
        learned.take_out(*isa, (&low).into(), &mut rest, cells, &mut scratch);
        for y in 0..scale * height {
            for x in 0..scale * width {
                let cell = x / scale / CELL + y / scale / CELL * columns;
                let (before, after) = (detail.row(y)[x], rest.row(y)[x]);
                let left = before - whole.row(y)[x];
                assert_eq!(after, if mask[cell] { left } else { before });
            }
        }
    }
}

#[test]
fn other_cells_teach_nothing() {
    let (width, height) = (64, 48);
    let (low, mut detail) = mixed(width, height, 2, 1);
    let mask: Vec<bool> = (0..8 * 6).map(|i| i % 8 < 4).collect();
    let learn = |detail: &Detail| {
        let mut learned = Learned::new(2);
        let mut scratch = Scratch::default();
        learned.learn_from(Isa::detect(), (&low).into(), detail, Cells::Only(&mask), &mut scratch);
        learned.export()
    };
    let before = learn(&detail);
    for y in 0..2 * height {
        detail.row_mut(y)[width..].fill(777);
    }
    assert_eq!(learn(&detail), before);
}

#[test]
fn exported_filters_come_back_as_a_prior_that_few_examples_hardly_move() {
    for scale in 2..=4 {
        let (low, detail) = mixed(160, 90, scale, 2);
        let mut learned = Learned::new(scale);
        assert_eq!(learned.export(), None);
        learned.learn(&low, &detail);
        let table = learned.export().expect("it has learned");
        assert_eq!(table.len(), 80 * scale * scale * 24 * 2);
        let mut again = Learned::from_table(&table).expect("a legal length");
        assert_eq!((again.scale(), again.export().as_ref()), (scale, Some(&table)));
        assert_eq!(again.predict(&low), learned.predict(&low));
        // A plane without examples leaves the prior where it is.
        let flat = Plane::filled(16, 16, 7);
        again.learn(&flat, &Detail::zero(16 * scale, 16 * scale));
        let table_after = again.export().expect("filters");
        let far = |a: &[u8], b: &[u8]| {
            let pairs = a.chunks_exact(2).zip(b.chunks_exact(2));
            pairs
                .map(|(a, b)| {
                    let v = |c: &[u8]| i32::from(i16::from_le_bytes([c[0], c[1]]));
                    (v(a) - v(b)).abs()
                })
                .max()
        };
        assert!(far(&table, &table_after) <= Some(1));
        again.learn(&low, &Detail::zero(160 * scale, 90 * scale));
        again.forget();
        assert_eq!(again.export(), Some(table));
    }
    assert!(Learned::from_table(&[0; 100]).is_none());
}
