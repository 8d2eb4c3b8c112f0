//! One TCP connection of a client: reads, writes, and closes it after timeouts.
//!
//! The SFU answers the STUN requests of its participants every few seconds (RFC 7675), and sends nothing to anybody
//! else. So a connection on which the SFU sends nothing is not a participant's, and is closed.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

use super::TcpCounters;
use super::frame::Deframer;
use super::queue::{Pushed, Queue};
use super::{TcpDatagram, add};

/// Time within which the SFU must send something on a new connection.
const FIRST_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time between two datagrams of the SFU on a connection.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of datagrams that a client may send before the SFU's first answer.
const MAX_UNANSWERED: u32 = 100;
/// Time without progress after which a connection with waiting data is closed.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which the timeouts are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Why a connection was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// The client or the network closed it.
    Closed,
    /// The SFU sent nothing for too long: not a participant's connection.
    Unanswered,
    /// A malformed frame.
    Malformed,
    /// The client does not read.
    Stalled,
    /// The SFU stops.
    Stopped,
}

/// State that the media threads and the connection's task share.
pub(super) struct Connection {
    state: Mutex<State>,
    /// Signals that data waits to be written.
    write_ready: Notify,
}

struct State {
    queue: Queue,
    opened: Instant,
    /// When the SFU sent its last datagram.
    answered: Option<Instant>,
    /// When data was written last, or none waited.
    progress: Instant,
}

impl Connection {
    /// A new connection, before its first datagram.
    pub(super) fn new(now: Instant) -> Connection {
        let state = State { queue: Queue::default(), opened: now, answered: None, progress: now };
        Connection { state: Mutex::new(state), write_ready: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a datagram.
    pub(super) fn send(&self, now: Instant, datagram: &[u8], counts: &TcpCounters) {
        let mut state = self.lock();
        if state.queue.is_empty() {
            state.progress = now;
        }
        state.answered = Some(now);
        let pushed = state.queue.push(now, datagram);
        let late = std::mem::take(&mut state.queue.late);
        drop(state);
        add(&counts.dropped_late, late);
        match pushed {
            Pushed::Taken => self.write_ready.notify_one(),
            Pushed::Full => add(&counts.dropped_full, 1),
        }
    }

    /// The timeout that has passed, if any.
    fn timed_out(&self, now: Instant) -> Option<CloseReason> {
        let state = self.lock();
        let silent = match state.answered {
            Some(at) => now.saturating_duration_since(at) > ANSWER_TIMEOUT,
            None => now.saturating_duration_since(state.opened) > FIRST_ANSWER_TIMEOUT,
        };
        let stalled = !state.queue.is_empty()
            && now.saturating_duration_since(state.progress) > STALL_TIMEOUT;
        if silent { Some(CloseReason::Unanswered) } else { stalled.then_some(CloseReason::Stalled) }
    }

    /// Whether the client may have sent this many datagrams so far.
    fn may_send(&self, unanswered: u32) -> bool {
        unanswered <= MAX_UNANSWERED || self.lock().answered.is_some()
    }

    /// Writes waiting data until `stream` blocks.
    fn write(&self, stream: &TcpStream, counts: &TcpCounters) -> std::io::Result<()> {
        loop {
            let now = Instant::now();
            let mut state = self.lock();
            let slices = state.queue.slices(now);
            if slices.is_empty() {
                return Ok(());
            }
            let bytes = stream.try_write_vectored(&slices)?;
            drop(slices);
            add(&counts.frames_out, state.queue.advance(bytes));
            state.progress = now;
        }
    }
}

/// Serves a connection until it ends.
pub(super) async fn serve(
    stream: &TcpStream,
    from: SocketAddr,
    connection: &Connection,
    arrived: &mpsc::Sender<TcpDatagram>,
    counts: &TcpCounters,
) -> CloseReason {
    tokio::select! {
        end = read(stream, from, connection, arrived, counts) => end,
        end = write(stream, connection, counts) => end,
        end = watch(connection) => end,
    }
}

async fn read(
    stream: &TcpStream,
    from: SocketAddr,
    connection: &Connection,
    arrived: &mpsc::Sender<TcpDatagram>,
    counts: &TcpCounters,
) -> CloseReason {
    let (mut deframer, mut frames) = (Deframer::new(), 0_u32);
    loop {
        if stream.readable().await.is_err() {
            return CloseReason::Closed;
        }
        match stream.try_read(deframer.room()) {
            Ok(0) => return CloseReason::Closed,
            Ok(n) => deframer.filled(n),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return CloseReason::Closed,
        }
        loop {
            let data = match deframer.next() {
                Ok(Some(frame)) => frame.to_vec(),
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%error, "malformed frame on a TCP connection: closing it");
                    return CloseReason::Malformed;
                }
            };
            add(&counts.frames_in, 1);
            frames = frames.saturating_add(1);
            if !connection.may_send(frames) {
                return CloseReason::Unanswered;
            }
            // While the media thread is behind, its queue blocks all connections in turn.
            if arrived.send(TcpDatagram { from, data }).await.is_err() {
                return CloseReason::Stopped;
            }
        }
    }
}

