//! Files of the project as checks read them, and Rust sources without their tests.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::root;

/// Names of files and folders that others wrote, or that are built or installed.
const NOT_OURS: [&str; 5] = ["LICENCE.md", "dist", "node_modules", "reference", "target"];

/// Whether a file or folder, by its path from the root, is hidden, built or of other projects.
pub(crate) fn is_of_others(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with('.') || NOT_OURS.contains(&name)
}

/// The project's files of an extension, in order, but those whose path from the root, or a folder on it, is left out.
pub(crate) fn of_project(extension: &str, is_left_out: fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let root = root();
    let (mut folders, mut found) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
            if is_left_out(&name) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The Rust files below a folder, without those of tests.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let of_tests = name == "tests" || name.ends_with("_tests") || name == "harness";
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
