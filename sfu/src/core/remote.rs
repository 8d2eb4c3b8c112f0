//! Where a client is: an address, and the protocol by which it is reached there.

use std::net::SocketAddr;

use str0m::Candidate;
use str0m::error::IceError;
use str0m::net::{Protocol, TcpType};

/// By what datagrams travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Via {
    /// UDP.
    Udp,
    /// A TCP connection that the client has opened, each datagram framed (RFC 6544, RFC 4571).
    Tcp,
}

impl From<Via> for Protocol {
    fn from(via: Via) -> Protocol {
        match via {
            Via::Udp => Protocol::Udp,
            Via::Tcp => Protocol::Tcp,
        }
    }
}

/// The client's end of a way to it. An address without a protocol is one of UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Remote {
    /// By what.
    pub via: Via,
    /// To or from where.
    pub address: SocketAddr,
}

impl From<SocketAddr> for Remote {
    fn from(address: SocketAddr) -> Remote {
        Remote { via: Via::Udp, address }
    }
}

impl Remote {
    /// The client's end of a TCP connection.
    pub fn tcp(address: SocketAddr) -> Remote {
        Remote { via: Via::Tcp, address }
    }

    /// As the WebRTC stack says it.
    pub(super) fn of_stack(proto: Protocol, address: SocketAddr) -> Remote {
        Remote { via: if proto == Protocol::Udp { Via::Udp } else { Via::Tcp }, address }
    }
}

/// The addresses that clients are told to send to (ICE host candidates).
#[derive(Debug, Clone, Default)]
pub struct Locals {
    /// By UDP.
    pub udp: Vec<SocketAddr>,
    /// By TCP; empty where it is not listened for.
    pub tcp: Vec<SocketAddr>,
}

impl Locals {
    /// As candidates. Clients prefer UDP, by their own priorities.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let udp = self.udp.iter().map(|&a| (a, Candidate::host(a, "udp")));
        let passive = |a| Candidate::builder().tcp().host(a).tcptype(TcpType::Passive).build();
        let tcp = self.tcp.iter().map(|&a| (a, passive(a)));
        let usable = |(address, candidate): (SocketAddr, Result<Candidate, IceError>)| {
            candidate
                .inspect_err(|error| {
                    tracing::warn!(%address, %error, "not an address that clients can send to");
                })
                .ok()
        };
        udp.chain(tcp).filter_map(usable).collect()
    }

    /// Which of them a client at `remote` has sent to, as far as that matters to ICE: one of its protocol and family.
    pub(super) fn towards(&self, remote: Remote) -> Option<SocketAddr> {
        let locals = match remote.via {
            Via::Udp => &self.udp,
            Via::Tcp => &self.tcp,
        };
        let same = locals.iter().find(|local| local.is_ipv4() == remote.address.is_ipv4());
        same.or(locals.first()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(text: &str) -> SocketAddr {
        text.parse().expect("address")
    }

    #[test]
    fn what_came_is_taken_for_sent_to_an_address_of_its_family_and_protocol() {
        let locals = Locals {
            udp: vec![addr("192.0.2.1:7881"), addr("[2001:db8::1]:7881")],
            tcp: vec![addr("192.0.2.1:443")],
        };
        let towards = |remote: Remote| locals.towards(remote);
        assert_eq!(towards(addr("198.51.100.1:9").into()), Some(locals.udp[0]));
        assert_eq!(towards(addr("[2001:db8::9]:9").into()), Some(locals.udp[1]));
        assert_eq!(towards(Remote::tcp(addr("198.51.100.1:9"))), Some(locals.tcp[0]));
        assert_eq!(Locals::default().towards(Remote::tcp(addr("198.51.100.1:9"))), None);
    }
}
