//! The I/O around [`Core`](crate::core::Core): media threads, each with some of the rooms and a socket on the common
//! UDP port, a thread for TCP, and the handle for callers.
//!
//! Each media thread has bounded queues. Senders of commands and relay messages wait for room. Anchors, relayed media,
//! and datagrams that the kernel gave to another thread are dropped and counted when their queue is full.

mod events;
mod handle;
mod handover;
mod outward;
mod room_threads;
mod run;
mod socket;
mod tcp;
mod watchdog;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};
use windlass_types::{AnchorPolicy, Rung};

pub use self::handle::SfuHandle;
use self::handle::ThreadSenders;
pub use self::outward::outward_addresses;
use self::room_threads::RoomThreads;
pub use self::watchdog::ThreadFault;
use self::watchdog::{ThreadGuard, Watchdog};
use crate::api::{
    DataError, DataMessage, EnhancerSinks, JoinError, JoinOptions, Joined, OfferError,
    ParticipantId, Permissions, RenditionError, ReportError, Sinks, StartError, TakenReport,
    TrackId, TrackReport, UplinkReport,
};
use crate::config::{SfuConfig, TcpConfig, Tuning, share_of_one};
use crate::core::{Answered, Fault, ReadOffer, Recorded, Shard, View};
use crate::relay::NodeId;
use crate::stats::SfuStats;

/// Maximum number of commands that wait for a thread.
const MAX_COMMANDS: usize = 256;
/// Maximum number of attempts to find a port that is free for UDP and TCP, where the system chooses the port.
const MAX_PORT_ATTEMPTS: u32 = 32;
/// Maximum number of messages of other SFUs that wait for a thread: some hundred milliseconds of ten cameras.
const MAX_RELAYED: usize = 1024;
/// Maximum number of anchors that wait for a thread.
const MAX_ANCHORS: usize = 64;

/// A command for a media thread.
enum Command {
    Join(String, ParticipantId, JoinOptions, oneshot::Sender<Result<Joined, JoinError>>),
    Render(ParticipantId, TrackId, oneshot::Sender<Result<TrackId, RenditionError>>),
    Offer(ParticipantId, Box<ReadOffer>, oneshot::Sender<Result<Answered, OfferError>>),
    SetMaxRung(ParticipantId, TrackId, Rung),
    SetView(ParticipantId, TrackId, View),
    KeyAnchor(ParticipantId, TrackId),
    Uplink(ParticipantId, TrackId, UplinkReport),
    Report(ParticipantId, TrackId, TrackReport, oneshot::Sender<Result<TakenReport, ReportError>>),
    SetMuted(ParticipantId, TrackId, bool),
    SendData(
        ParticipantId,
        Option<Vec<ParticipantId>>,
        Box<DataMessage>,
        oneshot::Sender<Result<(), DataError>>,
    ),
    AdmitChange(ParticipantId, usize, oneshot::Sender<Result<(), DataError>>),
    Changed(ParticipantId),
    SetPermissions(ParticipantId, Permissions),
    SetPolicy(Option<String>, Option<AnchorPolicy>, oneshot::Sender<bool>),
    Tune(Tuning),
    Drain,
    Share(String, Vec<NodeId>),
    SetRecorded(String, Option<Recorded>),
    RecordKeyFrame(TrackId),
    Leave(ParticipantId),
    /// A panic while the participant's offer was parsed or its answer was written.
    Fault(ParticipantId, Fault),
    Stats(oneshot::Sender<SfuStats>),
    Stop,
}

impl Command {
    /// The participant that is removed if the command panics.
    fn participant(&self) -> Option<ParticipantId> {
        match self {
            Command::Offer(id, ..)
            | Command::Render(id, ..)
            | Command::SetMaxRung(id, ..)
            | Command::SetView(id, ..)
            | Command::KeyAnchor(id, ..)
            | Command::Uplink(id, ..)
            | Command::Report(id, ..)
            | Command::SetMuted(id, ..)
            | Command::SendData(id, ..)
            | Command::AdmitChange(id, ..)
            | Command::Changed(id) => Some(*id),
            _ => None,
        }
    }
}

/// State that callers and media threads share.
#[derive(Debug)]
struct Shared {
    /// Number of anchors dropped at full queues.
    overflows: AtomicU64,
    /// Number of relayed packets and anchors dropped at full queues.
    relay_overflows: AtomicU64,
    /// Whether an enhancer is available.
    enhancement: AtomicBool,
    /// Maximum bytes of a session description.
    sdp_bytes: usize,
}

