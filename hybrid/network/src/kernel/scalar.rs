//! The scalar form of a row of a convolution, which defines the result.

use std::ops::Range;

use crate::integers::Layer;

/// One row of a convolution's output, in plain code, which defines the results: [`convolve`](super::convolve).
pub(super) fn row(layer: &Layer, rows: [&[i16]; 3], span: Range<usize>, out: &mut [i16]) {
    let Layer { inputs, outputs, .. } = *layer;
    for x in span {
        for o in 0..layer.used {
            let mut sum = layer.bias[o];
            for (y, row) in rows.iter().enumerate() {
                let window = row[x * inputs..][..3 * inputs].chunks_exact(2);
                for (k, pair) in window.enumerate() {
                    let weights =
                        &layer.weights[((y * 3 * inputs / 2 + k) * outputs + o) * 2..][..2];
                    let product = |i: usize| i32::from(pair[i]).wrapping_mul(weights[i].into());
                    sum = sum.wrapping_add(product(0).wrapping_add(product(1)));
                }
            }
            let sum = sum >> layer.shift;
            let sum = sum.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
            out[(x + 1) * outputs + o] = if layer.relu { sum.max(0) } else { sum };
        }
    }
}
