//! The types that pass between the parts: frames, anchors and their messages, layers, rungs, reports.
//!
//! Plain data only: no I/O, no clocks (an [`Instant`] is always an argument), no codecs.
//! The SFU fills [`TapInput`]s from RTP; the enhancer answers with [`Anchor`]s. Both queues are
//! bounded by their owners, with a drop rule and a counter.
//!
//! ```
//! use windlass_types::{Layer, Rung};
//!
//! assert!(Rung::H < Rung::HPlus && Rung::HPlus < Rung::F);
//! assert_eq!((Rung::HPlus.layer(), Rung::HPlus.enhanced()), (Layer::H, true));
//! assert_eq!(Rung::plus(Layer::F), None);
//! ```

pub mod attributes;
mod connection;
pub mod data;
mod frame_layers;
mod ids;
pub mod key_frame;
mod latencies;
pub mod message;
mod policy;
pub mod recording;
pub mod relay;
pub mod rendition;
pub mod tiles;
mod units;
mod video_codec;
mod way;

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The scales that decoders can make: the size of an HR picture over the size of the low one.
pub const SCALES: std::ops::RangeInclusive<usize> = 2..=4;
/// How long after its frame a picture of the publisher's own is still worth sending, whatever the budget. Flow
/// carries it to the present frame, and browsers keep the low pictures that this needs for so long.
pub const CAPTURED_WITHIN: Duration = Duration::from_secs(1);

pub use attributes::Attributes;
pub use connection::ConnectionQuality;
pub use data::{DataContent, DataMessage};
pub use frame_layers::FrameLayers;
pub use ids::{NodeId, ParseIdError, ParticipantId, TrackId, TrackKind};
pub use latencies::{Latencies, SharedLatencies};
pub use policy::{AnchorPolicy, MAX_LR_PIXELS, Refusal, UnknownPolicy};
pub use units::{Bitrate, Size};
pub use video_codec::VideoCodec;
pub use way::{FrameNetwork, NoNetwork, Way, WayReason};

/// The README of this crate, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// One published video track that is, or may be, tapped. Unique for the life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// The room and the publisher that a stream belongs to, as opaque numbers that are equal where room or publisher are.
/// Enhancement is shared fairly among rooms, and in each room among its publishers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The stream's room; loopback rooms of one publisher have the same number.
    pub room: u64,
    /// The stream's publisher. Streams of one identity have the same number; without identities, streams of one
    /// address.
    pub publisher: u64,
}

impl Owner {
    /// The owner of a stream of which only the number is known: alone in its room.
    pub fn alone(StreamId(stream): StreamId) -> Owner {
        let number = u64::MAX - u64::from(stream);
        Owner { room: number, publisher: number }
    }
}

/// A span of a tapped stream with one layer and one resolution. A switch of either begins a new epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(pub u16);

/// One simulcast encoding: quarter, half or full size. Ordered by size.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Quarter size.
    Q,
    /// Half size.
    H,
    /// Full size.
    F,
}

impl Layer {
    /// All layers, smallest first.
    pub const ALL: [Layer; 3] = [Layer::Q, Layer::H, Layer::F];

    /// The layer whose pictures are this one's at HR size; `None` where there is none.
    pub fn enlarged(self, scale: u16) -> Option<Layer> {
        match (self, scale) {
            (Layer::Q, 2) => Some(Layer::H),
            (Layer::Q, 4) | (Layer::H, 2) => Some(Layer::F),
            _ => None,
        }
    }

    /// By how much the layer's pictures may be enlarged before they are larger than the camera's.
    pub fn max_scale(self) -> u16 {
        match self {
            Layer::Q => 4,
            Layer::H => 2,
            Layer::F => 1,
        }
    }

    /// The RTP stream id (`a=rid`) that a publisher gives the layer.
    pub fn rid(self) -> &'static str {
        match self {
            Layer::Q => "q",
            Layer::H => "h",
            Layer::F => "f",
        }
    }

    /// The layer of an RTP stream id; `None` for any other id.
    pub fn from_rid(rid: &str) -> Option<Layer> {
        Layer::ALL.into_iter().find(|l| l.rid() == rid)
    }
}

