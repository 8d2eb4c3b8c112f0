//! A participant's connection in the WebRTC stack, and what is left of one that panicked: nothing.

use std::time::Instant;

use str0m::Rtc;
use str0m::bwe::Bitrate;
use str0m::rtp::Extension;

use super::anchors::BUFFERED_MAX;
use super::dd;
use super::downlink::FEEDBACK_INTERVAL;
use super::fault::{Fault, contained};
use super::peer::RTX_PACKETS;
use super::remote::Locals;
use super::streams;
use super::wakes::Wake;
use crate::config::SfuConfig;

/// A participant's connection in the stack; none before the first offer, and none after it panicked.
#[derive(Default)]
pub struct Stack {
    rtc: Option<Rtc>,
    fault: Option<Fault>,
}

impl Stack {
    /// Whether there is one, or was.
    pub fn has_begun(&self) -> bool {
        self.rtc.is_some() || self.fault.is_some()
    }

    /// To look at.
    pub fn rtc(&self) -> Option<&Rtc> {
        self.rtc.as_ref()
    }

    /// Makes one, unless there is one, or there was.
    pub fn begin(&mut self, make: impl FnOnce() -> Rtc) {
        if self.rtc.is_none() && self.fault.is_none() {
            match contained(make) {
                Ok(rtc) => self.rtc = Some(rtc),
                Err(fault) => self.fault = Some(fault),
            }
        }
    }

    /// Does something with it; `None` where there is none, or it panicked: then its participant is looked after soon, to be removed.
    pub fn call<T>(&mut self, wake: &mut Wake, work: impl FnOnce(&mut Rtc) -> T) -> Option<T> {
        let rtc = self.rtc.as_mut()?;
        match contained(|| work(rtc)) {
            Ok(done) => Some(done),
            Err(fault) => {
                self.forget();
                self.fault = Some(fault);
                wake.touch();
                None
            }
        }
    }

    /// Drops it, in whatever state it is.
    pub fn forget(&mut self) {
        let rtc = self.rtc.take();
        let _ = contained(|| drop(rtc));
    }

    /// What it panicked with.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }
}

/// A connection in the stack.
pub fn connection(config: &SfuConfig, locals: &Locals, now: Instant) -> Rtc {
    let mut rtc_config = Rtc::builder()
        .set_crypto_provider(streams::provider())
        .clear_codecs()
        .enable_opus(true, true)
        .enable_vp9(true)
        .set_ice_lite(true)
        .set_rtp_mode(true)
        .set_extension(5, Extension::PlayoutDelay)
        .set_extension(12, Extension::with_serializer(dd::URI, dd::Serializer))
        .set_send_buffer_video(RTX_PACKETS)
        .set_sctp_max_buffered_amount(4 * BUFFERED_MAX);
    if config.congestion_control {
        rtc_config = rtc_config
            .enable_bwe(Some(Bitrate::bps(config.initial_estimate_bps)))
            .set_stats_interval(Some(FEEDBACK_INTERVAL));
    }
    let mut rtc = rtc_config.build(now);
    for candidate in locals.candidates() {
        rtc.add_local_candidate(candidate);
    }
    rtc
}
