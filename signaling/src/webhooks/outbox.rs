//! The queue of events for one receiver. Each room's events stay in order, until they are accepted or given up. Pure:
//! every time is an argument.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Maximum number of concurrent attempts, each for another room.
const MAX_CONCURRENT: usize = 8;

/// Pauses and number of repeated attempts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pauses {
    /// Pause before the second attempt. It doubles for each further attempt.
    pub first: Duration,
    /// Longest pause between two attempts.
    pub max: Duration,
    /// Maximum number of attempts for an event.
    pub attempts: u32,
}

impl Pauses {
    /// The pause after `failed` attempts. `jitter`, 0 to 1, changes it by −25 % to +25 %.
    fn after(&self, failed: u32, jitter: f64) -> Duration {
        let doubled = self.first.saturating_mul(1 << (failed - 1).min(16));
        doubled.min(self.max).mul_f64(0.75 + jitter.clamp(0.0, 1.0) / 2.0)
    }
}

/// An event to be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Letter {
    pub room: String,
    pub id: String,
    pub body: String,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    id: String,
    body: String,
}

/// The events of one room.
#[derive(Debug)]
struct Line {
    waiting: VecDeque<Waiting>,
    /// Whether the first event is being sent.
    busy: bool,
    /// Number of failed attempts of the first event.
    failed: u32,
    due: Instant,
    /// Position in the order of rooms. It is set when the room is queued, and after each attempt.
    turn: u64,
}

/// Result of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The event will be sent again.
    Again,
    /// The event was given up.
    GivenUp,
}

/// The events that wait for one receiver, in order by room.
#[derive(Debug)]
pub(crate) struct Outbox {
    lines: BTreeMap<String, Line>,
    bound: usize,
    pauses: Pauses,
    /// Number of queued events and attempts so far, which gives rooms their order.
    count: u64,
}

impl Outbox {
    pub(crate) fn new(bound: usize, pauses: Pauses) -> Self {
        Outbox { lines: BTreeMap::new(), bound, pauses, count: 0 }
    }

    /// Queues an event of a room. Returns `true` if another event was dropped: the oldest event that is not being sent
    /// of the room with the most events. So a busy room does not displace others.
    pub(crate) fn push(&mut self, room: &str, id: &str, body: &str, now: Instant) -> bool {
        let full = self.len() >= self.bound;
        if full {
            self.drop_one();
        }
        self.count += 1;
        let number = self.count;
        let fresh =
            || Line { waiting: VecDeque::new(), busy: false, failed: 0, due: now, turn: number };
        let line = self.lines.entry(room.to_owned()).or_insert_with(fresh);
        let (id, body) = (id.to_owned(), body.to_owned());
        line.waiting.push_back(Waiting { number, id, body });
        full
    }

    /// The next event to send, if one is due. Report its outcome with [`Outbox::taken`] or [`Outbox::failed`].
    pub(crate) fn next(&mut self, now: Instant) -> Option<Letter> {
        if self.lines.values().filter(|line| line.busy).count() >= MAX_CONCURRENT {
            return None;
        }
        let ready = self.lines.iter_mut().filter(|(_, line)| !line.busy && line.due <= now);
        // Rooms take turns, so that a busy room does not delay others.
        let (room, line) = ready.min_by_key(|(_, line)| line.turn)?;
        let first = line.waiting.front()?;
        line.busy = true;
        let (id, body) = (first.id.clone(), first.body.clone());
        Some(Letter { room: room.clone(), id, body })
    }