/// What a subscriber can be given: a layer, or a layer plus anchors. Ordered by quality.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Rung {
    /// The quarter layer alone.
    #[serde(rename = "q")]
    Q,
    /// The quarter layer with anchors.
    #[serde(rename = "q+")]
    QPlus,
    /// The half layer alone.
    #[serde(rename = "h")]
    H,
    /// The half layer with anchors.
    #[serde(rename = "h+")]
    HPlus,
    /// The full layer.
    #[serde(rename = "f")]
    F,
}

impl Rung {
    /// The layer that the rung is built on.
    pub fn layer(self) -> Layer {
        match self {
            Rung::Q | Rung::QPlus => Layer::Q,
            Rung::H | Rung::HPlus => Layer::H,
            Rung::F => Layer::F,
        }
    }

    /// Whether anchors belong to the rung.
    pub fn enhanced(self) -> bool {
        matches!(self, Rung::QPlus | Rung::HPlus)
    }

    /// The plain rung of a layer.
    pub fn plain(layer: Layer) -> Rung {
        match layer {
            Layer::Q => Rung::Q,
            Layer::H => Rung::H,
            Layer::F => Rung::F,
        }
    }

    /// The enhanced rung of a layer; the full layer has none.
    pub fn plus(layer: Layer) -> Option<Rung> {
        match layer {
            Layer::Q => Some(Rung::QPlus),
            Layer::H => Some(Rung::HPlus),
            Layer::F => None,
        }
    }
}

/// One complete VP9 frame of a tapped layer.
#[derive(Debug, Clone)]
pub struct TapFrame {
    /// The tapped stream that the frame is of.
    pub stream: StreamId,
    /// The room and the publisher that the frame belongs to.
    pub owner: Owner,
    /// The span of one layer and one resolution that the frame is in.
    pub epoch: Epoch,
    /// The publisher's own RTP timestamp (90 kHz).
    pub rtp_timestamp: u32,
    /// When the frame's last packet reached the SFU.
    pub arrival: Instant,
    /// Whether the frame is a key frame.
    pub key: bool,
    /// By how much the frame's pictures may be enlarged: to no more than the camera's size.
    pub max_scale: u16,
    /// The policy by which the stream's anchors are chosen.
    pub policy: AnchorPolicy,
    /// The VP9 frame (or superframe), as the encoder made it.
    pub data: Bytes,
}

/// One complete VP9 frame of the publisher's own pictures at HR size: of the layer above the tapped one.
#[derive(Debug, Clone)]
pub struct CapturedFrame {
    /// The tapped stream that the frame belongs to.
    pub stream: StreamId,
    /// The tapped layer's RTP timestamp of the same camera frame (the publisher's timeline, 90 kHz). `None` where
    /// that layer has no such frame, or it is not known which frame it is.
    pub low_timestamp: Option<u32>,
    /// When the frame's last packet reached the SFU.
    pub arrival: Instant,
    /// Whether the frame is a key frame.
    pub key: bool,
    /// The VP9 frame (or superframe), as the encoder made it.
    pub data: Bytes,
}

/// What a tap hands to the enhancer, in decoding order.
#[derive(Debug, Clone)]
pub enum TapInput {
    /// A complete frame.
    Frame(TapFrame),
    /// Frames are missing: nothing can be decoded before the next key frame.
    Gap {
        /// The stream with missing frames.
        stream: StreamId,
    },
    /// A picture of the publisher's camera at HR size, to make captured anchors of.
    Captured(CapturedFrame),
    /// Frames at HR size are missing: none can be decoded before the next key frame.
    CapturedGap {
        /// The stream with missing frames.
        stream: StreamId,
    },
    /// No more pictures at HR size come.
    CaptureStop {
        /// The stream that goes on without pictures at HR size.
        stream: StreamId,
    },
    /// No subscriber holds an enhanced rung of this stream any more; the enhancer forgets it.
    Stop {
        /// The stream to forget.
        stream: StreamId,
    },
}

impl TapInput {
    /// The stream that the input belongs to.
    pub fn stream(&self) -> StreamId {
        match *self {
            TapInput::Frame(TapFrame { stream, .. })
            | TapInput::Captured(CapturedFrame { stream, .. })
            | TapInput::Gap { stream }
            | TapInput::CapturedGap { stream }
            | TapInput::CaptureStop { stream }
            | TapInput::Stop { stream } => stream,
        }
    }
}

