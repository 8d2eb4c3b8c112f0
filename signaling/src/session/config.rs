//! Bounds, times and close codes of a socket.

use std::time::Duration;

/// A token bucket's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Maximum number of messages at once.
    pub burst: u32,
    /// Mean number of messages a second.
    pub per_second: u32,
}

/// Bounds and times of a socket.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Latency budget, for `welcome`.
    pub budget: Duration,
    /// HR size / LR size, for `welcome`.
    pub scale: u32,
    /// Maximum number of pixels of a layer that is enhanced, for `welcome`.
    pub lr_pixels: u32,
    /// Maximum number of media sections in an offer, for `welcome`.
    pub max_sections: u32,
    /// Time without a message, or without a room, after which a socket is closed.
    pub idle: Duration,
    /// Interval of the server's pings.
    pub ping: Duration,
    /// Time for which a participant that must move to another server is served here.
    pub moving: Duration,
    /// Limit of all messages.
    pub messages: RateLimit,
    /// Limit of offers: each costs time of the media thread.
    pub offers: RateLimit,
    /// Limit of new published tracks: all other participants renegotiate for each.
    pub tracks: RateLimit,
    /// Limit of `mute` messages: all other participants get each.
    pub mutes: RateLimit,
    /// Limit of data messages: all other participants get each.
    pub data: RateLimit,
    /// Limit of the bytes of data messages' content.
    pub data_bytes: RateLimit,
    /// Limit of changes of name and attributes: each is sent to all other participants.
    pub changes: RateLimit,
    /// Number of messages above the rate within a second from which on the socket is closed.
    pub max_excess: u32,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            budget: Duration::from_millis(200),
            scale: 2,
            lr_pixels: windlass_types::MAX_LR_PIXELS,
            max_sections: 64,
            idle: Duration::from_secs(30),
            ping: Duration::from_secs(10),
            moving: Duration::from_secs(6),
            messages: RateLimit { burst: 120, per_second: 40 },
            offers: RateLimit { burst: 30, per_second: 5 },
            tracks: RateLimit { burst: 16, per_second: 1 },
            mutes: RateLimit { burst: 20, per_second: 4 },
            data: RateLimit { burst: 40, per_second: 20 },
            data_bytes: RateLimit { burst: 128 * 1024, per_second: 64 * 1024 },
            changes: RateLimit { burst: 10, per_second: 1 },
            max_excess: 1000,
        }
    }
}

/// WebSocket close codes that clients see.
pub mod close {
    /// The client was silent, or in no room, for too long.
    pub const IDLE: u16 = 1001;
    /// The client sends far too much, or too many messages.
    pub const REFUSED: u16 = 1008;
    /// A message was too large to be read.
    pub const TOO_LARGE: u16 = 1009;
    /// The media connection was lost, or never came up; join again.
    pub const MEDIA_LOST: u16 = 1011;
    /// The server goes down; reconnect in a few seconds.
    pub const RESTART: u16 = 1012;
    /// Another client joined with this identity; do not reconnect.
    pub const REPLACED: u16 = 4001;
    /// An operator removed the participant; do not reconnect.
    pub const REMOVED: u16 = 4002;
    /// The room lives on another server; go there.
    pub const MOVED: u16 = 4003;
}
