//! The page: pairs of files by their names, copied under names that say nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use rand::seq::SliceRandom;
use serde::Serialize;

/// The page's text, without its pairs.
const PAGE: &str = include_str!("page.html");
/// The kinds of file that browsers show, by their extension.
const KINDS: [&str; 7] = ["png", "webp", "jpg", "jpeg", "avif", "mp4", "webm"];

/// A folder of pictures or clips, and what it is called in the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Set {
    pub(super) name: String,
    pub(super) folder: PathBuf,
}

impl FromStr for Set {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, folder)) if !name.is_empty() && !folder.is_empty() => {
                Ok(Set { name: name.to_owned(), folder: folder.into() })
            }
            _ => Err(format!("{text:?} is not NAME=FOLDER")),
        }
    }
}

/// A pair that is shown once: a file as two sets have it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Pair {
    file: String,
    sides: [Side; 2],
}

/// One side of a pair: its set, and the file that the page shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Side {
    set: String,
    source: String,
}

/// Writes the page and copies of the files. Returns the number of pairs.
pub(super) fn write(sets: &[Set], out: &Path) -> Result<usize> {
    for (index, set) in sets.iter().enumerate() {
        let twice = sets[..index].iter().any(|other| other.name == set.name);
        ensure!(!twice, "two sets are called {}", set.name);
    }
    let all = sets.iter().map(files).collect::<Result<Vec<_>>>()?;
    let shown = paired(&all);
    ensure!(!shown.is_empty(), "no two sets have a file of the same name that browsers show");
    fs::create_dir(out).with_context(|| format!("making the folder {}", out.display()))?;
    let mut numbers: Vec<usize> = (0..all.iter().map(BTreeMap::len).sum()).collect();
    numbers.shuffle(&mut rand::rng());
    let mut sources = BTreeMap::new();
    for (index, name) in all.iter().enumerate().flat_map(|(i, set)| set.keys().map(move |n| (i, n)))
    {
        let path = &all[index][name];
        let kind = kind(path).unwrap_or_default();
        let source = format!("{}.{kind}", numbers[sources.len()]);
        fs::copy(path, out.join(&source)).with_context(|| format!("copying {}", path.display()))?;
        sources.insert((index, name.as_str()), source);
    }
    let side = |set: usize, file: &str| Side {
        set: sets[set].name.clone(),
        source: sources[&(set, file)].clone(),
    };
    let pairs: Vec<Pair> = shown
        .iter()
        .map(|&(file, one, other)| Pair {
            file: file.to_owned(),
            sides: [side(one, file), side(other, file)],
        })
        .collect();
    let path = out.join("index.html");
    fs::write(&path, html(&pairs)?).with_context(|| format!("writing {}", path.display()))?;
    Ok(pairs.len())
}

/// The page of these pairs.
fn html(pairs: &[Pair]) -> Result<String> {
    // A name must not end the script that holds it.
    let text = serde_json::to_string(pairs)?.replace('<', "\\u003c");
    Ok(PAGE.replacen("PAIRS", &text, 1))
}

/// The files of a set that browsers show, by their names without the kind.
fn files(set: &Set) -> Result<BTreeMap<String, PathBuf>> {
    let reading = || format!("reading the folder {}", set.folder.display());
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&set.folder).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        let (Some(stem), Some(_)) = (path.file_stem(), kind(&path)) else { continue };
        let name = stem.to_string_lossy().into_owned();
        if let Some(other) = found.insert(name, path.clone()) {
            bail!("{} and {} have one name", other.display(), path.display());
        }
    }
    Ok(found)
}

/// The kind of a file that browsers show; `None` for other files.
fn kind(path: &Path) -> Option<String> {
    let kind = path.extension()?.to_str()?.to_ascii_lowercase();
    KINDS.contains(&kind.as_str()).then_some(kind)
}

/// Each name, with every two sets that have it.
fn paired(all: &[BTreeMap<String, PathBuf>]) -> Vec<(&str, usize, usize)> {
    let mut out = Vec::new();
    for (one, files) in all.iter().enumerate() {
        for (other, others) in all.iter().enumerate().skip(one + 1) {
            let both = files.keys().filter(|name| others.contains_key(*name));
            out.extend(both.map(|name| (name.as_str(), one, other)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(root: &Path, name: &str, files: &[&str]) -> Set {
        let folder = root.join(name);
        fs::create_dir(&folder).unwrap();
        for file in files {
            fs::write(folder.join(file), format!("{name} {file}")).unwrap();
        }
        format!("{name}={}", folder.display()).parse().unwrap()
    }

    /// The pairs that a page holds.
    fn shown(out: &Path) -> Vec<serde_json::Value> {
        let page = fs::read_to_string(out.join("index.html")).unwrap();
        let start = page.find("id=\"pairs\">").unwrap() + "id=\"pairs\">".len();
        let end = start + page[start..].find("</script>").unwrap();
        serde_json::from_str(&page[start..end]).unwrap()
    }

    #[test]
    fn files_of_one_name_are_paired_and_each_side_shows_its_own_sets_file() {
        let root = tempfile::tempdir().unwrap();
        let sets = [
            set(root.path(), "a", &["x.png", "only.png"]),
            set(root.path(), "b", &["x.PNG", "y.txt"]),
        ];
        let out = root.path().join("out");
        assert_eq!(write(&sets, &out).unwrap(), 1);
        let pairs = shown(&out);
        assert_eq!(pairs[0]["file"], "x");
        for (at, (name, file)) in [("a", "x.png"), ("b", "x.PNG")].into_iter().enumerate() {
            let side = &pairs[0]["sides"][at];
            assert_eq!(side["set"], name);
            let copied = fs::read_to_string(out.join(side["source"].as_str().unwrap())).unwrap();
            assert_eq!(copied, format!("{name} {file}"));
        }
    }

    #[test]
    fn of_three_sets_each_two_are_compared() {
        let root = tempfile::tempdir().unwrap();
        let sets = ["a", "b", "c"].map(|name| set(root.path(), name, &["x.png", "y.webm"]));
        assert_eq!(write(&sets, &root.path().join("out")).unwrap(), 6);
    }

    #[test]
    fn a_name_cannot_end_the_pages_script() {
        let side = Side { set: "</script><script>".to_owned(), source: "0.png".to_owned() };
        let page = html(&[Pair { file: "x".to_owned(), sides: [side.clone(), side] }]).unwrap();
        assert_eq!(page.matches("</script>").count(), PAGE.matches("</script>").count());
    }

    #[test]
    fn what_cannot_be_paired_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let (a, b) = (set(root.path(), "a", &["x.png"]), set(root.path(), "b", &["y.png"]));
        let out = root.path().join("out");
        assert!(write(&[a.clone(), b], &out).is_err());
        assert!(write(&[a.clone(), a.clone()], &out).is_err());
        assert!(!out.exists());
        let twice = set(root.path(), "c", &["x.png", "x.jpg"]);
        assert!(write(&[a, twice], &out).is_err());
        assert!("folder".parse::<Set>().is_err());
    }
}
