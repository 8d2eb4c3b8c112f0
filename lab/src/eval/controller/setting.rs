//! Fixed choices of knobs, as a share of whatever the uplink carries, and the grid of them.

use std::fmt;

use serde::Serialize;
use windlass_enhancer::control::Knobs;
use windlass_types::{Bitrate, Layer};

/// One setting of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Setting {
    /// The low layer.
    pub layer: Layer,
    /// One of this many camera frames is sent.
    pub divisor: u32,
}

/// The setting of a server that adapts only the bitrate: the half layer, every frame.
pub(super) const PLAIN: Setting = Setting { layer: Layer::H, divisor: 1 };

impl Setting {
    /// All settings of the grid: layer × frame rate.
    pub(super) fn grid() -> Vec<Setting> {
        let layers = Layer::ALL.into_iter();
        layers.flat_map(|layer| [1, 2].map(|divisor| Setting { layer, divisor })).collect()
    }

    /// The knobs where the uplink carries `uplink_kbps` and the camera gives `camera_fps`.
    pub(super) fn knobs(self, uplink_kbps: f64, camera_fps: f64) -> Knobs {
        Knobs {
            layer: self.layer,
            fps: camera_fps / f64::from(self.divisor),
            bitrate: Bitrate::kbps(uplink_kbps),
            anchor_fraction: 0.0,
            anchor_bytes: 0,
        }
    }
}

/// `h/1`, `q/2`.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.layer.rid(), self.divisor))
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
        assert!(grid.contains(&PLAIN) && names.contains(&"q/2".to_owned()));
        for setting in grid {
            assert!(setting.knobs(150.0, 30.0).bitrate == Bitrate::kbps(150.0));
        }
    }
}
