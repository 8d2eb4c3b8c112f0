//! Measures the speed of products of 8-bit numbers, four channels at a time. No network runs in them: the
//! figure shows what they would gain.

use std::arch::x86_64::{_mm512_dpbusd_epi32, _mm512_reduce_add_epi32, _mm512_set1_epi32};
use std::hint::black_box;

/// Number of sums in registers at once.
const BLOCK: usize = 16;
/// Number of products of one instruction.
const PRODUCTS: usize = 64;

/// Multiplies and adds in registers alone for `rounds` rounds. Returns the number of multiplications; `None` if the CPU
/// lacks the instructions.
pub(super) fn multiply(rounds: usize) -> Option<u64> {
    let allowed = windlass_vp9::simd::cap::allows(windlass_vp9::simd::cap::Cap::Avx512);
    let has =
        allowed && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni");
    // SAFETY: the features were detected.
    has.then(|| unsafe { detected(rounds) })
}

#[target_feature(enable = "avx512f,avx512vnni")]
fn detected(rounds: usize) -> u64 {
    let word = _mm512_set1_epi32(black_box(0x0102_0304));
    // Sums that are known to be equal would be made once.
    let mut sums = [word; BLOCK];
    for sum in &mut sums {
        *sum = _mm512_set1_epi32(black_box(0));
    }
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm512_dpbusd_epi32(*sum, word, word);
        }
    }
    for sum in sums {
        black_box(_mm512_reduce_add_epi32(sum));
    }
    (rounds * BLOCK * PRODUCTS) as u64
}
