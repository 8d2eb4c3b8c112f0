//! The detail stream: full-size frames at one or two a second, as a second VP9 sender of Chromium codes them.

use std::time::Duration;

use anyhow::Result;

use super::{CapturedSettings, Form, Sender, payload, transmission};
use crate::eval::anchors::{AnchorTrack, rtp_timestamp, shown_at};
use crate::eval::clip::Clip;
use crate::eval::cpu_clock::CpuClock;
use crate::eval::vpx::{self, Encoder, EncoderConfig, FrameUse};

/// What the way of a frame to the browser is like.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// Beside its transmission on the uplink.
    pub delay: Duration,
    /// Rate of the whole uplink.
    pub uplink_kbps: f64,
    /// Whether it is a shared screen.
    pub screen: bool,
    /// Every so manyeth frame is lost; none when 0.
    pub lose_every: usize,
}

/// The frames of a clip's detail stream as anchors. After a lost one the next is a key frame, as the server asks for
/// it.
pub fn make(clip: &Clip, settings: &CapturedSettings, way: &Way) -> Result<AnchorTrack> {
    let step = ((clip.fps / settings.detail_fps).round() as usize).max(1);
    let size = clip.frames.size();
    let mut encoder = Encoder::new(EncoderConfig {
        width: size.width,
        height: size.height,
        fps: clip.fps / step as f64,
        kbps: settings.detail_kbps,
        screen: way.screen,
        cpu_used: None,
    })?;
    let mut sender = Sender::new(size);
    let mut clock = CpuClock::default();
    let (mut sequence, mut key) = (0u16, true);
    for (frame, picture) in clip.frames.frames()?.enumerate() {
        let picture = picture?;
        if frame % step != 0 {
            continue;
        }
        let coded = clock.measure(|| {
            if key { encoder.encode_as(&picture, FrameUse::Key) } else { encoder.encode(&picture) }
        })?;
        let payload = payload(&coded, sequence, key);
        sequence = sequence.wrapping_add(1);
        key = way.lose_every > 0 && usize::from(sequence) % way.lose_every == 0;
        if key {
            sender.lost += 1;
            sender.bytes += payload.len();
            continue;
        }
        let took = way.delay + transmission(payload.len(), way.uplink_kbps);
        let ready_at = shown_at(frame, clip.fps) + took;
        let picture = (Form::Picture, false);
        sender.send(frame, rtp_timestamp(frame, clip.fps), ready_at, &payload, picture)?;
    }
    Ok(AnchorTrack {
        kbps: vpx::kbps(sender.bytes, clip.frames.len(), clip.fps),
        anchors: sender.anchors,
        lost: sender.lost,
        bytes: sender.bytes,
        sr_share: 0.0,
        infer_ms: None,
        encode_ms: clock.mean_run_ms(),
    })
}
