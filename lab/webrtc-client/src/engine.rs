//! What the connection can: VP9 with retransmissions, Opus, the header extensions, and the interceptors.

use std::sync::Arc;

use anyhow::Result;
use rtc::ice::mdns::MulticastDnsMode;
use rtc::peer_connection::configuration::interceptor_registry::{
    configure_nack, configure_rtcp_reports, configure_simulcast_extension_headers, configure_twcc,
};
use rtc::peer_connection::configuration::media_engine::{
    MIME_TYPE_OPUS, MIME_TYPE_RTX, MIME_TYPE_VP9, MediaEngine,
};
use rtc::peer_connection::configuration::setting_engine::{SettingEngine, SettingEngineBuilder};
use rtc::rtp_transceiver::rtp_sender::{RTCRtpCodec, RTCRtpCodecParameters, RtpCodecKind};
use webrtc::peer_connection::{Registry, crypto::providers::AwsLcRsProvider};

use crate::meter::Meter;

/// Payload type of VP9 in our offers.
pub(crate) const VP9: u8 = 98;
/// Payload type of retransmissions of VP9 in our offers.
pub(crate) const RTX: u8 = 99;
/// Payload type of Opus in our offers.
const OPUS: u8 = 111;
/// The place of [`Meter`] in the stack's order of interceptors: closest to the wire.
const AT_THE_WIRE: usize = 500;

/// VP9, profile 0: the only video that the server takes.
pub(crate) fn vp9() -> RTCRtpCodec {
    RTCRtpCodec {
        mime_type: MIME_TYPE_VP9.to_owned(),
        clock_rate: 90_000,
        sdp_fmtp_line: "profile-id=0".to_owned(),
        ..RTCRtpCodec::default()
    }
}

/// The codecs, and the interceptors, which add the feedback and header extensions that they need.
pub(crate) fn engines(meter: Meter) -> Result<(MediaEngine, Registry)> {
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
    let registry = configure_nack(Registry::new(), &mut media);
    let registry = configure_twcc(registry, &mut media)?;
    let registry = configure_rtcp_reports(registry).with(AT_THE_WIRE.into(), meter);
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
