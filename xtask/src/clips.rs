//! Clips that tests and training read, which are not in the repository. `docs/CONTRIBUTING.md`, *Clips*, says how to
//! get them.

use std::path::PathBuf;

use crate::process::Cmd;
use crate::{root, skipped};

/// Sets the environment that tells tests where the clips are, and where to note that they cannot run.
pub(crate) fn for_tests(cmd: Cmd) -> Cmd {
    skipped::told(cmd).env("WINDLASS_CLIPS", clips_folder())
}

/// The folder of the clips: `WINDLASS_CLIPS`, by default beside the checkout.
pub(crate) fn clips_folder() -> PathBuf {
    std::env::var_os("WINDLASS_CLIPS").map_or_else(|| root().join("../shared/clips"), Into::into)
}
