//! Finds the addresses by which others reach this machine.

use std::net::IpAddr;

use thiserror::Error;
use windlass_doctor::{is_private, seen};

/// Public STUN servers, of two unrelated companies.
const WELL_KNOWN: [&str; 2] = ["stun:stun.cloudflare.com:3478", "stun:stun.l.google.com:19302"];

/// Why no address was found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}. Name {}", self.found(), AddressError::MEND)]
pub struct AddressError {
    /// Description of this machine's own addresses.
    own: String,
    /// STUN servers that were asked, and their errors.
    asked: String,
}

impl AddressError {
    /// Advice that solves the error.
    pub const MEND: &str = "the address by --advertise PUBLIC_IP, or a STUN server that answers by --turn-url stun:HOST";

    /// The problem without the advice.
    pub fn found(&self) -> String {
        let AddressError { own, asked } = self;
        format!("{own}, and no STUN server says where others see it ({asked})")
    }
}

/// Addresses by which others reach this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The addresses, at least one.
    pub addresses: Vec<IpAddr>,
    /// STUN server that was needed to find one of them; `None` if none was.
    pub by: Option<String>,
}

/// Finds the addresses. `own` are the source addresses of this machine's outward routes. If they are private, the first
/// of `servers` (`stun:HOST[:PORT]`; empty: well-known ones) that answers is asked. Blocks until then.
///
/// # Errors
///
/// Fails if all of `own` are private and no server answers.
pub fn find(own: &[IpAddr], servers: &[String]) -> Result<Found, AddressError> {
    let (private, mut addresses): (Vec<_>, Vec<_>) = own.iter().partition(|ip| is_private(**ip));
    // A machine whose IPv6 is public may all the same have its IPv4 behind a NAT.
    if !addresses.is_empty() && !private.iter().any(IpAddr::is_ipv4) {
        return Ok(Found { addresses, by: None });
    }
    let well_known = || WELL_KNOWN.map(str::to_owned).to_vec();
    let servers = if servers.is_empty() { well_known() } else { servers.to_vec() };
    let mut failed = Vec::new();
    for server in servers {
        match seen(&server) {
            Ok(ip) => {
                if !addresses.contains(&ip) {
                    addresses.push(ip);
                }
                return Ok(Found { addresses, by: Some(server) });
            }
            Err(error) => failed.push(format!("{server}: {error}")),
        }
    }
    if !addresses.is_empty() {
        tracing::warn!(
            asked = failed.join(", "),
            "no STUN server answers: browsers only receive the IPv6 address; give the IPv4 address with --advertise"
        );
        return Ok(Found { addresses, by: None });
    }
    let list = private.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let own = if list.is_empty() {
        "this machine has no route outward".to_owned()
    } else {
        format!("this machine's own address is private ({list})")
    };
    Err(AddressError { own, asked: failed.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(all: &[&str]) -> Vec<IpAddr> {
        all.iter().map(|ip| ip.parse().unwrap()).collect()
    }

    /// Nobody answers there.
    const SILENT: &str = "stun:127.0.0.1:9";

    #[test]
    fn public_addresses_of_the_machines_own_need_nobody_else() {
        for own in [&["203.0.113.5"][..], &["203.0.113.5", "2001:db8::1"], &["2001:db8::1"]] {
            let found = find(&ips(own), &[SILENT.to_owned()]).unwrap();
            assert_eq!(found, Found { addresses: ips(own), by: None });
        }
    }

    #[test]
    fn what_nobody_says_is_an_error_that_names_the_option() {
        for (own, part) in [(&["10.0.0.5"][..], "private (10.0.0.5)"), (&[], "no route outward")] {
            let error = find(&ips(own), &[SILENT.to_owned()]).unwrap_err().to_string();
            for part in [part, SILENT, "no answer", "--advertise PUBLIC_IP"] {
                assert!(error.contains(part), "{error}");
            }
        }
        let found = find(&ips(&["10.0.0.5", "2001:db8::1"]), &[SILENT.to_owned()]).unwrap();
        assert_eq!(found.addresses, ips(&["2001:db8::1"]));
    }
}
