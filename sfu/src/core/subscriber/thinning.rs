//! Leaves out the higher temporal layers of a subscriber's stream, and closes up its sequence numbers.
//!
//! Some publishers send temporal layers: the base layer is every second or fourth frame, and no frame of it needs one
//! of a higher layer. A subscriber whose bandwidth does not suffice for all frames gets the lower layers. Frames are
//! left out whole. One that has begun is forwarded to its end. Higher layers come back at a frame from which on they
//! can be decoded ([`Descriptor::resumes`]). Of a picture in spatial layers, packets of the higher ones are left out
//! ([`SpatialLimit`](super::spatial::SpatialLimit)).
//!
//! Packets that are left out have no number, so that the subscriber misses nothing. A packet that comes late may have
//! had a number kept free for it. If its frame is left out, padding takes that number.

use std::collections::VecDeque;

use crate::core::codec::descriptor::{ALL_TEMPORAL, Descriptor};

/// Number of packets left out whose numbers are remembered: over a second of the largest layer.
const MAX_PACKETS: usize = 1024;
/// Number of frames left out that are remembered.
const MAX_FRAMES: usize = 128;
/// Number of changes of the limit that are remembered.
const MAX_LIMITS: usize = 16;
/// Frames held back after layers were to come back. If none of them was a place for that, a key frame is requested.
const MAX_HELD_BACK: u32 = 30;

/// Whether a packet that is left out had a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    /// It has none: the packets after it close up.
    None,
    /// One was kept free for it.
    Reserved,
}

/// How a frame that is forwarded is numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// By its picture id.
    ByPicture,
    /// Frames before or after it were left out, so that picture ids have gaps. `missing`: so have sequence numbers,
    /// right before it.
    Closed { missing: bool },
}

/// What is left out of one stream.
#[derive(Debug)]
pub(crate) struct Thinning {
    /// Highest temporal layer that is to be forwarded.
    wanted: u8,
    /// Highest temporal layers that are forwarded, each from a packet on. They fall at once, and rise where layers come
    /// back. Late packets go by what held in their place.
    limits: VecDeque<(u64, u8)>,
    /// RTP timestamps of the last frames that were left out.
    frames: VecDeque<u32>,
    /// The publisher's sequence numbers of packets without a number, ascending.
    packets: VecDeque<u64>,
    /// Packets without a number that are no longer remembered.
    forgotten: u64,
    /// Newest packet of the publisher.
    newest: u64,
    /// The last picture of which a part came alone, and was left out.
    part: Option<u32>,
    /// Newest packet of a frame that was left out whole.
    last_whole: u64,
    /// Whether frames were left out since the newest one that was forwarded.
    skipped: bool,
    /// Frames left out, of layers that are to come back.
    held_back: u32,
}

impl Default for Thinning {
    fn default() -> Thinning {
        Thinning {
            wanted: ALL_TEMPORAL,
            limits: VecDeque::from([(0, ALL_TEMPORAL)]),
            frames: VecDeque::new(),
            packets: VecDeque::new(),
            forgotten: 0,
            newest: 0,
            part: None,
            last_whole: 0,
            skipped: false,
            held_back: 0,
        }
    }
}

impl Thinning {
    /// Sets the highest temporal layer that is forwarded; `None`: all are.
    pub(crate) fn set_max(&mut self, layer: Option<u8>) {
        self.wanted = layer.unwrap_or(ALL_TEMPORAL);
        if self.wanted < self.max() {
            self.limit(self.newest + 1, self.wanted);
            self.held_back = 0;
        }
    }

    /// The highest temporal layer that is forwarded of the newest packets.
    fn max(&self) -> u8 {
        self.limits.back().map_or(self.wanted, |(_, max)| *max)
    }

    fn max_at(&self, seq: u64) -> u8 {
        let held = self.limits.iter().rev().find(|(from, _)| *from <= seq);
        held.or(self.limits.front()).map_or(self.wanted, |(_, max)| *max)
    }

    fn limit(&mut self, from: u64, max: u8) {
        if self.limits.back().is_some_and(|(last, _)| *last >= from) {
            self.limits.pop_back();
        } else if self.limits.len() == MAX_LIMITS {
            self.limits.pop_front();
        }
        self.limits.push_back((from, max));
    }

    /// Begins with the first packet of a key frame, of another source.
    pub(crate) fn begin(&mut self, seq: u64) {
        let wanted = self.wanted;
        let limits = VecDeque::from([(0, wanted)]);
        *self = Thinning { wanted, limits, newest: seq, ..Thinning::default() };
    }

    /// How many packets before this one have no number; `None` for one that has none itself, or is too old to know.
    pub(crate) fn before(&self, seq: u64) -> Option<u64> {
        match self.packets.binary_search(&seq) {
            Err(0) if self.forgotten > 0 => None,
            Err(before) => Some(self.forgotten + before as u64),
            Ok(_) => None,
        }
    }

