//! Rust sources as checks read them: without tests.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The Rust files below a folder, without those of tests.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let of_tests = name == "tests" || name.ends_with("_tests") || name == "world";
        if path.is_dir() && !of_tests {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|e| e == "rs") && !of_tests {
            found.push(path);
        }
    }
    Ok(found)
}

/// A file's code without its tests, which come last, and without lines of comments.
pub(crate) fn code(text: &str) -> String {
    let opens =
        |&(_, rest): &(&str, &str)| rest.lines().next().is_some_and(|l| l.ends_with("mod tests {"));
    let tests =
        text.match_indices("#[cfg(test)]\n").map(|(at, mark)| (at, text.split_at(at + mark.len())));
    let tests = tests.filter(|(_, parts)| opens(parts)).map(|(at, _)| at).next();
    let code = text.get(..tests.unwrap_or(text.len())).unwrap_or_default();
    code.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect()
}
