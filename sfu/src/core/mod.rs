//! The SFU without I/O: datagrams, commands and time go in, datagrams, events and tap frames come out.
//!
//! [`Core`] holds rooms (`rooms`), participants (`peer`) and tracks (`tracks`). Its parts, in the order in which data passes:
//! `negotiate` (offers), `forward` (packets to subscribers and taps), `allocation` (rungs), `tapping` (which layers the enhancer gets),
//! `publisher_params` (what publishers send), `enhance` (anchors). Time is an argument everywhere.

mod addresses;
mod alignment;
mod allocation;
mod allocator;
mod anchor_channel;
mod anchor_costs;
mod anchors;
mod audio;
mod capture;
mod channels;
mod connection_news;
mod connection_quality;
mod cpu_limit;
mod data;
mod data_rate;
mod dd;
mod downlink;
mod dynacast;
mod enhance;
mod fault;
#[cfg_attr(not(debug_assertions), path = "fault_injection_none.rs")]
mod fault_injection;
mod forward;
mod gcra;
mod in_flight;
mod keyframes;
mod layers;
mod negotiate;
mod negotiated;
mod nomination;
mod paths;
mod payloads;
mod peer;
mod permissions;
mod publisher_params;
mod quality;
mod recent;
mod red;
mod regions;
mod relay;
mod reports;
mod rewriter;
mod rooms;
mod routes;
mod rtcp;
mod schedule;
mod sctp_filter;
mod sdp;
mod shard;
mod slot;
mod speakers;
mod srtp;
mod stack;
mod stack_offer;
mod tap;
mod tapping;
mod tracks;
mod ufrag;
mod unauthenticated;
mod view;
mod vp9;
mod wakes;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use str0m::Input;
use str0m::net::{DatagramRecv, Receive};
use windlass_types::{AnchorPolicy, Bitrate, Refusal, StreamId, TapInput};

use self::addresses::LocalAddrs;
pub use self::addresses::{RemoteAddr, Via};
pub use self::fault::{Fault, contained, log_panics};
use self::gcra::Gcra;
pub use self::negotiate::{Answered, ReadOffer};
use self::peer::{Peer, PeerEvent};
pub use self::regions::RegionRequest;
use self::relay::Relays;
use self::rooms::Room;
use self::routes::Routes;
use self::schedule::Schedule;
pub use self::sdp::{MediaLine, media_lines};
pub use self::shard::Shard;
use self::tap::Tap;
use self::tracks::Track;
pub use self::unauthenticated::rate_limit_address;
pub use self::view::View;
use self::wakes::Wakes;
use crate::api::{DisconnectReason, ParticipantId, SfuEvent, TrackId};
use crate::config::{SfuConfig, Tuning};
use crate::latency::Percentiles;
use crate::relay::{NodeId, Relayed};
use crate::stats::{Counters, SfuStats};

/// Packets that one connection may send before the next one has its turn.
const MAX_PACKETS_PER_TURN: usize = 64;
/// The stack's pacer asks for its next packet after this time, when it means at once.
const PACER_IMMEDIATE: Duration = Duration::from_micros(1);

/// What the caller of the core must do.
#[derive(Debug)]
pub enum Output {
    /// Send a datagram.
    Transmit {
        /// Destination.
        to: RemoteAddr,
        /// Content.
        data: Vec<u8>,
        /// Arrival of the packet that it forwards, to measure latency.
        arrival: Option<Instant>,
    },
    /// Send an event to a participant.
    Event(ParticipantId, SfuEvent),
    /// Send an input to the enhancer.
    Tap(TapInput),
    /// Send a message about a room to another SFU.
    Relay(NodeId, Arc<str>, Relayed),
}

