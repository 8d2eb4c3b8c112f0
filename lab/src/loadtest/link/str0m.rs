//! A connection on str0m, the server's own stack, and its UDP socket.
//!
//! The server knows clients by their addresses, so each has a socket of its own. Media is sent in the stack's RTP mode:
//! a replay sets numbers and timestamps itself.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::{Bytes, BytesMut};
use str0m::change::{SdpAnswer, SdpOffer, SdpPendingOffer};
use str0m::format::PayloadParams;
use str0m::media::{
    Direction, KeyframeRequestKind, MediaKind, Mid, Pt, Rid, Simulcast, SimulcastLayer,
};
use str0m::net::{Protocol, Receive};
use str0m::rtp::{RtpPacket, RtpWrite};
use str0m::{Candidate, Event, IceConnectionState, Input, Output, Rtc};
use tokio::net::UdpSocket;
use windlass_types::{Layer, VideoCodec};

use super::address::{candidate, local_for};
use super::traffic::{Arrival, LinkEvent, Outgoing};
use crate::loadtest::access::Access;
use crate::loadtest::tally::{LinkTotals, Totals};
use crate::viewer::Part;

/// Maximum length of a datagram that is read, in bytes.
const DATAGRAM_BYTES: usize = 2048;
/// Time from one look at an emulated link to the next.
const GRAIN: Duration = Duration::from_micros(500);
/// Maximum number of datagrams that are read before other work.
const BURST: usize = 64;
/// Payload type of H.264 in our offers.
const H264: u8 = 108;
/// Payload type of retransmissions of H.264 in our offers.
const H264_RTX: u8 = 109;
/// H.264 in constrained baseline profile, level 3.1.
const BASELINE: u32 = 0x0042_e01f;

/// The WebRTC connection of one client.
pub(in crate::loadtest) struct Str0m {
    rtc: Rtc,
    /// The codec of all video.
    codec: VideoCodec,
    /// The offer that waits for its answer.
    pending: Option<SdpPendingOffer>,
    /// Section and payload type of what the client sends.
    camera: Option<(Mid, Option<Pt>)>,
    socket: Option<(UdpSocket, SocketAddr)>,
    /// The emulated link, if there is one.
    access: Option<Access>,
    due: Instant,
    buffer: BytesMut,
    counted: Counted,
    events: Vec<Event>,
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

impl Str0m {
    /// A connection before its first offer, over the machine's own network or an emulated link.
    pub(super) fn new(codec: VideoCodec, access: Option<Access>) -> Str0m {
        let now = Instant::now();
        let mut config = Rtc::builder().clear_codecs().enable_opus(true, false).set_rtp_mode(true);
        let known = config.codec_config();
        match codec {
            VideoCodec::Vp9 => known.enable_vp9(true),
            VideoCodec::Vp8 => known.enable_vp8(true),
            VideoCodec::Av1 => known.enable_av1(true),
            // All of the stack's own are of several profiles. This one is what calls have.
            VideoCodec::H264 => known.add_h264(H264.into(), Some(H264_RTX.into()), true, BASELINE),
        }
        Str0m {
            rtc: config.build(now),
            codec,
            pending: None,
            camera: None,
            socket: None,
            access,
            due: now,
            buffer: BytesMut::zeroed(DATAGRAM_BYTES),
            counted: Counted::default(),
            events: Vec::new(),
            connected: false,
            lost: false,
        }
    }

    /// Offers to send video in these layers, or without any in one encoding that has no name.
    pub(super) fn offer_camera(
        &mut self,
        layers: &[Layer],
        channel: bool,
    ) -> Result<(String, String)> {
        let mut simulcast = Simulcast::new();
        for layer in layers {
            simulcast.add_send_layer(SimulcastLayer::new(layer.rid()));
        }
        let simulcast = (!layers.is_empty()).then_some(simulcast);
        let mut api = self.rtc.sdp_api();
        let mid = api.add_media(MediaKind::Video, Direction::SendOnly, None, None, simulcast);
        if channel {
            // As the SDK does, so that the server's data channel has a place.
            api.add_channel("ctl".into());
        }
        let (sdp, pending) = api.apply().context("nothing to offer")?;
        self.pending = Some(pending);
        self.camera = Some((mid, None));
        Ok((sdp.to_sdp_string(), mid.to_string()))
    }

