//! Rate limit for datagrams of addresses without a connection: each costs a search by its STUN user name.
//!
//! An address counts by what one customer has (IPv6: its /64, RFC 6177). Source addresses can be forged, so this
//! protects from clients that ask too often, not from a distributed flood; the memory for that is bounded.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Maximum number of addresses counted at a time. While the list is full, other addresses pass unlimited.
const MAX_ADDRESSES: usize = 16_384;
/// Length of a counting window.
const WINDOW: Duration = Duration::from_secs(1);

/// The address by which limits count; `None` for loopback, where a reverse proxy may stand for all clients.
pub fn rate_limit_address(ip: IpAddr) -> Option<IpAddr> {
    match ip.to_canonical() {
        ip if ip.is_loopback() => None,
        IpAddr::V4(ip) => Some(ip.into()),
        IpAddr::V6(ip) => Some(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into()),
    }
}

/// Datagrams of each address in its current window.
#[derive(Debug, Default)]
pub(crate) struct UnauthenticatedLimit {
    windows: HashMap<IpAddr, (Instant, u32)>,
}

impl UnauthenticatedLimit {
    /// Whether a datagram of an unauthenticated address may be processed; `max` a second, 0 for no limit.
    pub(crate) fn admit(&mut self, now: Instant, ip: IpAddr, max: u32) -> bool {
        let Some(ip) = rate_limit_address(ip).filter(|_| max > 0) else { return true };
        let is_over = |since: Instant| now.saturating_duration_since(since) >= WINDOW;
        if self.windows.len() >= MAX_ADDRESSES && !self.windows.contains_key(&ip) {
            self.windows.retain(|_, (since, _)| !is_over(*since));
            if self.windows.len() >= MAX_ADDRESSES {
                return true;
            }
        }
        let (since, count) = self.windows.entry(ip).or_insert((now, 0));
        if is_over(*since) {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count <= max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("address")
    }

    #[test]
    fn an_address_may_send_its_limit_in_a_second() {
        let (mut limit, now) = (UnauthenticatedLimit::default(), Instant::now());
        let mut sent = |at: Instant, from: &str| limit.admit(at, ip(from), 2);
        assert!(sent(now, "192.0.2.1") && sent(now, "192.0.2.1") && !sent(now, "192.0.2.1"));
        assert!(sent(now, "192.0.2.2"));
        assert!(sent(now + WINDOW, "192.0.2.1"));
    }

    #[test]
    fn an_ipv6_prefix_counts_as_one_and_loopback_has_no_limit() {
        let (mut limit, now) = (UnauthenticatedLimit::default(), Instant::now());
        let mut sent = |from: &str| limit.admit(now, ip(from), 1);
        assert!(sent("2001:db8:0:1::1") && !sent("2001:db8:0:1::2") && sent("2001:db8:0:2::1"));
        assert!(sent("127.0.0.1") && sent("127.0.0.1") && sent("::1") && sent("::1"));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut limit, now) = (UnauthenticatedLimit::default(), Instant::now());
        let many = MAX_ADDRESSES as u32 + 100;
        let let_in = (0..many).filter(|n| limit.admit(now, n.to_be_bytes().into(), 1)).count();
        assert_eq!(let_in, many as usize);
        assert_eq!(limit.windows.len(), MAX_ADDRESSES);
        assert!(limit.admit(now + WINDOW, ip("192.0.2.1"), 1));
        assert_eq!(limit.windows.len(), 1);
    }
}
