//! What is to stay small: the program of operators, the folder that a newcomer sees first, and the page of figures.

use anyhow::{Context, Result, bail, ensure};

use crate::process::{Cmd, step};
use crate::root;
use crate::source::files;

/// Maximum number of entries of the root, without those whose names begin with a dot.
const MAX_ENTRIES: usize = 20;
/// Maximum size of the page of figures, in bytes.
const MAX_BENCHMARKS: usize = 12_000;
/// Maximum lines of `windlass`, without its tests: its logic lies in other crates.
const MAX_LINES: usize = 6_500;

/// Fails where something has outgrown its limit.
pub(crate) fn check() -> Result<()> {
    step("Measuring what is to stay small");
    let tracked = Cmd::new("git").args(["ls-tree", "--name-only", "HEAD"]).output();
    let tracked = tracked.context("`git ls-tree` failed; is this a clone?")?;
    let entries = tracked.lines().filter(|name| !name.starts_with('.')).count();
    let page = root().join("docs/benchmarks.md");
    let benchmarks = std::fs::read(&page).with_context(|| page.display().to_string())?.len();
    let mut lines = 0;
    for file in files(&root().join("windlass/src"))? {
        lines += std::fs::read_to_string(&file)?.lines().count();
    }
    ensure!(entries > 0 && lines > 0, "the project's files are not where they were");
    let sizes = [
        ("entries of the root", entries, MAX_ENTRIES, "move one into the folder of its subject"),
        (
            "bytes of docs/benchmarks.md",
            benchmarks,
            MAX_BENCHMARKS,
            "what was tried goes to lab/notes",
        ),
        ("lines of windlass/src", lines, MAX_LINES, "move logic into the crate of its subject"),
    ];
    for (what, size, max, how) in sizes {
        if size > max {
            bail!("{size} {what}, at most {max} may be: {how}");
        }
    }
    Ok(())
}