    /// Time at which [`Outbox::next`] may have another event.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.lines.values().filter(|line| !line.busy).map(|line| line.due).min()
    }

    /// Notes that the receiver has accepted the room's first event.
    pub(crate) fn taken(&mut self, room: &str, now: Instant) {
        self.shift(room, now);
    }

    /// Notes that the attempt to send the room's first event failed.
    pub(crate) fn failed(&mut self, room: &str, now: Instant, jitter: f64) -> Failed {
        let Some(line) = self.lines.get_mut(room) else { return Failed::GivenUp };
        line.busy = false;
        line.failed += 1;
        if line.failed >= self.pauses.attempts {
            self.shift(room, now);
            return Failed::GivenUp;
        }
        self.count += 1;
        line.turn = self.count;
        line.due = now + self.pauses.after(line.failed, jitter);
        Failed::Again
    }

    /// Number of events, including those being sent.
    pub(crate) fn len(&self) -> usize {
        self.lines.values().map(|line| line.waiting.len()).sum()
    }

    fn shift(&mut self, room: &str, now: Instant) {
        let Some(line) = self.lines.get_mut(room) else { return };
        line.waiting.pop_front();
        self.count += 1;
        line.turn = self.count;
        (line.busy, line.failed, line.due) = (false, 0, now);
        if line.waiting.is_empty() {
            self.lines.remove(room);
        }
    }

    fn drop_one(&mut self) {
        let droppable = |line: &Line| line.waiting.get(usize::from(line.busy)).map(|w| w.number);
        let lines = self
            .lines
            .iter()
            .filter_map(|(room, line)| Some((line.waiting.len(), Reverse(droppable(line)?), room)));
        let Some(room) = lines.max().map(|(_, _, room)| room.clone()) else { return };
        let Some(line) = self.lines.get_mut(&room) else { return };
        line.waiting.remove(usize::from(line.busy));
        if !line.busy {
            // The next event has had no attempt, but the pause holds for it too.
            line.failed = 0;
        }
        if line.waiting.is_empty() {
            self.lines.remove(&room);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAUSES: Pauses =
        Pauses { first: Duration::from_secs(1), max: Duration::from_secs(8), attempts: 5 };

    fn outbox(bound: usize) -> (Outbox, Instant) {
        (Outbox::new(bound, PAUSES), Instant::now())
    }

    fn body(letter: Option<Letter>) -> Option<String> {
        letter.map(|letter| letter.body)
    }

    #[test]
    fn a_room_waits_for_its_first_event_and_others_do_not() {
        let (mut outbox, now) = outbox(10);
        for (room, text) in [("tea", "1"), ("tea", "2"), ("coffee", "3")] {
            outbox.push(room, text, text, now);
        }
        assert_eq!(body(outbox.next(now)).as_deref(), Some("1"));
        assert_eq!(body(outbox.next(now)).as_deref(), Some("3"));
        assert_eq!(outbox.next(now), None);
        outbox.taken("tea", now);
        assert_eq!(body(outbox.next(now)).as_deref(), Some("2"));
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_then_the_event_is_given_up() {
        let (mut outbox, mut now) = outbox(10);
        outbox.push("tea", "1", "1", now);
        outbox.push("tea", "2", "2", now);
        for seconds in [1, 2, 4, 8] {
            assert_eq!(body(outbox.next(now)).as_deref(), Some("1"));
            assert_eq!(outbox.failed("tea", now, 0.5), Failed::Again);
            let pause = Duration::from_secs(seconds);
            assert_eq!(outbox.due(), Some(now + pause));
            assert_eq!(outbox.next(now + pause / 2), None);
            now += pause;
        }
        outbox.next(now);
        assert_eq!(outbox.failed("tea", now, 0.5), Failed::GivenUp);
        assert_eq!(body(outbox.next(now)).as_deref(), Some("2"));
    }

    #[test]
    fn jitter_moves_a_pause_by_a_quarter_at_most() {
        assert_eq!(PAUSES.after(1, 0.0), Duration::from_millis(750));
        assert_eq!(PAUSES.after(1, 1.0), Duration::from_millis(1250));
        assert_eq!(PAUSES.after(60, 0.5), PAUSES.max);
    }

    #[test]
    fn a_full_outbox_drops_of_the_room_that_has_most_the_oldest_that_is_not_under_way() {
        let (mut outbox, now) = outbox(4);
        for (room, text) in [("coffee", "1"), ("tea", "2"), ("tea", "3"), ("tea", "4")] {
            assert!(!outbox.push(room, text, text, now));
        }
        assert_eq!(body(outbox.next(now)).as_deref(), Some("1"));
        assert_eq!(body(outbox.next(now)).as_deref(), Some("2"));
        assert!(outbox.push("coffee", "5", "5", now));
        outbox.taken("tea", now);
        assert_eq!(body(outbox.next(now)).as_deref(), Some("4"), "the tea's oldest is gone");
        outbox.taken("coffee", now);
        assert_eq!(body(outbox.next(now)).as_deref(), Some("5"));
    }

    #[test]
    fn rooms_take_turns() {
        let (mut outbox, now) = outbox(10);
        for text in ["1", "2", "3"] {
            outbox.push("tea", text, text, now);
        }
        outbox.next(now);
        outbox.push("coffee", "4", "4", now);
        outbox.taken("tea", now);
        assert_eq!(body(outbox.next(now)).as_deref(), Some("4"));
    }

    proptest! {
        #[test]
        fn whatever_fails_the_bound_holds_and_rooms_keep_their_order(
            steps in prop::collection::vec((0u8..5, 0usize..4, any::<bool>()), 0..200),
        ) {
            let (mut outbox, mut now) = outbox(20);
            let rooms = ["a", "b", "c", "d"];
            let mut last = [None; 4];
            let mut busy: Vec<usize> = Vec::new();
            for (number, (step, room, fine)) in steps.into_iter().enumerate() {
                now += Duration::from_millis(700);
                match step {
                    0..=1 => {
                        let text = format!("{number:04}");
                        outbox.push(rooms[room], &text, &text, now);
                    }
                    2..=3 => if let Some(letter) = outbox.next(now) {
                        let at = rooms.iter().position(|r| *r == letter.room).unwrap();
                        prop_assert!(!busy.contains(&at), "two of a room are under way");
                        let number: usize = letter.body.parse().unwrap();
                        prop_assert!(last[at].is_none_or(|last| number >= last));
                        last[at] = Some(number);
                        busy.push(at);
                    },
                    _ => if let Some(at) = busy.pop() {
                        if fine { outbox.taken(rooms[at], now) } else { outbox.failed(rooms[at], now, 0.3); }
                    },
                }
                prop_assert!(outbox.len() <= 20);
            }
        }
    }
}
