//! A whole SFU in memory: WebRTC clients on both ends, a network that is a queue, and time that is an argument.

use std::collections::HashMap;

use bytes::Bytes;
use str0m::change::SdpAnswer;
use str0m::channel::{ChannelData, ChannelId};
use str0m::media::{Direction, KeyframeRequestKind, MediaKind, Rid, Simulcast, SimulcastLayer};
use str0m::rtp::{RtpPacket, RtpWrite};
use str0m::{Candidate, Event, Output as RtcOutput, Rtc};
use windlass_hybrid::anchor::tiles::TileMap;
use windlass_hybrid::anchor::{AnchorHeader, AnchorOrigin};
use windlass_media::{
    Anchor, AnchorCodecId, AnchorSource, EnhancerOutput, Epoch, Layer, PublisherKnobs, StageTimes,
};

use super::*;
use crate::api::{Answer, DetailKnobs, Offer, OfferError, Publish, Subscribe, UplinkReport};

const STEP: Duration = Duration::from_millis(5);
const PUBLISHER: ParticipantId = ParticipantId(1);
const SUBSCRIBER: ParticipantId = ParticipantId(2);
const ENHANCED: AnchorSource = AnchorSource::Enhanced;

struct Client {
    rtc: Rtc,
    address: SocketAddr,
    due: Instant,
    received: Vec<RtpPacket>,
    messages: Vec<Vec<u8>>,
    /// The last channel that opened.
    channel: Option<ChannelId>,
    key_frame_requests: usize,
    /// Every n-th RTP packet to it is lost; 0 for none.
    loss: usize,
    rtp_seen: usize,
}

struct World {
    core: Core,
    sfu: SocketAddr,
    now: Instant,
    clients: Vec<Client>,
    taps: Vec<TapInput>,
    events: HashMap<ParticipantId, Vec<SfuEvent>>,
    camera: Camera,
}

/// Three layers of fake VP9: valid descriptors and key frame headers, and nothing behind them.
#[derive(Default)]
struct Camera {
    mid: Option<Mid>,
    /// A frame of 1280 × 720 for every tenth of the layers', while the publisher is asked for it.
    detail: Option<Mid>,
    detail_seq: u64,
    detail_keys: usize,
    detail_key_wanted: bool,
    layers: Vec<Layer>,
    seq: [u64; 3],
    number: u32,
    key_wanted: bool,
    due: Option<Instant>,
}

impl World {
    fn new(config: SfuConfig) -> World {
        let now = Instant::now();
        let sfu: SocketAddr = "192.0.2.1:7881".parse().expect("address");
        World {
            core: Core::new(config, sfu, now),
            sfu,
            now,
            clients: Vec::new(),
            taps: Vec::new(),
            events: HashMap::new(),
            camera: Camera::default(),
        }
    }

    fn client(&mut self, id: ParticipantId) -> usize {
        let address = SocketAddr::new([192, 0, 2, 10].into(), 4000 + id.0 as u16);
        let mut rtc = Rtc::builder()
            .clear_codecs()
            .enable_vp9(true)
            .enable_opus(true, false)
            .set_rtp_mode(true)
            .set_extension(12, str0m::rtp::Extension::with_serializer(dd::URI, dd::Serializer))
            .build(self.now);
        rtc.add_local_candidate(Candidate::host(address, "udp").expect("candidate"));
        let due = self.now;
        let (received, messages) = (Vec::new(), Vec::new());
        self.clients.push(Client {
            rtc,
            address,
            due,
            received,
            messages,
            channel: None,
            key_frame_requests: 0,
            loss: 0,
            rtp_seen: 0,
        });
        self.clients.len() - 1
    }

    /// Publishes three layers; returns the track.
    fn publish(&mut self) -> TrackId {
        let at = self.client(PUBLISHER);
        let mut simulcast = Simulcast::new();
        for layer in Layer::ALL {
            simulcast.add_send_layer(SimulcastLayer::new(layer.rid()));
        }
        let mut api = self.clients[at].rtc.sdp_api();
        let mid = api.add_media(MediaKind::Video, Direction::SendOnly, None, None, Some(simulcast));
        let (sdp, pending) = api.apply().expect("offer");
        let publish = vec![Publish {
            mid: mid.to_string(),
            kind: Kind::Video,
            name: "camera".into(),
            detail_of: None,
        }];
        let offer = Offer { sdp: sdp.to_sdp_string(), publish, subscribe: Vec::new() };
        let answer = self.core.offer(self.now, PUBLISHER, &offer).expect("answer");
        self.accept(at, pending, &answer);
        self.camera = Camera {
            mid: Some(mid),
            layers: Layer::ALL.into(),
            due: Some(self.now),
            key_wanted: true,
            ..Camera::default()
        };
        answer.tracks[0].1
    }

    fn accept(&mut self, at: usize, pending: str0m::change::SdpPendingOffer, answer: &Answer) {
        let answer = SdpAnswer::from_sdp_string(&answer.sdp).expect("answer");
        self.clients[at].rtc.sdp_api().accept_answer(pending, answer).expect("accepted");
        self.clients[at].due = self.now;
    }

