//! A row of a convolution.
//!
//! Rows have their channels side by side by sample, and a sample of zeros before the first and behind the last.
//!
//! `unsafe` here follows the invariants of [`windlass_vp9::simd`]: [`convolve`] checks all slices.

#![allow(clippy::inline_always)] // so that code takes on the target features of its caller

mod scalar;
mod simd;

use std::ops::Range;

use windlass_vp9::by_isa;
use windlass_vp9::simd::Isa;

use crate::integers::Layer;

/// Makes the samples `span` of a row of a layer's output; outputs that are not used are not set.
/// `rows`: the rows of its input above, at and below it.
///
/// # Panics
///
/// Panics if a row is not long enough for the span.
pub(crate) fn convolve(
    isa: Isa,
    layer: &Layer,
    rows: [&[i16]; 3],
    span: Range<usize>,
    out: &mut [i16],
) {
    if span.is_empty() {
        return;
    }
    let Layer { inputs, outputs, .. } = *layer;
    assert!(inputs % 2 == 0 && outputs % 8 == 0, "{inputs} inputs, {outputs} outputs");
    assert!(layer.used <= outputs, "{} of {outputs} outputs", layer.used);
    assert_eq!(layer.weights.len(), 9 * inputs * outputs, "weights");
    assert_eq!(layer.bias.len(), outputs, "bias");
    // Sample x of a row is its sample x + 1, behind one of zeros; the window ends with the sample behind it.
    assert!(rows.iter().all(|row| row.len() >= (span.end + 2) * inputs), "rows of input");
    assert!(out.len() >= (span.end + 2) * outputs, "row of output");
    // Invariant: the slices hold every sample of the span, its neighbours and all weights, as just checked.
    by_isa!(
        isa,
        scalar::row(layer, rows, span, out),
        simd_row(layer: &Layer, rows: [&[i16]; 3], span: Range<usize>, out: &mut [i16])
    );
}

/// The SIMD form: see [`simd`].
#[inline(always)]
unsafe fn simd_row<W: windlass_vp9::simd::vector::Vector, N>(
    layer: &Layer,
    rows: [&[i16]; 3],
    span: Range<usize>,
    out: &mut [i16],
) {
    unsafe { simd::row::<W>(layer, rows, span, out) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A layer and rows of numbers that depend on the seed.
    fn example(
        inputs: usize,
        outputs: usize,
        width: usize,
        seed: u32,
        max: i16,
    ) -> (Layer, Vec<i16>) {
        let mut state = seed | 1;
        let mut next = move |max: i16| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (i64::from(state % (2 * max as u32 + 1)) - i64::from(max)) as i16
        };
        let weights = (0..9 * inputs * outputs).map(|_| next(max)).collect();
        let bias = (0..outputs).map(|_| i32::from(next(i16::MAX)) << 8).collect();
        let used = outputs - seed as usize % 8;
        let layer = Layer {
            inputs,
            outputs,
            used,
            weights,
            bias,
            shift: 1 + seed % 16,
            relu: seed.is_multiple_of(2),
        };
        let rows = (0..3 * (width + 2) * inputs).map(|_| next(i16::MAX)).collect();
        (layer, rows)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn forms_agree(
            inputs in 1usize..20, outputs in 1usize..9, width in 1usize..40, from in 0usize..40, seed in any::<u32>(),
            max in 1i16..i16::MAX,
        ) {
            let (inputs, outputs, from) = (2 * inputs, 8 * outputs, from.min(width));
            let (layer, rows) = example(inputs, outputs, width, seed, max);
            let rows: Vec<&[i16]> = rows.chunks((width + 2) * inputs).collect();
            let made = |isa| {
                let mut out = vec![77; (width + 2) * outputs];
                convolve(isa, &layer, [rows[0], rows[1], rows[2]], from..width, &mut out);
                for sample in out.chunks_exact_mut(outputs) {
                    sample[layer.used..].fill(77);
                }
                out
            };
            let expected = made(Isa::SCALAR);
            prop_assert!(expected[..(from + 1) * outputs].iter().all(|&v| v == 77));
            prop_assert!(expected[(width + 1) * outputs..].iter().all(|&v| v == 77));
            for &isa in Isa::available() {
                prop_assert_eq!(&made(isa), &expected, "{:?}", isa);
            }
        }
    }

    #[test]
    fn a_row_is_the_sum_over_its_window() {
        let (inputs, outputs) = (2, 8);
        let mut layer = Layer {
            inputs,
            outputs,
            used: outputs,
            weights: vec![0; 9 * inputs * outputs],
            bias: vec![8; outputs],
            shift: 4,
            relu: false,
        };
        // Output 3 takes input 1 of the sample to the right in the row below, times 32.
        let (row, tap) = (2, 2 * inputs + 1);
        layer.weights[((row * 3 * inputs / 2 + tap / 2) * outputs + 3) * 2 + tap % 2] = 32;
        let rows: Vec<Vec<i16>> = (0..3).map(|y| (0..10).map(|i| y * 100 + i).collect()).collect();
        let mut out = vec![0; 5 * outputs];
        convolve(Isa::SCALAR, &layer, [&rows[0], &rows[1], &rows[2]], 0..3, &mut out);
        let channel = |x: usize, c: usize| out[(x + 1) * outputs + c];
        assert_eq!([channel(0, 3), channel(1, 3), channel(2, 3)], [2 * 205, 2 * 207, 2 * 209]);
        assert_eq!(channel(1, 2), 0);
    }
}
