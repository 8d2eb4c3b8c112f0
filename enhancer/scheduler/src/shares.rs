//! Fair shares: how much of a scarce resource each stream may use before others get less.
//!
//! Rooms have equal shares. In a room each publisher has an equal part, and in that part each of its streams. A
//! publisher in several rooms is divided among them. Rooms with the same publisher alone count as one room together, so
//! that nobody gets more by opening rooms. Source: max-min fairness, as in Demers, Keshav and Shenker, *Analysis and
//! simulation of a fair queueing algorithm* (1989).
//!
//! Pure. Allocates only when the number of streams reaches a new maximum.

use windlass_types::Owner;

/// Computes the fair shares of streams, and keeps its working memory from call to call.
#[derive(Debug, Default)]
pub struct Shares {
    members: Vec<Member>,
    shares: Vec<f64>,
}

/// A stream's fair share of inference time, and what was spent on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FairShare {
    /// Room and publisher of the stream.
    pub owner: Owner,
    /// The stream's share of what is spent on all streams, 0 to 1.
    pub share: f64,
    /// Inference seconds that were spent on the stream lately.
    pub spent_s: f64,
}

impl FairShare {
    pub(crate) fn new(owner: Owner) -> Self {
        FairShare { owner, share: 1.0, spent_s: 0.0 }
    }
}

#[derive(Debug, Clone, Copy)]
struct Member {
    owner: Owner,
    index: usize,
    /// Fraction of each room's share that the publisher gets.
    part: f64,
}

impl Shares {
    /// Share of each stream, in the order of their owners. All shares add up to 1.
    pub fn of(&mut self, owners: impl Iterator<Item = Owner>) -> &[f64] {
        self.members.clear();
        self.members.extend(owners.enumerate().map(|(index, owner)| Member {
            owner,
            index,
            part: 1.0,
        }));
        self.members.sort_unstable_by_key(|m| (m.owner.publisher, m.owner.room, m.index));
        for publisher in self.members.chunk_by_mut(|a, b| a.owner.publisher == b.owner.publisher) {
            let rooms = publisher.chunk_by(|a, b| a.owner.room == b.owner.room).count() as f64;
            for member in publisher {
                member.part = 1.0 / rooms;
            }
        }
        self.members.sort_unstable_by_key(|m| (m.owner.room, m.owner.publisher, m.index));
        self.shares.clear();
        self.shares.resize(self.members.len(), 0.0);
        let mut all = 0.0;
        for room in self.members.chunk_by(|a, b| a.owner.room == b.owner.room) {
            let publishers = || room.chunk_by(|a, b| a.owner.publisher == b.owner.publisher);
            let parts: f64 = publishers().map(|streams| streams[0].part).sum();
            let share = parts.min(1.0);
            all += share;
            for streams in publishers() {
                let each = share * streams[0].part / parts / streams.len() as f64;
                for member in streams {
                    self.shares[member.index] = each;
                }
            }
        }
        self.shares.iter_mut().for_each(|share| *share /= all);
        &self.shares
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shares(owners: &[(u64, u64)]) -> Vec<f64> {
        let owners = owners.iter().map(|&(room, publisher)| Owner { room, publisher });
        Shares::default().of(owners).to_vec()
    }

    fn near(a: &[f64], b: &[f64]) {
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9), "{a:?}, not {b:?}");
    }

    #[test]
    fn rooms_have_equal_shares_however_many_publish_in_them() {
        near(
            &shares(&[(1, 1), (1, 2), (1, 3), (1, 4), (2, 5)]),
            &[0.125, 0.125, 0.125, 0.125, 0.5],
        );
    }

    #[test]
    fn a_publisher_has_no_more_of_its_room_by_several_streams() {
        near(&shares(&[(1, 1), (1, 1), (1, 2)]), &[0.25, 0.25, 0.5]);
    }

    #[test]
    fn six_rooms_of_one_publisher_count_as_one() {
        let mut owners: Vec<_> = (1..=6).map(|room| (room, 1)).collect();
        owners.push((7, 2));
        let shares = shares(&owners);
        near(&shares[..6], &[1.0 / 12.0; 6]);
        near(&shares[6..], &[0.5]);
    }

    #[test]
    fn a_room_keeps_its_share_when_somebody_joins_who_is_in_many() {
        let shares = shares(&[(1, 1), (1, 2), (2, 2), (3, 2), (4, 2)]);
        // Room 1 is whole; the three others are a quarter each.
        near(&[shares[0] + shares[1], shares[2]], &[1.0 / 1.75, 0.25 / 1.75]);
        near(&[shares[0] / shares[1]], &[4.0]);
    }

    proptest! {
        #[test]
        fn all_shares_are_one_and_none_is_nothing(
            owners in proptest::collection::vec((0u64..8, 0u64..8), 1..60),
        ) {
            let shares = shares(&owners);
            prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(shares.iter().all(|&share| share > 0.0));
        }

        #[test]
        fn nobody_has_a_greater_share_by_opening_rooms(
            others in proptest::collection::vec((10u64..14, 10u64..18), 1..30), rooms in 2u64..20,
        ) {
            let of_one = |rooms: u64| {
                let mut owners = others.clone();
                owners.extend((100..100 + rooms).map(|room| (room, 1)));
                shares(&owners)[others.len()..].iter().sum::<f64>()
            };
            prop_assert!((of_one(rooms) - of_one(1)).abs() < 1e-9);
        }
    }
}
