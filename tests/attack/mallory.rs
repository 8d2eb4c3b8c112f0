//! Somebody who may join, and means harm: over a connection that is up, video that is none, storms of requests for key
//! frames, data channels full of rubbish, and malformed datagrams from an address that the server trusts.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use str0m::change::SdpAnswer;
use str0m::channel::ChannelId;
use str0m::media::{
    Direction, KeyframeRequestKind, MediaKind, Mid, Rid, Simulcast, SimulcastLayer,
};
use str0m::net::{Protocol, Receive};
use str0m::rtp::RtpWrite;
use str0m::{Candidate, Event, Input, Output, Rtc};

use crate::datagrams::malformed;
use crate::server::{Client, Server};

/// From one round to the next.
const ROUND: Duration = Duration::from_millis(10);

/// Connected, or about to be.
pub(crate) struct Mallory {
    rtc: Rtc,
    socket: UdpSocket,
    server: SocketAddr,
    /// What is published, if anything is.
    publishes: Option<Mid>,
    /// What others publish, and is watched.
    watches: Vec<Mid>,
    channels: Vec<ChannelId>,
    connected: bool,
    // The participant goes with its socket.
    _signal: Client,
}

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Deeds {
    /// Packets of video.
    pub packets: u64,
    /// Messages that a data channel took.
    pub messages: u64,
    /// Malformed datagrams from the connection's own address.
    pub datagrams: u64,
    /// Requests for key frames.
    pub requests: u64,
}

/// Where media goes, as the server tells everybody.
pub(crate) async fn media_address(server: &Server) -> SocketAddr {
    join(server, "nobody").await.server
}

