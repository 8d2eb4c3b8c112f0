//! A call in memory: the SFU's core, clients, emulated links between them, and time that is an argument.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::Event;
use str0m::media::Mid;
use str0m::rtp::RtpWrite;
use windlass_netem::{Conditions, Course, Link, LinkStats, Profile};
use windlass_sfu::core::{Core, Output};
use windlass_sfu::{
    Answer, JoinOptions, NodeId, Offer, ParticipantId, Publish, Relayed, SfuConfig, SfuEvent,
    Subscribe, TrackId, TrackKind,
};
use windlass_types::recording::RecordInput;
use windlass_types::{EnhancerOutput, EnhancerRequest, StreamId, TapInput, VideoCodec};

use crate::camera::Camera;
use crate::client::{Client, Offered, Said, Video};

/// Maximum time of one step. The SFU and its clients are polled at least this often.
const MAX_STEP: Duration = Duration::from_millis(5);
/// Minimum time of one step.
const MIN_STEP: Duration = Duration::from_micros(250);
/// Time from a publisher's answer to its camera's first frame.
const CAMERA: Duration = Duration::from_millis(500);
/// Time by which the first frames of successive participants' cameras differ, so that frames do not come together.
const APART: Duration = Duration::from_millis(7);

/// Access links of a participant.
#[derive(Debug, Clone)]
pub struct Access {
    /// Link from the SFU to the participant.
    pub down: Course,
    /// Link from the participant to the SFU.
    pub up: Course,
    /// Seed of the links' random numbers.
    pub seed: u64,
}

impl Access {
    /// Links of 1 Gbit/s and 1 ms, which drop nothing unless their queue is full.
    pub fn wide(seed: u64) -> Access {
        let wide = || Course::steady(Conditions::default());
        Access { down: wide(), up: wide(), seed }
    }

    /// Links with the rates, queues, delays and losses of a named profile.
    pub fn of(profile: Profile, seed: u64) -> Access {
        Access { down: profile.down(seed), up: profile.up(), seed }
    }
}

/// A participant of the call.
pub struct Party {
    /// Id of the participant.
    pub id: ParticipantId,
    /// WebRTC client of the participant.
    pub client: Client,
    down: Link<Vec<u8>>,
    up: Link<Vec<u8>>,
    camera: Option<(Mid, Camera)>,
    /// Layers that the SFU does not need, and has paused.
    paused: [bool; 3],
}

impl Party {
    /// Statistics of the link from the SFU to the participant.
    pub fn down(&self) -> LinkStats {
        self.down.stats()
    }
}

/// An event in a step of time. Participants are named by their index in [`World::parties`].
pub enum WorldEvent {
    /// A datagram came to a participant.
    Arrived {
        /// Index of the participant.
        at: usize,
        /// Size of the datagram in bytes, without headers.
        bytes: usize,
        /// Time that the datagram waited before the bottleneck and in it.
        waited: Duration,
    },
    /// An event of a participant's client.
    Client(usize, Box<Event>),
    /// An event of the SFU for a participant.
    Told(ParticipantId, SfuEvent),
    /// An input of the SFU for the enhancer.
    Tapped(TapInput),
    /// A request or a report of the SFU to a stream's enhancement.
    Requested(StreamId, EnhancerRequest),
    /// An input of the SFU for the recorder.
    Recorded(RecordInput),
    /// A message of the SFU to another node.
    Relayed(NodeId, Arc<str>, Relayed),
}

/// A call in memory; the crate's documentation has an example.
pub struct World {
    /// Core of the SFU.
    pub core: Core,
    /// Address of the SFU.
    pub sfu: SocketAddr,
    /// Current time of the call.
    pub now: Instant,
    /// The participants, in the order in which they joined.
    pub parties: Vec<Party>,
    by_address: HashMap<SocketAddr, usize>,
    later: VecDeque<(Instant, EnhancerOutput)>,
    events: Vec<WorldEvent>,
    codec: VideoCodec,
    meter: Option<Meter>,
}

/// What the SFU's core has taken of a clock.
struct Meter {
    clock: fn() -> Duration,
    taken: Duration,
}

impl World {
    /// A call without participants, in VP9.
    pub fn new(config: SfuConfig) -> World {
        World::of(config, VideoCodec::Vp9)
    }

