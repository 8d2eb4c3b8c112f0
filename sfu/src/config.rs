//! What an operator can set.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use windlass_types::{AnchorPolicy, MAX_LR_PIXELS};

/// The SFU's settings.
#[derive(Debug, Clone)]
pub struct SfuConfig {
    /// The UDP socket for all peers. Default `0.0.0.0:7881`; port 0 takes a free one. An unspecified IPv6 address takes
    /// IPv4 too.
    pub udp: SocketAddr,
    /// Threads that forward, each of which has some of the rooms. Default 1.
    pub threads: usize,
    /// Where clients may come by TCP whose network lets no UDP through; `None`: nowhere. Default: nowhere.
    pub tcp: Option<TcpConfig>,
    /// The addresses that clients are told to send to (ICE host candidates). Empty: the bound address, with the
    /// loopback addresses in place of an unspecified one. Port 0 stands for the bound port.
    pub advertise: Vec<SocketAddr>,
    /// From a frame's arrival at the SFU to its anchor's last use; anchors older than this are dropped.
    pub budget: Duration,
    /// How anchors are chosen in rooms that have no policy of their own.
    pub policy: AnchorPolicy,
    /// How they are chosen in some rooms, by name.
    pub room_policies: BTreeMap<String, AnchorPolicy>,
    /// Width of an anchor's picture over that of its frame.
    pub scale: u16,
    /// Whether the layer above a tapped one is copied too, for captured anchors.
    pub captured: bool,
    /// Whether publishers whose users agree are asked for regions of their pictures.
    pub regions: bool,
    /// Whether what publishers send is adapted to what their uplinks carry and their pictures gain.
    pub adapt: bool,
    /// Whether publishers are told to pause layers that nobody takes.
    pub pause_unused: bool,
    /// How much anybody may ask for.
    pub limits: Limits,
    /// Most pixels of a layer that is enhanced, in either orientation; viewers of larger ones are told the reason `size`.
    pub tap_pixels: u32,
    /// Whether the bandwidth estimate limits what a subscriber gets. Off, it gets the best that it asks for and
    /// the publisher sends: for tests and for networks known to be wide.
    pub congestion_control: bool,
    /// What a subscriber is assumed to be able to receive before there is an estimate, in bits per second.
    pub initial_estimate_bps: u64,
    /// Whether several datagrams of one size to one address leave as one message, where the kernel can cut it up.
    pub segmentation: bool,
    /// How long nothing may come from a participant's connection before the participant is removed.
    pub idle: Duration,
    /// How long a participant may take for its first offer, and after that for its connection to come up, before it is removed.
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
            tap_pixels: MAX_LR_PIXELS,
            congestion_control: true,
            initial_estimate_bps: 1_000_000,
            segmentation: true,
            idle: Duration::from_secs(20),
            connect: Duration::from_secs(30),
        }
    }
}

impl SfuConfig {
    /// The addresses that clients are told to send to by UDP, given the address that the socket got.
    pub fn candidates(&self, bound: SocketAddr) -> Vec<SocketAddr> {
        told(&self.advertise, bound, bound.port())
    }

    /// The same by TCP, given the addresses that both sockets got. Where both have one port, so have they at the
    /// addresses that are advertised.
    pub fn tcp_candidates(&self, udp: SocketAddr, bound: SocketAddr) -> Vec<SocketAddr> {
        let own = self.tcp.as_ref().map(|tcp| &tcp.advertise).filter(|own| !own.is_empty());
        if let Some(own) = own {
            return told(own, bound, bound.port());
        }
        if udp.port() == bound.port() {
            return told(&self.advertise, bound, bound.port());
        }
        let hosts: Vec<_> = self.advertise.iter().map(|a| SocketAddr::new(a.ip(), 0)).collect();
        told(&hosts, bound, bound.port())
    }
}

/// The addresses that are advertised, or else the bound one.
fn told(advertise: &[SocketAddr], bound: SocketAddr, port: u16) -> Vec<SocketAddr> {
    let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
    let own = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => vec![v4],
        IpAddr::V6(ip) if ip.is_unspecified() => vec![v6, v4],
        ip => vec![ip],
    };
    if advertise.is_empty() {
        return own.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
    }
    let port = |p: u16| if p == 0 { port } else { p };
    advertise.iter().map(|a| SocketAddr::new(a.ip(), port(a.port()))).collect()
}

