//! The ways to serve clients: the product's, and the baselines of ARISE (§6.3).

use serde::Serialize;

use windlass_scheduler::promise::settings::setting;
use windlass_scheduler::promise::{Client, Setting};

/// How clients are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ServingPolicy {
    /// One interval and batch for all, and a number of clients with which each has its promise in the mean. It is the
    /// best of all such settings, found beforehand.
    Static,
    /// One interval for all clients; batches of the waiting pictures, as large as each client's promise allows
    /// (Clipper-like).
    Clipper,
    /// An interval for each client, and no batches (Chameleon-like).
    Chameleon,
    /// An interval and a batch size for each client, but nothing packed (ARISE-α).
    Reactive,
    /// The product's policy `quality-sla` (ARISE).
    QualitySla,
}

impl ServingPolicy {
    /// All ways, in the order of the report.
    pub(crate) const ALL: [ServingPolicy; 5] = [
        ServingPolicy::Static,
        ServingPolicy::Clipper,
        ServingPolicy::Chameleon,
        ServingPolicy::Reactive,
        ServingPolicy::QualitySla,
    ];

    /// The setting of a client's pictures; `fixed` is the static setting.
    pub(crate) fn setting(self, client: &Client, fixed: Setting) -> Setting {
        let alone = Client {
            cost: windlass_scheduler::promise::BatchCost { max: 1, ..client.cost },
            ..*client
        };
        match self {
            ServingPolicy::Static => fixed,
            // The largest batch with which the client's promise holds at that interval.
            ServingPolicy::Clipper => {
                let holds =
                    |batch: usize| client.lacks(Setting { batch, ..fixed }, 0.0) <= client.promise;
                let batch = (1..=client.cost.max).rev().find(|&batch| holds(batch)).unwrap_or(1);
                Setting { batch, ..fixed }
            }
            ServingPolicy::Chameleon => setting(&alone),
            ServingPolicy::Reactive | ServingPolicy::QualitySla => setting(client),
        }
    }
}
