//! The loop of a media thread: the socket first, then datagrams of other threads, commands, anchors, and due work.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use windlass_types::recording::RecordInput;
use windlass_types::rendition::RendererInput;
use windlass_types::{EnhancerOutput, EnhancerRequest, StreamId, TapInput};

use super::events::{EventQueue, Put};
use super::handover::{self, HandedOver, Handover};
use super::room_threads::RoomThreads;
use super::socket::{AsyncSocket, Inbox, Outbox, Socket};
use super::tcp::{TcpDatagram, TcpPort, TcpSender};
use super::watchdog::Watchdog;
use super::{Command, Shared};
use crate::api::{EnhancerSinks, JoinError, Joined, ParticipantId, SfuEvent, Sinks};
use crate::config::SfuConfig;
use crate::core::{Core, Output, RemoteAddr, Shard, Via, contained};
use crate::relay::{FromNode, NodeId, Relayed};

/// Maximum number of batches of UDP datagrams that are received before other work has its turn.
const MAX_BATCHES: usize = 16;
/// Maximum number of TCP datagrams, and of messages of other SFUs, that are received before other work has its turn.
const MAX_MESSAGES: usize = 128;
/// Maximum number of batches of other threads that are processed before other work has its turn.
const MAX_HANDED_OVER: usize = 32;
/// Maximum number of connections that are serviced before their datagrams are sent.
const MAX_PEERS: usize = 32;
/// Interval at which participants with a closed event receiver are removed.
const CLOSED_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of commands, and of the enhancer's outputs, that are processed between two reads of the socket.
const MAX_COMMANDS: usize = 8;

/// Parts that a media thread owns or shares with other threads.
pub(super) struct Parts {
    pub(super) shard: Shard,
    pub(super) socket: Socket,
    /// Receiver of TCP datagrams; on the first thread only.
    pub(super) tcp: Option<TcpPort>,
    /// Sender of TCP datagrams; every thread has one.
    pub(super) tcp_sender: Option<TcpSender>,
    /// TCP candidates for clients.
    pub(super) tcp_candidates: Vec<SocketAddr>,
    pub(super) handed: handover::Receiver,
    pub(super) handover: Handover,
    pub(super) enhancer: EnhancerSinks,
    pub(super) sinks: Sinks,
    pub(super) relayed: mpsc::Receiver<FromNode>,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) anchors: mpsc::Receiver<EnhancerOutput>,
    pub(super) room_threads: Arc<RoomThreads>,
    pub(super) shared: Arc<Shared>,
    pub(super) watchdog: Arc<Watchdog>,
}

/// CPU time of this thread.
fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Runs a media thread; returns whether it ended by a stop command.
pub(super) fn run(config: &SfuConfig, parts: Parts) -> bool {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "media thread cannot start: no async runtime; check the limits of open files and threads");
            return false;
        }
    };
    runtime.block_on(async {
        let Parts { shard, socket, tcp, tcp_sender, handed, handover, enhancer, sinks, room_threads, .. } = parts;
        let local = socket.local_addr();
        let segments = config.segmentation && socket.supports_segments();
        match socket.into_async() {
            Ok(socket) => {
                let now = Instant::now();
                let number = shard.number();
                let mut core = Core::of_shard(config.clone(), local, now, shard);
                core.set_tcp_candidates(parts.tcp_candidates);
                core.limit_cpu_time(thread_cpu_time);
                let shell = Shell {
                    core,
                    socket,
                    tcp,
                    tcp_sender,
                    handed,
                    handover,
                    outbox: Outbox::new(segments),
                    next_closed_check: now,
                    taps: TapOutput { sinks: enhancer, unsent_stops: HashSet::new() },
                    sinks,
                    relayed: parts.relayed,
                    events: HashMap::new(),
                    events_bound: config.limits.events,
                    room_threads,
                    watchdog: parts.watchdog,
                    number,
                };
                shell.run(local, parts.commands, parts.anchors, &parts.shared).await;
                true
            }
            Err(error) => {
                tracing::error!(%error, "media thread cannot start: the runtime does not accept the UDP socket; check the open files limit (`ulimit -n`)");
                false
            }
        }
    })
}

