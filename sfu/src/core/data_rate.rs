//! Rates of messages of participants to each other.

use std::time::{Duration, Instant};

use super::gcra::Gcra;

/// A rate limit of messages and their bytes together.
pub(super) struct Rate {
    /// Cost of a message, in time in which it is earned.
    message: Duration,
    /// Cost of a further KiB.
    kib: Duration,
    /// What may be used at once.
    burst: Duration,
}

/// What a participant has whatever others send: two messages or 4 KiB a second.
pub(super) const OWN: Rate = Rate {
    message: Duration::from_millis(500),
    kib: Duration::from_millis(250),
    burst: Duration::from_secs(5),
};
/// How many receivers a message has for the cost of one in [`OWN`], while [`ALL_RECEIVED`] is used up.
pub(super) const OWN_RECEIVERS: usize = 32;
/// What the participants of a room at this node have together: 200 messages or 256 KiB a second, and as much at once.
pub(super) const ROOM: Rate = Rate {
    message: Duration::from_millis(5),
    kib: Duration::from_millis(4),
    burst: Duration::from_secs(1),
};
/// What a participant has for its receivers, wherever they are: 4,000 messages or 8 MiB a second, as many times as they are received.
pub(super) const RECEIVED: Rate = Rate {
    message: Duration::from_micros(250),
    kib: Duration::from_micros(122),
    burst: Duration::from_secs(1),
};
/// What the participants of this core have together for their receivers: 40,000 messages or 32 MiB a second.
pub(super) const ALL_RECEIVED: Rate = Rate {
    message: Duration::from_micros(25),
    kib: Duration::from_micros(31),
    burst: Duration::from_secs(1),
};
/// What all rooms of this core have together for other nodes: 2,000 messages or 4 MiB a second. A message counts once for each node.
pub(super) const NODES: Rate = Rate {
    message: Duration::from_micros(500),
    kib: Duration::from_micros(250),
    burst: Duration::from_millis(250),
};
/// Of [`NODES`], what is within [`OWN`] may use more at once: 2,000 messages, half of a link's queue.
pub(super) const OWN_NODES: Rate = Rate { burst: Duration::from_secs(1), ..NODES };

impl Rate {
    /// The cost of a message with so many bytes.
    pub(super) fn cost(&self, bytes: usize) -> Duration {
        self.message + self.kib.mul_f64(bytes as f64 / 1024.0)
    }

    /// The cost of a message with so many bytes, as many times as `count` says.
    pub(super) fn cost_of_all(&self, bytes: usize, count: usize) -> Duration {
        self.cost(bytes).saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Whether another message may be sent.
    pub(super) fn admits(&self, used: Gcra, now: Instant) -> bool {
        used.conforms(now, self.burst)
    }
}

/// A participant that sends messages.
#[derive(Debug, Default)]
pub(super) struct DataSender {
    /// Number of its last message.
    pub(super) seq: u32,
    /// What the sender has used of [`OWN`], its share whatever others send.
    pub(super) used: Gcra,
    /// What the sender has used of [`RECEIVED`], its limit by receiver.
    pub(super) received: Gcra,
}
