//! Audio packets, and one subscriber's continuous stream of them, whatever track its m-line carries.

use std::time::Instant;

use str0m::media::Pt;

use super::rewriter::PacketIn;
use crate::api::TrackId;

/// RTP clock rate of Opus, in ticks per millisecond.
const CLOCK_PER_MS: u64 = 48;

/// Header fields of an audio packet that forwarding needs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AudioInfo {
    /// Audio level in dBov (RFC 6464).
    pub(crate) level: Option<i8>,
    /// Voice activity (RFC 6464).
    pub(crate) voice: Option<bool>,
    /// Payload type of the packet's blocks, if the packet is Opus with redundancy (RED).
    pub(crate) blocks: Option<Pt>,
}

#[derive(Debug)]
struct Span {
    track: TrackId,
    first_seq: u64,
    seq: i64,
    timestamp: u32,
}

/// Gives packets their numbers in the subscriber's timeline.
#[derive(Debug)]
pub(crate) struct AudioTimeline {
    span: Option<Span>,
    next_seq: u64,
    last_timestamp: u32,
    last_arrival: Option<Instant>,
}

impl AudioTimeline {
    /// An audio stream that has not begun; its timeline begins at `timestamp`.
    pub(crate) fn new(timestamp: u32) -> AudioTimeline {
        AudioTimeline { span: None, next_seq: 1000, last_timestamp: timestamp, last_arrival: None }
    }

    /// Marks that the next packet does not continue the stream.
    pub(crate) fn interrupt(&mut self) {
        self.span = None;
    }

    /// New sequence number and timestamp of a packet; `None` for a packet from before the stream's begin.
    pub(crate) fn push(&mut self, track: TrackId, packet: PacketIn) -> Option<(u64, u32)> {
        if self.span.as_ref().is_none_or(|s| s.track != track) {
            let elapsed = self.last_arrival.map_or(0, |last| {
                packet.arrival.saturating_duration_since(last).as_micros() as u64 * CLOCK_PER_MS
                    / 1000
            });
            let timestamp = self.last_timestamp.wrapping_add(elapsed as u32);
            self.span = Some(Span {
                track,
                first_seq: packet.seq,
                seq: self.next_seq as i64 - packet.seq as i64,
                timestamp: timestamp.wrapping_sub(packet.timestamp),
            });
        }
        let span = self.span.as_ref().filter(|s| packet.seq >= s.first_seq)?;
        let seq = packet.seq.checked_add_signed(span.seq)?;
        let timestamp = packet.timestamp.wrapping_add(span.timestamp);
        if seq >= self.next_seq {
            self.next_seq = seq + 1;
            self.last_timestamp = timestamp;
            self.last_arrival = Some(packet.arrival);
        }
        Some((seq, timestamp))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn another_track_on_the_same_line_continues_the_stream() {
        let now = Instant::now();
        let packet = |seq, timestamp, ms| PacketIn {
            seq,
            timestamp,
            arrival: now + Duration::from_millis(ms),
            marker: false,
            handover_delay: Duration::ZERO,
            codec: windlass_types::VideoCodec::Vp9,
            frame: None,
            stale: false,
        };
        let mut line = AudioTimeline::new(0);
        assert_eq!(line.push(TrackId(1), packet(70_000, 5, 0)), Some((1000, 0)));
        assert_eq!(line.push(TrackId(1), packet(70_001, 965, 20)), Some((1001, 960)));
        assert_eq!(line.push(TrackId(1), packet(69_999, 0, 20)), None);
        assert_eq!(line.push(TrackId(2), packet(3, 99, 40)), Some((1002, 1920)));
        line.interrupt();
        assert_eq!(
            line.push(TrackId(2), packet(9, 99 + 96_000, 2040)),
            Some((1003, 1920 + 96_000))
        );
    }
}