    /// A call without participants. Cameras send a codec, and it is the only one that clients have.
    pub fn of(config: SfuConfig, codec: VideoCodec) -> World {
        let now = Instant::now();
        let sfu = SocketAddr::from(([192, 0, 2, 1], 7881));
        World {
            core: Core::new(config, sfu, now),
            sfu,
            now,
            parties: Vec::new(),
            by_address: HashMap::new(),
            later: VecDeque::new(),
            events: Vec::new(),
            codec,
            meter: None,
        }
    }

    /// Measures from now on what the SFU's core takes, by `clock`, such as the thread's CPU time.
    pub fn measure(&mut self, clock: fn() -> Duration) {
        self.meter = Some(Meter { clock, taken: Duration::ZERO });
    }

    /// What the core has taken since [`World::measure`].
    pub fn taken(&self) -> Duration {
        self.meter.as_ref().map_or(Duration::ZERO, |meter| meter.taken)
    }

    /// Has the core do something, and measures that.
    fn metered<T>(&mut self, work: impl FnOnce(&mut Core) -> T) -> T {
        let Some(meter) = &mut self.meter else { return work(&mut self.core) };
        let before = (meter.clock)();
        let result = work(&mut self.core);
        meter.taken += (meter.clock)().saturating_sub(before);
        result
    }

    /// Adds a participant to the only room. Returns its index in [`World::parties`].
    pub fn join(&mut self, id: ParticipantId, access: Access) -> usize {
        self.core.join(self.now, "room", id, JoinOptions::default()).expect("joined");
        let address = SocketAddr::from(([10, 0, (id.0 >> 8) as u8, id.0 as u8], 4000));
        let Access { down, up, seed } = access;
        self.by_address.insert(address, self.parties.len());
        self.parties.push(Party {
            id,
            client: Client::new(self.codec, address, self.now),
            down: Link::new(down, seed, self.now),
            up: Link::new(up, seed + 1, self.now),
            camera: None,
            paused: [false; 3],
        });
        self.parties.len() - 1
    }

    /// Publishes three layers of a camera.
    pub fn publish(&mut self, at: usize, seed: u64) -> TrackId {
        let offered = self.parties[at].client.offer(&[Video::SendLayers], &[]);
        let mid = offered.mids[0];
        let publish = Publish {
            mid: mid.to_string(),
            kind: TrackKind::Video,
            name: "camera".into(),
            max: None,
            encrypted: false,
            backup_of: None,
        };
        let answer = self.negotiate(at, offered, vec![publish], Vec::new());
        let begin = self.now + CAMERA + APART * at as u32;
        self.parties[at].camera = Some((mid, Camera::new(self.codec, seed, begin)));
        answer.tracks[0].1
    }

    /// Subscribes to tracks, with a data channel for their anchors. Returns the section of each track.
    pub fn subscribe(&mut self, at: usize, tracks: &[TrackId]) -> Vec<Mid> {
        let video = vec![Video::Receive; tracks.len()];
        let offered = self.parties[at].client.offer(&video, &["control"]);
        let mids = offered.mids.clone();
        let subscribe = mids.iter().zip(tracks);
        let subscribe = subscribe
            .map(|(mid, &track)| Subscribe { mid: mid.to_string(), track, max: None })
            .collect();
        self.negotiate(at, offered, Vec::new(), subscribe);
        mids
    }

    fn negotiate(
        &mut self,
        at: usize,
        offered: Offered,
        publish: Vec<Publish>,
        subscribe: Vec<Subscribe>,
    ) -> Answer {
        let offer = Offer { sdp: offered.sdp.clone(), publish, subscribe };
        let party = &mut self.parties[at];
        let answer = self.core.offer(self.now, party.id, &offer).expect("an answer");
        party.client.accept(self.now, offered, &answer.sdp);
        answer
    }

    /// Plans an output of the enhancer at a time. It comes after all outputs that were planned before.
    pub fn enhancer_says(&mut self, at: Instant, output: EnhancerOutput) {
        self.later.push_back((at, output));
    }

    /// Lets time pass, and returns the events.
    pub fn run(&mut self, span: Duration) -> Vec<WorldEvent> {
        let end = self.now + span;
        let mut all = Vec::new();
        while self.now < end {
            all.extend(self.step(end));
        }
        all
    }

