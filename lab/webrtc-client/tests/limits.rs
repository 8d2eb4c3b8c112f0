//! What webrtc-rs 0.21.1 cannot do, each as the smallest case. One that fails says that a newer version can: take its
//! workaround out, and its line out of `README.md`.

use std::time::{Duration, Instant};

use bytes::Bytes;
use rtc::interceptor::{
    Attribute, AttributedPacket, Interceptor, NackGeneratorBuilder, NackResponderBuilder, Packet,
    RTCPFeedback, RTPHeaderExtension, Registry, Slot, StreamInfo, TaggedPacket, TwccSenderBuilder,
};
use rtc::rtcp::transport_feedbacks::transport_layer_nack::{NackPair, TransportLayerNack};
use rtc::rtp;
use rtc::rtp::codec::vp9::{Vp9Packet, Vp9Payloader};
use rtc::rtp::packetizer::{Depacketizer, Payloader};
use rtc::sansio::Protocol;
use rtc::sdp::extmap::{SDES_MID_URI, SDES_REPAIR_RTP_STREAM_ID_URI, TRANSPORT_CC_URI};
use rtc::shared::TransportContext;

/// The video's stream, and that of its retransmissions.
const STREAMS: [u32; 2] = [1, 2];
/// The payload types of both.
const TYPES: [u8; 2] = [98, 99];

/// A stream of video with retransmissions, and header extensions for section, repaired layer and transport number.
fn video() -> StreamInfo {
    let uris = [SDES_MID_URI, SDES_REPAIR_RTP_STREAM_ID_URI, TRANSPORT_CC_URI];
    let extension = |(id, uri): (u16, &str)| RTPHeaderExtension { uri: uri.to_owned(), id };
    StreamInfo {
        ssrc: STREAMS[0],
        ssrc_rtx: Some(STREAMS[1]),
        payload_type: TYPES[0],
        payload_type_rtx: Some(TYPES[1]),
        rtp_header_extensions: (1..).zip(uris).map(extension).collect(),
        rtcp_feedback: vec![RTCPFeedback { typ: "nack".to_owned(), parameter: String::new() }],
        ..StreamInfo::default()
    }
}

/// A packet of one of the streams.
fn packet(now: Instant, of: usize, sequence_number: u16, payload: &[u8]) -> TaggedPacket {
    let header = rtp::header::Header {
        version: 2,
        ssrc: STREAMS[of],
        payload_type: TYPES[of],
        sequence_number,
        ..rtp::header::Header::default()
    };
    let payload = Bytes::copy_from_slice(payload);
    tagged(now, Packet::Rtp(rtp::Packet { header, payload }))
}

fn tagged(now: Instant, packet: Packet) -> TaggedPacket {
    let transport = TransportContext::default();
    TaggedPacket { now, transport, message: AttributedPacket::new(packet) }
}

/// The packets that leave.
fn leaving(chain: &mut impl Interceptor) -> Vec<TaggedPacket> {
    std::iter::from_fn(|| chain.poll_write()).collect()
}

#[test]
fn a_retransmission_names_neither_section_nor_layer_nor_transport_number() {
    let now = Instant::now();
    let mut chain = Registry::new()
        .with(Slot::NackResponder, NackResponderBuilder::new().build())
        .with(Slot::TwccSender, TwccSenderBuilder::new().build())
        .build();
    chain.bind_local_stream(&video());
    chain.handle_write(packet(now, 0, 7, b"video")).unwrap();
    let extensions = |sent: &TaggedPacket| match &sent.message.packet {
        Packet::Rtp(rtp) => rtp.header.extensions.len(),
        _ => panic!("no packet of media"),
    };
    assert_eq!(leaving(&mut chain).iter().map(extensions).collect::<Vec<_>>(), [1], "a number");
    let nacks = vec![NackPair { packet_id: 7, lost_packets: 0 }];
    let nack = TransportLayerNack { sender_ssrc: 9, media_ssrc: STREAMS[0], nacks };
    chain.handle_read(tagged(now, Packet::Rtcp(vec![Box::new(nack)]))).unwrap();
    let again = leaving(&mut chain);
    assert!(again[0].message.has(&Attribute::Retransmission));
    assert_eq!(again.iter().map(extensions).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_packet_is_asked_for_after_its_retransmission_has_come() {
    let mut now = Instant::now();
    let mut chain =
        Registry::new().with(Slot::NackGenerator, NackGeneratorBuilder::new().build()).build();
    chain.bind_remote_stream(&video());
    for number in [1, 3] {
        chain.handle_read(packet(now, 0, number, b"video")).unwrap();
    }
    // A retransmission begins with the number of the packet that it repairs.
    chain.handle_read(packet(now, 1, 1, b"\0\x02video")).unwrap();
    let mut asked = 0;
    for _ in 0..20 {
        now += Duration::from_millis(100);
        chain.handle_timeout(now).unwrap();
        asked += leaving(&mut chain).len();
    }
    assert_eq!(asked, 20, "once in 100 ms, without end");
}

#[test]
fn its_vp9_frames_do_not_say_that_they_need_others() {
    let mut payloader = Vp9Payloader::default();
    let mut said = Vec::new();
    for frame in ["key frame", "a frame that needs the key frame"] {
        for payload in payloader.payload(1200, &Bytes::from(frame)).unwrap() {
            let mut descriptor = Vp9Packet::default();
            descriptor.depacketize(&payload).unwrap();
            said.push(descriptor.p);
        }
    }
    assert_eq!(said, [false, false]);
}
