//! The harness of this crate's unit tests: a [`Core`] whose private state they read, WebRTC clients on both ends, a
//! network that is a queue, and time that is an argument.
//!
//! Unit tests cannot use the world of `windlass-testkit`: that one uses this crate as a library, whose `Core` is
//! another type, without private state.

use crate::api::{JoinOptions, TrackKind};
use std::collections::HashMap;
use std::sync::Arc;
use str0m::media::Mid;
use windlass_types::message::{self, AnchorHeader, HTJ2K, ReassembledAnchor, Reassembler};
use windlass_types::recording::RecordInput;
use windlass_types::rendition::RendererInput;
use windlass_types::{AnchorSource, EnhancerRequest, Refusal, Rung};

use str0m::change::{SdpAnswer, SdpPendingOffer};
use str0m::channel::{ChannelData, ChannelId};
use str0m::format::Codec::Vp8;
use str0m::ice::StunMessage;
use str0m::media::{Direction, MediaKind, Rid, Simulcast, SimulcastLayer};
use str0m::net::TcpType;
use str0m::rtp::{RtpPacket, RtpWrite};
use str0m::{Candidate, Event, Output as RtcOutput, Rtc};
use windlass_types::{Layer, LayerKnobs, Size, TapInput, VideoCodec};

use crate::api::{Answer, Offer, Publish, RegionRequest, Subscribe, TrackId};
use crate::core::connection::stand_in;
use crate::core::*;
use crate::relay::{NodeId, Relayed};

pub(crate) const STEP: Duration = Duration::from_millis(5);
pub(crate) const PUBLISHER: ParticipantId = ParticipantId(1);
pub(crate) const SUBSCRIBER: ParticipantId = ParticipantId(2);

pub(crate) struct Client {
    pub(crate) rtc: Rtc,
    pub(crate) address: SocketAddr,
    pub(crate) via: Via,
    pub(crate) due: Instant,
    pub(crate) received: Vec<RtpPacket>,
    pub(crate) messages: Vec<Vec<u8>>,
    /// The last channel that opened.
    pub(crate) channel: Option<ChannelId>,
    pub(crate) key_frame_requests: usize,
    /// Every n-th RTP packet to it is lost; 0 for none.
    pub(crate) loss: usize,
    pub(crate) rtp_seen: usize,
    /// The server's ICE password.
    pub(crate) password: String,
    /// Whether its checks are answered on the way, in the server's name, and do not reach it.
    pub(crate) checks_end_here: bool,
}

impl Client {
    /// The server's answer to a check that does not reach it.
    fn reply(&self, datagram: &[u8]) -> Option<Vec<u8>> {
        let message = StunMessage::parse(datagram).ok()?;
        if !self.checks_end_here || !message.is_binding_request() {
            return None;
        }
        let reply = StunMessage::binding_reply(message.trans_id(), self.address);
        stand_in::written(&reply, &self.password)
    }

    /// The first anchor that has come whole.
    pub(crate) fn anchor(&self) -> Option<ReassembledAnchor> {
        let mut reassembler = Reassembler::new();
        self.messages.iter().find_map(|m| reassembler.push(m).expect("an anchor message"))
    }
}

pub(crate) struct Harness {
    pub(crate) core: Core,
    pub(crate) sfu: SocketAddr,
    pub(crate) now: Instant,
    pub(crate) clients: Vec<Client>,
    pub(crate) taps: Vec<TapInput>,
    /// What the recorder got.
    pub(crate) recorded: Vec<RecordInput>,
    /// What the renderer was given.
    pub(crate) rendered: Vec<RendererInput>,
    /// Requests to the enhancer.
    pub(crate) requests: Vec<EnhancerRequest>,
    /// What was said to other nodes.
    pub(crate) relayed: Vec<(NodeId, Arc<str>, Relayed)>,
    pub(crate) events: HashMap<ParticipantId, Vec<SfuEvent>>,
    pub(crate) camera: Camera,
    /// Whether clients from now on have TCP alone.
    pub(crate) by_tcp: bool,
    /// Whether the camera is encrypted end to end.
    pub(crate) encrypted: bool,
    /// The video codecs of clients that are added.
    pub(crate) codecs: &'static [VideoCodec],
    /// What they encrypt with, if not as everybody does.
    pub(crate) crypto: Option<Arc<str0m::crypto::CryptoProvider>>,
}

