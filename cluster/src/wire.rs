//! Conversion between [`windlass_types`] and the messages of `proto/enhancer.proto`. Malformed messages give a
//! [`WireError`], never a panic.

use std::time::{Duration, Instant};

use thiserror::Error;
use windlass_types::{
    Anchor, AnchorPolicy, AnchorSource, Bitrate, CapturedFrame, DecayReport, EnhancerOutput,
    EnhancerRequest, Epoch, Layer, Owner, PublisherKnobs, PublisherUplink, Refusal, Size,
    StageTimes, StreamId, TapFrame, TapInput, UplinkReport,
};

use crate::clock::{Arrivals, FrameAge};
use crate::proto::enhancer::{self as proto, from_worker, to_worker};

/// Why a message is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WireError {
    /// The message has no content that this version knows.
    #[error("the message is empty, or of a newer version: update this machine")]
    Empty,
    /// A field is missing or out of its range.
    #[error("field `{0}` is missing or out of range")]
    Field(&'static str),
}

/// Converts a frame's age into its arrival on this machine's clock.
pub type ArrivalOf<'a> = &'a dyn Fn(FrameAge) -> Instant;

/// Content of an SFU's message to a stream's enhancer.
#[derive(Debug, Clone)]
pub enum ToEnhancer {
    /// An input of the tap.
    Input(TapInput),
    /// A request to the enhancer, or a report.
    Request(EnhancerRequest),
}

/// The message of a tap's input, sent `now`. Anchors must be back within `within` after their frame's arrival. `None`:
/// the stream ends.
pub fn to_worker(input: &TapInput, now: Instant, within: Duration) -> Option<proto::ToWorker> {
    use to_worker::What;
    let age = |arrival| age_us(arrival, now);
    let what = match input {
        TapInput::Frame(frame) => What::Frame(proto::Frame {
            room: frame.owner.room,
            publisher: frame.owner.publisher,
            epoch: frame.epoch.0.into(),
            rtp_timestamp: frame.rtp_timestamp,
            age_us: age(frame.arrival),
            within_us: micros(within),
            key: frame.key,
            max_scale: frame.max_scale.into(),
            policy: frame.policy.name().to_owned(),
            data: frame.data.clone(),
        }),
        TapInput::Captured(frame) => What::Captured(proto::Captured {
            low_timestamp: frame.low_timestamp,
            age_us: age(frame.arrival),
            key: frame.key,
            data: frame.data.clone(),
        }),
        TapInput::CapturedGap { .. } => What::CapturedGap(proto::Nothing {}),
        TapInput::CaptureStop { .. } => What::CaptureStop(proto::Nothing {}),
        TapInput::Gap { .. } => What::Gap(proto::Nothing {}),
        TapInput::Stop { .. } => return None,
    };
    Some(proto::ToWorker { what: Some(what), request: None })
}

/// The message of a request to a stream's enhancement, sent `now`.
pub fn request_to_worker(request: &EnhancerRequest, now: Instant) -> proto::ToWorker {
    use to_worker::Request;
    let request = match request {
        EnhancerRequest::KeyAnchor => Request::KeyAnchor(proto::Nothing {}),
        EnhancerRequest::Regions(possible) => Request::Regions(*possible),
        EnhancerRequest::Uplink(PublisherUplink { layer, report }) => {
            Request::Uplink(proto::Uplink {
                layer: layer.rid().to_owned(),
                kbps: report.bitrate.as_kbps(),
                width: report.size.width.into(),
                height: report.size.height.into(),
                fps: report.fps,
            })
        }
        EnhancerRequest::Decay { viewer, decay: DecayReport { per_frame, frames } } => {
            Request::Decay(proto::Decay { by_frame: *per_frame, frames: *frames, viewer: *viewer })
        }
        EnhancerRequest::Given(anchor) => Request::Given(proto::Given {
            age_us: age_us(anchor.arrival, now),
            anchor: Some(anchor_message(anchor)),
        }),
    };
    proto::ToWorker { what: None, request: Some(request) }
}

