//! Byte rate of a WebSocket: a token bucket of bytes.
//!
//! The session limits messages. But the frames of an unfinished message cost time too, above all empty ones. No frame
//! is shorter than six bytes (RFC 6455 §5.2), so a limit of bytes bounds them: [`Paced`] reads the connection no faster
//! than its [`Intake`] allows. A client that sends more must wait; a client that does so for [`FLOOD_AFTER`] floods
//! ([`Intake::floods`]), and its socket is closed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// The bytes that a client may send.
#[derive(Debug, Clone, Copy)]
struct Rate {
    /// Bytes that may come at once.
    burst: f64,
    /// Bytes a second.
    per_second: f64,
}

/// Rate of a participant: a few of the largest messages at once, then enough for a subscriber of a hundred tracks, and
/// for the most data messages, in Base64.
const PARTICIPANT: Rate = Rate { burst: 512.0 * 1024.0, per_second: 128.0 * 1024.0 };
/// Rate of a client that is in no room: `join` is its largest message. Anybody may open a socket, so an unfinished
/// message must not take much memory.
const STRANGER: Rate = Rate { burst: 64.0 * 1024.0, per_second: 8.0 * 1024.0 };
/// Minimum pause of a client above the rate, so that few large reads replace many small ones.
const PAUSE: Duration = Duration::from_millis(50);
/// Time above the rate after which a client floods.
const FLOOD_AFTER: Duration = Duration::from_secs(5);

/// Byte budget of a connection. It is unlimited until the connection is a WebSocket.
#[derive(Debug, Default)]
pub(crate) struct Intake(Mutex<Option<Budget>>);

#[derive(Debug)]
struct Budget {
    rate: Rate,
    /// Number of bytes that may come now; negative where too many have come.
    bytes: f64,
    counted: Instant,
    /// Since when the client is above the rate, without a full budget in between.
    over: Option<Instant>,
}

impl Intake {
    /// Begins the budget: the connection is a WebSocket from now on.
    pub(crate) fn begin(&self, now: Instant) {
        self.set(now, STRANGER);
    }

    /// Raises the budget: the client is in a room from now on.
    pub(crate) fn joined(&self, now: Instant) {
        self.set(now, PARTICIPANT);
    }

    fn set(&self, now: Instant, rate: Rate) {
        *self.0.lock() = Some(Budget { rate, bytes: rate.burst, counted: now, over: None });
    }

    /// Whether the client has been above the rate for [`FLOOD_AFTER`].
    pub(crate) fn floods(&self, now: Instant) -> bool {
        let mut budget = self.0.lock();
        let Some(budget) = budget.as_mut() else { return false };
        budget.earn(now);
        budget.over.is_some_and(|since| now.saturating_duration_since(since) >= FLOOD_AFTER)
    }

    /// Counts bytes that were read.
    fn took(&self, bytes: usize) {
        if let Some(budget) = self.0.lock().as_mut() {
            budget.bytes -= bytes as f64;
        }
    }

    /// Time until the next read.
    fn waits(&self, now: Instant) -> Option<Duration> {
        let mut budget = self.0.lock();
        let budget = budget.as_mut()?;
        budget.earn(now);
        if budget.bytes > 0.0 {
            return None;
        }
        budget.over.get_or_insert(now);
        Some(Duration::from_secs_f64(-budget.bytes / budget.rate.per_second).max(PAUSE))
    }
}

impl Budget {
    fn earn(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.counted).as_secs_f64();
        self.counted = self.counted.max(now);
        self.bytes = (self.bytes + passed * self.rate.per_second).min(self.rate.burst);
        if self.bytes >= self.rate.burst {
            self.over = None;
        }
    }
}

/// A connection that is read no faster than its [`Intake`] allows.
pub(crate) struct Paced<S> {
    stream: S,
    intake: Arc<Intake>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<S> Paced<S> {
    /// Limits a connection by its budget.
    pub(crate) fn new(stream: S, intake: Arc<Intake>) -> Self {
        Paced { stream, intake, pause: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        if let Some(wait) = self.intake.waits(Instant::now()) {
            let pause = self.pause.insert(Box::pin(tokio::time::sleep(wait)));
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.intake.took(buf.filled().len() - before);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURST: f64 = PARTICIPANT.burst;
    const PER_SECOND: f64 = PARTICIPANT.per_second;

    #[test]
    fn what_is_no_socket_yet_is_not_bounded() {
        let (intake, now) = (Intake::default(), Instant::now());
        intake.took(usize::MAX);
        assert_eq!(intake.waits(now), None);
        assert!(!intake.floods(now));
    }

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let (intake, now) = (Intake::default(), Instant::now());
        intake.joined(now);
        intake.took(BURST as usize - 1);
        assert_eq!(intake.waits(now), None);
        intake.took(1 + PER_SECOND as usize);
        assert_eq!(intake.waits(now), Some(Duration::from_secs(1)));
        assert_eq!(intake.waits(now + Duration::from_millis(999)), Some(PAUSE));
        assert_eq!(intake.waits(now + Duration::from_millis(1001)), None);
    }

    #[test]
    fn who_is_in_no_room_may_send_little() {
        let (intake, now) = (Intake::default(), Instant::now());
        intake.begin(now);
        intake.took(STRANGER.burst as usize + 1);
        assert!(intake.waits(now).is_some());
        intake.joined(now);
        intake.took(BURST as usize - 1);
        assert_eq!(intake.waits(now), None);
    }

    #[test]
    fn whoever_is_kept_waiting_for_long_floods_and_who_paused_does_not() {
        let (intake, start) = (Intake::default(), Instant::now());
        intake.joined(start);
        let second = |n: u64| start + Duration::from_secs(n);
        intake.took(BURST as usize);
        for n in 0..5 {
            assert!(intake.waits(second(n)).is_some(), "{n}");
            assert!(!intake.floods(second(n)), "{n}");
            intake.took(PER_SECOND as usize);
        }
        assert!(intake.floods(second(5)));
        // It has said nothing until all may come again.
        assert!(!intake.floods(second(5) + Duration::from_secs(9)));
    }

    #[tokio::test]
    async fn a_paced_connection_gives_everything_and_takes_its_time() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let bytes = BURST as usize + PER_SECOND as usize / 5;
        let (mut client, server) = tokio::io::duplex(bytes);
        let intake = Arc::new(Intake::default());
        let mut paced = Paced::new(server, intake.clone());
        let begun = Instant::now();
        intake.joined(begun);
        client.write_all(&vec![7; bytes]).await.unwrap();
        drop(client);
        let mut all = Vec::new();
        paced.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, vec![7; bytes]);
        assert!(begun.elapsed() >= PAUSE);
    }
}
