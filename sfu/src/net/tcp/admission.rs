//! How many connections there may be, in all and of one address.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::core::counted_address;

/// Why a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// There are as many as there may be.
    Full,
    /// Its address has as many as it may have.
    Address,
}

/// The connections that there are.
#[derive(Debug)]
pub(super) struct Admission {
    most: usize,
    most_of_one: usize,
    open: usize,
    of: HashMap<IpAddr, usize>,
}

impl Admission {
    /// None yet. `most_of_one`: of one address; 0 for no bound.
    pub(super) fn new(most: usize, most_of_one: usize) -> Admission {
        Admission { most, most_of_one, open: 0, of: HashMap::new() }
    }

    /// Lets one in, or does not.
    pub(super) fn admit(&mut self, ip: IpAddr) -> Result<(), Refused> {
        if self.open >= self.most {
            return Err(Refused::Full);
        }
        if let Some(ip) = counted_address(ip).filter(|_| self.most_of_one > 0) {
            let of = self.of.entry(ip).or_default();
            if *of >= self.most_of_one {
                return Err(Refused::Address);
            }
            *of += 1;
        }
        self.open += 1;
        Ok(())
    }

    /// One that was let in has ended.
    pub(super) fn end(&mut self, ip: IpAddr) {
        self.open = self.open.saturating_sub(1);
        let Some(ip) = counted_address(ip) else { return };
        if let Some(of) = self.of.get_mut(&ip) {
            *of -= 1;
            if *of == 0 {
                self.of.remove(&ip);
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
        assert!(admission.of.is_empty() && admission.open == 0);
    }

    #[test]
    fn the_machine_itself_is_bound_by_the_whole_alone() {
        let mut admission = Admission::new(3, 1);
        assert_eq!([(); 3].map(|()| admission.admit(ip("127.0.0.1"))), [Ok(()); 3]);
        assert_eq!(admission.admit(ip("127.0.0.1")), Err(Refused::Full));
    }
}
