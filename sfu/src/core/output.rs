//! Outputs of the core.

use std::sync::Arc;
use std::time::Instant;

use windlass_types::recording::RecordInput;
use windlass_types::rendition::RendererInput;
use windlass_types::{EnhancerRequest, StreamId, TapInput};

use super::routing::addresses::RemoteAddr;
use crate::api::{ParticipantId, SfuEvent};
use crate::relay::{NodeId, Relayed};

/// An output of the core: something that its caller must do.
#[derive(Debug)]
pub enum Output {
    /// Send a datagram.
    Transmit {
        /// Destination.
        to: RemoteAddr,
        /// Content.
        data: Vec<u8>,
        /// Arrival of the packet that the datagram forwards, to measure latency.
        arrival: Option<Instant>,
    },
    /// Send an event to a participant.
    Event(ParticipantId, SfuEvent),
    /// Send an input to the enhancer.
    Tap(TapInput),
    /// Send a request, or a report, to a stream's enhancement.
    Request(StreamId, EnhancerRequest),
    /// Send an input to the recorder.
    Record(RecordInput),
    /// Send an input to the renderer.
    Render(RendererInput),
    /// Send a message about a room to another SFU.
    Relay(NodeId, Arc<str>, Relayed),
}