/// The content of an SFU's message, for the local number `stream`; `None`: the message is a ping.
///
/// # Errors
///
/// The message is malformed.
pub fn to_enhancer(
    message: proto::ToWorker,
    stream: StreamId,
    arrival_of: ArrivalOf<'_>,
) -> Result<Option<ToEnhancer>, WireError> {
    match (message.what, message.request) {
        (Some(to_worker::What::Ping(_)), None) => Ok(None),
        (Some(what), None) => tap_input(what, stream, arrival_of).map(ToEnhancer::Input).map(Some),
        (None, Some(message)) => {
            request(message, stream, arrival_of).map(ToEnhancer::Request).map(Some)
        }
        (Some(_), Some(_)) => Err(WireError::Field("request")),
        (None, None) => Err(WireError::Empty),
    }
}

fn tap_input(
    what: to_worker::What,
    stream: StreamId,
    arrival_of: ArrivalOf<'_>,
) -> Result<TapInput, WireError> {
    use to_worker::What;
    let span = Duration::from_micros;
    Ok(match what {
        What::Ping(_) => return Err(WireError::Field("ping")),
        What::Frame(frame) => TapInput::Frame(TapFrame {
            stream,
            owner: Owner { room: frame.room, publisher: frame.publisher },
            epoch: Epoch(narrow(frame.epoch, "epoch")?),
            rtp_timestamp: frame.rtp_timestamp,
            arrival: arrival_of(FrameAge {
                age: span(frame.age_us),
                within: span(frame.within_us),
            }),
            key: frame.key,
            max_scale: narrow(frame.max_scale, "max_scale")?,
            policy: frame.policy.parse::<AnchorPolicy>().map_err(|_| WireError::Field("policy"))?,
            data: frame.data,
        }),
        What::Captured(frame) => TapInput::Captured(CapturedFrame {
            stream,
            low_timestamp: frame.low_timestamp,
            arrival: arrival_of(without_deadline(frame.age_us)),
            key: frame.key,
            data: frame.data,
        }),
        What::CapturedGap(_) => TapInput::CapturedGap { stream },
        What::CaptureStop(_) => TapInput::CaptureStop { stream },
        What::Gap(_) => TapInput::Gap { stream },
    })
}

fn request(
    request: to_worker::Request,
    stream: StreamId,
    arrival_of: ArrivalOf<'_>,
) -> Result<EnhancerRequest, WireError> {
    use to_worker::Request;
    Ok(match request {
        Request::KeyAnchor(_) => EnhancerRequest::KeyAnchor,
        Request::Regions(possible) => EnhancerRequest::Regions(possible),
        Request::Uplink(uplink) => EnhancerRequest::Uplink(PublisherUplink {
            layer: layer(&uplink.layer)?,
            report: UplinkReport {
                bitrate: Bitrate::kbps(rate(uplink.kbps, "kbps")?),
                size: size(uplink.width, uplink.height)?,
                fps: rate(uplink.fps, "fps")?,
            },
        }),
        Request::Decay(decay) => EnhancerRequest::Decay {
            viewer: decay.viewer,
            decay: DecayReport {
                per_frame: rate(decay.by_frame, "by_frame")?,
                frames: rate(decay.frames, "frames")?,
            },
        },
        Request::Given(given) => {
            let anchor = given.anchor.ok_or(WireError::Field("anchor"))?;
            let arrival = arrival_of(without_deadline(given.age_us));
            EnhancerRequest::Given(anchor_of(anchor, stream, arrival)?)
        }
    })
}

/// Age of a message that is useful whenever it comes: it has no deadline.
fn without_deadline(age_us: u64) -> FrameAge {
    FrameAge { age: Duration::from_micros(age_us), within: Duration::MAX }
}

/// Time since an arrival.
fn age_us(arrival: Instant, now: Instant) -> u64 {
    micros(now.saturating_duration_since(arrival))
}

/// The message of an enhancer's output.
pub fn from_worker(output: &EnhancerOutput) -> proto::FromWorker {
    use from_worker::What;
    let what = match output {
        EnhancerOutput::Anchor(anchor) => What::Anchor(anchor_message(anchor)),
        EnhancerOutput::NeedKeyFrame { .. } => What::NeedKeyFrame(proto::Nothing {}),
        EnhancerOutput::Scale { epoch, scale, .. } => {
            What::Scale(proto::Scale { epoch: epoch.0.into(), scale: (*scale).into() })
        }
        EnhancerOutput::Refused { reason, .. } => What::Refused(match reason {
            None => String::new(),
            Some(reason) => reason.name().to_owned(),
        }),
        EnhancerOutput::Knobs { knobs, .. } => What::Knobs(proto::Knobs {
            layer: knobs.layer.rid().to_owned(),
            kbps: knobs.bitrate.as_kbps(),
            fps: knobs.fps,
        }),
        EnhancerOutput::WantRegions { size, tiles, bytes, .. } => {
            What::WantRegions(proto::WantRegions {
                width: size.width.into(),
                height: size.height.into(),
                tiles: tiles.clone(),
                max_bytes: *bytes as u64,
            })
        }
        EnhancerOutput::NeedCapturedKeyFrame { .. } => {
            What::NeedCapturedKeyFrame(proto::Nothing {})
        }
    };
    proto::FromWorker { what: Some(what) }
}

