//! One track at a subscriber: its video, and the anchors for it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use windlass_types::AnchorSource;
use windlass_types::Rung;
use windlass_types::message::Reassembler;

use super::arrivals::{Arrivals, Packet};
use super::link::Arrival;
use super::tally::Totals;
use crate::viewer::{HEADERS, Watcher};

/// Number of frames whose anchors are remembered, so that the parts of one count once.
const RECENT: usize = 16;

/// One subscribed track: its video, anchors and rung.
#[derive(Debug, Default)]
pub(super) struct Watching {
    /// Packets of the track.
    pub video: Arrivals,
    pictures: Watcher,
    announced: Announced,
    anchors: Reassembler,
    recent: VecDeque<(u32, AnchorSource)>,
    /// The part of the counters that the totals contain already.
    counted: Counted,
}

/// What the server last announced of the track.
#[derive(Debug, Default, Clone, Copy)]
struct Announced {
    rung: Option<Rung>,
    /// Whether the server makes no anchors of the track.
    refused: bool,
    /// Whether the track is paused for lack of bandwidth.
    paused: bool,
}

#[derive(Debug, Default)]
struct Counted {
    expected: u64,
    lost: u64,
    bytes: u64,
    frames: u64,
    broken: u64,
    shown: u64,
    freezes: u64,
    frozen: Duration,
}

impl Announced {
    fn enhanced(self) -> bool {
        self.rung.is_some_and(Rung::enhanced) && !self.refused
    }

    /// Adds this subscription to the totals' counts of "now".
    fn add_to(self, totals: &mut Totals) {
        totals.subscriptions.enhanced += usize::from(self.enhanced());
        totals.subscriptions.paused += usize::from(self.paused);
        if let Some(rung) = self.rung {
            *totals.subscriptions.rungs.entry(rung).or_default() += 1;
        }
    }

    /// Takes this subscription out of the totals' counts of "now".
    fn take_from(self, totals: &mut Totals) {
        totals.subscriptions.enhanced -= usize::from(self.enhanced());
        totals.subscriptions.paused -= usize::from(self.paused);
        if let Some(of) = self.rung.and_then(|rung| totals.subscriptions.rungs.get_mut(&rung)) {
            *of -= 1;
        }
    }
}

impl Watching {
    /// Whether the announced rung has anchors, and they are made.
    pub(super) fn enhanced(&self) -> bool {
        self.announced.enhanced()
    }

    /// Number of anchors that came whole, each part counted by itself.
    pub(super) fn anchors(&self) -> u64 {
        self.anchors.stats().completed
    }

    /// Takes the rung that the server announces from here on.
    pub(super) fn announce(&mut self, rung: Rung, totals: &mut Totals) {
        totals.subscriptions.rung_changes +=
            u64::from(self.announced.rung.is_some_and(|before| before != rung));
        self.change(Announced { rung: Some(rung), ..self.announced }, totals);
    }

    /// Takes whether the server makes no anchors of the track.
    pub(super) fn refuse(&mut self, refused: bool, totals: &mut Totals) {
        self.change(Announced { refused, ..self.announced }, totals);
    }

    /// Takes whether the server sends nothing for now. Missing frames are then no freeze.
    pub(super) fn pause(&mut self, paused: bool, totals: &mut Totals) {
        self.pictures.pause();
        self.change(Announced { paused, ..self.announced }, totals);
    }

    /// Ends the subscription.
    pub(super) fn end(&mut self, totals: &mut Totals) {
        self.change(Announced::default(), totals);
    }

    /// Whether a key frame should be asked for, as a browser's decoder would.
    pub(super) fn wants_key(&mut self, now: Instant) -> bool {
        self.pictures.wants_key(now)
    }

