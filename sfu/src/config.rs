//! Settings of the SFU.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use windlass_types::{AnchorPolicy, Bitrate, MAX_LR_PIXELS};

/// Size in bytes of the media socket's receive buffer, as requested of the system. The buffer holds datagrams while the
/// media thread is busy.
pub const RECEIVE_BUFFER: usize = 8 << 20;

/// The SFU's settings.
#[derive(Debug, Clone)]
pub struct SfuConfig {
    /// Address of the UDP socket for all participants. Port 0: a free port. An unspecified IPv6 address takes IPv4 too.
    pub udp: SocketAddr,
    /// Number of media threads. Each has some of the rooms.
    pub threads: usize,
    /// ICE-TCP for clients whose network blocks UDP; `None`: off.
    pub tcp: Option<TcpConfig>,
    /// Addresses for clients (ICE host candidates). Empty: the bound address; in place of an unspecified one, loopback
    /// and the addresses of [`crate::outward_addresses`]. Port 0: the bound port.
    pub advertise: Vec<SocketAddr>,
    /// Latency budget of anchors: from a frame's arrival at the SFU to its anchor's use. Older anchors are dropped.
    pub budget: Duration,
    /// Policy by which anchors are chosen in rooms without their own.
    pub policy: AnchorPolicy,
    /// Policies of rooms, by name.
    pub room_policies: BTreeMap<String, AnchorPolicy>,
    /// Default scale of anchors: width of an anchor's frame over that of the layer.
    pub scale: u16,
    /// Whether a higher layer is tapped too, for captured anchors.
    pub captured: bool,
    /// Whether stills are requested from publishers whose users agree.
    pub regions: bool,
    /// Whether publishers' layers are adapted to their uplinks.
    pub adapt: bool,
    /// Whether publishers pause layers that no subscriber needs.
    pub pause_unused: bool,
    /// Limits of what clients may use.
    pub limits: Limits,
    /// What the server renders.
    pub renditions: RenditionLimits,
    /// Maximum pixels of an enhanced layer. Subscribers of larger ones get the refusal `size`.
    pub tap_pixels: u32,
    /// Whether subscribers' bandwidth is estimated and limits their rungs. Without it, subscribers get their maximum
    /// rungs: for tests, and for networks with enough bandwidth.
    pub congestion_control: bool,
    /// Assumed bandwidth of a subscriber before the first estimate.
    pub initial_estimate: Bitrate,
    /// Whether datagrams of one size to one address are sent as one message (UDP GSO), if the kernel supports it.
    pub segmentation: bool,
    /// Time without a datagram after which a participant is removed.
    pub idle: Duration,
    /// Time for a participant's first offer, and after that for its connection to come up.
    pub connect: Duration,
}

impl Default for SfuConfig {
    fn default() -> Self {
        SfuConfig {
            udp: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 7881),
            threads: 1,
            tcp: None,
            advertise: Vec::new(),
            budget: Duration::from_millis(200),
            policy: AnchorPolicy::default(),
            room_policies: BTreeMap::new(),
            scale: 2,
            captured: true,
            regions: true,
            adapt: false,
            pause_unused: true,
            limits: Limits::default(),
            renditions: RenditionLimits::default(),
            tap_pixels: MAX_LR_PIXELS,
            congestion_control: true,
            initial_estimate: Bitrate::bps(1_000_000),
            segmentation: true,
            idle: Duration::from_secs(20),
            connect: Duration::from_secs(30),
        }
    }
}

impl SfuConfig {
    /// The settings with this machine's addresses for others (`outward`). They are advertised beside loopback for each
    /// socket that takes all addresses. Where addresses are configured, these alone are advertised.
    #[must_use]
    pub fn with_outward(mut self, outward: &[IpAddr]) -> SfuConfig {
        let own = |listen: SocketAddr| -> Vec<SocketAddr> {
            let v6 = listen.is_ipv6();
            let taken = |ip: &&IpAddr| ip.is_ipv4() || v6;
            let others = outward.iter().filter(taken).map(|ip| SocketAddr::new(*ip, 0));
            let mut all: Vec<_> =
                bound_to(listen.ip()).into_iter().map(|ip| SocketAddr::new(ip, 0)).collect();
            if listen.ip().is_unspecified() {
                all.extend(others);
            }
            all
        };
        if !self.advertise.is_empty() {
            return self;
        }
        self.advertise = own(self.udp);
        if let Some(tcp) = self.tcp.as_mut().filter(|tcp| tcp.advertise.is_empty()) {
            tcp.advertise = own(tcp.listen);
        }
        self
    }

