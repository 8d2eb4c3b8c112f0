//! A call in memory: the SFU's core, WebRTC clients, emulated links between them, and time that is an argument.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use str0m::change::SdpAnswer;
use str0m::media::{
    Direction, KeyframeRequestKind, MediaKind, Mid, Rid, Simulcast, SimulcastLayer,
};
use str0m::net::{Protocol, Receive};
use str0m::rtp::RtpWrite;
use str0m::{Candidate, Event, Input, Output as RtcOutput, Rtc};
use windlass_link::{Conditions, Course, Link};
use windlass_sfu::core::{Core, Output};
use windlass_sfu::{
    JoinOptions, Kind, Offer, ParticipantId, Publish, SfuConfig, SfuEvent, Subscribe, TrackId,
};
use windlass_types::message::AnchorHeader;
use windlass_types::message::HTJ2K;
use windlass_types::{
    Anchor, AnchorSource, EnhancerOutput, Layer, Rung, StageTimes, TapFrame, TapInput,
};

use super::camera::Camera;
use crate::viewer::{HEADERS, Watcher};

/// The longest that time jumps.
const STEP: Duration = Duration::from_millis(5);
/// The shortest.
const LEAST: Duration = Duration::from_micros(250);
/// What super-resolution and coding are taken to need.
const ENHANCING: Duration = Duration::from_millis(80);
/// Every so many tapped frames become an anchor of so many bytes (120 kbit/s).
const ANCHOR_EVERY: u32 = 15;
const ANCHOR_BYTES: usize = 7_500;
/// The viewer's id.
const VIEWER: ParticipantId = ParticipantId(1000);

struct Client {
    id: ParticipantId,
    rtc: Rtc,
    address: SocketAddr,
    due: Instant,
    down: Link<Vec<u8>>,
    up: Link<Vec<u8>>,
    camera: Option<(Mid, Camera)>,
    paused: [bool; 3],
}

/// What came through the viewer's link in a tenth of a second.
#[derive(Debug, Clone, Default)]
pub(super) struct Tenth {
    /// Bytes of datagrams, headers included.
    pub carried: u64,
    /// Bytes of video and anchors that the viewer had a use for.
    pub media: u64,
    /// Waits before the bottleneck, in ms, by datagram.
    pub waits: Vec<f64>,
    /// The estimate at its end, in bits per second.
    pub estimate_bps: u64,
    /// Tracks that were paused at its end.
    pub paused: u32,
    /// Rungs held at its end, by track.
    pub rungs: Vec<Option<Rung>>,
}

/// A viewer's call over a link, second by second.
pub(super) struct World {
    core: Core,
    sfu: SocketAddr,
    /// When the viewer came.
    pub start: Instant,
    /// When the call began.
    began: Instant,
    now: Instant,
    clients: Vec<Client>,
    by_address: HashMap<SocketAddr, usize>,
    tapped: HashMap<u32, u32>,
    enhancing: VecDeque<(Instant, Anchor)>,
    tracks: Vec<TrackId>,
    /// By m-line of the viewer.
    watchers: HashMap<Mid, Watcher>,
    mids: HashMap<TrackId, Mid>,
    rungs: HashMap<TrackId, Rung>,
    paused: HashMap<TrackId, bool>,
    /// Changes of rung that the viewer was told.
    pub rung_changes: u64,
    /// Requests for key frames that publishers got.
    pub key_requests: u64,
    /// Size of an anchor.
    pub anchor_bytes: usize,
    /// Anchors that came, by how long after their frame reached the SFU, in ms: to their first message.
    pub anchor_ages: Vec<f64>,
    /// By tenth of a second.
    pub tenths: Vec<Tenth>,
}

impl World {
    /// `publishers` with links that nobody notices, and one viewer of all of them behind `down` and `up`.
    pub(super) fn new(
        config: SfuConfig,
        publishers: usize,
        down: Course,
        up: Course,
        seed: u64,
    ) -> Result<World> {
        let start = Instant::now();
        let sfu: SocketAddr = ([192, 0, 2, 1], 7881).into();
        let mut world = World {
            core: Core::new(config, sfu, start),
            sfu,
            start,
            began: start,
            now: start,
            clients: Vec::new(),
            by_address: HashMap::new(),
            tapped: HashMap::new(),
            enhancing: VecDeque::new(),
            tracks: Vec::new(),
            watchers: HashMap::new(),
            mids: HashMap::new(),
            rungs: HashMap::new(),
            paused: HashMap::new(),
            rung_changes: 0,
            key_requests: 0,
            anchor_bytes: ANCHOR_BYTES,
            anchor_ages: Vec::new(),
            tenths: vec![Tenth::default()],
        };
        for number in 1..=publishers as u64 {
            let wide = || Course::steady(Conditions::default());
            let at = world.client(ParticipantId(number), wide(), wide(), seed + 2 * number)?;
            world.publish(at, seed + number)?;
        }
        world.run(Duration::from_secs(1))?;
        let at = world.client(VIEWER, down, up, seed)?;
        world.view(at)?;
        (world.start, world.tenths) = (world.now, vec![Tenth::default()]);
        Ok(world)
    }