/// What the SFU asks of a stream's enhancement, or reports to it. Requests go beside the [`TapInput`]s, in a queue of
/// their own: one may get lost, and no frame is lost with it. A later input may overtake a request. A request should
/// not overtake an input that came before it: a [`TapInput::Stop`] would take the stream's requests with it.
#[derive(Debug, Clone)]
pub enum EnhancerRequest {
    /// A subscriber has none of the anchors so far: the next anchor is to be a key anchor. One request stands for all
    /// subscribers, and requests are throttled.
    KeyAnchor,
    /// Whether the publisher can be asked for regions.
    Regions(bool),
    /// What the publisher can send. From now on the server adapts what it asks of the publisher (the knobs).
    Uplink(PublisherUplink),
    /// A viewer's report of how its picture gets worse from frame to frame after an anchor (ARISE §4.3).
    Decay {
        /// The viewer, as an opaque number that stays the same.
        viewer: u64,
        /// The decay that the viewer measured.
        decay: DecayReport,
    },
    /// Subscribers were given this still by the publisher, at the low frame's RTP timestamp (the publisher's timeline).
    Given(Anchor),
}

/// How a viewer's rebuilt picture gets worse from frame to frame after an anchor, as the viewer measures it (ARISE
/// §4.3).
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DecayReport {
    /// Loss with each frame (`d ÷ L`), in squared grey levels of luma: the mean over the picture's samples.
    pub per_frame: f64,
    /// Number of frames after an anchor in which the loss was seen (`L`): the mean over the anchors.
    pub frames: f64,
}

/// A publisher's report on its uplink, by its own browser.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UplinkReport {
    /// What the uplink carries, by the browser's congestion control. In messages it is in kbit/s.
    #[serde(rename = "kbps")]
    #[cfg_attr(feature = "typescript", ts(as = "f64"))]
    pub bitrate: Bitrate,
    /// Size of the camera's pictures.
    #[serde(flatten)]
    pub size: Size,
    /// The camera's frames per second.
    pub fps: f64,
}

/// What a publisher can send of a layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublisherUplink {
    /// The tapped layer.
    pub layer: Layer,
    /// The publisher's report; its bitrate is this layer's share.
    pub report: UplinkReport,
}

/// Where an anchor's detail comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnchorSource {
    /// Super-resolution made it.
    Enhanced,
    /// The publisher's own pixels.
    Captured,
}

/// How long each stage of an anchor took. The first begins with the frame's arrival at the SFU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StageTimes {
    /// Time from the frame's arrival until it was decoded.
    pub decode: Duration,
    /// Time from decoded until the scheduler chose the frame.
    pub schedule: Duration,
    /// Time from chosen until super-resolution was done, with the time in the queue.
    pub infer: Duration,
    /// Time from super-resolution until the anchor was encoded.
    pub encode: Duration,
}

/// An encoded anchor on its way from the enhancer to every subscriber of an enhanced rung.
#[derive(Debug, Clone)]
pub struct Anchor {
    /// The tapped stream that the anchor's frame belongs to.
    pub stream: StreamId,
    /// The epoch of the anchor's frame: a span of one layer and one resolution.
    pub epoch: Epoch,
    /// The publisher's own RTP timestamp of the anchor's frame (90 kHz); the SFU maps it for each subscriber.
    pub rtp_timestamp: u32,
    /// When the anchor's frame reached the SFU: the latency budget counts from here.
    pub arrival: Instant,
    /// Where the anchor's detail comes from.
    pub source: AnchorSource,
    /// Codec id of the payload: see [`message`].
    pub codec: u8,
    /// Whether the payload begins with a map of the tiles that the anchor gives.
    pub tiled: bool,
    /// Size of the HR picture.
    pub size: Size,
    /// Whether the payload holds only the detail that the hybrid decoder's built-in filters do not predict.
    pub beyond_prior: bool,
    /// The encoded detail, behind the map of tiles if there is one.
    pub payload: Bytes,
    /// How long each stage of the anchor took.
    pub times: StageTimes,
}

impl Anchor {
    /// Header of the anchor's message, with the publisher's own RTP timestamp.
    pub fn header(&self) -> message::AnchorHeader {
        message::AnchorHeader {
            tiled: self.tiled,
            beyond_prior: self.beyond_prior,
            stream: self.stream.0,
            ..message::AnchorHeader::new(self.codec, self.source, self.rtp_timestamp, self.size)
        }
    }
}