/// A running SFU. Dropping it stops it.
///
/// ```
/// use windlass_sfu::{EnhancerSinks, Sfu, SfuConfig};
///
/// // Two threads, each with a socket at one port that the system chooses. Nobody enhances.
/// let config = SfuConfig { udp: ([127, 0, 0, 1], 0).into(), threads: 2, ..SfuConfig::default() };
/// let sfu = Sfu::start(&config, &EnhancerSinks::none())?;
/// assert_ne!(sfu.local_addr().port(), 0);
/// // Clients get this address in the answers to their offers.
/// assert_eq!(sfu.candidates(), [sfu.local_addr()]);
///
/// let handle = sfu.handle();
/// assert_eq!(handle.thread_fault(), None);
/// # Ok::<(), windlass_sfu::StartError>(())
/// ```
#[derive(Debug)]
pub struct Sfu {
    handle: SfuHandle,
    local: SocketAddr,
    candidates: Vec<SocketAddr>,
    threads: Vec<JoinHandle<()>>,
}

impl Sfu {
    /// Binds the sockets and starts the threads. `enhancer` takes the frames of tapped layers, and requests; it is
    /// called on these threads and must not block.
    ///
    /// # Errors
    ///
    /// Fails if a socket cannot be bound to its configured address, or the system gives no more threads.
    pub fn start(config: &SfuConfig, enhancer: &EnhancerSinks) -> Result<Sfu, StartError> {
        Sfu::start_with(config, enhancer, &Sinks::default())
    }

    /// [`Sfu::start`] for an SFU that shares rooms with others, records, or renders.
    ///
    /// # Errors
    ///
    /// Fails where [`Sfu::start`] does.
    pub fn start_with(
        config: &SfuConfig,
        enhancer: &EnhancerSinks,
        sinks: &Sinks,
    ) -> Result<Sfu, StartError> {
        let config = &config.clone().with_outward(&outward_addresses());
        let (sockets, mut tcp) = open(config)?;
        let count = sockets.len();
        let local = sockets[0].local_addr();
        let tcp_local = tcp.as_ref().map(tcp::TcpPort::local_addr);
        let shared = Arc::new(Shared {
            overflows: AtomicU64::new(0),
            relay_overflows: AtomicU64::new(0),
            enhancement: AtomicBool::new(true),
            sdp_bytes: config.limits.sdp_bytes,
        });
        let watchdog = Arc::new(Watchdog::new(count));
        let room_threads = Arc::new(RoomThreads::new(count, watchdog.clone()));
        let (handed, handover) = handover::channels(count);
        let tcp_sender = tcp.as_ref().map(|tcp| tcp.sender().clone());
        let tcp_candidates = tcp_local.map(|tcp| config.tcp_candidates(local, tcp));
        let (mut senders, mut parts) = (Vec::new(), Vec::new());
        for ((socket, shard), handed) in sockets.into_iter().zip(Shard::all(count)).zip(handed) {
            let (commands, command_queue) = mpsc::channel(MAX_COMMANDS);
            let (anchors, anchor_queue) = mpsc::channel(MAX_ANCHORS);
            let (relayed, relayed_queue) = mpsc::channel(MAX_RELAYED);
            senders.push(ThreadSenders { commands, anchors, relayed });
            parts.push(run::Parts {
                shard,
                socket,
                // The first thread receives from TCP, and hands over datagrams of other threads' rooms.
                tcp: tcp.take(),
                tcp_sender: tcp_sender.clone(),
                tcp_candidates: tcp_candidates.clone().unwrap_or_default(),
                handed,
                handover: handover.clone(),
                enhancer: enhancer.clone(),
                sinks: sinks.clone(),
                relayed: relayed_queue,
                commands: command_queue,
                anchors: anchor_queue,
                room_threads: room_threads.clone(),
                shared: shared.clone(),
                watchdog: watchdog.clone(),
            });
        }
        // If a thread cannot start, dropping this stops those that have started.
        let mut sfu = Sfu {
            handle: SfuHandle::new(senders, room_threads, shared, watchdog.clone()),
            local,
            candidates: config.candidates(local),
            threads: Vec::new(),
        };
        for parts in parts {
            let config = config.clone();
            let thread = std::thread::Builder::new()
                .name(format!("sfu-{}", parts.shard.number()))
                .spawn(move || {
                    let mut guard = ThreadGuard::new(parts.watchdog.clone(), parts.shard.number());
                    if run::run(&config, parts) {
                        guard.set_stopped();
                    }
                })
                .map_err(StartError::Thread)?;
            sfu.threads.push(thread);
        }
        Ok(sfu)
    }

    /// A handle for callers. It may outlive the SFU, and then returns errors.
    pub fn handle(&self) -> SfuHandle {
        self.handle.clone()
    }

