//! Clients whose network lets no UDP through: datagrams framed on TCP connections that they open (ICE-TCP, RFC 6544),
//! all on one port.
//!
//! Connections have a thread of their own, so that no number of them, and nothing that comes by them, keeps the SFU's
//! from its UDP socket: that one only takes whole datagrams out of a bounded queue ([`TcpPort::try_next`]) and puts
//! datagrams into bounded ones ([`Outlet::send`]).

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
use self::connection::{End, Line};
use crate::config::TcpConfig;
use crate::stats::Counters;

/// Datagrams that wait for the SFU's thread.
const ARRIVED: usize = 1024;
/// Connections that wait to be taken.
const BACKLOG: i32 = 1024;
/// What the kernel may hold of a connection's bytes that it has not sent yet. More would wait there, however old it gets.
const UNSENT: u32 = 16 * 1024;
/// What it may hold in all, those on their way included.
const SEND_BUFFER: usize = 256 * 1024;
/// How long nobody is taken in after the system had nothing to take them in with.
const PAUSE: Duration = Duration::from_millis(100);

/// A datagram that came.
#[derive(Debug)]
pub(super) struct Arrived {
    /// From the client's end of this connection.
    pub(super) from: SocketAddr,
    /// What it says.
    pub(super) data: Vec<u8>,
}

/// Totals since the start.
#[derive(Debug, Default)]
struct Counts {
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

fn add(count: &AtomicU64, n: u64) {
    count.fetch_add(n, Ordering::Relaxed);
}

impl Counts {
    /// As the SFU's counters.
    fn of(&self) -> Counters {
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

/// Sends to clients by the connections that they have opened. Cheap to clone, from any thread.
#[derive(Clone, Default)]
pub(super) struct Outlet {
    lines: Arc<Mutex<HashMap<SocketAddr, Arc<Line>>>>,
    counts: Arc<Counts>,
}

impl Outlet {
    fn lock(&self) -> MutexGuard<'_, HashMap<SocketAddr, Arc<Line>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a datagram; never waits. One for a connection that has ended is dropped and counted.
    pub(super) fn send(&self, now: Instant, to: SocketAddr, datagram: &[u8]) {
        let line = self.lock().get(&to).cloned();
        match line {
            Some(line) => line.send(now, datagram, &self.counts),
            None => add(&self.counts.gone, 1),
        }
    }

    /// How many connections there are now.
    pub(super) fn open(&self) -> usize {
        self.lock().len()
    }

    /// What has been counted.
    pub(super) fn counters(&self) -> Counters {
        self.counts.of()
    }
}

/// The port, while it is listened at. Dropping it ends all connections.
pub(super) struct TcpPort {
    local: SocketAddr,
    arrived: mpsc::Receiver<Arrived>,
    outlet: Outlet,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TcpPort {
    /// Listens, on a thread of its own.
    pub(super) fn start(config: &TcpConfig) -> io::Result<TcpPort> {
        let listener = bind(config.listen)?;
        let local = listener.local_addr()?;
        let (sender, arrived) = mpsc::channel(ARRIVED);
        let (stop, stopped) = oneshot::channel();
        let outlet = Outlet::default();
        let shared = outlet.clone();
        let admission = Admission::new(config.connections, config.per_address);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("sfu-tcp".into()).spawn(move || {
            runtime.block_on(async {
                match tokio::net::TcpListener::from_std(listener) {
                    Ok(listener) => {
                        let accept = Accept { admission, outlet: shared, arrived: sender };
                        tokio::select! {
                            () = accept.run(listener) => {}
                            _ = stopped => {}
                        }
                    }
                    Err(error) => tracing::error!(%error, "TCP cannot be listened for"),
                }
            });
        })?;
        Ok(TcpPort { local, arrived, outlet, stop: Some(stop), thread: Some(thread) })
    }

    /// The address that it got.
    pub(super) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The way back to clients.
    pub(super) fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// Waits for a datagram; for ever when there will be no more.
    pub(super) async fn next(&mut self) -> Arrived {
        match self.arrived.recv().await {
            Some(arrived) => arrived,
            None => std::future::pending().await,
        }
    }

    /// A datagram that has come.
    pub(super) fn try_next(&mut self) -> Option<Arrived> {
        self.arrived.try_recv().ok()
    }

    /// Whether some have come.
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
    // A server that starts again must not wait for its former clients' connections to be forgotten.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// What takes connections in.
struct Accept {
    admission: Admission,
    outlet: Outlet,
    arrived: mpsc::Sender<Arrived>,
}

impl Accept {
    async fn run(mut self, listener: tokio::net::TcpListener) {
        let mut tasks = tokio::task::JoinSet::new();
        loop {
            tokio::select! {
                taken = listener.accept() => match taken {
                    Ok((stream, from)) => {
                        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
                        if let Some(line) = self.admit(from) {
                            let (outlet, arrived) = (self.outlet.clone(), self.arrived.clone());
                            tasks.spawn(async move {
                                carry(&stream, from, &line, &arrived, &outlet).await;
                                from
                            });
                        }
                    }
                    // Most likely the process has as many open files as it may have; or the client has gone already.
                    Err(error) => {
                        tracing::debug!(%error, "a TCP connection could not be taken");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                Some(ended) = tasks.join_next() => {
                    if let Ok(from) = ended {
                        self.outlet.lock().remove(&from);
                        self.admission.end(from.ip());
                    }
                }
            }
        }
    }

    /// A place for a new connection; `None` where there is none.
    fn admit(&mut self, from: SocketAddr) -> Option<Arc<Line>> {
        let counts = self.outlet.counts.clone();
        // One end has one connection: else what is meant for the one could go to the other.
        if self.outlet.lock().contains_key(&from) {
            add(&counts.refused_address, 1);
            return None;
        }
        match self.admission.admit(from.ip()) {
            Ok(()) => {
                add(&counts.connections, 1);
                let line = Arc::new(Line::new(Instant::now()));
                self.outlet.lock().insert(from, line.clone());
                Some(line)
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

/// Carries datagrams until the connection ends, and counts why.
async fn carry(
    stream: &TcpStream,
    from: SocketAddr,
    line: &Line,
    arrived: &mpsc::Sender<Arrived>,
    outlet: &Outlet,
) {
    let socket = SockRef::from(stream);
    // What the system does not grant makes a bad network worse, and ends nothing.
    let _ = stream.set_nodelay(true);
    let _ = socket.set_send_buffer_size(SEND_BUFFER);
    let _ = socket.set_tcp_notsent_lowat(UNSENT);
    let counts = &outlet.counts;
    match connection::serve(stream, from, line, arrived, counts).await {
        End::Closed | End::Stopped => {}
        End::Unanswered => add(&counts.unanswered, 1),
        End::Malformed => add(&counts.malformed, 1),
        End::Stalled => add(&counts.stalled, 1),
    }
}

#[cfg(test)]
mod tests;
