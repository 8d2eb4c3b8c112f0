//! Files of results: finds, names and reads them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// Reads a file of JSON.
pub(super) fn json(file: &Path) -> Result<Value> {
    let named = || format!("reading {}", file.display());
    let text = std::fs::read(file).with_context(named)?;
    serde_json::from_slice(&text).with_context(named)
}

/// The files of a folder with this extension, by name; empty where there is no folder.
pub(super) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let named = || format!("reading {}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(named)? {
        let path = entry.with_context(named)?.path();
        if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A file's name in cells and messages.
pub(super) fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
