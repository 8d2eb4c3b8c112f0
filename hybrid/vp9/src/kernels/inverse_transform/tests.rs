use vp9dec::transform::{TxType, inverse_transform_block};

use super::*;

/// A small generator: the tests need variety, not quality.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }
    fn within(&mut self, bound: i32) -> i16 {
        ((self.next() % (2 * bound as u32 + 1)) as i32 - bound) as i16
    }
}

fn kinds(size: TransformSize) -> &'static [TransformKind] {
    if size == TransformSize::Size32 { &TransformKind::ALL[..1] } else { &TransformKind::ALL }
}

/// Every corner up to 8, then a few of each class.
fn corners(side: usize) -> Vec<(usize, usize)> {
    let marks: Vec<usize> = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 25, 31, 32]
        .into_iter()
        .filter(|&n| n <= side)
        .collect();
    marks.iter().flat_map(|&c| marks.iter().map(move |&r| (c, r))).collect()
}

fn fill(coefs: &mut [i16], side: usize, cols: usize, rows: usize, mut value: impl FnMut() -> i16) {
    coefs.fill(0);
    for row in coefs.chunks_exact_mut(side).take(rows) {
        row[..cols].fill_with(&mut value);
    }
}

#[test]
fn residuals_equal_the_specifications() {
    let mut noise = Noise(1);
    for size in TransformSize::ALL {
        let side = size.side();
        for &kind in kinds(size) {
            for (cols, rows) in corners(side) {
                for bound in [1, 20, 200, 2000] {
                    // Fewer large ones, so that no sum leaves 16 bits.
                    let bound = bound.min(28_000 / (cols * rows) as i32 + 10);
                    let mut coefs = vec![0; side * side];
                    fill(&mut coefs, side, cols, rows, || noise.within(bound));
                    let mut want: Vec<i64> = coefs.iter().map(|&v| i64::from(v)).collect();
                    let tx = match kind {
                        TransformKind::DctDct => TxType::DctDct,
                        TransformKind::AdstDct => TxType::AdstDct,
                        TransformKind::DctAdst => TxType::DctAdst,
                        TransformKind::AdstAdst => TxType::AdstAdst,
                    };
                    inverse_transform_block(&mut want, size.log2(), tx, false);
                    let mut got = vec![0; side * side];
                    let shape = Shape { size, kind, lossless: false, cols, rows };
                    inverse_transform(Isa::SCALAR, &shape, &mut coefs, &mut got);
                    assert!(
                        got.iter().zip(&want).all(|(&g, &w)| i64::from(g) == w),
                        "{size:?} {kind:?} {cols}x{rows} within {bound}"
                    );
                    assert!(coefs.iter().all(|&v| v == 0));
                }
            }
        }
    }
}

#[test]
fn lossless_residuals_equal_the_specifications() {
    let mut noise = Noise(2);
    for _ in 0..200 {
        let mut coefs = [0i16; 16];
        coefs.fill_with(|| noise.within(4000));
        let mut want = coefs.map(i64::from);
        inverse_transform_block(&mut want, 2, TxType::DctDct, true);
        let mut got = [0; 16];
        let (size, kind) = (TransformSize::Size4, TransformKind::DctDct);
        let shape = Shape { size, kind, lossless: true, cols: 4, rows: 4 };
        inverse_transform(Isa::SCALAR, &shape, &mut coefs, &mut got);
        assert_eq!(got.map(i64::from), want);
    }
}

#[test]
fn every_form_equals_the_scalar_one() {
    let mut noise = Noise(3);
    for size in TransformSize::ALL {
        let side = size.side();
        for &kind in kinds(size) {
            for (cols, rows) in corners(side) {
                for round in 0..8 {
                    let mut coefs = vec![0; side * side];
                    fill(&mut coefs, side, cols, rows, || match round {
                        0 => i16::MIN,
                        1 => i16::MAX,
                        2 => [i16::MIN, i16::MAX][noise.next() as usize & 1],
                        3 => [i16::MIN, i16::MAX, 0, 1][noise.next() as usize & 3],
                        4 => noise.within(32767),
                        5 => noise.within(3000),
                        6 => noise.within(100),
                        _ => noise.within(3) / 3,
                    });
                    let lossless = size == TransformSize::Size4 && kind == TransformKind::DctDct;
                    for lossless in [false, true].into_iter().take(1 + usize::from(lossless)) {
                        let shape = Shape { size, kind, lossless, cols, rows };
                        compare(&shape, &coefs, &mut noise);
                    }
                }
            }
        }
    }
}

/// Every form of one block's transform against the scalar one.
fn compare(shape: &Shape, coefs: &[i16], noise: &mut Noise) {
    let side = shape.size.side();
    let stride = side + 5;
    let mut picture = vec![0u8; stride * (side - 1) + side];
    picture.fill_with(|| noise.next() as u8);
    let mut scalar = None;
    for &isa in Isa::available() {
        let mut residual = vec![0; side * side];
        let mut used = coefs.to_vec();
        inverse_transform(isa, shape, &mut used, &mut residual);
        assert!(used.iter().all(|&v| v == 0), "{isa:?} leaves coefficients");
        let mut fused = picture.clone();
        let mut used = coefs.to_vec();
        inverse_transform_add(isa, shape, &mut used, &mut fused, stride);
        assert!(used.iter().all(|&v| v == 0), "{isa:?} leaves coefficients");
        let mut added = picture.clone();
        add_residual(isa, &residual, side, &mut added, stride);
        let got = (residual, fused, added);
        let want = scalar.get_or_insert_with(|| got.clone());
        assert!(got == *want, "{isa:?} {shape:?}");
    }
}

#[test]
#[should_panic(expected = "the block leaves the picture")]
fn a_destination_that_is_too_short_is_refused() {
    let (size, kind) = (TransformSize::Size8, TransformKind::DctDct);
    let shape = Shape { size, kind, lossless: false, cols: 1, rows: 1 };
    inverse_transform_add(Isa::detect(), &shape, &mut [0; 64], &mut [0; 100], 16);
}