/// The output to the enhancer. The tap recovers from a lost frame by a key frame. A lost stop would leave a decoder
/// behind, so stops are repeated. (Their number is bounded by the published tracks.)
struct TapOutput {
    sinks: EnhancerSinks,
    /// Stops that the enhancer's queue did not take.
    unsent_stops: HashSet<StreamId>,
}

impl TapOutput {
    /// Sends an input to the enhancer. The error names the stream that lost an input, and whether it was a
    /// high-resolution frame.
    fn send(&mut self, input: TapInput) -> Result<(), (StreamId, bool)> {
        let stream = input.stream();
        let is_stop = matches!(input, TapInput::Stop { .. });
        let captured = matches!(input, TapInput::Captured(_) | TapInput::CapturedGap { .. });
        // A decoder that is not stopped is idle, and costs nothing.
        let may_be_lost = matches!(input, TapInput::CaptureStop { .. });
        if (self.sinks.tap)(input) || may_be_lost {
            // A stream that continues must not be stopped: it begins with a key frame.
            self.unsent_stops.remove(&stream);
            return Ok(());
        }
        if is_stop {
            self.unsent_stops.insert(stream);
        }
        Err((stream, captured))
    }

    /// Sends a request or a report to the enhancer; `false`: it is lost. No frame is lost with it: a subscriber repeats
    /// its request for a key anchor, and reports come again.
    fn request(&mut self, stream: StreamId, request: EnhancerRequest) -> bool {
        // The stream continues: a stop that is sent after the request would undo it.
        self.unsent_stops.remove(&stream);
        (self.sinks.requests)(stream, request)
    }

    fn repeat_stops(&mut self) {
        let sink = &self.sinks.tap;
        self.unsent_stops.retain(|&stream| !sink(TapInput::Stop { stream }));
    }
}