/// What a publisher is asked to send of a track.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublisherKnobs {
    /// The low layer that bitrate and frame rate are for.
    pub layer: Layer,
    /// The bitrate that the layer is to have.
    pub bitrate: Bitrate,
    /// The frames per second that the layer is to have.
    pub fps: f64,
}

/// What a publisher is asked to send as one of its layers.
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LayerKnobs {
    /// Whether the layer is sent at all.
    #[serde(default = "active")]
    pub active: bool,
    /// Bitrate of the layer. In messages it is in kbit/s.
    #[serde(rename = "kbps")]
    #[cfg_attr(feature = "typescript", ts(as = "f64"))]
    pub bitrate: Bitrate,
    /// Frames per second.
    pub fps: f64,
    /// Whether a subscriber takes no larger layer, so that this one comes before the larger ones.
    #[serde(default)]
    pub needed: bool,
}

fn active() -> bool {
    true
}

/// What the enhancer tells the SFU.
#[derive(Debug, Clone)]
pub enum EnhancerOutput {
    /// An anchor to be sent to the subscribers.
    Anchor(Anchor),
    /// The stream cannot be decoded before its next key frame: the SFU asks for one, throttled.
    NeedKeyFrame {
        /// The stream that waits.
        stream: StreamId,
    },
    /// Pictures of an epoch are enlarged by another factor from now on.
    Scale {
        /// The stream whose pictures are enlarged by another factor.
        stream: StreamId,
        /// The span of one layer and one resolution that the new factor holds for.
        epoch: Epoch,
        /// Width of HR pictures over the width of the low layer's.
        scale: u16,
    },
    /// A stream is not enhanced, or is enhanced again.
    Refused {
        /// The stream that is refused, or is enhanced again.
        stream: StreamId,
        /// Why it is not enhanced; `None`: it is enhanced.
        reason: Option<Refusal>,
    },
    /// The publisher is to be told what to send.
    Knobs {
        /// The stream whose publisher is told.
        stream: StreamId,
        /// What the publisher is to send from now on.
        knobs: PublisherKnobs,
    },
    /// The publisher is to be asked for tiles of its next camera frame.
    WantRegions {
        /// The stream whose publisher is asked.
        stream: StreamId,
        /// Size of the low layer's pictures, which the tiles divide.
        size: Size,
        /// The bits of the tile map.
        tiles: Bytes,
        /// Maximum size of the answer, in bytes.
        bytes: usize,
    },
    /// The stream's pictures at HR size cannot be decoded before their next key frame: the SFU asks for one,
    /// throttled.
    NeedCapturedKeyFrame {
        /// The stream that waits.
        stream: StreamId,
    },
}

impl EnhancerOutput {
    /// The stream that the output is about.
    pub fn stream(&self) -> StreamId {
        match *self {
            EnhancerOutput::Anchor(Anchor { stream, .. })
            | EnhancerOutput::NeedKeyFrame { stream }
            | EnhancerOutput::Scale { stream, .. }
            | EnhancerOutput::Refused { stream, .. }
            | EnhancerOutput::Knobs { stream, .. }
            | EnhancerOutput::WantRegions { stream, .. }
            | EnhancerOutput::NeedCapturedKeyFrame { stream } => stream,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_are_ordered_as_the_ladder_says() {
        let ladder = [Rung::Q, Rung::QPlus, Rung::H, Rung::HPlus, Rung::F];
        assert!(ladder.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn each_layer_is_the_next_smaller_one_enlarged_by_two() {
        assert!(Layer::ALL.windows(2).all(|w| w[0].enlarged(2) == Some(w[1])));
        assert_eq!(Layer::Q.enlarged(4), Some(Layer::F));
        assert_eq!([Layer::F.enlarged(2), Layer::H.enlarged(4), Layer::Q.enlarged(3)], [None; 3]);
    }

    #[test]
    fn every_layer_is_found_by_its_rid() {
        for layer in Layer::ALL {
            assert_eq!(Layer::from_rid(layer.rid()), Some(layer));
        }
        assert_eq!(Layer::from_rid("x"), None);
    }
}