/// Three layers of fake VP9: valid descriptors and key frame headers, and nothing behind them.
#[derive(Default)]
pub(crate) struct Camera {
    pub(crate) mid: Option<Mid>,
    pub(crate) layers: Vec<Layer>,
    /// Whether it sends VP8 instead of VP9.
    vp8: bool,
    /// Number of spatial layers, if it sends them as one encoding.
    pub(crate) spatial: usize,
    /// Whether its next frame names them, though it may not be a key frame.
    pub(crate) names_spatial: bool,
    pub(crate) seq: [u64; 3],
    pub(crate) number: u32,
    pub(crate) key_wanted: bool,
    pub(crate) due: Option<Instant>,
}

/// Timestamp of a layer's frame. Each layer has a timeline of its own, which wraps around soon.
fn timestamp_of(number: u32, layer: Layer) -> u32 {
    (u32::MAX - 20_000).wrapping_add(number * 3150 + layer as u32 * 777)
}

/// The start of a VP9 packet, up to the size of a key frame. That of an encrypted one is in the descriptor.
fn vp9_head(key: bool, part: u8, size: Size, id: u16, encrypted: bool) -> Vec<u8> {
    let flags = 0x80 | if key { 0 } else { 0x40 } | if part == 0 { 8 } else { 4 };
    let [high, low] = id.to_be_bytes();
    let mut payload = vec![flags, high, low];
    if key && part == 0 && encrypted {
        payload[0] |= 2;
        payload.push(0x10);
        payload.extend([size.width, size.height].map(u16::to_be_bytes).concat());
    } else if key && part == 0 {
        let size = u64::from(size.width - 1) << 16 | u64::from(size.height - 1);
        payload.extend([0x82, 0x49, 0x83, 0x42]);
        payload.extend((size << 28 | 0x2000_0000_0000_0000).to_be_bytes());
    }
    payload
}

/// The start of a packet of a spatial layer in VP9, of `count`. `names`: the frame's first packet names all of them.
fn spatial_head(
    key: bool,
    names: bool,
    part: u8,
    spatial: usize,
    count: usize,
    id: u16,
) -> Vec<u8> {
    let names = names && part == 0 && spatial == 0;
    let flags = 0xa0 | if key { 0 } else { 0x40 } | if part == 0 { 8 } else { 4 };
    let [high, low] = id.to_be_bytes();
    let layers = (spatial as u8) << 1 | u8::from(spatial > 0);
    let mut payload = vec![flags | u8::from(names) << 1, high, low, layers, id as u8];
    if names {
        payload.push((count as u8 - 1) << 5 | 0x10);
        for side in (0..count).flat_map(|n| [320u16 << n, 180 << n]) {
            payload.extend(side.to_be_bytes());
        }
    }
    if key && names {
        payload.extend(super::calls::key_header(320, 180));
    }
    payload
}

/// The start of a VP8 packet, up to the size of a key frame.
fn vp8_head(key: bool, part: u8, size: Size) -> Vec<u8> {
    if part > 0 {
        return vec![0];
    }
    let mut payload = vec![0x10, if key { 0x10 } else { 0x11 }, 2, 0];
    if key {
        payload.extend([0x9d, 1, 0x2a]);
        payload.extend([size.width, size.height].map(u16::to_le_bytes).concat());
    }
    payload
}

/// What a camera is published as, without a transport.
pub(crate) fn camera() -> Publish {
    camera_at(Mid::from("0"))
}

pub(crate) fn camera_at(mid: Mid) -> Publish {
    Publish {
        mid: mid.to_string(),
        kind: TrackKind::Video,
        name: "camera".into(),
        max: None,
        encrypted: false,
        backup_of: None,
    }
}

