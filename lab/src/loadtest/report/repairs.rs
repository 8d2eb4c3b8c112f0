//! Retransmissions and transport-wide reports at the clients. Null on str0m, which keeps them to itself.

use serde::Serialize;
use windlass_webrtc_client::Counters;

use super::span::Span;

/// What all clients' stacks repaired and reported.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Repairs {
    /// Packets that clients asked the server for again (NACK).
    pub asked_again: Option<u64>,
    /// Packets that the server asked clients for again (NACK).
    pub wanted_again: Option<u64>,
    /// Retransmissions that clients sent, in streams of their own (RTX).
    pub rtx_sent: Option<u64>,
    /// Retransmissions that clients got, in streams of their own (RTX).
    pub rtx_received: Option<u64>,
    /// Transport-wide reports that clients sent (TWCC).
    pub reports_sent: Option<u64>,
    /// Transport-wide reports that clients got (TWCC).
    pub reports_received: Option<u64>,
    /// Events of the stack that were dropped because the client did not take them in time.
    pub events_dropped: Option<u64>,
}

impl Repairs {
    /// What was counted in the measured time, if the clients' stack shows it.
    pub(super) fn of(span: &Span<'_>, shown: bool) -> Repairs {
        let counted = shown.then(|| span.now.repairs.since(&span.before.repairs));
        let of = |count: fn(Counters) -> u64| counted.map(count);
        Repairs {
            asked_again: of(|r| r.asked_again),
            wanted_again: of(|r| r.wanted_again),
            rtx_sent: of(|r| r.rtx_sent),
            rtx_received: of(|r| r.rtx_received),
            reports_sent: of(|r| r.reports_sent),
            reports_received: of(|r| r.reports_received),
            events_dropped: of(|r| r.overflowed),
        }
    }
}
