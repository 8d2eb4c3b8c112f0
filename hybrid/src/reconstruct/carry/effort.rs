//! How much time is spent on what pictures take from references.

use super::plan::LAYERS;
use crate::flow::FlowSettings;

/// How thoroughly the way to references is searched for. Measured by `carry_gain` (`docs/reconstruction.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// Patches that overlap by half in the latest reference, and patches side by side in the one before.
    #[default]
    Full,
    /// Patches side by side, and one reference: less than half of the time and four fifths of the gain, for machines that do
    /// not keep up.
    Little,
}

impl Effort {
    /// How to search in a reference: one before the latest gives little, and is not worth as much time.
    pub(crate) fn flow(self, is_latest: bool) -> FlowSettings {
        let full = FlowSettings::default();
        if self == Self::Full && is_latest {
            full
        } else {
            FlowSettings { stride: 2 * full.stride, ..full }
        }
    }

    /// References that a picture is made from, at most.
    pub(crate) fn references(self) -> usize {
        match self {
            Self::Full => LAYERS,
            Self::Little => 1,
        }
    }
}