/// Joins a room, watches who is there or else publishes three layers, and opens data channels.
pub(crate) async fn join(server: &Server, room: &str) -> Mallory {
    let (mut signal, welcome) = Client::join(server, room, "Mallory").await;
    assert_eq!(welcome["type"], "welcome", "{welcome}");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_nonblocking(true).expect("a socket that does not block");
    let mut rtc =
        Rtc::builder().clear_codecs().enable_vp9(true).set_rtp_mode(true).build(Instant::now());
    let local = socket.local_addr().expect("an address");
    rtc.add_local_candidate(Candidate::host(local, "udp").expect("a candidate"));
    let mut api = rtc.sdp_api();
    let tracks = welcome["tracks"].as_array().expect("tracks");
    let watched: Vec<_> = tracks
        .iter()
        .map(|track| {
            let mid = api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
            (mid, track["id"].clone())
        })
        .collect();
    let publishes = watched.is_empty().then(|| {
        let mut simulcast = Simulcast::new();
        for rid in ["q", "h", "f"] {
            simulcast.add_send_layer(SimulcastLayer::new(rid));
        }
        api.add_media(MediaKind::Video, Direction::SendOnly, None, None, Some(simulcast))
    });
    for name in ["windlass-regions", "windlass-anchors", "whatever"] {
        api.add_channel(name.into());
    }
    let (offer, pending) = api.apply().expect("an offer");
    let publish =
        publishes.map(|mid| json!({"mid": mid.to_string(), "kind": "video", "name": "camera"}));
    let subscribe =
        watched.iter().map(|(mid, track)| json!({"mid": mid.to_string(), "track": track}));
    let (publish, subscribe): (Vec<_>, Vec<_>) =
        (publish.into_iter().collect(), subscribe.collect());
    let sdp = offer.to_sdp_string();
    signal
        .say(&json!({"type": "offer", "id": 1, "sdp": sdp, "publish": publish, "subscribe": subscribe}))
        .await;
    let answer = signal.hear(&["answer", "error"]).await;
    let sdp = answer["sdp"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let candidate =
        sdp.lines().find_map(|line| line.strip_prefix("a=candidate:")).expect("a candidate");
    let words: Vec<&str> = candidate.split(' ').collect();
    let server = format!("{}:{}", words[4], words[5]).parse().expect("an address");
    let answer = SdpAnswer::from_sdp_string(sdp).expect("an answer");
    rtc.sdp_api().accept_answer(pending, answer).expect("an answer that fits");
    Mallory {
        rtc,
        socket,
        server,
        publishes,
        watches: watched.into_iter().map(|(mid, _)| mid).collect(),
        channels: Vec::new(),
        connected: false,
        _signal: signal,
    }
}

impl Mallory {
    /// Does harm until told to stop.
    pub(crate) fn attack(mut self, stop: &AtomicBool) -> Deeds {
        let mut dice = StdRng::seed_from_u64(88);
        let (mut deeds, mut seq) = (Deeds::default(), 1u64);
        while !stop.load(Ordering::Relaxed) {
            let round = Instant::now() + ROUND;
            self.talk();
            if self.connected {
                self.publish(&mut dice, &mut seq, &mut deeds);
                self.chatter(&mut dice, &mut deeds);
                let mut api = self.rtc.direct_api();
                for &mid in &self.watches {
                    let Some(stream) = api.stream_rx_by_mid(mid, None) else { continue };
                    stream.request_keyframe(KeyframeRequestKind::Pli);
                    deeds.requests += 1;
                }
            }
            for _ in 0..4 {
                let datagram = malformed(&mut dice);
                deeds.datagrams += u64::from(self.socket.send_to(&datagram, self.server).is_ok());
            }
            std::thread::sleep(round.saturating_duration_since(Instant::now()));
        }
        assert!(self.connected, "Mallory was never inside");
        deeds
    }

    /// Receives and sends what the connection needs; one that has been closed stays so.
    fn talk(&mut self) {
        let mut buffer = [0; 2048];
        let destination = self.socket.local_addr().expect("an address");
        while let Ok((size, source)) = self.socket.recv_from(&mut buffer) {
            let Ok(contents) = buffer[..size].try_into() else { continue };
            let receive = Receive { proto: Protocol::Udp, source, destination, contents };
            let _ = self.rtc.handle_input(Input::Receive(Instant::now(), receive));
            self.drain();
        }
        let _ = self.rtc.handle_input(Input::Timeout(Instant::now()));
        self.drain();
    }

    fn drain(&mut self) {
        while let Ok(output) = self.rtc.poll_output() {
            match output {
                Output::Timeout(_) => return,
                Output::Transmit(t) => drop(self.socket.send_to(&t.contents, t.destination)),
                Output::Event(Event::Connected) => self.connected = true,
                Output::Event(Event::ChannelOpen(id, _)) => self.channels.push(id),
                Output::Event(_) => {}
            }
        }
    }

    /// Packets with payloads that are no VP9, numbers and times that jump.
    fn publish(&mut self, dice: &mut StdRng, seq: &mut u64, deeds: &mut Deeds) {
        let pt = self.rtc.codec_config().find(|p| p.spec().format.profile_id == Some(0));
        let pt = pt.map(str0m::format::PayloadParams::pt);
        let Some((pt, mid)) = pt.zip(self.publishes) else { return };
        for rid in ["q", "h", "f"] {
            let mut api = self.rtc.direct_api();
            let Some(stream) = api.stream_tx_by_mid(mid, Some(Rid::from(rid))) else {
                continue;
            };
            for _ in 0..3 {
                *seq +=
                    if dice.random_range(0..50) == 0 { dice.random_range(1..40_000) } else { 1 };
                let length = dice.random_range(0..1100);
                let payload = (0..length).map(|_| dice.random()).collect::<Vec<u8>>();
                let write =
                    RtpWrite::new(pt, (*seq).into(), dice.random(), Instant::now(), payload);
                stream.write_rtp(write.marker(dice.random()));
                deeds.packets += 1;
            }
        }
        self.drain();
    }

    /// Rubbish of all sizes on every channel.
    fn chatter(&mut self, dice: &mut StdRng, deeds: &mut Deeds) {
        for &id in &self.channels {
            let length = [0, 1, 7, 40, 900, 16_000, 70_000][dice.random_range(0..7)];
            let message: Vec<u8> = (0..length).map(|_| dice.random()).collect();
            let Some(mut channel) = self.rtc.channel(id) else { continue };
            deeds.messages += u64::from(channel.write(dice.random(), &message).unwrap_or(false));
        }
        self.drain();
    }
}
