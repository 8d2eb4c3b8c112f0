//! A connection to the server: offers and answers, and what is sent and comes.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result};
use rtc::rtcp::payload_feedbacks::picture_loss_indication::PictureLossIndication;
use rtc::rtp_transceiver::rtp_sender::RtpCodecKind;
use tokio::sync::mpsc;
use webrtc::peer_connection::{PeerConnection, PeerConnectionBuilder, RTCSessionDescription};
use webrtc::rtp_transceiver::{RTCRtpTransceiverDirection, RTCRtpTransceiverInit, RtpTransceiver};
use webrtc::runtime::TokioRuntime;

use crate::counters::{Counters, Counting};
use crate::engine::{engines, settings};
use crate::labels::Repairs;
use crate::meter::Meter;
use crate::receive::{Event, Events, Handler, Streams};
use crate::send::{Camera, VideoPacket};

/// A connection.
pub struct Connection {
    stack: Arc<dyn PeerConnection>,
    events: mpsc::Receiver<Event>,
    counting: Arc<Counting>,
    streams: Streams,
    repairs: Repairs,
    camera: Option<(Camera, Arc<dyn RtpTransceiver>)>,
    /// The sections that receive, in their order.
    receiving: Vec<Arc<dyn RtpTransceiver>>,
}

/// An offer that waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// The session description.
    pub sdp: String,
    /// The section of the camera, if the connection has one.
    pub sends: Option<String>,
    /// The sections that receive, in the order in which they were added.
    pub receives: Vec<String>,
}

impl Connection {
    /// A connection from a local address, before its first offer.
    ///
    /// # Errors
    ///
    /// Where the stack cannot begin, for example without a free port.
    pub async fn new(local: IpAddr) -> Result<Connection> {
        let counting = Arc::new(Counting::default());
        let (to, events) = Events::new(counting.clone());
        let repairs = Repairs::default();
        let meter = Meter::new(counting.clone(), to.clone());
        let (media, registry) = engines(meter, repairs.clone())?;
        let streams = Streams::default();
        let builder = PeerConnectionBuilder::new()
            .with_media_engine(media)
            .with_interceptor_registry(registry)
            .with_setting_engine(settings())
            .with_runtime(Arc::new(TokioRuntime))
            .with_handler(Arc::new(Handler { events: to, streams: streams.clone() }))
            .with_udp_addrs(vec![SocketAddr::new(local, 0)]);
        let stack = Box::pin(builder.build()).await.context("webrtc-rs cannot begin")?;
        let (camera, receiving) = (None, Vec::new());
        let stack = Arc::new(stack);
        Ok(Connection { stack, events, counting, streams, repairs, camera, receiving })
    }

    /// Adds a camera with a layer for each rid, smallest first.
    ///
    /// # Errors
    ///
    /// Where the stack refuses the track.
    pub async fn send(&mut self, rids: &[&str]) -> Result<()> {
        let camera = Camera::new(rids);
        let init = RTCRtpTransceiverInit {
            direction: RTCRtpTransceiverDirection::Sendonly,
            ..RTCRtpTransceiverInit::default()
        };
        let added = self.stack.add_transceiver_from_track(camera.track(), Some(init)).await;
        self.camera = Some((camera, added.context("adding the camera")?));
        Ok(())
    }

    /// Adds a section that receives video.
    ///
    /// # Errors
    ///
    /// Where the stack refuses the section.
    pub async fn receive(&mut self) -> Result<()> {
        let init = RTCRtpTransceiverInit {
            direction: RTCRtpTransceiverDirection::Recvonly,
            ..RTCRtpTransceiverInit::default()
        };
        let added = self.stack.add_transceiver_from_kind(RtpCodecKind::Video, Some(init)).await;
        self.receiving.push(added.context("adding a section that receives")?);
        Ok(())
    }

    /// Opens a data channel, so that those of the server have a place in the session description.
    ///
    /// # Errors
    ///
    /// Where the stack refuses the channel.
    pub async fn open(&self, label: &str) -> Result<()> {
        self.stack.create_data_channel(label, None).await.context("opening a data channel")?;
        Ok(())
    }

    /// Offers all that was added.
    ///
    /// # Errors
    ///
    /// Where the stack cannot make an offer.
    pub async fn offer(&self) -> Result<Offered> {
        let offer = self.stack.create_offer(None).await.context("making an offer")?;
        let sdp = offer.sdp.clone();
        self.stack.set_local_description(offer).await.context("taking our own offer")?;
        let sends = match &self.camera {
            Some((_, transceiver)) => transceiver.mid().await?,
            None => None,
        };
        let mut receives = Vec::new();
        for transceiver in &self.receiving {
            receives.push(transceiver.mid().await?.context("a section without a mid")?);
        }
        Ok(Offered { sdp, sends, receives })
    }

    /// Takes the server's answer.
    ///
    /// # Errors
    ///
    /// Where the stack does not understand it, or the camera's layers are not taken.
    pub async fn accept(&mut self, answer: &str) -> Result<()> {
        self.streams.learn(answer);
        let description = RTCSessionDescription::answer(answer.to_owned())?;
        self.stack.set_remote_description(description).await.context("the server's answer")?;
        if let Some((camera, transceiver)) = &mut self.camera {
            camera.settle(transceiver.as_ref(), &self.repairs).await?;
        }
        Ok(())
    }

    /// Sends a packet of a layer. It waits while the stack's queue is full.
    ///
    /// # Errors
    ///
    /// Where nothing is negotiated, or the connection has ended.
    pub async fn write(&self, rid: &str, packet: VideoPacket) -> Result<()> {
        let (camera, _) = self.camera.as_ref().context("there is no camera")?;
        camera.write(rid, packet).await
    }

    /// Asks for a key frame of what a section receives. Returns whether it receives anything yet.
    ///
    /// # Errors
    ///
    /// Where the connection has ended.
    pub async fn ask_for_key_frame(&self, mid: &str) -> Result<bool> {
        for transceiver in &self.receiving {
            if transceiver.mid().await?.as_deref() != Some(mid) {
                continue;
            }
            let Some(receiver) = transceiver.receiver().await? else { return Ok(false) };
            let Some(&media_ssrc) = receiver.track().ssrcs().await.first() else {
                return Ok(false);
            };
            let request = PictureLossIndication { sender_ssrc: 0, media_ssrc };
            receiver.track().write_rtcp(vec![Box::new(request)]).await?;
            return Ok(true);
        }
        Ok(false)
    }

    /// The next event; `None` when the connection has ended. The future may be dropped without loss.
    pub async fn event(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// The next event that waits already.
    pub fn waiting(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// What the stack has repaired and reported.
    pub fn counters(&self) -> Counters {
        self.counting.now()
    }

    /// Ends the connection. Errors do not matter any more.
    pub async fn close(self) {
        let _ = self.stack.close().await;
    }
}
