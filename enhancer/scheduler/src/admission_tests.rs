use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);
/// A frame takes 1 ms, and 30 come a second: 33 streams fill a slot.
const COST: f64 = 0.001;

const ROOMY: Bounds = Bounds { slots: 2, memory: u64::MAX, streams: usize::MAX };

fn slots(slots: usize) -> Bounds {
    Bounds { slots, ..ROOMY }
}

/// A machine whose frames take so much each, and who is admitted.
struct Machine {
    admission: Admission,
    now: Duration,
    cost: f64,
    others: f64,
    streams: u32,
    /// Owner of a stream, how many times as long its frames take, and its bytes, by the stream's number.
    of: fn(u32) -> (Owner, f64, u64),
    /// Streams before this have not come yet.
    from: u32,
    decoding: Vec<bool>,
    /// Times that streams were admitted, and went.
    changes: (usize, usize),
}

impl Machine {
    fn new(count: usize, streams: u32) -> Machine {
        Machine::within(slots(count), streams, |id| (Owner::alone(StreamId(id)), 1.0, 0))
    }

    fn within(bounds: Bounds, streams: u32, of: fn(u32) -> (Owner, f64, u64)) -> Machine {
        Machine {
            admission: Admission::new(bounds),
            now: MS,
            cost: COST,
            others: 0.0,
            streams,
            of,
            from: 0,
            decoding: vec![false; streams as usize],
            changes: (0, 0),
        }
    }