impl Harness {
    pub(crate) fn new(config: SfuConfig) -> Harness {
        let now = Instant::now();
        let sfu: SocketAddr = "192.0.2.1:7881".parse().expect("address");
        Harness {
            core: Core::new(config, sfu, now),
            sfu,
            now,
            clients: Vec::new(),
            taps: Vec::new(),
            recorded: Vec::new(),
            rendered: Vec::new(),
            requests: Vec::new(),
            relayed: Vec::new(),
            events: HashMap::new(),
            camera: Camera::default(),
            by_tcp: false,
            encrypted: false,
            codecs: &[VideoCodec::Vp9],
            crypto: None,
        }
    }

    pub(crate) fn client(&mut self, id: ParticipantId) -> usize {
        self.client_of(id, false)
    }

    /// One who takes audio with redundancy, or does not.
    pub(crate) fn client_of(&mut self, id: ParticipantId, red: bool) -> usize {
        let via = if self.by_tcp { Via::Tcp } else { Via::Udp };
        let address = SocketAddr::new([192, 0, 2, 10].into(), 4000 + id.0 as u16);
        let mut builder = Rtc::builder();
        if let Some(crypto) = &self.crypto {
            builder = builder.set_crypto_provider(crypto.clone());
        }
        let mut rtc = builder
            .clear_codecs()
            .enable_vp9(self.codecs.contains(&VideoCodec::Vp9))
            .enable_vp8(self.codecs.contains(&VideoCodec::Vp8))
            .enable_h264(self.codecs.contains(&VideoCodec::H264))
            .enable_opus(true, red)
            .set_rtp_mode(true)
            .set_extension(
                12,
                str0m::rtp::Extension::with_serializer(
                    codec::dependency_descriptor::URI,
                    codec::dependency_descriptor::Serializer,
                ),
            )
            .build(self.now);
        let candidate = match via {
            Via::Udp => Candidate::host(address, "udp"),
            Via::Tcp => Candidate::builder().tcp().host(address).tcptype(TcpType::Active).build(),
        };
        rtc.add_local_candidate(candidate.expect("candidate"));
        let due = self.now;
        let (received, messages) = (Vec::new(), Vec::new());
        self.clients.push(Client {
            rtc,
            address,
            via,
            due,
            received,
            messages,
            channel: None,
            key_frame_requests: 0,
            loss: 0,
            rtp_seen: 0,
            password: String::new(),
            checks_end_here: false,
        });
        self.clients.len() - 1
    }

    /// Publishes three layers; returns the track.
    pub(crate) fn publish(&mut self) -> TrackId {
        let at = self.client(PUBLISHER);
        let mut simulcast = Simulcast::new();
        for layer in Layer::ALL {
            simulcast.add_send_layer(SimulcastLayer::new(layer.rid()));
        }
        let mut api = self.clients[at].rtc.sdp_api();
        let mid = api.add_media(MediaKind::Video, Direction::SendOnly, None, None, Some(simulcast));
        let (sdp, pending) = api.apply().expect("offer");
        let publish = vec![Publish { encrypted: self.encrypted, ..camera_at(mid) }];
        let offer = Offer { sdp: sdp.to_sdp_string(), publish, subscribe: Vec::new() };
        let answer = self.exchange(at, PUBLISHER, &offer, pending);
        self.camera = Camera {
            mid: Some(mid),
            layers: Layer::ALL.into(),
            vp8: self.codecs == [VideoCodec::Vp8],
            due: Some(self.now),
            key_wanted: true,
            ..Camera::default()
        };
        answer.tracks[0].1
    }

    /// Publishes one encoding with three spatial layers; returns the track.
    pub(crate) fn publish_spatial(&mut self) -> TrackId {
        let at = self.client(PUBLISHER);
        let mut api = self.clients[at].rtc.sdp_api();
        let mid = api.add_media(MediaKind::Video, Direction::SendOnly, None, None, None);
        let (sdp, pending) = api.apply().expect("offer");
        let publish = vec![camera_at(mid)];
        let offer = Offer { sdp: sdp.to_sdp_string(), publish, subscribe: Vec::new() };
        let answer = self.exchange(at, PUBLISHER, &offer, pending);
        self.camera = Camera {
            mid: Some(mid),
            spatial: 3,
            due: Some(self.now),
            key_wanted: true,
            ..Camera::default()
        };
        answer.tracks[0].1
    }

