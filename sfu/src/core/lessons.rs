//! Lessons: the frames that the enhancer learns a stream's own weights from, and the subscribers who are taught.
//!
//! A subscriber who is taught watches the quarter layer without anchors, and runs the network that streams have own
//! weights of ([`weights::OWN`]). For such subscribers two taps copy the quarter layer and the layer that is
//! [`weights::SCALE`] times as large, while the publisher sends both. No layer is requested for that.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use windlass_types::weights;
use windlass_types::{FrameNetwork, Layer, LessonFrame, Rung, StreamId, TapInput};

use super::alignment::Alignment;
use super::layers::Layers;
use super::output::Output;
use super::rewriter::PacketIn;
use super::slot::Slot;
use super::tap::Tap;
use super::view;
use crate::stats::Counters;

/// The layer whose viewers are taught.
const LOW: Layer = Layer::Q;

/// The taps of one track for lessons.
#[derive(Default)]
pub(super) struct Lessons {
    taps: Option<[LessonTap; 2]>,
}

struct LessonTap {
    tap: Tap,
    large: bool,
    /// Number of its next frame.
    number: u32,
}

impl Lessons {
    /// Starts the taps if lessons are `wanted` and both layers are sent, or stops them. Returns whether they stop.
    pub(super) fn set(
        &mut self,
        now: Instant,
        stream: StreamId,
        wanted: bool,
        layers: &Layers,
        max_frame_bytes: usize,
    ) -> bool {
        let large = LOW.enlarged(weights::SCALE).filter(|_| wanted);
        let large =
            large.filter(|&large| [LOW, large].iter().all(|&l| layers.rate(l, now).is_some()));
        let on = self.taps.is_some();
        match large {
            None => self.taps = None,
            Some(_) if on => {}
            Some(large) => {
                let of = |layer: Layer| LessonTap {
                    tap: Tap::new(stream, layer, 0, max_frame_bytes),
                    large: layer == large,
                    number: 0,
                };
                self.taps = Some([of(LOW), of(large)]);
            }
        }
        on && self.taps.is_none()
    }

    /// Whether there are taps.
    pub(super) fn is_on(&self) -> bool {
        self.taps.is_some()
    }

    fn each(&mut self) -> impl Iterator<Item = &mut Tap> {
        self.taps.iter_mut().flatten().map(|lesson| &mut lesson.tap)
    }

    /// Takes a packet, if its layer is tapped. Returns whether it is.
    pub(super) fn push(&mut self, layer: Layer, packet: PacketIn, payload: &Arc<[u8]>) -> bool {
        let tap = self.each().find(|tap| tap.layer() == layer);
        tap.map(|tap| tap.push(packet, payload)).is_some()
    }

    /// Drops frames until the next key frames.
    pub(super) fn await_key(&mut self) {
        self.each().for_each(Tap::await_key);
    }

    /// Treats packets that are missing for too long as gaps.
    pub(super) fn advance(&mut self, now: Instant) {
        self.each().for_each(|tap| tap.advance(now));
    }

    /// When [`Lessons::advance`] is due.
    pub(super) fn timeout(&self) -> Option<Instant> {
        self.taps.iter().flatten().filter_map(|lesson| lesson.tap.timeout()).min()
    }

    /// The layers whose key frames are needed now.
    pub(super) fn take_key_requests(&mut self, now: Instant) -> impl Iterator<Item = Layer> {
        self.each().filter_map(move |tap| tap.take_key_request(now).then(|| tap.layer()))
    }

    /// Passes the frames of the taps to the enhancer. After a gap the next frame is a key frame, so that gaps need not
    /// be passed on.
    pub(super) fn collect(
        &mut self,
        alignment: &mut Alignment,
        counters: &mut Counters,
        outputs: &mut VecDeque<Output>,
    ) {
        for lesson in self.taps.iter_mut().flatten() {
            while let Some(input) = lesson.tap.poll() {
                let TapInput::Frame(frame) = input else { continue };
                let low_timestamp = if lesson.large {
                    alignment.map(lesson.tap.layer(), frame.rtp_timestamp, LOW)
                } else {
                    Some(frame.rtp_timestamp)
                };
                let number = lesson.number;
                lesson.number = number.wrapping_add(1);
                counters.lesson_frames += 1;
                outputs.push_back(Output::Tap(TapInput::Lesson(LessonFrame {
                    stream: frame.stream,
                    large: lesson.large,
                    number,
                    low_timestamp,
                    key: frame.key,
                    data: frame.data,
                })));
            }
        }
    }
}

impl Slot {
    /// Whether the subscriber is taught. `tapped`: the layer whose anchors are made; `anchors`: the client can receive
    /// them.
    pub(super) fn is_taught(&self, now: Instant, tapped: Option<Layer>, anchors: bool) -> bool {
        let plain =
            self.effective_rung(tapped, anchors).is_some_and(|(_, rung)| rung == Rung::plain(LOW));
        let (_, low) = self.video.epoch();
        let scale = self
            .view
            .zip(low)
            .and_then(|(view, low)| view::rebuilt_scale(view::tile_size(Some(view)), low));
        plain && scale == Some(weights::SCALE) && self.network.proved(now) == FrameNetwork::Xs
    }
}
