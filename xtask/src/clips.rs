//! Clips that tests and training read, which are no part of the repository: how to get them is in
//! `docs/CONTRIBUTING.md`, *Clips*.

use std::path::PathBuf;

use crate::process::Cmd;
use crate::{root, skipped};

/// Tells tests where the clips are, and where to note that they cannot run.
pub(crate) fn for_tests(cmd: Cmd) -> Cmd {
    skipped::told(cmd).env("WINDLASS_CLIPS", clips_folder())
}

/// Where the clips are: `WINDLASS_CLIPS`, by default beside the checkout.
pub(crate) fn clips_folder() -> PathBuf {
    std::env::var_os("WINDLASS_CLIPS").map_or_else(|| root().join("../shared/clips"), Into::into)
}
