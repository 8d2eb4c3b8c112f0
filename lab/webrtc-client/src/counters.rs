//! What a connection's stack repairs and reports.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a connection's stack has repaired and reported so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

/// The counters while they count.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    /// Packets that the stack asked for again.
    pub asked_again: AtomicU64,
    /// Packets that the server asked for again.
    pub wanted_again: AtomicU64,
    /// Retransmissions that were sent.
    pub rtx_sent: AtomicU64,
    /// Retransmissions that came.
    pub rtx_received: AtomicU64,
    /// Transport-wide reports on what came.
    pub reports_sent: AtomicU64,
    /// Transport-wide reports of the server.
    pub reports_received: AtomicU64,
    /// Requests for key frames that came.
    pub key_requests: AtomicU64,
    /// Events that found the queue full.
    pub overflowed: AtomicU64,
}

impl Counting {
    /// The counters as they are now.
    pub(crate) fn now(&self) -> Counters {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            asked_again: of(&self.asked_again),
            wanted_again: of(&self.wanted_again),
            rtx_sent: of(&self.rtx_sent),
            rtx_received: of(&self.rtx_received),
            reports_sent: of(&self.reports_sent),
            reports_received: of(&self.reports_received),
            key_requests: of(&self.key_requests),
            overflowed: of(&self.overflowed),
        }
    }
}
