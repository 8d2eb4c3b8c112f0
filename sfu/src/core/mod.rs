//! The SFU without I/O: datagrams, commands and time go in, datagrams, events and tap frames come out.
//!
//! [`Core`] holds rooms (`rooms`), participants (`peer`) and tracks (`tracks`). Its parts, in the order in which data passes:
//! `forward` (packets to subscribers and taps), `ladder` (rungs, taps, what clients are told), `enhance` (anchors),
//! `negotiate` (offers). Time is an argument everywhere.

mod agreed;
mod alignment;
mod allocator;
mod anchors;
mod audio;
mod capture;
mod costs;
mod dd;
mod downlink;
mod dynacast;
mod enhance;
mod fault;
mod flights;
mod forward;
mod keyframes;
mod ladder;
mod layers;
mod negotiate;
mod nomination;
mod payloads;
mod peer;
#[cfg_attr(not(debug_assertions), path = "plant_none.rs")]
mod plant;
mod quality;
mod recent;
mod red;
mod regions;
mod relay;
mod remote;
mod reports;
mod rewriter;
mod rights;
mod rooms;
mod rtcp;
mod sdp;
mod shard;
mod speakers;
mod srtp;
mod stack;
mod strangers;
mod streams;
mod tap;
mod told;
mod toll;
mod tracks;
mod ufrag;
mod used;
mod view;
mod vp9;
mod wakes;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::Input;
use str0m::net::{DatagramRecv, Receive};
use windlass_types::{AnchorPolicy, Refusal, StreamId, TapInput};

pub use self::fault::{Fault, contained, tell_panics};
pub use self::negotiate::{Answered, ReadOffer};
use self::peer::{Happening, Peer};
pub use self::regions::RegionRequest;
use self::relay::Relays;
use self::remote::Locals;
pub use self::remote::{Remote, Via};
use self::rooms::Room;
pub use self::sdp::{MediaLine, media_lines};
pub use self::shard::Shard;
pub use self::strangers::counted_address;
use self::tap::Tap;
use self::tracks::Track;
pub use self::view::View;
use self::wakes::Wakes;
use crate::api::{Ended, ParticipantId, SfuEvent, TrackId};
use crate::config::{SfuConfig, Tuning};
use crate::latency::Percentiles;
use crate::relay::{NodeId, Relayed};
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
    /// Tell another SFU, of a room.
    Relay(NodeId, Arc<str>, Relayed),
}

/// All rooms, participants and tracks; or those of a shard.
pub struct Core {
    /// What has been counted; the shell adds its own.
    pub counters: Counters,
    config: SfuConfig,
    /// By what it is measured what connections take; `None`: it is not.
    clock: Option<fn() -> Duration>,
    /// Of rooms without one of their own.
    policy: AnchorPolicy,
    locals: Locals,
    rooms: HashMap<String, Room>,
    peers: BTreeMap<ParticipantId, Peer>,
    tracks: BTreeMap<TrackId, Track>,
    streams: HashMap<StreamId, TrackId>,
    relays: Relays,
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
        let connect = plant::connect().unwrap_or(config.connect);
        let config = SfuConfig { connect, ..config };
        Core {
            counters: Counters::default(),
            locals: Locals { udp: config.candidates(bound), tcp: Vec::new() },
            policy: config.policy,
            config,
            clock: None,
            rooms: HashMap::new(),
            peers: BTreeMap::new(),
            tracks: BTreeMap::new(),
            streams: HashMap::new(),
            relays: Relays::default(),
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

    /// Bounds what one connection's input may take of the thread's time. The clock tells for how long the thread has been at work:
    /// while the machine does something else nobody pays.
    pub fn measure(&mut self, clock: fn() -> Duration) {
        self.clock = Some(clock);
    }

    /// Clients may come by TCP too, to these addresses. Whoever has offered before is not told.
    pub fn listen_tcp(&mut self, candidates: Vec<SocketAddr>) {
        self.locals.tcp = candidates;
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

    /// Says whether there is an enhancer that works. Without one, no enhanced rung is given and no layer tapped.
    pub fn set_enhancement(&mut self, now: Instant, works: bool) {
        if self.enhancement != works {
            self.enhancement = works;
            self.next_allocation = now;
            self.due = now;
        }
    }

    /// The number of the core whose datagram it is, where it is another's.
    pub fn elsewhere(&self, source: Remote, data: &[u8]) -> Option<usize> {
        self.shard.elsewhere(source, data)
    }

    /// Takes a datagram. One that comes after its time, because another thread had it first, counts as come just now.
    pub fn datagram(&mut self, arrival: Instant, source: impl Into<Remote>, data: &[u8]) {
        let source = source.into();
        let (came, arrival) = (arrival, arrival.max(self.stepped));
        self.late = arrival.duration_since(came);
        self.counters.datagrams_in += 1;
        if let Err(fault) = contained(|| self.take(arrival, source, data)) {
            match self.addresses.get(&source) {
                Some(&id) => self.faulted(arrival, id, &fault),
                None => self.strangers_fault(&fault),
            }
        }
    }

    fn take(&mut self, arrival: Instant, source: Remote, data: &[u8]) {
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
        if !peer.toll.admit(arrival) {
            self.counters.datagrams_costly += 1;
            return;
        }
        toll::proved();
        let began = self.clock.map(|clock| clock());
        // Requests by former credentials say nothing of where the client is now.
        if ufrag::ufrag(data).is_none_or(|own| peer.is_current(own)) {
            self.counters.paths_moved += u64::from(peer.nomination.heard(arrival, source, data));
        }
        let received = peer.receive(arrival, data, input);
        self.counters.datagrams_taken += u64::from(received.is_ok());
        self.counters.rtcp_refused += peer.control.take_refused();
        if let Err(error) = received {
            // One bad datagram, which anybody can send, is no reason to end a connection that still lives.
            tracing::debug!(participant = %id, %error, "datagram refused");
            self.counters.datagrams_malformed += 1;
        }
        // One packet at a time comes out, so it must be taken before the next goes in.
        peer.drain(arrival, &mut self.outputs, &mut self.happenings);
        if let (Some(clock), Some(began), true) = (self.clock, began, toll::proved()) {
            peer.toll.charge(arrival, clock().saturating_sub(began));
        }
        self.settle(arrival);
    }

    /// Whose datagram it is: the sender's address says it, but a STUN request may move an address to another.
    fn owner(&mut self, source: Remote, data: &[u8], input: &Input) -> Option<ParticipantId> {
        let accepts = |p: &Peer| p.stack.rtc().is_some_and(|rtc| rtc.accepts(input));
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
        plant::thread(self.rooms.keys());
        self.stepped = now;
        self.late = Duration::ZERO;
        for track in self.tracks.values_mut() {
            let Some(tap) = &mut track.tap else { continue };
            tap.advance(now);
            if let Some(capture) = &mut track.capture {
                capture.advance(now);
            }
        }
        self.collect_taps();
        if now >= self.next_allocation {
            self.next_allocation = now + ALLOCATION;
            self.allocate(now);
            self.remove_idle(now);
            self.remove_unconnected(now);
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
        let peer = self.peers.get_mut(&id).filter(|peer| peer.stack.has_begun());
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
            let tap = t.tap.as_ref().and_then(Tap::timeout);
            [t.keyframes.timeout(now), tap, capture].into_iter().flatten().min()
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
                if let Err(fault) = contained(|| self.happened(now, id, what)) {
                    self.faulted(now, id, &fault);
                }
            }
        }
    }

    fn happened(&mut self, now: Instant, id: ParticipantId, what: Happening) {
        match what {
            Happening::Rtp(mid, encoding, packet) => self.forward(id, mid, encoding, &packet),
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
                let Some(peer) = self.peers.get(&id) else { return };
                if peer.connected {
                    self.counters.peers_timed_out += 1;
                    self.end(now, id, Ended::Lost);
                } else {
                    self.counters.peers_failed += 1;
                    self.end(now, id, Ended::NeverConnected);
                }
            }
            Happening::Fault => self.broken(now, id),
            Happening::TooManyChannels => {
                self.counters.peers_channels += u64::from(self.peers.contains_key(&id));
                self.end(now, id, Ended::TooManyChannels);
            }
        }
    }