    /// UDP candidates, given the address of the bound socket.
    pub fn candidates(&self, bound: SocketAddr) -> Vec<SocketAddr> {
        advertised(&self.advertise, bound, bound.port())
    }

    /// TCP candidates, given the addresses of both bound sockets. If both have the same port, so do the advertised
    /// addresses.
    pub fn tcp_candidates(&self, udp: SocketAddr, bound: SocketAddr) -> Vec<SocketAddr> {
        let own = self.tcp.as_ref().map(|tcp| &tcp.advertise).filter(|own| !own.is_empty());
        if let Some(own) = own {
            return advertised(own, bound, bound.port());
        }
        if udp.port() == bound.port() {
            return advertised(&self.advertise, bound, bound.port());
        }
        let hosts: Vec<_> = self.advertise.iter().map(|a| SocketAddr::new(a.ip(), 0)).collect();
        advertised(&hosts, bound, bound.port())
    }
}

/// The advertised addresses, or the bound one.
fn advertised(advertise: &[SocketAddr], bound: SocketAddr, port: u16) -> Vec<SocketAddr> {
    if advertise.is_empty() {
        return bound_to(bound.ip()).into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
    }
    let port = |p: u16| if p == 0 { port } else { p };
    advertise.iter().map(|a| SocketAddr::new(a.ip(), port(a.port()))).collect()
}

/// The addresses at which this machine itself reaches a socket that is bound to `ip`.
fn bound_to(ip: IpAddr) -> Vec<IpAddr> {
    let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => vec![v4],
        IpAddr::V6(ip) if ip.is_unspecified() => vec![v6, v4],
        ip => vec![ip],
    }
}

/// Settings of ICE-TCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpConfig {
    /// Address of the listener. Port 0: the UDP port.
    pub listen: SocketAddr,
    /// Addresses for clients, if they differ from those of UDP. Port 0: the bound port.
    pub advertise: Vec<SocketAddr>,
    /// Maximum number of TCP connections.
    pub connections: usize,
    /// Maximum number of TCP connections of one address; 0: no limit.
    pub per_address: usize,
}

impl TcpConfig {
    /// Settings with default limits, for a listener at `listen`.
    pub fn at(listen: SocketAddr) -> TcpConfig {
        TcpConfig { listen, advertise: Vec::new(), connections: 4000, per_address: 400 }
    }
}

/// Settings that may change while the SFU runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Limits for new rooms, participants and tracks; existing ones stay.
    /// [`Limits::sdp_bytes`] and [`Limits::events`] do not change.
    pub limits: Limits,
    /// Policy of rooms without their own. If it is unchanged, the policy of [`crate::SfuHandle::set_policy`] stays.
    pub policy: AnchorPolicy,
}

/// The share of a limit that one address or one identity may use: a quarter.
pub fn share_of_one(all: usize) -> usize {
    (all / 4).max(1)
}

/// Limits of what clients may use. Each refusal is a typed error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of rooms. Loopback rooms have a limit of the same size.
    pub rooms: usize,
    /// Maximum number of participants in all rooms.
    pub participants: usize,
    /// Maximum number of participants in one room.
    pub participants_per_room: usize,
    /// Maximum number of tracks published in one room.
    pub tracks_per_room: usize,
    /// Maximum number of datagrams a second of one address without a connection (mostly STUN requests before a call);
    /// 0: no limit.
    pub unauthenticated_per_second: u32,
    /// Maximum number of tracks of one participant.
    pub published_tracks: usize,
    /// Maximum number of an offer's sections that send or receive media.
    pub media_sections: usize,
    /// Maximum bytes of an SDP offer.
    pub sdp_bytes: usize,
    /// Maximum number of events that wait for a slow participant; with one more the participant is removed. The loss of
    /// another node is one event for each of its participants and tracks.
    pub events: usize,
    /// Maximum bytes of a VP9 frame in a tap; a larger one is a gap.
    pub tap_frame_bytes: usize,
}

