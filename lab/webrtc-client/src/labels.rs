//! An interceptor that says of each retransmission which section and layer it repairs.
//!
//! The stack sends retransmissions without header extensions. With simulcast, a receiver tells layers by rid
//! (RFC 8852), so it could not use them. Here they get mid and repaired rid.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use rtc::interceptor::{Interceptor, Packet, StreamInfo, TaggedPacket};
use rtc::sansio::Protocol;
use rtc::sdp::extmap::{SDES_MID_URI, SDES_REPAIR_RTP_STREAM_ID_URI};
use rtc::shared::error::Error;

/// What the streams of retransmissions repair: each stream's section and layer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repairs(Arc<Mutex<HashMap<u32, (Bytes, Bytes)>>>);

impl Repairs {
    /// Learns that a stream repairs a layer of a section.
    pub(crate) fn learn(&self, ssrc: u32, mid: Bytes, rid: Bytes) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(ssrc, (mid, rid));
    }

    fn of(&self, ssrc: u32) -> Option<(Bytes, Bytes)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&ssrc).cloned()
    }
}

/// The interceptor.
pub(crate) struct Labels {
    repairs: Repairs,
    /// The negotiated numbers of the extensions for mid and repaired rid, by the stream of retransmissions.
    extensions: HashMap<u32, (u8, u8)>,
    inward: VecDeque<TaggedPacket>,
    outward: VecDeque<TaggedPacket>,
}

impl Labels {
    pub(crate) fn new(repairs: Repairs) -> Labels {
        let extensions = HashMap::new();
        Labels { repairs, extensions, inward: VecDeque::new(), outward: VecDeque::new() }
    }
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for Labels {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = Error;
    type Time = Instant;

    fn handle_read(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        self.inward.push_back(packet);
        Ok(())
    }

    fn poll_read(&mut self) -> Option<TaggedPacket> {
        self.inward.pop_front()
    }

    fn handle_write(&mut self, mut packet: TaggedPacket) -> Result<(), Error> {
        if let Packet::Rtp(rtp) = &mut packet.message.packet
            && let Some(&(mid_extension, rid_extension)) = self.extensions.get(&rtp.header.ssrc)
            && let Some((mid, rid)) = self.repairs.of(rtp.header.ssrc)
        {
            rtp.header.set_extension(mid_extension, mid)?;
            rtp.header.set_extension(rid_extension, rid)?;
        }
        self.outward.push_back(packet);
        Ok(())
    }

    fn poll_write(&mut self) -> Option<TaggedPacket> {
        self.outward.pop_front()
    }
}

impl Interceptor for Labels {
    fn bind_local_stream(&mut self, stream: &StreamInfo) {
        let extension = |uri: &str| {
            let all = &stream.rtp_header_extensions;
            all.iter().find(|extension| extension.uri == uri).map(|extension| extension.id as u8)
        };
        let both = extension(SDES_MID_URI).zip(extension(SDES_REPAIR_RTP_STREAM_ID_URI));
        if let Some((ssrc, both)) = stream.ssrc_rtx.zip(both) {
            self.extensions.insert(ssrc, both);
        }
    }

    fn unbind_local_stream(&mut self, stream: &StreamInfo) {
        if let Some(ssrc) = stream.ssrc_rtx {
            self.extensions.remove(&ssrc);
        }
    }

    fn bind_remote_stream(&mut self, _: &StreamInfo) {}
    fn unbind_remote_stream(&mut self, _: &StreamInfo) {}
}
