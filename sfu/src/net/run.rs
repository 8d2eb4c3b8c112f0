//! The loop of one of the SFU's threads: the socket first, then what others hand over, commands, anchors, and what is due.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use windlass_types::{EnhancerOutput, StreamId, TapInput};

use super::handover::{self, Handed, Handover};
use super::places::Places;
use super::socket::{AsyncSocket, Inbox, Outbox, Socket};
use super::tcp::{Arrived, Outlet, TcpPort};
use super::vitals::Vitals;
use super::{Command, Shared};
use crate::api::{JoinError, Joined, ParticipantId, SfuEvent, TapSink};
use crate::config::SfuConfig;
use crate::core::{Core, Output, Remote, Shard, Via, contained};
use crate::relay::{FromNode, RelaySink};

/// Batches of datagrams taken before anything else gets its turn.
const BURST: usize = 16;
/// Datagrams of TCP connections, and messages of other SFUs, taken before anything else gets its turn.
const FRAMES: usize = 128;
/// Batches of other threads taken before anything else gets its turn.
const HANDED: usize = 32;
/// Connections whose datagrams are made before they are sent.
const PEERS: usize = 32;
/// How often it is looked for participants whose events nobody takes any more.
const GONE: Duration = Duration::from_millis(100);
/// Commands and anchors taken between two looks at the socket.
const TURN: usize = 8;

/// What a thread begins with.
pub(super) struct Parts {
    pub(super) shard: Shard,
    pub(super) socket: Socket,
    /// Where datagrams come by TCP, at one of the threads;
    pub(super) tcp: Option<TcpPort>,
    /// and how they leave, at all.
    pub(super) outlet: Option<Outlet>,
    /// Where clients are told that they can come by TCP.
    pub(super) tcp_candidates: Vec<SocketAddr>,
    pub(super) handed: handover::Receiver,
    pub(super) handover: Handover,
    pub(super) tap: TapSink,
    pub(super) relay: Option<RelaySink>,
    pub(super) relayed: mpsc::Receiver<FromNode>,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) anchors: mpsc::Receiver<EnhancerOutput>,
    pub(super) places: Arc<Places>,
    pub(super) shared: Arc<Shared>,
    pub(super) vitals: Arc<Vitals>,
}

/// For how long this thread has been at work.
fn at_work() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Whether it ended because it was told to.
pub(super) fn run(config: &SfuConfig, parts: Parts) -> bool {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "no runtime for the SFU's thread");
            return false;
        }
    };
    runtime.block_on(async {
        let Parts { shard, socket, tcp, outlet, handed, handover, tap, relay, places, .. } = parts;
        let local = socket.local_addr();
        let segments = config.segmentation && socket.knows_segments();
        match socket.into_async() {
            Ok(socket) => {
                let now = Instant::now();
                let number = shard.number();
                let mut core = Core::of_shard(config.clone(), local, now, shard);
                core.listen_tcp(parts.tcp_candidates);
                core.measure(at_work);
                let shell = Shell {
                    core,
                    socket,
                    tcp,
                    outlet,
                    handed,
                    handover,
                    outbox: Outbox::new(segments, now),
                    next_gone: now,
                    taps: Taps { sink: tap, stops: HashSet::new() },
                    relay,
                    relayed: parts.relayed,
                    events: HashMap::new(),
                    events_bound: config.limits.events,
                    places,
                    vitals: parts.vitals,
                    number,
                };
                shell.run(local, parts.commands, parts.anchors, &parts.shared).await;
                true
            }
            Err(error) => {
                tracing::error!(%error, "the socket cannot be used");
                false
            }
        }
    })
}

/// The way to the enhancer. A frame that it does not take is made good by the tap; a stop must not be lost, or the
/// stream would keep its decoder for ever, so it is repeated. (Streams that end are few: each was a published track.)
struct Taps {
    sink: TapSink,
    stops: HashSet<StreamId>,
}