struct Shell {
    core: Core,
    socket: AsyncSocket,
    tcp: Option<TcpPort>,
    tcp_sender: Option<TcpSender>,
    handed: handover::Receiver,
    handover: Handover,
    outbox: Outbox,
    /// When participants with a closed event receiver are removed next.
    next_closed_check: Instant,
    taps: TapOutput,
    sinks: Sinks,
    relayed: mpsc::Receiver<FromNode>,
    events: HashMap<ParticipantId, EventQueue>,
    events_bound: usize,
    room_threads: Arc<RoomThreads>,
    watchdog: Arc<Watchdog>,
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
            self.watchdog.beat(self.number);
            let (now, mut more) = self.drain_socket(&mut inbox);
            more |= self.drain_tcp(now) | self.drain_handed() | self.drain_relayed(now);
            for _ in 0..MAX_COMMANDS {
                let Ok(command) = commands.try_recv() else { break };
                if matches!(command, Command::Stop) {
                    return self.stop(now);
                }
                self.command(now, command);
            }
            for _ in 0..MAX_COMMANDS {
                let Ok(output) = anchors.try_recv() else { break };
                self.core.on_enhancer_output(now, output);
            }
            self.core.set_enhancement(now, shared.enhancement.load(Ordering::Relaxed));
            self.core.begin_step(now);
            while self.core.continue_step(now, MAX_PEERS) {
                self.send_outputs(now);
            }
            self.send_outputs(now);
            if more || !commands.is_empty() || !anchors.is_empty() {
                tokio::task::yield_now().await;
                continue;
            }
            let due = tokio::time::Instant::from_std(self.core.timeout());
            tokio::select! {
                biased;
                _ = self.socket.readable() => {}
                Some(arrived) = next(&mut self.tcp) => self.on_tcp_datagram(Instant::now(), &arrived),
                Some(batch) = self.handed.recv() => self.process_batch(batch),
                Some(message) = self.relayed.recv() => self.on_node_message(Instant::now(), message),
                command = commands.recv() => match command {
                    Some(Command::Stop) | None => return self.stop(Instant::now()),
                    Some(command) => self.command(Instant::now(), command),
                },
                Some(output) = anchors.recv() => self.core.on_enhancer_output(Instant::now(), output),
                () = tokio::time::sleep_until(due) => {}
            }
        }
    }

    /// Receives from the UDP socket. Returns a time before the arrival of all unread datagrams, and whether there are
    /// more.
    fn drain_socket(&mut self, inbox: &mut Inbox) -> (Instant, bool) {
        for _ in 0..MAX_BATCHES {
            // Datagrams that arrive after this time are in this batch or a later one.
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
                // An ICMP error for an earlier datagram; the connection's timers handle it.
                Err(error) => tracing::trace!(%error, "UDP receive failed: ignored"),
            }
        }
        (Instant::now(), true)
    }

    /// Processes a datagram, or queues it for the thread that owns it until [`Shell::hand_over`].
    fn datagram(&mut self, arrival: Instant, from: RemoteAddr, data: &[u8]) {
        match self.core.other_owner(from, data) {
            None => self.core.datagram(arrival, from, data),
            Some(thread) => {
                self.handover.push(thread, HandedOver { arrival, from, data: data.to_vec() });
            }
        }
    }

    /// Sends queued datagrams to other threads.
    fn hand_over(&mut self) {
        let (sent, lost) = self.handover.send();
        self.core.counters.datagrams_handed_over += sent;
        self.core.counters.datagrams_handed_over_full += lost;
    }

    /// Processes datagrams of other threads; returns whether there are more.
    fn drain_handed(&mut self) -> bool {
        for _ in 0..MAX_HANDED_OVER {
            let Ok(batch) = self.handed.try_recv() else { return false };
            self.process_batch(batch);
        }
        !self.handed.is_empty()
    }

    /// Processes messages of other SFUs; returns whether there are more.
    fn drain_relayed(&mut self, now: Instant) -> bool {
        for _ in 0..MAX_MESSAGES {
            let Ok(message) = self.relayed.try_recv() else { return false };
            self.on_node_message(now, message);
        }
        !self.relayed.is_empty()
    }

    fn on_node_message(&mut self, now: Instant, message: FromNode) {
        match message {
            FromNode::Link(node, up) => self.core.set_link(now, node, up),
            FromNode::Renderer(rendered) => self.core.on_rendered(now, rendered),
            FromNode::Message(node, room, message) => {
                self.core.on_relayed(now, node, &room, message);
            }
        }
    }

    /// Processes datagrams of another thread. Their connection may have ended meanwhile.
    fn process_batch(&mut self, batch: Vec<HandedOver>) {
        for handed in batch {
            self.core.datagram(handed.arrival, handed.from, &handed.data);
        }
    }

    /// Processes TCP datagrams; returns whether there are more.
    fn drain_tcp(&mut self, now: Instant) -> bool {
        for _ in 0..MAX_MESSAGES {
            let arrived = self.tcp.as_mut().and_then(TcpPort::try_next);
            let Some(arrived) = arrived else { return false };
            self.on_tcp_datagram(now, &arrived);
        }
        self.tcp.as_ref().is_some_and(TcpPort::has_more)
    }

    /// Processes a TCP datagram. Its arrival is now, which is before all unread UDP datagrams.
    fn on_tcp_datagram(&mut self, now: Instant, arrived: &TcpDatagram) {
        self.datagram(now, RemoteAddr::tcp(arrived.from), &arrived.data);
        self.hand_over();
    }

    /// Executes a command. A panic removes the participant of the command.
    fn command(&mut self, now: Instant, command: Command) {
        let Some(id) = command.participant() else { return self.execute(now, command) };
        if let Err(fault) = contained(|| self.execute(now, command)) {
            self.core.on_fault(now, id, &fault);
        }
    }

    fn execute(&mut self, now: Instant, command: Command) {
        match command {
            Command::Join(room, id, options, answer) => {
                let joined =
                    self.core.join(now, &room, id, options).map(|(participants, tracks)| {
                        let (queue, events) = EventQueue::new(self.events_bound);
                        self.events.insert(id, queue);
                        Joined { participants, tracks, events }
                    });
                if !matches!(joined, Ok(_) | Err(JoinError::AlreadyJoined)) {
                    self.room_threads.leave(id);
                }
                // If the caller has gone, its receiver is closed, and the participant is removed by the next check.
                let _ = answer.send(joined);
            }
            Command::Render(id, track, answer) => {
                let _ = answer.send(self.core.render(now, id, track));
            }
            Command::Offer(id, offer, answer) => {
                let _ = answer.send(self.core.answer(now, id, *offer));
            }
            Command::SetMaxRung(id, track, max) => self.core.set_max_rung(now, id, track, max),
            Command::SetView(id, track, view) => self.core.set_view(now, id, track, view),
            Command::KeyAnchor(id, track) => self.core.request_key_anchor(now, id, track),
            Command::Uplink(id, track, report) => self.core.uplink(now, id, track, report),
            Command::Report(id, track, report, answer) => {
                let _ = answer.send(self.core.report(now, id, track, report));
            }
            Command::SetMuted(id, track, muted) => self.core.set_muted(now, id, track, muted),
            Command::SendData(id, to, message, answer) => {
                let sent = self.core.send_data(now, id, to.as_deref(), *message);
                let _ = answer.send(sent);
            }
            Command::AdmitChange(id, bytes, answer) => {
                let _ = answer.send(self.core.admit_change(now, id, bytes));
            }
            Command::Changed(id) => self.core.participant_changed(now, id),
            Command::SetPermissions(id, permissions) => {
                self.core.set_permissions(now, id, permissions);
            }
            Command::SetPolicy(room, policy, answer) => {
                let _ = answer.send(self.core.set_policy(now, room.as_deref(), policy));
            }
            Command::Tune(tuning) => self.core.retune(now, tuning),
            Command::Drain => self.core.drain(),
            Command::SetRecorded(room, recorded) => self.core.set_recorded(now, &room, recorded),
            Command::RecordKeyFrame(track) => self.core.on_record_key_frame(now, track, false),
            Command::Share(room, nodes) => self.core.share(now, &room, &nodes),
            Command::Leave(id) => self.core.leave(now, id),
            Command::Fault(id, fault) => self.core.on_fault(now, id, &fault),
            Command::Stats(answer) => {
                let mut stats = self.core.stats();
                // All threads share the TCP connections: the first one reports them.
                if let Some(tcp_sender) = self.tcp.as_ref().map(TcpPort::sender) {
                    stats.tcp_open = tcp_sender.open();
                    stats.counters = stats.counters.plus(tcp_sender.counters());
                }
                stats.forwarding = self.outbox.forwarding;
                let _ = answer.send(stats);
            }
            Command::Stop => {}
        }
    }

    /// Sends the outputs of the core.
    fn send_outputs(&mut self, now: Instant) {
        if now >= self.next_closed_check {
            self.next_closed_check = now + CLOSED_CHECK_INTERVAL;
            let closed: Vec<_> =
                self.events.iter().filter(|(_, s)| s.is_closed()).map(|(&id, _)| id).collect();
            for id in closed {
                self.events.remove(&id);
                self.core.leave(now, id);
            }
        }
        self.taps.repeat_stops();
        while let Some(output) = self.core.poll() {
            match output {
                Output::Transmit { to: RemoteAddr { via: Via::Udp, address }, data, arrival } => {
                    if !self.outbox.push(self.socket.mapped(address), data, arrival) {
                        self.flush();
                    }
                }
                Output::Transmit { to: RemoteAddr { via: Via::Tcp, address }, data, .. } => {
                    if let Some(tcp_sender) = &self.tcp_sender {
                        tcp_sender.send(now, address, &data);
                    }
                }
                Output::Event(id, event) => self.send_event(now, id, event),
                Output::Relay(NodeId::RENDERER, _, message) => {
                    // Of what is requested of other nodes, a rendition has key frames alone.
                    if let Relayed::KeyFrame { track, .. } = message {
                        self.render(now, RendererInput::KeyFrame(track));
                    }
                }
                Output::Relay(node, room, message) => {
                    if let Some(relay) = &self.sinks.relay {
                        relay(node, &room, message);
                    }
                }
                Output::Render(input) => self.render(now, input),
                Output::Record(input) => {
                    let (track, media) = (input.track(), input.is_media());
                    let lost =
                        self.sinks.recorder.as_ref().is_some_and(|recorder| !recorder(input));
                    match (lost, media) {
                        (false, _) => {}
                        (true, true) => self.core.on_record_key_frame(now, track, true),
                        (true, false) => self.core.on_record_anchor_lost(track),
                    }
                }
                Output::Tap(input) => {
                    if let Err((stream, captured)) = self.taps.send(input) {
                        self.core.on_tap_overflow(now, stream, captured);
                    }
                }
                Output::Request(stream, request) => {
                    let taken = self.taps.request(stream, request);
                    self.core.counters.tap_requests_dropped += u64::from(!taken);
                }
            }
        }
        self.flush();
    }

    /// Gives the renderer an input.
    fn render(&mut self, now: Instant, input: RendererInput) {
        let track = input.track();
        let kind = match &input {
            RendererInput::Media(RecordInput::Video(_)) => Some(true),
            RendererInput::Media(RecordInput::Anchor(_)) => Some(false),
            _ => None,
        };
        let taken = self.sinks.renderer.as_ref().is_none_or(|renderer| renderer(input));
        match kind.filter(|_| !taken) {
            Some(true) => self.core.on_render_key_frame(now, track, true),
            Some(false) => self.core.on_render_anchor_lost(track),
            None => {}
        }
    }

    /// Sends the datagrams of the outbox.
    fn flush(&mut self) {
        let sent = self.socket.send(&mut self.outbox);
        let counters = &mut self.core.counters;
        counters.datagrams_out += sent.taken;
        counters.datagrams_out_failed += sent.refused;
        counters.datagrams_out_segmented += sent.segmented;
        counters.send_calls += sent.calls;
    }

    fn send_event(&mut self, now: Instant, id: ParticipantId, event: SfuEvent) {
        let last = matches!(event, SfuEvent::Disconnected(_));
        if last {
            self.room_threads.leave(id);
        }
        let Some(queue) = self.events.get(&id) else { return };
        let put = queue.put(event);
        self.core.counters.data_dropped += u64::from(put == Put::Dropped);
        let slow = put == Put::Slow;
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
        self.send_outputs(now);
        tracing::info!("media socket closed");
    }
}