    /// Offers to receive so many more videos.
    pub(super) fn offer_to_receive(
        &mut self,
        more: usize,
        channel: bool,
    ) -> Result<(String, Vec<String>)> {
        let mut api = self.rtc.sdp_api();
        if channel {
            api.add_channel("ctl".into());
        }
        let receive = |_| api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
        let mids = (0..more).map(receive).map(|mid| mid.to_string()).collect();
        let (sdp, pending) = api.apply().context("nothing to offer")?;
        self.pending = Some(pending);
        Ok((sdp.to_sdp_string(), mids))
    }

    /// Takes the server's answer. The first one names the address of the server's media.
    pub(super) async fn accept(&mut self, sdp: &str) -> Result<()> {
        self.reach(sdp).await?;
        let pending = self.pending.take().context("an answer without an offer")?;
        let answer = SdpAnswer::from_sdp_string(sdp).context("the server's answer")?;
        self.rtc.sdp_api().accept_answer(pending, answer).context("the server's answer")?;
        self.due = Instant::now();
        let negotiated = self.negotiated(sdp);
        if let Some((_, pt)) = &mut self.camera {
            *pt = Some(negotiated?);
        }
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

    /// The payload type of the codec, which the answer must have; of VP9 that of profile 0.
    fn negotiated(&self, answer: &str) -> Result<Pt> {
        // The stack keeps what the answer leaves out.
        let named = format!(" {}/90000", self.codec.name());
        let takes = answer.lines().any(|l| l.starts_with("a=rtpmap:") && l.ends_with(&named));
        ensure!(takes, "the server does not take {}", self.codec.name());
        let video = |p: &PayloadParams| {
            let spec = p.spec();
            spec.codec.is_video() && spec.format.profile_id.is_none_or(|profile| profile == 0)
        };
        let found = self.rtc.codec_config().find(video);
        found.map(PayloadParams::pt).context("no video is offered")
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

    /// Sends a frame of a layer, or of the only encoding.
    pub(super) fn send(&mut self, layer: Option<Layer>, frame: Outgoing) -> Result<()> {
        let (mid, pt) = self.camera.context("there is no camera")?;
        let pt = pt.context("nothing is negotiated")?;
        let mut api = self.rtc.direct_api();
        let rid = layer.map(|layer| Rid::from(layer.rid()));
        let name = layer.map_or("", Layer::rid);
        let stream = api
            .stream_tx_by_mid(mid, rid)
            .with_context(|| format!("the server does not take layer {name}"))?;
        let last = frame.payloads.len().saturating_sub(1);
        for (n, payload) in frame.payloads.into_iter().enumerate() {
            let seq = frame.first + n as u64;
            let write = RtpWrite::new(pt, seq.into(), frame.timestamp, frame.at, payload);
            stream.write_rtp(write.marker(n == last).nackable(true));
        }
        Ok(())
    }

    /// Asks for a key frame of what a section receives. Returns whether it receives anything yet.
    pub(super) fn ask_for_key_frame(&mut self, mid: &str) -> bool {
        let mut api = self.rtc.direct_api();
        let Some(stream) = api.stream_rx_by_mid(Mid::from(mid), None) else { return false };
        stream.request_keyframe(KeyframeRequestKind::Pli);
        true
    }

    /// Reads waiting datagrams and lets time pass. Events are added to `said`.
    pub(super) fn run(&mut self, said: &mut Vec<LinkEvent>) -> Result<()> {
        let mut events = std::mem::take(&mut self.events);
        let ran = self.step(&mut events);
        for event in events.drain(..) {
            said.extend(match event {
                Event::KeyframeRequest(_) => Some(LinkEvent::KeyFrameWanted),
                Event::RtpPacket(packet) => self.arrival(packet).map(LinkEvent::Arrived),
                Event::ChannelData(message) => Some(LinkEvent::Message(message.data.into())),
                _ => None,
            });
        }
        self.events = events;
        ran
    }

    fn arrival(&mut self, packet: RtpPacket) -> Option<Arrival> {
        let mid = self.rtc.direct_api().stream_rx(&packet.header.ssrc)?.mid();
        Some(Arrival {
            mid: mid.to_string(),
            seq: *packet.seq_no,
            timestamp: packet.header.timestamp,
            part: Part::of(self.codec, &packet.payload, packet.header.marker),
            payload: Bytes::from_owner(packet.payload),
        })
    }

    fn step(&mut self, events: &mut Vec<Event>) -> Result<()> {
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
            to.add(LinkTotals::new(stats, underway));
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
