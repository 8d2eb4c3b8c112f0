//! The inner loops of the VP9 decoder: a scalar form that defines each result, and SIMD forms
//! that equal it bit for bit.
//!
//! Every kernel is a safe function that takes an [`Isa`](crate::simd::Isa), checks its slices once
//! at its head and then calls the form for that instruction set. SIMD forms are written once, over
//! the `Vector` trait of [`crate::simd`], and instantiated for AVX2, NEON and WebAssembly `simd128`.
//!
//! `unsafe` of the decoder lives in this folder alone. Its invariants are those of [`crate::simd`].

pub mod convolve;
pub mod intra;
pub mod inverse_transform;
pub mod loop_filter;

/// Number of samples from the first of `rows` rows to the end of the last one, which has `columns`. Where that
/// overflows, the number is more than any slice has, so that no stride passes a check by wrapping.
#[inline(always)]
fn span(rows: usize, stride: usize, columns: usize) -> usize {
    (rows - 1).saturating_mul(stride).saturating_add(columns)
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn a_stride_that_would_wrap_spans_more_than_any_slice() {
        assert_eq!(span(4, 10, 4), 34);
        assert_eq!(span(64, usize::MAX / 4, 64), usize::MAX);
    }
}