/// Waits for a TCP datagram; `None` without a listener.
async fn next(tcp: &mut Option<TcpPort>) -> Option<TcpDatagram> {
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
        let sinks = EnhancerSinks { tap: Arc::new(sink), ..EnhancerSinks::none() };
        let mut taps = TapOutput { sinks, unsent_stops: HashSet::new() };
        let (one, other) = (StreamId(1), StreamId(2));
        assert_eq!(taps.send(TapInput::Gap { stream: one }), Ok(()));
        assert_eq!(taps.send(TapInput::Stop { stream: other }), Err((other, false)));
        taps.repeat_stops();
        queue.lock().expect("queue").clear();
        taps.repeat_stops();
        taps.repeat_stops();
        let taken = queue.lock().expect("queue");
        assert!(matches!(taken[..], [TapInput::Stop { stream }] if stream == other));
        assert!(taps.unsent_stops.is_empty());
    }

    #[test]
    fn a_request_goes_beside_a_full_tap_and_a_stream_with_requests_is_not_stopped() {
        let (sender, requests) = std::sync::mpsc::channel();
        let request = move |stream, request| sender.send((stream, request)).is_ok();
        let sinks = EnhancerSinks { tap: Arc::new(|_| false), requests: Arc::new(request) };
        let mut taps = TapOutput { sinks, unsent_stops: HashSet::new() };
        let stream = StreamId(1);
        assert_eq!(taps.send(TapInput::Stop { stream }), Err((stream, false)));
        assert!(taps.request(stream, EnhancerRequest::Regions(true)));
        let request = requests.try_recv().expect("requested");
        assert!(matches!(request, (of, EnhancerRequest::Regions(true)) if of == stream));
        assert!(taps.unsent_stops.is_empty());
    }
}
