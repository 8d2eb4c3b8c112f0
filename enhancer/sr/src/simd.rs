//! The instruction sets, and with them the types of number, that the CPU's kernels are compiled for.

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use windlass_vp9::simd::cap::{self, Cap};

use crate::cpu::{Network, Run};
use crate::kernel;
use crate::model::Model;

/// An instruction set that the kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Simd {
    /// Plain code, which defines the result.
    Scalar,
    /// 128-bit vectors on aarch64.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// 256-bit vectors and fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 512-bit vectors of bfloat16, sums in single precision.
    #[cfg(target_arch = "x86_64")]
    Avx512Bf16,
    /// 512-bit vectors of half precision.
    #[cfg(target_arch = "x86_64")]
    Avx512Fp16,
}

impl Simd {
    /// Every form that the running CPU can execute and [`windlass_vp9::simd::cap`] allows, the fastest last.
    pub fn available() -> Vec<Simd> {
        static FORMS: OnceLock<Vec<Simd>> = OnceLock::new();
        FORMS.get_or_init(Simd::detect).clone()
    }

    fn detect() -> Vec<Simd> {
        let mut forms = vec![Simd::Scalar];
        #[cfg(target_arch = "aarch64")]
        forms.push(Simd::Neon);
        #[cfg(target_arch = "x86_64")]
        if cap::allows(Cap::Avx2)
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
        {
            forms.push(Simd::Avx2);
            if cap::allows(Cap::Avx512) && is_x86_feature_detected!("avx512f") {
                let narrow =
                    is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl");
                // Where it was measured, half the speed of single precision.
                if narrow && is_x86_feature_detected!("avx512bf16") {
                    forms.push(Simd::Avx512Bf16);
                }
                forms.push(Simd::Avx512);
                if narrow && is_x86_feature_detected!("avx512fp16") {
                    forms.push(Simd::Avx512Fp16);
                }
            }
        }
        forms
    }

    /// The fastest form in single precision, which other types of number and other backends are compared with.
    pub fn single() -> Simd {
        let mut forms = Simd::available().into_iter().rev();
        forms.find(|simd| simd.number() == "f32").unwrap_or(Simd::Scalar)
    }

    /// The instruction set's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Simd::Scalar => "cpu-scalar",
            #[cfg(target_arch = "aarch64")]
            Simd::Neon => "cpu-neon",
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => "cpu-avx2",
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => "cpu-avx512",
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512Bf16 => "cpu-avx512-bf16",
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512Fp16 => "cpu-avx512-f16",
        }
    }

    /// Name of the type of number that is used between the layers.
    pub fn number(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512Bf16 => "bf16",
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512Fp16 => "f16",
            _ => "f32",
        }
    }

    /// Multiplies and adds in registers alone for `rounds` rounds. Returns the number of multiplications; `None` if the
    /// CPU lacks the instruction set. The laboratory measures by it the minimum time of so many.
    pub fn multiply(self, rounds: usize) -> Option<u64> {
        if !Simd::available().contains(&self) {
            return None;
        }
        Some(match self {
            Simd::Scalar => (kernel::PLAIN.peak)(rounds),
            #[cfg(target_arch = "aarch64")]
            Simd::Neon => (kernel::NEON.peak)(rounds),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => (kernel::avx2::KERNELS.peak)(rounds),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => (kernel::avx512::KERNELS.peak)(rounds),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512Bf16 => (kernel::avx512_brain::KERNELS.peak)(rounds),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512Fp16 => (kernel::avx512_half::KERNELS.peak)(rounds),
        })
    }

    /// Creates working memory for a model, on an instruction set that the CPU was seen to have.
    pub(super) fn network(self, model: &Model) -> Box<dyn Run> {
        match self {
            Simd::Scalar => Box::new(Network::new(model, kernel::PLAIN)),
            #[cfg(target_arch = "aarch64")]
            Simd::Neon => Box::new(Network::new(model, kernel::NEON)),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => Box::new(Network::new(model, kernel::avx2::KERNELS)),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => Box::new(Network::new(model, kernel::avx512::KERNELS)),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512Bf16 => Box::new(Network::new(model, kernel::avx512_brain::KERNELS)),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512Fp16 => Box::new(Network::new(model, kernel::avx512_half::KERNELS)),
        }
    }
}