/// How clients come by TCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpConfig {
    /// Where to listen. Port 0 takes the number of the UDP port.
    pub listen: SocketAddr,
    /// The addresses that clients are told, where they are others than those of UDP. Port 0 stands for the bound port.
    pub advertise: Vec<SocketAddr>,
    /// Connections at a time.
    pub connections: usize,
    /// Connections of one address at a time; 0 for no bound.
    pub per_address: usize,
}

impl TcpConfig {
    /// The usual bounds.
    pub fn at(listen: SocketAddr) -> TcpConfig {
        TcpConfig { listen, advertise: Vec::new(), connections: 4000, per_address: 400 }
    }
}

/// What an operator may change while the SFU runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Bounds on what comes from now on: rooms, participants and tracks that are there already stay.
    /// [`Limits::sdp_bytes`] and [`Limits::events`] stay as they were at the start.
    pub limits: Limits,
    /// The configured policy of rooms that have none of their own. Unless it is another than before, what
    /// [`crate::SfuHandle::set_policy`] has set stays.
    pub policy: AnchorPolicy,
}

/// As much of what there is for all as one address, or one identity, may have.
pub fn share_of_one(all: usize) -> usize {
    (all / 4).max(1)
}

/// Bounds on what anybody may ask for. Each refusal is a typed error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Rooms at a time; as many rooms of one participant's own (loopback) there may be besides.
    pub rooms: usize,
    /// Participants at a time, in all rooms.
    pub participants: usize,
    /// Participants in one room.
    pub participants_per_room: usize,
    /// Tracks published in one room.
    pub tracks_per_room: usize,
    /// Datagrams in a second of one address that belongs to nobody's connection (STUN requests before a call, above
    /// all); 0 for no bound.
    pub strangers_per_second: u32,
    /// Tracks that one participant may publish.
    pub published_tracks: usize,
    /// Sections of an offer that send or receive media: what one publishes, what one subscribes to.
    pub media_sections: usize,
    /// Bytes of an SDP offer.
    pub sdp_bytes: usize,
    /// Events that wait for a slow participant; one more, and the participant is removed. Where another server of a room is lost, each of its participants and
    /// tracks is one, at once.
    pub events: usize,
    /// Bytes of one VP9 frame in a tap; a larger one is a gap.
    pub tap_frame_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            rooms: 200,
            participants: 1000,
            participants_per_room: 32,
            tracks_per_room: 128,
            strangers_per_second: 500,
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
        let told = SfuConfig::default().candidates(addrs(&["[::]:5000"])[0]);
        assert_eq!(told, addrs(&["[::1]:5000", "127.0.0.1:5000"]));
    }

    #[test]
    fn tcp_is_advertised_where_udp_is_unless_its_port_or_address_is_another() {
        let [udp, same, other] = addrs(&["0.0.0.0:5000", "0.0.0.0:5000", "0.0.0.0:443"])[..] else {
            unreachable!()
        };
        let told = |advertise: &[&str], own: &[&str], bound| {
            let tcp = Some(TcpConfig { advertise: addrs(own), ..TcpConfig::at(bound) });
            let advertise = addrs(advertise);
            SfuConfig { tcp, advertise, ..SfuConfig::default() }.tcp_candidates(udp, bound)
        };
        assert_eq!(told(&[], &[], same), addrs(&["127.0.0.1:5000"]));
        assert_eq!(told(&["192.0.2.1:0"], &[], same), addrs(&["192.0.2.1:5000"]));
        assert_eq!(told(&["192.0.2.1:9000"], &[], same), addrs(&["192.0.2.1:9000"]));
        assert_eq!(told(&["192.0.2.1:9000"], &[], other), addrs(&["192.0.2.1:443"]));
        assert_eq!(told(&["192.0.2.1:9000"], &["192.0.2.2:0"], other), addrs(&["192.0.2.2:443"]));
    }

    #[test]
    fn port_zero_of_an_advertised_address_is_the_bound_port() {
        let config = SfuConfig {
            advertise: vec!["192.0.2.1:0".parse().expect("address")],
            ..SfuConfig::default()
        };
        let told: Vec<SocketAddr> = vec!["192.0.2.1:5000".parse().expect("address")];
        assert_eq!(config.candidates("0.0.0.0:5000".parse().expect("address")), told);
    }
}