    fn subscribe(&mut self, id: ParticipantId, track: TrackId) -> usize {
        let at = self.client(id);
        let mut api = self.clients[at].rtc.sdp_api();
        let mid = api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
        api.add_channel("control".into());
        let (sdp, pending) = api.apply().expect("offer");
        let subscribe = vec![Subscribe { mid: mid.to_string(), track }];
        let offer = Offer { sdp: sdp.to_sdp_string(), publish: Vec::new(), subscribe };
        let answer = self.core.offer(self.now, id, &offer).expect("answer");
        self.accept(at, pending, &answer);
        at
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now += STEP;
            self.shoot();
            for at in 0..self.clients.len() {
                if self.clients[at].due <= self.now {
                    let _ = self.clients[at].rtc.handle_input(Input::Timeout(self.now));
                    self.drain(at);
                }
            }
            self.core.advance(self.now);
            self.deliver();
        }
    }

    /// Publishes a detail stream beside the camera's layers.
    fn publish_detail(&mut self) {
        let camera = self.camera.mid.expect("published");
        let mut api = self.clients[0].rtc.sdp_api();
        let mid = api.add_media(MediaKind::Video, Direction::SendOnly, None, None, None);
        api.add_channel(regions::CHANNEL.into());
        let (sdp, pending) = api.apply().expect("offer");
        let publish = |mid: Mid, detail_of| Publish {
            mid: mid.to_string(),
            kind: Kind::Video,
            name: "camera".into(),
            detail_of,
        };
        let publish = vec![publish(camera, None), publish(mid, Some(camera.to_string()))];
        let offer = Offer { sdp: sdp.to_sdp_string(), publish, subscribe: Vec::new() };
        let answer = self.core.offer(self.now, PUBLISHER, &offer).expect("answer");
        assert_eq!(answer.tracks.len(), 1, "it is no track");
        self.accept(0, pending, &answer);
        self.camera.detail = Some(mid);
        self.camera.detail_key_wanted = true;
    }

    /// What the publisher was told about its detail stream.
    fn knobs(&self) -> Vec<Option<DetailKnobs>> {
        let events = self.events.get(&PUBLISHER).into_iter().flatten();
        let told = events.filter_map(|e| match e {
            SfuEvent::Knobs { detail, .. } => Some(*detail),
            _ => None,
        });
        told.collect()
    }

    /// The detail stream's frame of the camera's frame that has just been shot, in one packet.
    fn shoot_detail(&mut self) {
        let asked = self.knobs().last().copied().flatten().is_some();
        let Some(mid) = self.camera.detail.filter(|_| asked) else { return };
        let key = std::mem::take(&mut self.camera.detail_key_wanted);
        self.camera.detail_keys += usize::from(key);
        let mut payload = vec![0x8c | if key { 0 } else { 0x40 }];
        payload.extend([0x80, self.camera.number as u8]);
        if key {
            payload.extend([0x82, 0x49, 0x83, 0x42]);
            let size = 0x04ff_u64 << 16 | 0x02cf;
            payload.extend((size << 28 | 0x2000_0000_0000_0000).to_be_bytes());
        }
        payload.extend(self.camera.number.to_be_bytes());
        self.camera.detail_seq += 1;
        let timestamp = 123_456u32.wrapping_add(self.camera.number * 3150);
        let rtc = &mut self.clients[0].rtc;
        let pt =
            rtc.codec_config().find(|p| p.spec().format.profile_id == Some(0)).expect("VP9").pt();
        let mut api = rtc.direct_api();
        let stream = api.stream_tx_by_mid(mid, None).expect("stream");
        let write = RtpWrite::new(pt, self.camera.detail_seq.into(), timestamp, self.now, payload);
        stream.write_rtp(write.marker(true).nackable(true));
        let _ = rtc.handle_input(Input::Timeout(self.now));
        self.drain(0);
    }

    /// The camera's next frame, every 35 ms, two packets a layer.
    fn shoot(&mut self) {
        let Some(mid) =
            self.camera.mid.filter(|_| self.camera.due.is_some_and(|due| due <= self.now))
        else {
            return;
        };
        if !self.clients[0].rtc.is_connected() {
            return;
        }
        self.camera.due = Some(self.now + Duration::from_millis(35));
        self.camera.number += 1;
        let key = std::mem::take(&mut self.camera.key_wanted);
        let id = (self.camera.number & 0x7fff) as u16 | 0x8000;
        for layer in self.camera.layers.clone() {
            for part in 0..2u8 {
                let flags = 0x80 | if key { 0 } else { 0x40 } | if part == 0 { 8 } else { 4 };
                let [high, low] = id.to_be_bytes();
                let mut payload = vec![flags, high, low];
                if key && part == 0 {
                    let shift = 2 - layer as u32;
                    let size =
                        u64::from((1280u32 >> shift) - 1) << 16 | u64::from((720u32 >> shift) - 1);
                    payload.extend([0x82, 0x49, 0x83, 0x42]);
                    payload.extend((size << 28 | 0x2000_0000_0000_0000).to_be_bytes());
                }
                // What is behind the headers names its frame and its layer.
                payload.extend(vec![layer as u8; 200 << layer as u32]);
                payload.extend(self.camera.number.to_be_bytes());
                payload.push(layer as u8);
                let seq = 70 + self.camera.seq[layer as usize];
                self.camera.seq[layer as usize] += 1;
                // Each layer has a timeline of its own, and wraps around soon.
                let timestamp = (u32::MAX - 20_000)
                    .wrapping_add(self.camera.number * 3150 + layer as u32 * 777);
                let rtc = &mut self.clients[0].rtc;
                let pt = rtc
                    .codec_config()
                    .find(|p| p.spec().format.profile_id == Some(0))
                    .expect("VP9")
                    .pt();
                let mut api = rtc.direct_api();
                let stream =
                    api.stream_tx_by_mid(mid, Some(Rid::from(layer.rid()))).expect("stream");
                stream.write_rtp(
                    RtpWrite::new(pt, seq.into(), timestamp, self.now, payload)
                        .marker(part == 1)
                        .nackable(true),
                );
                let _ = rtc.handle_input(Input::Timeout(self.now));
                self.drain(0);
            }
        }
        if self.camera.number.is_multiple_of(10) {
            self.shoot_detail();
        }
    }

    fn drain(&mut self, at: usize) {
        loop {
            let client = &mut self.clients[at];
            match client.rtc.poll_output().expect("client") {
                RtcOutput::Timeout(due) => return client.due = due,
                RtcOutput::Transmit(t) => self.core.datagram(self.now, client.address, &t.contents),
                RtcOutput::Event(Event::RtpPacket(packet)) => client.received.push(packet),
                RtcOutput::Event(Event::ChannelData(ChannelData { data, .. })) => {
                    client.messages.push(data);
                }
                RtcOutput::Event(Event::ChannelOpen(id, _)) => client.channel = Some(id),
                RtcOutput::Event(Event::KeyframeRequest(request)) => {
                    if Some(request.mid) == self.camera.detail {
                        self.camera.detail_key_wanted = true;
                    } else {
                        client.key_frame_requests += 1;
                        self.camera.key_wanted = true;
                    }
                }
                RtcOutput::Event(_) => {}
            }
        }
    }

    fn deliver(&mut self) {
        while let Some(output) = self.core.poll() {
            match output {
                Output::Transmit { to, data } => {
                    let Some(at) = self.clients.iter().position(|c| c.address == to) else {
                        continue;
                    };
                    let client = &mut self.clients[at];
                    if (128..192).contains(&data[0]) && !(192..=223).contains(&data[1]) {
                        client.rtp_seen += 1;
                        if client.loss > 0 && client.rtp_seen.is_multiple_of(client.loss) {
                            continue;
                        }
                    }
                    let contents = data.as_slice().try_into().expect("datagram");
                    let receive = Receive {
                        proto: Protocol::Udp,
                        source: self.sfu,
                        destination: client.address,
                        contents,
                    };
                    client.rtc.handle_input(Input::Receive(self.now, receive)).expect("client");
                    self.drain(at);
                }
                Output::Event(id, event) => self.events.entry(id).or_default().push(event),
                Output::Tap(input) => self.taps.push(input),
            }
        }
    }

    fn rungs(&self, id: ParticipantId) -> Vec<(Rung, u16, u16)> {
        let events = self.events.get(&id).into_iter().flatten();
        let told = events.filter_map(|e| match e {
            SfuEvent::RungChanged { rung, epoch, width, .. } => Some((*rung, *epoch, *width)),
            _ => None,
        });
        told.collect()
    }

    fn last_tapped(&self) -> windlass_media::TapFrame {
        let frames = self.taps.iter().rev();
        let mut frames =
            frames.filter_map(|t| if let TapInput::Frame(f) = t { Some(f.clone()) } else { None });
        frames.next().expect("tapped frame")
    }
}

