//! ICE-TCP (RFC 6544), for clients whose network blocks UDP: framed datagrams on TCP connections that clients open to
//! one port.
//!
//! All connections are served by one thread of their own, so that they cannot delay the media threads. A media thread
//! takes whole datagrams from a bounded queue ([`TcpPort::try_next`]), and puts datagrams into bounded queues
//! ([`TcpSender::send`]).

mod admission;
mod connection;
mod frame;
mod queue;

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

use self::admission::{Admission, Refused};
use self::connection::{CloseReason, Connection};
use crate::config::TcpConfig;
use crate::stats::Counters;

/// Number of received datagrams that may wait for the media thread.
const MAX_ARRIVED: usize = 1024;
/// Number of connections that may wait to be accepted (listen backlog).
const BACKLOG: i32 = 1024;
/// Unsent bytes that the kernel may hold for a connection (`TCP_NOTSENT_LOWAT`). Bytes there cannot be dropped when
/// they are late.
const MAX_UNSENT: u32 = 16 * 1024;
/// Bytes that the kernel may hold for a connection, those in flight included.
const SEND_BUFFER: usize = 256 * 1024;
/// Pause after a failed accept, for example where the process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A received datagram.
#[derive(Debug)]
pub(super) struct TcpDatagram {
    /// The client's address.
    pub(super) from: SocketAddr,
    /// The datagram's content, without the length field of its frame.
    pub(super) data: Vec<u8>,
}

/// Counters since the start.
#[derive(Debug, Default)]
struct TcpCounters {
    connections: AtomicU64,
    refused_full: AtomicU64,
    refused_address: AtomicU64,
    unanswered: AtomicU64,
    malformed: AtomicU64,
    stalled: AtomicU64,
    frames_in: AtomicU64,
    frames_out: AtomicU64,
    dropped_late: AtomicU64,
    dropped_full: AtomicU64,
    gone: AtomicU64,
}

/// Adds to a counter.
fn add(count: &AtomicU64, n: u64) {
    count.fetch_add(n, Ordering::Relaxed);
}

impl TcpCounters {
    /// The TCP counters as counters of the SFU.
    fn to_counters(&self) -> Counters {
        let total = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counters {
            tcp_connections: total(&self.connections),
            tcp_refused_full: total(&self.refused_full),
            tcp_refused_address: total(&self.refused_address),
            tcp_unanswered: total(&self.unanswered),
            tcp_malformed: total(&self.malformed),
            tcp_stalled: total(&self.stalled),
            tcp_frames_in: total(&self.frames_in),
            tcp_frames_out: total(&self.frames_out),
            tcp_dropped_late: total(&self.dropped_late),
            tcp_dropped_full: total(&self.dropped_full),
            tcp_gone: total(&self.gone),
            ..Counters::default()
        }
    }
}

/// Sends datagrams on clients' connections. Cheap to clone; for any thread.
#[derive(Clone, Default)]
pub(super) struct TcpSender {
    connections: Arc<Mutex<HashMap<SocketAddr, Arc<Connection>>>>,
    counts: Arc<TcpCounters>,
}

impl TcpSender {
    fn lock(&self) -> MutexGuard<'_, HashMap<SocketAddr, Arc<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a datagram. Never waits; a datagram for an ended connection is dropped and counted.
    pub(super) fn send(&self, now: Instant, to: SocketAddr, datagram: &[u8]) {
        let connection = self.lock().get(&to).cloned();
        match connection {
            Some(connection) => connection.send(now, datagram, &self.counts),
            None => add(&self.counts.gone, 1),
        }
    }

    /// Number of open connections.
    pub(super) fn open(&self) -> usize {
        self.lock().len()
    }

    /// Counters of all connections.
    pub(super) fn counters(&self) -> Counters {
        self.counts.to_counters()
    }
}

