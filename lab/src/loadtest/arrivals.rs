//! The video of one track as a subscriber receives it: whole frames, lost packets, and when each frame was complete.

use std::collections::VecDeque;
use std::time::Instant;

/// Number of frames that are remembered: two seconds at 60 a second, longer than any budget.
const FRAMES: usize = 120;

#[derive(Debug)]
struct Frame {
    timestamp: u32,
    first: Option<u64>,
    last: Option<u64>,
    packets: u64,
    complete: Option<Instant>,
}

/// The packets of one track.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    frames: VecDeque<Frame>,
    numbers: Option<(u64, u64)>,
    packets: u64,
    /// Number of payload bytes.
    pub bytes: u64,
    /// Number of frames of which all packets came.
    pub complete: u64,
}

/// The fields of a packet that are counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet {
    /// Extended sequence number.
    pub seq: u64,
    /// RTP timestamp of the frame.
    pub timestamp: u32,
    /// Whether the packet is the first of its frame.
    pub begins: bool,
    /// Whether the packet is the last of its frame.
    pub ends: bool,
    /// Number of payload bytes; padding has none.
    pub bytes: usize,
}

impl Arrivals {
    /// Takes a packet that had not come before (the WebRTC stack drops repeats).
    pub(super) fn push(&mut self, now: Instant, packet: Packet) {
        let (least, most) = self.numbers.unwrap_or((packet.seq, packet.seq));
        self.numbers = Some((least.min(packet.seq), most.max(packet.seq)));
        self.packets += 1;
        self.bytes += packet.bytes as u64;
        if packet.bytes == 0 {
            return;
        }
        let at = self.frames.iter().rposition(|f| f.timestamp == packet.timestamp);
        let at = at.unwrap_or_else(|| {
            if self.frames.len() == FRAMES {
                self.frames.pop_front();
            }
            let timestamp = packet.timestamp;
            let frame = Frame { timestamp, first: None, last: None, packets: 0, complete: None };
            self.frames.push_back(frame);
            self.frames.len() - 1
        });
        let frame = &mut self.frames[at];
        frame.packets += 1;
        frame.first = frame.first.or(packet.begins.then_some(packet.seq));
        frame.last = frame.last.or(packet.ends.then_some(packet.seq));
        let whole = frame.first.zip(frame.last).is_some_and(|(first, last)| {
            last.checked_sub(first).is_some_and(|n| n + 1 == frame.packets)
        });
        if whole && frame.complete.is_none() {
            frame.complete = Some(now);
            self.complete += 1;
        }
    }

    /// Number of packets whose sequence numbers were skipped and that never came.
    pub(super) fn lost(&self) -> u64 {
        self.expected().saturating_sub(self.packets)
    }

    /// Number of packets that should have come.
    pub(super) fn expected(&self) -> u64 {
        self.numbers.map_or(0, |(least, most)| most - least + 1)
    }

    /// When the frame with this timestamp was complete; `None` where it was not, or is no longer remembered.
    pub(super) fn completed(&self, timestamp: u32) -> Option<Instant> {
        self.frames.iter().rev().find(|f| f.timestamp == timestamp)?.complete
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn packet(seq: u64, timestamp: u32, begins: bool, ends: bool) -> Packet {
        Packet { seq, timestamp, begins, ends, bytes: 100 }
    }

    #[test]
    fn a_frame_is_complete_with_its_last_packet_in_any_order() {
        let now = Instant::now();
        let mut arrivals = Arrivals::default();
        let ms = |ms| now + Duration::from_millis(ms);
        arrivals.push(ms(0), packet(12, 5, false, true));
        arrivals.push(ms(1), packet(10, 5, true, false));
        assert_eq!((arrivals.complete, arrivals.lost()), (0, 1));
        arrivals.push(ms(2), packet(11, 5, false, false));
        assert_eq!((arrivals.complete, arrivals.lost()), (1, 0));
        assert_eq!(arrivals.completed(5), Some(ms(2)));
        assert_eq!(arrivals.completed(6), None);
    }

    #[test]
    fn padding_is_no_loss_and_no_frame() {
        let now = Instant::now();
        let mut arrivals = Arrivals::default();
        arrivals.push(now, packet(1, 5, true, true));
        arrivals.push(now, Packet { bytes: 0, ..packet(2, 5, false, false) });
        arrivals.push(now, packet(3, 8, true, true));
        assert_eq!((arrivals.complete, arrivals.lost(), arrivals.expected()), (2, 0, 3));
    }

    #[test]
    fn memory_of_frames_is_bounded() {
        let now = Instant::now();
        let mut arrivals = Arrivals::default();
        for n in 0..1000u32 {
            arrivals.push(now, packet(n.into(), n, true, true));
        }
        assert_eq!(arrivals.frames.len(), FRAMES);
        assert_eq!(arrivals.complete, 1000);
    }
}