/// What the server renders for players that cannot rebuild pictures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RenditionLimits {
    /// Maximum number of renditions; 0: the server renders nothing.
    pub max: usize,
    /// Maximum pixels of their pictures. Layers with this number of pixels or more need no rendition.
    pub pixels: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            rooms: 200,
            participants: 1000,
            participants_per_room: 32,
            tracks_per_room: 128,
            unauthenticated_per_second: 500,
            published_tracks: 8,
            media_sections: 64,
            sdp_bytes: 256 * 1024,
            events: 4_096,
            tap_frame_bytes: 1024 * 1024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unspecified_address_is_advertised_as_loopback() {
        let bound = "0.0.0.0:5000".parse().expect("address");
        let own: Vec<SocketAddr> = vec!["127.0.0.1:5000".parse().expect("address")];
        assert_eq!(SfuConfig::default().candidates(bound), own);
    }

    fn addrs(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().expect("address")).collect()
    }

    #[test]
    fn a_socket_of_both_families_is_advertised_by_both() {
        let addresses = SfuConfig::default().candidates(addrs(&["[::]:5000"])[0]);
        assert_eq!(addresses, addrs(&["[::1]:5000", "127.0.0.1:5000"]));
    }

    #[test]
    fn sockets_of_all_addresses_are_advertised_by_loopback_and_outward() {
        let outward: Vec<IpAddr> =
            ["192.168.1.5", "2001:db8::5"].map(|ip| ip.parse().expect("address")).to_vec();
        let of = |udp: &str, tcp: &str| {
            let (udp, tcp) = (addrs(&[udp])[0], addrs(&[tcp])[0]);
            let config = SfuConfig { udp, tcp: Some(TcpConfig::at(tcp)), ..SfuConfig::default() };
            let config = config.with_outward(&outward);
            (config.candidates(udp), config.tcp_candidates(udp, tcp))
        };
        let v4 = addrs(&["127.0.0.1:1", "192.168.1.5:1"]);
        assert_eq!(of("0.0.0.0:1", "0.0.0.0:1"), (v4.clone(), v4.clone()));
        let both = addrs(&["[::1]:1", "127.0.0.1:1", "192.168.1.5:1", "[2001:db8::5]:1"]);
        assert_eq!(of("[::]:1", "[::]:1"), (both.clone(), both));
        let one = addrs(&["192.0.2.7:1"]);
        assert_eq!(of("0.0.0.0:1", "192.0.2.7:1"), (v4.clone(), one.clone()));
        assert_eq!(of("192.0.2.7:1", "0.0.0.0:1"), (one, v4));
    }

    #[test]
    fn nothing_is_advertised_beside_what_is_configured() {
        let advertise = addrs(&["203.0.113.1:0"]);
        let tcp = Some(TcpConfig::at(addrs(&["0.0.0.0:1"])[0]));
        let config = SfuConfig { tcp, advertise, ..SfuConfig::default() };
        let config = config.with_outward(&["192.168.1.5".parse().expect("address")]);
        let bound = addrs(&["0.0.0.0:1"])[0];
        assert_eq!(config.candidates(bound), addrs(&["203.0.113.1:1"]));
        assert_eq!(config.tcp_candidates(bound, bound), addrs(&["203.0.113.1:1"]));
    }

    #[test]
    fn tcp_is_advertised_where_udp_is_unless_its_port_or_address_is_another() {
        let [udp, same, other] = addrs(&["0.0.0.0:5000", "0.0.0.0:5000", "0.0.0.0:443"])[..] else {
            unreachable!()
        };
        let addresses = |advertise: &[&str], own: &[&str], bound| {
            let tcp = Some(TcpConfig { advertise: addrs(own), ..TcpConfig::at(bound) });
            let advertise = addrs(advertise);
            SfuConfig { tcp, advertise, ..SfuConfig::default() }.tcp_candidates(udp, bound)
        };
        assert_eq!(addresses(&[], &[], same), addrs(&["127.0.0.1:5000"]));
        assert_eq!(addresses(&["192.0.2.1:0"], &[], same), addrs(&["192.0.2.1:5000"]));
        assert_eq!(addresses(&["192.0.2.1:9000"], &[], same), addrs(&["192.0.2.1:9000"]));
        assert_eq!(addresses(&["192.0.2.1:9000"], &[], other), addrs(&["192.0.2.1:443"]));
        assert_eq!(
            addresses(&["192.0.2.1:9000"], &["192.0.2.2:0"], other),
            addrs(&["192.0.2.2:443"])
        );
    }

    #[test]
    fn port_zero_of_an_advertised_address_is_the_bound_port() {
        let config = SfuConfig {
            advertise: vec!["192.0.2.1:0".parse().expect("address")],
            ..SfuConfig::default()
        };
        let addresses: Vec<SocketAddr> = vec!["192.0.2.1:5000".parse().expect("address")];
        assert_eq!(config.candidates("0.0.0.0:5000".parse().expect("address")), addresses);
    }
}