    /// Address of the bound UDP socket.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The addresses that clients get as UDP candidates.
    pub fn candidates(&self) -> &[SocketAddr] {
        &self.candidates
    }
}

/// Binds a UDP socket for each thread, and the TCP listener. If the system chooses the port, one that is free for both.
fn open(config: &SfuConfig) -> Result<(Vec<socket::Socket>, Option<tcp::TcpPort>), StartError> {
    let addr = config.udp;
    let chosen = addr.port() == 0 && config.tcp.as_ref().is_some_and(|tcp| tcp.listen.port() == 0);
    let mut left = if chosen { MAX_PORT_ATTEMPTS } else { 1 };
    loop {
        left -= 1;
        let socket =
            socket::Socket::bind(addr).map_err(|source| StartError::Socket { addr, source })?;
        let local = socket.local_addr();
        match config.tcp.as_ref().map(|tcp| listen(tcp, local)).transpose() {
            Err(StartError::Tcp { source, .. })
                if left > 0 && source.kind() == std::io::ErrorKind::AddrInUse => {}
            opened => {
                let others = (1..config.threads).map(|_| socket.another());
                let others = others.collect::<Result<Vec<_>, _>>();
                let others = others.map_err(|source| StartError::Socket { addr: local, source })?;
                return Ok((std::iter::once(socket).chain(others).collect(), opened?));
            }
        }
    }
}

/// Starts the TCP listener, on the UDP port by default.
fn listen(config: &TcpConfig, udp: SocketAddr) -> Result<tcp::TcpPort, StartError> {
    let mut config = config.clone();
    if config.listen.port() == 0 {
        config.listen.set_port(udp.port());
    }
    // The other half is for signalling.
    let files = socket::raise_descriptors().unwrap_or(1024);
    let max = usize::try_from(files / 2).unwrap_or(usize::MAX);
    if config.connections > max {
        tracing::warn!(
            files,
            max,
            "fewer TCP connections than configured: half of the open files limit; raise it (ulimit -n)"
        );
    }
    config.connections = if config.connections == 0 { max } else { config.connections.min(max) };
    config.per_address = config.per_address.min(share_of_one(config.connections));
    tcp::TcpPort::start(&config).map_err(|source| StartError::Tcp { addr: config.listen, source })
}

impl Drop for Sfu {
    fn drop(&mut self) {
        self.handle.stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.handle.on_stopped();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::{DisconnectReason, Offer, SfuClosed, SfuEvent};
    use crate::relay::RelaySink;

    fn start() -> Sfu {
        start_with(SfuConfig::default())
    }

    fn start_with(config: SfuConfig) -> Sfu {
        let config = SfuConfig { udp: "127.0.0.1:0".parse().expect("address"), ..config };
        Sfu::start(&config, &EnhancerSinks::none()).expect("started")
    }

    /// Five participants in four rooms, on three threads.
    async fn several(handle: &SfuHandle) -> Vec<Joined> {
        let mut all = Vec::new();
        for (id, room) in [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "b")] {
            let joined = handle.join(room, ParticipantId(id), JoinOptions::default()).await;
            all.push(joined.expect("joined"));
        }
        all
    }

    /// Takes a participant's events up to the one that is waited for.
    async fn until(joined: &mut Joined, event: &SfuEvent) {
        let comes =
            async { while joined.events.recv().await.as_ref().expect("connected") != event {} };
        tokio::time::timeout(Duration::from_secs(5), comes).await.expect("in time");
    }

    fn left(id: u64) -> SfuEvent {
        SfuEvent::ParticipantLeft { participant: ParticipantId(id) }
    }

    #[tokio::test]
    async fn several_threads_are_one_server_to_whoever_asks() {
        let limits = crate::Limits { rooms: 4, participants: 6, ..crate::Limits::default() };
        let sfu = start_with(SfuConfig { threads: 3, limits, ..SfuConfig::default() });
        let handle = sfu.handle();
        let mut joined = several(&handle).await;
        assert_eq!(joined[4].participants, [ParticipantId(2)]);
        let stats = handle.stats().await.expect("running");
        assert_eq!((stats.rooms, stats.participants, stats.counters.joins), (4, 5, 5));
        let join = |id, room| handle.join(room, ParticipantId(id), JoinOptions::default());
        assert_eq!(join(5, "a").await.err(), Some(JoinError::AlreadyJoined));
        assert_eq!(join(6, "e").await.err(), Some(JoinError::ServerFull), "rooms of all threads");
        let sixth = join(6, "a").await.expect("a place for one more");
        assert_eq!(join(7, "b").await.err(), Some(JoinError::ServerFull), "and participants");
        assert_eq!(sixth.participants, [ParticipantId(1)]);
        assert_eq!(handle.set_policy(None, None).await, Ok(true));
        let offered = handle.offer(ParticipantId(99), Offer::default()).await;
        assert!(
            matches!(offered, Err(OfferError::NotJoined | OfferError::BadSdp(_))),
            "{offered:?}"
        );
        // In rooms of two, one that leaves and one whose events nobody takes any more: the other one hears it.
        handle.leave(ParticipantId(5)).await.expect("running");
        until(&mut joined[1], &left(5)).await;
        drop(sixth);
        until(&mut joined[0], &left(6)).await;
        for (joined, id) in joined.iter_mut().zip(1..=4) {
            handle.leave(ParticipantId(id)).await.expect("running");
            until(joined, &SfuEvent::Disconnected(DisconnectReason::Left)).await;
        }
        let stats = handle.stats().await.expect("running");
        assert_eq!((stats.rooms, stats.participants), (0, 0));
        assert!(join(5, "e").await.is_ok());
    }

