//! One client's connection: read, written and watched until it ends.
//!
//! Nobody is asked whether a client is one of ours: the SFU answers the STUN requests of those that are, every few
//! seconds (RFC 7675), and nothing else is ever sent to a stranger. So a connection that is not sent anything ends.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

use super::Counts;
use super::frame::Deframer;
use super::queue::{Pushed, Queue};
use super::{Arrived, add};

/// Within this time something must have been sent to a new connection,
const FIRST_ANSWER: Duration = Duration::from_secs(10);
/// and must be sent again and again.
const ANSWER: Duration = Duration::from_secs(30);
/// So much may come before anything has been sent.
const UNANSWERED: u32 = 100;
/// How long what waits to be written may go without progress.
const STALLED: Duration = Duration::from_secs(10);
/// How often it is looked whether one of these times has passed.
const LOOK: Duration = Duration::from_secs(1);

/// Why a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The client has closed it, or the network has.
    Closed,
    /// Nothing was sent to it for too long: it is nobody's.
    Unanswered,
    /// Something came that is no frame of ours.
    Malformed,
    /// The client does not read.
    Stalled,
    /// The server stops.
    Stopped,
}

/// What the SFU's thread and the connection's task share.
pub(super) struct Line {
    state: Mutex<State>,
    /// Something waits to be written.
    written: Notify,
}

struct State {
    queue: Queue,
    opened: Instant,
    /// When something was handed in to be written last.
    answered: Option<Instant>,
    /// When something was written last, or nothing had to be.
    progress: Instant,
}

impl Line {
    /// Of a new connection.
    pub(super) fn new(now: Instant) -> Line {
        let state = State { queue: Queue::default(), opened: now, answered: None, progress: now };
        Line { state: Mutex::new(state), written: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a datagram written.
    pub(super) fn send(&self, now: Instant, datagram: &[u8], counts: &Counts) {
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
            Pushed::Taken => self.written.notify_one(),
            Pushed::Full => add(&counts.dropped_full, 1),
        }
    }

    /// Whether one of the times has passed.
    fn overdue(&self, now: Instant) -> Option<End> {
        let state = self.lock();
        let silent = match state.answered {
            Some(at) => now.saturating_duration_since(at) > ANSWER,
            None => now.saturating_duration_since(state.opened) > FIRST_ANSWER,
        };
        let stalled =
            !state.queue.is_empty() && now.saturating_duration_since(state.progress) > STALLED;
        if silent { Some(End::Unanswered) } else { stalled.then_some(End::Stalled) }
    }

    /// Whether the connection may go on talking without an answer.
    fn may_talk(&self, unanswered: u32) -> bool {
        unanswered <= UNANSWERED || self.lock().answered.is_some()
    }

    /// Writes what waits, as far as `stream` takes it.
    fn write(&self, stream: &TcpStream, counts: &Counts) -> std::io::Result<()> {
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
    line: &Line,
    arrived: &mpsc::Sender<Arrived>,
    counts: &Counts,
) -> End {
    tokio::select! {
        end = read(stream, from, line, arrived, counts) => end,
        end = write(stream, line, counts) => end,
        end = watch(line) => end,
    }
}

async fn read(
    stream: &TcpStream,
    from: SocketAddr,
    line: &Line,
    arrived: &mpsc::Sender<Arrived>,
    counts: &Counts,
) -> End {
    let (mut deframer, mut frames) = (Deframer::new(), 0_u32);
    loop {
        if stream.readable().await.is_err() {
            return End::Closed;
        }
        match stream.try_read(deframer.room()) {
            Ok(0) => return End::Closed,
            Ok(n) => deframer.filled(n),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return End::Closed,
        }
        loop {
            let data = match deframer.next() {
                Ok(Some(frame)) => frame.to_vec(),
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%error, "TCP connection refused");
                    return End::Malformed;
                }
            };
            add(&counts.frames_in, 1);
            frames = frames.saturating_add(1);
            if !line.may_talk(frames) {
                return End::Unanswered;
            }
            // Where the SFU's thread is behind, so are those who send; all of them in turn.
            if arrived.send(Arrived { from, data }).await.is_err() {
                return End::Stopped;
            }
        }
    }
}

async fn write(stream: &TcpStream, line: &Line, counts: &Counts) -> End {
    loop {
        line.written.notified().await;
        loop {
            match line.write(stream, counts) {
                Ok(()) => break,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if stream.writable().await.is_err() {
                        return End::Closed;
                    }
                }
                Err(_) => return End::Closed,
            }
        }
    }
}

async fn watch(line: &Line) -> End {
    loop {
        tokio::time::sleep(LOOK).await;
        if let Some(end) = line.overdue(Instant::now()) {
            return end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_sent_nothing_ends_soon_at_first_and_later_too() {
        let (now, counts) = (Instant::now(), Counts::default());
        let line = Line::new(now);
        assert_eq!(line.overdue(now + FIRST_ANSWER), None);
        assert_eq!(line.overdue(now + FIRST_ANSWER + LOOK), Some(End::Unanswered));
        line.send(now + LOOK, b"answer", &counts);
        line.lock().queue.advance(8);
        assert_eq!(line.overdue(now + LOOK + ANSWER), None);
        assert_eq!(line.overdue(now + 2 * LOOK + ANSWER), Some(End::Unanswered));
    }

    #[test]
    fn one_that_does_not_read_ends_while_it_is_still_sent_media() {
        let (now, counts) = (Instant::now(), Counts::default());
        let line = Line::new(now);
        for tenth in 0..105 {
            line.send(now + LOOK * tenth / 10, &[0x80; 1200], &counts);
            line.lock().queue.advance(1);
            // Nothing more is written: only what had begun is left of the first.
        }
        line.lock().progress = now;
        assert_eq!(line.overdue(now + STALLED), None);
        assert_eq!(line.overdue(now + STALLED + LOOK), Some(End::Stalled));
        assert!(counts.of().tcp_dropped_late > 50);
    }

    #[test]
    fn strangers_may_say_so_much_and_clients_all_that_they_want() {
        let line = Line::new(Instant::now());
        assert!(line.may_talk(UNANSWERED) && !line.may_talk(UNANSWERED + 1));
        line.send(Instant::now(), b"answer", &Counts::default());
        assert!(line.may_talk(u32::MAX));
    }
}
