//! Transport addresses of clients and of the server.

use std::net::SocketAddr;

use str0m::Candidate;
use str0m::error::IceError;
use str0m::net::{Protocol, TcpType};

/// Transport protocol of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Via {
    /// UDP.
    Udp,
    /// A TCP connection that the client has opened, with framed datagrams (RFC 6544, RFC 4571).
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

/// Transport address of a client. A plain [`SocketAddr`] means UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RemoteAddr {
    /// Protocol.
    pub via: Via,
    /// Address and port.
    pub address: SocketAddr,
}

impl From<SocketAddr> for RemoteAddr {
    fn from(address: SocketAddr) -> RemoteAddr {
        RemoteAddr { via: Via::Udp, address }
    }
}

impl RemoteAddr {
    /// The client's end of a TCP connection.
    pub fn tcp(address: SocketAddr) -> RemoteAddr {
        RemoteAddr { via: Via::Tcp, address }
    }

    /// The address in our form, from the WebRTC stack's types.
    pub(crate) fn from_stack(proto: Protocol, address: SocketAddr) -> RemoteAddr {
        RemoteAddr { via: if proto == Protocol::Udp { Via::Udp } else { Via::Tcp }, address }
    }
}

/// The server's addresses that clients receive as ICE host candidates.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocalAddrs {
    /// UDP.
    pub udp: Vec<SocketAddr>,
    /// TCP; empty without a TCP listener.
    pub tcp: Vec<SocketAddr>,
}

impl LocalAddrs {
    /// The ICE candidates. Clients prefer UDP, by their own priorities.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let udp = self.udp.iter().map(|&a| (a, Candidate::host(a, "udp")));
        let passive = |a| Candidate::builder().tcp().host(a).tcptype(TcpType::Passive).build();
        let tcp = self.tcp.iter().map(|&a| (a, passive(a)));
        let usable = |(address, candidate): (SocketAddr, Result<Candidate, IceError>)| {
            candidate
                .inspect_err(|error| {
                    tracing::warn!(%address, %error, "advertised address is not a valid ICE candidate: clients do not receive it; correct the advertised addresses");
                })
                .ok()
        };
        udp.chain(tcp).filter_map(usable).collect()
    }

    /// The local address that ICE takes for the destination of a datagram: one of the client's protocol and address
    /// family.
    pub(crate) fn destination(&self, source: RemoteAddr) -> Option<SocketAddr> {
        let locals = match source.via {
            Via::Udp => &self.udp,
            Via::Tcp => &self.tcp,
        };
        let same = locals.iter().find(|local| local.is_ipv4() == source.address.is_ipv4());
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
    fn a_datagram_is_for_a_local_address_of_its_family_and_protocol() {
        let locals = LocalAddrs {
            udp: vec![addr("192.0.2.1:7881"), addr("[2001:db8::1]:7881")],
            tcp: vec![addr("192.0.2.1:443")],
        };
        let destination = |remote: RemoteAddr| locals.destination(remote);
        assert_eq!(destination(addr("198.51.100.1:9").into()), Some(locals.udp[0]));
        assert_eq!(destination(addr("[2001:db8::9]:9").into()), Some(locals.udp[1]));
        assert_eq!(destination(RemoteAddr::tcp(addr("198.51.100.1:9"))), Some(locals.tcp[0]));
        assert_eq!(
            LocalAddrs::default().destination(RemoteAddr::tcp(addr("198.51.100.1:9"))),
            None
        );
    }
}