/// The listener and its thread. Dropping it ends all connections.
pub(super) struct TcpPort {
    local: SocketAddr,
    arrived: mpsc::Receiver<TcpDatagram>,
    sender: TcpSender,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TcpPort {
    /// Starts the listener and its thread.
    pub(super) fn start(config: &TcpConfig) -> io::Result<TcpPort> {
        let listener = bind(config.listen)?;
        let local = listener.local_addr()?;
        let (arrived_sender, arrived) = mpsc::channel(MAX_ARRIVED);
        let (stop, stopped) = oneshot::channel();
        let sender = TcpSender::default();
        let shared = sender.clone();
        let admission = Admission::new(config.connections, config.per_address);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("sfu-tcp".into()).spawn(move || {
            runtime.block_on(async {
                match tokio::net::TcpListener::from_std(listener) {
                    Ok(listener) => {
                        let accept = Accept { admission, sender: shared, arrived: arrived_sender };
                        tokio::select! {
                            () = accept.run(listener) => {}
                            _ = stopped => {}
                        }
                    }
                    Err(error) => tracing::error!(%error, "TCP thread cannot start: the runtime does not accept the listener; check the open files limit (`ulimit -n`)"),
                }
            });
        })?;
        Ok(TcpPort { local, arrived, sender, stop: Some(stop), thread: Some(thread) })
    }

    /// Address of the bound listener.
    pub(super) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The sender of datagrams to clients.
    pub(super) fn sender(&self) -> &TcpSender {
        &self.sender
    }

    /// Waits for a datagram. After the thread has ended, it waits forever.
    pub(super) async fn next(&mut self) -> TcpDatagram {
        match self.arrived.recv().await {
            Some(arrived) => arrived,
            None => std::future::pending().await,
        }
    }

    /// The next received datagram, if there is one.
    pub(super) fn try_next(&mut self) -> Option<TcpDatagram> {
        self.arrived.try_recv().ok()
    }

    /// Whether received datagrams wait.
    pub(super) fn has_more(&self) -> bool {
        !self.arrived.is_empty()
    }
}

impl Drop for TcpPort {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn bind(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    if addr.is_ipv6() && addr.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    // A restarted server must not wait for connections in TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Accepts and refuses clients' connections, and runs those that it accepts.
struct Accept {
    admission: Admission,
    sender: TcpSender,
    arrived: mpsc::Sender<TcpDatagram>,
}

impl Accept {
    async fn run(mut self, listener: tokio::net::TcpListener) {
        let mut tasks = tokio::task::JoinSet::new();
        loop {
            tokio::select! {
                taken = listener.accept() => match taken {
                    Ok((stream, from)) => {
                        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
                        if let Some(connection) = self.admit(from) {
                            let (sender, arrived) = (self.sender.clone(), self.arrived.clone());
                            tasks.spawn(async move {
                                run(&stream, from, &connection, &arrived, &sender).await;
                                from
                            });
                        }
                    }
                    // The process has too many open files, or the client has gone already.
                    Err(error) => {
                        tracing::debug!(%error, "TCP accept failed: trying again; if it goes on, raise the limit of open files (ulimit -n)");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(ended) = tasks.join_next() => {
                    if let Ok(from) = ended {
                        self.sender.lock().remove(&from);
                        self.admission.end(from.ip());
                    }
                }
            }
        }
    }

    /// Admits a new connection; `None` if it is refused.
    fn admit(&mut self, from: SocketAddr) -> Option<Arc<Connection>> {
        let counts = self.sender.counts.clone();
        // One connection for each address, so that datagrams cannot go to another client.
        if self.sender.lock().contains_key(&from) {
            add(&counts.refused_address, 1);
            return None;
        }
        match self.admission.admit(from.ip()) {
            Ok(()) => {
                add(&counts.connections, 1);
                let connection = Arc::new(Connection::new(Instant::now()));
                self.sender.lock().insert(from, connection.clone());
                Some(connection)
            }
            Err(Refused::Full) => {
                add(&counts.refused_full, 1);
                None
            }
            Err(Refused::Address) => {
                add(&counts.refused_address, 1);
                None
            }
        }
    }
}

/// Runs a connection until it ends, and counts the reason.
async fn run(
    stream: &TcpStream,
    from: SocketAddr,
    connection: &Connection,
    arrived: &mpsc::Sender<TcpDatagram>,
    sender: &TcpSender,
) {
    let socket = SockRef::from(stream);
    // The connection works without these options, with more delay.
    let _ = stream.set_nodelay(true);
    let _ = socket.set_send_buffer_size(SEND_BUFFER);
    let _ = socket.set_tcp_notsent_lowat(MAX_UNSENT);
    let counts = &sender.counts;
    match connection::serve(stream, from, connection, arrived, counts).await {
        CloseReason::Closed | CloseReason::Stopped => {}
        CloseReason::Unanswered => add(&counts.unanswered, 1),
        CloseReason::Malformed => add(&counts.malformed, 1),
        CloseReason::Stalled => add(&counts.stalled, 1),
    }
}

#[cfg(test)]
mod tests;
