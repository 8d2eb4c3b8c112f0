//! The thin shell: one thread with one UDP socket, another for TCP, and the handle that everybody else talks through.
//!
//! Two bounded queues lead in: commands (callers wait for room) and anchors (dropped and counted when full).

mod run;
mod socket;
mod tcp;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};
use windlass_media::{AnchorPolicy, AnchorSource, EnhancerOutput, Rung};

use crate::api::{
    Answer, JoinError, JoinOptions, Joined, Offer, OfferError, ParticipantId, SfuClosed,
    StartError, TapSink, TrackId, UplinkReport,
};
use crate::config::{SfuConfig, TcpConfig, Tuning};
use crate::core::{ReadOffer, View};
use crate::stats::SfuStats;

/// Commands that wait for the SFU's thread.
const COMMANDS: usize = 256;
/// Ports that are tried where the system chooses one.
const CHOICES: u32 = 32;
/// Anchors that wait for the SFU's thread.
const ANCHORS: usize = 64;

/// A request to the SFU's thread.
enum Command {
    Join(String, ParticipantId, JoinOptions, oneshot::Sender<Result<Joined, JoinError>>),
    Offer(ParticipantId, Box<ReadOffer>, oneshot::Sender<Result<Answer, OfferError>>),
    SetMaxRung(ParticipantId, TrackId, Rung),
    SetView(ParticipantId, TrackId, View),
    WholeAnchor(ParticipantId, TrackId, AnchorSource),
    Uplink(ParticipantId, TrackId, UplinkReport),
    Decay(ParticipantId, TrackId, (f64, f64)),
    SetMuted(ParticipantId, TrackId, bool),
    SetPolicy(Option<String>, Option<AnchorPolicy>, oneshot::Sender<bool>),
    Tune(Tuning),
    Drain,
    Leave(ParticipantId),
    Stats(oneshot::Sender<SfuStats>),
    Stop,
}

/// What needs no queue.
#[derive(Debug)]
struct Shared {
    /// Anchors that the queue did not take.
    overflows: AtomicU64,
    /// Whether there is an enhancer that works.
    enhancement: AtomicBool,
    /// The longest session description.
    sdp_bytes: usize,
}

/// The running SFU. Dropping it stops it.
#[derive(Debug)]
pub struct Sfu {
    handle: SfuHandle,
    local: SocketAddr,
    tcp: Option<SocketAddr>,
    thread: Option<JoinHandle<()>>,
}

impl Sfu {
    /// Binds the socket and starts the thread. `tap` takes the frames of tapped layers; it is called on the SFU's
    /// thread and must not block.
    pub fn start(config: SfuConfig, tap: TapSink) -> Result<Sfu, StartError> {
        let (socket, tcp) = open(&config)?;
        let local = socket.local_addr();
        let tcp_local = tcp.as_ref().map(tcp::TcpPort::local_addr);
        let (commands, command_queue) = mpsc::channel(COMMANDS);
        let (anchors, anchor_queue) = mpsc::channel(ANCHORS);
        let shared = Arc::new(Shared {
            overflows: AtomicU64::new(0),
            enhancement: AtomicBool::new(true),
            sdp_bytes: config.limits.sdp_bytes,
        });
        let handle = SfuHandle { commands, anchors, shared: shared.clone() };
        let thread = std::thread::Builder::new()
            .name("sfu".into())
            .spawn(move || {
                let sockets = (socket, tcp);
                run::run(&config, sockets, tap, command_queue, anchor_queue, &shared);
            })
            .map_err(StartError::Thread)?;
        Ok(Sfu { handle, local, tcp: tcp_local, thread: Some(thread) })
    }

    /// A handle for other parts; it may outlive the SFU and then answers "closed".
    pub fn handle(&self) -> SfuHandle {
        self.handle.clone()
    }

    /// The address that the socket got.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The address at which TCP is listened for, if it is.
    pub fn tcp_addr(&self) -> Option<SocketAddr> {
        self.tcp
    }
}

/// Both sockets. A port that the system chooses is one that is free for both.
fn open(config: &SfuConfig) -> Result<(socket::Socket, Option<tcp::TcpPort>), StartError> {
    let addr = config.udp;
    let chosen = addr.port() == 0 && config.tcp.as_ref().is_some_and(|tcp| tcp.listen.port() == 0);
    let mut left = if chosen { CHOICES } else { 1 };
    loop {
        left -= 1;
        let socket =
            socket::Socket::bind(addr).map_err(|source| StartError::Socket { addr, source })?;
        let local = socket.local_addr();
        match config.tcp.as_ref().map(|tcp| listen(tcp, local)).transpose() {
            Err(StartError::Tcp { source, .. })
                if left > 0 && source.kind() == std::io::ErrorKind::AddrInUse => {}
            opened => return Ok((socket, opened?)),
        }
    }
}

