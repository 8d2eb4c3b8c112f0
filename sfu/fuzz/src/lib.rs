//! A call in memory for the fuzz targets. It has the SFU's core, and a publisher and a subscriber of the WebRTC stack.
//! Inputs are cut from the fuzzer's bytes.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use str0m::change::{SdpAnswer, SdpPendingOffer};
use str0m::channel::ChannelId;
use str0m::media::{Direction, MediaKind, Mid, Simulcast, SimulcastLayer};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, Input, Output as RtcOutput, Rtc};
use windlass_sfu::core::{Core, Output};
use windlass_sfu::{
    Answer, JoinOptions, TrackKind, Offer, ParticipantId, Publish, SfuConfig, Subscribe,
};

/// Time that passes with one step while a call is set up.
const STEP: Duration = Duration::from_millis(10);

/// The fuzzer's bytes, which are taken from the front.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// The next byte; `None` at the end.
    pub fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// The next two bytes as a number, the high byte first; `None` at the end.
    pub fn word(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    /// A piece whose length the next two bytes give, below 1500, or the rest where it is shorter. `None` at the end.
    pub fn piece(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.word()?) % 1500;
        let (piece, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        Some(piece)
    }
}

/// A client that uses the WebRTC stack.
pub struct Client {
    /// Connection of the client.
    pub rtc: Rtc,
    /// Address of the client.
    pub address: SocketAddr,
    /// The only m-line of the client.
    pub mid: Mid,
    /// Data channels that have opened.
    pub channels: Vec<ChannelId>,
    /// Whether media can flow.
    pub connected: bool,
    /// Number of RTP packets that came.
    pub packets: u64,
}

/// A call in memory: the SFU's core and its clients.
pub struct Call {
    /// The core under test.
    pub core: Core,
    /// Current time of the call.
    pub now: Instant,
    /// Address of the core.
    pub sfu: SocketAddr,
    /// The clients: first the publisher, then the subscriber.
    pub clients: Vec<Client>,
}

impl Call {
    /// A call without clients.
    pub fn new() -> Call {
        let now = Instant::now();
        let sfu: SocketAddr = SocketAddr::from(([192, 0, 2, 1], 7881));
        Call { core: Core::new(SfuConfig::default(), sfu, now), now, sfu, clients: Vec::new() }
    }

    /// A publisher of three layers and a subscriber, connected, with data channels.
    pub fn connected() -> Call {
        let mut call = Call::new();
        let (publisher, subscriber) = (ParticipantId(1), ParticipantId(2));
        for id in [publisher, subscriber] {
            call.core.join(call.now, "room", id, JoinOptions::default()).expect("joined");
        }
        let answer = call.publish(publisher);
        call.subscribe(subscriber, &answer);
        for _ in 0..300 {
            if call.clients.iter().all(|c| c.connected && !c.channels.is_empty()) {
                return call;
            }
            call.step(STEP);
        }
        panic!("the call was never up");
    }

    fn client(&mut self, direction: Direction) -> (Client, String, SdpPendingOffer) {
        let port = 4000 + self.clients.len() as u16;
        let address = SocketAddr::from(([192, 0, 2, 10], port));
        let builder = Rtc::builder().clear_codecs().enable_vp9(true);
        let mut rtc = builder.set_rtp_mode(true).build(self.now);
        rtc.add_local_candidate(Candidate::host(address, "udp").expect("candidate"));
        let simulcast = (direction == Direction::SendOnly).then(|| {
            let mut simulcast = Simulcast::new();
            for rid in ["q", "h", "f"] {
                simulcast.add_send_layer(SimulcastLayer::new(rid));
            }
            simulcast
        });
        let mut api = rtc.sdp_api();
        let mid = api.add_media(MediaKind::Video, direction, None, None, simulcast);
        api.add_channel("windlass-regions".into());
        let (offer, pending) = api.apply().expect("offer");
        let (channels, connected) = (Vec::new(), false);
        let client = Client { rtc, address, mid, channels, connected, packets: 0 };
        (client, offer.to_sdp_string(), pending)
    }

    fn accept(&mut self, mut client: Client, pending: SdpPendingOffer, answer: &Answer) {
        let answer = SdpAnswer::from_sdp_string(&answer.sdp).expect("answer");
        client.rtc.sdp_api().accept_answer(pending, answer).expect("accepted");
        self.clients.push(client);
    }

    fn publish(&mut self, id: ParticipantId) -> Answer {
        let (client, sdp, pending) = self.client(Direction::SendOnly);
        let (mid, name) = (client.mid.to_string(), "camera".into());
        let publish = vec![Publish { mid, kind: TrackKind::Video, name, max: None, encrypted: false, backup_of: None }];
        let offer = Offer { sdp, publish, subscribe: Vec::new() };
        let answer = self.core.offer(self.now, id, &offer).expect("answer");
        self.accept(client, pending, &answer);
        answer
    }

    fn subscribe(&mut self, id: ParticipantId, published: &Answer) {
        let (client, sdp, pending) = self.client(Direction::RecvOnly);
        let (mid, track) = (client.mid.to_string(), published.tracks[0].1);
        let subscribe = vec![Subscribe { mid, track, max: None }];
        let offer = Offer { sdp, publish: Vec::new(), subscribe };
        let answer = self.core.offer(self.now, id, &offer).expect("answer");
        self.accept(client, pending, &answer);
    }

    /// Lets `span` pass, and carries datagrams meanwhile.
    pub fn step(&mut self, span: Duration) {
        self.now += span;
        for at in 0..self.clients.len() {
            let _ = self.clients[at].rtc.handle_input(Input::Timeout(self.now));
            self.drain(at);
        }
        self.core.advance(self.now);
        self.deliver();
    }

    /// Carries the datagrams that a client sends.
    pub fn drain(&mut self, at: usize) {
        loop {
            let client = &mut self.clients[at];
            let Ok(output) = client.rtc.poll_output() else { return };
            match output {
                RtcOutput::Timeout(_) => return,
                RtcOutput::Transmit(t) => self.core.datagram(self.now, client.address, &t.contents),
                RtcOutput::Event(Event::Connected) => client.connected = true,
                RtcOutput::Event(Event::ChannelOpen(id, _)) => client.channels.push(id),
                RtcOutput::Event(Event::RtpPacket(_)) => client.packets += 1,
                RtcOutput::Event(_) => {}
            }
        }
    }

    /// Carries the datagrams that the core sends. Fails if there are too many at once.
    pub fn deliver(&mut self) {
        let mut said = 0;
        while let Some(output) = self.core.poll() {
            said += 1;
            assert!(said < 100_000, "the core does not end");
            let Output::Transmit { to, data, .. } = output else { continue };
            let Some(at) = self.clients.iter().position(|c| c.address == to.address) else {
                continue;
            };
            let client = &mut self.clients[at];
            let Ok(contents) = data.as_slice().try_into() else { panic!("not a datagram") };
            let (proto, source, destination) = (Protocol::Udp, self.sfu, client.address);
            let receive = Receive { proto, source, destination, contents };
            let _ = client.rtc.handle_input(Input::Receive(self.now, receive));
            self.drain(at);
        }
    }
}

impl Default for Call {
    fn default() -> Call {
        Call::new()
    }
}
