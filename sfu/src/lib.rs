//! Selective forwarding of simulcast VP9 and Opus, with taps and anchor channels.
//!
//! A participant has one WebRTC connection for the tracks that it publishes and those that it subscribes to. [`core`]
//! is sans-I/O: packets, commands and time go in, packets and events come out. [`Sfu::start`] runs it on media threads
//! with one UDP port, and a TCP port for clients without UDP. Callers use the cloneable [`SfuHandle`].
//!
//! Inputs: SDP offers, RTP/RTCP/STUN from one port, anchors from the enhancer ([`SfuHandle::push`]). Outputs: SDP
//! answers, [`SfuEvent`]s for each participant, complete frames of low layers, and requests, for the enhancer
//! ([`EnhancerSinks`]). Media never waits: each queue is bounded, and what does not fit is dropped and counted.

mod api;
mod config;
pub mod core;
mod delivery;
mod net;
mod relay;
mod stats;
mod way_counts;

pub use api::{
    AnchorReport, Answer, DataContent, DataError, DataMessage, DecayReport, Delivery,
    DisconnectReason, EnhancerSinks, JoinError, JoinOptions, Joined, NetworkReport, Offer,
    OfferError, ParseIdError, ParticipantId, Permissions, Publish, RecordSink, RegionRequest,
    RendererSink, RenditionError, ReportError, RequestSink, SfuClosed, SfuEvent, Sinks, StartError,
    Subscribe, TakenReport, TapSink, TrackId, TrackInfo, TrackKind, TrackReport, TrackStats,
    UplinkReport,
};
pub use config::{
    Limits, RECEIVE_BUFFER, RenditionLimits, SfuConfig, TcpConfig, Tuning, share_of_one,
};
pub use core::{
    MediaLine, Recorded, RecordedWho, View, log_panics, media_lines, rate_limit_address,
};
pub use net::{Sfu, SfuHandle, ThreadFault, outward_addresses};
pub use relay::{
    AnchorState, NodeId, RelaySink, Relayed, RelayedAnchor, RelayedData, RelayedPacket,
    RelayedTrack,
};
pub use stats::{Counters, SfuStats};
pub use way_counts::WayCounts;

/// The README of this crate, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
