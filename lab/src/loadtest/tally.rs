//! The counters of all clients together.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use windlass_netem::LinkStats;
use windlass_types::Rung;

use super::downlinks::Downlinks;
use crate::latencies::Latencies;

/// Counters of the datagrams of emulated links, in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LinkTotals {
    /// Datagrams that were put in.
    pub sent: u64,
    /// Datagrams that came through.
    pub arrived: u64,
    /// Datagrams that found the queue full.
    pub overflowed: u64,
    /// Datagrams that were lost beyond the queue.
    pub lost: u64,
    /// Datagrams that were on their way when their client left.
    pub underway: u64,
}

impl LinkTotals {
    /// The counters of one link, with the number of datagrams that are still on their way.
    pub(super) fn new(stats: LinkStats, underway: usize) -> LinkTotals {
        LinkTotals {
            sent: stats.sent,
            arrived: stats.arrived,
            overflowed: stats.overflowed,
            lost: stats.lost,
            underway: underway as u64,
        }
    }

    /// Adds the counters of other links.
    pub(super) fn add(&mut self, other: LinkTotals) {
        self.sent += other.sent;
        self.arrived += other.arrived;
        self.overflowed += other.overflowed;
        self.lost += other.lost;
        self.underway += other.underway;
    }
}

/// Totals of a run. Everything only grows, except for the counts of "now".
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Totals {
    /// Counters of the clients themselves.
    pub clients: ClientTotals,
    /// Counters of what publishers sent.
    pub sent: SentTotals,
    /// Counters of what clients' sockets and emulated links carried.
    pub datagrams: DatagramTotals,
    /// Counters of what came to subscribers.
    pub received: ReceivedTotals,
    /// Counters of what subscribers could show.
    pub display: DisplayTotals,
    /// Counters of subscriptions and their rungs.
    pub subscriptions: SubscriptionTotals,
    /// Counters of the anchors that came.
    pub anchors: AnchorTotals,
    /// Counters of repairs and reports, of clients on webrtc-rs alone.
    pub repairs: windlass_webrtc_client::Counters,
    /// Times from the sending of a packet by its publisher to its arrival at a subscriber.
    pub transit: Latencies,
}

/// Clients, and how they ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ClientTotals {
    /// Publishers whose media can flow now.
    pub publishers: usize,
    /// Subscribers whose media can flow now.
    pub subscribers: usize,
    /// Clients that have come and gone.
    pub visits: u64,
    /// Visits that ended without a goodbye.
    pub vanished: u64,
    /// Clients that ended by an error.
    pub failed: u64,
    /// Error of the first client that failed.
    pub failure: Option<String>,
}

/// Media of publishers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct SentTotals {
    /// Pictures that were sent, each counted once for all layers.
    pub pictures: u64,
    /// Frames that were sent, one for each layer and picture.
    pub frames: u64,
    /// RTP packets sent.
    pub packets: u64,
    /// Bytes of the sent packets' payloads.
    pub bytes: u64,
    /// Pictures that were left out because this process came too late for them.
    pub pictures_skipped: u64,
    /// Requests for key frames that publishers got.
    pub key_requests: u64,
}

/// Datagrams of all clients.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct DatagramTotals {
    /// Datagrams that clients' sockets took.
    pub out: u64,
    /// Datagrams that clients' sockets did not take.
    pub unsent: u64,
    /// Counters of the datagrams on emulated links, down and up.
    pub links: [LinkTotals; 2],
}

/// Media as it came to subscribers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ReceivedTotals {
    /// Packets that subscribers should have, by their numbers.
    pub expected: u64,
    /// Packets that came, padding left out.
    pub packets: u64,
    /// Packets that never came.
    pub lost: u64,
    /// Bytes of video that came.
    pub bytes: u64,
    /// Bytes of video and anchors that came, the video's with headers.
    pub media_bytes: u64,
    /// Frames that came whole.
    pub frames: u64,
    /// Complete frames that arrived while their track had an enhanced rung.
    pub frames_enhanced: u64,
    /// Frames that came whole, by the rung that their track had.
    pub frames_by_rung: BTreeMap<Rung, u64>,
    /// Requests for key frames that subscribers made.
    pub key_requests: u64,
}

/// Pictures as a viewer would see them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct DisplayTotals {
    /// Frames that could be shown: whole, as are all that they reference.
    pub shown: u64,
    /// Freezes, as Chromium counts them.
    pub freezes: u64,
    /// Length of all freezes, in milliseconds.
    pub frozen_ms: f64,
    /// The longest time from one shown frame of a subscription to the next, in milliseconds, once they came steadily.
    pub gap_max_ms: f64,
}

