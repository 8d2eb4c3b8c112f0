//! Options of how browsers reach the server: sockets, and the addresses of ICE candidates.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use anyhow::Result;
use windlass_sfu::TcpConfig;

use super::{Invalid, Settings};

/// Listening address of media over TCP: `IP:PORT` or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tcp {
    /// Media over TCP is off.
    Off,
    /// Media over TCP is received at this address.
    At(SocketAddr),
}

impl FromStr for Tcp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Tcp::Off);
        }
        text.parse().map(Tcp::At).map_err(|_| format!("`{text}` is neither IP:PORT nor off"))
    }
}

/// An address for ICE candidates: `[tcp:]IP[:PORT]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Advertise {
    /// The address. Port 0 stands for the port of the socket.
    pub addr: SocketAddr,
    /// Whether the address is for TCP only.
    pub tcp: bool,
}

impl FromStr for Advertise {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (place, tcp) = text.strip_prefix("tcp:").map_or((text, false), |place| (place, true));
        let addr =
            place.parse().or_else(|_| place.parse().map(|ip: IpAddr| SocketAddr::new(ip, 0)));
        match addr {
            Ok(addr) if !can_be_sent_to(addr.ip()) => {
                Err(format!("`{text}` is no address that a browser can send to"))
            }
            Ok(addr) => Ok(Advertise { addr, tcp }),
            Err(_) => Err(format!(
                "`{text}` is neither IP nor IP:PORT (IPv6: [IP]:PORT); names are not looked up, as ICE candidates have \
                 addresses"
            )),
        }
    }
}

/// Whether an ICE candidate may have the address.
fn can_be_sent_to(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            !ip.is_link_local() && !ip.is_broadcast() && !ip.is_multicast() && !ip.is_unspecified()
        }
        IpAddr::V6(ip) => {
            !ip.is_unicast_link_local()
                && !ip.is_multicast()
                && !ip.is_unspecified()
                && ip.to_ipv4_mapped().is_none()
        }
    }
}

/// Addresses and threads of media.
pub(super) struct Reach {
    /// Address of the UDP socket.
    pub(super) udp: SocketAddr,
    /// Addresses of the UDP socket's ICE candidates.
    pub(super) advertise: Vec<SocketAddr>,
    /// Configuration of media over TCP; `None` if it is off.
    pub(super) tcp: Option<TcpConfig>,
    /// Number of forwarding threads.
    pub(super) threads: usize,
}

/// Maximum number of forwarding threads. Each has a socket, and queues to all others.
const MAX_THREADS: usize = 64;
/// Maximum TCP connections per participant: browsers open one for each pair of candidates.
const TCP_PER_PARTICIPANT: usize = 4;

impl Reach {
    /// Resolves the addresses and threads of a server for at most `participants` participants.
    pub(super) fn of(settings: &Settings, participants: usize) -> Result<Reach> {
        let udp = settings.udp();
        let given: Vec<Advertise> = settings.advertise.iter().flatten().map(|a| a.0).collect();
        let advertise = addresses(&given, false, udp)?;
        let tcp = match settings.tcp.map_or(Tcp::At(udp), |tcp| tcp.0) {
            Tcp::Off => None,
            Tcp::At(listen) => {
                let mut tcp = TcpConfig::at(listen);
                tcp.advertise = addresses(&given, true, listen)?;
                tcp.connections =
                    tcp.connections.max(participants.saturating_mul(TCP_PER_PARTICIPANT));
                if settings.max_per_ip.is_some_and(|max| max.0.is_unbounded()) {
                    tcp.per_address = 0;
                }
                Some(tcp)
            }
        };
        // The other half is for enhancement, which yields, and for signalling.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = settings.forwarding_threads.unwrap_or((cores / 2).clamp(1, MAX_THREADS));
        if !(1..=MAX_THREADS).contains(&threads) {
            let allowed = format!("must be from 1 to {MAX_THREADS}, not {threads}");
            return Err(Invalid::new("forwarding-threads", allowed).into());
        }
        Ok(Reach { udp, advertise, tcp, threads })
    }
}

/// ICE candidates of a socket. Fails for an address that the socket cannot receive at, because every browser would try
/// it in vain.
fn addresses(given: &[Advertise], tcp: bool, socket: SocketAddr) -> Result<Vec<SocketAddr>> {
    let takes = |ip: IpAddr| match socket.ip() {
        IpAddr::V6(own) if own.is_unspecified() => true,
        own => own.is_ipv4() == ip.is_ipv4(),
    };
    let given: Vec<SocketAddr> = given.iter().filter(|a| a.tcp == tcp).map(|a| a.addr).collect();
    if let Some(other) = given.iter().find(|a| !takes(a.ip())) {
        let message = format!(
            "names {}, of another family than the socket's address {socket}; [::]:{} takes both",
            other.ip(),
            socket.port()
        );
        return Err(Invalid::new("advertise", message).into());
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::*;

    fn reach(yaml: &str) -> Result<Reach> {
        Reach::of(&File::parse(yaml)?.settings, 1000)
    }

    #[test]
    fn addresses_of_both_families_need_a_socket_of_both() {
        let of = |udp: &str| {
            reach(&format!("udp: '{udp}'\nadvertise: [192.0.2.1, '[2001:db8::1]:9000']"))
        };
        assert_eq!(of("[::]:7881").unwrap().advertise.len(), 2);
        for udp in ["0.0.0.0:7881", "[2001:db8::5]:7881"] {
            let error = of(udp).err().unwrap().to_string();
            assert!(error.contains("advertise names") && error.contains("[::]:7881"), "{error}");
        }
    }

    #[test]
    fn tcp_has_the_address_of_udp_unless_it_is_switched_off() {
        let tcp = reach("udp: 0.0.0.0:5000").unwrap().tcp.unwrap();
        assert_eq!(tcp.listen.to_string(), "0.0.0.0:5000");
        assert!(reach("tcp: off").unwrap().tcp.is_none());
        assert!(reach("tcp: 7881").is_err());
    }

    #[test]
    fn an_address_may_be_for_tcp_only() {
        let of = reach("udp: 0.0.0.0:1\nadvertise: [192.0.2.1, 'tcp:192.0.2.2:443']").unwrap();
        assert_eq!(of.advertise, [SocketAddr::from(([192, 0, 2, 1], 0))]);
        assert_eq!(of.tcp.unwrap().advertise, [SocketAddr::from(([192, 0, 2, 2], 443))]);
    }

    #[test]
    fn connections_by_tcp_follow_the_participants_and_those_of_one_address_do_not() {
        let tcp = |yaml: &str, participants| {
            let settings = File::parse(yaml).unwrap().settings;
            let tcp = Reach::of(&settings, participants).unwrap().tcp.unwrap();
            (tcp.connections, tcp.per_address)
        };
        assert_eq!(tcp("", 1000), (4000, 400));
        assert_eq!(tcp("", 1), (4000, 400));
        assert_eq!(tcp("", 10_000), (40_000, 400));
        assert_eq!(tcp("max-per-ip: sockets=0", 1000), (4000, 0));
    }

    #[test]
    fn what_no_browser_can_send_to_is_refused_with_a_reason() {
        for text in ["0.0.0.0", "[::]:80", "224.0.0.1", "tcp:fe80::1", "::ffff:192.0.2.1"] {
            assert!(text.parse::<Advertise>().unwrap_err().contains("send to"), "{text}");
        }
        let error = "calls.example.org:7881".parse::<Advertise>().unwrap_err();
        assert!(error.contains("names are not looked up"), "{error}");
    }
}
