//! A client's access link, emulated between its socket and its connection.

use std::net::SocketAddr;
use std::time::Instant;

use windlass_netem::{Conditions, Course, Link, LinkStats, Profile};

use super::downlinks::{Downlink, Downlinks};

/// The emulated links of one client, in both directions.
pub(super) struct Access {
    down: Link<(Vec<u8>, SocketAddr)>,
    up: Link<(Vec<u8>, SocketAddr)>,
    /// The figures of the downlink; only subscribers have them.
    watched: Option<Downlink>,
}

impl Access {
    /// The link of a subscriber: the profile in both directions.
    pub(super) fn of_subscriber(profile: Profile, seed: u64, now: Instant) -> Access {
        let down = profile.down(seed);
        let watched = Some(Downlink::new(down.clone(), now));
        Access { watched, ..Access::new(down, profile.up(), seed, now) }
    }

    /// The link of a publisher, whose bitrate does not adapt. Towards the server it has the profile's downlink, and
    /// no limit back.
    pub(super) fn of_publisher(profile: Profile, seed: u64, now: Instant) -> Access {
        Access::new(Course::steady(Conditions::default()), profile.down(seed), seed, now)
    }

    fn new(down: Course, up: Course, seed: u64, now: Instant) -> Access {
        let (down, up) = (Link::new(down, seed, now), Link::new(up, !seed, now));
        Access { down, up, watched: None }
    }

    /// Takes a datagram from the server.
    pub(super) fn came(&mut self, now: Instant, data: &[u8], source: SocketAddr) {
        self.down.push(now, data.len(), (data.to_vec(), source));
    }

    /// The next datagram that has come through to the client, and its source.
    pub(super) fn arrived(&mut self, now: Instant) -> Option<(Vec<u8>, SocketAddr)> {
        let (datagram, waited) = self.down.poll(now)?;
        if let Some(watched) = &mut self.watched {
            watched.arrived(now, datagram.0.len(), waited);
        }
        Some(datagram)
    }

    /// Brings the totals of the downlink up to date, if it is watched.
    pub(super) fn tell(&mut self, now: Instant, totals: &mut Downlinks) {
        if let Some(watched) = &mut self.watched {
            watched.tell(now, self.down.stats(), totals);
        }
    }

    /// Takes a datagram from the client.
    pub(super) fn send(&mut self, now: Instant, data: &[u8], to: SocketAddr) {
        self.up.push(now, data.len(), (data.to_vec(), to));
    }

    /// The next datagram that has come through to the server, and its destination.
    pub(super) fn sent(&mut self, now: Instant) -> Option<(Vec<u8>, SocketAddr)> {
        self.up.poll(now).map(|(datagram, _)| datagram)
    }

    /// The time at which the next datagram comes through.
    pub(super) fn timeout(&self) -> Option<Instant> {
        [self.down.timeout(), self.up.timeout()].into_iter().flatten().min()
    }

    /// The counters of the links down and up, each with the number of datagrams that are still on their way.
    pub(super) fn stats(&self) -> [(LinkStats, usize); 2] {
        [(self.down.stats(), self.down.len()), (self.up.stats(), self.up.len())]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn both_ways_take_their_time() {
        let now = Instant::now();
        let at: SocketAddr = "192.0.2.1:7".parse().expect("address");
        let mut access = Access::of_subscriber(Profile::Dsl, 1, now);
        access.came(now, &[1; 100], at);
        access.send(now, &[2; 100], at);
        assert_eq!((access.arrived(now), access.sent(now)), (None, None));
        assert!(access.timeout().is_some());
        let later = now + Duration::from_millis(60);
        assert_eq!(access.arrived(later), Some((vec![1; 100], at)));
        assert_eq!(access.sent(later), Some((vec![2; 100], at)));
        let [down, up] = access.stats();
        assert_eq!((down.0.sent, down.0.arrived, down.1), (1, 1, 0));
        assert_eq!((up.0.sent, up.0.arrived, up.1), (1, 1, 0));
    }
}
