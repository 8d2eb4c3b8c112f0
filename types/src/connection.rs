//! How well a participant's connection to its server works.

use serde::{Deserialize, Serialize};

/// The quality of a participant's connection, in words. Ordered from the best to the worst.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionQuality {
    /// It carries what is asked of it.
    Good,
    /// Something is missing: single packets, or the largest pictures.
    Fair,
    /// Speech or picture suffer.
    Poor,
    /// Nothing has come from the participant for seconds.
    Lost,
}

impl ConnectionQuality {
    /// All of them.
    pub const ALL: [ConnectionQuality; 4] = [
        ConnectionQuality::Good,
        ConnectionQuality::Fair,
        ConnectionQuality::Poor,
        ConnectionQuality::Lost,
    ];

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            ConnectionQuality::Good => "good",
            ConnectionQuality::Fair => "fair",
            ConnectionQuality::Poor => "poor",
            ConnectionQuality::Lost => "lost",
        }
    }

    /// The quality of that name; `None`: there is none.
    pub fn from_name(name: &str) -> Option<ConnectionQuality> {
        ConnectionQuality::ALL.into_iter().find(|quality| quality.name() == name)
    }
}
