//! Rooms spread over several cores: each [`Core`](super::Core) has some of them whole, and what all cores share is here.
//!
//! One socket's datagrams may come to any of the cores' threads, so all know whose connection an address or a user name
//! fragment belongs to ([`Shard::owner`]). What bounds the whole server (rooms, participants, what strangers may send) is
//! counted for all of them together.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use super::remote::Remote;
use super::strangers::Strangers;
use super::ufrag;

/// Which of several cores one is, and what it shares with the others. The default is the only one.
#[derive(Debug, Clone)]
pub struct Shard {
    number: usize,
    of: usize,
    shared: Arc<Directory>,
}

#[derive(Debug, Default)]
struct Directory {
    known: RwLock<Known>,
    strangers: Mutex<Strangers>,
    rooms: AtomicUsize,
    loopback_rooms: AtomicUsize,
    participants: AtomicUsize,
}

/// By the number of the core that has them.
#[derive(Debug, Default)]
struct Known {
    addresses: HashMap<Remote, usize>,
    ufrags: HashMap<String, usize>,
}

impl Default for Shard {
    fn default() -> Shard {
        Shard { number: 0, of: 1, shared: Arc::default() }
    }
}

impl Shard {
    /// So many that share everything; at least one.
    pub fn all(of: usize) -> Vec<Shard> {
        let of = of.max(1);
        let shared = Arc::<Directory>::default();
        (0..of).map(|number| Shard { number, of, shared: shared.clone() }).collect()
    }

    /// Its number, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Whose datagram it is, where it is another core's: a STUN request says for whom it is, for all others their address does.
    pub fn elsewhere(&self, source: Remote, datagram: &[u8]) -> Option<usize> {
        if self.of == 1 {
            return None;
        }
        let known = self.read();
        let named = ufrag::ufrag(datagram).and_then(|ufrag| known.ufrags.get(ufrag));
        named.or_else(|| known.addresses.get(&source)).copied().filter(|&n| n != self.number)
    }

    /// The first number of what is numbered by all cores without asking each other.
    pub(super) fn first_number(&self) -> u64 {
        self.number as u64 + 1
    }

    /// The next one.
    pub(super) fn next_number(&self, after: u64) -> u64 {
        after + self.of as u64
    }

    /// Whether it has given out this number, if `next` is what it gives out next.
    pub(super) fn has_numbered(&self, number: u64, next: u64) -> bool {
        (1..next).contains(&number) && Shard::of_number(number, self.of) == self.number
    }

    /// Which of so many cores has given out a number.
    pub fn of_number(number: u64, of: usize) -> usize {
        (number.wrapping_sub(1) % of as u64) as usize
    }

    /// An address belongs to one of its connections from now on.
    pub(super) fn came(&self, address: Remote) {
        if self.of > 1 {
            self.write().addresses.insert(address, self.number);
        }
    }

    /// It does not any more; another core's it may be.
    pub(super) fn went(&self, address: &Remote) {
        if self.of > 1 {
            let mut known = self.write();
            if known.addresses.get(address) == Some(&self.number) {
                known.addresses.remove(address);
            }
        }
    }

    /// One of its connections has this user name fragment.
    pub(super) fn named(&self, ufrag: &str) {
        if self.of > 1 {
            self.write().ufrags.insert(ufrag.to_owned(), self.number);
        }
    }

    /// And has it no more.
    pub(super) fn forgot(&self, ufrag: &str) {
        if self.of > 1 {
            self.write().ufrags.remove(ufrag);
        }
    }

    /// Whether a datagram of a stranger may be looked at; `most` in a second by all cores together.
    pub(super) fn admit(&self, now: Instant, ip: IpAddr, most: u32) -> bool {
        let strangers = &self.shared.strangers;
        strangers.lock().unwrap_or_else(PoisonError::into_inner).admit(now, ip, most)
    }

    /// A place for one more room, or one more of a participant's own; false where all cores together have `most` of them.
    pub(super) fn take_room(&self, loopback: bool, most: usize) -> bool {
        take(self.rooms(loopback), most)
    }

    /// Rooms of one participant's own take nobody else's place.
    fn rooms(&self, loopback: bool) -> &AtomicUsize {
        if loopback { &self.shared.loopback_rooms } else { &self.shared.rooms }
    }

