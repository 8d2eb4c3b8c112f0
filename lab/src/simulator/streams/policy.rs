//! The product's policies, and the baselines that papers compare with (NeuroScaler §2).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use windlass_scheduler::{Policy, SchedulerConfig, Selection, policy};
use windlass_types::{AnchorPolicy, UnknownPolicy};

/// How the anchors of a group of streams are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PlayedPolicy {
    /// A policy of the product.
    Product(AnchorPolicy),
    /// Every frame becomes an anchor, as far as compute goes.
    PerFrame,
    /// Key frames and evenly spaced frames become anchors.
    KeyUniform,
    /// Every frame is super-resolved, and those are sent that differ most from what viewers have (NEMO;
    /// [`super::best`]).
    Nemo,
}

/// The baselines, by name.
const BASELINES: [(PlayedPolicy, &str); 3] = [
    (PlayedPolicy::PerFrame, "per-frame"),
    (PlayedPolicy::KeyUniform, "key-uniform"),
    (PlayedPolicy::Nemo, "nemo"),
];

impl PlayedPolicy {
    /// The scheduler's policy that plays it.
    pub fn of(self) -> &'static dyn Policy {
        match self {
            PlayedPolicy::Product(named) => policy::of(named),
            PlayedPolicy::PerFrame | PlayedPolicy::Nemo => &PerFrame,
            PlayedPolicy::KeyUniform => &KeyUniform,
        }
    }
}

impl Default for PlayedPolicy {
    fn default() -> Self {
        PlayedPolicy::Product(AnchorPolicy::default())
    }
}

impl fmt::Display for PlayedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlayedPolicy::Product(named) => named.fmt(f),
            own => f.write_str(BASELINES.iter().find(|(p, _)| p == own).map_or("", |(_, n)| n)),
        }
    }
}

impl FromStr for PlayedPolicy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<PlayedPolicy, UnknownPolicy> {
        match BASELINES.into_iter().find(|&(_, own)| own == name) {
            Some((baseline, _)) => Ok(baseline),
            None => name.parse().map(PlayedPolicy::Product),
        }
    }
}

impl TryFrom<String> for PlayedPolicy {
    type Error = UnknownPolicy;

    fn try_from(name: String) -> Result<PlayedPolicy, UnknownPolicy> {
        name.parse()
    }
}

impl From<PlayedPolicy> for String {
    fn from(policy: PlayedPolicy) -> String {
        policy.to_string()
    }
}

#[derive(Debug)]
struct PerFrame;

impl Policy for PerFrame {
    fn name(&self) -> &'static str {
        "per-frame"
    }

    fn fraction(&self, _: &SchedulerConfig) -> f64 {
        1.0
    }

    fn min_residual(&self, _: &SchedulerConfig) -> f64 {
        0.0
    }

    fn selection(&self) -> Selection {
        Selection::InOrder
    }
}

#[derive(Debug)]
struct KeyUniform;

impl Policy for KeyUniform {
    fn name(&self) -> &'static str {
        "key-uniform"
    }

    fn min_residual(&self, _: &SchedulerConfig) -> f64 {
        0.0
    }

    fn selection(&self) -> Selection {
        Selection::InOrder
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_scheduler::{Candidate, NetworkCost, Scheduler, Tier};
    use windlass_types::{Size, StreamId};

    use super::*;

    #[test]
    fn every_policy_is_read_as_it_is_written() {
        let all = AnchorPolicy::ALL.map(PlayedPolicy::Product);
        for policy in all.into_iter().chain(BASELINES.map(|(policy, _)| policy)) {
            assert_eq!(policy.to_string().parse::<PlayedPolicy>(), Ok(policy));
        }
        assert!("fair".parse::<PlayedPolicy>().is_err());
    }

    /// The frames of two a tick that one stream's policy makes anchors of; work takes what was expected.
    fn chosen(policy: PlayedPolicy, ticks: u64, bytes: impl Fn(u64) -> u32) -> Vec<u64> {
        let config = SchedulerConfig {
            networks: vec![NetworkCost { scale: 2, per_pixel: Duration::from_micros(1) }],
            anchor_fraction: 0.2,
            ..SchedulerConfig::default()
        };
        let interval = config.interval;
        let mut scheduler = Scheduler::new(config);
        scheduler.set_policy_by(StreamId(0), policy.of(), Duration::ZERO);
        let mut all = Vec::new();
        for n in 0..ticks {
            for id in [2 * n, 2 * n + 1] {
                scheduler.push(Candidate {
                    id,
                    stream: StreamId(0),
                    tier: Tier::Normal,
                    bytes: bytes(id),
                    size: Size::new(100, 100),
                    arrival: interval * n as u32 + Duration::from_millis(id % 2 * 33),
                    per_mille: 1000,
                    scale: 2,
                    max_scale: 2,
                });
            }
            let mut out = Vec::new();
            scheduler.tick(interval * (n + 1) as u32, &mut out);
            for one in out {
                scheduler.finished(&one, Some(one.cost));
                all.push(one.id);
            }
        }
        all
    }

    #[test]
    fn per_frame_takes_all_that_compute_allows() {
        let all = chosen(PlayedPolicy::PerFrame, 10, |_| 1);
        assert_eq!(all, (0..20).collect::<Vec<u64>>());
    }

    #[test]
    fn key_uniform_spaces_anchors_evenly_whatever_frames_carry() {
        let all = chosen(PlayedPolicy::KeyUniform, 50, |id| (id as u32 * 7919) % 5_000);
        let gaps: Vec<u64> = all.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps[2..].iter().all(|gap| (4..=6).contains(gap)), "{all:?}");
    }

    #[test]
    fn baselines_ask_for_no_worth() {
        assert!(BASELINES.iter().all(|(policy, _)| !policy.of().stops_when_worthless()));
        assert!(PlayedPolicy::default().of().stops_when_worthless());
    }
}
