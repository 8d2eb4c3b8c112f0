use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);
/// A frame takes 1 ms, and 30 come a second: 33 streams fill a slot.
const COST: f64 = 0.001;

/// A machine whose frames take so much each, and who is admitted.
struct Machine {
    admission: Admission,
    now: Duration,
    cost: f64,
    others: f64,
    streams: u32,
    decoding: Vec<bool>,
    /// Times that streams were admitted, and went.
    changes: (usize, usize),
}

impl Machine {
    fn new(slots: usize, streams: u32) -> Machine {
        let decoding = vec![false; streams as usize];
        let admission = Admission::new(slots);
        Machine { admission, now: MS, cost: COST, others: 0.0, streams, decoding, changes: (0, 0) }
    }

    /// So many halves of a second, with 15 frames of each stream.
    fn run(&mut self, halves: u32) -> Vec<u32> {
        for _ in 0..halves {
            let mut decoded = vec![0; self.streams as usize];
            for id in 0..self.streams {
                for _ in 0..15 {
                    let admitted = self.admission.frame(self.now, StreamId(id));
                    decoded[id as usize] += u64::from(admitted);
                    self.changes.0 += usize::from(admitted && !self.decoding[id as usize]);
                    self.decoding[id as usize] = admitted;
                }
            }
            self.now += EVERY;
            let (cost, others) = (self.cost, self.others * EVERY.as_secs_f64());
            let mut gone = Vec::new();
            let work = |StreamId(id)| {
                let frames = decoded[id as usize];
                Work { frames, seconds: cost * frames as f64, more: 0.0 }
            };
            self.admission.look(self.now, work, others, &mut gone);
            self.changes.1 += gone.len();
            for id in gone {
                self.decoding[id.0 as usize] = false;
            }
        }
        (0..).zip(&self.decoding).filter(|(_, admitted)| **admitted).map(|(id, _)| id).collect()
    }
}

#[test]
fn all_are_admitted_while_there_is_room() {
    let mut machine = Machine::new(2, 30);
    assert_eq!(machine.run(60).len(), 30);
    assert_eq!(machine.changes, (30, 0));
}

#[test]
fn the_oldest_are_decoded_and_the_rest_refused() {
    let mut machine = Machine::new(2, 190);
    let admitted = machine.run(120);
    // 0.6 to 0.8 of two slots.
    assert!((38..=53).contains(&admitted.len()), "{}", admitted.len());
    assert_eq!(admitted, (0..admitted.len() as u32).collect::<Vec<_>>());
    assert_eq!(machine.admission.refused(), 190 - admitted.len());
}

#[test]
fn when_decoding_takes_longer_the_newest_go_and_come_back_later() {
    let mut machine = Machine::new(2, 40);
    machine.run(20);
    machine.cost *= 3.0;
    assert_eq!(machine.run(2).len(), 40, "it may pass");
    let left = machine.run(4);
    assert!(left.len() < 20 && left.contains(&0) && !left.contains(&39), "{left:?}");
    machine.cost /= 3.0;
    assert!(machine.run(4).len() <= left.len(), "not at once");
    assert!(machine.run(300).len() >= 36);
}

#[test]
fn what_else_takes_slots_leaves_fewer() {
    let mut machine = Machine::new(2, 190);
    machine.others = 0.8;
    let admitted = machine.run(120).len();
    assert!((12..=27).contains(&admitted), "{admitted}");
}

#[test]
fn where_each_return_breaks_it_anew_returns_become_rare() {
    let mut machine = Machine::new(2, 100);
    machine.run(20);
    for _ in 0..240 {
        // The more are decoded, the longer each takes: by what is known there is always room for more.
        let decoding = machine.decoding.iter().filter(|d| **d).count();
        machine.cost = if decoding > 30 { 4.0 * COST } else { 0.5 * COST };
        machine.run(1);
    }
    assert!(machine.changes.1 > 0, "the case is none");
    machine.changes = (0, 0);
    for _ in 0..240 {
        let decoding = machine.decoding.iter().filter(|d| **d).count();
        machine.cost = if decoding > 30 { 4.0 * COST } else { 0.5 * COST };
        machine.run(1);
    }
    // Two minutes: once in 64 seconds or more.
    assert!(machine.changes.0 <= 3 * 70, "{:?}", machine.changes);
}

#[test]
fn one_stream_is_decoded_however_dear() {
    let mut machine = Machine::new(1, 3);
    machine.cost = 0.2;
    assert_eq!(machine.run(60), [0]);
}

#[test]
fn a_stream_that_ends_makes_room_for_the_oldest_that_waits() {
    let mut machine = Machine::new(1, 40);
    let admitted = machine.run(120).len() as u32;
    assert!(admitted < 30);
    machine.admission.forget(StreamId(0));
    let frames = |machine: &mut Machine, id| machine.admission.frame(machine.now, StreamId(id));
    for _ in 0..200 {
        machine.now += EVERY;
        let work = |_| Work { frames: 15, seconds: 15.0 * COST, more: 0.0 };
        machine.admission.look(machine.now, work, 0.0, &mut Vec::new());
        (1..40).for_each(|id| _ = (0..15).filter(|_| frames(&mut machine, id)).count());
    }
    assert!(frames(&mut machine, admitted), "{admitted}");
}

proptest! {
    #[test]
    fn whatever_is_measured_the_oldest_is_decoded_and_older_ones_before_newer(
        looks in prop::collection::vec((0u64..3_000, prop::sample::select(vec![0.0, 1e-4, 0.1, 1e300, f64::NAN, f64::INFINITY, -1.0]), 0u64..40), 1..60),
        slots in 0usize..4, ends in prop::option::of(0u32..12),
    ) {
        let mut admission = Admission::new(slots);
        let mut now = Duration::ZERO;
        for (n, (ms, seconds, frames)) in looks.into_iter().enumerate() {
            let mut decoding = Vec::new();
            for id in 0..12 {
                let id = StreamId(id);
                let admitted = (0..5).map(|_| admission.frame(now, id)).last();
                if admitted == Some(true) {
                    decoding.push(id);
                }
            }
            prop_assert!(!decoding.is_empty());
            prop_assert_eq!(decoding.len() + admission.refused(), 12);
            now += Duration::from_millis(ms);
            let mut gone = Vec::new();
            admission.look(now, |_| Work { frames, seconds, more: seconds }, seconds, &mut gone);
            prop_assert!(admission.load().is_finite());
            // Only those go that were decoded, and all of them are newer than who stays.
            prop_assert!(gone.iter().all(|id| decoding.contains(id)));
            let stays = decoding.iter().filter(|id| !gone.contains(id)).map(|id| admission.streams[id].number).max();
            prop_assert!(gone.iter().all(|id| Some(admission.streams[id].number) > stays));
            if let Some(id) = ends.filter(|_| n == 20) {
                admission.forget(StreamId(id));
            }
        }
    }
}
