//! What waits to be written to one connection: little, and nothing that is late.
//!
//! A connection that carries less than it is given must lose packets, as a full link does: that is what bandwidth estimates
//! rest on, and a picture of seconds ago is of no use to anybody. So media that has waited for [`MEDIA_AGE`] is dropped, the
//! oldest first, and when the queue is full what comes anew. (The kernel's own queue is kept short by the socket's options.)

use std::collections::VecDeque;
use std::io::IoSlice;
use std::time::{Duration, Instant};

use super::frame::framed;

/// Media that has waited for so long is dropped.
const MEDIA_AGE: Duration = Duration::from_millis(400);
/// Bytes of media that wait.
const MEDIA_BYTES: usize = 256 * 1024;
/// Bytes of anything.
const BYTES: usize = MEDIA_BYTES + 64 * 1024;
/// Frames that are written at a time.
pub(super) const BATCH: usize = 32;

/// What became of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// It waits.
    Taken,
    /// There was no room.
    Full,
}

struct Frame {
    bytes: Vec<u8>,
    since: Instant,
    is_media: bool,
}

/// See the module.
#[derive(Default)]
pub(super) struct Queue {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// Of the first frame, what was written already.
    written: usize,
    /// Media dropped because it was late.
    pub(super) late: u64,
}

impl Queue {
    /// Adds a datagram.
    pub(super) fn push(&mut self, now: Instant, datagram: &[u8]) -> Pushed {
        self.drop_late(now);
        let is_media = datagram.first().is_some_and(|first| (128..192).contains(first));
        let most = if is_media { MEDIA_BYTES } else { BYTES };
        let Some(bytes) = framed(datagram).filter(|f| self.bytes + f.len() <= most) else {
            return Pushed::Full;
        };
        self.bytes += bytes.len();
        self.frames.push_back(Frame { bytes, since: now, is_media });
        Pushed::Taken
    }

    /// Drops media that has waited too long. A frame that has begun must end, or nothing after it could be read.
    fn drop_late(&mut self, now: Instant) {
        let begun = usize::from(self.written > 0);
        let late = |f: &Frame| f.is_media && now.saturating_duration_since(f.since) >= MEDIA_AGE;
        // They are in order of their age, but for the first.
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

    /// What is to be written next; empty where nothing waits.
    pub(super) fn slices(&mut self, now: Instant) -> Vec<IoSlice<'_>> {
        self.drop_late(now);
        let frames = self.frames.iter().take(BATCH).enumerate();
        frames
            .map(|(n, f)| IoSlice::new(&f.bytes[if n == 0 { self.written } else { 0 }..]))
            .collect()
    }

    /// So many bytes of these were written. How many frames ended with them.
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

    /// Whether nothing waits.
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
        let later = now + MEDIA_AGE;
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
        assert_eq!(fill(&mut queue, MEDIA), MEDIA_BYTES / 1202);
        assert_eq!(queue.push(now, &[0; 100]), Pushed::Taken);
        assert!((40..60).contains(&fill(&mut queue, 0)));
        assert!(queue.bytes <= BYTES);
    }
}
