//! What a connection's stack repairs and reports.

use std::ops::AddAssign;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// What a connection's stack has repaired and reported so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Packets that the stack asked for again.
    pub asked_again: u64,
    /// Packets that the server asked for again.
    pub wanted_again: u64,
    /// Retransmissions that were sent, each in a stream of their own.
    pub rtx_sent: u64,
    /// Retransmissions that came, each in a stream of their own.
    pub rtx_received: u64,
    /// Transport-wide reports on what came.
    pub reports_sent: u64,
    /// Transport-wide reports of the server on what was sent.
    pub reports_received: u64,
    /// Requests for key frames that came.
    pub key_requests: u64,
    /// Events that found the queue full.
    pub overflowed: u64,
}

impl Counters {
    /// What was counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Counters) -> Counters {
        Counters {
            asked_again: self.asked_again - before.asked_again,
            wanted_again: self.wanted_again - before.wanted_again,
            rtx_sent: self.rtx_sent - before.rtx_sent,
            rtx_received: self.rtx_received - before.rtx_received,
            reports_sent: self.reports_sent - before.reports_sent,
            reports_received: self.reports_received - before.reports_received,
            key_requests: self.key_requests - before.key_requests,
            overflowed: self.overflowed - before.overflowed,
        }
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.asked_again += other.asked_again;
        self.wanted_again += other.wanted_again;
        self.rtx_sent += other.rtx_sent;
        self.rtx_received += other.rtx_received;
        self.reports_sent += other.reports_sent;
        self.reports_received += other.reports_received;
        self.key_requests += other.key_requests;
        self.overflowed += other.overflowed;
    }
}

/// The counters while they count.
#[derive(Debug, Default)]
pub(crate) struct Counting(Mutex<Counters>);

impl Counting {
    /// The counters as they are now.
    pub(crate) fn now(&self) -> Counters {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to the counters.
    pub(crate) fn add(&self, counted: Counters) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += counted;
    }
}