fn config() -> SfuConfig {
    SfuConfig { congestion_control: false, ..SfuConfig::default() }
}

/// A publisher and a subscriber in one room, connected.
fn call() -> (World, TrackId, usize) {
    let mut world = World::new(config());
    world.core.join(world.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = world.publish();
    world.run(Duration::from_secs(2));
    let (participants, tracks) =
        world.core.join(world.now, "room", SUBSCRIBER, JoinOptions::default()).expect("joined");
    assert_eq!((participants, tracks[0].track), (vec![PUBLISHER], track));
    let at = world.subscribe(SUBSCRIBER, track);
    world.run(Duration::from_secs(3));
    (world, track, at)
}

/// Numbers without holes, time that never runs back, and one timestamp a frame.
fn assert_continuous(packets: &[RtpPacket]) {
    let mut ordered: Vec<_> = packets.iter().collect();
    ordered.sort_by_key(|p| *p.seq_no);
    for pair in ordered.windows(2) {
        assert_eq!(*pair[1].seq_no, *pair[0].seq_no + 1);
        let step = pair[1].header.timestamp.wrapping_sub(pair[0].header.timestamp) as i32;
        assert!(step >= 0, "time runs back by {step}");
        assert_eq!(step == 0, !pair[0].header.marker);
    }
}

#[test]
fn a_subscriber_gets_one_continuous_stream_over_layer_switches() {
    let (mut world, track, at) = call();
    assert!(!world.clients[at].received.is_empty(), "{:?}", world.core.stats());
    for max in [Rung::Q, Rung::F, Rung::H] {
        world.core.set_max_rung(world.now, SUBSCRIBER, track, max);
        world.run(Duration::from_secs(2));
    }
    assert_continuous(&world.clients[at].received);
    let told = world.rungs(SUBSCRIBER);
    let plain: Vec<_> = told.iter().map(|t| (t.0.layer(), t.2)).collect();
    assert_eq!(plain, [(Layer::F, 1280), (Layer::Q, 320), (Layer::F, 1280), (Layer::H, 640)]);
    assert!(told.windows(2).all(|w| w[0].1 + 1 == w[1].1), "each switch begins an epoch");
    let last = world.clients[at].received.last().expect("packet");
    assert_eq!(last.payload.last(), Some(&(Layer::H as u8)));
    assert_eq!(world.core.stats().counters.layer_switches, 4);
}

#[test]
fn key_frames_are_asked_for_until_they_come_and_not_more_often() {
    let (mut world, track, _) = call();
    let before = world.clients[0].key_frame_requests;
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::Q);
    world.run(Duration::from_secs(2));
    assert_eq!(world.clients[0].key_frame_requests, before + 1);
}

#[test]
fn a_subscribers_wish_for_a_key_frame_reaches_the_publisher() {
    let (mut world, _, at) = call();
    let before = world.clients[0].key_frame_requests;
    let ssrc = world.clients[at].received[0].header.ssrc;
    for _ in 0..5 {
        let mut api = world.clients[at].rtc.direct_api();
        api.stream_rx(&ssrc).expect("stream").request_keyframe(KeyframeRequestKind::Pli);
        world.clients[at].due = world.now;
        world.run(Duration::from_millis(20));
    }
    world.run(Duration::from_millis(300));
    let asked = world.clients[0].key_frame_requests - before;
    assert!((1..=2).contains(&asked), "{asked} requests for five wishes in 100 ms");
    assert!(world.core.stats().counters.keyframe_requests_in >= 1);
}

#[test]
fn what_the_path_loses_is_sent_again() {
    let (mut world, _, at) = call();
    let before = world.clients[at].received.len();
    world.clients[at].loss = 10;
    world.run(Duration::from_secs(3));
    world.clients[at].loss = 0;
    world.run(Duration::from_secs(1));
    assert!(world.clients[at].received.len() > before + 150);
    assert_continuous(&world.clients[at].received);
}

fn anchor_of(frame: &windlass_media::TapFrame, now: Instant) -> EnhancerOutput {
    assert!(now >= frame.arrival);
    EnhancerOutput::Anchor(Anchor {
        stream: frame.stream,
        epoch: frame.epoch,
        rtp_timestamp: frame.rtp_timestamp,
        arrival: frame.arrival,
        source: AnchorSource::Enhanced,
        codec: 1,
        tiled: false,
        width: 1280,
        height: 720,
        beyond_prior: true,
        payload: vec![9; 20_000].into(),
        times: StageTimes::default(),
    })
}

#[test]
fn an_anchor_arrives_with_the_timestamp_of_its_frame() {
    let (mut world, track, at) = call();
    for max in [Rung::QPlus, Rung::HPlus] {
        world.core.set_max_rung(world.now, SUBSCRIBER, track, max);
        world.run(Duration::from_secs(2));
        assert_eq!(world.rungs(SUBSCRIBER).last().map(|r| r.0), Some(max));
        world.clients[at].messages.clear();
        let frame = world.last_tapped();
        assert_eq!(frame.data.last(), Some(&(max.layer() as u8)), "the tap follows the rung");
        world.core.enhancer(world.now, anchor_of(&frame, world.now));
        world.run(Duration::from_millis(100));
        let messages = &world.clients[at].messages;
        assert_eq!(messages.len(), 2, "{:?}", world.core.stats());
        let (header, _) = AnchorHeader::parse(&messages[0]).expect("anchor message");
        assert_eq!(header.stream, frame.stream.0);
        assert_eq!(Some(header.epoch), world.rungs(SUBSCRIBER).last().map(|r| r.1));
        let name = |data: &[u8]| data[data.len() - 5..].to_vec();
        let packets = world.clients[at]
            .received
            .iter()
            .filter(|p| p.header.timestamp == header.rtp_timestamp);
        let names: Vec<_> = packets.map(|p| name(&p.payload)).collect();
        assert_eq!(
            names,
            [name(&frame.data), name(&frame.data)],
            "both packets of the anchor's frame"
        );
    }
    assert_eq!(world.core.stats().counters.anchors_out, 2);
}

