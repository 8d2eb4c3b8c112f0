//! One client's WebRTC connection and its UDP socket.
//!
//! The server knows clients by their addresses, so each has a socket of its own. Media is sent in the stack's RTP mode:
//! a replay sets numbers and timestamps itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket as StdSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use bytes::BytesMut;
use str0m::change::{SdpAnswer, SdpOffer, SdpPendingOffer};
use str0m::media::Pt;
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, IceConnectionState, Input, Output, Rtc};
use tokio::net::UdpSocket;

use super::access::Access;
use super::tally::{LinkTotals, Totals};

/// Maximum length of a datagram that is read, in bytes.
const DATAGRAM_BYTES: usize = 2048;
/// Time from one look at an emulated link to the next.
const GRAIN: Duration = Duration::from_micros(500);
/// Maximum number of datagrams that are read before other work.
const BURST: usize = 64;

/// The WebRTC connection of one client.
pub(super) struct Link {
    /// The WebRTC connection of the stack.
    pub rtc: Rtc,
    socket: Option<(UdpSocket, SocketAddr)>,
    /// The emulated link, if there is one.
    access: Option<Access>,
    due: Instant,
    buffer: BytesMut,
    counted: Counted,
    /// Whether media can flow.
    pub connected: bool,
    /// Whether the connection was lost.
    pub lost: bool,
}

/// Counters of datagrams.
#[derive(Debug, Default)]
struct Counted {
    sent: u64,
    /// Datagrams that the socket did not take.
    unsent: u64,
}

impl Link {
    /// A connection before its first offer, over the machine's own network or an emulated link.
    pub(super) fn new(access: Option<Access>) -> Link {
        let now = Instant::now();
        let rtc = Rtc::builder()
            .clear_codecs()
            .enable_vp9(true)
            .enable_opus(true, false)
            .set_rtp_mode(true)
            .build(now);
        Link {
            rtc,
            socket: None,
            access,
            due: now,
            buffer: BytesMut::zeroed(DATAGRAM_BYTES),
            counted: Counted::default(),
            connected: false,
            lost: false,
        }
    }

    /// Takes the server's answer. The first one names the address of the server's media.
    pub(super) async fn accept(&mut self, pending: SdpPendingOffer, sdp: &str) -> Result<()> {
        self.reach(sdp).await?;
        let answer = SdpAnswer::from_sdp_string(sdp).context("the server's answer")?;
        self.rtc.sdp_api().accept_answer(pending, answer).context("the server's answer")?;
        self.due = Instant::now();
        Ok(())
    }

    /// Answers the offer of a server.
    pub(super) async fn answer(&mut self, sdp: &str) -> Result<String> {
        self.reach(sdp).await?;
        let offer = SdpOffer::from_sdp_string(sdp).context("the server's offer")?;
        let answer = self.rtc.sdp_api().accept_offer(offer).context("the server's offer")?;
        self.due = Instant::now();
        Ok(answer.to_sdp_string())
    }

    /// Opens the socket towards the server, whose first session description names the address.
    async fn reach(&mut self, sdp: &str) -> Result<()> {
        if self.socket.is_none() {
            let server = candidate(sdp).context("the server names no UDP address")?;
            let local = local_for(server)
                .with_context(|| format!("there is no way to the server's media at {server}"))?;
            let socket = UdpSocket::bind(SocketAddr::new(local, 0)).await.context(
                "opening a UDP socket; for very many clients, raise the limit (`ulimit -n 65536`)",
            )?;
            let address = socket.local_addr()?;
            self.rtc.add_local_candidate(Candidate::host(address, "udp")?);
            self.socket = Some((socket, address));
        }
        Ok(())
    }

    /// The payload type that VP9 profile 0 was negotiated for.
    pub(super) fn vp9(&self) -> Result<Pt> {
        let vp9 = self.rtc.codec_config().find(|p| p.spec().format.profile_id == Some(0));
        vp9.map(str0m::format::PayloadParams::pt)
            .ok_or_else(|| anyhow!("the server does not take VP9"))
    }

    /// When the connection must be run next.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Waits until datagrams can be read; before the first answer it never returns.
    pub(super) async fn readable(&self) {
        match &self.socket {
            // An error of the socket shows when data is read next.
            Some((socket, _)) => drop(socket.readable().await),
            None => std::future::pending().await,
        }
    }

