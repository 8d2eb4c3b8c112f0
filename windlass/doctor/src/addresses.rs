//! Checks whether browsers can reach the addresses that the server advertises.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::finding::Finding;

/// Name of this check in findings.
const CHECK: &str = "addresses";

/// Addresses by which browsers reach the server.
#[derive(Debug, Clone)]
pub struct Reach {
    /// Listening address of page and signalling.
    pub http: SocketAddr,
    /// Listening address of media.
    pub udp: SocketAddr,
    /// Addresses that are advertised in place of the listening address.
    pub advertised: Vec<IpAddr>,
    /// Source addresses of this machine's outward routes.
    pub outward: Vec<IpAddr>,
    /// Address at which a STUN server sees this machine; `None` if none was asked.
    pub seen: Option<IpAddr>,
}

/// Checks the addresses.
pub fn addresses(reach: &Reach) -> Finding {
    let Reach { http, udp, advertised, outward, seen } = reach;
    if http.ip().is_loopback() {
        return Finding::ok(
            CHECK,
            format!("serves this machine only ({http}); others: --http 0.0.0.0:{}", http.port()),
        );
    }
    let announced: Vec<IpAddr> = match (advertised.is_empty(), udp.ip().is_unspecified()) {
        (false, _) => advertised.clone(),
        (true, true) => outward.clone(),
        (true, false) => vec![udp.ip()],
    };
    let list = announced.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if announced.is_empty() {
        return Finding::fault(
            CHECK,
            "this machine has no route outward: browsers are told no address",
            "connect it, or --advertise ADDRESS",
        );
    }
    if announced.iter().all(IpAddr::is_loopback) {
        return Finding::fault(
            CHECK,
            format!(
                "others reach the page, but media only at {list}, which is each browser's own machine"
            ),
            format!("--udp 0.0.0.0:{} --advertise PUBLIC_IP", udp.port()),
        );
    }
    if let Some(seen) = seen.filter(|seen| !announced.contains(seen)) {
        return Finding::warning(
            CHECK,
            format!("browsers are told {list}, and a STUN server sees this machine at {seen}"),
            format!("--advertise {seen}, and open the port {} there", udp.port()),
        );
    }
    if announced.iter().all(|ip| is_private(*ip)) {
        return Finding::warning(
            CHECK,
            format!("browsers are told {list}: only those of the same network reach that"),
            "--advertise PUBLIC_IP, if others are to reach it",
        );
    }
    // Firewalls on the way are seen only by who stands behind them.
    let outside = "whether the way is open: visit this server's page /check from another network";
    Finding::ok(CHECK, format!("browsers are told {list}; {outside}"))
}

/// Whether an address has a meaning only within a private network.
pub fn is_private(ip: IpAddr) -> bool {
    match ip {
        // RFC 6598: networks of providers whose customers share addresses.
        IpAddr::V4(ip) => {
            let [first, second, ..] = ip.octets();
            ip.is_private()
                || ip.is_loopback()
                || (first == 100 && second & 0xc0 == 64)
                || ip == Ipv4Addr::UNSPECIFIED
        }
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    fn found(http: &str, advertised: &[&str], outward: &[&str], seen: Option<&str>) -> Finding {
        let ips = |of: &[&str]| of.iter().map(|ip| ip.parse().unwrap()).collect();
        addresses(&Reach {
            http: http.parse().unwrap(),
            udp: "0.0.0.0:7881".parse().unwrap(),
            advertised: ips(advertised),
            outward: ips(outward),
            seen: seen.map(|ip| ip.parse().unwrap()),
        })
    }

    #[test]
    fn a_private_address_is_not_for_everybody() {
        for private in ["10.0.0.5", "100.64.1.1", "192.168.1.2", "fd00::1"] {
            let found = found("0.0.0.0:7880", &[], &[private], None);
            assert_eq!(found.level, Level::Warning, "{private}");
            assert!(found.mend.unwrap().contains("--advertise"));
        }
        let public = found("0.0.0.0:7880", &["203.0.113.5"], &["10.0.0.5"], None);
        assert_eq!(public.level, Level::Ok);
        assert_eq!(found("0.0.0.0:7880", &[], &["100.128.0.1"], None).level, Level::Ok);
    }

    #[test]
    fn media_that_only_the_browsers_own_machine_would_get_is_a_fault() {
        assert_eq!(found("0.0.0.0:7880", &["127.0.0.1"], &[], None).level, Level::Fault);
        assert_eq!(found("0.0.0.0:7880", &[], &[], None).level, Level::Fault);
        assert_eq!(found("127.0.0.1:7880", &[], &[], None).level, Level::Ok);
    }

    #[test]
    fn an_address_that_a_stun_server_sees_is_to_be_advertised() {
        let nat = found("0.0.0.0:7880", &[], &["10.0.0.5"], Some("203.0.113.5"));
        assert!(nat.mend.unwrap().starts_with("--advertise 203.0.113.5"));
        let same = found("0.0.0.0:7880", &[], &["203.0.113.5"], Some("203.0.113.5"));
        assert_eq!(same.level, Level::Ok);
    }
}