/// The content of a worker's message, for the local number `stream`. `None`: the message answers a ping, or has the
/// anchor of an unknown frame.
///
/// # Errors
///
/// The message is malformed.
pub fn output(
    message: proto::FromWorker,
    stream: StreamId,
    arrivals: &Arrivals,
) -> Result<Option<EnhancerOutput>, WireError> {
    use from_worker::What;
    Ok(Some(match message.what.ok_or(WireError::Empty)? {
        What::Pong(_) => return Ok(None),
        What::Anchor(anchor) => {
            let epoch = Epoch(narrow(anchor.epoch, "epoch")?);
            let Some(arrival) = arrivals.of(epoch, anchor.rtp_timestamp) else { return Ok(None) };
            EnhancerOutput::Anchor(anchor_of(anchor, stream, arrival)?)
        }
        What::NeedKeyFrame(_) => EnhancerOutput::NeedKeyFrame { stream },
        What::Scale(scale) => EnhancerOutput::Scale {
            stream,
            epoch: Epoch(narrow(scale.epoch, "epoch")?),
            scale: narrow(scale.scale, "scale")?,
        },
        What::Refused(reason) => EnhancerOutput::Refused { stream, reason: refusal(&reason)? },
        What::Knobs(knobs) => {
            let knobs = PublisherKnobs {
                layer: layer(&knobs.layer)?,
                bitrate: Bitrate::kbps(rate(knobs.kbps, "kbps")?),
                fps: rate(knobs.fps, "fps")?,
            };
            EnhancerOutput::Knobs { stream, knobs }
        }
        What::WantRegions(want) => EnhancerOutput::WantRegions {
            stream,
            size: size(want.width, want.height)?,
            tiles: want.tiles,
            bytes: narrow(want.max_bytes, "max_bytes")?,
        },
        What::NeedCapturedKeyFrame(_) => EnhancerOutput::NeedCapturedKeyFrame { stream },
    }))
}

/// The message of an anchor. Its stream and arrival are for the receiver to say.
pub fn anchor_message(anchor: &Anchor) -> proto::Anchor {
    let StageTimes { decode, schedule, infer, encode } = anchor.times;
    proto::Anchor {
        epoch: anchor.epoch.0.into(),
        rtp_timestamp: anchor.rtp_timestamp,
        source: source_name(anchor.source).to_owned(),
        codec: anchor.codec.into(),
        tiled: anchor.tiled,
        width: anchor.size.width.into(),
        height: anchor.size.height.into(),
        beyond_prior: anchor.beyond_prior,
        payload: anchor.payload.clone(),
        stages_us: [decode, schedule, infer, encode].map(micros).to_vec(),
    }
}

/// The anchor of a message.
///
/// # Errors
///
/// The message is malformed.
pub fn anchor_of(
    anchor: proto::Anchor,
    stream: StreamId,
    arrival: Instant,
) -> Result<Anchor, WireError> {
    let stage = |n: usize| anchor.stages_us.get(n).copied().map(Duration::from_micros);
    let stage = |n| stage(n).unwrap_or_default();
    Ok(Anchor {
        stream,
        epoch: Epoch(narrow(anchor.epoch, "epoch")?),
        rtp_timestamp: anchor.rtp_timestamp,
        arrival,
        source: source(&anchor.source)?,
        codec: narrow(anchor.codec, "codec")?,
        tiled: anchor.tiled,
        size: size(anchor.width, anchor.height)?,
        beyond_prior: anchor.beyond_prior,
        times: StageTimes {
            decode: stage(0),
            schedule: stage(1),
            infer: stage(2),
            encode: stage(3),
        },
        payload: anchor.payload,
    })
}

