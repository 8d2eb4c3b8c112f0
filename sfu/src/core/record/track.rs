//! What the recorder gets of a recorded track: video of the largest layer that arrives, and audio as it comes. The
//! renderer gets the same of a rendered one.
//!
//! A recording asks for all layers, so that its publishers send what their uplinks carry. A larger layer takes the
//! place of a smaller one where its first key frame is complete: until then the smaller one goes on. Where anchors are
//! recorded too, that layer is enhanced as for a subscriber of its enhanced rung.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use windlass_types::recording::{
    RecordInput, RecordedFrame, RecordedPacket, RecordedTime, SenderReport,
};
use windlass_types::rendition::RendererInput;
use windlass_types::{Layer, Rung, Size, StreamId, TapInput};

use crate::api::TrackId;
use crate::core::codec::red::Red;
use crate::core::output::Output;
use crate::core::publisher::layers::Layers;
use crate::core::subscriber::rewriter::PacketIn;
use crate::core::tap::Tap;

/// A layer's tap for the recorder, with the last sender report of the layer.
struct LayerTap {
    tap: Tap,
    report: Option<SenderReport>,
    /// Whether frames are missing before the next one.
    gap: bool,
}

impl LayerTap {
    fn new(layer: Layer, max_frame_bytes: usize) -> LayerTap {
        // The recorder knows tracks, not streams.
        LayerTap { tap: Tap::new(StreamId(0), layer, 0, max_frame_bytes), report: None, gap: false }
    }
}

/// Who gets what is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taker {
    /// The recorder, which keeps it.
    Recorder,
    /// The renderer, which makes a rendition of it.
    Renderer,
}

impl Taker {
    /// An output for the taker.
    pub(crate) fn output(self, input: RecordInput) -> Output {
        match self {
            Taker::Recorder => Output::Record(input),
            Taker::Renderer => Output::Render(RendererInput::Media(input)),
        }
    }
}

/// The recordings of one track.
#[derive(Default)]
pub(crate) struct Recordings {
    /// The recorder's; `None`: the track is not recorded.
    pub(crate) recorder: Option<TrackRecording>,
    /// The renderer's; `None`: the track has no rendition.
    pub(crate) renderer: Option<TrackRecording>,
}

impl Recordings {
    /// The recordings that there are.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &TrackRecording> {
        self.recorder.iter().chain(&self.renderer)
    }

    /// The recordings that there are, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut TrackRecording> {
        self.recorder.iter_mut().chain(&mut self.renderer)
    }
}

/// How a track is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordTerms {
    /// Who gets it.
    pub(crate) taker: Taker,
    /// Maximum bytes of a frame.
    pub(crate) max_frame_bytes: usize,
    /// Pixels that a layer must have less of; `None`: all layers are recorded.
    pub(crate) below_pixels: Option<u32>,
    /// Whether the track's anchors are recorded too.
    pub(crate) anchors: bool,
}

/// The recording of one track.
pub(crate) struct TrackRecording {
    track: TrackId,
    /// The layer that is recorded; `None` for audio, and before the first layer comes.
    current: Option<LayerTap>,
    /// The larger layer that takes the place of the current one at its first key frame.
    next: Option<LayerTap>,
    terms: RecordTerms,
    /// The layer whose anchors are recorded since its last key anchor was requested.
    anchored: Option<Layer>,
}

impl TrackRecording {
    /// Begins the recording of a track.
    pub(crate) fn new(track: TrackId, terms: RecordTerms) -> TrackRecording {
        TrackRecording { track, current: None, next: None, terms, anchored: None }
    }

    /// An output for who gets this recording.
    pub(crate) fn output(&self, input: RecordInput) -> Output {
        self.terms.taker.output(input)
    }

    /// Tells who gets this recording that it has ended.
    pub(crate) fn end(&self) -> Output {
        self.output(RecordInput::End(self.track))
    }

    /// The layer whose anchors are recorded; `None` without anchors, and for the largest layer.
    pub(crate) fn anchored_layer(&self) -> Option<Layer> {
        let layer = self.current.as_ref().map(|tap| tap.tap.layer());
        layer.filter(|layer| self.terms.anchors && Rung::plus(*layer).is_some())
    }

    /// Whether to request a key anchor now: the recording begins to get anchors of the tapped layer, or has lost some.
    pub(crate) fn lacks_key_anchor(&mut self, tapped: Option<Layer>) -> bool {
        let anchored = self.anchored_layer().filter(|layer| tapped == Some(*layer));
        let lacks = anchored.is_some() && anchored != self.anchored;
        self.anchored = anchored;
        lacks
    }

    /// Notes that anchors are missing: the next one must depend on no other.
    pub(crate) fn await_key_anchor(&mut self) {
        self.anchored = None;
    }

    /// Chooses the largest layer that is sent and recorded.
    pub(crate) fn choose(&mut self, now: Instant, layers: &Layers) {
        let sent = |layer: &Layer| {
            layers.rate(*layer, now).is_some() && self.takes(layers.sizes()[*layer as usize])
        };
        let Some(best) = Layer::ALL.into_iter().rev().find(sent) else { return };
        // Of spatial layers the smallest is recorded.
        let (best, _) = layers.spatial().encoding(best);
        let of = |tap: &Option<LayerTap>| tap.as_ref().map(|tap| tap.tap.layer());
        if of(&self.current) == Some(best) {
            self.next = None;
        } else if self.current.is_none() {
            self.current = Some(LayerTap::new(best, self.terms.max_frame_bytes));
        } else if of(&self.next) != Some(best) {
            self.next = Some(LayerTap::new(best, self.terms.max_frame_bytes));
        }
    }