    /// Has the core answer a client's offer, and the client accept that.
    pub(crate) fn exchange(
        &mut self,
        at: usize,
        id: ParticipantId,
        offer: &Offer,
        pending: SdpPendingOffer,
    ) -> Answer {
        let answer = self.core.offer(self.now, id, offer).expect("answer");
        self.accept(at, pending, &answer);
        answer
    }

    pub(crate) fn accept(&mut self, at: usize, pending: SdpPendingOffer, answer: &Answer) {
        let password = answer.sdp.lines().find_map(|line| line.strip_prefix("a=ice-pwd:"));
        self.clients[at].password = password.expect("a password").to_owned();
        let answer = SdpAnswer::from_sdp_string(&answer.sdp).expect("answer");
        self.clients[at].rtc.sdp_api().accept_answer(pending, answer).expect("accepted");
        self.clients[at].due = self.now;
    }

    pub(crate) fn subscribe(&mut self, id: ParticipantId, track: TrackId) -> usize {
        self.subscribe_at_most(id, track, None)
    }

    pub(crate) fn subscribe_at_most(
        &mut self,
        id: ParticipantId,
        track: TrackId,
        max: Option<Rung>,
    ) -> usize {
        let at = self.client(id);
        let mut api = self.clients[at].rtc.sdp_api();
        let mid = api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
        api.add_channel("control".into());
        let (sdp, pending) = api.apply().expect("offer");
        let subscribe = vec![Subscribe { mid: mid.to_string(), track, max }];
        let offer = Offer { sdp: sdp.to_sdp_string(), publish: Vec::new(), subscribe };
        self.exchange(at, id, &offer, pending);
        at
    }

