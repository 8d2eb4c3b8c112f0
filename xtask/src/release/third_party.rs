//! The licences of the libraries in the program: most require that their text goes with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::sbom::{Crates, Id};
use super::{MACHINES, Release, write};
use crate::metadata::Metadata;
use crate::process::step;

/// Beginnings of the names of files with licences.
const NAMES: [&str; 6] = ["copying", "copyright", "licence", "license", "notice", "unlicense"];

/// Writes one file with the licences of all libraries, for all machines.
pub(super) fn write_all(release: &Release) -> Result<()> {
    step("Collecting the licences of libraries");
    let mut crates = BTreeMap::new();
    for machine in &MACHINES {
        crates.extend(Crates::of(machine)?.licences);
    }
    let folders = folders()?;
    let mut all = Vec::new();
    for (id, licence) in crates {
        // The project's own licences are in files beside it.
        if let Some(folder) = folders.get(&id) {
            all.push((id, licence, texts(folder)?));
        }
    }
    write(&file(release), document(&all).as_bytes(), 0o644)
}

/// The path of the file with the licences.
pub(super) fn file(release: &Release) -> PathBuf {
    release.work.join("third-party-licences.txt")
}

/// The folders of all crates that are not ours.
fn folders() -> Result<BTreeMap<Id, PathBuf>> {
    let packages = Metadata::of_all(".")?.packages;
    let others = packages.into_iter().filter(|package| package.source.is_some());
    others
        .map(|package| {
            let folder = package.manifest_path.parent().context("a manifest is in a folder")?;
            Ok(((package.name, package.version), folder.to_owned()))
        })
        .collect()
}

/// The licence texts in a crate's folder and in the folders below, which hold code of others.
fn texts(folder: &Path) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                found.extend(text(&entry?.path())?);
            }
        } else {
            found.extend(text(&path)?);
        }
    }
    Ok(found)
}

/// A file's text, if its name is that of a licence.
fn text(file: &Path) -> Result<Option<String>> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let code = file.extension().is_some_and(|kind| kind == "rs" || kind == "c" || kind == "h");
    if code || !file.is_file() || !NAMES.iter().any(|begin| name.starts_with(begin)) {
        return Ok(None);
    }
    let bytes = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned()))
}

/// The document: each crate with its licence's name, then each text once, with the crates that have it.
fn document(crates: &[(Id, String, BTreeSet<String>)]) -> String {
    let mut document = "Windlass contains these libraries.\n\n".to_owned();
    let mut texts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for ((name, version), licence, has) in crates {
        // Writing to a string does not fail.
        let _ = writeln!(document, "{name} {version}: {licence}");
        for text in has {
            texts.entry(text).or_default().push(format!("{name} {version}"));
        }
    }
    for (text, of) in texts {
        let _ = writeln!(document, "\n{}\n{}:\n\n{text}", "-".repeat(80), of.join(", "));
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_several_have_stands_there_once() {
        let entry = |name: &str, texts: &[&str]| {
            let texts = texts.iter().map(|text| (*text).to_owned()).collect();
            ((name.to_owned(), "1.0.0".to_owned()), "MIT".to_owned(), texts)
        };
        let document =
            document(&[entry("a", &["common"]), entry("b", &["common", "own"]), entry("c", &[])]);
        assert_eq!(document.matches("common").count(), 1);
        assert!(document.contains("a 1.0.0, b 1.0.0:\n\ncommon"), "{document}");
        assert!(
            document.contains("b 1.0.0:\n\nown") && document.contains("c 1.0.0: MIT"),
            "{document}"
        );
    }

    #[test]
    fn licences_are_found_beside_the_code_and_one_folder_deeper() {
        let dir = tempfile::tempdir().expect("a folder");
        for (file, text) in [
            ("LICENSE-MIT", "a"),
            ("jemalloc/COPYING", "b"),
            ("src/license.rs", "c"),
            ("README", "d"),
        ] {
            write(&dir.path().join(file), text.as_bytes(), 0o644).expect("a file");
        }
        let found = texts(dir.path()).expect("a folder to look in");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a", "b"]);
    }
}