    /// Runs `halves` halves of a second, with 15 frames of each stream.
    fn run(&mut self, halves: u32) -> Vec<u32> {
        for _ in 0..halves {
            let mut decoded = vec![0; self.streams as usize];
            for id in self.from..self.streams {
                let (owner, _, memory) = (self.of)(id);
                for _ in 0..15 {
                    let refusal = self.admission.frame(self.now, StreamId(id), owner, Some(memory));
                    let admitted = refusal.is_none();
                    decoded[id as usize] += u64::from(admitted);
                    self.changes.0 += usize::from(admitted && !self.decoding[id as usize]);
                    self.decoding[id as usize] = admitted;
                }
            }
            self.now += EVERY;
            let (cost, others, of) = (self.cost, EVERY.mul_f64(self.others), self.of);
            let mut gone = Vec::new();
            let work = |StreamId(id)| {
                let frames = decoded[id as usize];
                let (_, times, memory) = of(id);
                let memory = if frames > 0 { memory } else { 0 };
                let low = Duration::from_secs_f64(cost * times * frames as f64);
                Work { frames, low, high: Duration::ZERO, memory }
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
fn other_work_in_the_slots_leaves_room_for_fewer_streams() {
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
    let frames = |machine: &mut Machine, id| {
        let id = StreamId(id);
        machine.admission.frame(machine.now, id, Owner::alone(id), Some(0)).is_none()
    };
    for _ in 0..200 {
        machine.now += EVERY;
        let low = Duration::from_secs_f64(15.0 * COST);
        let work = |_| Work { frames: 15, low, ..Work::default() };
        machine.admission.look(machine.now, work, Duration::ZERO, &mut Vec::new());
        (1..40).for_each(|id| _ = (0..15).filter(|_| frames(&mut machine, id)).count());
    }
    assert!(frames(&mut machine, admitted), "{admitted}");
}

fn owner(room: u64, publisher: u64) -> Owner {
    Owner { room, publisher }
}

#[test]
fn who_came_first_and_takes_most_gives_way_to_who_takes_little() {
    // The first takes three quarters of a slot; the others come later, to rooms of their own.
    let of = |id| {
        let times = if id == 0 { 25.0 } else { 1.0 };
        (Owner::alone(StreamId(id)), times, 100 * times as u64)
    };
    let mut machine = Machine::within(slots(1), 1, of);
    assert_eq!(machine.run(20), [0], "alone it may");
    (machine.streams, machine.decoding) = (5, vec![true, false, false, false, false]);
    machine.changes = (0, 0);
    assert_eq!(machine.run(4), [1, 2, 3, 4]);
    assert_eq!(machine.run(400), [1, 2, 3, 4], "and it does not come back");
    assert_eq!(machine.changes, (4, 1), "nobody comes and goes");
    assert_eq!(
        machine.admission.frame(machine.now, StreamId(0), of(0).0, None),
        Some(Refusal::Cpu)
    );
}

#[test]
fn rooms_have_equal_shares_however_many_publish_in_them_and_came_first() {
    // Of thirty publishers in one room, and four in another that come later; eighteen fit.
    let of = |id: u32| (owner(u64::from(id >= 30), id.into()), 1.0, 0);
    let mut machine = Machine::within(slots(1), 30, of);
    let before = machine.run(60).len();
    assert!((18..=27).contains(&before), "{before}");
    (machine.streams, machine.decoding) = (34, [machine.decoding.clone(), vec![false; 4]].concat());
    let after = machine.run(60);
    assert!((30..34).all(|id| after.contains(&id)), "{after:?}");
    assert!(after.len() >= 17, "{after:?}");
}

#[test]
fn one_publisher_with_many_rooms_has_the_share_of_one() {
    // Fifty streams in as many rooms, all of one publisher, and five of others that come later.
    let of = |id: u32| (owner(id.into(), if id < 50 { 1_000 } else { id.into() }), 1.0, 0);
    let mut machine = Machine::within(slots(1), 50, of);
    machine.run(60);
    (machine.streams, machine.decoding) = (55, [machine.decoding.clone(), vec![false; 5]].concat());
    let after = machine.run(60);
    assert!((50..55).all(|id| after.contains(&id)), "{after:?}");
}

#[test]
fn memory_is_shared_as_fairly_and_never_exceeded() {
    // Six of one publisher take a third of the memory each; the seventh, of another, a tenth.
    let of = |id: u32| {
        let few = id == 6;
        (owner(id.into(), u64::from(few)), 0.1, if few { 100 } else { 300 })
    };
    let bounds = Bounds { slots: 2, memory: 1_000, streams: 64 };
    let mut machine = Machine::within(bounds, 6, of);
    assert_eq!(machine.run(20).len(), 3);
    assert_eq!(
        machine.admission.frame(machine.now, StreamId(5), of(5).0, None),
        Some(Refusal::Memory)
    );
    (machine.streams, machine.decoding) = (7, [machine.decoding.clone(), vec![false]].concat());
    let after = machine.run(20);
    assert!(after.contains(&6) && after.len() == 4, "{after:?}");
    assert!(machine.admission.memory() <= 1_000);
}

#[test]
fn a_stream_whose_pictures_grow_gives_way_at_once_where_the_memory_is_full() {
    let bounds = Bounds { slots: 2, memory: 1_000, streams: 64 };
    let of = |id: u32| (Owner::alone(StreamId(id)), 0.1, 300);
    let mut machine = Machine::within(bounds, 3, of);
    assert_eq!(machine.run(4).len(), 3);
    machine.of = |id| (Owner::alone(StreamId(id)), 0.1, if id == 1 { 600 } else { 300 });
    assert_eq!(machine.run(1), [0, 2]);
}

#[test]
fn as_many_are_enhanced_as_may_be_and_rooms_share_the_places() {
    let bounds = Bounds { streams: 4, ..slots(2) };
    let of = |id: u32| (owner(u64::from(id >= 6), id.into()), 1.0, 0);
    let mut machine = Machine::within(bounds, 6, of);
    assert_eq!(machine.run(4), [0, 1, 2, 3]);
    assert_eq!(
        machine.admission.frame(machine.now, StreamId(5), of(5).0, None),
        Some(Refusal::Full)
    );
    (machine.streams, machine.decoding) = (7, [machine.decoding.clone(), vec![false]].concat());
    let after = machine.run(20);
    assert!(after.contains(&6) && after.len() == 4, "{after:?}");
    machine.admission.set_max_streams(2);
    assert_eq!(machine.run(20).len(), 4, "nobody who is there has to leave");
}

proptest! {
    #[test]
    fn whatever_is_measured_somebody_is_decoded_and_bounds_hold(
        looks in prop::collection::vec((0u64..3_000, prop::sample::select(vec![Duration::ZERO, MS / 10, 100 * MS, Duration::MAX]), 0u64..40, 0u64..400), 1..60),
        count in 0usize..4, ends in prop::option::of(0u32..12),
    ) {
        let mut admission = Admission::new(Bounds { slots: count, memory: 1_000, streams: 8 });
        let mut now = Duration::ZERO;
        for (n, (ms, took, frames, memory)) in looks.into_iter().enumerate() {
            let mut decoding = Vec::new();
            for id in 0..12 {
                let (id, owner) = (StreamId(id), owner((id % 5).into(), (id % 3).into()));
                let refused = (0..5).map(|_| admission.frame(now, id, owner, Some(100))).last();
                if refused == Some(None) {
                    decoding.push(id);
                }
            }
            prop_assert!(!decoding.is_empty() && decoding.len() <= 8);
            prop_assert_eq!(decoding.len() + admission.refused(), 12);
            now += Duration::from_millis(ms);
            let mut gone = Vec::new();
            admission.look(now, |_| Work { frames, low: took, high: took, memory }, took, &mut gone);
            prop_assert!(admission.load().is_finite());
            // Only those go that were decoded.
            prop_assert!(gone.iter().all(|id| decoding.contains(id)));
            if ms > 0 && memory <= 1_000 {
                prop_assert!(admission.memory() <= 1_000, "{}", admission.memory());
            }
            if let Some(id) = ends.filter(|_| n == 20) {
                admission.forget(StreamId(id));
            }
        }
    }

    #[test]
    fn nobody_keeps_another_below_its_fair_share(
        greedy in prop::collection::vec((1u64..4, 0u64..6, 1.0f64..40.0), 1..24), late in 0usize..2,
    ) {
        // A stream that takes less than a tenth of its fair share beside all others, whoever came first and whatever
        // they take.
        let streams: Vec<(Owner, f64)> = greedy.iter().map(|&(room, publisher, times)| (owner(room, 10 + publisher), times)).collect();
        let (honest, its_owner) = (StreamId(1_000), owner(100, 100));
        let mut admission = Admission::new(slots(1));
        let (mut now, mut decoding) = (MS, BTreeMap::new());
        for half in 0..120 {
            let mut came = Vec::new();
            if half >= 40 * late {
                came.push((honest, its_owner, 0.3));
            }
            came.extend((0..).zip(&streams).map(|(id, &(owner, times))| (StreamId(id), owner, times)));
            for &(id, owner, times) in &came {
                let memory = Some((1e3 * times) as u64);
                let refused = (0..15).map(|_| admission.frame(now, id, owner, memory)).last();
                decoding.insert(id, refused == Some(None));
            }
            now += EVERY;
            let work = |id: StreamId| {
                let times = came.iter().find(|one| one.0 == id).map_or(0.0, |&(.., times)| times);
                let frames = if decoding.get(&id) == Some(&true) { 15 } else { 0 };
                let memory = if frames > 0 { (1e3 * times) as u64 } else { 0 };
                let low = Duration::from_secs_f64(frames as f64 * COST * times);
                Work { frames, low, memory, ..Work::default() }
            };
            admission.look(now, work, Duration::ZERO, &mut Vec::new());
        }
        prop_assert_eq!(admission.frame(now, honest, its_owner, Some(0)), None);
    }
}

#[test]
fn among_nearly_equal_streams_the_oldest_stays_whatever_they_take() {
    for step in 0..20 {
        let measured = |id| (Owner::alone(StreamId(id)), if id == 0 { 1.1 } else { 1.0 }, 0);
        let mut machine = Machine::within(slots(1), 4, measured);
        machine.cost = 0.012 * (1.0 + 0.05 * f64::from(step));
        let admitted = machine.run(20);
        assert!(admitted.contains(&0), "{} s a frame: {admitted:?}", machine.cost);
        assert!(admitted.len() < 4, "{} s a frame: {admitted:?}", machine.cost);
    }
}
