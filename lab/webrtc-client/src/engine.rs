//! What the connection can: VP9 with retransmissions, Opus, the header extensions, and the interceptors.

use std::sync::Arc;

use anyhow::Result;
use rtc::ice::mdns::MulticastDnsMode;
use rtc::interceptor::{NackGeneratorBuilder, NackResponderBuilder};
use rtc::peer_connection::configuration::interceptor_registry::{
    Slot, configure_rtcp_reports, configure_simulcast_extension_headers, configure_twcc,
};
use rtc::peer_connection::configuration::media_engine::{
    MIME_TYPE_OPUS, MIME_TYPE_RTX, MediaEngine,
};
use rtc::peer_connection::configuration::setting_engine::{SettingEngine, SettingEngineBuilder};
use rtc::rtp_transceiver::rtp_sender::{
    RTCPFeedback, RTCRtpCodec, RTCRtpCodecParameters, RtpCodecKind,
};
use webrtc::peer_connection::{Registry, crypto::providers::AwsLcRsProvider};

use crate::codecs::{RTX, VP9, vp9};
use crate::labels::{Labels, Repairs};
use crate::meter::Meter;

/// Payload type of Opus in our offers.
const OPUS: u8 = 111;
/// The place of [`Meter`] in the stack's order of interceptors: closest to the wire.
const AT_THE_WIRE: usize = 500;
/// The place of [`Labels`]: what leaves comes to it from the one that makes retransmissions.
const BELOW_RETRANSMISSIONS: usize = 2_500;
/// How often a packet is asked for. The stack does not notice that a retransmission has come, and would ask for the
/// packet ten times a second until 512 more have come.
const ASKED: u16 = 3;

/// The codecs, and the interceptors, which add the feedback and header extensions that they need.
pub(crate) fn engines(meter: Meter, repairs: Repairs) -> Result<(MediaEngine, Registry)> {
    let mut media = MediaEngine::default();
    let rtx = RTCRtpCodec {
        mime_type: MIME_TYPE_RTX.to_owned(),
        clock_rate: 90_000,
        sdp_fmtp_line: format!("apt={VP9}"),
        ..RTCRtpCodec::default()
    };
    let opus = RTCRtpCodec {
        mime_type: MIME_TYPE_OPUS.to_owned(),
        clock_rate: 48_000,
        channels: 2,
        sdp_fmtp_line: "minptime=10;useinbandfec=1".to_owned(),
        ..RTCRtpCodec::default()
    };
    let of = |rtp_codec, payload_type| RTCRtpCodecParameters { rtp_codec, payload_type };
    media.register_codec(of(vp9(), VP9), RtpCodecKind::Video)?;
    media.register_codec(of(rtx, RTX), RtpCodecKind::Video)?;
    media.register_codec(of(opus, OPUS), RtpCodecKind::Audio)?;
    configure_simulcast_extension_headers(&mut media)?;
    for parameter in ["", "pli"] {
        let feedback = RTCPFeedback { typ: "nack".to_owned(), parameter: parameter.to_owned() };
        media.register_feedback(feedback, RtpCodecKind::Video);
    }
    let registry = configure_twcc(Registry::new(), &mut media)?;
    let asks = NackGeneratorBuilder::new().with_max_nacks_per_packet(ASKED).build();
    let registry = configure_rtcp_reports(registry)
        .with(Slot::NackResponder, NackResponderBuilder::new().build())
        .with(Slot::NackGenerator, asks)
        .with(BELOW_RETRANSMISSIONS.into(), Labels::new(repairs))
        .with(AT_THE_WIRE.into(), meter);
    Ok((media, registry))
}

/// The settings: cryptography as in the project, loopback too, and no names by multicast.
pub(crate) fn settings() -> SettingEngine {
    SettingEngineBuilder::new()
        .with_crypto_provider(Arc::new(AwsLcRsProvider::new()))
        .with_include_loopback_candidate(true)
        .with_multicast_dns_mode(MulticastDnsMode::Disabled)
        // Without them the server would have to guess which retransmissions belong to which layer.
        .with_write_ssrc_attributes_for_simulcast(true)
        .build()
}
