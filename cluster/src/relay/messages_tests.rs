use proptest::prelude::*;
use prost::Message as _;
use windlass_types::{AnchorSource, Epoch, Size};

use super::*;
use crate::proto::enhancer;

const TRACK: TrackId = TrackId(7);
const ANNA: ParticipantId = ParticipantId(u64::MAX);

fn data(content: DataContent, to: Option<Vec<ParticipantId>>) -> RelayedData {
    let message =
        DataMessage { topic: "chat".to_owned(), content, reliable: to.is_none(), number: Some(3) };
    RelayedData { from: ANNA, seq: 7, to, message: message.into() }
}

fn all(now: Instant) -> Vec<Relayed> {
    let (track, layer) = (TRACK, Layer::H);
    let packet = RelayedPacket {
        track,
        layer: Some(layer),
        seq: 70_000,
        timestamp: u32::MAX,
        marker: true,
        level: None,
        voice: None,
        blocks: None,
        codec: VideoCodec::H264,
        frame: Some(FrameLayers::from_bits(0b1_0011_0110)),
        payload: vec![1, 2, 3].into(),
    };
    let sound = RelayedPacket {
        layer: None,
        level: Some(-127),
        voice: Some(true),
        blocks: Some(111),
        frame: None,
        ..packet.clone()
    };
    let state = AnchorState {
        available: true,
        layer: Some(Layer::Q),
        scale: 3,
        holds: Duration::from_millis(1_400),
        refused: Some(Refusal::Cpu),
    };
    let anchor = Anchor {
        stream: StreamId(0),
        epoch: Epoch(3),
        rtp_timestamp: 90_000,
        arrival: now.checked_sub(Duration::from_millis(40)).unwrap(),
        source: AnchorSource::Captured,
        codec: 2,
        tiled: true,
        size: Size::new(1_280, 720),
        beyond_prior: true,
        payload: vec![9; 50].into(),
        times: StageTimes::default(),
    };
    let anchor = RelayedAnchor { track, anchor, layer, tapped: Layer::Q };
    let relayed = RelayedTrack {
        track,
        participant: ANNA,
        kind: TrackKind::Video,
        name: "camera".to_owned(),
        muted: true,
        encrypted: true,
        backup_of: None,
    };
    let backup = RelayedTrack { backup_of: Some(track), ..relayed.clone() };
    vec![
        Relayed::Begin,
        Relayed::End,
        Relayed::Joined { participant: ANNA },
        Relayed::Changed { participant: ANNA },
        Relayed::Quality { participant: ANNA, quality: ConnectionQuality::Poor },
        Relayed::Data(data(DataContent::Text("tea?".to_owned()), None)),
        Relayed::Data(data(DataContent::Bytes(vec![0, 255].into()), Some(vec![ANNA]))),
        Relayed::Left { participant: ANNA },
        Relayed::Track(relayed),
        Relayed::Track(backup),
        Relayed::TrackRemoved { track },
        Relayed::TrackMuted { track, muted: true },
        Relayed::Packet(packet),
        Relayed::Packet(sound),
        Relayed::AnchorState { track, state },
        Relayed::AnchorState { track, state: AnchorState::default() },
        Relayed::Anchor(Box::new(anchor)),
        Relayed::KeyFrame { track, layer },
        Relayed::Layers { track, wanted: [true, false, true] },
        Relayed::Enhance { track, layer: Some(layer) },
        Relayed::Enhance { track, layer: None },
        Relayed::KeyAnchor { track },
        Relayed::BackupWanted { track, codecs: vec![VideoCodec::Vp8, VideoCodec::H264] },
    ]
}

#[test]
fn what_is_said_arrives_as_it_was_said() {
    let now = Instant::now();
    let who = RelayedParticipant {
        name: "Anna".to_owned(),
        identity: Some("a@x".to_owned()),
        was: None,
        attributes: [("hand".to_owned(), "up".to_owned())].into(),
        age: Duration::from_secs(9),
    };
    for said in all(now) {
        let is_about = matches!(said, Relayed::Joined { .. } | Relayed::Changed { .. });
        let who = is_about.then(|| who.clone());
        let bytes = encode("tea", &said, who.clone(), now).encode_to_vec();
        let message = Message::decode(&*bytes).unwrap();
        let RoomMessage { room, relayed: heard, who: person } =
            decode(message, now).unwrap().unwrap();
        assert_eq!((&*room, person), ("tea", who));
        // Not all of what it holds can be compared.
        assert_eq!(format!("{heard:?}"), format!("{said:?}"));
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_what_is_new_left_alone() {
    let now = Instant::now();
    let of = |what| decode(Message { room: "tea".to_owned(), what: Some(what) }, now);
    let text = |text: String| Some(proto::data::Content::Text(text));
    let data = proto::Data {
        topic: "chat".to_owned(),
        content: text(String::new()),
        ..Default::default()
    };
    assert!(of(What::Data(data.clone())).is_ok());
    let attributes = |key: &str, value: usize| [(key.to_owned(), "x".repeat(value))].into();
    let anchor = proto::Anchor {
        track: 7,
        layer: "h".to_owned(),
        tapped: "q".to_owned(),
        ..Default::default()
    };
    let packet = proto::Packet { track: 7, layer: "h".to_owned(), ..Default::default() };
    for what in [
        What::Packet(proto::Packet { seq: MAX_SEQ + 1, ..packet.clone() }),
        What::Packet(proto::Packet { payload: vec![0; MAX_PAYLOAD + 1].into(), ..packet.clone() }),
        What::Packet(proto::Packet { level: Some(1_000), ..packet.clone() }),
        What::Packet(proto::Packet { blocks: Some(1_000), ..packet.clone() }),
        What::Packet(proto::Packet { layer: "x".to_owned(), ..packet }),
        What::KeyFrame(proto::KeyFrame { track: 7, layer: String::new() }),
        What::Anchor(anchor.clone()),
        What::Anchor(proto::Anchor { anchor: Some(enhancer::Anchor::default()), ..anchor }),
        What::Data(proto::Data { topic: "a b".to_owned(), ..data.clone() }),
        What::Data(proto::Data { content: None, ..data.clone() }),
        What::Data(proto::Data { content: text("x".repeat(16 * 1024 + 1)), ..data.clone() }),
        What::Data(proto::Data { to: vec![1; MAX_RECEIVERS + 1], ..data }),
        What::Joined(proto::Person { attributes: attributes("", 1), ..Default::default() }),
        What::Changed(proto::Person { attributes: attributes("a", 257), ..Default::default() }),
        What::Joined(proto::Person { name: "n".repeat(MAX_NAME + 1), ..Default::default() }),
    ] {
        assert!(of(what.clone()).is_err(), "{what:?}");
    }
    let begin = Some(What::Begin(proto::Nothing {}));
    assert!(decode(Message { room: String::new(), what: begin }, now).is_err());
    assert_eq!(
        decode(Message { room: "tea".to_owned(), what: None }, now).unwrap().map(|_| ()),
        None
    );
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(message) = Message::decode(&*bytes) {
            let _ = decode(message, Instant::now());
        }
    }
}
