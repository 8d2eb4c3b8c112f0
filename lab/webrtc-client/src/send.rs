//! The video that is sent: one track with a stream for each layer, each with a stream for its retransmissions.

use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use rtc::media_stream::MediaStreamTrack;
use rtc::rtp;
use rtc::rtp_transceiver::rtp_sender::{
    RTCRtpCodingParameters, RTCRtpEncodingParameters, RTCRtpRtxParameters, RtpCodecKind,
};
use rtc::sdp::extmap::{SDES_MID_URI, SDES_RTP_STREAM_ID_URI};
use webrtc::media_stream::track_local::TrackLocal;
use webrtc::media_stream::track_local::static_rtp::TrackLocalStaticRTP;
use webrtc::rtp_transceiver::RtpTransceiver;

use crate::codecs::{VP9, vp9};
use crate::labels::Repairs;

/// A packet of video to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VideoPacket {
    /// The packet's sequence number.
    pub seq: u16,
    /// The RTP timestamp of its frame.
    pub timestamp: u32,
    /// Whether it is the last packet of its frame.
    pub marker: bool,
    /// The packet's payload.
    pub payload: Bytes,
}

/// A camera's layers.
pub(crate) struct Camera {
    track: Arc<TrackLocalStaticRTP>,
    /// The rid of each layer and its SSRC.
    layers: Vec<(String, u32)>,
    /// The camera's section, and the numbers of the header extensions of mid and rid, once they are negotiated.
    negotiated: Option<Negotiated>,
}

struct Negotiated {
    mid: Bytes,
    mid_extension: u8,
    rid_extension: u8,
}

/// The stream of a layer's retransmissions.
fn repair_of(ssrc: u32) -> u32 {
    ssrc.wrapping_add(1)
}

impl Camera {
    /// A camera with layers of these rids.
    pub(crate) fn new(rids: &[&str]) -> Camera {
        let first: u32 = rand::random();
        let of = |n: usize| first.wrapping_add(2 * n as u32);
        let codings = rids.iter().enumerate().map(|(n, rid)| RTCRtpEncodingParameters {
            rtp_coding_parameters: RTCRtpCodingParameters {
                rid: (*rid).to_owned(),
                ssrc: Some(of(n)),
                rtx: Some(RTCRtpRtxParameters { ssrc: repair_of(of(n)) }),
                fec: None,
            },
            active: true,
            codec: vp9(),
            ..RTCRtpEncodingParameters::default()
        });
        let track = MediaStreamTrack::new(
            "windlass".to_owned(),
            "camera".to_owned(),
            "camera".to_owned(),
            RtpCodecKind::Video,
            codings.collect(),
        );
        let layers = rids.iter().enumerate().map(|(n, rid)| ((*rid).to_owned(), of(n)));
        Camera {
            track: Arc::new(TrackLocalStaticRTP::new(track)),
            layers: layers.collect(),
            negotiated: None,
        }
    }

    /// The track, for the connection.
    pub(crate) fn track(&self) -> Arc<dyn TrackLocal> {
        self.track.clone()
    }

    /// Takes what an answer has settled. Tells which layer each stream of retransmissions repairs.
    pub(crate) async fn settle(
        &mut self,
        transceiver: &dyn RtpTransceiver,
        repairs: &Repairs,
    ) -> Result<()> {
        let mid = transceiver.mid().await?.context("a section for the camera")?;
        let sender = transceiver.sender().await?.context("a sender for the camera")?;
        let parameters = sender.get_parameters().await?;
        let extension = |uri: &str| {
            let all = &parameters.rtp_parameters.header_extensions;
            all.iter().find(|extension| extension.uri == uri).map(|extension| extension.id as u8)
        };
        let mid = Bytes::from(mid);
        for (rid, ssrc) in &self.layers {
            let rid = Bytes::copy_from_slice(rid.as_bytes());
            repairs.learn(repair_of(*ssrc), mid.clone(), rid);
        }
        self.negotiated = Some(Negotiated {
            mid,
            mid_extension: extension(SDES_MID_URI).context("the server takes no mids")?,
            rid_extension: extension(SDES_RTP_STREAM_ID_URI).context("the server takes no rids")?,
        });
        Ok(())
    }

    /// Sends a packet of a layer.
    pub(crate) async fn write(&self, rid: &str, packet: VideoPacket) -> Result<()> {
        let VideoPacket { seq, timestamp, marker, payload } = packet;
        let layer = self.layers.iter().find(|(of, _)| of == rid);
        let (_, ssrc) = layer.with_context(|| format!("there is no layer {rid}"))?;
        let negotiated = self.negotiated.as_ref().context("nothing is negotiated")?;
        let mut header = rtp::header::Header {
            version: 2,
            marker,
            payload_type: VP9,
            sequence_number: seq,
            timestamp,
            ssrc: *ssrc,
            ..rtp::header::Header::default()
        };
        header.set_extension(negotiated.mid_extension, negotiated.mid.clone())?;
        header.set_extension(negotiated.rid_extension, Bytes::copy_from_slice(rid.as_bytes()))?;
        Ok(self.track.write_rtp(rtp::Packet { header, payload }).await?)
    }
}
