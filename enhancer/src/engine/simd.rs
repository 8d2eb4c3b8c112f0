//! The instruction sets that the CPU's kernels are compiled for.

use super::kernel::{self, Kernels};

/// An instruction set that the kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Simd {
    /// Plain code; defines the result.
    Scalar,
    /// 128-bit vectors of aarch64.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// 256-bit vectors and fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Simd {
    /// Every form that the running CPU can execute, the fastest last.
    pub fn available() -> Vec<Simd> {
        let mut forms = vec![Simd::Scalar];
        #[cfg(target_arch = "aarch64")]
        forms.push(Simd::Neon);
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                forms.push(Simd::Avx2);
                if is_x86_feature_detected!("avx512f") {
                    forms.push(Simd::Avx512);
                }
            }
        }
        forms
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Simd::Scalar => "cpu-scalar",
            #[cfg(target_arch = "aarch64")]
            Simd::Neon => "cpu-neon",
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => "cpu-avx2",
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => "cpu-avx512",
        }
    }

    pub(super) fn kernels(self) -> Kernels {
        match self {
            Simd::Scalar => kernel::PLAIN,
            #[cfg(target_arch = "aarch64")]
            Simd::Neon => kernel::NEON,
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => kernel::avx2::KERNELS,
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => kernel::avx512::KERNELS,
        }
    }
}
