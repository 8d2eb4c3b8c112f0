//! The SFU without I/O: datagrams, commands and time go in, datagrams, events and tap frames come out.
//!
//! [`Core`] holds its parts, each of which owns its state and knows nothing of the core: rooms (`room`), participants
//! (`peers`), tracks (`tracks`), other nodes (`relay::nodes`), routes of datagrams (`routing::routes`). It gives them
//! their events, in this file and by subject: `room::members`, `room::permissions`, `room::data`, `offer::answer`,
//! `media`, `enhancement::anchors`, `record`, `relay` and `rendition`. Work over all participants and tracks is in
//! `allocation` (rungs), `enhancement` (which layers the enhancer gets), `publisher::requests` (what publishers send)
//! and `forward` (packets to subscribers and taps). Time is an argument everywhere.
//!
//! | folder | holds |
//! | --- | --- |
//! | `room` | rooms, their participants' permissions and messages, who speaks |
//! | `routing` | which participant a datagram is of, and where participants receive |
//! | `connection` | one connection: the WebRTC stack, and what limits its input |
//! | `offer` | session descriptions: what is read, what is answered |
//! | `codec` | RTP payload formats and the Dependency Descriptor |
//! | `publisher` | what a publisher sends and is asked for: layers, key frames, stills, backups |
//! | `subscriber` | what a subscriber receives: downlink, streams of packets, anchors |
//! | `allocation` | which rung each subscriber gets of each track |
//! | `tap`, `enhancement` | frames to the enhancer, and anchors of it |
//! | `record`, `rendition`, `relay` | tracks for the recorder, for players, and for other nodes |

mod allocation;
mod codec;
mod connection;
mod enhancement;
mod fault;
#[cfg_attr(not(debug_assertions), path = "fault_injection_none.rs")]
mod fault_injection;
mod forward;
mod gcra;
mod media;
mod offer;
mod output;
mod peer;
mod peers;
mod publisher;
mod record;
mod relay;
mod rendition;
mod room;
mod routing;
mod schedule;
mod shard;
mod subscriber;
mod tap;
mod track;
mod tracks;
mod wakes;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use str0m::Input;
use str0m::net::{DatagramRecv, Receive};
use windlass_types::{AnchorPolicy, Bitrate, Latencies};

