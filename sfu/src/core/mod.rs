//! The SFU without I/O: datagrams, commands and time go in, datagrams, events and tap frames come out.
//!
//! [`Core`] holds rooms, participants and tracks. Its parts, in the order in which data passes:
//! `forward` (packets to subscribers and taps), `ladder` (rungs, taps, what clients are told), `enhance` (anchors),
//! `negotiate` (offers). Time is an argument everywhere.

mod alignment;
mod allocator;
mod anchors;
mod audio;
mod capture;
mod dd;
mod detail;
mod downlink;
mod dynacast;
mod enhance;
mod flights;
mod forward;
mod keyframes;
mod ladder;
mod layers;
mod negotiate;
mod nomination;
mod peer;
mod recent;
mod red;
mod regions;
mod remote;
mod rewriter;
mod sdp;
mod shard;
mod speakers;
mod strangers;
mod tap;
mod ufrag;
mod view;
mod vp9;
mod wakes;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use str0m::Input;
use str0m::media::Mid;
use str0m::net::{DatagramRecv, Receive};
use windlass_media::{AnchorCodecId, AnchorPolicy, Layer, Refusal, Rung, StreamId, TapInput};

use self::alignment::Alignment;
use self::detail::DetailStream;
use self::dynacast::Dynacast;
use self::keyframes::KeyFrames;
use self::layers::Layers;
pub use self::negotiate::ReadOffer;
use self::peer::{Happening, Peer};
use self::recent::Recent;
pub use self::regions::RegionRequest;
use self::remote::Locals;
pub use self::remote::{Remote, Via};
pub use self::sdp::{MediaLine, media_lines};
pub use self::shard::Shard;
use self::speakers::Speakers;
pub use self::strangers::counted_address;
use self::tap::Tap;
pub use self::view::View;
use self::wakes::Wakes;
use crate::api::{JoinError, JoinOptions, Kind, ParticipantId, SfuEvent, TrackId, TrackInfo};
use crate::config::{SfuConfig, Tuning};
use crate::latency::Percentiles;
use crate::stats::{Counters, SfuStats};

/// How often rungs are chosen anew when nothing asks for it sooner.
const ALLOCATION: Duration = Duration::from_millis(200);
/// How often subscribers are told what they received.
const STATS: Duration = Duration::from_secs(1);

/// Packets that one connection may send before the next one gets its turn.
const PACED: usize = 64;
/// What a pacer means by at once.
const AT_ONCE: Duration = Duration::from_micros(1);
/// How often it is looked for who waits for a key frame, when nothing asks for it sooner.
const KEY_FRAMES: Duration = Duration::from_millis(5);

/// What the core wants done.
#[derive(Debug)]
pub enum Output {
    /// Send a datagram.
    Transmit {
        /// To whom.
        to: Remote,
        /// What.
        data: Vec<u8>,
        /// When the packet that it forwards had come.
        arrival: Option<Instant>,
    },
    /// Tell a participant.
    Event(ParticipantId, SfuEvent),
    /// Tell the enhancer.
    Tap(TapInput),
}

struct Room {
    members: Vec<ParticipantId>,
    loopback: bool,
    speakers: Speakers,
}

/// A published track and who receives it.
struct Track {
    info: TrackInfo,
    mid: Mid,
    subscribers: Vec<ParticipantId>,
    layers: Layers,
    /// Sizes of the layers' pictures, as their key frames say.
    sizes: [Option<(u16, u16)>; 3],
    dynacast: Dynacast,
    /// What a publisher's only encoding is taken for, once its size is known.
    single: Option<Layer>,
    recent: Recent,
    keyframes: KeyFrames,
    tap: Option<Tap>,
    /// By how much the enhancer enlarges a tapped layer.
    scaled: Option<(Layer, u16)>,
    /// Whose frames belong together.
    alignment: Alignment,
    /// The layer above the tapped one, while both are there.
    capture: Option<Tap>,
    /// Full-size frames that the publisher sends beside it.
    detail: Option<DetailStream>,
    /// Whether the enhancer was told that it may ask for regions.
    regions: bool,
    /// The first epoch that no former tap has used.
    next_epoch: u16,
    anchor_bps: u64,
    anchor_bytes: u64,
    /// Why the enhancer makes no anchors of it.
    refused: Option<Refusal>,
}

