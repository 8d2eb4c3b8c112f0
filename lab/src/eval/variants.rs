//! Settings of the reconstruction by name: the methods `hybrid@NAME`.
//!
//! One table. A variant is what `hybrid` would be with other settings; everything else (anchors,
//! delay, low layer) is the same.

use windlass_hybrid::HybridConfig;
use windlass_network::Tier;

/// A reconstruction to compare with the product's.
#[derive(Debug)]
pub(crate) struct Variant {
    /// The variant's name, which follows `hybrid@`.
    pub name: &'static str,
    /// The difference from the product, in a few words.
    pub about: &'static str,
    /// Makes the variant's settings of the product's.
    pub config: fn(HybridConfig) -> HybridConfig,
}

/// All variants.
pub(super) static VARIANTS: &[Variant] = &[
    Variant {
        name: "no-prior",
        about: "no built-in filters: Lanczos until an anchor has taught some",
        config: |default| HybridConfig { prior: false, ..default },
    },
    Variant {
        name: "no-learning",
        about: "the built-in filters stay as they are",
        config: |default| HybridConfig { learning: false, ..default },
    },
    Variant {
        name: "carried-only",
        about: "no filters at all: what anchors say, carried by flow",
        config: |default| HybridConfig { prior: false, learning: false, ..default },
    },
    Variant {
        name: "xs",
        about: "a network on every frame too",
        config: |default| HybridConfig { network: Some(Tier::Xs), ..default },
    },
];

/// The variant with this name.
pub(super) fn by_name(name: &str) -> Option<&'static Variant> {
    VARIANTS.iter().find(|variant| variant.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_has_a_name_of_its_own_and_differs_from_the_default() {
        let default = HybridConfig::default();
        for (i, variant) in VARIANTS.iter().enumerate() {
            assert!(VARIANTS[..i].iter().all(|other| other.name != variant.name));
            assert_ne!((variant.config)(default), default, "{}", variant.name);
        }
    }
}
