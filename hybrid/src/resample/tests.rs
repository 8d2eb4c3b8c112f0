//! The definition against floating point and against the sums that it is made of, every SIMD form
//! against the scalar one.

use super::*;

fn noise(width: usize, height: usize, mut seed: u32) -> Plane {
    let samples = (0..width * height)
        .map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        })
        .collect();
    Plane::from_samples(width, height, samples).expect("the count is right")
}

/// Lanczos-3 in floating point, as the contract words it.
fn exact(source: &Plane, x: usize, y: usize) -> f64 {
    let weights = |at: usize| {
        let centre = at as f64 / 2.0 - 0.25;
        let first = centre.floor() as isize - 2;
        let raw: Vec<f64> = (first..first + 6)
            .map(|k| {
                let d = std::f64::consts::PI * (k as f64 - centre);
                3.0 * d.sin() * (d / 3.0).sin() / (d * d)
            })
            .collect();
        let sum: f64 = raw.iter().sum();
        (first, raw.into_iter().map(move |w| w / sum).collect::<Vec<_>>())
    };
    let ((fx, wx), (fy, wy)) = (weights(x), weights(y));
    let clamp = |k: isize, n: usize| k.clamp(0, n as isize - 1) as usize;
    let mut sum = 0.0;
    for (j, b) in wy.iter().enumerate() {
        let row = source.row(clamp(fy + j as isize, source.height()));
        for (i, a) in wx.iter().enumerate() {
            sum += a * b * f64::from(row[clamp(fx + i as isize, source.width())]);
        }
    }
    sum
}

#[test]
fn lanczos_follows_the_contract_within_its_tap_precision() {
    let source = noise(9, 7, 1);
    let out = lanczos2x_q4(&source);
    for y in 0..14 {
        for x in 0..18 {
            let got = f64::from(out.row(y)[x]) / 16.0;
            assert!((got - exact(&source, x, y)).abs() < 1.6, "at {x},{y}");
        }
    }
}

#[test]
fn flat_areas_stay_flat_in_every_filter() {
    for value in [0, 1, 127, 128, 254, 255] {
        let flat = Plane::filled(5, 3, value);
        assert!(lanczos2x(&flat).samples().iter().all(|&v| v == value));
        assert!(bicubic2x(&flat, 9, 5).samples().iter().all(|&v| v == value));
        assert!(box_half(&flat).samples().iter().all(|&v| v == value));
    }
}

#[test]
fn extreme_pictures_neither_overflow_nor_wrap() {
    let checks = (0..16 * 16).map(|i| if (i % 16 + i / 16) % 2 == 0 { 255 } else { 0 });
    let plane = Plane::from_samples(16, 16, checks.collect()).expect("256 samples");
    let _ = upsample(&Picture { y: plane.clone(), u: plane.clone(), v: plane });
}

#[test]
fn odd_chroma_is_cropped_to_the_size_of_the_luma() {
    let low = Picture::grey(5, 3);
    let high = upsample(&low);
    assert_eq!((high.width(), high.height()), (10, 6));
    assert_eq!((high.u.width(), high.u.height()), (5, 3));
}

#[test]
fn empty_planes_are_harmless() {
    let empty = Plane::default();
    assert_eq!(lanczos2x(&empty).samples().len(), 0);
    assert_eq!(box_half(&empty).samples().len(), 0);
    assert_eq!(bicubic2x(&empty, 0, 0).samples().len(), 0);
}

/// The sums of the two passes as the module's text words them, without strips or clamping of rows.
fn by_definition(source: &Plane, scale: usize, lanczos: bool, x: usize, y: usize) -> (i32, i32) {
    let taps: Vec<i32> = match (scale, lanczos) {
        (2, true) => vec![1, -9, 35, 114, -17, 4],
        (3, true) => vec![2, -12, 49, 104, -19, 4],
        (4, true) => vec![2, -13, 56, 98, -19, 4, 0, -4, 15, 125, -11, 3],
        (2, false) => vec![-3, 29, 111, -9],
        (3, false) => vec![-5, 43, 100, -10],
        _ => vec![-6, 50, 93, -9, -1, 12, 123, -6],
    };
    let n = if lanczos { 6 } else { 4 };
    let weights = |at: usize| -> Vec<(isize, i32)> {
        let (i, k) = ((at / scale) as isize, at % scale);
        if 2 * k + 1 == scale {
            return vec![(i, 128)];
        }
        let mirrored = 2 * k + 1 > scale;
        let phase = if mirrored { scale - 1 - k } else { k };
        (0..n)
            .map(|j| {
                let at = j as isize - n as isize / 2;
                (if mirrored { i - at } else { i + at }, taps[phase * n + j])
            })
            .collect()
    };
    let clamp = |k: isize, n: usize| k.clamp(0, n as isize - 1) as usize;
    let mut sum = 0;
    for (j, b) in weights(y) {
        let row = source.row(clamp(j, source.height()));
        for (i, a) in weights(x) {
            sum += a * b * (i32::from(row[clamp(i, source.width())]) - 128);
        }
    }
    let q4 = ((sum + 512) >> 10) + 2048;
    (q4, ((q4 + 8) >> 4).clamp(0, 255))
}

