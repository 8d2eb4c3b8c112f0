//! The publisher's own high-resolution frames, for captured anchors: a layer above the tapped one, where it is sent.
//!
//! A second tap copies that layer while the low layer is tapped, that is, while a subscriber holds an enhanced rung.
//! Each frame goes to the enhancer with the RTP timestamp that the same camera frame has in the tapped layer.

use windlass_types::{CapturedFrame, Layer, TapInput};

use super::alignment::Alignment;
use crate::core::tap::Tap;

/// The next input for the enhancer from the tap of the higher layer; `low` is the tapped layer.
pub(crate) fn poll(capture: &mut Tap, alignment: &mut Alignment, low: Layer) -> Option<TapInput> {
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
