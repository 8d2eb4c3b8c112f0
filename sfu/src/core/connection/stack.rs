//! A participant's connection in the WebRTC stack, with its panics contained.

use std::time::Instant;

use str0m::Rtc;
use str0m::bwe;
use str0m::format::Codec;
use str0m::media::Pt;
use str0m::rtp::Extension;
use windlass_types::{Bitrate, VideoCodec};

use super::sctp_filter;
use crate::config::SfuConfig;
use crate::core::codec::dependency_descriptor;
use crate::core::fault::{Fault, contained};
use crate::core::routing::addresses::LocalAddrs;
use crate::core::subscriber::anchor_pacer::MAX_BUFFERED;
use crate::core::subscriber::downlink::FEEDBACK_INTERVAL;
use crate::core::wakes::Wake;

/// Number of packets of one stream that are kept for retransmission (RTX).
pub(crate) const MAX_RTX_PACKETS: usize = 1024;

/// A participant's connection: none before the first offer, and none after a panic.
#[derive(Default)]
pub(crate) struct Stack {
    rtc: Option<Rtc>,
    fault: Option<Fault>,
}

impl Stack {
    /// Whether there is a connection, or was one.
    pub(crate) fn has_begun(&self) -> bool {
        self.rtc.is_some() || self.fault.is_some()
    }

    /// The connection, to read from.
    pub(crate) fn rtc(&self) -> Option<&Rtc> {
        self.rtc.as_ref()
    }

    /// Makes the connection, unless there is one, or was one.
    pub(crate) fn begin(&mut self, make: impl FnOnce() -> Rtc) {
        if self.rtc.is_none() && self.fault.is_none() {
            match contained(make) {
                Ok(rtc) => self.rtc = Some(rtc),
                Err(fault) => self.fault = Some(fault),
            }
        }
    }

    /// Calls the connection; `None` without one, or after a panic. Then the peer is touched, so that the core removes
    /// it.
    pub(crate) fn call<T>(
        &mut self,
        wake: &mut Wake,
        work: impl FnOnce(&mut Rtc) -> T,
    ) -> Option<T> {
        let rtc = self.rtc.as_mut()?;
        match contained(|| work(rtc)) {
            Ok(done) => Some(done),
            Err(fault) => {
                self.discard();
                self.fault = Some(fault);
                wake.touch();
                None
            }
        }
    }

    /// Drops the connection, whatever its state.
    pub(crate) fn discard(&mut self) {
        let rtc = self.rtc.take();
        let _ = contained(|| drop(rtc));
    }

    /// The panic that ended the connection.
    pub(crate) fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }
}

/// The profiles and levels of H.264 that clients may have: constrained baseline and baseline, level 3.1.
pub(crate) const H264_PROFILES: [u32; 2] = [0x42_e0_1f, 0x42_00_1f];

/// The codec in our type; `None` for those that are not forwarded, and for audio.
pub(crate) fn video_codec(codec: Codec) -> Option<VideoCodec> {
    match codec {
        Codec::Vp9 => Some(VideoCodec::Vp9),
        Codec::Vp8 => Some(VideoCodec::Vp8),
        Codec::H264 => Some(VideoCodec::H264),
        Codec::Av1 => Some(VideoCodec::Av1),
        _ => None,
    }
}

/// A bitrate in the stack's own type.
pub(crate) fn stack_bitrate(rate: Bitrate) -> bwe::Bitrate {
    bwe::Bitrate::bps(rate.as_bps())
}

/// Makes a connection in the stack, by the DTLS that `media_only` clients need or by its own.
pub(crate) fn connection(
    config: &SfuConfig,
    locals: &LocalAddrs,
    media_only: bool,
    now: Instant,
) -> Rtc {
    let mut rtc_config = Rtc::builder()
        .set_crypto_provider(sctp_filter::provider(media_only))
        .clear_codecs()
        .enable_opus(true, true)
        .enable_vp9(true)
        .enable_vp8(true)
        .enable_av1(true)
        .set_ice_lite(true)
        .set_rtp_mode(true)
        .set_extension(5, Extension::PlayoutDelay)
        .set_extension(
            12,
            Extension::with_serializer(
                dependency_descriptor::URI,
                dependency_descriptor::Serializer,
            ),
        )
        .set_send_buffer_video(MAX_RTX_PACKETS)
        .set_sctp_max_buffered_amount(4 * MAX_BUFFERED);
    for (n, profile) in (0..).zip(H264_PROFILES) {
        let (pt, repair) = (Pt::from(102 + 2 * n), Pt::from(103 + 2 * n));
        rtc_config.codec_config().add_h264(pt, Some(repair), true, profile);
    }
    if config.congestion_control {
        rtc_config = rtc_config
            .enable_bwe(Some(stack_bitrate(config.initial_estimate)))
            .set_stats_interval(Some(FEEDBACK_INTERVAL));
    }
    let mut rtc = rtc_config.build(now);
    for candidate in locals.candidates() {
        rtc.add_local_candidate(candidate);
    }
    rtc
}
