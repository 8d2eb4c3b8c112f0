//! The quality of a participant's connection to its server.

use serde::{Deserialize, Serialize};

/// The quality of a participant's connection, in words. Ordered from the best to the worst.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionQuality {
    /// The connection carries all packets and pictures that are asked of it.
    Good,
    /// Single packets are lost, or the largest pictures are missing.
    Fair,
    /// Speech or picture suffer from the connection.
    Poor,
    /// Nothing has come from the participant for seconds.
    Lost,
}

impl ConnectionQuality {
    /// All qualities of a connection, the best first.
    pub const ALL: [ConnectionQuality; 4] = [
        ConnectionQuality::Good,
        ConnectionQuality::Fair,
        ConnectionQuality::Poor,
        ConnectionQuality::Lost,
    ];

    /// The quality's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            ConnectionQuality::Good => "good",
            ConnectionQuality::Fair => "fair",
            ConnectionQuality::Poor => "poor",
            ConnectionQuality::Lost => "lost",
        }
    }

    /// The quality with that name in messages; `None` if no quality has it.
    pub fn from_name(name: &str) -> Option<ConnectionQuality> {
        ConnectionQuality::ALL.into_iter().find(|quality| quality.name() == name)
    }
}
