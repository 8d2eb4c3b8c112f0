//! The video codec, and the payload types of our offers.

use rtc::peer_connection::configuration::media_engine::MIME_TYPE_VP9;
use rtc::rtp_transceiver::rtp_sender::RTCRtpCodec;

/// Payload type of VP9 in our offers.
pub(crate) const VP9: u8 = 98;
/// Payload type of retransmissions of VP9 in our offers.
pub(crate) const RTX: u8 = 99;

/// VP9, profile 0: the only video that the server takes.
pub(crate) fn vp9() -> RTCRtpCodec {
    RTCRtpCodec {
        mime_type: MIME_TYPE_VP9.to_owned(),
        clock_rate: 90_000,
        sdp_fmtp_line: "profile-id=0".to_owned(),
        ..RTCRtpCodec::default()
    }
}
