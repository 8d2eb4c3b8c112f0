//! A participant's WebRTC connection over a socket of its own.

use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use serde_json::{Value, json};
use str0m::{Rtc, RtcConfig};
use windlass_testkit::{Client, Offered, Said};

use crate::server;

/// WebRTC connection of a participant, over a socket of its own.
pub(crate) struct Connection {
    pub client: Client,
    pub socket: UdpSocket,
    offers: u32,
}

/// Codecs as in a browser that sends no sound.
pub(crate) fn vp9() -> RtcConfig {
    Rtc::builder().clear_codecs().enable_vp9(true)
}

/// Where media goes, by the answer to an offer.
pub(crate) fn media_address(answer: &Value) -> SocketAddr {
    let sdp = answer["sdp"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let candidate = sdp.lines().find_map(|line| line.strip_prefix("a=candidate:"));
    let words: Vec<&str> = candidate.expect("a candidate").split(' ').collect();
    format!("{}:{}", words[4], words[5]).parse().expect("an address")
}

/// A socket of an address of this machine, which does not block.
pub(crate) fn socket(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).expect("a socket");
    socket.set_nonblocking(true).expect("a socket that does not block");
    socket
}

impl Connection {
    /// One that has offered nothing yet.
    pub(crate) fn new(builder: RtcConfig) -> Connection {
        let socket = socket("127.0.0.1");
        let local = socket.local_addr().expect("an address");
        Connection { client: Client::with(builder, local, Instant::now()), socket, offers: 0 }
    }

    /// Sends an offer with these lists, and takes its answer; that, or the error.
    pub(crate) async fn negotiate(
        &mut self,
        signal: &mut server::Client,
        offered: Offered,
        publish: &[Value],
        subscribe: &[Value],
    ) -> Value {
        self.offers += 1;
        let (id, sdp) = (self.offers, &offered.sdp);
        signal
            .say(&json!({"type": "offer", "id": id, "sdp": sdp, "publish": publish, "subscribe": subscribe}))
            .await;
        let answer = signal.hear(&["answer", "error"]).await;
        if let Some(sdp) = answer["sdp"].as_str() {
            self.client.accept(Instant::now(), offered, sdp);
        }
        answer
    }

    /// Receives and sends what the connection needs; one that has been closed stays so.
    pub(crate) fn talk(&mut self) {
        self.talk_by(&mut send);
    }

    /// Sends and receives as `talk`, but lets `said` decide what becomes of what the client sends.
    pub(crate) fn talk_by(&mut self, said: &mut impl FnMut(&UdpSocket, Said)) {
        let mut buffer = [0; 2048];
        while let Ok((size, source)) = self.socket.recv_from(&mut buffer) {
            let _ = self.client.receive(Instant::now(), source, &buffer[..size]);
            self.drain(said);
        }
        let _ = self.client.wake(Instant::now());
        self.drain(said);
    }

    /// Sends what was written.
    pub(crate) fn flush(&mut self) {
        self.drain(&mut send);
    }

    fn drain(&mut self, said: &mut impl FnMut(&UdpSocket, Said)) {
        while let Ok(Some(something)) = self.client.poll() {
            said(&self.socket, something);
        }
    }
}

fn send(socket: &UdpSocket, said: Said) {
    if let Said::Datagram(sent) = said {
        let _ = socket.send_to(&sent.contents, sent.destination);
    }
}
