//! How much time is spent on what pictures take from references.

use super::plan::LAYERS;
use crate::flow::FlowSettings;

/// How thoroughly the way to references is searched for. Measured by `carry_gain` (`docs/reconstruction.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// Patches that overlap by half, and two references.
    #[default]
    Full,
    /// Patches side by side, and one reference: less than half of the time and four fifths of the gain, for machines that do
    /// not keep up.
    Little,
}

impl Effort {
    pub(crate) fn flow(self) -> FlowSettings {
        let full = FlowSettings::default();
        match self {
            Self::Full => full,
            Self::Little => FlowSettings { stride: 2 * full.stride, ..full },
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
