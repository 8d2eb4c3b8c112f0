//! A fixed choice of knobs, as a share of whatever the uplink carries, and the grid of them.

use std::fmt::{self, Write as _};

use serde::Serialize;
use windlass_enhancer::control::Knobs;
use windlass_media::{DetailKnobs, Layer};

/// One point of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Setting {
    /// The low layer.
    pub layer: Layer,
    /// One camera frame in so many is sent.
    pub divisor: u32,
    /// Share of the bits that the detail stream has.
    pub detail_share: f64,
    /// Its frames per second.
    pub detail_fps: f64,
}

/// What a server sets that adapts nothing but the bit rate: the half layer, every frame, no detail.
pub const PLAIN: Setting =
    Setting { layer: Layer::H, divisor: 1, detail_share: 0.0, detail_fps: 1.0 };

impl Setting {
    /// All points: layer × frame rate × split; the full layer needs no detail.
    pub fn grid() -> Vec<Setting> {
        let mut all = Vec::new();
        for layer in Layer::ALL {
            for divisor in [1, 2] {
                let shares: &[f64] = if layer == Layer::F { &[0.0] } else { &[0.0, 0.15] };
                all.extend(shares.iter().map(|&detail_share| Setting {
                    layer,
                    divisor,
                    detail_share,
                    detail_fps: 1.0,
                }));
            }
        }
        all
    }

    /// The knobs where the uplink carries `uplink_kbps` and the camera gives `camera_fps`.
    pub fn knobs(&self, uplink_kbps: f64, camera_fps: f64) -> Knobs {
        let detail = uplink_kbps * self.detail_share;
        Knobs {
            layer: self.layer,
            fps: camera_fps / f64::from(self.divisor),
            low_kbps: uplink_kbps - detail,
            detail: (detail > 0.0).then_some(DetailKnobs { kbps: detail, fps: self.detail_fps }),
            anchor_fraction: 0.0,
            anchor_bytes: 0,
        }
    }
}

/// `h/1`, `q/2+15%`.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = format!("{}/{}", self.layer.rid(), self.divisor);
        if self.detail_share > 0.0 {
            let _ = write!(name, "+{:.0}%", self.detail_share * 100.0);
        }
        f.pad(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_takes_the_whole_uplink_and_has_a_name_of_its_own() {
        let grid = Setting::grid();
        let mut names: Vec<String> = grid.iter().map(Setting::to_string).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), grid.len());
        assert!(grid.contains(&PLAIN) && names.contains(&"q/2+15%".to_owned()));
        for setting in grid {
            assert!((setting.knobs(150.0, 30.0).uplink_kbps() - 150.0).abs() < 1e-9);
        }
    }
}