    pub(crate) fn run(&mut self, span: Duration) {
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

    /// Opens the publisher's channel for stills.
    pub(crate) fn offer_stills(&mut self) {
        let mut api = self.clients[0].rtc.sdp_api();
        api.add_channel(publisher::stills::CHANNEL.into());
        let (sdp, pending) = api.apply().expect("offer");
        let camera = camera_at(self.camera.mid.expect("published"));
        let publish = vec![Publish { encrypted: self.encrypted, ..camera }];
        let offer = Offer { sdp: sdp.to_sdp_string(), publish, subscribe: Vec::new() };
        self.exchange(0, PUBLISHER, &offer, pending);
    }

    /// Why a subscriber's first track was said to have no anchors, the last time.
    pub(crate) fn refused(&self, id: ParticipantId) -> Option<Refusal> {
        let stats = self.events[&id].iter().rev().find_map(|event| match event {
            SfuEvent::TrackStats(stats) => stats.first().map(|stats| stats.refused),
            _ => None,
        });
        stats.expect("statistics")
    }

    /// The stills that the publisher was asked for.
    pub(crate) fn stills_asked(&self) -> Vec<RegionRequest> {
        let requests = self.events[&PUBLISHER].iter().filter_map(|event| match event {
            SfuEvent::Regions { request, .. } => Some(request.clone()),
            _ => None,
        });
        requests.collect()
    }

    /// Answers the last request for a still, of the whole quarter layer's last frame, with any payload.
    pub(crate) fn send_still(&mut self, payload: &[u8]) {
        let request = self.stills_asked().pop().expect("asked");
        let timestamp = timestamp_of(self.camera.number, Layer::Q);
        let size = request.size.scaled(request.scale);
        let header = AnchorHeader {
            beyond_prior: true,
            epoch: request.id,
            ..AnchorHeader::new(HTJ2K, AnchorSource::Captured, timestamp, size)
        };
        let channel = self.clients[0].channel.expect("open");
        for message in message::encode_chunks(&header, payload, 1000).expect("fits") {
            let rtc = &mut self.clients[0].rtc;
            assert!(rtc.channel(channel).expect("channel").write(true, &message).expect("written"));
        }
        self.clients[0].due = self.now;
    }

    /// The camera's next frame, every 35 ms, two packets a layer.
    pub(crate) fn shoot(&mut self) {
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
                let shift = 2 - layer as u32;
                let size = Size::new((1280u32 >> shift) as u16, (720u32 >> shift) as u16);
                let mut payload = if self.camera.vp8 {
                    vp8_head(key, part, size)
                } else {
                    vp9_head(key, part, size, id, self.encrypted)
                };
                // What is behind the headers names its frame and its layer.
                payload.extend(vec![layer as u8; 200 << layer as u32]);
                payload.extend(self.camera.number.to_be_bytes());
                payload.push(layer as u8);
                self.send(mid, layer, true, part == 1, payload);
            }
        }
        let count = self.camera.spatial;
        let names = std::mem::take(&mut self.camera.names_spatial) || key;
        for spatial in 0..count {
            for part in 0..2u8 {
                let mut payload = spatial_head(key, names, part, spatial, count, id);
                payload.extend(vec![0; 200 << spatial]);
                payload.push(spatial as u8);
                self.send(mid, Layer::Q, false, part == 1 && spatial + 1 == count, payload);
            }
        }
    }

    /// Sends a packet of the camera's present frame, in an encoding that is `named` by its layer or the only one.
    fn send(&mut self, mid: Mid, layer: Layer, named: bool, marker: bool, payload: Vec<u8>) {
        let seq = 70 + self.camera.seq[layer as usize];
        self.camera.seq[layer as usize] += 1;
        let timestamp = timestamp_of(self.camera.number, layer);
        let vp8 = self.camera.vp8;
        let rtc = &mut self.clients[0].rtc;
        let pt = rtc
            .codec_config()
            .find(|p| {
                let (codec, format) = (p.spec().codec, p.spec().format);
                if vp8 { codec == Vp8 } else { format.profile_id == Some(0) }
            })
            .expect("the codec")
            .pt();
        let mut api = rtc.direct_api();
        let rid = named.then(|| Rid::from(layer.rid()));
        let stream = api.stream_tx_by_mid(mid, rid).expect("stream");
        stream.write_rtp(
            RtpWrite::new(pt, seq.into(), timestamp, self.now, payload)
                .marker(marker)
                .nackable(true),
        );
        let _ = rtc.handle_input(Input::Timeout(self.now));
        self.drain(0);
    }

    pub(crate) fn drain(&mut self, at: usize) {
        loop {
            let client = &mut self.clients[at];
            match client.rtc.poll_output().expect("client") {
                RtcOutput::Timeout(due) => return client.due = due,
                RtcOutput::Transmit(t) => {
                    if let Some(reply) = client.reply(&t.contents) {
                        let receive = Receive {
                            proto: t.proto,
                            source: self.sfu,
                            destination: client.address,
                            contents: DatagramRecv::try_from(&*reply).expect("a reply"),
                        };
                        client.rtc.handle_input(Input::Receive(self.now, receive)).expect("taken");
                        continue;
                    }
                    let from = RemoteAddr { via: client.via, address: client.address };
                    self.core.datagram(self.now, from, &t.contents);
                }
                RtcOutput::Event(Event::RtpPacket(packet)) => client.received.push(packet),
                RtcOutput::Event(Event::ChannelData(ChannelData { data, .. })) => {
                    client.messages.push(data);
                }
                RtcOutput::Event(Event::ChannelOpen(id, _)) => client.channel = Some(id),
                RtcOutput::Event(Event::KeyframeRequest(_)) => {
                    client.key_frame_requests += 1;
                    self.camera.key_wanted = true;
                }
                RtcOutput::Event(_) => {}
            }
        }
    }

    pub(crate) fn deliver(&mut self) {
        while let Some(output) = self.core.poll() {
            match output {
                Output::Transmit { to, data, .. } => {
                    let Some(at) = self
                        .clients
                        .iter()
                        .position(|c| (c.via, c.address) == (to.via, to.address))
                    else {
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
                        proto: to.via.into(),
                        source: self.sfu,
                        destination: client.address,
                        contents,
                    };
                    client.rtc.handle_input(Input::Receive(self.now, receive)).expect("client");
                    self.drain(at);
                }
                Output::Event(id, event) => self.events.entry(id).or_default().push(event),
                Output::Tap(input) => self.taps.push(input),
                Output::Record(input) => self.recorded.push(input),
                Output::Render(input) => self.rendered.push(input),
                Output::Request(_, request) => self.requests.push(request),
                Output::Relay(node, room, message) => self.relayed.push((node, room, message)),
            }
        }
    }

    /// Messages to the publisher about its layers.
    pub(crate) fn knobs_of_layers(&self) -> Vec<Vec<(Layer, LayerKnobs)>> {
        let sent = self.events.get(&PUBLISHER).into_iter().flatten().filter_map(|e| match e {
            SfuEvent::Knobs { layers, .. } if !layers.is_empty() => Some(layers.clone()),
            _ => None,
        });
        sent.collect()
    }

    /// Layers that the publisher was asked to send.
    pub(crate) fn layers_told(&self) -> Vec<Vec<(Layer, bool)>> {
        let active = |layers: Vec<_>| {
            layers
                .into_iter()
                .map(|(layer, knobs): (_, LayerKnobs)| (layer, knobs.active))
                .collect()
        };
        self.knobs_of_layers().into_iter().map(active).collect()
    }

    pub(crate) fn rungs(&self, id: ParticipantId) -> Vec<(Rung, u16, u16)> {
        let events = self.events.get(&id).into_iter().flatten();
        let sent = events.filter_map(|e| match e {
            SfuEvent::RungChanged { rung, epoch, size, .. } => Some((*rung, *epoch, size.width)),
            _ => None,
        });
        sent.collect()
    }

    pub(crate) fn last_tapped(&self) -> windlass_types::TapFrame {
        let frames = self.taps.iter().rev();
        let mut frames =
            frames.filter_map(|t| if let TapInput::Frame(f) = t { Some(f.clone()) } else { None });
        frames.next().expect("tapped frame")
    }
}

