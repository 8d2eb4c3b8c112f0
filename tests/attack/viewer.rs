//! Somebody who watches an honest call by a real connection, and may misuse it.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use str0m::change::SdpAnswer;
use str0m::media::{Direction, KeyframeRequestKind, MediaKind, Mid};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, Input, Output, Rtc};

use crate::forger::Forger;
use crate::server::{Client, Server};

/// From one look at the socket to the next.
const ROUND: Duration = Duration::from_millis(5);
/// How long media may take to come.
const PATIENCE: Duration = Duration::from_secs(10);
/// USE-CANDIDATE, with its length.
const NOMINATES: [u8; 4] = [0, 0x25, 0, 0];

/// Watches all video of a room.
pub(crate) struct Viewer {
    rtc: Rtc,
    socket: UdpSocket,
    server: SocketAddr,
    watches: Vec<Mid>,
    /// Packets of media that came.
    pub packets: u64,
    forger: Forger,
    /// The next request that nominates leaves by this one instead.
    elsewhere: Option<UdpSocket>,
    // The participant goes with its socket.
    _signal: Client,
}

/// One of the rooms that there are.
pub(crate) fn a_room(server: &Server) -> String {
    let answer = server.get("/admin/rooms");
    let body = answer.split_once("\r\n\r\n").expect("a body").1;
    let rooms: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
    rooms["rooms"][0]["room"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

impl Viewer {
    /// Joins, and waits until it is shown something.
    pub(crate) async fn join(server: &Server, room: &str) -> Viewer {
        let (mut signal, welcome) = Client::join(server, room, "Mallory").await;
        assert_eq!(welcome["type"], "welcome", "{welcome}");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_nonblocking(true).expect("a socket that does not block");
        let forger = Forger::new();
        let mut rtc = Rtc::builder()
            .set_crypto_provider(forger.provider())
            .clear_codecs()
            .enable_vp9(true)
            .set_rtp_mode(true)
            .build(Instant::now());
        let local = socket.local_addr().expect("an address");
        rtc.add_local_candidate(Candidate::host(local, "udp").expect("a candidate"));
        let mut api = rtc.sdp_api();
        let tracks = welcome["tracks"].as_array().expect("tracks");
        let video = tracks.iter().filter(|track| track["kind"] == "video");
        let watched: Vec<_> = video
            .map(|track| {
                let mid = api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
                (mid, track["id"].clone())
            })
            .collect();
        assert!(!watched.is_empty(), "{welcome}");
        let (offer, pending) = api.apply().expect("an offer");
        let subscribe: Vec<_> = watched
            .iter()
            .map(|(mid, track)| json!({"mid": mid.to_string(), "track": track}))
            .collect();
        let sdp = offer.to_sdp_string();
        signal
            .say(&json!({"type": "offer", "id": 1, "sdp": sdp, "publish": [], "subscribe": subscribe}))
            .await;
        let answer = signal.hear(&["answer", "error"]).await;
        let sdp = answer["sdp"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let candidate = sdp.lines().find_map(|line| line.strip_prefix("a=candidate:"));
        let words: Vec<&str> = candidate.expect("a candidate").split(' ').collect();
        let server = format!("{}:{}", words[4], words[5]).parse().expect("an address");
        let answer = SdpAnswer::from_sdp_string(sdp).expect("an answer");
        rtc.sdp_api().accept_answer(pending, answer).expect("an answer that fits");
        let watches = watched.into_iter().map(|(mid, _)| mid).collect();
        let (packets, elsewhere) = (0, None);
        let mut viewer =
            Viewer { rtc, socket, server, watches, packets, forger, elsewhere, _signal: signal };
        let since = Instant::now();
        while viewer.packets < 50 {
            assert!(since.elapsed() < PATIENCE, "nothing is shown");
            viewer.round();
        }
        viewer
    }

    /// Takes part for a while.
    pub(crate) fn watch(&mut self, span: Duration) {
        let end = Instant::now() + span;
        while Instant::now() < end {
            self.round();
        }
    }

    /// Sends RTCP of its own making; whether it could.
    pub(crate) fn say(&mut self, packets: &[u8]) -> bool {
        let sealed = self.forger.seal(packets);
        sealed.is_some_and(|datagram| self.socket.send_to(&datagram, self.server).is_ok())
    }

    /// The streams that it watches.
    pub(crate) fn streams(&mut self) -> Vec<u32> {
        let mut api = self.rtc.direct_api();
        let of = |&mid: &Mid| api.stream_rx_by_mid(mid, None).map(|stream| *stream.ssrc());
        self.watches.iter().filter_map(of).collect()
    }

    /// Asks for a key frame of all that it watches.
    pub(crate) fn ask(&mut self) {
        for &mid in &self.watches {
            if let Some(stream) = self.rtc.direct_api().stream_rx_by_mid(mid, None) {
                stream.request_keyframe(KeyframeRequestKind::Pli);
            }
        }
    }

    /// Lets the next request that nominates come from another address. What is sent there can be read from the socket.
    pub(crate) fn nominate(&mut self, from: &str) -> UdpSocket {
        let socket = UdpSocket::bind((from, 0)).expect("another socket");
        socket.set_nonblocking(true).expect("a socket that does not block");
        self.elsewhere = Some(socket.try_clone().expect("the same socket"));
        let since = Instant::now();
        while self.elsewhere.is_some() {
            assert!(since.elapsed() < PATIENCE, "it nominates nothing");
            self.round();
        }
        socket
    }

    fn round(&mut self) {
        let end = Instant::now() + ROUND;
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
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
    }

    fn drain(&mut self) {
        while let Ok(output) = self.rtc.poll_output() {
            match output {
                Output::Timeout(_) => return,
                Output::Transmit(t) => {
                    let nominates = t.contents.starts_with(&[0, 1])
                        && t.contents.windows(4).any(|part| part == NOMINATES);
                    let by = self.elsewhere.take_if(|_| nominates);
                    let _ = by.as_ref().unwrap_or(&self.socket).send_to(&t.contents, self.server);
                }
                Output::Event(Event::RtpPacket(_)) => self.packets += 1,
                Output::Event(_) => {}
            }
        }
    }
}