    /// Whether a layer of this size is recorded. While it is unknown, one of a bounded size is not.
    fn takes(&self, size: Option<Size>) -> bool {
        let below = self.terms.below_pixels;
        below.is_none_or(|below| size.is_some_and(|size| size.pixels() < below))
    }

    /// Whether the publisher is to send a layer for this recording.
    pub(crate) fn needs(&self, layer: Layer, layers: &Layers) -> bool {
        let size = layers.sizes()[layer as usize];
        size.is_none() || self.takes(size)
    }

    fn taps(&mut self) -> impl Iterator<Item = &mut LayerTap> {
        [&mut self.current, &mut self.next].into_iter().flatten()
    }

    /// Takes a packet, if its layer is recorded, and gives what is complete.
    pub(crate) fn push(
        &mut self,
        layer: Layer,
        packet: PacketIn,
        report: Option<SenderReport>,
        payload: &Arc<[u8]>,
        outputs: &mut VecDeque<Output>,
    ) {
        let Some(tap) = self.taps().find(|tap| tap.tap.layer() == layer) else { return };
        tap.report = report.or(tap.report);
        tap.tap.push(packet, payload);
        self.collect(outputs);
    }

    /// Treats packets that are missing for too long as gaps.
    pub(crate) fn advance(&mut self, now: Instant, outputs: &mut VecDeque<Output>) {
        self.taps().for_each(|tap| tap.tap.advance(now));
        self.collect(outputs);
    }

    fn collect(&mut self, outputs: &mut VecDeque<Output>) {
        let (track, taker) = (self.track, self.terms.taker);
        let mut inputs = Vec::new();
        if let Some(current) = &mut self.current
            && give(track, current, false, &mut inputs)
        {
            // Frames are missing, and so is what their anchors gave.
            self.anchored = None;
        }
        let before = inputs.len();
        if let Some(next) = &mut self.next {
            give(track, next, true, &mut inputs);
        }
        let key = |input: &RecordInput| matches!(input, RecordInput::Video(frame) if frame.key);
        if inputs[before..].iter().any(key) {
            self.current = self.next.take();
        }
        outputs.extend(inputs.into_iter().map(|input| taker.output(input)));
    }

    /// When [`TrackRecording::advance`] is due.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        let taps = [&self.current, &self.next].into_iter().flatten();
        taps.filter_map(|tap| tap.tap.timeout()).min()
    }

    /// The layers whose key frames are needed now, of those that are sent.
    pub(crate) fn take_key_requests(&mut self, now: Instant, layers: &Layers) -> Vec<Layer> {
        let sent = |tap: &&mut LayerTap| layers.rate(tap.tap.layer(), now).is_some();
        let needs = |tap: &mut LayerTap| tap.tap.take_key_request(now).then(|| tap.tap.layer());
        self.taps().filter(sent).filter_map(needs).collect()
    }

    /// Waits for a key frame: frames were lost, or the recorder needs one.
    pub(crate) fn await_key(&mut self) {
        self.taps().for_each(|tap| tap.tap.on_overflow());
    }

    /// Counts a single encoding as another layer from its current key frame on.
    pub(crate) fn rename(&mut self, former: Layer, layer: Layer) {
        for tap in self.taps().filter(|tap| tap.tap.layer() == former) {
            tap.tap.set_layer(layer);
        }
    }
}

/// Takes the frames of a tap. Frames that the next layer loses before its first key frame are no gap.
/// Returns whether frames go on after a gap.
fn give(track: TrackId, tap: &mut LayerTap, is_next: bool, inputs: &mut Vec<RecordInput>) -> bool {
    let (layer, report) = (tap.tap.layer(), tap.report);
    let mut resumed = false;
    while let Some(input) = tap.tap.poll() {
        let size = tap.tap.size();
        inputs.push(match input {
            TapInput::Frame(frame) => {
                resumed |= std::mem::take(&mut tap.gap);
                RecordInput::Video(RecordedFrame {
                    track,
                    layer,
                    time: RecordedTime { rtp: frame.rtp_timestamp, arrival: frame.arrival, report },
                    key: frame.key,
                    size: size.unwrap_or(Size::new(0, 0)),
                    data: frame.data,
                })
            }
            _ if is_next => continue,
            _ => {
                tap.gap = true;
                RecordInput::Gap(track)
            }
        });
    }
    resumed
}

/// The Opus packets of an RTP packet. With redundancy, the packets before it come too.
pub(crate) fn audio(
    track: TrackId,
    time: RecordedTime,
    red: Option<Red<'_>>,
    payload: &Arc<[u8]>,
) -> Vec<Output> {
    let packet = |ticks: u32, data: &[u8]| {
        let time = RecordedTime { rtp: time.rtp.wrapping_sub(ticks), ..time };
        let data = Bytes::copy_from_slice(data);
        Output::Record(RecordInput::Audio(RecordedPacket { track, time, data }))
    };
    match red {
        None if payload.is_empty() => Vec::new(),
        None => vec![packet(0, payload)],
        Some(red) => {
            let blocks = red.blocks().filter(|(_, data)| !data.is_empty());
            blocks.map(|(ticks, data)| packet(ticks, data)).collect()
        }
    }
}
