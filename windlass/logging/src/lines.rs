//! Lines on their way to a stream that somebody else may not read: standard error, standard output.
//!
//! If the reader stops, a write waits for ever, and with it the writer. So a thread of its own writes, from a queue of
//! at most [`MAX_QUEUED_BYTES`] bytes. Lines without room are dropped and counted. When the stream is read again, one
//! line says how many were dropped.

use std::io::{self, Write};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum bytes in the queue, about a thousand lines or more. The line writer may hold the same number of bytes.
const MAX_QUEUED_BYTES: usize = 256 << 10;

/// Queue of lines to a stream. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Lines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Signals that text came, or was written.
    changed: Condvar,
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Queue {
    text: Vec<u8>,
    /// Whether the thread is writing text that it took from the queue.
    writing: bool,
}

impl Lines {
    /// Starts the thread that writes to `stream`. `on_lost` gets the number of dropped lines, once some can be written
    /// again.
    pub(super) fn start(
        name: &str,
        stream: impl Write + Send + 'static,
        on_lost: impl Fn(u64) + Send + 'static,
    ) -> io::Result<Lines> {
        let lines = Lines(Arc::default());
        let own = lines.clone();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || own.write_all(stream, on_lost))?;
        Ok(lines)
    }

    /// Queues text that ends with a line break.
    pub(super) fn push(&self, text: &[u8]) {
        let mut queue = self.queue();
        if queue.text.len() + text.len() > MAX_QUEUED_BYTES {
            self.lose(text);
            return;
        }
        queue.text.extend_from_slice(text);
        self.0.changed.notify_all();
    }

    /// Number of lines that were dropped, or could not be written.
    pub(super) fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Waits until everything is written, for at most `patience`.
    pub(super) fn flushed(&self, patience: Duration) {
        let until = Instant::now() + patience;
        let mut queue = self.queue();
        while queue.writing || !queue.text.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.0.changed.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self, text: &[u8]) {
        let lines = text.split_inclusive(|&byte| byte == b'\n').count();
        self.0.lost.fetch_add(lines as u64, Ordering::Relaxed);
    }

    fn write_all(&self, mut stream: impl Write, on_lost: impl Fn(u64)) {
        let mut known = 0;
        loop {
            let mut queue = self.queue();
            while queue.text.is_empty() {
                queue = self.0.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            queue.writing = true;
            let text = mem::take(&mut queue.text);
            drop(queue);
            let written = stream.write_all(&text).and_then(|()| stream.flush());
            if written.is_err() {
                self.lose(&text);
            }
            self.queue().writing = false;
            self.0.changed.notify_all();
            let lost = self.lost();
            if written.is_ok() && lost > known {
                on_lost(lost - known);
                known = lost;
            }
        }
    }
}

/// Takes one log line per write, as `tracing` writes them.
impl Write for Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.push(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A stream that writes what the test lets it.
    struct Gate(mpsc::Receiver<()>, mpsc::Sender<Vec<u8>>);

    impl Write for Gate {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            let _ = self.1.send(text.to_vec());
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (Lines, mpsc::Sender<()>, mpsc::Receiver<Vec<u8>>, mpsc::Receiver<u64>) {
        let ((open, gate), (out, written)) = (mpsc::channel(), mpsc::channel());
        let (sender, lost) = mpsc::channel();
        let on_lost = move |lost| {
            let _ = sender.send(lost);
        };
        (Lines::start("gated", Gate(gate, out), on_lost).unwrap(), open, written, lost)
    }

    #[test]
    fn a_stream_that_nobody_reads_holds_up_nobody_and_what_it_lost_is_told_once() {
        let (lines, open, written, reports) = gated();
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        let begun = Instant::now();
        // One batch is being written, one waits, and the rest is lost.
        for _ in 0..5 * (MAX_QUEUED_BYTES / line.len()) {
            lines.push(&line);
        }
        assert!(begun.elapsed() < Duration::from_secs(5));
        let lost = lines.lost();
        assert!(lost >= 3 * (MAX_QUEUED_BYTES / line.len()) as u64, "{lost}");
        lines.flushed(Duration::from_millis(50));
        for _ in 0..2 {
            open.send(()).unwrap();
        }
        lines.flushed(Duration::from_secs(5));
        assert!(written.try_iter().flatten().count() >= MAX_QUEUED_BYTES - line.len());
        assert_eq!(reports.recv().unwrap(), lost);
        assert!(reports.try_recv().is_err());
    }

    #[test]
    fn what_is_queued_is_written_in_order_before_it_counts_as_flushed() {
        let (lines, open, written, _) = gated();
        for _ in 0..3 {
            open.send(()).unwrap();
        }
        let text: Vec<u8> = (0..100).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            lines.push(line);
        }
        // As many writes as there are batches, which may be one.
        for _ in 0..100 {
            open.send(()).unwrap();
        }
        lines.flushed(Duration::from_secs(5));
        assert_eq!(written.try_iter().flatten().collect::<Vec<u8>>(), text);
        assert_eq!(lines.lost(), 0);
    }

    #[test]
    fn what_a_closed_stream_refuses_is_counted() {
        let (lines, open, ..) = gated();
        drop(open);
        lines.push(b"one\ntwo\n");
        lines.flushed(Duration::from_secs(5));
        assert_eq!(lines.lost(), 2);
    }
}
