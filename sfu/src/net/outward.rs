//! The addresses of this machine at which others reach it.

use std::net::{IpAddr, SocketAddr, UdpSocket};

/// The addresses at which this machine's routes to the rest of the world begin: at most one of each family, none
/// without a network. Nothing is sent: connecting a UDP socket only asks the system for the route. (The destinations
/// are those reserved for documentation, RFC 5737 and RFC 3849.)
pub fn outward_addresses() -> Vec<IpAddr> {
    [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")]
        .into_iter()
        .filter_map(|(from, to)| {
            let socket = UdpSocket::bind(from).ok()?;
            socket.connect(to).ok()?;
            socket.local_addr().ok()
        })
        .map(|own: SocketAddr| own.ip())
        .filter(|own| !own.is_loopback() && !own.is_unspecified() && !is_link_local(*own))
        .collect()
}

/// Whether the address has a meaning on one link only.
fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outward_addresses_are_this_machines_own_and_not_loopback() {
        for ip in outward_addresses() {
            assert!(!ip.is_loopback() && !ip.is_unspecified(), "{ip}");
            assert!(UdpSocket::bind((ip, 0)).is_ok(), "{ip} is no address of this machine");
        }
    }
}
