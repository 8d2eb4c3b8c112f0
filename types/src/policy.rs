//! How a room's anchors are chosen, by name. The scheduler implements the policies (`windlass_scheduler::policy`).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How the anchors of a room's streams are chosen (NeuroScaler §5.2, ARISE).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum AnchorPolicy {
    /// For calls: anchors are chosen every 66 ms, within the latency budget.
    #[default]
    LatencySensitive,
    /// For streams that nobody answers: the best frames of each 666 ms, at most 7.5 % of all. Anchors come later by
    /// as much.
    CostEffective,
    /// Each stream is promised a quality. No more streams are enhanced than the promise can be kept to.
    QualitySla,
}

/// Maximum pixels of a layer that is enhanced, in either orientation: 960×540, the half layer of a 1080p camera.
/// Servers tap no larger layer, and browsers rebuild none.
pub const MAX_LR_PIXELS: u32 = 960 * 540;

/// Why a stream is not enhanced though somebody wants it to be.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// Anchors of this stream would break the quality that other streams are promised.
    Promise,
    /// The CPU cannot decode the stream in time beside the others, which by fair shares come first.
    Cpu,
    /// The stream does not fit into the memory for enhancement beside the others, which by fair shares come first.
    Memory,
    /// The maximum number of streams is enhanced already, and by fair shares those come first.
    Full,
    /// The stream's pictures are larger than those that are enhanced.
    Size,
    /// No network of this server makes an anchor of a picture of this size in time.
    Slow,
    /// The stream's codec is one of which no anchors are made, or one that the viewer cannot decode at all.
    Codec,
    /// The stream is encrypted end to end, so that no server can read it, and its publisher sends no stills.
    Encrypted,
}

impl Refusal {
    /// All reasons for which a stream is not enhanced.
    pub const ALL: [Refusal; 8] = [
        Refusal::Promise,
        Refusal::Cpu,
        Refusal::Memory,
        Refusal::Full,
        Refusal::Size,
        Refusal::Slow,
        Refusal::Codec,
        Refusal::Encrypted,
    ];

    /// The reason's name in messages and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Refusal::Promise => "promise",
            Refusal::Cpu => "cpu",
            Refusal::Memory => "memory",
            Refusal::Full => "full",
            Refusal::Size => "size",
            Refusal::Slow => "slow",
            Refusal::Codec => "codec",
            Refusal::Encrypted => "encrypted",
        }
    }
}

/// The error that no policy has that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPolicy(String);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = AnchorPolicy::ALL.map(AnchorPolicy::name).join(", ");
        write!(f, "there is no policy {:?}; there are: {names}", self.0)
    }
}

impl std::error::Error for UnknownPolicy {}

impl AnchorPolicy {
    /// All policies, the default first.
    pub const ALL: [AnchorPolicy; 3] =
        [AnchorPolicy::LatencySensitive, AnchorPolicy::CostEffective, AnchorPolicy::QualitySla];

    /// The policy's name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            AnchorPolicy::LatencySensitive => "latency-sensitive",
            AnchorPolicy::CostEffective => "cost-effective",
            AnchorPolicy::QualitySla => "quality-sla",
        }
    }

    /// How long the policy holds frames, beyond the operator's interval. Its anchors come later than the latency
    /// budget by as much.
    pub fn holds(self) -> Duration {
        match self {
            AnchorPolicy::CostEffective => Duration::from_millis(666),
            _ => Duration::ZERO,
        }
    }
}

impl fmt::Display for AnchorPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AnchorPolicy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<AnchorPolicy, UnknownPolicy> {
        let found = Self::ALL.into_iter().find(|policy| policy.name() == name);
        found.ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name_and_others_are_named_in_the_error() {
        for policy in AnchorPolicy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        let error = "fair".parse::<AnchorPolicy>().expect_err("there is none");
        assert!(error.to_string().contains("cost-effective"), "{error}");
    }
}
