//! Clips that tests and training read, which are not in the repository. `docs/CONTRIBUTING.md`, *Clips*, says how to
//! get them.

use crate::process::Cmd;
use crate::skipped;

/// Sets the environment that tells tests where the clips are, and where to note that they cannot run.
pub(crate) fn for_tests(cmd: Cmd) -> Cmd {
    skipped::told(cmd).env("WINDLASS_CLIPS", windlass_files::clips())
}
