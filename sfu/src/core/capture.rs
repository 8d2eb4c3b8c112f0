//! The publisher's own pictures at HR size, for captured anchors: the layer above the tapped one, where it is sent.
//!
//! They are copied only while there is a tap, that is, while somebody holds an enhanced rung: whoever can carry the
//! layer itself is given that. Each frame is handed on with the timestamp that the tapped layer has for the same camera frame.

use std::sync::Arc;
use std::time::Instant;

use windlass_media::{CapturedFrame, Layer, StreamId, TapInput};

use super::alignment::{Alignment, Timeline};
use super::rewriter::PacketIn;
use super::tap::Tap;

/// The copy of one layer, for anchors on a smaller one.
pub struct Capture {
    tap: Tap,
}

impl Capture {
    /// A copy of `layer`.
    pub fn new(stream: StreamId, layer: Layer, frame_bytes: usize) -> Capture {
        Capture { tap: Tap::new(stream, layer, 0, frame_bytes) }
    }

    /// The layer that is copied.
    pub fn layer(&self) -> Layer {
        self.tap.layer()
    }

    /// Takes a packet of the layer.
    pub fn push(&mut self, packet: PacketIn, payload: &Arc<[u8]>) {
        self.tap.push(packet, payload);
    }

    /// Whether to ask for a key frame now.
    pub fn asks_for_key(&mut self, now: Instant) -> bool {
        self.tap.asks_for_key(now)
    }

    /// Nothing can be decoded before a key frame.
    pub fn need_key(&mut self) {
        self.tap.need_key();
    }

    /// What did not fit into the enhancer's queue is lost to it.
    pub fn refused(&mut self) {
        self.tap.refused();
    }

    /// When [`Capture::advance`] is due, while a packet is missing.
    pub fn timeout(&self) -> Option<Instant> {
        self.tap.timeout()
    }

    /// Gives up on what has been missing for too long.
    pub fn advance(&mut self, now: Instant) {
        self.tap.advance(now);
    }

    /// What has been put together, for anchors on `low`.
    pub fn poll(&mut self, alignment: &mut Alignment, low: Layer) -> Option<TapInput> {
        Some(match self.tap.poll()? {
            TapInput::Frame(frame) => TapInput::Captured(CapturedFrame {
                stream: frame.stream,
                low_timestamp: alignment.map(
                    Timeline::Of(self.tap.layer()),
                    frame.rtp_timestamp,
                    low,
                ),
                arrival: frame.arrival,
                key: frame.key,
                data: frame.data,
            }),
            _ => TapInput::CapturedGap { stream: self.tap.stream() },
        })
    }
}
