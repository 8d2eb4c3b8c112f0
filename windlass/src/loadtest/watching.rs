//! What a subscriber has of one track: its video, and the anchors for it.

use std::collections::VecDeque;
use std::time::Instant;

use windlass_hybrid::anchor::AnchorOrigin;
use windlass_hybrid::anchor::message::Reassembler;
use windlass_media::Rung;

use super::arrivals::{Arrivals, Packet};
use super::tally::Totals;

/// Frames whose anchors are remembered, so that parts of one count once.
const RECENT: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub struct Watching {
    /// Its packets.
    pub video: Arrivals,
    rung: Option<Rung>,
    /// The server makes no anchors for it.
    refused: bool,
    anchors: Reassembler,
    recent: VecDeque<(u32, AnchorOrigin)>,
    /// What the totals have of it already.
    counted: Counted,
}

#[derive(Debug, Default)]
struct Counted {
    expected: u64,
    lost: u64,
    bytes: u64,
    frames: u64,
    broken: u64,
}

impl Watching {
    /// Whether anchors belong to what the server says it gives now, and are made.
    pub fn enhanced(&self) -> bool {
        self.rung.is_some_and(Rung::enhanced) && !self.refused
    }

    /// Anchors that came whole, each part of one by itself.
    pub fn anchors(&self) -> u64 {
        self.anchors.stats().completed
    }

    /// The server says what it gives from here on.
    pub fn given(&mut self, rung: Rung) {
        self.rung = Some(rung);
    }

    /// The server says whether it makes no anchors of it.
    pub fn refuse(&mut self, refused: bool) {
        self.refused = refused;
    }

    /// Takes a packet of video.
    pub fn packet(&mut self, now: Instant, packet: Packet, totals: &mut Totals) {
        totals.packets += u64::from(packet.bytes > 0);
        let before = self.video.complete;
        self.video.push(now, packet);
        if self.enhanced() {
            totals.frames_enhanced += self.video.complete - before;
        }
        self.count(totals);
    }

    /// Takes a message of the anchors' channel that is for this track.
    pub fn message(&mut self, now: Instant, message: &[u8], budget_ms: f64, totals: &mut Totals) {
        let complete = self.anchors.push(message);
        self.count(totals);
        // What is malformed is among those that the reassembler counts.
        let Ok(Some(anchor)) = complete else { return };
        let header = anchor.header;
        let frame = (header.rtp_timestamp, header.source);
        totals.anchor_bytes += anchor.payload.len() as u64;
        if !self.recent.contains(&frame) {
            if self.recent.len() == RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(frame);
            totals.anchors += 1;
            totals.anchors_captured += u64::from(header.source == AnchorOrigin::Captured);
        }
        let age = f64::from(header.age_ms);
        let lag = self.video.completed(header.rtp_timestamp);
        let lag = lag.map(|at| now.saturating_duration_since(at).as_secs_f64() * 1000.0);
        totals.age.record(age);
        match lag {
            Some(lag) => totals.lag.record(lag),
            None => totals.anchors_alone += 1,
        }
        totals.anchors_late += u64::from(lag.unwrap_or(0.0).max(age) > budget_ms);
    }

    /// Brings the totals up to date.
    fn count(&mut self, totals: &mut Totals) {
        let stats = self.anchors.stats();
        let now = Counted {
            expected: self.video.expected(),
            lost: self.video.lost(),
            bytes: self.video.bytes,
            frames: self.video.complete,
            broken: stats.dropped + stats.malformed,
        };
        let before = std::mem::replace(&mut self.counted, now);
        let now = &self.counted;
        totals.expected += now.expected - before.expected;
        // A late packet takes its loss back.
        totals.lost = (totals.lost + now.lost).saturating_sub(before.lost);
        totals.bytes += now.bytes - before.bytes;
        totals.frames += now.frames - before.frames;
        totals.anchors_broken += now.broken - before.broken;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_hybrid::anchor::message::{AnchorHeader, encode_chunks};

    use super::*;

    fn packet(seq: u64, timestamp: u32) -> Packet {
        Packet { seq, timestamp, begins: true, ends: true, bytes: 100 }
    }

    fn anchor(timestamp: u32, part: u8, age_ms: u16) -> Vec<u8> {
        let header = AnchorHeader::new(1, AnchorOrigin::Enhanced, timestamp, (640, 360));
        let header = AnchorHeader { tiled: true, part, age_ms, ..header };
        encode_chunks(&header, &[7; 100], 1000).unwrap().remove(0)
    }

    #[test]
    fn an_anchor_is_as_late_as_it_comes_after_its_frame() {
        let now = Instant::now();
        let (mut watching, mut totals) = (Watching::default(), Totals::default());
        watching.packet(now, packet(1, 900), &mut totals);
        let at = |ms| now + Duration::from_millis(ms);
        watching.message(at(120), &anchor(900, 0, 80), 150.0, &mut totals);
        assert_eq!((totals.anchors, totals.anchors_late), (1, 0));
        assert_eq!(totals.lag.percentile(50.0), Some(120.5));
        watching.message(at(160), &anchor(900, 1, 80), 150.0, &mut totals);
        assert_eq!((totals.anchors, totals.anchors_late), (1, 1), "a part of the same");
        watching.message(at(170), &anchor(4711, 0, 151), 150.0, &mut totals);
        assert_eq!((totals.anchors_alone, totals.anchors_late), (1, 2));
    }

    #[test]
    fn frames_are_counted_as_enhanced_while_the_rung_is() {
        let now = Instant::now();
        let (mut watching, mut totals) = (Watching::default(), Totals::default());
        watching.packet(now, packet(1, 1), &mut totals);
        watching.given(Rung::QPlus);
        watching.packet(now, packet(2, 2), &mut totals);
        watching.given(Rung::Q);
        watching.packet(now, packet(4, 4), &mut totals);
        assert_eq!((totals.frames, totals.frames_enhanced), (3, 1));
        assert_eq!((totals.lost, totals.expected), (1, 4));
        watching.packet(now, packet(3, 3), &mut totals);
        assert_eq!(totals.lost, 0);
        watching.given(Rung::QPlus);
        watching.refuse(true);
        watching.packet(now, packet(5, 5), &mut totals);
        assert_eq!((totals.frames, totals.frames_enhanced), (5, 1), "no anchors are made of it");
    }

    #[test]
    fn what_is_malformed_is_counted_and_nothing_else() {
        let (mut watching, mut totals) = (Watching::default(), Totals::default());
        watching.message(Instant::now(), &[9; 40], 200.0, &mut totals);
        assert_eq!((totals.anchors, totals.anchors_broken), (0, 1));
    }
}
