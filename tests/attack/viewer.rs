//! Somebody who watches an honest call by a real connection, and may misuse it.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use str0m::Event;
use str0m::media::Mid;
use windlass_testkit::{Said, Video};

use crate::connection::{Connection, media_address, socket, vp9};
use crate::forger::Forger;
use crate::server::{Client, Server};

/// From one look at the socket to the next.
const ROUND: Duration = Duration::from_millis(5);
/// How long media may take to come.
const TIMEOUT: Duration = Duration::from_secs(10);
/// USE-CANDIDATE, with its length.
const NOMINATES: [u8; 4] = [0, 0x25, 0, 0];

/// Watches all video of a room.
pub(crate) struct Viewer {
    connection: Connection,
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
        let forger = Forger::new();
        let mut connection = Connection::new(vp9().set_crypto_provider(forger.provider()));
        let tracks = welcome["tracks"].as_array().expect("tracks");
        let video: Vec<_> = tracks.iter().filter(|track| track["kind"] == "video").collect();
        assert!(!video.is_empty(), "{welcome}");
        let offered = connection.client.offer(&vec![Video::Receive; video.len()], &[]);
        let watches = offered.mids.clone();
        let subscribe = watches.iter().zip(video);
        let subscribe: Vec<_> = subscribe
            .map(|(mid, track)| json!({"mid": mid.to_string(), "track": track["id"]}))
            .collect();
        let answer = connection.negotiate(&mut signal, offered, &[], &subscribe).await;
        let server = media_address(&answer);
        let (packets, elsewhere) = (0, None);
        let mut viewer =
            Viewer { connection, server, watches, packets, forger, elsewhere, _signal: signal };
        let since = Instant::now();
        while viewer.packets < 50 {
            assert!(since.elapsed() < TIMEOUT, "nothing is shown");
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
        sealed
            .is_some_and(|datagram| self.connection.socket.send_to(&datagram, self.server).is_ok())
    }

    /// The streams that it watches.
    pub(crate) fn streams(&mut self) -> Vec<u32> {
        let mut api = self.connection.client.rtc.direct_api();
        let of = |&mid: &Mid| api.stream_rx_by_mid(mid, None).map(|stream| *stream.ssrc());
        self.watches.iter().filter_map(of).collect()
    }

    /// Asks for a key frame of all that it watches.
    pub(crate) fn ask(&mut self) {
        for &mid in &self.watches {
            self.connection.client.ask_for_key_frame(mid);
        }
    }

    /// Lets the next request that nominates come from another address. What is sent there can be read from the socket.
    pub(crate) fn nominate(&mut self, from: &str) -> UdpSocket {
        let socket = socket(from);
        self.elsewhere = Some(socket.try_clone().expect("the same socket"));
        let since = Instant::now();
        while self.elsewhere.is_some() {
            assert!(since.elapsed() < TIMEOUT, "it nominates nothing");
            self.round();
        }
        socket
    }

    fn round(&mut self) {
        let end = Instant::now() + ROUND;
        let (packets, elsewhere) = (&mut self.packets, &mut self.elsewhere);
        self.connection.talk_by(&mut |socket, said| match said {
            Said::Datagram(sent) => {
                let nominates = sent.contents.starts_with(&[0, 1])
                    && sent.contents.windows(4).any(|part| part == NOMINATES);
                let by = elsewhere.take_if(|_| nominates);
                let _ = by.as_ref().unwrap_or(socket).send_to(&sent.contents, sent.destination);
            }
            Said::Event(event) => *packets += u64::from(matches!(*event, Event::RtpPacket(_))),
        });
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
    }
}
