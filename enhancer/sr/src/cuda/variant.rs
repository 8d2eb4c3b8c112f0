//! Variants of the kernels for the convolutions between a network's first and last.

use std::fmt;
use std::str::FromStr;

/// How the convolutions between a network's first and last are run on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Fused in tiles, by `mma.sync`, as the first and the last convolution always are. Any device runs it.
    Mma,
    /// In strips, by matrix products of warpgroups in half precision. It needs compute capability 9.0.
    Wgmma,
}

impl Variant {
    /// All variants, the most reliable first.
    pub const ALL: [Variant; 2] = [Variant::Mma, Variant::Wgmma];

    /// Whether a device of this compute capability (10 × major + minor) has the instructions.
    pub fn runs_on(self, arch: i32) -> bool {
        self == Variant::Mma || arch == 90
    }

    /// The variant's name in reports and options.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Mma => "mma",
            Variant::Wgmma => "wgmma",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Variant::ALL.into_iter().find(|variant| variant.name() == name);
        found.ok_or_else(|| format!("`{name}` is no variant of the kernels: mma or wgmma"))
    }
}
