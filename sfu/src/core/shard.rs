//! Rooms spread over several cores. Each [`Core`](super::Core) has whole rooms; this file holds what the cores share.
//!
//! The kernel may give a datagram to any core's thread, so all cores know which of them owns an address or an ICE user
//! name fragment ([`Shard::other_owner`]). Limits of the whole server (rooms, participants, unauthenticated datagrams)
//! are counted for all cores together.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use super::routing::addresses::RemoteAddr;
use super::routing::ufrag;
use super::routing::unauthenticated::UnauthenticatedLimit;

/// A core's number among several cores, and their shared state. The default is a single core.
#[derive(Debug, Clone)]
pub struct Shard {
    number: usize,
    count: usize,
    shared: Arc<Directory>,
}

#[derive(Debug, Default)]
struct Directory {
    owners: RwLock<Owners>,
    unauthenticated: Mutex<UnauthenticatedLimit>,
    rooms: AtomicUsize,
    loopback_rooms: AtomicUsize,
    participants: AtomicUsize,
    renditions: AtomicUsize,
}

/// The number of the core that owns each address and user name fragment.
#[derive(Debug, Default)]
struct Owners {
    addresses: HashMap<RemoteAddr, usize>,
    ufrags: HashMap<String, usize>,
}

impl Default for Shard {
    fn default() -> Shard {
        Shard { number: 0, count: 1, shared: Arc::default() }
    }
}

impl Shard {
    /// `count` shards with one shared state; at least one.
    pub fn all(count: usize) -> Vec<Shard> {
        let count = count.max(1);
        let shared = Arc::<Directory>::default();
        (0..count).map(|number| Shard { number, count, shared: shared.clone() }).collect()
    }

    /// The core's number, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The core that owns a datagram, if it is another one. A STUN request names its receiver; others are known by
    /// their address.
    pub fn other_owner(&self, source: RemoteAddr, datagram: &[u8]) -> Option<usize> {
        if self.count == 1 {
            return None;
        }
        let owners = self.read();
        let named = ufrag::ufrag(datagram).and_then(|ufrag| owners.ufrags.get(ufrag));
        named.or_else(|| owners.addresses.get(&source)).copied().filter(|&n| n != self.number)
    }

    /// The core's first id. Each core has every `count`-th id, so that ids are unique without a lock.
    pub(crate) fn first_id(&self) -> u64 {
        self.number as u64 + 1
    }

    /// The core's next id.
    pub(crate) fn next_id(&self, after: u64) -> u64 {
        after + self.count as u64
    }

    /// Whether this core has assigned `id`, where `next` is the one that it assigns next.
    pub(crate) fn has_assigned(&self, id: u64, next: u64) -> bool {
        (1..next).contains(&id) && Shard::of_id(id, self.count) == self.number
    }

    /// Index of the core, of `count` cores, that has assigned an id.
    pub fn of_id(id: u64, count: usize) -> usize {
        (id.wrapping_sub(1) % count as u64) as usize
    }

    /// Makes this core the owner of an address.
    pub(crate) fn add_address(&self, address: RemoteAddr) {
        if self.count > 1 {
            self.write().addresses.insert(address, self.number);
        }
    }

    /// Ends this core's ownership of an address; another core may own it by now.
    pub(crate) fn remove_address(&self, address: &RemoteAddr) {
        if self.count > 1 {
            let mut owners = self.write();
            if owners.addresses.get(address) == Some(&self.number) {
                owners.addresses.remove(address);
            }
        }
    }

    /// Makes this core the owner of a user name fragment.
    pub(crate) fn add_ufrag(&self, ufrag: &str) {
        if self.count > 1 {
            self.write().ufrags.insert(ufrag.to_owned(), self.number);
        }
    }

    /// Ends this core's ownership of a user name fragment.
    pub(crate) fn remove_ufrag(&self, ufrag: &str) {
        if self.count > 1 {
            self.write().ufrags.remove(ufrag);
        }
    }

    /// Whether a datagram of an unauthenticated address may be processed; `max` a second for all cores together.
    pub(crate) fn admit_unauthenticated(&self, now: Instant, ip: IpAddr, max: u32) -> bool {
        let limit = &self.shared.unauthenticated;
        limit.lock().unwrap_or_else(PoisonError::into_inner).admit(now, ip, max)
    }

    /// Counts one more room; false if all cores together have `max`. Loopback rooms are counted by themselves.
    pub(crate) fn acquire_room(&self, loopback: bool, max: usize) -> bool {
        acquire(self.rooms(loopback), max)
    }

    fn rooms(&self, loopback: bool) -> &AtomicUsize {
        if loopback { &self.shared.loopback_rooms } else { &self.shared.rooms }
    }

