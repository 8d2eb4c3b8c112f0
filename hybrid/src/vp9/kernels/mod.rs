//! The inner loops of the VP9 decoder: a scalar form that defines each result, and SIMD forms
//! that equal it bit for bit.
//!
//! Every kernel is a safe function that takes an [`Isa`], checks its slices once at its head and
//! then calls the form for that instruction set. SIMD forms are written once, over the `Vector`
//! trait of the `vector` folder, and instantiated for AVX2, NEON and WebAssembly `simd128`.
//!
//! `unsafe` lives in this folder alone. The invariants: an [`Isa`] other than `Scalar` exists only
//! where its instructions do ([`Isa::detect`], [`Isa::available`] are the only sources), and each
//! kernel's head has checked that the slices hold every byte that its pointers touch.

pub mod convolve;
pub mod intra;
pub mod inverse_transform;
pub mod loop_filter;
pub(crate) mod vector;

/// Samples from the first of `rows` rows to the end of the last one, which has `columns`; more than
/// any slice has where that overflows, so that no stride passes a check by wrapping.
#[inline(always)]
fn span(rows: usize, stride: usize, columns: usize) -> usize {
    (rows - 1).saturating_mul(stride).saturating_add(columns)
}

/// An instruction set that kernels have a form for, present on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128,
}

impl Isa {
    /// The forms that define the results.
    pub const SCALAR: Self = Self(Set::Scalar);

    /// The fastest set that this machine has.
    pub fn detect() -> Self {
        Self::available().last().copied().unwrap_or(Self::SCALAR)
    }

    /// Every set that this machine has, the scalar one first: what tests compare.
    pub fn available() -> &'static [Self] {
        #[cfg(target_arch = "x86_64")]
        if !cfg!(miri) && std::arch::is_x86_feature_detected!("avx2") {
            return &[Self::SCALAR, Self(Set::Avx2)];
        }
        #[cfg(target_arch = "aarch64")]
        if !cfg!(miri) {
            return &[Self::SCALAR, Self(Set::Neon)];
        }
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        {
            &[Self::SCALAR, Self(Set::Simd128)]
        }
        #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
        &[Self::SCALAR]
    }

    /// Which form to call.
    #[inline(always)]
    pub(crate) fn set(self) -> Set {
        self.0
    }
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
