//! Limits of TCP connections, in total and for one address.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::core::rate_limit_address;

/// Why a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The total limit is reached.
    Full,
    /// The limit of the address is reached.
    Address,
}

/// The open connections.
#[derive(Debug)]
pub(super) struct Admission {
    max: usize,
    max_per_address: usize,
    open: usize,
    by_address: HashMap<IpAddr, usize>,
}

impl Admission {
    /// Limits without any open connection. `max_per_address` is 0 where one address has no limit.
    pub(super) fn new(max: usize, max_per_address: usize) -> Admission {
        Admission { max, max_per_address, open: 0, by_address: HashMap::new() }
    }

    /// Admits or refuses a connection.
    pub(super) fn admit(&mut self, ip: IpAddr) -> Result<(), Refused> {
        if self.open >= self.max {
            return Err(Refused::Full);
        }
        if let Some(ip) = rate_limit_address(ip).filter(|_| self.max_per_address > 0) {
            let count = self.by_address.entry(ip).or_default();
            if *count >= self.max_per_address {
                return Err(Refused::Address);
            }
            *count += 1;
        }
        self.open += 1;
        Ok(())
    }

    /// Counts one connection less. To be called when an admitted connection has ended.
    pub(super) fn end(&mut self, ip: IpAddr) {
        self.open = self.open.saturating_sub(1);
        let Some(ip) = rate_limit_address(ip) else { return };
        if let Some(count) = self.by_address.get_mut(&ip) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&ip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("address")
    }

    #[test]
    fn one_address_leaves_room_for_others_and_what_ends_makes_room() {
        let mut admission = Admission::new(3, 2);
        let (one, other) = (ip("192.0.2.1"), ip("2001:db8::1"));
        assert_eq!([one, one].map(|ip| admission.admit(ip)), [Ok(()); 2]);
        assert_eq!(admission.admit(one), Err(Refused::Address));
        assert_eq!(admission.admit(other), Ok(()));
        assert_eq!(admission.admit(ip("192.0.2.9")), Err(Refused::Full));
        admission.end(one);
        assert_eq!(admission.admit(ip("2001:db8::2")), Ok(()), "the same 64 bits, a second one");
        admission.end(other);
        assert_eq!(admission.admit(ip("2001:db8::3")), Ok(()));
        for ip in [one, other, other] {
            admission.end(ip);
        }
        assert!(admission.by_address.is_empty() && admission.open == 0);
    }

    #[test]
    fn the_machine_itself_is_bound_by_the_whole_alone() {
        let mut admission = Admission::new(3, 1);
        assert_eq!([(); 3].map(|()| admission.admit(ip("127.0.0.1"))), [Ok(()); 3]);
        assert_eq!(admission.admit(ip("127.0.0.1")), Err(Refused::Full));
    }
}