/// The rooms, participants and tracks of one shard.
///
/// ```
/// use std::time::Instant;
/// use windlass_sfu::core::{Core, Output};
/// use windlass_sfu::{JoinError, JoinOptions, ParticipantId, SfuConfig, SfuEvent};
///
/// let now = Instant::now();
/// let mut core = Core::new(SfuConfig::default(), ([192, 0, 2, 1], 7881).into(), now);
/// let (ana, ben) = (ParticipantId(1), ParticipantId(2));
/// core.join(now, "tea", ana, JoinOptions::default())?;
/// let (members, tracks) = core.join(now, "tea", ben, JoinOptions::default())?;
/// assert_eq!((members, tracks.len()), (vec![ana], 0));
///
/// // What the caller has to do: here, to tell Ana that Ben has come.
/// let mut outputs = std::iter::from_fn(|| core.poll());
/// assert!(outputs.any(|output| matches!(
///     output,
///     Output::Event(to, SfuEvent::ParticipantJoined { participant }) if to == ana && participant == ben
/// )));
/// assert_eq!(core.join(now, "tea", ana, JoinOptions::default()), Err(JoinError::AlreadyJoined));
/// # Ok::<(), JoinError>(())
/// ```
pub struct Core {
    /// Counters; the caller adds its own.
    pub counters: Counters,
    config: SfuConfig,
    /// CPU time of the thread, for [`CpuLimit`](cpu_limit::CpuLimit); `None`: not measured.
    clock: Option<fn() -> Duration>,
    /// Policy of rooms without their own.
    policy: AnchorPolicy,
    locals: LocalAddrs,
    rooms: HashMap<String, Room>,
    peers: BTreeMap<ParticipantId, Peer>,
    tracks: BTreeMap<TrackId, Track>,
    streams: HashMap<StreamId, TrackId>,
    relays: Relays,
    /// What its participants have used of the rate of messages, as many times as they are received.
    data_received: Gcra,
    routes: Routes,
    wakes: Wakes,
    /// Peers with work left in this step; those with a timer have its time.
    ready: VecDeque<(ParticipantId, Option<Instant>)>,
    shard: Shard,
    peer_events: Vec<(ParticipantId, PeerEvent)>,
    outputs: VecDeque<Output>,
    enhancement: bool,
    /// Whether new rooms are refused.
    draining: bool,
    next_track: u64,
    schedule: Schedule,
    /// Time of the last step: connections' time must not go back behind it.
    last_step: Instant,
    /// How long before `last_step` the current datagram arrived at the machine.
    handover_delay: Duration,
}

impl Core {
    /// An SFU without rooms; `bound` is the address of its UDP socket.
    pub fn new(config: SfuConfig, bound: SocketAddr, now: Instant) -> Core {
        Core::of_shard(config, bound, now, Shard::default())
    }

    /// One of several cores, each with its own rooms.
    pub fn of_shard(config: SfuConfig, bound: SocketAddr, now: Instant, shard: Shard) -> Core {
        // The stack needs a process-wide provider; a second installation changes nothing.
        str0m::crypto::from_feature_flags().install_process_default();
        let connect = fault_injection::connect().unwrap_or(config.connect);
        let config = SfuConfig { connect, ..config };
        Core {
            counters: Counters::default(),
            locals: LocalAddrs { udp: config.candidates(bound), tcp: Vec::new() },
            policy: config.policy,
            config,
            clock: None,
            rooms: HashMap::new(),
            peers: BTreeMap::new(),
            tracks: BTreeMap::new(),
            streams: HashMap::new(),
            relays: Relays::default(),
            data_received: Gcra::default(),
            routes: Routes::new(shard.clone()),
            wakes: Wakes::default(),
            ready: VecDeque::new(),
            next_track: shard.first_id(),
            shard,
            peer_events: Vec::new(),
            outputs: VecDeque::new(),
            enhancement: true,
            draining: false,
            schedule: Schedule::new(now),
            last_step: now,
            handover_delay: Duration::ZERO,
        }
    }

    /// Limits the CPU time of each connection's input. `clock` is the thread's CPU time, so that preemption is not charged.
    pub fn limit_cpu_time(&mut self, clock: fn() -> Duration) {
        self.clock = Some(clock);
    }

    /// Adds TCP candidates to later answers.
    pub fn set_tcp_candidates(&mut self, candidates: Vec<SocketAddr>) {
        self.locals.tcp = candidates;
    }

