//! The notes of this version: its section of docs/CHANGELOG.md.

use anyhow::{Context, Result, bail, ensure};

use super::VERSION;
use crate::process::Cmd;
use crate::root;

/// Name of the section of changes that are not released yet.
const UNRELEASED: &str = "Unreleased";

/// The notes of this version. If the commit has no tag, the section of unreleased changes stands in.
pub(super) fn of_this_version() -> Result<String> {
    let changelog = std::fs::read_to_string(root().join("docs/CHANGELOG.md"))
        .context("reading docs/CHANGELOG.md")?;
    let tagged = is_tagged()?;
    if let Some(notes) = section(&changelog, VERSION) {
        return Ok(notes);
    }
    ensure!(
        !tagged,
        "docs/CHANGELOG.md has no section `## {VERSION}`: rename `## {UNRELEASED}`, and commit before the tag"
    );
    let notes = section(&changelog, UNRELEASED);
    notes.with_context(|| format!("docs/CHANGELOG.md has no section `## {UNRELEASED}`"))
}

/// Whether this commit is tagged as a version. The tag must name this version.
fn is_tagged() -> Result<bool> {
    let tags = Cmd::new("git").args(["tag", "--points-at", "HEAD", "--list", "v*"]).output();
    match tags.as_deref() {
        None | Some("") => Ok(false),
        Some(tags) if tags.lines().any(|tag| tag == format!("v{VERSION}")) => Ok(true),
        Some(tags) => bail!("Cargo.toml says version {VERSION}, and the commit's tag {tags}"),
    }
}

/// The text below a heading `## NAME` or `## NAME, date`, up to the next heading of its level.
fn section(changelog: &str, name: &str) -> Option<String> {
    let is_its = |line: &str| {
        let title = line.strip_prefix("## ").map(|title| title.split([',', ' ']).next());
        title == Some(Some(name))
    };
    let below = changelog.lines().skip_while(|line| !is_its(line)).skip(1);
    let text: Vec<_> = below.take_while(|line| !line.starts_with("## ")).collect();
    let text = text.join("\n");
    let text = text.trim();
    (!text.is_empty()).then(|| format!("{text}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_s_notes_end_at_the_next_version() {
        let changelog = "# Changelog\n\n## Unreleased\n\n## 0.2.0, 2026-12-01\n\n### Added\n\n- A\n\n## 0.2\n\n- B\n";
        assert_eq!(section(changelog, "0.2.0").as_deref(), Some("### Added\n\n- A\n"));
        assert_eq!(section(changelog, "0.2").as_deref(), Some("- B\n"));
        assert_eq!(section(changelog, "Unreleased"), None, "it is empty");
        assert_eq!(section(changelog, "0.1.0"), None);
    }

    #[test]
    fn the_changelog_has_notes_of_this_version_or_of_the_next() {
        assert!(of_this_version().is_ok_and(|notes| notes.contains("### ")));
    }
}