    /// Reads waiting datagrams and lets time pass. Events are added to `events`.
    pub(super) fn run(&mut self, events: &mut Vec<Event>) -> Result<()> {
        let Some((socket, local)) = &self.socket else { return Ok(()) };
        for _ in 0..BURST {
            // Errors of earlier datagrams are reported here too; a server that is gone is noticed by ICE.
            let Ok((size, source)) = socket.try_recv_from(&mut self.buffer) else { break };
            let data = &self.buffer[..size];
            if let Some(access) = &mut self.access {
                access.came(Instant::now(), data, source);
                continue;
            }
            take(&mut self.rtc, data, source, *local)?;
            drain(&mut self.rtc, socket, &mut None, &mut self.counted, events)?;
        }
        while let Some((data, source)) =
            self.access.as_mut().and_then(|a| a.arrived(Instant::now()))
        {
            take(&mut self.rtc, &data, source, *local)?;
            drain(&mut self.rtc, socket, &mut self.access, &mut self.counted, events)?;
        }
        let now = Instant::now();
        self.rtc.handle_input(Input::Timeout(now))?;
        self.due = drain(&mut self.rtc, socket, &mut self.access, &mut self.counted, events)?;
        if let Some(access) = &mut self.access {
            while let Some((data, to)) = access.sent(Instant::now()) {
                self.counted.put(socket, &data, to);
            }
            // Datagrams come through some microseconds apart; the client need not wake up for each.
            let next = access.timeout().map(|next| next.max(now + GRAIN));
            self.due = next.map_or(self.due, |next| next.min(self.due));
        }
        for event in events.iter() {
            match event {
                Event::Connected => self.connected = true,
                Event::IceConnectionStateChange(IceConnectionState::Disconnected) => {
                    self.lost = true;
                }
                _ => {}
            }
        }
        ensure!(self.rtc.is_alive(), "the media connection ended");
        Ok(())
    }

    /// Brings the totals of emulated links up to date.
    pub(super) fn tell(&mut self, now: Instant, totals: &mut Totals) {
        if let Some(access) = &mut self.access {
            access.tell(now, &mut totals.subscriptions.downlinks);
        }
    }

    /// Ends the connection without a goodbye, and adds what it carried.
    pub(super) fn close(mut self, totals: &mut Totals) {
        self.rtc.disconnect();
        self.tell(Instant::now(), totals);
        let Counted { sent, unsent } = self.counted;
        totals.datagrams.out += sent;
        totals.datagrams.unsent += unsent;
        let Some(access) = &self.access else { return };
        for (to, (stats, underway)) in totals.datagrams.links.iter_mut().zip(access.stats()) {
            to.add(LinkTotals {
                sent: stats.sent,
                arrived: stats.arrived,
                overflowed: stats.overflowed,
                lost: stats.lost,
                underway: underway as u64,
            });
        }
    }
}

impl Counted {
    /// Sends a datagram by the socket. A full one loses datagrams, as a network does.
    fn put(&mut self, socket: &UdpSocket, data: &[u8], to: SocketAddr) {
        let taken = socket.try_send_to(data, to).is_ok();
        self.sent += u64::from(taken);
        self.unsent += u64::from(!taken);
    }
}

/// Passes a datagram to the connection, unless it belongs to another one.
fn take(rtc: &mut Rtc, data: &[u8], source: SocketAddr, destination: SocketAddr) -> Result<()> {
    let Ok(contents) = data.try_into() else { return Ok(()) };
    let receive = Receive { proto: Protocol::Udp, source, destination, contents };
    rtc.handle_input(Input::Receive(Instant::now(), receive))?;
    Ok(())
}

/// Passes on everything that the connection has to send. Returns when the connection must be run again.
fn drain(
    rtc: &mut Rtc,
    socket: &UdpSocket,
    access: &mut Option<Access>,
    counted: &mut Counted,
    events: &mut Vec<Event>,
) -> Result<Instant> {
    loop {
        match rtc.poll_output()? {
            Output::Timeout(due) => return Ok(due),
            Output::Transmit(t) => match access {
                Some(access) => access.send(Instant::now(), &t.contents, t.destination),
                None => counted.put(socket, &t.contents, t.destination),
            },
            Output::Event(event) => events.push(event),
        }
    }
}

/// The first UDP candidate of an answer.
fn candidate(sdp: &str) -> Option<SocketAddr> {
    sdp.lines().find_map(|line| {
        let words: Vec<&str> = line.strip_prefix("a=candidate:")?.split(' ').collect();
        let [_, _, protocol, _, ip, port, ..] = words[..] else { return None };
        let udp = protocol.eq_ignore_ascii_case("udp");
        udp.then(|| Some(SocketAddr::new(ip.parse().ok()?, port.parse().ok()?)))?
    })
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
fn local_for(server: SocketAddr) -> std::io::Result<IpAddr> {
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
    fn the_way_to_this_machine_is_the_loopback() {
        assert!(local_for("127.0.0.1:9".parse().unwrap()).unwrap().is_loopback());
    }
}
