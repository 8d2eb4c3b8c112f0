//! The networks that are built in.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use thiserror::Error;

use crate::{Network, Weights};

/// A size of network, by its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Four convolutions of 8 channels.
    Xxs,
    /// Five convolutions of 16 channels.
    Xs,
}

/// No network has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no frame network {0:?}; there are xxs and xs")]
pub struct UnknownTier(String);

impl Tier {
    /// All tiers, the cheapest first.
    pub const ALL: [Tier; 2] = [Tier::Xxs, Tier::Xs];

    /// The networks of this tier: of each scale that there is one for. They are read once.
    pub fn networks(self) -> &'static [Arc<Network>] {
        /// Files of a tier, by scale.
        fn read(files: &[&[u8]]) -> Vec<Arc<Network>> {
            // A test reads each.
            let read = |file: &&[u8]| Weights::from_safetensors(file).ok();
            files.iter().filter_map(read).map(|weights| Arc::new(Network::new(&weights))).collect()
        }
        static XXS: LazyLock<Vec<Arc<Network>>> = LazyLock::new(|| read(&XXS_FILES));
        static XS: LazyLock<Vec<Arc<Network>>> = LazyLock::new(|| read(&XS_FILES));
        match self {
            Tier::Xxs => &XXS,
            Tier::Xs => &XS,
        }
    }
}

static XXS_FILES: [&[u8]; 1] = [include_bytes!("../../../models/frames-xxs-x2.safetensors")];
static XS_FILES: [&[u8]; 2] = [
    include_bytes!("../../../models/frames-xs-x2.safetensors"),
    include_bytes!("../../../models/frames-xs-x4.safetensors"),
];

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
    fn every_file_is_read() {
        for tier in Tier::ALL {
            let files = if tier == Tier::Xs { XS_FILES.len() } else { XXS_FILES.len() };
            assert_eq!(tier.networks().len(), files, "{tier}");
            assert_eq!(tier.to_string().parse(), Ok(tier));
        }
        assert!("xl".parse::<Tier>().unwrap_err().to_string().contains("xxs and xs"));
    }
}
