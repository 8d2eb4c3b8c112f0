//! Addresses of media: the server's in its session description, and ours on the way there.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket as StdSocket};

/// The first UDP candidate of an answer.
pub(super) fn candidate(sdp: &str) -> Option<SocketAddr> {
    sdp.lines().find_map(|line| {
        let words: Vec<&str> = line.strip_prefix("a=candidate:")?.split(' ').collect();
        let [_, _, protocol, _, ip, port, ..] = words[..] else { return None };
        let udp = protocol.eq_ignore_ascii_case("udp");
        udp.then(|| Some(SocketAddr::new(ip.parse().ok()?, port.parse().ok()?)))?
    })
}

/// The answer with another UDP candidate in the place of its own candidates.
pub(super) fn with_candidate(sdp: &str, address: SocketAddr) -> String {
    let (ip, port) = (address.ip(), address.port());
    let mut ours = Some(format!("a=candidate:1 1 udp 2130706431 {ip} {port} typ host\r\n"));
    let given = sdp.split_inclusive('\n').filter_map(|line| {
        let theirs = line.starts_with("a=candidate:");
        if theirs { ours.take().map(Cow::Owned) } else { Some(Cow::Borrowed(line)) }
    });
    given.collect()
}

/// Any local address with any port, of the same family as another address.
pub(crate) fn any_for(server: SocketAddr) -> SocketAddr {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(any, 0)
}

/// The local address on the way to another.
pub(super) fn local_for(server: SocketAddr) -> std::io::Result<IpAddr> {
    let probe = StdSocket::bind(any_for(server))?;
    // Connecting a UDP socket sends nothing.
    probe.connect(server)?;
    Ok(probe.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_media_is_at_its_first_udp_candidate() {
        let sdp = "v=0\r\na=candidate:1 1 tcp 1 192.0.2.9 9 typ host\r\na=candidate:f00 1 udp 2130706175 192.0.2.1 7881 typ host\r\n";
        assert_eq!(candidate(sdp), Some("192.0.2.1:7881".parse().unwrap()));
        for none in ["", "a=candidate:1 1 udp", "a=candidate:1 1 udp 1 example 7 typ host"] {
            assert_eq!(candidate(none), None, "{none}");
        }
    }

    #[test]
    fn a_link_takes_the_place_of_all_candidates() {
        let sdp = "v=0\r\na=candidate:f00 1 udp 2130706175 192.0.2.1 7881 typ host\r\na=candidate:1 1 tcp 1 192.0.2.9 9 typ host\r\na=end\r\n";
        let to: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let given = with_candidate(sdp, to);
        assert_eq!(candidate(&given), Some(to));
        assert_eq!((given.lines().count(), given.ends_with("a=end\r\n")), (3, true));
    }

    #[test]
    fn the_way_to_this_machine_is_the_loopback() {
        assert!(local_for("127.0.0.1:9".parse().unwrap()).unwrap().is_loopback());
    }
}