impl Track {
    /// From a frame's arrival to its anchor's last use: the operator's, and as much more as its policy holds frames.
    fn budget(&self, operator: Duration) -> Duration {
        operator + self.tap.as_ref().map_or(Duration::ZERO, |tap| tap.policy.holds())
    }
}

/// All rooms, participants and tracks; or those of a shard.
pub struct Core {
    /// What has been counted; the shell adds its own.
    pub counters: Counters,
    config: SfuConfig,
    /// Of rooms without one of their own.
    policy: AnchorPolicy,
    locals: Locals,
    rooms: HashMap<String, Room>,
    peers: BTreeMap<ParticipantId, Peer>,
    tracks: BTreeMap<TrackId, Track>,
    streams: HashMap<StreamId, TrackId>,
    addresses: HashMap<Remote, ParticipantId>,
    /// The server's user name fragments, for senders that are not known yet.
    ufrags: HashMap<String, ParticipantId>,
    wakes: Wakes,
    /// Those that still have their turn in this step; with the time that they gave, where it was that.
    turn: VecDeque<(ParticipantId, Option<Instant>)>,
    shard: Shard,
    happenings: Vec<(ParticipantId, Happening)>,
    outputs: VecDeque<Output>,
    enhancement: bool,
    /// No new rooms begin.
    draining: bool,
    next_track: u64,
    /// Tells detail streams apart.
    next_run: u16,
    next_allocation: Instant,
    /// When it is looked at again who waits for a key frame.
    next_key_frames: Instant,
    /// Whether it was, in this step.
    looked: bool,
    next_stats: Instant,
    last_stats: Instant,
    /// When time last passed: connections' time does not go back behind it.
    stepped: Instant,
    /// How long before `stepped` the datagram that is being looked at had come.
    late: Duration,
    due: Instant,
}

impl Core {
    /// An SFU without rooms; `bound` is the address of its socket.
    pub fn new(config: SfuConfig, bound: SocketAddr, now: Instant) -> Core {
        Core::of_shard(config, bound, now, Shard::default())
    }

    /// One of several, each with rooms of its own.
    pub fn of_shard(config: SfuConfig, bound: SocketAddr, now: Instant, shard: Shard) -> Core {
        // The stack looks for a process-wide provider; a second installation changes nothing.
        str0m::crypto::from_feature_flags().install_process_default();
        Core {
            counters: Counters::default(),
            locals: Locals { udp: config.candidates(bound), tcp: Vec::new() },
            policy: config.policy,
            config,
            rooms: HashMap::new(),
            peers: BTreeMap::new(),
            tracks: BTreeMap::new(),
            streams: HashMap::new(),
            addresses: HashMap::new(),
            ufrags: HashMap::new(),
            wakes: Wakes::default(),
            turn: VecDeque::new(),
            next_track: shard.first_number(),
            shard,
            happenings: Vec::new(),
            outputs: VecDeque::new(),
            enhancement: true,
            draining: false,
            next_run: 0,
            next_allocation: now,
            next_key_frames: now,
            looked: true,
            next_stats: now + STATS,
            last_stats: now,
            stepped: now,
            late: Duration::ZERO,
            due: now,
        }
    }

    /// Clients may come by TCP too, to these addresses. Whoever has offered before is not told.
    pub fn listen_tcp(&mut self, candidates: Vec<SocketAddr>) {
        self.locals.tcp = candidates;
    }

