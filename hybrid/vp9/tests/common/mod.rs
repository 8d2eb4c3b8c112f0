//! What the tests of this crate share: streams.

pub(crate) use windlass_files::ivf::frames as ivf;

/// As in a call: 161×91, real-time settings.
pub(crate) const REALTIME: &[u8] = include_bytes!("../fixtures/realtime.ivf");
/// Hidden frames and compound prediction: 160×96, two passes with alternate references.
pub(crate) const ALTREF: &[u8] = include_bytes!("../fixtures/altref.ivf");