impl Taps {
    /// Hands over what a tap made, or says which stream lost something, and whether of its pictures at HR size.
    fn hand(&mut self, input: TapInput) -> Result<(), (StreamId, bool)> {
        let stream = input.stream();
        let stops = matches!(input, TapInput::Stop { .. });
        let captured = matches!(input, TapInput::Captured(_) | TapInput::CapturedGap { .. });
        let is_hint = matches!(input, TapInput::Request { .. } | TapInput::CaptureStop { .. });
        if is_hint {
            // No frame is lost with it: whoever needs a whole anchor asks again, and a decoder without frames rests.
            (self.sink)(input);
            return Ok(());
        }
        if (self.sink)(input) {
            // A stream that goes on has nothing to stop any more: what follows begins with a key frame.
            self.stops.remove(&stream);
            return Ok(());
        }
        if stops {
            self.stops.insert(stream);
        }
        Err((stream, captured))
    }

    fn repeat_stops(&mut self) {
        let sink = &self.sink;
        self.stops.retain(|&stream| !sink(TapInput::Stop { stream }));
    }
}

struct Shell {
    core: Core,
    socket: AsyncSocket,
    tcp: Option<TcpPort>,
    outlet: Option<Outlet>,
    handed: handover::Receiver,
    handover: Handover,
    outbox: Outbox,
    /// When it is looked for participants whose events nobody takes any more.
    next_gone: Instant,
    taps: Taps,
    relay: Option<RelaySink>,
    relayed: mpsc::Receiver<FromNode>,
    events: HashMap<ParticipantId, mpsc::Sender<SfuEvent>>,
    events_bound: usize,
    places: Arc<Places>,
    vitals: Arc<Vitals>,
    number: usize,
}

impl Shell {
    async fn run(
        mut self,
        local: SocketAddr,
        mut commands: mpsc::Receiver<Command>,
        mut anchors: mpsc::Receiver<EnhancerOutput>,
        shared: &Shared,
    ) {
        tracing::info!(%local, "media socket open");
        let mut inbox = Inbox::new();
        loop {
            self.vitals.beat(self.number);
            let (now, mut more) = self.drain_socket(&mut inbox);
            more |= self.drain_tcp(now) | self.drain_handed() | self.drain_relayed(now);
            for _ in 0..TURN {
                let Ok(command) = commands.try_recv() else { break };
                if matches!(command, Command::Stop) {
                    return self.stop(now);
                }
                self.command(now, command);
            }
            for _ in 0..TURN {
                let Ok(output) = anchors.try_recv() else { break };
                self.core.enhancer(now, output);
            }
            self.core.set_enhancement(now, shared.enhancement.load(Ordering::Relaxed));
            self.core.begin(now);
            while self.core.go_on(now, PEERS) {
                self.outputs(now);
            }
            self.outputs(now);
            if more || !commands.is_empty() || !anchors.is_empty() {
                tokio::task::yield_now().await;
                continue;
            }
            let due = tokio::time::Instant::from_std(self.core.timeout());
            tokio::select! {
                biased;
                _ = self.socket.readable() => {}
                Some(arrived) = next(&mut self.tcp) => self.frame(Instant::now(), &arrived),
                Some(batch) = self.handed.recv() => self.take(batch),
                Some(said) = self.relayed.recv() => self.of_node(Instant::now(), said),
                command = commands.recv() => match command {
                    Some(Command::Stop) | None => return self.stop(Instant::now()),
                    Some(command) => self.command(Instant::now(), command),
                },
                Some(output) = anchors.recv() => self.core.enhancer(Instant::now(), output),
                () = tokio::time::sleep_until(due) => {}
            }
        }
    }

    /// Takes what has arrived. Returns a time that no datagram still unread can precede, and whether there is more.
    fn drain_socket(&mut self, inbox: &mut Inbox) -> (Instant, bool) {
        for _ in 0..BURST {
            // What comes after this is in the next batch, or came later.
            let now = Instant::now();
            match self.socket.try_receive(inbox) {
                Ok(()) => {
                    self.core.counters.receive_calls += 1;
                    for got in inbox.datagrams() {
                        if got.arrival.is_none() {
                            self.core.counters.arrival_times_missing += 1;
                        }
                        let (arrival, from) = (got.arrival.unwrap_or(now), got.source.into());
                        self.datagram(arrival, from, got.data);
                    }
                    self.hand_over();
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    return (now, false);
                }
                // An ICMP answer to something sent earlier; the connection's own timers deal with it.
                Err(error) => tracing::trace!(%error, "receive"),
            }
        }
        (Instant::now(), true)
    }

