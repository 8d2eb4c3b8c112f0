//! Where real clips are; how to get them: `docs/CONTRIBUTING.md`, *Clips*.

use std::path::PathBuf;

/// A clip in the folder that `WINDLASS_CLIPS` names, or beside the checkout; it need not be there.
pub(crate) fn clip(name: &str) -> PathBuf {
    let folder = std::env::var_os("WINDLASS_CLIPS")
        .map_or_else(|| PathBuf::from("../../shared/clips"), PathBuf::from);
    folder.join(name).with_extension("mp4")
}