/// Subscriptions and their rungs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct SubscriptionTotals {
    /// Subscriptions now.
    pub all: usize,
    /// Subscriptions now whose rung is an enhanced one and that are not refused anchors.
    pub enhanced: usize,
    /// Subscriptions that are paused for want of bandwidth now.
    pub paused: usize,
    /// Subscriptions now, by rung.
    pub rungs: BTreeMap<Rung, usize>,
    /// Changes of rung that subscribers were told.
    pub rung_changes: u64,
    /// Subscribers' emulated links.
    pub downlinks: Downlinks,
}

/// Anchors that came to subscribers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct AnchorTotals {
    /// Anchors that came whole; the parts for one frame count as one.
    pub whole: u64,
    /// Complete captured anchors: of the publisher's own pixels.
    pub captured: u64,
    /// Length of all anchors, in bytes.
    pub bytes: u64,
    /// Anchors with missing or malformed messages.
    pub broken: u64,
    /// Anchors whose frame did not come, so that only their age at the server is known.
    pub alone: u64,
    /// Anchors that came later than the budget.
    pub late: u64,
    /// Times from a frame complete at the subscriber to its anchor complete there.
    pub lag: Latencies,
    /// Times from a frame's arrival at the server to the sending of its anchor, as the anchor says.
    pub age: Latencies,
}

/// Adds the named counters of `other` to those of `self`.
macro_rules! add {
    ($self:ident, $other:ident: $($name:ident)*) => { $($self.$name += $other.$name;)* };
}

/// Adds counts by rung.
fn add_by_rung<N: Copy + Default + AddAssign>(
    to: &mut BTreeMap<Rung, N>,
    other: &BTreeMap<Rung, N>,
) {
    for (&rung, &n) in other {
        *to.entry(rung).or_default() += n;
    }
}

impl Totals {
    /// Adds what the clients of another process counted.
    pub(super) fn add(&mut self, other: &Totals) {
        self.clients.add(&other.clients);
        self.sent.add(&other.sent);
        self.datagrams.add(&other.datagrams);
        self.received.add(&other.received);
        self.display.add(&other.display);
        self.subscriptions.add(&other.subscriptions);
        self.anchors.add(&other.anchors);
        self.repairs += other.repairs;
        self.transit.add(&other.transit);
    }
}

impl ClientTotals {
    fn add(&mut self, other: &ClientTotals) {
        add!(self, other: publishers subscribers visits vanished failed);
        if self.failure.is_none() {
            self.failure.clone_from(&other.failure);
        }
    }
}

impl SentTotals {
    fn add(&mut self, other: &SentTotals) {
        add!(self, other: pictures frames packets bytes pictures_skipped key_requests);
    }
}

impl DatagramTotals {
    fn add(&mut self, other: &DatagramTotals) {
        add!(self, other: out unsent);
        for (links, others) in self.links.iter_mut().zip(other.links) {
            links.add(others);
        }
    }
}

impl ReceivedTotals {
    fn add(&mut self, other: &ReceivedTotals) {
        add!(self, other: expected packets lost bytes media_bytes frames frames_enhanced key_requests);
        add_by_rung(&mut self.frames_by_rung, &other.frames_by_rung);
    }
}

impl DisplayTotals {
    fn add(&mut self, other: &DisplayTotals) {
        add!(self, other: shown freezes frozen_ms);
        self.gap_max_ms = self.gap_max_ms.max(other.gap_max_ms);
    }
}

impl SubscriptionTotals {
    fn add(&mut self, other: &SubscriptionTotals) {
        add!(self, other: all enhanced paused rung_changes);
        add_by_rung(&mut self.rungs, &other.rungs);
        self.downlinks.add(&other.downlinks);
    }
}

impl AnchorTotals {
    fn add(&mut self, other: &AnchorTotals) {
        add!(self, other: whole captured bytes broken alone late);
        self.lag.add(&other.lag);
        self.age.add(&other.age);
    }
}

/// The totals, shared by all clients.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally(Arc<Mutex<Totals>>);

impl Tally {
    /// Locks the totals to change them; the lock is held only for a moment.
    pub(super) fn lock(&self) -> MutexGuard<'_, Totals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a client that failed. The first failure is printed.
    pub(super) fn fail(&self, error: &anyhow::Error) {
        let mut totals = self.lock();
        totals.clients.failed += 1;
        if totals.clients.failure.is_none() {
            eprintln!("a client failed: {error:#}");
            totals.clients.failure = Some(format!("{error:#}"));
        }
    }
}