    /// Counts one more participant; false if all cores together have `max`.
    pub(crate) fn acquire_participant(&self, max: usize) -> bool {
        acquire(&self.shared.participants, max)
    }

    /// Counts one more rendition; false if all cores together have `max`.
    pub(crate) fn acquire_rendition(&self, max: usize) -> bool {
        acquire(&self.shared.renditions, max)
    }

    /// Counts one rendition less.
    pub(crate) fn release_rendition(&self) {
        self.shared.renditions.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts one room less.
    pub(crate) fn release_room(&self, loopback: bool) {
        self.rooms(loopback).fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts one participant less.
    pub(crate) fn release_participant(&self) {
        self.shared.participants.fetch_sub(1, Ordering::Relaxed);
    }

    fn read(&self) -> RwLockReadGuard<'_, Owners> {
        self.shared.owners.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Owners> {
        self.shared.owners.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn acquire(count: &AtomicUsize, max: usize) -> bool {
    let one_more = |n: usize| (n < max).then_some(n + 1);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn remote(port: u16) -> RemoteAddr {
        SocketAddr::from(([192, 0, 2, 1], port)).into()
    }

    #[test]
    fn an_address_is_the_one_cores_that_heard_it_last() {
        let all = Shard::all(3);
        let owner = |from: usize| all[from].other_owner(remote(9), &[0x80; 20]);
        assert_eq!(owner(0), None, "nobody's: whoever has it looks");
        all[1].add_address(remote(9));
        assert_eq!([0, 1, 2].map(owner), [Some(1), None, Some(1)]);
        all[2].add_address(remote(9));
        all[1].remove_address(&remote(9));
        assert_eq!([0, 1, 2].map(owner), [Some(2), Some(2), None]);
        all[2].remove_address(&remote(9));
        assert_eq!([0, 1, 2].map(owner), [None; 3]);
    }

    #[test]
    fn a_request_is_for_whom_it_says_whatever_its_address() {
        let all = Shard::all(2);
        let mut request = vec![0, 1, 0, 12, 0x21, 0x12, 0xa4, 0x42];
        request.extend([7; 12]);
        request.extend([0, 6, 0, 5]);
        request.extend(b"abc:d\0\0\0");
        all[0].add_address(remote(9));
        assert_eq!(all[1].other_owner(remote(9), &request), Some(0));
        all[1].add_ufrag("abc");
        assert_eq!(all[0].other_owner(remote(9), &request), Some(1));
        assert_eq!(all[1].other_owner(remote(9), &request), None);
        all[1].remove_ufrag("abc");
        assert_eq!(all[0].other_owner(remote(9), &request), None);
    }

    #[test]
    fn the_only_core_remembers_nothing() {
        let only = Shard::default();
        only.add_address(remote(9));
        only.add_ufrag("abc");
        assert!(only.read().addresses.is_empty() && only.read().ufrags.is_empty());
        assert_eq!(only.other_owner(remote(9), &[0x80; 20]), None);
    }

    #[test]
    fn numbers_say_who_gave_them_out() {
        for of in 1..5 {
            let mut all = Vec::new();
            for shard in Shard::all(of) {
                let mut next = shard.first_id();
                for _ in 0..4 {
                    all.push(next);
                    assert_eq!(Shard::of_id(next, of), shard.number());
                    assert!(!shard.has_assigned(next, next));
                    let given = next;
                    next = shard.next_id(given);
                    assert!(shard.has_assigned(given, next));
                    assert!(of == 1 || !shard.has_assigned(given + 1, next));
                }
            }
            all.sort_unstable();
            assert_eq!(all, (1..=4 * of as u64).collect::<Vec<_>>());
        }
        assert!(!Shard::default().has_assigned(0, 9));
    }

    #[test]
    fn places_are_counted_for_all_together() {
        let all = Shard::all(2);
        let room = |at: usize| all[at].acquire_room(false, 2);
        assert!(room(0) && room(1) && !room(0));
        assert!(
            all[0].acquire_room(true, 1) && !all[1].acquire_room(true, 1),
            "others of their own"
        );
        all[1].release_room(true);
        assert!(!room(0));
        all[1].release_room(false);
        assert!(room(0));
        assert!(all[0].acquire_participant(1) && !all[1].acquire_participant(1));
        all[0].release_participant();
        assert!(all[1].acquire_participant(1));
        let ip = "192.0.2.7".parse().expect("address");
        let now = Instant::now();
        assert!(
            all[0].admit_unauthenticated(now, ip, 2)
                && all[1].admit_unauthenticated(now, ip, 2)
                && !all[0].admit_unauthenticated(now, ip, 2)
        );
    }
}