    /// Lets a participant in; returns who and what is there already.
    pub fn join(
        &mut self,
        now: Instant,
        room: &str,
        id: ParticipantId,
        options: JoinOptions,
    ) -> Result<(Vec<ParticipantId>, Vec<TrackInfo>), JoinError> {
        if let Err(error) = self.reserve(room, id, options) {
            self.counters.joins_refused += 1;
            match error {
                JoinError::RoomFull => self.counters.joins_refused_room_full += 1,
                JoinError::ServerFull => self.counters.joins_refused_server_full += 1,
                JoinError::Draining => self.counters.joins_refused_draining += 1,
                _ => {}
            }
            return Err(error);
        }
        let entry = self.rooms.entry(room.to_owned());
        let entry = entry.or_insert_with(|| Room {
            members: Vec::new(),
            loopback: options.loopback,
            speakers: Speakers::default(),
        });
        let members = entry.members.clone();
        entry.members.push(id);
        // Later ones are told when the speaker changes.
        let speaks = entry.speakers.speaker();
        self.outputs
            .extend(speaks.map(|participant| Output::Event(id, SfuEvent::Speaker { participant })));
        let decodes = options.anchor_codecs.contains(self.config.anchor_codec);
        self.counters.joins += 1;
        self.counters.joins_without_codec += u64::from(!decodes);
        let mut peer = Peer::new(id, room, decodes, self.wakes.clone(), now);
        peer.decodes_pictures = options.anchor_codecs.contains(AnchorCodecId::Vp9Pictures);
        self.peers.insert(id, peer);
        let tracks = self.tracks.values().filter(|t| members.contains(&t.info.participant));
        let tracks = tracks.map(|t| t.info.clone()).collect();
        for &member in &members {
            self.outputs
                .push_back(Output::Event(member, SfuEvent::ParticipantJoined { participant: id }));
        }
        self.due = now;
        Ok((members, tracks))
    }

    /// Takes the places of a participant, and of its room if that begins.
    fn reserve(
        &self,
        room: &str,
        id: ParticipantId,
        options: JoinOptions,
    ) -> Result<(), JoinError> {
        let limits = &self.config.limits;
        if self.peers.contains_key(&id) {
            return Err(JoinError::AlreadyJoined);
        }
        if !self.shard.take_participant(limits.participants) {
            return Err(JoinError::ServerFull);
        }
        let most = limits.participants_per_room;
        let refusal = match self.rooms.get(room) {
            None if self.draining => Some(JoinError::Draining),
            None => (!self.shard.take_room(limits.rooms)).then_some(JoinError::ServerFull),
            Some(r) if r.loopback || options.loopback => Some(JoinError::RoomFull),
            Some(r) => (r.members.len() >= most).then_some(JoinError::RoomFull),
        };
        if let Some(error) = refusal {
            self.shard.give_participant();
            return Err(error);
        }
        Ok(())
    }

    /// Chooses anchors by another policy from now on, in a room, or in all rooms without one of their own; `None` takes a room's own
    /// policy back, or goes back to what is configured. False where too many rooms have one.
    pub fn set_policy(
        &mut self,
        now: Instant,
        room: Option<&str>,
        policy: Option<AnchorPolicy>,
    ) -> bool {
        let config = &mut self.config;
        match (room, policy) {
            (None, policy) => self.policy = policy.unwrap_or(config.policy),
            (Some(room), None) => {
                config.room_policies.remove(room);
            }
            (Some(room), Some(policy)) => {
                let policies = &mut config.room_policies;
                if policies.len() >= config.limits.rooms && !policies.contains_key(room) {
                    return false;
                }
                policies.insert(room.to_owned(), policy);
            }
        }
        self.next_allocation = now;
        self.due = now;
        true
    }

    /// Takes no new rooms from now on.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Works by other bounds from now on; nobody who is there has to leave.
    pub fn retune(&mut self, now: Instant, tuning: Tuning) {
        let Tuning { limits, policy } = tuning;
        self.config.limits = limits;
        if self.config.policy != policy {
            (self.config.policy, self.policy) = (policy, policy);
            self.next_allocation = now;
            self.due = now;
        }
    }

