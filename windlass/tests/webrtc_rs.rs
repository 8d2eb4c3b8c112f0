//! A call between two clients on webrtc-rs, another WebRTC stack than the server's, up to the pictures that anchors
//! make.

mod server;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rtc::rtp::codec::vp9::Vp9Packet;
use rtc::rtp::packetizer::Depacketizer;
use serde_json::{Value, json};
use server::{Client, Server};
use windlass_files::ivf::frames;
use windlass_hybrid::{HybridConfig, HybridDecoder};
use windlass_types::message::Reassembler;
use windlass_webrtc_client::{Arrival, Connection, Event, Offered, VideoPacket};

/// Real pictures, coded as in a call.
const CLIP: &[u8] = include_bytes!("../../hybrid/vp9/tests/fixtures/realtime.ivf");
/// Maximum part of a frame in a packet, in bytes.
const PART: usize = 1100;
/// Time between two frames.
const EVERY: Duration = Duration::from_millis(33);
/// Maximum time until the pictures have come.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Number of anchors to wait for.
const ANCHORS: u64 = 5;

/// A frame as RTP payloads: the descriptor of RFC 9628 with a picture id, then a part.
fn payloads(frame: &[u8], number: u16, key: bool) -> Vec<Bytes> {
    let parts: Vec<&[u8]> = frame.chunks(PART).collect();
    let [high, low] = (number & 0x7fff | 0x8000).to_be_bytes();
    let payload = |(n, part): (usize, &&[u8])| {
        let begins = if n == 0 { 0x08 } else { 0 };
        let ends = if n + 1 == parts.len() { 0x04 } else { 0 };
        let flags = 0x80 | if key { 0 } else { 0x40 } | begins | ends;
        Bytes::from([&[flags, high, low], *part].concat())
    };
    parts.iter().enumerate().map(payload).collect()
}

/// Joins a room as a client that can decode anchors.
async fn join(server: &Server, name: &str) -> (Client, Value) {
    let mut client = Client::open(server).await;
    let codecs = ["htj2k"];
    client
        .say(&json!({"type": "join", "version": 1, "room": "tea", "name": name, "anchor_codecs": codecs}))
        .await;
    let welcome = client.hear(&["welcome", "error"]).await;
    assert_eq!(welcome["type"], "welcome", "{welcome}");
    (client, welcome)
}

/// A connection with its offer, which has a place for the server's data channel.
async fn offered(connection: &Connection) -> Offered {
    connection.open("ctl").await.expect("a data channel");
    connection.offer().await.expect("an offer")
}

/// Gives an offer to the server, and its answer to the connection.
async fn negotiate(signal: &mut Client, connection: &mut Connection, offer: Value) {
    signal.say(&offer).await;
    let answer = signal.hear(&["answer", "error"]).await;
    let sdp = answer["sdp"].as_str().unwrap_or_else(|| panic!("{answer}"));
    connection.accept(sdp).await.expect("an answer that fits");
}

fn here() -> IpAddr {
    Ipv4Addr::LOCALHOST.into()
}

/// Sends the clip again and again, from the time at which media can flow.
async fn publish(mut connection: Connection) {
    while !matches!(connection.event().await, Some(Event::Connected)) {}
    let frames = frames(CLIP);
    let (mut seq, mut ticks) = (65_530u16, tokio::time::interval(EVERY));
    for number in 0u32.. {
        ticks.tick().await;
        let at = number as usize % frames.len();
        let all = payloads(frames[at], number as u16, at == 0);
        let last = all.len() - 1;
        for (n, payload) in all.into_iter().enumerate() {
            let (timestamp, marker) = (number * 3000, n == last);
            let packet = VideoPacket { seq, timestamp, marker, payload };
            connection.write("q", packet).await.expect("a packet is taken");
            seq = seq.wrapping_add(1);
        }
    }
}

/// A viewer: packets become frames by webrtc-rs, frames and anchors become pictures.
struct Viewer {
    decoder: HybridDecoder,
    /// A decoder of the same frames, without anchors.
    plain: HybridDecoder,
    anchors: Reassembler,
    /// Packets of frames that are not complete yet, by their numbers.
    packets: BTreeMap<u64, Arrival>,
    /// Number of the next packet.
    next: Option<u64>,
    frame: Vec<u8>,
    /// Number of pictures of twice the size that were made.
    pictures: u64,
    /// Number of pictures that would be others without anchors.
    detailed: u64,
}