#[test]
fn an_anchor_that_is_late_or_of_an_unknown_frame_is_dropped_and_counted() {
    let (mut world, track, at) = call();
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::QPlus);
    world.run(Duration::from_secs(2));
    let frame = world.last_tapped();
    world.core.enhancer(world.now + Duration::from_secs(1), anchor_of(&frame, world.now));
    let strange = windlass_media::TapFrame { rtp_timestamp: 1, ..frame.clone() };
    world.core.enhancer(world.now, anchor_of(&strange, world.now));
    let gone = windlass_media::TapFrame { epoch: Epoch(999), ..frame };
    world.core.enhancer(world.now, anchor_of(&gone, world.now));
    world.run(Duration::from_millis(100));
    assert!(world.clients[at].messages.is_empty());
    let counters = world.core.stats().counters;
    assert_eq!((counters.anchors_dropped_late, counters.anchors_dropped_unmapped), (1, 2));
}

#[test]
fn a_tap_runs_while_somebody_holds_an_enhanced_rung_and_no_longer() {
    let (mut world, track, _) = call();
    assert_eq!(world.core.stats().taps, 0, "the full layer has no anchors");
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::HPlus);
    world.run(Duration::from_secs(1));
    assert_eq!(world.core.stats().taps, 1);
    let frames = world.taps.iter().filter(|t| matches!(t, TapInput::Frame(_))).count();
    assert!(frames > 10, "{frames}");
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::H);
    world.run(Duration::from_secs(1));
    assert_eq!(world.core.stats().taps, 0);
    assert!(matches!(world.taps.last(), Some(TapInput::Stop { .. })));
}

#[test]
fn a_publisher_that_leaves_takes_its_tracks_along() {
    let (mut world, track, at) = call();
    world.core.leave(world.now, PUBLISHER);
    world.deliver();
    let events = &world.events[&SUBSCRIBER];
    let tail: Vec<_> = events.iter().rev().take(2).collect();
    assert_eq!(*tail[1], SfuEvent::TrackRemoved { track });
    assert_eq!(*tail[0], SfuEvent::ParticipantLeft { participant: PUBLISHER });
    let received = world.clients[at].received.len();
    world.camera.mid = None;
    world.run(Duration::from_secs(1));
    assert_eq!(world.clients[at].received.len(), received);
    assert_eq!(world.core.stats().tracks, 0);
    world.core.leave(world.now, SUBSCRIBER);
    let stats = world.core.stats();
    assert_eq!((stats.rooms, stats.participants, world.core.addresses.len()), (0, 0, 0));
}

#[test]
fn a_muted_track_is_silent_and_comes_back_with_a_key_frame() {
    let (mut world, track, at) = call();
    world.core.set_muted(world.now, PUBLISHER, track, true);
    world.run(Duration::from_millis(100));
    let received = world.clients[at].received.len();
    world.run(Duration::from_secs(1));
    assert_eq!(world.clients[at].received.len(), received);
    assert!(world.events[&SUBSCRIBER].contains(&SfuEvent::TrackMuted { track, muted: true }));
    world.core.set_muted(world.now, PUBLISHER, track, false);
    world.run(Duration::from_secs(1));
    assert!(world.clients[at].received.len() > received + 20);
    assert_eq!(
        world.clients[at].received[received].payload[0] & 0x48,
        8,
        "a key frame begins here"
    );
    assert_continuous(&world.clients[at].received);
}

#[test]
fn somebody_else_cannot_mute_a_track() {
    let (mut world, track, _) = call();
    world.core.set_muted(world.now, SUBSCRIBER, track, true);
    assert!(!world.core.tracks[&track].info.muted);
}

#[test]
fn limits_are_kept() {
    let limits = crate::Limits {
        rooms: 2,
        participants: 3,
        participants_per_room: 2,
        ..crate::Limits::default()
    };
    let mut world = World::new(SfuConfig { limits, ..config() });
    let now = world.now;
    let mut join = |room: &str, id, loopback| {
        world
            .core
            .join(now, room, ParticipantId(id), JoinOptions { loopback, ..JoinOptions::default() })
            .err()
    };
    assert_eq!(join("a", 1, false), None);
    assert_eq!(join("a", 1, false), Some(JoinError::AlreadyJoined));
    assert_eq!(join("a", 2, false), None);
    assert_eq!(join("a", 3, false), Some(JoinError::RoomFull));
    assert_eq!(join("b", 3, true), None);
    assert_eq!(join("b", 4, false), Some(JoinError::ServerFull));
    world.core.leave(now, ParticipantId(2));
    let mut join = |room: &str, id, loopback| {
        world
            .core
            .join(now, room, ParticipantId(id), JoinOptions { loopback, ..JoinOptions::default() })
            .err()
    };
    assert_eq!(join("b", 4, false), Some(JoinError::RoomFull), "a loopback room is for one");
    assert_eq!(join("c", 4, false), Some(JoinError::ServerFull));
}

#[test]
fn offers_that_do_not_fit_are_refused_by_type_and_change_nothing() {
    let (mut world, track, _) = call();
    let now = world.now;
    let mut refused =
        |offer: Offer| world.core.offer(now, SUBSCRIBER, &offer).expect_err("refused");
    let sdp = |text: &str| Offer { sdp: text.into(), ..Offer::default() };
    assert!(matches!(refused(sdp("v=0")), OfferError::BadSdp(_)));
    assert!(matches!(refused(sdp("")), OfferError::BadSdp(_)));
    assert_eq!(refused(sdp(&"x".repeat(300_000))), OfferError::TooLarge);
    let subscribe = vec![Subscribe { mid: "0".into(), track: TrackId(77) }];
    assert_eq!(
        refused(Offer { subscribe, ..Offer::default() }),
        OfferError::UnknownTrack { track: TrackId(77) }
    );
    let subscribe = vec![Subscribe { mid: "nowhere".into(), track }];
    assert_eq!(
        refused(Offer { subscribe, ..Offer::default() }),
        OfferError::BadMid { mid: "nowhere".into() }
    );
    let h264 =
        "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:x\r\na=recvonly\r\na=rtpmap:96 H264/90000\r\n";
    let subscribe = vec![Subscribe { mid: "x".into(), track }];
    assert_eq!(refused(Offer { subscribe, ..sdp(h264) }), OfferError::NoCodec { mid: "x".into() });
    assert_eq!(
        world.core.offer(now, ParticipantId(9), &Offer::default()),
        Err(OfferError::NotJoined)
    );
    let received = world.clients[1].received.len();
    world.run(Duration::from_secs(1));
    assert!(world.clients[1].received.len() > received + 20);
}