    fn client(&mut self, id: ParticipantId, down: Course, up: Course, seed: u64) -> Result<usize> {
        let host = [10, 0, (id.0 >> 8) as u8, id.0 as u8];
        let address = SocketAddr::from((host, 4000));
        let (_, tracks) = self
            .core
            .join(self.now, "room", id, JoinOptions::default())
            .map_err(|e| anyhow!("{e}"))?;
        self.tracks = tracks.iter().map(|t| t.track).collect();
        let mut rtc = Rtc::builder()
            .clear_codecs()
            .enable_vp9(true)
            .enable_opus(true, false)
            .set_rtp_mode(true)
            .build(self.now);
        rtc.add_local_candidate(Candidate::host(address, "udp")?);
        self.by_address.insert(address, self.clients.len());
        self.clients.push(Client {
            id,
            rtc,
            address,
            due: self.now,
            down: Link::new(down, seed, self.now),
            up: Link::new(up, seed + 1, self.now),
            camera: None,
            paused: [false; 3],
        });
        Ok(self.clients.len() - 1)
    }

    fn publish(&mut self, at: usize, seed: u64) -> Result<()> {
        let mut simulcast = Simulcast::new();
        for layer in Layer::ALL {
            simulcast.add_send_layer(SimulcastLayer::new(layer.rid()));
        }
        let mut api = self.clients[at].rtc.sdp_api();
        let mid = api.add_media(MediaKind::Video, Direction::SendOnly, None, None, Some(simulcast));
        let (sdp, pending) = api.apply().context("an offer")?;
        let camera = Publish { mid: mid.to_string(), kind: Kind::Video, name: "camera".into() };
        let offer =
            Offer { sdp: sdp.to_sdp_string(), publish: vec![camera], subscribe: Vec::new() };
        let answer = self.core.offer(self.now, self.clients[at].id, &offer)?;
        let answer = SdpAnswer::from_sdp_string(&answer.sdp)?;
        let client = &mut self.clients[at];
        client.rtc.sdp_api().accept_answer(pending, answer)?;
        client.due = self.now;
        // Cameras are not in step.
        let begin = self.now + Duration::from_millis(500 + 7 * at as u64);
        client.camera = Some((mid, Camera::new(seed, begin)));
        Ok(())
    }

    fn view(&mut self, at: usize) -> Result<()> {
        let mut api = self.clients[at].rtc.sdp_api();
        let mut subscribe = Vec::new();
        for &track in &self.tracks {
            let mid = api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
            subscribe.push(Subscribe { mid: mid.to_string(), track, max: None });
            self.watchers.insert(mid, Watcher::default());
            self.mids.insert(track, mid);
        }
        api.add_channel("control".into());
        let (sdp, pending) = api.apply().context("an offer")?;
        let offer = Offer { sdp: sdp.to_sdp_string(), publish: Vec::new(), subscribe };
        let answer = self.core.offer(self.now, self.clients[at].id, &offer)?;
        let answer = SdpAnswer::from_sdp_string(&answer.sdp)?;
        self.clients[at].rtc.sdp_api().accept_answer(pending, answer)?;
        self.clients[at].due = self.now;
        Ok(())
    }

    /// Whether there is an enhancer.
    pub(super) fn core_enhancement(&mut self, works: bool) {
        self.core.set_enhancement(self.now, works);
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, span: Duration) -> Result<()> {
        let end = self.now + span;
        while self.now < end {
            self.now = self.next().clamp(self.now + LEAST, self.now + STEP).min(end);
            self.shoot()?;
            self.enhance();
            for at in 0..self.clients.len() {
                self.exchange(at)?;
            }
            self.core.advance(self.now);
            self.hand_out();
            let tenth = (self.now.saturating_duration_since(self.start).as_millis() / 100) as usize;
            while self.tenths.len() <= tenth {
                let rungs = self.tracks.iter().map(|t| self.rungs.get(t).copied()).collect();
                if let Some(last) = self.tenths.last_mut() {
                    last.rungs = rungs;
                    last.paused = self.paused.values().filter(|p| **p).count() as u32;
                    last.estimate_bps = self.core.estimate_bps(VIEWER).unwrap_or(0);
                }
                self.tenths.push(Tenth::default());
            }
        }
        Ok(())
    }