/// Name of a source in messages.
pub fn source_name(source: AnchorSource) -> &'static str {
    match source {
        AnchorSource::Enhanced => "enhanced",
        AnchorSource::Captured => "captured",
    }
}

/// The source with that name.
///
/// # Errors
///
/// The name is unknown.
pub fn source(name: &str) -> Result<AnchorSource, WireError> {
    let all = [AnchorSource::Enhanced, AnchorSource::Captured];
    all.into_iter().find(|s| source_name(*s) == name).ok_or(WireError::Field("source"))
}

/// The reason with that name; `None` for an empty name.
///
/// # Errors
///
/// The name is unknown.
pub fn refusal(name: &str) -> Result<Option<Refusal>, WireError> {
    if name.is_empty() {
        return Ok(None);
    }
    let found = Refusal::ALL.into_iter().find(|reason| reason.name() == name);
    found.map(Some).ok_or(WireError::Field("refused"))
}

/// The layer with that name.
///
/// # Errors
///
/// The name is unknown.
pub fn layer(rid: &str) -> Result<Layer, WireError> {
    Layer::from_rid(rid).ok_or(WireError::Field("layer"))
}

/// A span in whole microseconds.
pub fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// Converts a number to a narrower type.
///
/// # Errors
///
/// The number does not fit.
pub fn narrow<A, B: TryFrom<A>>(value: A, name: &'static str) -> Result<B, WireError> {
    B::try_from(value).map_err(|_| WireError::Field(name))
}

/// A picture's size, if codecs and messages can have it.
///
/// # Errors
///
/// A side is too long.
pub fn size(width: u32, height: u32) -> Result<Size, WireError> {
    Ok(Size::new(narrow(width, "width")?, narrow(height, "height")?))
}