#[test]
fn garbage_on_the_wire_is_counted_and_hurts_nobody() {
    let (mut world, _, at) = call();
    let own = world.clients[0].address;
    let mut seed = 7u32;
    for i in 0..3000usize {
        let data: Vec<u8> = (0..i % 120)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            })
            .collect();
        let from = if i % 2 == 0 { own } else { "203.0.113.5:99".parse().expect("address") };
        world.core.datagram(world.now, from, &data);
        // The same with a first byte of each protocol.
        if let Some((first, rest)) = data.split_first() {
            let head = [0, 22, 128, 144][usize::from(*first) % 4];
            world.core.datagram(world.now, from, &[&[head], rest].concat());
        }
    }
    let received = world.clients[at].received.len();
    world.run(Duration::from_secs(1));
    assert!(world.clients[at].received.len() > received + 20);
    let counters = world.core.stats().counters;
    assert!(counters.datagrams_malformed > 0 && counters.datagrams_unknown > 0);
    assert_eq!(world.core.stats().connected, 2);
}

#[test]
fn malformed_vp9_of_a_publisher_is_counted_and_not_forwarded() {
    let (mut world, _, at) = call();
    let mid = world.camera.mid.expect("camera");
    let rtc = &mut world.clients[0].rtc;
    let pt = rtc.codec_config().find(|p| p.spec().format.profile_id == Some(0)).expect("VP9").pt();
    let seq = 70 + world.camera.seq[2];
    world.camera.seq[2] += 1;
    let mut api = rtc.direct_api();
    let stream = api.stream_tx_by_mid(mid, Some(Rid::from("f"))).expect("stream");
    stream.write_rtp(RtpWrite::new(pt, seq.into(), 5, world.now, vec![0x90u8]).marker(true));
    world.clients[0].due = world.now;
    world.run(Duration::from_secs(1));
    assert_eq!(world.core.stats().counters.vp9_malformed, 1);
    assert!(world.clients[at].received.iter().all(|p| p.payload.len() > 1));
}