    /// Freezes, time frozen, frames shown and key frames asked for by the viewer.
    pub(super) fn watched(&self) -> (u64, Duration, u64, u64) {
        let all = self.watchers.values();
        all.fold((0, Duration::ZERO, 0, 0), |(freezes, frozen, frames, asks), w| {
            (freezes + w.freezes, frozen + w.frozen, frames + w.frames, asks + w.asks)
        })
    }

    /// Share of the viewer's datagrams that found its link's queue full.
    pub(super) fn overflow(&self) -> f64 {
        let stats = self.clients.last().map(|c| c.down.stats()).unwrap_or_default();
        stats.overflowed as f64 / stats.sent.max(1) as f64
    }

    fn next(&self) -> Instant {
        let mut due = self.core.timeout();
        for client in &self.clients {
            due = due.min(client.due);
            let camera = client.camera.as_ref().map(|(_, camera)| camera.due());
            for at in [client.down.timeout(), client.up.timeout(), camera].into_iter().flatten() {
                due = due.min(at);
            }
        }
        due
    }

    fn shoot(&mut self) -> Result<()> {
        for client in &mut self.clients {
            let Some((mid, camera)) = &mut client.camera else { continue };
            if camera.due() > self.now {
                continue;
            }
            let (mid, packets) = (*mid, camera.shoot(client.paused));
            if !client.rtc.is_connected() {
                camera.key_wanted();
                continue;
            }
            let codec = client.rtc.codec_config();
            let vp9 = codec.find(|p| p.spec().format.profile_id == Some(0)).context("VP9")?;
            let pt = vp9.pt();
            for packet in packets {
                let mut api = client.rtc.direct_api();
                let rid = Some(Rid::from(packet.layer.rid()));
                let Some(stream) = api.stream_tx_by_mid(mid, rid) else { continue };
                let write = RtpWrite::new(
                    pt,
                    packet.seq.into(),
                    packet.timestamp,
                    self.now,
                    packet.payload,
                );
                stream.write_rtp(write.marker(packet.marker).nackable(true));
                client.rtc.handle_input(Input::Timeout(self.now))?;
                client.due = drain(client, self.now, &mut Vec::new())?;
            }
        }
        Ok(())
    }

    /// Both ways between a client and the SFU, and what the client makes of it.
    fn exchange(&mut self, at: usize) -> Result<()> {
        let now = self.now;
        let client = &mut self.clients[at];
        let is_viewer = client.id == VIEWER;
        let mut events = Vec::new();
        while let Some((data, waited)) = client.down.poll(now) {
            if is_viewer && let Some(tenth) = self.tenths.last_mut() {
                tenth.carried += data.len() as u64 + 28;
                tenth.waits.push(waited.as_secs_f64() * 1000.0);
            }
            let Ok(contents) = data.as_slice().try_into() else { continue };
            let (source, destination) = (self.sfu, client.address);
            let receive = Receive { proto: Protocol::Udp, source, destination, contents };
            client.rtc.handle_input(Input::Receive(now, receive))?;
            client.due = drain(client, now, &mut events)?;
        }
        if client.due <= now {
            client.rtc.handle_input(Input::Timeout(now))?;
            client.due = drain(client, now, &mut events)?;
        }
        for event in events {
            self.happened(at, event);
        }
        if is_viewer {
            for (mid, watcher) in &mut self.watchers {
                if watcher.wants_key(now) {
                    let mut api = self.clients[at].rtc.direct_api();
                    if let Some(stream) = api.stream_rx_by_mid(*mid, None) {
                        stream.request_keyframe(KeyframeRequestKind::Pli);
                    }
                    self.clients[at].due = now;
                }
            }
        }
        let client = &mut self.clients[at];
        while let Some((data, _)) = client.up.poll(now) {
            self.core.datagram(now, client.address, &data);
        }
        Ok(())
    }

