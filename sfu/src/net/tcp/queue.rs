//! The send queue of one TCP connection. It is short, and drops late media.
//!
//! A connection that is slower than its media must drop packets, as a full link does: bandwidth estimation relies on
//! that, and old media is useless. So media older than [`MAX_MEDIA_AGE`] is dropped, and new datagrams are dropped
//! while the queue is full. (Socket options keep the kernel's queue short.)

use std::collections::VecDeque;
use std::io::IoSlice;
use std::time::{Duration, Instant};

use super::frame::framed;

/// Age at which waiting media is dropped.
const MAX_MEDIA_AGE: Duration = Duration::from_millis(400);
/// Bytes that may wait in the queue when a media datagram is added.
const MAX_MEDIA_BYTES: usize = 256 * 1024;
/// Bytes that may wait in the queue when another datagram (STUN, DTLS) is added.
const MAX_BYTES: usize = MAX_MEDIA_BYTES + 64 * 1024;
/// Maximum number of frames that are written with one call.
pub(super) const MAX_BATCH: usize = 32;

/// Result of [`Queue::push`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The datagram is queued.
    Taken,
    /// The queue is full: the datagram is dropped.
    Full,
}

struct Frame {
    bytes: Vec<u8>,
    since: Instant,
    is_media: bool,
}

/// The queue.
#[derive(Default)]
pub(super) struct Queue {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// Number of bytes of the first frame that were written already.
    written: usize,
    /// Number of late media frames that were dropped.
    pub(super) late: u64,
}

impl Queue {
    /// Adds a datagram.
    pub(super) fn push(&mut self, now: Instant, datagram: &[u8]) -> Pushed {
        self.drop_late(now);
        let is_media = datagram.first().is_some_and(|first| (128..192).contains(first));
        let max = if is_media { MAX_MEDIA_BYTES } else { MAX_BYTES };
        let Some(bytes) = framed(datagram).filter(|f| self.bytes + f.len() <= max) else {
            return Pushed::Full;
        };
        self.bytes += bytes.len();
        self.frames.push_back(Frame { bytes, since: now, is_media });
        Pushed::Taken
    }

    /// Drops late media, but no frame that is partly written: the client could not read the frames after it.
    fn drop_late(&mut self, now: Instant) {
        let begun = usize::from(self.written > 0);
        let late =
            |f: &Frame| f.is_media && now.saturating_duration_since(f.since) >= MAX_MEDIA_AGE;
        // Frames are in order of age.
        if !self.frames.iter().skip(begun).find(|f| f.is_media).is_some_and(late) {
            return;
        }
        let mut at = 0;
        self.frames.retain(|frame| {
            at += 1;
            let keep = at <= begun || !late(frame);
            if !keep {
                self.bytes -= frame.bytes.len();
                self.late += 1;
            }
            keep
        });
    }

    /// The next data to write; empty if none waits.
    pub(super) fn slices(&mut self, now: Instant) -> Vec<IoSlice<'_>> {
        self.drop_late(now);
        let frames = self.frames.iter().take(MAX_BATCH).enumerate();
        frames
            .map(|(n, f)| IoSlice::new(&f.bytes[if n == 0 { self.written } else { 0 }..]))
            .collect()
    }

    /// Removes bytes that were written; returns how many frames are complete.
    pub(super) fn advance(&mut self, mut bytes: usize) -> u64 {
        let mut ended = 0;
        while let Some(first) = self.frames.front() {
            let left = first.bytes.len() - self.written;
            if bytes < left {
                self.written += bytes;
                break;
            }
            bytes -= left;
            self.written = 0;
            self.bytes -= first.bytes.len();
            self.frames.pop_front();
            ended += 1;
        }
        ended
    }

    /// Whether the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEDIA: u8 = 0x80;

    /// Writes everything, so many bytes at a time; the first bytes of the frames and their lengths.
    fn written(queue: &mut Queue, now: Instant, at_once: usize) -> Vec<(u8, usize)> {
        let mut stream = Vec::new();
        loop {
            let slices = queue.slices(now);
            let Some(first) = slices.first() else { break };
            let n = first.len().min(at_once);
            stream.extend(&first[..n]);
            queue.advance(n);
        }
        let (mut frames, mut rest) = (Vec::new(), &stream[..]);
        while let Some((head, behind)) = rest.split_first_chunk::<2>() {
            let n = usize::from(u16::from_be_bytes(*head));
            frames.push((behind[0], n));
            rest = &behind[n..];
        }
        assert!(queue.is_empty() && queue.bytes == 0);
        frames
    }

    #[test]
    fn frames_are_written_in_order_however_little_is_taken_at_a_time() {
        for at_once in [1, 3, 100, 10_000] {
            let (mut queue, now) = (Queue::default(), Instant::now());
            for n in 0..40 {
                assert_eq!(queue.push(now, &vec![n; usize::from(n) + 1]), Pushed::Taken);
            }
            let expected: Vec<_> = (0..40u8).map(|n| (n, usize::from(n) + 1)).collect();
            assert_eq!(written(&mut queue, now, at_once), expected);
        }
    }

    #[test]
    fn media_that_has_waited_too_long_is_dropped_but_not_the_frame_that_has_begun() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for _ in 0..3 {
            queue.push(now, &[MEDIA; 100]);
        }
        queue.push(now, &[20; 30]);
        assert_eq!(queue.advance(10), 0);
        let later = now + MAX_MEDIA_AGE;
        queue.push(later, &[MEDIA; 50]);
        assert_eq!(queue.late, 2);
        assert_eq!(queue.slices(later)[0].len(), 92);
        assert_eq!(queue.advance(92), 1);
        assert_eq!(written(&mut queue, later, 7), [(20, 30), (MEDIA, 50)]);
    }

    #[test]
    fn a_full_queue_takes_no_more_media_and_still_some_of_the_rest() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let fill = |queue: &mut Queue, first| {
            (0..1000).take_while(|_| queue.push(now, &[first; 1200]) == Pushed::Taken).count()
        };
        assert_eq!(fill(&mut queue, MEDIA), MAX_MEDIA_BYTES / 1202);
        assert_eq!(queue.push(now, &[0; 100]), Pushed::Taken);
        assert!((40..60).contains(&fill(&mut queue, 0)));
        assert!(queue.bytes <= MAX_BYTES);
    }
}
