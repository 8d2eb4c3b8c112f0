//! The effort for pictures from references: how much time they may take.

use super::cells::LAYERS;
use crate::flow::FlowSettings;

/// How thoroughly flow to references is searched for. The laboratory's example `carry_gain` measures it
/// (`lab/notes/flow.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// Patches that overlap by half in the latest reference, and by a quarter in the one before.
    #[default]
    Full,
    /// Patches side by side, and one reference: less than half of the time and four fifths of the gain, for machines
    /// that do not keep up.
    Little,
}

impl Effort {
    /// The settings of the search in a reference. One before the latest adds little, and is not worth as much time.
    pub(crate) fn flow(self, is_latest: bool) -> FlowSettings {
        let full = FlowSettings::default();
        match self {
            Self::Full if is_latest => full,
            Self::Full => FlowSettings { stride: full.stride * 3 / 2, ..full },
            Self::Little => FlowSettings { stride: full.stride * 2, ..full },
        }
    }

    /// Maximum number of references that a picture is made from.
    pub(crate) fn references(self) -> usize {
        match self {
            Self::Full => LAYERS,
            Self::Little => 1,
        }
    }
}