impl Viewer {
    fn new() -> Viewer {
        let decoder = || HybridDecoder::new(HybridConfig { scale: 2, ..HybridConfig::default() });
        Viewer {
            decoder: decoder(),
            plain: decoder(),
            anchors: Reassembler::new(),
            packets: BTreeMap::new(),
            next: None,
            frame: Vec::new(),
            pictures: 0,
            detailed: 0,
        }
    }

    /// Takes a packet, and decodes the frames that are complete by it, in their order.
    fn arrived(&mut self, arrival: Arrival) {
        self.next.get_or_insert(arrival.seq);
        self.packets.insert(arrival.seq, arrival);
        while let Some(packet) = self.next.and_then(|next| self.packets.remove(&next)) {
            self.next = self.next.map(|next| next + 1);
            if packet.payload.is_empty() {
                continue;
            }
            let mut descriptor = Vp9Packet::default();
            let part = descriptor.depacketize(&packet.payload).expect("a descriptor of VP9");
            self.frame.extend_from_slice(&part);
            if descriptor.e {
                let frame = std::mem::take(&mut self.frame);
                for decoder in [&mut self.decoder, &mut self.plain] {
                    let decoded = decoder.push_frame(packet.timestamp, &frame);
                    decoded.expect("the publisher's frame");
                }
                let high = self.decoder.hr().expect("a picture");
                let low = self.decoder.lr().expect("a low picture").to_picture();
                assert_eq!(high.width(), 2 * low.width());
                self.pictures += 1;
                self.detailed += u64::from(Some(high) != self.plain.hr());
            }
        }
    }

    fn message(&mut self, message: &[u8]) {
        if let Ok(Some(anchor)) = self.anchors.push(message) {
            self.decoder.push_anchor(&anchor);
        }
    }
}

#[test]
fn a_viewer_on_another_stack_decodes_anchors_into_pictures() {
    let server = Server::start_enhanced(&["--network", "xs", "--anchor-fraction", "0.2"]);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (mut ana, _) = join(&server, "Ana").await;
        let mut sends = Connection::new(here()).await.expect("a connection");
        sends.send(&["q"]).await.expect("a camera");
        let offer = offered(&sends).await;
        let publish_list = json!([{"mid": offer.sends, "kind": "video", "name": "camera"}]);
        let offer = json!({"type": "offer", "id": 1, "sdp": offer.sdp, "publish": publish_list, "subscribe": []});
        negotiate(&mut ana, &mut sends, offer).await;
        let publishing = tokio::spawn(publish(sends));

        let (mut bo, welcome) = join(&server, "Bo").await;
        let track = &welcome["tracks"][0]["id"];
        let mut receives = Connection::new(here()).await.expect("a connection");
        receives.receive().await.expect("a section");
        let offer = offered(&receives).await;
        let subscribe = json!([{"mid": offer.receives[0], "track": track, "max": "q+"}]);
        let offer = json!({"type": "offer", "id": 1, "sdp": offer.sdp, "publish": [], "subscribe": subscribe});
        negotiate(&mut bo, &mut receives, offer).await;

        let mut viewer = Viewer::new();
        let since = Instant::now();
        while viewer.decoder.stats().applied < ANCHORS {
            let (pictures, stats) = (viewer.pictures, viewer.decoder.stats());
            assert!(since.elapsed() < TIMEOUT, "{pictures} pictures, {stats:?}, {}", server.log());
            let event = tokio::time::timeout(TIMEOUT, receives.event()).await;
            match event.expect("silence").expect("a connection") {
                Event::Arrived(packet) => viewer.arrived(packet),
                Event::Message(message) => viewer.message(&message),
                Event::Lost => panic!("the connection was lost"),
                Event::Connected | Event::KeyFrameWanted => {}
            }
        }
        let (pictures, detailed) = (viewer.pictures, viewer.detailed);
        let (stats, counters) = (viewer.decoder.stats(), receives.counters());
        eprintln!("{pictures} pictures, {detailed} by anchors, {stats:?}, {counters:?}");
        assert!(detailed > 0, "anchors changed nothing: {stats:?}");
        assert!(receives.counters().reports_sent > 0, "no transport-wide feedback");
        publishing.abort();
    });
}