    /// Removes a participant, its tracks and its subscriptions. It hears [`SfuEvent::Disconnected`].
    pub fn leave(&mut self, now: Instant, id: ParticipantId) {
        let Some(mut peer) = self.peers.remove(&id) else { return };
        self.shard.give_participant();
        self.counters.leaves += 1;
        self.counters.anchors_dropped_left += peer.pacer.waiting();
        if let Some(rtc) = &mut peer.rtc {
            // What is still to be said (DTLS close) is said if it is ready; nothing waits for it.
            let _ = rtc.close();
            peer.drain(now, &mut self.outputs, &mut Vec::new());
        }
        for ufrag in &peer.ufrags {
            self.ufrags.remove(ufrag);
            self.shard.forgot(ufrag);
        }
        for address in &peer.addresses {
            self.addresses.remove(address);
            self.shard.went(address);
        }
        for track in peer.published.values() {
            self.remove_track(*track);
        }
        for track in peer.slots.iter().filter_map(|s| s.track) {
            if let Some(track) = self.tracks.get_mut(&track) {
                track.subscribers.retain(|&s| s != id);
            }
        }
        if let Some(room) = self.rooms.get_mut(&peer.room) {
            room.members.retain(|&m| m != id);
            room.speakers.forget(id);
            for &member in &room.members {
                self.outputs.push_back(Output::Event(
                    member,
                    SfuEvent::ParticipantLeft { participant: id },
                ));
            }
            if room.members.is_empty() {
                self.rooms.remove(&peer.room);
                self.shard.give_room();
            }
        }
        self.outputs.push_back(Output::Event(id, SfuEvent::Disconnected));
        self.next_allocation = now;
        self.due = now;
    }

    /// Says whether there is an enhancer that works. Without one, no enhanced rung is given and no layer tapped.
    pub fn set_enhancement(&mut self, now: Instant, works: bool) {
        if self.enhancement != works {
            self.enhancement = works;
            self.next_allocation = now;
            self.due = now;
        }
    }

