//! The product's side: a low layer rebuilt at the shown size, with stills of the publisher's own.
//!
//! Who is held to a low layer decides where stills come from. A *viewer* on a narrow link: the full layer `f` reaches
//! the server, which makes stills of it with the anchor codec, coding what the filters do not expect. A *publisher* on
//! a narrow uplink: its page makes them the same way, of the camera itself, and they take their time on the uplink.

use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use windlass_enhancer::EnhancerConfig;
use windlass_hybrid::HybridConfig;
use windlass_types::AnchorSource;
use windlass_vp9::Picture;

use crate::eval::anchors::{self, AnchorSettings, AnchorTrack};
use crate::eval::captured::transmission;
use crate::eval::clip::Clip;
use crate::eval::coding::Target;
use crate::eval::low_layer::Coded;
use crate::eval::scale::Scale;
use crate::eval::sr::Upscaler;
use crate::eval::{rebuild, select};

/// Number of stills in a second.
const STILLS_PER_S: f64 = 0.5;
/// Time from the frame's arrival, or the camera, to the browser. The publisher's stills take their time on the uplink
/// besides.
const DELAY: Duration = Duration::from_millis(130);

/// Where stills come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StillsFrom {
    /// The server makes them of the full layer.
    F,
    /// The publisher makes them of its camera and sends them beside its low layer.
    Publisher,
}

/// The stills of a clip.
#[derive(Debug, Default)]
pub(super) struct Stills {
    track: AnchorTrack,
}

impl Stills {
    /// Bitrate of the stills, in kbit/s.
    pub(super) fn kbps(&self) -> f64 {
        self.track.kbps
    }
}

/// The inputs from which stills are made.
pub(super) struct Maker<'a> {
    clip: &'a Clip,
    /// The full layer as the server decodes it.
    full: &'a Clip,
    upscaler: Upscaler,
}

impl<'a> Maker<'a> {
    /// A maker for a clip and its full layer.
    pub(super) fn new(clip: &'a Clip, full: &'a Clip) -> Result<Maker<'a>> {
        Ok(Maker { clip, full, upscaler: Upscaler::new()? })
    }

    /// Stills for a low layer that take about `share` of its bits.
    pub(super) fn make(
        &mut self,
        from: StillsFrom,
        low: &Coded,
        scale: Scale,
        share: f64,
    ) -> Result<Stills> {
        let kbps = share * low.kbps;
        let bytes = (kbps * 125.0 / STILLS_PER_S).round().max(1.0) as usize;
        let (of, delay) = match from {
            StillsFrom::F => (self.full, DELAY),
            // A still is sent as fast as the whole uplink of the two carries it.
            StillsFrom::Publisher => (self.clip, DELAY + transmission(bytes, low.kbps + kbps)),
        };
        let product = EnhancerConfig::default();
        let settings = AnchorSettings {
            fraction: STILLS_PER_S / self.clip.fps,
            target: Target::Budget(bytes),
            tiles: Some(product.tiles),
            beyond_prior: true,
            source: AnchorSource::Captured,
            delay,
            loss: 0.0,
            seed: 1,
        };
        let chosen = select::scheduled(low, self.clip.fps, settings.fraction);
        let track = anchors::make(of, low, scale, &settings, &chosen, &mut self.upscaler)?;
        Ok(Stills { track })
    }
}

/// Rebuilds the clip with stills, and passes every picture on. Returns how many stills reached it.
pub(super) fn play(
    fps: f64,
    low: &Coded,
    config: HybridConfig,
    stills: &Stills,
    mut show: impl FnMut(&Picture) -> Result<()>,
) -> Result<usize> {
    let played = rebuild::play(low, fps, &stills.track.anchors, config, |_, picture| show(picture));
    Ok(played.context("playing the low layer with its stills")?.anchors)
}
