//! A participant with a connection that does what a test says: offers, connects, opens channels, or nothing of it.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use str0m::change::{SdpAnswer, SdpPendingOffer};
use str0m::channel::{ChannelConfig, ChannelId};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, Input, Output, Rtc};

use crate::server::{Client, Server};

/// Longer than anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// See the module.
pub(crate) struct Guest {
    pub signal: Client,
    pub rtc: Rtc,
    socket: UdpSocket,
    pub connected: bool,
}

impl Guest {
    /// Joins, and no more.
    pub(crate) async fn join(server: &Server, room: &str) -> Guest {
        let (signal, welcome) = Client::join(server, room, "Guest").await;
        assert_eq!(welcome["type"], "welcome", "{welcome}");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_nonblocking(true).expect("a socket that does not block");
        let mut rtc = Rtc::builder().set_rtp_mode(true).build(Instant::now());
        let local = socket.local_addr().expect("an address");
        rtc.add_local_candidate(Candidate::host(local, "udp").expect("a candidate"));
        Guest { signal, rtc, socket, connected: false }
    }

    /// An offer of a data channel alone, as the SDK's first one.
    pub(crate) fn offer(&mut self) -> (String, SdpPendingOffer) {
        let mut api = self.rtc.sdp_api();
        api.add_channel("ctl".into());
        let (offer, pending) = api.apply().expect("an offer");
        (offer.to_sdp_string(), pending)
    }

    /// Offers; the answer, or the error.
    pub(crate) async fn negotiate(&mut self) -> Value {
        let (sdp, pending) = self.offer();
        let offer = json!({"type": "offer", "id": 1, "sdp": sdp, "publish": [], "subscribe": []});
        self.signal.say(&offer).await;
        let answer = self.signal.hear(&["answer", "error"]).await;
        if let Some(sdp) = answer["sdp"].as_str() {
            let sdp = SdpAnswer::from_sdp_string(sdp).expect("an answer");
            self.rtc.sdp_api().accept_answer(pending, sdp).expect("an answer that fits");
        }
        answer
    }

    /// Talks until the connection is up, or the time is over.
    pub(crate) fn connect(&mut self, most: Duration) -> bool {
        let since = Instant::now();
        while !self.connected && since.elapsed() < most {
            self.talk();
            std::thread::sleep(Duration::from_millis(2));
        }
        self.connected
    }

    /// Talks for so long.
    pub(crate) fn linger(&mut self, time: Duration) {
        let since = Instant::now();
        while since.elapsed() < time {
            self.talk();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Opens a channel, which the server hears of; or, with a stream of one's own choice, not.
    pub(crate) fn open(&mut self, stream: Option<u16>) -> ChannelId {
        let config =
            ChannelConfig { label: "chat".into(), negotiated: stream, ..ChannelConfig::default() };
        self.rtc.direct_api().create_data_channel(config)
    }

    /// The error with which the server ends it.
    pub(crate) async fn ended(&mut self) -> Value {
        tokio::time::timeout(PATIENCE, async {
            loop {
                let error = self.signal.hear(&["error"]).await;
                if error["fatal"] == true {
                    return error;
                }
            }
        })
        .await
        .expect("an end")
    }

    fn talk(&mut self) {
        let mut buffer = [0; 2048];
        let destination: SocketAddr = self.socket.local_addr().expect("an address");
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
                Output::Event(_) => {}
            }
        }
    }
}