    /// Takes a packet of video.
    pub(super) fn packet(&mut self, now: Instant, arrival: &Arrival, totals: &mut Totals) {
        let &Arrival { seq, timestamp, part, .. } = arrival;
        let bytes = arrival.payload.len();
        let (begins, ends) = part.map_or((false, false), |part| (part.begins, part.ends));
        let before = self.video.complete;
        self.video.push(now, Packet { seq, timestamp, begins, ends, bytes });
        self.pictures.packet(now, seq, part);
        if part.is_some() {
            totals.received.packets += 1;
            totals.received.media_bytes += bytes as u64 + HEADERS;
        }
        let whole = self.video.complete - before;
        if self.enhanced() {
            totals.received.frames_enhanced += whole;
        }
        if let Some(rung) = self.announced.rung {
            *totals.received.frames_by_rung.entry(rung).or_default() += whole;
        }
        self.count(totals);
    }

    /// Takes a message of the anchors' channel that is for this track.
    pub(super) fn message(
        &mut self,
        now: Instant,
        message: &[u8],
        budget_ms: f64,
        totals: &mut Totals,
    ) {
        totals.received.media_bytes += message.len() as u64;
        let complete = self.anchors.push(message);
        self.count(totals);
        // The reassembler counts malformed messages.
        let Ok(Some(anchor)) = complete else { return };
        let header = anchor.header;
        let frame = (header.rtp_timestamp, header.source);
        totals.anchors.bytes += anchor.payload.len() as u64;
        if !self.recent.contains(&frame) {
            if self.recent.len() == RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(frame);
            totals.anchors.whole += 1;
            totals.anchors.captured += u64::from(header.source == AnchorSource::Captured);
        }
        let age = f64::from(header.age_ms);
        let lag = self.video.completed(header.rtp_timestamp);
        let lag = lag.map(|at| now.saturating_duration_since(at).as_secs_f64() * 1000.0);
        totals.anchors.age.record(age);
        match lag {
            Some(lag) => totals.anchors.lag.record(lag),
            None => totals.anchors.alone += 1,
        }
        totals.anchors.late += u64::from(lag.unwrap_or(0.0).max(age) > budget_ms);
    }

    fn change(&mut self, announced: Announced, totals: &mut Totals) {
        std::mem::replace(&mut self.announced, announced).take_from(totals);
        announced.add_to(totals);
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
            shown: self.pictures.frames,
            freezes: self.pictures.freezes,
            frozen: self.pictures.frozen,
        };
        let before = std::mem::replace(&mut self.counted, now);
        let now = &self.counted;
        totals.received.expected += now.expected - before.expected;
        // A late packet takes its loss back.
        totals.received.lost = (totals.received.lost + now.lost).saturating_sub(before.lost);
        totals.received.bytes += now.bytes - before.bytes;
        totals.received.frames += now.frames - before.frames;
        totals.display.shown += now.shown - before.shown;
        totals.display.freezes += now.freezes - before.freezes;
        totals.display.frozen_ms += now.frozen.saturating_sub(before.frozen).as_secs_f64() * 1000.0;
        let longest = self.pictures.longest.as_secs_f64() * 1000.0;
        totals.display.gap_max_ms = totals.display.gap_max_ms.max(longest);
        totals.anchors.broken += now.broken - before.broken;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use windlass_types::message::{AnchorHeader, encode_chunks};

    use super::*;
    use crate::viewer::Part;

    /// A key frame in a packet.
    fn frame(seq: u64, timestamp: u32) -> Arrival {
        let part = Some(Part { begins: true, ends: true, key: true });
        let payload = Bytes::from_static(&[0x8c; 100]);
        Arrival { mid: String::new(), seq, timestamp, part, payload }
    }

    fn anchor(timestamp: u32, part: u8, age_ms: u16) -> Vec<u8> {
        let header = AnchorHeader::new(
            1,
            AnchorSource::Enhanced,
            timestamp,
            windlass_types::Size::new(640, 360),
        );
        let header = AnchorHeader { tiled: true, part, age_ms, ..header };
        encode_chunks(&header, &[7; 100], 1000).unwrap().remove(0)
    }

