//! What all clients count together.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use windlass_types::Rung;

use super::downlinks::Downlinks;
use super::latencies::Latencies;

/// What became of the datagrams of emulated links, one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LinkTotals {
    /// Put in.
    pub sent: u64,
    /// Came through.
    pub arrived: u64,
    /// Found the queue full.
    pub overflowed: u64,
    /// Lost.
    pub lost: u64,
    /// On their way when their client went.
    pub underway: u64,
}

impl LinkTotals {
    /// Adds what others carried.
    pub(super) fn add(&mut self, other: LinkTotals) {
        self.sent += other.sent;
        self.arrived += other.arrived;
        self.overflowed += other.overflowed;
        self.lost += other.lost;
        self.underway += other.underway;
    }
}

/// Totals of a run. Everything only grows but those that say "now".
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Totals {
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
    /// Pictures sent, whatever their layers.
    pub pictures_sent: u64,
    /// Frames sent, one a layer and picture.
    pub frames_sent: u64,
    /// RTP packets sent.
    pub packets_sent: u64,
    /// Bytes of the sent packets' payloads.
    pub bytes_sent: u64,
    /// Pictures that were left out because this process came too late for them.
    pub pictures_skipped: u64,
    /// Datagrams that clients' sockets took.
    pub datagrams_out: u64,
    /// Datagrams that clients' sockets did not take.
    pub unsent: u64,
    /// What became of datagrams on emulated links, down and up.
    pub links: [LinkTotals; 2],
    /// Requests for key frames that publishers got.
    pub key_requests: u64,
    /// Requests for key frames that subscribers made.
    pub key_requests_made: u64,
    /// Packets that subscribers should have, by their numbers.
    pub expected: u64,
    /// Packets that came, padding left out.
    pub packets: u64,
    /// Packets that never came.
    pub lost: u64,
    /// Bytes of video that came.
    pub bytes: u64,
    /// Frames that came whole.
    pub frames: u64,
    /// Complete frames that arrived while their track had an enhanced rung.
    pub frames_enhanced: u64,
    /// Frames that could be shown: whole, and all that they rest on.
    pub shown: u64,
    /// Freezes, as Chromium counts them.
    pub freezes: u64,
    /// Length of all freezes, in milliseconds.
    pub frozen_ms: f64,
    /// The longest time from one shown frame of a subscription to the next, in milliseconds, once they came steadily.
    pub gap_max_ms: f64,
    /// Frames that came whole, by the rung that their track had.
    pub frames_by_rung: BTreeMap<Rung, u64>,
    /// Subscriptions now, by rung.
    pub rungs: BTreeMap<Rung, usize>,
    /// Subscriptions that are paused for want of bandwidth now.
    pub paused: usize,
    /// Changes of rung that subscribers were told.
    pub rung_changes: u64,
    /// Bytes of video and anchors that came, the video's with headers.
    pub media_bytes: u64,
    /// Subscribers' emulated links.
    pub downlinks: Downlinks,
    /// Subscriptions whose rung is an enhanced one now, and are not refused anchors.
    pub enhanced: usize,
    /// Subscriptions now.
    pub subscriptions: usize,
    /// Anchors that came whole; parts of one frame are one.
    pub anchors: u64,
    /// Complete captured anchors: of the publisher's own pixels.
    pub anchors_captured: u64,
    /// Bytes of all anchors.
    pub anchor_bytes: u64,
    /// Anchors of which messages were missing, or whose messages make no sense.
    pub anchors_broken: u64,
    /// Anchors whose frame did not come, so that only their age at the server is known.
    pub anchors_alone: u64,
    /// Anchors that came later than the budget.
    pub anchors_late: u64,
    /// From a frame complete at the subscriber to its anchor complete there.
    pub lag: Latencies,
    /// From a frame's arrival at the server to its anchor being sent, as the anchor says.
    pub age: Latencies,
    /// From the sending of a packet by its publisher to its arrival at a subscriber.
    pub transit: Transit,
}

/// Latencies with fine bins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Transit(pub Latencies);

impl Default for Transit {
    fn default() -> Self {
        Transit(Latencies::fine())
    }
}

impl Totals {
    /// Adds what the clients of another process counted.
    pub(super) fn add(&mut self, other: &Totals) {
        macro_rules! add {
            ($($name:ident)*) => { $(self.$name += other.$name;)* };
        }
        add!(visits vanished datagrams_out);
        for (links, others) in self.links.iter_mut().zip(other.links) {
            links.add(others);
        }
        add!(publishers subscribers failed pictures_sent frames_sent packets_sent bytes_sent pictures_skipped unsent);
        add!(key_requests key_requests_made expected packets lost bytes frames frames_enhanced enhanced subscriptions);
        self.gap_max_ms = self.gap_max_ms.max(other.gap_max_ms);
        add!(shown freezes frozen_ms paused rung_changes media_bytes);
        for (&rung, n) in &other.frames_by_rung {
            *self.frames_by_rung.entry(rung).or_default() += n;
        }
        for (&rung, n) in &other.rungs {
            *self.rungs.entry(rung).or_default() += n;
        }
        self.downlinks.add(&other.downlinks);
        add!(anchors anchors_captured anchor_bytes anchors_broken anchors_alone anchors_late);
        if self.failure.is_none() {
            self.failure.clone_from(&other.failure);
        }
        self.lag.add(&other.lag);
        self.age.add(&other.age);
        self.transit.0.add(&other.transit.0);
    }
}

/// Shared by all clients.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally(Arc<Mutex<Totals>>);

impl Tally {
    /// To be changed; held only for a moment.
    pub(super) fn lock(&self) -> MutexGuard<'_, Totals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a client that failed; the first is said.
    pub(super) fn fail(&self, error: &anyhow::Error) {
        let mut totals = self.lock();
        totals.failed += 1;
        if totals.failure.is_none() {
            eprintln!("a client failed: {error:#}");
            totals.failure = Some(format!("{error:#}"));
        }
    }
}