#[test]
fn all_scales_and_forms_are_the_sums_of_the_definition() {
    for (width, height) in [(1, 1), (2, 9), (33, 5), (47, 12), (80, 3)] {
        let source = noise(width, height, 3 + width as u32);
        for isa in Isa::available() {
            for scale in 2..=4 {
                let (wide, high) = (scale * width, scale * height);
                let mut scratch = Scratch::default();
                let mut out = vec![0; wide * high];
                lanczos(*isa, (&source).into(), scale, 0..height, &mut out, &mut scratch);
                let mut small = vec![0; wide * high];
                bicubic(*isa, (&source).into(), scale, 0..height, wide, &mut small, &mut scratch);
                for i in 0..wide * high {
                    let (x, y) = (i % wide, i / wide);
                    let expected = by_definition(&source, scale, true, x, y).0;
                    assert_eq!(i32::from(out[i]), expected, "{isa:?} {scale} {x},{y}");
                    let expected = by_definition(&source, scale, false, x, y).1;
                    assert_eq!(i32::from(small[i]), expected, "{isa:?} {scale} {x},{y}");
                }
            }
        }
    }
}

#[test]
fn strips_of_any_rows_join_to_the_whole_and_crop_as_asked() {
    let (width, height) = (71, 40);
    // Checks of extremes, the worst for sums, and a stride that is no width.
    let stride = 96;
    let data: Vec<u8> =
        (0..stride * height).map(|i| if (i / 3 + i / stride) % 2 == 0 { 255 } else { 0 }).collect();
    let low = Samples { data: &data[..stride * (height - 1) + width], stride, width, height };
    for scale in 2..=4 {
        let whole = |isa: Isa| {
            let mut out = vec![0; scale * width * scale * height];
            lanczos(isa, low, scale, 0..height, &mut out, &mut Scratch::default());
            out
        };
        let expected = whole(Isa::SCALAR);
        for isa in Isa::available() {
            assert_eq!(whole(*isa), expected);
            let mut scratch = Scratch::default();
            let mut from = 0;
            for rows in [0, 1, 2, 5, 16, 9, 7] {
                let mut strip = vec![0; scale * width * scale * rows];
                lanczos(*isa, low, scale, from..from + rows, &mut strip, &mut scratch);
                assert_eq!(strip, expected[scale * width * scale * from..][..strip.len()]);
                from += rows;
            }
            // Bicubic, cropped by all widths, and in its last rows.
            let mut all = vec![0; scale * width * scale * height];
            bicubic(*isa, low, scale, 0..height, scale * width, &mut all, &mut scratch);
            for cut in 0..scale {
                let wide = scale * width - cut;
                let mut out = vec![0; wide * (scale * 3 - cut)];
                bicubic(*isa, low, scale, 37..40, wide, &mut out, &mut scratch);
                for (y, row) in out.chunks_exact(wide).enumerate() {
                    assert_eq!(row, &all[(scale * 37 + y) * scale * width..][..wide]);
                }
            }
        }
    }
}

#[test]
fn narrowing_equals_its_scalar_form_for_all_values() {
    let all: Vec<i16> = (i16::MIN..=i16::MAX).chain([7; 11]).collect();
    let run = |isa: Isa| {
        let mut small = vec![0; all.len()];
        narrow(isa, &all, &mut small);
        small
    };
    for isa in Isa::available() {
        assert_eq!(run(*isa), run(Isa::SCALAR));
    }
    assert_eq!(run(Isa::SCALAR)[32_768 + 24], 2);
}

#[test]
fn boxes_of_all_scales_are_rounded_means() {
    let source = noise(13, 9, 8);
    for scale in 2..=4 {
        let small = box_down(&source, scale);
        assert_eq!((small.width(), small.height()), (13 / scale, 9 / scale));
        for y in 0..small.height() {
            for x in 0..small.width() {
                let at = |i: usize| source.row(scale * y + i / scale)[scale * x + i % scale];
                let sum: f64 = (0..scale * scale).map(|i| f64::from(at(i))).sum();
                let mean = (sum / (scale * scale) as f64 + 0.5).floor() as u8;
                assert_eq!(small.row(y)[x], mean);
            }
        }
    }
}
