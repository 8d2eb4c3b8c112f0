//! The largest instruction set of x86-64 that kernels may use: all that the CPU has, or less by `WINDLASS_MAX_ISA`.
//!
//! The variable is for finding faults, and for tests that run as on another CPU. It is read once, so that a process
//! uses one set.

use std::sync::OnceLock;

/// Name of the environment variable that caps the instruction set.
pub const VARIABLE: &str = "WINDLASS_MAX_ISA";

/// The largest instruction set that kernels may use; later ones include earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cap {
    /// Plain code without SIMD.
    Scalar,
    /// SSE4.2, for which no kernel has a form: plain code is used.
    Sse42,
    /// AVX2.
    Avx2,
    /// AVX-512, with its types of half precision.
    Avx512,
}

impl Cap {
    /// The caps that the environment variable may have, by name.
    const NAMES: [(&str, Cap); 4] = [
        ("scalar", Cap::Scalar),
        ("sse4.2", Cap::Sse42),
        ("avx2", Cap::Avx2),
        ("avx512", Cap::Avx512),
    ];

    /// The cap with this name; without a name, all that the CPU has is allowed.
    fn parse(name: Option<&str>) -> Result<Self, String> {
        let Some(name) = name else { return Ok(Cap::Avx512) };
        let known = Self::NAMES.into_iter().find(|(known, _)| *known == name);
        known.map(|(_, cap)| cap).ok_or_else(|| {
            format!("{VARIABLE} is `{name}`; it may be scalar, sse4.2, avx2 or avx512")
        })
    }
}

/// The cap that the environment variable asks for.
///
/// # Errors
///
/// Fails if it asks for a set that does not exist: the text says what it may ask for.
pub fn cap() -> Result<Cap, String> {
    /// The cap of `WINDLASS_MAX_ISA`, read once.
    static CAP: OnceLock<Result<Cap, String>> = OnceLock::new();
    let read = || match std::env::var_os(VARIABLE) {
        name if cfg!(target_arch = "x86_64") => {
            Cap::parse(name.as_ref().map(|name| name.to_string_lossy()).as_deref())
        }
        _ => Ok(Cap::Avx512),
    };
    CAP.get_or_init(read).clone()
}

/// Whether kernels may use an instruction set.
///
/// # Panics
///
/// If the environment variable asks for a set that does not exist. A program checks [`cap`] first.
pub fn allows(set: Cap) -> bool {
    set <= cap().unwrap_or_else(|error| panic!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_cap_allows_more_and_none_allows_all() {
        let parsed = ["scalar", "sse4.2", "avx2", "avx512"].map(|name| Cap::parse(Some(name)));
        assert!(parsed.iter().all(Result::is_ok) && parsed.is_sorted(), "{parsed:?}");
        assert_eq!(Cap::parse(None), parsed[3]);
    }

    #[test]
    fn an_unknown_cap_is_an_error_that_says_what_is_allowed() {
        for name in ["", "AVX2", "avx", "sse"] {
            let error = Cap::parse(Some(name)).unwrap_err();
            assert!(error.contains("scalar, sse4.2, avx2 or avx512"), "{error}");
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn kernels_keep_to_the_cap_of_this_run() {
        use crate::simd::Isa;
        let wide = allows(Cap::Avx2) && is_x86_feature_detected!("avx2") && !cfg!(miri);
        assert_eq!(Isa::detect() != Isa::SCALAR, wide);
    }
}