    #[test]
    fn an_anchor_is_as_late_as_it_comes_after_its_frame() {
        let now = Instant::now();
        let (mut watching, mut totals) = (Watching::default(), Totals::default());
        watching.packet(now, &frame(1, 900), &mut totals);
        let at = |ms| now + Duration::from_millis(ms);
        watching.message(at(120), &anchor(900, 0, 80), 150.0, &mut totals);
        assert_eq!((totals.anchors.whole, totals.anchors.late), (1, 0));
        assert_eq!(totals.anchors.lag.percentile(50.0), Some(120.0));
        watching.message(at(160), &anchor(900, 1, 80), 150.0, &mut totals);
        assert_eq!((totals.anchors.whole, totals.anchors.late), (1, 1), "a part of the same");
        watching.message(at(170), &anchor(4711, 0, 151), 150.0, &mut totals);
        assert_eq!((totals.anchors.alone, totals.anchors.late), (1, 2));
    }

    #[test]
    fn frames_are_counted_as_enhanced_while_the_rung_is() {
        let now = Instant::now();
        let (mut watching, mut totals) = (Watching::default(), Totals::default());
        watching.packet(now, &frame(1, 1), &mut totals);
        watching.announce(Rung::QPlus, &mut totals);
        watching.packet(now, &frame(2, 2), &mut totals);
        watching.announce(Rung::Q, &mut totals);
        watching.packet(now, &frame(4, 4), &mut totals);
        assert_eq!((totals.received.frames, totals.received.frames_enhanced), (3, 1));
        assert_eq!((totals.received.lost, totals.received.expected), (1, 4));
        watching.packet(now, &frame(3, 3), &mut totals);
        assert_eq!(totals.received.lost, 0);
        watching.announce(Rung::QPlus, &mut totals);
        watching.refuse(true, &mut totals);
        watching.packet(now, &frame(5, 5), &mut totals);
        assert_eq!(
            (totals.received.frames, totals.received.frames_enhanced),
            (5, 1),
            "no anchors are made of it"
        );
    }

    #[test]
    fn totals_say_what_is_given_now_and_forget_it_in_the_end() {
        let (mut watching, mut totals) = (Watching::default(), Totals::default());
        watching.announce(Rung::HPlus, &mut totals);
        watching.announce(Rung::HPlus, &mut totals);
        watching.announce(Rung::QPlus, &mut totals);
        watching.pause(true, &mut totals);
        assert_eq!(
            (
                totals.subscriptions.enhanced,
                totals.subscriptions.paused,
                totals.subscriptions.rung_changes
            ),
            (1, 1, 1)
        );
        assert_eq!(
            (totals.subscriptions.rungs[&Rung::QPlus], totals.subscriptions.rungs[&Rung::HPlus]),
            (1, 0)
        );
        watching.end(&mut totals);
        assert_eq!(
            (
                totals.subscriptions.enhanced,
                totals.subscriptions.paused,
                totals.subscriptions.rungs[&Rung::QPlus]
            ),
            (0, 0, 0)
        );
    }

    #[test]
    fn a_gap_in_the_pictures_is_a_freeze_but_not_in_a_pause() {
        let start = Instant::now();
        let (mut watching, mut totals) = (Watching::default(), Totals::default());
        let at = |n: u64| start + Duration::from_millis(33) * n as u32;
        for n in (0..40).chain(60..70) {
            watching.packet(at(n), &frame(n - if n < 60 { 0 } else { 20 }, n as u32), &mut totals);
        }
        assert_eq!((totals.display.shown, totals.display.freezes), (50, 1));
        assert!(
            (totals.display.frozen_ms - 33.0 * 21.0).abs() < 1.0,
            "{}",
            totals.display.frozen_ms
        );
        assert!(
            (totals.display.gap_max_ms - 33.0 * 21.0).abs() < 1.0,
            "{}",
            totals.display.gap_max_ms
        );
        watching.pause(true, &mut totals);
        watching.packet(at(200), &frame(50, 200), &mut totals);
        assert_eq!((totals.display.shown, totals.display.freezes), (51, 1));
    }

    #[test]
    fn what_is_malformed_is_counted_and_nothing_else() {
        let (mut watching, mut totals) = (Watching::default(), Totals::default());
        watching.message(Instant::now(), &[9; 40], 200.0, &mut totals);
        assert_eq!((totals.anchors.whole, totals.anchors.broken), (0, 1));
    }
}