async fn write(stream: &TcpStream, connection: &Connection, counts: &TcpCounters) -> CloseReason {
    loop {
        connection.write_ready.notified().await;
        loop {
            match connection.write(stream, counts) {
                Ok(()) => break,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if stream.writable().await.is_err() {
                        return CloseReason::Closed;
                    }
                }
                Err(_) => return CloseReason::Closed,
            }
        }
    }
}

async fn watch(connection: &Connection) -> CloseReason {
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        if let Some(end) = connection.timed_out(Instant::now()) {
            return end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_sent_nothing_ends_soon_at_first_and_later_too() {
        let (now, counts) = (Instant::now(), TcpCounters::default());
        let connection = Connection::new(now);
        assert_eq!(connection.timed_out(now + FIRST_ANSWER_TIMEOUT), None);
        assert_eq!(
            connection.timed_out(now + FIRST_ANSWER_TIMEOUT + CHECK_INTERVAL),
            Some(CloseReason::Unanswered)
        );
        connection.send(now + CHECK_INTERVAL, b"answer", &counts);
        connection.lock().queue.advance(8);
        assert_eq!(connection.timed_out(now + CHECK_INTERVAL + ANSWER_TIMEOUT), None);
        assert_eq!(
            connection.timed_out(now + 2 * CHECK_INTERVAL + ANSWER_TIMEOUT),
            Some(CloseReason::Unanswered)
        );
    }

    #[test]
    fn a_connection_that_does_not_read_ends_while_it_is_still_sent_media() {
        let (now, counts) = (Instant::now(), TcpCounters::default());
        let connection = Connection::new(now);
        for tenth in 0..105 {
            connection.send(now + CHECK_INTERVAL * tenth / 10, &[0x80; 1200], &counts);
            connection.lock().queue.advance(1);
            // Nothing more is written: only what had begun is left of the first.
        }
        connection.lock().progress = now;
        assert_eq!(connection.timed_out(now + STALL_TIMEOUT), None);
        assert_eq!(
            connection.timed_out(now + STALL_TIMEOUT + CHECK_INTERVAL),
            Some(CloseReason::Stalled)
        );
        assert!(counts.to_counters().tcp_dropped_late > 50);
    }

    #[test]
    fn a_connection_without_a_client_is_limited_and_one_with_a_client_is_not() {
        let connection = Connection::new(Instant::now());
        assert!(connection.may_send(MAX_UNANSWERED) && !connection.may_send(MAX_UNANSWERED + 1));
        connection.send(Instant::now(), b"answer", &TcpCounters::default());
        assert!(connection.may_send(u32::MAX));
    }
}
