//! How browsers reach the server: sockets, and what is told of them.

use std::net::{IpAddr, SocketAddr};

use anyhow::Result;
use windlass_sfu::{TcpConfig, share_of_one};

use super::{Advertise, Invalid, Settings};

/// The addresses of media.
pub(super) struct Reach {
    /// The UDP socket.
    pub(super) udp: SocketAddr,
    /// What is told in its place.
    pub(super) advertise: Vec<SocketAddr>,
    /// The TCP port, if there is to be one.
    pub(super) tcp: Option<TcpConfig>,
    /// Threads that forward.
    pub(super) threads: usize,
}

/// Threads that forward, at most: each has a socket and queues to all others.
const THREADS: usize = 64;

impl Reach {
    pub(super) fn of(said: &Settings) -> Result<Reach> {
        let udp = said.udp.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 7881)));
        let advertise = addresses("advertise", said.advertise.as_deref(), udp)?;
        let listen = said.tcp.unwrap_or(udp);
        let own = addresses("advertise-tcp", said.advertise_tcp.as_deref(), listen)?;
        let mut tcp = TcpConfig { advertise: own, ..TcpConfig::at(listen) };
        tcp.connections = said.max_tcp_connections.unwrap_or(tcp.connections);
        // 0 is as many as files may be open.
        let share = if tcp.connections == 0 { usize::MAX } else { share_of_one(tcp.connections) };
        tcp.per_address = said.max_tcp_per_ip.unwrap_or(tcp.per_address.min(share));
        if tcp.per_address > share {
            let allowed = format!(
                "must be at most {share}, a quarter of max-tcp-connections, not {}",
                tcp.per_address
            );
            return Err(Invalid::new("max-tcp-per-ip", allowed).into());
        }
        let tcp = (!said.no_tcp.unwrap_or(false)).then_some(tcp);
        // The other half is for enhancement, which yields, and for signalling.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = said.forwarding_threads.unwrap_or((cores / 2).clamp(1, THREADS));
        if !(1..=THREADS).contains(&threads) {
            let allowed = format!("must be from 1 to {THREADS}, not {threads}");
            return Err(Invalid::new("forwarding-threads", allowed).into());
        }
        Ok(Reach { udp, advertise, tcp, threads })
    }
}

/// What is advertised of a socket. One that the socket cannot be sent to at would be tried by every browser, in vain.
fn addresses(
    option: &'static str,
    said: Option<&[Advertise]>,
    socket: SocketAddr,
) -> Result<Vec<SocketAddr>> {
    let takes = |ip: IpAddr| match socket.ip() {
        IpAddr::V6(own) if own.is_unspecified() => true,
        own => own.is_ipv4() == ip.is_ipv4(),
    };
    let said: Vec<SocketAddr> = said.unwrap_or_default().iter().map(|a| a.0).collect();
    if let Some(other) = said.iter().find(|a| !takes(a.ip())) {
        let message = format!(
            "names {}, of another family than the socket's address {socket}; [::]:{} takes both",
            other.ip(),
            socket.port()
        );
        return Err(Invalid::new(option, message).into());
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(udp: &str, advertise: &[&str]) -> Result<Reach> {
        let advertise = advertise.iter().map(|a| a.parse().expect("address")).collect();
        let said =
            Settings { udp: Some(udp.parse()?), advertise: Some(advertise), ..Settings::default() };
        Reach::of(&said)
    }

    #[test]
    fn addresses_of_both_families_need_a_socket_of_both() {
        let both = ["192.0.2.1", "[2001:db8::1]:9000"];
        assert_eq!(reach("[::]:7881", &both).unwrap().advertise.len(), 2);
        for udp in ["0.0.0.0:7881", "[2001:db8::5]:7881"] {
            let error = reach(udp, &both).err().unwrap().to_string();
            assert!(error.contains("advertise names") && error.contains("[::]:7881"), "{error}");
        }
    }

    #[test]
    fn tcp_has_the_address_of_udp_unless_it_is_switched_off() {
        let tcp = reach("0.0.0.0:5000", &[]).unwrap().tcp.unwrap();
        assert_eq!(tcp.listen, "0.0.0.0:5000".parse().unwrap());
        let off = Settings { no_tcp: Some(true), ..Settings::default() };
        assert!(Reach::of(&off).unwrap().tcp.is_none());
    }

    #[test]
    fn what_no_browser_can_send_to_is_refused_with_a_reason() {
        for text in ["0.0.0.0", "[::]:80", "224.0.0.1", "fe80::1", "::ffff:192.0.2.1"] {
            assert!(text.parse::<Advertise>().unwrap_err().contains("send to"), "{text}");
        }
        let error = "calls.example.org:7881".parse::<Advertise>().unwrap_err();
        assert!(error.contains("names are not looked up"), "{error}");
    }
}
