//! Checks whether the server can listen at its configured addresses.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use crate::TIMEOUT;
use crate::finding::Finding;
use crate::http::get;

/// Name of this check in findings.
const CHECK: &str = "ports";

/// Advice that lets a program without root's rights use ports below 1024.
pub const RIGHTS: &str = "`setcap cap_net_bind_service=+ep` on the program, as root; or AmbientCapabilities=CAP_NET_BIND_SERVICE in its unit of \
                          systemd, as the Debian package's has it";

/// Protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// An address that the server listens at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listens {
    /// Option that sets the address.
    pub option: &'static str,
    /// Protocol of the port.
    pub protocol: Protocol,
    /// Listening address.
    pub addr: SocketAddr,
}

impl Listens {
    fn bind(self) -> std::io::Result<()> {
        match self.protocol {
            Protocol::Tcp => TcpListener::bind(self.addr).map(drop),
            Protocol::Udp => UdpSocket::bind(self.addr).map(drop),
        }
    }

    fn named(self) -> String {
        let Listens { option, protocol, addr } = self;
        format!("{protocol:?} {addr} ({option})").replace("Tcp", "TCP").replace("Udp", "UDP")
    }
}

/// Checks whether each address is free. If a Windlass server already answers at `http`, the other addresses may be in
/// use too.
pub fn ports(http: SocketAddr, all: &[Listens]) -> Vec<Finding> {
    let serves = is_windlass(http);
    let mut findings: Vec<_> = all.iter().filter_map(|&one| taken(one, serves)).collect();
    if findings.is_empty() {
        let names: Vec<_> = all.iter().map(|one| one.named()).collect();
        let how = if serves { "a running Windlass server has" } else { "free:" };
        findings.push(Finding::ok(CHECK, format!("{how} {}", names.join(", "))));
    }
    findings
}

fn taken(one: Listens, serves: bool) -> Option<Finding> {
    let Listens { option, addr, .. } = one;
    let kind = one.bind().err()?.kind();
    let name = one.named();
    let other = SocketAddr::new(addr.ip(), addr.port().saturating_add(10));
    let any = SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), addr.port());
    Some(match kind {
        ErrorKind::AddrInUse if serves => return None,
        ErrorKind::AddrInUse => Finding::fault(
            CHECK,
            format!("another program has {name}"),
            format!("stop it (`ss -lptun sport = :{}` shows it), or {option} {other}", addr.port()),
        ),
        ErrorKind::AddrNotAvailable => Finding::fault(
            CHECK,
            format!("this machine has no address {}: {name}", addr.ip()),
            format!("{option} {any}; an address of a NAT goes to --advertise"),
        ),
        ErrorKind::PermissionDenied => Finding::fault(
            CHECK,
            format!("{name} needs special rights"),
            format!("{RIGHTS}; or a port above 1023 by {option}"),
        ),
        kind => Finding::fault(CHECK, format!("{name}: {kind}"), format!("another {option}")),
    })
}

/// Whether a Windlass server answers at an address, by HTTP. A server of HTTPS tells plain requests what it is.
fn is_windlass(http: SocketAddr) -> bool {
    let ip =
        if http.ip().is_unspecified() { std::net::Ipv4Addr::LOCALHOST.into() } else { http.ip() };
    let answer = get(SocketAddr::new(ip, http.port()), "localhost", "/readyz", TIMEOUT);
    answer.is_ok_and(|answer| answer.contains("\"ready\"") || answer.contains("Windlass"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    fn of(addr: SocketAddr) -> Vec<Finding> {
        ports(addr, &[Listens { option: "--http", protocol: Protocol::Tcp, addr }])
    }

    #[test]
    fn a_port_of_another_program_is_named_with_its_option() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        // It answers nothing.
        let addr = taken.local_addr().unwrap();
        std::thread::spawn(move || taken.incoming().for_each(drop));
        let found = of(addr);
        assert_eq!(found[0].level, Level::Fault, "{found:?}");
        assert!(found[0].mend.as_ref().unwrap().contains("--http 127.0.0.1:"), "{found:?}");
    }

    #[test]
    fn an_address_of_another_machine_goes_to_advertise() {
        let found = of("192.0.2.1:7880".parse().unwrap());
        assert!(found[0].mend.as_ref().unwrap().contains("--advertise"), "{found:?}");
    }

    #[test]
    fn free_ports_are_told() {
        let found = of("127.0.0.1:0".parse().unwrap());
        assert_eq!(found[0].level, Level::Ok, "{found:?}");
    }
}