    /// A datagram is its connection's, or another thread's, for which it is kept until [`Shell::hand_over`].
    fn datagram(&mut self, arrival: Instant, from: Remote, data: &[u8]) {
        match self.core.elsewhere(from, data) {
            None => self.core.datagram(arrival, from, data),
            Some(thread) => {
                self.handover.keep(thread, Handed { arrival, from, data: data.to_vec() });
            }
        }
    }

    /// Sends other threads what is theirs.
    fn hand_over(&mut self) {
        let (sent, lost) = self.handover.send();
        self.core.counters.datagrams_handed_over += sent;
        self.core.counters.datagrams_handed_over_full += lost;
    }

    /// Takes what other threads have handed over; whether there is more.
    fn drain_handed(&mut self) -> bool {
        for _ in 0..HANDED {
            let Ok(batch) = self.handed.try_recv() else { return false };
            self.take(batch);
        }
        !self.handed.is_empty()
    }

    /// Takes what other SFUs have sent; whether there is more.
    fn drain_relayed(&mut self, now: Instant) -> bool {
        for _ in 0..FRAMES {
            let Ok(said) = self.relayed.try_recv() else { return false };
            self.of_node(now, said);
        }
        !self.relayed.is_empty()
    }

    fn of_node(&mut self, now: Instant, said: FromNode) {
        match said {
            FromNode::Linked(node, up) => self.core.linked(now, node, up),
            FromNode::Said(node, room, message) => self.core.relayed(now, node, &room, message),
        }
    }

    /// What has been its owner's when it was handed over is nobody's by now, at worst.
    fn take(&mut self, batch: Vec<Handed>) {
        for handed in batch {
            self.core.datagram(handed.arrival, handed.from, &handed.data);
        }
    }

    /// Takes what has come by TCP; whether there is more.
    fn drain_tcp(&mut self, now: Instant) -> bool {
        for _ in 0..FRAMES {
            let arrived = self.tcp.as_mut().and_then(TcpPort::try_next);
            let Some(arrived) = arrived else { return false };
            self.frame(now, &arrived);
        }
        self.tcp.as_ref().is_some_and(TcpPort::has_more)
    }

    /// Its time is when it is taken: no later than what the UDP socket still holds.
    fn frame(&mut self, now: Instant, arrived: &Arrived) {
        self.datagram(now, Remote::tcp(arrived.from), &arrived.data);
        self.hand_over();
    }

    /// What panics at a participant's command ends that participant's connection.
    fn command(&mut self, now: Instant, command: Command) {
        let Some(id) = command.whose() else { return self.obey(now, command) };
        if let Err(fault) = contained(|| self.obey(now, command)) {
            self.core.faulted(now, id, &fault);
        }
    }

    fn obey(&mut self, now: Instant, command: Command) {
        match command {
            Command::Join(room, id, options, answer) => {
                let joined =
                    self.core.join(now, &room, id, options).map(|(participants, tracks)| {
                        let (sender, events) = mpsc::channel(self.events_bound);
                        self.events.insert(id, sender);
                        Joined { participants, tracks, events }
                    });
                if !matches!(joined, Ok(_) | Err(JoinError::AlreadyJoined)) {
                    self.places.leave(id);
                }
                // A caller that has gone dropped the receiver too: the next look at it makes the participant leave.
                let _ = answer.send(joined);
            }
            Command::Offer(id, offer, answer) => {
                let _ = answer.send(self.core.answer(now, id, *offer));
            }
            Command::SetMaxRung(id, track, max) => self.core.set_max_rung(now, id, track, max),
            Command::SetView(id, track, view) => self.core.set_view(now, id, track, view),
            Command::WholeAnchor(id, track) => self.core.whole_anchor_wanted(now, id, track),
            Command::Uplink(id, track, report) => self.core.uplink(now, id, track, report),
            Command::Report(id, track, said, decay, answer) => {
                let _ = answer.send(self.core.report(now, id, track, said, decay));
            }
            Command::SetMuted(id, track, muted) => self.core.set_muted(now, id, track, muted),
            Command::Restrict(id, may) => self.core.restrict(now, id, may),
            Command::SetPolicy(room, policy, answer) => {
                let _ = answer.send(self.core.set_policy(now, room.as_deref(), policy));
            }
            Command::Tune(tuning) => self.core.retune(now, tuning),
            Command::Drain => self.core.drain(),
            Command::Share(room, nodes) => self.core.share(now, &room, &nodes),
            Command::Leave(id) => self.core.leave(now, id),
            Command::Faulted(id, fault) => self.core.faulted(now, id, &fault),
            Command::Stats(answer) => {
                let mut stats = self.core.stats();
                // All threads have the same connections by TCP: one tells of them.
                if let Some(outlet) = self.tcp.as_ref().map(TcpPort::outlet) {
                    stats.tcp_open = outlet.open();
                    stats.counters = stats.counters.plus(outlet.counters());
                }
                let _ = answer.send((stats, Box::new(self.outbox.forwarding.clone())));
            }
            Command::Stop => {}
        }
    }