#[test]
fn a_connection_that_never_comes_is_given_up() {
    let mut world = World::new(config());
    world.core.join(world.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    world.publish();
    world.clients.clear();
    world.camera.mid = None;
    world.run(Duration::from_secs(40));
    assert_eq!(world.core.stats().participants, 0);
    assert_eq!(world.events[&PUBLISHER].last(), Some(&SfuEvent::Disconnected));
    let counters = world.core.stats().counters;
    assert_eq!(counters.peers_timed_out + counters.peers_failed, 1);
}

#[test]
fn a_client_that_vanishes_is_removed() {
    let (mut world, track, _) = call();
    world.clients.remove(0);
    world.camera.mid = None;
    world.run(Duration::from_secs(25));
    assert!(world.events[&SUBSCRIBER].contains(&SfuEvent::TrackRemoved { track }));
    assert_eq!(world.events[&PUBLISHER].last(), Some(&SfuEvent::Disconnected));
    assert_eq!(world.core.stats().participants, 1);
}

#[test]
fn a_layer_that_ends_is_replaced_and_not_asked_for_key_frames() {
    let (mut world, _, at) = call();
    world.camera.layers = vec![Layer::Q];
    world.run(Duration::from_secs(3));
    assert_eq!(world.rungs(SUBSCRIBER).last().map(|r| r.0), Some(Rung::QPlus));
    assert_continuous(&world.clients[at].received);
    let asked = world.core.stats().counters.keyframe_requests_out;
    world.run(Duration::from_secs(5));
    assert_eq!(world.core.stats().counters.keyframe_requests_out, asked);
}

#[test]
fn a_single_encoding_is_named_by_its_first_key_frame() {
    let (mut world, track, _) = call();
    let track = world.core.tracks.get_mut(&track).expect("track");
    // 320x180; the header of a key frame behind a descriptor of one byte.
    let key = [0x08, 0x82, 0x49, 0x83, 0x42, 0x20, 0x13, 0xf0, 0x0b, 0x30];
    assert_eq!(
        track.layer_of(peer::Encoding::Single, &[0x48, 0x86]),
        None,
        "nothing is known before it"
    );
    assert_eq!(track.layer_of(peer::Encoding::Single, &key), Some(Layer::Q));
    assert_eq!(track.layer_of(peer::Encoding::Single, &[0x48, 0x86]), Some(Layer::Q));
    assert_eq!(track.layer_of(peer::Encoding::Unknown, &key), None);
}

#[test]
fn a_loopback_room_gives_back_ones_own_track() {
    let mut world = World::new(config());
    world
        .core
        .join(
            world.now,
            "mirror",
            PUBLISHER,
            JoinOptions { loopback: true, ..JoinOptions::default() },
        )
        .expect("joined");
    let track = world.publish();
    world.run(Duration::from_secs(1));
    assert!(
        matches!(&world.events[&PUBLISHER][0], SfuEvent::TrackAdded(info) if info.track == track)
    );
    let mid = world.camera.mid.expect("camera").to_string();
    let mut api = world.clients[0].rtc.sdp_api();
    let receiving = api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
    let (sdp, pending) = api.apply().expect("offer");
    let publish = vec![Publish { mid, kind: Kind::Video, name: "camera".into(), detail_of: None }];
    let subscribe = vec![Subscribe { mid: receiving.to_string(), track }];
    let offer = Offer { sdp: sdp.to_sdp_string(), publish, subscribe };
    let answer = world.core.offer(world.now, PUBLISHER, &offer).expect("answer");
    assert_eq!(answer.tracks[0].1, track, "the track stays the same over a new offer");
    world.accept(0, pending, &answer);
    world.run(Duration::from_secs(2));
    assert!(world.clients[0].received.len() > 50);
    assert_continuous(&world.clients[0].received);
}

#[test]
fn the_payload_of_other_subscribers_is_not_touched_by_rewriting() {
    let (mut world, track, at) = call();
    let third = ParticipantId(3);
    world.core.join(world.now, "room", third, JoinOptions::default()).expect("joined");
    let late = world.subscribe(third, track);
    world.run(Duration::from_secs(2));
    assert_continuous(&world.clients[at].received);
    assert_continuous(&world.clients[late].received);
    let ids = |at: usize| -> Vec<u16> {
        let frames = world.clients[at].received.iter().filter(|p| p.header.marker);
        frames.map(|p| u16::from_be_bytes([p.payload[1], p.payload[2]]) & 0x7fff).collect()
    };
    for at in [at, late] {
        assert!(ids(at).windows(2).all(|w| w[1] == w[0] + 1), "{:?}", ids(at));
    }
}

#[test]
fn a_subscriber_that_cannot_decode_the_anchors_gets_plain_rungs_and_is_counted() {
    let mut world = World::new(SfuConfig { anchor_codec: AnchorCodecId::Htj2k, ..config() });
    world.core.join(world.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = world.publish();
    world.run(Duration::from_millis(500));
    let third = ParticipantId(3);
    let both = JoinOptions {
        anchor_codecs: AnchorCodecId::ALL.into_iter().collect(),
        ..JoinOptions::default()
    };
    world.core.join(world.now, "room", SUBSCRIBER, JoinOptions::default()).expect("joined");
    world.core.join(world.now, "room", third, both).expect("joined");
    for id in [SUBSCRIBER, third] {
        world.subscribe(id, track);
        world.core.set_max_rung(world.now, id, track, Rung::HPlus);
    }
    world.run(Duration::from_secs(2));
    assert_eq!(world.rungs(SUBSCRIBER).last().expect("told").0, Rung::H);
    assert_eq!(world.rungs(third).last().expect("told").0, Rung::HPlus);
    assert_eq!(world.core.counters.joins_without_codec, 2, "publisher and first subscriber");
}

#[test]
fn whoever_begins_to_get_anchors_or_has_lost_one_is_to_get_a_whole_one() {
    let (mut world, track, _) = call();
    let wanted = |world: &World| {
        let whole = |t: &&TapInput| matches!(t, TapInput::WholeAnchor { .. });
        world.taps.iter().filter(whole).count()
    };
    world.core.whole_anchor_wanted(world.now, SUBSCRIBER, track, ENHANCED);
    world.run(Duration::from_millis(100));
    assert_eq!(wanted(&world), 0, "a plain rung has no anchors");
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::HPlus);
    world.run(Duration::from_secs(1));
    assert_eq!(wanted(&world), 1, "it begins to get anchors");
    world.core.whole_anchor_wanted(world.now, PUBLISHER, track, ENHANCED);
    for _ in 0..100 {
        world.core.whole_anchor_wanted(world.now, SUBSCRIBER, track, ENHANCED);
    }
    world.run(Duration::from_millis(100));
    assert_eq!(wanted(&world), 2, "it lost one, and says so often; the publisher gets none");
    assert_eq!(world.core.stats().counters.whole_anchor_requests_in, 102);
}

/// The pictures at HR size that were handed on: their low timestamps.
fn captured(world: &World) -> Vec<Option<u32>> {
    let captured = world.taps.iter().filter_map(|t| match t {
        TapInput::Captured(frame) => Some(frame.low_timestamp),
        _ => None,
    });
    captured.collect()
}

#[test]
fn the_layer_above_a_tapped_one_is_copied_and_meets_it_to_the_tick() {
    let (mut world, track, _) = call();
    assert_eq!(captured(&world), []);
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::HPlus);
    world.run(Duration::from_secs(4));
    let low: Vec<u32> = world
        .taps
        .iter()
        .filter_map(|t| if let TapInput::Frame(f) = t { Some(f.rtp_timestamp) } else { None })
        .collect();
    let met = captured(&world);
    assert!(met.len() > 80 && met[..8].iter().any(Option::is_some), "{met:?}");
    let known: Vec<u32> = met.into_iter().skip(8).map(|at| at.expect("aligned")).collect();
    assert!(known.iter().all(|at| low.contains(at)), "{known:?}");
    assert!(known.windows(2).all(|w| w[1] == w[0].wrapping_add(3150)), "each frame its own");
    // Whoever can carry the layer itself has no use for it.
    world.taps.clear();
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::F);
    world.run(Duration::from_secs(1));
    assert!(matches!(world.taps.last(), Some(TapInput::Stop { .. })));
}

#[test]
fn a_layer_above_that_is_no_longer_sent_ends_its_copy_alone() {
    let (mut world, track, _) = call();
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::HPlus);
    world.run(Duration::from_secs(2));
    world.camera.layers = vec![Layer::Q, Layer::H];
    world.run(Duration::from_secs(2));
    let stops = world.taps.iter().filter(|t| matches!(t, TapInput::CaptureStop { .. })).count();
    assert_eq!((stops, world.core.stats().taps), (1, 1));
    assert!(matches!(world.taps.last(), Some(TapInput::Frame(_))));
}

