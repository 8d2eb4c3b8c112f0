//! Somebody who may join, and means harm: over a connection that is up, video that is none, storms of requests for key
//! frames, data channels full of rubbish, and malformed datagrams from an address that the server trusts.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use str0m::media::Mid;
use str0m::rtp::RtpWrite;
use windlass_testkit::Video;
use windlass_types::Layer;

use crate::connection::{self, Connection, vp9};
use crate::datagrams::malformed;
use crate::server::{Client, Server};

/// From one round to the next.
const ROUND: Duration = Duration::from_millis(10);

/// Connected, or about to be.
pub(crate) struct Mallory {
    connection: Connection,
    server: SocketAddr,
    /// What is published, if anything is.
    publishes: Option<Mid>,
    /// What others publish, and is watched.
    watches: Vec<Mid>,
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
    let mut connection = Connection::new(vp9());
    let watched = welcome["tracks"].as_array().expect("tracks");
    let video = match watched.len() {
        0 => vec![Video::SendLayers],
        tracks => vec![Video::Receive; tracks],
    };
    let channels = ["windlass-regions", "windlass-anchors", "whatever"];
    let offered = connection.client.offer(&video, &channels);
    let mids = offered.mids.clone();
    let (publishes, watches) =
        if watched.is_empty() { (Some(mids[0]), Vec::new()) } else { (None, mids) };
    let publish =
        publishes.map(|mid| json!({"mid": mid.to_string(), "kind": "video", "name": "camera"}));
    let publish: Vec<_> = publish.into_iter().collect();
    let subscribe = watches.iter().zip(watched);
    let subscribe: Vec<_> = subscribe
        .map(|(mid, track)| json!({"mid": mid.to_string(), "track": track["id"]}))
        .collect();
    let answer = connection.negotiate(&mut signal, offered, &publish, &subscribe).await;
    let server = connection::media_address(&answer);
    Mallory { connection, server, publishes, watches, _signal: signal }
}

impl Mallory {
    /// Does harm until told to stop.
    pub(crate) fn attack(mut self, stop: &AtomicBool) -> Deeds {
        let mut dice = StdRng::seed_from_u64(88);
        let (mut deeds, mut seq) = (Deeds::default(), 1u64);
        while !stop.load(Ordering::Relaxed) {
            let round = Instant::now() + ROUND;
            self.connection.talk();
            if self.connection.client.connected {
                self.publish(&mut dice, &mut seq, &mut deeds);
                self.chatter(&mut dice, &mut deeds);
                for &mid in &self.watches {
                    deeds.requests += u64::from(self.connection.client.ask_for_key_frame(mid));
                }
            }
            for _ in 0..4 {
                let datagram = malformed(&mut dice);
                let sent = self.connection.socket.send_to(&datagram, self.server);
                deeds.datagrams += u64::from(sent.is_ok());
            }
            std::thread::sleep(round.saturating_duration_since(Instant::now()));
        }
        assert!(self.connection.client.connected, "Mallory was never inside");
        deeds
    }

    /// Packets with payloads that are no VP9, numbers and times that jump.
    fn publish(&mut self, dice: &mut StdRng, seq: &mut u64, deeds: &mut Deeds) {
        let Some(mid) = self.publishes else { return };
        for layer in Layer::ALL {
            for _ in 0..3 {
                *seq +=
                    if dice.random_range(0..50) == 0 { dice.random_range(1..40_000) } else { 1 };
                let length = dice.random_range(0..1100);
                let payload = (0..length).map(|_| dice.random()).collect::<Vec<u8>>();
                let (timestamp, marker) = (dice.random(), dice.random());
                let written = self.connection.client.write(mid, Some(layer), |pt| {
                    RtpWrite::new(pt, (*seq).into(), timestamp, Instant::now(), payload)
                        .marker(marker)
                });
                deeds.packets += u64::from(written);
            }
        }
        self.connection.flush();
    }

    /// Rubbish of all sizes on every channel.
    fn chatter(&mut self, dice: &mut StdRng, deeds: &mut Deeds) {
        for id in self.connection.client.channels.clone() {
            let length = [0, 1, 7, 40, 900, 16_000, 70_000][dice.random_range(0..7)];
            let message: Vec<u8> = (0..length).map(|_| dice.random()).collect();
            let Some(mut channel) = self.connection.client.rtc.channel(id) else { continue };
            deeds.messages += u64::from(channel.write(dice.random(), &message).unwrap_or(false));
        }
        self.connection.flush();
    }
}
