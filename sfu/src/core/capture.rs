//! The publisher's own pictures at HR size, for captured anchors: the layer above the tapped one, where it is sent.
//!
//! A tap of its own copies them, only while there is one of the low layer, that is, while somebody holds an enhanced
//! rung: whoever can carry the layer itself is given that. Each frame is handed on with the timestamp that the tapped
//! layer has for the same camera frame.

use windlass_types::{CapturedFrame, Layer, TapInput};

use super::alignment::Alignment;
use super::tap::Tap;

/// What the tap of the layer above has put together, for anchors on `low`.
pub fn poll(capture: &mut Tap, alignment: &mut Alignment, low: Layer) -> Option<TapInput> {
    let TapInput::Frame(frame) = capture.poll()? else {
        return Some(TapInput::CapturedGap { stream: capture.stream() });
    };
    let from = capture.layer();
    Some(TapInput::Captured(CapturedFrame {
        stream: frame.stream,
        low_timestamp: alignment.map(from, frame.rtp_timestamp, low),
        arrival: frame.arrival,
        key: frame.key,
        data: frame.data,
    }))
}
