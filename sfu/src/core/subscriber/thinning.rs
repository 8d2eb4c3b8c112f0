//! Leaves out the higher temporal layers of a subscriber's stream, and closes up its sequence numbers.
//!
//! Some publishers send temporal layers: the base layer is every second or fourth frame, and no frame of it needs one
//! of a higher layer. A subscriber whose bandwidth does not suffice for all frames gets the lower layers. Frames are
//! left out whole. One that has begun is forwarded to its end. Higher layers come back at a frame from which on they
//! can be decoded ([`Descriptor::resumes`]).
//!
//! Packets that are left out have no number, so that the subscriber misses nothing. A packet that comes late may have
//! had a number kept free for it. If its frame is left out, padding takes that number.

use std::collections::VecDeque;

use crate::core::codec::descriptor::{ALL_TEMPORAL, Descriptor};

/// Number of packets left out whose numbers are remembered, and of frames: over a second of them.
const MAX_LEFT_OUT: usize = 256;

/// Whether a packet that is left out had a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    /// It has none: the packets after it close up.
    None,
    /// One was kept free for it.
    Reserved,
}

/// What is left out of one stream.
#[derive(Debug)]
pub(crate) struct Thinning {
    /// Highest temporal layer that is to be forwarded.
    wanted: u8,
    /// Highest temporal layer that is forwarded. It falls at once, and rises where layers come back.
    max: u8,
    /// RTP timestamps of the last frames that were left out.
    frames: VecDeque<u32>,
    /// The publisher's sequence numbers of packets without a number, ascending.
    packets: VecDeque<u64>,
    /// Packets without a number that are no longer remembered.
    forgotten: u64,
    /// Newest packet of the publisher.
    newest: u64,
    /// Whether frames were left out since the last one that was forwarded.
    skipped: bool,
}

impl Default for Thinning {
    fn default() -> Thinning {
        Thinning {
            wanted: ALL_TEMPORAL,
            max: ALL_TEMPORAL,
            frames: VecDeque::new(),
            packets: VecDeque::new(),
            forgotten: 0,
            newest: 0,
            skipped: false,
        }
    }
}

impl Thinning {
    /// Sets the highest temporal layer that is forwarded; `None`: all are.
    pub(crate) fn set_max(&mut self, layer: Option<u8>) {
        self.wanted = layer.unwrap_or(ALL_TEMPORAL);
        self.max = self.max.min(self.wanted);
    }

    /// Whether layers are left out.
    pub(crate) fn is_on(&self) -> bool {
        self.wanted < ALL_TEMPORAL
    }

    /// Begins with the first packet of a key frame, of another source.
    pub(crate) fn begin(&mut self, seq: u64) {
        *self =
            Thinning { wanted: self.wanted, max: self.wanted, newest: seq, ..Thinning::default() };
    }

    /// How many packets before this one have no number; `None` for one that has none itself, or is too old to know.
    pub(crate) fn before(&self, seq: u64) -> Option<u64> {
        match self.packets.binary_search(&seq) {
            Err(0) if self.forgotten > 0 => None,
            Err(before) => Some(self.forgotten + before as u64),
            Ok(_) => None,
        }
    }

    /// Whether a frame that was not forwarded so far is: by a packet of it.
    pub(crate) fn forwards(&mut self, descriptor: &Descriptor, timestamp: u32) -> bool {
        // A key frame begins anew for all layers.
        let key = descriptor.starts_key().then_some(ALL_TEMPORAL);
        self.max = match key.or(descriptor.resumes) {
            Some(ALL_TEMPORAL) => self.wanted,
            Some(layer) if layer <= self.wanted => self.max.max(layer),
            _ => self.max,
        };
        match descriptor.temporal {
            Some(layer) => layer <= self.max,
            None => !self.frames.contains(&timestamp),
        }
    }

    /// Leaves out a packet.
    pub(crate) fn leave_out(&mut self, seq: u64, timestamp: u32) -> Number {
        if !self.frames.contains(&timestamp) {
            if self.frames.len() == MAX_LEFT_OUT {
                self.frames.pop_front();
            }
            self.frames.push_back(timestamp);
        }
        self.skipped = true;
        if seq <= self.newest {
            return Number::Reserved;
        }
        self.newest = seq;
        if self.packets.len() == MAX_LEFT_OUT {
            self.packets.pop_front();
            self.forgotten += 1;
        }
        self.packets.push_back(seq);
        Number::None
    }