    fn happened(&mut self, at: usize, event: Event) {
        match event {
            Event::RtpPacket(packet) if self.clients[at].id == VIEWER => {
                let mut api = self.clients[at].rtc.direct_api();
                let mid = api.stream_rx(&packet.header.ssrc).map(|s| s.mid());
                if let Some(watcher) = mid.and_then(|mid| self.watchers.get_mut(&mid)) {
                    watcher.packet(self.now, *packet.seq_no, &packet.payload);
                }
                if let Some(tenth) = self.tenths.last_mut() {
                    tenth.media += packet.payload.len() as u64 + HEADERS;
                }
            }
            Event::ChannelData(message) => {
                if let Some(tenth) = self.tenths.last_mut() {
                    tenth.media += message.data.len() as u64;
                }
                let parsed = AnchorHeader::parse(&message.data);
                if let Ok((header, payload)) = parsed
                    && header.chunk_index == 0
                    && let Some(stamp) = payload.first_chunk()
                {
                    let frame = self.began + Duration::from_micros(u64::from_le_bytes(*stamp));
                    let age = self.now.saturating_duration_since(frame);
                    self.anchor_ages.push(age.as_secs_f64() * 1000.0);
                }
            }
            Event::KeyframeRequest(_) => {
                self.key_requests += 1;
                if let Some((_, camera)) = &mut self.clients[at].camera {
                    camera.key_wanted();
                }
            }
            _ => {}
        }
    }

    /// Takes everything out of the SFU.
    fn hand_out(&mut self) {
        while let Some(output) = self.core.poll() {
            match output {
                Output::Transmit { to, data, .. } => {
                    if let Some(&at) = self.by_address.get(&to.address) {
                        self.clients[at].down.push(self.now, data.len(), data);
                    }
                }
                Output::Event(VIEWER, SfuEvent::RungChanged { track, rung, .. }) => {
                    self.rung_changes += u64::from(self.rungs.insert(track, rung).is_some());
                }
                Output::Event(VIEWER, SfuEvent::Paused { track, paused }) => {
                    self.paused.insert(track, paused);
                    let mid = self.mids.get(&track);
                    if let Some(watcher) = mid.and_then(|mid| self.watchers.get_mut(mid)) {
                        watcher.pause();
                    }
                }
                Output::Event(id, SfuEvent::Knobs { layers, .. }) => {
                    let client = self.clients.iter_mut().find(|c| c.id == id);
                    let Some(client) = client else { continue };
                    for (layer, knobs) in layers {
                        client.paused[layer as usize] = !knobs.active;
                        if let Some((_, camera)) = client.camera.as_mut().filter(|_| knobs.active) {
                            camera.key_wanted();
                        }
                    }
                }
                Output::Tap(TapInput::Frame(frame)) => self.tap(&frame),
                Output::Event(..) | Output::Tap(_) | Output::Relay(..) => {}
            }
        }
    }

    /// An enhancer that makes anchors of every so many frames, which do not depend on each other.
    fn tap(&mut self, frame: &TapFrame) {
        let count = self.tapped.entry(frame.stream.0).or_default();
        *count += 1;
        if !count.is_multiple_of(ANCHOR_EVERY) {
            return;
        }
        // Whoever gets it can tell how old it is.
        let mut payload = vec![7; self.anchor_bytes];
        let age = frame.arrival.saturating_duration_since(self.began);
        payload[..8].copy_from_slice(&(age.as_micros() as u64).to_le_bytes());
        let anchor = Anchor {
            stream: frame.stream,
            epoch: frame.epoch,
            rtp_timestamp: frame.rtp_timestamp,
            arrival: frame.arrival,
            source: AnchorSource::Enhanced,
            codec: HTJ2K,
            tiled: false,
            width: 640,
            height: 360,
            beyond_prior: false,
            payload: Bytes::from(payload),
            times: StageTimes::default(),
        };
        self.enhancing.push_back((self.now + ENHANCING, anchor));
    }

    fn enhance(&mut self) {
        while self.enhancing.front().is_some_and(|(at, _)| *at <= self.now) {
            let Some((_, anchor)) = self.enhancing.pop_front() else { return };
            self.core.on_enhancer_output(self.now, EnhancerOutput::Anchor(anchor));
        }
    }
}

fn drain(client: &mut Client, now: Instant, events: &mut Vec<Event>) -> Result<Instant> {
    loop {
        match client.rtc.poll_output()? {
            RtcOutput::Timeout(due) => return Ok(due),
            RtcOutput::Transmit(t) => {
                client.up.push(now, t.contents.len(), t.contents.into());
            }
            RtcOutput::Event(event) => events.push(event),
        }
    }
}