/// A call whose publisher sends `q` and `h` and can send a detail stream; the subscriber can decode it.
fn detailed_call() -> (World, TrackId, usize) {
    let mut world = World::new(config());
    world.core.join(world.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = world.publish();
    world.camera.layers = vec![Layer::Q, Layer::H];
    world.publish_detail();
    world.run(Duration::from_secs(2));
    let anchor_codecs = AnchorCodecId::ALL.into_iter().collect();
    let options = JoinOptions { anchor_codecs, ..JoinOptions::default() };
    world.core.join(world.now, "room", SUBSCRIBER, options).expect("joined");
    let at = world.subscribe(SUBSCRIBER, track);
    (world, track, at)
}

/// The anchors of a detail stream that a client was sent, and the numbers of the camera frames that they show.
fn detail_anchors(world: &World, at: usize) -> Vec<(AnchorHeader, u32)> {
    let parsed = world.clients[at].messages.iter().map(|m| AnchorHeader::parse(m).expect("anchor"));
    let pictures = parsed.filter(|(header, _)| header.codec == AnchorCodecId::Vp9Pictures.id());
    let number = |payload: &[u8]| {
        u32::from_be_bytes(payload[payload.len() - 4..].try_into().expect("four bytes"))
    };
    pictures.map(|(header, payload)| (header, number(payload))).collect()
}

#[test]
fn frames_of_a_detail_stream_meet_their_camera_frame_at_the_subscriber() {
    let (mut world, _, at) = detailed_call();
    assert_eq!(world.knobs(), [], "nobody has a use for it yet");
    world.run(Duration::from_secs(10));
    assert_eq!(world.knobs().len(), 1);
    let shown: HashMap<u32, u32> = world.clients[at]
        .received
        .iter()
        .filter(|p| p.payload.len() > 5)
        .map(|p| {
            let end = p.payload.len() - 1;
            let number = p.payload[end - 4..end].try_into().expect("four bytes");
            (p.header.timestamp, u32::from_be_bytes(number))
        })
        .collect();
    let anchors = detail_anchors(&world, at);
    let met: Vec<_> =
        anchors.iter().filter_map(|(h, n)| Some((*shown.get(&h.rtp_timestamp)?, *n))).collect();
    assert!(met.len() >= 15, "{} of {}", met.len(), anchors.len());
    assert!(met.iter().all(|(low, detail)| low == detail), "{met:?}");
    assert!(anchors.iter().all(|(h, _)| (h.width, h.height) == (1280, 720) && !h.beyond_prior));
    assert!(anchors.iter().all(|(h, _)| h.source == AnchorOrigin::Captured));
}

#[test]
fn a_detail_stream_is_asked_for_while_it_is_of_use() {
    let (mut world, track, _) = detailed_call();
    let knobs = world.core.config.detail;
    world.run(Duration::from_secs(3));
    assert_eq!(world.knobs(), [knobs]);
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::H);
    world.run(Duration::from_secs(5));
    assert_eq!(world.knobs(), [knobs, None], "nobody holds an enhanced rung");
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::HPlus);
    world.run(Duration::from_secs(1));
    assert_eq!(world.knobs(), [knobs, None, knobs]);
    world.camera.layers = Layer::ALL.into();
    world.run(Duration::from_secs(5));
    assert_eq!(world.knobs(), [knobs, None, knobs, None], "the layer itself is sent");
}

#[test]
fn whoever_joins_gets_the_detail_stream_without_a_key_frame_while_it_is_short() {
    let (mut world, track, _) = detailed_call();
    world.run(Duration::from_secs(5));
    let keys = world.camera.detail_keys;
    let third = ParticipantId(3);
    let anchor_codecs = AnchorCodecId::ALL.into_iter().collect();
    let options = JoinOptions { anchor_codecs, ..JoinOptions::default() };
    world.core.join(world.now, "room", third, options).expect("joined");
    let late = world.subscribe(third, track);
    world.run(Duration::from_secs(2));
    let anchors = detail_anchors(&world, late);
    assert_eq!(world.camera.detail_keys, keys);
    assert!(anchors.len() >= 15, "those since the key frame, and the new ones: {}", anchors.len());
    // One that misses a frame that others rest on is given a key frame, and that only so often.
    for _ in 0..100 {
        world.core.whole_anchor_wanted(world.now, third, track, AnchorSource::Captured);
        world.run(Duration::from_millis(20));
    }
    assert_eq!(world.camera.detail_keys, keys + 1);
}