    #[tokio::test]
    async fn all_threads_stop() {
        let sfu = start_with(SfuConfig { threads: 3, ..SfuConfig::default() });
        let handle = sfu.handle();
        let mut joined = several(&handle).await;
        tokio::task::spawn_blocking(move || drop(sfu)).await.expect("stopped");
        for joined in &mut joined {
            until(joined, &SfuEvent::Disconnected(DisconnectReason::Left)).await;
        }
        assert_eq!(handle.stats().await, Err(SfuClosed));
    }

    #[tokio::test]
    async fn a_participant_whose_events_nobody_takes_any_more_leaves() {
        let sfu = start();
        let handle = sfu.handle();
        let first =
            handle.join("room", ParticipantId(1), JoinOptions::default()).await.expect("joined");
        let mut second =
            handle.join("room", ParticipantId(2), JoinOptions::default()).await.expect("joined");
        assert_eq!(second.participants, [ParticipantId(1)]);
        drop(first);
        let event = tokio::time::timeout(Duration::from_secs(5), second.events.recv())
            .await
            .expect("in time");
        assert_eq!(event, Some(left(1)));
        assert_eq!(handle.stats().await.expect("running").participants, 1);
    }

    #[tokio::test]
    async fn a_stopped_sfu_says_so() {
        let sfu = start();
        let handle = sfu.handle();
        let mut joined =
            handle.join("room", ParticipantId(1), JoinOptions::default()).await.expect("joined");
        tokio::task::spawn_blocking(move || drop(sfu)).await.expect("stopped");
        assert_eq!(
            joined.events.recv().await,
            Some(SfuEvent::Disconnected(DisconnectReason::Left))
        );
        assert_eq!(handle.stats().await, Err(SfuClosed));
        assert!(matches!(
            handle.join("room", ParticipantId(2), JoinOptions::default()).await,
            Err(JoinError::Closed)
        ));
    }

    #[tokio::test]
    async fn a_node_that_has_just_been_linked_is_told_who_is_there() {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let relay: RelaySink = Arc::new(move |node, room, message| {
            if !matches!(message, crate::Relayed::Begin) {
                let _ = sender.send((node, room.to_string(), format!("{message:?}")));
            }
        });
        let config =
            SfuConfig { udp: "127.0.0.1:0".parse().expect("address"), ..SfuConfig::default() };
        let sinks = Sinks { relay: Some(relay), ..Sinks::default() };
        let sfu = Sfu::start_with(&config, &EnhancerSinks::none(), &sinks).expect("started");
        let handle = sfu.handle();
        let joined = handle.join("tea", ParticipantId(1), JoinOptions::default()).await;
        let (room, node): (Arc<str>, _) = ("tea".into(), NodeId(7));
        handle.share("tea", &[node]).await.expect("running");
        for _ in 0..50 {
            handle.linked(node, true).await.expect("running");
            handle.relayed(node, &room, crate::Relayed::Begin).await.expect("running");
            let relayed = tokio::time::timeout(Duration::from_secs(5), receiver.recv()).await;
            let relayed = relayed.expect("in time").expect("sent");
            assert_eq!((relayed.0, &*relayed.1), (node, "tea"));
            assert!(relayed.2.starts_with("Joined"), "{}", relayed.2);
            handle.linked(node, false).await.expect("running");
        }
        drop(joined);
    }

    #[test]
    fn an_address_in_use_is_an_error_that_names_it() {
        let sfu = start();
        let config = SfuConfig { udp: sfu.local_addr(), ..SfuConfig::default() };
        let error = Sfu::start(&config, &EnhancerSinks::none()).expect_err("in use");
        assert!(error.to_string().contains(&sfu.local_addr().to_string()));
    }
}
