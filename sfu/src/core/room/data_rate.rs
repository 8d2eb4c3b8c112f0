//! Rates of messages of participants to each other.

use std::time::{Duration, Instant};

use crate::core::gcra::Gcra;

/// A rate limit of messages and their bytes together.
struct Rate {
    /// Cost of a message, as the time in which the right to send it is earned.
    message: Duration,
    /// Cost of a further KiB of content, as time.
    kib: Duration,
    /// Maximum cost that may be used at once, as time.
    burst: Duration,
}

/// Rate of one participant that holds whatever others send: two messages or 4 KiB a second.
const OWN: Rate = Rate {
    message: Duration::from_millis(500),
    kib: Duration::from_millis(250),
    burst: Duration::from_secs(5),
};
/// Number of receivers that a message has for the cost of one in [`OWN`], while [`ALL_RECEIVED`] is used up.
const OWN_RECEIVERS: usize = 32;
/// Rate of all participants of a room at this node together: 200 messages or 256 KiB a second, and as much at once.
const ROOM: Rate = Rate {
    message: Duration::from_millis(5),
    kib: Duration::from_millis(4),
    burst: Duration::from_secs(1),
};
/// Rate of one participant, counted at its receivers wherever they are: 4,000 messages or 8 MiB a second. A message
/// counts once for each receiver.
const RECEIVED: Rate = Rate {
    message: Duration::from_micros(250),
    kib: Duration::from_micros(122),
    burst: Duration::from_secs(1),
};
/// Rate of all participants of this core together, counted at their receivers: 40,000 messages or 32 MiB a second.
const ALL_RECEIVED: Rate = Rate {
    message: Duration::from_micros(25),
    kib: Duration::from_micros(31),
    burst: Duration::from_secs(1),
};
/// Rate of all rooms of this core together to other nodes: 2,000 messages or 4 MiB a second. A message counts once for
/// each node.
const NODES: Rate = Rate {
    message: Duration::from_micros(500),
    kib: Duration::from_micros(250),
    burst: Duration::from_millis(250),
};
/// [`NODES`] for messages within [`OWN`], which may use more at once: 2,000 messages, half of a link's queue.
const OWN_NODES: Rate = Rate { burst: Duration::from_secs(1), ..NODES };

impl Rate {
    /// The cost of one message of `bytes` bytes.
    fn cost(&self, bytes: usize) -> Duration {
        self.message + self.kib.mul_f64(bytes as f64 / 1024.0)
    }

    /// The cost of `count` messages of `bytes` bytes.
    fn cost_of_all(&self, bytes: usize, count: usize) -> Duration {
        self.cost(bytes).saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Whether another message may be sent.
    fn admits(&self, used: Gcra, now: Instant) -> bool {
        used.conforms(now, self.burst)
    }
}

/// A participant's state as a sender of messages.
#[derive(Debug, Default)]
pub(crate) struct DataSender {
    /// Number of the participant's last message.
    pub(crate) seq: u32,
    /// Usage of [`OWN`], the sender's share whatever others send.
    used: Gcra,
    /// Usage of [`RECEIVED`], the sender's limit by receiver.
    received: Gcra,
}

/// Size of a message, as limits count it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) bytes: usize,
    /// Maximum number of participants that get the message, on all nodes.
    pub(crate) receivers: usize,
    /// Number of other nodes that the message goes to.
    pub(crate) nodes: usize,
}

/// Usage of the rates that the participants of a core share.
#[derive(Debug, Default)]
pub(crate) struct DataLimits {
    /// Usage of [`ALL_RECEIVED`] by all participants.
    received: Gcra,
    /// Usage of [`NODES`] by all participants.
    to_nodes: Gcra,
}

impl DataLimits {
    /// Whether a message is within the limits; if so, it is counted. `room`: what its room has used of [`ROOM`].
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        sender: &mut DataSender,
        room: &mut Gcra,
        load: Load,
    ) -> bool {
        let Load { bytes, receivers, nodes } = load;
        if !RECEIVED.admits(sender.received, now) {
            return false;
        }
        let all = ALL_RECEIVED.admits(self.received, now);
        let to_nodes = |rate: &Rate| nodes == 0 || rate.admits(self.to_nodes, now);
        if OWN.admits(sender.used, now) && to_nodes(&OWN_NODES) {
            // Messages within the sender's own rate pass even if others have used up the core's rate. Then a message to
            // many receivers costs more of the own rate, so that large rooms do not get more of the core's time.
            let times = if all { 1 } else { receivers.div_ceil(OWN_RECEIVERS).max(1) };
            sender.used.add(now, OWN.cost_of_all(bytes, times));
        } else if all && ROOM.admits(*room, now) && to_nodes(&NODES) {
            room.add(now, ROOM.cost(bytes));
        } else {
            return false;
        }
        self.to_nodes.add(now, NODES.cost_of_all(bytes, nodes));
        sender.received.add(now, RECEIVED.cost_of_all(bytes, receivers));
        if all {
            self.received.add(now, ALL_RECEIVED.cost_of_all(bytes, receivers));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `count` messages a sender may send at once.
    fn sent(
        limits: &mut DataLimits,
        room: &mut Gcra,
        now: Instant,
        load: Load,
        count: usize,
    ) -> usize {
        let mut sender = DataSender::default();
        (0..count).filter(|_| limits.admit(now, &mut sender, room, load)).count()
    }

    #[test]
    fn a_sender_has_a_small_rate_of_its_own_when_its_room_has_none_left() {
        let (mut limits, mut room, now) = (DataLimits::default(), Gcra::default(), Instant::now());
        let load = Load { bytes: 0, receivers: 1, nodes: 0 };
        assert!(sent(&mut limits, &mut room, now, load, 1000) > 200);
        // The last one may exceed it.
        assert_eq!(sent(&mut limits, &mut room, now, load, 1000), 11);
    }

    #[test]
    fn what_goes_to_other_nodes_is_bounded_for_all_rooms_together() {
        let (mut limits, now) = (DataLimits::default(), Instant::now());
        let load = Load { bytes: 0, receivers: 1, nodes: 1 };
        let mut one = || sent(&mut limits, &mut Gcra::default(), now, load, 100);
        let all: usize = (0..300).map(|_| one()).sum();
        assert!((2000..=2001).contains(&all), "{all} from 300 rooms");
        let here = Load { nodes: 0, ..load };
        assert_eq!(sent(&mut limits, &mut Gcra::default(), now, here, 100), 100);
    }
}