    /// Hands out everything that the core has made, and tells it who did not take it.
    fn outputs(&mut self, now: Instant) {
        if now >= self.next_gone {
            self.next_gone = now + GONE;
            let gone: Vec<_> =
                self.events.iter().filter(|(_, s)| s.is_closed()).map(|(&id, _)| id).collect();
            for id in gone {
                self.events.remove(&id);
                self.core.leave(now, id);
            }
        }
        self.taps.repeat_stops();
        while let Some(output) = self.core.poll() {
            match output {
                Output::Transmit { to: Remote { via: Via::Udp, address }, data, arrival } => {
                    if !self.outbox.push(self.socket.towards(address), data, arrival) {
                        self.send();
                    }
                }
                Output::Transmit { to: Remote { via: Via::Tcp, address }, data, .. } => {
                    if let Some(outlet) = &self.outlet {
                        outlet.send(now, address, &data);
                    }
                }
                Output::Event(id, event) => self.event(now, id, event),
                Output::Relay(node, room, message) => {
                    if let Some(relay) = &self.relay {
                        relay(node, &room, message);
                    }
                }
                Output::Tap(input) => {
                    if let Err((stream, captured)) = self.taps.hand(input) {
                        self.core.tap_refused(now, stream, captured);
                    }
                }
            }
        }
        self.send();
    }

    /// Sends what waits in the outbox.
    fn send(&mut self) {
        let sent = self.socket.send(&mut self.outbox);
        let counters = &mut self.core.counters;
        counters.datagrams_out += sent.taken;
        counters.datagrams_out_failed += sent.refused;
        counters.datagrams_out_segmented += sent.segmented;
        counters.send_calls += sent.calls;
    }

    fn event(&mut self, now: Instant, id: ParticipantId, event: SfuEvent) {
        let last = matches!(event, SfuEvent::Disconnected(_));
        if last {
            self.places.leave(id);
        }
        let Some(sender) = self.events.get(&id) else { return };
        let slow = sender.try_send(event).is_err();
        if slow || last {
            self.events.remove(&id);
        }
        if slow && !last {
            self.core.counters.peers_slow += 1;
            self.core.leave(now, id);
        }
    }

    fn stop(mut self, now: Instant) {
        for id in self.events.keys().copied().collect::<Vec<_>>() {
            self.core.leave(now, id);
        }
        self.outputs(now);
        tracing::info!("media socket closed");
    }
}

/// Waits for what comes by TCP; nothing where it is not listened for.
async fn next(tcp: &mut Option<TcpPort>) -> Option<Arrived> {
    match tcp {
        Some(tcp) => Some(tcp.next().await),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_stop_that_finds_the_queue_full_is_repeated_until_it_is_taken() {
        let queue = Arc::new(Mutex::new(Vec::new()));
        let room = queue.clone();
        let sink = move |input| {
            let mut queue = room.lock().expect("queue");
            let fits = queue.is_empty();
            if fits {
                queue.push(input);
            }
            fits
        };
        let mut taps = Taps { sink: Arc::new(sink), stops: HashSet::new() };
        let (one, other) = (StreamId(1), StreamId(2));
        assert_eq!(taps.hand(TapInput::Gap { stream: one }), Ok(()));
        assert_eq!(taps.hand(TapInput::Stop { stream: other }), Err((other, false)));
        taps.repeat_stops();
        queue.lock().expect("queue").clear();
        taps.repeat_stops();
        taps.repeat_stops();
        let taken = queue.lock().expect("queue");
        assert!(matches!(taken[..], [TapInput::Stop { stream }] if stream == other));
        assert!(taps.stops.is_empty());
    }
}
