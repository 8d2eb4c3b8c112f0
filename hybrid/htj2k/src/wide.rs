//! Calls a function compiled for wider registers where the machine has them.
//!
//! The code is the same, and so are its results: AVX2 alone neither fuses nor reorders `f32` operations. It is the one
//! place of this crate that needs `unsafe`, to say that the instructions are there.

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
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the instructions are there.
                    return unsafe { avx2$(::<$g>)?($($arg),*) };
                }
            }
            $inner$(::<$g>)?($($arg),*)
        }
    };
}
pub(crate) use wide;