    /// Lets time pass until something is due, at most to `end`. Returns the events.
    pub fn step(&mut self, end: Instant) -> Vec<WorldEvent> {
        self.now = self.next().clamp(self.now + MIN_STEP, self.now + MAX_STEP).min(end);
        self.shoot();
        while self.later.front().is_some_and(|(at, _)| *at <= self.now) {
            let Some((_, output)) = self.later.pop_front() else { break };
            self.core.on_enhancer_output(self.now, output);
        }
        for at in 0..self.parties.len() {
            self.exchange(at);
        }
        let now = self.now;
        self.metered(|core| core.advance(now));
        self.send();
        std::mem::take(&mut self.events)
    }

    fn next(&self) -> Instant {
        let mut due = self.core.timeout();
        for party in &self.parties {
            due = due.min(party.client.due);
            let camera = party.camera.as_ref().map(|(_, camera)| camera.due());
            for at in [party.down.timeout(), party.up.timeout(), camera].into_iter().flatten() {
                due = due.min(at);
            }
        }
        due
    }

    fn shoot(&mut self) {
        for at in 0..self.parties.len() {
            let party = &mut self.parties[at];
            let Some((mid, camera)) = &mut party.camera else { continue };
            if camera.due() > self.now {
                continue;
            }
            let (mid, packets) = (*mid, camera.shoot(party.paused));
            if !party.client.rtc.is_connected() {
                camera.key_wanted();
                continue;
            }
            for packet in packets {
                let party = &mut self.parties[at];
                let write = |pt| {
                    RtpWrite::new(pt, packet.seq.into(), packet.timestamp, self.now, packet.payload)
                        .marker(packet.marker)
                        .nackable(true)
                };
                if party.client.write(mid, Some(packet.layer), write) {
                    party.client.wake(self.now).expect("a client");
                    self.hear(at);
                }
            }
        }
    }

    /// Carries datagrams in both directions between a participant and the SFU.
    fn exchange(&mut self, at: usize) {
        while let Some((data, waited)) = self.parties[at].down.poll(self.now) {
            self.events.push(WorldEvent::Arrived { at, bytes: data.len(), waited });
            self.parties[at].client.receive(self.now, self.sfu, &data).expect("a client");
            self.hear(at);
        }
        if self.parties[at].client.due <= self.now {
            self.parties[at].client.wake(self.now).expect("a client");
            self.hear(at);
        }
        let (now, address) = (self.now, self.parties[at].client.address);
        while let Some((data, _)) = self.parties[at].up.poll(now) {
            self.metered(|core| core.datagram(now, address, &data));
        }
    }

    /// Takes all outputs of a client.
    fn hear(&mut self, at: usize) {
        let party = &mut self.parties[at];
        while let Some(said) = party.client.poll().expect("a client") {
            match said {
                Said::Datagram(sent) => {
                    party.up.push(self.now, sent.contents.len(), sent.contents.into());
                }
                Said::Event(event) => {
                    if let (Event::KeyframeRequest(_), Some((_, camera))) =
                        (&*event, &mut party.camera)
                    {
                        camera.key_wanted();
                    }
                    self.events.push(WorldEvent::Client(at, event));
                }
            }
        }
    }

    /// Takes all outputs of the SFU.
    fn send(&mut self) {
        while let Some(output) = self.metered(Core::poll) {
            let event = match output {
                Output::Transmit { to, data, .. } => {
                    if let Some(&at) = self.by_address.get(&to.address) {
                        self.parties[at].down.push(self.now, data.len(), data);
                    }
                    continue;
                }
                Output::Event(id, event) => {
                    self.apply_knobs(id, &event);
                    WorldEvent::Told(id, event)
                }
                Output::Tap(input) => WorldEvent::Tapped(input),
                Output::Request(stream, request) => WorldEvent::Requested(stream, request),
                Output::Record(input) => WorldEvent::Recorded(input),
                Output::Render(_) => continue,
                Output::Relay(node, room, message) => WorldEvent::Relayed(node, room, message),
            };
            self.events.push(event);
        }
    }

    /// Makes a publisher send the layers that the SFU asks for, at its bitrates. A layer that was paused begins with a
    /// key frame.
    fn apply_knobs(&mut self, id: ParticipantId, event: &SfuEvent) {
        let SfuEvent::Knobs { layers, .. } = event else { return };
        let Some(party) = self.parties.iter_mut().find(|p| p.id == id) else { return };
        for (layer, knobs) in layers {
            let paused = std::mem::replace(&mut party.paused[*layer as usize], !knobs.active);
            let Some((_, camera)) = &mut party.camera else { continue };
            camera.limit(*layer, knobs.bitrate);
            if paused && knobs.active {
                camera.key_wanted();
            }
        }
    }
}