#[test]
fn regions_are_asked_of_the_publisher_and_its_answers_reach_subscribers_at_their_frame() {
    let (mut world, track, at) = detailed_call();
    world.run(Duration::from_secs(3));
    let possible = |world: &World| {
        let said = world.taps.iter().filter_map(|t| match t {
            TapInput::Regions { possible, .. } => Some(*possible),
            _ => None,
        });
        said.collect::<Vec<_>>()
    };
    assert_eq!(possible(&world), [true]);
    let tapped = world.last_tapped();
    let tiles = Bytes::from(vec![0x0f; TileMap::wire_bytes(640, 360)]);
    let want = EnhancerOutput::WantRegions {
        stream: tapped.stream,
        size: (640, 360),
        tiles: tiles.clone(),
        bytes: 3000,
    };
    world.core.enhancer(world.now, want.clone());
    world.core.enhancer(world.now, want);
    world.run(Duration::from_millis(10));
    let asked: Vec<_> = world.events[&PUBLISHER]
        .iter()
        .filter_map(|e| match e {
            SfuEvent::Regions { track: of, request } if *of == track => Some(request.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(asked.len(), 1, "two at once are one too many");
    let header = AnchorHeader {
        codec: AnchorCodecId::Vp9Pictures.id(),
        source: AnchorOrigin::Captured,
        tiled: true,
        beyond_prior: false,
        part: 0,
        stream: 0,
        epoch: asked[0].id,
        chunk_index: 0,
        chunk_count: 1,
        age_ms: 5,
        rtp_timestamp: world.last_tapped().rtp_timestamp,
        width: 1280,
        height: 720,
    };
    let payload = [&tiles[..], &[7; 2000]].concat();
    let before = detail_anchors(&world, at).iter().filter(|(h, _)| h.tiled).count();
    let channel = world.clients[0].channel.expect("open");
    for message in
        windlass_hybrid::anchor::message::encode_chunks(&header, &payload, 1000).expect("fits")
    {
        let rtc = &mut world.clients[0].rtc;
        assert!(rtc.channel(channel).expect("channel").write(true, &message).expect("written"));
    }
    world.clients[0].due = world.now;
    world.run(Duration::from_millis(200));
    let got: Vec<_> = detail_anchors(&world, at).into_iter().filter(|(h, _)| h.tiled).collect();
    assert!(before == 0 && !got.is_empty(), "{:?}", world.core.stats().counters);
    let shown = |h: &AnchorHeader| {
        world.clients[at].received.iter().any(|p| p.header.timestamp == h.rtp_timestamp)
    };
    assert!(got.iter().all(|(h, _)| shown(h)), "their frame is the subscriber's");
    let given = world
        .taps
        .iter()
        .any(|t| matches!(t, TapInput::Given { tiles: Some(given), .. } if *given == tiles));
    assert!(given, "the enhancer hears of it");
    // What nobody asked for goes nowhere.
    world.core.take_region(world.now, PUBLISHER, &[1; 40]);
    let counters = world.core.stats().counters;
    assert_eq!((counters.regions_in, counters.regions_malformed), (1, 1));
}

#[test]
fn what_a_publisher_can_send_reaches_the_enhancer_and_what_it_shall_send_the_publisher() {
    let (mut world, track, _) = detailed_call();
    world.core.config.adapt = true;
    world.run(Duration::from_secs(3));
    let report = UplinkReport { kbps: 400.0, size: (1280, 720), fps: 30.0 };
    let uplinks = |world: &World| {
        let said = world.taps.iter().filter_map(|t| match t {
            TapInput::Uplink { layer, kbps, .. } => Some((*layer, *kbps)),
            _ => None,
        });
        said.collect::<Vec<_>>()
    };
    world.core.uplink(world.now, SUBSCRIBER, track, report);
    world.core.uplink(world.now, PUBLISHER, track, UplinkReport { kbps: f64::NAN, ..report });
    world.run(Duration::from_millis(10));
    assert_eq!(uplinks(&world), [], "another's track, and nonsense");
    world.core.uplink(world.now, PUBLISHER, track, report);
    world.run(Duration::from_millis(10));
    let told = uplinks(&world);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].0 == Layer::H && told[0].1 < 400.0,
        "what the other layer takes is left out: {told:?}"
    );
    let knobs = PublisherKnobs {
        layer: Layer::H,
        kbps: 300.0,
        fps: 15.0,
        detail: Some(DetailKnobs { kbps: 900.0, fps: 0.5 }),
    };
    let stream = world.last_tapped().stream;
    world.core.enhancer(world.now, EnhancerOutput::Knobs { stream, knobs });
    world.run(Duration::from_millis(500));
    let layers = world.events[&PUBLISHER].iter().filter_map(|e| match e {
        SfuEvent::Knobs { layer, .. } => *layer,
        _ => None,
    });
    assert_eq!(layers.collect::<Vec<_>>(), [(Layer::H, 300.0, 15.0)]);
    let most = world.core.config.detail.expect("default");
    assert_eq!(
        world.knobs().last(),
        Some(&Some(DetailKnobs { fps: 0.5, ..most })),
        "the operator's cap"
    );
    world.run(Duration::from_secs(2));
    let details = world.taps.iter().filter(|t| matches!(t, TapInput::Detail { .. })).count();
    assert!(details > 3, "the controller sees the detail stream: {details}");
}

#[test]
fn detail_streams_of_nothing_or_of_themselves_are_refused() {
    let (mut world, _, _) = detailed_call();
    let camera = world.camera.mid.expect("mid").to_string();
    let detail = world.camera.detail.expect("mid").to_string();
    for (camera_of, detail_of) in
        [(None, "x".to_owned()), (None, detail.clone()), (Some(detail.clone()), camera.clone())]
    {
        let mut api = world.clients[0].rtc.sdp_api();
        api.add_media(MediaKind::Audio, Direction::RecvOnly, None, None, None);
        let (sdp, _) = api.apply().expect("offer");
        let entry = |mid: &str, detail_of| Publish {
            mid: mid.into(),
            kind: Kind::Video,
            name: "camera".into(),
            detail_of,
        };
        let publish = vec![entry(&camera, camera_of), entry(&detail, Some(detail_of))];
        let offer = Offer { sdp: sdp.to_sdp_string(), publish, subscribe: Vec::new() };
        let refused = world.core.offer(world.now, PUBLISHER, &offer);
        assert!(matches!(refused, Err(OfferError::BadMid { .. })), "{refused:?}");
    }
}

#[test]
fn while_enhancement_is_off_nobody_holds_an_enhanced_rung() {
    let (mut world, track, _) = call();
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::HPlus);
    world.run(Duration::from_secs(1));
    let last = |world: &World| world.rungs(SUBSCRIBER).last().map(|r| r.0);
    assert_eq!((last(&world), world.core.stats().taps), (Some(Rung::HPlus), 1));
    world.core.set_enhancement(world.now, false);
    world.run(Duration::from_millis(100));
    assert_eq!((last(&world), world.core.stats().taps), (Some(Rung::H), 0));
    assert!(matches!(world.taps.last(), Some(TapInput::Stop { .. })));
    world.core.set_enhancement(world.now, true);
    world.run(Duration::from_secs(1));
    assert_eq!((last(&world), world.core.stats().taps), (Some(Rung::HPlus), 1));
    assert!(matches!(world.taps.last(), Some(TapInput::Frame(_) | TapInput::Captured(_))));
}

#[test]
fn an_enhancer_that_never_gets_on_does_not_cost_the_call_key_frame_after_key_frame() {
    let (mut world, track, _) = call();
    world.core.set_max_rung(world.now, SUBSCRIBER, track, Rung::HPlus);
    world.run(Duration::from_secs(1));
    let stream = world.last_tapped().stream;
    let before = world.core.stats().counters.keyframe_requests_out;
    for _ in 0..300 {
        world.core.enhancer(world.now, EnhancerOutput::NeedKeyFrame { stream });
        world.run(Duration::from_millis(100));
    }
    let asked = world.core.stats().counters.keyframe_requests_out - before;
    assert!((2..=10).contains(&asked), "{asked} requests in 30 s");
    // One that has recovered is served at once again.
    world.run(Duration::from_secs(10));
    let before = world.core.stats().counters.keyframe_requests_out;
    world.core.enhancer(world.now, EnhancerOutput::NeedKeyFrame { stream });
    world.run(Duration::from_millis(100));
    assert_eq!(world.core.stats().counters.keyframe_requests_out, before + 1);
}

#[test]
fn random_loss_does_not_take_the_estimate_below_the_quarter_layer() {
    let mut world = World::new(SfuConfig::default());
    world.core.join(world.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = world.publish();
    world.run(Duration::from_secs(2));
    world.core.join(world.now, "room", SUBSCRIBER, JoinOptions::default()).expect("joined");
    let at = world.subscribe(SUBSCRIBER, track);
    world.run(Duration::from_secs(3));
    world.clients[at].loss = 20;
    let mut lowest = u64::MAX;
    for _ in 0..120 {
        world.run(Duration::from_secs(1));
        lowest = lowest.min(world.core.peers[&SUBSCRIBER].estimate_bps.expect("estimate"));
    }
    assert!(lowest > 150_000, "{lowest} bit/s");
}

#[test]
fn offers_full_of_candidates_cost_no_more_each_time() {
    let (mut world, _, at) = call();
    let mut api = world.clients[at].rtc.sdp_api();
    api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
    let (sdp, _) = api.apply().expect("offer");
    let sdp = sdp.to_sdp_string();
    let (head, tail) = sdp.split_at(sdp.find("a=mid:").expect("m-line"));
    let begun = Instant::now();
    for round in 0..20 {
        let candidate = |i: u32| {
            let (high, low) = (i / 250, i % 250);
            format!("a=candidate:{i} 1 udp 2130706431 10.{round}.{high}.{low} 5000 typ host\r\n")
        };
        let sdp = [head, &(0..700).map(candidate).collect::<String>(), tail].concat();
        let offer = Offer { sdp, ..Offer::default() };
        world.core.offer(world.now, SUBSCRIBER, &offer).expect("answer");
    }
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}