    /// Sets the anchor policy of a room, or of all rooms without their own. `None` removes a room's own policy, or restores the configured
    /// one. False if too many rooms have their own policy.
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
        self.schedule.allocate_now(now);
        true
    }

    /// Changes limits and policy. Participants that are over a lower limit stay.
    pub fn retune(&mut self, now: Instant, tuning: Tuning) {
        let Tuning { limits, policy } = tuning;
        self.config.limits = limits;
        if self.config.policy != policy {
            (self.config.policy, self.policy) = (policy, policy);
            self.schedule.allocate_now(now);
        }
    }

    /// Sets whether an enhancer is available. Without one no enhanced rung is allocated, and no layer is tapped.
    pub fn set_enhancement(&mut self, now: Instant, available: bool) {
        if self.enhancement != available {
            self.enhancement = available;
            self.schedule.allocate_now(now);
        }
    }

    /// The number of the core that owns a datagram, if it is another one.
    pub fn other_owner(&self, source: RemoteAddr, data: &[u8]) -> Option<usize> {
        self.shard.other_owner(source, data)
    }

    /// Takes a datagram. One that another thread received first may have arrived before the last step; it then counts as arrived now.
    pub fn datagram(&mut self, arrival: Instant, source: impl Into<RemoteAddr>, data: &[u8]) {
        let source = source.into();
        let (kernel_arrival, arrival) = (arrival, arrival.max(self.last_step));
        self.handover_delay = arrival.duration_since(kernel_arrival);
        self.counters.datagrams_in += 1;
        if let Err(fault) = contained(|| self.receive(arrival, source, data)) {
            match self.routes.by_address(source) {
                Some(id) => self.on_fault(arrival, id, &fault),
                None => self.on_unauthenticated_fault(&fault),
            }
        }
    }

    fn receive(&mut self, arrival: Instant, source: RemoteAddr, data: &[u8]) {
        let max = self.config.limits.unauthenticated_per_second;
        if self.routes.by_address(source).is_none()
            && !self.shard.admit_unauthenticated(arrival, source.address.ip(), max)
        {
            self.counters.strangers_limited += 1;
            return;
        }
        let Ok(contents) = DatagramRecv::try_from(data) else {
            self.counters.datagrams_malformed += 1;
            return;
        };
        let Some(destination) = self.locals.destination(source) else { return };
        let proto = source.via.into();
        let receive = Receive { proto, source: source.address, destination, contents };
        let input = Input::Receive(arrival, receive);
        let Some(id) = self.route(source, data, &input) else {
            self.counters.datagrams_unknown += 1;
            return;
        };
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if !peer.cpu_limit.admit(arrival) {
            self.counters.datagrams_costly += 1;
            return;
        }
        cpu_limit::take_authenticated();
        let began = self.clock.map(|clock| clock());
        // Checks with older credentials prove nothing about the client's current address.
        if ufrag::ufrag(data).is_none_or(|own| peer.paths.is_current(own)) {
            let moved = peer.paths.nomination.on_datagram(arrival, source, data);
            self.counters.paths_moved += u64::from(moved);
        }
        let received = peer.receive(arrival, data, input);
        self.counters.datagrams_taken += u64::from(received.is_ok());
        self.counters.rtcp_refused += peer.rtcp_guard.take_refused();
        if let Err(error) = received {
            // Anybody can send a malformed datagram, so it must not end the connection.
            tracing::debug!(participant = %id, %error, "the stack refused a datagram: dropping it");
            self.counters.datagrams_malformed += 1;
        }
        // The stack holds one packet at a time: it must be polled before the next input.
        peer.drain(arrival, &mut self.outputs, &mut self.peer_events);
        if let (Some(clock), Some(began), true) =
            (self.clock, began, cpu_limit::take_authenticated())
        {
            peer.cpu_limit.charge(arrival, clock().saturating_sub(began));
        }
        self.process_events(arrival);
    }

    /// The participant of a datagram: by its source address, or by the user name of a STUN request, which may move the address to
    /// another participant.
    fn route(&mut self, source: RemoteAddr, data: &[u8], input: &Input) -> Option<ParticipantId> {
        let accepts = |p: &Peer| p.stack.rtc().is_some_and(|rtc| rtc.accepts(input));
        let is_stun = data.first().is_some_and(|&b| b < 4);
        let known = self.routes.by_address(source);
        if let Some(id) = known.filter(|id| !is_stun || self.peers.get(id).is_some_and(accepts)) {
            return Some(id);
        }
        // Only by user name: to ask every connection would amplify floods.
        let id = self.routes.by_ufrag(ufrag::ufrag(data)?)?;
        let peer = self.peers.get_mut(&id).filter(|p| accepts(p))?;
        if !peer.paths.admit_new_address() {
            self.counters.paths_refused += 1;
            return None;
        }
        if let Some(former) = known.and_then(|former| self.peers.get_mut(&former)) {
            former.paths.remove_address(source);
        }
        self.routes.add_address(source, id);
        if let Some(oldest) = self.peers.get_mut(&id).and_then(|p| p.paths.add_address(source)) {
            self.routes.remove_address(&oldest);
        }
        Some(id)
    }

    /// Does the work that is due at `now`. Later datagrams must not have arrived before `now`.
    pub fn advance(&mut self, now: Instant) {
        self.begin_step(now);
        while self.continue_step(now, usize::MAX) {}
    }

    /// The first part of [`Core::advance`]; [`Core::continue_step`] does the rest.
    pub fn begin_step(&mut self, now: Instant) {
        fault_injection::thread(self.rooms.keys());
        self.last_step = now;
        self.handover_delay = Duration::ZERO;
        for track in self.tracks.values_mut() {
            let Some(tap) = &mut track.tap else { continue };
            tap.advance(now);
            if let Some(capture) = &mut track.capture {
                capture.advance(now);
            }
        }
        self.collect_taps();
        if self.schedule.take_allocation(now) {
            self.allocate(now);
            self.remove_idle(now);
            self.remove_unconnected(now);
            self.schedule.request_key_frames(now);
        }
        if let Some(span) = self.schedule.take_stats(now) {
            self.end_second(now, span);
        }
        let tracks_due = self.tracks_due(now).is_some_and(|due| due <= now);
        if self.schedule.take_key_frames(now, tracks_due) {
            self.request_key_frames(now);
        }
        self.ready.extend(self.wakes.take_touched().into_iter().map(|id| (id, None)));
        self.ready
            .extend(self.wakes.take_due(now).into_iter().map(|(entry, id)| (id, Some(entry))));
    }

    /// Services up to `max` connections with work, so that the caller can send their datagrams before the others' turn. Returns whether
    /// there are more; they must be serviced before any other call.
    pub fn continue_step(&mut self, now: Instant, max: usize) -> bool {
        for _ in 0..max {
            let Some((id, entry)) = self.ready.pop_front() else { break };
            self.service(now, id, |peer| match entry {
                Some(entry) => peer.wake.is_due(entry, now),
                None => peer.wake.is_touched(),
            });
        }
        if !self.ready.is_empty() {
            return true;
        }
        self.process_events(now);
        let others = self.others_due(now);
        self.schedule.end_step(now, others);
        false
    }

    /// Advances the time of a connection that has work, and polls its output.
    fn service(
        &mut self,
        now: Instant,
        id: ParticipantId,
        has_work: impl FnOnce(&mut Peer) -> bool,
    ) {
        let peer = self.peers.get_mut(&id).filter(|peer| peer.stack.has_begun());
        let Some(peer) = peer.and_then(|peer| has_work(peer).then_some(peer)) else { return };
        peer.release_anchors(now, &mut self.counters);
        // The stack's pacer releases one packet at a time, and is due again a microsecond later. If other connections had their turn in
        // between, a frame's packets would leave one by one.
        let mut at = now;
        for _ in 0..MAX_PACKETS_PER_TURN {
            peer.tick(at);
            if !peer.drain(at, &mut self.outputs, &mut self.peer_events) {
                break;
            }
            let due = peer.wake.due();
            if due > at + PACER_IMMEDIATE {
                break;
            }
            at = at.max(due);
        }
    }

    /// When a peer or a track is due; `None` without participants.
    fn others_due(&self, now: Instant) -> Option<Instant> {
        if self.peers.is_empty() {
            return None;
        }
        let latest = now + schedule::STATS_INTERVAL;
        let due = self.wakes.next(now).into_iter().chain(self.tracks_due(now));
        Some(due.fold(latest, Instant::min))
    }

    /// When a tap or a key frame request of a track is due.
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
        self.schedule.due()
    }

    /// The next output.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Handles the events of connections.
    fn process_events(&mut self, now: Instant) {
        while !self.peer_events.is_empty() {
            for (id, event) in std::mem::take(&mut self.peer_events) {
                if let Err(fault) = contained(|| self.on_peer_event(now, id, event)) {
                    self.on_fault(now, id, &fault);
                }
            }
        }
    }

    fn on_peer_event(&mut self, now: Instant, id: ParticipantId, event: PeerEvent) {
        match event {
            PeerEvent::Rtp(mid, encoding, packet) => self.forward(id, mid, encoding, &packet),
            PeerEvent::Region(message) => self.on_region_message(now, id, &message),
            PeerEvent::KeyFrameRequested(mid) => self.on_key_frame_request(id, mid),
            PeerEvent::Ready => {
                if let Some(peer) = self.peers.get_mut(&id) {
                    peer.open_anchor_channel(self.config.budget);
                }
                self.schedule.request_allocation(now);
            }
            PeerEvent::BandwidthFell => self.schedule.request_allocation(now),
            PeerEvent::Disconnected => {
                let Some(peer) = self.peers.get(&id) else { return };
                if peer.connected {
                    self.counters.peers_timed_out += 1;
                    self.end(now, id, DisconnectReason::Lost);
                } else {
                    self.counters.peers_failed += 1;
                    self.end(now, id, DisconnectReason::NeverConnected);
                }
            }
            PeerEvent::Fault => self.end_if_stack_faulted(now, id),
            PeerEvent::TooManyChannels => {
                self.counters.peers_channels += u64::from(self.peers.contains_key(&id));
                self.end(now, id, DisconnectReason::TooManyChannels);
            }
        }
    }

    /// Removes a participant after a panic in the work for its connection.
    pub fn on_fault(&mut self, now: Instant, id: ParticipantId, fault: &Fault) {
        tracing::error!(participant = %id, %fault, "panic in the work for one participant: it was removed, other calls go on; please report this as a bug");
        self.counters.faults += 1;
        self.end(now, id, DisconnectReason::Fault);
    }

    /// Counts a panic at a datagram of an unauthenticated source. As it can be sent again and again, only the first one is logged.
    fn on_unauthenticated_fault(&mut self, fault: &Fault) {
        if self.counters.faults == 0 {
            tracing::error!(%fault, "panic at a datagram of an unauthenticated source: it was dropped, later ones are only counted; please report this as a bug");
        }
        self.counters.faults += 1;
    }

    /// Removes a participant whose stack has panicked.
    fn end_if_stack_faulted(&mut self, now: Instant, id: ParticipantId) {
        let fault = self.peers.get(&id).and_then(|peer| peer.stack.fault().cloned());
        if let Some(fault) = fault {
            self.on_fault(now, id, &fault);
        }
    }

    /// Ends a second, which took `span`: updates meters, removes participants over their CPU limit, and sends statistics.
    fn end_second(&mut self, now: Instant, span: Duration) {
        for track in self.tracks.values_mut() {
            let (enhanced, captured) = (track.tapped().is_some(), track.has_captured_source());
            track.anchor_costs.update(span, enhanced, captured);
        }
        let costly: Vec<_> = self
            .peers
            .values_mut()
            .filter_map(|p| p.cpu_limit.end_second().then_some(p.id))
            .collect();
        for id in costly {
            tracing::warn!(participant = %id, "participant removed: for 5 s its packets took more than their share of a media thread's CPU time");
            self.counters.peers_costly += 1;
            self.end(now, id, DisconnectReason::Flood);
        }
        for peer in self.peers.values_mut() {
            let mut stats = peer.end_second(span);
            for track in &mut stats {
                let known = self.tracks.get(&track.track);
                track.refused = known.and_then(|t| {
                    let none = t.max_enhanced_layer(self.config.tap_pixels).is_none();
                    let too_large = none || t.tap.as_ref().is_some_and(Tap::is_too_large);
                    t.tapped()
                        .and(t.refused)
                        .or((too_large && self.enhancement).then_some(Refusal::Size))
                });
            }
            tracing::debug!(participant = %peer.id, available_bps = peer.downlink.available().map(Bitrate::as_bps), anchor_bps = peer.anchors.rate.as_bps(), "downlink");
            if !stats.is_empty() {
                self.outputs.push_back(Output::Event(peer.id, SfuEvent::TrackStats(stats)));
            }
        }
        self.assess_connections(now);
    }

    /// Available bandwidth of a participant's downlink, of payload; `None` before the first estimate.
    pub fn estimate(&self, id: ParticipantId) -> Option<Bitrate> {
        self.peers.get(&id)?.downlink.available()
    }

    /// A snapshot of counts and counters.
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
mod connection_tests;
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