/// Listens for TCP, at the number of the UDP port where none is given.
fn listen(config: &TcpConfig, udp: SocketAddr) -> Result<tcp::TcpPort, StartError> {
    let mut config = config.clone();
    if config.listen.port() == 0 {
        config.listen.set_port(udp.port());
    }
    // Signalling needs files too, and would be the first to go without.
    let files = socket::raise_descriptors().unwrap_or(1024);
    let most = usize::try_from(files / 2).unwrap_or(usize::MAX);
    if config.connections > most {
        tracing::warn!(
            files,
            most,
            "fewer TCP connections than configured: files that may be open"
        );
    }
    config.connections = if config.connections == 0 { most } else { config.connections.min(most) };
    tcp::TcpPort::start(&config).map_err(|source| StartError::Tcp { addr: config.listen, source })
}

impl Drop for Sfu {
    fn drop(&mut self) {
        // A full queue is being emptied by the thread; try again rather than wait without a runtime.
        while let Err(mpsc::error::TrySendError::Full(_)) =
            self.handle.commands.try_send(Command::Stop)
        {
            std::thread::yield_now();
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Talks to the SFU from anywhere.
#[derive(Debug, Clone)]
pub struct SfuHandle {
    commands: mpsc::Sender<Command>,
    anchors: mpsc::Sender<EnhancerOutput>,
    shared: Arc<Shared>,
}

impl SfuHandle {
    /// Lets a participant into a room, which begins with its first participant.
    pub async fn join(
        &self,
        room: &str,
        id: ParticipantId,
        options: JoinOptions,
    ) -> Result<Joined, JoinError> {
        let (answer, answered) = oneshot::channel();
        let command = Command::Join(room.to_owned(), id, options, answer);
        self.commands.send(command).await.map_err(|_| JoinError::Closed)?;
        answered.await.unwrap_or(Err(JoinError::Closed))
    }

    /// Answers an offer: the complete list of what the participant publishes and subscribes to from now on.
    pub async fn offer(&self, id: ParticipantId, offer: Offer) -> Result<Answer, OfferError> {
        let offer = ReadOffer::new(offer, self.shared.sdp_bytes);
        let (answer, answered) = oneshot::channel();
        self.commands
            .send(Command::Offer(id, Box::new(offer), answer))
            .await
            .map_err(|_| OfferError::Closed)?;
        answered.await.unwrap_or(Err(OfferError::Closed))
    }

    /// Sets the best rung that the participant wants of a track. The default is [`Rung::F`].
    pub async fn set_max_rung(
        &self,
        id: ParticipantId,
        track: TrackId,
        max: Rung,
    ) -> Result<(), SfuClosed> {
        self.commands.send(Command::SetMaxRung(id, track, max)).await.map_err(|_| SfuClosed)
    }

    /// Says how the participant shows a track: what is enough for it, and how much it matters beside others.
    pub async fn set_view(
        &self,
        id: ParticipantId,
        track: TrackId,
        view: View,
    ) -> Result<(), SfuClosed> {
        self.commands.send(Command::SetView(id, track, view)).await.map_err(|_| SfuClosed)
    }

    /// The participant has none of the anchors of a source that those of a track are added to: asks for one that rests on no other.
    /// One for all who ask, and not too often.
    pub async fn want_whole_anchor(
        &self,
        id: ParticipantId,
        track: TrackId,
        source: AnchorSource,
    ) -> Result<(), SfuClosed> {
        self.commands.send(Command::WholeAnchor(id, track, source)).await.map_err(|_| SfuClosed)
    }

    /// Takes what a publisher's browser says of its uplink, once a second at most.
    pub async fn uplink(
        &self,
        id: ParticipantId,
        track: TrackId,
        report: UplinkReport,
    ) -> Result<(), SfuClosed> {
        self.commands.send(Command::Uplink(id, track, report)).await.map_err(|_| SfuClosed)
    }

    /// Takes what somebody who watches a track says of its picture: by how much it got worse with each of so many frames
    /// after an anchor, in mean square grey levels of luma; once a second at most.
    pub async fn decay(
        &self,
        id: ParticipantId,
        track: TrackId,
        decay: (f64, f64),
    ) -> Result<(), SfuClosed> {
        self.commands.send(Command::Decay(id, track, decay)).await.map_err(|_| SfuClosed)
    }

    /// Tells the room that the participant muted or unmuted its own track; nothing of a muted track is forwarded.
    pub async fn set_muted(
        &self,
        id: ParticipantId,
        track: TrackId,
        muted: bool,
    ) -> Result<(), SfuClosed> {
        self.commands.send(Command::SetMuted(id, track, muted)).await.map_err(|_| SfuClosed)
    }

    /// Chooses anchors by another policy from now on, in a room, or in all rooms without one of their own; `None` takes a room's own
    /// policy back. False where too many rooms have one.
    pub async fn set_policy(
        &self,
        room: Option<String>,
        policy: Option<AnchorPolicy>,
    ) -> Result<bool, SfuClosed> {
        let (answer, set) = oneshot::channel();
        let command = Command::SetPolicy(room, policy, answer);
        self.commands.send(command).await.map_err(|_| SfuClosed)?;
        set.await.map_err(|_| SfuClosed)
    }

    /// Works by other bounds from now on.
    pub async fn tune(&self, tuning: Tuning) -> Result<(), SfuClosed> {
        self.commands.send(Command::Tune(tuning)).await.map_err(|_| SfuClosed)
    }

    /// Takes no new rooms from now on.
    pub async fn drain(&self) -> Result<(), SfuClosed> {
        self.commands.send(Command::Drain).await.map_err(|_| SfuClosed)
    }

    /// Removes the participant and its tracks.
    pub async fn leave(&self, id: ParticipantId) -> Result<(), SfuClosed> {
        self.commands.send(Command::Leave(id)).await.map_err(|_| SfuClosed)
    }

    /// Takes what the enhancer made. Never waits; `false` when the queue is full (dropped and counted) or the SFU
    /// has stopped.
    pub fn push(&self, output: EnhancerOutput) -> bool {
        match self.anchors.try_send(output) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.shared.overflows.fetch_add(1, Ordering::Relaxed);
                false
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }

    /// Says whether there is an enhancer that works, which is taken for granted at the start. While there is none,
    /// nobody is given an enhanced rung and no layer is tapped. Takes effect within a fraction of a second.
    pub fn set_enhancement(&self, works: bool) {
        self.shared.enhancement.store(works, Ordering::Relaxed);
    }

    /// A snapshot of what there is and what has been counted.
    pub async fn stats(&self) -> Result<SfuStats, SfuClosed> {
        let (answer, answered) = oneshot::channel();
        self.commands.send(Command::Stats(answer)).await.map_err(|_| SfuClosed)?;
        answered.await.map_err(|_| SfuClosed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::SfuEvent;

    fn start() -> Sfu {
        let config =
            SfuConfig { udp: "127.0.0.1:0".parse().expect("address"), ..SfuConfig::default() };
        Sfu::start(config, Box::new(|_| true)).expect("started")
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
        let left = tokio::time::timeout(Duration::from_secs(5), second.events.recv())
            .await
            .expect("in time");
        assert_eq!(left, Some(SfuEvent::ParticipantLeft { participant: ParticipantId(1) }));
        assert_eq!(handle.stats().await.expect("running").participants, 1);
    }

    #[tokio::test]
    async fn a_stopped_sfu_says_so() {
        let sfu = start();
        let handle = sfu.handle();
        let mut joined =
            handle.join("room", ParticipantId(1), JoinOptions::default()).await.expect("joined");
        tokio::task::spawn_blocking(move || drop(sfu)).await.expect("stopped");
        assert_eq!(joined.events.recv().await, Some(SfuEvent::Disconnected));
        assert_eq!(handle.stats().await, Err(SfuClosed));
        assert!(matches!(
            handle.join("room", ParticipantId(2), JoinOptions::default()).await,
            Err(JoinError::Closed)
        ));
    }

    #[test]
    fn an_address_in_use_is_an_error_that_names_it() {
        let sfu = start();
        let config = SfuConfig { udp: sfu.local_addr(), ..SfuConfig::default() };
        let error = Sfu::start(config, Box::new(|_| true)).expect_err("in use");
        assert!(error.to_string().contains(&sfu.local_addr().to_string()));
    }
}