/// Whether the enhancer is asked for a key anchor.
pub(crate) fn is_key_anchor_request(request: &EnhancerRequest) -> bool {
    matches!(request, EnhancerRequest::KeyAnchor)
}

pub(crate) fn config() -> SfuConfig {
    SfuConfig { congestion_control: false, ..SfuConfig::default() }
}

/// A publisher and a subscriber in one room, connected.
pub(crate) fn call() -> (Harness, TrackId, usize) {
    call_with(config())
}

/// A call on an SFU of that configuration.
pub(crate) fn call_with(config: SfuConfig) -> (Harness, TrackId, usize) {
    let mut harness = Harness::new(config);
    harness.core.join(harness.now, "room", PUBLISHER, JoinOptions::default()).expect("joined");
    let track = harness.publish();
    harness.run(Duration::from_secs(2));
    let (participants, tracks) =
        harness.core.join(harness.now, "room", SUBSCRIBER, JoinOptions::default()).expect("joined");
    assert_eq!((participants, tracks[0].track), (vec![PUBLISHER], track));
    let at = harness.subscribe(SUBSCRIBER, track);
    harness.run(Duration::from_secs(3));
    (harness, track, at)
}

/// Numbers without holes, time that never runs back, and one timestamp a frame.
pub(crate) fn assert_continuous(packets: &[RtpPacket]) {
    let mut ordered: Vec<_> = packets.iter().collect();
    ordered.sort_by_key(|p| *p.seq_no);
    for pair in ordered.windows(2) {
        assert_eq!(*pair[1].seq_no, *pair[0].seq_no + 1);
        let step = pair[1].header.timestamp.wrapping_sub(pair[0].header.timestamp) as i32;
        assert!(step >= 0, "time runs back by {step}");
        assert_eq!(step == 0, !pair[0].header.marker);
    }
}
