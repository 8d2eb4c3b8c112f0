//! Instruction sets, and one register type for all of them: what every kernel is written over.
//!
//! A kernel has a scalar form that defines its result, and SIMD forms that equal it bit for bit. It
//! is a safe function that takes an [`Isa`], checks its slices once at its head and then calls the
//! form for that instruction set. SIMD forms are written once, over the `Vector` trait, and
//! instantiated for AVX2, NEON and WebAssembly `simd128`.
//!
//! `unsafe` lives here and in kernel modules alone, in this crate and in those that use
//! [`by_isa!`](crate::by_isa). The invariants: an [`Isa`] other than [`Isa::SCALAR`] exists only
//! where its instructions do ([`Isa::detect`], [`Isa::available`] are the only sources), and each
//! kernel's head has checked that the slices hold every byte that its pointers touch.

pub mod cap;
pub mod vector;

/// Calls the form of a kernel for an instruction set: an expression for the scalar one, else a
/// function of two [`Vector`](crate::simd::vector::Vector) types, the widest of the set and one of one lane.
///
/// The caller states why its pointers are sound where it invokes this.
#[macro_export]
macro_rules! by_isa {
    ($isa:expr, $scalar:expr, $simd:ident($($arg:ident: $type:ty),* $(,)?)) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        unsafe fn avx2($($arg: $type),*) {
            use $crate::simd::vector::x86::{X128, X256};
            unsafe { $simd::<X256, X128>($($arg),*) }
        }
        match $crate::simd::Isa::set($isa) {
            $crate::simd::Set::Scalar => $scalar,
            // SAFETY: the set says that the instructions are there; the rest is the invoker's.
            #[cfg(target_arch = "x86_64")]
            $crate::simd::Set::Avx2 => unsafe { avx2($($arg),*) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            $crate::simd::Set::Neon => unsafe {
                use $crate::simd::vector::neon::N128;
                $simd::<N128, N128>($($arg),*);
            },
            // SAFETY: as above.
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            $crate::simd::Set::Simd128 => unsafe {
                use $crate::simd::vector::wasm::W128;
                $simd::<W128, W128>($($arg),*);
            },
        }
    }};
}

/// An instruction set that kernels have a form for, present on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Set);

/// The instruction sets that this target may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// No SIMD: the scalar forms that define the results.
    Scalar,
    /// AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// NEON.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// WebAssembly's 128-bit vectors.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128,
}

impl Isa {
    /// No SIMD: the scalar forms that define the results.
    pub const SCALAR: Self = Self(Set::Scalar);

    /// The fastest set that this machine has.
    pub fn detect() -> Self {
        Self::available().last().copied().unwrap_or(Self::SCALAR)
    }

    /// Every set that this machine has and [`cap`] allows, the scalar one first: what tests compare.
    pub fn available() -> &'static [Self] {
        #[cfg(target_arch = "x86_64")]
        if !cfg!(miri) && cap::allows(cap::Cap::Avx2) && is_x86_feature_detected!("avx2") {
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

    /// The instruction set, by which a kernel chooses its form.
    #[inline(always)]
    pub fn set(self) -> Set {
        self.0
    }
}
