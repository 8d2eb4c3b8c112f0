//! Calls a function compiled for wider registers where the machine has them.
//!
//! The code is the same, and so are its results: AVX2 alone neither fuses nor reorders `f32` operations. It is the one
//! place of this crate that needs `unsafe`, to say that the instructions are there.

/// Whether the machine has AVX2, and `WINDLASS_MAX_ISA` allows it. `windlass_vp9::simd::cap` documents the variable;
/// this crate does not depend on that one. The variable is read once.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2() -> bool {
    static HAS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *HAS.get_or_init(|| {
        let cap = std::env::var_os("WINDLASS_MAX_ISA");
        let allowed = match cap.as_ref().map(|cap| cap.to_string_lossy()).as_deref() {
            None | Some("avx2" | "avx512") => true,
            Some("scalar" | "sse4.2") => false,
            Some(other) => {
                panic!("WINDLASS_MAX_ISA is `{other}`; it may be scalar, sse4.2, avx2 or avx512")
            }
        };
        allowed && std::arch::is_x86_feature_detected!("avx2")
    })
}

/// Defines `$name`, which does what the `#[inline(always)]` function `$inner` does.
macro_rules! wide {
    (
        $(#[$doc:meta])*
        $vis:vis fn $name:ident$(<$g:ident: $bound:ident>)?($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)? = $inner:ident
    ) => {
        $(#[$doc])*
        #[allow(unsafe_code)]
        $vis fn $name$(<$g: $bound>)?($($arg: $type),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn avx2$(<$g: $bound>)?($($arg: $type),*) $(-> $out)? {
                    $inner$(::<$g>)?($($arg),*)
                }
                if $crate::wide::has_avx2() {
                    // SAFETY: the instructions are there.
                    return unsafe { avx2$(::<$g>)?($($arg),*) };
                }
            }
            $inner$(::<$g>)?($($arg),*)
        }
    };
}
pub(crate) use wide;