    /// Sets the best rung that a subscriber wants of a track.
    pub fn set_max_rung(&mut self, now: Instant, id: ParticipantId, track: TrackId, max: Rung) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        for slot in peer.slots.iter_mut().filter(|s| s.track == Some(track)) {
            slot.max = max;
        }
        self.next_allocation = now;
        self.due = now;
    }

    /// A subscriber says how it shows a track: how much that matters beside others, and what is enough for it, follows.
    pub fn set_view(&mut self, now: Instant, id: ParticipantId, track: TrackId, view: View) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        for slot in peer.slots.iter_mut().filter(|s| s.track == Some(track)) {
            slot.view = Some(view);
        }
        self.next_allocation = now;
        self.due = now;
    }

    /// Mutes or unmutes a track of the participant's own.
    pub fn set_muted(&mut self, now: Instant, id: ParticipantId, track: TrackId, muted: bool) {
        let Some(t) = self.tracks.get_mut(&track).filter(|t| t.info.participant == id) else {
            return;
        };
        if t.info.muted == muted {
            return;
        }
        t.info.muted = muted;
        if let Some(tap) = &mut t.tap {
            tap.need_key();
        }
        if let Some(capture) = &mut t.capture {
            capture.need_key();
        }
        for subscriber in t.subscribers.clone() {
            let Some(peer) = self.peers.get_mut(&subscriber) else { continue };
            for slot in peer.slots.iter_mut().filter(|s| s.track == Some(track)) {
                slot.interrupt();
            }
        }
        self.tell_audience(id, &SfuEvent::TrackMuted { track, muted });
        self.next_allocation = now;
        self.due = now;
    }

    /// Takes a datagram. One that comes after its time, because another thread had it first, counts as come just now.
    pub fn datagram(&mut self, arrival: Instant, source: impl Into<Remote>, data: &[u8]) {
        let source = source.into();
        let (came, arrival) = (arrival, arrival.max(self.stepped));
        self.late = arrival.duration_since(came);
        self.counters.datagrams_in += 1;
        let most = self.config.limits.strangers_per_second;
        if !self.addresses.contains_key(&source)
            && !self.shard.admit(arrival, source.address.ip(), most)
        {
            self.counters.strangers_limited += 1;
            return;
        }
        let Ok(contents) = DatagramRecv::try_from(data) else {
            self.counters.datagrams_malformed += 1;
            return;
        };
        let Some(destination) = self.locals.towards(source) else { return };
        let proto = source.via.into();
        let receive = Receive { proto, source: source.address, destination, contents };
        let input = Input::Receive(arrival, receive);
        let Some(id) = self.owner(source, data, &input) else {
            self.counters.datagrams_unknown += 1;
            return;
        };
        let Some(peer) = self.peers.get_mut(&id) else { return };
        // Requests by former credentials say nothing of where the client is now.
        if ufrag::ufrag(data).is_some_and(|own| peer.is_current(own)) {
            self.counters.paths_moved += u64::from(peer.nomination.heard(source, data));
        }
        let received = peer.receive(arrival, input);
        self.counters.datagrams_taken += u64::from(received.is_ok());
        if let Err(error) = received {
            // One bad datagram, which anybody can send, is no reason to end a connection that still lives.
            tracing::debug!(participant = %id, %error, "datagram refused");
            self.counters.datagrams_malformed += 1;
        }
        // One packet at a time comes out, so it must be taken before the next goes in.
        peer.drain(arrival, &mut self.outputs, &mut self.happenings);
        self.settle(arrival);
    }

    /// Whose datagram it is: the sender's address says it, but a STUN request may move an address to another.
    fn owner(&mut self, source: Remote, data: &[u8], input: &Input) -> Option<ParticipantId> {
        let accepts = |p: &Peer| p.rtc.as_ref().is_some_and(|rtc| rtc.accepts(input));
        let is_stun = data.first().is_some_and(|&b| b < 4);
        let known = self.addresses.get(&source).copied();
        if let Some(id) = known.filter(|id| !is_stun || self.peers.get(id).is_some_and(accepts)) {
            return Some(id);
        }
        // Whoever is new says first for whom it is; asking every connection would be a gift to floods.
        let id = self.ufrags.get(ufrag::ufrag(data)?).copied()?;
        let peer = self.peers.get_mut(&id).filter(|p| accepts(p))?;
        if !peer.may_come_from_elsewhere() {
            self.counters.paths_refused += 1;
            return None;
        }
        if let Some(former) = known.and_then(|former| self.peers.get_mut(&former)) {
            former.addresses.retain(|a| *a != source);
        }
        self.addresses.insert(source, id);
        self.shard.came(source);
        if let Some(oldest) = self.peers.get_mut(&id).and_then(|p| p.remember(source)) {
            self.addresses.remove(&oldest);
            self.shard.went(&oldest);
        }
        Some(id)
    }

    /// Does what is due at `now`. No datagram may come afterwards that arrived before `now`.
    pub fn advance(&mut self, now: Instant) {
        self.begin(now);
        while self.go_on(now, usize::MAX) {}
    }

    /// The first part of [`Core::advance`]; [`Core::go_on`] does the rest.
    pub fn begin(&mut self, now: Instant) {
        self.stepped = now;
        self.late = Duration::ZERO;
        for track in self.tracks.values_mut() {
            let Some(tap) = &mut track.tap else { continue };
            tap.advance(now);
            if let Some(capture) = &mut track.capture {
                capture.advance(now);
            }
            if let Some(detail) = &mut track.detail {
                detail.advance(now);
            }
        }
        self.collect_taps();
        self.collect_details(now);
        if now >= self.next_allocation {
            self.next_allocation = now + ALLOCATION;
            self.allocate(now);
            self.remove_idle(now);
            self.next_key_frames = now;
        }
        if now >= self.next_stats {
            self.second(now);
        }
        self.looked =
            now >= self.next_key_frames || self.tracks_due(now).is_some_and(|due| due <= now);
        if self.looked {
            self.next_key_frames = now + KEY_FRAMES;
            self.request_key_frames(now);
        }
        self.turn.extend(self.wakes.touched().into_iter().map(|id| (id, None)));
        self.turn.extend(self.wakes.due(now).into_iter().map(|(entry, id)| (id, Some(entry))));
    }

    /// Looks after some of the connections that want it, so that what they send can leave before the others' turn. Whether
    /// there are more, which must have theirs before anything else happens.
    pub fn go_on(&mut self, now: Instant, most: usize) -> bool {
        for _ in 0..most {
            let Some((id, entry)) = self.turn.pop_front() else { break };
            self.look_after(now, id, |peer| match entry {
                Some(entry) => peer.wake.is_due(entry, now),
                None => peer.wake.is_touched(),
            });
        }
        if !self.turn.is_empty() {
            return true;
        }
        self.settle(now);
        self.due = self.next_due(now);
        if !self.looked {
            self.due = self.due.min(self.next_key_frames);
        }
        false
    }

    /// Lets time pass for a connection that wants it.
    fn look_after(
        &mut self,
        now: Instant,
        id: ParticipantId,
        wants: impl FnOnce(&mut Peer) -> bool,
    ) {
        let peer = self.peers.get_mut(&id).filter(|peer| peer.rtc.is_some());
        let Some(peer) = peer.and_then(|peer| wants(peer).then_some(peer)) else { return };
        peer.release_anchors(now, &mut self.counters);
        // The stack's pacer lets one packet out at a time, and wants to be asked for the next one a microsecond later. Were
        // time to pass in between, a frame's packets would leave one by one, in turn with those of everybody else.
        let mut at = now;
        for _ in 0..PACED {
            peer.tick(at);
            if !peer.drain(at, &mut self.outputs, &mut self.happenings) {
                break;
            }
            let due = peer.wake.when();
            if due > at + AT_ONCE {
                break;
            }
            at = at.max(due);
        }
    }

    fn next_due(&self, now: Instant) -> Instant {
        if self.peers.is_empty() {
            return now + STATS;
        }
        let soon = self.next_allocation.min(self.next_stats);
        self.wakes.next(now).into_iter().chain(self.tracks_due(now)).fold(soon, Instant::min)
    }

    /// When something is to be done about a track.
    fn tracks_due(&self, now: Instant) -> Option<Instant> {
        let of = |t: &Track| {
            let capture = t.capture.as_ref().and_then(Tap::timeout);
            let detail = t.detail.as_ref().and_then(DetailStream::timeout);
            let tap = t.tap.as_ref().and_then(Tap::timeout);
            [t.keyframes.timeout(now), tap, capture, detail].into_iter().flatten().min()
        };
        self.tracks.values().filter_map(of).min()
    }

    /// When [`Core::advance`] is due at the latest.
    pub fn timeout(&self) -> Instant {
        self.due
    }

    /// The next thing to do outside.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Deals with what connections made happen.
    fn settle(&mut self, now: Instant) {
        while !self.happenings.is_empty() {
            for (id, what) in std::mem::take(&mut self.happenings) {
                match what {
                    Happening::Rtp(mid, encoding, packet) => {
                        self.forward(id, mid, encoding, &packet);
                    }
                    Happening::Region(message) => self.take_region(now, id, &message),
                    Happening::KeyFrameWanted(mid) => self.key_frame_wanted(id, mid),
                    Happening::Ready => {
                        if let Some(peer) = self.peers.get_mut(&id) {
                            peer.open_channel(self.config.budget);
                        }
                        self.next_allocation = now;
                    }
                    Happening::Narrower => self.next_allocation = now,
                    Happening::Gone => {
                        if self.peers.get(&id).is_some_and(|p| p.connected) {
                            self.counters.peers_timed_out += 1;
                        } else {
                            self.counters.peers_failed += 1;
                        }
                        self.leave(now, id);
                    }
                }
            }
        }
    }

    /// Removes those whose client has gone without a word. (A browser that lives sends every few seconds.)
    fn remove_idle(&mut self, now: Instant) {
        let idle = self.config.idle;
        let is_idle =
            |p: &&Peer| p.heard.is_some_and(|heard| now.saturating_duration_since(heard) > idle);
        let gone: Vec<_> = self.peers.values().filter(is_idle).map(|p| p.id).collect();
        for id in gone {
            self.counters.peers_timed_out += 1;
            self.leave(now, id);
        }
    }

    fn second(&mut self, now: Instant) {
        let seconds = now.saturating_duration_since(self.last_stats).as_secs_f64().max(0.001);
        self.last_stats = now;
        self.next_stats = now + STATS;
        for track in self.tracks.values_mut() {
            let bps = (track.anchor_bytes as f64 * 8.0 / seconds) as u64;
            if bps > 0 {
                track.anchor_bps = u64::midpoint(track.anchor_bps, bps);
            }
            track.anchor_bytes = 0;
        }
        for peer in self.peers.values_mut() {
            let mut stats = peer.second(seconds);
            for track in &mut stats {
                let known = self.tracks.get(&track.track);
                track.refused = known.and_then(|t| t.tap.as_ref().and(t.refused));
            }
            tracing::debug!(participant = %peer.id, available_bps = peer.downlink.available_bps(), anchor_bps = peer.anchor_rate_bps);
            if !stats.is_empty() {
                self.outputs.push_back(Output::Event(peer.id, SfuEvent::TrackStats(stats)));
            }
        }
    }

    /// Makes a track known to the others in the room, and in a loopback room to its publisher.
    fn add_track(
        &mut self,
        participant: ParticipantId,
        mid: Mid,
        kind: Kind,
        name: &str,
    ) -> TrackId {
        let id = self.next_track;
        self.next_track = self.shard.next_number(id);
        let track = TrackId(id);
        let stream = (kind == Kind::Video).then_some(StreamId(id as u32));
        let info =
            TrackInfo { track, participant, kind, name: name.to_owned(), muted: false, stream };
        if let Some(stream) = stream {
            self.streams.insert(stream, track);
        }
        self.tracks.insert(
            track,
            Track {
                info: info.clone(),
                mid,
                subscribers: Vec::new(),
                layers: Layers::default(),
                sizes: [None; 3],
                dynacast: Dynacast::default(),
                single: None,
                recent: Recent::default(),
                keyframes: KeyFrames::default(),
                tap: None,
                scaled: None,
                refused: None,
                alignment: Alignment::default(),
                capture: None,
                detail: None,
                regions: false,
                next_epoch: 0,
                anchor_bps: allocator::ANCHORS_ASSUMED_BPS,
                anchor_bytes: 0,
            },
        );
        self.tell_audience(participant, &SfuEvent::TrackAdded(info));
        track
    }

    fn remove_track(&mut self, track: TrackId) {
        let Some(t) = self.tracks.remove(&track) else { return };
        if let Some(stream) = t.info.stream {
            self.streams.remove(&stream);
            if t.tap.is_some() {
                self.outputs.push_back(Output::Tap(TapInput::Stop { stream }));
            }
        }
        for subscriber in t.subscribers {
            let Some(peer) = self.peers.get_mut(&subscriber) else { continue };
            for slot in peer.slots.iter_mut().filter(|s| s.track == Some(track)) {
                slot.carry(None);
            }
        }
        self.tell_audience(t.info.participant, &SfuEvent::TrackRemoved { track });
    }

    /// Tells everybody who may subscribe to the participant's tracks.
    fn tell_audience(&mut self, publisher: ParticipantId, event: &SfuEvent) {
        let room = self.rooms.values().find(|r| r.members.contains(&publisher));
        let Some(room) = room else { return };
        for &member in room.members.iter().filter(|&&m| m != publisher || room.loopback) {
            self.outputs.push_back(Output::Event(member, event.clone()));
        }
    }

    /// What a participant's downlink is taken to carry, in bits per second of payload; `None` before there is an estimate.
    pub fn estimate_bps(&self, id: ParticipantId) -> Option<u64> {
        self.peers.get(&id)?.downlink.available_bps()
    }

    /// A snapshot.
    pub fn stats(&self) -> SfuStats {
        SfuStats {
            rooms: self.rooms.len(),
            participants: self.peers.len(),
            connected: self.peers.values().filter(|p| p.connected).count(),
            tracks: self.tracks.len(),
            subscriptions: self.tracks.values().map(|t| t.subscribers.len()).sum(),
            taps: self.tracks.values().filter(|t| t.tap.is_some()).count(),
            tcp_open: 0,
            forwarding: Percentiles::default(),
            counters: self.counters,
        }
    }
}

#[cfg(test)]
mod audio_tests;
#[cfg(test)]
mod captured_tests;
#[cfg(test)]
mod forward_tests;
#[cfg(test)]
mod reach_tests;
#[cfg(test)]
mod scale_tests;
#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
#[cfg(test)]
mod world;