    /// Whether layers that are to come back find no place for that: only a key frame helps.
    pub(crate) fn needs_key_frame(&self) -> bool {
        self.held_back > MAX_HELD_BACK
    }

    /// How to number a frame of which nothing was forwarded so far, by a packet of it; `None`: it is left out.
    pub(crate) fn admit(
        &mut self,
        descriptor: &Descriptor,
        seq: u64,
        timestamp: u32,
    ) -> Option<Numbering> {
        // Its beginning was left out.
        if self.frames.iter().rev().any(|frame| *frame == timestamp) {
            return None;
        }
        let is_newest = self.is_newest(seq);
        let (layer, before) = (descriptor.temporal.unwrap_or(0), self.max());
        if is_newest && before < self.wanted {
            // A key frame begins anew for all layers.
            let key = descriptor.starts_key().then_some(ALL_TEMPORAL);
            match key.or(descriptor.resumes) {
                Some(ALL_TEMPORAL) => self.limit(seq, self.wanted),
                Some(next) if next <= self.wanted && next == before + 1 => self.limit(seq, next),
                _ => {}
            }
        }
        let max = self.max_at(seq);
        if layer > max && !descriptor.starts_key() {
            return None;
        }
        let closed = before.min(max) < ALL_TEMPORAL || self.skipped || self.last_whole > seq;
        let missing = is_newest && !self.follows(seq);
        if is_newest {
            self.newest = seq;
            self.skipped = false;
            if layer > 0 || descriptor.starts_key() {
                self.held_back = 0;
            }
        }
        Some(if closed { Numbering::Closed { missing } } else { Numbering::ByPicture })
    }

    /// Leaves out a packet. Of a layer that is to come back, its frame counts as held back.
    pub(crate) fn leave_out(&mut self, seq: u64, timestamp: u32, layer: Option<u8>) -> Number {
        if !self.frames.contains(&timestamp) {
            if self.frames.len() == MAX_FRAMES {
                self.frames.pop_front();
            }
            self.frames.push_back(timestamp);
            self.held_back += u32::from(layer.is_some_and(|layer| layer <= self.wanted));
        }
        let number = self.leave_out_packet(seq);
        if number == Number::None {
            self.skipped = true;
            self.last_whole = seq;
        }
        number
    }

    /// Leaves out a packet of a picture's higher spatial layers. `alone`: no packet of the picture was forwarded. Then
    /// it lacks the lower layers, unless packets are missing before it.
    pub(crate) fn leave_out_part(&mut self, seq: u64, timestamp: u32, alone: bool) -> Number {
        if alone && self.part != Some(timestamp) {
            self.part = Some(timestamp);
            self.skipped |= self.follows(seq);
        }
        self.leave_out_packet(seq)
    }

    fn leave_out_packet(&mut self, seq: u64) -> Number {
        if !self.is_newest(seq) {
            return Number::Reserved;
        }
        self.newest = seq;
        if self.packets.len() == MAX_PACKETS {
            self.packets.pop_front();
            self.forgotten += 1;
        }
        self.packets.push_back(seq);
        Number::None
    }

    /// Whether a packet is newer than all before it.
    pub(crate) fn is_newest(&self, seq: u64) -> bool {
        seq > self.newest
    }

    /// Whether a packet comes right after the newest one.
    pub(crate) fn follows(&self, seq: u64) -> bool {
        seq == self.newest + 1
    }

