//! Options of anchors: how they are made, encoded and lost.

use std::num::NonZeroU32;

use anyhow::ensure;
use clap::Args;
use windlass_enhancer::EnhancerConfig;
use windlass_enhancer::tiles::{RegionConfig, TileConfig};

use crate::eval::captured::{CapturedSettings, Source};

/// The options of all anchors.
#[derive(Debug, Clone, Args)]
pub(crate) struct AnchorArgs {
    /// Share of frames that become anchors, 0 to 1.
    #[arg(long, default_value_t = EnhancerConfig::default().anchor_fraction, value_name = "F",
          conflicts_with = "sweep")]
    pub anchor_fraction: f64,

    /// Quality of the coded anchors, 1 to 100.
    #[arg(long, default_value_t = EnhancerConfig::default().anchor_quality, value_name = "Q",
          value_parser = clap::value_parser!(u8).range(1..=100), conflicts_with = "sweep")]
    pub anchor_quality: u8,

    /// Greatest size of each anchor in bytes, instead of --anchor-quality.
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["anchor_quality", "sweep"])]
    pub anchor_budget: Option<NonZeroU32>,

    /// Make anchors of the original instead of by super-resolution: the remaining loss is the codec's.
    #[arg(long)]
    pub oracle: bool,

    /// Code all detail over the upsampled picture, as the papers do, instead of the detail that the decoder's built-in
    /// filters do not predict; nemo-style always does.
    #[arg(long)]
    pub whole_detail: bool,

    /// Least residual (square grey levels by sample) at which a tile of an anchor is sent again; 0 sends all tiles.
    #[arg(long, default_value_t = EnhancerConfig::default().tiles.threshold, value_name = "E")]
    pub tile_threshold: f64,

    /// Time from a frame to its usable anchor in milliseconds.
    #[arg(long, default_value_t = 130, value_name = "MS")]
    pub delay_ms: u32,

    /// Share of anchor messages that are lost in transit, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_name = "F")]
    pub anchor_loss: f64,

    /// Seed of the lost messages; the same seed loses the same messages.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,

    /// Let `nemo` choose among every Nth frame: N times as fast.
    #[arg(long, default_value = "1", value_name = "N")]
    pub nemo_step: NonZeroU32,
}

impl AnchorArgs {
    /// The rule by which tiles are sent again.
    pub(crate) fn tiles(&self) -> TileConfig {
        TileConfig { threshold: self.tile_threshold, ..TileConfig::default() }
    }
}

/// The options of captured anchors: those of the publisher's own pixels.
#[derive(Debug, Clone, Args)]
pub(crate) struct CapturedArgs {
    /// Source of the captured anchors of `captured` and `both`: f (the full layer, decoded by the server), regions
    /// (stills that the server asks for), dds (regions as DDS chooses them).
    #[arg(long, default_value = "regions", value_name = "SOURCE")]
    pub captured_from: Source,

    /// Bit rate of the full layer in kbit/s [default: Chromium's for the size].
    #[arg(long, value_name = "K")]
    pub full_kbps: Option<NonZeroU32>,

    /// Share of the full layer's frames that become captured anchors, 0 to 1.
    #[arg(long, default_value_t = 0.033, value_name = "F")]
    pub captured_fraction: f64,

    /// Quality of captured anchors made of the full layer, 1 to 100.
    #[arg(long, default_value_t = 80, value_name = "Q",
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub captured_quality: u8,

    /// Requests of regions a second, more than 0 and at most 30.
    #[arg(long, default_value_t = 1.0, value_name = "F")]
    pub stills_fps: f64,

    /// Highest bit rate of all regions together in kbit/s.
    #[arg(long, default_value = "50", value_name = "K")]
    pub stills_kbps: NonZeroU32,

    /// Take the stills' bits from the uplink, of which the low layer then gets less, instead of adding them.
    #[arg(long)]
    pub within: bool,

    /// Largest share of the picture's area that one request of regions may name, 0 to 1.
    #[arg(long, default_value_t = RegionConfig::default().area, value_name = "F")]
    pub region_area: f64,
}

impl CapturedArgs {
    /// Checks the arguments that clap cannot check.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        for share in [self.captured_fraction, self.region_area] {
            ensure!((0.0..=1.0).contains(&share), "{share} is not a share, from 0 to 1");
        }
        ensure!(
            self.stills_fps > 0.0 && self.stills_fps <= 30.0,
            "--stills-fps must be more than 0 and at most 30, not {}",
            self.stills_fps
        );
        Ok(())
    }

    /// The settings of captured anchors.
    pub(crate) fn settings(&self) -> CapturedSettings {
        CapturedSettings {
            full_kbps: self.full_kbps.map(NonZeroU32::get),
            fraction: self.captured_fraction,
            quality: self.captured_quality,
            stills_fps: self.stills_fps,
            stills_kbps: self.stills_kbps.get(),
            within: self.within,
            area: self.region_area,
        }
    }
}
