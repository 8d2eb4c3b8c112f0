//! Selective forwarding of simulcast VP9 and Opus, with taps and anchor channels.
//!
//! A participant has one WebRTC connection that carries both what it publishes and what it subscribes to.
//! [`core`] is sans-I/O: packets, commands and time go in, packets and events come out. [`Sfu::start`] runs it on
//! a thread of its own with one UDP socket, and one of TCP for clients that have no other way; every other part talks to it through the cloneable [`SfuHandle`].
//!
//! Inputs: SDP offers, RTP/RTCP/STUN from one port, anchors from the enhancer ([`SfuHandle::push`]).
//! Outputs: SDP answers, [`SfuEvent`]s per participant, complete low-layer frames for the enhancer ([`TapSink`]).
//! Media never waits for any of them: each queue is bounded, and what does not fit is dropped and counted.

mod api;
mod config;
pub mod core;
mod latency;
mod net;
mod relay;
mod stats;

pub use api::{
    AnchorReport, Answer, Ended, JoinError, JoinOptions, Joined, Kind, May, Offer, OfferError,
    ParseIdError, ParticipantId, Publish, RegionRequest, ReportError, SfuClosed, SfuEvent,
    StartError, Subscribe, TakenReport, TapSink, TrackId, TrackInfo, TrackStats, UplinkReport,
};
pub use config::{Limits, SfuConfig, TcpConfig, Tuning, share_of_one};
pub use core::{MediaLine, View, counted_address, media_lines, tell_panics};
pub use latency::Percentiles;
pub use net::{Ill, Sfu, SfuHandle};
pub use relay::{Made, NodeId, RelaySink, Relayed, RelayedAnchor, RelayedPacket, RelayedTrack};
pub use stats::{Counters, SfuStats};
