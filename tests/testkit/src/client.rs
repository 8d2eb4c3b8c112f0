//! A WebRTC client without I/O: datagrams and time in, datagrams and events out.

use std::net::SocketAddr;
use std::time::Instant;

use str0m::change::{SdpAnswer, SdpPendingOffer};
use str0m::channel::ChannelId;
use str0m::format::{Codec, PayloadParams};
use str0m::media::{
    Direction, KeyframeRequestKind, MediaKind, Mid, Pt, Rid, Simulcast, SimulcastLayer,
};
use str0m::net::{Protocol, Receive, Transmit};
use str0m::rtp::RtpWrite;
use str0m::{Candidate, Event, Input, Output, Rtc, RtcConfig, RtcError};
use windlass_types::{Layer, VideoCodec};

/// A WebRTC client at one address.
pub struct Client {
    /// Connection of the client.
    pub rtc: Rtc,
    /// Address of the client.
    pub address: SocketAddr,
    /// Time at which [`Client::wake`] is due.
    pub due: Instant,
    /// Whether media can flow.
    pub connected: bool,
    /// Data channels that have opened.
    pub channels: Vec<ChannelId>,
}

/// A video section of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Video {
    /// The client sends video in three layers.
    SendLayers,
    /// The client sends video in one encoding, without a name for it.
    Send,
    /// The client receives video.
    Receive,
}

/// An offer that waits for its answer.
pub struct Offered {
    /// Session description of the offer.
    pub sdp: String,
    /// The new sections, in their order.
    pub mids: Vec<Mid>,
    pending: SdpPendingOffer,
}

/// An output of a client.
pub enum Said {
    /// A datagram to send.
    Datagram(Transmit),
    /// An event of the WebRTC stack.
    Event(Box<Event>),
}

impl Client {
    /// A client that supports a video codec and Opus.
    pub fn new(codec: VideoCodec, address: SocketAddr, now: Instant) -> Client {
        let mut builder = Rtc::builder().clear_codecs().enable_opus(true, false);
        let codecs = builder.codec_config();
        match codec {
            VideoCodec::Vp9 => codecs.enable_vp9(true),
            VideoCodec::Vp8 => codecs.enable_vp8(true),
            // Constrained baseline, in packetization mode 1.
            VideoCodec::H264 => codecs.add_h264(108.into(), Some(109.into()), true, 0x42_e01f),
            VideoCodec::Av1 => codecs.enable_av1(true),
        }
        Client::with(builder, address, now)
    }

    /// A client with its own settings. It reads and writes RTP in any case.
    pub fn with(builder: RtcConfig, address: SocketAddr, now: Instant) -> Client {
        let mut rtc = builder.set_rtp_mode(true).build(now);
        rtc.add_local_candidate(Candidate::host(address, "udp").expect("a candidate"));
        Client { rtc, address, due: now, connected: false, channels: Vec::new() }
    }

    /// Makes an offer. It has the existing sections, and new ones for `video` and data channels.
    pub fn offer(&mut self, video: &[Video], channels: &[&str]) -> Offered {
        let mut api = self.rtc.sdp_api();
        let mids = video.iter().map(|video| {
            let (direction, simulcast) = match video {
                Video::SendLayers => (Direction::SendOnly, Some(layers())),
                Video::Send => (Direction::SendOnly, None),
                Video::Receive => (Direction::RecvOnly, None),
            };
            api.add_media(MediaKind::Video, direction, None, None, simulcast)
        });
        let mids = mids.collect();
        for &label in channels {
            api.add_channel(label.into());
        }
        let (offer, pending) = api.apply().expect("something new to offer");
        Offered { sdp: offer.to_sdp_string(), mids, pending }
    }

    /// Takes the answer to an offer.
    pub fn accept(&mut self, now: Instant, offered: Offered, answer: &str) {
        let answer = SdpAnswer::from_sdp_string(answer).expect("an answer");
        let accepted = self.rtc.sdp_api().accept_answer(offered.pending, answer);
        accepted.expect("an answer that fits");
        self.due = now;
    }

    /// Takes a datagram. To be followed by [`Client::poll`].
    ///
    /// # Errors
    ///
    /// Where its WebRTC stack refuses the datagram, or has failed before.
    pub fn receive(
        &mut self,
        now: Instant,
        source: SocketAddr,
        data: &[u8],
    ) -> Result<(), RtcError> {
        let Ok(contents) = data.try_into() else { return Ok(()) };
        let (proto, destination) = (Protocol::Udp, self.address);
        self.rtc.handle_input(Input::Receive(now, Receive { proto, source, destination, contents }))
    }

    /// Sets the time. To be followed by [`Client::poll`].
    ///
    /// # Errors
    ///
    /// Where its WebRTC stack refuses to go on.
    pub fn wake(&mut self, now: Instant) -> Result<(), RtcError> {
        self.rtc.handle_input(Input::Timeout(now))
    }

    /// The next output; `None` when there is none before [`Client::due`].
    ///
    /// # Errors
    ///
    /// Where its WebRTC stack refuses to go on.
    pub fn poll(&mut self) -> Result<Option<Said>, RtcError> {
        Ok(Some(match self.rtc.poll_output()? {
            Output::Timeout(due) => {
                self.due = due;
                return Ok(None);
            }
            Output::Transmit(transmit) => Said::Datagram(transmit),
            Output::Event(event) => {
                match &event {
                    Event::Connected => self.connected = true,
                    Event::ChannelOpen(id, _) => self.channels.push(*id),
                    _ => {}
                }
                Said::Event(Box::new(event))
            }
        }))
    }

    /// Writes a packet of a layer, or of the only encoding: of VP9 where the client has it, else of its video codec.
    /// Returns `false` if the other side does not accept the encoding. To be followed by [`Client::wake`].
    pub fn write(
        &mut self,
        mid: Mid,
        layer: Option<Layer>,
        packet: impl FnOnce(Pt) -> RtpWrite,
    ) -> bool {
        let codecs = self.rtc.codec_config();
        let found = codecs.find(|p| match p.spec().codec {
            Codec::Vp9 => p.spec().format.profile_id == Some(0),
            codec => codec.is_video(),
        });
        let pt = found.map(PayloadParams::pt);
        let mut api = self.rtc.direct_api();
        let stream = api.stream_tx_by_mid(mid, layer.map(|layer| Rid::from(layer.rid())));
        let Some((stream, pt)) = stream.zip(pt) else { return false };
        stream.write_rtp(packet(pt));
        true
    }

    /// Requests a key frame of the video that a section receives. Returns whether the section receives any.
    pub fn ask_for_key_frame(&mut self, mid: Mid) -> bool {
        let mut api = self.rtc.direct_api();
        let Some(stream) = api.stream_rx_by_mid(mid, None) else { return false };
        stream.request_keyframe(KeyframeRequestKind::Pli);
        true
    }
}

fn layers() -> Simulcast {
    let mut simulcast = Simulcast::new();
    for layer in Layer::ALL {
        simulcast.add_send_layer(SimulcastLayer::new(layer.rid()));
    }
    simulcast
}
