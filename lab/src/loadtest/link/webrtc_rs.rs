//! A connection on webrtc-rs, which runs itself: its tasks own the socket, and events come by a queue.
//!
//! An emulated link is a [`Tunnel`] beside the stack, as its sockets are its own.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tokio::net::lookup_host;
use windlass_types::{Layer, VideoCodec};
use windlass_webrtc_client::{Connection, Event, VideoPacket};

use super::address::{candidate, local_for, with_candidate};
use super::traffic::{Arrival, LinkEvent, Outgoing};
use super::tunnel::Tunnel;
use crate::loadtest::access::Access;
use crate::loadtest::tally::Totals;
use crate::viewer::Part;

/// The WebRTC connection of one client.
pub(in crate::loadtest) struct WebrtcRs {
    connection: Connection,
    /// An event that has come and is not taken yet.
    next: Option<Event>,
    /// Number of sections that receive.
    receiving: usize,
    /// The emulated link before it has the server's address.
    access: Option<Access>,
    tunnel: Option<Tunnel>,
    /// The repairs that the totals contain already.
    told: windlass_webrtc_client::Counters,
    /// Whether media can flow.
    pub connected: bool,
    /// Whether the connection was lost.
    pub lost: bool,
}

impl WebrtcRs {
    /// A connection before its first offer, to the server with this authority.
    pub(super) async fn new(authority: &str, access: Option<Access>) -> Result<WebrtcRs> {
        let named = || format!("{authority} has no address");
        let server: SocketAddr =
            lookup_host(authority).await.with_context(named)?.next().with_context(named)?;
        Ok(WebrtcRs {
            connection: Box::pin(Connection::new(local_for(server)?)).await?,
            next: None,
            receiving: 0,
            access,
            tunnel: None,
            told: windlass_webrtc_client::Counters::default(),
            connected: false,
            lost: false,
        })
    }

    /// Offers to send video in these layers.
    pub(super) async fn offer_camera(
        &mut self,
        layers: &[Layer],
        channel: bool,
    ) -> Result<(String, String)> {
        let rids: Vec<&str> = layers.iter().map(|layer| layer.rid()).collect();
        self.connection.send(&rids).await?;
        if channel {
            self.connection.open("ctl").await?;
        }
        let offered = self.connection.offer().await?;
        Ok((offered.sdp, offered.sends.context("the camera has no section")?))
    }

    /// Offers to receive so many more videos.
    pub(super) async fn offer_to_receive(
        &mut self,
        more: usize,
        channel: bool,
    ) -> Result<(String, Vec<String>)> {
        for _ in 0..more {
            self.connection.receive().await?;
        }
        if channel {
            self.connection.open("ctl").await?;
        }
        let offered = self.connection.offer().await?;
        let mids = offered.receives.into_iter().skip(self.receiving).collect();
        self.receiving += more;
        Ok((offered.sdp, mids))
    }

    /// Takes the server's answer. With an emulated link, the client is told the link's address in the server's place.
    pub(super) async fn accept(&mut self, answer: &str) -> Result<()> {
        if let Some(access) = self.access.take() {
            let server = candidate(answer).context("the server names no UDP address")?;
            self.tunnel = Some(Tunnel::open(server, access).await?);
        }
        match &self.tunnel {
            Some(tunnel) => self.connection.accept(&with_candidate(answer, tunnel.address)).await,
            None => self.connection.accept(answer).await,
        }
    }

    /// Waits until an event comes. The future may be dropped without loss.
    pub(super) async fn readable(&mut self) {
        if self.next.is_some() {
            return;
        }
        self.next = self.connection.event().await;
        if self.next.is_none() {
            self.lost = true;
        }
    }

    /// Takes the events that have come.
    pub(super) fn run(&mut self, said: &mut Vec<LinkEvent>) -> Result<()> {
        while let Some(event) = self.next.take().or_else(|| self.connection.waiting()) {
            match event {
                Event::Connected => self.connected = true,
                Event::Lost => self.lost = true,
                Event::KeyFrameWanted => said.push(LinkEvent::KeyFrameWanted),
                Event::Message(message) => said.push(LinkEvent::Message(message)),
                Event::Arrived(it) => said.push(LinkEvent::Arrived(Arrival {
                    mid: it.mid,
                    seq: it.seq,
                    timestamp: it.timestamp,
                    part: Part::of(VideoCodec::Vp9, &it.payload, false),
                    payload: it.payload,
                })),
            }
        }
        ensure!(!self.lost, "the media connection ended");
        Ok(())
    }

    /// Sends a frame of a layer.
    pub(super) async fn send(&mut self, layer: Option<Layer>, frame: Outgoing) -> Result<()> {
        let rid = layer.map_or("", Layer::rid);
        let last = frame.payloads.len().saturating_sub(1);
        for (n, payload) in frame.payloads.into_iter().enumerate() {
            let packet = VideoPacket {
                seq: (frame.first + n as u64) as u16,
                timestamp: frame.timestamp,
                marker: n == last,
                payload: payload.into(),
            };
            self.connection.write(rid, packet).await?;
        }
        Ok(())
    }

    /// Asks for a key frame of what a section receives. Returns whether it receives anything yet.
    pub(super) async fn ask_for_key_frame(&mut self, mid: &str) -> bool {
        self.connection.ask_for_key_frame(mid).await.unwrap_or(false)
    }

    /// Brings the totals of the emulated link and of repairs up to date.
    pub(super) fn tell(&mut self, now: Instant, totals: &mut Totals) {
        if let Some(tunnel) = &self.tunnel {
            tunnel.tell(now, &mut totals.subscriptions.downlinks);
        }
        let now = self.connection.counters();
        let before = std::mem::replace(&mut self.told, now);
        totals.repairs += now.since(&before);
    }

    /// Ends the connection without a goodbye, and adds what it carried.
    pub(super) fn close(mut self, totals: &mut Totals) {
        self.tell(Instant::now(), totals);
        if let Some(tunnel) = self.tunnel.take() {
            tunnel.close(totals);
        }
        // The stack's tasks end with it; nobody waits for them.
        tokio::spawn(self.connection.close());
    }
}