    /// Notes a packet that has a number.
    pub(crate) fn number(&mut self, seq: u64) {
        self.newest = self.newest.max(seq);
    }

    /// Notes a packet of a frame that is forwarded. Returns whether frames were left out before it.
    pub(crate) fn forwarded(&mut self, seq: u64) -> bool {
        self.number(seq);
        std::mem::take(&mut self.skipped)
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
            size: None,
            len: 0,
        }
    }

    #[test]
    fn higher_layers_are_left_out_at_once_and_come_back_where_they_can_be_decoded() {
        let mut thinning = Thinning::default();
        assert!(thinning.forwards(&packet(Some(2), None), 1));
        thinning.set_max(Some(0));
        assert!(!thinning.forwards(&packet(Some(1), Some(1)), 2));
        assert!(thinning.forwards(&packet(Some(0), None), 3));
        thinning.set_max(None);
        assert!(!thinning.forwards(&packet(Some(1), None), 4));
        assert!(thinning.forwards(&packet(Some(1), Some(1)), 5));
        assert!(!thinning.forwards(&packet(Some(2), None), 6), "a layer above it");
        assert!(thinning.forwards(&packet(Some(0), Some(ALL_TEMPORAL)), 7));
        assert!(thinning.forwards(&packet(Some(2), None), 8));
    }

    #[test]
    fn the_middle_of_three_layers_can_be_the_highest() {
        let mut thinning = Thinning::default();
        thinning.set_max(Some(0));
        thinning.set_max(Some(1));
        assert!(!thinning.forwards(&packet(Some(2), Some(2)), 1));
        assert!(!thinning.forwards(&packet(Some(1), None), 1), "it came back for layer 2 alone");
        assert!(thinning.forwards(&packet(Some(0), Some(ALL_TEMPORAL)), 2));
        assert!(thinning.forwards(&packet(Some(1), None), 3));
        assert!(!thinning.forwards(&packet(Some(2), None), 4));
    }

    #[test]
    fn all_layers_come_back_at_a_key_frame() {
        let mut thinning = Thinning::default();
        thinning.set_max(Some(0));
        thinning.set_max(None);
        let key = Descriptor { inter: false, ..packet(Some(0), None) };
        assert!(thinning.forwards(&key, 1) && thinning.forwards(&packet(Some(2), None), 2));
    }

    #[test]
    fn packets_that_say_no_layer_go_the_way_of_their_frame() {
        let mut thinning = Thinning::default();
        thinning.set_max(Some(0));
        assert!(!thinning.forwards(&packet(Some(1), None), 9));
        thinning.leave_out(1, 9);
        assert!(!thinning.forwards(&packet(None, None), 9));
        assert!(thinning.forwards(&packet(None, None), 10), "of a publisher without layers");
    }

    #[test]
    fn numbers_close_up_over_what_is_left_out_and_stay_for_what_comes_late() {
        let mut thinning = Thinning::default();
        thinning.begin(10);
        assert_eq!(thinning.leave_out(11, 1), Number::None);
        assert_eq!(thinning.before(12), Some(1));
        assert!(thinning.forwarded(13), "12 is missing");
        assert!(!thinning.forwarded(14));
        assert_eq!(thinning.leave_out(12, 1), Number::Reserved);
        assert_eq!(
            [10, 11, 12, 15].map(|seq| thinning.before(seq)),
            [Some(0), None, Some(1), Some(1)]
        );
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut thinning = Thinning::default();
        thinning.begin(0);
        for seq in (1..=4_001).step_by(2) {
            thinning.leave_out(seq, seq as u32);
            thinning.forwarded(seq + 1);
        }
        assert_eq!((thinning.frames.len(), thinning.packets.len()), (MAX_LEFT_OUT, MAX_LEFT_OUT));
        assert_eq!(thinning.before(4_003), Some(2_001));
        assert_eq!(thinning.before(2), None, "too old to know");
    }
}
