//! The whole search: the same everywhere, right where the truth is known, and nothing on bad input.

use proptest::prelude::*;
use windlass_vp9::Plane;

use super::*;

/// A texture with features of many sizes and without a period, moved by so many samples.
fn texture(width: usize, height: usize, (dx, dy): (f64, f64)) -> Plane {
    let at = |i: usize| {
        let (x, y) = ((i % width) as f64 + dx, (i / width) as f64 + dy);
        let octaves = [(64.0, 40.0), (23.0, 30.0), (9.0, 20.0), (5.0, 8.0)];
        let sum: f64 = octaves.iter().map(|&(size, most)| most * lattice(x / size, y / size)).sum();
        (78.0 + sum) as u8
    };
    Plane::from_samples(width, height, (0..width * height).map(at).collect()).expect("the count")
}

/// Random values at whole places, smooth between them; below one.
fn lattice(x: f64, y: f64) -> f64 {
    let value = |x: f64, y: f64| {
        let mixed = (x as i64 * 7919 + y as i64 * 104_729).wrapping_mul(0x5851_F42D_4C95_7F2D);
        f64::from((mixed >> 40) as u16) / 65_536.0
    };
    let (left, top) = (x.floor(), y.floor());
    let smooth = |f: f64| f * f * (3.0 - 2.0 * f);
    let (fx, fy) = (smooth(x - left), smooth(y - top));
    let across = |y: f64| value(left, y) * (1.0 - fx) + value(left + 1.0, y) * fx;
    across(top) * (1.0 - fy) + across(top + 1.0) * fy
}

fn searched(isa: Isa, settings: FlowSettings, reference: &Plane, now: &Plane) -> Flow {
    let mut search = FlowSearch::new(settings);
    search.set_reference(reference.into()).expect("a legal size");
    search.search(isa, now.into()).expect("of one size").clone()
}

fn pictures() -> impl Strategy<Value = (usize, usize, Vec<u8>, Vec<u8>, Vec<u8>)> {
    (16usize..100, 16usize..70).prop_flat_map(|(w, h)| {
        let noise = || prop::collection::vec(any::<u8>(), w * h);
        (Just(w), Just(h), noise(), noise(), noise())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_set_of_instructions_finds_the_same_in_noise(
        (w, h, a, b, _) in pictures(), stride in 2usize..=8, iterations in 0usize..12, steep: bool,
    ) {
        let plane = |v: &[u8]| {
            let v = v.iter().map(|&s| if steep { s / 128 * 255 } else { s }).collect();
            Plane::from_samples(w, h, v).expect("the count")
        };
        let settings = FlowSettings { stride, iterations };
        let (a, b) = (plane(&a), plane(&b));
        let defined = searched(Isa::SCALAR, settings, &a, &b);
        for &isa in Isa::available() {
            prop_assert_eq!(&searched(isa, settings, &a, &b), &defined);
        }
    }

    #[test]
    fn every_set_of_instructions_finds_the_same_in_motion(
        (w, h) in (16usize..200, 16usize..120), dx in -20.0f64..20.0, dy in -20.0f64..20.0, stride in 2usize..=8,
    ) {
        let settings = FlowSettings { stride, ..FlowSettings::default() };
        let (a, b) = (texture(w, h, (0.0, 0.0)), texture(w, h, (dx, dy)));
        let defined = searched(Isa::SCALAR, settings, &a, &b);
        for &isa in Isa::available() {
            prop_assert_eq!(&searched(isa, settings, &a, &b), &defined);
        }
    }

    #[test]
    fn what_is_remembered_changes_nothing(
        (w, h, a, b, c) in pictures(), stride in 2usize..=8,
        parts in prop::collection::vec((0usize..100, 0usize..70, 1usize..30), 1..4),
    ) {
        let plane = |v: Vec<u8>| Plane::from_samples(w, h, v).expect("the count");
        let settings = FlowSettings { stride, ..FlowSettings::default() };
        let (reference, mut now, noise) = (plane(a), plane(b), plane(c));
        let mut search = FlowSearch::new(settings);
        search.set_reference((&reference).into()).expect("a legal size");
        for (x, y, side) in parts {
            prop_assert_eq!(
                search.search(Isa::detect(), (&now).into()),
                Ok(&searched(Isa::detect(), settings, &reference, &now))
            );
            // Something changes in a part of the picture.
            for (y, x) in (y..(y + side).min(h)).flat_map(|y| (x..(x + side).min(w)).map(move |x| (y, x))) {
                now.samples_mut()[y * w + x] = noise.row(y)[x];
            }
        }
        let found = search.search(Isa::detect(), (&now).into()).cloned();
        prop_assert_eq!(found, Ok(searched(Isa::detect(), settings, &reference, &now)));
    }
}

#[test]
fn motion_is_found_to_a_fraction_of_a_sample() {
    for (dx, dy) in [(0.0, 0.0), (0.5, -0.25), (3.3, 1.8), (-11.6, 7.1), (8.2, -9.4), (17.2, -12.4)]
    {
        let (a, b) = (texture(320, 180, (0.0, 0.0)), texture(320, 180, (dx, dy)));
        let flow = searched(Isa::detect(), FlowSettings::default(), &a, &b);
        let middle = (20..flow.rows() - 20).flat_map(|row| &flow.row(row)[20..140]);
        let wrong = |v: &FlowVector| (f64::from(v.x) / 64.0 - dx).hypot(f64::from(v.y) / 64.0 - dy);
        let mut off: Vec<f64> = middle.map(wrong).collect();
        off.sort_by(f64::total_cmp);
        let (half, most) = (off[off.len() / 2], off[off.len() * 95 / 100]);
        assert!(half < 0.08 && most < 0.25, "{dx}, {dy}: off by {half}, of some by {most}");
    }
}

#[test]
fn nothing_moves_in_a_picture_that_is_the_reference_or_flat() {
    let still = |a: &Plane, b: &Plane| {
        let flow = searched(Isa::detect(), FlowSettings::default(), a, b);
        flow.vectors().iter().all(|&v| v == FlowVector::default())
    };
    let picture = texture(97, 53, (0.0, 0.0));
    assert!(still(&picture, &picture));
    assert!(still(&Plane::filled(97, 53, 200), &Plane::filled(97, 53, 9)));
}

#[test]
fn pictures_without_a_flow_are_refused_and_the_search_goes_on() {
    let (small, picture) = (Plane::filled(15, 40, 0), texture(40, 40, (0.0, 0.0)));
    let mut search = FlowSearch::default();
    assert_eq!(search.search(Isa::detect(), (&picture).into()), Err(FlowError::Reference));
    assert_eq!(search.set_reference((&small).into()), Err(FlowError::Size(15, 40)));
    assert_eq!(search.search(Isa::detect(), (&picture).into()), Err(FlowError::Reference));
    assert_eq!(search.set_reference((&picture).into()), Ok(()));
    assert!(search.search(Isa::detect(), (&picture).into()).is_ok());
    let short = Samples { data: &picture.samples()[1..], ..(&picture).into() };
    assert_eq!(search.search(Isa::detect(), short), Err(FlowError::Size(40, 40)));
    assert_eq!(search.search(Isa::detect(), (&small).into()), Err(FlowError::Reference));
    let other = texture(40, 40, (1.0, 0.0));
    let expected = searched(Isa::detect(), FlowSettings::default(), &picture, &other);
    assert_eq!(search.search(Isa::detect(), (&other).into()), Ok(&expected));
}