use self::enhancement::Enhancement;
pub use self::fault::{Fault, contained, log_panics};
pub use self::offer::sdp::{MediaLine, media_lines};
pub use self::offer::{Answered, ReadOffer};
pub use self::output::Output;
use self::peer::{Peer, PeerEvent};
use self::peers::Peers;
use self::publisher::{backup_requests, requests};
use self::record::rooms::RecordedRooms;
pub use self::record::rooms::{Recorded, RecordedWho};
use self::relay::nodes::Relays;
use self::room::Rooms;
use self::room::data_rate::DataLimits;
use self::routing::addresses::LocalAddrs;
pub use self::routing::addresses::{RemoteAddr, Via};
use self::routing::nomination::Move;
use self::routing::routes::Routes;
pub use self::routing::unauthenticated::rate_limit_address;
use self::schedule::Schedule;
pub use self::shard::Shard;
pub use self::subscriber::view::View;
use self::tracks::Tracks;
pub use crate::api::RegionRequest;
use crate::api::{DisconnectReason, ParticipantId, SfuEvent};
use crate::config::{SfuConfig, Tuning};
use crate::stats::{Counters, SfuStats};

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
    /// CPU time of the thread, for [`CpuLimit`](connection::cpu_limit::CpuLimit); `None`: not measured.
    clock: Option<fn() -> Duration>,
    rooms: Rooms,
    peers: Peers,
    tracks: Tracks,
    routes: Routes,
    relays: Relays,
    /// The rooms that are recorded.
    recorded: RecordedRooms,
    /// Messages that the core's participants have used of their common rate limits.
    data: DataLimits,
    enhancement: Enhancement,
    schedule: Schedule,
    outputs: VecDeque<Output>,
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
        let locals = LocalAddrs { udp: config.candidates(bound), tcp: Vec::new() };
        Core {
            counters: Counters::default(),
            enhancement: Enhancement::new(config.policy),
            config,
            clock: None,
            rooms: Rooms::new(shard.clone()),
            peers: Peers::default(),
            tracks: Tracks::new(shard.clone()),
            routes: Routes::new(locals, shard),
            relays: Relays::default(),
            recorded: RecordedRooms::default(),
            data: DataLimits::default(),
            schedule: Schedule::new(now),
            outputs: VecDeque::new(),
        }
    }

    /// Limits the CPU time of each connection's input. `clock` is the thread's CPU time, so that preemption is not
    /// charged.
    pub fn limit_cpu_time(&mut self, clock: fn() -> Duration) {
        self.clock = Some(clock);
    }

    /// Adds TCP candidates to later answers.
    pub fn set_tcp_candidates(&mut self, candidates: Vec<SocketAddr>) {
        self.routes.set_tcp(candidates);
    }

    /// Sets the anchor policy of a room, or of all rooms without their own. `None` removes a room's own policy, or
    /// restores the configured one. False if too many rooms have their own policy.
    pub fn set_policy(
        &mut self,
        now: Instant,
        room: Option<&str>,
        policy: Option<AnchorPolicy>,
    ) -> bool {
        let config = &mut self.config;
        match (room, policy) {
            (None, policy) => self.enhancement.set_policy(policy.unwrap_or(config.policy)),
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
            self.config.policy = policy;
            self.enhancement.set_policy(policy);
            self.schedule.allocate_now(now);
        }
    }

    /// Sets whether an enhancer is available. Without one nothing is tapped, and enhanced rungs are those with stills
    /// that need none.
    pub fn set_enhancement(&mut self, now: Instant, available: bool) {
        if self.enhancement.set_available(available) {
            self.schedule.allocate_now(now);
        }
    }

    /// The number of the core that owns a datagram, if it is another one.
    pub fn other_owner(&self, source: RemoteAddr, data: &[u8]) -> Option<usize> {
        self.routes.other_owner(source, data)
    }

    /// Takes a datagram. A datagram that another thread received first may have arrived before the last step. Then it
    /// counts as arrived now.
    pub fn datagram(&mut self, arrival: Instant, source: impl Into<RemoteAddr>, data: &[u8]) {
        let source = source.into();
        let arrival = self.schedule.arrive(arrival);
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
        if !self.routes.admit(arrival, source, max) {
            self.counters.strangers_limited += 1;
            return;
        }
        let Ok(contents) = DatagramRecv::try_from(data) else {
            self.counters.datagrams_malformed += 1;
            return;
        };
        let Some(destination) = self.routes.locals().destination(source) else { return };
        let proto = source.via.into();
        let receive = Receive { proto, source: source.address, destination, contents };
        let input = Input::Receive(arrival, receive);
        let Some(id) = self.route(source, data, &input) else {
            self.counters.datagrams_unknown += 1;
            return;
        };
        let Some((peer, events)) = self.peers.with_events(id) else { return };
        if !peer.link.cpu_limit.admit(arrival) {
            self.counters.datagrams_costly += 1;
            return;
        }
        connection::cpu_limit::take_authenticated();
        let began = self.clock.map(|clock| clock());
        // Checks with older credentials prove nothing about the client's current address.
        if routing::ufrag::ufrag(data).is_none_or(|own| peer.link.paths.is_current(own)) {
            let moved = peer.link.paths.nomination.on_datagram(arrival, source, data);
            self.counters.paths_moved += u64::from(moved.is_some());
            if moved == Some(Move::Lossy) {
                peer.request_key_frames();
            }
        }
        let received = peer.link.receive(arrival, data, input);
        self.counters.datagrams_taken += u64::from(received.is_ok());
        self.counters.rtcp_refused += peer.link.rtcp_guard.take_refused();
        if let Err(error) = received {
            // Anybody can send a malformed datagram, so it must not end the connection.
            tracing::debug!(participant = %id, %error, "the stack refused a datagram: dropping it");
            if !peer.link.connected {
                peer.link.refused = Some(error);
            }
            self.counters.datagrams_malformed += 1;
        }
        // The stack holds one packet at a time: it must be polled before the next input.
        peer.drain(arrival, &mut self.outputs, events);
        let authenticated = connection::cpu_limit::take_authenticated();
        if authenticated && peer.link.stand_in_for_check(arrival, source, destination) {
            peer.drain(arrival, &mut self.outputs, events);
        }
        if let (Some(clock), Some(began), true) = (self.clock, began, authenticated) {
            peer.link.cpu_limit.charge(arrival, clock().saturating_sub(began));
        }
        self.process_events(arrival);
    }

    /// The participant of a datagram: by its source address, or by the user name of a STUN request, which may move the
    /// address to another participant. Where a participant receives, its stack accepts whatever comes from there, so
    /// that a forged source address moves nothing.
    fn route(&mut self, source: RemoteAddr, data: &[u8], input: &Input) -> Option<ParticipantId> {
        let accepts = |p: &Peer| p.link.stack.rtc().is_some_and(|rtc| rtc.accepts(input));
        let is_stun = data.first().is_some_and(|&b| b < 4);
        let known = self.routes.by_address(source);
        if let Some(id) = known.filter(|&id| !is_stun || self.peers.get(id).is_some_and(accepts)) {
            return Some(id);
        }
        // Only by user name: to ask every connection would amplify floods.
        let id = self.routes.by_ufrag(routing::ufrag::ufrag(data)?)?;
        let peer = self.peers.get_mut(id).filter(|p| accepts(p))?;
        if !peer.link.paths.admit_new_address() {
            self.counters.paths_refused += 1;
            return None;
        }
        if let Some(former) = known.and_then(|former| self.peers.get_mut(former)) {
            former.link.paths.remove_address(source);
        }
        self.routes.add_address(source, id);
        if let Some(oldest) = self.peers.get_mut(id).and_then(|p| p.link.paths.add_address(source))
        {
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
        fault_injection::thread(self.rooms.names());
        self.schedule.begin_step(now);
        for track in self.tracks.iter_mut() {
            track.taps.advance(now);
            track.taps.collect(&mut self.counters, &mut self.outputs);
            for recording in track.recordings.iter_mut() {
                recording.advance(now, &mut self.outputs);
            }
        }
        if self.schedule.take_allocation(now) {
            self.allocate(now);
            self.remove_idle(now);
            self.remove_unconnected(now);
            self.schedule.request_key_frames(now);
        }
        if let Some(span) = self.schedule.take_stats(now) {
            self.end_second(now, span);
        }
        let tracks_due = self.tracks.due(now).is_some_and(|due| due <= now);
        if self.schedule.take_key_frames(now, tracks_due) {
            let Core { tracks, peers, outputs, .. } = self;
            let requested = requests::request_key_frames(now, tracks, peers, outputs);
            self.counters.keyframe_requests_out += requested;
        }
        self.peers.collect_ready(now);
    }

    /// Services up to `max` connections with work, so that the caller can send their datagrams before the others' turn.
    /// Returns whether there are more; they must be serviced before any other call.
    pub fn continue_step(&mut self, now: Instant, max: usize) -> bool {
        if self.peers.service(now, max, &mut self.counters, &mut self.outputs) {
            return true;
        }
        self.process_events(now);
        let others = self.others_due(now);
        self.schedule.end_step(now, others);
        false
    }

    /// Allocates rungs to all subscribers, and updates taps and publishers accordingly.
    fn allocate(&mut self, now: Instant) {
        self.end_unreadable_renditions();
        let Core { config, rooms, peers, tracks, enhancement, outputs, .. } = self;
        rooms.notify_speakers(now, outputs);
        let terms = allocation::Terms {
            initial: config.congestion_control.then_some(config.initial_estimate),
            limits: enhancement.limits(config),
            budget: config.budget,
        };
        allocation::allocate_rungs(now, terms, peers, tracks, rooms, outputs);
        let demands = allocation::layer_demands(peers, tracks, config.scale);
        enhancement.update_taps(now, config, demands, tracks, peers, outputs);
        record::rooms::choose_layers(now, tracks.iter_mut());
        record::rooms::request_key_anchors(tracks.iter_mut(), outputs);
        backup_requests::request(now, tracks, peers, outputs);
        allocation::announce_rungs(peers, tracks, config.scale, outputs);
        allocation::announce_ways(now, peers, tracks, outputs);
        requests::update_still_sources(now, config.regions, tracks, peers, outputs);
        requests::update_standby(tracks, peers, outputs);
        if config.pause_unused {
            requests::pause_unused_layers(now, tracks, peers, outputs);
        }
        requests::request_smallest_layers(now, tracks, peers, outputs);
        let limited = requests::limit_smallest_layers(now, tracks, peers, outputs);
        self.counters.smallest_layer_limits += limited;
    }

    /// When a peer or a track is due; `None` without participants.
    fn others_due(&self, now: Instant) -> Option<Instant> {
        if self.peers.len() == 0 {
            return None;
        }
        let latest = now + schedule::STATS_INTERVAL;
        let due = self.peers.due(now).into_iter().chain(self.tracks.due(now));
        Some(due.fold(latest, Instant::min))
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
        loop {
            let events = self.peers.take_events();
            if events.is_empty() {
                return;
            }
            for (id, event) in events {
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
            PeerEvent::Connected => {
                if let Some(peer) = self.peers.get(id) {
                    let took = (now + self.config.connect)
                        .saturating_duration_since(peer.link.connect_deadline);
                    self.counters.connects.record(took);
                }
            }
            PeerEvent::Ready => {
                if let Some(peer) = self.peers.get_mut(id) {
                    peer.open_anchor_channel(self.config.budget);
                }
                self.schedule.request_allocation(now);
            }
            PeerEvent::BandwidthFell => self.schedule.request_allocation(now),
            PeerEvent::Disconnected => {
                let Some(peer) = self.peers.get(id) else { return };
                if peer.link.connected {
                    self.counters.peers_timed_out += 1;
                    self.end(now, id, DisconnectReason::Lost);
                } else {
                    self.counters.peers_failed += 1;
                    self.end(now, id, DisconnectReason::NeverConnected);
                }
            }
            PeerEvent::Fault => self.end_if_stack_faulted(now, id),
            PeerEvent::TooManyChannels => {
                self.counters.peers_channels += u64::from(self.peers.contains(id));
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

    /// Counts a panic at a datagram of an unauthenticated source. Such a datagram can be sent again and again, so only
    /// the first panic is logged.
    fn on_unauthenticated_fault(&mut self, fault: &Fault) {
        if self.counters.faults == 0 {
            tracing::error!(%fault, "panic at a datagram of an unauthenticated source: it was dropped, later ones are only counted; please report this as a bug");
        }
        self.counters.faults += 1;
    }

    /// Removes a participant whose stack has panicked.
    fn end_if_stack_faulted(&mut self, now: Instant, id: ParticipantId) {
        let fault = self.peers.get(id).and_then(|peer| peer.link.stack.fault().cloned());
        if let Some(fault) = fault {
            self.on_fault(now, id, &fault);
        }
    }

    /// Ends a second, which took `span`: updates meters, removes participants over their CPU limit, and sends
    /// statistics.
    fn end_second(&mut self, now: Instant, span: Duration) {
        for track in self.tracks.iter_mut() {
            let (enhanced, captured) = (track.tapped().is_some(), track.has_captured_source());
            track.anchor_costs.update(span, enhanced, captured);
        }
        let costly: Vec<_> = self
            .peers
            .iter_mut()
            .filter_map(|p| p.link.cpu_limit.end_second().then_some(p.id))
            .collect();
        for id in costly {
            tracing::warn!(participant = %id, "participant removed: for 5 s its packets took more than their share of a media thread's CPU time");
            self.counters.peers_costly += 1;
            self.end(now, id, DisconnectReason::Flood);
        }
        for peer in self.peers.iter_mut() {
            let mut stats = peer.end_second(span);
            for track in &mut stats {
                let known = self.tracks.get(track.track);
                let (max, enhancement) = (self.config.tap_pixels, self.enhancement.is_available());
                track.refused =
                    track.refused.or_else(|| known.and_then(|t| t.refusal(max, enhancement)));
            }
            tracing::debug!(participant = %peer.id, available_bps = peer.downlink.available().map(Bitrate::as_bps), anchor_bps = peer.anchors.rate.as_bps(), "downlink");
            if !stats.is_empty() {
                self.outputs.push_back(Output::Event(peer.id, SfuEvent::TrackStats(stats)));
            }
        }
        self.request_whole_stills(now);
        self.assess_connections(now);
    }

    /// Available bandwidth of a participant's downlink, of payload; `None` before the first estimate.
    pub fn estimate(&self, id: ParticipantId) -> Option<Bitrate> {
        self.peers.get(id)?.downlink.available()
    }

    /// A snapshot of counts and counters.
    pub fn stats(&self) -> SfuStats {
        SfuStats {
            rooms: self.rooms.len(),
            participants: self.peers.len(),
            connected: self.peers.iter().filter(|p| p.link.connected).count(),
            tracks: self.tracks.len(),
            subscriptions: self
                .tracks
                .iter()
                .filter(|t| !t.backup.is_one())
                .map(|t| t.subscribers.len())
                .sum(),
            taps: self.tracks.iter().filter(|t| t.enhanced_stream().is_some()).count(),
            ways: allocation::count_ways(&self.peers),
            tcp_open: 0,
            forwarding: Latencies::default(),
            counters: self.counters,
        }
    }
}

#[cfg(test)]
mod tests;
