//! The networks that are built in: the integers of `models/frames/*.safetensors`.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use thiserror::Error;

use crate::Network;

/// A built-in network's size, by its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Four convolutions of 8 channels.
    Xxs,
    /// Five convolutions of 16 channels.
    Xs,
}

/// The error that no network has that name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no frame network {0:?}; there are xxs and xs")]
pub struct UnknownTier(String);

impl Tier {
    /// All tiers, the cheapest first.
    pub const ALL: [Tier; 2] = [Tier::Xxs, Tier::Xs];

    /// The networks of this tier: one for each scale that has one. They are read once.
    pub fn networks(self) -> &'static [Arc<Network>] {
        static XXS: LazyLock<Vec<Arc<Network>>> = LazyLock::new(|| read(Tier::Xxs));
        static XS: LazyLock<Vec<Arc<Network>>> = LazyLock::new(|| read(Tier::Xs));
        match self {
            Tier::Xxs => &XXS,
            Tier::Xs => &XS,
        }
    }

    /// The packed bytes of this tier's networks, by scale.
    fn bytes(self) -> &'static [&'static [u8]] {
        match self {
            Tier::Xxs => &[
                include_bytes!("../networks/xxs-x2.bin"),
                include_bytes!("../networks/xxs-x4.bin"),
            ],
            Tier::Xs => &[
                include_bytes!("../networks/xs-x2.bin"),
                include_bytes!("../networks/xs-x3.bin"),
                include_bytes!("../networks/xs-x4.bin"),
            ],
        }
    }
}

/// Reads a tier's networks. A test checks that all of them can be read.
fn read(tier: Tier) -> Vec<Arc<Network>> {
    let read = |bytes: &&[u8]| Network::from_bytes(bytes).ok().map(Arc::new);
    tier.bytes().iter().filter_map(read).collect()
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Tier::Xxs => "xxs",
            Tier::Xs => "xs",
        })
    }
}

impl FromStr for Tier {
    type Err = UnknownTier;

    fn from_str(text: &str) -> Result<Self, UnknownTier> {
        let found = Self::ALL.into_iter().find(|tier| tier.to_string() == text);
        found.ok_or_else(|| UnknownTier(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_is_read() {
        for tier in Tier::ALL {
            assert_eq!(tier.networks().len(), tier.bytes().len(), "{tier}");
            assert_eq!(tier.to_string().parse(), Ok(tier));
        }
        assert!("xl".parse::<Tier>().unwrap_err().to_string().contains("xxs and xs"));
    }
}