    /// Notes a packet that has a number.
    pub(crate) fn number(&mut self, seq: u64) {
        self.newest = self.newest.max(seq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(temporal: Option<u8>, resumes: Option<u8>) -> Descriptor {
        Descriptor {
            picture_id: None,
            tl0: None,
            inter: true,
            begin: true,
            end: true,
            spatial: 0,
            temporal,
            resumes,
            layers: None,
            len: 0,
        }
    }

    /// Whether the next frame is forwarded; the frames have one packet each.
    fn forwards(thinning: &mut Thinning, seq: u64, packet: &Descriptor) -> bool {
        let admitted = thinning.admit(packet, seq, seq as u32).is_some();
        if !admitted {
            thinning.leave_out(seq, seq as u32, packet.temporal);
        }
        admitted
    }

    #[test]
    fn higher_layers_are_left_out_at_once_and_come_back_where_they_can_be_decoded() {
        let mut thinning = Thinning::default();
        let mut next = 0;
        let mut frame = |thinning: &mut Thinning, layer, resumes| {
            next += 1;
            forwards(thinning, next, &packet(Some(layer), resumes))
        };
        assert!(frame(&mut thinning, 2, None));
        thinning.set_max(Some(0));
        assert!(!frame(&mut thinning, 1, Some(1)));
        assert!(frame(&mut thinning, 0, None));
        thinning.set_max(None);
        assert!(!frame(&mut thinning, 1, None));
        assert!(!frame(&mut thinning, 2, Some(2)), "layer 1 has not come back");
        assert!(frame(&mut thinning, 1, Some(1)));
        assert!(!frame(&mut thinning, 2, None), "a layer above it");
        assert!(frame(&mut thinning, 0, Some(ALL_TEMPORAL)));
        assert!(frame(&mut thinning, 2, None));
    }

    #[test]
    fn the_middle_of_three_layers_can_be_the_highest() {
        let mut thinning = Thinning::default();
        thinning.set_max(Some(0));
        thinning.set_max(Some(1));
        assert!(forwards(&mut thinning, 1, &packet(Some(0), Some(ALL_TEMPORAL))));
        assert!(forwards(&mut thinning, 2, &packet(Some(1), None)));
        assert!(!forwards(&mut thinning, 3, &packet(Some(2), None)));
    }

    #[test]
    fn all_layers_come_back_at_a_key_frame_which_is_never_left_out() {
        let mut thinning = Thinning::default();
        thinning.set_max(Some(0));
        let key = Descriptor { inter: false, ..packet(Some(2), None) };
        assert!(forwards(&mut thinning, 1, &key));
        assert!(!forwards(&mut thinning, 2, &packet(Some(2), None)));
        thinning.set_max(None);
        assert!(!forwards(&mut thinning, 3, &packet(Some(2), None)));
        assert!(forwards(&mut thinning, 4, &key));
        assert!(forwards(&mut thinning, 5, &packet(Some(2), None)));
    }

    #[test]
    fn a_key_frame_is_needed_where_no_frame_says_that_layers_can_come_back() {
        let mut thinning = Thinning::default();
        thinning.set_max(Some(0));
        for seq in 1..100 {
            forwards(&mut thinning, seq, &packet(Some((seq % 2) as u8), None));
        }
        assert!(!thinning.needs_key_frame(), "they are not to come back");
        thinning.set_max(None);
        for seq in 100..200 {
            forwards(&mut thinning, seq, &packet(Some((seq % 2) as u8), None));
        }
        assert!(thinning.needs_key_frame());
        forwards(&mut thinning, 200, &Descriptor { inter: false, ..packet(Some(0), None) });
        assert!(!thinning.needs_key_frame());
    }

    #[test]
    fn a_frame_that_began_to_be_left_out_stays_so() {
        let mut thinning = Thinning::default();
        thinning.set_max(Some(0));
        assert!(thinning.admit(&packet(Some(1), None), 1, 9).is_none());
        thinning.leave_out(1, 9, Some(1));
        thinning.set_max(None);
        assert!(thinning.admit(&packet(Some(1), Some(ALL_TEMPORAL)), 2, 9).is_none());
        assert!(thinning.admit(&packet(None, None), 2, 9).is_none(), "it says no layer");
        assert!(thinning.admit(&packet(None, None), 2, 10).is_some(), "there are no layers");
    }

    #[test]
    fn a_late_frame_from_before_the_fall_is_forwarded() {
        let mut thinning = Thinning::default();
        assert!(forwards(&mut thinning, 5, &packet(Some(2), None)));
        thinning.set_max(Some(0));
        assert!(thinning.admit(&packet(Some(1), None), 4, 4).is_some());
        assert!(thinning.admit(&packet(Some(1), None), 6, 6).is_none());
    }

    #[test]
    fn numbers_close_up_over_what_is_left_out_and_stay_for_what_comes_late() {
        let mut thinning = Thinning::default();
        let base = packet(Some(0), None);
        thinning.begin(10);
        thinning.set_max(Some(0));
        assert_eq!(thinning.leave_out(11, 11, Some(1)), Number::None);
        assert_eq!(thinning.before(12), Some(1));
        assert_eq!(thinning.admit(&base, 13, 13), Some(Numbering::Closed { missing: true }));
        assert_eq!(thinning.admit(&base, 14, 14), Some(Numbering::Closed { missing: false }));
        assert_eq!(thinning.leave_out(12, 12, Some(1)), Number::Reserved);
        assert_eq!(
            [10, 11, 12, 15].map(|seq| thinning.before(seq)),
            [Some(0), None, Some(1), Some(1)]
        );
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut thinning = Thinning::default();
        thinning.begin(0);
        let packets = 2 * MAX_PACKETS as u64;
        for seq in (1..=2 * packets).step_by(2) {
            thinning.leave_out(seq, seq as u32, Some(1));
            thinning.number(seq + 1);
        }
        assert_eq!((thinning.frames.len(), thinning.packets.len()), (MAX_FRAMES, MAX_PACKETS));
        assert_eq!(thinning.before(2 * packets + 1), Some(packets));
        assert_eq!(thinning.before(2), None, "too old to know");
    }
}
