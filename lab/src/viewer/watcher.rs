//! Watches one track's packets as a viewer does: frames in order, freezes, requests for key frames.
//!
//! Freezes are counted as in Chromium, by the time from the last frame to the next one. A freeze takes longer than
//! three times the mean of the last thirty such times, and over 150 ms more than that mean.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::part::Part;

/// Time after which a missing packet is given up: the viewer then waits for the next key frame.
const TIMEOUT: Duration = Duration::from_millis(400);
/// Minimum time between two requests for a key frame.
const ASK: Duration = Duration::from_millis(300);
/// Number of times between frames whose mean is taken.
const MEAN_OF: usize = 30;
/// Maximum number of packets that wait for an earlier one. Beyond it the viewer waits for the next key frame instead.
const HELD_MAX: usize = 4096;

#[derive(Debug)]
struct Arrived {
    at: Instant,
    part: Part,
}

/// Shows the frames of one track, and counts freezes.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    held: BTreeMap<u64, Arrived>,
    next: Option<u64>,
    /// When the missing packet was first missed.
    missing: Option<Instant>,
    /// Whether nothing can be shown before the next key frame.
    broken: bool,
    asked: Option<Instant>,
    shown: Option<Instant>,
    gaps: VecDeque<Duration>,
    /// Number of frames that were shown.
    pub frames: u64,
    /// Number of freezes.
    pub freezes: u64,
    /// Length of all freezes together.
    pub frozen: Duration,
    /// The longest time from one frame to the next, once they came steadily.
    pub longest: Duration,
    /// Number of requests for key frames.
    pub asks: u64,
}

impl Watcher {
    /// Notes that nothing more comes for now: time without frames from here on is no freeze.
    pub(crate) fn pause(&mut self) {
        self.shown = None;
    }

    /// Takes a packet, by its extended sequence number. Padding is no part of a frame.
    pub(crate) fn packet(&mut self, now: Instant, seq: u64, part: Option<Part>) {
        let Some(part) = part else {
            // A probe's padding has numbers of its own stream. A packet without a frame's bytes is one of ours.
            if self.next.is_some_and(|next| seq >= next) {
                let part = Part { begins: false, ends: false, key: false };
                self.held.insert(seq, Arrived { at: now, part });
                self.consume(now);
            }
            return;
        };
        if self.next.is_none() && part.begins && part.key {
            self.next = Some(seq);
            self.held = self.held.split_off(&seq);
            (self.broken, self.missing) = (false, None);
        }
        if self.next.is_none_or(|next| seq >= next) {
            self.held.insert(seq, Arrived { at: now, part });
        }
        if self.held.len() > HELD_MAX {
            self.held.pop_first();
            self.broken = true;
        }
        self.consume(now);
    }

    /// Whether a key frame should be asked for now.
    pub(crate) fn wants_key(&mut self, now: Instant) -> bool {
        let since = self.missing;
        if !self.broken && since.is_some_and(|since| now.saturating_duration_since(since) > TIMEOUT)
        {
            self.broken = true;
        }
        let may = self.asked.is_none_or(|asked| now.saturating_duration_since(asked) >= ASK);
        if self.broken && may {
            self.asked = Some(now);
            self.asks += 1;
            return true;
        }
        false
    }

    fn consume(&mut self, now: Instant) {
        if self.broken {
            // The frames behind a key frame do not need what is missing before it.
            let begins_key = |arrived: &Arrived| arrived.part.key && arrived.part.begins;
            let key = self.held.iter().rev().find(|(_, a)| begins_key(a)).map(|(&seq, _)| seq);
            if let Some(key) = key.filter(|&key| self.next.is_some_and(|next| key > next)) {
                self.held = self.held.split_off(&key);
                self.next = Some(key);
                (self.broken, self.missing) = (false, None);
            }
        }
        while let Some(next) = self.next {
            let Some(packet) = self.held.remove(&next) else { break };
            self.next = Some(next + 1);
            self.missing = None;
            if packet.part.ends {
                self.show(now.max(packet.at));
            }
        }
        if self.held.is_empty() {
            // The missing packet may have come after all.
            (self.broken, self.missing) = (false, None);
        } else {
            self.missing.get_or_insert(now);
        }
    }

    fn show(&mut self, now: Instant) {
        self.frames += 1;
        if let Some(last) = self.shown.replace(now) {
            let gap = now.saturating_duration_since(last);
            if self.gaps.len() == MEAN_OF {
                self.longest = self.longest.max(gap);
                let mean = self.gaps.iter().sum::<Duration>() / MEAN_OF as u32;
                if gap > (mean * 3).max(mean + Duration::from_millis(150)) {
                    self.freezes += 1;
                    self.frozen += gap;
                }
                self.gaps.pop_front();
            }
            self.gaps.push_back(gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A frame in one packet.
    fn frame(key: bool) -> Part {
        Part { begins: true, ends: true, key }
    }

    /// One packet a frame each 33 ms, without those for which `lost` says so.
    fn run(frames: u64, lost: impl Fn(u64) -> bool) -> Watcher {
        let start = Instant::now();
        let mut watcher = Watcher::default();
        for n in 0..frames {
            let now = start + MS(33) * n as u32;
            let key = n == 0 || n == 90;
            if !lost(n) {
                watcher.packet(now, n, Some(frame(key)));
            }
            watcher.wants_key(now);
        }
        watcher
    }

    #[test]
    fn a_steady_stream_does_not_freeze() {
        let watcher = run(100, |_| false);
        assert_eq!((watcher.frames, watcher.freezes, watcher.asks), (100, 0, 0));
    }

    #[test]
    fn what_never_comes_freezes_until_the_next_key_frame() {
        let watcher = run(100, |n| n == 60);
        assert_eq!((watcher.frames, watcher.freezes), (70, 1));
        assert_eq!(watcher.frozen, MS(33) * 31);
        assert_eq!(watcher.longest, watcher.frozen);
        assert!(watcher.asks > 0);
    }

    #[test]
    fn whoever_comes_between_key_frames_asks_for_one() {
        let start = Instant::now();
        let mut watcher = Watcher::default();
        watcher.packet(start, 7, Some(frame(false)));
        assert!(!watcher.wants_key(start + TIMEOUT));
        assert!(watcher.wants_key(start + TIMEOUT + MS(1)));
        watcher.packet(start + MS(500), 9, Some(frame(true)));
        assert_eq!(watcher.frames, 1);
        assert!(!watcher.wants_key(start + MS(2000)), "it has all that it needs");
    }

    #[test]
    fn what_waits_for_a_packet_that_never_comes_is_bounded() {
        let start = Instant::now();
        let mut watcher = run(10, |_| false);
        for n in 0..3 * HELD_MAX as u64 {
            watcher.packet(start, 100 + n, Some(frame(false)));
        }
        assert!(watcher.held.len() <= HELD_MAX);
        watcher.packet(start, 1 << 20, Some(frame(true)));
        assert_eq!(watcher.frames, 11, "a key frame needs none of them");
    }

    #[test]
    fn a_repair_in_time_is_no_freeze() {
        let start = Instant::now();
        let mut watcher = run(58, |n| n == 55);
        watcher.packet(start + MS(33 * 58), 55, Some(frame(false)));
        assert_eq!((watcher.frames, watcher.freezes, watcher.asks), (58, 0, 0));
    }
}
