//! Bounds what addresses may send that belong to nobody's connection: each such datagram costs a search through all
//! participants.
//!
//! Addresses count by what one customer has (IPv6: 64 bits, RFC 6177). Senders can be forged, so this protects against
//! programs that ask too much, not against a flood from everywhere; that is bounded by what is remembered.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Addresses that are remembered at a time; strangers above that are let through.
const REMEMBERED: usize = 16_384;
const SECOND: Duration = Duration::from_secs(1);

/// What an address counts by; `None` for the machine's own, behind which a proxy may stand for everybody.
pub fn counted_address(ip: IpAddr) -> Option<IpAddr> {
    match ip.to_canonical() {
        ip if ip.is_loopback() => None,
        IpAddr::V4(ip) => Some(ip.into()),
        IpAddr::V6(ip) => Some(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into()),
    }
}

/// Who has sent how much in its current second.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    seen: HashMap<IpAddr, (Instant, u32)>,
}

impl Strangers {
    /// Whether a datagram of a stranger may be looked at; `most` in a second, 0 for no bound.
    pub fn admit(&mut self, now: Instant, ip: IpAddr, most: u32) -> bool {
        let Some(ip) = counted_address(ip).filter(|_| most > 0) else { return true };
        let is_over = |since: Instant| now.saturating_duration_since(since) >= SECOND;
        if self.seen.len() >= REMEMBERED && !self.seen.contains_key(&ip) {
            self.seen.retain(|_, (since, _)| !is_over(*since));
            if self.seen.len() >= REMEMBERED {
                return true;
            }
        }
        let (since, count) = self.seen.entry(ip).or_insert((now, 0));
        if is_over(*since) {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("address")
    }

    #[test]
    fn an_address_may_send_so_much_in_a_second() {
        let (mut strangers, now) = (Strangers::default(), Instant::now());
        let mut sent = |at: Instant, from: &str| strangers.admit(at, ip(from), 2);
        assert!(sent(now, "192.0.2.1") && sent(now, "192.0.2.1") && !sent(now, "192.0.2.1"));
        assert!(sent(now, "192.0.2.2"));
        assert!(sent(now + SECOND, "192.0.2.1"));
    }

    #[test]
    fn a_customer_of_ipv6_is_one_and_the_machine_itself_has_no_bound() {
        let (mut strangers, now) = (Strangers::default(), Instant::now());
        let mut sent = |from: &str| strangers.admit(now, ip(from), 1);
        assert!(sent("2001:db8:0:1::1") && !sent("2001:db8:0:1::2") && sent("2001:db8:0:2::1"));
        assert!(sent("127.0.0.1") && sent("127.0.0.1") && sent("::1") && sent("::1"));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut strangers, now) = (Strangers::default(), Instant::now());
        let many = REMEMBERED as u32 + 100;
        let let_in = (0..many).filter(|n| strangers.admit(now, n.to_be_bytes().into(), 1)).count();
        assert_eq!(let_in, many as usize);
        assert_eq!(strangers.seen.len(), REMEMBERED);
        assert!(strangers.admit(now + SECOND, ip("192.0.2.1"), 1));
        assert_eq!(strangers.seen.len(), 1);
    }
}