    /// A place for one more participant; false where all cores together have `most`.
    pub(super) fn take_participant(&self, most: usize) -> bool {
        take(&self.shared.participants, most)
    }

    /// A room has ended.
    pub(super) fn give_room(&self, loopback: bool) {
        self.rooms(loopback).fetch_sub(1, Ordering::Relaxed);
    }

    /// A participant has gone.
    pub(super) fn give_participant(&self) {
        self.shared.participants.fetch_sub(1, Ordering::Relaxed);
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.shared.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.shared.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take(places: &AtomicUsize, most: usize) -> bool {
    let one_more = |n: usize| (n < most).then_some(n + 1);
    places.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn remote(port: u16) -> Remote {
        SocketAddr::from(([192, 0, 2, 1], port)).into()
    }

    #[test]
    fn an_address_is_the_one_cores_that_heard_it_last() {
        let all = Shard::all(3);
        let owner = |from: usize| all[from].elsewhere(remote(9), &[0x80; 20]);
        assert_eq!(owner(0), None, "nobody's: whoever has it looks");
        all[1].came(remote(9));
        assert_eq!([0, 1, 2].map(owner), [Some(1), None, Some(1)]);
        all[2].came(remote(9));
        all[1].went(&remote(9));
        assert_eq!([0, 1, 2].map(owner), [Some(2), Some(2), None]);
        all[2].went(&remote(9));
        assert_eq!([0, 1, 2].map(owner), [None; 3]);
    }

    #[test]
    fn a_request_is_for_whom_it_says_whatever_its_address() {
        let all = Shard::all(2);
        let mut request = vec![0, 1, 0, 12, 0x21, 0x12, 0xa4, 0x42];
        request.extend([7; 12]);
        request.extend([0, 6, 0, 5]);
        request.extend(b"abc:d\0\0\0");
        all[0].came(remote(9));
        assert_eq!(all[1].elsewhere(remote(9), &request), Some(0));
        all[1].named("abc");
        assert_eq!(all[0].elsewhere(remote(9), &request), Some(1));
        assert_eq!(all[1].elsewhere(remote(9), &request), None);
        all[1].forgot("abc");
        assert_eq!(all[0].elsewhere(remote(9), &request), None);
    }

    #[test]
    fn the_only_core_remembers_nothing() {
        let only = Shard::default();
        only.came(remote(9));
        only.named("abc");
        assert!(only.read().addresses.is_empty() && only.read().ufrags.is_empty());
        assert_eq!(only.elsewhere(remote(9), &[0x80; 20]), None);
    }

    #[test]
    fn numbers_say_who_gave_them_out() {
        for of in 1..5 {
            let mut all = Vec::new();
            for shard in Shard::all(of) {
                let mut next = shard.first_number();
                for _ in 0..4 {
                    all.push(next);
                    assert_eq!(Shard::of_number(next, of), shard.number());
                    assert!(!shard.has_numbered(next, next));
                    let given = next;
                    next = shard.next_number(given);
                    assert!(shard.has_numbered(given, next));
                    assert!(of == 1 || !shard.has_numbered(given + 1, next));
                }
            }
            all.sort_unstable();
            assert_eq!(all, (1..=4 * of as u64).collect::<Vec<_>>());
        }
        assert!(!Shard::default().has_numbered(0, 9));
    }

    #[test]
    fn places_are_counted_for_all_together() {
        let all = Shard::all(2);
        let room = |at: usize| all[at].take_room(false, 2);
        assert!(room(0) && room(1) && !room(0));
        assert!(all[0].take_room(true, 1) && !all[1].take_room(true, 1), "others of their own");
        all[1].give_room(true);
        assert!(!room(0));
        all[1].give_room(false);
        assert!(room(0));
        assert!(all[0].take_participant(1) && !all[1].take_participant(1));
        all[0].give_participant();
        assert!(all[1].take_participant(1));
        let ip = "192.0.2.7".parse().expect("address");
        let now = Instant::now();
        assert!(all[0].admit(now, ip, 2) && all[1].admit(now, ip, 2) && !all[0].admit(now, ip, 2));
    }
}