    /// Ends the connection of a participant in which something panicked.
    pub fn faulted(&mut self, now: Instant, id: ParticipantId, fault: &Fault) {
        tracing::error!(participant = %id, %fault, "a fault ended this connection, and nothing else; please report it");
        self.counters.faults += 1;
        self.end(now, id, Ended::Fault);
    }

    /// Something panicked at the datagram of somebody who is nobody's client. It can be sent again: the log tells of the first, the
    /// counter of all.
    fn strangers_fault(&mut self, fault: &Fault) {
        if self.counters.faults == 0 {
            tracing::error!(%fault, "a fault at a stranger's datagram, and nothing else; please report it");
        }
        self.counters.faults += 1;
    }

    /// The same of one whose stack panicked, if it has.
    fn broken(&mut self, now: Instant, id: ParticipantId) {
        let fault = self.peers.get(&id).and_then(|peer| peer.stack.fault().cloned());
        if let Some(fault) = fault {
            self.faulted(now, id, &fault);
        }
    }

    fn second(&mut self, now: Instant) {
        let seconds = now.saturating_duration_since(self.last_stats).as_secs_f64().max(0.001);
        self.last_stats = now;
        self.next_stats = now + STATS;
        for track in self.tracks.values_mut() {
            let (made, captured) = (track.tapped().is_some(), track.gives_pixels());
            track.costs.second(seconds, made, captured);
        }
        let costly: Vec<_> =
            self.peers.values_mut().filter_map(|p| p.toll.second().then_some(p.id)).collect();
        for id in costly {
            tracing::warn!(participant = %id, "removed: what it sends takes too much of a media thread");
            self.counters.peers_costly += 1;
            self.end(now, id, Ended::Flood);
        }
        for peer in self.peers.values_mut() {
            let mut stats = peer.second(seconds);
            for track in &mut stats {
                let known = self.tracks.get(&track.track);
                track.refused = known.and_then(|t| {
                    let none = t.most_enhanced(self.config.tap_pixels).is_none();
                    let size = none || t.tap.as_ref().is_some_and(Tap::is_too_large);
                    t.tapped()
                        .and(t.refused)
                        .or((size && self.enhancement).then_some(Refusal::Size))
                });
            }
            tracing::debug!(participant = %peer.id, available_bps = peer.downlink.available_bps(), anchor_bps = peer.anchor_rate_bps);
            if !stats.is_empty() {
                self.outputs.push_back(Output::Event(peer.id, SfuEvent::TrackStats(stats)));
            }
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
mod fault_tests;
#[cfg(test)]
mod flood_tests;
#[cfg(test)]
mod forward_tests;
#[cfg(test)]
mod mutator_tests;
#[cfg(test)]
mod offer_tests;
#[cfg(test)]
mod reach_tests;
#[cfg(test)]
mod relay_tests;
#[cfg(test)]
mod scale_tests;
#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
#[cfg(test)]
mod world;
