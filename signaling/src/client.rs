//! The address of the client that makes a request. It is the connection's address, or behind trusted proxies the one in
//! `X-Forwarded-For`.

use std::net::IpAddr;
use std::str::FromStr;

use axum::http::HeaderMap;
use thiserror::Error;

/// The client's address, an extension of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddr(pub IpAddr);

/// A network: an address and the length of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    prefix: u8,
}

/// The text is neither `IP` nor `IP/PREFIX`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is neither IP nor IP/PREFIX")]
pub struct NoNetwork(String);

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let wrong = || NoNetwork(text.to_owned());
        let (ip, prefix) = match text.split_once('/') {
            Some((ip, prefix)) => (ip, Some(prefix.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let first: IpAddr = ip.parse().map_err(|_| wrong())?;
        let max = if first.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(max);
        if prefix > max { Err(wrong()) } else { Ok(Network { first, prefix }) }
    }
}

impl Network {
    /// Whether an address is in the network.
    pub fn contains(&self, ip: IpAddr) -> bool {
        match (self.first, ip.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(ip)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                (first.to_bits() ^ ip.to_bits()) & mask == 0
            }
            (IpAddr::V6(first), IpAddr::V6(ip)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                (first.to_bits() ^ ip.to_bits()) & mask == 0
            }
            _ => false,
        }
    }
}

/// Proxies whose `X-Forwarded-For` is trusted. None by default: any client can send that header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(pub Vec<Network>);

impl TrustedProxies {
    /// The client's address. Each proxy appends the address of its peer, so the last address that is not a trusted
    /// proxy's is the client's. Addresses before it may be forged.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> ClientAddr {
        let mut client = peer.to_canonical();
        let hops = headers.get_all("x-forwarded-for").iter().filter_map(|v| v.to_str().ok());
        let hops: Vec<&str> = hops.flat_map(|v| v.split(',')).map(str::trim).collect();
        for hop in hops.into_iter().rev() {
            if !self.is_trusted(client) {
                break;
            }
            // A proxy with a malformed header counts as the client.
            let Ok(hop) = hop.parse::<IpAddr>() else { break };
            client = hop.to_canonical();
        }
        ClientAddr(client)
    }

    /// Whether an address is a trusted proxy's.
    pub(crate) fn is_trusted(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(ip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let trusted = TrustedProxies(trusted.iter().map(|t| t.parse().unwrap()).collect());
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        trusted.client(peer.parse().unwrap(), &headers).0.to_string()
    }

    #[test]
    fn nobody_is_believed_who_is_not_trusted() {
        assert_eq!(client(&[], "192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
        assert_eq!(client(&["10.0.0.0/8"], "192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
    }

    #[test]
    fn the_last_address_that_is_no_proxys_is_the_clients() {
        let trusted = ["10.0.0.0/8", "::1"];
        assert_eq!(client(&trusted, "10.1.2.3", &["198.51.100.7"]), "198.51.100.7");
        assert_eq!(client(&trusted, "::1", &["1.1.1.1, 198.51.100.7, 10.9.9.9"]), "198.51.100.7");
        assert_eq!(client(&trusted, "::ffff:10.1.2.3", &["1.1.1.1", "2001:db8::7"]), "2001:db8::7");
        assert_eq!(client(&trusted, "10.1.2.3", &[]), "10.1.2.3");
        assert_eq!(client(&trusted, "10.1.2.3", &["unknown"]), "10.1.2.3");
    }

    #[test]
    fn networks_are_addresses_with_a_prefix() {
        let network = |text: &str| text.parse::<Network>();
        let is_in = |ip: &str, net: &str| network(net).unwrap().contains(ip.parse().unwrap());
        assert!(!is_in("192.0.2.9", "192.0.2.0/29") && is_in("192.0.2.7", "192.0.2.0/29"));
        assert!(is_in("2001:db8:1::9", "2001:db8::/32") && !is_in("2001:db9::9", "2001:db8::/32"));
        assert!(is_in("1.2.3.4", "0.0.0.0/0") && !is_in("::1", "0.0.0.0/0"));
        for wrong in ["x", "1.2.3.4/33", "::1/129", "1.2.3.4/", "1.2.3.4/a"] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
    }
}