/// A rate or error from a message: it must be finite and at least 0.
fn rate(value: f64, name: &'static str) -> Result<f64, WireError> {
    if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(WireError::Field(name)) }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;

    const STREAM: StreamId = StreamId(9);

    fn anchor(arrival: Instant) -> Anchor {
        let ms = Duration::from_millis;
        Anchor {
            stream: STREAM,
            epoch: Epoch(3),
            rtp_timestamp: 77,
            arrival,
            source: AnchorSource::Captured,
            codec: 2,
            tiled: true,
            size: Size::new(640, 360),
            beyond_prior: true,
            payload: Bytes::from_static(b"detail"),
            times: StageTimes { decode: ms(1), schedule: ms(2), infer: ms(3), encode: ms(4) },
        }
    }

    fn requests(now: Instant) -> Vec<EnhancerRequest> {
        let uplink = PublisherUplink {
            layer: Layer::H,
            report: UplinkReport {
                bitrate: Bitrate::kbps(450.5),
                size: Size::new(1280, 720),
                fps: 30.0,
            },
        };
        vec![
            EnhancerRequest::Given(anchor(now)),
            EnhancerRequest::Regions(true),
            EnhancerRequest::Uplink(uplink),
            EnhancerRequest::Decay {
                viewer: 6,
                decay: DecayReport { per_frame: 0.25, frames: 9.0 },
            },
            EnhancerRequest::KeyAnchor,
        ]
    }

    fn inputs(now: Instant) -> Vec<TapInput> {
        let (stream, data) = (STREAM, Bytes::from_static(b"vp9"));
        let frame = TapFrame {
            stream,
            owner: Owner { room: 5, publisher: u64::MAX },
            epoch: Epoch(3),
            rtp_timestamp: u32::MAX,
            arrival: now,
            key: true,
            max_scale: 4,
            policy: AnchorPolicy::QualitySla,
            data: data.clone(),
        };
        let captured =
            CapturedFrame { stream, low_timestamp: Some(5), arrival: now, key: false, data };
        vec![
            TapInput::Frame(frame),
            TapInput::Captured(captured),
            TapInput::CapturedGap { stream },
            TapInput::CaptureStop { stream },
            TapInput::Gap { stream },
        ]
    }

    /// Through bytes, as on the way.
    fn sent<M: prost::Message + Default>(message: &M) -> M {
        M::decode(&message.encode_to_vec()[..]).expect("our own bytes")
    }

    #[test]
    fn what_taps_say_arrives_as_it_was_said() {
        let now = Instant::now();
        for input in inputs(now) {
            let message = to_worker(&input, now, Duration::from_millis(140)).expect("no end");
            let back = to_enhancer(sent(&message), STREAM, &|FrameAge { age, .. }| {
                assert_eq!(age, Duration::ZERO);
                now
            });
            let message = ToEnhancer::Input(input);
            assert_eq!(format!("{:?}", back.unwrap().unwrap()), format!("{message:?}"));
        }
        assert!(to_worker(&TapInput::Stop { stream: STREAM }, now, Duration::ZERO).is_none());
    }

    #[test]
    fn what_is_asked_of_enhancers_arrives_as_it_was_asked() {
        let now = Instant::now();
        for request in requests(now) {
            let back = to_enhancer(sent(&request_to_worker(&request, now)), STREAM, &|_| now);
            let message = ToEnhancer::Request(request);
            assert_eq!(format!("{:?}", back.unwrap().unwrap()), format!("{message:?}"));
        }
    }

    #[test]
    fn what_enhancers_say_arrives_as_it_was_said() {
        let (now, mut arrivals) = (Instant::now(), Arrivals::default());
        arrivals.sent(Epoch(3), 77, now);
        let stream = STREAM;
        let knobs = PublisherKnobs { layer: Layer::Q, bitrate: Bitrate::kbps(150.0), fps: 30.0 };
        let tiles = Bytes::from_static(&[0xf0]);
        for message in [
            EnhancerOutput::Anchor(anchor(now)),
            EnhancerOutput::NeedKeyFrame { stream },
            EnhancerOutput::Scale { stream, epoch: Epoch(2), scale: 4 },
            EnhancerOutput::Refused { stream, reason: None },
            EnhancerOutput::Refused { stream, reason: Some(Refusal::Cpu) },
            EnhancerOutput::Refused { stream, reason: Some(Refusal::Memory) },
            EnhancerOutput::Knobs { stream, knobs },
            EnhancerOutput::WantRegions { stream, size: Size::new(320, 180), tiles, bytes: 5000 },
            EnhancerOutput::NeedCapturedKeyFrame { stream },
        ] {
            let back = output(sent(&from_worker(&message)), STREAM, &arrivals);
            assert_eq!(format!("{:?}", back.unwrap().unwrap()), format!("{message:?}"));
        }
        let mut other = anchor(now);
        other.rtp_timestamp = 78;
        let message = from_worker(&EnhancerOutput::Anchor(other));
        assert!(output(message, STREAM, &arrivals).unwrap().is_none(), "a frame that nobody sent");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        use to_worker::{Request, What};
        let now = Instant::now();
        let read = |what, request| {
            let message = to_enhancer(proto::ToWorker { what, request }, STREAM, &|_| now);
            message.map(|message| message.is_some())
        };
        let (of, asked) = (|what| read(what, None), |request| read(None, Some(request)));
        assert_eq!(of(None), Err(WireError::Empty));
        assert!(
            read(Some(What::Gap(proto::Nothing {})), Some(Request::Regions(true))).is_err(),
            "two at once"
        );
        let frame = proto::Frame { policy: "latency-sensitive".to_owned(), ..Default::default() };
        assert_eq!(of(Some(What::Frame(frame.clone()))), Ok(true));
        let wrong = [
            proto::Frame { epoch: 70_000, ..frame.clone() },
            proto::Frame { max_scale: u32::MAX, ..frame.clone() },
            proto::Frame { policy: "best".to_owned(), ..frame },
        ];
        for frame in wrong {
            assert!(matches!(of(Some(What::Frame(frame))), Err(WireError::Field(_))));
        }
        let decay = proto::Decay { by_frame: f64::NAN, frames: 1.0, viewer: 1 };
        assert!(asked(Request::Decay(decay)).is_err());
        assert!(asked(Request::Given(proto::Given::default())).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_none_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let now = Instant::now();
            if let Ok(message) = proto::ToWorker::decode(&bytes[..]) {
                let _ = to_enhancer(message, STREAM, &|FrameAge { age, .. }| now.checked_sub(age).unwrap_or(now));
            }
            if let Ok(message) = proto::FromWorker::decode(&bytes[..]) {
                let mut arrivals = Arrivals::default();
                arrivals.sent(Epoch(0), 0, now);
                let _ = output(message, STREAM, &arrivals);
            }
        }
    }
}
